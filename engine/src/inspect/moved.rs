//! What a store consists of whose log is not needed: for moving it where its log and its files are elsewhere.
//!
//! ```text
//! superblock     one checkpoint, at record 315
//! paths          ckpt/00000000000000000315.kv, ids/…, seg/…
//! lsn            315: the log elsewhere begins with record 316
//! ```

use std::sync::Arc;

use super::Inspection;
use crate::{
    error::{Error, Result},
    keyspace::checkpoint,
    store::Superblock,
    vfs::{Vfs, read_only::ReadOnlyVfs},
};

/// The files of a store, and what its superblock is without its log.
pub struct MovedFiles {
    /// Names the newest checkpoint alone.
    pub superblock: Superblock,
    /// Every file that the store consists of, sorted.
    pub paths: Vec<String>,
    /// Number of the last record.
    pub lsn: u64,
}

/// What is to be moved of a data directory that was flushed and closed.
///
/// Errors: `Invalid` where records came after its newest checkpoint, `Corrupt` where that is damaged; those of [`Inspection::open`].
pub fn moved_files(vfs: &Arc<dyn Vfs>) -> Result<MovedFiles> {
    let found = Inspection::open(ReadOnlyVfs(Arc::clone(vfs)))?;
    let newest = found.superblock.checkpoints.first().copied();
    let newest = newest
        .filter(|newest| newest.lsn == found.lsn() && newest.replay_after == newest.lsn)
        .ok_or_else(|| {
            Error::invalid("data directory", "has records after its newest checkpoint")
        })?;
    checkpoint::read(&**vfs, found.superblock.db, newest.lsn)?;
    let superblock = Superblock { checkpoints: vec![newest], ..found.superblock.clone() };
    let mut paths = vec![checkpoint::path(newest.lsn)];
    paths.extend(found.segment_metas()?.iter().map(|meta| meta.path()));
    paths.extend(found.run_metas()?.iter().map(|meta| meta.path()));
    paths.sort();
    Ok(MovedFiles { superblock, paths, lsn: newest.lsn })
}
