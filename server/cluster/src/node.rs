//! One process of the store: it waits for the lease, opens the store, and renews the lease until it stops.
//!
//! The data directory holds, beside copies of files, two that say what it is:
//!
//! ```text
//! CACHE     the database whose files are here; those of another are deleted, for they may have the same names
//! LEADER    the process that had this directory last, which has ended when the next one has the directory's lock: its lease may be taken at once
//! ```

use std::{
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
use tokio_postgres::types::Type;
use tracing::{info, warn};
use uuid::Uuid;

use crate::{
    bucket::BucketUrl,
    calls::Calls,
    log::{Identity, LEASE_MS, PostgresLog},
    schema,
    session::{Failure, Session},
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
    /// The store.
    pub engine: Engine,
    lease: Lease,
}

/// The lease of this process. Clones share it.
#[derive(Clone)]
pub struct Lease {
    session: Arc<Session>,
    own: Uuid,
    until: Arc<Mutex<Instant>>,
    /// Whether the store is open, and so has taken the lease.
    is_open: Arc<AtomicBool>,
    is_lost: Arc<AtomicBool>,
    is_released: Arc<AtomicBool>,
}

impl Node {
    /// Opens the store of a location, with `directory` as its cache. A new database is made where there is none.
    ///
    /// Errors: `Invalid` for wrong URLs, for a directory that holds a store of its own, and while another process leads; those of database, bucket
    /// and store.
    pub fn open(location: &Location, directory: &Path, options: Options) -> Result<Self> {
        let bucket_url = BucketUrl::parse(&location.events_url)?;
        let io_error = |place: &str, error: &std::io::Error| Error::Io {
            place: place.to_owned(),
            kind: error.kind(),
            detail: error.to_string(),
        };
        let disk = OsVfs::new(directory)
            .map_err(|error| io_error(&directory.display().to_string(), &error))?;
        let calls = Calls::new().map_err(|error| io_error("threads", &error))?;
        let session = Arc::new(Session::new(calls.clone(), &location.metadata_url)?);
        let before = read_text(&disk, "LEADER").and_then(|text| text.trim().parse().ok());
        let log = PostgresLog::new(Arc::clone(&session), Identity::new(&SystemRng, before))?;
        wait_for_lease(&log)?;
        let superblock = match log.superblock()? {
            Some(superblock) => {
                let bucket = bucket_url.of(calls.clone(), Uuid::from_bytes(superblock.db));
                bucket.check_mark()?;
                superblock
            }
            None => {
                let superblock = Superblock::new(&*options.rng);
                // First the bucket: a database whose bucket cannot be written to is not made.
                bucket_url.of(calls.clone(), Uuid::from_bytes(superblock.db)).mark()?;
                log.create(&superblock)?;
                superblock
            }
        };
        let database = Uuid::from_bytes(superblock.db);
        prepare_cache(&disk, database)?;
        let own = log.identity().own;
        write_text(&disk, "LEADER", &own.to_string())?;
        let bucket = bucket_url.of(calls.clone(), database);
        let vfs = ObjectVfs::new(Arc::new(disk), Arc::new(bucket), DIRECTORIES);
        let lease = Lease {
            session: Arc::new(session.another()),
            own,
            until: Arc::new(Mutex::new(Instant::now())),
            is_open: Arc::default(),
            is_lost: Arc::default(),
            is_released: Arc::default(),
        };
        // Before the store has taken it: what comes between then and the end of `open` may take longer than a lease.
        calls.spawn(lease.clone().keep(calls.clone()));
        let opened = Engine::open_with_log(Arc::new(vfs), Arc::new(log), options);
        let engine = opened.inspect_err(|_| lease.is_released.store(true, Ordering::Relaxed))?;
        lease.is_open.store(true, Ordering::Relaxed);
        // Whoever asks from now on is to be answered.
        let start = Instant::now();
        while !lease.is_valid() {
            if lease.is_lost() || start.elapsed() > WAIT_MAX {
                let detail = "has given the lease to another process, or does not answer";
                return Err(Error::invalid("metadata URL", detail));
            }
            thread::sleep(LOOK_EVERY);
        }
        info!(%database, "this process leads");
        Ok(Self { engine, lease })
    }

    /// The lease, and the store.
    pub fn split(self) -> (Engine, Lease) {
        (self.engine, self.lease)
    }
}

impl Lease {
    /// Whether the lease ended without having been released: another process may lead.
    pub fn is_lost(&self) -> bool {
        self.is_lost.load(Ordering::Relaxed)
    }

    /// Whether no other process can lead now, so that what this one reads is the newest.
    pub fn is_valid(&self) -> bool {
        !self.is_lost() && Instant::now() + MARGIN < *self.until.lock()
    }

    /// Gives the lease back, so that the next process need not wait until it ends. After the store is closed.
    pub fn release(&self) {
        self.is_released.store(true, Ordering::Relaxed);
        let own = self.own;
        let released = self.session.run(move |client| async move {
            client.execute_typed(schema::RELEASE, &[(&own, Type::UUID)]).await
        });
        if let Err(failure) = released {
            warn!(error = %failure.error(), "the lease could not be released and ends by itself");
        }
    }

    /// Renews the lease until it is released or lost. `_calls` keeps the runtime that this runs on.
    async fn keep(self, _calls: Calls) {
        let own = self.own;
        while !self.is_released.load(Ordering::Relaxed) {
            let start = Instant::now();
            let renewed = self.session.run_here(move |client| async move {
                let lease_ms = LEASE_MS as f64;
                client
                    .execute_typed(schema::RENEW, &[(&own, Type::UUID), (&lease_ms, Type::FLOAT8)])
                    .await
            });
            let renewed = tokio::time::timeout(RENEW_EVERY, renewed).await;
            let pause = match renewed.unwrap_or_else(|_| Err(Failure::Lost("no answer".to_owned())))
            {
                Ok(0) if !self.is_open.load(Ordering::Relaxed) => WAIT_EVERY,
                Ok(0) => {
                    self.is_lost.store(true, Ordering::Relaxed);
                    return;
                }
                Ok(_) => {
                    *self.until.lock() = start + Duration::from_millis(LEASE_MS as u64);
                    RENEW_EVERY
                }
                Err(failure) => {
                    self.session.drop_client();
                    warn!(error = %failure.error(), "the lease could not be renewed");
                    RENEW_AGAIN
                }
            };
            tokio::time::sleep(pause).await;
        }
    }
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

/// Makes a directory the cache of a database: copies of files of another one are deleted.
///
/// Errors: `Invalid` for a directory that holds a store, or files of which nothing says what they are.
fn prepare_cache(disk: &OsVfs, database: Uuid) -> Result<()> {
    let exists = |path: &str| disk.open(path).is_ok();
    if exists("SUPER.a") || exists("SUPER.b") {
        let detail = "holds a store of its own, and would be a cache here; move it with `inlay migrate`, or name another directory";
        return Err(Error::invalid("data directory", detail));
    }
    let of = read_text(disk, "CACHE");
    if of.as_deref().map(str::trim) == Some(database.to_string().as_str()) {
        return Ok(());
    }
    let at = |path: &str, error: std::io::Error| Error::Io {
        place: path.to_owned(),
        kind: error.kind(),
        detail: error.to_string(),
    };
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
    write_text(disk, "CACHE", &database.to_string())
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
    write().map_err(|error| Error::Io {
        place: path.to_owned(),
        kind: error.kind(),
        detail: error.to_string(),
    })
}
