//! Properties of a segment: string columns with their dictionaries, and numeric columns.
//!
//! ```text
//! model of four rows: "small", absent, "large", "small"
//!
//! text values   large, small       sorted, each once
//! text codes    2, 0, 1, 2         n is the n-th value, 0 is absent
//! zone          0 to 2, set {0, 1, 2}
//!
//! filter model = "small":   code_of("small") = 2, then codes are compared, never strings
//! filter model = "medium":  code_of("medium") = None: no row of the segment, without a block of codes being read
//! ```

#![cfg_attr(not(test), deny(clippy::indexing_slicing, clippy::unwrap_used))]

use std::sync::OnceLock;

use super::{dictionary::Dictionary, layout::SectionKind, reader::SegmentFile};
use crate::{
    base::coding::Cursor,
    encode::{
        BLOCK_ROWS,
        ints::IntBlock,
        numbers::NumberBlock,
        text::{self, TextList},
    },
    error::{Error, Result},
    index::{
        bitmaps::BlockBitmaps,
        zones::{CodeZone, NumberZone},
    },
};

impl SegmentFile {
    /// A string property, if any row of the segment has it. Errors: `Corrupt` when it has a dictionary and no codes.
    pub fn text(&self, name: &str) -> Result<Option<TextReader<'_>>> {
        let Some(values) = self.find(SectionKind::TextValues, name) else { return Ok(None) };
        let codes = self.find(SectionKind::TextCodes, name);
        let codes =
            codes.ok_or_else(|| Error::corrupt(&self.place, "a dictionary has no codes"))?;
        let bitmaps = self.find(SectionKind::Bitmaps, name);
        Ok(Some(TextReader { segment: self, values, codes, zones: OnceLock::new(), bitmaps }))
    }

    /// A numeric property, if any row of the segment has it.
    pub fn numbers(&self, name: &str) -> Result<Option<NumberReader<'_>>> {
        let Some(at) = self.find(SectionKind::Numbers, name) else { return Ok(None) };
        let exponent = Cursor::new(&self.section(at)?.extra, &self.place).u8()?;
        Ok(Some(NumberReader { segment: self, at, exponent, zones: OnceLock::new() }))
    }
}

/// A string property of a segment.
pub struct TextReader<'a> {
    segment: &'a SegmentFile,
    values: usize,
    codes: usize,
    /// Read when the first is asked for: rollups need none. Empty where they are unreadable: then no block is left out.
    zones: OnceLock<Vec<CodeZone>>,
    bitmaps: Option<usize>,
}

impl<'a> TextReader<'a> {
    /// The segment's file, for errors.
    pub fn place(&self) -> &str {
        &self.segment.place
    }

    /// A key for caches that no other dictionary has: its segment, and the index of its section.
    pub fn key(&self) -> (uuid::Uuid, usize) {
        (self.segment.meta().uuid, self.values)
    }

    /// The whole dictionary, decompressed: for queries that print values. Errors: `Corrupt` when a block is damaged or not UTF-8.
    pub fn dictionary(&self) -> Result<Dictionary> {
        let blocks = (0..self.value_blocks()?).map(|index| self.value_block(index));
        Dictionary::new(blocks.collect::<Result<_>>()?, &self.segment.place)
    }

    /// Number of blocks of the dictionary.
    pub fn value_blocks(&self) -> Result<usize> {
        Ok(self.segment.section(self.values)?.blocks.len())
    }

    /// Number of values in the dictionary.
    pub fn value_count(&self) -> Result<usize> {
        self.segment.entry_count(self.values, BLOCK_ROWS)
    }

    /// Block `index` of the dictionary, not kept in memory.
    pub fn value_block(&self, index: usize) -> Result<TextList> {
        let here = self.value_count()?.saturating_sub(index * BLOCK_ROWS).min(BLOCK_ROWS);
        text::read(self.segment.block_at(self.values, index)?, here, &self.segment.place)
    }

    /// Code of a value, `None` when no row has it, from the few blocks that must be read to know it.
    pub fn code_of(&self, value: &str) -> Result<Option<u32>> {
        let (mut low, mut high) = (0, self.value_blocks()?);
        while low < high {
            let middle = low + (high - low) / 2;
            let block = self.value_block(middle)?;
            if value.as_bytes() < block.at(0) {
                high = middle;
            } else if let Some(at) = block.position(value.as_bytes()) {
                return Ok(Some((middle * BLOCK_ROWS + at) as u32 + 1));
            } else {
                // Behind this block's last value, or nowhere.
                low = middle + 1;
            }
        }
        Ok(None)
    }

    /// What block `index` can contain; `None` when that is not known.
    pub fn zone(&self, index: usize) -> Option<&CodeZone> {
        self.zones.get_or_init(|| self.read_zones().unwrap_or_default()).get(index)
    }

    /// What each block can contain.
    ///
    /// Errors: `Corrupt` when the list in the section's header is damaged.
    pub fn read_zones(&self) -> Result<Vec<CodeZone>> {
        let section = self.segment.section(self.codes)?;
        let mut cursor = Cursor::new(&section.extra, &self.segment.place);
        section.blocks.iter().map(|_| CodeZone::read(&mut cursor)).collect()
    }

    /// Codes of block `index`: 0 for absent, n for the n-th value.
    pub fn codes(&self, index: usize) -> Result<IntBlock<'a>> {
        let bytes = self.segment.block_at(self.codes, index)?;
        IntBlock::open(bytes, self.segment.block_rows(index), &self.segment.place)
    }

    /// Bitmaps of block `index`, for the rollup dimensions; `None` for any other property.
    pub fn bitmaps(&self, index: usize) -> Result<Option<BlockBitmaps>> {
        let Some(at) = self.bitmaps else { return Ok(None) };
        BlockBitmaps::read(self.segment.block_at(at, index)?, &self.segment.place).map(Some)
    }
}

/// A numeric property of a segment.
pub struct NumberReader<'a> {
    segment: &'a SegmentFile,
    at: usize,
    exponent: u8,
    /// Read when the first is asked for.
    zones: OnceLock<Vec<NumberZone>>,
}

impl<'a> NumberReader<'a> {
    /// Decimal exponent of the column: 0 to 15, or [`RAW`](crate::encode::numbers::RAW).
    pub fn exponent(&self) -> u8 {
        self.exponent
    }

    /// What block `index` can contain; `None` when that is not known.
    pub fn zone(&self, index: usize) -> Option<&NumberZone> {
        self.zones.get_or_init(|| self.read_zones().unwrap_or_default()).get(index)
    }

    /// What each block can contain.
    ///
    /// Errors: `Corrupt` when the list in the section's header is damaged.
    pub fn read_zones(&self) -> Result<Vec<NumberZone>> {
        let section = self.segment.section(self.at)?;
        let mut cursor = Cursor::new(&section.extra, &self.segment.place);
        cursor.u8()?;
        section.blocks.iter().map(|_| NumberZone::read(&mut cursor)).collect()
    }

    /// Values of block `index`; NaN is absent.
    pub fn block(&self, index: usize) -> Result<NumberBlock<'a>> {
        let bytes = self.segment.block_at(self.at, index)?;
        NumberBlock::open(bytes, self.segment.block_rows(index), self.exponent, &self.segment.place)
    }
}
