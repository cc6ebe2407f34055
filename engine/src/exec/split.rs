//! How a segment would answer a question, without reading what that takes: what `explain` shows of it.

use std::collections::BTreeMap;

use super::{
    bucket_rows::bucket_rows,
    kept::Part,
    rollups::{RunRollup, Shape},
    window::Window,
};
use crate::{error::Result, query::Query, segment::Segment};

/// Rows of the asked series of a segment inside the window, and how they are answered.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Split {
    /// Number of series with rows inside the window.
    pub series: u64,
    /// Series of which each day has such a rollup.
    pub kept: u64,
    /// Series that are too small for any.
    pub small: u64,
    /// Series of which rollups answer at least a part.
    pub rolled_up: u64,
    /// Rows that rollups of whole days answer for.
    pub by_day: u64,
    /// Rows that rollups of hours answer for.
    pub by_hour: u64,
    /// Rows that are read.
    pub read: u64,
}

/// What [`Split`] says of a series, whatever day it is about.
#[derive(Clone, Copy)]
struct SeriesSplit {
    is_kept: bool,
    is_small: bool,
    is_rolled_up: bool,
}

impl Split {
    /// How [`super::segments::scan`] answers a question from a segment, without doing it.
    pub fn of(
        segment: &Segment,
        query: &Query,
        window: &Window,
        shape: Option<&Shape>,
    ) -> Result<Self> {
        let mut split = Self::default();
        let mut series: BTreeMap<u32, SeriesSplit> = BTreeMap::new();
        let tenant = query.tenant.as_deref();
        for part in Part::list(segment, 0, query.namespace, tenant, &query.event) {
            split.add(segment, &part, (query, window, shape), &mut series)?;
        }
        split.series = series.len() as u64;
        let count = |is: fn(&SeriesSplit) -> bool| series.values().filter(|one| is(one)).count();
        split.kept = count(|series| series.is_kept) as u64;
        split.small = count(|series| series.is_small) as u64;
        split.rolled_up = count(|series| series.is_rolled_up) as u64;
        Ok(split)
    }

    fn add(
        &mut self,
        segment: &Segment,
        part: &Part,
        (query, window, shape): (&Query, &Window, Option<&Shape>),
        series: &mut BTreeMap<u32, SeriesSplit>,
    ) -> Result<()> {
        let (first, last) = part.bounds;
        let is_event_rolled_up = match shape.zip(part.day) {
            Some((shape, day)) if query.tenant.is_none() => {
                window.bucket_of_all(first, last, 0).is_some()
                    && RunRollup::load_event(segment, query, day.ordinal, shape)?.is_some()
            }
            _ => false,
        };
        let is_counted = shape == Some(&Shape::Rows);
        for position in part.runs.0..part.runs.1 {
            let run = segment.runs().runs().get(position as usize);
            let run = run.filter(|run| *run.key.name == *query.event);
            let Some((run, day)) = run.and_then(|run| Some((run, part.rows_of(run)?))) else {
                continue;
            };
            let ranges = bucket_rows(segment, run, &day, window)?;
            if ranges.is_empty() {
                continue;
            }
            let before = self.by_day + self.by_hour;
            let rollup = match shape {
                Some(shape) if !is_counted && !is_event_rolled_up => {
                    RunRollup::load(segment, &day, position as usize, shape, true)?
                }
                _ => None,
            };
            let is_served = is_event_rolled_up || is_counted;
            for (_, rows) in ranges {
                let base = run.first_row as usize;
                let within = (rows.start - base) as u32..(rows.end - base) as u32;
                let is_all = within == day.rows;
                let answered = match &rollup {
                    _ if is_served => within.clone(),
                    Some(rollup) => rollup.answers(&within),
                    None => 0..0,
                };
                let by_day = is_all && !is_counted;
                let by = if by_day { &mut self.by_day } else { &mut self.by_hour };
                *by += answered.len() as u64;
                self.read += (within.len() - answered.len()) as u64;
            }
            let is_small = !is_served && segment.rollup_of(position as usize).is_none();
            let nothing = SeriesSplit { is_kept: true, is_small, is_rolled_up: false };
            let one = series.entry(position).or_insert(nothing);
            one.is_kept &= is_served || rollup.is_some();
            one.is_rolled_up |= self.by_day + self.by_hour > before;
        }
        Ok(())
    }

    /// Number of rows inside the window.
    pub fn rows(&self) -> u64 {
        self.by_day + self.by_hour + self.read
    }
}
