//! Integers as their distance to the smallest of them, in as few bytes as the largest distance needs.
//!
//! Packed blocks store the smallest value of each vector this way, delta blocks the values at which vectors and series
//! begin: first times of vectors within one day take four bytes each instead of eight, because a day has fewer than 2^32 milliseconds.
//!
//! ```text
//! [1000, 1003, 1500]     offset  bytes
//! header: base                0  e8 03 00 00 00 00 00 00
//! header: len                 8  02                       (500 needs nine bits)
//! each value, wherever the caller puts it: 00 00, 03 00, f4 01
//! ```
//!
//! Where all values are equal, `len` is 0 and a value takes no byte at all.

#![cfg_attr(not(test), deny(clippy::indexing_slicing, clippy::unwrap_used))]

use super::bitpack::width_of;
use crate::{
    base::coding::{Cursor, Put},
    error::Result,
};

/// The smallest integer, and the bytes of a distance to it: `base` 1000 and `len` 2 in the example above.
#[derive(Debug, Clone, Copy)]
pub struct Relative {
    base: i64,
    len: usize,
}

impl Relative {
    /// Bytes of the header.
    pub const HEADER_LEN: usize = 8 + 1;

    /// The frame of all `values`. Distances wrap, so that `i64::MIN` and `i64::MAX` have one of eight bytes; without values
    /// base and length are 0.
    pub fn to(values: impl Iterator<Item = i64> + Clone) -> Self {
        let base = values.clone().min().unwrap_or_default();
        let farthest = values.max().unwrap_or_default().wrapping_sub(base) as u64;
        Self { base, len: width_of(farthest).div_ceil(8) as usize }
    }

    /// Bytes of a distance, 0 to 8.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Appends base and length, [`HEADER_LEN`](Self::HEADER_LEN) bytes.
    pub fn write_header(&self, out: &mut Vec<u8>) {
        out.put_i64(self.base);
        out.put_u8(self.len as u8);
    }

    /// Appends one of the values that the frame was made for; of another one high bytes could be lost.
    pub fn write(&self, value: i64, out: &mut Vec<u8>) {
        let distance = value.wrapping_sub(self.base) as u64;
        out.extend(distance.to_le_bytes().iter().take(self.len));
    }

    /// Reads the header back. Errors: `Corrupt` when a distance has more than eight bytes.
    pub fn read_header(cursor: &mut Cursor<'_>) -> Result<Self> {
        let (base, len) = (cursor.i64()?, usize::from(cursor.u8()?));
        if len > 8 {
            return Err(cursor.error("distances have an impossible width"));
        }
        Ok(Self { base, len })
    }

    /// Reads a value back. Errors: `Corrupt` when the input ends within it.
    pub fn read(&self, cursor: &mut Cursor<'_>) -> Result<i64> {
        let mut bytes = [0; 8];
        bytes.iter_mut().zip(cursor.take(self.len)?).for_each(|(to, from)| *to = *from);
        Ok(self.base.wrapping_add(u64::from_le_bytes(bytes) as i64))
    }
}
