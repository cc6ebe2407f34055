//! Strings of one length, such as random ids: for each position, which of the bytes seen there it has.
//!
//! `evt_9f86d081884c7d65` takes no bit for its first four characters and four for each of the others, which is all
//! that chance put into it; letters and digits take six bits each. There is nothing to gain from what repeats: lists
//! that rise, or have lengths of their own, are for [`super::text`].
//!
//! ```text
//! ["ev1", "ev3", "ev2", "ev3"]   offset  bytes
//! length                              0  03
//! alphabets                           1  03
//! alphabet 0: one byte, e             2  00 65
//! alphabet 1: one byte, v             4  00 76
//! alphabet 2: three, 1 2 3            6  02 31 32 33
//! alphabet of each position          10  00 01 02
//! numbers, 0 + 0 + 2 bits a string   13  98                (0, 2, 1, 2: 0b10_01_10_00)
//! ```
//!
//! A thousand times `abc` takes 11 bytes: no position has a choice. A search compares packed bits instead of strings: the
//! first 57 bits of a row with those of the string in question ([`PackedStrings::first_bits`]).

#![cfg_attr(not(test), deny(clippy::indexing_slicing, clippy::unwrap_used))]

use std::ops::Range;

use super::{rising::BitWriter, text::TextList};
use crate::{
    base::coding::{Cursor, Put},
    error::Result,
};

/// Bytes of a string, at most.
const LEN_MAX: usize = 256;

/// The bytes that occur at a position, rising: the ten digits, or `e` alone. The number of a byte is its index here.
type Alphabet = Vec<u8>;

/// How strings of one length are written: positions with the same bytes share an alphabet.
pub struct Characters {
    alphabets: Vec<Alphabet>,
    /// The alphabet of each position.
    positions: Vec<usize>,
}

impl Characters {
    /// The alphabets of strings; `None` where these are of several lengths, empty, longer than 256 bytes, or where there are
    /// none.
    pub fn of<'a>(strings: impl Iterator<Item = &'a [u8]>) -> Option<Self> {
        let mut seen: Vec<[bool; 256]> = Vec::new();
        for string in strings {
            if seen.is_empty() && string.len() <= LEN_MAX {
                seen.resize(string.len(), [false; 256]);
            }
            if string.is_empty() || string.len() != seen.len() {
                return None;
            }
            for (seen, &byte) in seen.iter_mut().zip(string) {
                if let Some(seen) = seen.get_mut(usize::from(byte)) {
                    *seen = true;
                }
            }
        }
        let (mut alphabets, mut positions) = (Vec::<Alphabet>::new(), Vec::new());
        for seen in seen {
            let alphabet: Alphabet =
                (0..=u8::MAX).zip(seen).filter_map(|(byte, seen)| seen.then_some(byte)).collect();
            let known = alphabets.iter().position(|known| *known == alphabet);
            positions.push(known.unwrap_or(alphabets.len()));
            if known.is_none() {
                alphabets.push(alphabet);
            }
        }
        (!positions.is_empty()).then_some(Self { alphabets, positions })
    }

    /// The alphabet of each position.
    fn by_position(&self) -> impl Iterator<Item = &Alphabet> {
        self.positions.iter().filter_map(|&index| self.alphabets.get(index))
    }

    /// Bytes that so many strings take, at most: both counts are reckoned with two bytes, where small ones take one.
    pub fn bytes(&self, strings: usize) -> usize {
        let alphabets: usize = self.alphabets.iter().map(|alphabet| 1 + alphabet.len()).sum();
        let bits: usize = self.by_position().map(|alphabet| bits_of(alphabet) as usize).sum();
        4 + alphabets + self.positions.len() + (strings * bits).div_ceil(8)
    }

    /// Appends strings, those that the alphabets were taken from: a byte that an alphabet lacks would become its first one.
    pub fn write<'a>(&self, strings: impl Iterator<Item = &'a [u8]>, out: &mut Vec<u8>) {
        out.put_varint(self.positions.len() as u64);
        out.put_varint(self.alphabets.len() as u64);
        for alphabet in &self.alphabets {
            out.put_u8((alphabet.len() - 1) as u8);
            out.extend_from_slice(alphabet);
        }
        self.positions.iter().for_each(|&alphabet| out.put_u8(alphabet as u8));
        let digits: Vec<(Vec<u8>, u32)> = self
            .by_position()
            .map(|alphabet| {
                let mut digits = vec![0; 256];
                for (digit, &byte) in (0..=u8::MAX).zip(alphabet) {
                    if let Some(slot) = digits.get_mut(usize::from(byte)) {
                        *slot = digit;
                    }
                }
                (digits, bits_of(alphabet))
            })
            .collect();
        let mut writer = BitWriter::default();
        for string in strings {
            for (&byte, (digits, bits)) in string.iter().zip(&digits) {
                let digit = digits.get(usize::from(byte)).copied().unwrap_or_default();
                writer.put(digit.into(), *bits);
            }
        }
        out.extend_from_slice(&writer.finish());
    }
}

/// Bits that tell the bytes of an alphabet apart, at most 8: 0 for one byte, 4 for ten digits, 6 for letters and digits.
fn bits_of(alphabet: &Alphabet) -> u32 {
    alphabet.len().next_power_of_two().ilog2()
}

/// Reads some of `count` strings back: those in the ranges, one range after the other. Ranges may overlap and come in any order:
/// `[4..6, 0..2]` gives the strings 4, 5, 0, 1.
///
/// Errors: `Corrupt` when the bytes are not those of `count` strings, or a number has no byte in its alphabet.
pub fn read(cursor: Cursor<'_>, count: usize, ranges: &[Range<usize>]) -> Result<TextList> {
    let error = cursor.clone();
    let strings = PackedStrings::of(cursor, count)?;
    let mut list = TextList::default();
    let mut string = Vec::with_capacity(strings.positions.len());
    for range in ranges {
        let mut reader = strings.reader(range.start);
        for _ in range.clone() {
            string.clear();
            if !reader.read(&mut string) {
                return Err(error.error("a string has an unknown character"));
            }
            list.push(&string);
        }
    }
    Ok(list)
}

/// Strings as they are written, of which single ones are read or compared where they lie.
pub struct PackedStrings<'a> {
    /// The alphabet of each position, and the bits that it takes.
    positions: Vec<(u32, Alphabet)>,
    /// Bits of a string.
    bits: usize,
    packed: &'a [u8],
}

/// Bits of a string that are read at once: eight bytes have so many, wherever the first bit is.
const FIRST_BITS: usize = 57;

impl<'a> PackedStrings<'a> {
    /// Splits the bytes of `count` strings into alphabets and packed numbers.
    ///
    /// Errors: `Corrupt` when the length is 0 or above 256 or there are more alphabets than positions (`strings of one length
    /// have an impossible one`), a position names an alphabet that is not there, or the bytes are more or fewer than they take.
    pub fn of(mut cursor: Cursor<'a>, count: usize) -> Result<Self> {
        let len = cursor.varint_u32()? as usize;
        let alphabets = cursor.varint_u32()? as usize;
        if len == 0 || len > LEN_MAX || alphabets > len {
            return Err(cursor.error("strings of one length have an impossible one"));
        }
        let alphabets = (0..alphabets)
            .map(|_| {
                let len = usize::from(cursor.u8()?) + 1;
                let alphabet = cursor.take(len)?.to_vec();
                Ok((bits_of(&alphabet), alphabet))
            })
            .collect::<Result<Vec<_>>>()?;
        let positions = cursor.take(len)?.iter();
        let positions = positions.map(|&index| alphabets.get(usize::from(index)).cloned());
        let positions: Option<Vec<(u32, Alphabet)>> = positions.collect();
        let positions =
            positions.ok_or_else(|| cursor.error("a position has an unknown alphabet"))?;
        let bits: usize = positions.iter().map(|(bits, _)| *bits as usize).sum();
        let packed = cursor.take(count.saturating_mul(bits).div_ceil(8))?;
        cursor.finish()?;
        Ok(Self { positions, bits, packed })
    }

    /// A reader from the string at `row` on. The first byte may hold bits of the string before, which are shifted out.
    fn reader(&self, row: usize) -> StringReader<'_> {
        let first_bit = row.saturating_mul(self.bits);
        let mut packed = self.packed.iter().skip(first_bit / 8);
        let skipped = (first_bit % 8) as u32;
        let (rest, rest_bits) = match skipped {
            0 => (0, 0),
            _ => (u32::from(packed.next().copied().unwrap_or_default()) >> skipped, 8 - skipped),
        };
        StringReader { positions: &self.positions, packed, rest, rest_bits }
    }

    /// The first bits of a string, at most 57; equal for strings that begin alike. `ev3` in row 1 above gives 0b10: its first two
    /// characters take no bits.
    pub fn first_bits(&self, row: usize) -> u64 {
        let first_bit = row.saturating_mul(self.bits);
        let (from, shift) = (first_bit / 8, first_bit % 8);
        let word = match self.packed.get(from..).and_then(|packed| packed.first_chunk()) {
            Some(bytes) => u64::from_le_bytes(*bytes),
            None => {
                let rest = self.packed.iter().skip(from).rev();
                rest.fold(0, |word, byte| word << 8 | u64::from(*byte))
            }
        };
        word >> shift & self.first_mask()
    }

    /// The bits that [`first_bits`](Self::first_bits) has: all of a string, or 57.
    fn first_mask(&self) -> u64 {
        (1 << self.bits.min(FIRST_BITS)) - 1
    }

    /// What [`first_bits`](Self::first_bits) are of a string; `None` where none of these can be it.
    pub fn first_bits_of(&self, string: &[u8]) -> Option<u64> {
        if string.len() != self.positions.len() {
            return None;
        }
        let (mut word, mut filled) = (0, 0);
        for (byte, (bits, alphabet)) in string.iter().zip(&self.positions) {
            let digit = alphabet.iter().position(|other| other == byte)?;
            if filled < FIRST_BITS as u32 {
                word |= (digit as u64) << filled;
            }
            filled += bits;
        }
        Some(word & self.first_mask())
    }

    /// What [`first_bits`](Self::first_bits) are of strings with a prefix, and the mask of the bits that it decides; `None`
    /// where none of these strings has it.
    pub fn first_bits_of_prefix(&self, prefix: &[u8]) -> Option<(u64, u64)> {
        if prefix.len() > self.positions.len() {
            return None;
        }
        let (mut word, mut filled) = (0, 0);
        for (byte, (bits, alphabet)) in prefix.iter().zip(&self.positions) {
            let digit = alphabet.iter().position(|other| other == byte)?;
            if filled < FIRST_BITS as u32 {
                word |= (digit as u64) << filled;
            }
            filled += bits;
        }
        let mask = (1 << filled.min(FIRST_BITS as u32)) - 1;
        Some((word & mask, mask))
    }

    /// Whether a string has a prefix.
    pub fn starts_with(&self, row: usize, prefix: &[u8]) -> bool {
        let mut found = Vec::with_capacity(self.positions.len());
        self.reader(row).read(&mut found) && found.starts_with(prefix)
    }

    /// Whether a string is this one.
    pub fn is(&self, row: usize, string: &[u8]) -> bool {
        let mut found = Vec::with_capacity(string.len());
        self.reader(row).read(&mut found) && found == string
    }
}

/// Reads one string after the other.
struct StringReader<'a> {
    positions: &'a [(u32, Alphabet)],
    packed: std::iter::Skip<std::slice::Iter<'a, u8>>,
    rest: u32,
    rest_bits: u32,
}

impl StringReader<'_> {
    /// Appends the next one; false where it has an unknown character.
    fn read(&mut self, string: &mut Vec<u8>) -> bool {
        for (bits, alphabet) in self.positions {
            if self.rest_bits < *bits {
                let next = u32::from(self.packed.next().copied().unwrap_or_default());
                self.rest |= next << self.rest_bits;
                self.rest_bits += 8;
            }
            let digit = self.rest & ((1 << bits) - 1);
            (self.rest, self.rest_bits) = (self.rest >> bits, self.rest_bits - bits);
            match alphabet.get(digit as usize) {
                Some(byte) => string.push(*byte),
                None => return false,
            }
        }
        true
    }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::single_range_in_vec_init, reason = "a list of one range of rows")]

    use proptest::prelude::*;

    use super::*;

    fn write(strings: &[Vec<u8>]) -> Option<Vec<u8>> {
        let all = || strings.iter().map(Vec::as_slice);
        let characters = Characters::of(all())?;
        let mut out = Vec::new();
        characters.write(all(), &mut out);
        assert!(out.len() <= characters.bytes(strings.len()));
        Some(out)
    }

    proptest! {
        #[test]
        fn strings_of_one_length_come_back(
            len in 1usize..40,
            alphabet in prop::collection::vec(any::<u8>(), 1..80),
            picks in prop::collection::vec(prop::collection::vec(any::<prop::sample::Index>(), 40), 1..50),
        ) {
            let string = |picks: &Vec<prop::sample::Index>| {
                picks[..len].iter().map(|pick| alphabet[pick.index(alphabet.len())]).collect()
            };
            let strings: Vec<Vec<u8>> = picks.iter().map(string).collect();
            let bytes = write(&strings).unwrap();
            let all = [0..strings.len()];
            let read_back = read(Cursor::new(&bytes, "test"), strings.len(), &all).unwrap();
            prop_assert!(read_back.iter().eq(strings.iter().map(Vec::as_slice)));
            let packed = PackedStrings::of(Cursor::new(&bytes, "test"), strings.len()).unwrap();
            for (row, string) in strings.iter().enumerate() {
                prop_assert_eq!(packed.first_bits_of(string), Some(packed.first_bits(row)));
                let other = &strings[strings.len() - 1 - row];
                prop_assert_eq!(packed.is(row, other), string == other);
            }
            prop_assert_eq!(packed.first_bits_of(&strings[0][1..]), None);
            for cut in 0..bytes.len() {
                prop_assert!(read(Cursor::new(&bytes[..cut], "test"), strings.len(), &all).is_err());
            }
            // Any of them, in any order.
            let (some, others) = (strings.len() / 3..strings.len(), 0..strings.len() / 2);
            let expected = strings[some.clone()].iter().chain(&strings[others.clone()]);
            let ranges = [some, others];
            let read_back = read(Cursor::new(&bytes, "test"), strings.len(), &ranges).unwrap();
            prop_assert!(read_back.iter().eq(expected.map(Vec::as_slice)));
        }

        #[test]
        fn damaged_bytes_never_panic(bytes: Vec<u8>, count in 0usize..2_000) {
            let _ = read(Cursor::new(&bytes, "test"), count, &[0..count]);
            let _ = read(Cursor::new(&bytes, "test"), count, &[count / 2..count]);
        }
    }

    #[test]
    fn only_strings_of_one_length_are_written() {
        assert!(write(&[b"abc".to_vec(), b"ab".to_vec()]).is_none());
        assert!(write(&[Vec::new(), Vec::new()]).is_none());
        assert!(write(&[vec![b'a'; LEN_MAX + 1]]).is_none());
        assert!(write(&[]).is_none());
        assert_eq!(write(&vec![b"abc".to_vec(); 1_000]).unwrap().len(), 2 + 6 + 3);
    }

    #[test]
    fn hexadecimal_digits_take_four_bits() {
        let strings: Vec<Vec<u8>> = (1..=10_000u128)
            .map(|n| {
                format!("evt_{:032x}", n.wrapping_mul(0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c835))
            })
            .map(String::into_bytes)
            .collect();
        let bytes = write(&strings).unwrap();
        assert!(bytes.len() < 10_000 * 16 + 100, "{} bytes", bytes.len());
    }
}
