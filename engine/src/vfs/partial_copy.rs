//! A copy of a file of an object store that has only what was read of it.
//!
//! The file on the disk is as long as the object, and mapped. What was not fetched is a hole, which takes no room; the chunks of a part are fetched before
//! the part is read for the first time:
//!
//! ```text
//! object    |chunk 0     |chunk 1     |chunk 2     |chunk 3   |      256 KiB each, the last one shorter
//! created    hole         hole         there        there            the tail comes with the first call: a segment's footer is in it
//! load(300_000..600_000)  get 1        …                              one call for what is missing side by side
//! ```
//!
//! Chunks are written once and never change, so a view is read without a lock. The file goes with the last view of it, and its name before that, where the
//! file is removed or evicted: what was erased must be on no disk.

use std::{
    collections::BTreeMap,
    io,
    ops::Range,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use parking_lot::Mutex;

use super::{
    MissingParts, Vfs, VfsFile, View,
    object_store::{ObjectPart, Objects, ignore_missing},
};

/// Bytes that are fetched at least. A call takes some ten milliseconds at a store in the same region, in which about as many come.
pub const CHUNK_BYTES: u64 = 256 << 10;
/// Bytes of one call at most, which are in memory meanwhile.
const CALL_BYTES_MAX: u64 = 4 << 20;

/// Bytes at the end that come when a file is opened. Files that are no longer are copied as wholes.
const TAIL_BYTES: u64 = 2 * CHUNK_BYTES;
/// Directory of the copies. What is there at a start is of a process that was killed, and is removed.
pub const DIRECTORY: &str = "parts";

/// Removes all partial copies from a disk on which nobody reads any: those of a process that was killed.
///
/// Errors: those of the disk.
pub fn clear(disk: &dyn Vfs) -> io::Result<()> {
    let left = match disk.list(DIRECTORY) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Vec::new(),
        names => names?,
    };
    for name in left {
        disk.remove(&format!("{DIRECTORY}/{name}"))?;
    }
    Ok(())
}

/// The partial copies of a disk.
pub struct PartialCopies(Arc<CopyRegistry>);

struct CopyRegistry {
    disk: Arc<dyn Vfs>,
    objects: Arc<dyn Objects>,
    /// Of each object, the paths of its copies: more than one while somebody reads an older one.
    copies: Mutex<BTreeMap<String, Vec<String>>>,
    /// Part of the name of the next one.
    next: AtomicU64,
    /// Calls of the store, and their bytes.
    reads: AtomicU64,
    read_bytes: AtomicU64,
    /// Bytes of all copies that there are.
    bytes: AtomicU64,
}

/// An object that was opened.
pub enum OpenedObject {
    /// All of a short one.
    Whole(Vec<u8>),
    /// What there is of a longer one.
    Parts(View),
}

impl PartialCopies {
    /// Copies on this disk, of which there are none yet.
    ///
    /// Errors: those of removing what is left of another process, and of making the directory.
    pub fn new(disk: Arc<dyn Vfs>, objects: Arc<dyn Objects>) -> io::Result<Self> {
        clear(&*disk)?;
        disk.create_dir(DIRECTORY)?;
        let (copies, next) = (Mutex::default(), AtomicU64::new(0));
        let (reads, read_bytes) = (AtomicU64::new(0), AtomicU64::new(0));
        let bytes = AtomicU64::new(0);
        Ok(Self(Arc::new(CopyRegistry { disk, objects, copies, next, reads, read_bytes, bytes })))
    }

    /// Opens an object: one call of the store.
    ///
    /// Errors: those of the store and the disk; `Unsupported` where that cannot map what is being written.
    pub fn open(&self, path: &str) -> io::Result<OpenedObject> {
        let (tail, len) = self.0.get(path, ObjectPart::Tail(TAIL_BYTES))?;
        match len <= tail.len() as u64 {
            true => Ok(OpenedObject::Whole(tail)),
            false => PartialCopy::create(&self.0, path, &tail, len).map(OpenedObject::Parts),
        }
    }

    /// A copy of an object of `len` bytes that has none of them yet; other copies of it have no name any more.
    ///
    /// Errors: those of the disk.
    pub fn replace(&self, path: &str, len: u64) -> io::Result<View> {
        let view = PartialCopy::create(&self.0, path, &[], len)?;
        self.0.discard(path, view.copy_path())?;
        Ok(view)
    }

    /// Removes the names of all copies of an object. Returns whether there were any.
    ///
    /// Errors: those of the disk.
    pub fn discard(&self, path: &str) -> io::Result<bool> {
        self.0.discard(path, None)
    }

    /// All of an object, in a file that has no name any more: its room is free when it is closed.
    ///
    /// Errors: those of the store and the disk.
    pub fn open_whole(&self, path: &str) -> io::Result<Arc<dyn VfsFile>> {
        let copy_path = self.0.next_path(path);
        let file = self.0.create(&copy_path)?;
        self.0.disk.remove(&copy_path)?;
        self.0.objects.get(path, &*file)?;
        Ok(file)
    }

    /// Length of an object in bytes.
    ///
    /// Errors: those of the store.
    pub fn len_of(&self, path: &str) -> io::Result<u64> {
        self.0.get(path, ObjectPart::Tail(1)).map(|(_, len)| len)
    }

    /// Bytes of all copies, those without a name among them that somebody reads.
    pub fn bytes(&self) -> u64 {
        self.0.bytes.load(Ordering::Relaxed)
    }

    /// Calls of the store so far, and the bytes that came.
    pub fn reads(&self) -> (u64, u64) {
        (self.0.reads.load(Ordering::Relaxed), self.0.read_bytes.load(Ordering::Relaxed))
    }
}

impl CopyRegistry {
    fn get(&self, path: &str, part: ObjectPart) -> io::Result<(Vec<u8>, u64)> {
        let (bytes, len) = self.objects.get_part(path, part)?;
        self.reads.fetch_add(1, Ordering::Relaxed);
        self.read_bytes.fetch_add(bytes.len() as u64, Ordering::Relaxed);
        Ok((bytes, len))
    }

    /// A name for the next copy of an object.
    fn next_path(&self, path: &str) -> String {
        let name = path.rsplit('/').next().unwrap_or_default();
        format!("{DIRECTORY}/{name}.{}", self.next.fetch_add(1, Ordering::Relaxed))
    }

    /// A new file. The data directory may be deleted at any time, and is made again.
    fn create(&self, path: &str) -> io::Result<Arc<dyn VfsFile>> {
        match self.disk.create(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                self.disk.create_dir(DIRECTORY)?;
                self.disk.create(path)
            }
            created => created,
        }
    }

    fn discard(&self, path: &str, all_but: Option<&str>) -> io::Result<bool> {
        let mut copies = self.copies.lock();
        let Some(of_path) = copies.get_mut(path) else { return Ok(false) };
        let mut removed = false;
        while let Some(at) = of_path.iter().position(|copy| Some(copy.as_str()) != all_but) {
            let copy = of_path.remove(at);
            ignore_missing(self.disk.remove(&copy)).inspect_err(|_| of_path.push(copy))?;
            removed = true;
        }
        if of_path.is_empty() {
            copies.remove(path);
        }
        Ok(removed)
    }
}

/// The parts of an object that are on this disk.
struct PartialCopy {
    /// Its name in the store.
    path: String,
    copy_path: String,
    len: u64,
    file: Arc<dyn VfsFile>,
    registry: Arc<CopyRegistry>,
    chunks: Mutex<Chunks>,
    /// Held during a call of the store, so that nothing is fetched twice.
    fetching: Mutex<()>,
    /// Calls that failed.
    failures: AtomicU64,
}

/// Which chunks are there.
struct Chunks {
    are_there: Vec<bool>,
    bytes: u64,
}

impl PartialCopy {
    /// Makes the copy of an object of `len` bytes, of which the last ones are known, and maps it.
    ///
    /// Errors: those of the disk; `Unsupported` where it cannot map what is being written.
    fn create(registry: &Arc<CopyRegistry>, path: &str, tail: &[u8], len: u64) -> io::Result<View> {
        let (path, copy_path) = (path.to_owned(), registry.next_path(path));
        let file = registry.create(&copy_path)?;
        let count = len.div_ceil(CHUNK_BYTES) as usize;
        let chunks = Mutex::new(Chunks { are_there: vec![false; count], bytes: 0 });
        let (of_path, registry) = (copy_path.clone(), Arc::clone(registry));
        let (fetching, failures) = (Mutex::default(), AtomicU64::new(0));
        // From here on its end removes the file.
        let copy = Self { path, copy_path, len, file, registry, chunks, fetching, failures };
        // Makes it as long as the object, too.
        let from = len - (tail.len() as u64).min(len);
        match tail.is_empty() {
            true => copy.file.write_at(len.saturating_sub(1), &[0])?,
            false => copy.file.write_at(from, tail).and_then(|()| copy.file.sync())?,
        }
        copy.mark(from.div_ceil(CHUNK_BYTES) as usize..count);
        let view = copy.registry.disk.map_writable(&of_path)?;
        copy.registry.copies.lock().entry(copy.path.clone()).or_default().push(of_path);
        Ok(view.with_missing(Arc::new(copy)))
    }

    /// Of a range of chunks the first ones side by side that are not there, as many as one call may fetch, in bytes. `None` where all are there.
    fn next_missing(&self, chunks: &Range<usize>) -> Option<Range<u64>> {
        let known = self.chunks.lock();
        let is_missing = |at: &usize| known.are_there.get(*at) == Some(&false);
        let first = chunks.clone().find(is_missing)?;
        let start = first as u64 * CHUNK_BYTES;
        let fits = |at: &usize| self.end_of(*at) - start <= CALL_BYTES_MAX;
        let beside = (first..chunks.end).take_while(|at| is_missing(at) && fits(at));
        Some(start..self.end_of(beside.last().unwrap_or(first)))
    }

    fn end_of(&self, chunk: usize) -> u64 {
        ((chunk as u64 + 1) * CHUNK_BYTES).min(self.len)
    }

    fn fetch(&self, bytes: Range<u64>) -> io::Result<()> {
        let (content, len) = self.registry.get(&self.path, ObjectPart::Range(bytes.clone()))?;
        if len != self.len || content.len() as u64 != bytes.end - bytes.start {
            let message = "the object has another length than before";
            return Err(io::Error::new(io::ErrorKind::InvalidData, message));
        }
        self.file.write_at(bytes.start, &content)?;
        // What the disk does not take later, after its checksum was compared, would be a hole again.
        self.file.sync()?;
        let first = (bytes.start / CHUNK_BYTES) as usize;
        let end = bytes.end.div_ceil(CHUNK_BYTES) as usize;
        self.mark(first..end);
        Ok(())
    }

    /// From now on these chunks are there.
    fn mark(&self, chunks: Range<usize>) {
        let mut known = self.chunks.lock();
        let before = known.bytes;
        for at in chunks {
            if let Some(is_there @ false) = known.are_there.get_mut(at) {
                *is_there = true;
                known.bytes += CHUNK_BYTES.min(self.len - at as u64 * CHUNK_BYTES);
            }
        }
        self.registry.bytes.fetch_add(known.bytes - before, Ordering::Relaxed);
    }
}

impl MissingParts for PartialCopy {
    fn load(&self, range: Range<u64>) -> io::Result<()> {
        let end = range.end.min(self.len);
        let chunks = (range.start / CHUNK_BYTES) as usize..end.div_ceil(CHUNK_BYTES) as usize;
        while self.next_missing(&chunks).is_some() {
            let failures = self.failures.load(Ordering::Relaxed);
            // For one call: whoever loads a whole file lets others in between.
            let _fetching = self.fetching.lock();
            // Where a store does not answer, all that wait are not to find that out one after the other.
            if self.failures.load(Ordering::Relaxed) != failures {
                return Err(io::Error::other("another reader could not fetch a part of the file"));
            }
            // Looked at once more: another one may have fetched it meanwhile.
            if let Some(bytes) = self.next_missing(&chunks) {
                self.fetch(bytes).inspect_err(|_| {
                    self.failures.fetch_add(1, Ordering::Relaxed);
                })?;
            }
        }
        Ok(())
    }

    fn loaded_bytes(&self) -> u64 {
        self.chunks.lock().bytes
    }

    fn copy_path(&self) -> &str {
        &self.copy_path
    }
}

impl Drop for PartialCopy {
    fn drop(&mut self) {
        // Its name may be gone already. A file that stays is removed by the next start.
        drop(self.registry.disk.remove(&self.copy_path));
        self.registry.bytes.fetch_sub(self.chunks.get_mut().bytes, Ordering::Relaxed);
        let mut copies = self.registry.copies.lock();
        if let Some(of_path) = copies.get_mut(&self.path) {
            of_path.retain(|copy| *copy != self.copy_path);
            if of_path.is_empty() {
                copies.remove(&self.path);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::vfs::{os::OsVfs, sim::SimVfs, sim_objects::SimObjects};

    /// Bytes of which no chunk is like another one.
    fn content(len: u64) -> Vec<u8> {
        (0..len).map(|at| (at / 7 + at / CHUNK_BYTES) as u8).collect()
    }

    fn put(objects: &SimObjects, name: &str, bytes: &[u8]) {
        let disk = SimVfs::new();
        disk.set_file("a", Some(bytes.to_vec()));
        objects.put(name, &*disk.open("a").unwrap()).unwrap();
    }

    #[test]
    fn chunks_are_fetched_once_when_they_are_needed() {
        let (directory, objects) = (tempfile::tempdir().unwrap(), SimObjects::default());
        let disk: Arc<dyn Vfs> = Arc::new(OsVfs::new(directory.path()).unwrap());
        let copies = PartialCopies::new(Arc::clone(&disk), Arc::new(objects.clone())).unwrap();
        let bytes = content(10 * CHUNK_BYTES + 77);
        put(&objects, "seg/a.seg", &bytes);
        put(&objects, "seg/b.seg", &bytes[..1_000]);
        let OpenedObject::Whole(short) = copies.open("seg/b.seg").unwrap() else { unreachable!() };
        assert_eq!(short, bytes[..1_000]);
        let OpenedObject::Parts(view) = copies.open("seg/a.seg").unwrap() else { unreachable!() };
        assert_eq!((view.len(), copies.reads().0), (bytes.len(), 2));
        // The tail came with it: a whole chunk, and the short one at the end.
        let tail = 9 * CHUNK_BYTES as usize..bytes.len();
        view.load(tail.clone()).unwrap();
        assert_eq!((&view[tail.clone()], copies.reads().0), (&bytes[tail], 2));
        assert_eq!(view.loaded_bytes(), CHUNK_BYTES + 77);
        let chunk = |range: Range<usize>, reads: u64| {
            view.load(range.clone()).unwrap();
            assert_eq!((&view[range.clone()], copies.reads().0), (&bytes[range], reads));
        };
        let at = CHUNK_BYTES as usize;
        chunk(at + 5..at + 6, 3);
        chunk(at..2 * at, 3);
        // Two missing chunks on each side of one that is there.
        chunk(0..3 * at, 5);
        chunk(0..bytes.len(), 6);
        assert_eq!(view.loaded_bytes(), bytes.len() as u64);
        // Nothing is behind the end.
        view.load(bytes.len()..bytes.len() + 5).unwrap();
        // One that is removed is read on, and leaves nothing.
        assert_eq!(disk.list(DIRECTORY).unwrap().len(), 1);
        assert!(copies.discard("seg/a.seg").unwrap() && !copies.discard("seg/a.seg").unwrap());
        assert!(disk.list(DIRECTORY).unwrap().is_empty());
        assert_eq!(&*view, bytes);
    }

    #[test]
    fn what_cannot_be_fetched_is_an_error_and_then_tried_again() {
        let (directory, objects) = (tempfile::tempdir().unwrap(), SimObjects::default());
        let disk: Arc<dyn Vfs> = Arc::new(OsVfs::new(directory.path()).unwrap());
        let copies = PartialCopies::new(Arc::clone(&disk), Arc::new(objects.clone())).unwrap();
        assert_eq!(copies.open("seg/a.seg").err().unwrap().kind(), io::ErrorKind::NotFound);
        let bytes = content(4 * CHUNK_BYTES);
        put(&objects, "seg/a.seg", &bytes);
        let view = copies.replace("seg/a.seg", bytes.len() as u64).unwrap();
        assert_eq!((view.loaded_bytes(), copies.reads().0), (0, 0));
        objects.fail_at(0, io::ErrorKind::ConnectionReset);
        assert_eq!(view.load(0..5).err().unwrap().kind(), io::ErrorKind::ConnectionReset);
        view.load(0..5).unwrap();
        assert_eq!(view[..5], bytes[..5]);
        // An object of another length is not this one.
        objects.remove("seg/a.seg").unwrap();
        put(&objects, "seg/a.seg", &bytes[..3 * CHUNK_BYTES as usize]);
        let at = CHUNK_BYTES as usize;
        assert_eq!(view.load(at..at + 1).err().unwrap().kind(), io::ErrorKind::InvalidData);
        // A new copy takes the name of the old one; each goes with its last view.
        let newer = copies.replace("seg/a.seg", bytes.len() as u64).unwrap();
        assert_eq!(disk.list(DIRECTORY).unwrap().len(), 1);
        assert_eq!(view[..5], bytes[..5]);
        drop(view);
        assert_eq!(disk.list(DIRECTORY).unwrap().len(), 1);
        drop(newer);
        assert!(disk.list(DIRECTORY).unwrap().is_empty());
        // What a process left that was killed is removed.
        disk.create(&format!("{DIRECTORY}/left")).unwrap();
        PartialCopies::new(Arc::clone(&disk), Arc::new(objects)).unwrap();
        assert!(disk.list(DIRECTORY).unwrap().is_empty());
    }
}
