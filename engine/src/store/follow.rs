//! Following: the records that another process appends are applied here, so that this one shows the same.
//!
//! ```text
//! leader      record 41 (events)   record 42 (a flush: segment s1 comes, rows up to 40 are in it)   record 43 (a merge: s1 goes, s2 comes)
//! follower    read_after(40)       rows of 41 in memory; the keys name s2: it is opened; rows up to 40 leave memory; all of it is one version
//! ```
//!
//! What is live follows from the keys as of the last record that was read, not from each record: a segment that came and went meanwhile is not looked
//! for. A file that the keys name and the object store has not any more was dropped by a record that this process has not read yet, so the next round finds it dropped.
//!
//! To lead, a process applies what is left and takes the log over; where another one has appended in between, that fails and is tried again.

use std::sync::Arc;

use super::{
    dedup::Dedup,
    lifecycle::{Store, Upkeep},
    names::{FLUSHED_KEY, ID_RUN_PREFIX, SEGMENT_PREFIX, flushed_lsn},
    recovery::{self, open_id_run, open_segment, remember_ids, rows_of, writes_of},
    superblock::Superblock,
    version::{Segments, Version},
};
use crate::{
    column::Rows,
    error::{Error, Result},
    ids::{IdRun, IdRunMeta},
    keyspace::Tree,
    segment::{Segment, SegmentMeta},
    wal::{LogTail, Record, RecordKind},
};

/// Whether the keys of a record say which files are live.
fn names_files(key: &[u8]) -> bool {
    key.starts_with(SEGMENT_PREFIX) || key.starts_with(ID_RUN_PREFIX) || key == FLUSHED_KEY
}

impl Store {
    /// Applies all records that another process has appended. Returns the number of the last one.
    ///
    /// Errors: `Invalid` where this process leads; those of the log: `Corrupt` where it does not reach back to what this process has, which has to
    /// be opened anew; those of files that are fetched. Nothing has changed then.
    pub fn follow(&self) -> Result<u64> {
        let mut upkeep = self.upkeep.lock();
        self.apply_new(&mut upkeep)?;
        Ok(self.version().lsn)
    }

    /// Takes the log over, and writes from now on.
    ///
    /// Errors: as of [`Store::follow`], and where another process leads, or has appended in between.
    pub fn lead(&self) -> Result<()> {
        let mut upkeep = self.upkeep.lock();
        let superblock = self.log.superblock()?;
        let superblock =
            superblock.ok_or_else(|| Error::corrupt("superblock", "is not there any more"))?;
        let tail = self.apply_new(&mut upkeep)?;
        let tree = self.version().tree.clone();
        let writer = recovery::take_over(&*self.vfs, &*self.log, &superblock, &tail, &tree)?;
        upkeep.superblock = superblock;
        upkeep.recent = Vec::new();
        upkeep.active_since_ms = None;
        *self.log_meters.lock() = writer.meters();
        self.sequencer.lead(writer);
        Ok(())
    }

    /// Applies what is new. Returns where the log ended.
    fn apply_new(&self, upkeep: &mut Upkeep) -> Result<LogTail> {
        let Upkeep { recent, leftover_copies, .. } = upkeep;
        if !self.sequencer.follows() {
            return Err(Error::invalid("store", "is not followed here: this process leads"));
        }
        let before = self.version();
        let (records, tail) = self.log.read_after(&self.superblock_of_follower(), before.lsn)?;
        if records.is_empty() {
            return Ok(tail);
        }
        let mut next = Version::clone(&before);
        let (mut rows, mut names_change) = (Vec::new(), false);
        for record in &records {
            let writes = writes_of(record)?;
            names_change |= writes.iter().any(|(key, _)| names_files(key));
            next.tree.apply_all(&writes);
            rows.extend(self.rows_of(record)?);
            next.lsn = record.lsn;
        }
        let seed = self.hash_seed();
        if !names_change {
            for (_, rows) in &rows {
                next.active.append(Arc::clone(rows), seed);
            }
            self.sequencer.show(next, |dedup| {
                rows.iter().for_each(|(_, rows)| remember_ids(dedup, rows, seed));
            });
            recent.extend(rows);
            return Ok(tail);
        }
        // Everything that may fail comes before anything is changed.
        // What is fetched for it may stay on the disk, and the next version may not name it.
        leftover_copies.extend(recovery::named_files(&next.tree)?);
        let segments = self.segments_of(&next.tree, &before.segments)?;
        let runs_before = self.sequencer.id_runs();
        let runs = self.runs_of(&next.tree, &runs_before)?;
        let runs_after = run_paths(&runs);
        let flushed = flushed_lsn(&next.tree)?;
        recent.extend(rows);
        recent.retain(|(lsn, _)| *lsn > flushed);
        next.active = Default::default();
        let mut ids = Dedup::new(runs);
        for (_, rows) in &*recent {
            next.active.append(Arc::clone(rows), seed);
            remember_ids(&mut ids, rows, seed);
        }
        next.segments = Segments::new(segments);
        leftover_copies.extend(segment_paths(&before.segments));
        leftover_copies.extend(run_paths(&runs_before));
        for path in segment_paths(&next.segments).iter().chain(&runs_after) {
            leftover_copies.remove(path);
        }
        self.sequencer.show(next, |dedup| *dedup = ids);
        // Whoever has one of them open reads on. A copy that cannot be removed is tried again with the next version.
        leftover_copies.retain(|path| self.vfs.discard_copy(path).is_err());
        Ok(tail)
    }

    fn rows_of(&self, record: &Record) -> Result<Option<(u64, Arc<Rows>)>> {
        Ok(match record.kind {
            RecordKind::Events => Some((record.lsn, Arc::new(rows_of(record, self.hash_seed())?))),
            RecordKind::Writes => None,
        })
    }

    /// The superblock is asked for the identity of the database alone, which never changes.
    fn superblock_of_follower(&self) -> Superblock {
        let (db, hash_seed) = (self.database().id, self.hash_seed());
        Superblock { db, hash_seed, generation: 0, checkpoints: Vec::new() }
    }

    /// The segments that keys name.
    fn segments_of(&self, tree: &Tree, open: &Segments) -> Result<Vec<Arc<Segment>>> {
        let metas = tree.scan(SEGMENT_PREFIX, &[]).map(|(_, value)| SegmentMeta::read(value));
        open_missing(
            metas,
            open,
            |file| file.meta(),
            |meta| open_segment(&*self.vfs, self.database(), meta),
        )
    }

    /// The id runs that keys name.
    fn runs_of(&self, tree: &Tree, open: &[Arc<IdRun>]) -> Result<Vec<Arc<IdRun>>> {
        let metas = tree.scan(ID_RUN_PREFIX, &[]).map(|(_, value)| IdRunMeta::read(value));
        open_missing(metas, open, IdRun::meta, |meta| {
            open_id_run(&*self.vfs, self.database().id, meta)
        })
    }
}

/// The files of these keys: those that are open already, and others, which are opened.
fn open_missing<T, M: PartialEq>(
    metas: impl Iterator<Item = Result<M>>,
    open: &[Arc<T>],
    meta_of: impl Fn(&T) -> &M,
    open_file: impl Fn(M) -> Result<Arc<T>>,
) -> Result<Vec<Arc<T>>> {
    let one = |meta: Result<M>| {
        let meta = meta?;
        match open.iter().find(|file| *meta_of(file) == meta) {
            Some(file) => Ok(Arc::clone(file)),
            None => open_file(meta),
        }
    };
    metas.map(one).collect()
}

fn segment_paths(segments: &Segments) -> Vec<String> {
    segments.iter().map(|segment| segment.meta().path()).collect()
}

fn run_paths(runs: &[Arc<IdRun>]) -> Vec<String> {
    runs.iter().map(|run| run.meta().path()).collect()
}
