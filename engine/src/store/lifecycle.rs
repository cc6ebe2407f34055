//! The store: open, ingest and transact, when a flush or a checkpoint is due, close.

use std::{
    any::Any,
    collections::BTreeSet,
    io,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering},
    },
};

use parking_lot::Mutex;

use super::{
    LOCK, TEMPORARY, checkpoint,
    edit::Edit,
    flush::{FlushContext, flush},
    log::Log,
    policy::CompactionLimits,
    recovery::{Recovered, discard_dead_copies, load, recover},
    sequencer::{Ingested, Sequencer},
    superblock::{CHECKPOINTS_KEPT, Superblock},
    trusted_clock::TrustedClock,
    version::Version,
};
use crate::{
    base::{
        clock::Clock,
        hash::HashSet128,
        meter::{MICROSECONDS, Meter},
        rng::Rng,
    },
    batch::Batch,
    column::Rows,
    error::{Error, IoContext, Limit, Result},
    ids::{self, IdRun},
    keyspace::{Txn, checkpoint as keyspace_checkpoint},
    segment::{self, Database, Segment},
    vfs::Vfs,
    wal,
};

/// Thresholds of flushes and bounds of memory.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// Rows in memory at which a flush is due: a scan of them stays below a millisecond or so.
    pub flush_rows: usize,
    /// Bytes in memory at which a flush is due.
    pub flush_bytes: usize,
    /// Age of the oldest row in memory at which a flush is due: it bounds what a start replays.
    pub flush_age_ms: i64,
    /// Different properties in memory at which a flush is due: a segment has a column for each.
    pub flush_columns: usize,
    /// Different properties in memory at which writes are refused until a flush is done.
    pub columns_max: usize,
    /// Bytes in memory at which writes are refused until a flush is done.
    pub memtable_bytes_max: usize,
    /// Bytes that all running queries may hold together.
    pub queries_bytes_max: usize,
    /// Bytes that one query may hold.
    pub query_bytes_max: usize,
    /// Bytes of the query cache: dictionaries, users, series look-ups and partial results.
    pub kept_bytes_max: usize,
    /// Size of a log file.
    pub log_file_bytes: u64,
    /// Days of events that a namespace keeps unless it has a rule of its own; `None` keeps all.
    pub retention_days: Option<u32>,
    /// Limits of the compaction.
    pub compaction: CompactionLimits,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            flush_rows: 250_000,
            flush_bytes: 64 << 20,
            flush_age_ms: 60_000,
            flush_columns: 2_000,
            columns_max: 8_000,
            memtable_bytes_max: 512 << 20,
            queries_bytes_max: 1 << 30,
            query_bytes_max: 256 << 20,
            kept_bytes_max: 256 << 20,
            log_file_bytes: 64 << 20,
            retention_days: None,
            compaction: CompactionLimits::default(),
        }
    }
}

/// Dependencies and limits of a store.
pub struct Dependencies {
    /// The disk with the data directory, or the cache of an object store.
    pub vfs: Arc<dyn Vfs>,
    /// Records and superblock.
    pub log: Arc<dyn Log>,
    /// Wall clock and monotonic time.
    pub clock: Arc<dyn Clock>,
    /// Source of names and identities.
    pub rng: Arc<dyn Rng>,
    /// When to flush and merge, and bounds.
    pub limits: Limits,
}

/// An open data directory.
pub struct Store {
    pub(super) vfs: Arc<dyn Vfs>,
    pub(super) log: Arc<dyn Log>,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) rng: Arc<dyn Rng>,
    pub(super) limits: Limits,
    pub(super) database: Database,
    pub(super) sequencer: Sequencer,
    /// One compaction, erasure or backup at a time. Taken before `upkeep`.
    pub(super) compaction: Mutex<Compaction>,
    pub(super) upkeep: Mutex<Upkeep>,
    /// Why the last flush failed, until one succeeds.
    trouble: Mutex<Option<String>>,
    /// Why the last step of the compaction failed, until one succeeds.
    pub(super) compaction_trouble: Mutex<Option<String>>,
    /// Held while copies of segments are restored.
    pub(super) restoring: Mutex<()>,
    /// Which thread of the background ended by a panic, if one did.
    pub(super) panicked: Mutex<BTreeSet<&'static str>>,
    pub(super) pace: Pace,
    /// Clock by which files of expired rows are dropped.
    pub(super) settled: Mutex<TrustedClock>,
    pub(super) totals: Totals,
    /// Counters of the log.
    pub(super) log_meters: Mutex<Arc<wal::LogMeters>>,
    /// Whether an id run could not answer and has to be written anew.
    pub(super) ids_are_damaged: AtomicBool,
    _lock: Box<dyn Any + Send + Sync>,
}

pub(super) struct Upkeep {
    pub(super) superblock: Superblock,
    /// A memtable that was set aside and not flushed yet: its ids and last LSN.
    frozen: Option<(Arc<HashSet128>, u64)>,
    pub(super) active_since_ms: Option<i64>,
    /// When a flush failed, until one succeeds.
    failed_at_ms: Option<i64>,
    /// While another process is followed: copies that were fetched for a version that was not shown, or could not be removed.
    pub(super) leftover_copies: BTreeSet<String>,
    /// While another process is followed: rows that no segment holds, each with the number of its record. A flush takes those up to one away.
    pub(super) recent: Vec<(u64, Arc<Rows>)>,
}

/// State of the compaction.
#[derive(Default)]
pub(super) struct Compaction {
    /// Segments that cannot be read: they are not touched until an operator restores them.
    pub(super) damaged: BTreeSet<uuid::Uuid>,
    /// When a step failed, until one succeeds.
    pub(super) failed_at_ms: Option<i64>,
}

/// How compaction shares the machine: it waits while queries run, and ends when it must.
#[derive(Default)]
pub(super) struct Pace {
    pub(super) queries: AtomicUsize,
    pub(super) must_end: AtomicBool,
}

/// Counters of ingestion and background work since the start.
pub(super) struct Totals {
    pub(super) ingested: AtomicU64,
    pub(super) duplicates: AtomicU64,
    pub(super) flush_us: Meter,
    pub(super) flushed_rows: AtomicU64,
    pub(super) flushed_bytes: AtomicU64,
    pub(super) compaction_us: Meter,
    pub(super) compacted_rows: AtomicU64,
    pub(super) compaction_read_bytes: AtomicU64,
    pub(super) compaction_written_bytes: AtomicU64,
    pub(super) expired_rows: AtomicU64,
    pub(super) compaction_yields: AtomicU64,
}

impl Default for Totals {
    fn default() -> Self {
        Self {
            ingested: AtomicU64::new(0),
            duplicates: AtomicU64::new(0),
            flush_us: Meter::new(MICROSECONDS),
            flushed_rows: AtomicU64::new(0),
            flushed_bytes: AtomicU64::new(0),
            compaction_us: Meter::new(MICROSECONDS),
            compacted_rows: AtomicU64::new(0),
            compaction_read_bytes: AtomicU64::new(0),
            compaction_written_bytes: AtomicU64::new(0),
            expired_rows: AtomicU64::new(0),
            compaction_yields: AtomicU64::new(0),
        }
    }
}

/// Wait after something failed: a full disk is not filled again at once.
const RETRY_MS: u64 = 5_000;
/// Records of metadata alone at which a checkpoint is due, so that the log does not grow without
/// bound where no events come.
const CHECKPOINT_RECORDS: u64 = 20_000;

impl Store {
    /// Opens the data directory of a log, creating or recovering the database.
    ///
    /// Errors: `Invalid` when another process has it or its format is newer, `Corrupt` naming file
    /// and offset of damage, and those of the log.
    pub fn open(with: Dependencies) -> Result<Self> {
        let lock = prepare_directory(&*with.vfs)?;
        let (vfs, log) = (&*with.vfs, &*with.log);
        let superblock = match log.superblock()? {
            Some(superblock) => superblock,
            None => create(vfs, log, &*with.rng)?,
        };
        let Recovered { version, dedup, writer, runs_lost } = recover(vfs, log, &superblock)?;
        let log_meters = writer.meters();
        let sequencer = Sequencer::new(superblock.hash_seed, version, dedup, writer);
        let store = Self::of(with, lock, sequencer, superblock, Vec::new(), log_meters);
        store.replace_lost_runs(&runs_lost)?;
        Ok(store)
    }

    /// Opens a store that another process has, to show what that one writes ([`Store::follow`]). Changes nothing but copies of files.
    ///
    /// Errors: `Invalid` where there is no database yet or another process has the directory, `Corrupt` naming what is damaged or missing: a file that the other
    /// process has dropped since the log was read is not damaged, so a start may be tried again.
    pub fn open_follower(with: Dependencies) -> Result<Self> {
        let lock = prepare_directory(&*with.vfs)?;
        let (vfs, log) = (&*with.vfs, &*with.log);
        let superblock = log.superblock()?;
        let superblock = superblock.ok_or_else(|| Error::invalid("log", "has no database yet"))?;
        let loaded = load(vfs, log, &superblock)?;
        if let Some(lost) = loaded.runs_lost.first() {
            return Err(Error::corrupt(format!("id run {lost}"), "is damaged or missing"));
        }
        discard_dead_copies(vfs, &loaded.version.tree)?;
        let sequencer = Sequencer::following(superblock.hash_seed, loaded.version, loaded.dedup);
        Ok(Self::of(with, lock, sequencer, superblock, loaded.recent, Arc::default()))
    }

    /// A store with the state that its sequencer has.
    fn of(
        with: Dependencies,
        lock: Box<dyn Any + Send + Sync>,
        sequencer: Sequencer,
        superblock: Superblock,
        recent: Vec<(u64, Arc<Rows>)>,
        log_meters: Arc<wal::LogMeters>,
    ) -> Self {
        let Dependencies { vfs, log, clock, rng, limits } = with;
        let active_since_ms = (sequencer.version().active.rows() > 0).then(|| clock.now_ms());
        Self {
            log_meters: Mutex::new(log_meters),
            database: superblock.database(),
            sequencer,
            compaction: Mutex::new(Compaction::default()),
            upkeep: Mutex::new(Upkeep {
                leftover_copies: BTreeSet::new(),
                superblock,
                frozen: None,
                active_since_ms,
                failed_at_ms: None,
                recent,
            }),
            trouble: Mutex::new(None),
            compaction_trouble: Mutex::new(None),
            restoring: Mutex::default(),
            panicked: Mutex::default(),
            settled: Mutex::default(),
            pace: Pace::default(),
            totals: Totals::default(),
            ids_are_damaged: AtomicBool::new(false),
            vfs,
            log,
            clock,
            rng,
            limits,
            _lock: lock,
        }
    }

    /// Whether another process writes, whose records are applied here.
    pub fn follows(&self) -> bool {
        self.sequencer.follows()
    }

    /// The disk with the data directory.
    pub fn vfs(&self) -> Arc<dyn Vfs> {
        Arc::clone(&self.vfs)
    }

    /// The log with its records.
    pub fn log(&self) -> Arc<dyn Log> {
        Arc::clone(&self.log)
    }

    /// Identity and hash seed of the database.
    pub fn database(&self) -> Database {
        self.database
    }

    /// Secret seed of the stored hashes.
    pub fn hash_seed(&self) -> u64 {
        self.database.hash_seed
    }

    /// The version that readers see now.
    pub fn version(&self) -> Arc<Version> {
        self.sequencer.version()
    }

    /// Why writes are refused, if they are.
    pub fn closed(&self) -> Option<String> {
        self.sequencer.closed()
    }

    /// Refuses changes from now on; memory is not written to segments.
    pub fn hand_over(&self) {
        self.sequencer.close("another process goes on from here");
    }

    /// Paths of all files that the version of now and the kept checkpoints need.
    pub fn files(&self) -> Vec<String> {
        self.files_of(&self.upkeep.lock().superblock)
    }

    fn files_of(&self, superblock: &Superblock) -> Vec<String> {
        let checkpoints =
            superblock.checkpoints.iter().map(|kept| keyspace_checkpoint::path(kept.lsn));
        let version = self.version();
        let segments = version.segments.iter().map(|segment| segment.meta().path());
        let runs = self.sequencer.id_runs();
        checkpoints.chain(segments).chain(runs.iter().map(|run| run.meta().path())).collect()
    }

    /// Whether a copy of a segment on this disk is damaged that [`Store::replace_damaged`] may replace.
    pub fn has_damage(&self) -> bool {
        self.vfs.is_shared() && self.version().segments.iter().any(|segment| segment.is_damaged())
    }

    /// Fetches segments of which a block was damaged anew. Queries go on with the damaged ones until then. Returns how many.
    ///
    /// Errors: those of the object store; `Corrupt` where what it has is damaged too. The copies stay as they were then.
    pub fn replace_damaged(&self) -> Result<usize> {
        let version = self.version();
        let mut opened = Vec::new();
        for segment in version.segments.iter().filter(|segment| segment.is_damaged()) {
            let (path, meta) = (segment.meta().path(), segment.meta());
            let newer = |view| Segment::open(view, meta.clone(), self.database());
            let check = |view| match newer(view).and_then(|newer| newer.verify()) {
                Ok(_) => Ok(()),
                Err(error) => Err(io::Error::new(io::ErrorKind::InvalidData, error.to_string())),
            };
            self.vfs.replace_copy(&path, &check).at(&path)?;
            opened.push(Arc::new(newer(self.vfs.map(&path).at(&path)?)?));
        }
        // Neither a follower's next version nor a flush comes in between.
        let upkeep = self.upkeep.lock();
        self.sequencer.replace_segments(&opened);
        let named = self.files_of(&upkeep.superblock);
        for path in opened.iter().map(|segment| segment.meta().path()) {
            if !named.contains(&path) {
                // It was merged away meanwhile: the new copy must not stay.
                self.vfs.discard_copy(&path).at(&path)?;
            }
        }
        drop(upkeep);
        let mut compaction = self.compaction.lock();
        for segment in &opened {
            compaction.damaged.remove(&segment.meta().uuid);
        }
        Ok(opened.len())
    }

    /// Writes all checkpoints that are kept anew: those that there were are lost.
    ///
    /// Errors: as of a flush.
    pub fn replace_checkpoints(&self) -> Result<()> {
        let mut upkeep = self.upkeep.lock();
        for _ in 0..CHECKPOINTS_KEPT {
            // A checkpoint has the number of the last record, so there has to be one.
            self.sequencer.publish_edit(Edit::default(), |_| ())?;
            self.flush_all(&mut upkeep)?;
        }
        Ok(())
    }

    /// Whether the copy on this disk of a file that is needed is whole: all of it is read.
    pub fn is_whole(&self, path: &str) -> bool {
        let (version, runs) = (self.version(), self.sequencer.id_runs());
        let (database, view) = (self.database(), || self.vfs.map(path).at(path));
        if let Some(segment) = version.segments.iter().find(|one| one.meta().path() == path) {
            let copy =
                view().and_then(|view| Segment::open(view, segment.meta().clone(), database));
            return copy.and_then(|copy| copy.verify()).is_ok();
        }
        if let Some(run) = runs.iter().find(|run| run.meta().path() == path) {
            let copy = view().and_then(|view| IdRun::open(view, run.meta().clone(), database.id));
            return copy.and_then(|copy| copy.verify()).is_ok();
        }
        let checkpoints = self.upkeep.lock().superblock.checkpoints.clone();
        let checkpoint = checkpoints.iter().find(|one| keyspace_checkpoint::path(one.lsn) == path);
        checkpoint
            .is_some_and(|one| keyspace_checkpoint::read(&*self.vfs, database.id, one.lsn).is_ok())
    }

    /// Throws copies of files away that nothing names. Returns those of which the copy could not be removed.
    pub fn discard_unnamed(&self, paths: &[String]) -> Vec<String> {
        // A follower must not open one in between.
        let upkeep = self.upkeep.lock();
        let named = self.files_of(&upkeep.superblock);
        let unnamed = paths.iter().filter(|path| !named.contains(path));
        unnamed.filter(|path| self.vfs.discard_copy(path).is_err()).cloned().collect()
    }

    /// Whether a group is unresolved.
    pub fn is_unresolved(&self) -> bool {
        self.sequencer.is_unresolved()
    }

    /// See [`Sequencer::ingest`]. Errors: also `Limit` when memory is full of unflushed rows.
    pub fn ingest<E: From<Error>>(
        &self,
        batch: Batch,
        extra: impl FnOnce(&mut Txn, &Ingested) -> Result<(), E>,
    ) -> Result<Ingested, E> {
        let version = self.version();
        if version.memtable_bytes() >= self.limits.memtable_bytes_max
            || version.active.columns() >= self.limits.columns_max
        {
            return Err(Error::limit(
                Limit::Backlog,
                "recent events wait to be written; retry soon",
            )
            .into());
        }
        if version.fresh_segments() >= self.limits.compaction.fresh_max {
            return Err(Error::limit(
                Limit::Backlog,
                "recent segments wait to be merged; retry soon",
            )
            .into());
        }
        let done = self.sequencer.ingest(batch, |txn, ingested| extra(txn, ingested));
        if let Ok(ingested) = &done {
            self.totals.ingested.fetch_add(ingested.new.into(), Ordering::Relaxed);
            let duplicates = ingested.duplicates.iter().filter(|known| **known).count();
            self.totals.duplicates.fetch_add(duplicates as u64, Ordering::Relaxed);
        }
        done.inspect_err(|_| {
            // An id run that cannot answer stops all writes until it is written anew.
            if !self.sequencer.ids_answer() {
                self.ids_are_damaged.store(true, Ordering::Relaxed);
            }
        })
    }

    /// See [`Sequencer::transact`].
    pub fn transact<T, E: From<Error>>(
        &self,
        run: impl FnOnce(&mut Txn) -> Result<T, E>,
    ) -> Result<T, E> {
        self.sequencer.transact(run)
    }

    /// Why the last flush failed, until one succeeds.
    pub fn trouble(&self) -> Option<String> {
        self.trouble.lock().clone()
    }

    /// Flushes, or takes a checkpoint, if it is time to. Returns whether it did.
    pub fn maintain(&self) -> Result<bool> {
        if self.closed().is_some() || self.follows() {
            return Ok(false);
        }
        self.sequencer.resolve()?;
        let due = {
            let mut upkeep = self.upkeep.lock();
            let due = upkeep.frozen.is_some() || self.is_flush_due(&mut upkeep);
            due && !waits(upkeep.failed_at_ms, self.clock.now_ms())
        };
        if due {
            return self.flush().map(|()| true);
        }
        let mut upkeep = self.upkeep.lock();
        let since = upkeep.superblock.checkpoints.first().map_or(0, |newest| newest.lsn);
        let is_due = self.version().lsn >= since + CHECKPOINT_RECORDS;
        if !is_due || waits(upkeep.failed_at_ms, self.clock.now_ms()) {
            return Ok(false);
        }
        let done =
            checkpoint::take(&*self.vfs, &*self.log, &self.sequencer, &mut upkeep.superblock);
        self.note(&mut upkeep, &done);
        done.map(|()| true)
    }

    /// Remembers what became of a flush or checkpoint.
    fn note(&self, upkeep: &mut Upkeep, done: &Result<()>) {
        upkeep.failed_at_ms = done.is_err().then(|| self.clock.now_ms());
        *self.trouble.lock() = done.as_ref().err().map(ToString::to_string);
    }

    fn is_flush_due(&self, upkeep: &mut Upkeep) -> bool {
        let version = self.version();
        if version.active.rows() == 0 {
            upkeep.active_since_ms = None;
            return false;
        }
        let now = self.clock.now_ms();
        // A clock that was set back starts the age again.
        let since = upkeep.active_since_ms.filter(|since| *since <= now).unwrap_or(now);
        upkeep.active_since_ms = Some(since);
        version.active.rows() >= self.limits.flush_rows
            || version.active.bytes() >= self.limits.flush_bytes
            || version.active.columns() >= self.limits.flush_columns
            || now.saturating_sub(since) >= self.limits.flush_age_ms
    }

    /// Writes all rows in memory to segments, then takes a checkpoint.
    pub fn flush(&self) -> Result<()> {
        let mut upkeep = self.upkeep.lock();
        let done = self.flush_all(&mut upkeep);
        self.note(&mut upkeep, &done);
        done
    }

    pub(super) fn flush_all(&self, upkeep: &mut Upkeep) -> Result<()> {
        if let Some(why) = self.closed() {
            return Err(Error::Closed(why));
        }
        // A flush that failed earlier (a full disk) comes first.
        self.flush_frozen(upkeep)?;
        upkeep.frozen = self.sequencer.freeze()?;
        upkeep.active_since_ms = None;
        self.flush_frozen(upkeep)?;
        checkpoint::take(&*self.vfs, &*self.log, &self.sequencer, &mut upkeep.superblock)
    }

    fn flush_frozen(&self, upkeep: &mut Upkeep) -> Result<()> {
        let Some((ids, lsn)) = upkeep.frozen.clone() else { return Ok(()) };
        let memtable = self.version().frozen.clone().expect("kept until its flush is published");
        let context = FlushContext {
            vfs: &*self.vfs,
            database: self.database,
            segment_uuid: self.uuid(),
            ids_uuid: self.uuid(),
            generation: ids::generation_at(self.clock.now_ms()),
            rollup_rows_min: self.limits.compaction.rollup_rows_min,
        };
        let before_us = self.clock.elapsed_us();
        let bytes = flush(&self.sequencer, &context, &memtable, &ids, lsn)?;
        self.totals.flushed_bytes.fetch_add(bytes, Ordering::Relaxed);
        upkeep.frozen = None;
        let took_us = self.clock.elapsed_us().saturating_sub(before_us);
        self.totals.flush_us.record(took_us);
        self.totals.flushed_rows.fetch_add(memtable.rows() as u64, Ordering::Relaxed);
        Ok(())
    }

    /// Flushes and refuses further writes.
    pub fn close(&self) -> Result<()> {
        if self.closed().is_some() {
            return Ok(());
        }
        if self.follows() {
            self.sequencer.close("it was shut down");
            return Ok(());
        }
        let flushed = self.flush();
        self.sequencer.close("it was shut down");
        flushed
    }

    /// A new name: files sort by the time at which they were named.
    pub(super) fn uuid(&self) -> uuid::Uuid {
        let mut random = [0; 10];
        self.rng.fill(&mut random);
        let now = u64::try_from(self.clock.now_ms()).unwrap_or(0);
        uuid::Builder::from_unix_timestamp_millis(now, &random).into_uuid()
    }
}

/// Whether it is too early to try again. A clock that was set back or forth waits no longer than one
/// that was not.
pub(super) fn waits(failed_at_ms: Option<i64>, now_ms: i64) -> bool {
    failed_at_ms.is_some_and(|failed| now_ms.abs_diff(failed) < RETRY_MS)
}

/// Takes the lock of a data directory and makes the directories in it that are missing.
fn prepare_directory(vfs: &dyn Vfs) -> Result<Box<dyn Any + Send + Sync>> {
    let lock = vfs
        .lock(LOCK)
        .at(LOCK)?
        .ok_or_else(|| Error::invalid("data directory", "is in use by another process"))?;
    for directory in [
        TEMPORARY,
        wal::DIRECTORY,
        keyspace_checkpoint::DIRECTORY,
        segment::FRESH_DIRECTORY,
        ids::DIRECTORY,
    ] {
        vfs.create_dir(directory).at(directory)?;
    }
    // A restored backup, or a start that was cut off, may have had fewer of them.
    for directory in [segment::DIRECTORY, "", segment::FRESH_DIRECTORY, wal::DIRECTORY] {
        vfs.sync_dir(directory).at(directory)?;
    }
    Ok(lock)
}

/// Makes a new database, unless files without a superblock say that one was lost.
fn create(vfs: &dyn Vfs, log: &dyn Log, rng: &dyn Rng) -> Result<Superblock> {
    let mut directories =
        vec![wal::DIRECTORY.to_owned(), keyspace_checkpoint::DIRECTORY.to_owned()];
    for parent in [segment::DIRECTORY, ids::DIRECTORY] {
        let inside = vfs.list_dirs(parent).at(parent)?;
        directories.extend(inside.iter().map(|name| format!("{parent}/{name}")));
    }
    for directory in &directories {
        if let Some(name) = vfs.list(directory).at(directory)?.first() {
            return Err(Error::corrupt(
                "SUPER.a",
                format!("is missing, but {directory}/{name} exists"),
            ));
        }
    }
    for name in vfs.list(TEMPORARY).at(TEMPORARY)? {
        let place = format!("{TEMPORARY}/{name}");
        vfs.remove(&place).at(&place)?;
    }
    let superblock = Superblock::new(rng);
    log.create(&superblock)?;
    Ok(superblock)
}
