//! Chunks of a memtable that do not change any more, and their rows as other processes map them.
//!
//! A memtable grows chunk by chunk. As soon as enough rows stand in chunks that are complete, these become a part, and eight
//! small parts become a large one. A part's rows of a namespace are laid out as a [row image](crate::column::RowImage) when
//! a statement first asks for them, and stay so until the memtable is flushed: the next statement takes the same bytes.
//! Rows behind the last part are laid out anew once others have come.

use std::{
    collections::HashMap,
    ops::Range,
    sync::{Arc, OnceLock},
};

use parking_lot::Mutex;

use crate::{
    column::{Rows, write_image},
    event::Namespace,
    vfs::shared_memory::SharedMemory,
};

/// Rows of a part, at least: those behind the last part are laid out again whenever rows have come.
pub const PART_ROWS: usize = 4_096;
/// So many small parts become a large one, once: each part has dictionaries and series of its own, which a statement reads.
const SMALL_PARTS: usize = 8;
/// Rows of a large part, at least.
const LARGE_ROWS: usize = SMALL_PARTS * PART_ROWS;
/// Smaller images are handed over as bytes: each descriptor costs two calls of the kernel, and there are few of them.
const SHARED_BYTES_MIN: usize = 256 << 10;

/// Beyond so many descriptors, images are copied, too: connections and files need some.
const SHARED_MAX: usize = 256;

/// An image of a part's rows.
#[derive(Clone)]
pub enum PartImage {
    /// The namespace has no rows in the part.
    Empty,
    /// Bytes to be copied.
    Bytes(Arc<[u8]>),
    /// Memory to be mapped.
    Shared(Arc<SharedMemory>),
}

impl PartImage {
    /// Of chunks. Where memory cannot be shared, its bytes are copied.
    fn of(namespace: Namespace, chunks: &[Arc<Rows>], is_tail: bool) -> Self {
        let Some(bytes) = write_image(namespace, chunks) else { return Self::Empty };
        if is_tail || bytes.len() < SHARED_BYTES_MIN || SharedMemory::in_use().0 >= SHARED_MAX {
            return Self::Bytes(bytes.into());
        }
        match SharedMemory::new(&bytes) {
            Ok(memory) => Self::Shared(Arc::new(memory)),
            Err(_) => Self::Bytes(bytes.into()),
        }
    }
}

/// Made by the first who asks; others wait for it.
type Once = Arc<OnceLock<PartImage>>;

/// Complete chunks that stand side by side in a memtable.
#[derive(Default)]
pub struct MemtablePart {
    chunks: Range<usize>,
    rows: usize,
    /// Of the chunks behind all parts, until more rows come.
    is_tail: bool,
    images: Mutex<HashMap<Namespace, Once>>,
}

impl MemtablePart {
    /// Adds the next part to those of a memtable, when the chunks behind the last one have enough rows. `complete` are the
    /// chunks that do not change any more.
    pub fn extend(parts: &mut Vec<Arc<Self>>, complete: &[Arc<Rows>]) {
        let start = parts.last().map_or(0, |part| part.end());
        let rows: usize =
            complete.get(start..).unwrap_or_default().iter().map(|chunk| chunk.len()).sum();
        if rows < PART_ROWS {
            return;
        }
        let part = |chunks, rows| {
            Arc::new(Self { chunks, rows, is_tail: false, images: Mutex::default() })
        };
        parts.push(part(start..complete.len(), rows));
        let small = parts.len() - parts.iter().rev().take_while(|part| !part.is_large()).count();
        if parts.len() - small == SMALL_PARTS {
            let start = parts.get(small).map_or(0, |part| part.chunks.start);
            let rows = parts.drain(small..).map(|part| part.rows).sum();
            parts.push(part(start..complete.len(), rows));
        }
    }

    /// The chunks behind the last part, until more rows come: statements in between take the same bytes, which are copied.
    pub fn behind(parts: &[Arc<Self>], chunks: usize) -> Self {
        let start = parts.last().map_or(0, |part| part.end());
        Self { chunks: start..chunks, is_tail: true, ..Self::default() }
    }

    fn is_large(&self) -> bool {
        self.rows >= LARGE_ROWS
    }

    /// Where its chunks end in the memtable.
    pub fn end(&self) -> usize {
        self.chunks.end
    }

    /// The rows of a namespace; `chunks` are all of the memtable.
    pub fn image(&self, namespace: Namespace, chunks: &[Arc<Rows>]) -> PartImage {
        let image = Arc::clone(self.images.lock().entry(namespace).or_default());
        let of_part = || chunks.get(self.chunks.clone()).unwrap_or_default();
        image.get_or_init(|| PartImage::of(namespace, of_part(), self.is_tail)).clone()
    }
}
