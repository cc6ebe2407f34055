//! Verifying checksums of blocks before they are read, while nothing else is to do.
//!
//! The first read of a block compares its checksum, which touches every byte of it. A scan that waits for something else can
//! have that done for the rows that it will read:
//!
//! ```text
//! verify_ahead(&(70_000..90_000), …)   block 1 of times, numbers, text codes and user codes; all of dictionaries and users
//! ```

#![cfg_attr(not(test), deny(clippy::indexing_slicing, clippy::unwrap_used))]

use std::ops::Range;

use super::{SectionKind, SegmentFile};
use crate::encode::BLOCK_ROWS;

/// Kinds of sections with a block for each block of rows. Event ids have one too, but are long and seldom asked for.
const BY_ROWS: [SectionKind; 4] =
    [SectionKind::Times, SectionKind::Numbers, SectionKind::TextCodes, SectionKind::UserCodes];
/// Kinds of sections that rows of all namespaces share.
const SHARED: [SectionKind; 2] = [SectionKind::TextValues, SectionKind::Users];

impl SegmentFile {
    /// Checks the blocks of some rows, and those that they share with other rows, and returns the bytes that were checked: a later
    /// reader finds them checked, and in memory. Before each block `goes_on` gets the bytes so far; `false` ends it.
    ///
    /// A corrupt block is passed over: it stays unchecked, so the reader that needs it gets the error.
    pub fn verify_ahead(&self, rows: &Range<u32>, goes_on: &dyn Fn(u64) -> bool) -> u64 {
        let of_rows = rows.start as usize / BLOCK_ROWS..(rows.end as usize).div_ceil(BLOCK_ROWS);
        let mut bytes = 0;
        for (at, section) in self.sections().iter().enumerate() {
            let is_one =
                |kinds: &[SectionKind]| kinds.iter().any(|kind| *kind as u16 == section.kind);
            let blocks = match (is_one(&BY_ROWS), is_one(&SHARED)) {
                (true, _) => of_rows.start..of_rows.end.min(section.blocks.len()),
                (_, true) => 0..section.blocks.len(),
                _ => continue,
            };
            for index in blocks.filter(|index| !self.is_checked(at, *index)) {
                if !goes_on(bytes) {
                    return bytes;
                }
                bytes += self.block_at(at, index).map_or(0, |block| block.len() as u64);
            }
        }
        bytes
    }
}
