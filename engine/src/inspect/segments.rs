//! Describes segments and id runs: contents, encodings and sizes.
//!
//! ```text
//! SegmentInfo  019a6356-6e00-7ec8-b074-7e0b5b63c210  sealed  2025-11-02  40 rows  3,918 bytes  4 series
//! SectionInfo  numbers ms     99 bytes  40 values  encodings {"decimal 2, all": 1}
//! BlockInfo    offset 1280    99 bytes  "0 to 249.75, 0 absent"
//! RunInfo      2 acme call    rows 0..28  1 hour
//! IdRunInfo    ids/02914/…    454 bytes, of which filter 84, 26 ids
//! ```
//!
//! A segment or block that cannot be read is listed like the others, with the reason in `damage`.

use std::collections::BTreeMap;

use super::Inspection;
use crate::{
    base::time::{DAY_MS, WEEK_MS, day_name},
    encode::{BLOCK_ROWS, ints::Encoding},
    error::{IoContext, Result},
    ids::{IdRun, IdRunMeta},
    index::{bitmaps::BlockBitmaps, zones::CodeZone},
    segment::{Section, SectionKind, Segment, SegmentMeta},
    store::{ID_RUN_PREFIX, SEGMENT_PREFIX},
};

/// One live segment, from its record in the keyspace and from its file.
#[derive(Debug, Clone, PartialEq)]
pub struct SegmentInfo {
    /// Name and identity of the segment.
    pub uuid: uuid::Uuid,
    /// Path of the file in the data directory.
    pub path: String,
    /// `fresh`, `merged` or `sealed`.
    pub level: &'static str,
    /// First day with rows.
    pub day_first: String,
    /// Last day with rows.
    pub day_last: String,
    /// Number of rows.
    pub rows: u64,
    /// Bytes of the file.
    pub bytes: u64,
    /// Number of series; 0 when the file cannot be read.
    pub series: u64,
    /// What is wrong with it, if anything was noticed on opening.
    pub damage: Option<String>,
}

/// One section of a segment.
#[derive(Debug, Clone, PartialEq)]
pub struct SectionInfo {
    /// Name of the kind of section; `unknown` and its number when this build does not know it.
    pub kind: String,
    /// The property, empty where there is none.
    pub column: String,
    /// Bytes of all its blocks.
    pub bytes: u64,
    /// Values in it: rows, entries of a dictionary, runs of a directory, or series and events with a rollup.
    pub values: u64,
    /// Number of blocks by encoding: `{"packed": 3, "constant": 1}`.
    pub encodings: BTreeMap<String, u64>,
    /// Blocks in the order of the section.
    pub blocks: Vec<BlockInfo>,
}

/// One block of a section.
#[derive(Debug, Clone, PartialEq)]
pub struct BlockInfo {
    /// Where it starts in the file.
    pub offset: u64,
    /// Length in the file, in bytes.
    pub bytes: u32,
    /// Name of the encoding; `?` when the block is damaged or of an unknown kind.
    pub encoding: String,
    /// Bounds of its values, `codes 1 to 4, 4 present` or `20.002 to 2016.838, 0 absent`; `None` for sections without zones.
    pub zone: Option<String>,
    /// Why the block cannot be read; `None` when it can.
    pub damage: Option<String>,
}

/// One series of a segment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunInfo {
    /// Number of the namespace that the series belongs to.
    pub namespace: u32,
    /// Tenant of the series.
    pub tenant: String,
    /// Event name of the series.
    pub event: String,
    /// First row, counted in the segment.
    pub first_row: u32,
    /// Number of rows.
    pub rows: u32,
    /// Hours with rows.
    pub hours: usize,
}

/// One id run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IdRunInfo {
    /// Name and identity of the run.
    pub uuid: uuid::Uuid,
    /// Path of the file in the data directory.
    pub path: String,
    /// Week since 1970 of the arrival of its ids, or of their latest event where that is later.
    pub generation: u32,
    /// First day of that week.
    pub day_first: String,
    /// Number of ids in the run.
    pub ids: u64,
    /// Bytes of the file.
    pub bytes: u64,
    /// Bytes of the filter among them.
    pub filter_bytes: u64,
    /// What is wrong with it, if anything was noticed on opening.
    pub damage: Option<String>,
}

impl Inspection {
    /// The records of all live segments.
    pub(super) fn segment_metas(&self) -> Result<Vec<SegmentMeta>> {
        self.tree.scan(SEGMENT_PREFIX, &[]).map(|(_, value)| SegmentMeta::read(value)).collect()
    }

    /// The records of all live id runs.
    pub(super) fn run_metas(&self) -> Result<Vec<IdRunMeta>> {
        self.tree.scan(ID_RUN_PREFIX, &[]).map(|(_, value)| IdRunMeta::read(value)).collect()
    }

    /// Opens a live segment.
    pub(super) fn open_segment(&self, meta: SegmentMeta) -> Result<Segment> {
        let path = meta.path();
        Segment::open(self.vfs.map(&path).at(&path)?, meta, self.superblock.database())
    }

    /// Opens a live id run.
    pub(super) fn open_run(&self, meta: IdRunMeta) -> Result<IdRun> {
        let path = meta.path();
        IdRun::open(self.vfs.map(&path).at(&path)?, meta, self.superblock.db)
    }

    /// All live segments, by name. Errors: `Corrupt` when a record in the keyspace is damaged; a damaged file is described.
    pub fn segments(&self) -> Result<Vec<SegmentInfo>> {
        let metas = self.segment_metas()?;
        Ok(metas.into_iter().map(|meta| self.describe(meta)).collect())
    }

    fn describe(&self, meta: SegmentMeta) -> SegmentInfo {
        let opened = self.open_segment(meta.clone());
        SegmentInfo {
            uuid: meta.uuid,
            path: meta.path(),
            level: meta.level_name(),
            day_first: day_name(meta.ts_min.div_euclid(DAY_MS)),
            day_last: day_name(meta.ts_max.div_euclid(DAY_MS)),
            rows: u64::from(meta.rows),
            bytes: meta.len,
            series: opened.as_ref().map_or(0, |segment| segment.runs().runs().len() as u64),
            damage: opened.err().map(|error| error.to_string()),
        }
    }

    /// The one live segment whose name starts with `name`.
    ///
    /// Errors: `Invalid` when none or several do: `segment: no live one is 019b`, `segment: several start with 019a`.
    pub fn find_segment(&self, name: &str) -> Result<uuid::Uuid> {
        let metas = self.segment_metas()?;
        let mut found = metas.iter().filter(|meta| meta.uuid.to_string().starts_with(name));
        match (found.next(), found.next()) {
            (Some(meta), None) => Ok(meta.uuid),
            (None, _) => {
                Err(crate::error::Error::invalid("segment", format!("no live one is {name}")))
            }
            _ => Err(crate::error::Error::invalid("segment", format!("several start with {name}"))),
        }
    }

    /// The live segment with this name, opened. Errors: `Invalid` when none is live, `Corrupt` when it cannot be opened.
    pub(super) fn segment(&self, uuid: uuid::Uuid) -> Result<Segment> {
        let meta = self.segment_metas()?.into_iter().find(|meta| meta.uuid == uuid);
        let meta = meta.ok_or_else(|| crate::error::Error::invalid("segment", "is not live"))?;
        self.open_segment(meta)
    }

    /// The sections of a segment, in the order of its section table. Reads every block, so that each is checked.
    pub fn sections(&self, uuid: uuid::Uuid) -> Result<Vec<SectionInfo>> {
        let segment = self.segment(uuid)?;
        let sections = segment.sections().iter().enumerate();
        Ok(sections.map(|(at, section)| describe_section(&segment, at, section)).collect())
    }

    /// The series of a segment.
    pub fn runs(&self, uuid: uuid::Uuid) -> Result<Vec<RunInfo>> {
        let segment = self.segment(uuid)?;
        let runs = segment.runs().runs().iter().map(|run| RunInfo {
            namespace: run.key.namespace.0,
            tenant: run.key.tenant.to_string(),
            event: run.key.name.to_string(),
            first_row: run.first_row,
            rows: run.rows,
            hours: run.hours.len(),
        });
        Ok(runs.collect())
    }

    /// All live id runs, by name.
    pub fn id_runs(&self) -> Result<Vec<IdRunInfo>> {
        let describe = |meta: IdRunMeta| {
            let opened = self.open_run(meta.clone());
            // A damaged filter does not keep a run from being opened, and is damage all the same.
            let checked = opened.as_ref().map_err(Clone::clone).and_then(IdRun::check_filter);
            IdRunInfo {
                uuid: meta.uuid,
                path: meta.path(),
                generation: meta.generation,
                day_first: day_name(i64::from(meta.generation) * (WEEK_MS / DAY_MS)),
                ids: meta.count,
                bytes: meta.len,
                filter_bytes: opened.as_ref().map_or(0, |run| run.filter_bytes() as u64),
                damage: checked.err().map(|error| error.to_string()),
            }
        };
        Ok(self.run_metas()?.into_iter().map(describe).collect())
    }
}

/// A section with its blocks. Kinds that this build does not know are shown with their sizes alone.
fn describe_section(segment: &Segment, at: usize, section: &Section) -> SectionInfo {
    let kind = SectionKind::from_number(section.kind);
    let mut info = SectionInfo {
        kind: kind
            .map_or_else(|| format!("unknown {}", section.kind), |kind| kind.name().to_owned()),
        column: section.name.clone(),
        bytes: section.blocks.iter().map(|block| u64::from(block.len)).sum(),
        values: kind.map_or(0, |kind| values_in(segment, kind, section)),
        encodings: BTreeMap::new(),
        blocks: Vec::new(),
    };
    let zones = kind.map(|kind| zones_of(segment, kind, &section.name)).unwrap_or_default();
    for (index, block) in section.blocks.iter().enumerate() {
        let bytes = segment.block_at(at, index);
        let encoding = match (&bytes, kind) {
            (Ok(bytes), Some(kind)) => encoding_of(kind, bytes, segment, &section.name),
            _ => "?".to_owned(),
        };
        *info.encodings.entry(encoding.clone()).or_default() += 1;
        info.blocks.push(BlockInfo {
            offset: block.offset,
            bytes: block.len,
            encoding,
            zone: zones.get(index).cloned(),
            damage: bytes.err().map(|error| error.to_string()),
        });
    }
    info
}

/// The number of values of a section, by its kind.
fn values_in(segment: &Segment, kind: SectionKind, section: &Section) -> u64 {
    match kind {
        SectionKind::Runs => segment.runs().runs().len() as u64,
        SectionKind::RollupSeries => segment.rolled_up().len() as u64,
        SectionKind::RollupEvents => segment.rolled_up_events().len() as u64,
        SectionKind::RollupCounts
        | SectionKind::RollupPairs
        | SectionKind::RollupNumbers
        | SectionKind::RollupNumbersBy
        | SectionKind::RollupUsers
        | SectionKind::RollupUsersBy
        | SectionKind::RollupDigests
        | SectionKind::RollupDigestsBy
        | SectionKind::RollupUserSets
        | SectionKind::RollupUserSetsBy => {
            (segment.rolled_up().len() + segment.rolled_up_events().len()) as u64
        }
        SectionKind::Users | SectionKind::TextValues => {
            let mut cursor = crate::base::coding::Cursor::new(&section.extra, "section");
            cursor.varint().unwrap_or_default()
        }
        _ => u64::from(segment.meta().rows),
    }
}

/// The encoding of a block, which its first byte tells for most kinds.
fn encoding_of(kind: SectionKind, bytes: &[u8], segment: &Segment, column: &str) -> String {
    let tag = bytes.first().copied().unwrap_or_default();
    match kind {
        SectionKind::Times | SectionKind::UserCodes | SectionKind::TextCodes => {
            Encoding::name_of(tag).to_owned()
        }
        SectionKind::EventIds => crate::segment::EventIds::encoding_name(tag).to_owned(),
        SectionKind::Numbers => match segment.numbers(column) {
            Ok(Some(numbers)) => crate::encode::numbers::describe(bytes, numbers.exponent()),
            _ => "?".to_owned(),
        },
        SectionKind::Bitmaps => match BlockBitmaps::read(bytes, "bitmaps") {
            Ok(bitmaps) => format!("roaring, {} values", bitmaps.len()),
            Err(_) => "?".to_owned(),
        },
        SectionKind::Users | SectionKind::TextValues => "front-coded zstd".to_owned(),
        SectionKind::Runs | SectionKind::RollupSeries | SectionKind::RollupEvents => {
            "directory".to_owned()
        }
        SectionKind::RollupCounts
        | SectionKind::RollupPairs
        | SectionKind::RollupNumbers
        | SectionKind::RollupNumbersBy
        | SectionKind::RollupUsers
        | SectionKind::RollupUsersBy
        | SectionKind::RollupDigests
        | SectionKind::RollupDigestsBy
        | SectionKind::RollupUserSets
        | SectionKind::RollupUserSetsBy => crate::segment::rollup_form(tag).to_owned(),
    }
}

/// The zones of a section, one a block; none for kinds without zones, or where they cannot be read.
fn zones_of(segment: &Segment, kind: SectionKind, column: &str) -> Vec<String> {
    let blocks = 0..(segment.meta().rows as usize).div_ceil(BLOCK_ROWS);
    match kind {
        SectionKind::TextCodes => {
            let Ok(Some(text)) = segment.text(column) else { return Vec::new() };
            blocks.filter_map(|index| text.zone(index).map(describe_codes)).collect()
        }
        SectionKind::Numbers => {
            let Ok(Some(numbers)) = segment.numbers(column) else { return Vec::new() };
            let describe = |index| {
                let zone = numbers.zone(index)?;
                Some(format!("{} to {}, {} absent", zone.min, zone.max, zone.absent))
            };
            blocks.filter_map(describe).collect()
        }
        _ => Vec::new(),
    }
}

/// `codes 1 to 4, 4 present` for a zone with a presence set, `codes 1 to 70000` without.
fn describe_codes(zone: &CodeZone) -> String {
    let present = zone.set.map(|set| set.iter().map(|word| word.count_ones()).sum::<u32>());
    match present {
        Some(present) => format!("codes {} to {}, {present} present", zone.min, zone.max),
        None => format!("codes {} to {}", zone.min, zone.max),
    }
}
