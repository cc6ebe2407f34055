//! Appending groups: one write and one sync each.
//!
//! A file is made under `tmp/`, with its header and its space, synced, and only then renamed into
//! the log. So every file in the log has a whole header, and a full disk is met before anything of
//! a group was written.

use std::{
    io,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use super::{
    DIRECTORY,
    frame::{FRAME_HEADER_LEN, FileHeader, HEADER_LEN, build},
};
use crate::{
    base::{
        clock::Clock,
        meter::{COUNTS, MICROSECONDS, Meter},
        rng::Rng,
    },
    error::{Error, IoContext, Result},
    vfs::{Vfs, VfsFile},
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
    file: Arc<dyn VfsFile>,
    header: FileHeader,
    place: String,
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
    /// The log's state on disk is unknown: nothing may be acknowledged any more.
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
            let mut next = self.prepare_file(lsn_first, self.file_bytes, room);
            if next.as_ref().is_err_and(Error::is_disk_full) {
                next = self.prepare_file(lsn_first, SMALL_FILE_BYTES.min(self.file_bytes), room);
            }
            let next = next.map_err(|error| {
                let _ = self.vfs.remove(&temporary(lsn_first));
                AppendError::Retry(error)
            })?;
            // From here on the file may be part of the log.
            self.current = Some(self.adopt_file(next).map_err(AppendError::Fatal)?);
        }
        let current = self.current.as_mut().expect("a file was started above");
        let (bytes, crc) = build(&current.header, current.offset, lsn_first, count, body);
        if let Err(error) = current.file.write_at(current.offset, &bytes) {
            let error = Error::io(&current.place, &error);
            // What was written of it must not pass for a frame; the next group overwrites it.
            let erased = current.file.write_at(current.offset, &[0; FRAME_HEADER_LEN]).is_ok();
            let retry = error.is_disk_full() && erased;
            return Err(if retry { AppendError::Retry(error) } else { AppendError::Fatal(error) });
        }
        let before_us = self.clock.elapsed_us();
        current.file.sync().at(&current.place).map_err(AppendError::Fatal)?;
        self.meters.sync_us.record(self.clock.elapsed_us().saturating_sub(before_us));
        self.meters.group_records.record(u64::from(count));
        self.meters.bytes.fetch_add(bytes.len() as u64, Ordering::Relaxed);
        current.offset += bytes.len() as u64;
        self.chain = crc;
        Ok(())
    }

    /// Makes the next file under a temporary name, whole and synced.
    fn prepare_file(&self, lsn_first: u64, bytes: u64, room: u64) -> Result<Current> {
        let salt = self.rng.next_u64();
        let header = FileHeader { db: self.db, salt, lsn_first, chain: self.chain };
        let place = temporary(lsn_first);
        let len = bytes.max(HEADER_LEN as u64 + room);
        match self.vfs.remove(&place) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                return Err(Error::io(&place, &error));
            }
            _ => {}
        }
        let file = self.vfs.create(&place).at(&place)?;
        file.allocate(len).at(&place)?;
        file.write_at(0, &header.write()).at(&place)?;
        file.sync().at(&place)?;
        Ok(Current { file, header, place, offset: HEADER_LEN as u64, len })
    }

    /// Gives a prepared file its name in the log, durably.
    fn adopt_file(&self, prepared: Current) -> Result<Current> {
        let place = format!("{DIRECTORY}/{:020}.wal", prepared.header.lsn_first);
        self.vfs.rename(&prepared.place, &place).at(&place)?;
        self.vfs.sync_dir(DIRECTORY).at(DIRECTORY)?;
        Ok(Current { place, ..prepared })
    }

    /// Where the log ends, if this process has written any of it.
    pub fn end(&self) -> Option<LogEnd> {
        let current = self.current.as_ref()?;
        Some(LogEnd { lsn_first: current.header.lsn_first, offset: current.offset })
    }

    /// Ends the current file: the next append starts a new one.
    pub fn rotate(&mut self) {
        self.current = None;
    }

    /// First LSN of the file that is written to, if any.
    pub fn current_lsn_first(&self) -> Option<u64> {
        self.current.as_ref().map(|current| current.header.lsn_first)
    }
}

fn temporary(lsn_first: u64) -> String {
    format!("tmp/{lsn_first:020}.wal")
}
