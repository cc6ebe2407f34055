//! One value nearly everywhere, and the rows that differ.
//!
//! For properties that few events have: codes are 0, "absent", but for a handful of rows. A query that filters by such a
//! property takes the list and reads no other row.
//!
//! ```text
//! 60,000 rows, 0 but for rows 0, 7, 1024, 59999 with row + 1
//!                      offset  bytes
//! common value              0  00 00 00 00 00 00 00 00
//! rows that differ          8  04 00
//! rows                     10  00 00 07 00 00 04 5f ea
//! their values, packed     18  01 00 00 00 00 00 00 00 00 10 00 00 00     (base 1, 16 bits)
//!                              00 00 07 00 00 04 5f ea                    (1 - 1, 8 - 1, …)
//! ```
//!
//! That is 39 bytes; packed would take 299, because three of its 59 vectors get wide.

#![cfg_attr(not(test), deny(clippy::indexing_slicing, clippy::unwrap_used))]

use super::{VECTOR_ROWS, are_rows, packed};
use crate::{
    base::coding::{Cursor, Put},
    error::Result,
};

/// Worth it when at most one row in this many differs: 5,461 of a full block.
const DIFFERS_AT_MOST: usize = 12;
/// When at most one row in this many differs, it may take half as much again as another encoding: the
/// rows that differ are known without reading the others.
const FEW: usize = 50;

/// The value that more than half of the rows have, and how many have it, by the vote of Boyer and Moore: found in one pass,
/// counted in a second. Where no value has a majority it is any of them, with its number, and [`estimate`] declines.
fn majority(values: &[i64]) -> (i64, usize) {
    let mut candidate = 0;
    let mut lead = 0usize;
    for &value in values {
        if lead == 0 {
            candidate = value;
        }
        lead = if value == candidate { lead + 1 } else { lead - 1 };
    }
    (candidate, values.iter().filter(|&&value| value == candidate).count())
}

/// Size in bytes, `None` when too many rows differ, or when it is not worth it beside `other` bytes.
pub fn estimate(values: &[i64], other: usize) -> Option<usize> {
    let (candidate, count) = majority(values);
    if (values.len() - count) * DIFFERS_AT_MOST > values.len() {
        return None;
    }
    let rest: Vec<i64> = values.iter().copied().filter(|&value| value != candidate).collect();
    size_of(values.len(), &rest, other)
}

/// Size in bytes with `rest` as the values that differ; `None` as in [`estimate`].
fn size_of(rows: usize, rest: &[i64], other: usize) -> Option<usize> {
    if rest.len() * DIFFERS_AT_MOST > rows {
        return None;
    }
    let size = 8 + 2 + rest.len() * 2 + packed::estimate(rest);
    let may_take = if rest.len() * FEW > rows { other } else { other + other / 2 };
    (size < may_take).then_some(size)
}

/// Appends the common value, the rows that differ and their values. Called only where [`estimate`] gave a size.
pub fn write(values: &[i64], out: &mut Vec<u8>) {
    let (candidate, count) = majority(values);
    let mut listed = Vec::with_capacity(values.len() - count);
    listed.extend((0u32..).zip(values.iter().copied()).filter(|(_, value)| *value != candidate));
    write_listed(candidate, &listed, out);
}

/// Size in bytes of a block of `rows` rows of which those in `listed`, rising, are not `0`. `None` when
/// those are too many, or packing them takes less.
pub fn estimate_listed(rows: usize, listed: &[(u32, i64)]) -> Option<usize> {
    let rest: Vec<i64> = listed.iter().map(|&(_, value)| value).collect();
    size_of(rows, &rest, packed::estimate_listed(rows, listed))
}

/// Appends a block whose rows are `common` but for those listed, rising.
pub fn write_listed(common: i64, listed: &[(u32, i64)], out: &mut Vec<u8>) {
    out.put_i64(common);
    out.put_u16(listed.len() as u16);
    listed.iter().for_each(|&(row, _)| out.put_u16(row as u16));
    let rest: Vec<i64> = listed.iter().map(|&(_, value)| value).collect();
    packed::write(&rest, out);
}

/// A sparse block that is opened: the rows are decoded, their values are not.
#[derive(Clone)]
pub struct Sparse<'a> {
    common: i64,
    positions: Vec<u16>,
    values: packed::Packed<'a>,
}

/// Opens a block of `rows` rows, which takes the rest of the cursor.
///
/// Errors: `Corrupt` when the input ends too early, or the rows that differ do not rise or lie behind the block.
pub fn open<'a>(cursor: &mut Cursor<'a>, rows: usize, place: &'a str) -> Result<Sparse<'a>> {
    let common = cursor.i64()?;
    let count = usize::from(cursor.u16()?);
    let mut positions = Cursor::new(cursor.take(count * 2)?, place);
    let positions = (0..count).map(|_| positions.u16()).collect::<Result<Vec<_>>>()?;
    if !are_rows(&positions, rows) {
        return Err(cursor.error("sparse positions are not rising rows of the block"));
    }
    Ok(Sparse { common, positions, values: packed::open(cursor, count, place)? })
}

impl Sparse<'_> {
    /// The common value, and the rows that differ, rising, with their values: `(0, [(0, 1), (7, 8), (1_024, 1_025), …])`.
    pub fn listed(&self) -> Result<(i64, Vec<(u32, i64)>)> {
        let mut listed = Vec::with_capacity(self.positions.len());
        let mut vector = [0i64; VECTOR_ROWS];
        for (index, positions) in self.positions.chunks(VECTOR_ROWS).enumerate() {
            let (part, _) = vector.split_at_mut(positions.len());
            self.values.read(index, 0, part)?;
            let rows = positions.iter().map(|&row| u32::from(row));
            listed.extend(rows.zip(part.iter().copied()));
        }
        Ok((self.common, listed))
    }

    /// Reads rows of vector `index` into `out`, from its row `first` on.
    pub fn read(&self, index: usize, first: usize, out: &mut [i64]) -> Result<()> {
        out.fill(self.common);
        let start = index * VECTOR_ROWS + first;
        let first = self.positions.partition_point(|&row| usize::from(row) < start);
        let last = self.positions.partition_point(|&row| usize::from(row) < start + out.len());
        let mut vector = [0i64; VECTOR_ROWS];
        let mut loaded = usize::MAX;
        for at in first..last {
            // Positions count the values that differ, so their vectors are others than those of the rows.
            if at / VECTOR_ROWS != loaded {
                loaded = at / VECTOR_ROWS;
                let len = (self.positions.len() - loaded * VECTOR_ROWS).min(VECTOR_ROWS);
                let (part, _) = vector.split_at_mut(len);
                self.values.read(loaded, 0, part)?;
            }
            let row = self.positions.get(at).map_or(0, |&row| usize::from(row)) - start;
            if let (Some(slot), Some(&value)) = (out.get_mut(row), vector.get(at % VECTOR_ROWS)) {
                *slot = value;
            }
        }
        Ok(())
    }
}
