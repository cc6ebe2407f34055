//! A disk that is looked at and never changed.
//!
//! Inspection and verification read a directory that may belong to a running server, so every change
//! is refused here, and a sync does nothing: what the looker sees need not be durable.
//!
//! ```text
//! map("seg/l0/019a….seg")     the same view as of the disk below
//! map("wal/0…0072.wal")       a copy: the server may be writing to the file
//! remove("SUPER.a")           ReadOnlyFilesystem: "this view of the directory only reads"
//! lock("LOCK")                refused: an inspection does not keep a server from starting
//! ```
//!
//! A file that a running server replaces meanwhile may be gone at the next call: the caller judges `NotFound`.

use std::{any::Any, io, sync::Arc};

use super::{Vfs, VfsFile, View, read_all};

/// Wraps a disk and refuses every change, so the code above it needs no checks of its own.
pub struct ReadOnlyVfs(pub Arc<dyn Vfs>);

/// The answer to every change.
fn refused<T>() -> io::Result<T> {
    Err(io::Error::new(io::ErrorKind::ReadOnlyFilesystem, "this view of the directory only reads"))
}

impl Vfs for ReadOnlyVfs {
    fn create(&self, _: &str) -> io::Result<Arc<dyn VfsFile>> {
        refused()
    }
    fn open(&self, path: &str) -> io::Result<Arc<dyn VfsFile>> {
        // The file below may be open for writing; this one lets no write through.
        Ok(Arc::new(ReadOnlyFile(self.0.open(path)?)))
    }
    fn map(&self, path: &str) -> io::Result<View> {
        if path.ends_with(".wal") {
            // The one kind of file that may still be written to: a copy stands still.
            return read_all(&*self.0.open(path)?).map(View::new);
        }
        self.0.map(path)
    }
    fn rename(&self, _: &str, _: &str) -> io::Result<()> {
        refused()
    }
    fn remove(&self, _: &str) -> io::Result<()> {
        refused()
    }
    fn link(&self, _: &str, _: &str) -> io::Result<()> {
        refused()
    }
    fn create_dir(&self, _: &str) -> io::Result<()> {
        refused()
    }
    fn remove_dir(&self, _: &str) -> io::Result<()> {
        refused()
    }
    fn sync_dir(&self, _: &str) -> io::Result<()> {
        Ok(())
    }
    fn list(&self, path: &str) -> io::Result<Vec<String>> {
        self.0.list(path)
    }
    fn list_dirs(&self, path: &str) -> io::Result<Vec<String>> {
        self.0.list_dirs(path)
    }
    fn free_bytes(&self) -> io::Result<u64> {
        self.0.free_bytes()
    }
    fn lock(&self, _: &str) -> io::Result<Option<Box<dyn Any + Send + Sync>>> {
        refused()
    }
}

/// A file that is read and not written.
struct ReadOnlyFile(Arc<dyn VfsFile>);

impl VfsFile for ReadOnlyFile {
    fn read_at(&self, offset: u64, out: &mut [u8]) -> io::Result<usize> {
        self.0.read_at(offset, out)
    }
    fn write_at(&self, _: u64, _: &[u8]) -> io::Result<()> {
        refused()
    }
    fn sync(&self) -> io::Result<()> {
        Ok(())
    }
    fn allocate(&self, _: u64) -> io::Result<()> {
        refused()
    }
    fn len(&self) -> io::Result<u64> {
        self.0.len()
    }
}
