//! Verifying a segment: every checksum, every value, and what they must have in common.
//!
//! Runs before a new segment gets its name, and in `inlay-inspect verify`. A file whose checksums are right can still be wrong,
//! because memory was damaged when it was made or a decoder has changed; such faults are looked for here:
//!
//! ```text
//! seg/l0/019a….seg: row 17: out of order                                     a time falls, or is not in the hour that the directory has
//! seg/l0/019a….seg: users are not in order
//! seg/l0/019a….seg: a dictionary is not sorted
//! seg/l0/019a….seg: a code of model exceeds its dictionary
//! seg/l0/019a….seg: the rollup model is not what its rows add up to
//! ```

#![cfg_attr(not(test), deny(clippy::indexing_slicing, clippy::unwrap_used))]

use std::collections::BTreeMap;

use super::{
    columns::TextReader,
    event_ids::EventIds,
    layout::{Section, SectionKind},
    reader::Segment,
    rollups,
};
use crate::{
    base::{
        hash::{positioned, text_hash},
        time::HOUR_MS,
    },
    encode::{BLOCK_ROWS, Block as _, VECTOR_ROWS, ints::IntBlock, text::TextList},
    error::{Error, Result},
};

impl Segment {
    /// Checks every block and reads everything that can be read. Gives a hash of the values of each
    /// column by kind and name: `(9, "ms") → 0x…`, which the writer compares with that of the values it was handed.
    ///
    /// Errors: `Corrupt` with the first fault.
    pub fn verify(&self) -> Result<BTreeMap<(u16, String), u64>> {
        for at in 0..self.sections().len() {
            for index in 0..self.section(at)?.blocks.len() {
                self.block_at(at, index)?;
            }
        }
        let mut hashes = BTreeMap::new();
        let mut keep = |kind: SectionKind, name: &str, hash: ColumnHash| {
            hashes.insert((kind as u16, name.to_owned()), hash.finish());
        };
        keep(SectionKind::Times, "", self.verify_times()?);
        let mut ids = ColumnHash::default();
        for index in 0..self.block_count() {
            ids.event_ids(&self.event_ids(index)?);
        }
        keep(SectionKind::EventIds, "", ids);
        keep(SectionKind::Users, "", self.verify_users()?);
        keep(SectionKind::UserCodes, "", self.verify_user_codes()?);
        for name in self.names(SectionKind::TextValues) {
            if let Some(text) = self.text(name)? {
                text.read_zones()?;
                let (values, count) = text.verify_values()?;
                keep(SectionKind::TextValues, name, values);
                let codes = self.verify_codes(name, |index| text.codes(index), |_| count)?;
                keep(SectionKind::TextCodes, name, codes);
                for index in 0..self.block_count() {
                    text.bitmaps(index)?;
                }
            }
        }
        for name in self.names(SectionKind::Numbers) {
            if let Some(numbers) = self.numbers(name)? {
                numbers.read_zones()?;
                let mut hash = ColumnHash::default();
                let mut vector = [0.0; VECTOR_ROWS];
                for index in 0..self.block_count() {
                    let block = numbers.block(index)?;
                    if let Some(listed) = block.listed()? {
                        hash.listed_numbers(self.block_rows(index), &listed);
                        continue;
                    }
                    for at in 0..self.block_rows(index).div_ceil(VECTOR_ROWS) {
                        let len = block.read_vector(at, &mut vector)?;
                        hash.numbers(vector.get(..len).unwrap_or_default());
                    }
                }
                keep(SectionKind::Numbers, name, hash);
            }
        }
        self.verify_rollups()?;
        Ok(hashes)
    }

    /// The rollups are what the rows add up to, where this build knows which their writer chose.
    fn verify_rollups(&self) -> Result<()> {
        if !self.is_of_this_minor() {
            return Ok(());
        }
        let wrong = |name: &str| {
            Error::corrupt(&self.place, format!("the rollup {name} is not what its rows add up to"))
        };
        let sections = rollups::build(self, self.rolled_up(), self.rolled_up_events())?;
        let is_rollup = |section: &&Section| (64..96).contains(&section.kind);
        if self.sections().iter().filter(is_rollup).count() != sections.len() {
            return Err(wrong("list"));
        }
        for section in sections {
            let at = self.find(section.kind, &section.name).ok_or_else(|| wrong(&section.name))?;
            let stored = self.section(at)?.blocks.len();
            for (index, block) in section.blocks.iter().enumerate() {
                if stored != section.blocks.len() || self.block_at(at, index)? != block {
                    return Err(wrong(&section.name));
                }
            }
        }
        Ok(())
    }

    /// Times rise within each run, and the run directory knows where each hour starts.
    fn verify_times(&self) -> Result<ColumnHash> {
        let mut hash = ColumnHash::default();
        let mut vector = [0; VECTOR_ROWS];
        let mut runs = self.runs().runs().iter();
        let mut run = runs.next();
        let (mut row, mut before, mut hours_seen) = (0u32, i64::MIN, 0usize);
        for index in 0..self.block_count() {
            let block = self.times(index)?;
            for at in 0..self.block_rows(index).div_ceil(VECTOR_ROWS) {
                let len = block.read_vector(at, &mut vector)?;
                let times = vector.get(..len).unwrap_or_default();
                hash.ints(times);
                for &time in times {
                    let wrong = || Error::corrupt(&self.place, format!("row {row}: out of order"));
                    while run.is_some_and(|run| row >= run.first_row + run.rows) {
                        run = runs.next();
                        (before, hours_seen) = (i64::MIN, 0);
                    }
                    let here = run.ok_or_else(wrong)?;
                    if time < before || time < here.ts_min || time > here.ts_max {
                        return Err(wrong());
                    }
                    let hour = time.div_euclid(HOUR_MS);
                    if before == i64::MIN || hour != before.div_euclid(HOUR_MS) {
                        if here.hours.get(hours_seen) != Some(&(hour, row - here.first_row)) {
                            return Err(wrong());
                        }
                        hours_seen += 1;
                    }
                    before = time;
                    row += 1;
                }
            }
        }
        Ok(hash)
    }

    /// Users rise within each tenant; the next tenant begins anew.
    fn verify_users(&self) -> Result<ColumnHash> {
        let mut users = ColumnHash::default();
        let (mut count, mut tenant) = (0, 0);
        let mut order = Rising::default();
        for index in 0..self.user_blocks() {
            let texts = self.users(index)?;
            for text in texts.iter() {
                while tenant < self.tenants().len() && count >= self.tenants().users(tenant).end {
                    tenant += 1;
                    order = Rising::default();
                }
                if !order.goes_on_with(text) {
                    return Err(Error::corrupt(&self.place, "users are not in order"));
                }
                count += 1;
            }
            users.texts(&texts);
        }
        Ok(users)
    }

    /// Each row's user is one of its tenant's.
    fn verify_user_codes(&self) -> Result<ColumnHash> {
        let tenants = self.tenants();
        let (mut rows, mut users) = (0..0, 0);
        let users_at = |row: u32| {
            if !rows.contains(&row) {
                let tenant = tenants.of_row(row);
                (rows, users) = (tenants.rows(tenant), tenants.users(tenant).len());
            }
            users
        };
        self.verify_codes("users", |index| self.user_codes(index), users_at)
    }

    /// Codes are those of entries, of which there are as many as `entries` gives for a row.
    fn verify_codes<'a>(
        &self,
        name: &str,
        open: impl Fn(usize) -> Result<IntBlock<'a>>,
        mut entries: impl FnMut(u32) -> usize,
    ) -> Result<ColumnHash> {
        let mut hash = ColumnHash::default();
        let mut vector = [0; VECTOR_ROWS];
        for index in 0..self.block_count() {
            let block = open(index)?;
            let mut check = |row: usize, code: i64| match usize::try_from(code) {
                Ok(code) if code <= entries((index * BLOCK_ROWS + row) as u32) => Ok(()),
                _ => {
                    let detail = format!("a code of {name} exceeds its dictionary");
                    Err(Error::corrupt(&self.place, detail))
                }
            };
            if let Some(listed) = block.listed()? {
                listed.iter().try_for_each(|&(row, code)| check(row as usize, code))?;
                hash.listed_ints(self.block_rows(index), &listed);
                continue;
            }
            for at in 0..self.block_rows(index).div_ceil(VECTOR_ROWS) {
                let len = block.read_vector(at, &mut vector)?;
                let codes = vector.get(..len).unwrap_or_default();
                for (row, &code) in (at * VECTOR_ROWS..).zip(codes) {
                    check(row, code)?;
                }
                hash.ints(codes);
            }
        }
        Ok(hash)
    }
}

impl TextReader<'_> {
    /// The dictionary is sorted text. Gives its hash and how many values it has.
    fn verify_values(&self) -> Result<(ColumnHash, usize)> {
        let mut hash = ColumnHash::default();
        let (mut count, mut order) = (0, Rising::default());
        for index in 0..self.value_blocks()? {
            let texts = self.value_block(index)?;
            for text in texts.iter() {
                if !order.goes_on_with(text) {
                    return Err(Error::corrupt(self.place(), "a dictionary is not sorted"));
                }
                if std::str::from_utf8(text).is_err() {
                    return Err(Error::corrupt(self.place(), "a dictionary is not UTF-8"));
                }
            }
            count += texts.len();
            hash.texts(&texts);
        }
        Ok((hash, count))
    }
}

/// Strings that come one after the other, each larger than the one before.
#[derive(Default)]
struct Rising(Option<Vec<u8>>);

impl Rising {
    /// Whether `text` is larger than the one before, if there was one; it is the one before from now on.
    fn goes_on_with(&mut self, text: &[u8]) -> bool {
        let rises = self.0.as_deref().is_none_or(|before| before < text);
        let before = self.0.get_or_insert_default();
        before.clear();
        before.extend_from_slice(text);
        rises
    }
}

/// Hash of the values of a column, however they are cut into pieces, and whether they are listed or not:
/// rows of 0 and rows without a number only count.
///
/// A sum over rows of a hash of position and value: so the values 1, 2 in rows 0 and 1 give another sum than 2, 1, and a column
/// that is handed in block by block gives the same as one that is read vector by vector.
#[derive(Default, Clone)]
pub struct ColumnHash {
    rows: u64,
    sum: u64,
}

impl ColumnHash {
    /// Adds one row for each integer.
    pub fn ints(&mut self, values: &[i64]) {
        values.iter().for_each(|&value| self.add(value as u64));
    }

    /// Adds `rows` rows of which those in `listed` are not 0.
    pub fn listed_ints(&mut self, rows: usize, listed: &[(u32, i64)]) {
        self.listed(rows, listed.iter().map(|&(row, value)| (row, value as u64)));
    }

    /// Adds numbers. Absent ones are all alike.
    pub fn numbers(&mut self, values: &[f64]) {
        values.iter().for_each(|&value| self.add(number_bits(value)));
    }

    /// Adds `rows` rows of which those in `listed` have a number.
    pub fn listed_numbers(&mut self, rows: usize, listed: &[(u32, f64)]) {
        self.listed(rows, listed.iter().map(|&(row, value)| (row, number_bits(value))));
    }

    /// Adds one row for each string.
    pub fn texts(&mut self, texts: &TextList) {
        texts.iter().for_each(|text| self.add(text_hash(text)));
    }

    /// Adds event ids.
    pub fn event_ids(&mut self, ids: &EventIds) {
        let mut scratch = Vec::new();
        for row in 0..ids.len() {
            self.add(text_hash(ids.value(row, &mut scratch).unwrap_or_default()));
        }
    }

    /// The hash of all rows added so far.
    pub fn finish(&self) -> u64 {
        self.sum ^ self.rows.rotate_left(32)
    }

    fn add(&mut self, value: u64) {
        self.sum = self.sum.wrapping_add(positioned(self.rows, value));
        self.rows += 1;
    }

    fn listed(&mut self, rows: usize, listed: impl Iterator<Item = (u32, u64)>) {
        for (row, value) in listed {
            self.sum = self.sum.wrapping_add(positioned(self.rows + u64::from(row), value));
        }
        self.rows += rows as u64;
    }
}

/// 0 for "absent", which no number gives: all bits but one short of overflow are of one that is none.
fn number_bits(value: f64) -> u64 {
    if value.is_nan() { 0 } else { value.to_bits().wrapping_add(1) }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    /// Small codes that change places by equal distances must not cancel.
    #[test]
    fn misplaced_rows_change_the_hash() {
        let hash = |rows: &[(u32, i64)]| {
            let mut hash = ColumnHash::default();
            hash.listed_ints(300, rows);
            hash.finish()
        };
        assert_ne!(hash(&[(0, 1), (15, 1)]), hash(&[(1, 1), (14, 1)]));
        let pairs = (0..240).flat_map(|a| (a + 1..240).map(move |b| (a, b)));
        let hashes: BTreeSet<u64> = pairs.clone().map(|(a, b)| hash(&[(a, 1), (b, 1)])).collect();
        assert_eq!(hashes.len(), pairs.count());
    }

    /// However rows are handed in, the hash is that of all of them.
    #[test]
    fn listed_rows_hash_as_all_rows() {
        let values: Vec<i64> = (0..500).map(|n| if n % 37 == 5 { n } else { 0 }).collect();
        let (mut all, mut few) = (ColumnHash::default(), ColumnHash::default());
        for rows in values.chunks(200) {
            all.ints(rows);
            let listed = (0u32..).zip(rows.iter().copied()).filter(|(_, value)| *value != 0);
            few.listed_ints(rows.len(), &listed.collect::<Vec<_>>());
        }
        assert_eq!(all.finish(), few.finish());
    }
}
