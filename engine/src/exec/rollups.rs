//! Answering from the rollups of a segment instead of its rows, where that gives the same answer.
//!
//! A bucket of a query is a range of rows of a run. Whole hours of it, and best the whole run, are
//! answered from rollups; what is left at the edges is read. Which question has which rollup is
//! decided once for a query; whether a run has it, when its turn comes.

use std::{ops::Range, slice};

use super::{
    cells::State,
    groups::{CodeGroups, NO_GROUP},
    reads::Served,
    sink::{Sink, Users},
};
use crate::{
    error::{Error, Result},
    index::bitmaps::ROLLUP_DIMENSIONS,
    query::{Metric, Query},
    segment::{
        ByHour, Dictionary, DimensionCounts, RollupAt, RunDay, SectionKind, Segment, UserValues,
        pair_name,
    },
    sketch::{digest::Digest, hll::Distinct, sums::Sums},
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
    /// Users, approximately.
    Users,
    /// The same by value of one dimension.
    UsersBy(String),
    /// The spread of the query's number.
    Digests(String),
    /// The same by value of one dimension.
    DigestsBy(String, String),
    /// Users, exactly.
    UserSets,
    /// The same by value of one dimension.
    UserSetsBy(String),
}

impl Shape {
    /// The dimensions by whose codes it is read, in the order of the codes.
    pub fn dimensions(&self) -> Vec<&str> {
        match self {
            Self::Rows | Self::Numbers(_) | Self::Users | Self::Digests(_) | Self::UserSets => {
                Vec::new()
            }
            Self::Counts(one)
            | Self::NumbersBy(one, _)
            | Self::UsersBy(one)
            | Self::UserSetsBy(one)
            | Self::DigestsBy(one, _) => vec![one],
            Self::Pairs(one, two) => vec![one, two],
        }
    }
}

impl Shape {
    /// Whether it can answer for hours, and not for whole days alone.
    pub fn may_have_hours(&self) -> bool {
        match self {
            Self::Rows | Self::Counts(_) | Self::Numbers(_) | Self::Users | Self::Digests(_) => {
                true
            }
            Self::Pairs(..)
            | Self::NumbersBy(..)
            | Self::UsersBy(_)
            | Self::DigestsBy(..)
            | Self::UserSets
            | Self::UserSetsBy(_) => false,
        }
    }

    /// Whether a segment keeps it of any series.
    pub fn is_kept_in(&self, segment: &Segment) -> bool {
        let is_there = |kind, name: &str| segment.find(kind, name).is_some();
        match self {
            Self::Rows => true,
            Self::Counts(one) => is_there(SectionKind::RollupCounts, one),
            Self::Pairs(one, two) => is_there(SectionKind::RollupPairs, &pair_name(one, two)),
            Self::Numbers(number) => is_there(SectionKind::RollupNumbers, number),
            Self::NumbersBy(one, number) => {
                is_there(SectionKind::RollupNumbersBy, &pair_name(one, number))
            }
            Self::Users => is_there(SectionKind::RollupUsers, ""),
            Self::UsersBy(one) => is_there(SectionKind::RollupUsersBy, one),
            Self::Digests(number) => is_there(SectionKind::RollupDigests, number),
            Self::DigestsBy(one, number) => {
                is_there(SectionKind::RollupDigestsBy, &pair_name(one, number))
            }
            Self::UserSets => is_there(SectionKind::RollupUserSets, ""),
            Self::UserSetsBy(one) => is_there(SectionKind::RollupUserSetsBy, one),
        }
    }
}

/// Why a question is not answered from rollups.
pub type Rejected = &'static str;

/// The rollup for a question, by what it asks alone.
pub fn shape(query: &Query) -> Result<Shape, Rejected> {
    let number = || query.number.clone().ok_or("the metric has no number");
    let of = match query.metric {
        Metric::Count => Of::Rows,
        Metric::Sum | Metric::Avg | Metric::Min | Metric::Max => Of::Numbers(number()?),
        Metric::DistinctApprox => Of::Users,
        Metric::PercentileApprox(_) => Of::Digests(number()?),
        Metric::Percentile(_) => return Err("exact percentiles need every number"),
        Metric::Distinct => Of::UserSets,
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
    let name = |name: &str| name.to_owned();
    match (&dimensions[..], of) {
        ([], Of::Rows) => Ok(Shape::Rows),
        ([], Of::Numbers(number)) => Ok(Shape::Numbers(number)),
        ([], Of::Users) => Ok(Shape::Users),
        ([], Of::Digests(number)) => Ok(Shape::Digests(number)),
        ([], Of::UserSets) => Ok(Shape::UserSets),
        ([one], Of::Rows) => Ok(Shape::Counts(name(one))),
        ([one], Of::Numbers(number)) => Ok(Shape::NumbersBy(name(one), number)),
        ([one], Of::Users) => Ok(Shape::UsersBy(name(one))),
        ([one], Of::Digests(number)) => Ok(Shape::DigestsBy(name(one), number)),
        ([one], Of::UserSets) => Ok(Shape::UserSetsBy(name(one))),
        ([one, two], Of::Rows) => Ok(Shape::Pairs(name(one), name(two))),
        ([_, _], _) => Err("pairs are counted only"),
        _ => Err("more than two dimensions"),
    }
}

/// What a metric adds up.
enum Of {
    Rows,
    Numbers(String),
    Users,
    Digests(String),
    UserSets,
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
    Numbers(ByHour<Sums>),
    NumbersBy(Vec<(u32, Sums)>),
    Users(ByHour<Distinct>),
    UsersBy(Vec<(u32, Distinct)>),
    Digests(ByHour<Digest>),
    DigestsBy(Vec<(u32, Digest)>),
    UserSet(Vec<u32>),
    UserSetBy(UserValues),
}

/// The rollups of a day of a run for a question, or of an event with all tenants.
pub struct RunRollup<'a> {
    /// None of an event.
    day: Option<&'a RunDay<'a>>,
    loaded: Loaded,
}

impl<'a> RunRollup<'a> {
    /// Loads what is kept for `shape` of a day of the run at `position`; the hours only if they are needed.
    /// `None` when it is not kept.
    pub fn load(
        segment: &Segment,
        day: &'a RunDay<'a>,
        position: usize,
        shape: &Shape,
        with_hours: bool,
    ) -> Result<Option<Self>> {
        let Some(index) = segment.rollup_of(position) else { return Ok(None) };
        let hours = with_hours.then_some(day.hours.len());
        let loaded = load(segment, RollupAt { index, day: day.ordinal }, shape, hours)?;
        Ok(loaded.map(|loaded| Self { day: Some(day), loaded }))
    }

    /// Loads what is kept for `shape` of an event of a namespace with all tenants, on the day with this ordinal.
    pub fn load_event(
        segment: &Segment,
        query: &Query,
        day: usize,
        shape: &Shape,
    ) -> Result<Option<Self>> {
        let index = segment.rollup_of_event(query.namespace, &query.event);
        let Some(index) = index else { return Ok(None) };
        let loaded = load(segment, RollupAt { index, day }, shape, None)?;
        Ok(loaded.map(|loaded| Self { day: None, loaded }))
    }

    /// Of a range of the run's rows those that it can answer for, counted in the run.
    pub fn answers(&self, rows: &Range<u32>) -> Range<u32> {
        let nothing = rows.start..rows.start;
        let Some(day) = self.day else { return nothing };
        if *rows == day.rows {
            return rows.clone();
        }
        let has_hours = match &self.loaded {
            Loaded::Counts(counts) => counts.hours.is_some(),
            Loaded::Numbers((_, hours)) => hours.is_some(),
            Loaded::Users((_, hours)) => hours.is_some(),
            Loaded::Digests((_, hours)) => hours.is_some(),
            _ => false,
        };
        let hours = whole_hours(day, rows);
        if !has_hours || hours.is_empty() {
            return nothing;
        }
        let start = |hour: usize| day.hours.get(hour).map_or(day.rows.end, |(_, row)| *row);
        start(hours.start)..start(hours.end)
    }

    /// Answers as much of a range of the run's rows as it can. Returns the rows, counted in the run,
    /// that it has answered for.
    pub fn serve(&self, rows: Range<u32>, to: &mut Target<'_, '_>) -> Result<Range<u32>> {
        let answered = self.answers(&rows);
        let Some(day) = self.day.filter(|_| !answered.is_empty()) else { return Ok(answered) };
        if rows == day.rows {
            self.serve_whole(to)?;
            return Ok(rows);
        }
        let hours = whole_hours(day, &rows);
        let count = day.hours.len();
        match &self.loaded {
            Loaded::Counts(DimensionCounts { totals, hours: Some(by_hour) }) => {
                let Target { bucket, codes, sink, .. } = to;
                for (&(code, _), counts) in totals.iter().zip(by_hour.chunks(count.max(1))) {
                    let sum: u64 = counts.get(hours.clone()).into_iter().flatten().sum();
                    // A group appears where it has rows.
                    if sum > 0 {
                        let group = codes.group_of(&[code], sink);
                        sink.add_state(group, *bucket, State::Count(sum))?;
                    }
                }
            }
            Loaded::Numbers((_, Some(by_hour))) => {
                serve_all(by_hour.get(hours.clone()).unwrap_or_default(), to)?
            }
            Loaded::Users((_, Some(by_hour))) => {
                serve_all(by_hour.get(hours.clone()).unwrap_or_default(), to)?
            }
            Loaded::Digests((_, Some(by_hour))) => {
                serve_all(by_hour.get(hours.clone()).unwrap_or_default(), to)?
            }
            _ => unreachable!("what answers for hours has them"),
        }
        to.served.hours = true;
        Ok(answered)
    }

    /// Answers for all rows.
    pub fn serve_whole(&self, to: &mut Target<'_, '_>) -> Result<()> {
        to.served.days = true;
        match &self.loaded {
            Loaded::Counts(counts) => serve_values(&counts.totals, to),
            Loaded::Pairs(pairs) => {
                let Target { bucket, codes, sink, .. } = to;
                for &(one, two, count) in pairs.iter().filter(|(.., count)| *count > 0) {
                    let group = codes.group_of(&[one, two], sink);
                    sink.add_state(group, *bucket, State::Count(count))?;
                }
                Ok(())
            }
            Loaded::Numbers((total, _)) => serve_all(slice::from_ref(total), to),
            Loaded::Users((total, _)) => serve_all(slice::from_ref(total), to),
            Loaded::Digests((total, _)) => serve_all(slice::from_ref(total), to),
            Loaded::NumbersBy(states) => serve_values(states, to),
            Loaded::UsersBy(states) => serve_values(states, to),
            Loaded::DigestsBy(states) => serve_values(states, to),
            Loaded::UserSet(users) => {
                let group = to.codes.group_of(&[], to.sink);
                to.add_users(group, users.iter().copied())
            }
            Loaded::UserSetBy(UserValues { users, masks }) => {
                let any = masks.iter().fold(0, |any, mask| any | mask);
                for code in (0..u8::BITS).filter(|code| any >> code & 1 == 1) {
                    let group = to.codes.group_of(&[code], to.sink);
                    let with_it =
                        users.iter().zip(masks).filter(|(_, mask)| *mask >> code & 1 == 1);
                    if group != NO_GROUP {
                        to.add_users(group, with_it.map(|(user, _)| *user))?;
                    }
                }
                Ok(())
            }
        }
    }
}

/// Where answers from rollups go.
pub struct Target<'a, 'c> {
    /// Their bucket.
    pub bucket: usize,
    /// What codes mean.
    pub codes: &'a mut Codes<'c>,
    /// The states.
    pub sink: &'a mut Sink,
    /// What was looked at.
    pub served: &'a mut Served,
    /// The users of the run's tenant, for sets of them, and the segment.
    pub users: Option<(&'a Users, &'a Segment)>,
}

impl Target<'_, '_> {
    fn add_users(&mut self, group: u32, codes: impl Iterator<Item = u32>) -> Result<()> {
        let Some((users, segment)) = self.users else { return Ok(()) };
        if self.sink.add_users((group, self.bucket), users, codes)? {
            return Ok(());
        }
        let path = segment.meta().path();
        Err(Error::corrupt(&path, "a rollup has a user who is not one of its tenant"))
    }
}

/// Adds states of whole series.
fn serve_all<T>(states: &[T], to: &mut Target<'_, '_>) -> Result<()>
where
    for<'s> State<'s>: From<&'s T>,
{
    let group = to.codes.group_of(&[], to.sink);
    for state in states {
        to.sink.add_state(group, to.bucket, state.into())?;
    }
    Ok(())
}

/// Adds states of values of one dimension, by code.
fn serve_values<T>(states: &[(u32, T)], to: &mut Target<'_, '_>) -> Result<()>
where
    for<'s> State<'s>: From<&'s T>,
{
    for (code, state) in states {
        let state = State::from(state);
        // A group appears where it has rows.
        if !state.is_nothing() {
            let group = to.codes.group_of(&[*code], to.sink);
            to.sink.add_state(group, to.bucket, state)?;
        }
    }
    Ok(())
}

/// What is kept for `shape` of the series or event with this number; the hours only if so many are needed.
fn load(
    segment: &Segment,
    at: RollupAt,
    shape: &Shape,
    hours: Option<usize>,
) -> Result<Option<Loaded>> {
    let (with_hours, hours) = (hours.is_some(), hours.unwrap_or(0));
    Ok(match shape {
        Shape::Rows => None,
        Shape::Counts(dimension) => {
            segment.rollup_counts(at, dimension, hours, with_hours)?.map(Loaded::Counts)
        }
        Shape::Pairs(one, two) => segment.rollup_pairs(at, (one, two))?.map(Loaded::Pairs),
        Shape::Numbers(number) => {
            segment.rollup_numbers(at, number, hours, with_hours)?.map(Loaded::Numbers)
        }
        Shape::NumbersBy(dimension, number) => {
            segment.rollup_numbers_by(at, dimension, number)?.map(Loaded::NumbersBy)
        }
        Shape::Users => segment.rollup_users(at, hours, with_hours)?.map(Loaded::Users),
        Shape::UsersBy(dimension) => segment.rollup_users_by(at, dimension)?.map(Loaded::UsersBy),
        Shape::Digests(number) => {
            segment.rollup_digests(at, number, hours, with_hours)?.map(Loaded::Digests)
        }
        Shape::DigestsBy(dimension, number) => {
            segment.rollup_digests_by(at, dimension, number)?.map(Loaded::DigestsBy)
        }
        Shape::UserSets => segment.rollup_user_set(at)?.map(Loaded::UserSet),
        Shape::UserSetsBy(dimension) => match segment.text(dimension)? {
            None => None,
            Some(reader) => {
                let codes = reader.value_count()? + 1;
                segment.rollup_user_set_by(at, dimension, codes)?.map(Loaded::UserSetBy)
            }
        },
    })
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

    #[test]
    fn whole_hours_lie_between_ragged_edges() {
        let hours = [(0, 0), (1, 10), (4, 20), (5, 35)];
        let day = RunDay { day: 0, ordinal: 0, hours: &hours, rows: 0..40, bounds: (0, 0) };
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
            let found = whole_hours(&day, &rows);
            assert_eq!(found.len(), hours.len(), "{rows:?}: {found:?}");
            assert!(found.is_empty() || found == hours, "{rows:?}: {found:?}");
        }
    }
}
