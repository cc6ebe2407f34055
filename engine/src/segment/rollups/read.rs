//! Reading the rollups of a segment.
//!
//! ```text
//! segment.rollups(SectionKind::RollupCounts, "model")      the section; a reader for all series
//!   .counts(RollupAt { index: 0, day: 0 }, 1)              totals [(1, 21), (3, 7)], hours [21, 7]
//!   .form(RollupAt { index: 1, day: 0 })                   Day: of an event over all tenants no hours are kept
//! segment.rollups(SectionKind::RollupCounts, "shape")      no such section: every call gives "not kept"
//! ```
//!
//! "Not kept" (`None`, `false`) is an answer, not an error: the query reads the rows of that day. Damage is `Corrupt`:
//! `hours and total of a rollup disagree`, `a rollup lacks a day`, `a rollup has an unknown form`.

#![cfg_attr(not(test), deny(clippy::indexing_slicing, clippy::unwrap_used))]

use std::ops::RangeInclusive;

use super::layout::{DAYS, HOURS, NOT_KEPT, TOTALS};
use crate::{
    base::coding::Cursor,
    encode::rising,
    error::Result,
    event::Namespace,
    segment::{SectionKind, Segment},
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

/// The rollups that a day of a series has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RollupForm {
    /// None: its rows are read instead.
    Nothing,
    /// That of the day.
    Day,
    /// That of the day, and one for each hour with rows.
    DayAndHours,
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
    /// The number of a run among those that are rolled up; `run` is its position in the run directory.
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

    /// The rollups of a kind, for the dimensions or the number with this name; `""` where the kind has none.
    pub fn rollups(&self, kind: SectionKind, name: &str) -> RollupReader<'_> {
        let section = self.find(kind, name);
        RollupReader { segment: self, section, index: None, block: &[], day_bounds: Vec::new() }
    }
}

/// Rollups of one kind: of each series a block with its days. The block that was read last stays cut into its days,
/// since queries read one series day by day.
pub struct RollupReader<'a> {
    segment: &'a Segment,
    section: Option<usize>,
    /// Number of the series whose block is cut.
    index: Option<usize>,
    /// The days of that series, side by side.
    block: &'a [u8],
    /// The start of each day in them, and the end of the last; nothing when rollups of the series are not kept.
    day_bounds: Vec<usize>,
}

impl<'a> RollupReader<'a> {
    /// Whether rollups of any series are kept; without, each call returns at once.
    pub fn exists(&self) -> bool {
        self.section.is_some()
    }

    /// Cuts the block of a series into its days: those of form 3 by the list of lengths, any other is the block of a single day.
    fn open(&mut self, section: usize, index: usize) -> Result<()> {
        let block = self.segment.block_at(section, index)?;
        self.index = None;
        self.day_bounds.clear();
        match block.first() {
            Some(&NOT_KEPT) => self.block = &[],
            Some(&DAYS) => {
                let mut cursor = Cursor::new(block, &self.segment.place);
                cursor.u8()?;
                let days = cursor.count(1)?;
                if days == 0 {
                    return Err(cursor.error("a rollup lacks a day"));
                }
                let mut end = 0usize;
                self.day_bounds.reserve(days + 1);
                self.day_bounds.push(end);
                for _ in 0..days {
                    end = end.saturating_add(cursor.varint_u32()? as usize);
                    self.day_bounds.push(end);
                }
                self.block = cursor.take(cursor.remaining())?;
            }
            _ => {
                self.block = block;
                self.day_bounds.extend([0, block.len()]);
            }
        }
        self.index = Some(index);
        Ok(())
    }

    /// The form of the block of a day and what follows it; `None` when it is not kept.
    ///
    /// Errors: `Corrupt` when the series has fewer days, or the form is unknown.
    fn block(&mut self, at: RollupAt) -> Result<Option<(u8, Cursor<'a>)>> {
        let Some(section) = self.section else { return Ok(None) };
        if self.index != Some(at.index) {
            self.open(section, at.index)?;
        }
        if self.day_bounds.is_empty() {
            return Ok(None);
        }
        let bounds = self.day_bounds.get(at.day..).and_then(|bounds| bounds.first_chunk());
        let day = bounds.and_then(|&[start, end]| self.block.get(start..end));
        let place = &self.segment.place;
        let day = day.ok_or_else(|| Cursor::new(&[], place).error("a rollup lacks a day"))?;
        let mut cursor = Cursor::new(day, place);
        match cursor.u8()? {
            NOT_KEPT => Ok(None),
            form @ (TOTALS | HOURS) => Ok(Some((form, cursor))),
            _ => Err(cursor.error("a rollup has an unknown form")),
        }
    }

    /// Whether a day has its rollup, and whether it has those of its hours.
    pub fn form(&mut self, at: RollupAt) -> Result<RollupForm> {
        Ok(match self.block(at)? {
            None => RollupForm::Nothing,
            Some((HOURS, _)) => RollupForm::DayAndHours,
            Some(_) => RollupForm::Day,
        })
    }

    /// Calls `visit` with each value of a dimension that occurs on a day of a series, by code within `codes`, and its
    /// rows. Returns whether the rollup is kept. With `codes` `3..=3` above it is called once, with 3 and 7.
    pub fn each_count(
        &mut self,
        at: RollupAt,
        codes: RangeInclusive<u32>,
        visit: impl FnMut(u32, &u64) -> Result<()>,
    ) -> Result<bool> {
        let Some((_, mut cursor)) = self.block(at)? else { return Ok(false) };
        each_by_code(&mut cursor, codes, |cursor| cursor.varint(), visit)?;
        Ok(true)
    }

    /// Counts of a dimension's values in a series with `hours` hours, where they are kept.
    pub fn counts(&mut self, at: RollupAt, hours: usize) -> Result<Option<DimensionCounts>> {
        let Some((form, mut cursor)) = self.block(at)? else { return Ok(None) };
        let mut totals = Vec::new();
        each_by_code(
            &mut cursor,
            ALL_CODES,
            |cursor| cursor.varint(),
            |code, count| {
                totals.push((code, *count));
                Ok(())
            },
        )?;
        if form == TOTALS {
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

    /// Calls `visit` with the codes of each pair of values of two dimensions that occurs, and the rows that have both.
    /// Returns whether the rollup is kept.
    pub fn each_pair(
        &mut self,
        at: RollupAt,
        mut visit: impl FnMut([u32; 2], u64) -> Result<()>,
    ) -> Result<bool> {
        let Some((_, mut cursor)) = self.block(at)? else { return Ok(false) };
        let count = cursor.count(2)?;
        let second_codes = cursor.varint_u32()?.max(1);
        let mut next = 0u32;
        for _ in 0..count {
            let at = next.saturating_add(cursor.varint_u32()?);
            visit([at / second_codes, at % second_codes], cursor.varint()?)?;
            next = at.saturating_add(1);
        }
        cursor.finish()?;
        Ok(true)
    }

    /// The state of a day of a series, which `read` reads, without those of its hours.
    pub fn state<T>(
        &mut self,
        at: RollupAt,
        read: impl FnOnce(&mut Cursor<'_>) -> Result<T>,
    ) -> Result<Option<T>> {
        let Some((_, mut cursor)) = self.block(at)? else { return Ok(None) };
        read(&mut cursor).map(Some)
    }

    /// The same with those of its hours, of which the day has so many, where they are kept.
    pub fn by_hour<T>(
        &mut self,
        at: RollupAt,
        hours: usize,
        read: impl Fn(&mut Cursor<'_>) -> Result<T>,
    ) -> Result<Option<ByHour<T>>> {
        let Some((form, mut cursor)) = self.block(at)? else { return Ok(None) };
        let total = read(&mut cursor)?;
        if form == TOTALS {
            return Ok(Some((total, None)));
        }
        let hours = (0..hours).map(|_| read(&mut cursor)).collect::<Result<_>>()?;
        cursor.finish()?;
        Ok(Some((total, Some(hours))))
    }

    /// Calls `visit` with each value of a dimension that occurs on a day of a series, by code, and its state, which
    /// `read` reads. Returns whether the rollup is kept.
    pub fn each_state<T>(
        &mut self,
        at: RollupAt,
        read: impl Fn(&mut Cursor<'_>) -> Result<T>,
        visit: impl FnMut(u32, &T) -> Result<()>,
    ) -> Result<bool> {
        let Some((_, mut cursor)) = self.block(at)? else { return Ok(false) };
        each_by_code(&mut cursor, ALL_CODES, read, visit)?;
        cursor.finish()?;
        Ok(true)
    }

    /// Codes of the users of a day of a series, rising.
    pub fn user_set(&mut self, at: RollupAt) -> Result<Option<Vec<u32>>> {
        let Some((_, mut cursor)) = self.block(at)? else { return Ok(None) };
        let users = rising::read(&mut cursor)?;
        cursor.finish()?;
        Ok(Some(users))
    }

    /// The number of users of a day of a series, from the first varint of their set: no code is decoded.
    pub fn user_count(&mut self, at: RollupAt) -> Result<Option<usize>> {
        let Some((_, mut cursor)) = self.block(at)? else { return Ok(None) };
        rising::read_count(&mut cursor).map(Some)
    }

    /// The values of a dimension with so many codes that each of so many users of a day of a series has: of each user
    /// a bit for each code. `[0b1010, …]` says that the first user has rows with codes 1 and 3.
    pub fn user_values(
        &mut self,
        at: RollupAt,
        users: usize,
        codes: usize,
    ) -> Result<Option<Vec<u8>>> {
        let Some((_, mut cursor)) = self.block(at)? else { return Ok(None) };
        let bits = u32::try_from(codes).ok().filter(|&bits| bits <= u8::BITS);
        let bits = bits.ok_or_else(|| cursor.error("a dimension has too many values for it"))?;
        let masks = rising::read_small(&mut cursor, users, bits)?;
        cursor.finish()?;
        Ok(Some(masks))
    }
}

const ALL_CODES: RangeInclusive<u32> = 0..=u32::MAX;

/// Reads the states of values, by code within `codes`.
fn each_by_code<T>(
    cursor: &mut Cursor<'_>,
    codes: RangeInclusive<u32>,
    read: impl Fn(&mut Cursor<'_>) -> Result<T>,
    mut visit: impl FnMut(u32, &T) -> Result<()>,
) -> Result<()> {
    let mut next = 0u32;
    for _ in 0..cursor.count(2)? {
        let code = next.saturating_add(cursor.varint_u32()?);
        // Codes rise, so no requested code follows; the rest of the block is not looked at.
        if code > *codes.end() {
            return Ok(());
        }
        let state = read(cursor)?;
        if code >= *codes.start() {
            visit(code, &state)?;
        }
        next = code.saturating_add(1);
    }
    Ok(())
}
