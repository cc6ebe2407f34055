//! Carrying out an erasure, a batch of segments at a time.

use std::sync::Arc;

use super::{
    compaction::Worker,
    edit::Edit,
    erasure::{Erasure, id_hashes},
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
        let mut pending = erasure.pending.clone().unwrap_or_default();
        let fate = |series: &SeriesKey, _: i64| erasure.fate(series);
        let mut metas: Vec<SegmentMeta> = Vec::new();
        let mut gone: Vec<Arc<Segment>> = Vec::new();
        let mut hashes = HashSet128::default();
        let mut rows_removed = 0;
        let (mut failed, mut first_error) = (Vec::new(), None);
        let result = (|| {
            while rows_removed < BATCH_ROWS && gone.len() < BATCH_SEGMENTS {
                let Some(uuid) = pending.pop() else { break };
                let version = self.sequencer.version();
                let find = |segment: &&Arc<Segment>| segment.meta().uuid == uuid;
                let Some(segment) = version.segments.iter().find(find) else { continue };
                let input = [Arc::clone(segment)];
                self.check_room(&input)?;
                let merged = self.rewrite(&input, segment.meta().level, Split::Nothing, &fate);
                let merged = match merged {
                    Ok(merged) => merged,
                    // What cannot be read does not take the others with it.
                    Err(error) => {
                        failed.push(uuid);
                        first_error.get_or_insert(error);
                        continue;
                    }
                };
                metas.extend(merged.segments);
                let dropped = merged.dropped.into_iter().next().unwrap_or_default();
                rows_removed += dropped.iter().map(ExactSizeIterator::len).sum::<usize>();
                id_hashes(segment, &dropped, self.hash_seed, &mut hashes)?;
                gone.push(Arc::clone(segment));
            }
            if let Some(error) = first_error.filter(|_| gone.is_empty()) {
                return Err(error);
            }
            // It comes last from now on.
            failed.append(&mut pending);
            self.publish_erased(erasure, failed, &metas, &gone, &hashes, rows_removed as u64)
        })();
        if result.is_err() && self.sequencer.closed().is_none() {
            metas.iter().for_each(|meta| drop(self.vfs.remove(&meta.path())));
        }
        result
    }

    fn publish_erased(
        &self,
        erasure: &Erasure,
        pending: Vec<uuid::Uuid>,
        metas: &[SegmentMeta],
        gone: &[Arc<Segment>],
        hashes: &HashSet128,
        rows_removed: u64,
    ) -> Result<()> {
        let mut edit = Edit {
            segments_out: gone.iter().map(|segment| segment.meta().uuid).collect(),
            segments_in: self.open(metas)?,
            ..Edit::default()
        };
        let runs_gone = self.take_ids(hashes, &mut edit)?;
        let next = Erasure {
            pending: Some(pending),
            rows_removed: erasure.rows_removed + rows_removed,
            ids_removed: erasure.ids_removed + hashes.len() as u64,
            segments_changed: erasure.segments_changed + gone.len() as u64,
            ..erasure.clone()
        };
        self.publish(edit, gone, &runs_gone, |txn| next.put(txn))
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
                    written.for_each(|path| drop(self.vfs.remove(&path)));
                })?;
                edit.runs_in.push(merged);
                edit.runs_out.push(run.meta().uuid);
                gone.push(run);
            }
        }
        Ok(gone)
    }
}
