//! What one query sees: segments, recent rows, and the keyspace, all of one instant.

use std::sync::Arc;

use super::memtable::Memtable;
use crate::{
    keyspace::Tree,
    segment::{FRESH, Segment},
};

/// A consistent view of everything. Holding it keeps its segments readable.
#[derive(Clone, Default)]
pub struct Version {
    /// LSN of the last record that it shows.
    pub lsn: u64,
    /// Live segments.
    pub segments: Vec<Arc<Segment>>,
    /// Rows that a flush is writing.
    pub frozen: Option<Arc<Memtable>>,
    /// Rows that arrived since.
    pub active: Memtable,
    /// Keys.
    pub tree: Tree,
}

impl Version {
    /// The memtables, older first.
    pub fn memtables(&self) -> impl Iterator<Item = &Memtable> {
        self.frozen.as_deref().into_iter().chain(std::iter::once(&self.active))
    }

    /// Segments that wait for their first merge.
    pub fn fresh_segments(&self) -> usize {
        self.segments.iter().filter(|segment| segment.meta().level == FRESH).count()
    }

    /// Bytes of rows in memory.
    pub fn memtable_bytes(&self) -> usize {
        self.memtables().map(Memtable::bytes).sum()
    }
}
