//! Differences between neighbours, as a frame of reference, restarting at each vector.
//!
//! Times inside a series rise slowly, so their differences need far fewer bits than themselves.

#![cfg_attr(not(test), deny(clippy::indexing_slicing, clippy::unwrap_used))]

use super::{VECTOR_ROWS, packed};
use crate::{
    base::coding::{Cursor, Put},
    error::Result,
};

/// Size in bytes.
pub fn estimate(values: &[i64]) -> usize {
    values.len().div_ceil(VECTOR_ROWS) * 8 + packed::estimate(&differences(values))
}

/// First value of each vector becomes difference zero: the value itself is kept apart.
fn differences(values: &[i64]) -> Vec<i64> {
    let mut out = Vec::with_capacity(values.len());
    for vector in values.chunks(VECTOR_ROWS) {
        let mut before = vector.first().copied().unwrap_or_default();
        for &value in vector {
            out.push(value.wrapping_sub(before));
            before = value;
        }
    }
    out
}

/// Appends the first value of each vector, then the packed differences.
pub fn write(values: &[i64], out: &mut Vec<u8>) {
    for vector in values.chunks(VECTOR_ROWS) {
        out.put_i64(vector.first().copied().unwrap_or_default());
    }
    packed::write(&differences(values), out);
}

/// A readable delta block.
#[derive(Clone, Copy)]
pub struct Delta<'a> {
    firsts: &'a [u8],
    differences: packed::Packed<'a>,
    place: &'a str,
}

/// Opens a block of `rows` rows, which takes the rest of the cursor.
pub fn open<'a>(cursor: &mut Cursor<'a>, rows: usize, place: &'a str) -> Result<Delta<'a>> {
    let firsts = cursor.take(rows.div_ceil(VECTOR_ROWS) * 8)?;
    Ok(Delta { firsts, differences: packed::open(cursor, rows, place)?, place })
}

impl Delta<'_> {
    /// Reads vector `index` into `out`, whose length is the vector's number of rows.
    pub fn read(&self, index: usize, out: &mut [i64]) -> Result<()> {
        let mut firsts = Cursor::new(self.firsts, self.place);
        firsts.take(index * 8)?;
        let mut value = firsts.i64()?;
        self.differences.read(index, out)?;
        for slot in out {
            value = value.wrapping_add(*slot);
            *slot = value;
        }
        Ok(())
    }
}
