//! Zone maps: bounds of the values in each block of a column, to skip blocks.
//!
//! Zones lie in the footer of a segment, so they are known without a block being read.
//!
//! ```text
//! codes [1, 1, 4] of a dictionary of four values    offset  bytes
//! smallest code                                          0  01
//! largest code                                           1  04
//! presence set follows                                   2  01
//! codes 1 and 4                                          3  12 00 00 00 00 00 00 00, then 24 zeros
//!
//! numbers [1.5, absent]                             offset  bytes
//! smallest                                               0  00 00 00 00 00 00 f8 3f
//! largest                                                8  00 00 00 00 00 00 f8 3f
//! absent rows                                           16  01
//! ```
//!
//! A zone may let a block through that has no match, but never excludes one that has.

use crate::{
    base::coding::{Cursor, Put},
    error::Result,
};

/// Codes below this fit the presence set: four words of 64 bits.
const SET_CODES: u32 = 256;

/// Codes in a block of a string column, where code 0 stands for "absent".
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CodeZone {
    /// Smallest code; 0 when some row has no value.
    pub min: u32,
    /// Largest code; 0 when no row has a value.
    pub max: u32,
    /// Which codes occur, bit `c % 64` of word `c / 64`, where the dictionary has fewer than 256 values.
    pub set: Option<[u64; 4]>,
}

impl CodeZone {
    /// The zone of a block; `dictionary_len` counts values without "absent".
    pub fn of(codes: &[i64], dictionary_len: usize) -> Self {
        let min = codes.iter().copied().min().unwrap_or_default() as u32;
        let max = codes.iter().copied().max().unwrap_or_default() as u32;
        let set = (dictionary_len < SET_CODES as usize).then(|| {
            let mut set = [0u64; 4];
            for &code in codes {
                if let Some(word) = set.get_mut(code as usize / 64) {
                    *word |= 1 << (code % 64);
                }
            }
            set
        });
        Self { min, max, set }
    }

    /// The zone of a block of `rows` rows of which those in `listed` have a value.
    pub fn of_listed(rows: usize, listed: &[(u32, i64)], dictionary_len: usize) -> Self {
        let absent = (listed.len() < rows).then_some(0);
        let codes: Vec<i64> = listed.iter().map(|&(_, code)| code).chain(absent).collect();
        Self::of(&codes, dictionary_len)
    }

    /// Whether the block can hold `code`. By the set where there is one, which is exact; else by the bounds.
    pub fn may_contain(&self, code: u32) -> bool {
        match self.set {
            Some(set) => {
                set.get(code as usize / 64).is_some_and(|word| word >> (code % 64) & 1 == 1)
            }
            None => (self.min..=self.max).contains(&code),
        }
    }

    /// Appends the zone.
    pub fn write(&self, out: &mut Vec<u8>) {
        out.put_varint(u64::from(self.min));
        out.put_varint(u64::from(self.max));
        out.put_u8(u8::from(self.set.is_some()));
        for word in self.set.iter().flatten() {
            out.put_u64(*word);
        }
    }

    /// Reads a zone back. Errors: `Corrupt` when the input ends within it.
    pub fn read(cursor: &mut Cursor<'_>) -> Result<Self> {
        let (min, max) = (cursor.varint_u32()?, cursor.varint_u32()?);
        let set = match cursor.u8()? {
            0 => None,
            _ => Some([cursor.u64()?, cursor.u64()?, cursor.u64()?, cursor.u64()?]),
        };
        Ok(Self { min, max, set })
    }
}

/// Numbers in a block.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct NumberZone {
    /// Smallest number, infinity when all are absent.
    pub min: f64,
    /// Largest number, negative infinity when all are absent.
    pub max: f64,
    /// Rows without the property. Where it is the number of rows of the block, a question that needs the number skips the block.
    pub absent: u32,
}

impl NumberZone {
    /// The zone of a block.
    pub fn of(values: &[f64]) -> Self {
        let mut zone = Self { min: f64::INFINITY, max: f64::NEG_INFINITY, absent: 0 };
        for &value in values {
            if value.is_nan() {
                zone.absent += 1;
            } else {
                zone.min = zone.min.min(value);
                zone.max = zone.max.max(value);
            }
        }
        zone
    }

    /// The zone of a block of `rows` rows of which those in `listed` have a value.
    pub fn of_listed(rows: usize, listed: &[(u32, f64)]) -> Self {
        let values: Vec<f64> = listed.iter().map(|&(_, value)| value).collect();
        Self { absent: (rows - listed.len()) as u32, ..Self::of(&values) }
    }

    /// Appends the zone.
    pub fn write(&self, out: &mut Vec<u8>) {
        out.put_u64(self.min.to_bits());
        out.put_u64(self.max.to_bits());
        out.put_varint(u64::from(self.absent));
    }

    /// Reads a zone back.
    pub fn read(cursor: &mut Cursor<'_>) -> Result<Self> {
        Ok(Self {
            min: f64::from_bits(cursor.u64()?),
            max: f64::from_bits(cursor.u64()?),
            absent: cursor.varint_u32()?,
        })
    }
}
