//! Answering from the rollups of a segment instead of its rows, where that gives the same answer.
//!
//! Which query has which rollup is decided once, by the query alone; whether a day of a run has it, when its turn comes
//! ([`super::plan`]).

use std::{ops::Range, slice};

use super::{
    groups::{CodeGroups, NO_GROUP},
    partial_states::State,
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

/// The rollup that can answer a query.
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
    /// HyperLogLog sketches of users.
    Users,
    /// The same by value of one dimension.
    UsersBy(String),
    /// The spread of the query's number.
    Digests(String),
    /// The same by value of one dimension.
    DigestsBy(String, String),
    /// The exact set of users of each day.
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

/// Why a query is not answered from rollups.
pub type Rejected = &'static str;

/// The rollup for a query; it depends on the query alone.
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

/// The input that a metric aggregates.
enum Of {
    Rows,
    Numbers(String),
    Users,
    Digests(String),
    UserSets,
}

/// Filter and grouping of a query in terms of the codes of one segment.
pub struct Codes<'a> {
    /// By dimension of the shape: the accepted codes, rising; all when there is no filter.
    pub accepted: Vec<Option<&'a [u32]>>,
    /// The dimension that is grouped by, if any.
    pub group: Option<GroupCodes<'a>>,
}

/// A dimension that is grouped by.
pub struct GroupCodes<'a> {
    /// Index of the dimension among those of the shape.
    pub at: usize,
    /// Strings of the dimension by code.
    pub values: &'a Dictionary,
    /// Group numbers of the query by code, looked up once for each code.
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

/// The stored rollup of a day of a run, or of an event over all tenants.
pub enum Rollup {
    /// Number of rows by value of a dimension, with those of each hour where they were asked for.
    Counts(DimensionCounts),
    /// Number of rows by the codes of two dimensions.
    Pairs(Vec<(u32, u32, u64)>),
    /// Count, sum and extremes of a number.
    Numbers(ByHour<Sums>),
    /// The same by code of a dimension.
    NumbersBy(Vec<(u32, Sums)>),
    /// HyperLogLog sketch of the users.
    Users(ByHour<Distinct>),
    /// The same by code of a dimension.
    UsersBy(Vec<(u32, Distinct)>),
    /// t-digest of a number.
    Digests(ByHour<Digest>),
    /// The same by code of a dimension.
    DigestsBy(Vec<(u32, Digest)>),
    /// Codes of users, rising.
    UserSet(Vec<u32>),
    /// The same, with the values that each has.
    UserSetBy(UserValues),
}

impl Rollup {
    /// Loads what is stored for `shape` of a day of the run at `position`; the hours only if they are needed.
    /// `None` when nothing is.
    ///
    /// Errors: `Corrupt` when it is damaged.
    pub fn of_run(
        segment: &Segment,
        day: &RunDay<'_>,
        position: usize,
        shape: &Shape,
        with_hours: bool,
    ) -> Result<Option<Self>> {
        let Some(index) = segment.rollup_of(position) else { return Ok(None) };
        let hours = with_hours.then_some(day.hours.len());
        load(segment, RollupAt { index, day: day.ordinal }, shape, hours)
    }

    /// Loads what is stored for `shape` of an event of a namespace with all tenants, on the day with this ordinal.
    ///
    /// Errors: `Corrupt` when it is damaged.
    pub fn of_event(
        segment: &Segment,
        query: &Query,
        day: usize,
        shape: &Shape,
    ) -> Result<Option<Self>> {
        let index = segment.rollup_of_event(query.namespace, &query.event);
        let Some(index) = index else { return Ok(None) };
        load(segment, RollupAt { index, day }, shape, None)
    }

    /// Whether the hours were loaded.
    pub fn has_hours(&self) -> bool {
        match self {
            Self::Counts(counts) => counts.hours.is_some(),
            Self::Numbers((_, hours)) => hours.is_some(),
            Self::Users((_, hours)) => hours.is_some(),
            Self::Digests((_, hours)) => hours.is_some(),
            _ => false,
        }
    }

    /// Adds some hours of a day that has `count` of them. Without the hours nothing is added: the plan asks only where
    /// they were loaded.
    ///
    /// Errors: `Limit` when the states need too much memory.
    pub fn serve_hours(
        &self,
        hours: Range<usize>,
        count: usize,
        to: &mut Target<'_, '_>,
    ) -> Result<()> {
        debug_assert!(self.has_hours(), "hours that were not loaded");
        match self {
            Self::Counts(DimensionCounts { totals, hours: Some(by_hour) }) => {
                let Target { bucket, codes, sink, .. } = to;
                for (&(code, _), counts) in totals.iter().zip(by_hour.chunks(count.max(1))) {
                    let sum: u64 = counts.get(hours.clone()).into_iter().flatten().sum();
                    // A group appears where it has rows.
                    if sum > 0 {
                        let group = codes.group_of(&[code], sink);
                        sink.add_state(group, *bucket, State::Count(sum))?;
                    }
                }
                Ok(())
            }
            Self::Numbers((_, Some(by_hour))) => {
                serve_all(by_hour.get(hours).unwrap_or_default(), to)
            }
            Self::Users((_, Some(by_hour))) => {
                serve_all(by_hour.get(hours).unwrap_or_default(), to)
            }
            Self::Digests((_, Some(by_hour))) => {
                serve_all(by_hour.get(hours).unwrap_or_default(), to)
            }
            _ => Ok(()),
        }
    }

    /// Adds the whole day.
    ///
    /// Errors: `Limit` when the states need too much memory.
    pub fn serve_day(&self, to: &mut Target<'_, '_>) -> Result<()> {
        match self {
            Self::Counts(counts) => serve_values(&counts.totals, to),
            Self::Pairs(pairs) => {
                let Target { bucket, codes, sink, .. } = to;
                for &(one, two, count) in pairs.iter().filter(|(.., count)| *count > 0) {
                    let group = codes.group_of(&[one, two], sink);
                    sink.add_state(group, *bucket, State::Count(count))?;
                }
                Ok(())
            }
            Self::Numbers((total, _)) => serve_all(slice::from_ref(total), to),
            Self::Users((total, _)) => serve_all(slice::from_ref(total), to),
            Self::Digests((total, _)) => serve_all(slice::from_ref(total), to),
            Self::NumbersBy(states) => serve_values(states, to),
            Self::UsersBy(states) => serve_values(states, to),
            Self::DigestsBy(states) => serve_values(states, to),
            Self::UserSet(users) => {
                let group = to.codes.group_of(&[], to.sink);
                to.add_users(group, users.iter().copied())
            }
            Self::UserSetBy(UserValues { users, masks }) => {
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

/// The bucket and the sink that rollups are added to.
pub struct Target<'a, 'c> {
    /// Index of the bucket that the states are added to.
    pub bucket: usize,
    /// Filter and grouping by code.
    pub codes: &'a mut Codes<'c>,
    /// Groups and states of the query.
    pub sink: &'a mut Sink,
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
) -> Result<Option<Rollup>> {
    let (with_hours, hours) = (hours.is_some(), hours.unwrap_or(0));
    Ok(match shape {
        Shape::Rows => None,
        Shape::Counts(dimension) => {
            segment.rollup_counts(at, dimension, hours, with_hours)?.map(Rollup::Counts)
        }
        Shape::Pairs(one, two) => segment.rollup_pairs(at, (one, two))?.map(Rollup::Pairs),
        Shape::Numbers(number) => {
            segment.rollup_numbers(at, number, hours, with_hours)?.map(Rollup::Numbers)
        }
        Shape::NumbersBy(dimension, number) => {
            segment.rollup_numbers_by(at, dimension, number)?.map(Rollup::NumbersBy)
        }
        Shape::Users => segment.rollup_users(at, hours, with_hours)?.map(Rollup::Users),
        Shape::UsersBy(dimension) => segment.rollup_users_by(at, dimension)?.map(Rollup::UsersBy),
        Shape::Digests(number) => {
            segment.rollup_digests(at, number, hours, with_hours)?.map(Rollup::Digests)
        }
        Shape::DigestsBy(dimension, number) => {
            segment.rollup_digests_by(at, dimension, number)?.map(Rollup::DigestsBy)
        }
        Shape::UserSets => segment.rollup_user_set(at)?.map(Rollup::UserSet),
        Shape::UserSetsBy(dimension) => match segment.text(dimension)? {
            None => None,
            Some(reader) => {
                let codes = reader.value_count()? + 1;
                segment.rollup_user_set_by(at, dimension, codes)?.map(Rollup::UserSetBy)
            }
        },
    })
}
