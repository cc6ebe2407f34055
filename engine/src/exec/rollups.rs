//! Answering from the rollups of a segment instead of its rows, where that gives the same answer.
//!
//! A bucket of a query is a range of rows of a run. Whole hours of it, and best the whole run, are
//! answered from rollups; what is left at the edges is read. Which question has which rollup is
//! decided once for a query; whether a run has it, when its turn comes.

use std::ops::Range;

use super::{
    groups::{CodeGroups, NO_GROUP},
    reads::Served,
    sink::Sink,
};
use crate::{
    error::Result,
    index::bitmaps::ROLLUP_DIMENSIONS,
    query::{Metric, Query},
    segment::{Dictionary, DimensionCounts, Run, Segment},
    sketch::sums::Sums,
};

/// The rollup that can answer a question.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Shape {
    /// Rows of a series: the run directory has them, for any range of rows.
    Rows,
    /// Counts by value of one dimension, which is filtered by, grouped by, or both.
    Counts(String),
    /// Counts by pairs of values of two dimensions, in the order of the list of dimensions.
    Pairs(String, String),
    /// Count, sum and extremes of the query's number.
    Numbers(String),
    /// The same by value of one dimension.
    NumbersBy(String, String),
}

impl Shape {
    /// The dimensions by whose codes it is read, in the order of the codes.
    pub fn dimensions(&self) -> Vec<&str> {
        match self {
            Self::Rows | Self::Numbers(_) => Vec::new(),
            Self::Counts(one) | Self::NumbersBy(one, _) => vec![one],
            Self::Pairs(one, two) => vec![one, two],
        }
    }
}

/// Why a question is not answered from rollups.
pub type Rejected = &'static str;

/// The rollup for a question, by what it asks alone.
pub fn shape(query: &Query) -> Result<Shape, Rejected> {
    let number = match query.metric {
        Metric::Count => None,
        Metric::Sum | Metric::Avg | Metric::Min | Metric::Max => match &query.number {
            Some(number) => Some(number.clone()),
            None => return Err("the metric has no number"),
        },
        Metric::Percentile(_) => return Err("exact percentiles need every number"),
        Metric::Distinct => return Err("exact distinct counts need every user"),
        Metric::DistinctApprox | Metric::PercentileApprox(_) => {
            return Err("sketches are not rolled up");
        }
    };
    if !query.numbers.is_empty() {
        return Err("a range of a number is no dimension");
    }
    let names = query.texts.iter().map(|filter| &*filter.name);
    let mut dimensions: Vec<&str> = names.chain(query.group_by.as_deref()).collect();
    let rank = |name: &str| ROLLUP_DIMENSIONS.iter().position(|dimension| *dimension == name);
    if dimensions.iter().any(|name| rank(name).is_none()) {
        return Err("a property is no rollup dimension");
    }
    dimensions.sort_by_key(|name| rank(name));
    dimensions.dedup();
    if query
        .texts
        .iter()
        .any(|one| query.texts.iter().filter(|two| two.name == one.name).count() > 1)
    {
        return Err("a dimension is filtered twice");
    }
    match (&dimensions[..], number) {
        ([], None) => Ok(Shape::Rows),
        ([], Some(number)) => Ok(Shape::Numbers(number)),
        ([one], None) => Ok(Shape::Counts((*one).to_owned())),
        ([one], Some(number)) => Ok(Shape::NumbersBy((*one).to_owned(), number)),
        ([one, two], None) => Ok(Shape::Pairs((*one).to_owned(), (*two).to_owned())),
        ([_, _], Some(_)) => Err("pairs are counted only"),
        _ => Err("more than two dimensions"),
    }
}

/// What codes mean for one segment and question: which are asked for, and of which group they are.
pub struct Codes<'a> {
    /// By dimension of the shape: the accepted codes, rising; all when there is no filter.
    pub accepted: Vec<Option<&'a [u32]>>,
    /// What is grouped by, if anything is.
    pub group: Option<GroupCodes<'a>>,
}

/// A dimension that is grouped by.
pub struct GroupCodes<'a> {
    /// Which dimension of the shape it is.
    pub at: usize,
    /// Its values.
    pub values: &'a Dictionary,
    /// Their groups.
    pub translate: &'a mut CodeGroups,
}

impl Codes<'_> {
    /// The group of rows with these codes, [`NO_GROUP`] when they are not asked for.
    fn group_of(&mut self, codes: &[u32], sink: &mut Sink) -> u32 {
        let is_asked = |(code, accepted): (&u32, &Option<&[u32]>)| {
            accepted.is_none_or(|accepted| accepted.binary_search(code).is_ok())
        };
        if !codes.iter().zip(&self.accepted).all(is_asked) {
            return NO_GROUP;
        }
        let Some(group) = &mut self.group else { return sink.groups.number(None) };
        let code = codes.get(group.at).map_or(0, |&code| code as usize);
        let values = group.values;
        group.translate.number(code, &mut sink.groups, || values.value(code))
    }
}

/// The rollups of one run that a question needs, as far as they are kept.
enum Loaded {
    Counts(DimensionCounts),
    Pairs(Vec<(u32, u32, u64)>),
    Numbers(Sums, Option<Vec<Sums>>),
    NumbersBy(Vec<(u32, Sums)>),
}

/// The rollups of a run for a question.
pub struct RunRollup<'a> {
    run: &'a Run,
    loaded: Loaded,
}

impl<'a> RunRollup<'a> {
    /// Loads what is kept for `shape`; the hours only if they are needed. `None` when it is not kept.
    pub fn load(
        segment: &Segment,
        run: &'a Run,
        position: usize,
        shape: &Shape,
        with_hours: bool,
    ) -> Result<Option<Self>> {
        let Some(index) = segment.rollup_of(position) else { return Ok(None) };
        let hours = run.hours.len();
        let loaded = match shape {
            Shape::Rows => None,
            Shape::Counts(dimension) => {
                segment.rollup_counts(index, dimension, hours, with_hours)?.map(Loaded::Counts)
            }
            Shape::Pairs(one, two) => segment.rollup_pairs(index, (one, two))?.map(Loaded::Pairs),
            Shape::Numbers(number) => segment
                .rollup_numbers(index, number, hours, with_hours)?
                .map(|(total, hours)| Loaded::Numbers(total, hours)),
            Shape::NumbersBy(dimension, number) => {
                segment.rollup_numbers_by(index, dimension, number)?.map(Loaded::NumbersBy)
            }
        };
        Ok(loaded.map(|loaded| Self { run, loaded }))
    }

    /// Answers as much of a range of the run's rows as it can. Returns the rows, counted in the run,
    /// that it has answered for.
    pub fn serve(
        &self,
        rows: Range<u32>,
        bucket: usize,
        codes: &mut Codes<'_>,
        sink: &mut Sink,
        served: &mut Served,
    ) -> Result<Range<u32>> {
        if rows == (0..self.run.rows) {
            self.serve_whole(bucket, codes, sink, served)?;
            return Ok(rows);
        }
        let hours = whole_hours(self.run, &rows);
        let nothing = rows.start..rows.start;
        if hours.is_empty() {
            return Ok(nothing);
        }
        let count = self.run.hours.len();
        match &self.loaded {
            Loaded::Counts(DimensionCounts { totals, hours: Some(by_hour) }) => {
                for (&(code, _), counts) in totals.iter().zip(by_hour.chunks(count.max(1))) {
                    let group = codes.group_of(&[code], sink);
                    if group != NO_GROUP {
                        served.entries += hours.len() as u64;
                        let sum: u64 = counts.get(hours.clone()).into_iter().flatten().sum();
                        add_present(sink, group, bucket, sum)?;
                    }
                }
            }
            Loaded::Numbers(_, Some(by_hour)) => {
                let group = codes.group_of(&[], sink);
                for sums in by_hour.get(hours.clone()).unwrap_or_default() {
                    served.entries += 1;
                    sink.add_sums(group, bucket, sums)?;
                }
            }
            _ => return Ok(nothing),
        }
        served.hours = true;
        let start = |hour: usize| self.run.hours.get(hour).map_or(self.run.rows, |(_, row)| *row);
        Ok(start(hours.start)..start(hours.end))
    }

    fn serve_whole(
        &self,
        bucket: usize,
        codes: &mut Codes<'_>,
        sink: &mut Sink,
        served: &mut Served,
    ) -> Result<()> {
        served.days = true;
        match &self.loaded {
            Loaded::Counts(counts) => {
                for &(code, total) in &counts.totals {
                    let group = codes.group_of(&[code], sink);
                    served.entries += u64::from(group != NO_GROUP);
                    add_present(sink, group, bucket, total)?;
                }
            }
            Loaded::Pairs(pairs) => {
                for &(one, two, count) in pairs {
                    let group = codes.group_of(&[one, two], sink);
                    served.entries += u64::from(group != NO_GROUP);
                    add_present(sink, group, bucket, count)?;
                }
            }
            Loaded::Numbers(total, _) => {
                let group = codes.group_of(&[], sink);
                served.entries += 1;
                sink.add_sums(group, bucket, total)?;
            }
            Loaded::NumbersBy(states) => {
                for (code, sums) in states {
                    let group = codes.group_of(&[*code], sink);
                    served.entries += u64::from(group != NO_GROUP);
                    sink.add_sums(group, bucket, sums)?;
                }
            }
        }
        Ok(())
    }
}

fn add_present(sink: &mut Sink, group: u32, bucket: usize, count: u64) -> Result<()> {
    if count == 0 { Ok(()) } else { sink.add_count(group, bucket, count) }
}

/// The hours of a run, by position, that lie wholly inside a range of its rows.
fn whole_hours(run: &Run, rows: &Range<u32>) -> Range<usize> {
    let first = run.hours.partition_point(|&(_, row)| row < rows.start);
    let end = match run.rows <= rows.end {
        true => run.hours.len(),
        // The last hour ends where the next one starts.
        false => run.hours.partition_point(|&(_, row)| row <= rows.end).saturating_sub(1),
    };
    first..end.max(first)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{column::SeriesKey, event::Namespace};

    #[test]
    fn whole_hours_lie_between_ragged_edges() {
        let run = Run {
            key: SeriesKey { namespace: Namespace(1), tenant: "t".into(), name: "e".into() },
            first_row: 100,
            rows: 40,
            ts_min: 0,
            ts_max: 0,
            hours: vec![(0, 0), (1, 10), (4, 20), (5, 35)],
        };
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
            let found = whole_hours(&run, &rows);
            assert_eq!(found.len(), hours.len(), "{rows:?}: {found:?}");
            assert!(found.is_empty() || found == hours, "{rows:?}: {found:?}");
        }
    }
}
