//! Numbers that rise, each once: as many bits as their mean distance needs, and two more for each.
//!
//! The lowest bits of all numbers stand side by side; what is left of each rises slowly, and its steps are
//! zeros before a one ([Elias-Fano](https://en.wikipedia.org/wiki/Elias%E2%80%93Fano_encoding)). A set of 300 of 5,000
//! users takes some 230 bytes.
//!
//! ```text
//! [3, 4, 10, 13, 21]     offset  bytes
//! count                       0  05
//! low bits                    1  02            (22 / 5 = 4 is their mean distance: two bits)
//! high part of the last       2  05            (21 >> 2)
//! low parts                   3  63 01         (3, 0, 2, 1, 1 in two bits each)
//! high parts                  5  55 02         (0, 1, 2, 3, 5: steps 1 01 01 01 001, lowest bit first)
//!
//! []                          0  00
//! [0]                         0  01 00 00 01
//! ```
//!
//! Refused: numbers that do not rise (`numbers do not rise`), and fewer ones than the count says (`numbers are not as many as
//! they say`).

#![cfg_attr(not(test), deny(clippy::indexing_slicing, clippy::unwrap_used))]

use crate::{
    base::coding::{Cursor, Put},
    error::Result,
};

/// Bits of a number. Low bits are at most one fewer, so that a mask of them can be shifted.
const BITS: u32 = u32::BITS;

/// Appends numbers, which rise strictly. They are codes of users, so they fit 32 bits.
pub fn write(numbers: &[u32], out: &mut Vec<u8>) {
    out.put_varint(numbers.len() as u64);
    let Some(&last) = numbers.last() else { return };
    let distance = (u64::from(last) + 1) / numbers.len() as u64;
    let low_bits = distance.max(1).ilog2().min(BITS - 1);
    out.put_u8(low_bits as u8);
    out.put_varint(u64::from(last >> low_bits));
    let mut low = BitWriter::default();
    let mask = (1u32 << low_bits) - 1;
    numbers.iter().for_each(|&number| low.put(number & mask, low_bits));
    let mut high = BitWriter::default();
    let mut before = 0;
    for number in numbers {
        let here = number >> low_bits;
        let mut zeros = here - before;
        // The writer takes at most 32 bits at a time, and a step between far numbers has more zeros.
        while zeros >= BITS {
            high.put(0, BITS);
            zeros -= BITS;
        }
        high.put(1 << zeros, zeros + 1);
        before = here;
    }
    out.extend_from_slice(&low.finish());
    out.extend_from_slice(&high.finish());
}

/// Reads numbers back.
///
/// Takes count, low and high parts from the cursor and leaves what follows to the caller.
/// Errors: `Corrupt` when they do not rise, or are not as many as they say.
pub fn read(cursor: &mut Cursor<'_>) -> Result<Vec<u32>> {
    let count = read_count(cursor)?;
    if count == 0 {
        return Ok(Vec::new());
    }
    let low_bits = u32::from(cursor.u8()?);
    let last_high = cursor.varint_u32()?;
    let high_len = (count as u64).saturating_add(last_high.into()).div_ceil(8);
    let low_len = (count as u64).saturating_mul(low_bits.into()).div_ceil(8);
    if low_bits >= BITS {
        return Err(cursor.error("numbers have too many low bits"));
    }
    // Both are taken from what is there before room is made for the numbers.
    let low = take_words(cursor, low_len)?;
    let high = take_words(cursor, high_len)?;
    let mut numbers = Vec::with_capacity(count);
    let (mut here, mut before) = (0u64, None);
    for (bytes, first_bit) in high.chunks_exact(8).zip((0u64..).step_by(64)) {
        let mut word = bytes.try_into().map_or(0, u64::from_le_bytes);
        while word != 0 && numbers.len() < count {
            let bit = first_bit + u64::from(word.trailing_zeros());
            word &= word - 1;
            // Zeros so far: all bits but the ones, which are the numbers before.
            here = bit.saturating_sub(numbers.len() as u64);
            let low = bits_at(&low, numbers.len() as u64 * u64::from(low_bits), low_bits);
            let number = (here << low_bits) | u64::from(low);
            let rises = before.is_none_or(|before| before < number);
            let Some(number) = u32::try_from(number).ok().filter(|_| rises) else {
                return Err(cursor.error("numbers do not rise"));
            };
            numbers.push(number);
            before = Some(u64::from(number));
        }
    }
    if numbers.len() < count || here != u64::from(last_high) {
        return Err(cursor.error("numbers are not as many as they say"));
    }
    Ok(numbers)
}

/// Reads how many numbers there are, and none of them: the answer to "how many users" needs no more.
///
/// Errors: `Corrupt` when the bytes end before.
pub fn read_count(cursor: &mut Cursor<'_>) -> Result<usize> {
    Ok(cursor.varint_u32()? as usize)
}

/// Takes bytes, and zeros behind them so that eight bytes can be read at each.
fn take_words(cursor: &mut Cursor<'_>, len: u64) -> Result<Vec<u8>> {
    let mut bytes = cursor.take(usize::try_from(len).unwrap_or(usize::MAX))?.to_vec();
    bytes.resize((bytes.len() / 8 + 2) * 8, 0);
    Ok(bytes)
}

/// Some bits from a position on, at most 31: with the seven before them in their byte they lie within eight bytes.
fn bits_at(words: &[u8], position: u64, bits: u32) -> u32 {
    let first = (position / 8) as usize;
    let bytes = words.get(first..first.saturating_add(8)).and_then(|bytes| bytes.try_into().ok());
    let word = bytes.map_or(0, u64::from_le_bytes);
    (word >> (position % 8)) as u32 & ((1 << bits) - 1)
}

/// Bits one behind the other, the lowest of each byte first: 1 in two bits, then 5 in three, is the byte 0x15 (0b101_01).
#[derive(Default)]
pub struct BitWriter {
    bytes: Vec<u8>,
    /// Bits that do not fill a byte yet.
    rest: u64,
    rest_bits: u32,
}

impl BitWriter {
    /// Appends the lowest `bits` of a number that has no others, at most 32.
    pub fn put(&mut self, number: u32, bits: u32) {
        self.rest |= u64::from(number) << self.rest_bits;
        self.rest_bits += bits;
        while self.rest_bits >= 8 {
            self.bytes.push(self.rest as u8);
            self.rest >>= 8;
            self.rest_bits -= 8;
        }
    }

    /// All bytes, the last one filled up with zeros.
    pub fn finish(mut self) -> Vec<u8> {
        if self.rest_bits > 0 {
            self.bytes.push(self.rest as u8);
        }
        self.bytes
    }
}

/// Reads `count` numbers of `bits` bits each, at most 8, as [`BitWriter`] has written them: which values of a dimension each
/// user has, of a dimension with at most seven.
///
/// Errors: `Corrupt` when the input has fewer bits.
pub fn read_small(cursor: &mut Cursor<'_>, count: usize, bits: u32) -> Result<Vec<u8>> {
    let len = (count as u64).saturating_mul(bits.into()).div_ceil(8);
    let bytes = take_words(cursor, len)?;
    let all = (0..count as u64).map(|at| bits_at(&bytes, at * u64::from(bits), bits) as u8);
    Ok(all.collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::rng::{Rng, SeededRng};

    fn read_all(bytes: &[u8]) -> Result<Vec<u32>> {
        let mut cursor = Cursor::new(bytes, "test");
        let numbers = read(&mut cursor)?;
        cursor.finish()?;
        Ok(numbers)
    }

    #[test]
    fn numbers_come_back() {
        let rng = SeededRng::new(3);
        let mut sets =
            vec![vec![], vec![0], vec![u32::MAX], (0..1_000).collect(), vec![7, 1 << 31, u32::MAX]];
        for _ in 0..300 {
            let (count, range) = (rng.below(500), 1 + rng.below(1 << (1 + rng.below(31))));
            let mut numbers: Vec<u32> = (0..count).map(|_| rng.below(range) as u32).collect();
            numbers.sort_unstable();
            numbers.dedup();
            sets.push(numbers);
        }
        for numbers in sets {
            let mut out = Vec::new();
            write(&numbers, &mut out);
            assert_eq!(read_all(&out).unwrap(), numbers);
            // Cut anywhere, it is an error or what it was.
            for len in 0..out.len().min(40) {
                assert!(read_all(&out[..len]).is_err());
            }
            for at in 0..out.len().min(40) {
                let mut flipped = out.clone();
                flipped[at] ^= 1 << rng.below(8);
                if let Ok(numbers) = read_all(&flipped) {
                    assert!(numbers.is_sorted_by(|a, b| a < b));
                }
            }
        }
        assert!(read_all(&[0xff, 0xff, 0xff, 0xff, 0x0f, 31, 0xff, 0xff]).is_err());
    }

    #[test]
    fn a_set_takes_little() {
        let rng = SeededRng::new(4);
        let mut numbers: Vec<u32> = (0..300).map(|_| rng.below(5_000) as u32).collect();
        numbers.sort_unstable();
        numbers.dedup();
        let mut out = Vec::new();
        write(&numbers, &mut out);
        assert!(out.len() * 8 <= numbers.len() * 6 + 64, "{} for {}", out.len(), numbers.len());
    }

    #[test]
    fn small_numbers_come_back() {
        for bits in 1..=8u32 {
            let mut writer = BitWriter::default();
            let numbers: Vec<u8> = (0..100u32).map(|n| (n * 37 % (1 << bits)) as u8).collect();
            numbers.iter().for_each(|&number| writer.put(number.into(), bits));
            let bytes = writer.finish();
            let mut cursor = Cursor::new(&bytes, "test");
            assert_eq!(read_small(&mut cursor, 100, bits).unwrap(), numbers);
        }
    }
}
