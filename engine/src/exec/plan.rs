//! How a query is answered from a segment: which rows are read, and which have a rollup.
//!
//! A scan carries these steps out and `explain` counts them, so that it shows what would run.
//!
//! ```text
//! a day of a run with rows 0..40 in hour 0, 40..50 in hour 1 and 50..70 in hour 2, and rollups of hours;
//! one bucket from 00:30
//!     bucket 0: rows 40..70 from the rollups of two hours
//!     bucket 0: rows 17..40, read
//! ```

use std::ops::Range;

use super::{
    bucket_rows::bucket_rows,
    query_cache::{Part, QueryCache},
    rollups::{Rollup, Shape},
    window::Window,
};
use crate::{
    error::Result,
    query::Query,
    segment::{Run, RunDay, Segment},
};

/// A query with its sources.
#[derive(Clone, Copy)]
pub struct Plan<'a> {
    /// The metric query, checked.
    pub query: &'a Query,
    /// The time window of the query, cut into its buckets.
    pub window: &'a Window,
    /// The rollup that can answer it, if any can.
    pub shape: Option<&'a Shape>,
    /// The cache of what was read before.
    pub kept: &'a QueryCache,
    /// Whether the query is given up where it takes long.
    pub is_attempt: bool,
}

/// The steps that answer a query from one day of a run.
pub struct DayPlan<'a> {
    /// The run in the directory of the segment.
    pub run: &'a Run,
    /// Its rows of the day.
    pub day: RunDay<'a>,
    /// The rollup of the day, if it has the one of the query.
    pub rollup: Option<Rollup>,
    /// The steps; those that read rows come last.
    pub steps: Vec<Step>,
}

/// Rows that are answered together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Step {
    /// Index of the bucket that holds all of them.
    pub bucket: usize,
    /// The rows, counted in the run.
    pub rows: Range<u32>,
    /// What the answer about them is taken from.
    pub source: StepSource,
}

/// The source of an answer about rows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StepSource {
    /// The run directory, which has their number.
    Directory,
    /// The rollup of the day.
    Day,
    /// The rollups of these hours of the day, by position.
    Hours(Range<usize>),
    /// The rows themselves.
    Rows,
}

/// The rollups that a day of a run has for a query.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Available {
    Directory,
    Day,
    DayAndHours,
    Nothing,
}

impl<'a> Plan<'a> {
    /// The rollup of an event with all its tenants, where it answers for a whole part: a query of all tenants asks for
    /// all rows of a day in one bucket.
    ///
    /// Errors: `Corrupt` when the rollup is damaged.
    pub fn event_rollup(
        &self,
        segment: &Segment,
        part: &Part,
        bucket: Option<usize>,
    ) -> Result<Option<(usize, Rollup)>> {
        let Some((bucket, day)) = bucket.zip(part.day) else { return Ok(None) };
        let Some(shape) = self.shape.filter(|_| self.query.tenant.is_none()) else {
            return Ok(None);
        };
        let rollup = Rollup::of_event(segment, self.query, day.ordinal, shape)?;
        Ok(rollup.map(|rollup| (bucket, rollup)))
    }

    /// How the rows of a part are answered that belong to the run at `position`. `None` where it has none inside the
    /// window.
    ///
    /// Errors: `Corrupt` when a rollup or a time is damaged.
    pub fn of_day<'s>(
        &self,
        segment: &'s Segment,
        part: &Part,
        position: usize,
    ) -> Result<Option<DayPlan<'s>>> {
        let run = segment.runs().runs().get(position);
        let run = run.filter(|run| *run.key.name == *self.query.event);
        let Some((run, day)) = run.and_then(|run| Some((run, part.rows_of(run)?))) else {
            return Ok(None);
        };
        if day.bounds.1 < self.window.from_ms || day.bounds.0 >= self.window.to_ms {
            return Ok(None);
        }
        let ranges = bucket_rows(segment, run, &day, self.window)?;
        let rollup = match self.shape {
            None | Some(Shape::Rows) => None,
            Some(shape) => {
                let with_hours = ranges.iter().any(|(_, rows)| rows.len() < day.rows.len());
                Rollup::of_run(segment, &day, position, shape, with_hours)?
            }
        };
        let available = match &rollup {
            _ if self.shape == Some(&Shape::Rows) => Available::Directory,
            None => Available::Nothing,
            Some(rollup) if rollup.has_hours() => Available::DayAndHours,
            Some(_) => Available::Day,
        };
        let steps = steps(&day, ranges, available);
        Ok(Some(DayPlan { run, day, rollup, steps }))
    }
}

/// The steps that answer for row ranges of a day; those that read rows come last.
fn steps(day: &RunDay<'_>, ranges: Vec<(usize, Range<u32>)>, available: Available) -> Vec<Step> {
    let mut steps = Vec::with_capacity(ranges.len());
    let mut read = Vec::new();
    for (bucket, rows) in ranges {
        let source = match available {
            Available::Directory => StepSource::Directory,
            Available::Day | Available::DayAndHours if rows == day.rows => StepSource::Day,
            Available::DayAndHours => StepSource::Hours(whole_hours(day, &rows)),
            Available::Day | Available::Nothing => StepSource::Rows,
        };
        let answered = match &source {
            StepSource::Directory | StepSource::Day => rows.clone(),
            StepSource::Hours(hours) if !hours.is_empty() => {
                let start = |hour: usize| day.hours.get(hour).map_or(day.rows.end, |(_, row)| *row);
                start(hours.start)..start(hours.end)
            }
            StepSource::Hours(_) | StepSource::Rows => rows.start..rows.start,
        };
        for rest in [rows.start..answered.start, answered.end..rows.end] {
            if !rest.is_empty() {
                read.push(Step { bucket, rows: rest, source: StepSource::Rows });
            }
        }
        if !answered.is_empty() {
            steps.push(Step { bucket, rows: answered, source });
        }
    }
    steps.append(&mut read);
    steps
}

/// The hours of a day, by position, that lie wholly inside a range of the run's rows.
fn whole_hours(day: &RunDay<'_>, rows: &Range<u32>) -> Range<usize> {
    let first = day.hours.partition_point(|&(_, row)| row < rows.start);
    let end = match day.rows.end <= rows.end {
        true => day.hours.len(),
        // The last hour ends where the next one starts.
        false => day.hours.partition_point(|&(_, row)| row <= rows.end).saturating_sub(1),
    };
    first..end.max(first)
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOURS: [(i64, u32); 4] = [(0, 0), (1, 10), (4, 20), (5, 35)];

    fn day() -> RunDay<'static> {
        RunDay { day: 0, ordinal: 0, hours: &HOURS, rows: 0..40, bounds: (0, 0) }
    }

    #[test]
    fn whole_hours_lie_between_ragged_edges() {
        for (rows, hours) in [
            (0..40, 0..4),
            (0..10, 0..1),
            (1..10, 1..1),
            (1..20, 1..2),
            (10..34, 1..2),
            (10..35, 1..3),
            (0..9, 0..0),
            (36..40, 4..4),
            (20..40, 2..4),
        ] {
            let found = whole_hours(&day(), &rows);
            assert_eq!(found.len(), hours.len(), "{rows:?}: {found:?}");
            assert!(found.is_empty() || found == hours, "{rows:?}: {found:?}");
        }
    }

    #[test]
    fn every_row_is_answered_once_by_the_coarsest_source() {
        let step = |bucket, rows, source| Step { bucket, rows, source };
        let of =
            |ranges: &[(usize, Range<u32>)], available| steps(&day(), ranges.to_vec(), available);
        let all = [(3, 0..40)];
        assert_eq!(of(&all, Available::Directory), [step(3, 0..40, StepSource::Directory)]);
        assert_eq!(of(&all, Available::Day), [step(3, 0..40, StepSource::Day)]);
        assert_eq!(of(&all, Available::DayAndHours), [step(3, 0..40, StepSource::Day)]);
        assert_eq!(of(&all, Available::Nothing), [step(3, 0..40, StepSource::Rows)]);
        let halves = [(0, 0..15), (1, 15..40)];
        assert_eq!(
            of(&halves, Available::Day),
            [step(0, 0..15, StepSource::Rows), step(1, 15..40, StepSource::Rows)]
        );
        assert_eq!(
            of(&halves, Available::DayAndHours),
            [
                step(0, 0..10, StepSource::Hours(0..1)),
                step(1, 20..40, StepSource::Hours(2..4)),
                step(0, 10..15, StepSource::Rows),
                step(1, 15..20, StepSource::Rows),
            ]
        );
        let edges = [(0, 11..19), (2, 36..40)];
        assert_eq!(
            of(&edges, Available::DayAndHours),
            [step(0, 11..19, StepSource::Rows), step(2, 36..40, StepSource::Rows)]
        );
    }
}
