//! The interface of the log: where groups of records become durable in one order, and where the superblock is.
//!
//! The store above asks a [`Log`] and a [`LogWriter`], and does not know where records are. [`FileLog`] keeps them in files of the
//! data directory (`wal`), with the superblock beside them. What a start asks, in this order:
//!
//! ```text
//! superblock()          the database and its checkpoints, or none: create() makes one
//! read_after(17)        records 18 to 40, and where the log ends; changes nothing, so a start that is refused has changed nothing
//! resume(tail)          what was read is durable from here on, and the writer goes on with record 41
//! append(41, 2, …)      records 41 and 42 are durable together, or neither counts
//! replace(superblock)   after a checkpoint at record 42
//! forget(17)            records up to 17 are not needed any more
//! ```

use std::sync::Arc;

use super::superblock::Superblock;
use crate::{
    base::{clock::Clock, rng::Rng},
    error::{IoContext, Result},
    vfs::Vfs,
    wal::{self, AppendError, LogEnd, LogMeters, LogTail, Record},
};

/// Records in one order, and the superblock of their database. All calls block.
pub trait Log: Send + Sync + 'static {
    /// The newest superblock; `None` where there is no database yet.
    ///
    /// Errors: `Invalid` for a newer format, `Corrupt` where none is whole.
    fn superblock(&self) -> Result<Option<Superblock>>;

    /// Makes a database with this superblock, durably.
    fn create(&self, superblock: &Superblock) -> Result<()>;

    /// Replaces the superblock durably by its next generation, which it is afterwards; after an error it is as before.
    fn replace(&self, superblock: &mut Superblock) -> Result<()>;

    /// The records above `after`, and where the log ends. Changes nothing.
    ///
    /// Errors: `Corrupt` with file and offset where one of them is missing or damaged.
    fn read_after(&self, superblock: &Superblock, after: u64) -> Result<(Vec<Record>, LogTail)>;

    /// Makes durable what a start has read up to `tail`, and gives the writer of what follows.
    ///
    /// From here on no writer of before may append, replace the superblock or delete records. Fails where one has since `tail` was read: the
    /// start deletes files that no record up to `tail` names, and a later one might.
    fn resume(&self, superblock: &Superblock, tail: &LogTail) -> Result<Box<dyn LogWriter>>;

    /// Deletes records at or below `lsn`, as far as whole files have no others. `current` is the first record of the file that
    /// is written to, which stays.
    fn forget(&self, lsn: u64, current: Option<u64>) -> Result<()>;

    /// Makes durable that records were deleted: they do not come back after a loss of power.
    fn settle_deletions(&self) -> Result<()>;

    /// The files of the data directory with the records above `after` up to `last`, and how many bytes of each count, for
    /// a copy. `end` is where the log ended at `last`, if this process had written any of it.
    ///
    /// Errors: `Invalid` for a log that is not in files: a copy without its records would not be whole.
    fn files_after(&self, after: u64, last: u64, end: Option<LogEnd>)
    -> Result<Vec<(String, u64)>>;
}

/// Appends to a log. There is one for each log at a time.
pub trait LogWriter: Send {
    /// Makes `count` records durable together. `body` are their bytes (`wal::put_record`), `lsn_first` is the number of the first one,
    /// which follows the last one that was appended.
    ///
    /// Errors: [`AppendError`] says whether a later group may succeed.
    fn append(&mut self, lsn_first: u64, count: u32, body: &[u8]) -> Result<(), AppendError>;

    /// Ends the current file, so that it can be deleted once its records are not needed.
    fn rotate(&mut self);

    /// Where the log ends, if this process has written any of it.
    fn end(&self) -> Option<LogEnd>;

    /// Counters since the start.
    fn meters(&self) -> Arc<LogMeters>;
}

impl LogWriter for wal::Writer {
    fn append(&mut self, lsn_first: u64, count: u32, body: &[u8]) -> Result<(), AppendError> {
        Self::append(self, lsn_first, count, body)
    }

    fn rotate(&mut self) {
        Self::rotate(self);
    }

    fn end(&self) -> Option<LogEnd> {
        Self::end(self)
    }

    fn meters(&self) -> Arc<LogMeters> {
        Self::meters(self)
    }
}

/// The log in files of the data directory.
pub struct FileLog {
    vfs: Arc<dyn Vfs>,
    clock: Arc<dyn Clock>,
    rng: Arc<dyn Rng>,
    /// Length of a file.
    file_bytes: u64,
}

impl FileLog {
    /// The log of a data directory, in files of so many bytes. Nothing is read or made yet.
    pub fn new(
        vfs: Arc<dyn Vfs>,
        clock: Arc<dyn Clock>,
        rng: Arc<dyn Rng>,
        file_bytes: u64,
    ) -> Self {
        Self { vfs, clock, rng, file_bytes }
    }
}

impl Log for FileLog {
    fn superblock(&self) -> Result<Option<Superblock>> {
        Superblock::load(&*self.vfs)
    }

    fn create(&self, superblock: &Superblock) -> Result<()> {
        superblock.create(&*self.vfs)
    }

    fn replace(&self, superblock: &mut Superblock) -> Result<()> {
        superblock.store(&*self.vfs)
    }

    fn read_after(&self, superblock: &Superblock, after: u64) -> Result<(Vec<Record>, LogTail)> {
        wal::read(&*self.vfs, superblock.db, after)
    }

    fn resume(&self, superblock: &Superblock, tail: &LogTail) -> Result<Box<dyn LogWriter>> {
        let chain = wal::harden(&*self.vfs, &*self.rng, tail)?;
        superblock.settle(&*self.vfs)?;
        Ok(Box::new(wal::Writer::new(
            Arc::clone(&self.vfs),
            Arc::clone(&self.clock),
            Arc::clone(&self.rng),
            superblock.db,
            chain,
            self.file_bytes,
        )))
    }

    fn forget(&self, lsn: u64, current: Option<u64>) -> Result<()> {
        let names = self.vfs.list(wal::DIRECTORY).at(wal::DIRECTORY)?;
        let firsts: Vec<u64> =
            names.iter().filter_map(|name| name.strip_suffix(".wal")?.parse().ok()).collect();
        for (first, next) in firsts.iter().zip(firsts.iter().skip(1)) {
            if *next > lsn.saturating_add(1) || current == Some(*first) {
                break;
            }
            let place = format!("{}/{first:020}.wal", wal::DIRECTORY);
            self.vfs.remove(&place).at(&place)?;
        }
        Ok(())
    }

    fn settle_deletions(&self) -> Result<()> {
        self.vfs.sync_dir(wal::DIRECTORY).at(wal::DIRECTORY)
    }

    fn files_after(
        &self,
        after: u64,
        last: u64,
        end: Option<LogEnd>,
    ) -> Result<Vec<(String, u64)>> {
        wal::files_after(&*self.vfs, after, last, end)
    }
}

#[cfg(test)]
mod tests {
    use std::io::ErrorKind;

    use parking_lot::Mutex;

    use super::*;
    use crate::{
        base::{clock::ManualClock, rng::SeededRng},
        batch::Batch,
        error::Error,
        event::{Event, Namespace},
        keyspace::KeyReader,
        store::{Limits, Store},
        vfs::{View, objects::ObjectVfs, sim::SimVfs, sim_objects::SimObjects},
        wal::records_of_group,
    };

    /// A log elsewhere: groups and superblock outlive the data directory.
    #[derive(Default, Clone)]
    struct RemoteLog(Arc<Mutex<Remote>>);

    #[derive(Default)]
    struct Remote {
        superblock: Option<Superblock>,
        /// First record, number of records and body of each group.
        groups: Vec<(u64, u32, View)>,
        forgotten: u64,
    }

    impl Log for RemoteLog {
        fn superblock(&self) -> Result<Option<Superblock>> {
            Ok(self.0.lock().superblock.clone())
        }

        fn create(&self, superblock: &Superblock) -> Result<()> {
            self.0.lock().superblock = Some(superblock.clone());
            Ok(())
        }

        fn replace(&self, superblock: &mut Superblock) -> Result<()> {
            superblock.generation += 1;
            self.create(superblock)
        }

        fn read_after(&self, _: &Superblock, after: u64) -> Result<(Vec<Record>, LogTail)> {
            let remote = self.0.lock();
            assert!(after >= remote.forgotten, "nobody asks for what was deleted");
            let mut tail = LogTail { lsn_last: after, ..LogTail::default() };
            let mut out = Vec::new();
            for (first, count, body) in &remote.groups {
                let records = records_of_group(body, *first, *count, "group")?;
                out.extend(records.into_iter().filter(|record| record.lsn > after));
                tail.lsn_last = tail.lsn_last.max(first + u64::from(*count) - 1);
            }
            Ok((out, tail))
        }

        fn resume(&self, _: &Superblock, _: &LogTail) -> Result<Box<dyn LogWriter>> {
            Ok(Box::new(self.clone()))
        }

        fn forget(&self, lsn: u64, _: Option<u64>) -> Result<()> {
            let mut remote = self.0.lock();
            remote.forgotten = lsn;
            remote.groups.retain(|(first, count, _)| first + u64::from(*count) > lsn + 1);
            Ok(())
        }

        fn settle_deletions(&self) -> Result<()> {
            Ok(())
        }

        fn files_after(&self, _: u64, _: u64, _: Option<LogEnd>) -> Result<Vec<(String, u64)>> {
            Err(Error::invalid("log", "is not in files"))
        }
    }

    impl LogWriter for RemoteLog {
        fn append(&mut self, lsn_first: u64, count: u32, body: &[u8]) -> Result<(), AppendError> {
            self.0.lock().groups.push((lsn_first, count, View::new(body.to_vec())));
            Ok(())
        }

        fn rotate(&mut self) {}

        fn end(&self) -> Option<LogEnd> {
            None
        }

        fn meters(&self) -> Arc<LogMeters> {
            Arc::default()
        }
    }

    const DIRECTORIES: &[&str] = &["seg", "ids", "ckpt"];

    /// A store with this disk as its cache.
    fn open(disk: &SimVfs, objects: &SimObjects, log: &RemoteLog, seed: u64) -> Store {
        try_open(disk, objects, log, seed).unwrap()
    }

    fn try_open(disk: &SimVfs, objects: &SimObjects, log: &RemoteLog, seed: u64) -> Result<Store> {
        let clock = Arc::new(ManualClock::new(20_400 * 86_400_000));
        let rng = Arc::new(SeededRng::new(seed));
        let (disk, objects) = (Arc::new(disk.clone()), Arc::new(objects.clone()));
        let vfs = Arc::new(ObjectVfs::new(disk, objects, DIRECTORIES, "ckpt"));
        Store::open(vfs, Arc::new(log.clone()), clock, rng, Limits::default())
    }

    fn send(store: &Store, id: &str) -> u32 {
        let mut batch = Batch::new(Namespace(1), store.hash_seed());
        let timestamp_ms = 20_400 * 86_400_000;
        let event =
            Event { tenant: "t", name: "call", timestamp_ms, event_id: Some(id), user_id: None };
        batch.push(&event, &[], &[]).unwrap();
        let ingested = store.ingest(batch, |txn, _| {
            txn.put(id.as_bytes(), b"there");
            Ok::<_, Error>(())
        });
        ingested.unwrap().new
    }

    fn keys(store: &Store) -> usize {
        KeyReader::new(store.version().tree.clone()).scan(b"id").len()
    }

    #[test]
    fn a_store_whose_log_and_files_are_elsewhere_goes_on_with_an_empty_disk() {
        let (log, objects) = (RemoteLog::default(), SimObjects::default());
        let store = open(&SimVfs::new(), &objects, &log, 1);
        assert_eq!((send(&store, "id 1"), send(&store, "id 2"), send(&store, "id 1")), (1, 1, 0));
        drop(store);
        // Rows that were not flushed are in the log.
        let disk = SimVfs::new();
        let store = open(&disk, &objects, &log, 2);
        assert_eq!((keys(&store), store.version().active.rows()), (2, 2));
        assert_eq!((send(&store, "id 2"), send(&store, "id 3")), (0, 1));
        let names: Vec<String> = disk.files().into_keys().collect();
        assert!(names.iter().all(|name| name == "LOCK"), "{names:?}");
        // A checkpoint and another: records before the older one are deleted.
        store.flush().unwrap();
        assert_eq!(send(&store, "id 4"), 1);
        store.flush().unwrap();
        assert!(log.0.lock().forgotten > 0 && log.0.lock().groups.len() < 4);
        drop(store);
        // Segments, ids and checkpoints are fetched.
        let store = open(&SimVfs::new(), &objects, &log, 3);
        assert_eq!((keys(&store), store.version().active.rows()), (4, 0));
        assert_eq!(store.version().segments.iter().map(|one| one.meta().rows).sum::<u32>(), 4);
        assert_eq!((send(&store, "id 1"), send(&store, "id 5")), (0, 1));
    }

    /// A flush that fails leaves its rows in the log, and what it has uploaded goes at the next start.
    #[test]
    fn a_store_of_objects_that_fail_loses_nothing() {
        let (log, objects) = (RemoteLog::default(), SimObjects::default());
        let store = open(&SimVfs::new(), &objects, &log, 1);
        assert_eq!(send(&store, "id 1"), 1);
        objects.lose_answer_at(0, ErrorKind::ConnectionReset);
        assert!(store.flush().is_err());
        assert_eq!(objects.names().len(), 1, "a segment without a record that names it");
        drop(store);
        let store = open(&SimVfs::new(), &objects, &log, 2);
        assert!(objects.names().is_empty());
        assert_eq!((keys(&store), send(&store, "id 1")), (1, 0));
        store.flush().unwrap();
        assert_eq!(store.version().active.rows(), 0);
        drop(store);
        // A start that meets a fault is refused or has everything.
        let mut refused = 0;
        for (calls, seed) in (0..8).zip(3..) {
            objects.fail_at(calls, ErrorKind::TimedOut);
            match try_open(&SimVfs::new(), &objects, &log, seed) {
                Ok(store) => assert_eq!((keys(&store), send(&store, "id 1")), (1, 0), "{calls}"),
                Err(_) => refused += 1,
            }
        }
        assert!(refused > 0);
        objects.fail_at(usize::MAX, ErrorKind::TimedOut);
        assert_eq!(keys(&open(&SimVfs::new(), &objects, &log, 99)), 1);
    }
}
