//! Doing what the policy chose: merging, dropping, sealing, repairing.
//!
//! New files are durable before the log names them, and old ones stay until that record is. A crash
//! in between leaves files that nothing names, which the next start removes.

use std::{collections::BTreeSet, sync::Arc};

use super::{
    edit::Edit,
    erasure,
    flush::open_run,
    policy::{self, Choice, CompactionLimits, IdChoice, Merge, RunFacts, SegmentFacts},
    retention::Retention,
    sequencer::Sequencer,
};
use crate::{
    base::hash::HashSet128,
    column::SeriesKey,
    error::{Error, IoContext, Limit, Result},
    ids::{self, IdRun, NewRun, generation_at},
    keyspace::Txn,
    segment::{
        self, Database, Fate, MergeContext, Merged, SEALED, Segment, SegmentMeta, Split, source_of,
    },
    vfs::Vfs,
};

/// Room that a merge leaves on the disk for the log.
const SPARE_BYTES: u64 = 256 << 20;
/// Ids that a repair gathers before it writes a run.
const REPAIR_IDS: usize = 2_000_000;

/// The dependencies of compaction, erasure and repair.
pub struct Worker<'a> {
    /// Disk with the data directory.
    pub vfs: &'a dyn Vfs,
    /// Identity and hash seed of the database.
    pub database: Database,
    /// Where changes are published.
    pub sequencer: &'a Sequencer,
    /// Limits that decide which segments are merged.
    pub limits: &'a CompactionLimits,
    /// Days kept of namespaces without a rule of their own.
    pub retention_days: Option<u32>,
    /// Names for new files.
    pub uuid: &'a dyn Fn() -> uuid::Uuid,
    /// Wall time in milliseconds since 1970.
    pub now_ms: i64,
    /// The time by which days expire for good.
    pub settled_ms: i64,
    /// Waits while others need the machine; fails when the work must end.
    pub breathe: &'a dyn Fn() -> Result<()>,
}

/// Rows and bytes that a step read, wrote and dropped.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Done {
    /// Rows that were read.
    pub rows: u64,
    /// Bytes of the segments that were read.
    pub bytes_read: u64,
    /// Bytes of the segments that were written.
    pub bytes_written: u64,
    /// Rows that expired.
    pub rows_expired: u64,
}

impl Worker<'_> {
    /// Does the one thing that is most worth doing. `None` when nothing is. Segments in `untouched`
    /// are not merged.
    pub fn step(&self, untouched: &BTreeSet<uuid::Uuid>) -> Result<Option<Done>> {
        let version = self.sequencer.version();
        let retention = Retention::of(&version.tree, self.retention_days, self.settled_ms);
        let mut facts: Vec<SegmentFacts> =
            version.segments.iter().map(|segment| SegmentFacts::of(segment)).collect();
        let choose =
            |facts: &[SegmentFacts]| policy::choose(facts, self.limits, &retention, self.now_ms);
        let choice = match choose(&facts) {
            // A segment that is dropped need not be readable.
            choice @ Choice::Drop(_) => choice,
            _ if untouched.is_empty() => choose(&facts),
            _ => {
                facts.retain(|facts| !untouched.contains(&facts.uuid));
                choose(&facts)
            }
        };
        match choice {
            Choice::Nothing => self.step_ids(&retention),
            Choice::Drop(uuids) => self.drop_segments(self.live(&uuids)).map(Some),
            Choice::Merge(merge) => self.merge(&merge, &retention).map(Some),
            Choice::Seal(uuid) => self.seal(self.live(&[uuid])).map(Some),
        }
    }

    /// The live ones of the named segments, in the order of the names.
    pub fn live(&self, uuids: &[uuid::Uuid]) -> Vec<Arc<Segment>> {
        let version = self.sequencer.version();
        let find = |uuid: &uuid::Uuid| {
            version.segments.iter().find(|segment| segment.meta().uuid == *uuid).cloned()
        };
        uuids.iter().filter_map(find).collect()
    }

    fn drop_segments(&self, segments: Vec<Arc<Segment>>) -> Result<Done> {
        let rows = segments.iter().map(|segment| u64::from(segment.meta().rows)).sum();
        let edit = Edit {
            segments_out: segments.iter().map(|segment| segment.meta().uuid).collect(),
            ..Edit::default()
        };
        self.publish(edit, &segments, &[], |_| ())?;
        Ok(Done { rows_expired: rows, ..Done::default() })
    }

    fn seal(&self, segments: Vec<Arc<Segment>>) -> Result<Done> {
        let mut edit = Edit::default();
        for segment in &segments {
            edit.segments_out.push(segment.meta().uuid);
            edit.segments_in.push(Arc::new(segment.at_level(SEALED)?));
        }
        // The file stays where it is: only its record changes.
        self.sequencer.publish_edit(edit, |_| ())?;
        Ok(Done::default())
    }

    fn merge(&self, merge: &Merge, retention: &Retention) -> Result<Done> {
        let inputs = self.live(&merge.inputs);
        self.check_room(&inputs)?;
        let fate = |series: &SeriesKey, day: i64| {
            let expired = day < retention.first_day(series.namespace.0);
            if expired { Fate::Drop } else { Fate::Keep }
        };
        let merged = self.rewrite(&inputs, merge.level, merge.split, &fate)?;
        let bytes = |metas: &[SegmentMeta]| metas.iter().map(|meta| meta.len).sum();
        let done = Done {
            rows: inputs.iter().map(|segment| u64::from(segment.meta().rows)).sum(),
            bytes_read: inputs.iter().map(|segment| segment.meta().len).sum(),
            bytes_written: bytes(&merged.segments),
            rows_expired: merged.dropped.iter().flatten().map(|rows| rows.len() as u64).sum(),
        };
        let edit = Edit {
            segments_out: inputs.iter().map(|segment| segment.meta().uuid).collect(),
            segments_in: self.open(&merged.segments).inspect_err(|_| {
                merged.segments.iter().for_each(|meta| drop(self.vfs.remove_new(&meta.path())));
            })?,
            ..Edit::default()
        };
        self.publish(edit, &inputs, &[], |_| ())?;
        Ok(done)
    }

    /// Errors: `Limit` when the outputs could fill the disk.
    pub fn check_room(&self, inputs: &[Arc<Segment>]) -> Result<()> {
        // What comes out, and what is elsewhere and read from there.
        let of_input = |segment: &Arc<Segment>| 2 * segment.meta().len - segment.cached_bytes();
        let needed: u64 = inputs.iter().map(of_input).sum();
        let free = self.vfs.free_bytes().at("the data directory")?;
        if free < needed.saturating_add(SPARE_BYTES) {
            let detail = format!("merging segments needs {needed} bytes, and {free} are free");
            return Err(Error::limit(Limit::Disk, detail));
        }
        Ok(())
    }

    /// Merges segments into new files, which nothing names yet.
    pub fn rewrite(
        &self,
        inputs: &[Arc<Segment>],
        level: u8,
        split: Split,
        fate: &dyn Fn(&SeriesKey, i64) -> Fate,
    ) -> Result<Merged> {
        inputs.iter().try_for_each(|segment| segment.load_all())?;
        let context = MergeContext {
            vfs: self.vfs,
            db: self.database,
            uuid: self.uuid,
            level,
            split,
            rows_max: self.limits.segment_rows_max,
            rollup_rows_min: self.limits.rollup_rows_min,
            fate,
            breathe: self.breathe,
        };
        segment::merge(&context, inputs)
    }

    /// Makes the names of new segments durable and opens them.
    pub fn open(&self, metas: &[SegmentMeta]) -> Result<Vec<Arc<Segment>>> {
        let directories: BTreeSet<String> = metas.iter().map(SegmentMeta::directory).collect();
        for directory in &directories {
            self.vfs.sync_dir(directory).at(directory)?;
        }
        if !directories.is_empty() {
            self.vfs.sync_dir(segment::DIRECTORY).at(segment::DIRECTORY)?;
        }
        metas
            .iter()
            .map(|meta| {
                let path = meta.path();
                let view = self.vfs.map(&path).at(&path)?;
                Ok(Arc::new(Segment::open(view, meta.clone(), self.database)?))
            })
            .collect()
    }

    /// Publishes an edit, then removes the files that it made dead. When it is not published, its
    /// new files are removed instead.
    pub fn publish(
        &self,
        edit: Edit,
        segments_out: &[Arc<Segment>],
        runs_out: &[Arc<IdRun>],
        extra: impl FnOnce(&mut Txn),
    ) -> Result<()> {
        let segments_in: Vec<String> =
            edit.segments_in.iter().map(|segment| segment.meta().path()).collect();
        let runs_in: Vec<String> = edit.runs_in.iter().map(|run| run.meta().path()).collect();
        match self.sequencer.publish_edit(edit, extra) {
            Ok(()) => {
                let paths = segments_out.iter().map(|segment| segment.meta().path());
                let paths = paths.chain(runs_out.iter().map(|run| run.meta().path()));
                // What is mapped stays readable; what cannot be removed goes at the next start.
                paths.for_each(|path| drop(self.vfs.remove(&path)));
                let places = segments_out.iter().map(|segment| segment.meta().directory());
                let places: BTreeSet<String> = places.collect();
                for place in places.iter().filter(|place| **place != segment::FRESH_DIRECTORY) {
                    let _ = self.vfs.remove_dir(place);
                }
                Ok(())
            }
            Err(error) => {
                // After a fatal failure the record may be in the log all the same.
                if matches!(error, Error::Limit { .. }) {
                    let paths = segments_in.iter().chain(&runs_in);
                    paths.for_each(|path| drop(self.vfs.remove_new(path)));
                }
                Err(error)
            }
        }
    }

    fn step_ids(&self, retention: &Retention) -> Result<Option<Done>> {
        let runs = self.sequencer.id_runs();
        let facts: Vec<RunFacts> = runs
            .iter()
            .map(|run| RunFacts {
                uuid: run.meta().uuid,
                generation: run.meta().generation,
                count: run.meta().count,
            })
            .collect();
        let first = retention.first_generation();
        let chosen = |uuids: &[uuid::Uuid]| -> Vec<Arc<IdRun>> {
            runs.iter().filter(|run| uuids.contains(&run.meta().uuid)).cloned().collect()
        };
        let (gone, come) = match policy::choose_ids(&facts, self.limits, first, self.now_ms) {
            IdChoice::Nothing => return Ok(None),
            IdChoice::Drop(uuids) => (chosen(&uuids), Vec::new()),
            IdChoice::Merge(uuids) => {
                let inputs = chosen(&uuids);
                let merged = self.merge_runs(&inputs, &HashSet128::default())?;
                (inputs, vec![merged])
            }
        };
        let edit = Edit {
            runs_out: gone.iter().map(|run| run.meta().uuid).collect(),
            runs_in: come,
            ..Edit::default()
        };
        self.publish(edit, &[], &gone, |_| ())?;
        Ok(Some(Done::default()))
    }

    /// Merges runs of one generation, without some ids.
    pub fn merge_runs(&self, inputs: &[Arc<IdRun>], without: &HashSet128) -> Result<Arc<IdRun>> {
        let generation = inputs.first().map_or(0, |run| run.meta().generation);
        let new = NewRun { uuid: (self.uuid)(), db: self.database.id, generation };
        let meta = ids::merge(self.vfs, new, inputs, without, self.breathe)?;
        open_run(self.vfs, meta, self.database.id).map(Arc::new)
    }

    /// Writes id runs anew from the event ids of all segments: the last resort when a run is
    /// damaged. Ids of rows that have expired are not in them.
    pub fn rebuild_runs(&self, segments: &[Arc<Segment>]) -> Result<Vec<Arc<IdRun>>> {
        let mut runs = Vec::new();
        let mut hashes = HashSet128::default();
        // Ids must not expire before the events that they belong to.
        let latest_ms = segments.iter().map(|segment| segment.meta().ts_max).max().unwrap_or(0);
        for (at, segment) in segments.iter().enumerate() {
            (self.breathe)()?;
            let all = 0..segment.meta().rows;
            erasure::id_hashes(
                segment,
                std::slice::from_ref(&all),
                self.database.hash_seed,
                &mut hashes,
            )?;
            if hashes.len() >= REPAIR_IDS || at + 1 == segments.len() && !hashes.is_empty() {
                let mut sorted: Vec<u128> = hashes.drain().collect();
                sorted.sort_unstable();
                let generation = generation_at(latest_ms.max(self.now_ms));
                let new = NewRun { uuid: (self.uuid)(), db: self.database.id, generation };
                let meta = ids::write(self.vfs, new, source_of(&sorted))?;
                runs.push(Arc::new(open_run(self.vfs, meta, self.database.id)?));
            }
        }
        Ok(runs)
    }

    /// Replaces the id runs that do not verify. Returns how many there were.
    pub fn repair_runs(&self) -> Result<usize> {
        let runs = self.sequencer.id_runs();
        let bad: Vec<Arc<IdRun>> = runs.into_iter().filter(|run| run.verify().is_err()).collect();
        if !bad.is_empty() {
            let edit = Edit {
                runs_out: bad.iter().map(|run| run.meta().uuid).collect(),
                runs_in: self.rebuild_runs(&self.sequencer.version().segments)?,
                ..Edit::default()
            };
            self.publish(edit, &[], &bad, |_| ())?;
        }
        Ok(bad.len())
    }
}
