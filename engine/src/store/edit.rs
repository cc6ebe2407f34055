//! A change of what is live: segments and id runs that come and go in one instant.
//!
//! One log record carries it, so no reader and no restart sees half of it.

use std::{collections::BTreeSet, sync::Arc};

use super::{
    dedup::Dedup,
    names::{FLUSHED_KEY, ID_RUN_PREFIX, SEGMENT_PREFIX, uuid_key},
    version::{Segments, Version},
};
use crate::{ids::IdRun, keyspace::Txn, segment::Segment};

/// What comes and what goes.
#[derive(Default)]
pub struct Edit {
    /// Segments that go.
    pub segments_out: Vec<uuid::Uuid>,
    /// Segments that come; one that also goes changes its level.
    pub segments_in: Vec<Arc<Segment>>,
    /// Id runs that go.
    pub runs_out: Vec<uuid::Uuid>,
    /// Id runs that come.
    pub runs_in: Vec<Arc<IdRun>>,
    /// When the segments hold the frozen memtable: the LSN of its last row.
    pub flushed: Option<u64>,
}

impl Edit {
    /// Writes the keys that say the same.
    pub fn write(&self, txn: &mut Txn) {
        for &uuid in &self.segments_out {
            txn.write_system(&uuid_key(SEGMENT_PREFIX, uuid), None);
        }
        for segment in &self.segments_in {
            let mut record = Vec::new();
            segment.meta().write(&mut record);
            txn.write_system(&uuid_key(SEGMENT_PREFIX, segment.meta().uuid), Some(record));
        }
        for &uuid in &self.runs_out {
            txn.write_system(&uuid_key(ID_RUN_PREFIX, uuid), None);
        }
        for run in &self.runs_in {
            let mut record = Vec::new();
            run.meta().write(&mut record);
            txn.write_system(&uuid_key(ID_RUN_PREFIX, run.meta().uuid), Some(record));
        }
        if let Some(lsn) = self.flushed {
            txn.write_system(FLUSHED_KEY, Some(lsn.to_le_bytes().to_vec()));
        }
    }

    /// Changes what readers and the dedup index see.
    pub fn apply(self, version: &mut Version, dedup: &mut Dedup) {
        let gone: BTreeSet<uuid::Uuid> = self.segments_out.into_iter().collect();
        if !gone.is_empty() || !self.segments_in.is_empty() {
            let stays = |segment: &&Arc<Segment>| !gone.contains(&segment.meta().uuid);
            let mut segments: Vec<Arc<Segment>> =
                version.segments.iter().filter(stays).cloned().collect();
            segments.extend(self.segments_in);
            version.segments = Segments::new(segments);
        }
        dedup.replace(&self.runs_out, self.runs_in);
        if self.flushed.is_some() {
            version.frozen = None;
            dedup.forget_frozen();
        }
    }
}
