//! The door to the disk. Everything above asks a [`Vfs`], never the operating system.
//!
//! [`os::OsVfs`] is a real directory. [`sim::SimVfs`] is a disk in memory that keeps apart what was written
//! and what was synced, and that can lose power at any step. The engine runs on both unchanged.
//!
//! Paths are relative to the data directory, with `/` between names. The target of a backup lies
//! elsewhere: its paths may be absolute.
//!
//! [`shared_memory`] is no disk, but read like one: memory of one process that others map.

pub mod os;
pub mod read_only;
pub mod shared_memory;
pub mod sim;

use std::{
    any::Any,
    io,
    ops::{Deref, Range},
    sync::Arc,
};

/// A directory tree of files.
pub trait Vfs: Send + Sync + 'static {
    /// Creates a file that must not exist yet, for reading and writing.
    fn create(&self, path: &str) -> io::Result<Arc<dyn VfsFile>>;
    /// Opens an existing file for reading and writing.
    fn open(&self, path: &str) -> io::Result<Arc<dyn VfsFile>>;
    /// The whole content of a file that nobody changes any more.
    fn map(&self, path: &str) -> io::Result<View>;
    /// Gives a file another name, replacing what had it. Durable after both directories are synced.
    fn rename(&self, from: &str, to: &str) -> io::Result<()>;
    /// Removes a name. Open files and views of it stay readable.
    fn remove(&self, path: &str) -> io::Result<()>;
    /// Gives a file a second name. `CrossesDevices` or `Unsupported` when the disk cannot.
    fn link(&self, from: &str, to: &str) -> io::Result<()>;
    /// Makes a directory and its parents; existing ones are fine.
    fn create_dir(&self, path: &str) -> io::Result<()>;
    /// Removes a directory that is empty.
    fn remove_dir(&self, path: &str) -> io::Result<()>;
    /// Makes the names in a directory durable. The empty path is the data directory itself.
    fn sync_dir(&self, path: &str) -> io::Result<()>;
    /// Names of the files (not directories) in a directory, sorted.
    fn list(&self, path: &str) -> io::Result<Vec<String>>;
    /// Names of the directories in a directory, sorted.
    fn list_dirs(&self, path: &str) -> io::Result<Vec<String>>;
    /// Bytes that can still be written, where the disk knows.
    fn free_bytes(&self) -> io::Result<u64>;
    /// Takes the advisory lock of a file, creating it; `None` when another process holds it. The
    /// lock lives as long as the returned value.
    fn lock(&self, path: &str) -> io::Result<Option<Box<dyn Any + Send + Sync>>>;
}

/// An open file.
#[expect(clippy::len_without_is_empty, reason = "a file is not a collection")]
pub trait VfsFile: Send + Sync {
    /// Reads up to `out.len()` bytes at `offset`; fewer only at the end of the file.
    fn read_at(&self, offset: u64, out: &mut [u8]) -> io::Result<usize>;
    /// Writes all of `bytes` at `offset`.
    fn write_at(&self, offset: u64, bytes: &[u8]) -> io::Result<()>;
    /// Makes the content, and the length where it matters, durable.
    fn sync(&self) -> io::Result<()>;
    /// Reserves space and extends the file to `len` with zeros.
    fn allocate(&self, len: u64) -> io::Result<()>;
    /// Length in bytes.
    fn len(&self) -> io::Result<u64>;
}

/// Immutable bytes: a file or shared memory that is mapped, or a buffer.
#[derive(Clone)]
pub struct View(Arc<dyn AsRef<[u8]> + Send + Sync>);

impl View {
    /// A view of anything that holds bytes.
    pub fn new(bytes: impl AsRef<[u8]> + Send + Sync + 'static) -> Self {
        Self(Arc::new(bytes))
    }
}

impl View {
    /// A part of it; empty where it ends before.
    pub fn part(&self, range: Range<usize>) -> Self {
        Self::new(ViewPart { of: self.clone(), range })
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
        (*self.0).as_ref()
    }
}

/// Reads a whole file through `read_at`.
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
