//! Reading a segment: sections by name, blocks checked on first touch, users.
//!
//! ```text
//! SegmentFile::open     length, trailer, footer checksum, footer, runs and users of each tenant
//! Segment::of           the hours of the runs, and which series have rollups
//! numbers("ms")         the section, found by a hash of kind and name
//! .block(0)             first touch: fetched where this disk has a part of the file alone, and its checksum is compared; then decoded without either
//! ```
//!
//! Errors name the file, and where known the offset:
//!
//! ```text
//! seg/2025-11-02/019a….seg: has another length than recorded
//! seg/2025-11-02/019a….seg: offset 2628: footer checksum mismatch
//! seg/2025-11-02/019a….seg: offset 1280: checksum mismatch in section 9 ms
//! seg/2025-11-02/019a….seg: runs and footer disagree on the number of rows
//! ```
//!
//! Only questions that need the damaged block fail; the segment stays open for all others.

#![cfg_attr(not(test), deny(clippy::indexing_slicing, clippy::unwrap_used))]

use std::{
    io,
    ops::{Deref, Range},
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU32, Ordering},
    },
};

use super::{
    event_id_prefix::EventIdCondition,
    event_ids::EventIds,
    layout::{
        self, Database, Footer, MINOR, Section, SectionKind, SegmentMeta, TRAILER_LEN, Trailer,
        USERS_A_BLOCK, block_crc, read_trailer,
    },
    rollup_directory::read_series,
    run_summaries::{Hours, RunSummaries},
    runs::RunDirectory,
    tenants::Tenants,
};
use crate::{
    base::{coding::Cursor, hash},
    encode::{
        BLOCK_ROWS,
        ints::IntBlock,
        text::{self, TextList},
    },
    error::{Error, Limit, Result},
    vfs::View,
};

/// The file of an open segment: its sections, and the rows of each tenant and namespace.
pub struct SegmentFile {
    db: Database,
    meta: SegmentMeta,
    pub(super) place: String,
    pub(super) minor: u16,
    view: View,
    footer: Footer,
    /// Hash of kind and name of each section with its index in the table, rising by hash: names
    /// begin alike and compare slowly, and every query looks up some.
    by_name: Vec<(u64, u32)>,
    tenants: Tenants,
    namespaces: Arc<[u32]>,
    /// Of each namespace, the earliest time of its rows and the latest.
    namespace_bounds: Arc<[(i64, i64)]>,
    /// For each section, which of its blocks were checked.
    checked: Vec<Vec<AtomicBool>>,
    /// Whether a block was not what its checksum says.
    is_damaged: AtomicBool,
    /// Whether a block was read since [`idle_rounds`](Self::idle_rounds) was called last, and how often none was.
    is_used: AtomicBool,
    idle_rounds: AtomicU32,
}

/// An open segment: a file with its decoded directories.
pub struct Segment {
    pub(super) file: Arc<SegmentFile>,
    directory_bytes: usize,
    runs: RunDirectory,
    rolled_up: Vec<u32>,
    rolled_up_events: Vec<u32>,
}

impl Deref for Segment {
    type Target = SegmentFile;

    fn deref(&self) -> &SegmentFile {
        &self.file
    }
}

/// Has a part of a file on this disk.
fn load(view: &View, part: Range<usize>, place: &str) -> Result<()> {
    view.load(part).map_err(|error| match error.kind() {
        // It is there, and is another one.
        io::ErrorKind::InvalidData => Error::corrupt(place, error.to_string()),
        _ => Error::limit(Limit::Unreachable, format!("{place}: {error}")),
    })
}

/// A flag for each block of each section, none of which was checked.
fn unchecked(footer: &Footer) -> Vec<Vec<AtomicBool>> {
    let flags = |section: &Section| section.blocks.iter().map(|_| AtomicBool::new(false)).collect();
    footer.sections.iter().map(flags).collect()
}

/// A hash of kind and name, in memory only: nothing that is stored depends on it.
fn name_hash(kind: u16, name: &str) -> u64 {
    hash::text_hash(name.as_bytes()) ^ u64::from(kind).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

impl Segment {
    /// Opens a file as the segment that `meta` describes, of database `db`.
    ///
    /// Errors: `Corrupt` when the file is another one, or its footer or run directory is damaged.
    pub fn open(view: View, meta: SegmentMeta, db: Database) -> Result<Self> {
        let (file, heads) = SegmentFile::open(view, meta, db)?;
        Self::of(Arc::new(file), &heads)
    }

    /// A segment whose footer is known: while it is written, before it is in the file.
    pub(super) fn assemble(
        view: View,
        meta: SegmentMeta,
        db: Database,
        footer: Footer,
    ) -> Result<Self> {
        let (file, heads) = SegmentFile::assemble(view, meta, db, footer, MINOR)?;
        Self::of(Arc::new(file), &heads)
    }

    /// The segment of a file with these runs.
    ///
    /// Errors: `Corrupt` when the rest of its directories is damaged.
    pub fn of(file: Arc<SegmentFile>, heads: &RunSummaries) -> Result<Self> {
        let runs = RunDirectory::whole(heads, &file.hours(heads)?);
        let rolled_up = file.rolled_up_list(SectionKind::RollupSeries, &runs)?;
        let rolled_up_events = file.rolled_up_list(SectionKind::RollupEvents, &runs)?;
        let mut segment = Self { file, runs, rolled_up, rolled_up_events, directory_bytes: 0 };
        segment.directory_bytes = segment.count_directory_bytes();
        Ok(segment)
    }

    /// The open file, which readers without a run directory share.
    pub fn file(&self) -> &Arc<SegmentFile> {
        &self.file
    }

    /// Bytes of its directories, which stay in memory while it is open, about: sections, runs, tenants.
    pub fn directory_bytes(&self) -> usize {
        self.directory_bytes
    }

    fn count_directory_bytes(&self) -> usize {
        let of_flags = |flags: &Vec<AtomicBool>| size_of::<Vec<AtomicBool>>() + flags.capacity();
        let lists = self.by_name.capacity() * size_of::<(u64, u32)>() + self.tenants.bytes_used();
        let rolled_up =
            (self.rolled_up.capacity() + self.rolled_up_events.capacity()) * size_of::<u32>();
        let flags: usize = self.checked.iter().map(of_flags).sum();
        self.footer.bytes_used() + self.runs.bytes_used() + lists + rolled_up + flags
    }

    /// The same segment at another level, in the same directory: from merged to sealed, which is a record in the log and no new
    /// file.
    pub fn at_level(&self, level: u8) -> Result<Self> {
        Self::open(self.view.clone(), SegmentMeta { level, ..self.meta.clone() }, self.db)
    }

    /// The same segment over another view of its file, of which no block was checked. Nothing is read for it.
    pub fn over(&self, view: View) -> Self {
        let file = Arc::new(self.file.over(view));
        let (runs, directory_bytes) = (self.runs.clone(), self.directory_bytes);
        let (rolled_up, rolled_up_events) = (self.rolled_up.clone(), self.rolled_up_events.clone());
        Self { file, directory_bytes, runs, rolled_up, rolled_up_events }
    }

    /// Positions in the run directory of the first runs of the events that have rollups, rising.
    pub fn rolled_up_events(&self) -> &[u32] {
        &self.rolled_up_events
    }

    /// Positions in the run directory of the series that have rollups, rising.
    pub fn rolled_up(&self) -> &[u32] {
        &self.rolled_up
    }

    /// The run directory: the rows of each series, with the hours in which they lie.
    pub fn runs(&self) -> &RunDirectory {
        &self.runs
    }
}

impl SegmentFile {
    /// Opens a file as the segment that `meta` describes, of database `db`; and its runs, without their hours.
    ///
    /// Errors: `Corrupt` when the file is another one, or its footer or run directory is damaged.
    pub fn open(view: View, meta: SegmentMeta, db: Database) -> Result<(Self, RunSummaries)> {
        let place = meta.path();
        let damaged = |detail: &str| Error::corrupt(&place, detail);
        if view.len() as u64 != meta.len {
            return Err(damaged("has another length than recorded"));
        }
        load(&view, view.len().saturating_sub(TRAILER_LEN)..view.len(), &place)?;
        let Trailer { footer_offset, footer_len, footer_crc, minor } = read_trailer(&view, &place)?;
        let footer = footer_offset..footer_offset.saturating_add(footer_len);
        let bytes = view.get(footer.clone());
        let bytes = bytes.ok_or_else(|| damaged("the footer lies outside the file"))?;
        load(&view, footer, &place)?;
        let expected = layout::footer_crc(meta.uuid, &db.id, minor, bytes);
        if footer_crc != meta.footer_crc || footer_crc != expected {
            return Err(damaged(&format!("offset {footer_offset}: footer checksum mismatch")));
        }
        let footer = Footer::read(bytes, &place)?;
        Self::assemble(view, meta, db, footer, minor)
    }

    fn assemble(
        view: View,
        meta: SegmentMeta,
        db: Database,
        footer: Footer,
        minor: u16,
    ) -> Result<(Self, RunSummaries)> {
        let place = meta.path();
        let damaged = |detail: &str| Error::corrupt(&place, detail);
        if footer.rows != meta.rows {
            return Err(damaged("has another number of rows than recorded"));
        }
        let sections = (0..).zip(&footer.sections);
        let mut by_name: Vec<(u64, u32)> =
            sections.map(|(at, section)| (name_hash(section.kind, &section.name), at)).collect();
        by_name.sort_unstable();
        let mut file = Self {
            db,
            by_name,
            checked: unchecked(&footer),
            is_damaged: AtomicBool::new(false),
            is_used: AtomicBool::new(true),
            idle_rounds: AtomicU32::new(0),
            tenants: Tenants::default(),
            namespaces: Arc::from([]),
            namespace_bounds: Arc::from([]),
            meta,
            place,
            minor,
            view,
            footer,
        };
        let heads = file.heads()?;
        if heads.rows() != file.footer.rows {
            let detail = "runs and footer disagree on the number of rows";
            return Err(Error::corrupt(&file.place, detail));
        }
        file.namespaces = heads.namespaces();
        file.namespace_bounds = heads.namespace_bounds();
        if let Some(at) = file.find(SectionKind::Users, "") {
            file.entry_count(at, USERS_A_BLOCK)?;
            let extra = &file.section(at)?.extra;
            file.tenants = Tenants::read(extra, heads.tenant_ends(), &file.place)?;
        }
        Ok((file, heads))
    }

    fn over(&self, view: View) -> Self {
        Self {
            db: self.db,
            meta: self.meta.clone(),
            place: self.place.clone(),
            minor: self.minor,
            view,
            footer: self.footer.clone(),
            by_name: self.by_name.clone(),
            tenants: self.tenants.clone(),
            namespaces: Arc::clone(&self.namespaces),
            namespace_bounds: Arc::clone(&self.namespace_bounds),
            checked: unchecked(&self.footer),
            is_damaged: AtomicBool::new(false),
            is_used: AtomicBool::new(false),
            idle_rounds: AtomicU32::new(0),
        }
    }

    /// The bytes of the file: those that are not on this disk have to be loaded before they are read.
    pub fn view(&self) -> &View {
        &self.view
    }

    /// Bytes of the file that are on this disk.
    pub fn cached_bytes(&self) -> u64 {
        self.view.loaded_bytes().min(self.meta.len)
    }

    /// Has a part of the file on this disk, before it returns, for another process that reads it.
    ///
    /// Errors: those of where the file is.
    pub fn load(&self, part: Range<usize>) -> io::Result<()> {
        self.note_use();
        self.view.load(part)
    }

    /// Notes that it is being read.
    pub fn note_use(&self) {
        if !self.is_used.load(Ordering::Relaxed) {
            self.is_used.store(true, Ordering::Relaxed);
        }
    }

    /// Has all of the file on this disk, before it returns: whoever reads everything waits for a few long calls instead of many short ones.
    ///
    /// Errors: those of where the file is.
    pub fn load_all(&self) -> Result<()> {
        load(&self.view, 0..self.view.len(), &self.place)
    }

    /// How often this was called since a block was read last: 0 where one was read since the last time. For whoever evicts what is not used.
    pub fn idle_rounds(&self) -> u32 {
        let rounds = match self.is_used.swap(false, Ordering::Relaxed) {
            true => 0,
            false => self.idle_rounds.load(Ordering::Relaxed).saturating_add(1),
        };
        self.idle_rounds.store(rounds, Ordering::Relaxed);
        rounds
    }

    /// Its runs, without their hours.
    ///
    /// Errors: `Corrupt`.
    pub fn heads(&self) -> Result<RunSummaries> {
        RunSummaries::read(self.block(SectionKind::Runs, "", 0)?, &self.place)
    }

    /// The hours of its runs.
    ///
    /// Errors: `Corrupt`.
    pub fn hours(&self, heads: &RunSummaries) -> Result<Hours> {
        heads.read_hours(self.block(SectionKind::Runs, "", 1)?, &self.place)
    }

    fn rolled_up_list(&self, kind: SectionKind, runs: &RunDirectory) -> Result<Vec<u32>> {
        match self.find(kind, "") {
            Some(_) => read_series(self.block(kind, "", 0)?, runs.runs().len(), &self.place),
            None => Ok(Vec::new()),
        }
    }

    /// Whether this build chooses rollups as its writer did.
    pub fn is_of_this_minor(&self) -> bool {
        self.minor == MINOR
    }

    /// Namespaces with rows, rising.
    pub fn namespaces(&self) -> Arc<[u32]> {
        Arc::clone(&self.namespaces)
    }

    /// Of each namespace, the earliest time of its rows and the latest, in milliseconds since 1970.
    pub fn namespace_bounds(&self) -> Arc<[(i64, i64)]> {
        Arc::clone(&self.namespace_bounds)
    }

    /// The section table, for inspection.
    pub fn sections(&self) -> &[Section] {
        &self.footer.sections
    }

    /// Number of blocks of rows: 2 for 65,537 rows.
    pub fn block_count(&self) -> usize {
        (self.footer.rows as usize).div_ceil(BLOCK_ROWS)
    }

    /// Names of the sections of a kind, rising: of [`SectionKind::Numbers`] the numeric properties that some row has.
    pub fn names(&self, kind: SectionKind) -> impl Iterator<Item = &str> {
        let sections = self.footer.sections.iter();
        sections.filter(move |section| section.kind == kind as u16).map(|section| &*section.name)
    }

    /// The recorded facts.
    pub fn meta(&self) -> &SegmentMeta {
        &self.meta
    }

    /// Rows of block `index`: 65,536, fewer in the last one, 0 behind it.
    pub fn block_rows(&self, index: usize) -> usize {
        (self.footer.rows as usize).saturating_sub(index * BLOCK_ROWS).min(BLOCK_ROWS)
    }

    /// Position in the section table of a section, found by a hash of its kind and name.
    pub fn find(&self, kind: SectionKind, name: &str) -> Option<usize> {
        let hash = name_hash(kind as u16, name);
        let first = self.by_name.partition_point(|(other, _)| *other < hash);
        let alike = self.by_name.iter().skip(first).take_while(|(other, _)| *other == hash);
        let is_it = |at: &usize| {
            let section = self.footer.sections.get(*at);
            section.is_some_and(|section| section.kind == kind as u16 && *section.name == *name)
        };
        alike.map(|(_, at)| *at as usize).find(is_it)
    }

    pub(super) fn section(&self, at: usize) -> Result<&Section> {
        self.footer
            .sections
            .get(at)
            .ok_or_else(|| Error::corrupt(&self.place, "a section is missing"))
    }

    pub(super) fn block(&self, kind: SectionKind, name: &str, index: usize) -> Result<&[u8]> {
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
        self.note_use();
        // Two readers may both compare: they come to the same result, so no lock is needed. But whoever finds the flag has to find the bytes, too, which may have
        // been loaded by somebody else.
        if !checked.load(Ordering::Acquire) {
            load(&self.view, start..end, &self.place).inspect_err(|error| {
                let is_damaged = matches!(error, Error::Corrupt { .. });
                self.is_damaged.fetch_or(is_damaged, Ordering::Relaxed);
            })?;
            if block_crc(self.meta.uuid, section.kind, &section.name, index, bytes) != block.crc {
                self.is_damaged.store(true, Ordering::Relaxed);
                return Err(Error::corrupt(
                    &self.place,
                    format!(
                        "offset {start}: checksum mismatch in section {} {}",
                        section.kind, section.name
                    ),
                ));
            }
            checked.store(true, Ordering::Release);
        }
        Ok(bytes)
    }

    /// Whether a block that was read is damaged.
    pub fn is_damaged(&self) -> bool {
        self.is_damaged.load(Ordering::Relaxed)
    }

    /// Whether a block was read before.
    pub(super) fn is_checked(&self, at: usize, index: usize) -> bool {
        let flag = self.checked.get(at).and_then(|flags| flags.get(index));
        flag.is_some_and(|flag| flag.load(Ordering::Acquire))
    }

    /// Timestamps of block `index`, in milliseconds since 1970. Errors: `Corrupt` when the block is damaged or missing.
    pub fn times(&self, index: usize) -> Result<IntBlock<'_>> {
        IntBlock::open(
            self.block(SectionKind::Times, "", index)?,
            self.block_rows(index),
            &self.place,
        )
    }

    /// The rows and users of each tenant.
    pub fn tenants(&self) -> &Tenants {
        &self.tenants
    }

    /// User codes of block `index`: 0 for none, n for the n-th user of the row's tenant.
    pub fn user_codes(&self, index: usize) -> Result<IntBlock<'_>> {
        IntBlock::open(
            self.block(SectionKind::UserCodes, "", index)?,
            self.block_rows(index),
            &self.place,
        )
    }

    /// Event ids of block `index`.
    pub fn event_ids(&self, index: usize) -> Result<EventIds> {
        let bytes = self.block(SectionKind::EventIds, "", index)?;
        EventIds::read(bytes, self.block_rows(index), &self.place)
    }

    /// Event ids of the rows in `ranges`, counted in block `index`, one range after the other.
    pub fn event_ids_of(&self, index: usize, ranges: &[Range<usize>]) -> Result<EventIds> {
        let bytes = self.block(SectionKind::EventIds, "", index)?;
        EventIds::read_some(bytes, self.block_rows(index), ranges, &self.place)
    }

    /// For each row in `ranges`, counted in block `index`, whether its event id meets a condition.
    /// The rows of one range follow those of the range before.
    ///
    /// Errors: `Corrupt`.
    pub fn rows_with(
        &self,
        index: usize,
        ranges: &[Range<usize>],
        ids: &EventIdCondition,
    ) -> Result<Vec<bool>> {
        let bytes = self.block(SectionKind::EventIds, "", index)?;
        ids.rows_in(bytes, self.block_rows(index), ranges, &self.place)
    }

    /// Number of users.
    pub fn user_count(&self) -> Result<usize> {
        self.entry_count(self.find(SectionKind::Users, "").unwrap_or(usize::MAX), USERS_A_BLOCK)
    }

    /// Entries of a dictionary with `a_block` entries a block. A merge allocates for the count
    /// before it reads a block, so the count must fit the number of blocks.
    pub(super) fn entry_count(&self, at: usize, a_block: usize) -> Result<usize> {
        let section = self.section(at)?;
        let count = Cursor::new(&section.extra, &self.place).varint()? as usize;
        if count.div_ceil(a_block) != section.blocks.len() {
            let detail =
                format!("section {} has another number of blocks than entries", section.kind);
            return Err(Error::corrupt(&self.place, detail));
        }
        Ok(count)
    }

    /// Code of the user with this hash among the users of a tenant, counted from 1, if any row has the user. Hashes each of the
    /// tenant's users: the ids are stored, not the hashes, and they are in the order of ids.
    pub fn user_code(&self, tenant: usize, hash: u128) -> Result<Option<i64>> {
        let users = self.tenants.users(tenant);
        let blocks = users.start / USERS_A_BLOCK..users.end.div_ceil(USERS_A_BLOCK);
        for index in blocks {
            let base = index * USERS_A_BLOCK;
            let texts = self.users(index)?;
            let here = users.start.max(base)..users.end.min(base + texts.len());
            let is_wanted = |at: &usize| self.user_hash(texts.at(at - base)) == hash;
            if let Some(at) = { here }.find(is_wanted) {
                return Ok(Some((at - users.start) as i64 + 1));
            }
        }
        Ok(None)
    }

    /// Number of blocks of users.
    pub fn user_blocks(&self) -> usize {
        let section = self.find(SectionKind::Users, "");
        section.and_then(|at| self.footer.sections.get(at)).map_or(0, |found| found.blocks.len())
    }

    /// Hash of a user's id.
    pub fn user_hash(&self, user: &[u8]) -> u128 {
        hash::user(self.db.hash_seed, user)
    }

    /// Block `index` of the users' ids, which rise within each tenant.
    pub fn users(&self, index: usize) -> Result<TextList> {
        let bytes = self.block(SectionKind::Users, "", index)?;
        let here = self.user_count()?.saturating_sub(index * USERS_A_BLOCK).min(USERS_A_BLOCK);
        text::read(bytes, here, &self.place)
    }
}
