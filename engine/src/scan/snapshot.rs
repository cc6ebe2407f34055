//! A snapshot of one namespace, for this process or another one.

use std::{collections::BTreeSet, io, ops::Range, path::Path, sync::Arc};

use parking_lot::Mutex;

use uuid::Uuid;

use super::{recent::Recent, sealed::Sealed, sizes::Sizes, source::Source};
use crate::{
    base::coding::{Cursor, Put},
    column::{RowImage, Rows, RowsBuilder},
    error::{Error, IoContext, Result},
    event::Namespace,
    segment::{Database, Segment, SegmentFile, SegmentMeta},
    store::{PartImage, Version},
    vfs::{
        MissingParts, Vfs, View, os::OsVfs, partial_copy::CHUNK_BYTES, shared_memory::SharedMemory,
    },
};

/// The rows of a namespace at one instant. Holding it keeps its segments readable here.
pub struct Snapshot {
    version: Arc<Version>,
    namespace: Namespace,
    horizon_ms: i64,
    database: Database,
}

impl Snapshot {
    /// The rows of a namespace in a version, from `horizon_ms` on.
    pub fn new(
        version: Arc<Version>,
        namespace: Namespace,
        horizon_ms: i64,
        database: Database,
    ) -> Self {
        Self { version, namespace, horizon_ms, database }
    }

    /// Segments with rows of the namespace that have not expired.
    fn segments(&self) -> impl Iterator<Item = &Arc<Segment>> {
        self.version.segments.iter().filter(|segment| {
            segment.meta().ts_max >= self.horizon_ms
                && segment.namespaces().binary_search(&self.namespace.0).is_ok()
        })
    }

    /// The rows of the namespace that no segment holds yet.
    fn recent(&self) -> Rows {
        let mut builder = RowsBuilder::new(self.database.hash_seed);
        for chunk in self.version.memtables().flat_map(|memtable| memtable.chunks()) {
            let is_ours: Vec<bool> =
                chunk.series.iter().map(|key| key.namespace == self.namespace).collect();
            if !is_ours.contains(&true) {
                continue;
            }
            let rows = (0..).zip(chunk.series_codes.iter().zip(&chunk.timestamps));
            let is_shown = |code: u32, ms: i64| is_ours[code as usize] && ms >= self.horizon_ms;
            let ours = rows.filter(|(_, (code, ms))| is_shown(**code, **ms)).map(|(row, _)| row);
            builder.append(chunk, &ours.collect::<Vec<u32>>());
        }
        builder.finish()
    }

    /// Whether there are rows of the namespace that no segment holds yet. They may have expired.
    pub fn has_recent(&self) -> bool {
        self.version.memtables().any(|memtable| memtable.has_rows_of(self.namespace))
    }

    /// Serializes the snapshot for another process of this machine.
    pub fn hand_over(&self) -> SerializedSnapshot {
        SerializedSnapshot {
            segments: self.list(),
            missing: self.missing(),
            shared: self.shared_images(),
            copied: self.copied_images(),
        }
    }

    /// Rows that no segment holds, in memory that another process maps. A row is laid out for the
    /// first statement after its arrival, and once more when its part becomes a large one.
    pub fn shared_images(&self) -> Vec<Arc<SharedMemory>> {
        let shared = self.part_images().filter_map(|image| match image {
            PartImage::Shared(memory) => Some(memory),
            PartImage::Empty | PartImage::Bytes(_) => None,
        });
        shared.collect()
    }

    /// The other rows that no segment holds, as bytes: parts with few rows and rows in no part yet.
    pub fn copied_images(&self) -> Vec<u8> {
        let mut out = Vec::new();
        let tails = self.version.memtables().map(|memtable| memtable.tail_image(self.namespace));
        for image in self.part_images().chain(tails) {
            if let PartImage::Bytes(bytes) = image {
                out.put_bytes(&bytes);
            }
        }
        out
    }

    fn part_images(&self) -> impl Iterator<Item = PartImage> {
        self.version.memtables().flat_map(|memtable| memtable.part_images(self.namespace))
    }

    /// The list of segments as bytes, without rows in memory.
    pub fn list(&self) -> Vec<u8> {
        let mut out = Vec::new();
        out.put_u32(self.namespace.0);
        out.put_i64(self.horizon_ms);
        out.extend_from_slice(&self.database.id);
        out.put_u64(self.database.hash_seed);
        let segments: Vec<_> = self.segments().collect();
        out.put_varint(segments.len() as u64);
        for segment in segments {
            let mut record = Vec::new();
            segment.meta().write(&mut record);
            out.put_bytes(&record);
            out.put_bytes(segment.view().copy_path().unwrap_or_default().as_bytes());
        }
        out
    }

    /// Its segments of which this disk has parts alone: whoever opens the list elsewhere has to ask for others here. All of its segments are taken as read.
    pub fn missing(&self) -> MissingSegments {
        self.segments().for_each(|segment| segment.note_use());
        let of_parts = self.segments().filter(|segment| segment.view().copy_path().is_some());
        MissingSegments(of_parts.map(|segment| Arc::clone(segment.file())).collect())
    }

    /// Number of runs in the segments, over all namespaces: it decides the cost of opening them.
    pub fn runs(&self) -> usize {
        self.segments().map(|segment| segment.runs().runs().len()).sum()
    }

    /// The size of the namespace.
    pub fn sizes(&self) -> Sizes {
        let segments: Vec<_> = self.segments().map(|segment| &**segment).collect();
        Sizes::of(&segments, &self.recent(), self.namespace, self.horizon_ms)
    }

    /// Opens it in this process.
    ///
    /// Errors: `Corrupt`.
    pub fn open(&self) -> Result<Scan> {
        let (namespace, horizon_ms) = (self.namespace, self.horizon_ms);
        let sealed = |segment: &Arc<Segment>| {
            let file = Arc::clone(segment.file());
            let heads = file.heads()?;
            Ok(Sealed::new(file, heads, namespace, horizon_ms)?.into())
        };
        let sources = self.segments().map(sealed).collect::<Result<_>>()?;
        let opened =
            OpenSegments { list: Vec::new(), horizon_ms, database: self.database, sources };
        let map = |memory: &Arc<SharedMemory>| memory.map().at("rows in memory");
        let shared = self.shared_images().iter().map(map).collect::<Result<_>>()?;
        opened.with_rows(shared, self.copied_images())
    }
}

/// Segments of which this disk has parts alone.
#[derive(Clone, Default)]
pub struct MissingSegments(Vec<Arc<SegmentFile>>);

impl MissingSegments {
    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Has a part of a segment on this disk, before it returns.
    ///
    /// Errors: those of where the segment is; `NotFound` for another one.
    pub fn load(&self, segment: Uuid, part: Range<u64>) -> io::Result<()> {
        let found = self.0.iter().find(|file| file.meta().uuid == segment);
        found.ok_or(io::ErrorKind::NotFound)?.load(part.start as usize..part.end as usize)
    }
}

/// Has a part of a segment on this disk: by whoever owns the directory.
pub type LoadParts = Arc<dyn Fn(Uuid, Range<u64>) -> io::Result<()> + Send + Sync>;

/// The parts of one segment that another process may have to fetch.
struct PartsOfOwner {
    segment: Uuid,
    copy_path: String,
    load: LoadParts,
    /// Chunks that the owner has said are there.
    known: Mutex<BTreeSet<u64>>,
}

impl MissingParts for PartsOfOwner {
    fn load(&self, range: Range<u64>) -> io::Result<()> {
        let chunks = range.start / CHUNK_BYTES..range.end.div_ceil(CHUNK_BYTES);
        if chunks.clone().all(|chunk| self.known.lock().contains(&chunk)) {
            return Ok(());
        }
        (self.load)(self.segment, range)?;
        self.known.lock().extend(chunks);
        Ok(())
    }

    fn loaded_bytes(&self) -> u64 {
        0
    }

    fn copy_path(&self) -> &str {
        &self.copy_path
    }
}

/// A snapshot for another process.
#[derive(Clone)]
pub struct SerializedSnapshot {
    /// The list of segments, which that process maps for itself.
    pub segments: Vec<u8>,
    /// Those of which it has to ask for parts.
    pub missing: MissingSegments,
    /// Rows that no segment holds yet, which it maps by descriptors.
    pub shared: Vec<Arc<SharedMemory>>,
    /// Rows that are copied: those behind the last part, and small images.
    pub copied: Vec<u8>,
}

/// Bytes that are verified ahead of use, at most: more would evict other files from memory.
const AHEAD_BYTES: u64 = 256 << 20;

/// Open segments of a snapshot, without the rows in memory.
pub struct OpenSegments {
    list: Vec<u8>,
    horizon_ms: i64,
    database: Database,
    sources: Vec<Source>,
}

impl OpenSegments {
    /// Opens the segments of `list`, which the process that owns `directory` wrote. That one is asked by `load` for parts of segments of which the directory has not all.
    ///
    /// Errors: `Io` of the kind `NotFound` when a segment was merged away meanwhile: take another
    /// snapshot; `Corrupt`; those of `load`.
    pub fn open(directory: &Path, list: Vec<u8>, load: &LoadParts) -> Result<Self> {
        let mut cursor = Cursor::new(&list, "a snapshot");
        let (namespace, horizon_ms) = (Namespace(cursor.u32()?), cursor.i64()?);
        let mut id = [0; 16];
        id.copy_from_slice(cursor.take(16)?);
        let database = Database { id, hash_seed: cursor.u64()? };
        let mut metas = Vec::new();
        for _ in 0..cursor.count(40)? {
            let meta = SegmentMeta::read(cursor.bytes()?)?;
            metas.push((meta, String::from_utf8_lossy(cursor.bytes()?).into_owned()));
        }
        cursor.finish()?;
        let vfs = OsVfs::existing(directory);
        let map = |meta: &SegmentMeta, copy_path: &String| match copy_path.is_empty() {
            true => vfs.map(&meta.path()),
            false => {
                let (segment, copy_path, load) = (meta.uuid, copy_path.clone(), Arc::clone(load));
                let view = vfs.map_writable(&copy_path)?;
                let parts = PartsOfOwner { segment, copy_path, load, known: Mutex::default() };
                Ok(view.with_missing(Arc::new(parts)))
            }
        };
        let open = |metas: &[(SegmentMeta, String)]| -> Result<Vec<Source>> {
            let mut sources = Vec::with_capacity(metas.len());
            for (meta, copy_path) in metas {
                let view = map(meta, copy_path).at(&meta.path())?;
                let (file, heads) = SegmentFile::open(view, meta.clone(), database)?;
                sources.push(Sealed::new(Arc::new(file), heads, namespace, horizon_ms)?.into());
            }
            Ok(sources)
        };
        if metas.len() < 2 {
            return Ok(Self { sources: open(&metas)?, list, horizon_ms, database });
        }
        // Directories of many tenants take their time: half of them beside the other half.
        let (some, others) = metas.split_at(metas.len() / 2);
        let (some, others) = std::thread::scope(|scope| {
            let some = scope.spawn(|| open(some));
            let others = open(others);
            (some.join(), others)
        });
        let mut sources =
            some.map_err(|_| Error::corrupt("a snapshot", "opening a segment failed"))??;
        sources.extend(others?);
        Ok(Self { list, horizon_ms, database, sources })
    }

    /// Verifies blocks before they are read, newest segments first, until `is_over` or a bound of
    /// bytes that are likely to be in memory. Returns the number of verified bytes.
    pub fn verify_ahead(&self, is_over: &dyn Fn() -> bool) -> u64 {
        let mut sources: Vec<&Source> = self.sources.iter().collect();
        sources.sort_by_key(|source| std::cmp::Reverse(source.last_ms()));
        sources.into_iter().fold(0, |bytes, source| {
            bytes + source.verify_ahead(&|more| bytes + more < AHEAD_BYTES && !is_over())
        })
    }

    /// Whether these are the segments of this list.
    pub fn is_of(&self, list: &[u8]) -> bool {
        self.list == list
    }

    /// Adds rows that no segment holds: mapped images and the bytes of [`Snapshot::copied_images`].
    ///
    /// Errors: `Corrupt`.
    pub fn with_rows(mut self, shared: Vec<View>, copied: Vec<u8>) -> Result<Scan> {
        let (mut images, copied) = (shared, View::new(copied));
        let mut cursor = Cursor::new(&copied, "a snapshot");
        while cursor.remaining() > 0 {
            let len = cursor.bytes()?.len();
            let end = copied.len() - cursor.remaining();
            images.push(copied.part(end - len..end));
        }
        for image in images {
            let image = RowImage::open(image)?;
            let recent = Recent::new(image, self.horizon_ms, self.database.hash_seed);
            self.sources.extend(recent.map(Source::from));
        }
        Ok(Scan { sources: self.sources })
    }
}

/// The rows of one namespace at one instant, open for reading.
pub struct Scan {
    sources: Vec<Source>,
}

impl Scan {
    /// Opens a snapshot that the process that owns `directory` serialized.
    ///
    /// Errors: as of [`OpenSegments::open`].
    pub fn receive(directory: &Path, handed: SerializedSnapshot) -> Result<Self> {
        let map = |memory: &Arc<SharedMemory>| memory.map().at("rows in memory");
        let shared = handed.shared.iter().map(map).collect::<Result<_>>()?;
        let load = handed.missing;
        let load: LoadParts = Arc::new(move |segment, part| load.load(segment, part));
        OpenSegments::open(directory, handed.segments, &load)?.with_rows(shared, handed.copied)
    }

    /// A scan without sources, so without rows.
    pub fn empty() -> Self {
        Self { sources: Vec::new() }
    }

    /// The segments and row images that hold the rows.
    pub fn sources(&self) -> &[Source] {
        &self.sources
    }
}

#[cfg(test)]
mod tests;
