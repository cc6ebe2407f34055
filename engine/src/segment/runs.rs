//! The run directory: which rows of a segment belong to which series, and where each hour starts.
//!
//! It is exact and replaces a sparse index: an hour bucket of a series is a range of rows, found
//! without decoding a timestamp.

#![cfg_attr(not(test), deny(clippy::indexing_slicing, clippy::unwrap_used))]

use std::ops::Range;

use crate::{
    base::time::HOUR_MS,
    column::{SeriesKey, owner_hash},
    event::Namespace,
};

const HOURS_A_DAY: i64 = 24;

/// The rows of one series.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Run {
    /// Whose rows.
    pub key: SeriesKey,
    /// First row in the segment.
    pub first_row: u32,
    /// Number of rows.
    pub rows: u32,
    /// Earliest timestamp.
    pub ts_min: i64,
    /// Latest timestamp.
    pub ts_max: i64,
    /// For each hour with rows, in order: the hour since 1970 and the row, counted in the run,
    /// where it starts.
    pub hours: Vec<(i64, u32)>,
}

impl Run {
    /// The days of the run since 1970, each with its rows, in the segment's row numbers.
    pub fn days(&self) -> Vec<(i64, Range<u32>)> {
        let first = |row: u32| self.first_row.saturating_add(row);
        let mut days: Vec<(i64, Range<u32>)> = Vec::new();
        for (hour, rows) in self.hour_rows() {
            let day = hour.div_euclid(HOURS_A_DAY);
            match days.last_mut() {
                Some((last, range)) if *last == day => range.end = first(rows.end),
                _ => days.push((day, first(rows.start)..first(rows.end))),
            }
        }
        days
    }

    /// The hours of the run since 1970, each with its rows, counted in the run.
    pub fn hour_rows(&self) -> impl Iterator<Item = (i64, Range<u32>)> {
        let ends = self.hours.iter().skip(1).map(|(_, row)| *row).chain([self.rows]);
        self.hours.iter().zip(ends).map(|(&(hour, start), end)| (hour, start..end.max(start)))
    }

    /// Rows of the run before the hour that starts at `hour_start_ms`.
    pub fn rows_before(&self, hour_start_ms: i64) -> u32 {
        let hour = hour_start_ms.div_euclid(HOUR_MS);
        let at = self.hours.partition_point(|(known, _)| *known < hour);
        self.hours.get(at).map_or(self.rows, |(_, row)| *row)
    }
}

/// All runs of a segment, ordered by series.
#[derive(Debug, Clone, Default)]
pub struct RunDirectory {
    runs: Vec<Run>,
    /// Where the runs of each tenant stand, in a directory that was read: every question looks for its
    /// tenant in every segment, and names of tenants begin alike.
    owners: Vec<Owner>,
}

impl PartialEq for RunDirectory {
    fn eq(&self, other: &Self) -> bool {
        self.runs == other.runs
    }
}

impl Eq for RunDirectory {}

/// The runs of a namespace's tenant, found by the hash of both. Ordered by it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Owner {
    hash: u64,
    start: u32,
    end: u32,
}

fn same_owner(a: &Run, b: &Run) -> bool {
    (a.key.namespace, &a.key.tenant) == (b.key.namespace, &b.key.tenant)
}

impl Owner {
    fn list(runs: &[Run]) -> Vec<Self> {
        let mut owners: Vec<Self> = Vec::new();
        let mut start = 0;
        for runs in runs.chunk_by(same_owner) {
            let end = start + runs.len() as u32;
            if let Some(run) = runs.first() {
                let hash = owner_hash(run.key.namespace, &run.key.tenant);
                owners.push(Self { hash, start, end });
            }
            start = end;
        }
        owners.sort_unstable();
        owners
    }
}

impl RunDirectory {
    /// Bytes in memory, about.
    pub fn bytes_used(&self) -> usize {
        let of_run = |run: &Run| {
            let names = run.key.tenant.len() + run.key.name.len();
            size_of::<Run>() + names + run.hours.capacity() * size_of::<(i64, u32)>()
        };
        self.runs.iter().map(of_run).sum::<usize>() + self.owners.len() * size_of::<Owner>()
    }

    /// Appends the rows of the next series: their sorted timestamps.
    pub fn push(&mut self, key: SeriesKey, timestamps: &[i64]) {
        let first_row = self.runs.last().map_or(0, |run| run.first_row + run.rows);
        let mut hours: Vec<(i64, u32)> = Vec::new();
        for (row, timestamp) in timestamps.iter().enumerate() {
            let hour = timestamp.div_euclid(HOUR_MS);
            if hours.last().is_none_or(|(last, _)| *last != hour) {
                hours.push((hour, row as u32));
            }
        }
        self.runs.push(Run {
            key,
            first_row,
            rows: timestamps.len() as u32,
            ts_min: timestamps.first().copied().unwrap_or_default(),
            ts_max: timestamps.last().copied().unwrap_or_default(),
            hours,
        });
    }

    /// Whether rows of more than one day are in it.
    pub fn spans_days(&self) -> bool {
        // Hours rise, so the first and the last of a run tell.
        let ends =
            |run: &Run| [run.ts_min, run.ts_max].map(|ms| ms.div_euclid(HOUR_MS * HOURS_A_DAY));
        let mut days = self.runs.iter().flat_map(ends);
        let first = days.next();
        days.any(|day| Some(day) != first)
    }

    /// Namespaces with rows, rising.
    pub fn namespaces(&self) -> Vec<u32> {
        let mut namespaces: Vec<u32> = self.runs.iter().map(|run| run.key.namespace.0).collect();
        namespaces.dedup();
        namespaces
    }

    fn by_tenant(&self) -> impl Iterator<Item = &[Run]> {
        self.runs.chunk_by(same_owner)
    }

    /// For each tenant, the row behind his last one.
    pub fn tenant_ends(&self) -> impl Iterator<Item = u32> {
        self.by_tenant().filter_map(|runs| runs.last().map(|run| run.first_row + run.rows))
    }

    /// The tenants, rising, each with its namespace.
    pub fn tenants(&self) -> impl Iterator<Item = (Namespace, &str)> {
        let firsts = self.by_tenant().filter_map(|runs| runs.first());
        firsts.map(|run| (run.key.namespace, &*run.key.tenant))
    }

    /// All runs.
    pub fn runs(&self) -> &[Run] {
        &self.runs
    }

    /// The runs of a namespace, and of one tenant if given; ordered, so a slice.
    pub fn of(&self, namespace: Namespace, tenant: Option<&str>) -> &[Run] {
        self.runs.get(self.positions_of(namespace, tenant)).unwrap_or_default()
    }

    /// Where the runs of a namespace, and of one tenant if given, stand.
    pub fn positions_of(&self, namespace: Namespace, tenant: Option<&str>) -> Range<usize> {
        if let Some(tenant) = tenant.filter(|_| !self.owners.is_empty()) {
            return self.positions_of_owner(namespace, tenant);
        }
        let before =
            |run: &Run| (run.key.namespace, tenant.map(|_| &*run.key.tenant)) < (namespace, tenant);
        let within = |run: &Run| {
            run.key.namespace == namespace && tenant.is_none_or(|tenant| &*run.key.tenant == tenant)
        };
        let start = self.runs.partition_point(before);
        let rest = self.runs.get(start..).unwrap_or_default();
        start..start + rest.partition_point(within)
    }

    fn positions_of_owner(&self, namespace: Namespace, tenant: &str) -> Range<usize> {
        let hash = owner_hash(namespace, tenant);
        let at = self.owners.partition_point(|owner| owner.hash < hash);
        let same = self.owners.iter().skip(at).take_while(|owner| owner.hash == hash);
        let is_his = |owner: &&Owner| {
            let run = self.runs.get(owner.start as usize);
            run.is_some_and(|run| run.key.namespace == namespace && *run.key.tenant == *tenant)
        };
        let found = { same }.find(is_his);
        found.map_or(0..0, |owner| owner.start as usize..owner.end as usize)
    }

    /// A directory of these runs, which are in order.
    pub fn of_runs(runs: Vec<Run>) -> Self {
        let owners = Owner::list(&runs);
        Self { runs, owners }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn directory() -> RunDirectory {
        let mut directory = RunDirectory::default();
        for (ns, tenant, name) in [(1, "a", "x"), (1, "a", "y"), (1, "b", "x"), (2, "a", "x")] {
            let key =
                SeriesKey { namespace: Namespace(ns), tenant: tenant.into(), name: name.into() };
            directory.push(key, &[-5, 10, HOUR_MS, HOUR_MS + 1, 5 * HOUR_MS]);
        }
        directory
    }

    #[test]
    fn hours_are_row_ranges() {
        let directory = directory();
        let run = &directory.runs()[1];
        assert_eq!(run.first_row, 5);
        let before: Vec<u32> =
            [-1, 0, 1, 2, 5, 6].iter().map(|hour| run.rows_before(hour * HOUR_MS)).collect();
        assert_eq!(before, [0, 1, 2, 4, 4, 5]);
    }

    #[test]
    fn runs_are_found_by_owner() {
        let directory = directory();
        assert_eq!(directory.of(Namespace(1), None).len(), 3);
        assert_eq!(directory.of(Namespace(1), Some("a")).len(), 2);
        assert_eq!(directory.of(Namespace(2), Some("a")).len(), 1);
        assert_eq!(directory.of(Namespace(3), None).len(), 0);
        let [heads, hours] = directory.write().unwrap();
        let read = RunDirectory::read([&heads, &hours], "test").unwrap();
        assert_eq!(read, directory);
        for namespace in 0..4 {
            for tenant in [None, Some("a"), Some("b"), Some("c"), Some("")] {
                let namespace = Namespace(namespace);
                assert_eq!(read.of(namespace, tenant), directory.of(namespace, tenant));
            }
        }
    }
}
