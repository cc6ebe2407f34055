//! Appending groups: one write and one sync each.
//!
//! A file is made under `tmp/`, with its header and its space, synced, and only then renamed into
//! the log. So every file in the log has a whole header, and a full disk is met before anything of
//! a group was written.

use std::{io, sync::Arc};

use super::{
    DIRECTORY,
    frame::{FRAME_HEADER_LEN, FileHeader, HEADER_LEN, build},
};
use crate::{
    base::rng::Rng,
    error::{Error, IoContext, Result},
    vfs::{Vfs, VfsFile},
};

/// Appends to the newest log file.
pub struct Writer {
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

/// Why a group was not written.
#[derive(Debug)]
pub enum AppendError {
    /// There was no room, and nothing of the group counts: later groups may succeed.
    Full(Error),
    /// The log's state on disk is unknown: nothing may be acknowledged any more.
    Fatal(Error),
}

impl Writer {
    /// A writer that starts a new file with its first group. `chain` is the checksum of the last
    /// frame in the log so far. `file_bytes` is the size of a file.
    pub fn new(
        vfs: Arc<dyn Vfs>,
        rng: Arc<dyn Rng>,
        db: [u8; 16],
        chain: u32,
        file_bytes: u64,
    ) -> Self {
        Self { vfs, rng, db, file_bytes, current: None, chain }
    }

    /// Writes `count` records as one frame and syncs. Their first LSN is `lsn_first`.
    pub fn append(&mut self, lsn_first: u64, count: u32, body: &[u8]) -> Result<(), AppendError> {
        let room = (FRAME_HEADER_LEN + body.len()).next_multiple_of(super::frame::ALIGN) as u64;
        if self.current.as_ref().is_none_or(|current| current.offset + room > current.len) {
            let next = self.start_file(lsn_first, room).map_err(|error| {
                if error.is_disk_full() {
                    AppendError::Full(error)
                } else {
                    AppendError::Fatal(error)
                }
            })?;
            self.current = Some(next);
        }
        let current = self.current.as_mut().expect("a file was started above");
        let (bytes, crc) = build(&current.header, current.offset, lsn_first, count, body);
        if let Err(error) = current.file.write_at(current.offset, &bytes) {
            let error = Error::io(&current.place, &error);
            // A full disk leaves at most a torn frame, which the next group overwrites.
            return Err(if error.is_disk_full() {
                AppendError::Full(error)
            } else {
                AppendError::Fatal(error)
            });
        }
        current.file.sync().at(&current.place).map_err(AppendError::Fatal)?;
        current.offset += bytes.len() as u64;
        self.chain = crc;
        Ok(())
    }

    fn start_file(&mut self, lsn_first: u64, room: u64) -> Result<Current> {
        let header =
            FileHeader { db: self.db, salt: self.rng.next_u64(), lsn_first, chain: self.chain };
        let temporary = format!("tmp/{lsn_first:020}.wal");
        let place = format!("{DIRECTORY}/{lsn_first:020}.wal");
        let len = self.file_bytes.max(HEADER_LEN as u64 + room);
        match self.vfs.remove(&temporary) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                return Err(Error::io(&temporary, &error));
            }
            _ => {}
        }
        let file = self.vfs.create(&temporary).at(&temporary)?;
        file.allocate(len).at(&temporary)?;
        file.write_at(0, &header.write()).at(&temporary)?;
        file.sync().at(&temporary)?;
        self.vfs.rename(&temporary, &place).at(&place)?;
        self.vfs.sync_dir(DIRECTORY).at(DIRECTORY)?;
        Ok(Current { file, header, place, offset: HEADER_LEN as u64, len })
    }

    /// First LSN of the file that is written to, if any.
    pub fn current_lsn_first(&self) -> Option<u64> {
        self.current.as_ref().map(|current| current.header.lsn_first)
    }
}
