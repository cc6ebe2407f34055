//! Chunks of a memtable that do not change any more, and their rows as other processes map them.
//!
//! A memtable grows chunk by chunk. As soon as enough rows stand in chunks that are complete, these become a part. A part's
//! rows of a namespace are laid out as a [row image](crate::column::RowImage) when a statement first asks for them, and stay so
//! until the memtable is flushed: the next statement, and the one after it, take the same bytes.

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

/// Rows of a part, at least. Fewer would make many parts, each with dictionaries of its own; more would leave more rows
/// behind the last part, which are laid out for each statement.
pub const PART_ROWS: usize = 16_384;
/// Smaller images are handed over as bytes: each descriptor costs two calls of the kernel, and there are few of them.
const SHARED_BYTES_MIN: usize = 256 << 10;

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
    fn of(namespace: Namespace, chunks: &[Arc<Rows>]) -> Self {
        let Some(bytes) = write_image(namespace, chunks) else { return Self::Empty };
        if bytes.len() < SHARED_BYTES_MIN {
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
    images: Mutex<HashMap<Namespace, Once>>,
}

impl MemtablePart {
    /// The part that begins with chunk `start`, when the chunks from there on have enough rows. `complete` are those of
    /// the memtable that do not change any more.
    pub fn next(complete: &[Arc<Rows>], start: usize) -> Option<Self> {
        let rows: usize = complete.get(start..)?.iter().map(|chunk| chunk.len()).sum();
        let chunks = start..complete.len();
        (rows >= PART_ROWS).then(|| Self { chunks, images: Mutex::default() })
    }

    /// Where its chunks end in the memtable.
    pub fn end(&self) -> usize {
        self.chunks.end
    }

    /// The rows of a namespace; `chunks` are all of the memtable.
    pub fn image(&self, namespace: Namespace, chunks: &[Arc<Rows>]) -> PartImage {
        let image = Arc::clone(self.images.lock().entry(namespace).or_default());
        let of_part = || chunks.get(self.chunks.clone()).unwrap_or_default();
        image.get_or_init(|| PartImage::of(namespace, of_part())).clone()
    }
}
