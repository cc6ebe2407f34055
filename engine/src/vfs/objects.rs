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
//! map("seg/2026-11-02/019b….seg")                  where the disk is small: its last 512 KiB, and the rest as it is read
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

use super::{
    Vfs, VfsFile, View,
    object_store::{Objects, ignore_missing},
    partial_copy::{OpenedObject, PartialCopies},
};

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
    /// Where files are copied as they are read, and not as wholes.
    parts: Option<PartialCopies>,
}

/// The directory whose files may be copied in parts: of the others all is read.
const IN_PARTS: &str = "seg";

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
        let removed = Mutex::default();
        Self { disk, objects, directories, claimed, released, removed, parts: None }
    }

    /// The same, but segments are copied as they are read: the disk has less room than all of them need.
    ///
    /// Errors: those of the disk.
    pub fn in_parts(mut self) -> io::Result<Self> {
        self.parts = Some(PartialCopies::new(Arc::clone(&self.disk), Arc::clone(&self.objects))?);
        Ok(self)
    }

    /// Calls by which parts of files were fetched so far, and the bytes that came.
    pub fn part_reads(&self) -> (u64, u64) {
        self.parts.as_ref().map(PartialCopies::reads).unwrap_or_default()
    }

    /// The partial copies, where those of this file are.
    fn parts_of(&self, path: &str) -> Option<&PartialCopies> {
        let first = path.split('/').next();
        self.parts.as_ref().filter(|_| first == Some(IN_PARTS) && self.is_stored(path))
    }

    fn check_not_removed(&self, path: &str) -> io::Result<()> {
        match self.removed.lock().has(path) {
            true => Err(io::ErrorKind::NotFound.into()),
            false => Ok(()),
        }
    }

    /// Opens a file of which the disk has no copy.
    fn map_parts(&self, parts: &PartialCopies, path: &str) -> io::Result<View> {
        let claim = self.claim(path);
        if let Ok(view) = self.disk.map(path) {
            return Ok(view);
        }
        self.check_not_removed(path)?;
        match parts.open(path)? {
            OpenedObject::Whole(bytes) => {
                self.write_copy(&claim, &|file| file.write_at(0, &bytes), None)?;
                self.disk.map(path)
            }
            OpenedObject::Parts(view) => {
                // Removed or discarded meanwhile, by somebody who does not wait for this.
                let removed = self.removed.lock();
                match removed.has(path) || claim.is_abandoned() {
                    true => Err(io::ErrorKind::NotFound.into()),
                    false => Ok(view),
                }
            }
        }
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
        let file = match self.disk.open(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
            file => file?,
        };
        // Before the claim: where the copy goes in between it is fetched, which takes one.
        if !is_whole(path) {
            return Ok(false);
        }
        let _claim = self.claim(path);
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
        // Of one that is copied as it is read, a part is enough to open it.
        if self.is_stored(path) && self.parts_of(path).is_none() {
            self.fetch(path)
        } else {
            Ok(())
        }
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
        let get = |file: &dyn VfsFile| self.objects.get(claim.path, file);
        self.write_copy(claim, &get, check)
    }

    fn write_copy(
        &self,
        claim: &Claim<'_>,
        write: &dyn Fn(&dyn VfsFile) -> io::Result<()>,
        check: Option<&dyn Fn(View) -> io::Result<()>>,
    ) -> io::Result<()> {
        let path = claim.path;
        self.check_not_removed(path)?;
        let (directory, name) = path.rsplit_once('/').unwrap_or(("", path));
        let fetched = format!("tmp/{name}.fetched");
        ignore_missing(self.disk.remove(&fetched))?;
        let get = || -> io::Result<()> {
            let file = self.create(&fetched)?;
            write(&*file)?;
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
        match (self.disk.open(path), self.parts_of(path)) {
            (Err(error), Some(parts)) if error.kind() == io::ErrorKind::NotFound => {
                self.check_not_removed(path)?;
                parts.open_whole(path)
            }
            (opened, Some(_)) => opened,
            (_, None) => self.read(path, || self.disk.open(path)),
        }
    }

    fn map(&self, path: &str) -> io::Result<View> {
        let Some(parts) = self.parts_of(path) else {
            return self.read(path, || self.disk.map(path));
        };
        match self.disk.map(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => self.map_parts(parts, path),
            view => view,
        }
    }

    fn map_evicted(&self, path: &str, len: u64) -> io::Result<View> {
        let parts = self.parts_of(path).ok_or(io::ErrorKind::Unsupported)?;
        let removed = self.removed.lock();
        // Somebody fetches it, which may take minutes.
        if self.claimed.lock().contains_key(path) {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        if removed.has(path) {
            return Err(io::ErrorKind::NotFound.into());
        }
        let view = parts.replace(path, len)?;
        ignore_missing(self.disk.remove(path))?;
        Ok(view)
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
        if let Some(parts) = self.parts_of(path) {
            parts.discard(path)?;
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
        let had_parts = self.parts_of(path).map_or(Ok(false), |parts| parts.discard(path))?;
        match self.disk.remove(path) {
            Ok(()) => Ok(true),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(had_parts),
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

    fn has_copy(&self, path: &str) -> bool {
        self.disk.open(path).is_ok()
    }

    fn copies_parts(&self) -> bool {
        self.parts.is_some()
    }

    fn bytes_of_parts(&self) -> u64 {
        self.parts.as_ref().map_or(0, PartialCopies::bytes)
    }

    fn link(&self, from: &str, to: &str) -> io::Result<()> {
        if self.parts_of(from).is_some() {
            // The disk may have no room for a copy of all that has none.
            return self.disk.link(from, to).map_err(|error| match error.kind() {
                io::ErrorKind::NotFound => io::ErrorKind::Unsupported.into(),
                _ => error,
            });
        }
        self.read(from, || self.disk.open(from))?;
        self.disk.link(from, to)
    }

    fn len_of(&self, path: &str) -> io::Result<u64> {
        match (self.disk.len_of(path), self.parts_of(path)) {
            (Err(error), Some(parts)) if error.kind() == io::ErrorKind::NotFound => {
                parts.len_of(path)
            }
            (len, Some(_)) => len,
            (_, None) => self.open(path)?.len(),
        }
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
mod tests;
