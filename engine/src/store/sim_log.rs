//! A log in memory that several processes of a test share, and whose calls fail as the test says.
//!
//! ```text
//! let log = SimLog::default();       of one process
//! log.another()                      the same records, for another process: who resumes last appends, the others are refused
//! fail_append(false)                 the next append gets no answer, and its group is not there
//! fail_append(true)                  …                              and its group is there all the same
//! log.standby()                      a log of its own with the records of now: as of a standby that takes over and lacks what comes after
//! ```

use std::{
    io::ErrorKind,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use parking_lot::Mutex;

use super::{
    log::{Log, LogWriter},
    superblock::Superblock,
};
use crate::{
    error::{Error, Result},
    vfs::View,
    wal::{AppendError, LogEnd, LogMeters, LogTail, Record, records_of_group},
};

/// The log as one process has it. Clones are of the same process.
#[derive(Default, Clone)]
pub struct SimLog {
    shared: Arc<Mutex<Shared>>,
    /// The epoch under which this process appends; 0 where it never did.
    epoch: Arc<AtomicU64>,
}

#[derive(Default, Clone)]
struct Shared {
    superblock: Option<Superblock>,
    /// First record, number of records and body of each group.
    groups: Vec<(u64, u32, View)>,
    lsn_last: u64,
    /// Records up to this one may be deleted.
    forgotten: u64,
    epoch: u64,
    /// Appends that get no answer, the next one last: whether the group is there.
    faults: Vec<bool>,
}

impl SimLog {
    /// The same log, for another process.
    pub fn another(&self) -> Self {
        Self { shared: Arc::clone(&self.shared), epoch: Arc::default() }
    }

    /// A copy of the log as it is now, which lacks what is appended later.
    pub fn standby(&self) -> Self {
        let copy = self.shared.lock().clone();
        Self { shared: Arc::new(Mutex::new(copy)), epoch: Arc::default() }
    }

    /// Lets the append behind those that were named before fail without an answer.
    pub fn fail_append(&self, is_there: bool) {
        self.shared.lock().faults.insert(0, is_there);
    }

    /// Number of the last record.
    pub fn last(&self) -> u64 {
        self.shared.lock().lsn_last
    }

    /// Number of groups.
    pub fn groups(&self) -> usize {
        self.shared.lock().groups.len()
    }

    /// Number of the record up to which records were deleted.
    pub fn forgotten(&self) -> u64 {
        self.shared.lock().forgotten
    }

    fn leads(&self, shared: &Shared) -> Result<()> {
        match self.epoch.load(Ordering::Relaxed) == shared.epoch {
            true => Ok(()),
            false => Err(Error::io("log", &ErrorKind::PermissionDenied.into())),
        }
    }
}

impl Log for SimLog {
    fn superblock(&self) -> Result<Option<Superblock>> {
        Ok(self.shared.lock().superblock.clone())
    }

    fn create(&self, superblock: &Superblock) -> Result<()> {
        self.shared.lock().superblock = Some(superblock.clone());
        Ok(())
    }

    fn replace(&self, superblock: &mut Superblock) -> Result<()> {
        let mut shared = self.shared.lock();
        self.leads(&shared)?;
        superblock.generation += 1;
        shared.superblock = Some(superblock.clone());
        Ok(())
    }

    fn read_after(&self, _: &Superblock, after: u64) -> Result<(Vec<Record>, LogTail)> {
        let shared = self.shared.lock();
        if after < shared.forgotten {
            return Err(Error::corrupt("log", format!("record {} is missing", after + 1)));
        }
        let mut out = Vec::new();
        for (first, count, body) in &shared.groups {
            let records = records_of_group(body, *first, *count, "group")?;
            out.extend(records.into_iter().filter(|record| record.lsn > after));
        }
        Ok((out, LogTail { lsn_last: shared.lsn_last, ..LogTail::default() }))
    }

    fn resume(&self, superblock: &Superblock, tail: &LogTail) -> Result<Box<dyn LogWriter>> {
        let mut shared = self.shared.lock();
        if shared.lsn_last != tail.lsn_last || shared.superblock.as_ref() != Some(superblock) {
            return Err(Error::invalid("log", "has changed since it was read"));
        }
        shared.epoch += 1;
        self.epoch.store(shared.epoch, Ordering::Relaxed);
        Ok(Box::new(self.clone()))
    }

    fn forget(&self, lsn: u64, _: Option<u64>) -> Result<()> {
        let mut shared = self.shared.lock();
        self.leads(&shared)?;
        shared.forgotten = lsn;
        shared.groups.retain(|(first, count, _)| first + u64::from(*count) > lsn + 1);
        Ok(())
    }

    fn settle_deletions(&self) -> Result<()> {
        Ok(())
    }

    fn files_after(&self, _: u64, _: u64, _: Option<LogEnd>) -> Result<Option<Vec<(String, u64)>>> {
        Ok(None)
    }

    fn is_in_files(&self) -> bool {
        false
    }

    fn check_superblock(&self) -> Vec<Error> {
        Vec::new()
    }
}

impl LogWriter for SimLog {
    fn append(&mut self, lsn_first: u64, count: u32, body: &[u8]) -> Result<(), AppendError> {
        let mut shared = self.shared.lock();
        self.leads(&shared).map_err(AppendError::Fatal)?;
        let fault = shared.faults.pop();
        // The same group again is one that got no answer.
        if shared.lsn_last < lsn_first && fault != Some(false) {
            shared.groups.push((lsn_first, count, View::new(body.to_vec())));
            shared.lsn_last = lsn_first + u64::from(count) - 1;
        }
        match fault {
            None => Ok(()),
            Some(_) => {
                Err(AppendError::Unknown(Error::io("log", &ErrorKind::ConnectionReset.into())))
            }
        }
    }

    fn rotate(&mut self) {}

    fn end(&self) -> Option<LogEnd> {
        None
    }

    fn meters(&self) -> Arc<LogMeters> {
        Arc::default()
    }
}
