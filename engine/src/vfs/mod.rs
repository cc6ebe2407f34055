//! The door to the disk. Everything above asks a [`Vfs`], never the operating system.
//!
//! [`os::OsVfs`] is a real directory. [`sim::SimVfs`] is a disk in memory that keeps apart what was written
//! and what was synced, and that can lose power at any step. The engine runs on both unchanged.
//!
//! Paths are relative to the data directory, with `/` between names. The target of a backup lies
//! elsewhere: its paths may be absolute.
//!
//! [`objects::ObjectVfs`] wraps either of them as the cache of an object store, of whole files or of the [parts](partial_copy) that were read. [`read_only::ReadOnlyVfs`] wraps them for inspections. [`shared_memory`] is no disk, but read like one:
//! memory of one process that others map.
//!
//! A new file becomes durable in this order on either disk, and a crash between two steps leaves nothing that is named:
//!
//! ```text
//! create("tmp/019a….seg")   write_at(0, …)   sync()             the content is durable, the name is not
//! rename("tmp/019a….seg", "seg/l0/019a….seg")
//! sync_dir("seg/l0")                                             now the name is durable, too
//!                                                                only then does a record of the log name it
//! ```
//!
//! Errors are those of `std::io`: `NotFound` for a name that is not there, `AlreadyExists` from `create`, `StorageFull` when the
//! disk has no room. The caller adds the name of the file (`IoContext::at`).

pub mod object_store;
pub mod os;
pub mod read_only;
pub mod shared_memory;
pub mod sim;

pub mod partial_copy;
pub mod sim_objects;

pub mod objects;

use std::{
    any::Any,
    io,
    ops::{Deref, Range},
    sync::Arc,
};

/// A directory tree of files. All calls block, and several threads may make them at once.
pub trait Vfs: Send + Sync + 'static {
    /// Creates a file that must not exist yet, for reading and writing. Its directory must exist.
    fn create(&self, path: &str) -> io::Result<Arc<dyn VfsFile>>;
    /// Opens an existing file for reading and writing.
    fn open(&self, path: &str) -> io::Result<Arc<dyn VfsFile>>;
    /// Length of a file in bytes.
    fn len_of(&self, path: &str) -> io::Result<u64> {
        self.open(path)?.len()
    }
    /// The whole content of a file that does not change any more: segments, id runs, checkpoints. It stays readable when the name is
    /// removed.
    fn map(&self, path: &str) -> io::Result<View>;
    /// A file that is written while it is mapped, within the length that it has now: whoever reads a part of it has to know that it was written. `Unsupported` where the disk cannot.
    fn map_writable(&self, path: &str) -> io::Result<View> {
        let _ = path;
        Err(io::ErrorKind::Unsupported.into())
    }
    /// Frees the room of the copy of a file of `len` bytes that is elsewhere, and maps it anew: from now on it takes the room of what is read of it. Whoever has the old one open goes on with it.
    /// `Unsupported` where files are not elsewhere, or are kept as wholes; `WouldBlock` while it is being fetched.
    fn map_evicted(&self, path: &str, len: u64) -> io::Result<View> {
        let _ = (path, len);
        Err(io::ErrorKind::Unsupported.into())
    }
    /// Gives a file another name, replacing what had it. Durable after both directories are synced.
    fn rename(&self, from: &str, to: &str) -> io::Result<()>;
    /// Removes a name. Open files and views of it stay readable: a query goes on with a segment that was merged away.
    fn remove(&self, path: &str) -> io::Result<()>;
    /// Gives a file a second name. `CrossesDevices` or `Unsupported` when the disk cannot.
    fn link(&self, from: &str, to: &str) -> io::Result<()>;
    /// Makes a directory and its parents; existing ones are fine. Their names are durable after the directories above are synced.
    fn create_dir(&self, path: &str) -> io::Result<()>;
    /// Removes a directory that is empty.
    fn remove_dir(&self, path: &str) -> io::Result<()>;
    /// Makes the names in a directory durable. The empty path is the data directory itself.
    fn sync_dir(&self, path: &str) -> io::Result<()>;
    /// Names of the files (not directories) in a directory, sorted: `["SUPER.a", "SUPER.b"]`, without the path.
    fn list(&self, path: &str) -> io::Result<Vec<String>>;
    /// Names of the directories in a directory, sorted.
    fn list_dirs(&self, path: &str) -> io::Result<Vec<String>>;
    /// Throws away the copy of a file that is elsewhere, so that it is fetched again; returns whether there was one.
    fn discard_copy(&self, path: &str) -> io::Result<bool> {
        let _ = path;
        Ok(false)
    }
    /// Removes a file that nothing has named yet, wherever it is.
    fn remove_new(&self, path: &str) -> io::Result<()> {
        self.remove(path)
    }
    /// Paths of all files below a directory, sorted: `["seg/l0/019a….seg"]` of `seg`, which has one level of directories.
    fn list_below(&self, path: &str) -> io::Result<Vec<String>> {
        let mut files: Vec<String> =
            self.list(path)?.iter().map(|name| format!("{path}/{name}")).collect();
        for directory in self.list_dirs(path)? {
            let directory = format!("{path}/{directory}");
            files.extend(self.list(&directory)?.iter().map(|name| format!("{directory}/{name}")));
        }
        files.sort();
        Ok(files)
    }
    /// Deletes what was removed and is still there for a while, elsewhere than on this disk.
    fn purge(&self) -> io::Result<()> {
        Ok(())
    }
    /// Replaces the copy of a file by what is elsewhere, if `check` has nothing against it. Whoever has the old one open goes on with it.
    ///
    /// Errors: those of fetching and of `check`; the copy stays as it was then.
    fn replace_copy(&self, path: &str, check: &dyn Fn(View) -> io::Result<()>) -> io::Result<()> {
        let _ = (path, check);
        Err(io::ErrorKind::Unsupported.into())
    }
    /// Whether a file is on this disk as a whole, wherever else it may be.
    fn has_copy(&self, path: &str) -> bool {
        self.open(path).is_ok()
    }
    /// Whether files that are elsewhere are copied as they are read, and not as wholes.
    fn copies_parts(&self) -> bool {
        false
    }
    /// Bytes of files on this disk of which there are parts.
    fn bytes_of_parts(&self) -> u64 {
        0
    }
    /// Whether other processes may have files here as well, of the same database.
    fn is_shared(&self) -> bool {
        false
    }
    /// Bytes that can still be written, where the disk knows; `u64::MAX` on a simulated disk without a setting.
    fn free_bytes(&self) -> io::Result<u64>;
    /// Takes the advisory lock of a file, creating it; `None` when another process holds it. The
    /// lock lives as long as the returned value.
    ///
    /// A lock of a killed process is gone with it, so a start after a crash needs no repair.
    fn lock(&self, path: &str) -> io::Result<Option<Box<dyn Any + Send + Sync>>>;
}

/// An open file.
#[expect(clippy::len_without_is_empty, reason = "a file is not a collection")]
pub trait VfsFile: Send + Sync {
    /// Reads up to `out.len()` bytes at `offset` and returns how many; fewer only at the end of the file, 0 behind it.
    fn read_at(&self, offset: u64, out: &mut [u8]) -> io::Result<usize>;
    /// Writes all of `bytes` at `offset`, which may lie behind the end: between are zeros then. After an error any part may be written.
    fn write_at(&self, offset: u64, bytes: &[u8]) -> io::Result<()>;
    /// Makes the content, and the length where it matters, durable. After an error, the content of the disk is unknown.
    fn sync(&self) -> io::Result<()>;
    /// Reserves space and extends a shorter file to `len` with zeros. Called on new files.
    fn allocate(&self, len: u64) -> io::Result<()>;
    /// Length in bytes.
    fn len(&self) -> io::Result<u64>;
}

/// Immutable bytes: a file or shared memory that is mapped, or a buffer. Clones share them; the last one gives them back.
///
/// Of a file that is elsewhere there may be parts alone: what was not [loaded](Self::load) reads as zeros.
#[derive(Clone)]
pub struct View {
    bytes: Arc<dyn AsRef<[u8]> + Send + Sync>,
    missing: Option<Arc<dyn MissingParts>>,
}

/// What a view has not got yet, and where that is.
pub trait MissingParts: Send + Sync {
    /// Has the bytes of a range, before it returns.
    ///
    /// Errors: those of where they are; nothing of the range may be read then.
    fn load(&self, range: Range<u64>) -> io::Result<()>;
    /// Bytes that are there.
    fn loaded_bytes(&self) -> u64;
    /// Path of the file on this disk, which other processes of this machine may map.
    fn copy_path(&self) -> &str;
}

impl View {
    /// A view of anything that holds bytes: a `Vec<u8>`, a mapping.
    pub fn new(bytes: impl AsRef<[u8]> + Send + Sync + 'static) -> Self {
        Self { bytes: Arc::new(bytes), missing: None }
    }

    /// The same bytes, of which some are missing.
    pub fn with_missing(self, missing: Arc<dyn MissingParts>) -> Self {
        Self { missing: Some(missing), ..self }
    }

    /// A part of it, which keeps the whole alive; empty where the whole ends before the part does.
    pub fn part(&self, range: Range<usize>) -> Self {
        Self::new(ViewPart { of: self.clone(), range })
    }

    /// Has the bytes of a range, before it returns; at once where none are missing.
    ///
    /// Errors: those of where they are.
    pub fn load(&self, range: Range<usize>) -> io::Result<()> {
        match &self.missing {
            None => Ok(()),
            Some(missing) => missing.load(range.start as u64..range.end as u64),
        }
    }

    /// Bytes that are there: all of them where none can be missing.
    pub fn loaded_bytes(&self) -> u64 {
        self.missing.as_ref().map_or(self.len() as u64, |missing| missing.loaded_bytes())
    }

    /// Path of the file on this disk that has the parts that are there; `None` where it has all of them, at the path by which it was mapped.
    pub fn copy_path(&self) -> Option<&str> {
        self.missing.as_ref().map(|missing| missing.copy_path())
    }
}

/// Some bytes of a view.
struct ViewPart {
    of: View,
    range: Range<usize>,
}

impl AsRef<[u8]> for ViewPart {
    fn as_ref(&self) -> &[u8] {
        self.of.get(self.range.clone()).unwrap_or_default()
    }
}

impl Deref for View {
    type Target = [u8];
    fn deref(&self) -> &[u8] {
        (*self.bytes).as_ref()
    }
}

/// Reads a whole file through `read_at`: a file that shrinks meanwhile gives the bytes up to its end, one that grows those up to its old length.
pub fn read_all(file: &dyn VfsFile) -> io::Result<Vec<u8>> {
    let mut out = vec![0; file.len()? as usize];
    let mut done = 0;
    while done < out.len() {
        let read = file.read_at(done as u64, &mut out[done..])?;
        if read == 0 {
            out.truncate(done);
        }
        done += read;
    }
    Ok(out)
}
