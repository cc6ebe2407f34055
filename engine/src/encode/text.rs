//! Lists of byte strings: dictionaries and cold texts.
//!
//! Neighbours share prefixes (sorted dictionaries, rising ids), so each string is written as the
//! length it shares with the one before and the rest; zstd takes what remains. A list is read as a
//! whole.

#![cfg_attr(not(test), deny(clippy::indexing_slicing, clippy::unwrap_used))]

use crate::{
    base::coding::{Cursor, Put},
    error::Result,
};

/// Bytes of a list's strings, at most; larger ones are refused.
const LIST_BYTES_MAX: usize = u32::MAX as usize;

/// Appends a list.
pub fn write<'a>(
    strings: impl Iterator<Item = &'a [u8]>,
    level: i32,
    out: &mut Vec<u8>,
) -> std::io::Result<()> {
    let mut plain = Vec::new();
    let mut before: &[u8] = &[];
    for string in strings {
        let shared = before.iter().zip(string).take_while(|(a, b)| a == b).count();
        plain.put_varint(shared as u64);
        plain.put_bytes(string.get(shared..).unwrap_or_default());
        before = string;
    }
    let len = u32::try_from(plain.len())
        .map_err(|_| std::io::Error::other("a list of strings exceeds 4 GiB"))?;
    out.put_u32(len);
    out.extend_from_slice(&zstd::bulk::compress(&plain, level)?);
    Ok(())
}

/// Byte strings end to end, so that a list of many is two allocations.
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

    /// Bytes of all strings.
    pub fn bytes_used(&self) -> usize {
        self.bytes.len()
    }

    /// The string at `index`, empty behind the end.
    pub fn at(&self, index: usize) -> &[u8] {
        let end = self.ends.get(index).copied().unwrap_or_default();
        let start = index.checked_sub(1).and_then(|before| self.ends.get(before)).copied();
        self.bytes.get(start.unwrap_or_default()..end).unwrap_or_default()
    }

    /// Appends a string.
    pub fn push(&mut self, string: &[u8]) {
        self.bytes.extend_from_slice(string);
        self.ends.push(self.bytes.len());
    }

    /// Appends a string that shares its first `shared` bytes with the last one.
    fn push_shared(&mut self, shared: usize, rest: &[u8]) -> bool {
        let start = self.ends.len().checked_sub(2).and_then(|before| self.ends.get(before));
        let start = start.copied().unwrap_or_default();
        let is_there = start + shared <= self.bytes.len();
        if is_there {
            self.bytes.extend_from_within(start..start + shared);
            self.push(rest);
        }
        is_there
    }

    /// All strings.
    pub fn iter(&self) -> impl Iterator<Item = &[u8]> {
        (0..self.len()).map(|index| self.at(index))
    }

    /// Forgets all strings and keeps the room.
    pub fn clear(&mut self) {
        self.ends.clear();
        self.bytes.clear();
    }
}

/// Reads a list of `count` strings back. Errors name `place`.
pub fn read(bytes: &[u8], count: usize, place: &str) -> Result<TextList> {
    let mut cursor = Cursor::new(bytes, place);
    let len = cursor.u32()? as usize;
    if len > LIST_BYTES_MAX || len / 1_024 > cursor.remaining().saturating_mul(64) {
        return Err(cursor.error("a list claims an impossible size"));
    }
    let plain = zstd::bulk::decompress(cursor.take(cursor.remaining())?, len)
        .map_err(|error| cursor.error(&format!("a list does not decompress: {error}")))?;
    let mut cursor = Cursor::new(&plain, place);
    let mut strings = TextList::default();
    strings.ends.reserve(count.min(plain.len()));
    strings.bytes.reserve(plain.len());
    for _ in 0..count {
        let shared = usize::try_from(cursor.varint()?).unwrap_or(usize::MAX);
        let rest = cursor.bytes()?;
        let last = strings.len().checked_sub(1).map_or(0, |last| strings.at(last).len());
        if shared > last || !strings.push_shared(shared, rest) {
            return Err(cursor.error("a string shares more than its neighbour has"));
        }
    }
    cursor.finish()?;
    Ok(strings)
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
        }

        #[test]
        fn damaged_lists_never_panic(bytes: Vec<u8>, count in 0usize..1_000_000) {
            let _ = read(&bytes, count, "test");
        }
    }
}
