//! How much there is of a namespace: events, the hours and days that they fall into, bytes.
//!
//! Counted are rows of the tables that statements see. An hour of a series may have events in several segments and in
//! memory, and is one row all the same. Nearly all hours lie in segments of one day of which there is one, whose
//! directories tell their number; only the rest is compared with each other.

use std::collections::{HashMap, HashSet};

use crate::{
    base::time::{DAY_MS, HOUR_MS},
    column::Rows,
    event::Namespace,
    segment::{FRESH, Run, SectionKind, Segment},
};

/// Numbers of the kinds of sections that are rollups.
const ROLLUP_KINDS: std::ops::RangeInclusive<u16> = 64..=95;

/// How much there is of a namespace.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Sizes {
    /// Events.
    pub rows: u64,
    /// Hours of each tenant's event with events.
    pub hours: u64,
    /// Days of each tenant's event with events.
    pub days: u64,
    /// Bytes of the events, about.
    pub bytes: u64,
    /// Bytes of their rollups and directories, about.
    pub rollup_bytes: u64,
    /// Time of the newest event.
    pub last_ms: Option<i64>,
}

/// A tenant's event.
type Name<'a> = (&'a str, &'a str);

fn name(run: &Run) -> Name<'_> {
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

impl Sizes {
    /// Of the rows of a namespace in segments and in memory, from `horizon_ms` on, a midnight.
    pub fn of(segments: &[&Segment], recent: &Rows, namespace: Namespace, horizon_ms: i64) -> Self {
        let mut sizes = Self::default();
        // The largest segment of each day that holds that day alone.
        let mut of_day: HashMap<i64, &Segment> = HashMap::new();
        let mut others: Vec<&Segment> = Vec::new();
        for &segment in segments {
            sizes.add_bytes(segment, namespace, horizon_ms);
            let meta = segment.meta();
            if meta.level == FRESH {
                others.push(segment);
                continue;
            }
            let slot = of_day.entry(meta.ts_min.div_euclid(DAY_MS)).or_insert(segment);
            if slot.meta().rows < meta.rows {
                others.push(std::mem::replace(slot, segment));
            } else if !std::ptr::eq(*slot, segment) {
                others.push(segment);
            }
        }
        for run in of_day.values().flat_map(|segment| segment.runs().of(namespace, None)) {
            let count = hours(run, horizon_ms).count() as u64;
            sizes.hours += count;
            sizes.days += u64::from(count > 0);
        }
        let mut more: HashSet<(Name<'_>, i64)> = HashSet::new();
        for run in others.iter().flat_map(|segment| segment.runs().of(namespace, None)) {
            more.extend(hours(run, horizon_ms).map(|(hour, _)| (name(run), hour)));
        }
        for row in 0..recent.len() {
            let key = recent.series_of(row);
            let hour = recent.timestamps[row].div_euclid(HOUR_MS);
            more.insert(((&key.tenant, &key.name), hour));
        }
        let known = |name: Name<'_>, hour: i64| {
            let runs = of_day.get(&day_of(hour))?.runs().of(namespace, Some(name.0));
            runs.iter().find(|run| *run.key.name == *name.1)
        };
        let mut days: HashSet<(Name<'_>, i64)> = HashSet::new();
        for (name, hour) in more {
            match known(name, hour) {
                Some(run) => {
                    let is_known = run.hours.binary_search_by_key(&hour, |(hour, _)| *hour).is_ok();
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
        // A segment's bytes are everybody's in it; a share of them is as many rows.
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
