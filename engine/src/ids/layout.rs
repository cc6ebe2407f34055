//! Bytes of an id run: what the keyspace knows of it, and how its blocks are checked.
//!
//! The trailer of `019a6356-6e00-7b29-9172-b1a4f0f3ae86.ids` among the golden files:
//!
//! ```text
//! offset  bytes
//!      0  7e 04 00 00 00 00 00 00     count: 1,150
//!      8  cd 2c 00 00 00 00 00 00     filter offset: 11,469
//!     16  e1 33 00 00 00 00 00 00     list offset: 13,281
//!     24  fd 19 7a 3b                 crc of the filter
//!     28  4d ae 2f c0                 crc of the list
//!     32  01 00 00 00                 version
//!     36  49 4e 4c 41 59 49 44 53     INLAYIDS
//!     44  c1 5c 02 89 ec 2d 0a 91 67 ec 8e 65 a1 8d eb be     database
//!     60  bc f7 ce bb                 crc of uuid and bytes 0 to 59, which the keyspace has too
//! ```

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

/// Directory of the runs, with one directory for each generation: `ids/02913`.
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

/// The generation of ids that arrive at `now_ms`: the week since 1970-01-01, 0 before that. Generation 2,913 begins on Thursday,
/// 2025-10-30, at midnight UTC (`1_761_782_400_000`).
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

    /// Appends the record, 40 bytes: the value of the run's key in the keyspace.
    pub fn write(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(self.uuid.as_bytes());
        out.put_u32(self.generation);
        out.put_u64(self.count);
        out.put_u64(self.len);
        out.put_u32(self.crc);
    }

    /// Reads the record back. Errors: `Corrupt` when it has more or fewer bytes.
    pub fn read(bytes: &[u8]) -> Result<Self> {
        let mut cursor = Cursor::new(bytes, "id run record");
        let (uuid, generation) = (cursor.uuid()?, cursor.u32()?);
        let (count, len) = (cursor.u64()?, cursor.u64()?);
        let meta = Self { uuid, generation, count, len, crc: cursor.u32()? };
        cursor.finish()?;
        Ok(meta)
    }
}

/// Checksum of a part of a run, bound to its place: a block of another run, or another block of this one, does not match.
pub fn block_crc(uuid: uuid::Uuid, index: u32, bytes: &[u8]) -> u32 {
    crc(&[uuid.as_bytes(), &index.to_le_bytes(), bytes])
}
