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

use inlay_engine::{
    Engine, Error, Options, OsVfs, Result, SystemRng,
    remote::{Log as _, Objects as _, moved_files},
};
use uuid::Uuid;

use crate::{
    bucket::BucketUrl,
    calls::Calls,
    log::{Identity, PostgresLog},
    node::Location,
    session::Session,
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
/// Errors: `Invalid` for a backup, and where the database has a store already; those of store, database and bucket. What was uploaded then stays, and a
/// second attempt finds it there.
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
    let io_error = |error: std::io::Error| Error::Io {
        place: "threads".to_owned(),
        kind: error.kind(),
        detail: error.to_string(),
    };
    let calls = Calls::new().map_err(io_error)?;
    let session = Arc::new(Session::new(calls.clone(), &location.metadata_url)?);
    let log = PostgresLog::new(session, Identity::new(&SystemRng, None))?;
    if log.superblock()?.is_some() {
        let detail = "leads to a server that has a database of Inlay; nothing was moved";
        return Err(Error::invalid("metadata URL", detail));
    }
    let engine =
        Engine::open_directory(directory, Options { background: false, ..Options::default() })?;
    engine.close()?;
    drop(engine);
    let disk: Arc<dyn inlay_engine::Vfs> = Arc::new(OsVfs::existing(directory));
    let moved = moved_files(&disk)?;
    let bucket = bucket_url.of(calls, Uuid::from_bytes(moved.superblock.db));
    bucket.mark()?;
    for (done, path) in moved.paths.iter().enumerate() {
        let put = disk.open(path).and_then(|file| bucket.put(path, &*file));
        put.map_err(|error| Error::Io {
            place: path.clone(),
            kind: error.kind(),
            detail: error.to_string(),
        })?;
        report(done + 1, moved.paths.len());
    }
    log.create_after(&moved.superblock, moved.lsn)?;
    Ok(Migrated { files: moved.paths.len(), lsn: moved.lsn })
}
