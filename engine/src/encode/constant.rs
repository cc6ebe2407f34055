//! One value for the whole block.
//!
//! The user codes of 65,536 rows of which none has a user are 9 bytes. How many rows the block has is known from outside.
//!
//! ```text
//! [5, 5, 5, 5]           offset  bytes
//! tag (written by ints)       0  00
//! value                       1  05 00 00 00 00 00 00 00
//! ```

#![cfg_attr(not(test), deny(clippy::indexing_slicing, clippy::unwrap_used))]

use crate::{
    base::coding::{Cursor, Put},
    error::Result,
};

/// Size in bytes, `None` unless all values are equal. An empty block has none either: [`super::ints::choose`] knows it.
pub fn estimate(values: &[i64]) -> Option<usize> {
    let first = values.first()?;
    values.iter().all(|value| value == first).then_some(8)
}

/// Appends the value; 0 for an empty block.
pub fn write(values: &[i64], out: &mut Vec<u8>) {
    out.put_i64(values.first().copied().unwrap_or_default());
}

/// Reads the value. Errors: `Corrupt` when the input has fewer than eight bytes.
pub fn open(cursor: &mut Cursor<'_>) -> Result<i64> {
    cursor.i64()
}
