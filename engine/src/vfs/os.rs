//! A real directory through the operating system.
//!
//! ```text
//! OsVfs::new("/var/lib/inlay")     makes it and syncs its parents, so that a loss of power cannot lose the directory itself
//! map("seg/l0/019a….seg")          mapped from 16 KiB on, read into memory below
//! sync_dir("wal")                  through a descriptor that stays open: works also when the process has no more of them
//! lock("LOCK")                     None when another process has it: the store refuses to start
//! free_bytes()                     room that the file system leaves to users other than root
//! ```
//!
//! The only module that opens files; elsewhere in the engine `clippy` refuses `File::open`, `fs::read` and their like.

#![expect(clippy::disallowed_methods, reason = "the one place that touches files")]

use std::{
    any::Any,
    collections::HashMap,
    fs::{self, File, OpenOptions, TryLockError},
    io,
    os::unix::fs::FileExt,
    path::{Path, PathBuf},
    sync::Arc,
};

use parking_lot::Mutex;

use super::{Vfs, VfsFile, View};

/// Files below this size are read into memory instead of mapped: the mappings of a process are
/// bounded (65,530 by default on Linux). Not more, as a thousand quiet days are a thousand small files.
pub const MAP_BYTES_MIN: u64 = 16 * 1024;

/// Files below one directory. Clones share the directories that are kept open.
#[derive(Debug, Clone)]
pub struct OsVfs {
    root: PathBuf,
    reads_only: bool,
    /// Directories that were synced, kept open: a process that runs out of descriptors can still make
    /// the names in them durable. Days come and go and are not kept.
    kept: Arc<Mutex<HashMap<String, File>>>,
}

impl OsVfs {
    /// The tree below `root`, which is made when it does not exist, and durable by its name.
    ///
    /// Errors: a directory cannot be made or synced; one that is closed to us, or that its file system does not sync, is passed over.
    pub fn new(root: impl Into<PathBuf>) -> io::Result<Self> {
        let root = root.into();
        // As a whole path, so that `ancestors` gives every directory up to the root of the file system.
        let place =
            std::path::absolute(if root.as_os_str().is_empty() { Path::new(".") } else { &root })?;
        // From the top: who is cut off here leaves directories whose parents are synced the next time.
        let mut missing: Vec<&Path> = place.ancestors().take_while(|one| !one.exists()).collect();
        let there = place.ancestors().nth(missing.len());
        if let Some(parent) = there.and_then(Path::parent) {
            sync_if_possible(parent)?;
        }
        while let Some(next) = missing.pop() {
            fs::create_dir_all(next)?;
            if let Some(parent) = next.parent() {
                sync_if_possible(parent)?;
            }
        }
        Ok(Self { root, reads_only: false, kept: Arc::default() })
    }

    /// The tree below `root` as that of another process, for inspections and the processes of SQL statements: nothing is made,
    /// files are opened for reading, and the lock can be asked for but its file is not created.
    pub fn existing(root: impl Into<PathBuf>) -> Self {
        Self { root: root.into(), reads_only: true, kept: Arc::default() }
    }

    /// The path for the operating system. An absolute one, of a backup's target, stays what it is.
    fn at(&self, path: &str) -> PathBuf {
        self.root.join(path)
    }

    /// Names of one kind in a directory, sorted; such as are not UTF-8 are none of ours.
    fn names(&self, path: &str, wanted: impl Fn(fs::FileType) -> bool) -> io::Result<Vec<String>> {
        let mut names = Vec::new();
        for entry in fs::read_dir(self.at(path))? {
            let entry = entry?;
            if wanted(entry.file_type()?)
                && let Ok(name) = entry.file_name().into_string()
            {
                names.push(name);
            }
        }
        names.sort();
        Ok(names)
    }
}

/// Makes the names in a directory durable. One that is closed to us, or of a file system that knows no
/// syncing of directories, is somebody else's care.
fn sync_if_possible(directory: &Path) -> io::Result<()> {
    match File::open(directory).and_then(|directory| directory.sync_all()) {
        Err(error) => match error.kind() {
            io::ErrorKind::PermissionDenied
            | io::ErrorKind::InvalidInput
            | io::ErrorKind::Unsupported
            | io::ErrorKind::ReadOnlyFilesystem => Ok(()),
            _ => Err(error),
        },
        Ok(()) => Ok(()),
    }
}

impl Vfs for OsVfs {
    fn create(&self, path: &str) -> io::Result<Arc<dyn VfsFile>> {
        let file =
            OpenOptions::new().read(true).write(true).create_new(true).open(self.at(path))?;
        Ok(Arc::new(OsFile(file)))
    }

    fn open(&self, path: &str) -> io::Result<Arc<dyn VfsFile>> {
        let file = OpenOptions::new().read(true).write(!self.reads_only).open(self.at(path))?;
        Ok(Arc::new(OsFile(file)))
    }

    fn map(&self, path: &str) -> io::Result<View> {
        // The descriptor is closed at the end of this call; the mapping stays.
        let file = File::open(self.at(path))?;
        let len = file.metadata()?.len();
        // Two calls of the kernel and a copy, instead of a mapping and a page fault.
        if len < MAP_BYTES_MIN {
            let mut bytes = vec![0; len as usize];
            file.read_exact_at(&mut bytes, 0)?;
            return Ok(View::new(bytes));
        }
        #[expect(
            unsafe_code,
            reason = "mapped files are immutable: only whole, renamed files get here"
        )]
        // SAFETY: nobody changes or cuts the bytes of a file that is mapped. New files are mapped after
        // their last write; the newest log file, mapped at a start, is only given the bytes that it
        // has; and the directory's lock keeps other processes of ours away. Whoever looks into a
        // directory in use copies its log instead.
        let map = unsafe { memmap2::Mmap::map(&file)? };
        Ok(View::new(map))
    }

    fn map_writable(&self, path: &str) -> io::Result<View> {
        let file = File::open(self.at(path))?;
        #[expect(
            unsafe_code,
            reason = "a file that only this process writes, behind the bytes that are read"
        )]
        // SAFETY: the file keeps its length, and bytes are read only after they were written, once: see
        // `partial_copy`. Nobody else knows its name.
        let map = unsafe { memmap2::Mmap::map(&file)? };
        Ok(View::new(map))
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        fs::rename(self.at(from), self.at(to))
    }

    fn remove(&self, path: &str) -> io::Result<()> {
        fs::remove_file(self.at(path))
    }

    fn link(&self, from: &str, to: &str) -> io::Result<()> {
        fs::hard_link(self.at(from), self.at(to))
    }

    fn create_dir(&self, path: &str) -> io::Result<()> {
        fs::create_dir_all(self.at(path))
    }

    fn remove_dir(&self, path: &str) -> io::Result<()> {
        fs::remove_dir(self.at(path))
    }

    fn sync_dir(&self, path: &str) -> io::Result<()> {
        // Directories of days and weeks, and of backups: opened for this one sync.
        if path.starts_with('/') || path.contains('/') && path != "seg/l0" {
            return File::open(self.at(path))?.sync_all();
        }
        // `wal`, `tmp`, `seg`, `seg/l0` and the like are synced again and again.
        let mut kept = self.kept.lock();
        if !kept.contains_key(path) {
            kept.insert(path.to_owned(), File::open(self.at(path))?);
        }
        kept[path].sync_all()
    }

    fn list(&self, path: &str) -> io::Result<Vec<String>> {
        self.names(path, |kind| kind.is_file())
    }

    fn list_dirs(&self, path: &str) -> io::Result<Vec<String>> {
        self.names(path, |kind| kind.is_dir())
    }

    fn free_bytes(&self) -> io::Result<u64> {
        let disk = rustix::fs::statvfs(&self.root)?;
        Ok(disk.f_bavail.saturating_mul(disk.f_frsize))
    }

    fn lock(&self, path: &str) -> io::Result<Option<Box<dyn Any + Send + Sync>>> {
        // Somebody else's directory gets no file from us: there a lock is only asked for.
        let file = OpenOptions::new()
            .read(true)
            .write(!self.reads_only)
            .create(!self.reads_only)
            .truncate(false)
            .open(self.at(path))?;
        match file.try_lock() {
            Ok(()) => Ok(Some(Box::new(Held(file)))),
            Err(TryLockError::WouldBlock) => Ok(None),
            Err(TryLockError::Error(error)) => Err(error),
        }
    }
}

/// A lock, given back by a call of its own: closing the file is not enough while a child process that is being started
/// still has a copy of it.
struct Held(File);

impl Drop for Held {
    fn drop(&mut self) {
        let _ = self.0.unlock();
    }
}

/// An open file. Positions are given with each call, so threads share it without a lock.
struct OsFile(File);

impl VfsFile for OsFile {
    fn read_at(&self, offset: u64, out: &mut [u8]) -> io::Result<usize> {
        self.0.read_at(out, offset)
    }

    fn write_at(&self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        self.0.write_all_at(bytes, offset)
    }

    fn sync(&self) -> io::Result<()> {
        // The length is written with the data where reading them needs it; times of access are not worth a write.
        self.0.sync_data()
    }

    fn allocate(&self, len: u64) -> io::Result<()> {
        match rustix::fs::fallocate(&self.0, rustix::fs::FallocateFlags::empty(), 0, len) {
            Ok(()) => Ok(()),
            // Some file systems cannot reserve space: a sparse file is correct, only slower to sync.
            Err(rustix::io::Errno::OPNOTSUPP | rustix::io::Errno::NOSYS) => self.0.set_len(len),
            Err(errno) => Err(errno.into()),
        }
    }

    fn len(&self) -> io::Result<u64> {
        Ok(self.0.metadata()?.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lock_ends_though_a_child_process_still_has_a_copy_of_it() {
        let directory = tempfile::tempdir().unwrap();
        let vfs = OsVfs::new(directory.path()).unwrap();
        let file = File::create(directory.path().join("LOCK")).unwrap();
        file.try_lock().unwrap();
        // What a fork does to the descriptor until the child calls exec.
        let copy = file.try_clone().unwrap();
        let held = Held(file);
        assert!(vfs.lock("LOCK").unwrap().is_none());
        drop(held);
        assert!(vfs.lock("LOCK").unwrap().is_some());
        drop(copy);
    }
}
