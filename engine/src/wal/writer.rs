//! Appending groups: one write and one sync each.
//!
//! A full disk is met before anything of a group is written: a file has its space before it is part
//! of the log.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

use super::{
    file::LogFile,
    frame::{FRAME_HEADER_LEN, FileHeader, HEADER_LEN, build},
};
use crate::{
    base::{
        clock::Clock,
        meter::{COUNTS, MICROSECONDS, Meter},
        rng::Rng,
    },
    error::{Error, IoContext, Result},
    vfs::Vfs,
};

/// Length of a log file on a disk that is nearly full.
const SMALL_FILE_BYTES: u64 = 1 << 20;

/// What the log did since the start.
pub struct LogMeters {
    /// Records of each group.
    pub group_records: Meter,
    /// Microseconds that each sync took.
    pub sync_us: Meter,
    /// Bytes that were appended.
    pub bytes: AtomicU64,
}

impl Default for LogMeters {
    fn default() -> Self {
        Self {
            group_records: Meter::new(COUNTS),
            sync_us: Meter::new(MICROSECONDS),
            bytes: AtomicU64::new(0),
        }
    }
}

/// Appends to the newest log file.
pub struct Writer {
    meters: Arc<LogMeters>,
    clock: Arc<dyn Clock>,
    vfs: Arc<dyn Vfs>,
    rng: Arc<dyn Rng>,
    db: [u8; 16],
    file_bytes: u64,
    current: Option<Current>,
    chain: u32,
}

struct Current {
    file: LogFile,
    offset: u64,
    len: u64,
}

/// The end of the log: its newest file and the bytes of it that were synced.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LogEnd {
    /// First LSN of the file.
    pub lsn_first: u64,
    /// Where the next frame goes.
    pub offset: u64,
}

/// Why a group was not written.
#[derive(Debug)]
pub enum AppendError {
    /// Nothing of the group counts (no room, no descriptor left): later groups may succeed.
    Retry(Error),
    /// Whether the group is in the log cannot be known now. The same group is appended again later, and nothing else before it.
    Unknown(Error),
    /// The log's state is unknown for good, or another writer has taken over: nothing may be acknowledged any more.
    Fatal(Error),
}

impl Writer {
    /// A writer that starts a new file with its first group. `chain` is the checksum of the last
    /// frame in the log so far. `file_bytes` is the size of a file.
    pub fn new(
        vfs: Arc<dyn Vfs>,
        clock: Arc<dyn Clock>,
        rng: Arc<dyn Rng>,
        db: [u8; 16],
        chain: u32,
        file_bytes: u64,
    ) -> Self {
        let meters = Arc::default();
        Self { meters, clock, vfs, rng, db, file_bytes, current: None, chain }
    }

    /// What it did so far.
    pub fn meters(&self) -> Arc<LogMeters> {
        Arc::clone(&self.meters)
    }

    /// Writes `count` records as one frame and syncs. Their first LSN is `lsn_first`.
    pub fn append(&mut self, lsn_first: u64, count: u32, body: &[u8]) -> Result<(), AppendError> {
        let room = (FRAME_HEADER_LEN + body.len()).next_multiple_of(super::frame::ALIGN) as u64;
        if self.current.as_ref().is_none_or(|current| current.offset + room > current.len) {
            // A disk that has no room for a whole file may have room for what is asked: a small file
            // lets a flush free the log before it.
            let mut next = self.prepare(lsn_first, self.file_bytes, room);
            if next.as_ref().is_err_and(Error::is_disk_full) {
                next = self.prepare(lsn_first, SMALL_FILE_BYTES.min(self.file_bytes), room);
            }
            let (next, len) = next.map_err(AppendError::Retry)?;
            // From here on the file may be part of the log.
            let file = next.adopt(&*self.vfs).map_err(AppendError::Fatal)?;
            self.current = Some(Current { file, offset: HEADER_LEN as u64, len });
        }
        let current = self.current.as_mut().expect("a file was started above");
        let (bytes, crc) = build(&current.file.header, current.offset, lsn_first, count, body);
        let (file, place) = (&current.file.file, &current.file.place);
        if let Err(error) = file.write_at(current.offset, &bytes) {
            let error = Error::io(place, &error);
            // What was written of it must not pass for a frame; the next group overwrites it.
            let erased = file.write_at(current.offset, &[0; FRAME_HEADER_LEN]).is_ok();
            let retry = error.is_disk_full() && erased;
            return Err(if retry { AppendError::Retry(error) } else { AppendError::Fatal(error) });
        }
        let before_us = self.clock.elapsed_us();
        file.sync().at(place).map_err(AppendError::Fatal)?;
        self.meters.sync_us.record(self.clock.elapsed_us().saturating_sub(before_us));
        self.meters.group_records.record(u64::from(count));
        self.meters.bytes.fetch_add(bytes.len() as u64, Ordering::Relaxed);
        current.offset += bytes.len() as u64;
        self.chain = crc;
        Ok(())
    }

    fn prepare(&self, lsn_first: u64, bytes: u64, room: u64) -> Result<(LogFile, u64)> {
        let salt = self.rng.next_u64();
        let header = FileHeader { db: self.db, salt, lsn_first, chain: self.chain, synced_end: 0 };
        let len = bytes.max(HEADER_LEN as u64 + room);
        Ok((LogFile::prepare(&*self.vfs, header, &[], len)?, len))
    }

    /// Where the log ends, if this process has written any of it.
    pub fn end(&self) -> Option<LogEnd> {
        let current = self.current.as_ref()?;
        Some(LogEnd { lsn_first: current.file.header.lsn_first, offset: current.offset })
    }

    /// Ends the current file: the next append starts a new one.
    pub fn rotate(&mut self) {
        self.current = None;
    }
}
