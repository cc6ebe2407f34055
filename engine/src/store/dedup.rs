//! The set of known event ids: ids of recent rows in memory, older ids in id runs.
//!
//! The index is asked in log order, under the sequencer's lock, so that a decision is made once.

use std::sync::Arc;

use crate::{base::hash::HashSet128, error::Result, ids::IdRun};

/// All known ids.
#[derive(Default)]
pub struct Dedup {
    active: HashSet128,
    frozen: Option<Arc<HashSet128>>,
    runs: Vec<Arc<IdRun>>,
}

impl Dedup {
    /// An index over existing runs.
    pub fn new(runs: Vec<Arc<IdRun>>) -> Self {
        Self { runs, ..Self::default() }
    }

    /// Whether `hash` is known. Errors: `Corrupt` when a run that must answer is damaged.
    pub fn contains(&self, hash: u128) -> Result<bool> {
        if self.active.contains(&hash)
            || self.frozen.as_ref().is_some_and(|ids| ids.contains(&hash))
        {
            return Ok(true);
        }
        // Retries are recent, so the newest run is asked first.
        for run in self.runs.iter().rev() {
            if run.contains(hash)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Remembers `hash`.
    pub fn insert(&mut self, hash: u128) {
        self.active.insert(hash);
    }

    /// Forgets ids whose rows were not written after all.
    pub fn forget(&mut self, hashes: &[u128]) {
        for hash in hashes {
            self.active.remove(hash);
        }
    }

    /// Sets the recent ids aside for a flush. There is one flush at a time.
    pub fn freeze(&mut self) -> Arc<HashSet128> {
        assert!(self.frozen.is_none(), "one flush at a time");
        let frozen = Arc::new(std::mem::take(&mut self.active));
        self.frozen = Some(Arc::clone(&frozen));
        frozen
    }

    /// Ends the flush: the ids that were set aside are in a run now.
    pub fn forget_frozen(&mut self) {
        self.frozen = None;
    }

    /// Removes the runs named in `gone` and adds `come`.
    pub fn replace(&mut self, gone: &[uuid::Uuid], come: Vec<Arc<IdRun>>) {
        if !gone.is_empty() {
            self.runs.retain(|run| !gone.contains(&run.meta().uuid));
        }
        self.runs.extend(come);
    }

    /// The live id runs: those that the start found, by name, then others as they were published.
    pub fn runs(&self) -> &[Arc<IdRun>] {
        &self.runs
    }

    /// Ids in memory.
    pub fn recent(&self) -> usize {
        self.active.len() + self.frozen.as_ref().map_or(0, |ids| ids.len())
    }
}
