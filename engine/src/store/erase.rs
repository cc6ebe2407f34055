//! Carrying out an erasure, a batch of segments at a time.

use std::sync::Arc;

use super::{
    compaction::Worker,
    edit::Edit,
    erasure::{Erasure, Renamed, id_hashes, unfinished},
};
use crate::{
    base::hash::HashSet128,
    column::SeriesKey,
    error::Result,
    ids::IdRun,
    segment::{Segment, SegmentMeta, Split},
};

/// Rows that are removed before the change is published: their ids are in memory until then.
const BATCH_ROWS: usize = 1_000_000;
/// Segments that are rewritten before the change is published: old and new lie on the disk.
const BATCH_SEGMENTS: usize = 32;

/// What was taken out and waits to be published.
#[derive(Default)]
struct Batch {
    metas: Vec<SegmentMeta>,
    gone: Vec<Arc<Segment>>,
    renamed: Vec<Renamed>,
    hashes: HashSet128,
    rows_removed: usize,
}

impl Worker<'_> {
    /// Lists the segments that an erasure has to look at. All rows that it is about are in segments.
    pub fn list_erasure(&self, erasure: &Erasure) -> Result<()> {
        let mut pending = Vec::new();
        for segment in &self.sequencer.version().segments {
            if erasure.concerns(segment)? {
                pending.push(segment.meta().uuid);
            }
        }
        let next = Erasure { pending: Some(pending), ..erasure.clone() };
        self.sequencer.publish_edit(Edit::default(), |txn| next.put(txn))
    }

    /// Rewrites the next of the listed segments, takes their ids out of the id runs, and publishes
    /// all of it with the receipt's numbers in one record.
    pub fn continue_erasure(&self, erasure: &Erasure) -> Result<()> {
        let mut batch = Batch::default();
        let mut pending = erasure.pending.clone().unwrap_or_default();
        let (mut failed, mut first_error) = (Vec::new(), None);
        while batch.rows_removed < BATCH_ROWS && batch.gone.len() < BATCH_SEGMENTS {
            let Some(uuid) = pending.pop() else { break };
            // What has expired meanwhile is not there any more.
            let Some(segment) = self.live(&[uuid]).pop() else { continue };
            if let Err(error) = self.take_rows(erasure, &segment, &mut batch) {
                // What cannot be rewritten comes last from now on, and does not take the others with it.
                failed.push(uuid);
                first_error.get_or_insert(error);
            }
        }
        if let Some(error) = first_error.filter(|_| batch.gone.is_empty()) {
            return Err(error);
        }
        failed.append(&mut pending);
        let published = self.publish_erased(erasure, failed, &batch);
        if published.is_err() && self.sequencer.closed().is_none() {
            batch.metas.iter().for_each(|meta| drop(self.vfs.remove_new(&meta.path())));
        }
        published
    }

    /// Rewrites a segment without the rows that go.
    fn take_rows(
        &self,
        erasure: &Erasure,
        segment: &Arc<Segment>,
        batch: &mut Batch,
    ) -> Result<()> {
        let fate = |series: &SeriesKey, _: i64| erasure.fate(series);
        let input = [Arc::clone(segment)];
        self.check_room(&input)?;
        let merged = self.rewrite(&input, segment.meta().level, Split::Nothing, &fate)?;
        let dropped = merged.dropped.into_iter().next().unwrap_or_default();
        let seed = self.database.hash_seed;
        id_hashes(segment, &dropped, seed, &mut batch.hashes).inspect_err(|_| {
            merged.segments.iter().for_each(|meta| drop(self.vfs.remove_new(&meta.path())));
        })?;
        batch.rows_removed += dropped.iter().map(ExactSizeIterator::len).sum::<usize>();
        let names = merged.segments.iter().map(|meta| meta.uuid).collect();
        batch.renamed.push((segment.meta().uuid, names));
        batch.metas.extend(merged.segments);
        batch.gone.push(Arc::clone(segment));
        Ok(())
    }

    fn publish_erased(
        &self,
        erasure: &Erasure,
        pending: Vec<uuid::Uuid>,
        batch: &Batch,
    ) -> Result<()> {
        let mut edit = Edit {
            segments_out: batch.gone.iter().map(|segment| segment.meta().uuid).collect(),
            segments_in: self.open(&batch.metas)?,
            ..Edit::default()
        };
        let runs_gone = self.take_ids(&batch.hashes, &mut edit)?;
        let next = Erasure {
            pending: Some(pending),
            rows_removed: erasure.rows_removed + batch.rows_removed as u64,
            ids_removed: erasure.ids_removed + batch.hashes.len() as u64,
            segments_changed: erasure.segments_changed + batch.gone.len() as u64,
            ..erasure.clone()
        };
        // Others may have listed the same segments.
        let mut others = unfinished(&self.sequencer.version().tree)?;
        others.retain_mut(|other| other.id != erasure.id && other.follow(&batch.renamed));
        self.publish(edit, &batch.gone, &runs_gone, |txn| {
            next.put(txn);
            others.iter().for_each(|other| other.put(txn));
        })
    }

    /// Rewrites the id runs that hold any of `hashes`.
    fn take_ids(&self, hashes: &HashSet128, edit: &mut Edit) -> Result<Vec<Arc<IdRun>>> {
        let mut gone = Vec::new();
        for run in self.sequencer.id_runs() {
            let mut holds_any = false;
            for &hash in hashes {
                if run.contains(hash)? {
                    holds_any = true;
                    break;
                }
            }
            if holds_any {
                let merged = self.merge_runs(std::slice::from_ref(&run), hashes);
                let merged = merged.inspect_err(|_| {
                    let written = edit.runs_in.iter().map(|run| run.meta().path());
                    written.for_each(|path| drop(self.vfs.remove_new(&path)));
                })?;
                edit.runs_in.push(merged);
                edit.runs_out.push(run.meta().uuid);
                gone.push(run);
            }
        }
        Ok(gone)
    }
}
