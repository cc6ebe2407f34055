//! Bytes of the log: file header; frames with their checksums, each of which is a group of records; records.

#![cfg_attr(not(test), deny(clippy::indexing_slicing, clippy::unwrap_used))]

use crate::{
    base::{
        coding::{Cursor, Put},
        hash::crc,
    },
    error::{Error, Result},
};

/// First bytes of a log file.
const MAGIC: [u8; 8] = *b"INLAYWAL";
/// Version of this layout.
const VERSION: u32 = 1;
/// Length of the file header.
pub const HEADER_LEN: usize = 64;
/// First bytes of a frame; never zero, so that preallocated space is not a frame.
const FRAME_MARK: u32 = 0x4652_4d31;
/// Length of a frame header.
pub const FRAME_HEADER_LEN: usize = 24;
/// Bytes of the smallest record: kind and length.
const RECORD_LEN_MIN: usize = 5;
/// No two frames of a file lie further apart than this.
const LSN_AHEAD_MAX: u64 = 1 << 32;
/// Frames start at multiples of this.
pub const ALIGN: usize = 8;

/// Kind of a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum RecordKind {
    /// Events: which rows are new, then the rows; then keyspace writes of the same instant.
    Events = 1,
    /// Keyspace writes, including changes of the segment list.
    Writes = 2,
}

impl RecordKind {
    fn from_byte(byte: u8) -> Option<Self> {
        match byte {
            1 => Some(Self::Events),
            2 => Some(Self::Writes),
            _ => None,
        }
    }
}

/// Identity of one log file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileHeader {
    /// Identity of the database.
    pub db: [u8; 16],
    /// Random number of the file; part of each frame checksum.
    pub salt: u64,
    /// LSN of the first record.
    pub lsn_first: u64,
    /// Checksum of the last frame of the file before, 0 for the first file.
    pub chain: u32,
    /// Where the frames end that were synced before the file got its name; 0 when there were none.
    pub synced_end: u32,
}

impl FileHeader {
    /// The header as bytes.
    pub fn write(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(HEADER_LEN);
        out.extend_from_slice(&MAGIC);
        out.put_u32(VERSION);
        out.extend_from_slice(&self.db);
        out.put_u64(self.salt);
        out.put_u64(self.lsn_first);
        out.put_u32(self.chain);
        out.put_u32(self.synced_end);
        out.resize(HEADER_LEN - 4, 0);
        out.put_u32(crc(&[&out]));
        out
    }

    /// Reads a header; `place` names the file.
    pub fn read(bytes: &[u8], place: &str) -> Result<Self> {
        let mut cursor = Cursor::new(bytes, place);
        let head = cursor.take(HEADER_LEN - 4)?;
        if cursor.u32()? != crc(&[head]) {
            return Err(Error::corrupt(place, "the header's checksum does not match"));
        }
        let mut cursor = Cursor::new(head, place);
        if cursor.take(8)? != MAGIC {
            return Err(cursor.error("is not a log file"));
        }
        let version = cursor.u32()?;
        if version != VERSION {
            return Err(Error::invalid(
                "data directory",
                format!("{place} has log version {version}; this build reads {VERSION}"),
            ));
        }
        let mut db = [0; 16];
        db.copy_from_slice(cursor.take(16)?);
        let (salt, lsn_first) = (cursor.u64()?, cursor.u64()?);
        Ok(Self { db, salt, lsn_first, chain: cursor.u32()?, synced_end: cursor.u32()? })
    }
}

/// Appends a record to a group's body.
pub fn put_record(kind: RecordKind, payload: &[u8], out: &mut Vec<u8>) {
    out.put_u8(kind as u8);
    out.put_u32(payload.len() as u32);
    out.extend_from_slice(payload);
}

/// Builds the frame of a group that starts at `offset` of the file.
pub fn build(
    header: &FileHeader,
    offset: u64,
    lsn_first: u64,
    count: u32,
    body: &[u8],
) -> (Vec<u8>, u32) {
    let crc = checksum(header, offset, lsn_first, count, body);
    let mut out = Vec::with_capacity(FRAME_HEADER_LEN + body.len() + ALIGN);
    out.put_u32(FRAME_MARK);
    out.put_u32(body.len() as u32);
    out.put_u32(crc);
    out.put_u32(count);
    out.put_u64(lsn_first);
    out.extend_from_slice(body);
    out.resize(out.len().next_multiple_of(ALIGN), 0);
    (out, crc)
}

fn checksum(header: &FileHeader, offset: u64, lsn_first: u64, count: u32, body: &[u8]) -> u32 {
    crc(&[
        &header.db,
        &header.salt.to_le_bytes(),
        &offset.to_le_bytes(),
        &lsn_first.to_le_bytes(),
        &count.to_le_bytes(),
        body,
    ])
}

/// A whole, verified frame.
pub struct Frame<'a> {
    /// LSN of the first record.
    pub lsn_first: u64,
    /// Number of records.
    pub count: u32,
    /// The records, end to end.
    pub body: &'a [u8],
    /// Checksum of the body, bound to database, file, offset, LSN and number of records.
    pub crc: u32,
    /// Where the next frame starts.
    pub end: usize,
}

/// The frame at `offset` of a file, if a whole and verified one is there whose first record is
/// `lsn_min` or later.
pub fn frame_at<'a>(
    bytes: &'a [u8],
    offset: usize,
    header: &FileHeader,
    lsn_min: u64,
) -> Option<Frame<'a>> {
    let mut cursor = Cursor::new(bytes.get(offset..)?, "");
    if cursor.u32().ok()? != FRAME_MARK {
        return None;
    }
    let len = cursor.u32().ok()? as usize;
    let crc = cursor.u32().ok()?;
    let count = cursor.u32().ok()?;
    let lsn_first = cursor.u64().ok()?;
    let body = cursor.take(len).ok()?;
    // Cheap tests first: text that merely looks like a frame must not cost a checksum each time.
    let is_plausible = count > 0
        && lsn_first.checked_sub(lsn_min).is_some_and(|ahead| ahead < LSN_AHEAD_MAX)
        && lsn_first.checked_add(u64::from(count)).is_some()
        && (count as usize).checked_mul(RECORD_LEN_MIN).is_some_and(|least| least <= len);
    if !is_plausible {
        return None;
    }
    let end = (offset + FRAME_HEADER_LEN + len).next_multiple_of(ALIGN);
    (checksum(header, offset as u64, lsn_first, count, body) == crc).then_some(Frame {
        lsn_first,
        count,
        body,
        crc,
        end,
    })
}

/// Splits a verified body into its records.
pub fn records<'a>(frame: &Frame<'a>, place: &str) -> Result<Vec<(u64, RecordKind, &'a [u8])>> {
    let mut cursor = Cursor::new(frame.body, "");
    let mut out = Vec::new();
    for index in 0..u64::from(frame.count) {
        let byte = cursor.u8()?;
        let len = cursor.u32()? as usize;
        let kind = RecordKind::from_byte(byte).ok_or_else(|| {
            Error::invalid(
                "data directory",
                format!("{place} holds records of an unknown kind {byte}"),
            )
        })?;
        out.push((frame.lsn_first + index, kind, cursor.take(len)?));
    }
    cursor.finish()?;
    Ok(out)
}
