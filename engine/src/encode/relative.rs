//! Integers as their distance to the smallest of them, in as few bytes as the largest distance needs.

#![cfg_attr(not(test), deny(clippy::indexing_slicing, clippy::unwrap_used))]

use super::bitpack::width_of;
use crate::{
    base::coding::{Cursor, Put},
    error::Result,
};

/// The smallest integer, and the bytes of a distance to it.
#[derive(Debug, Clone, Copy)]
pub struct Relative {
    base: i64,
    len: usize,
}

impl Relative {
    /// Bytes of the header.
    pub const HEADER_LEN: usize = 8 + 1;

    /// What suits `values`.
    pub fn to(values: impl Iterator<Item = i64> + Clone) -> Self {
        let base = values.clone().min().unwrap_or_default();
        let farthest = values.max().unwrap_or_default().wrapping_sub(base) as u64;
        Self { base, len: width_of(farthest).div_ceil(8) as usize }
    }

    /// Bytes of a distance.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Appends what a reader needs to know.
    pub fn write_header(&self, out: &mut Vec<u8>) {
        out.put_i64(self.base);
        out.put_u8(self.len as u8);
    }

    /// Appends one of the values.
    pub fn write(&self, value: i64, out: &mut Vec<u8>) {
        let distance = value.wrapping_sub(self.base) as u64;
        out.extend(distance.to_le_bytes().iter().take(self.len));
    }

    /// Reads the header back.
    pub fn read_header(cursor: &mut Cursor<'_>) -> Result<Self> {
        let (base, len) = (cursor.i64()?, usize::from(cursor.u8()?));
        if len > 8 {
            return Err(cursor.error("distances have an impossible width"));
        }
        Ok(Self { base, len })
    }

    /// Reads a value back.
    pub fn read(&self, cursor: &mut Cursor<'_>) -> Result<i64> {
        let mut bytes = [0; 8];
        bytes.iter_mut().zip(cursor.take(self.len)?).for_each(|(to, from)| *to = *from);
        Ok(self.base.wrapping_add(u64::from_le_bytes(bytes) as i64))
    }
}
