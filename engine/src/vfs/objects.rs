//! Files that never change, kept in an object store, with the disk as their cache.
//!
//! An [`ObjectVfs`] is the disk below it, but for some directories: a file that gets its name there is uploaded first, one that is not on the disk is
//! fetched when it is opened, and names are those of the store. So the disk may be lost at any time, and a node with another
//! disk has the same files.
//!
//! ```text
//! create("tmp/019a….seg")                          on the disk
//! rename("tmp/019a….seg", "seg/l0/019a….seg")      put("seg/l0/019a….seg", …), then the name on the disk
//! map("seg/l0/019a….seg")                          from the disk; get(…) before, where it is not there
//! list("seg/l0")                                   names in the store and on the disk: what no record names is found and removed in both
//! remove("seg/l0/019a….seg")                       in the store first: a file on the disk alone is found at the next start
//! ```

use std::{any::Any, collections::BTreeSet, io, sync::Arc};

use parking_lot::Mutex;

use super::{Vfs, VfsFile, View};

/// A store of whole files by name. All calls block, and several threads may make them at once.
///
/// Errors are those of `std::io`; one that is neither `NotFound` nor `AlreadyExists` may go away when the call is made again.
pub trait Objects: Send + Sync + 'static {
    /// Stores the content of a file under a name that has none yet, durably. A call whose answer was lost may be made again: where the same bytes are there
    /// already, it succeeds. `AlreadyExists` where others are.
    fn put(&self, name: &str, content: &dyn VfsFile) -> io::Result<()>;
    /// Writes the content of a name to an empty file: all of it, or an error. `NotFound` where there is no such name.
    fn get(&self, name: &str, into: &dyn VfsFile) -> io::Result<()>;
    /// All names that begin with `prefix`, sorted: `seg/` has `seg/l0/019a….seg`.
    fn list(&self, prefix: &str) -> io::Result<Vec<String>>;
    /// Removes a name; one that is not there is fine.
    fn remove(&self, name: &str) -> io::Result<()>;
}

/// A disk of which some directories are in an object store.
pub struct ObjectVfs {
    disk: Arc<dyn Vfs>,
    objects: Arc<dyn Objects>,
    /// The directories whose files are in the store, `["seg", "ids"]`, with all that is below them.
    directories: &'static [&'static str],
    /// One file is fetched or removed at a time: none is fetched twice, nor after it was removed.
    fetching: Mutex<()>,
}

impl ObjectVfs {
    /// A disk, and the store that has the files of some of its directories.
    pub fn new(
        disk: Arc<dyn Vfs>,
        objects: Arc<dyn Objects>,
        directories: &'static [&'static str],
    ) -> Self {
        Self { disk, objects, directories, fetching: Mutex::new(()) }
    }

    /// Whether files at a path, or below it, are in the store.
    fn is_stored(&self, path: &str) -> bool {
        let first = path.split('/').next();
        self.directories.iter().any(|directory| Some(*directory) == first)
    }

    /// Fetches a file that is not on the disk. Nothing of it has its name before it is whole and durable.
    fn fetch(&self, path: &str) -> io::Result<()> {
        let _one = self.fetching.lock();
        if self.disk.open(path).is_ok() {
            return Ok(());
        }
        let (directory, name) = path.rsplit_once('/').unwrap_or(("", path));
        let fetched = format!("tmp/{name}.fetched");
        ignore_missing(self.disk.remove(&fetched))?;
        let file = self.disk.create(&fetched)?;
        self.objects.get(path, &*file)?;
        file.sync()?;
        self.disk.create_dir(directory)?;
        self.disk.rename(&fetched, path)
    }

    /// What `read` gives of a file, which is fetched where the disk lacks it.
    fn read<T>(&self, path: &str, read: impl Fn() -> io::Result<T>) -> io::Result<T> {
        match read() {
            Err(error) if error.kind() == io::ErrorKind::NotFound && self.is_stored(path) => {
                self.fetch(path)?;
                read()
            }
            other => other,
        }
    }

    /// The first parts of the names in the store below a directory, and whether there is more behind each: `("l0", true)` of `seg`.
    fn stored_names(&self, path: &str) -> io::Result<Vec<(String, bool)>> {
        if !self.is_stored(path) {
            return Ok(Vec::new());
        }
        let prefix = format!("{path}/");
        let names = self.objects.list(&prefix)?;
        let below = names.iter().filter_map(|name| name.strip_prefix(&prefix));
        let first = below.map(|name| match name.split_once('/') {
            Some((directory, _)) => (directory.to_owned(), true),
            None => (name.to_owned(), false),
        });
        Ok(first.collect())
    }

    /// Names on the disk and in the store.
    fn names(
        &self,
        path: &str,
        on_disk: io::Result<Vec<String>>,
        are_directories: bool,
    ) -> io::Result<Vec<String>> {
        let stored = self.stored_names(path)?.into_iter();
        let stored =
            stored.filter(|(_, has_more)| *has_more == are_directories).map(|(name, _)| name);
        let mut names: BTreeSet<String> = stored.collect();
        match on_disk {
            // A directory that only the store has.
            Err(error) if error.kind() == io::ErrorKind::NotFound && !names.is_empty() => {}
            on_disk => names.extend(on_disk?),
        }
        Ok(names.into_iter().collect())
    }
}

/// A name that is not there was to be removed anyway.
fn ignore_missing(removed: io::Result<()>) -> io::Result<()> {
    match removed {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

impl Vfs for ObjectVfs {
    fn create(&self, path: &str) -> io::Result<Arc<dyn VfsFile>> {
        if self.is_stored(path) {
            // It would never be uploaded. Files are made under another name, and get theirs when they are whole.
            return Err(io::ErrorKind::Unsupported.into());
        }
        self.disk.create(path)
    }

    fn open(&self, path: &str) -> io::Result<Arc<dyn VfsFile>> {
        self.read(path, || self.disk.open(path))
    }

    fn map(&self, path: &str) -> io::Result<View> {
        self.read(path, || self.disk.map(path))
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        if self.is_stored(to) {
            let file = self.disk.open(from)?;
            self.objects.put(to, &*file)?;
        }
        self.disk.rename(from, to)
    }

    fn remove(&self, path: &str) -> io::Result<()> {
        if !self.is_stored(path) {
            return self.disk.remove(path);
        }
        let _one = self.fetching.lock();
        self.objects.remove(path)?;
        ignore_missing(self.disk.remove(path))
    }

    fn discard_copy(&self, path: &str) -> io::Result<bool> {
        if !self.is_stored(path) {
            return Ok(false);
        }
        let _one = self.fetching.lock();
        match self.disk.remove(path) {
            Ok(()) => Ok(true),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(error) => Err(error),
        }
    }

    fn is_shared(&self) -> bool {
        true
    }

    fn link(&self, from: &str, to: &str) -> io::Result<()> {
        self.read(from, || self.disk.open(from))?;
        self.disk.link(from, to)
    }

    fn create_dir(&self, path: &str) -> io::Result<()> {
        self.disk.create_dir(path)
    }

    fn remove_dir(&self, path: &str) -> io::Result<()> {
        self.disk.remove_dir(path)
    }

    fn sync_dir(&self, path: &str) -> io::Result<()> {
        self.disk.sync_dir(path)
    }

    fn list(&self, path: &str) -> io::Result<Vec<String>> {
        self.names(path, self.disk.list(path), false)
    }

    fn list_dirs(&self, path: &str) -> io::Result<Vec<String>> {
        self.names(path, self.disk.list_dirs(path), true)
    }

    fn free_bytes(&self) -> io::Result<u64> {
        self.disk.free_bytes()
    }

    fn lock(&self, path: &str) -> io::Result<Option<Box<dyn Any + Send + Sync>>> {
        self.disk.lock(path)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::vfs::{read_all, sim::SimVfs, sim_objects::SimObjects};

    const DIRECTORIES: &[&str] = &["seg", "ckpt"];

    fn disk() -> SimVfs {
        let disk = SimVfs::new();
        for directory in ["tmp", "seg/l0", "ckpt", "wal"] {
            disk.create_dir(directory).unwrap();
        }
        disk
    }

    fn over(disk: &SimVfs, objects: &SimObjects) -> ObjectVfs {
        let (disk, objects) = (Arc::new(disk.clone()), Arc::new(objects.clone()));
        ObjectVfs::new(disk, objects, DIRECTORIES)
    }

    fn write(vfs: &ObjectVfs, name: &str, bytes: &[u8]) -> io::Result<()> {
        ignore_missing(vfs.remove("tmp/new"))?;
        let file = vfs.create("tmp/new")?;
        file.write_at(0, bytes)?;
        file.sync()?;
        vfs.rename("tmp/new", name)
    }

    #[test]
    fn a_file_is_there_for_another_disk_and_goes_from_both() {
        let (one, objects) = (disk(), SimObjects::default());
        let vfs = over(&one, &objects);
        write(&vfs, "seg/l0/a.seg", b"rows").unwrap();
        write(&vfs, "wal/1.wal", b"records").unwrap();
        let other = disk();
        let vfs = over(&other, &objects);
        assert_eq!(vfs.list("seg/l0").unwrap(), ["a.seg"]);
        assert_eq!(vfs.list("wal").unwrap(), [] as [&str; 0], "the log is not in the store");
        assert_eq!(&*vfs.map("seg/l0/a.seg").unwrap(), b"rows");
        assert!(other.files().contains_key("seg/l0/a.seg"), "it is cached");
        vfs.link("seg/l0/a.seg", "copy").unwrap();
        assert_eq!(read_all(&*vfs.open("copy").unwrap()).unwrap(), b"rows");
        vfs.remove("seg/l0/a.seg").unwrap();
        assert_eq!(vfs.map("seg/l0/a.seg").err().unwrap().kind(), io::ErrorKind::NotFound);
        // The first disk has a copy that nothing names.
        assert_eq!(over(&one, &objects).list("seg/l0").unwrap(), ["a.seg"]);
        over(&one, &objects).remove("seg/l0/a.seg").unwrap();
        assert!(over(&one, &objects).list("seg/l0").unwrap().is_empty());
    }

    #[test]
    fn directories_of_the_store_are_listed_where_the_disk_has_none() {
        let (one, objects) = (disk(), SimObjects::default());
        one.create_dir("seg/2026-11").unwrap();
        write(&over(&one, &objects), "seg/2026-11/b.seg", b"rows").unwrap();
        let vfs = over(&disk(), &objects);
        assert_eq!(vfs.list_dirs("seg").unwrap(), ["2026-11", "l0"]);
        assert_eq!(vfs.list("seg/2026-11").unwrap(), ["b.seg"]);
        assert_eq!(vfs.list("seg/none").err().unwrap().kind(), io::ErrorKind::NotFound);
        assert_eq!(&*vfs.map("seg/2026-11/b.seg").unwrap(), b"rows");
    }

    #[test]
    fn a_name_is_given_on_the_disk_only_once_the_store_has_the_file() {
        let (one, objects) = (disk(), SimObjects::default());
        let vfs = over(&one, &objects);
        objects.fail_at(0, io::ErrorKind::TimedOut);
        assert_eq!(
            write(&vfs, "seg/l0/a.seg", b"rows").err().unwrap().kind(),
            io::ErrorKind::TimedOut
        );
        assert!(vfs.list("seg/l0").unwrap().is_empty());
        write(&vfs, "seg/l0/a.seg", b"rows").unwrap();
        // The same again, but never another file under the same name.
        write(&vfs, "seg/l0/a.seg", b"rows").unwrap();
        let again = write(&vfs, "seg/l0/a.seg", b"other rows").err().unwrap();
        assert_eq!(again.kind(), io::ErrorKind::AlreadyExists);
        assert_eq!(
            vfs.create("seg/l0/d.seg").err().unwrap().kind(),
            io::ErrorKind::Unsupported,
            "it would stay on the disk"
        );
        objects.lose_answer_at(0, io::ErrorKind::TimedOut);
        assert!(write(&vfs, "seg/l0/c.seg", b"more").is_err());
        write(&vfs, "seg/l0/c.seg", b"more").unwrap();
        // A file that is fetched and cut off is not there.
        let other = disk();
        objects.fail_at(0, io::ErrorKind::ConnectionReset);
        assert!(over(&other, &objects).map("seg/l0/a.seg").is_err());
        assert!(!other.files().contains_key("seg/l0/a.seg"));
        assert_eq!(&*over(&other, &objects).map("seg/l0/a.seg").unwrap(), b"rows");
    }
}
