//! Lists of byte strings: dictionaries and cold texts.
//!
//! Neighbours share prefixes (sorted dictionaries, rising ids), so each string is written as the
//! length it shares with the one before and the rest; zstd takes what remains. A list is read as a
//! whole.
//!
//! ```text
//! the dictionary ["gpt-4o", "gpt-4o-mini", "o1"] before zstd
//!                   offset  bytes
//! shares 0, adds 6       0  00 06 67 70 74 2d 34 6f      gpt-4o
//! shares 6, adds 5       8  06 05 2d 6d 69 6e 69         -mini
//! shares 0, adds 2      15  00 02 6f 31                  o1
//! ```
//!
//! How many strings there are is known from outside. Refused: a string that shares more bytes than the one before has
//! (`a string shares more than its neighbour has`), and strings of more than 256 MiB together (`a list is too large`).

#![cfg_attr(not(test), deny(clippy::indexing_slicing, clippy::unwrap_used))]

use super::{BLOCK_ROWS, compressed};
use crate::{
    base::coding::{Cursor, Put},
    error::Result,
    event::TEXT_BYTES_MAX,
};

/// Bytes of all strings of a list, at most. A string takes three bytes to repeat the one before, so
/// sixty bytes could unfold to gigabytes.
const LIST_BYTES_MAX: usize = BLOCK_ROWS * TEXT_BYTES_MAX;
/// Bytes that describe a string, at most: two varints of lengths that fit a list.
const LENGTHS_BYTES_MAX: usize = 2 * 5;

/// Appends a list of at most [`LIST_BYTES_MAX`] in any order; sorted ones get smaller. `level` is that of zstd: 3 for
/// dictionaries, 1 for users and event ids.
///
/// Errors: the strings are too large together, or zstd fails.
pub fn write<'a>(
    strings: impl Iterator<Item = &'a [u8]>,
    level: i32,
    out: &mut Vec<u8>,
) -> std::io::Result<()> {
    let mut plain = Vec::new();
    let mut before: &[u8] = &[];
    let mut total = 0;
    for string in strings {
        total += string.len();
        if total > LIST_BYTES_MAX {
            return Err(std::io::Error::other("a list of strings is too large"));
        }
        let shared = before.iter().zip(string).take_while(|(a, b)| a == b).count();
        plain.put_varint(shared as u64);
        plain.put_bytes(string.get(shared..).unwrap_or_default());
        before = string;
    }
    compressed::write(&plain, level, out)
}

/// Byte strings end to end, so that a list of many is two allocations: `ends` is `[6, 17, 19]` for the example above and
/// `bytes` is `gpt-4ogpt-4o-minio1`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TextList {
    ends: Vec<usize>,
    bytes: Vec<u8>,
}

impl TextList {
    /// Number of strings.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Bytes of all strings, for the account of a cache: 19 above.
    pub fn bytes_used(&self) -> usize {
        self.bytes.len()
    }

    /// The string at `index`, empty behind the end.
    pub fn at(&self, index: usize) -> &[u8] {
        let end = self.ends.get(index).copied().unwrap_or_default();
        let start = index.checked_sub(1).and_then(|before| self.ends.get(before)).copied();
        self.bytes.get(start.unwrap_or_default()..end).unwrap_or_default()
    }

    /// Some of the strings, end to end, and where each ends from where the first begins. Of strings 1 to 2 above that is
    /// `gpt-4o-minio1` and `[11, 13]`: the parts of an Arrow array of strings, without a copy for each.
    pub fn some(&self, range: std::ops::Range<usize>) -> (&[u8], impl Iterator<Item = usize>) {
        let ends = self.ends.get(range.clone()).unwrap_or_default();
        let start = range.start.checked_sub(1).and_then(|before| self.ends.get(before)).copied();
        let start = start.unwrap_or_default();
        let end = ends.last().copied().unwrap_or(start);
        let bytes = self.bytes.get(start..end).unwrap_or_default();
        (bytes, ends.iter().map(move |end| end - start))
    }

    /// The index of a string in a sorted list: `position(b"o1")` is 2 above, `position(b"o3")` is `None`.
    pub fn position(&self, string: &[u8]) -> Option<usize> {
        let (mut low, mut high) = (0, self.len());
        while low < high {
            let middle = low + (high - low) / 2;
            match self.at(middle).cmp(string) {
                std::cmp::Ordering::Less => low = middle + 1,
                std::cmp::Ordering::Equal => return Some(middle),
                std::cmp::Ordering::Greater => high = middle,
            }
        }
        None
    }

    /// Appends a string.
    pub fn push(&mut self, string: &[u8]) {
        self.bytes.extend_from_slice(string);
        self.ends.push(self.bytes.len());
    }

    /// Appends a string that shares its first `shared` bytes with the last one. [`read`] has checked that the last one has so many.
    fn push_shared(&mut self, shared: usize, rest: &[u8]) {
        let start = self.ends.len().checked_sub(2).and_then(|before| self.ends.get(before));
        let start = start.copied().unwrap_or_default();
        let end = start.saturating_add(shared).min(self.bytes.len());
        self.bytes.extend_from_within(start..end);
        self.push(rest);
    }

    /// The strings in the order of their indexes.
    pub fn iter(&self) -> impl Iterator<Item = &[u8]> {
        (0..self.len()).map(|index| self.at(index))
    }

    /// Removes all strings and keeps the capacity.
    pub fn clear(&mut self) {
        self.ends.clear();
        self.bytes.clear();
    }
}

/// Reads a list of `count` strings back. Errors name `place`.
///
/// Goes over the lengths first and then reserves exactly what the strings take, so that a list that claims gigabytes is refused
/// before memory is taken for them.
/// Errors: `Corrupt` when the bytes do not decompress, a length cannot be, or there are more or fewer than `count` strings.
pub fn read(bytes: &[u8], count: usize, place: &str) -> Result<TextList> {
    let len_max = count.saturating_mul(LENGTHS_BYTES_MAX).saturating_add(LIST_BYTES_MAX);
    let plain = compressed::read(Cursor::new(bytes, place), len_max)?;
    let total = unfolded_len(Cursor::new(&plain, place), count)?;
    let mut cursor = Cursor::new(&plain, place);
    let mut strings = TextList::default();
    strings.ends.reserve(count);
    strings.bytes.reserve(total);
    for _ in 0..count {
        let shared = cursor.varint()? as usize;
        strings.push_shared(shared, cursor.bytes()?);
    }
    Ok(strings)
}

/// Bytes of all strings: the sum of their lengths, shared bytes included.
fn unfolded_len(mut cursor: Cursor<'_>, count: usize) -> Result<usize> {
    let (mut last, mut total) = (0, 0);
    for _ in 0..count {
        let shared = usize::try_from(cursor.varint()?).unwrap_or(usize::MAX);
        if shared > last {
            return Err(cursor.error("a string shares more than its neighbour has"));
        }
        last = shared + cursor.bytes()?.len();
        total += last;
        if total > LIST_BYTES_MAX {
            return Err(cursor.error("a list is too large"));
        }
    }
    cursor.finish()?;
    Ok(total)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn lists_round_trip(strings: Vec<Vec<u8>>) {
            let mut bytes = Vec::new();
            write(strings.iter().map(Vec::as_slice), 3, &mut bytes).unwrap();
            let list = read(&bytes, strings.len(), "test").unwrap();
            prop_assert!(list.iter().eq(strings.iter().map(Vec::as_slice)));
            for from in 0..=strings.len() {
                let (bytes, ends) = list.some(from..strings.len());
                prop_assert_eq!(bytes, strings[from..].concat());
                let mut start = 0;
                for (end, string) in ends.zip(&strings[from..]) {
                    prop_assert_eq!(&bytes[start..end], &**string);
                    start = end;
                }
            }
        }

        #[test]
        fn damaged_lists_never_panic(bytes: Vec<u8>, count in 0usize..1_000_000) {
            let _ = read(&bytes, count, "test");
        }
    }

    /// Each string repeated the one before in three bytes: sixty bytes became four gigabytes.
    #[test]
    fn a_list_that_unfolds_to_gigabytes_is_refused() {
        let mut plain = Vec::new();
        plain.put_varint(0);
        plain.put_bytes(&vec![b'a'; 60_000]);
        for _ in 1..BLOCK_ROWS {
            plain.put_varint(60_000);
            plain.put_bytes(b"");
        }
        let mut bytes = (plain.len() as u32).to_le_bytes().to_vec();
        bytes.extend(zstd::bulk::compress(&plain, 3).unwrap());
        assert!(bytes.len() < 1_000, "{} bytes", bytes.len());
        let error = read(&bytes, BLOCK_ROWS, "test").unwrap_err();
        assert!(error.to_string().contains("too large"), "{error}");
        let string = vec![b'a'; 60_000];
        let strings = std::iter::repeat_n(&string[..], BLOCK_ROWS);
        assert!(write(strings, 1, &mut Vec::new()).is_err(), "nor is it written");
    }
}
