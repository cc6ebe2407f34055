//! Looking into a data directory without changing it, also while a server uses it.
//!
//! What is damaged is described, not refused: an inspection shows as much as can be read, and
//! `verify` lists everything that is wrong.
//!
//! `inlay-inspect` prints the results, and `inlay verify` runs the same verification:
//!
//! ```text
//! Inspection::open(disk)     superblock, newest checkpoint, log after it: the state as of the last record
//!   .segments()              019a…  fresh   seg/l0/019a….seg        2025-11-08   41,000 rows
//!   .sections(uuid)          times, numbers latency_ms, …           blocks with encoding, offset, zone
//!   .log(0)                  LSN 309  events  wal/0….wal offset 100  1,000 events
//!   .keys("f")               engine f = flushed LSN
//!   .verify(…)               numbers of what was checked, and problems with file and reason
//! ```
//!
//! Where the log is damaged, `open` fails with the reason, and [`Inspection::open_without_log`] shows the newest checkpoint.
//! Where the directory holds no database: `directory: holds no database: SUPER.a and SUPER.b are missing`.

mod log;
mod segments;

mod moved;
mod rollups;
mod verify;

use std::sync::Arc;

pub use log::{KeyInfo, RecordInfo};
pub use moved::{MovedFiles, moved_files};
pub use rollups::RollupRow;
pub use segments::{BlockInfo, IdRunInfo, RunInfo, SectionInfo, SegmentInfo};
pub use verify::{Problem, VerifyReport};

use crate::{
    base::{clock::SystemClock, rng::SystemRng},
    error::{Error, Result},
    keyspace::{Tree, checkpoint},
    store::{FileLog, Log, State, Superblock, flushed_lsn, read_state},
    vfs::{Vfs, read_only::ReadOnlyVfs},
    wal::{LogTail, Record},
};

/// How often the state is read, at most, when a running server changes it meanwhile: a checkpoint is replaced, a frame is being
/// written. Real damage is the same each time.
const READ_ATTEMPTS: usize = 5;

/// The log in files of a disk. It is only read, so neither clock nor random numbers are asked for.
fn log_of(vfs: &Arc<dyn Vfs>) -> Arc<dyn Log> {
    Arc::new(FileLog::new(Arc::clone(vfs), Arc::new(SystemClock), Arc::new(SystemRng), 0))
}

/// A data directory as it was found: later changes of a running server are not seen, but files that it removes are gone.
pub struct Inspection {
    vfs: Arc<dyn Vfs>,
    log: Arc<dyn Log>,
    superblock: Superblock,
    tree: Tree,
    records: Vec<Record>,
    tail: LogTail,
}

impl Inspection {
    /// Reads the state of a data directory.
    ///
    /// Errors: `Invalid` when there is none, `Corrupt` when neither checkpoint nor log give a state.
    pub fn open(vfs: impl Vfs) -> Result<Self> {
        let vfs: Arc<dyn Vfs> = Arc::new(ReadOnlyVfs(Arc::new(vfs)));
        let log = log_of(&vfs);
        Self::of(vfs, log)
    }

    /// As [`Inspection::open`], of a disk that is shared, and of the log that its store has; read-only here, whatever it is elsewhere.
    /// `None` is a log in files of the disk.
    pub fn of_store(vfs: Arc<dyn Vfs>, log: Option<Arc<dyn Log>>) -> Result<Self> {
        let vfs: Arc<dyn Vfs> = Arc::new(ReadOnlyVfs(vfs));
        let log = log.unwrap_or_else(|| log_of(&vfs));
        Self::of(vfs, log)
    }

    fn of(vfs: Arc<dyn Vfs>, log: Arc<dyn Log>) -> Result<Self> {
        let mut attempt = 0;
        loop {
            attempt += 1;
            match Self::read(&vfs, &log) {
                // A checkpoint that was just replaced, or a frame that was just being written.
                Err(Error::Corrupt { .. } | Error::Io { .. }) if attempt < READ_ATTEMPTS => {}
                result => return result,
            }
        }
    }

    /// Reads the newest checkpoint that can be read, and no log: for a directory that
    /// [`Inspection::open`] refuses because its log is damaged. What came after that checkpoint is
    /// not seen, so files that it names may be gone for a good reason.
    ///
    /// Errors: as [`Inspection::open`]; `Corrupt` also when there is no checkpoint yet.
    pub fn open_without_log(vfs: impl Vfs) -> Result<Self> {
        let vfs: Arc<dyn Vfs> = Arc::new(ReadOnlyVfs(Arc::new(vfs)));
        let log = log_of(&vfs);
        let superblock = Self::load(&*log)?;
        let mut first_error = None;
        for kept in superblock.checkpoints.clone() {
            match checkpoint::read(&*vfs, superblock.db, kept.lsn) {
                Ok(tree) => {
                    let tail = LogTail { lsn_last: kept.lsn, ..LogTail::default() };
                    return Ok(Self { vfs, log, superblock, tree, records: Vec::new(), tail });
                }
                Err(error) => {
                    first_error.get_or_insert(error);
                }
            }
        }
        Err(first_error.unwrap_or_else(|| Error::corrupt(checkpoint::DIRECTORY, "holds none")))
    }

    /// The superblock. Errors: `Invalid` when both slots are missing.
    fn load(log: &dyn Log) -> Result<Superblock> {
        log.superblock()?.ok_or_else(|| {
            Error::invalid("directory", "holds no database: SUPER.a and SUPER.b are missing")
        })
    }

    fn read(vfs: &Arc<dyn Vfs>, log: &Arc<dyn Log>) -> Result<Self> {
        let superblock = Self::load(&**log)?;
        let State { tree, records, tail } =
            read_state(&**vfs, &superblock, |after| log.read_after(&superblock, after))?;
        let (vfs, log) = (Arc::clone(vfs), Arc::clone(log));
        Ok(Self { vfs, log, superblock, tree, records, tail })
    }

    /// The identity of the database.
    pub fn db(&self) -> uuid::Uuid {
        uuid::Uuid::from_bytes(self.superblock.db)
    }

    /// LSN of the last record: 315 when 315 records were ever committed.
    pub fn lsn(&self) -> u64 {
        self.tail.lsn_last
    }

    /// LSN up to which all events are in segments. Errors: `Corrupt` when its key is damaged.
    pub fn flushed_lsn(&self) -> Result<u64> {
        flushed_lsn(&self.tree)
    }

    /// Checkpoints, newest first: LSN, and the LSN after which the log is needed with it. `[(306, 306), (258, 258)]`.
    pub fn checkpoints(&self) -> Vec<(u64, u64)> {
        let kept = self.superblock.checkpoints.iter();
        kept.map(|checkpoint| (checkpoint.lsn, checkpoint.replay_after)).collect()
    }

    /// Bytes behind the last whole frame of the log that are not zero: the rest of a write that a crash cut off, never acknowledged.
    pub fn torn_bytes(&self) -> u64 {
        self.tail.torn_bytes
    }
}
