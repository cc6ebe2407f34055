//! Bytes of an id run: what the keyspace knows of it, and how its blocks are checked.

#![cfg_attr(not(test), deny(clippy::indexing_slicing, clippy::unwrap_used))]

use xorf::{BinaryFuse8, DmaSerializable};

use crate::{
    base::{
        coding::{Cursor, Put},
        hash::crc,
        time::WEEK_MS,
    },
    error::Result,
};

/// Directory of the runs, with one directory for each generation.
pub const DIRECTORY: &str = "ids";
/// First bytes of the trailer's identity.
pub const MAGIC: [u8; 8] = *b"INLAYIDS";
/// Version of this layout.
pub const VERSION: u32 = 1;
/// Hashes of a block, the unit of checking: some 35 KiB.
pub const BLOCK_IDS: usize = 4_096;
/// Length of the trailer.
pub const TRAILER_LEN: usize = 64;
/// Length of xorf's filter description.
pub const DESCRIPTOR_LEN: usize = <BinaryFuse8 as DmaSerializable>::DESCRIPTOR_LEN;
/// Index that stands for the filter in its checksum.
pub const FILTER_INDEX: u32 = u32::MAX;
/// Index that stands for the list of block checksums in its checksum.
pub const LIST_INDEX: u32 = u32::MAX - 1;

/// The generation of ids that arrive at `now_ms`: the week.
pub fn generation_at(now_ms: i64) -> u32 {
    u32::try_from(now_ms.div_euclid(WEEK_MS)).unwrap_or(0)
}

/// What the keyspace knows of a run; a file that differs is refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IdRunMeta {
    /// Name and identity.
    pub uuid: uuid::Uuid,
    /// Week since 1970 of the arrival of its ids, or of their latest event where that is later. A
    /// whole generation expires at once.
    pub generation: u32,
    /// Number of hashes.
    pub count: u64,
    /// Length of the file.
    pub len: u64,
    /// Checksum of the trailer.
    pub crc: u32,
}

impl IdRunMeta {
    /// Directory of the file.
    pub fn directory(&self) -> String {
        format!("{DIRECTORY}/{:05}", self.generation)
    }

    /// Path of the file.
    pub fn path(&self) -> String {
        format!("{}/{}.ids", self.directory(), self.uuid)
    }

    /// Appends the record.
    pub fn write(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(self.uuid.as_bytes());
        out.put_u32(self.generation);
        out.put_u64(self.count);
        out.put_u64(self.len);
        out.put_u32(self.crc);
    }

    /// Reads the record back.
    pub fn read(bytes: &[u8]) -> Result<Self> {
        let mut cursor = Cursor::new(bytes, "id run record");
        let (uuid, generation) = (cursor.uuid()?, cursor.u32()?);
        let (count, len) = (cursor.u64()?, cursor.u64()?);
        let meta = Self { uuid, generation, count, len, crc: cursor.u32()? };
        cursor.finish()?;
        Ok(meta)
    }
}

/// Checksum of a part of a run, bound to its place.
pub fn block_crc(uuid: uuid::Uuid, index: u32, bytes: &[u8]) -> u32 {
    crc(&[uuid.as_bytes(), &index.to_le_bytes(), bytes])
}
