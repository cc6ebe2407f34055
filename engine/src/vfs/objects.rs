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
//! remove("seg/l0/019a….seg")                       on the disk, and for whoever asks this disk; the object stays until the second sweep() after it
//! purge()                                          objects of all that was removed go now: an erasure is done when they are gone
//! ```
//!
//! Objects stay for a while because the log may lose its newest records where it is kept, and then names files again that it had let go.

use std::{
    any::Any,
    collections::{BTreeMap, BTreeSet},
    io,
    sync::Arc,
};

use parking_lot::{Condvar, Mutex};

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
    /// All names that begin with `prefix`, sorted, with the number of bytes of each: `seg/` has `("seg/l0/019a….seg", 245179)`.
    fn list_sizes(&self, prefix: &str) -> io::Result<Vec<(String, u64)>>;
    /// The same without sizes.
    fn list(&self, prefix: &str) -> io::Result<Vec<String>> {
        Ok(self.list_sizes(prefix)?.into_iter().map(|(name, _)| name).collect())
    }
    /// Removes a name; one that is not there is fine.
    fn remove(&self, name: &str) -> io::Result<()>;
}

/// Room that a disk must have to be of use.
const PROBE_BYTES: u64 = 8 << 20;

/// A disk of which some directories are in an object store.
pub struct ObjectVfs {
    disk: Arc<dyn Vfs>,
    objects: Arc<dyn Objects>,
    /// The directories whose files are in the store, `["seg", "ids"]`, with all that is below them.
    directories: &'static [&'static str],
    /// Files that are being fetched, uploaded again or deleted: none of it happens twice at once. A fetch whose file is not wanted any more is *abandoned*.
    claimed: Mutex<BTreeMap<String, bool>>,
    released: Condvar,
    removed: Mutex<Removed>,
}

/// The right to fetch, upload or delete one file. A large one does not hold up others.
struct Claim<'a> {
    vfs: &'a ObjectVfs,
    path: &'a str,
}

impl Claim<'_> {
    fn is_abandoned(&self) -> bool {
        self.vfs.claimed.lock().get(self.path).copied().unwrap_or(false)
    }
}

impl Drop for Claim<'_> {
    fn drop(&mut self) {
        self.vfs.claimed.lock().remove(self.path);
        self.vfs.released.notify_all();
    }
}

/// How the object store and the files that are needed differ.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Reconciled {
    /// Needed, and neither there nor on the disk as a whole. Sorted as they were named.
    pub lost: Vec<String>,
    /// There, not needed, and not removed by this process. Sorted.
    pub unnamed: Vec<String>,
}

/// Paths that were removed, and whose objects are still there.
#[derive(Default)]
struct Removed {
    /// Since the last sweep.
    young: BTreeSet<String>,
    /// Since before the last sweep.
    old: BTreeSet<String>,
}

impl Removed {
    fn has(&self, path: &str) -> bool {
        self.young.contains(path) || self.old.contains(path)
    }

    fn forget(&mut self, path: &str) {
        self.young.remove(path);
        self.old.remove(path);
    }
}

impl ObjectVfs {
    /// A disk, and the store that has the files of some of its directories.
    pub fn new(
        disk: Arc<dyn Vfs>,
        objects: Arc<dyn Objects>,
        directories: &'static [&'static str],
    ) -> Self {
        let (claimed, released) = (Mutex::default(), Condvar::new());
        Self { disk, objects, directories, claimed, released, removed: Mutex::default() }
    }

    /// Waits until nobody else has the claim of the file.
    fn claim<'a>(&'a self, path: &'a str) -> Claim<'a> {
        let mut claimed = self.claimed.lock();
        while claimed.contains_key(path) {
            self.released.wait(&mut claimed);
        }
        claimed.insert(path.to_owned(), false);
        Claim { vfs: self, path }
    }

    /// Deletes the objects of what was removed before the last sweep. Returns how many.
    ///
    /// Errors: those of the store; what could not be deleted is tried again by the next sweep.
    pub fn sweep(&self) -> io::Result<usize> {
        let old = self.removed.lock().old.clone();
        self.delete(&old)?;
        let mut removed = self.removed.lock();
        removed.old = std::mem::take(&mut removed.young);
        Ok(old.len())
    }

    /// Compares the files that the store of records needs with what is there. Uploads those of `needed` that are missing and of which the disk has a copy that is whole, while it may.
    ///
    /// Errors: those of the object store; `PermissionDenied` where it may not any more.
    pub fn reconcile(
        &self,
        needed: &[String],
        is_whole: &dyn Fn(&str) -> bool,
        may_upload: &dyn Fn() -> bool,
    ) -> io::Result<Reconciled> {
        let mut unnamed = BTreeMap::new();
        for directory in self.directories {
            unnamed.extend(self.objects.list_sizes(&format!("{directory}/"))?);
        }
        let mut lost = Vec::new();
        for path in needed.iter().filter(|path| self.is_stored(path)) {
            let stored = unnamed.remove(path);
            if !self.is_intact(path, stored)?
                && !self.upload_again(path, stored.is_some(), is_whole, may_upload)?
            {
                lost.push(path.clone());
            }
        }
        let removed = self.removed.lock();
        let unnamed = unnamed.into_keys().filter(|path| !removed.has(path)).collect();
        Ok(Reconciled { lost, unnamed })
    }

    /// Whether an object is there that is as long as the copy on the disk, if there is one: another one was cut off, or replaced.
    fn is_intact(&self, path: &str, stored: Option<u64>) -> io::Result<bool> {
        let Some(stored) = stored else { return Ok(false) };
        match self.disk.open(path) {
            Ok(file) => Ok(file.len()? == stored),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(true),
            Err(error) => Err(error),
        }
    }

    /// Returns whether the object is there now, or needs not be. One that `is_there` and is not what it was gives way.
    fn upload_again(
        &self,
        path: &str,
        is_there: bool,
        is_whole: &dyn Fn(&str) -> bool,
        may_upload: &dyn Fn() -> bool,
    ) -> io::Result<bool> {
        let _claim = self.claim(path);
        let file = match self.disk.open(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
            file => file?,
        };
        if !is_whole(path) {
            return Ok(false);
        }
        // Asked last: what was removed meanwhile, maybe for an erasure, must not come back.
        if self.removed.lock().has(path) {
            return Ok(true);
        }
        if !may_upload() {
            return Err(io::ErrorKind::PermissionDenied.into());
        }
        if is_there {
            self.objects.remove(path)?;
        }
        self.objects.put(path, &*file).map(|()| true)
    }

    /// Fetches a file that another process has uploaded, where the disk lacks it.
    ///
    /// Errors: those of the store and the disk.
    pub fn prefetch(&self, path: &str) -> io::Result<()> {
        if self.is_stored(path) { self.fetch(path) } else { Ok(()) }
    }

    /// Deletes objects of paths that were removed.
    fn delete(&self, paths: &BTreeSet<String>) -> io::Result<()> {
        for path in paths {
            let _claim = self.claim(path);
            // It may have been uploaded again meanwhile.
            if self.removed.lock().has(path) {
                self.objects.remove(path)?;
                self.removed.lock().forget(path);
            }
        }
        Ok(())
    }

    fn create_parent(&self, path: &str) -> io::Result<()> {
        path.rsplit_once('/').map_or(Ok(()), |(directory, _)| self.disk.create_dir(directory))
    }

    /// Whether the disk takes writes: a file of some size is made on it.
    ///
    /// Errors: why it does not.
    pub fn probe_disk(&self) -> io::Result<()> {
        const PATH: &str = "tmp/probe";
        ignore_missing(self.disk.remove(PATH))?;
        let file = self.create(PATH)?;
        let tried = file.allocate(PROBE_BYTES).and_then(|()| file.sync());
        self.disk.remove(PATH)?;
        tried
    }

    /// Whether files at a path, or below it, are in the store.
    fn is_stored(&self, path: &str) -> bool {
        let first = path.split('/').next();
        self.directories.iter().any(|directory| Some(*directory) == first)
    }

    /// Fetches a file that is not on the disk. Nothing of it has its name before it is whole and durable.
    fn fetch(&self, path: &str) -> io::Result<()> {
        let claim = self.claim(path);
        if self.disk.open(path).is_ok() {
            return Ok(());
        }
        self.fetch_claimed(&claim, None)
    }

    fn fetch_claimed(
        &self,
        claim: &Claim<'_>,
        check: Option<&dyn Fn(View) -> io::Result<()>>,
    ) -> io::Result<()> {
        let path = claim.path;
        if self.removed.lock().has(path) {
            return Err(io::ErrorKind::NotFound.into());
        }
        let (directory, name) = path.rsplit_once('/').unwrap_or(("", path));
        let fetched = format!("tmp/{name}.fetched");
        ignore_missing(self.disk.remove(&fetched))?;
        let get = || -> io::Result<()> {
            let file = self.create(&fetched)?;
            self.objects.get(path, &*file)?;
            file.sync()?;
            check.map_or(Ok(()), |check| check(self.disk.map(&fetched)?))?;
            self.disk.create_dir(directory)?;
            // Removed or discarded meanwhile, by somebody who does not wait for this.
            let removed = self.removed.lock();
            if removed.has(path) || claim.is_abandoned() {
                return Err(io::ErrorKind::NotFound.into());
            }
            self.disk.rename(&fetched, path)
        };
        // A part of it must not stay: it may have rows that are erased next.
        get().inspect_err(|_| drop(self.disk.remove(&fetched)))
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
        let mut names = self.objects.list(&prefix)?;
        let removed = self.removed.lock();
        names.retain(|name| !removed.has(name));
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
        match self.disk.create(path) {
            // The directory may be deleted at any time, and is made again.
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                self.create_parent(path)?;
                self.disk.create(path)
            }
            created => created,
        }
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
            // Not while it is being deleted under the same name.
            let claim = self.claim(to);
            self.removed.lock().forget(to);
            drop(claim);
            self.objects.put(to, &*file)?;
            self.create_parent(to)?;
        }
        self.disk.rename(from, to)
    }

    fn remove(&self, path: &str) -> io::Result<()> {
        if !self.is_stored(path) {
            return self.disk.remove(path);
        }
        // A fetch that is under way sees that it was removed; it is not waited for.
        let mut removed = self.removed.lock();
        if !removed.has(path) {
            removed.young.insert(path.to_owned());
        }
        ignore_missing(self.disk.remove(path))
    }

    fn remove_new(&self, path: &str) -> io::Result<()> {
        self.remove(path)?;
        match self.is_stored(path) {
            true => self.delete(&BTreeSet::from([path.to_owned()])),
            false => Ok(()),
        }
    }

    fn purge(&self) -> io::Result<()> {
        let removed = self.removed.lock();
        let all = removed.young.union(&removed.old).cloned().collect();
        drop(removed);
        self.delete(&all)
    }

    fn discard_copy(&self, path: &str) -> io::Result<bool> {
        if !self.is_stored(path) {
            return Ok(false);
        }
        // With the lock under which a fetch gives the file its name.
        let _removed = self.removed.lock();
        if let Some(is_abandoned) = self.claimed.lock().get_mut(path) {
            *is_abandoned = true;
        }
        match self.disk.remove(path) {
            Ok(()) => Ok(true),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(error) => Err(error),
        }
    }

    fn replace_copy(&self, path: &str, check: &dyn Fn(View) -> io::Result<()>) -> io::Result<()> {
        let claim = self.claim(path);
        self.fetch_claimed(&claim, Some(check))
    }

    fn list_below(&self, path: &str) -> io::Result<Vec<String>> {
        if !self.is_stored(path) {
            return self.disk.list_below(path);
        }
        let on_disk = match self.disk.list_below(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Vec::new(),
            names => names?,
        };
        let mut names: BTreeSet<String> =
            self.objects.list(&format!("{path}/"))?.into_iter().collect();
        names.extend(on_disk);
        let removed = self.removed.lock();
        Ok(names.into_iter().filter(|name| !removed.has(name)).collect())
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
        vfs.purge().unwrap();
        assert_eq!(vfs.map("seg/l0/a.seg").err().unwrap().kind(), io::ErrorKind::NotFound);
        // The first disk has a copy that nothing names.
        assert_eq!(over(&one, &objects).list("seg/l0").unwrap(), ["a.seg"]);
        over(&one, &objects).remove("seg/l0/a.seg").unwrap();
        assert!(over(&one, &objects).list("seg/l0").unwrap().is_empty());
    }

    #[test]
    fn an_object_stays_for_a_while_after_its_file_was_removed() {
        let (one, objects) = (disk(), SimObjects::default());
        let vfs = over(&one, &objects);
        let stored = || objects.list("seg/").unwrap();
        for name in ["seg/l0/a.seg", "seg/l0/b.seg", "seg/l0/c.seg"] {
            write(&vfs, name, b"rows").unwrap();
        }
        vfs.remove("seg/l0/a.seg").unwrap();
        assert_eq!(vfs.list("seg/l0").unwrap(), ["b.seg", "c.seg"], "it is gone for this disk");
        assert_eq!(vfs.map("seg/l0/a.seg").err().unwrap().kind(), io::ErrorKind::NotFound);
        assert_eq!(vfs.sweep().unwrap(), 0);
        // A log that has lost its newest records may name it again.
        assert_eq!(&*over(&disk(), &objects).map("seg/l0/a.seg").unwrap(), b"rows");
        vfs.remove("seg/l0/b.seg").unwrap();
        objects.fail_at(0, io::ErrorKind::TimedOut);
        assert!(vfs.sweep().is_err());
        assert_eq!(vfs.sweep().unwrap(), 1, "it is tried again");
        assert_eq!(stored(), ["seg/l0/b.seg", "seg/l0/c.seg"]);
        // What is uploaded again stays.
        write(&vfs, "seg/l0/b.seg", b"rows").unwrap();
        assert_eq!(vfs.sweep().unwrap(), 0);
        vfs.remove("seg/l0/c.seg").unwrap();
        vfs.purge().unwrap();
        assert_eq!(stored(), ["seg/l0/b.seg"]);
    }

    #[test]
    fn an_object_that_the_store_has_lost_is_uploaded_again_where_there_is_a_copy() {
        let (one, objects) = (disk(), SimObjects::default());
        let vfs = over(&one, &objects);
        let names = ["seg/l0/a.seg", "seg/l0/b.seg", "seg/l0/c.seg"].map(str::to_owned);
        for name in &names {
            write(&vfs, name, b"rows").unwrap();
        }
        objects.remove("seg/l0/a.seg").unwrap();
        objects.remove("seg/l0/b.seg").unwrap();
        one.remove("seg/l0/b.seg").unwrap();
        let compare = |names, is_whole: bool, may| vfs.reconcile(names, &|_| is_whole, &|| may);
        let compared = compare(&names[..2], true, true).unwrap();
        let expected = Reconciled { lost: vec![names[1].clone()], unnamed: vec![names[2].clone()] };
        assert_eq!(compared, expected);
        assert_eq!(objects.list("seg/").unwrap(), ["seg/l0/a.seg", "seg/l0/c.seg"]);
        objects.remove("seg/l0/a.seg").unwrap();
        assert!(compare(&names[..1], true, false).is_err(), "it may not any more");
        assert_eq!(compare(&names[..1], false, true).unwrap().lost, names[..1], "damaged");
        // One that was cut off is replaced.
        write(&vfs, "seg/l0/a.seg", b"rows").unwrap();
        objects.remove("seg/l0/a.seg").unwrap();
        let short = disk();
        short.set_file("short", Some(b"ro".to_vec()));
        objects.put("seg/l0/a.seg", &*short.open("short").unwrap()).unwrap();
        assert_eq!(compare(&names[..1], false, true).unwrap().lost, names[..1]);
        assert!(compare(&names[..1], true, true).unwrap().lost.is_empty());
        assert_eq!(objects.list_sizes("seg/l0/a").unwrap(), [(names[0].clone(), 4)]);
        objects.remove("seg/l0/a.seg").unwrap();
        // What was removed in between must not come back.
        vfs.remove("seg/l0/c.seg").unwrap();
        vfs.purge().unwrap();
        assert_eq!(compare(&names[..1], true, true).unwrap(), Reconciled::default());
    }

    #[test]
    fn a_file_that_is_removed_or_discarded_while_it_is_fetched_does_not_come() {
        let (one, objects) = (disk(), SimObjects::default());
        write(&over(&one, &objects), "seg/l0/a.seg", b"rows").unwrap();
        for removes in [true, false] {
            let other = disk();
            let vfs = over(&other, &objects);
            let claim = vfs.claim("seg/l0/a.seg");
            // Neither waits for the fetch.
            match removes {
                true => vfs.remove("seg/l0/a.seg").unwrap(),
                false => assert!(!vfs.discard_copy("seg/l0/a.seg").unwrap()),
            }
            let fetched = vfs.fetch_claimed(&claim, None);
            assert_eq!(fetched.err().unwrap().kind(), io::ErrorKind::NotFound);
            drop(claim);
            assert!(other.files().is_empty(), "{:?}", other.files());
        }
        // A fetch that fails leaves nothing, and a copy is replaced only by one that is whole.
        let other = disk();
        let vfs = over(&other, &objects);
        objects.fail_at(0, io::ErrorKind::ConnectionReset);
        assert!(vfs.prefetch("seg/l0/a.seg").is_err());
        assert!(other.files().is_empty());
        other.set_file("seg/l0/a.seg", Some(b"dust".to_vec()));
        let refuses = |_: View| Err(io::ErrorKind::InvalidData.into());
        assert!(vfs.replace_copy("seg/l0/a.seg", &refuses).is_err());
        assert_eq!(other.files()["seg/l0/a.seg"], b"dust");
        vfs.replace_copy("seg/l0/a.seg", &|_| Ok(())).unwrap();
        assert_eq!(&*vfs.map("seg/l0/a.seg").unwrap(), b"rows");
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
