//! Bytes of a segment: footer, section table, trailer.
//!
//! The smallest of the golden files, `seg/2025-10-31/019a3f49-ea00-77cd-9b44-4516330b8a77.seg`: 200 events of one series without
//! users and properties, 1,014 bytes.
//!
//! ```text
//! offset  bytes
//!      0  49 4e 4c 41 59 53 45 47  01 00  00 00  01 9a 3f 49 …     header: INLAYSEG, major 1, minor 0, uuid, database, crc
//!     64  blocks of the sections, each section from a multiple of 64 on
//!    770  footer:
//!         c8 00 00 00                                              200 rows
//!         00 8e 23 3a 9a 01 00 00                                  first time, 2025-10-31 12:00:00.000
//!         59 97 26 3a 9a 01 00 00                                  last time, 12:03:19.001
//!         09                                                       nine sections
//!         01 00  00  00  02                                        kind 1 (runs), no name, nothing extra, two blocks:
//!           40 00 00 00 00 00 00 00  2c 00 00 00  28 4c a5 6d        offset 64, 44 bytes, crc
//!           6c 00 00 00 00 00 00 00  0d 00 00 00  9e 70 b2 76        offset 108, 13 bytes, crc
//!         02 00  00  00  01  80 00 …                               kind 2 (times), one block from 128 on; and so on
//!    982  trailer:
//!         02 03 00 00 00 00 00 00  d4 00 00 00  b9 5e 75 47        footer: offset 770, 212 bytes, crc
//!         01 00  00 00  00 00 00 00  49 4e 4c 41 59 53 45 47       major 1, minor 0, zeros, INLAYSEG
//! ```
//!
//! Refused: a file that ends otherwise (`is not a segment`), another major version (`… has segment version 2; this build reads 1`),
//! sections that do not rise by kind and name (`sections are not in order`).

#![cfg_attr(not(test), deny(clippy::indexing_slicing, clippy::unwrap_used))]

use crate::{
    base::{
        coding::{Cursor, Put},
        hash::crc,
        time::{DAY_MS, day_name},
    },
    error::{Error, Result},
};

/// Directory of all segments; below it is one for each first day (`seg/2025-11-02`), and `seg/l0`.
pub const DIRECTORY: &str = "seg";
/// Directory of segments that may span days.
pub const FRESH_DIRECTORY: &str = "seg/l0";
/// Level of a segment fresh from the memtable; it may span days.
pub const FRESH: u8 = 0;
/// Level of a merged segment of one unit of time.
pub const MERGED: u8 = 1;
/// Level of a segment of a sealed unit.
pub const SEALED: u8 = 2;
/// First bytes of the file, and last bytes of its trailer.
pub const MAGIC: [u8; 8] = *b"INLAYSEG";
/// A reader refuses another major version.
pub const MAJOR: u16 = 1;
/// A reader skips what a later minor version adds. Each change of which rollups are made is another one.
pub const MINOR: u16 = 0;
/// Length of the header.
pub const HEADER_LEN: usize = 64;
/// Length of the trailer.
pub const TRAILER_LEN: usize = 32;
/// Sections start at multiples of this.
pub const ALIGN: usize = 64;
/// Users of a block. A query about a small tenant unpacks the whole block around its users, in
/// each of many segments, so blocks are small.
pub const USERS_A_BLOCK: usize = 1_024;

/// The database that a segment belongs to, as far as its bytes depend on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Database {
    /// Random identity; part of the header and of the footer checksum.
    pub id: [u8; 16],
    /// Secret seed of its hashes of users and event ids, from the superblock.
    pub hash_seed: u64,
}

/// Kind of a section. Numbers 64 to 95 are rollups.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u16)]
pub enum SectionKind {
    /// Run directory, two blocks: the runs, and their hours.
    Runs = 1,
    /// Timestamps, a block of integers per 65,536 rows.
    Times = 2,
    /// Event ids, a block per 65,536 rows.
    EventIds = 3,
    /// User ids, tenant by tenant, each sorted by bytes, 1,024 a block. The hashes follow from the
    /// ids and the database's seed; stored hashes would take more bytes than the ids.
    Users = 5,
    /// Codes of users, 0 for none, n for the n-th user of the row's tenant.
    UserCodes = 6,
    /// Dictionary of a string property, sorted, 65,536 a block.
    TextValues = 7,
    /// Codes of a string property, 0 for absent; zones in `extra`.
    TextCodes = 8,
    /// A numeric property; exponent and zones in `extra`.
    Numbers = 9,
    /// Bitmaps of a rollup dimension, a block per block of codes.
    Bitmaps = 10,
    /// Which series are rolled up, one block. The sections below have a block for each of them, first.
    RollupSeries = 64,
    /// Counts by value of a rollup dimension.
    RollupCounts = 65,
    /// Counts by pair of values of two rollup dimensions; its name is `model/status`.
    RollupPairs = 66,
    /// Count, sum and extremes of a number.
    RollupNumbers = 67,
    /// The same by value of a rollup dimension; its name is `model/latency_ms`.
    RollupNumbersBy = 68,
    /// Which events are rolled up over all tenants, one block. The other sections have a block for each of
    /// them, behind those of the series.
    RollupEvents = 69,
    /// Sketches of users ([`Distinct`](crate::sketch::hll::Distinct)).
    RollupUsers = 70,
    /// The same by value of a rollup dimension.
    RollupUsersBy = 71,
    /// Digests of a number ([`Digest`](crate::sketch::digest::Digest)).
    RollupDigests = 72,
    /// The same by value of a rollup dimension.
    RollupDigestsBy = 73,
    /// The users of each day, exactly.
    RollupUserSets = 74,
    /// The users of each day with their values of a rollup dimension.
    RollupUserSetsBy = 75,
}

impl SectionKind {
    const ALL: [Self; 21] = [
        Self::Runs,
        Self::Times,
        Self::EventIds,
        Self::Users,
        Self::UserCodes,
        Self::TextValues,
        Self::TextCodes,
        Self::Numbers,
        Self::Bitmaps,
        Self::RollupSeries,
        Self::RollupCounts,
        Self::RollupPairs,
        Self::RollupNumbers,
        Self::RollupNumbersBy,
        Self::RollupEvents,
        Self::RollupUsers,
        Self::RollupUsersBy,
        Self::RollupDigests,
        Self::RollupDigestsBy,
        Self::RollupUserSets,
        Self::RollupUserSetsBy,
    ];

    /// The kind of a stored number, if this build knows it: 9 is `Numbers`, 4 and 76 are `None`.
    pub fn from_number(number: u16) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| *kind as u16 == number)
    }

    /// Name of the kind as `inlay-inspect columns` prints it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Runs => "runs",
            Self::Times => "times",
            Self::EventIds => "event ids",
            Self::Users => "users",
            Self::UserCodes => "user codes",
            Self::TextValues => "text values",
            Self::TextCodes => "text codes",
            Self::Numbers => "numbers",
            Self::Bitmaps => "bitmaps",
            Self::RollupSeries => "rollup series",
            Self::RollupCounts => "rollup counts",
            Self::RollupPairs => "rollup pairs",
            Self::RollupNumbers => "rollup numbers",
            Self::RollupNumbersBy => "rollup numbers by",
            Self::RollupEvents => "rollup events",
            Self::RollupUsers => "rollup users",
            Self::RollupUsersBy => "rollup users by",
            Self::RollupDigests => "rollup digests",
            Self::RollupDigestsBy => "rollup digests by",
            Self::RollupUserSets => "rollup user sets",
            Self::RollupUserSetsBy => "rollup user sets by",
        }
    }
}

/// Position, length and checksum of a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BlockRef {
    /// Offset in the file.
    pub offset: u64,
    /// Length in bytes.
    pub len: u32,
    /// Checksum, bound to segment, section and position.
    pub crc: u32,
}

/// One entry of the section table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Section {
    /// Number of its kind; unknown ones are kept and ignored.
    pub kind: u16,
    /// Property name, empty where there is none.
    pub name: String,
    /// Facts of the kind: counts, zones, exponent.
    pub extra: Vec<u8>,
    /// Blocks in order; the index of a block is part of its checksum.
    pub blocks: Vec<BlockRef>,
}

impl Section {
    /// An empty section.
    pub fn new(kind: SectionKind, name: &str) -> Self {
        Self { kind: kind as u16, name: name.to_owned(), extra: Vec::new(), blocks: Vec::new() }
    }
}

/// The footer: number of rows, bounds of time and section table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Footer {
    /// Number of rows.
    pub rows: u32,
    /// Earliest timestamp, in milliseconds since 1970.
    pub ts_min: i64,
    /// Latest timestamp, in milliseconds since 1970.
    pub ts_max: i64,
    /// Sections, ordered by kind and name.
    pub sections: Vec<Section>,
}

impl Footer {
    /// Bytes in memory, about.
    pub fn bytes_used(&self) -> usize {
        let of_section = |section: &Section| {
            let lists =
                section.extra.capacity() + section.blocks.capacity() * size_of::<BlockRef>();
            size_of::<Section>() + section.name.capacity() + lists
        };
        self.sections.iter().map(of_section).sum()
    }

    /// The footer as bytes.
    pub fn write(&self) -> Vec<u8> {
        let mut out = Vec::new();
        out.put_u32(self.rows);
        out.put_i64(self.ts_min);
        out.put_i64(self.ts_max);
        out.put_varint(self.sections.len() as u64);
        for section in &self.sections {
            out.put_u16(section.kind);
            out.put_bytes(section.name.as_bytes());
            out.put_bytes(&section.extra);
            out.put_varint(section.blocks.len() as u64);
            for block in &section.blocks {
                out.put_u64(block.offset);
                out.put_u32(block.len);
                out.put_u32(block.crc);
            }
        }
        out
    }

    /// Reads a footer back. Blocks may lie anywhere: whether they are in the file is seen when one is read.
    ///
    /// Errors: `Corrupt` when the bytes end too early or go on, a name is not UTF-8, or sections do not rise.
    pub fn read(bytes: &[u8], place: &str) -> Result<Self> {
        let mut cursor = Cursor::new(bytes, place);
        let (rows, ts_min, ts_max) = (cursor.u32()?, cursor.i64()?, cursor.i64()?);
        let mut sections = Vec::new();
        for _ in 0..cursor.count(5)? {
            let kind = cursor.u16()?;
            let name = cursor.text()?.to_owned();
            let extra = cursor.bytes()?.to_vec();
            let mut blocks = Vec::new();
            for _ in 0..cursor.count(16)? {
                let (offset, len) = (cursor.u64()?, cursor.u32()?);
                blocks.push(BlockRef { offset, len, crc: cursor.u32()? });
            }
            sections.push(Section { kind, name, extra, blocks });
        }
        cursor.finish()?;
        // A section is looked up by halves: one out of place would not be found, and its rows would
        // silently lack the property.
        if !sections.is_sorted_by(|a, b| (a.kind, &a.name) < (b.kind, &b.name)) {
            return Err(Cursor::new(bytes, place).error("sections are not in order"));
        }
        Ok(Self { rows, ts_min, ts_max, sections })
    }
}

/// Checksum of a block, bound to its place so that no other block can stand in for it: not one of another segment, of another
/// column, or of other rows of the same column.
pub fn block_crc(uuid: uuid::Uuid, kind: u16, name: &str, index: usize, bytes: &[u8]) -> u32 {
    crc(&[
        uuid.as_bytes(),
        &kind.to_le_bytes(),
        name.as_bytes(),
        &(index as u32).to_le_bytes(),
        bytes,
    ])
}

/// Checksum of a footer, bound to its segment, its database and the version of the file.
pub fn footer_crc(uuid: uuid::Uuid, db: &[u8; 16], minor: u16, footer: &[u8]) -> u32 {
    crc(&[uuid.as_bytes(), db, &MAJOR.to_le_bytes(), &minor.to_le_bytes(), footer])
}

/// The trailer as bytes, 32 of them: where the footer lies, its checksum and the version of the file.
pub fn write_trailer(footer_offset: u64, footer_len: u32, footer_crc: u32) -> Vec<u8> {
    let mut out = Vec::with_capacity(TRAILER_LEN);
    out.put_u64(footer_offset);
    out.put_u32(footer_len);
    out.put_u32(footer_crc);
    out.put_u16(MAJOR);
    out.put_u16(MINOR);
    out.put_u32(0);
    out.extend_from_slice(&MAGIC);
    out
}

/// The end of a segment.
pub struct Trailer {
    /// Offset of the footer in the file.
    pub footer_offset: usize,
    /// Its length in bytes.
    pub footer_len: usize,
    /// Checksum of the footer, as `footer_crc` computes it.
    pub footer_crc: u32,
    /// Minor version of the writer. Any minor version can be read.
    pub minor: u16,
}

/// Reads the trailer of a whole file.
///
/// Errors: `Corrupt` when the file is shorter than a trailer or no segment, `Invalid` when its major version is another one.
pub fn read_trailer(file: &[u8], place: &str) -> Result<Trailer> {
    let trailer = file.len().checked_sub(TRAILER_LEN).and_then(|at| file.get(at..));
    let mut cursor = Cursor::new(trailer.unwrap_or_default(), place);
    let (footer_offset, footer_len) = (cursor.u64()? as usize, cursor.u32()? as usize);
    let footer_crc = cursor.u32()?;
    let (major, minor) = (cursor.u16()?, cursor.u16()?);
    cursor.take(4)?;
    if cursor.take(8)? != MAGIC {
        return Err(cursor.error("is not a segment"));
    }
    if major != MAJOR {
        return Err(Error::invalid(
            "data directory",
            format!("{place} has segment version {major}; this build reads {MAJOR}"),
        ));
    }
    Ok(Trailer { footer_offset, footer_len, footer_crc, minor })
}

/// The record of a segment in the keyspace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SegmentMeta {
    /// Name and identity.
    pub uuid: uuid::Uuid,
    /// Length of the file.
    pub len: u64,
    /// Checksum of the footer.
    pub footer_crc: u32,
    /// Number of rows.
    pub rows: u32,
    /// Earliest timestamp, in milliseconds since 1970.
    pub ts_min: i64,
    /// Latest timestamp, in milliseconds since 1970.
    pub ts_max: i64,
    /// [`FRESH`], [`MERGED`] or [`SEALED`]. All but fresh ones hold one unit of time.
    pub level: u8,
}

impl SegmentMeta {
    /// Name of the level: `fresh`, `merged` or `sealed`.
    pub fn level_name(&self) -> &'static str {
        match self.level {
            FRESH => "fresh",
            MERGED => "merged",
            _ => "sealed",
        }
    }

    /// Directory of the file: that of its first day, `seg/2025-11-02`, unless it is fresh; then `seg/l0`.
    pub fn directory(&self) -> String {
        if self.level == FRESH {
            FRESH_DIRECTORY.to_owned()
        } else {
            format!("{DIRECTORY}/{}", day_name(self.ts_min.div_euclid(DAY_MS)))
        }
    }

    /// Path of the file.
    pub fn path(&self) -> String {
        format!("{}/{}.seg", self.directory(), self.uuid)
    }

    /// Appends the record, 49 bytes: the value of the segment's key in the keyspace.
    pub fn write(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(self.uuid.as_bytes());
        out.put_u64(self.len);
        out.put_u32(self.footer_crc);
        out.put_u32(self.rows);
        out.put_i64(self.ts_min);
        out.put_i64(self.ts_max);
        out.put_u8(self.level);
    }

    /// Reads the record back. Errors: `Corrupt` when it has more or fewer bytes, or a level above 2.
    pub fn read(bytes: &[u8]) -> Result<Self> {
        let mut cursor = Cursor::new(bytes, "segment record");
        let uuid = cursor.uuid()?;
        let meta = Self {
            uuid,
            len: cursor.u64()?,
            footer_crc: cursor.u32()?,
            rows: cursor.u32()?,
            ts_min: cursor.i64()?,
            ts_max: cursor.i64()?,
            level: cursor.u8()?,
        };
        cursor.finish()?;
        if meta.level > SEALED {
            return Err(Error::corrupt("segment record", "has an unknown level"));
        }
        Ok(meta)
    }
}
