//! The run directory: which rows of a segment belong to which series, and where each hour starts.
//!
//! It is exact and replaces a sparse index: an hour bucket of a series is a range of rows, found
//! without decoding a timestamp.
//!
//! ```text
//! run of (1, "a", "y"): rows 5 to 9 of the segment, times -5 ms, 10 ms, 1:00:00.000, 1:00:00.001, 5:00:00.000 of 1970-01-01
//!
//! hours        (-1, 0) (0, 1) (1, 2) (5, 4)       hour since 1970, first row of it in the run
//! day_starts   0, 1                               the first hour is of day -1, the others are of day 0
//!
//! rows_before(1:00)   2          rows before that hour
//! rows_before(2:00)   4          no rows in that hour: those before the next one that has some
//! on_day(0).rows      1..5
//! ```

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
    /// Namespace, tenant and event name that all rows share.
    pub key: SeriesKey,
    /// First row in the segment.
    pub first_row: u32,
    /// Number of rows.
    pub rows: u32,
    /// Earliest timestamp, in milliseconds since 1970.
    pub ts_min: i64,
    /// Latest timestamp, in milliseconds since 1970.
    pub ts_max: i64,
    /// For each hour with rows, in order: the hour since 1970 and the row, counted in the run,
    /// where it starts.
    pub hours: Vec<(i64, u32)>,
    /// Where each day starts in `hours`; empty for a run of a single day, as most are.
    pub day_starts: Box<[u32]>,
}

/// The rows of a run on one day.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunDay<'a> {
    /// The day since 1970.
    pub day: i64,
    /// Number of days with rows of the run before it.
    pub ordinal: usize,
    /// The hours of the day with rows, as in [`Run::hours`].
    pub hours: &'a [(i64, u32)],
    /// The rows of the day, counted in the run.
    pub rows: Range<u32>,
    /// A time that no row of the day is before, and one that none is after: the edges of its first and last hour, cut to the run.
    pub bounds: (i64, i64),
}

/// Where each day starts among the hours of a run, as [`Run::day_starts`] has it: `[0, 1]` above, empty for hours of one day.
pub fn day_starts(hours: &[(i64, u32)]) -> Box<[u32]> {
    let day = |(hour, _): &(i64, u32)| hour.div_euclid(HOURS_A_DAY);
    match hours.first().zip(hours.last()) {
        Some((first, last)) if day(first) != day(last) => {}
        _ => return Box::default(),
    }
    let before = std::iter::once(None).chain(hours.iter().map(|hour| Some(day(hour))));
    let starts = hours.iter().zip(before).zip(0u32..);
    starts.filter(|((hour, before), _)| *before != Some(day(hour))).map(|(_, at)| at).collect()
}

/// Hours with the rows of each, of which the last ends before `end`.
fn hour_rows(hours: &[(i64, u32)], end: u32) -> impl Iterator<Item = (i64, Range<u32>)> {
    let ends = hours.iter().skip(1).map(|(_, row)| *row).chain([end]);
    hours.iter().zip(ends).map(|(&(hour, start), end)| (hour, start..end.max(start)))
}

impl RunDay<'_> {
    /// The hours of the day since 1970, each with its rows, counted in the run.
    pub fn hour_rows(&self) -> impl Iterator<Item = (i64, Range<u32>)> {
        hour_rows(self.hours, self.rows.end)
    }
}

impl Run {
    /// Number of days with rows.
    pub fn day_count(&self) -> usize {
        self.day_starts.len().max(1)
    }

    /// The rows of one of the days with rows, counted from the first.
    fn day_at(&self, ordinal: usize) -> Option<RunDay<'_>> {
        let bound = |at: usize| match self.day_starts.get(at) {
            Some(&start) => start as usize,
            None if at == 0 => 0,
            None => self.hours.len(),
        };
        let (start, end) = (bound(ordinal), bound(ordinal + 1));
        let hours = self.hours.get(start..end)?;
        let (first, last) = hours.first().zip(hours.last())?;
        let row = |at: usize| self.hours.get(at).map_or(self.rows, |(_, row)| *row);
        let earliest = first.0.saturating_mul(HOUR_MS).max(self.ts_min);
        let latest = last.0.saturating_add(1).saturating_mul(HOUR_MS).saturating_sub(1);
        Some(RunDay {
            day: first.0.div_euclid(HOURS_A_DAY),
            ordinal,
            hours,
            rows: row(start)..row(end),
            bounds: (earliest, latest.min(self.ts_max)),
        })
    }

    /// The days with rows, rising.
    pub fn by_day(&self) -> impl DoubleEndedIterator<Item = RunDay<'_>> {
        (0..self.day_count()).filter_map(|ordinal| self.day_at(ordinal))
    }

    /// The rows of a day since 1970, if there are any.
    pub fn on_day(&self, day: i64) -> Option<RunDay<'_>> {
        let day_of = |start: &u32| {
            self.hours
                .get(*start as usize)
                .map_or(i64::MAX, |(hour, _)| hour.div_euclid(HOURS_A_DAY))
        };
        let ordinal = self.day_starts.partition_point(|start| day_of(start) < day);
        self.day_at(ordinal).filter(|found| found.day == day)
    }

    /// All rows as if they were of one day, that of the first.
    pub fn whole(&self) -> RunDay<'_> {
        let day = self.ts_min.div_euclid(HOUR_MS * HOURS_A_DAY);
        let bounds = (self.ts_min, self.ts_max);
        RunDay { day, ordinal: 0, hours: &self.hours, rows: 0..self.rows, bounds }
    }

    /// The days of the run since 1970, each with its rows, in the segment's row numbers.
    pub fn days(&self) -> Vec<(i64, Range<u32>)> {
        let row = |row: u32| self.first_row.saturating_add(row);
        self.by_day().map(|day| (day.day, row(day.rows.start)..row(day.rows.end))).collect()
    }

    /// The hours of the run since 1970, each with its rows, counted in the run.
    pub fn hour_rows(&self) -> impl Iterator<Item = (i64, Range<u32>)> {
        hour_rows(&self.hours, self.rows)
    }

    /// Rows of the run before the hour that starts at `hour_start_ms`, milliseconds since 1970; all of them behind its last hour.
    pub fn rows_before(&self, hour_start_ms: i64) -> u32 {
        let hour = hour_start_ms.div_euclid(HOUR_MS);
        let at = self.hours.partition_point(|(known, _)| *known < hour);
        self.hours.get(at).map_or(self.rows, |(_, row)| *row)
    }
}

/// All runs of a segment, ordered by series: namespace, tenant, event name. Rows of a run follow those of the run before it.
#[derive(Debug, Clone, Default)]
pub struct RunDirectory {
    runs: Vec<Run>,
    /// The runs of each tenant by hash, in a directory that was read: every query looks up its
    /// tenant in every segment, and names of tenants begin alike and compare slowly.
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
            let hours = run.hours.capacity() * size_of::<(i64, u32)>();
            size_of::<Run>() + names + hours + size_of_val(&*run.day_starts)
        };
        self.runs.iter().map(of_run).sum::<usize>() + self.owners.len() * size_of::<Owner>()
    }

    /// Appends the rows of the next series: their sorted timestamps. The caller keeps the order of series; [`read`](Self::read)
    /// refuses another one.
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
            day_starts: day_starts(&hours),
            hours,
        });
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

    /// For each tenant, the row behind its last one: 10, 15, 20 for runs of five rows of `a` (two), `b` and, in the next
    /// namespace, `a`.
    pub fn tenant_ends(&self) -> impl Iterator<Item = u32> {
        self.by_tenant().filter_map(|runs| runs.last().map(|run| run.first_row + run.rows))
    }

    /// The tenants, rising, each with its namespace.
    pub fn tenants(&self) -> impl Iterator<Item = (Namespace, &str)> {
        let firsts = self.by_tenant().filter_map(|runs| runs.first());
        firsts.map(|run| (run.key.namespace, &*run.key.tenant))
    }

    /// All runs, ordered by series.
    pub fn runs(&self) -> &[Run] {
        &self.runs
    }

    /// The runs of a namespace, and of one tenant if given; ordered, so a slice.
    pub fn of(&self, namespace: Namespace, tenant: Option<&str>) -> &[Run] {
        self.runs.get(self.positions_of(namespace, tenant)).unwrap_or_default()
    }

    /// Where the runs of a namespace, and of one tenant if given, stand: `0..2` for `(1, "a")` above, an empty range for an unknown
    /// tenant. By hash in a directory that was read, else by halves.
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
        // Two owners may have one hash: names decide.
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
    fn days_are_stretches_of_hours() {
        let key = || SeriesKey { namespace: Namespace(1), tenant: "a".into(), name: "x".into() };
        let day = 24 * HOUR_MS;
        let mut directory = RunDirectory::default();
        directory.push(key(), &[-5, 10, HOUR_MS, 5 * day + 7, 5 * day + 9, 6 * day]);
        directory.push(key(), &[day, day + 1]);
        let run = &directory.runs()[0];
        let days: Vec<(i64, usize, Range<u32>)> =
            run.by_day().map(|day| (day.day, day.ordinal, day.rows)).collect();
        assert_eq!(days, [(-1, 0, 0..1), (0, 1, 1..3), (5, 2, 3..5), (6, 3, 5..6)]);
        assert_eq!(run.on_day(0).unwrap().bounds, (0, 2 * HOUR_MS - 1));
        assert_eq!(run.on_day(-1).unwrap().bounds.0, -5);
        assert_eq!(run.on_day(6).unwrap().bounds, (6 * day, 6 * day));
        assert_eq!(run.on_day(5).unwrap().hours, [(5 * 24, 3)]);
        assert!([-2, 1, 4, 7].iter().all(|&day| run.on_day(day).is_none()));
        let single = &directory.runs()[1];
        assert!(single.day_starts.is_empty());
        assert_eq!((single.day_count(), single.on_day(1).unwrap().rows), (1, 0..2));
        assert!(single.on_day(0).is_none() && single.on_day(2).is_none());
        let [heads, hours] = directory.write().unwrap();
        let read = RunDirectory::read([&heads, &hours], "test");
        assert!(read.is_err(), "two runs of one series are in no order");
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
