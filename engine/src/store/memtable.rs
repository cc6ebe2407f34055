//! Recent rows that no segment holds yet.
//!
//! A memtable is a list of immutable chunks, so that a reader takes the list and needs no lock. A
//! large batch becomes a chunk as it is; small ones are copied together until a chunk is worth it.

use std::{collections::BTreeSet, sync::Arc};

use crate::column::{Rows, RowsBuilder};

/// A chunk below this is copied together with the rows that follow it. The copy costs at most this
/// many rows a group of commits, and the list stays short.
const CHUNK_ROWS: usize = 1_024;
/// A batch from here on is a chunk of its own: copying it would cost more than a short list saves.
const OWN_CHUNK_ROWS: usize = 256;

/// A list of chunks. Cloning it copies pointers.
#[derive(Clone, Default)]
pub struct Memtable {
    chunks: Vec<Arc<Rows>>,
    rows: usize,
    bytes: usize,
    /// Names of all properties, numbers marked. Shared between versions until a new one appears.
    names: Arc<BTreeSet<(bool, Arc<str>)>>,
}

impl Memtable {
    /// Appends rows. `seed` is the database's hash seed.
    pub fn append(&mut self, rows: Arc<Rows>, seed: u64) {
        self.rows += rows.len();
        self.remember_names(&rows);
        let tail = self.chunks.last().map_or(0, |tail| tail.len());
        let joins = rows.len() < OWN_CHUNK_ROWS && tail > 0 && tail + rows.len() <= CHUNK_ROWS;
        let tail = if joins { self.chunks.pop() } else { None };
        let Some(tail) = tail else {
            self.bytes += rows.bytes_used();
            self.chunks.push(rows);
            return;
        };
        self.bytes -= tail.bytes_used();
        let mut builder = RowsBuilder::resume(Arc::unwrap_or_clone(tail), seed);
        builder.append(&rows, &(0..rows.len() as u32).collect::<Vec<_>>());
        let joined = builder.finish();
        self.bytes += joined.bytes_used();
        self.chunks.push(Arc::new(joined));
    }

    /// The chunks, oldest first.
    pub fn chunks(&self) -> &[Arc<Rows>] {
        &self.chunks
    }

    /// Number of rows.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Bytes in memory, roughly.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Number of different properties: a segment of these rows has a column for each.
    pub fn columns(&self) -> usize {
        self.names.len()
    }

    fn remember_names(&mut self, rows: &Rows) {
        let strings = rows.strings.keys().map(|name| (false, Arc::clone(name)));
        let numbers = rows.numbers.keys().map(|name| (true, Arc::clone(name)));
        for name in strings.chain(numbers) {
            if !self.names.contains(&name) {
                Arc::make_mut(&mut self.names).insert(name);
            }
        }
    }
}
