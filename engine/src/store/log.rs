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
    error::{Error, IoContext, Result},
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
    /// `None` for a log that is not in files of the data directory: a copy makes a file of the records.
    fn files_after(
        &self,
        after: u64,
        last: u64,
        end: Option<LogEnd>,
    ) -> Result<Option<Vec<(String, u64)>>>;

    /// Whether the log is in files of the data directory.
    fn is_in_files(&self) -> bool;

    /// What is wrong with the copies of the superblock, of which one is enough to start.
    fn check_superblock(&self) -> Vec<Error>;
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
    ) -> Result<Option<Vec<(String, u64)>>> {
        wal::files_after(&*self.vfs, after, last, end).map(Some)
    }

    fn is_in_files(&self) -> bool {
        true
    }

    fn check_superblock(&self) -> Vec<Error> {
        Superblock::check_slots(&*self.vfs)
    }
}

#[cfg(test)]
mod tests {
    use std::{
        io::ErrorKind,
        sync::atomic::{AtomicUsize, Ordering},
        thread,
        time::Duration,
    };

    use parking_lot::Mutex;

    use super::*;
    use crate::{
        base::{clock::ManualClock, rng::SeededRng},
        batch::Batch,
        error::Limit,
        event::{Event, Namespace},
        inspect::Inspection,
        keyspace::{KeyReader, Txn},
        store::{Dependencies, Limits, Store, restore, sim_log::SimLog},
        vfs::{objects::ObjectVfs, sim::SimVfs, sim_objects::SimObjects},
        wal::file_of,
    };

    const DIRECTORIES: &[&str] = &["seg", "ids", "ckpt"];

    /// A store with this disk as its cache.
    fn open(disk: &SimVfs, objects: &SimObjects, log: &SimLog, seed: u64) -> Store {
        try_open(disk, objects, log, seed).unwrap()
    }

    fn try_open(disk: &SimVfs, objects: &SimObjects, log: &SimLog, seed: u64) -> Result<Store> {
        let clock = Arc::new(ManualClock::new(20_400 * 86_400_000));
        let rng = Arc::new(SeededRng::new(seed));
        let (disk, objects) = (Arc::new(disk.clone()), Arc::new(objects.clone()));
        let vfs = Arc::new(ObjectVfs::new(disk, objects, DIRECTORIES));
        let log = Arc::new(log.clone());
        Store::open(Dependencies { vfs, log, clock, rng, limits: Limits::default() })
    }

    fn send(store: &Store, id: &str) -> u32 {
        try_send(store, id).unwrap()
    }

    fn try_send(store: &Store, id: &str) -> Result<u32> {
        let mut batch = Batch::new(Namespace(1), store.hash_seed());
        let timestamp_ms = 20_400 * 86_400_000;
        let event =
            Event { tenant: "t", name: "call", timestamp_ms, event_id: Some(id), user_id: None };
        batch.push(&event, &[], &[]).unwrap();
        let ingested = store.ingest(batch, |txn, _| {
            txn.put(id.as_bytes(), b"there");
            Ok::<_, Error>(())
        });
        ingested.map(|ingested| ingested.new)
    }

    fn keys(store: &Store) -> usize {
        KeyReader::new(store.version().tree.clone()).scan(b"id").len()
    }

    #[test]
    fn a_store_whose_log_and_files_are_elsewhere_goes_on_with_an_empty_disk() {
        let (log, objects) = (SimLog::default(), SimObjects::default());
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
        assert!(log.forgotten() > 0 && log.groups() < 4);
        drop(store);
        // Segments, ids and checkpoints are fetched.
        let store = open(&SimVfs::new(), &objects, &log, 3);
        assert_eq!((keys(&store), store.version().active.rows()), (4, 0));
        assert_eq!(store.version().segments.iter().map(|one| one.meta().rows).sum::<u32>(), 4);
        assert_eq!((send(&store, "id 1"), send(&store, "id 5")), (0, 1));
    }

    /// A flush that fails leaves its rows in the log, and what it has uploaded goes after the next start.
    #[test]
    fn a_store_of_objects_that_fail_loses_nothing() {
        let (log, objects) = (SimLog::default(), SimObjects::default());
        let store = open(&SimVfs::new(), &objects, &log, 1);
        assert_eq!(send(&store, "id 1"), 1);
        objects.lose_answer_at(0, ErrorKind::ConnectionReset);
        assert!(store.flush().is_err());
        assert_eq!(objects.names().len(), 1, "a segment without a record that names it");
        drop(store);
        let store = open(&SimVfs::new(), &objects, &log, 2);
        assert_eq!(objects.names().len(), 1, "objects stay for a while");
        store.vfs.purge().unwrap();
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

    /// Whatever the log does with a group of which it says nothing, its writer is not answered with success, nothing else is written before it is known,
    /// and afterwards the group is there, once.
    #[test]
    fn a_group_without_an_answer_is_neither_lost_nor_doubled() {
        for is_there in [false, true] {
            let (log, objects) = (SimLog::default(), SimObjects::default());
            let store = open(&SimVfs::new(), &objects, &log, 1);
            assert_eq!(send(&store, "id 1"), 1);
            log.fail_append(is_there);
            log.fail_append(is_there);
            let transact = |key: &'static [u8]| {
                store.transact(|txn: &mut Txn| {
                    txn.put(key, b"there");
                    Ok::<_, Error>(())
                })
            };
            let refused = transact(b"id 2").unwrap_err();
            assert!(refused.to_string().contains("not known whether the write is stored"));
            assert!(matches!(refused, Error::Limit { limit: Limit::Backlog, .. }));
            // Neither is another write taken, nor a flush begun; readers have what was published.
            assert!(transact(b"id 3").is_err() && store.flush().is_err());
            assert_eq!(keys(&store), 1);
            assert_eq!((send(&store, "id 1"), send(&store, "id 4")), (0, 1));
            assert_eq!(keys(&store), 3, "the group of which nothing was known is there now");
            assert_eq!(log.groups(), 3);
            drop(store);
            let store = open(&SimVfs::new(), &objects, &log, 2);
            assert_eq!((keys(&store), send(&store, "id 4")), (3, 0));
        }
    }

    /// The record that names new segments gets no answer: the flush waits until it is known, and does not delete them.
    #[test]
    fn a_flush_whose_record_gets_no_answer_keeps_its_files() {
        for is_there in [false, true] {
            let (log, objects) = (SimLog::default(), SimObjects::default());
            let store = open(&SimVfs::new(), &objects, &log, 1);
            assert_eq!(send(&store, "id 1"), 1);
            log.fail_append(is_there);
            store.flush().unwrap();
            drop(store);
            let store = open(&SimVfs::new(), &objects, &log, 2);
            assert_eq!((store.version().active.rows(), send(&store, "id 1")), (0, 0));
        }
    }

    #[test]
    fn a_backup_of_a_log_elsewhere_is_a_data_directory() {
        let (log, objects) = (SimLog::default(), SimObjects::default());
        let disk = SimVfs::new();
        let store = open(&disk, &objects, &log, 1);
        assert_eq!(send(&store, "id 1"), 1);
        store.flush().unwrap();
        assert_eq!(send(&store, "id 2"), 1);
        // Rows that come while a backup runs are in a log file of their own; here those that a flush has not seen.
        let records = log.read_after(&log.superblock().unwrap().unwrap(), 1).unwrap().0;
        let (path, bytes) = file_of(&records, log.superblock().unwrap().unwrap().db, 7).unwrap();
        assert_eq!(path, format!("wal/{:020}.wal", records[0].lsn));
        store.backup("/backup", None, &mut |_| ()).unwrap();
        let files = disk.files();
        assert!(files.keys().any(|name| name.starts_with("/backup/seg/")), "{:?}", files.keys());
        let restored = SimVfs::new();
        for (name, content) in &files {
            if let Some(name) = name.strip_prefix("/backup/") {
                restored.set_file(name, Some(content.clone()));
            }
        }
        drop(store);
        let target = SimVfs::new();
        restore(&restored, &target).unwrap();
        let verified = Inspection::open(target).unwrap().verify(&mut |_| ());
        assert_eq!((verified.problems, verified.segments), (Vec::new(), 2));
        let clock = Arc::new(ManualClock::new(20_400 * 86_400_000));
        let rng = Arc::new(SeededRng::new(9));
        let own = FileLog::new(Arc::new(restored.clone()), clock.clone(), rng.clone(), 1 << 20);
        let vfs = Arc::new(restored.clone());
        let (files, limits) = (Arc::new(own), Limits::default());
        let with = Dependencies { vfs, log: files, clock, rng, limits };
        let store = Store::open(with).unwrap();
        assert_eq!((keys(&store), send(&store, "id 2"), send(&store, "id 3")), (2, 0, 1));
        drop(store);
        // And the file of records is one that a start reads.
        let other = SimVfs::new();
        other.create_dir(wal::DIRECTORY).unwrap();
        other.set_file(&path, Some(bytes));
        let db = log.superblock().unwrap().unwrap().db;
        let (read, tail) = wal::read(&other, db, records[0].lsn - 1).unwrap();
        assert_eq!((read.len(), tail.torn_bytes), (records.len(), 0));
        assert!(read.iter().zip(&records).all(|(one, two)| one.payload() == two.payload()));
    }

    #[test]
    fn a_damaged_copy_is_fetched_again() {
        let (log, objects) = (SimLog::default(), SimObjects::default());
        let disk = SimVfs::new();
        let store = open(&disk, &objects, &log, 1);
        assert_eq!(send(&store, "id 1"), 1);
        store.flush().unwrap();
        drop(store);
        for name in objects.names() {
            disk.set_file(&name, Some(vec![7; 100]));
        }
        let store = open(&disk, &objects, &log, 2);
        assert_eq!((keys(&store), send(&store, "id 1")), (1, 0));
    }

    /// While the log is asked about a group, nothing passes for stored that the group has.
    #[test]
    fn what_is_asked_for_is_not_acknowledged_meanwhile() {
        /// A log whose appends wait, from the second one on, until the test lets them go.
        struct Slow(Arc<Mutex<()>>, AtomicUsize);

        impl Slow {
            fn wait(&self) {
                if self.1.fetch_add(1, Ordering::SeqCst) > 0 {
                    drop(self.0.lock());
                }
            }
        }

        struct SlowWriter(Box<dyn LogWriter>, Arc<Slow>);

        impl LogWriter for SlowWriter {
            fn append(&mut self, first: u64, count: u32, body: &[u8]) -> Result<(), AppendError> {
                self.1.wait();
                self.0.append(first, count, body)
            }

            fn rotate(&mut self) {}

            fn end(&self) -> Option<LogEnd> {
                None
            }

            fn meters(&self) -> Arc<LogMeters> {
                Arc::default()
            }
        }

        let gate = Arc::new(Mutex::new(()));
        let log = SimLog::default();
        let slow = Arc::new(Slow(Arc::clone(&gate), AtomicUsize::new(0)));
        let store = open(&SimVfs::new(), &SimObjects::default(), &log, 1);
        let writer = log.resume(
            &log.superblock().unwrap().unwrap(),
            &LogTail { lsn_last: log.last(), ..LogTail::default() },
        );
        store.sequencer.lead(Box::new(SlowWriter(writer.unwrap(), Arc::clone(&slow))));
        log.fail_append(false);
        assert!(try_send(&store, "id 1").is_err());
        let held = gate.lock();
        thread::scope(|scope| {
            let asking = scope.spawn(|| store.maintain());
            while slow.1.load(Ordering::SeqCst) < 2 {
                thread::yield_now();
            }
            // The log has not answered yet. What is sent again is known, and is not known to be stored: its writer waits.
            let again = scope.spawn(|| try_send(&store, "id 1"));
            thread::sleep(Duration::from_millis(50));
            assert!(!again.is_finished());
            drop(held);
            asking.join().unwrap().unwrap();
            assert_eq!(again.join().unwrap(), Ok(0));
        });
        assert_eq!((send(&store, "id 1"), keys(&store)), (0, 1));
    }
}
