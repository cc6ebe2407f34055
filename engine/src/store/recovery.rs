//! Starting: from the newest checkpoint and the log after it to a version.
//!
//! Replay follows what the log recorded and decides nothing again: which rows were new is in the
//! record. A file that the keyspace does not name is not part of the database and is deleted.

#![cfg_attr(not(test), deny(clippy::indexing_slicing, clippy::unwrap_used))]

use std::{collections::BTreeSet, io, sync::Arc};

use super::{
    TEMPORARY,
    dedup::Dedup,
    log::{Log, LogWriter},
    names::{ID_RUN_PREFIX, SEGMENT_PREFIX, flushed_lsn},
    superblock::{CHECKPOINTS_KEPT, CheckpointRef, Superblock},
    version::{Segments, Version},
};
use crate::{
    base::{coding::Cursor, hash},
    column::{Rows, RowsBuilder},
    error::{Error, IoContext, Result},
    ids::{self, IdRun, IdRunMeta},
    keyspace::{Tree, Writes, checkpoint, read_writes},
    segment::{self, Database, Segment, SegmentMeta},
    vfs::Vfs,
    wal::{self, LogTail, Record, RecordKind},
};

/// The recovered state of a database.
pub struct Recovered {
    /// Segments, rows in memory and keyspace as of the last record of the log.
    pub version: Version,
    /// Ids of the rows in memory, and the id runs that could be opened.
    pub dedup: Dedup,
    /// Writer of what follows the last record of the log.
    pub writer: Box<dyn LogWriter>,
    /// Id runs that cannot be opened: their ids have to be read from the segments again.
    pub runs_lost: Vec<uuid::Uuid>,
}

/// The state in checkpoint and log, without the files that it names.
pub struct State {
    /// Keys as of the last record.
    pub tree: Tree,
    /// Records that were read.
    pub records: Vec<Record>,
    /// End of the log.
    pub tail: LogTail,
}

/// Reads a checkpoint, and the log by `read_after`, which gives the records above an LSN. Changes nothing.
///
/// Errors: `Corrupt` naming file and offset where anything that is needed is damaged or missing.
pub fn read_state(
    vfs: &dyn Vfs,
    superblock: &Superblock,
    read_after: impl FnOnce(u64) -> Result<(Vec<Record>, LogTail)>,
) -> Result<State> {
    let (base, checkpoint) = load_checkpoint(vfs, superblock)?;
    let after = checkpoint.map_or(0, |checkpoint| checkpoint.replay_after);
    let checkpoint_lsn = checkpoint.map_or(0, |checkpoint| checkpoint.lsn);
    let (records, tail) = read_after(after)?;
    if tail.lsn_last < checkpoint_lsn {
        return Err(Error::corrupt(
            wal::DIRECTORY,
            format!("ends before checkpoint {checkpoint_lsn}"),
        ));
    }
    let mut tree = base;
    for record in records.iter().filter(|record| record.lsn > checkpoint_lsn) {
        tree.apply_all(&writes_of(record)?);
    }
    Ok(State { tree, records, tail })
}

/// The keyspace writes of a record.
pub fn writes_of(record: &Record) -> Result<Writes> {
    let place = format!("record {}", record.lsn);
    match record.kind {
        RecordKind::Writes => read_whole(record.payload(), &place),
        RecordKind::Events => Ok(EventsRecord::read(record.payload(), &place)?.writes),
    }
}

/// The rows of an events record that were new.
pub fn rows_of(record: &Record, hash_seed: u64) -> Result<Rows> {
    let place = format!("record {}", record.lsn);
    EventsRecord::read(record.payload(), &place)?.new_rows(hash_seed, &place)
}

/// Recovers the database of `superblock`.
///
/// Errors: `Corrupt` naming file and offset where anything that is needed is damaged or missing.
pub fn recover(vfs: &dyn Vfs, log: &dyn Log, superblock: &Superblock) -> Result<Recovered> {
    let State { tree, records, tail } =
        read_state(vfs, superblock, |after| log.read_after(superblock, after))?;
    // Keys first: they say which events are in segments already.
    let flushed = flushed_lsn(&tree)?;
    let segments = Segments::new(open_segments(vfs, superblock.database(), &tree)?);
    let (runs, runs_lost) = open_id_runs(vfs, superblock.db, &tree)?;
    let mut dedup = Dedup::new(runs);
    let mut version = Version { lsn: tail.lsn_last, segments, tree, ..Version::default() };
    for record in records.iter().filter(|record| record.lsn > flushed) {
        if record.kind == RecordKind::Events {
            let rows = rows_of(record, superblock.hash_seed)?;
            remember_ids(&mut dedup, &rows, superblock.hash_seed);
            version.active.append(Arc::new(rows), superblock.hash_seed);
        }
    }
    // A start that is refused changes nothing: these come last.
    let writer = log.resume(superblock, &tail)?;
    delete_unnamed(vfs, superblock, &version.tree)?;
    Ok(Recovered { version, dedup, writer, runs_lost })
}

/// The newest checkpoint that can be read; an older one needs a longer log, which is kept. While
/// there is only one, the log is kept from its beginning.
fn load_checkpoint(
    vfs: &dyn Vfs,
    superblock: &Superblock,
) -> Result<(Tree, Option<CheckpointRef>)> {
    let mut first_error = None;
    for &checkpoint in &superblock.checkpoints {
        match checkpoint::read(vfs, superblock.db, checkpoint.lsn) {
            Ok(tree) => return Ok((tree, Some(checkpoint))),
            Err(error) => {
                first_error.get_or_insert(error);
            }
        }
    }
    match first_error {
        Some(error) if superblock.checkpoints.len() >= CHECKPOINTS_KEPT => Err(error),
        _ => Ok((Tree::default(), None)),
    }
}

fn read_whole(payload: &[u8], place: &str) -> Result<Writes> {
    let mut cursor = Cursor::new(payload, place);
    let writes = read_writes(&mut cursor)?;
    cursor.finish()?;
    Ok(writes)
}

/// An events record, split but not decoded.
struct EventsRecord<'a> {
    duplicates: &'a [u8],
    rows: &'a [u8],
    writes: Writes,
}

impl<'a> EventsRecord<'a> {
    fn read(payload: &'a [u8], place: &'a str) -> Result<Self> {
        let mut cursor = Cursor::new(payload, place);
        let (duplicates, rows) = (cursor.bytes()?, cursor.bytes()?);
        let writes = read_writes(&mut cursor)?;
        cursor.finish()?;
        Ok(Self { duplicates, rows, writes })
    }

    fn new_rows(&self, seed: u64, place: &str) -> Result<Rows> {
        let mut cursor = Cursor::new(self.rows, place);
        let rows = Rows::read(&mut cursor, seed)?;
        cursor.finish()?;
        if self.duplicates.is_empty() {
            return Ok(rows);
        }
        let is_new = |row: &u32| {
            let byte = self.duplicates.get(*row as usize / 8).copied().unwrap_or(0);
            byte >> (row % 8) & 1 == 0
        };
        let chosen: Vec<u32> = (0..rows.len() as u32).filter(is_new).collect();
        let mut builder = RowsBuilder::new(seed);
        builder.append(&rows, &chosen);
        Ok(builder.finish())
    }
}

fn remember_ids(dedup: &mut Dedup, rows: &Rows, seed: u64) {
    let mut scratch = Vec::new();
    for row in 0..rows.len() {
        if let Some(id) = rows.event_ids.value(row) {
            let series = rows.series_of(row);
            let tenant = series.tenant.as_bytes();
            dedup.insert(hash::event_id(seed, series.namespace.0, tenant, id, &mut scratch));
        }
    }
}

fn open_segments(vfs: &dyn Vfs, db: Database, tree: &Tree) -> Result<Vec<Arc<Segment>>> {
    tree.scan(SEGMENT_PREFIX, &[])
        .map(|(_, value)| {
            let meta = SegmentMeta::read(value)?;
            let path = meta.path();
            Ok(Arc::new(Segment::open(vfs.map(&path).at(&path)?, meta, db)?))
        })
        .collect()
}

/// The runs that open, and the names of those that are damaged or missing. Segments hold the ids
/// too, so a lost run is work and not a loss.
fn open_id_runs(
    vfs: &dyn Vfs,
    db: [u8; 16],
    tree: &Tree,
) -> Result<(Vec<Arc<IdRun>>, Vec<uuid::Uuid>)> {
    let (mut runs, mut lost) = (Vec::new(), Vec::new());
    for (_, value) in tree.scan(ID_RUN_PREFIX, &[]) {
        let meta = IdRunMeta::read(value)?;
        let (path, uuid) = (meta.path(), meta.uuid);
        let opened = match vfs.map(&path) {
            Ok(view) => IdRun::open(view, meta, db),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                Err(Error::corrupt(&path, "is missing"))
            }
            Err(error) => return Err(Error::io(path, &error)),
        };
        match opened {
            Ok(run) => runs.push(Arc::new(run)),
            Err(Error::Corrupt { .. }) => lost.push(uuid),
            Err(error) => return Err(error),
        }
    }
    Ok((runs, lost))
}

/// Removes what no key names: files of a flush, merge or checkpoint that did not finish.
pub fn delete_unnamed(vfs: &dyn Vfs, superblock: &Superblock, tree: &Tree) -> Result<()> {
    let named = superblock.checkpoints.iter().map(|known| checkpoint::path(known.lsn)).collect();
    remove_others(vfs, TEMPORARY, &BTreeSet::new())?;
    remove_others(vfs, checkpoint::DIRECTORY, &named)?;
    delete_dead(vfs, tree)
}

/// Removes segments and id runs that no key names.
pub fn delete_dead(vfs: &dyn Vfs, tree: &Tree) -> Result<()> {
    let mut named = BTreeSet::new();
    for (_, value) in tree.scan(SEGMENT_PREFIX, &[]) {
        named.insert(SegmentMeta::read(value)?.path());
    }
    for (_, value) in tree.scan(ID_RUN_PREFIX, &[]) {
        named.insert(IdRunMeta::read(value)?.path());
    }
    for parent in [segment::DIRECTORY, ids::DIRECTORY] {
        for name in vfs.list_dirs(parent).at(parent)? {
            let directory = format!("{parent}/{name}");
            let is_used = remove_others(vfs, &directory, &named)?;
            if !is_used && directory != segment::FRESH_DIRECTORY {
                // Only tidiness: an empty directory does no harm.
                let _ = vfs.remove_dir(&directory);
            }
        }
    }
    Ok(())
}

/// Removes the files of a directory that are not named. Returns whether any is.
fn remove_others(vfs: &dyn Vfs, directory: &str, named: &BTreeSet<String>) -> Result<bool> {
    let mut is_used = false;
    for name in vfs.list(directory).at(directory)? {
        let path = format!("{directory}/{name}");
        if named.contains(&path) {
            is_used = true;
        } else {
            vfs.remove(&path).at(&path)?;
        }
    }
    Ok(is_used)
}
