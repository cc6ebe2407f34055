//! Reading a segment: sections by name, blocks checked on first touch, dictionaries kept open.

#![cfg_attr(not(test), deny(clippy::indexing_slicing, clippy::unwrap_used))]

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{
        Arc, OnceLock,
        atomic::{AtomicBool, Ordering},
    },
};

use xxhash_rust::xxh3::xxh3_64;

use super::{
    event_ids::EventIds,
    layout::{Database, FRESH, Footer, Section, SectionKind, SegmentMeta, block_crc, read_trailer},
    runs::RunDirectory,
};
use crate::{
    base::{
        coding::Cursor,
        hash::{self, crc},
        time::HOUR_MS,
    },
    encode::{
        BLOCK_ROWS, VECTOR_ROWS,
        ints::IntBlock,
        numbers::NumberBlock,
        text::{self, TextList},
    },
    error::{Error, Result},
    index::{
        bitmaps::BlockBitmaps,
        zones::{CodeZone, NumberZone},
    },
    vfs::View,
};

/// An open segment.
pub struct Segment {
    db: Database,
    meta: SegmentMeta,
    place: String,
    view: View,
    footer: Footer,
    runs: RunDirectory,
    days: BTreeMap<i64, u64>,
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
    pub fn open(view: View, meta: SegmentMeta, db: Database) -> Result<Self> {
        let place = meta.path();
        let damaged = |detail: &str| Error::corrupt(&place, detail);
        if view.len() as u64 != meta.len {
            return Err(damaged("has another length than recorded"));
        }
        let (offset, len, footer_crc) = read_trailer(&view, &place)?;
        let bytes = view
            .get(offset..offset.saturating_add(len))
            .ok_or_else(|| damaged("the footer lies outside the file"))?;
        if footer_crc != meta.footer_crc
            || crc(&[meta.uuid.as_bytes(), &db.id, bytes]) != footer_crc
        {
            return Err(damaged(&format!("offset {offset}: footer checksum mismatch")));
        }
        let footer = Footer::read(bytes, &place)?;
        if footer.rows != meta.rows {
            return Err(damaged("has another number of rows than recorded"));
        }
        let flags =
            |section: &Section| section.blocks.iter().map(|_| AtomicBool::new(false)).collect();
        let mut segment = Self {
            db,
            checked: footer.sections.iter().map(flags).collect(),
            dictionaries: footer.sections.iter().map(|_| OnceLock::new()).collect(),
            user_hashes: OnceLock::new(),
            runs: RunDirectory::default(),
            days: BTreeMap::new(),
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
        segment.days = segment.runs.rows_by_day();
        if segment.meta.level != FRESH && segment.days.len() > 1 {
            return Err(Error::corrupt(&segment.place, "holds more than its one day"));
        }
        Ok(segment)
    }

    /// The same segment at another level of the same day.
    pub fn at_level(&self, level: u8) -> Result<Self> {
        Self::open(self.view.clone(), SegmentMeta { level, ..self.meta.clone() }, self.db)
    }

    /// Rows of each day since 1970 that has any.
    pub fn days(&self) -> &BTreeMap<i64, u64> {
        &self.days
    }

    /// Namespaces with rows.
    pub fn namespaces(&self) -> BTreeSet<u32> {
        self.runs.runs().iter().map(|run| run.key.namespace.0).collect()
    }

    /// Bytes of dictionaries and user hashes that are kept in memory.
    pub fn kept_bytes(&self) -> usize {
        const ARC_BYTES: usize = 32;
        let dictionary = |slot: &OnceLock<Arc<[Arc<str>]>>| {
            slot.get().map_or(0, |values| {
                values.iter().map(|value| value.len() + ARC_BYTES).sum::<usize>()
            })
        };
        let hashes = self.user_hashes.get().map_or(0, |hashes| hashes.len() * 16);
        self.dictionaries.iter().map(dictionary).sum::<usize>() + hashes
    }

    /// The section table, for inspection.
    pub fn sections(&self) -> &[Section] {
        &self.footer.sections
    }

    /// Number of blocks of rows.
    pub fn block_count(&self) -> usize {
        (self.footer.rows as usize).div_ceil(BLOCK_ROWS)
    }

    /// Names of the sections of a kind.
    pub fn names(&self, kind: SectionKind) -> impl Iterator<Item = &str> {
        let sections = self.footer.sections.iter();
        sections.filter(move |section| section.kind == kind as u16).map(|section| &*section.name)
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

    /// Bytes of block `index` of section `at` of the table, checked on first touch.
    pub fn block_at(&self, at: usize, index: usize) -> Result<&[u8]> {
        let section = self.section(at)?;
        let missing = || {
            Error::corrupt(&self.place, format!("lacks block {index} of section {}", section.kind))
        };
        let block = section.blocks.get(index).ok_or_else(missing)?;
        let start = block.offset as usize;
        let end = start.checked_add(block.len as usize).ok_or_else(missing)?;
        let bytes = self.view.get(start..end).ok_or_else(missing)?;
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
        let mut hashes = Vec::with_capacity(self.user_count()?);
        for index in 0..self.user_blocks() {
            hashes.extend(self.users(index)?.0);
        }
        Ok(Arc::clone(self.user_hashes.get_or_init(|| hashes.into())))
    }

    /// Event ids of block `index`.
    pub fn event_ids(&self, index: usize) -> Result<EventIds> {
        let bytes = self.block(SectionKind::EventIds, "", index)?;
        EventIds::read(bytes, self.block_rows(index), &self.place)
    }

    /// Number of users.
    pub fn user_count(&self) -> Result<usize> {
        self.entry_count(self.find(SectionKind::Users, "").unwrap_or(usize::MAX))
    }

    /// Entries of a dictionary. Who merges makes room for so many before reading one, so its blocks
    /// must be able to hold them.
    fn entry_count(&self, at: usize) -> Result<usize> {
        let section = self.section(at)?;
        let count = Cursor::new(&section.extra, &self.place).varint()? as usize;
        if count.div_ceil(BLOCK_ROWS) != section.blocks.len() {
            let detail =
                format!("section {} has another number of blocks than entries", section.kind);
            return Err(Error::corrupt(&self.place, detail));
        }
        Ok(count)
    }

    /// Code of the user with this hash, if any row is his.
    pub fn user_code(&self, hash: u128) -> Result<Option<i64>> {
        for index in 0..self.user_blocks() {
            let (hashes, _) = self.users(index)?;
            if let Ok(at) = hashes.binary_search(&hash) {
                return Ok(Some((index * BLOCK_ROWS + at) as i64 + 1));
            }
        }
        Ok(None)
    }

    /// Number of blocks of users.
    pub fn user_blocks(&self) -> usize {
        let section = self.find(SectionKind::Users, "");
        section.and_then(|at| self.footer.sections.get(at)).map_or(0, |found| found.blocks.len())
    }

    /// Block `index` of the users: rising hashes, and their ids.
    pub fn users(&self, index: usize) -> Result<(Vec<u128>, TextList)> {
        let bytes = self.block(SectionKind::Users, "", index)?;
        let here = self.user_count()?.saturating_sub(index * BLOCK_ROWS).min(BLOCK_ROWS);
        let users = text::read(bytes, here, &self.place)?;
        let hashes = users.iter().map(|user| hash::user(self.db.hash_seed, user)).collect();
        Ok((hashes, users))
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

    /// Checks every block and reads everything that can be read. Gives a hash of the values of each
    /// column.
    pub fn verify(&self) -> Result<BTreeMap<(u16, String), u64>> {
        for at in 0..self.footer.sections.len() {
            for index in 0..self.section(at)?.blocks.len() {
                self.block_at(at, index)?;
            }
        }
        let mut hashes = BTreeMap::new();
        let mut keep = |kind: SectionKind, name: &str, hash: ColumnHash| {
            hashes.insert((kind as u16, name.to_owned()), hash.finish());
        };
        keep(SectionKind::Times, "", self.verify_times()?);
        let mut ids = ColumnHash::default();
        for index in 0..self.block_count() {
            ids.event_ids(&self.event_ids(index)?);
        }
        keep(SectionKind::EventIds, "", ids);
        let (users, count) = self.verify_users()?;
        keep(SectionKind::Users, "", users);
        let codes = self.verify_codes(count, "users", |index| self.user_codes(index))?;
        keep(SectionKind::UserCodes, "", codes);
        for name in self.names(SectionKind::TextValues) {
            if let Some(text) = self.text(name)? {
                let (values, count) = text.verify_values()?;
                keep(SectionKind::TextValues, name, values);
                let codes = self.verify_codes(count, name, |index| text.codes(index))?;
                keep(SectionKind::TextCodes, name, codes);
                for index in 0..self.block_count() {
                    text.bitmaps(index)?;
                }
            }
        }
        for name in self.names(SectionKind::Numbers) {
            if let Some(numbers) = self.numbers(name)? {
                let mut hash = ColumnHash::default();
                let mut vector = [0.0; VECTOR_ROWS];
                for index in 0..self.block_count() {
                    let block = numbers.block(index)?;
                    for at in 0..self.block_rows(index).div_ceil(VECTOR_ROWS) {
                        let len = block.read_vector(at, &mut vector)?;
                        hash.numbers(vector.get(..len).unwrap_or_default());
                    }
                }
                keep(SectionKind::Numbers, name, hash);
            }
        }
        Ok(hashes)
    }

    /// Times rise within each run, and the run directory knows where each hour starts.
    fn verify_times(&self) -> Result<ColumnHash> {
        let mut hash = ColumnHash::default();
        let mut vector = [0; VECTOR_ROWS];
        let mut runs = self.runs.runs().iter();
        let mut run = runs.next();
        let (mut row, mut before, mut hours_seen) = (0u32, i64::MIN, 0usize);
        for index in 0..self.block_count() {
            let block = self.times(index)?;
            for at in 0..self.block_rows(index).div_ceil(VECTOR_ROWS) {
                let len = block.read_vector(at, &mut vector)?;
                let times = vector.get(..len).unwrap_or_default();
                hash.ints(times);
                for &time in times {
                    let wrong = || Error::corrupt(&self.place, format!("row {row}: out of order"));
                    while run.is_some_and(|run| row >= run.first_row + run.rows) {
                        run = runs.next();
                        (before, hours_seen) = (i64::MIN, 0);
                    }
                    let here = run.ok_or_else(wrong)?;
                    if time < before || time < here.ts_min || time > here.ts_max {
                        return Err(wrong());
                    }
                    let hour = time.div_euclid(HOUR_MS);
                    if before == i64::MIN || hour != before.div_euclid(HOUR_MS) {
                        if here.hours.get(hours_seen) != Some(&(hour, row - here.first_row)) {
                            return Err(wrong());
                        }
                        hours_seen += 1;
                    }
                    before = time;
                    row += 1;
                }
            }
        }
        Ok(hash)
    }

    fn verify_users(&self) -> Result<(ColumnHash, usize)> {
        let mut users = ColumnHash::default();
        let (mut count, mut before) = (0, 0);
        for index in 0..self.user_blocks() {
            let (hashes, texts) = self.users(index)?;
            for &hash in &hashes {
                if hash <= before {
                    return Err(Error::corrupt(&self.place, "users are not in order"));
                }
                before = hash;
            }
            count += hashes.len();
            users.texts(&texts);
        }
        Ok((users, count))
    }

    fn verify_codes<'a>(
        &self,
        count: usize,
        name: &str,
        open: impl Fn(usize) -> Result<IntBlock<'a>>,
    ) -> Result<ColumnHash> {
        let mut hash = ColumnHash::default();
        let mut vector = [0; VECTOR_ROWS];
        for index in 0..self.block_count() {
            let block = open(index)?;
            for at in 0..self.block_rows(index).div_ceil(VECTOR_ROWS) {
                let len = block.read_vector(at, &mut vector)?;
                let codes = vector.get(..len).unwrap_or_default();
                if codes.iter().any(|&code| code < 0 || code > count as i64) {
                    let detail = format!("a code of {name} exceeds its dictionary");
                    return Err(Error::corrupt(&self.place, detail));
                }
                hash.ints(codes);
            }
        }
        Ok(hash)
    }
}

/// Hash of the values of a column, however they are cut into pieces.
#[derive(Default, Clone)]
pub struct ColumnHash(u64);

impl ColumnHash {
    /// Each step is a bijection of the state, so that one changed value always changes the hash.
    fn add(&mut self, value: u64) {
        self.0 = (self.0 ^ value).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29);
    }

    /// Adds a string.
    fn text(&mut self, bytes: &[u8]) {
        self.add(xxh3_64(bytes));
    }

    /// Adds integers.
    pub fn ints(&mut self, values: &[i64]) {
        values.iter().for_each(|&value| self.add(value as u64));
    }

    /// Adds numbers. Absent ones are all alike.
    pub fn numbers(&mut self, values: &[f64]) {
        for value in values {
            self.add(if value.is_nan() { u64::MAX } else { value.to_bits() });
        }
    }

    /// Adds strings.
    pub fn texts(&mut self, texts: &TextList) {
        texts.iter().for_each(|text| self.text(text));
    }

    /// Adds event ids.
    pub fn event_ids(&mut self, ids: &EventIds) {
        let mut scratch = Vec::new();
        for row in 0..ids.len() {
            self.text(ids.value(row, &mut scratch).unwrap_or_default());
        }
    }

    /// The hash.
    pub fn finish(&self) -> u64 {
        self.0
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

    fn verify_values(&self) -> Result<(ColumnHash, usize)> {
        let mut hash = ColumnHash::default();
        let (mut count, mut before) = (0, None::<Vec<u8>>);
        for index in 0..self.value_blocks()? {
            let texts = self.value_block(index)?;
            for text in texts.iter() {
                if before.as_deref().is_some_and(|before| before >= text) {
                    return Err(Error::corrupt(&self.segment.place, "a dictionary is not sorted"));
                }
                if std::str::from_utf8(text).is_err() {
                    return Err(Error::corrupt(&self.segment.place, "a dictionary is not UTF-8"));
                }
                let before = before.get_or_insert_default();
                before.clear();
                before.extend_from_slice(text);
            }
            count += texts.len();
            hash.texts(&texts);
        }
        Ok((hash, count))
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
