//! The size of a namespace: events, the hours and days that they fall into, bytes.
//!
//! The numbers are row counts of the tables that statements see. An hour of a series may have
//! events in several segments and in memory, and is still one row. Nearly all hours lie in segments
//! that share no day with each other, and run directories give their number; only the hours of the
//! other segments are compared with them.

use std::collections::{BTreeMap, HashSet};

use crate::{
    base::time::{DAY_MS, HOUR_MS},
    column::Rows,
    event::Namespace,
    segment::{FRESH, Run, SectionKind, Segment},
};

/// Numbers of the kinds of sections that are rollups.
const ROLLUP_KINDS: std::ops::RangeInclusive<u16> = 64..=95;

/// The size of a namespace.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Sizes {
    /// Number of events that have not expired.
    pub rows: u64,
    /// Number of distinct pairs of series and hour with events.
    pub hours: u64,
    /// Number of distinct pairs of series and UTC day with events.
    pub days: u64,
    /// Bytes of the events, about.
    pub bytes: u64,
    /// Bytes of their rollups and directories, about.
    pub rollup_bytes: u64,
    /// Time of the newest event.
    pub last_ms: Option<i64>,
}

/// A tenant and an event name.
type SeriesName<'a> = (&'a str, &'a str);

fn name(run: &Run) -> SeriesName<'_> {
    (&run.key.tenant, &run.key.name)
}

/// Hours of a run from the horizon on.
fn hours(run: &Run, horizon_ms: i64) -> impl Iterator<Item = (i64, u64)> {
    let shown = run.hour_rows().filter(move |(hour, _)| hour * HOUR_MS >= horizon_ms);
    shown.map(|(hour, rows)| (hour, rows.len() as u64))
}

fn day_of(hour: i64) -> i64 {
    (hour * HOUR_MS).div_euclid(DAY_MS)
}

/// Segments that share no day with each other, by their first day, the largest before the smaller; and the others.
fn parted<'a>(segments: &[&'a Segment]) -> (BTreeMap<i64, &'a Segment>, Vec<&'a Segment>) {
    let mut by_size: Vec<&'a Segment> = segments.to_vec();
    by_size.sort_by_key(|segment| std::cmp::Reverse(segment.meta().rows));
    let days = |segment: &Segment| {
        let meta = segment.meta();
        (meta.ts_min.div_euclid(DAY_MS), meta.ts_max.div_euclid(DAY_MS))
    };
    let mut apart: BTreeMap<i64, &'a Segment> = BTreeMap::new();
    let mut others = Vec::new();
    for segment in by_size {
        let (first, last) = days(segment);
        let before = apart.range(..=last).next_back();
        let is_apart = before.is_none_or(|(_, other)| days(other).1 < first);
        if segment.meta().level != FRESH && is_apart {
            apart.insert(first, segment);
        } else {
            others.push(segment);
        }
    }
    (apart, others)
}

impl Sizes {
    /// Of the rows of a namespace in segments and in memory, from `horizon_ms` on, a midnight.
    pub fn of(segments: &[&Segment], recent: &Rows, namespace: Namespace, horizon_ms: i64) -> Self {
        let mut sizes = Self::default();
        for &segment in segments {
            sizes.add_bytes(segment, namespace, horizon_ms);
        }
        let (apart, others) = parted(segments);
        for run in apart.values().flat_map(|segment| segment.runs().of(namespace, None)) {
            let mut last_day = None;
            for (hour, _) in hours(run, horizon_ms) {
                sizes.hours += 1;
                sizes.days += u64::from(last_day.replace(day_of(hour)) != Some(day_of(hour)));
            }
        }
        let mut more: HashSet<(SeriesName<'_>, i64)> = HashSet::new();
        for run in others.iter().flat_map(|segment| segment.runs().of(namespace, None)) {
            more.extend(hours(run, horizon_ms).map(|(hour, _)| (name(run), hour)));
        }
        for row in 0..recent.len() {
            let key = recent.series_of(row);
            let hour = recent.timestamps[row].div_euclid(HOUR_MS);
            more.insert(((&key.tenant, &key.name), hour));
        }
        let known = |name: SeriesName<'_>, hour: i64| {
            let (_, segment) = apart.range(..=day_of(hour)).next_back()?;
            let runs = segment.runs().of(namespace, Some(name.0));
            runs.iter().find(|run| *run.key.name == *name.1)?.on_day(day_of(hour))
        };
        let mut days: HashSet<(SeriesName<'_>, i64)> = HashSet::new();
        for (name, hour) in more {
            match known(name, hour) {
                Some(day) => {
                    let is_known = day.hours.binary_search_by_key(&hour, |(hour, _)| *hour).is_ok();
                    sizes.hours += u64::from(!is_known);
                }
                None => {
                    sizes.hours += 1;
                    sizes.days += u64::from(days.insert((name, day_of(hour))));
                }
            }
        }
        sizes.rows += recent.len() as u64;
        sizes.bytes += recent.bytes_used() as u64;
        sizes.last_ms = sizes.last_ms.max(recent.timestamps.iter().copied().max());
        sizes
    }

    /// Adds rows and bytes of a segment.
    fn add_bytes(&mut self, segment: &Segment, namespace: Namespace, horizon_ms: i64) {
        let mut rows = 0u64;
        for run in segment.runs().of(namespace, None) {
            let shown: u64 = hours(run, horizon_ms).map(|(_, rows)| rows).sum();
            if shown > 0 {
                rows += shown;
                self.last_ms = self.last_ms.max(Some(run.ts_max));
            }
        }
        self.rows += rows;
        // Bytes of a segment are shared by its namespaces, in proportion to their rows.
        let share = rows as f64 / f64::from(segment.meta().rows.max(1));
        for section in segment.sections() {
            let bytes: u64 = section.blocks.iter().map(|block| u64::from(block.len)).sum();
            let bytes = (bytes as f64 * share) as u64;
            let is_rollup =
                ROLLUP_KINDS.contains(&section.kind) || section.kind == SectionKind::Runs as u16;
            match is_rollup {
                true => self.rollup_bytes += bytes,
                false => self.bytes += bytes,
            }
        }
    }
}
