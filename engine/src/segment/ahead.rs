//! Checking blocks before somebody reads them, where there is time for it.

#![cfg_attr(not(test), deny(clippy::indexing_slicing, clippy::unwrap_used))]

use super::{SectionKind, SegmentFile};

/// What rows are read from. Ids of events are long and seldom asked for.
const OF_ROWS: [SectionKind; 6] = [
    SectionKind::Times,
    SectionKind::Numbers,
    SectionKind::TextValues,
    SectionKind::TextCodes,
    SectionKind::UserCodes,
    SectionKind::Users,
];

impl SegmentFile {
    /// Checks the blocks of rows as long as `goes_on` says so of all bytes that were checked, and returns these: the
    /// first to read them finds them checked, and in memory. Of a block that is corrupt it is told, not here.
    pub fn check_ahead(&self, goes_on: &dyn Fn(u64) -> bool) -> u64 {
        let mut bytes = 0;
        for (at, section) in self.sections().iter().enumerate() {
            if !OF_ROWS.iter().any(|kind| *kind as u16 == section.kind) {
                continue;
            }
            for index in 0..section.blocks.len() {
                if !goes_on(bytes) {
                    return bytes;
                }
                bytes += self.block_at(at, index).map_or(0, |block| block.len() as u64);
            }
        }
        bytes
    }
}
