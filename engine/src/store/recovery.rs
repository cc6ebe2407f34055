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

/// A database as of the last record that was read; nothing was changed for it.
pub struct Loaded {
    /// Segments, rows in memory and keyspace as of that record.
    pub version: Version,
    /// Ids of the rows in memory, and the id runs that could be opened.
    pub dedup: Dedup,
    /// The rows in memory again, each with the number of its record.
    pub recent: Vec<(u64, Arc<Rows>)>,
    /// Where the log ended.
    pub tail: LogTail,
    /// Id runs that cannot be opened: their ids have to be read from the segments again.
    pub runs_lost: Vec<uuid::Uuid>,
}

/// Recovers the database of `superblock`, and takes its log over.
///
/// Errors: `Corrupt` naming file and offset where anything that is needed is damaged or missing.
pub fn recover(vfs: &dyn Vfs, log: &dyn Log, superblock: &Superblock) -> Result<Recovered> {
    let Loaded { version, dedup, tail, runs_lost, .. } = load(vfs, log, superblock)?;
    // A start that is refused changes nothing: these come last.
    let writer = take_over(vfs, log, superblock, &tail, &version.tree)?;
    Ok(Recovered { version, dedup, writer, runs_lost })
}

/// Takes over a log that was read up to `tail`, of which the state is `tree`, and deletes files that nothing names.
///
/// Errors: those of the log, where another process has appended since.
pub fn take_over(
    vfs: &dyn Vfs,
    log: &dyn Log,
    superblock: &Superblock,
    tail: &LogTail,
    tree: &Tree,
) -> Result<Box<dyn LogWriter>> {
    // What is deleted was there before the log was taken over. Files that come later may be those of a process that takes it over from this one,
    // where several have the same store.
    let files = list_files(vfs)?;
    let writer = log.resume(superblock, tail)?;
    delete_unnamed(vfs, superblock, tree, &files)?;
    Ok(writer)
}

/// Reads the database of `superblock`, and changes nothing.
///
/// Errors: as those of [`recover`].
pub fn load(vfs: &dyn Vfs, log: &dyn Log, superblock: &Superblock) -> Result<Loaded> {
    let State { tree, records, tail } =
        read_state(vfs, superblock, |after| log.read_after(superblock, after))?;
    // Keys first: they say which events are in segments already.
    let flushed = flushed_lsn(&tree)?;
    let segments = Segments::new(open_segments(vfs, superblock.database(), &tree)?);
    let (runs, runs_lost) = open_id_runs(vfs, superblock.db, &tree)?;
    let mut dedup = Dedup::new(runs);
    let mut version = Version { lsn: tail.lsn_last, segments, tree, ..Version::default() };
    let mut recent = Vec::new();
    for record in records.iter().filter(|record| record.lsn > flushed) {
        if record.kind == RecordKind::Events {
            let rows = Arc::new(rows_of(record, superblock.hash_seed)?);
            remember_ids(&mut dedup, &rows, superblock.hash_seed);
            recent.push((record.lsn, Arc::clone(&rows)));
            version.active.append(rows, superblock.hash_seed);
        }
    }
    Ok(Loaded { version, dedup, recent, tail, runs_lost })
}

/// The newest checkpoint that can be read; an older one needs a longer log, which is kept. While
/// there is only one, the log is kept from its beginning.
fn load_checkpoint(
    vfs: &dyn Vfs,
    superblock: &Superblock,
) -> Result<(Tree, Option<CheckpointRef>)> {
    let mut first_error = None;
    for &checkpoint in &superblock.checkpoints {
        let path = checkpoint::path(checkpoint.lsn);
        match read_again(vfs, &path, || checkpoint::read(vfs, superblock.db, checkpoint.lsn)) {
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

/// Adds the ids of rows to those that are known.
pub fn remember_ids(dedup: &mut Dedup, rows: &Rows, seed: u64) {
    let mut scratch = Vec::new();
    for row in 0..rows.len() {
        if let Some(id) = rows.event_ids.value(row) {
            let series = rows.series_of(row);
            let tenant = series.tenant.as_bytes();
            dedup.insert(hash::event_id(seed, series.namespace.0, tenant, id, &mut scratch));
        }
    }
}

/// Reads a file. Where it is damaged and is a copy of one elsewhere, the copy is thrown away and the file is read once more.
fn read_again<T>(vfs: &dyn Vfs, path: &str, read: impl Fn() -> Result<T>) -> Result<T> {
    match read() {
        Err(Error::Corrupt { .. }) if vfs.discard_copy(path).at(path)? => read(),
        other => other,
    }
}

fn open_segments(vfs: &dyn Vfs, db: Database, tree: &Tree) -> Result<Vec<Arc<Segment>>> {
    let metas = tree.scan(SEGMENT_PREFIX, &[]).map(|(_, value)| SegmentMeta::read(value));
    metas.map(|meta| open_segment(vfs, db, meta?)).collect()
}

/// Opens the segment of a key.
pub fn open_segment(vfs: &dyn Vfs, db: Database, meta: SegmentMeta) -> Result<Arc<Segment>> {
    let path = meta.path();
    read_again(vfs, &path, || {
        Segment::open(vfs.map(&path).at(&path)?, meta.clone(), db).map(Arc::new)
    })
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
        let uuid = meta.uuid;
        match open_id_run(vfs, db, meta) {
            Ok(run) => runs.push(run),
            Err(Error::Corrupt { .. }) => lost.push(uuid),
            Err(error) => return Err(error),
        }
    }
    Ok((runs, lost))
}

/// All files that a key or the superblock may name. Sorted.
///
/// `["ckpt/00000000000000000007.kv", "ids/0/019a….ids", "seg/l0/019a….seg"]`
pub fn list_files(vfs: &dyn Vfs) -> Result<Vec<String>> {
    let mut files = Vec::new();
    for directory in [checkpoint::DIRECTORY, segment::DIRECTORY, ids::DIRECTORY] {
        files.extend(vfs.list_below(directory).at(directory)?);
    }
    files.sort();
    Ok(files)
}

/// Opens the id run of a key. Errors: `Corrupt` where it is damaged or missing.
pub fn open_id_run(vfs: &dyn Vfs, db: [u8; 16], meta: IdRunMeta) -> Result<Arc<IdRun>> {
    let path = meta.path();
    read_again(vfs, &path, || match vfs.map(&path) {
        Ok(view) => IdRun::open(view, meta.clone(), db).map(Arc::new),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            Err(Error::corrupt(&path, "is missing"))
        }
        Err(error) => Err(Error::io(&path, &error)),
    })
}

/// Removes temporary files, and those of `files` that nothing names: they are of a flush, merge or checkpoint that did not finish.
fn delete_unnamed(
    vfs: &dyn Vfs,
    superblock: &Superblock,
    tree: &Tree,
    files: &[String],
) -> Result<()> {
    let oldest = superblock.checkpoints.last().map_or(0, |oldest| oldest.lsn);
    let is_dead = |path: &str| {
        let Some(name) = path.strip_prefix(checkpoint::DIRECTORY) else { return false };
        let lsn = name
            .trim_start_matches('/')
            .strip_suffix(".kv")
            .and_then(|stem| stem.parse::<u64>().ok());
        let is_named = superblock.checkpoints.iter().any(|kept| Some(kept.lsn) == lsn);
        // A younger one has the number of a record that is to come, when it may be written by another process.
        !is_named && (!vfs.is_shared() || lsn.is_none_or(|lsn| lsn < oldest))
    };
    delete_temporary(vfs)?;
    for path in files.iter().filter(|path| is_dead(path)) {
        vfs.remove(path).at(path)?;
    }
    delete_dead(vfs, tree, files)
}

/// Whether a path lies below a directory: `seg/l0/019a….seg` does below `seg` and `seg/l0`.
fn is_below(path: &str, directory: &str) -> bool {
    path.strip_prefix(directory).is_some_and(|rest| rest.starts_with('/'))
}

/// Removes those of `files` that are segments or id runs and that no key names.
pub fn delete_dead(vfs: &dyn Vfs, tree: &Tree, files: &[String]) -> Result<()> {
    for path in dead(tree, files)? {
        vfs.remove(path).at(path)?;
    }
    if vfs.is_shared() {
        // A store of objects has no directories, and asking for them is a listing.
        return Ok(());
    }
    let named = named_files(tree)?;
    for parent in [segment::DIRECTORY, ids::DIRECTORY] {
        for name in vfs.list_dirs(parent).at(parent)? {
            let directory = format!("{parent}/{name}");
            let is_used = named.iter().any(|path| is_below(path, &directory));
            if !is_used && directory != segment::FRESH_DIRECTORY {
                // Only tidiness: an empty directory does no harm.
                let _ = vfs.remove_dir(&directory);
            }
        }
    }
    Ok(())
}

/// Removes copies of segments and id runs that no key names, and of checkpoints, from this disk. They are another process's to delete; here they may hold rows that were erased
/// while this one was away.
pub fn discard_dead_copies(vfs: &dyn Vfs, tree: &Tree) -> Result<()> {
    let files = list_files(vfs)?;
    // A checkpoint is read once, at a start.
    let checkpoints = files.iter().filter(|path| is_below(path, checkpoint::DIRECTORY));
    for path in dead(tree, &files)?.into_iter().chain(checkpoints) {
        vfs.discard_copy(path).at(path)?;
    }
    delete_temporary(vfs)
}

/// Removes what a process left behind that was killed.
fn delete_temporary(vfs: &dyn Vfs) -> Result<()> {
    for name in vfs.list(TEMPORARY).at(TEMPORARY)? {
        let path = format!("{TEMPORARY}/{name}");
        match vfs.remove(&path) {
            // A file that was being fetched beside this has its name now.
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            removed => removed.at(&path)?,
        }
    }
    Ok(())
}

/// Those of `files` that are segments or id runs and that no key names.
fn dead<'a>(tree: &Tree, files: &'a [String]) -> Result<Vec<&'a String>> {
    let named = named_files(tree)?;
    let is_data = |path: &str| is_below(path, segment::DIRECTORY) || is_below(path, ids::DIRECTORY);
    Ok(files.iter().filter(|path| is_data(path) && !named.contains(*path)).collect())
}

/// Paths of the segments and id runs that keys name.
pub fn named_files(tree: &Tree) -> Result<BTreeSet<String>> {
    let mut named = BTreeSet::new();
    for (_, value) in tree.scan(SEGMENT_PREFIX, &[]) {
        named.insert(SegmentMeta::read(value)?.path());
    }
    for (_, value) in tree.scan(ID_RUN_PREFIX, &[]) {
        named.insert(IdRunMeta::read(value)?.path());
    }
    Ok(named)
}
