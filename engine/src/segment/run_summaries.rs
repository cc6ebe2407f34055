//! The runs of a segment without their hours: series, rows, first and last time.
//!
//! This part of a run directory is enough to find the rows of a query. A directory of many small
//! tenants has thousands of runs, and ten times as many hours: a single read of rows decodes no
//! more than this part.
//!
//! ```text
//! golden segment 019a6356-6e00-7ec8-b074-7e0b5b63c210
//! names    call, refund
//! tenants  acme, zeta
//! owners   (2, runs 0..2)  (2, runs 2..4)
//! runs     acme call 0..28   acme refund 28..32   zeta call 32..39   zeta refund 39..40
//! hours    1, 1, 1, 1
//! ```

#![cfg_attr(not(test), deny(clippy::indexing_slicing, clippy::unwrap_used))]

use std::{ops::Range, sync::Arc};

use crate::{base::texts::TextTable, event::Namespace};

/// The runs of one tenant in a segment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Owner {
    /// Namespace that the tenant belongs to.
    pub namespace: Namespace,
    /// Positions of the tenant's runs in `RunSummaries::runs`.
    pub runs: Range<u32>,
}

/// The rows of a series in a segment, or elsewhere. They stand together and rise in time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Series {
    /// Index of the tenant among the tenants of the source.
    pub tenant: u32,
    /// Index of the event name among the names of the source.
    pub name: u32,
    /// Rows of the series, counted in the segment or other source.
    pub rows: Range<u32>,
    /// Earliest time, in milliseconds since 1970.
    pub first_ms: i64,
    /// Latest time, in milliseconds since 1970.
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
    /// Number of hours with rows of each run.
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

    /// The namespaces with rows, rising, each once: `[2]` above.
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

    /// Number of rows: where the last run ends. The footer must say the same.
    pub fn rows(&self) -> u32 {
        self.runs.last().map_or(0, |run| run.rows.end)
    }
}

/// The hours of all runs that have rows, run after run.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Hours {
    /// Start of the hours of each run in `list`, and the end of the last run.
    pub starts: Vec<u32>,
    /// Hours since 1970, each with its first row, counted in its run.
    pub list: Vec<(i64, u32)>,
}

impl Hours {
    /// The hours of a run, by its position among the runs; empty where there is no such run.
    pub fn of(&self, run: usize) -> &[(i64, u32)] {
        let bound = |at: usize| self.starts.get(at).copied().unwrap_or_default() as usize;
        self.list.get(bound(run)..bound(run.saturating_add(1))).unwrap_or_default()
    }
}
