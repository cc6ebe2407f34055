//! Reading the rollups of a segment.

#![cfg_attr(not(test), deny(clippy::indexing_slicing, clippy::unwrap_used))]

use std::cmp::Ordering;

use super::layout::{DAYS, HOURS, NOT_KEPT, TOTALS, pair_name};
use crate::{
    base::coding::Cursor,
    encode::rising,
    error::Result,
    event::Namespace,
    segment::{SectionKind, Segment},
    sketch::{digest::Digest, hll::Distinct, sums::Sums},
};

/// A state of a day of a series, and those of its hours where they are kept.
pub type ByHour<T> = (T, Option<Vec<T>>);

/// Where the rollups of a day of a series, or of an event with all tenants, stand in the sections.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RollupAt {
    /// Number of the series or event among those that are rolled up.
    pub index: usize,
    /// Number of days with rows before the day.
    pub day: usize,
}

/// The users of a day of a series, with their values of a dimension.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct UserValues {
    /// Codes of the users, rising.
    pub users: Vec<u32>,
    /// Of each user the values: a bit for each code.
    pub masks: Vec<u8>,
}

/// Counts of the values of a dimension.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct DimensionCounts {
    /// Code of each value that occurs, rising, and the rows of the day that have it.
    pub totals: Vec<(u32, u64)>,
    /// The same by hour, `value * hours + hour`, where they are kept.
    pub hours: Option<Vec<u64>>,
}

impl Segment {
    /// The number of a run among those that are rolled up.
    pub fn rollup_of(&self, run: usize) -> Option<usize> {
        self.rolled_up().binary_search(&(run as u32)).ok()
    }

    /// The number of an event of a namespace, with all tenants, among what is rolled up.
    pub fn rollup_of_event(&self, namespace: Namespace, name: &str) -> Option<usize> {
        let is_it = |&position: &u32| {
            let run = self.runs().runs().get(position as usize);
            run.is_some_and(|run| run.key.namespace == namespace && *run.key.name == *name)
        };
        let at = self.rolled_up_events().iter().position(is_it)?;
        Some(self.rolled_up().len() + at)
    }

    /// The form of a block and what follows it; `None` when it is not kept.
    fn rollup_block(
        &self,
        kind: SectionKind,
        name: &str,
        at: RollupAt,
    ) -> Result<Option<(u8, Cursor<'_>)>> {
        let Some(section) = self.find(kind, name) else { return Ok(None) };
        let block = self.block_at(section, at.index)?;
        let mut cursor = Cursor::new(block, &self.place);
        match block.first() {
            Some(&DAYS) => {
                cursor.u8()?;
                let (mut before, mut len) = (0usize, None);
                for day in 0..cursor.count(1)? {
                    let here = cursor.varint_u32()? as usize;
                    match day.cmp(&at.day) {
                        Ordering::Less => before = before.saturating_add(here),
                        Ordering::Equal => len = Some(here),
                        Ordering::Greater => {}
                    }
                }
                let Some(len) = len else { return Err(cursor.error("a rollup lacks a day")) };
                cursor.take(before)?;
                cursor = Cursor::new(cursor.take(len)?, &self.place);
            }
            Some(&NOT_KEPT) => return Ok(None),
            _ if at.day > 0 => return Err(cursor.error("a rollup lacks a day")),
            _ => {}
        }
        match cursor.u8()? {
            NOT_KEPT => Ok(None),
            form @ (TOTALS | HOURS) => Ok(Some((form, cursor))),
            _ => Err(cursor.error("a rollup has an unknown form")),
        }
    }

    /// Counts of a dimension's values in a series with `hours` hours, where they are kept.
    pub fn rollup_counts(
        &self,
        at: RollupAt,
        dimension: &str,
        hours: usize,
        with_hours: bool,
    ) -> Result<Option<DimensionCounts>> {
        let kind = SectionKind::RollupCounts;
        let block = self.rollup_block(kind, dimension, at)?;
        let Some((form, mut cursor)) = block else { return Ok(None) };
        let totals = by_code(&mut cursor, |cursor| cursor.varint())?;
        if !with_hours || form == TOTALS {
            return Ok(Some(DimensionCounts { totals, hours: None }));
        }
        let mut by_hour = Vec::with_capacity(totals.len().saturating_mul(hours).min(1 << 20));
        for &(_, total) in &totals {
            let mut sum = 0u64;
            for _ in 0..hours {
                let count = cursor.varint()?;
                sum = sum.saturating_add(count);
                by_hour.push(count);
            }
            if sum != total {
                return Err(cursor.error("hours and total of a rollup disagree"));
            }
        }
        cursor.finish()?;
        Ok(Some(DimensionCounts { totals, hours: Some(by_hour) }))
    }

    /// Rows that have a value of each of two dimensions, by code. The dimensions are in the order of
    /// the list of rollup dimensions.
    pub fn rollup_pairs(
        &self,
        at: RollupAt,
        dimensions: (&str, &str),
    ) -> Result<Option<Vec<(u32, u32, u64)>>> {
        let name = pair_name(dimensions.0, dimensions.1);
        let block = self.rollup_block(SectionKind::RollupPairs, &name, at)?;
        let Some((_, mut cursor)) = block else { return Ok(None) };
        let mut pairs = Vec::new();
        let count = cursor.count(2)?;
        let second_codes = cursor.varint_u32()?.max(1);
        let mut next = 0u32;
        for _ in 0..count {
            let at = next.saturating_add(cursor.varint_u32()?);
            pairs.push((at / second_codes, at % second_codes, cursor.varint()?));
            next = at.saturating_add(1);
        }
        cursor.finish()?;
        Ok(Some(pairs))
    }

    /// What a number adds up to on a day of a series, and by hour where that is kept and asked for.
    pub fn rollup_numbers(
        &self,
        at: RollupAt,
        number: &str,
        hours: usize,
        with_hours: bool,
    ) -> Result<Option<ByHour<Sums>>> {
        let block = self.rollup_block(SectionKind::RollupNumbers, number, at)?;
        block.map(|block| by_hour(block, hours, with_hours, Sums::read)).transpose()
    }

    /// What a number adds up to for each value of a dimension, by code.
    pub fn rollup_numbers_by(
        &self,
        at: RollupAt,
        dimension: &str,
        number: &str,
    ) -> Result<Option<Vec<(u32, Sums)>>> {
        let name = pair_name(dimension, number);
        let block = self.rollup_block(SectionKind::RollupNumbersBy, &name, at)?;
        block.map(|block| whole_by_code(block, Sums::read)).transpose()
    }

    /// The users of a day of a series, and by hour where that is kept and asked for.
    pub fn rollup_users(
        &self,
        at: RollupAt,
        hours: usize,
        with_hours: bool,
    ) -> Result<Option<ByHour<Distinct>>> {
        let block = self.rollup_block(SectionKind::RollupUsers, "", at)?;
        block.map(|block| by_hour(block, hours, with_hours, Distinct::read)).transpose()
    }

    /// The users of each value of a dimension, by code.
    pub fn rollup_users_by(
        &self,
        at: RollupAt,
        dimension: &str,
    ) -> Result<Option<Vec<(u32, Distinct)>>> {
        let block = self.rollup_block(SectionKind::RollupUsersBy, dimension, at)?;
        block.map(|block| whole_by_code(block, Distinct::read)).transpose()
    }

    /// The spread of a number on a day of a series, and by hour where that is kept and asked for.
    pub fn rollup_digests(
        &self,
        at: RollupAt,
        number: &str,
        hours: usize,
        with_hours: bool,
    ) -> Result<Option<ByHour<Digest>>> {
        let block = self.rollup_block(SectionKind::RollupDigests, number, at)?;
        block.map(|block| by_hour(block, hours, with_hours, Digest::read)).transpose()
    }

    /// The spread of a number for each value of a dimension, by code.
    pub fn rollup_digests_by(
        &self,
        at: RollupAt,
        dimension: &str,
        number: &str,
    ) -> Result<Option<Vec<(u32, Digest)>>> {
        let name = pair_name(dimension, number);
        let block = self.rollup_block(SectionKind::RollupDigestsBy, &name, at)?;
        block.map(|block| whole_by_code(block, Digest::read)).transpose()
    }

    /// Codes of the users of a day of a series, rising.
    pub fn rollup_user_set(&self, at: RollupAt) -> Result<Option<Vec<u32>>> {
        let block = self.rollup_block(SectionKind::RollupUserSets, "", at)?;
        let Some((_, mut cursor)) = block else { return Ok(None) };
        let users = rising::read(&mut cursor)?;
        cursor.finish()?;
        Ok(Some(users))
    }

    /// The same with each user's values of a dimension, which has so many codes.
    pub fn rollup_user_set_by(
        &self,
        at: RollupAt,
        dimension: &str,
        codes: usize,
    ) -> Result<Option<UserValues>> {
        let block = self.rollup_block(SectionKind::RollupUserSetsBy, dimension, at)?;
        let Some((_, mut cursor)) = block else { return Ok(None) };
        let Some(users) = self.rollup_user_set(at)? else { return Ok(None) };
        let bits = u32::try_from(codes).ok().filter(|&bits| bits <= u8::BITS);
        let bits = bits.ok_or_else(|| cursor.error("a dimension has too many values for it"))?;
        let masks = rising::read_small(&mut cursor, users.len(), bits)?;
        cursor.finish()?;
        Ok(Some(UserValues { users, masks }))
    }
}

/// The state of a day, then those of its hours.
fn by_hour<T>(
    (form, mut cursor): (u8, Cursor<'_>),
    hours: usize,
    with_hours: bool,
    read: impl Fn(&mut Cursor<'_>) -> Result<T>,
) -> Result<ByHour<T>> {
    let total = read(&mut cursor)?;
    if !with_hours || form == TOTALS {
        return Ok((total, None));
    }
    let hours = (0..hours).map(|_| read(&mut cursor)).collect::<Result<_>>()?;
    cursor.finish()?;
    Ok((total, Some(hours)))
}

/// The states of values, by code, and nothing behind them.
fn whole_by_code<T>(
    (_, mut cursor): (u8, Cursor<'_>),
    read: impl Fn(&mut Cursor<'_>) -> Result<T>,
) -> Result<Vec<(u32, T)>> {
    let states = by_code(&mut cursor, read)?;
    cursor.finish()?;
    Ok(states)
}

/// The states of values, by code.
fn by_code<T>(
    cursor: &mut Cursor<'_>,
    read: impl Fn(&mut Cursor<'_>) -> Result<T>,
) -> Result<Vec<(u32, T)>> {
    let mut states = Vec::new();
    let mut next = 0u32;
    for _ in 0..cursor.count(2)? {
        let code = next.saturating_add(cursor.varint_u32()?);
        states.push((code, read(cursor)?));
        next = code.saturating_add(1);
    }
    Ok(states)
}
