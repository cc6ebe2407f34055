//! Moves a store from a data directory to a database and a bucket.
//!
//! ```text
//! $ inlay migrate --data-dir ./data --metadata-url postgres://… --events-url s3://acme-inlay/production
//! moved 21 files, everything up to record 315
//! ```
//!
//! The store is flushed first, so that a checkpoint and files are all there is. The files are uploaded as they are, and the database is made last: before
//! that, nothing has moved. The directory stays as it was.

use std::{path::Path, sync::Arc};

use crate::{
    bucket::{Bucket, BucketUrl},
    calls::{Calls, error_at},
    log::{Identity, PostgresLog},
    node::Location,
    session::DatabaseSession,
};
use inlay_engine::{
    Engine, Error, Options, OsVfs, Result, SystemRng, Vfs,
    remote::{Log as _, Objects as _, moved_files},
};

/// What was moved.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Migrated {
    /// Files that were uploaded.
    pub files: usize,
    /// Number of the last record.
    pub lsn: u64,
}

/// Moves the store of `directory`, which no process has open. `report` is called after each file with how many there are.
///
/// Errors: `Invalid` for a backup, and where the database has a store already; those of store, database and bucket. What was uploaded is
/// deleted then, but for a last step that got no answer.
pub fn migrate(
    directory: &Path,
    location: &Location,
    report: &mut dyn FnMut(usize, usize),
) -> Result<Migrated> {
    if directory.join("BACKUP").exists() {
        let detail = "is a backup; restore it with `inlay restore`, and move the directory that it was restored to";
        return Err(Error::invalid("data directory", detail));
    }
    if !directory.join("SUPER.a").exists() && !directory.join("SUPER.b").exists() {
        return Err(Error::invalid("data directory", "holds no store"));
    }
    let bucket_url = BucketUrl::parse(&location.events_url)?;
    let calls = Calls::new().map_err(|error| error_at("threads", &error))?;
    let session = Arc::new(DatabaseSession::new(calls.clone(), &location.metadata_url)?);
    let log = PostgresLog::new(session, Identity::new(&SystemRng, None))?;
    if log.superblock()?.is_some() {
        let detail = "leads to a server that has a database of Inlay; nothing was moved";
        return Err(Error::invalid("metadata URL", detail));
    }
    let engine =
        Engine::open_directory(directory, Options { background: false, ..Options::default() })?;
    engine.close()?;
    drop(engine);
    let disk: Arc<dyn Vfs> = Arc::new(OsVfs::existing(directory));
    // No server may start here meanwhile: its events would be missing in the new place.
    let in_use = || Error::invalid("data directory", "is in use by another process");
    let _lock = disk.lock("LOCK").map_err(|error| error_at("LOCK", &error))?.ok_or_else(in_use)?;
    let moved = moved_files(&disk)?;
    // An id of its own: the same store may have been moved before, to another log.
    let id = Identity::new(&SystemRng, None).own;
    let bucket = bucket_url.of(calls, id);
    bucket.mark()?;
    upload(&*disk, &bucket, &moved.paths, report).inspect_err(|_| {
        // As far as that is possible: nothing names them.
        moved.paths.iter().for_each(|path| drop(bucket.remove(path)));
    })?;
    // Where this fails the database may be made all the same, and its files must be there.
    log.create_after(&moved.superblock, moved.lsn, id)?;
    Ok(Migrated { files: moved.paths.len(), lsn: moved.lsn })
}

fn upload(
    disk: &dyn Vfs,
    bucket: &Bucket,
    paths: &[String],
    report: &mut dyn FnMut(usize, usize),
) -> Result<()> {
    for (done, path) in paths.iter().enumerate() {
        let put = disk.open(path).and_then(|file| bucket.put(path, &*file));
        put.map_err(|error| error_at(path, &error))?;
        report(done + 1, paths.len());
    }
    Ok(())
}
