//! One process of the store: it waits for the lease, opens the store, and renews the lease until it stops.
//!
//! The data directory holds, beside copies of files, two that say what it is:
//!
//! ```text
//! CACHE     the log whose files are here; those of another are deleted, for they may have the same names
//! LEADER    the process that had this directory last, which has ended when the next one has the directory's lock, and the start of the machine at that time: its lease
//!           may be taken at once, where this is not a copy of the directory on another machine
//! ```

use std::{
    any::Any,
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use inlay_engine::{
    Engine, Error, Options, OsVfs, Result, SystemRng, Vfs, VfsFile,
    remote::{Log as _, ObjectVfs, Superblock},
};
use parking_lot::Mutex;
use rustix::time::{ClockId, clock_gettime};
use tokio::sync::Notify;
use tokio_postgres::types::{ToSql, Type};
use tracing::{info, warn};
use uuid::Uuid;

use crate::{
    bucket::BucketUrl,
    calls::Calls,
    log::{Identity, LEASE_MS, PostgresLog},
    schema,
    session::{DatabaseSession, Failure},
};

/// Directories whose files are in the bucket.
pub const DIRECTORIES: &[&str] = &["seg", "ids", "ckpt"];
/// How often the lease is renewed.
const RENEW_EVERY: Duration = Duration::from_secs(2);
/// How often a lease that could not be renewed is tried again.
const RENEW_AGAIN: Duration = Duration::from_millis(500);
/// How long a start waits for another process to end.
const WAIT_MAX: Duration = Duration::from_secs(15);
/// How often it looks.
const WAIT_EVERY: Duration = Duration::from_millis(100);
/// Longest time for giving the lease back.
const RELEASE_TIME_MAX: Duration = Duration::from_secs(3);
/// The lock of the data directory while it is prepared as a cache; the store has its own.
const CACHE_LOCK: &str = "CACHE.lock";
/// How often is looked whether a lease was renewed that was taken just now.
const LOOK_EVERY: Duration = Duration::from_millis(10);
/// Part of a lease in which it is not relied on: clocks run at different speeds, and an answer takes time.
const MARGIN: Duration = Duration::from_secs(1);

/// Where a store is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Location {
    /// The log: `postgres://inlay@db.acme.com/inlay`.
    pub metadata_url: String,
    /// The files: `s3://acme-inlay/production?region=eu-central-1`.
    pub events_url: String,
}

/// A process with the store open, which leads.
pub struct Node {
    /// The store, open and leading.
    pub engine: Engine,
    lease: Lease,
}

/// The lease of this process. Clones share it; where the last one goes, it is given back.
#[derive(Clone)]
pub struct Lease(Arc<LeaseGuard>);

/// Gives the lease back when it goes.
struct LeaseGuard(Arc<LeaseState>);

impl Drop for LeaseGuard {
    fn drop(&mut self) {
        self.0.end();
    }
}

/// What the task that renews the lease shares with those who ask for it.
struct LeaseState {
    session: Arc<DatabaseSession>,
    own: Uuid,
    /// Until when it is valid, by a clock that counts while the machine sleeps.
    until: Mutex<Duration>,
    /// Whether the store is open, and so has taken the lease.
    is_open: AtomicBool,
    is_lost: AtomicBool,
    /// Whether it is to be given back, and whether that was tried.
    is_ending: AtomicBool,
    has_ended: AtomicBool,
    wake: Notify,
    /// The data directory is this process's own.
    cache_lock: Mutex<Option<Box<dyn Any + Send + Sync>>>,
}

impl Node {
    /// Opens the store of a location, with `directory` as its cache. A new database is made where there is none.
    ///
    /// Errors: `Invalid` for wrong URLs, for a directory that holds a store of its own, and while another process leads; those of database, bucket
    /// and store.
    pub fn open(location: &Location, directory: &Path, options: Options) -> Result<Self> {
        let bucket_url = BucketUrl::parse(&location.events_url)?;
        let shown = directory.display().to_string();
        let disk = OsVfs::new(directory).map_err(|error| error_at(&shown, &error))?;
        // Before anything in it is changed: another process may have it, with another database.
        let cache_lock = disk.lock(CACHE_LOCK).map_err(|error| error_at(CACHE_LOCK, &error))?;
        let cache_lock = cache_lock
            .ok_or_else(|| Error::invalid("data directory", "is in use by another process"))?;
        let calls = Calls::new().map_err(|error| error_at("threads", &error))?;
        let session = Arc::new(DatabaseSession::new(calls.clone(), &location.metadata_url)?);
        let log =
            PostgresLog::new(Arc::clone(&session), Identity::new(&SystemRng, last_leader(&disk)))?;
        wait_for_lease(&log)?;
        let id = match log.state()? {
            Some(state) => {
                bucket_url.of(calls.clone(), state.id).check_mark()?;
                state.id
            }
            None => {
                let superblock = Superblock::new(&*options.rng);
                let id = Uuid::from_bytes(superblock.db);
                // First the bucket: a database whose bucket cannot be written to is not made.
                bucket_url.of(calls.clone(), id).mark()?;
                log.create(&superblock)?;
                id
            }
        };
        prepare_cache(&disk, id)?;
        let own = log.identity().own;
        write_text(&disk, "LEADER", &format!("{own} {}", boot_id()))?;
        let bucket = bucket_url.of(calls.clone(), id);
        let vfs = ObjectVfs::new(Arc::new(disk), Arc::new(bucket), DIRECTORIES);
        let lease = Lease::new(session.another(), own);
        // Before the store has taken it: what comes between then and the end of `open` may take longer than a lease.
        calls.spawn(Arc::clone(&lease.0.0).keep(calls.clone()));
        let engine = Engine::open_with_log(Arc::new(vfs), Arc::new(log), options)?;
        lease.0.0.is_open.store(true, Ordering::Relaxed);
        // Whoever asks from now on is to be answered.
        let start = Instant::now();
        while !lease.is_valid() {
            if lease.is_lost() || start.elapsed() > WAIT_MAX {
                let detail = "has given the lease to another process, or does not answer";
                return Err(Error::invalid("metadata URL", detail));
            }
            thread::sleep(LOOK_EVERY);
        }
        info!(log = %id, "this process leads");
        *lease.0.0.cache_lock.lock() = Some(cache_lock);
        Ok(Self { engine, lease })
    }

    /// The store and the lease. The data directory is this process's own until the lease is gone.
    pub fn split(self) -> (Engine, Lease) {
        (self.engine, self.lease)
    }
}

impl Lease {
    fn new(session: DatabaseSession, own: Uuid) -> Self {
        Self(Arc::new(LeaseGuard(Arc::new(LeaseState {
            session: Arc::new(session),
            own,
            until: Mutex::new(Duration::ZERO),
            is_open: AtomicBool::new(false),
            is_lost: AtomicBool::new(false),
            is_ending: AtomicBool::new(false),
            has_ended: AtomicBool::new(false),
            wake: Notify::new(),
            cache_lock: Mutex::new(None),
        }))))
    }

    /// Whether the lease ended without having been given back: another process may lead.
    pub fn is_lost(&self) -> bool {
        self.0.0.is_lost.load(Ordering::Relaxed)
    }

    /// Whether no other process can lead now, so that what this one reads is the newest.
    pub fn is_valid(&self) -> bool {
        !self.is_lost() && now() + MARGIN < *self.0.0.until.lock()
    }

    /// Renews the lease no more: the store of this process cannot go on.
    pub fn give_up(&self) {
        self.0.0.is_lost.store(true, Ordering::Relaxed);
        self.0.0.wake.notify_one();
    }

    /// Gives the lease back, so that the next process need not wait until it ends. After the store is closed; blocks for some seconds at most.
    pub fn release(&self) {
        self.0.0.end();
        let start = Instant::now();
        while !self.0.0.has_ended.load(Ordering::Relaxed) && start.elapsed() < RELEASE_TIME_MAX {
            thread::sleep(LOOK_EVERY);
        }
    }
}

impl LeaseState {
    /// Ends it for this process at once, and has it given back.
    fn end(&self) {
        *self.until.lock() = Duration::ZERO;
        self.is_ending.store(true, Ordering::Relaxed);
        self.wake.notify_one();
    }

    /// Renews the lease until it is given back or lost. `_calls` keeps the runtime that this runs on.
    async fn keep(self: Arc<Self>, _calls: Calls) {
        let mut lsn_seen = 0;
        while !self.is_ending.load(Ordering::Relaxed) && !self.is_lost.load(Ordering::Relaxed) {
            let pause = self.renew(&mut lsn_seen).await;
            let _ = tokio::time::timeout(pause, self.wake.notified()).await;
        }
        if self.is_ending.load(Ordering::Relaxed) && !self.is_lost.load(Ordering::Relaxed) {
            let own = self.own;
            let released = self.session.run_here(move |client| async move {
                client.execute_typed(schema::RELEASE, &[(&own, Type::UUID)]).await
            });
            let released = tokio::time::timeout(RELEASE_TIME_MAX, released).await;
            if !matches!(released, Ok(Ok(_))) {
                warn!("the lease could not be given back, and ends by itself");
            }
        }
        self.has_ended.store(true, Ordering::Relaxed);
    }

    /// Renews the lease once. How long it is until the next time.
    async fn renew(&self, lsn_seen: &mut i64) -> Duration {
        let (own, start) = (self.own, now());
        let renewed = self.session.run_here(move |client| async move {
            let values: [(&(dyn ToSql + Sync), Type); 2] =
                [(&own, Type::UUID), (&(LEASE_MS as f64), Type::FLOAT8)];
            let rows = client.query_typed(schema::RENEW, &values).await?;
            Ok(rows.first().map(|row| row.get::<_, i64>(0)))
        });
        let renewed = tokio::time::timeout(RENEW_EVERY, renewed).await;
        match renewed.unwrap_or_else(|_| Err(Failure::Lost("no answer".to_owned()))) {
            Ok(None) if !self.is_open.load(Ordering::Relaxed) => WAIT_EVERY,
            // Another process leads; or the database came back without records that this one has seen.
            Ok(lsn_next) if lsn_next.is_none_or(|lsn_next| lsn_next < *lsn_seen) => {
                self.is_lost.store(true, Ordering::Relaxed);
                Duration::ZERO
            }
            Ok(lsn_next) => {
                *lsn_seen = lsn_next.unwrap_or(*lsn_seen);
                if !self.is_ending.load(Ordering::Relaxed) {
                    *self.until.lock() = start + Duration::from_millis(LEASE_MS as u64);
                }
                RENEW_EVERY
            }
            Err(failure) => {
                self.session.drop_client();
                warn!(error = %failure.error(), "the lease could not be renewed");
                RENEW_AGAIN
            }
        }
    }
}

/// Time since the machine was started, with the time that it slept: a lease ends meanwhile.
fn now() -> Duration {
    let time = clock_gettime(ClockId::Boottime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

/// The process that had this directory before this one, and has ended: this machine has not been started since, so the directory is no copy.
fn last_leader(disk: &OsVfs) -> Option<Uuid> {
    let text = read_text(disk, "LEADER")?;
    let (leader, boot) = text.trim().split_once(' ')?;
    (boot == boot_id()).then(|| leader.parse().ok()).flatten()
}

/// By which the kernel names its start.
fn boot_id() -> String {
    let text = std::fs::read_to_string("/proc/sys/kernel/random/boot_id");
    text.map(|text| text.trim().to_owned()).unwrap_or_default()
}

fn error_at(place: &str, error: &std::io::Error) -> Error {
    Error::Io { place: place.to_owned(), kind: error.kind(), detail: error.to_string() }
}

/// Waits until no other process leads.
///
/// Errors: `Invalid` where one still does after a while.
fn wait_for_lease(log: &PostgresLog) -> Result<()> {
    let start = Instant::now();
    loop {
        let Some(state) = log.state()? else { return Ok(()) };
        let is_of_before = state.leader.is_some() && state.leader == log.identity().before;
        if state.lease_ms < 0 || is_of_before {
            return Ok(());
        }
        if start.elapsed() > WAIT_MAX {
            let detail = "leads to a database that another process has; stop that one first";
            return Err(Error::invalid("metadata URL", detail));
        }
        thread::sleep(WAIT_EVERY);
    }
}

/// Makes a directory the cache of a log: copies of files of another one are deleted.
///
/// Errors: `Invalid` for a directory that holds a store, or files of which nothing says what they are.
fn prepare_cache(disk: &OsVfs, log: Uuid) -> Result<()> {
    let exists = |path: &str| disk.open(path).is_ok();
    if exists("SUPER.a") || exists("SUPER.b") {
        let detail = "holds a store of its own, and would be a cache here; move it with `inlay migrate`, or name another directory";
        return Err(Error::invalid("data directory", detail));
    }
    let of = read_text(disk, "CACHE");
    if of.as_deref().map(str::trim) == Some(log.to_string().as_str()) {
        return Ok(());
    }
    let at = |path: &str, error: std::io::Error| error_at(path, &error);
    let mut copies = Vec::new();
    let names = disk.list_dirs("").map_err(|error| at("the data directory", error))?;
    for directory in
        DIRECTORIES.iter().filter(|directory| names.iter().any(|name| name == *directory))
    {
        collect(disk, directory, &mut copies).map_err(|error| at(directory, error))?;
    }
    if of.is_none() && !copies.is_empty() {
        let detail = "holds files and no CACHE that says what they are; name an empty directory";
        return Err(Error::invalid("data directory", detail));
    }
    for path in copies {
        disk.remove(&path).map_err(|error| at(&path, error))?;
    }
    write_text(disk, "CACHE", &log.to_string())
}

/// All files below a directory.
fn collect(disk: &OsVfs, directory: &str, into: &mut Vec<String>) -> std::io::Result<()> {
    into.extend(disk.list(directory)?.iter().map(|name| format!("{directory}/{name}")));
    for name in disk.list_dirs(directory)? {
        collect(disk, &format!("{directory}/{name}"), into)?;
    }
    Ok(())
}

fn read_text(disk: &OsVfs, path: &str) -> Option<String> {
    let view = disk.map(path).ok()?;
    std::str::from_utf8(&view).ok().map(str::to_owned)
}

fn write_text(disk: &OsVfs, path: &str, text: &str) -> Result<()> {
    let write = || -> std::io::Result<()> {
        let temporary = format!("{path}.new");
        let _ = disk.remove(&temporary);
        let file: Arc<dyn VfsFile> = disk.create(&temporary)?;
        file.write_at(0, text.as_bytes())?;
        file.sync()?;
        disk.rename(&temporary, path)?;
        disk.sync_dir("")
    };
    write().map_err(|error| error_at(path, &error))
}
