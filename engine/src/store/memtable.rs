//! Recent rows that no segment holds yet.
//!
//! A memtable is a list of immutable chunks, so that a reader takes the list and needs no lock. A
//! large batch becomes a chunk as it is; small ones are copied together until a chunk is worth it.

use std::{
    collections::BTreeSet,
    sync::{Arc, OnceLock},
};

use super::memtable_part::{MemtablePart, PartImage};
use crate::{
    column::{BySeries, Rows, RowsBuilder},
    error::{Error, Result},
    event::Namespace,
};

/// A chunk below this is copied together with the rows that follow it. The copy costs at most this
/// many rows a group of commits, and the list stays short.
const CHUNK_ROWS: usize = 1_024;
/// A batch from here on is a chunk of its own: copying it would cost more than a short list saves.
const OWN_CHUNK_ROWS: usize = 256;

/// A list of chunks. Cloning it copies pointers.
#[derive(Clone, Default)]
pub struct Memtable {
    chunks: Vec<Arc<Rows>>,
    /// Of each chunk, once somebody has asked.
    by_series: Vec<Arc<OnceLock<BySeries>>>,
    /// Of each chunk, as it came.
    checksums: Vec<u64>,
    /// Of the chunks from the first on; those behind the last part are not in one yet.
    parts: Vec<Arc<MemtablePart>>,
    /// Of the chunks behind them.
    tail: Arc<MemtablePart>,
    rows: usize,
    bytes: usize,
    /// Names of all properties, numbers marked. Shared between versions until a new one appears.
    names: Arc<BTreeSet<(bool, Arc<str>)>>,
    /// Whose rows there are. Shared alike.
    namespaces: Arc<BTreeSet<Namespace>>,
}

impl Memtable {
    /// Appends rows. `seed` is the database's hash seed.
    pub fn append(&mut self, rows: Arc<Rows>, seed: u64) {
        self.rows += rows.len();
        self.remember_names(&rows);
        self.remember_namespaces(&rows);
        let tail = self.chunks.last().map_or(0, |tail| tail.len());
        let joins = rows.len() < OWN_CHUNK_ROWS && tail > 0 && tail + rows.len() <= CHUNK_ROWS;
        let tail = if joins { self.chunks.pop() } else { None };
        let Some(tail) = tail else {
            self.push(rows);
            return;
        };
        self.checksums.pop();
        self.by_series.pop();
        self.bytes -= tail.bytes_used();
        let mut builder = RowsBuilder::resume(Arc::unwrap_or_clone(tail), seed);
        builder.append(&rows, &(0..rows.len() as u32).collect::<Vec<_>>());
        let joined = builder.finish();
        self.push(Arc::new(joined));
    }

    fn push(&mut self, chunk: Arc<Rows>) {
        self.bytes += chunk.bytes_used();
        self.checksums.push(chunk.checksum());
        self.by_series.push(Arc::default());
        self.chunks.push(chunk);
        let grows = self.chunks.last().is_some_and(|last| last.len() < CHUNK_ROWS);
        let complete = &self.chunks[..self.chunks.len() - usize::from(grows)];
        MemtablePart::extend(&mut self.parts, complete);
        self.tail = Arc::new(MemtablePart::behind(&self.parts, self.chunks.len()));
    }

    /// The rows of a namespace in each part. What is missing is laid out first.
    pub fn part_images(&self, namespace: Namespace) -> impl Iterator<Item = PartImage> {
        self.parts.iter().map(move |part| part.image(namespace, &self.chunks))
    }

    /// The rows of a namespace that are in no part yet.
    pub fn tail_image(&self, namespace: Namespace) -> PartImage {
        self.tail.image(namespace, &self.chunks)
    }

    /// Whether the rows are still those that came. Errors: `Corrupt` when memory changed under them.
    pub fn check(&self) -> Result<()> {
        for (chunk, checksum) in self.chunks.iter().zip(&self.checksums) {
            if chunk.checksum() != *checksum {
                return Err(Error::corrupt(
                    "memory",
                    "rows that wait for a flush have changed; the log has them as they were, restart",
                ));
            }
        }
        Ok(())
    }

    /// The chunks, oldest first.
    pub fn chunks(&self) -> &[Arc<Rows>] {
        &self.chunks
    }

    /// The chunks, oldest first, each with the places of its series.
    pub fn chunks_by_series(&self) -> impl Iterator<Item = (&Rows, &BySeries)> {
        let both = self.chunks.iter().zip(&self.by_series);
        both.map(|(chunk, places)| (&**chunk, places.get_or_init(|| BySeries::of(chunk))))
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

    /// Whether some of the rows are or were of a namespace.
    pub fn has_rows_of(&self, namespace: Namespace) -> bool {
        self.namespaces.contains(&namespace)
    }

    fn remember_namespaces(&mut self, rows: &Rows) {
        // Series of a namespace stand beside each other mostly.
        let mut last = None;
        for namespace in rows.series.iter().map(|key| key.namespace) {
            if last != Some(namespace) && !self.namespaces.contains(&namespace) {
                Arc::make_mut(&mut self.namespaces).insert(namespace);
            }
            last = Some(namespace);
        }
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

#[cfg(test)]
mod tests {
    use super::{super::memtable_part::PART_ROWS, *};
    use crate::{column::RowImage, event::Event, vfs::View};

    fn rows(count: i64) -> Arc<Rows> {
        let mut builder = RowsBuilder::new(1);
        for n in 0..count {
            let event = Event {
                tenant: "t",
                name: "e",
                timestamp_ms: n,
                event_id: Some("id"),
                user_id: Some("u"),
            };
            builder.push(Namespace(1), &event, &[("model", "m")], &[("ms", 0.5)]);
        }
        Arc::new(builder.finish())
    }

    /// Rows of a namespace in the parts, and behind them.
    fn shown(memtable: &Memtable) -> (Vec<usize>, usize) {
        let len = |bytes: View| {
            let image = RowImage::open(bytes).unwrap();
            image.series.iter().map(|series| series.rows.len()).sum::<usize>()
        };
        let rows_of = |image: PartImage| match image {
            PartImage::Empty => 0,
            PartImage::Bytes(bytes) => len(View::new(bytes)),
            PartImage::Shared(memory) => len(memory.map().unwrap()),
        };
        let parts = memtable.part_images(Namespace(1)).map(rows_of).collect();
        (parts, rows_of(memtable.tail_image(Namespace(1))))
    }

    #[test]
    fn complete_chunks_become_parts_and_no_row_is_lost_or_shown_twice() {
        let mut memtable = Memtable::default();
        let mut added = 0;
        // Small batches that join, large ones that do not, and one that is a part of its own.
        for count in [1, 100, 300, 5_000, 900, 200, 12_000, 7, 20_000, 3].repeat(3) {
            memtable.append(rows(count), 1);
            added += count as usize;
            let (parts, rest) = shown(&memtable);
            assert_eq!(parts.iter().sum::<usize>() + rest, added);
            assert!(parts.iter().all(|rows| *rows >= PART_ROWS), "{parts:?}");
            assert!(rest < PART_ROWS + CHUNK_ROWS, "{rest}");
            // A clone, as each version holds one, has the same parts.
            assert_eq!(shown(&memtable.clone()), (parts, rest));
        }
        // Of eleven small parts, eight became a large one.
        assert!((2..=8).contains(&memtable.parts.len()), "{}", memtable.parts.len());
        assert!(memtable.part_images(Namespace(2)).all(|image| matches!(image, PartImage::Empty)));
    }

    /// What was laid out for one statement is what the next one takes.
    #[test]
    fn an_image_is_laid_out_once() {
        let mut memtable = Memtable::default();
        memtable.append(rows(20_000), 1);
        let shared = |memtable: &Memtable| match memtable.part_images(Namespace(1)).next() {
            Some(PartImage::Shared(memory)) => memory,
            _ => panic!("one large part"),
        };
        let first = shared(&memtable);
        memtable.append(rows(500), 1);
        assert!(Arc::ptr_eq(&first, &shared(&memtable.clone())));
        let tail = |memtable: &Memtable| match memtable.tail_image(Namespace(1)) {
            PartImage::Bytes(bytes) => bytes,
            _ => panic!("rows behind the part"),
        };
        let behind = tail(&memtable);
        assert!(Arc::ptr_eq(&behind, &tail(&memtable.clone())));
        // Rows that come are shown.
        memtable.append(rows(5), 1);
        assert!(tail(&memtable).len() > behind.len());
    }

    /// A bit that flips in memory would be written to a segment with a good checksum.
    #[test]
    fn a_bit_that_flips_in_memory_is_noticed() {
        let mut memtable = Memtable::default();
        memtable.append(rows(10), 1);
        memtable.append(rows(20), 1);
        memtable.append(rows(700), 1);
        memtable.check().unwrap();
        let flips: [fn(&mut Rows); 6] = [
            |rows| rows.timestamps[3] ^= 1 << 40,
            |rows| rows.series_codes[0] ^= 1,
            |rows| rows.user_hashes[9] ^= 1 << 99,
            |rows| rows.numbers.get_mut("ms").unwrap().values_mut()[5] = 0.25,
            |rows| rows.strings.get_mut("model").unwrap().codes.values_mut()[2] ^= 2,
            |rows| rows.strings.get_mut("model").unwrap().values[0] = "n".into(),
        ];
        for flip in flips {
            let mut damaged = memtable.clone();
            let mut chunk = Rows::clone(&damaged.chunks[0]);
            flip(&mut chunk);
            damaged.chunks[0] = Arc::new(chunk);
            assert!(matches!(damaged.check(), Err(Error::Corrupt { .. })));
        }
    }
}
