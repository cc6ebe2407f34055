//! Properties of a segment: string columns with their dictionaries, which are kept open, and numeric
//! columns.

#![cfg_attr(not(test), deny(clippy::indexing_slicing, clippy::unwrap_used))]

use std::sync::Arc;

use super::{layout::SectionKind, reader::Segment};
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

impl Segment {
    /// A string property, if any row of the segment has it.
    pub fn text(&self, name: &str) -> Result<Option<TextReader<'_>>> {
        let Some(values) = self.find(SectionKind::TextValues, name) else { return Ok(None) };
        let codes = self.find(SectionKind::TextCodes, name);
        let codes =
            codes.ok_or_else(|| Error::corrupt(&self.place, "a dictionary has no codes"))?;
        let section = self.section(codes)?;
        let mut cursor = Cursor::new(&section.extra, &self.place);
        let zones =
            section.blocks.iter().map(|_| CodeZone::read(&mut cursor)).collect::<Result<_>>()?;
        let bitmaps = self.find(SectionKind::Bitmaps, name);
        Ok(Some(TextReader { segment: self, values, codes, zones, bitmaps }))
    }

    /// A numeric property, if any row of the segment has it.
    pub fn numbers(&self, name: &str) -> Result<Option<NumberReader<'_>>> {
        let Some(at) = self.find(SectionKind::Numbers, name) else { return Ok(None) };
        let section = self.section(at)?;
        let mut cursor = Cursor::new(&section.extra, &self.place);
        let exponent = cursor.u8()?;
        let zones =
            section.blocks.iter().map(|_| NumberZone::read(&mut cursor)).collect::<Result<_>>()?;
        Ok(Some(NumberReader { segment: self, at, exponent, zones }))
    }
}

/// A string property of a segment.
pub struct TextReader<'a> {
    segment: &'a Segment,
    values: usize,
    codes: usize,
    zones: Vec<CodeZone>,
    bitmaps: Option<usize>,
}

impl<'a> TextReader<'a> {
    /// The segment's file, for errors.
    pub fn place(&self) -> &str {
        &self.segment.place
    }

    /// The dictionary, sorted; code n stands for value n - 1.
    pub fn values(&self) -> Result<Arc<[Arc<str>]>> {
        let segment = self.segment;
        let slot = segment.dictionaries.get(self.values);
        let slot = slot.ok_or_else(|| Error::corrupt(&segment.place, "a section is missing"))?;
        if let Some(values) = slot.get() {
            return Ok(Arc::clone(values));
        }
        let mut values: Vec<Arc<str>> = Vec::new();
        for index in 0..self.value_blocks()? {
            for bytes in self.value_block(index)?.iter() {
                let value = std::str::from_utf8(bytes)
                    .map_err(|_| Error::corrupt(&segment.place, "a dictionary is not UTF-8"))?;
                values.push(value.into());
            }
        }
        Ok(Arc::clone(slot.get_or_init(|| values.into())))
    }

    /// Number of blocks of the dictionary.
    pub fn value_blocks(&self) -> Result<usize> {
        Ok(self.segment.section(self.values)?.blocks.len())
    }

    /// Number of values in the dictionary.
    pub fn value_count(&self) -> Result<usize> {
        self.segment.entry_count(self.values)
    }

    /// Block `index` of the dictionary, not kept in memory.
    pub fn value_block(&self, index: usize) -> Result<TextList> {
        let here = self.value_count()?.saturating_sub(index * BLOCK_ROWS).min(BLOCK_ROWS);
        text::read(self.segment.block_at(self.values, index)?, here, &self.segment.place)
    }

    /// Code of a value, `None` when no row has it.
    pub fn code_of(&self, value: &str) -> Result<Option<u32>> {
        let values = self.values()?;
        Ok(values.binary_search_by(|known| (**known).cmp(value)).ok().map(|at| at as u32 + 1))
    }

    /// What block `index` can contain.
    pub fn zone(&self, index: usize) -> Option<&CodeZone> {
        self.zones.get(index)
    }

    /// Codes of block `index`.
    pub fn codes(&self, index: usize) -> Result<IntBlock<'a>> {
        let bytes = self.segment.block_at(self.codes, index)?;
        IntBlock::open(bytes, self.segment.block_rows(index), &self.segment.place)
    }

    /// Bitmaps of block `index`, for the rollup dimensions.
    pub fn bitmaps(&self, index: usize) -> Result<Option<BlockBitmaps>> {
        let Some(at) = self.bitmaps else { return Ok(None) };
        BlockBitmaps::read(self.segment.block_at(at, index)?, &self.segment.place).map(Some)
    }
}

/// A numeric property of a segment.
pub struct NumberReader<'a> {
    segment: &'a Segment,
    at: usize,
    exponent: u8,
    zones: Vec<NumberZone>,
}

impl<'a> NumberReader<'a> {
    /// Decimal exponent of the column.
    pub fn exponent(&self) -> u8 {
        self.exponent
    }

    /// What block `index` can contain.
    pub fn zone(&self, index: usize) -> Option<&NumberZone> {
        self.zones.get(index)
    }

    /// Values of block `index`.
    pub fn block(&self, index: usize) -> Result<NumberBlock<'a>> {
        let bytes = self.segment.block_at(self.at, index)?;
        NumberBlock::open(bytes, self.segment.block_rows(index), self.exponent, &self.segment.place)
    }
}
