//! The runs of a segment without their hours: whose, how many rows, from when to when.
//!
//! This much of a run directory is needed to know which rows a question is about. A directory of many small
//! tenants has thousands of runs, and ten times as many hours: who asks once for rows reads no more than this.

#![cfg_attr(not(test), deny(clippy::indexing_slicing, clippy::unwrap_used))]

use std::{ops::Range, sync::Arc};

use crate::{base::texts::TextTable, event::Namespace};

/// A tenant's part of a segment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Owner {
    /// Where the tenant belongs.
    pub namespace: Namespace,
    /// Its runs.
    pub runs: Range<u32>,
}

/// The rows of a series in a segment, or elsewhere. They stand together and rise in time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Series {
    /// The customer's customer, by its place among the tenants.
    pub tenant: u32,
    /// The event's name, by its place among the names.
    pub name: u32,
    /// Which rows.
    pub rows: Range<u32>,
    /// Earliest time, in milliseconds since 1970.
    pub first_ms: i64,
    /// Latest time.
    pub last_ms: i64,
}

/// All runs of a segment, without their hours.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RunSummaries {
    /// Tenants in the order of their rows.
    pub owners: Vec<Owner>,
    /// Names of the tenants.
    pub tenants: TextTable,
    /// Names of events, rising.
    pub names: Vec<Arc<str>>,
    /// The runs in the order of their rows.
    pub runs: Vec<Series>,
    /// In how many hours each run has rows.
    pub hours: Vec<u32>,
}

impl RunSummaries {
    /// For each tenant, the row behind its last one.
    pub fn tenant_ends(&self) -> impl Iterator<Item = u32> {
        self.owners.iter().map(|owner| {
            let last = owner.runs.end.checked_sub(1);
            last.and_then(|last| self.runs.get(last as usize)).map_or(0, |run| run.rows.end)
        })
    }

    /// The namespaces with rows, rising.
    pub fn namespaces(&self) -> Arc<[u32]> {
        let mut namespaces: Vec<u32> = self.owners.iter().map(|owner| owner.namespace.0).collect();
        namespaces.dedup();
        namespaces.into()
    }

    /// Of each namespace with rows the earliest time and the latest, in milliseconds since 1970.
    pub fn namespace_bounds(&self) -> Arc<[(i64, i64)]> {
        let by_namespace = self.owners.chunk_by(|a, b| a.namespace == b.namespace);
        let bounds = by_namespace.map(|owners| {
            let runs = owners.iter().flat_map(|owner| {
                let runs = owner.runs.start as usize..owner.runs.end as usize;
                self.runs.get(runs).unwrap_or_default()
            });
            let (earliest, latest) = (i64::MAX, i64::MIN);
            runs.fold((earliest, latest), |(earliest, latest), run| {
                (earliest.min(run.first_ms), latest.max(run.last_ms))
            })
        });
        bounds.collect()
    }

    /// Number of rows.
    pub fn rows(&self) -> u32 {
        self.runs.last().map_or(0, |run| run.rows.end)
    }
}

/// The hours of all runs that have rows, run after run.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Hours {
    /// Where the hours of each run begin, and where those of the last one end.
    pub starts: Vec<u32>,
    /// Each hour since 1970, and the row of its run where it begins.
    pub list: Vec<(i64, u32)>,
}

impl Hours {
    /// The hours of a run.
    pub fn of(&self, run: usize) -> &[(i64, u32)] {
        let bound = |at: usize| self.starts.get(at).copied().unwrap_or_default() as usize;
        self.list.get(bound(run)..bound(run.saturating_add(1))).unwrap_or_default()
    }
}
