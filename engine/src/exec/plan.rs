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
    rollups::Shape,
    shape_reader::ShapeReader,
    window::Window,
};
use crate::{
    error::Result,
    query::Query,
    segment::{RollupAt, RollupForm, Run, RunDay, Segment},
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
    /// By bucket whether all of its rows are those of one day of a run: then its users are counted without their set.
    /// Empty where sets are needed.
    pub sole_days: &'a [bool],
    /// Whether the query is given up where it takes long.
    pub is_attempt: bool,
}

/// The steps that answer a query from one day of a run.
pub struct DayPlan<'a> {
    /// The run in the directory of the segment.
    pub run: &'a Run,
    /// Its rows of the day.
    pub day: RunDay<'a>,
    /// Where the query's rollup of the day stands, if there is one.
    pub rollup: Option<RollupAt>,
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

/// The sources, besides its rows, that a day of a run has for a query.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Available {
    Directory,
    Rollups(RollupForm),
}

impl<'a> Plan<'a> {
    /// The rollups of a segment that can answer the query, if it has any.
    ///
    /// Errors: `Corrupt` when the dictionary of a dimension is damaged.
    pub fn rollups(&self, segment: &'a Segment) -> Result<Option<ShapeReader<'a>>> {
        self.shape.map_or(Ok(None), |shape| ShapeReader::open(segment, shape))
    }

    /// Where the rollup of a whole part would stand: that of its series, or of its event with all tenants in a query of
    /// all. `None` where nothing is rolled up.
    pub fn day_rollup(&self, rollups: &mut ShapeReader<'_>, part: &Part) -> Option<RollupAt> {
        let day = part.day?;
        match self.query.tenant {
            None => rollups.of_event(self.query, day.ordinal),
            Some(_) => rollups.of_run(part.runs.0 as usize, day.ordinal),
        }
    }

    /// How the rows of a part are answered that belong to the run at `position`; `whole` is the bucket that holds all
    /// of the part, if one does. `None` where it has none inside the window.
    ///
    /// Errors: `Corrupt` when a rollup or a time is damaged.
    pub fn of_day<'s>(
        &self,
        segment: &'s Segment,
        rollups: Option<&mut ShapeReader<'_>>,
        (part, whole): (&Part, Option<usize>),
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
        let ranges = match whole {
            Some(bucket) => vec![(bucket, day.rows.clone())],
            None => bucket_rows(segment, run, &day, self.window)?,
        };
        let rollup = match rollups
            .and_then(|rollups| Some((rollups.of_run(position, day.ordinal)?, rollups)))
        {
            Some((at, rollups)) => Some((at, rollups.form(at)?)),
            None => None,
        };
        let rollup = rollup.filter(|(_, form)| *form != RollupForm::Nothing);
        let available = match rollup {
            _ if self.shape == Some(&Shape::Rows) => Available::Directory,
            Some((_, form)) => Available::Rollups(form),
            None => Available::Rollups(RollupForm::Nothing),
        };
        let rollup = rollup.map(|(at, _)| at);
        let steps = steps(&day, ranges, available);
        Ok(Some(DayPlan { run, day, rollup, steps }))
    }
}

impl Plan<'_> {
    /// Whether all rows of a bucket are those of one day of a run.
    pub fn is_sole_day(&self, bucket: usize) -> bool {
        self.sole_days.get(bucket) == Some(&true)
    }
}

/// The steps that answer for row ranges of a day; those that read rows come last.
fn steps(day: &RunDay<'_>, ranges: Vec<(usize, Range<u32>)>, available: Available) -> Vec<Step> {
    let mut steps = Vec::with_capacity(ranges.len());
    let mut read = Vec::new();
    for (bucket, rows) in ranges {
        let source = match available {
            Available::Directory => StepSource::Directory,
            Available::Rollups(RollupForm::Nothing) => StepSource::Rows,
            Available::Rollups(_) if rows == day.rows => StepSource::Day,
            Available::Rollups(RollupForm::DayAndHours) => {
                StepSource::Hours(whole_hours(day, &rows))
            }
            Available::Rollups(RollupForm::Day) => StepSource::Rows,
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
        assert_eq!(
            of(&all, Available::Rollups(RollupForm::Day)),
            [step(3, 0..40, StepSource::Day)]
        );
        assert_eq!(
            of(&all, Available::Rollups(RollupForm::DayAndHours)),
            [step(3, 0..40, StepSource::Day)]
        );
        assert_eq!(
            of(&all, Available::Rollups(RollupForm::Nothing)),
            [step(3, 0..40, StepSource::Rows)]
        );
        let halves = [(0, 0..15), (1, 15..40)];
        assert_eq!(
            of(&halves, Available::Rollups(RollupForm::Day)),
            [step(0, 0..15, StepSource::Rows), step(1, 15..40, StepSource::Rows)]
        );
        assert_eq!(
            of(&halves, Available::Rollups(RollupForm::DayAndHours)),
            [
                step(0, 0..10, StepSource::Hours(0..1)),
                step(1, 20..40, StepSource::Hours(2..4)),
                step(0, 10..15, StepSource::Rows),
                step(1, 15..20, StepSource::Rows),
            ]
        );
        let edges = [(0, 11..19), (2, 36..40)];
        assert_eq!(
            of(&edges, Available::Rollups(RollupForm::DayAndHours)),
            [step(0, 11..19, StepSource::Rows), step(2, 36..40, StepSource::Rows)]
        );
    }
}
