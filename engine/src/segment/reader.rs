//! Reading a segment: sections by name, blocks checked on first touch, dictionaries kept open.

#![cfg_attr(not(test), deny(clippy::indexing_slicing, clippy::unwrap_used))]

use std::sync::{
    Arc, OnceLock,
    atomic::{AtomicBool, Ordering},
};

use super::{
    layout::{Footer, IdEncoding, Section, SectionKind, SegmentMeta, block_crc, read_trailer},
    runs::RunDirectory,
};
use crate::{
    base::{coding::Cursor, hash::crc},
    encode::{BLOCK_ROWS, VECTOR_ROWS, ints::IntBlock, numbers::NumberBlock, text},
    error::{Error, Result},
    index::{
        bitmaps::BlockBitmaps,
        zones::{CodeZone, NumberZone},
    },
    vfs::View,
};

/// An open segment.
pub struct Segment {
    meta: SegmentMeta,
    place: String,
    view: View,
    footer: Footer,
    runs: RunDirectory,
    /// For each section, which of its blocks were checked.
    checked: Vec<Vec<AtomicBool>>,
    /// For each section, its dictionary once it was read.
    dictionaries: Vec<OnceLock<Arc<[Arc<str>]>>>,
    user_hashes: OnceLock<Arc<[u128]>>,
}

impl Segment {
    /// Opens a file as the segment that `meta` describes, of database `db`.
    ///
    /// Errors: `Corrupt` when the file is another one, or its footer or run directory is damaged.
    pub fn open(view: View, meta: SegmentMeta, db: [u8; 16]) -> Result<Self> {
        let place = meta.path();
        let damaged = |detail: &str| Error::corrupt(&place, detail);
        if view.len() as u64 != meta.len {
            return Err(damaged("has another length than recorded"));
        }
        let (offset, len, footer_crc) = read_trailer(&view, &place)?;
        let bytes = view
            .get(offset..offset.saturating_add(len))
            .ok_or_else(|| damaged("the footer lies outside the file"))?;
        if footer_crc != meta.footer_crc || crc(&[meta.uuid.as_bytes(), &db, bytes]) != footer_crc {
            return Err(damaged(&format!("offset {offset}: footer checksum mismatch")));
        }
        let footer = Footer::read(bytes, &place)?;
        if footer.rows != meta.rows {
            return Err(damaged("has another number of rows than recorded"));
        }
        let flags =
            |section: &Section| section.blocks.iter().map(|_| AtomicBool::new(false)).collect();
        let mut segment = Self {
            checked: footer.sections.iter().map(flags).collect(),
            dictionaries: footer.sections.iter().map(|_| OnceLock::new()).collect(),
            user_hashes: OnceLock::new(),
            runs: RunDirectory::default(),
            meta,
            place,
            view,
            footer,
        };
        segment.runs =
            RunDirectory::read(segment.block(SectionKind::Runs, "", 0)?, &segment.place)?;
        if segment.runs.runs().iter().map(|run| u64::from(run.rows)).sum::<u64>()
            != u64::from(segment.footer.rows)
        {
            return Err(Error::corrupt(
                &segment.place,
                "runs and footer disagree on the number of rows",
            ));
        }
        Ok(segment)
    }

    /// The recorded facts.
    pub fn meta(&self) -> &SegmentMeta {
        &self.meta
    }

    /// The runs.
    pub fn runs(&self) -> &RunDirectory {
        &self.runs
    }

    /// Rows of block `index`.
    pub fn block_rows(&self, index: usize) -> usize {
        (self.footer.rows as usize).saturating_sub(index * BLOCK_ROWS).min(BLOCK_ROWS)
    }

    fn find(&self, kind: SectionKind, name: &str) -> Option<usize> {
        let wanted = (kind as u16, name);
        self.footer
            .sections
            .binary_search_by(|section| (section.kind, &*section.name).cmp(&wanted))
            .ok()
    }

    fn section(&self, at: usize) -> Result<&Section> {
        self.footer
            .sections
            .get(at)
            .ok_or_else(|| Error::corrupt(&self.place, "a section is missing"))
    }

    fn block(&self, kind: SectionKind, name: &str, index: usize) -> Result<&[u8]> {
        let at = self.find(kind, name);
        let at = at
            .ok_or_else(|| Error::corrupt(&self.place, format!("lacks section {kind:?} {name}")))?;
        self.block_at(at, index)
    }

    /// A block's bytes, checked on first touch.
    fn block_at(&self, at: usize, index: usize) -> Result<&[u8]> {
        let section = self.section(at)?;
        let missing = || {
            Error::corrupt(&self.place, format!("lacks block {index} of section {}", section.kind))
        };
        let block = section.blocks.get(index).ok_or_else(missing)?;
        let start = block.offset as usize;
        let bytes = self.view.get(start..start + block.len as usize).ok_or_else(missing)?;
        let checked =
            self.checked.get(at).and_then(|flags| flags.get(index)).ok_or_else(missing)?;
        if !checked.load(Ordering::Relaxed) {
            if block_crc(self.meta.uuid, section.kind, &section.name, index, bytes) != block.crc {
                return Err(Error::corrupt(
                    &self.place,
                    format!(
                        "offset {start}: checksum mismatch in section {} {}",
                        section.kind, section.name
                    ),
                ));
            }
            checked.store(true, Ordering::Relaxed);
        }
        Ok(bytes)
    }

    /// Timestamps of block `index`.
    pub fn times(&self, index: usize) -> Result<IntBlock<'_>> {
        IntBlock::open(
            self.block(SectionKind::Times, "", index)?,
            self.block_rows(index),
            &self.place,
        )
    }

    /// User codes of block `index`: 0 for none, n for the n-th of [`Segment::user_hashes`].
    pub fn user_codes(&self, index: usize) -> Result<IntBlock<'_>> {
        IntBlock::open(
            self.block(SectionKind::UserCodes, "", index)?,
            self.block_rows(index),
            &self.place,
        )
    }

    /// Hashes of the users, rising.
    pub fn user_hashes(&self) -> Result<Arc<[u128]>> {
        if let Some(hashes) = self.user_hashes.get() {
            return Ok(Arc::clone(hashes));
        }
        let at = self.find(SectionKind::UserHashes, "");
        let at = at.ok_or_else(|| Error::corrupt(&self.place, "lacks users"))?;
        let mut hashes = Vec::new();
        for index in 0..self.section(at)?.blocks.len() {
            let mut cursor = Cursor::new(self.block_at(at, index)?, &self.place);
            while cursor.remaining() > 0 {
                hashes.push(cursor.u128()?);
            }
        }
        Ok(Arc::clone(self.user_hashes.get_or_init(|| hashes.into())))
    }

    /// Event ids of block `index`.
    pub fn event_ids(&self, index: usize) -> Result<Vec<Option<Vec<u8>>>> {
        let rows = self.block_rows(index);
        let mut cursor = Cursor::new(self.block(SectionKind::EventIds, "", index)?, &self.place);
        match cursor.u8()? {
            tag if tag == IdEncoding::None as u8 => Ok(vec![None; rows]),
            tag if tag == IdEncoding::Uuid as u8 => (0..rows)
                .map(|_| Ok(Some(cursor.uuid()?.hyphenated().to_string().into_bytes())))
                .collect(),
            tag if tag == IdEncoding::Text as u8 => {
                let texts = text::read(cursor.take(cursor.remaining())?, rows, &self.place)?;
                Ok(texts.into_iter().map(|text| (!text.is_empty()).then_some(text)).collect())
            }
            _ => Err(cursor.error("event ids have an unknown encoding")),
        }
    }

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

    /// Checks every block, and reads everything that can be read.
    pub fn verify(&self) -> Result<()> {
        for at in 0..self.footer.sections.len() {
            for index in 0..self.section(at)?.blocks.len() {
                self.block_at(at, index)?;
            }
        }
        let blocks = (self.footer.rows as usize).div_ceil(BLOCK_ROWS);
        for index in 0..blocks {
            self.times(index)?.read_all()?;
            self.event_ids(index)?;
        }
        let users = self.user_hashes()?.len() as i64;
        for index in 0..blocks {
            if self.user_codes(index)?.read_all()?.iter().any(|&code| code < 0 || code > users) {
                return Err(Error::corrupt(&self.place, "a user code exceeds the users"));
            }
        }
        for section in &self.footer.sections {
            if section.kind == SectionKind::TextValues as u16
                && let Some(text) = self.text(&section.name)?
            {
                let count = text.values()?.len() as i64;
                for index in 0..blocks {
                    text.bitmaps(index)?;
                    if text.codes(index)?.read_all()?.iter().any(|&code| code < 0 || code > count) {
                        return Err(Error::corrupt(&self.place, "a code exceeds its dictionary"));
                    }
                }
            }
            if section.kind == SectionKind::Numbers as u16
                && let Some(numbers) = self.numbers(&section.name)?
            {
                let mut vector = [0.0; VECTOR_ROWS];
                for index in 0..blocks {
                    let block = numbers.block(index)?;
                    for vector_index in 0..self.block_rows(index).div_ceil(VECTOR_ROWS) {
                        block.read_vector(vector_index, &mut vector)?;
                    }
                }
            }
        }
        Ok(())
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
    /// The dictionary, sorted; code n stands for value n - 1.
    pub fn values(&self) -> Result<Arc<[Arc<str>]>> {
        let segment = self.segment;
        let slot = segment.dictionaries.get(self.values);
        let slot = slot.ok_or_else(|| Error::corrupt(&segment.place, "a section is missing"))?;
        if let Some(values) = slot.get() {
            return Ok(Arc::clone(values));
        }
        let section = segment.section(self.values)?;
        let count = Cursor::new(&section.extra, &segment.place).varint()? as usize;
        let mut values: Vec<Arc<str>> = Vec::new();
        for index in 0..section.blocks.len() {
            let here = count.saturating_sub(index * BLOCK_ROWS).min(BLOCK_ROWS);
            for bytes in text::read(segment.block_at(self.values, index)?, here, &segment.place)? {
                let value = std::str::from_utf8(&bytes)
                    .map_err(|_| Error::corrupt(&segment.place, "a dictionary is not UTF-8"))?;
                values.push(value.into());
            }
        }
        Ok(Arc::clone(slot.get_or_init(|| values.into())))
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
