//! Reads the rollups of a segment that answer a query, series by series and day by day.
//!
//! ```text
//! counts by plan of series 3, days 0 to 89     one look-up of the section "plan", one cut of block 3 into its days,
//!                                              then ninety reads of some bytes
//! ```

use std::ops::Range;

use super::{
    partial_states::State,
    rollups::{Shape, Target},
};
use crate::{
    error::Result,
    query::Query,
    segment::{
        DimensionCounts, RollupAt, RollupForm, RollupReader, SectionKind, Segment, pair_name,
    },
    sketch::{digest::Digest, hll::Distinct, sums::Sums},
};

/// The rollups of a segment for one shape.
pub struct ShapeReader<'a> {
    segment: &'a Segment,
    shape: &'a Shape,
    states: RollupReader<'a>,
    /// The sets whose users the states by value are about, and the number of codes of the dimension.
    by_value: Option<(RollupReader<'a>, usize)>,
    /// The run that was looked up last, with its number among those that have rollups.
    run: Option<(usize, Option<usize>)>,
    /// The number of the query's event with all tenants, once it was looked up.
    event: Option<Option<usize>>,
}

impl Shape {
    /// Kind and name of the section that stores it; `None` for rows, which the run directory counts.
    fn section(&self) -> Option<(SectionKind, String)> {
        let name = |name: &str| name.to_owned();
        Some(match self {
            Self::Rows => return None,
            Self::Counts(one) => (SectionKind::RollupCounts, name(one)),
            Self::Pairs(one, two) => (SectionKind::RollupPairs, pair_name(one, two)),
            Self::Numbers(number) => (SectionKind::RollupNumbers, name(number)),
            Self::NumbersBy(one, number) => (SectionKind::RollupNumbersBy, pair_name(one, number)),
            Self::Users => (SectionKind::RollupUsers, name("")),
            Self::UsersBy(one) => (SectionKind::RollupUsersBy, name(one)),
            Self::Digests(number) => (SectionKind::RollupDigests, name(number)),
            Self::DigestsBy(one, number) => (SectionKind::RollupDigestsBy, pair_name(one, number)),
            Self::UserSets => (SectionKind::RollupUserSets, name("")),
            Self::UserSetsBy(one) => (SectionKind::RollupUserSetsBy, name(one)),
        })
    }

    /// Whether a segment has it of any series.
    pub fn is_kept_in(&self, segment: &Segment) -> bool {
        self.section().is_none_or(|(kind, name)| segment.find(kind, &name).is_some())
    }
}

impl<'a> ShapeReader<'a> {
    /// The rollups of `shape` in a segment; `None` where no series has any.
    ///
    /// Errors: `Corrupt` when the dictionary of a dimension is damaged.
    pub fn open(segment: &'a Segment, shape: &'a Shape) -> Result<Option<Self>> {
        let Some((kind, name)) = shape.section() else { return Ok(None) };
        let states = segment.rollups(kind, &name);
        if !states.exists() {
            return Ok(None);
        }
        let by_value = match shape {
            Shape::UserSetsBy(dimension) => {
                let Some(reader) = segment.text(dimension)? else { return Ok(None) };
                let sets = segment.rollups(SectionKind::RollupUserSets, "");
                Some((sets, reader.value_count()? + 1))
            }
            _ => None,
        };
        Ok(Some(Self { segment, shape, states, by_value, run: None, event: None }))
    }

    /// Where the rollups of a day of the run at `position` stand, if the run has any; `day` counts the days with rows
    /// before it.
    pub fn of_run(&mut self, position: usize, day: usize) -> Option<RollupAt> {
        let index = match self.run {
            Some((known, index)) if known == position => index,
            _ => {
                let index = self.segment.rollup_of(position);
                self.run = Some((position, index));
                index
            }
        };
        Some(RollupAt { index: index?, day })
    }

    /// Where those of the query's event with all tenants stand.
    pub fn of_event(&mut self, query: &Query, day: usize) -> Option<RollupAt> {
        let segment = self.segment;
        let look_up = || segment.rollup_of_event(query.namespace, &query.event);
        let index = *self.event.get_or_insert_with(look_up);
        Some(RollupAt { index: index?, day })
    }

    /// The rollups that a day has.
    ///
    /// Errors: `Corrupt` when they are damaged.
    pub fn form(&mut self, at: RollupAt) -> Result<RollupForm> {
        let form = self.states.form(at)?;
        if let Some((sets, _)) = &mut self.by_value
            && sets.form(at)? == RollupForm::Nothing
        {
            return Ok(RollupForm::Nothing);
        }
        Ok(match form {
            RollupForm::DayAndHours if !self.shape.may_have_hours() => RollupForm::Day,
            form => form,
        })
    }

    /// Adds a day from its rollup; returns whether it has one. With `only_counts` only the number of users is read, and
    /// not who they are.
    ///
    /// Errors: `Corrupt` when it is damaged, `Limit` when the states need too much memory.
    pub fn add_day(
        &mut self,
        at: RollupAt,
        only_counts: bool,
        to: &mut Target<'_, '_>,
    ) -> Result<bool> {
        let states = &mut self.states;
        let added = match self.shape {
            Shape::Rows => None,
            Shape::Counts(_) => {
                let codes = to.codes.range();
                return states
                    .each_count(at, codes, |code, count| to.add_by_code(&[code], count.into()));
            }
            Shape::Pairs(..) => {
                let add = |codes: [u32; 2], count| to.add_by_code(&codes, State::Count(count));
                return states.each_pair(at, add);
            }
            Shape::NumbersBy(..) => {
                return states
                    .each_state(at, Sums::read, |code, sums| to.add_by_code(&[code], sums.into()));
            }
            Shape::UsersBy(_) => {
                return states.each_state(at, Distinct::read, |code, users| {
                    to.add_by_code(&[code], users.into())
                });
            }
            Shape::DigestsBy(..) => {
                return states.each_state(at, Digest::read, |code, digest| {
                    to.add_by_code(&[code], digest.into())
                });
            }
            Shape::Numbers(_) => states.state(at, Sums::read)?.map(|sums| to.add((&sums).into())),
            Shape::Users => states.state(at, Distinct::read)?.map(|users| to.add((&users).into())),
            Shape::Digests(_) => {
                states.state(at, Digest::read)?.map(|digest| to.add((&digest).into()))
            }
            Shape::UserSets if only_counts => {
                states.user_count(at)?.map(|count| to.add(State::OtherUsers(count as u64)))
            }
            Shape::UserSets => states.user_set(at)?.map(|users| to.add_set(&users)),
            Shape::UserSetsBy(_) => {
                let Some((sets, codes)) = &mut self.by_value else { return Ok(false) };
                match only_counts {
                    true => {
                        let Some(users) = sets.user_count(at)? else { return Ok(false) };
                        let masks = states.user_values(at, users, *codes)?;
                        masks.map(|masks| to.count_masks(&masks))
                    }
                    false => {
                        let Some(users) = sets.user_set(at)? else { return Ok(false) };
                        let masks = states.user_values(at, users.len(), *codes)?;
                        masks.map(|masks| to.add_set_by_code(&users, &masks))
                    }
                }
            }
        };
        added.map_or(Ok(false), |added| added.map(|()| true))
    }

    /// The rollups of the hours of a day, which has `count` of them.
    ///
    /// Errors: `Corrupt` when they are damaged.
    pub fn hours(&mut self, at: RollupAt, count: usize) -> Result<DayHours> {
        let states = &mut self.states;
        let by_hour = match self.shape {
            Shape::Counts(_) => {
                states.counts(at, count)?.map(|counts| DayHours::Counts(counts, count))
            }
            Shape::Numbers(_) => states
                .by_hour(at, count, Sums::read)?
                .map(|(_, hours)| DayHours::Numbers(hours.unwrap_or_default())),
            Shape::Users => states
                .by_hour(at, count, Distinct::read)?
                .map(|(_, hours)| DayHours::Users(hours.unwrap_or_default())),
            Shape::Digests(_) => states
                .by_hour(at, count, Digest::read)?
                .map(|(_, hours)| DayHours::Digests(hours.unwrap_or_default())),
            // These have no hours, so no plan asks for them.
            Shape::Rows
            | Shape::Pairs(..)
            | Shape::NumbersBy(..)
            | Shape::UsersBy(_)
            | Shape::DigestsBy(..)
            | Shape::UserSets
            | Shape::UserSetsBy(_) => None,
        };
        Ok(by_hour.unwrap_or(DayHours::Numbers(Vec::new())))
    }
}

/// The rollups of the hours of a day.
pub enum DayHours {
    /// Rows by value of a dimension, with the number of hours.
    Counts(DimensionCounts, usize),
    /// Count, sum and extremes of a number.
    Numbers(Vec<Sums>),
    /// HyperLogLog sketch of the users.
    Users(Vec<Distinct>),
    /// t-digest of a number.
    Digests(Vec<Digest>),
}

impl DayHours {
    /// Adds some of the hours, by position.
    ///
    /// Errors: `Limit` when the states need too much memory.
    pub fn add(&self, hours: Range<usize>, to: &mut Target<'_, '_>) -> Result<()> {
        match self {
            Self::Counts(counts, count) => {
                let by_hour = counts.hours.iter().flat_map(|all| all.chunks((*count).max(1)));
                for (&(code, _), counts) in counts.totals.iter().zip(by_hour) {
                    let sum = counts.get(hours.clone()).into_iter().flatten().sum();
                    to.add_by_code(&[code], State::Count(sum))?;
                }
                Ok(())
            }
            Self::Numbers(states) => add_some(states, hours, to),
            Self::Users(states) => add_some(states, hours, to),
            Self::Digests(states) => add_some(states, hours, to),
        }
    }
}

fn add_some<T>(states: &[T], hours: Range<usize>, to: &mut Target<'_, '_>) -> Result<()>
where
    for<'s> State<'s>: From<&'s T>,
{
    states.get(hours).unwrap_or_default().iter().try_for_each(|state| to.add(state.into()))
}
