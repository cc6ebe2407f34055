//! The view of one query: segments, recent rows, and the keyspace, all of one instant.

use std::{
    ops::Deref,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

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
    /// Live segments, which hold the rows that were flushed.
    pub segments: Segments,
    /// Rows that a flush is writing; `None` without a flush.
    pub frozen: Option<Arc<Memtable>>,
    /// Rows that arrived since the last flush began.
    pub active: Memtable,
    /// The keyspace: keys of the engine and of its user.
    pub tree: Tree,
}

/// A list of segments, which many versions share.
#[derive(Clone, Default)]
pub struct Segments {
    id: u64,
    list: Arc<[Arc<Segment>]>,
}

impl Segments {
    /// A list with a new id.
    pub fn new(list: Vec<Arc<Segment>>) -> Self {
        static LAST: AtomicU64 = AtomicU64::new(1);
        Self { id: LAST.fetch_add(1, Ordering::Relaxed), list: list.into() }
    }

    /// The same segments in the same order, some of them over other copies of their files: what is known of the list holds on.
    pub fn over(&self, list: Vec<Arc<Segment>>) -> Self {
        Self { id: self.id, list: list.into() }
    }

    /// Unique id of the list; 0 for the empty default.
    pub fn id(&self) -> u64 {
        self.id
    }
}

impl Deref for Segments {
    type Target = [Arc<Segment>];

    fn deref(&self) -> &Self::Target {
        &self.list
    }
}

impl<'a> IntoIterator for &'a Segments {
    type Item = &'a Arc<Segment>;
    type IntoIter = std::slice::Iter<'a, Arc<Segment>>;

    fn into_iter(self) -> Self::IntoIter {
        self.list.iter()
    }
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
