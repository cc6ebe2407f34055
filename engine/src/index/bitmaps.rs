//! Bitmaps of rare values in the rollup dimensions: how they are stored. `exec/segments.rs` intersects them.
//!
//! A block of codes is scanned faster than a dense bitmap is walked, so only values with few hits
//! in a block have one. The rest is left to the code-presence set of the zone and to the scan.
//!
//! ```text
//! 10,000 rows, of which 25 have code 2 and the others 0 or 1: one bitmap
//!
//! a block with code 1 in row 2 alone      offset  bytes
//! bitmaps                                      0  01
//! code                                         1  01
//! bytes of the bitmap                          2  12
//! roaring, portable form                       3  3a 30 00 00  01 00 00 00  00 00 00 00  10 00 00 00  02 00
//! ```
//!
//! Refused: codes that do not rise, rows of no block (`bitmaps have impossible codes or rows`), and bytes that the `roaring` crate
//! does not read (`a bitmap is damaged: …`).

use roaring::RoaringBitmap;

use crate::{
    base::coding::{Cursor, Put},
    error::Result,
};

/// The properties that rollups and bitmaps know. Other string properties have zones alone.
pub const ROLLUP_DIMENSIONS: [&str; 5] = ["model", "endpoint", "status", "plan", "source"];

/// A value with more hits than one row in this many has no bitmap in the block: scanning its codes is
/// then about as fast, and a hit costs two bytes.
const ROWS_PER_HIT: usize = 400;

/// Rows of a block, at most; a row of a bitmap is below it.
const BLOCK_ROWS: u32 = 65_536;

/// Bitmaps of one block: for each code with few hits, its rows within the block.
#[derive(Debug, Default, PartialEq)]
pub struct BlockBitmaps {
    /// By rising code.
    codes: Vec<(u32, RoaringBitmap)>,
}

impl BlockBitmaps {
    /// The bitmaps of a block; code 0, "absent", has none. Of 10,000 rows a value has one with up to 25 hits.
    pub fn of(codes: &[i64]) -> Self {
        let mut hits = std::collections::BTreeMap::<u32, RoaringBitmap>::new();
        let mut counts = std::collections::BTreeMap::<i64, usize>::new();
        for &code in codes {
            *counts.entry(code).or_default() += 1;
        }
        let rare = |code: &i64| {
            *code != 0 && counts.get(code).is_some_and(|count| count * ROWS_PER_HIT <= codes.len())
        };
        for (row, code) in codes.iter().enumerate().filter(|(_, code)| rare(code)) {
            hits.entry(*code as u32).or_default().insert(row as u32);
        }
        Self { codes: hits.into_iter().collect() }
    }

    /// Number of values with a bitmap.
    pub fn len(&self) -> usize {
        self.codes.len()
    }

    /// Rows of the block with `code`, if that code has a bitmap. `None` does not mean that no row has it: the zone and the codes say.
    pub fn rows(&self, code: u32) -> Option<&RoaringBitmap> {
        let at = self.codes.binary_search_by_key(&code, |(code, _)| *code).ok()?;
        self.codes.get(at).map(|(_, rows)| rows)
    }

    /// As [`BlockBitmaps::rows`], of a block whose other bitmaps are not needed.
    pub fn into_rows(mut self, code: u32) -> Option<RoaringBitmap> {
        let at = self.codes.binary_search_by_key(&code, |(code, _)| *code).ok()?;
        Some(self.codes.swap_remove(at).1)
    }

    /// Appends the bitmaps: a byte where no value is rare. Errors: none that a `Vec` gives.
    pub fn write(&self, out: &mut Vec<u8>) -> std::io::Result<()> {
        out.put_varint(self.codes.len() as u64);
        for (code, rows) in &self.codes {
            out.put_varint(u64::from(*code));
            let mut bytes = Vec::with_capacity(rows.serialized_size());
            rows.serialize_into(&mut bytes)?;
            out.put_bytes(&bytes);
        }
        Ok(())
    }

    /// Reads the bitmaps back.
    ///
    /// Errors: `Corrupt` when a bitmap cannot be read, codes do not rise, or a row is beyond the block.
    pub fn read(bytes: &[u8], place: &str) -> Result<Self> {
        let mut cursor = Cursor::new(bytes, place);
        let mut codes: Vec<(u32, RoaringBitmap)> = Vec::new();
        for _ in 0..cursor.count(2)? {
            let code = cursor.varint_u32()?;
            let rows = RoaringBitmap::deserialize_from(cursor.bytes()?)
                .map_err(|error| cursor.error(&format!("a bitmap is damaged: {error}")))?;
            // Codes are looked up by halves.
            let is_after = codes.last().is_none_or(|(last, _)| *last < code);
            if !is_after || rows.max().is_some_and(|row| row >= BLOCK_ROWS) {
                return Err(cursor.error("bitmaps have impossible codes or rows"));
            }
            codes.push((code, rows));
        }
        cursor.finish()?;
        Ok(Self { codes })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_rare_values_have_bitmaps() {
        let codes: Vec<i64> =
            (0..10_000).map(|row| if row % 400 == 0 { 2 } else { row % 2 }).collect();
        let bitmaps = BlockBitmaps::of(&codes);
        assert_eq!(bitmaps.rows(1), None, "common");
        assert_eq!(bitmaps.rows(0), None, "absent");
        assert_eq!(bitmaps.rows(2).map(RoaringBitmap::len), Some(25));
        let mut bytes = Vec::new();
        bitmaps.write(&mut bytes).unwrap();
        assert_eq!(BlockBitmaps::read(&bytes, "test").unwrap(), bitmaps);
    }

    #[test]
    fn codes_out_of_order_and_rows_of_no_block_are_refused() {
        let of = |codes: &[(u32, u32)]| {
            let codes = codes.iter().map(|&(code, row)| (code, RoaringBitmap::from([row])));
            let mut bytes = Vec::new();
            BlockBitmaps { codes: codes.collect() }.write(&mut bytes).unwrap();
            BlockBitmaps::read(&bytes, "test").is_ok()
        };
        assert!(of(&[(1, 65_535), (7, 0)]));
        assert!(!of(&[(7, 0), (1, 0)]) && !of(&[(1, 0), (1, 1)]) && !of(&[(1, 65_536)]));
    }
}
