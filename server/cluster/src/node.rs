//! Opening the store in a process: with what the log holds, and with the data directory as a cache. Whether it leads or follows is found out then (`membership.rs`).
//!
//! The data directory holds, beside copies of files, two that say what it is:
//!
//! ```text
//! CACHE     the log whose files are here; those of another are deleted, for they may have the same names
//! LEADER    the process that had this directory last, which has ended when the next one has the directory's lock, and the start of the machine at that time: its lease
//!           may be taken at once, where this is not a copy of the directory on another machine
//! ```

use std::{any::Any, path::Path, sync::Arc, thread, time::Duration};

use inlay_engine::{
    Engine, Error, Options, OsVfs, Result, SystemClock, SystemRng, Vfs, VfsFile,
    remote::{Log as _, ObjectVfs, Superblock, clear_partial_copies},
};
use tracing::{info, warn};
use uuid::Uuid;

use crate::{
    bucket::BucketUrl,
    calls::{Calls, error_at},
    log::{Identity, PostgresLog, State},
    membership::{MemberParts, Membership},
    session::DatabaseSession,
    uploads::{AnnouncedObjects, Uploads},
};

/// Directories whose files are in the bucket.
pub const DIRECTORIES: &[&str] = &["seg", "ids", "ckpt"];
/// How often opening is tried: the leader may drop a file, or records, that were named when the log was read.
const ATTEMPTS: u32 = 10;
/// How long is waited in between.
const ATTEMPT_EVERY: Duration = Duration::from_millis(200);
/// The lock of the data directory while it is prepared as a cache; the store has its own.
const CACHE_LOCK: &str = "CACHE.lock";

/// Where a store is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Location {
    /// The log: `postgres://inlay@db.acme.com/inlay`.
    pub metadata_url: String,
    /// The files: `s3://acme-inlay/production?region=eu-central-1`.
    pub events_url: String,
}

/// The data directory as a cache of the files.
#[derive(Debug, Clone, Copy)]
pub struct Cache<'a> {
    /// Where it is.
    pub directory: &'a Path,
    /// How many bytes of segments and id runs it may have; all of them where nothing is said.
    pub bytes_max: Option<u64>,
}

/// A process with the store open, which leads or follows.
pub struct Node {
    /// The store, which leads or follows.
    pub engine: Arc<Engine>,
    /// How this process stands to the others.
    pub membership: Membership,
}

impl Node {
    /// Opens the store of a location, with a cache. A new database is made where there is none. The process leads then where no other one does.
    ///
    /// Errors: `Invalid` for wrong URLs, and for a directory that holds a store of its own or is in use; those of database, bucket and store.
    pub fn open(location: &Location, cache: Cache<'_>, options: &Options) -> Result<Self> {
        let Cache { directory, bytes_max } = cache;
        let bucket_url = BucketUrl::parse(&location.events_url)?;
        let shown = directory.display().to_string();
        let disk = OsVfs::new(directory).map_err(|error| error_at(&shown, &error))?;
        // Before anything in it is changed: another process may have it, with another database.
        let cache_lock = disk.lock(CACHE_LOCK).map_err(|error| error_at(CACHE_LOCK, &error))?;
        let cache_lock = cache_lock
            .ok_or_else(|| Error::invalid("data directory", "is in use by another process"))?;
        let cache_lock: Arc<dyn Any + Send + Sync> = Arc::from(cache_lock);
        let calls = Calls::new().map_err(|error| error_at("threads", &error))?;
        let session = Arc::new(DatabaseSession::new(calls.clone(), &location.metadata_url)?);
        let log =
            PostgresLog::new(Arc::clone(&session), Identity::new(&SystemRng, last_leader(&disk)))?;
        log.check_clock(&SystemClock)?;
        let state = state_or_new(&log, &bucket_url, &calls, options)?;
        prepare_cache(&disk, state.id)?;
        let own = log.identity().own;
        write_text(&disk, "LEADER", &format!("{own} {}", boot_id()))?;
        let bucket = bucket_url.of(calls.clone(), state.id);
        let uploads = Arc::new(Uploads::new(session.another(), own));
        let objects = AnnouncedObjects { objects: bucket, uploads: Arc::clone(&uploads) };
        // What a process left that had a bound and was killed, whether this one has one or not: rows of it may be erased.
        clear_partial_copies(&disk).map_err(|error| error_at(&shown, &error))?;
        let files = ObjectVfs::new(Arc::new(disk), Arc::new(objects), DIRECTORIES);
        let files = match bytes_max {
            Some(_) => files.in_parts().map_err(|error| error_at(&shown, &error))?,
            None => files,
        };
        let files = Arc::new(files);
        let log = Arc::new(log);
        let (secret, leader) = (state.secret, state.leader);
        let open = || -> Result<Self> {
            let (vfs, records) = (Arc::clone(&files), Arc::clone(&log));
            let engine = Arc::new(Engine::open_follower(vfs, records, options.clone())?);
            let membership = Membership::join(MemberParts {
                engine: Arc::clone(&engine),
                log: Arc::clone(&log),
                calls: calls.clone(),
                session: session.another(),
                secret: secret.clone(),
                files: Arc::clone(&files),
                uploads: Arc::clone(&uploads),
                cache_bytes_max: bytes_max,
                cache_lock: Arc::clone(&cache_lock),
            })?;
            Ok(Self { engine, membership })
        };
        let node = again_where_it_changes(open)?;
        if !node.membership.leads() {
            info!(log = %state.id, ?leader, "this process follows");
        }
        Ok(node)
    }
}

/// What the database says of itself; it is made where there is none.
///
/// Errors: the bucket is not that of the database, or cannot be written to.
fn state_or_new(
    log: &PostgresLog,
    bucket_url: &BucketUrl,
    calls: &Calls,
    options: &Options,
) -> Result<State> {
    if log.state()?.is_none() {
        let superblock = Superblock::new(&*options.rng);
        let id = Uuid::from_bytes(superblock.db);
        // First the bucket: a database whose bucket cannot be written to is not made.
        bucket_url.of(calls.clone(), id).mark()?;
        match log.create(&superblock) {
            Ok(()) => {}
            // Another process has made one in between.
            Err(Error::Invalid { .. }) if log.state()?.is_some() => {}
            Err(error) => return Err(error),
        }
    }
    let gone = || Error::corrupt("inlay.cluster", "has no row");
    let state = log.state()?.ok_or_else(gone)?;
    bucket_url.of(calls.clone(), state.id).check_mark()?;
    Ok(state)
}

/// Opens the store as the log has it. A file that the leader drops meanwhile is not found, and records that it deletes are missing: the log says so when it is read again, and
/// what was fetched is there already.
fn again_where_it_changes(open: impl Fn() -> Result<Node>) -> Result<Node> {
    let mut attempt = 1;
    loop {
        match open() {
            Err(error @ Error::Corrupt { .. }) if attempt < ATTEMPTS => {
                warn!(%error, attempt, "the store cannot be opened yet");
                attempt += 1;
                thread::sleep(ATTEMPT_EVERY);
            }
            done => return done,
        }
    }
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
