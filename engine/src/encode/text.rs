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

/// Strings of a list, at most 4 GiB in all: larger lists are split by their writers.
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
    out.put_u32(plain.len() as u32);
    out.extend_from_slice(&zstd::bulk::compress(&plain, level)?);
    Ok(())
}

/// Reads a list of `count` strings back. Errors name `place`.
pub fn read(bytes: &[u8], count: usize, place: &str) -> Result<Vec<Vec<u8>>> {
    let mut cursor = Cursor::new(bytes, place);
    let len = cursor.u32()? as usize;
    if len > LIST_BYTES_MAX || len / 1_024 > cursor.remaining().saturating_mul(64) {
        return Err(cursor.error("a list claims an impossible size"));
    }
    let plain = zstd::bulk::decompress(cursor.take(cursor.remaining())?, len)
        .map_err(|error| cursor.error(&format!("a list does not decompress: {error}")))?;
    let mut cursor = Cursor::new(&plain, place);
    let mut strings: Vec<Vec<u8>> = Vec::with_capacity(count.min(plain.len()));
    for _ in 0..count {
        let shared = cursor.varint()? as usize;
        let before = strings.last().map_or(&[][..], Vec::as_slice);
        let Some(prefix) = before.get(..shared) else {
            return Err(cursor.error("a string shares more than its neighbour has"));
        };
        let string = [prefix, cursor.bytes()?].concat();
        strings.push(string);
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
            prop_assert_eq!(read(&bytes, strings.len(), "test").unwrap(), strings);
        }

        #[test]
        fn damaged_lists_never_panic(bytes: Vec<u8>, count in 0usize..1_000_000) {
            let _ = read(&bytes, count, "test");
        }
    }
}
