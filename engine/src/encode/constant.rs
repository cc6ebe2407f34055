//! One value for the whole block.

#![cfg_attr(not(test), deny(clippy::indexing_slicing, clippy::unwrap_used))]

use crate::{
    base::coding::{Cursor, Put},
    error::Result,
};

/// Size in bytes, `None` unless all values are equal.
pub fn estimate(values: &[i64]) -> Option<usize> {
    let first = values.first()?;
    values.iter().all(|value| value == first).then_some(8)
}

/// Appends the value.
pub fn write(values: &[i64], out: &mut Vec<u8>) {
    out.put_i64(values.first().copied().unwrap_or_default());
}

/// Reads the value.
pub fn open(cursor: &mut Cursor<'_>) -> Result<i64> {
    cursor.i64()
}
