//! Answering from the rollups of a segment instead of its rows, where that gives the same answer.
//!
//! Which query has which rollup is decided once, by the query alone; whether a day of a run has it, when its turn comes
//! ([`super::plan`]).

use std::ops::RangeInclusive;

use super::{
    groups::{CodeGroups, NO_GROUP},
    partial_states::State,
    sink::{Sink, Users},
};
use crate::{
    error::{Error, Result},
    index::bitmaps::ROLLUP_DIMENSIONS,
    query::{Metric, Query},
    segment::{Dictionary, Segment},
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
}

impl Shape {
    /// Whether a day of it is read as quickly as a cached result: numbers are, sketches are not. Of users that is the
    /// number alone; sets are not added by day.
    pub fn is_quick(&self) -> bool {
        !matches!(self, Self::Users | Self::UsersBy(_) | Self::Digests(_) | Self::DigestsBy(..))
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
    pub accepted: &'a [Option<Vec<u32>>],
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
    /// From the smallest to the largest code of a shape's only dimension that is accepted.
    pub fn range(&self) -> RangeInclusive<u32> {
        match self.accepted.first() {
            Some(Some(accepted)) => match &accepted[..] {
                [] => 0..=0,
                [first, .., last] => *first..=*last,
                [only] => *only..=*only,
            },
            _ => 0..=u32::MAX,
        }
    }

    /// The group of rows with these codes, [`NO_GROUP`] when they are not asked for.
    fn group_of(&mut self, codes: &[u32], sink: &mut Sink) -> u32 {
        for (code, accepted) in codes.iter().zip(self.accepted) {
            if accepted.as_ref().is_some_and(|accepted| accepted.binary_search(code).is_err()) {
                return NO_GROUP;
            }
        }
        let Some(group) = &mut self.group else { return sink.groups.number(None) };
        let code = codes.get(group.at).map_or(0, |&code| code as usize);
        let values = group.values;
        group.translate.number(code, &mut sink.groups, || values.value(code))
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
    /// Adds a state of a whole series.
    ///
    /// Errors: `Limit` when the states need too much memory.
    pub fn add(&mut self, state: State<'_>) -> Result<()> {
        let group = self.codes.group_of(&[], self.sink);
        self.sink.add_state(group, self.bucket, state)
    }

    /// Adds the state of rows with these codes.
    ///
    /// Errors: `Limit` when the states need too much memory.
    pub fn add_by_code(&mut self, codes: &[u32], state: State<'_>) -> Result<()> {
        // A group appears where it has rows.
        if state.is_nothing() {
            return Ok(());
        }
        let group = self.codes.group_of(codes, self.sink);
        self.sink.add_state(group, self.bucket, state)
    }

    /// Adds a set of users, by code.
    ///
    /// Errors: `Limit` when there is no memory for it, `Corrupt` when a code is not one of a user.
    pub fn add_set(&mut self, users: &[u32]) -> Result<()> {
        let group = self.codes.group_of(&[], self.sink);
        self.add_users(group, users)
    }

    /// The same with a bit for each code of a dimension that the user has.
    ///
    /// Errors: like [`Self::add_set`].
    pub fn add_set_by_code(&mut self, users: &[u32], masks: &[u8]) -> Result<()> {
        let any = masks.iter().fold(0, |any, mask| any | mask);
        let mut with_it = vec![0; users.len()];
        for code in (0..u8::BITS).filter(|code| any >> code & 1 == 1) {
            let group = self.codes.group_of(&[code], self.sink);
            if group == NO_GROUP {
                continue;
            }
            // Each is written, and stays where he has the value: a branch for each user would be guessed wrong often.
            let mut count = 0;
            for (user, mask) in users.iter().zip(masks) {
                if let Some(slot) = with_it.get_mut(count) {
                    *slot = *user;
                }
                count += usize::from(mask >> code & 1);
            }
            self.add_users(group, with_it.get(..count).unwrap_or_default())?;
        }
        Ok(())
    }

    /// Counts users by group, each once in a group that several of their codes belong to; of each user there is a bit
    /// for each code of a dimension.
    ///
    /// Errors: `Limit` when the states need too much memory.
    pub fn count_masks(&mut self, masks: &[u8]) -> Result<()> {
        let any = masks.iter().fold(0, |any, mask| any | mask);
        let mut groups: Vec<(u32, u8)> = Vec::new();
        for code in (0..u8::BITS).filter(|code| any >> code & 1 == 1) {
            let group = self.codes.group_of(&[code], self.sink);
            match groups.iter_mut().find(|(other, _)| *other == group) {
                _ if group == NO_GROUP => {}
                Some((_, codes)) => *codes |= 1 << code,
                None => groups.push((group, 1 << code)),
            }
        }
        for (group, codes) in groups {
            let count = masks.iter().filter(|mask| **mask & codes != 0).count();
            self.sink.add_state(group, self.bucket, State::OtherUsers(count as u64))?;
        }
        Ok(())
    }

    fn add_users(&mut self, group: u32, codes: &[u32]) -> Result<()> {
        let Some((users, segment)) = self.users else { return Ok(()) };
        if self.sink.add_users((group, self.bucket), users, codes)? {
            return Ok(());
        }
        let path = segment.meta().path();
        Err(Error::corrupt(&path, "a rollup has a user who is not one of its tenant"))
    }
}
