//! Differences between neighbours, as a frame of reference, restarting at each vector.
//!
//! Times inside a series rise slowly, so their differences need far fewer bits than themselves. Where
//! a series ends, the next one starts earlier: such a fall would widen its whole vector, so falls are
//! listed beside, and the values go on from there.

#![cfg_attr(not(test), deny(clippy::indexing_slicing, clippy::unwrap_used))]

use super::{VECTOR_ROWS, packed};
use crate::{
    base::coding::{Cursor, Put},
    error::Result,
};

/// Bytes of a listed fall: its row in the block and the value there.
const FALL_LEN: usize = 2 + 8;

/// What is written of some values.
struct Parts {
    /// First value of each vector.
    firsts: Vec<i64>,
    /// Rows whose value is smaller than the one before, but for first ones, and their values.
    falls: Vec<(u16, i64)>,
    /// Difference to the row before, 0 for firsts and falls.
    differences: Vec<i64>,
}

fn split(values: &[i64]) -> Parts {
    let mut parts = Parts {
        firsts: Vec::new(),
        falls: Vec::new(),
        differences: Vec::with_capacity(values.len()),
    };
    for (index, vector) in values.chunks(VECTOR_ROWS).enumerate() {
        let mut before = vector.first().copied().unwrap_or_default();
        parts.firsts.push(before);
        for (at, &value) in vector.iter().enumerate() {
            if value < before {
                parts.falls.push(((index * VECTOR_ROWS + at) as u16, value));
                parts.differences.push(0);
            } else {
                parts.differences.push(value.wrapping_sub(before));
            }
            before = value;
        }
    }
    parts
}

/// Size in bytes.
pub fn estimate(values: &[i64]) -> usize {
    let parts = split(values);
    parts.firsts.len() * 8 + 4 + parts.falls.len() * FALL_LEN + packed::estimate(&parts.differences)
}

/// Appends the first value of each vector, the falls, then the packed differences.
pub fn write(values: &[i64], out: &mut Vec<u8>) {
    let parts = split(values);
    for first in parts.firsts {
        out.put_i64(first);
    }
    out.put_u32(parts.falls.len() as u32);
    for (row, value) in parts.falls {
        out.put_u16(row);
        out.put_i64(value);
    }
    packed::write(&parts.differences, out);
}

/// A readable delta block.
#[derive(Clone)]
pub struct Delta<'a> {
    firsts: &'a [u8],
    falls: Vec<(u16, i64)>,
    differences: packed::Packed<'a>,
    place: &'a str,
}

/// Opens a block of `rows` rows, which takes the rest of the cursor.
pub fn open<'a>(cursor: &mut Cursor<'a>, rows: usize, place: &'a str) -> Result<Delta<'a>> {
    let firsts = cursor.take(rows.div_ceil(VECTOR_ROWS) * 8)?;
    let count = cursor.u32()? as usize;
    let listed = count.checked_mul(FALL_LEN).ok_or_else(|| cursor.error("has too many falls"))?;
    let mut listed = Cursor::new(cursor.take(listed)?, place);
    let falls =
        (0..count).map(|_| Ok((listed.u16()?, listed.i64()?))).collect::<Result<Vec<_>>>()?;
    if !falls.is_sorted_by(|a, b| a.0 < b.0) {
        return Err(cursor.error("falls are not sorted"));
    }
    Ok(Delta { firsts, falls, differences: packed::open(cursor, rows, place)?, place })
}

impl Delta<'_> {
    /// Reads the first rows of vector `index` into `out`.
    pub fn read(&self, index: usize, out: &mut [i64]) -> Result<()> {
        let mut firsts = Cursor::new(self.firsts, self.place);
        firsts.take(index * 8)?;
        let mut value = firsts.i64()?;
        self.differences.read(index, 0, out)?;
        let start = index * VECTOR_ROWS;
        let first = self.falls.partition_point(|(row, _)| usize::from(*row) < start);
        let mut done = 0;
        for &(row, fallen) in self.falls.iter().skip(first) {
            let at = usize::from(row) - start;
            if at >= out.len() {
                break;
            }
            add_up(out.get_mut(done..at).unwrap_or_default(), &mut value);
            if let Some(slot) = out.get_mut(at) {
                *slot = fallen;
            }
            value = fallen;
            done = at + 1;
        }
        add_up(out.get_mut(done..).unwrap_or_default(), &mut value);
        Ok(())
    }
}

/// Turns differences into values, going on from `value`.
fn add_up(differences: &mut [i64], value: &mut i64) {
    for slot in differences {
        *value = value.wrapping_add(*slot);
        *slot = *value;
    }
}
