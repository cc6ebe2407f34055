//! The façade: the public interface of the event store.

mod followers;

use std::{
    collections::BTreeMap,
    panic::{self, AssertUnwindSafe},
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
        mpsc::{self, RecvTimeoutError},
    },
    thread::{self, JoinHandle},
    time::Duration,
};

use parking_lot::Mutex;

use crate::{
    base::{
        clock::{Clock, SystemClock},
        hash,
        meter::{Distribution, MICROSECONDS, Meter},
        rng::{Rng, SystemRng},
    },
    batch::Batch,
    error::{Error, IoContext, Limit, Result},
    event::Namespace,
    exec::{
        self, AnswerSources, Control, EventFacts, ExactUpTo, ExecOptions, ExplainStep, MemoryWait,
        Resources,
    },
    inspect::Inspection,
    keyspace::{KeyReader, Txn},
    query::{Answer, Metric, Query},
    scan::Snapshot,
    store::{BackupProgress, Erasure, FileLog, Ingested, Limits, Log, Metrics, Scope, Store},
    vfs::{Vfs, os::OsVfs},
};

/// How often a background thread looks whether a flush is due. At the highest ingest rate this is a
/// tenth of a memtable.
const UPKEEP_INTERVAL: Duration = Duration::from_millis(100);
/// How often the other one looks whether something should be merged.
const COMPACTION_INTERVAL: Duration = Duration::from_millis(500);
/// How long a query waits for memory that others hold.
const MEMORY_WAIT_US: u64 = 10_000_000;
/// How long a background thread rests after a panic.
const PANIC_PAUSE: Duration = Duration::from_secs(5);

/// Settings and dependencies of an engine besides its directory.
#[derive(Clone)]
pub struct Options {
    /// Wall clock for file names, ages and expiry, and a monotonic one for durations.
    pub clock: Arc<dyn Clock>,
    /// Source of random bytes: identity and hash seed of a new database, file names, salts of
    /// log files.
    pub rng: Arc<dyn Rng>,
    /// When to flush, and bounds.
    pub limits: Limits,
    /// Whether threads of the engine flush and merge when it is due; without them the caller does.
    pub background: bool,
    /// Up to where approximate questions are answered exactly.
    pub exact: ExactUpTo,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            clock: Arc::new(SystemClock),
            rng: Arc::new(SystemRng),
            limits: Limits::default(),
            background: true,
            exact: ExactUpTo::default(),
        }
    }
}

/// An open data directory: events, queries over them, and keys with transactions.
///
/// All calls block; a call that writes returns when the write is durable and visible.
pub struct Engine {
    store: Arc<Store>,
    clock: Arc<dyn Clock>,
    query_meters: BTreeMap<&'static str, QueryMeter>,
    resources: Resources,
    background: Mutex<Vec<Background>>,
}

/// Counters of the queries with one kind of metric, since the start.
struct QueryMeter {
    took_us: Meter,
    failed: AtomicU64,
    rows: AtomicU64,
}

/// Numbers about the queries with one kind of metric, since the start.
#[derive(Debug, Clone)]
pub struct QueryMetrics {
    /// Microseconds that each took, failed ones included.
    pub took_us: Distribution,
    /// Number of queries that failed.
    pub failed: u64,
    /// Rows that successful queries read.
    pub rows_scanned: u64,
}

/// The events that an erasure removes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Whose<'a> {
    /// All events of the namespace, which is dropped.
    Namespace,
    /// All events of the tenant with this id.
    Tenant(&'a str),
    /// All events of one user of a tenant.
    User {
        /// Id of the tenant that the user belongs to.
        tenant: &'a str,
        /// The user's id.
        user: &'a str,
    },
}

/// A thread that ends when its sender is dropped.
type Background = (mpsc::Sender<()>, JoinHandle<()>);

/// Sizes of an open engine.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Stats {
    /// Number of live segments.
    pub segments: usize,
    /// Rows in live segments, expired rows included.
    pub segment_rows: u64,
    /// Bytes of the files of live segments.
    pub segment_bytes: u64,
    /// Rows in memory.
    pub memtable_rows: usize,
    /// Bytes of the rows in memory, estimated.
    pub memtable_bytes: usize,
    /// LSN of the last visible record.
    pub lsn: u64,
}

impl Engine {
    /// Opens a directory of the machine, creating it when it does not exist.
    ///
    /// Errors: `Invalid` when another process has it or its format is newer, `Corrupt` naming file
    /// and offset of damage, `Io`.
    pub fn open_directory(directory: &Path, options: Options) -> Result<Self> {
        let vfs = OsVfs::new(directory).at(&directory.display().to_string())?;
        Self::open(Arc::new(vfs), options)
    }

    /// Opens a data directory on any disk, with its log in it.
    pub fn open(vfs: Arc<dyn Vfs>, options: Options) -> Result<Self> {
        let (clock, rng) = (Arc::clone(&options.clock), Arc::clone(&options.rng));
        let log = FileLog::new(Arc::clone(&vfs), clock, rng, options.limits.log_file_bytes);
        Self::open_with_log(vfs, Arc::new(log), options)
    }

    /// Opens a store on any disk, whose records and superblock are in a log of its own.
    ///
    /// Errors: as of [`open_directory`](Self::open_directory), and those of the log.
    pub fn open_with_log(vfs: Arc<dyn Vfs>, log: Arc<dyn Log>, options: Options) -> Result<Self> {
        let (clock, is_active) = (Arc::clone(&options.clock), options.background);
        let (limits, exact) = (options.limits, options.exact);
        let store = Store::open(options.dependencies(vfs, log))?;
        Self::of(store, clock, limits, exact, is_active)
    }

    fn of(
        store: Store,
        clock: Arc<dyn Clock>,
        limits: Limits,
        exact: ExactUpTo,
        is_active: bool,
    ) -> Result<Self> {
        let Limits { queries_bytes_max, query_bytes_max, kept_bytes_max, .. } = limits;
        let resources = Resources::new(queries_bytes_max, query_bytes_max, kept_bytes_max, exact);
        let store = Arc::new(store);
        let mut background = Vec::new();
        if is_active {
            // A failed flush keeps its rows in memory and in the log, a failed merge its inputs: the
            // next round tries again.
            background.push(start(&store, "inlay-upkeep", UPKEEP_INTERVAL, |store| {
                store.maintain().map(drop)
            })?);
            background.push(start(&store, "inlay-compaction", COMPACTION_INTERVAL, |store| {
                store.compact_when_due().map(drop)
            })?);
        }
        let meter = || QueryMeter {
            took_us: Meter::new(MICROSECONDS),
            failed: AtomicU64::new(0),
            rows: AtomicU64::new(0),
        };
        let query_meters = Metric::KINDS.iter().map(|kind| (*kind, meter())).collect();
        Ok(Self { store, clock, query_meters, resources, background: Mutex::new(background) })
    }

    /// An empty batch for [`Engine::ingest`].
    pub fn batch(&self, namespace: Namespace) -> Batch {
        Batch::new(namespace, self.store.hash_seed())
    }

    /// Stores the events of a batch that are not known yet. `extra` may write keys in the same
    /// record (usage counters, say); it runs only when events are new, and its error stores nothing.
    ///
    /// Errors: `Limit` when memory or disk is full, `Closed` after a failed write.
    pub fn ingest<E: From<Error>>(
        &self,
        batch: Batch,
        extra: impl FnOnce(&mut Txn, &Ingested) -> Result<(), E>,
    ) -> Result<Ingested, E> {
        self.store.ingest(batch, extra)
    }

    /// Runs a transaction over the keys. Its error, or one of the log, writes nothing.
    pub fn transact<T, E: From<Error>>(
        &self,
        run: impl FnOnce(&mut Txn) -> Result<T, E>,
    ) -> Result<T, E> {
        self.store.transact(run)
    }

    /// The keys as of now.
    pub fn keys(&self) -> KeyReader {
        KeyReader::new(self.store.version().tree.clone())
    }

    /// Answers a query over everything acknowledged so far.
    ///
    /// Errors: `Invalid`, `Limit` when it takes too much memory or `control` stops it, `Corrupt`.
    pub fn query(&self, query: &Query, control: &dyn Control) -> Result<Answer> {
        self.answer(query, AnswerSources { rollups: true, partials: true }, control)
    }

    /// Answers a query as [`Engine::query`] does if it is a short one: without threads and large
    /// reads, and with an answer of at most `values_max` values. `None` when it is not short, when
    /// `control` stops it or when other queries hold the memory; such a query is in no metric.
    ///
    /// Errors: `Invalid`, `Limit` when it takes too much memory, `Corrupt`.
    pub fn try_query(
        &self,
        query: &Query,
        values_max: usize,
        control: &dyn Control,
    ) -> Result<Option<Answer>> {
        let _running = self.store.query_guard();
        let before_us = self.clock.elapsed_us();
        let sources = AnswerSources { rollups: true, partials: true };
        let how = ExecOptions { sources, wait: None, is_attempt: true };
        let answer = self.execute(query, how, control);
        let is_none = match &answer {
            Err(Error::Limit { limit, .. }) => {
                matches!(limit, Limit::QueryTime | Limit::QueriesMemory)
            }
            Err(_) => false,
            Ok(answer) => answer.groups.len().saturating_mul(answer.buckets.len()) > values_max,
        };
        if is_none {
            return Ok(None);
        }
        self.note_query(query, before_us, &answer);
        answer.map(Some)
    }

    /// Answers a query from rollups and rows, without cached partial results.
    pub fn query_uncached(&self, query: &Query, control: &dyn Control) -> Result<Answer> {
        self.answer(query, AnswerSources { rollups: true, partials: false }, control)
    }

    /// Answers a query from rows alone. [`Engine::query`] must give the same answer.
    pub fn query_rows(&self, query: &Query, control: &dyn Control) -> Result<Answer> {
        self.answer(query, AnswerSources { rollups: false, partials: false }, control)
    }

    fn answer(
        &self,
        query: &Query,
        sources: AnswerSources,
        control: &dyn Control,
    ) -> Result<Answer> {
        let _running = self.store.query_guard();
        let before_us = self.clock.elapsed_us();
        let run = |wait: Option<MemoryWait<'_>>| {
            self.execute(query, ExecOptions { sources, wait, is_attempt: false }, control)
        };
        let answer = match run(None) {
            Err(Error::Limit { limit: Limit::QueriesMemory, .. }) => {
                run(Some(MemoryWait { clock: &*self.clock, limit_us: MEMORY_WAIT_US }))
            }
            answer => answer,
        };
        self.note_query(query, before_us, &answer);
        answer
    }

    fn execute(
        &self,
        query: &Query,
        how: ExecOptions<'_>,
        control: &dyn Control,
    ) -> Result<Answer> {
        let version = self.store.version();
        let horizon_ms = self.store.horizon_ms(&version, query.namespace);
        exec::execute(&version, query, horizon_ms, &self.resources, how, control)
    }

    /// Counts a query that began at `before_us`.
    fn note_query(&self, query: &Query, before_us: u64, answer: &Result<Answer>) {
        let meter = &self.query_meters[query.metric.kind()];
        meter.took_us.record(self.clock.elapsed_us().saturating_sub(before_us));
        match answer {
            Ok(answer) => meter.rows.fetch_add(answer.rows_scanned, Ordering::Relaxed),
            Err(_) => meter.failed.fetch_add(1, Ordering::Relaxed),
        };
    }

    /// The rows and rollups that a query would read, source by source.
    pub fn explain(&self, query: &Query) -> Result<Vec<ExplainStep>> {
        let version = self.store.version();
        let horizon_ms = self.store.horizon_ms(&version, query.namespace);
        exec::explain(&version, query, horizon_ms, &self.resources)
    }

    /// Describes the events of a namespace in whole hours: names, counts, properties.
    ///
    /// Errors: `Limit` when `control` stops it, `Corrupt`.
    pub fn discover(
        &self,
        namespace: Namespace,
        from_ms: i64,
        to_ms: i64,
        control: &dyn Control,
    ) -> Result<Vec<EventFacts>> {
        let _running = self.store.query_guard();
        let version = self.store.version();
        let from_ms = from_ms.max(self.store.horizon_ms(&version, namespace));
        exec::discover(&version, namespace, from_ms, to_ms, &self.resources.budget, control)
    }

    /// The rows of a namespace as of now, for computation outside of the engine.
    pub fn snapshot(&self, namespace: Namespace) -> Snapshot {
        let version = self.store.version();
        let horizon_ms = self.store.horizon_ms(&version, namespace);
        Snapshot::new(version, namespace, horizon_ms, self.store.database())
    }

    /// Tenants of a namespace with their numbers of events in whole hours, most first.
    ///
    /// Errors: `Limit` when `control` stops it or memory does not suffice for so many.
    pub fn tenants(
        &self,
        namespace: Namespace,
        from_ms: i64,
        to_ms: i64,
        control: &dyn Control,
    ) -> Result<Vec<(String, u64)>> {
        let _running = self.store.query_guard();
        let version = self.store.version();
        let from_ms = from_ms.max(self.store.horizon_ms(&version, namespace));
        exec::tenants(&version, namespace, from_ms, to_ms, &self.resources.budget, control)
    }

    /// A read-only view of the files, as of now.
    pub fn inspect(&self) -> Result<Inspection> {
        let (vfs, log) = (self.store.vfs(), self.store.log());
        Inspection::of_store(vfs, Some(log).filter(|log| !log.is_in_files()))
    }

    /// Writes all rows in memory to segments and takes a checkpoint.
    pub fn flush(&self) -> Result<()> {
        self.store.flush()
    }

    /// Flushes if it is due. Only needed without the background thread.
    pub fn maintain(&self) -> Result<bool> {
        self.store.maintain()
    }

    /// Does background work (merging, sealing, expiry, erasures) until none is due. Only needed
    /// without the background threads, or to wait for it. Returns how many steps it took.
    pub fn compact(&self) -> Result<u64> {
        self.store.compact()
    }

    /// Does one piece of background work, if one is due. Returns whether it did.
    pub fn compact_step(&self) -> Result<bool> {
        self.store.compact_step()
    }

    /// Writes a backup of everything acknowledged so far into `directory`, which is empty or does not
    /// exist, while reads and writes go on. Files are shared with the data directory where the disk
    /// can, else taken from the backup `since` where it has them, else copied. `report` is called
    /// after each file.
    ///
    /// Errors: `Invalid` naming `directory` or `since`; then nothing is left behind.
    pub fn backup(
        &self,
        directory: &str,
        since: Option<&str>,
        report: &mut dyn FnMut(&BackupProgress),
    ) -> Result<BackupProgress> {
        self.store.backup(directory, since, report)
    }

    /// Erases events, in the background, when the transaction is durable. From then on a dropped
    /// namespace is empty for every reader and takes no more events; the events of a tenant or a user
    /// that were acknowledged before are gone when the erasure is done.
    pub fn erase(&self, txn: &mut Txn, namespace: Namespace, whose: &Whose<'_>) -> Erasure {
        let scope = match *whose {
            Whose::Namespace => Scope::Namespace,
            Whose::Tenant(tenant) => Scope::Tenant(tenant.into()),
            // The record of the erasure must not hold the user's id, so it holds a hash.
            Whose::User { tenant, user } => {
                let hash = hash::user(self.store.hash_seed(), user.as_bytes());
                Scope::User(tenant.into(), hash)
            }
        };
        self.store.erase(txn, namespace, scope)
    }

    /// The erasure of a namespace with this name and its progress; `None` when there is none.
    pub fn erasure(&self, namespace: Namespace, id: uuid::Uuid) -> Result<Option<Erasure>> {
        self.store.erasure(namespace, id)
    }

    /// The newest erasures of a namespace, newest first, at most `count`, of those before `before`.
    pub fn newest_erasures(
        &self,
        namespace: Namespace,
        before: Option<uuid::Uuid>,
        count: usize,
    ) -> Result<Vec<Erasure>> {
        self.store.newest_erasures(namespace, before, count)
    }

    /// All erasures and receipts, oldest first. Shape: reads every one.
    pub fn erasures(&self) -> Result<Vec<Erasure>> {
        self.store.erasures()
    }

    /// Sets how many days of events a namespace keeps; `None` keeps everything.
    pub fn set_retention(&self, namespace: Namespace, days: Option<u32>) -> Result<()> {
        self.store.set_retention(namespace, days)
    }

    /// First millisecond that readers of a namespace see: events before it have expired. `i64::MIN`
    /// when it keeps everything, `i64::MAX` when it was dropped.
    pub fn horizon_ms(&self, namespace: Namespace) -> i64 {
        self.store.horizon_ms(&self.store.version(), namespace)
    }

    /// Number and size of segments and memtables as of now.
    pub fn stats(&self) -> Stats {
        let version = self.store.version();
        let metas = || version.segments.iter().map(|segment| segment.meta());
        Stats {
            segments: version.segments.len(),
            segment_rows: metas().map(|meta| u64::from(meta.rows)).sum(),
            segment_bytes: metas().map(|meta| meta.len).sum(),
            memtable_rows: version.memtables().map(|memtable| memtable.rows()).sum(),
            memtable_bytes: version.memtable_bytes(),
            lsn: version.lsn,
        }
    }

    /// Numbers about the store.
    pub fn metrics(&self) -> Metrics {
        let resources = &self.resources;
        let (held, kept) = (resources.budget.used() as u64, resources.kept.bytes());
        self.store.metrics(held, kept, resources.kept.hits_and_misses())
    }

    /// Numbers about queries, by kind of metric.
    pub fn query_metrics(&self) -> BTreeMap<&'static str, QueryMetrics> {
        let read = |meter: &QueryMeter| QueryMetrics {
            took_us: meter.took_us.read(),
            failed: meter.failed.load(Ordering::Relaxed),
            rows_scanned: meter.rows.load(Ordering::Relaxed),
        };
        self.query_meters.iter().map(|(kind, meter)| (*kind, read(meter))).collect()
    }

    /// Why writes are refused, if they are: after a failed write the log's state on disk is
    /// unknown until a restart reads it.
    pub fn closed(&self) -> Option<String> {
        self.store.closed()
    }

    /// Why the engine cannot do its work: refused writes, a failed flush, or background work that
    /// failed, panicked or is overdue. `None` when all is well.
    pub fn trouble(&self) -> Option<String> {
        self.store
            .closed()
            .or_else(|| self.store.trouble())
            .or_else(|| self.store.compaction_trouble())
    }

    /// Flushes and refuses further writes.
    pub fn close(&self) -> Result<()> {
        self.stop_background();
        self.store.close()
    }

    fn stop_background(&self) {
        self.store.stop_compaction();
        for (stop, thread) in self.background.lock().drain(..) {
            drop(stop);
            // A panic there is a bug that its own message reports; closing goes on.
            let _ = thread.join();
        }
    }
}

impl Drop for Engine {
    fn drop(&mut self) {
        self.stop_background();
    }
}

fn start(
    store: &Arc<Store>,
    name: &'static str,
    interval: Duration,
    work: impl Fn(&Store) -> Result<()> + Send + 'static,
) -> Result<Background> {
    let (stop, stopped) = mpsc::channel::<()>();
    let store = Arc::clone(store);
    let run = move || {
        // At once: a server that is restarted often has merges to catch up with.
        let mut pause = Duration::ZERO;
        while stopped.recv_timeout(pause) == Err(RecvTimeoutError::Timeout) {
            // A panic is a bug, which its own message reports. Nothing was half published: reads
            // and writes go on, `trouble` reports it, and the next round may succeed.
            let panicked = panic::catch_unwind(AssertUnwindSafe(|| work(&store))).is_err();
            store.note_round(name, panicked);
            pause = if panicked { PANIC_PAUSE } else { interval };
        }
    };
    let thread = thread::Builder::new().name(name.to_owned()).spawn(run).at("thread")?;
    Ok((stop, thread))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        base::hash::KEPT_BITS,
        event::Event,
        keyspace::Tree,
        store::{FLUSHED_KEY, ID_RUN_PREFIX, LIST, SEGMENT_PREFIX},
        vfs::sim::SimVfs,
    };

    /// Two ids with one hash count as one event: that is all that a collision does. With 88 bits it is
    /// one chance in six hundred million among 1e9 ids; here hashes keep sixteen.
    #[test]
    fn colliding_hashes_lose_an_event_and_nothing_else() {
        KEPT_BITS.set(0xffff);
        let disk = SimVfs::new();
        let open = || {
            let options = Options { background: false, ..Options::default() };
            Engine::open(Arc::new(disk.clone()), options).unwrap()
        };
        let engine = open();
        let ingest = |engine: &Engine, first: usize| {
            let mut batch = engine.batch(Namespace(1));
            for n in first..first + 2_000 {
                let id = format!("id-{n}");
                let event = Event {
                    tenant: "t",
                    name: "e",
                    timestamp_ms: 1_700_000_000_000,
                    event_id: Some(&id),
                    user_id: None,
                };
                batch.push(&event, &[], &[]).unwrap();
            }
            engine.ingest(batch, |_, _| Ok::<_, Error>(())).unwrap().new
        };
        let mut stored = 0;
        for round in 0..10 {
            stored += u64::from(ingest(&engine, round * 2_000));
            if round % 2 == 0 {
                engine.flush().unwrap();
                engine.compact().unwrap();
            }
        }
        assert!(stored < 20_000 && stored > 15_000, "{stored} of 20,000");
        assert_eq!(ingest(&engine, 0), 0, "and they stay known");
        engine.flush().unwrap();
        assert_eq!(engine.stats().segment_rows, stored);
        drop(engine);
        let engine = open();
        assert_eq!(engine.stats().segment_rows, stored);
        assert_eq!(engine.inspect().unwrap().verify(&mut |_| ()).problems, []);
        KEPT_BITS.set(u128::MAX);
    }

    /// What a verification says after the engine's own keys were changed.
    fn problems_after(damage: impl Fn(&mut Txn, &Tree, &SimVfs)) -> (Vec<String>, usize) {
        let disk = SimVfs::new();
        let options = Options { background: false, ..Options::default() };
        let engine = Engine::open(Arc::new(disk.clone()), options).unwrap();
        let mut batch = engine.batch(Namespace(1));
        for id in ["a", "b", "c"] {
            let event = Event {
                tenant: "t",
                name: "e",
                timestamp_ms: 1_700_000_000_000,
                event_id: Some(id),
                user_id: None,
            };
            batch.push(&event, &[], &[]).unwrap();
        }
        engine.ingest(batch, |_, _| Ok::<_, Error>(())).unwrap();
        engine.flush().unwrap();
        let tree = engine.store.version().tree.clone();
        let change = |txn: &mut Txn| {
            damage(txn, &tree, &disk);
            Ok::<_, Error>(())
        };
        engine.transact(change).unwrap();
        let found = engine.inspect().unwrap().verify(&mut |_| ());
        let said = found.problems.iter().map(|one| format!("{}: {}", one.place, one.detail));
        (said.collect(), found.unnamed.len())
    }

    fn without(txn: &mut Txn, tree: &Tree, prefix: &[u8]) {
        let keys: Vec<Vec<u8>> = tree.scan(prefix, &[]).map(|(key, _)| key.to_vec()).collect();
        assert!(!keys.is_empty());
        keys.iter().for_each(|key| txn.write_system(key, None));
    }

    #[test]
    fn a_verification_follows_each_reference() {
        assert_eq!(problems_after(|_, _, _| ()), (vec![], 0));
        let (said, unnamed) = problems_after(|txn, tree, _| without(txn, tree, ID_RUN_PREFIX));
        assert!(said[0].ends_with("3 event ids are in no id run") && said.len() == 1, "{said:?}");
        assert_eq!(unnamed, 1, "the id run");
        // A segment that nothing names is no more than a file that the next start removes.
        assert_eq!(problems_after(|txn, tree, _| without(txn, tree, SEGMENT_PREFIX)), (vec![], 1));
        let ahead = |txn: &mut Txn, _: &Tree, _: &SimVfs| {
            txn.write_system(FLUSHED_KEY, Some(1_000u64.to_le_bytes().to_vec()));
        };
        let (said, _) = problems_after(ahead);
        assert!(said[0].ends_with("is ahead of the log") && said.len() == 1, "{said:?}");
        for (end, prefix) in [(".seg", SEGMENT_PREFIX), (".ids", ID_RUN_PREFIX)] {
            let (said, _) = problems_after(|_, _, disk| {
                let path = disk.files().into_keys().find(|path| path.ends_with(end)).unwrap();
                disk.set_file(&path, None);
            });
            assert!(said[0].contains(end) && said.len() == 1, "{said:?}");
            let (said, _) = problems_after(|txn, tree, _| {
                let (key, value) = tree.scan(prefix, &[]).next().unwrap();
                let (key, mut value) = (key.to_vec(), value.to_vec());
                value.pop();
                txn.write_system(&key, Some(value));
            });
            assert!(said[0].ends_with("record: ends too early"), "{end}: {said:?}");
        }
    }

    #[test]
    fn a_list_of_another_database_is_noticed() {
        let lists = [1, 2].map(|seed| {
            let disk = SimVfs::new();
            let options = Options {
                background: false,
                rng: Arc::new(crate::base::rng::SeededRng::new(seed)),
                ..Options::default()
            };
            let engine = Engine::open(Arc::new(disk.clone()), options).unwrap();
            engine.backup("backup", None, &mut |_| ()).unwrap();
            (disk.files()[&format!("backup/{LIST}")].clone(), disk)
        });
        let [(_, disk), (of_another, _)] = lists;
        let backup = SimVfs::new();
        backup.create_dir("wal").unwrap();
        for (path, bytes) in disk.files() {
            if let Some(path) = path.strip_prefix("backup/") {
                backup.set_file(path, Some(bytes));
            }
        }
        let verify = || Inspection::open(backup.clone()).unwrap().verify(&mut |_| ()).problems;
        assert_eq!(verify(), []);
        backup.set_file(LIST, Some(of_another));
        let found = verify();
        assert!(found.iter().any(|one| one.detail == "is of another database"), "{found:?}");
    }
}
