//! A disk in memory that forgets what was not synced.
//!
//! Each file keeps two contents: what a reader sees now, and what would survive a power loss, with
//! the list of writes between the two. Each directory does the same with its names. A power loss
//! keeps an arbitrary subset of the unsynced writes, torn at sectors of 512 bytes, and of the
//! unsynced changes of names. Lengths may survive without contents.
//!
//! Every operation that changes something counts as one step. A test asks for a power loss at step
//! k, or for an error there, and replays the same history for each k.
//!
//! ```text
//! steps   0 create("a")   1 write "old"   2 sync   3 sync_dir("")   4 write "new"
//!
//! after_power_loss              "a" with "old", "new", or sectors of both; without step 3 perhaps no "a" at all
//! after_kill                    "a" with "new", which a later loss of power may still take
//! ```

use std::{
    any::Any,
    collections::{BTreeMap, BTreeSet},
    io,
    sync::Arc,
};

use parking_lot::Mutex;

use super::{Vfs, VfsFile, View};
use crate::base::rng::Rng;

/// Unit in which a write can be torn: disks promise no more.
const SECTOR: usize = 512;

/// Failure of a step; a crash test plays each of them at each step of a history.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// Power is lost before the step: this and every later operation fails.
    PowerLoss,
    /// The step fails with an input/output error; a failed sync also drops the unsynced writes
    /// from what will ever reach the disk, as Linux does.
    Error,
    /// The step fails because the disk is full, if it needs room; reserved room can be written.
    Full,
    /// The same of a step that makes something durable: some systems find room only then.
    SyncFull,
}

/// Faults that a simulated disk plays.
#[derive(Debug, Clone, Copy)]
pub struct FaultPlan {
    /// Number of the step that meets the fault, counted from 0.
    pub at: u64,
    /// Fault that the step meets.
    pub fault: Fault,
    /// Whether every later step fails alike: a broken disk, not a single error.
    pub sticky: bool,
}

/// Content of unsynced ranges of a file after a failed sync: systems differ.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum FailedSync {
    /// The written bytes, although they will never reach the disk.
    #[default]
    New,
    /// The bytes before the writes.
    Old,
    /// Zeros where the unsynced writes were.
    Zero,
}

/// The simulated disk. Clones share it.
#[derive(Clone, Default)]
pub struct SimVfs {
    disk: Arc<Mutex<Disk>>,
}

#[derive(Default)]
struct Disk {
    inodes: Vec<Inode>,
    names: BTreeMap<String, usize>,
    durable_names: BTreeMap<String, usize>,
    pending_names: Vec<NameChange>,
    directories: BTreeSet<String>,
    /// Directories whose own name was synced; the root always is.
    durable_directories: BTreeSet<String>,
    /// What can be read of a file after its sync failed.
    failed_sync: FailedSync,
    /// Room that the disk claims to have; as much as can be without it.
    free_bytes: Option<u64>,
    /// A place whose syncs do nothing, for tests of the tests.
    unsynced: Option<&'static str>,
    locked: BTreeSet<String>,
    step: u64,
    plan: Option<FaultPlan>,
    /// A directory on a disk of its own: no links lead into it or out of it.
    own_disk: Option<&'static str>,
    /// Files whose name ends like this find no room.
    full_for: Option<&'static str>,
    lost_power: bool,
}

/// A file, whatever its names: the content that is read, the one that would survive, and the writes between the two.
#[derive(Default, Clone)]
struct Inode {
    content: Vec<u8>,
    durable: Vec<u8>,
    pending: Vec<Write>,
}

/// A change that was not synced: bytes at an offset, or a length.
#[derive(Clone)]
enum Write {
    Bytes { offset: usize, bytes: Vec<u8> },
    Length(usize),
}

/// A change of names that was not synced, durable once one of its directories is.
#[derive(Clone)]
struct NameChange {
    directories: [String; 2],
    remove: Option<String>,
    add: Option<(String, usize)>,
}

/// Effect of a call on the disk, which decides the faults that it can meet.
enum CallKind {
    /// Needs room on the disk.
    Grow,
    /// Changes what is there.
    Change,
    /// Makes it durable.
    Sync,
}

impl Disk {
    /// Counts a step and plays the fault that is planned for it; `false` is a sync that fails after doing its harm.
    fn step(&mut self, kind: CallKind) -> io::Result<bool> {
        self.alive()?;
        let step = self.step;
        self.step += 1;
        let Some(plan) = self.plan else { return Ok(true) };
        if step != plan.at && !(plan.sticky && step > plan.at) {
            return Ok(true);
        }
        match plan.fault {
            Fault::PowerLoss => {
                self.lost_power = true;
                self.alive().map(|()| true)
            }
            Fault::Error if matches!(kind, CallKind::Sync) => Ok(false),
            Fault::Error => Err(io::Error::other("injected input/output error")),
            Fault::Full if !matches!(kind, CallKind::Grow) => Ok(true),
            Fault::SyncFull if !matches!(kind, CallKind::Sync) => Ok(true),
            Fault::Full | Fault::SyncFull => Err(io::Error::from(io::ErrorKind::StorageFull)),
        }
    }

    fn alive(&self) -> io::Result<()> {
        if self.lost_power { Err(io::Error::other("power was lost")) } else { Ok(()) }
    }

    fn inode(&self, path: &str) -> io::Result<usize> {
        self.names.get(path).copied().ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    fn change(&mut self, change: NameChange) {
        apply_names(&mut self.names, &change);
        self.pending_names.push(change);
    }
}

fn apply_names(names: &mut BTreeMap<String, usize>, change: &NameChange) {
    if let Some(path) = &change.remove {
        names.remove(path);
    }
    if let Some((path, inode)) = &change.add {
        names.insert(path.clone(), *inode);
    }
}

/// Makes a write visible in a content, which is lengthened where it ends before.
fn apply_write(content: &mut Vec<u8>, write: &Write) {
    match write {
        Write::Bytes { offset, bytes } => {
            let end = offset + bytes.len();
            lengthen(content, end);
            content[*offset..end].copy_from_slice(bytes);
        }
        Write::Length(len) => lengthen(content, *len),
    }
}

/// Zeros up to this length. Tests grow files by the million: fresh zeros cost nothing.
fn lengthen(content: &mut Vec<u8>, len: usize) {
    if content.is_empty() {
        *content = vec![0; len];
    } else if content.len() < len {
        content.resize(len, 0);
    }
}

/// The directory of a path, empty for the outermost: `seg/l0` of `seg/l0/a.seg`.
fn directory_of(path: &str) -> String {
    path.rsplit_once('/').map_or_else(String::new, |(directory, _)| directory.to_owned())
}

impl SimVfs {
    /// An empty disk.
    pub fn new() -> Self {
        Self::default()
    }

    /// Number of changing operations so far: a test runs a history once, then once more for each of its steps.
    pub fn steps(&self) -> u64 {
        self.disk.lock().step
    }

    /// Plays `plan` from now on, counting steps from the beginning of the disk. `None` heals it: a disk that was full has room.
    pub fn set_plan(&self, plan: Option<FaultPlan>) {
        self.disk.lock().plan = plan;
    }

    /// From now on, files whose name ends with `suffix` cannot be created for lack of room.
    pub fn set_full_for(&self, suffix: Option<&'static str>) {
        self.disk.lock().full_for = suffix;
    }

    /// From now on, what lies below `place` is on another disk.
    pub fn set_own_disk(&self, place: Option<&'static str>) {
        self.disk.lock().own_disk = place;
    }

    /// From now on, a failed sync leaves this to be read.
    pub fn set_failed_sync(&self, leaves: FailedSync) {
        self.disk.lock().failed_sync = leaves;
    }

    /// From now on, the disk claims to have so much room. Writes succeed all the same: only [`Fault::Full`] and
    /// [`set_full_for`](Self::set_full_for) make them fail.
    pub fn set_free_bytes(&self, bytes: u64) {
        self.disk.lock().free_bytes = Some(bytes);
    }

    /// From now on, syncs of files whose name ends with `place` (where it starts with a dot), or of
    /// directories whose name starts with it (where not; `/` is the outermost one alone), claim success and do
    /// nothing: the order of syncs is right only if a test notices.
    pub fn set_unsynced(&self, place: Option<&'static str>) {
        self.disk.lock().unsynced = place;
    }

    /// The disk as it may be found after power returns: synced state, and any part of the rest. `rng` decides which part: the same
    /// seed loses the same sectors and names.
    pub fn after_power_loss(&self, rng: &dyn Rng) -> Self {
        let disk = self.disk.lock();
        let mut inodes = disk.inodes.clone();
        for inode in &mut inodes {
            for write in std::mem::take(&mut inode.pending) {
                survive(&mut inode.durable, &write, rng);
            }
            inode.content = inode.durable.clone();
        }
        let mut names = disk.durable_names.clone();
        // A journal keeps a prefix of the changes; a weaker one keeps any of them.
        let ordered = rng.below(2) == 0;
        let kept = rng.below(disk.pending_names.len() as u64 + 1) as usize;
        for (index, change) in disk.pending_names.iter().enumerate() {
            if if ordered { index < kept } else { rng.below(2) == 0 } {
                apply_names(&mut names, change);
            }
        }
        let mut directories = disk.durable_directories.clone();
        for directory in disk.directories.difference(&disk.durable_directories) {
            let parent = directory_of(directory);
            if (parent.is_empty() || directories.contains(&parent)) && rng.below(2) == 0 {
                directories.insert(directory.clone());
            }
        }
        // What lies in a directory that was lost cannot be found.
        names.retain(|name, _| {
            let directory = directory_of(name);
            directory.is_empty() || directories.contains(&directory)
        });
        Self {
            disk: Arc::new(Mutex::new(Disk {
                inodes,
                durable_names: names.clone(),
                names,
                durable_directories: directories.clone(),
                directories,
                ..Disk::default()
            })),
        }
    }

    /// The disk as the next process finds it after this one was killed: nothing is lost, but what
    /// was not synced may still be lost by a later power loss.
    pub fn after_kill(&self) -> Self {
        let disk = self.disk.lock();
        Self {
            disk: Arc::new(Mutex::new(Disk {
                inodes: disk.inodes.clone(),
                names: disk.names.clone(),
                durable_names: disk.durable_names.clone(),
                pending_names: disk.pending_names.clone(),
                directories: disk.directories.clone(),
                durable_directories: disk.durable_directories.clone(),
                ..Disk::default()
            })),
        }
    }

    /// The same disk as if no sync had ever worked, for tests of the tests: everything that was
    /// written is still pending.
    pub fn as_if_never_synced(&self) -> Self {
        let disk = self.disk.lock();
        let unsynced = |inode: &Inode| Inode {
            content: inode.content.clone(),
            durable: Vec::new(),
            pending: vec![Write::Bytes { offset: 0, bytes: inode.content.clone() }],
        };
        Self {
            disk: Arc::new(Mutex::new(Disk {
                inodes: disk.inodes.iter().map(unsynced).collect(),
                names: disk.names.clone(),
                durable_names: disk.names.clone(),
                directories: disk.directories.clone(),
                durable_directories: disk.directories.clone(),
                ..Disk::default()
            })),
        }
    }

    /// All files with their visible content, for comparing two disks and for damaging one.
    pub fn files(&self) -> BTreeMap<String, Vec<u8>> {
        let disk = self.disk.lock();
        disk.names
            .iter()
            .map(|(path, &inode)| (path.clone(), disk.inodes[inode].content.clone()))
            .collect()
    }

    /// Replaces or removes a file behind the engine's back, durably: `set_file("SUPER.a", None)` loses a slot of the superblock.
    /// Directories of the path are made.
    pub fn set_file(&self, path: &str, content: Option<Vec<u8>>) {
        let mut disk = self.disk.lock();
        match content {
            Some(content) => {
                let inode = Inode { durable: content.clone(), content, pending: Vec::new() };
                disk.inodes.push(inode);
                let index = disk.inodes.len() - 1;
                disk.names.insert(path.to_owned(), index);
                disk.durable_names.insert(path.to_owned(), index);
                for (at, _) in path.match_indices('/') {
                    disk.directories.insert(path[..at].to_owned());
                    disk.durable_directories.insert(path[..at].to_owned());
                }
            }
            None => {
                disk.names.remove(path);
                disk.durable_names.remove(path);
            }
        }
    }
}

/// Applies a part of an unsynced write, sector by sector: none of it, all of it, or any sectors. A sector is whole or not at all.
fn survive(durable: &mut Vec<u8>, write: &Write, rng: &dyn Rng) {
    match write {
        Write::Length(_) => {
            if rng.below(2) == 0 {
                apply_write(durable, write);
            }
        }
        Write::Bytes { offset, bytes } => {
            let fate = rng.below(4);
            let mut at = 0;
            while at < bytes.len() {
                let end = (at + SECTOR - (offset + at) % SECTOR).min(bytes.len());
                let kept = match fate {
                    0 => false,
                    1 => true,
                    _ => rng.below(2) == 0,
                };
                let piece = if kept { bytes[at..end].to_vec() } else { Vec::new() };
                if kept {
                    apply_write(durable, &Write::Bytes { offset: offset + at, bytes: piece });
                }
                at = end;
            }
        }
    }
}

impl Vfs for SimVfs {
    fn create(&self, path: &str) -> io::Result<Arc<dyn VfsFile>> {
        let mut disk = self.disk.lock();
        disk.step(CallKind::Grow)?;
        if disk.names.contains_key(path) {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        if disk.full_for.is_some_and(|suffix| path.ends_with(suffix)) {
            return Err(io::ErrorKind::StorageFull.into());
        }
        disk.inodes.push(Inode::default());
        let inode = disk.inodes.len() - 1;
        let directory = directory_of(path);
        disk.change(NameChange {
            directories: [directory.clone(), directory],
            remove: None,
            add: Some((path.to_owned(), inode)),
        });
        Ok(Arc::new(SimFile { disk: Arc::clone(&self.disk), inode }))
    }

    fn open(&self, path: &str) -> io::Result<Arc<dyn VfsFile>> {
        let disk = self.disk.lock();
        disk.alive()?;
        let inode = disk.inode(path)?;
        Ok(Arc::new(SimFile { disk: Arc::clone(&self.disk), inode }))
    }

    fn map(&self, path: &str) -> io::Result<View> {
        let disk = self.disk.lock();
        disk.alive()?;
        Ok(View::new(disk.inodes[disk.inode(path)?].content.clone()))
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        let mut disk = self.disk.lock();
        disk.step(CallKind::Change)?;
        let inode = disk.inode(from)?;
        disk.change(NameChange {
            directories: [directory_of(from), directory_of(to)],
            remove: Some(from.to_owned()),
            add: Some((to.to_owned(), inode)),
        });
        Ok(())
    }

    fn remove(&self, path: &str) -> io::Result<()> {
        let mut disk = self.disk.lock();
        disk.step(CallKind::Change)?;
        disk.inode(path)?;
        let directory = directory_of(path);
        disk.change(NameChange {
            directories: [directory.clone(), directory],
            remove: Some(path.to_owned()),
            add: None,
        });
        Ok(())
    }

    fn link(&self, from: &str, to: &str) -> io::Result<()> {
        let mut disk = self.disk.lock();
        disk.step(CallKind::Grow)?;
        if disk.own_disk.is_some_and(|place| from.starts_with(place) != to.starts_with(place)) {
            return Err(io::ErrorKind::CrossesDevices.into());
        }
        let inode = disk.inode(from)?;
        if disk.names.contains_key(to) {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        let directory = directory_of(to);
        disk.change(NameChange {
            directories: [directory.clone(), directory],
            remove: None,
            add: Some((to.to_owned(), inode)),
        });
        Ok(())
    }

    fn create_dir(&self, path: &str) -> io::Result<()> {
        let mut disk = self.disk.lock();
        disk.alive()?;
        for (at, _) in path.match_indices('/') {
            disk.directories.insert(path[..at].to_owned());
        }
        disk.directories.insert(path.to_owned());
        Ok(())
    }

    fn remove_dir(&self, path: &str) -> io::Result<()> {
        let mut disk = self.disk.lock();
        disk.alive()?;
        let below = format!("{path}/");
        let is_used = |name: &String| name.starts_with(&below);
        if disk.names.keys().any(is_used) || disk.directories.iter().any(is_used) {
            return Err(io::ErrorKind::DirectoryNotEmpty.into());
        }
        disk.directories.remove(path);
        disk.durable_directories.remove(path);
        Ok(())
    }

    fn sync_dir(&self, path: &str) -> io::Result<()> {
        let mut disk = self.disk.lock();
        if !disk.step(CallKind::Sync)? {
            return Err(io::Error::other("injected sync error"));
        }
        let is_it = |place| path.starts_with(place) || place == "/" && path.is_empty();
        if disk.unsynced.is_some_and(is_it) {
            return Ok(());
        }
        // Subdirectories are names in this directory, too.
        let inside: Vec<String> =
            disk.directories.iter().filter(|name| directory_of(name) == path).cloned().collect();
        disk.durable_directories.extend(inside);
        let pending = std::mem::take(&mut disk.pending_names);
        for change in pending {
            if change.directories.iter().any(|directory| directory == path) {
                apply_names(&mut disk.durable_names, &change);
            } else {
                disk.pending_names.push(change);
            }
        }
        Ok(())
    }

    fn list(&self, path: &str) -> io::Result<Vec<String>> {
        let disk = self.disk.lock();
        disk.alive()?;
        if !path.is_empty() && !disk.directories.contains(path) {
            return Err(io::ErrorKind::NotFound.into());
        }
        Ok(disk
            .names
            .keys()
            .filter(|name| directory_of(name) == path)
            .map(|name| name.rsplit('/').next().unwrap_or(name).to_owned())
            .collect())
    }

    fn list_dirs(&self, path: &str) -> io::Result<Vec<String>> {
        let disk = self.disk.lock();
        disk.alive()?;
        let inside = disk.directories.iter().filter(|name| directory_of(name) == path);
        Ok(inside.map(|name| name.rsplit('/').next().unwrap_or(name).to_owned()).collect())
    }

    fn free_bytes(&self) -> io::Result<u64> {
        let disk = self.disk.lock();
        disk.alive()?;
        Ok(disk.free_bytes.unwrap_or(u64::MAX))
    }

    fn lock(&self, path: &str) -> io::Result<Option<Box<dyn Any + Send + Sync>>> {
        let mut disk = self.disk.lock();
        disk.alive()?;
        if !disk.locked.insert(path.to_owned()) {
            return Ok(None);
        }
        Ok(Some(Box::new(SimLock { disk: Arc::clone(&self.disk), path: path.to_owned() })))
    }
}

/// A lock of a simulated process, free again when it is dropped.
struct SimLock {
    disk: Arc<Mutex<Disk>>,
    path: String,
}

impl Drop for SimLock {
    fn drop(&mut self) {
        self.disk.lock().locked.remove(&self.path);
    }
}

/// An open file: it keeps its inode when its name goes.
struct SimFile {
    disk: Arc<Mutex<Disk>>,
    inode: usize,
}

impl VfsFile for SimFile {
    fn read_at(&self, offset: u64, out: &mut [u8]) -> io::Result<usize> {
        let disk = self.disk.lock();
        disk.alive()?;
        let content = &disk.inodes[self.inode].content;
        let start = (offset as usize).min(content.len());
        let len = out.len().min(content.len() - start);
        out[..len].copy_from_slice(&content[start..start + len]);
        Ok(len)
    }

    fn write_at(&self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        let mut disk = self.disk.lock();
        // Reserved room can be written on a full disk.
        let fits = offset as usize + bytes.len() <= disk.inodes[self.inode].content.len();
        let step = disk.step(if fits { CallKind::Change } else { CallKind::Grow }).map(|_| ());
        let bytes = match &step {
            Ok(()) => bytes,
            // A write that fails may have come half of the way.
            Err(_) if !disk.lost_power && bytes.len().is_multiple_of(2) => {
                &bytes[..bytes.len() / 2]
            }
            Err(_) => return step,
        };
        let write = Write::Bytes { offset: offset as usize, bytes: bytes.to_vec() };
        let inode = &mut disk.inodes[self.inode];
        apply_write(&mut inode.content, &write);
        inode.pending.push(write);
        step
    }

    fn sync(&self) -> io::Result<()> {
        let mut disk = self.disk.lock();
        // After a failed sync the writes are not pending any more: a second sync finds nothing to do, as on Linux.
        let works = disk.step(CallKind::Sync)?;
        let is_unsynced = |place: &str| {
            disk.names.iter().any(|(name, &inode)| inode == self.inode && name.ends_with(place))
        };
        if works && disk.unsynced.is_some_and(|place| place.starts_with('.') && is_unsynced(place))
        {
            return Ok(());
        }
        let leaves = disk.failed_sync;
        let inode = &mut disk.inodes[self.inode];
        let pending = std::mem::take(&mut inode.pending);
        if !works {
            match leaves {
                FailedSync::New => {}
                FailedSync::Old => inode.content = inode.durable.clone(),
                FailedSync::Zero => {
                    for write in &pending {
                        if let Write::Bytes { offset, bytes } = write {
                            inode.content[*offset..offset + bytes.len()].fill(0);
                        }
                    }
                }
            }
            return Err(io::Error::other("injected sync error"));
        }
        for write in &pending {
            apply_write(&mut inode.durable, write);
        }
        Ok(())
    }

    fn allocate(&self, len: u64) -> io::Result<()> {
        let mut disk = self.disk.lock();
        disk.step(CallKind::Grow)?;
        let write = Write::Length(len as usize);
        let inode = &mut disk.inodes[self.inode];
        apply_write(&mut inode.content, &write);
        inode.pending.push(write);
        Ok(())
    }

    fn len(&self) -> io::Result<u64> {
        let disk = self.disk.lock();
        disk.alive()?;
        Ok(disk.inodes[self.inode].content.len() as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::rng::SeededRng;

    #[test]
    fn synced_bytes_and_names_survive_and_others_may_not() {
        let mut lost_name = false;
        let mut lost_bytes = false;
        for seed in 0..50 {
            let disk = SimVfs::new();
            let file = disk.create("a").unwrap();
            file.write_at(0, &[1; 2000]).unwrap();
            file.sync().unwrap();
            disk.sync_dir("").unwrap();
            file.write_at(0, &[2; 2000]).unwrap();
            disk.create("b").unwrap();
            let after = disk.after_power_loss(&SeededRng::new(seed)).files();
            assert!(after["a"].iter().all(|&byte| byte == 1 || byte == 2));
            lost_bytes |= after["a"].contains(&1);
            lost_name |= !after.contains_key("b");
        }
        assert!(lost_name && lost_bytes, "the simulation loses what was not synced");
    }

    #[test]
    fn power_loss_stops_everything() {
        let disk = SimVfs::new();
        disk.set_plan(Some(FaultPlan { at: 1, fault: Fault::PowerLoss, sticky: false }));
        let file = disk.create("a").unwrap();
        assert!(file.write_at(0, b"x").is_err());
        assert!(disk.list("").is_err());
    }
}
