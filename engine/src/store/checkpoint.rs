//! Taking a checkpoint, and deleting the log that nothing needs any more.

use super::{
    log::Log,
    names::flushed_lsn,
    sequencer::Sequencer,
    superblock::{CHECKPOINTS_KEPT, CheckpointRef, Superblock},
};
use crate::{
    error::{IoContext, Result},
    keyspace::checkpoint,
    vfs::Vfs,
};

/// Writes the current keyspace as a checkpoint, names it in the superblock, and deletes older
/// checkpoints and log files that neither of the kept ones needs. Nothing happens when nothing was
/// written since the last one.
pub fn take(
    vfs: &dyn Vfs,
    log: &dyn Log,
    sequencer: &Sequencer,
    superblock: &mut Superblock,
) -> Result<()> {
    let version = sequencer.version();
    if superblock.checkpoints.first().is_some_and(|newest| newest.lsn >= version.lsn) {
        return Ok(());
    }
    checkpoint::write(vfs, superblock.db, version.lsn, &version.tree)?;
    // Without rows in memory nothing before the checkpoint is needed again.
    let has_rows = version.memtables().any(|memtable| memtable.rows() > 0);
    let replay_after =
        if has_rows { flushed_lsn(&version.tree)?.min(version.lsn) } else { version.lsn };
    let mut next = superblock.clone();
    next.checkpoints.insert(0, CheckpointRef { lsn: version.lsn, replay_after });
    let older = next.checkpoints.split_off(CHECKPOINTS_KEPT.min(next.checkpoints.len()));
    log.replace(&mut next)?;
    *superblock = next;
    if vfs.is_shared() {
        // Without a listing, which costs time there; what is left behind is found by the next process that leads.
        for place in older.iter().map(|older| checkpoint::path(older.lsn)) {
            vfs.remove(&place).at(&place)?;
        }
    } else {
        delete_older(vfs, superblock)?;
    }
    delete_log(log, sequencer, superblock)
}

/// Deletes checkpoints that are older than the kept ones. A younger one may be named by a slot whose
/// writing seemed to fail.
pub fn delete_older(vfs: &dyn Vfs, superblock: &Superblock) -> Result<()> {
    let oldest = superblock.checkpoints.last().map_or(0, |oldest| oldest.lsn);
    for name in vfs.list(checkpoint::DIRECTORY).at(checkpoint::DIRECTORY)? {
        let lsn = name.strip_suffix(".kv").and_then(|stem| stem.parse::<u64>().ok());
        if lsn.is_some_and(|lsn| lsn < oldest) {
            let place = format!("{}/{name}", checkpoint::DIRECTORY);
            vfs.remove(&place).at(&place)?;
        }
    }
    Ok(())
}

/// Deletes log files whose records lie all at or below what every kept checkpoint starts from.
fn delete_log(log: &dyn Log, sequencer: &Sequencer, superblock: &Superblock) -> Result<()> {
    // With one checkpoint only, the fallback is the empty database and the whole log.
    if superblock.checkpoints.len() < CHECKPOINTS_KEPT {
        return Ok(());
    }
    let needed_after =
        superblock.checkpoints.iter().map(|kept| kept.replay_after).min().unwrap_or(0);
    log.forget(needed_after, sequencer.log_file_lsn_first())
}
