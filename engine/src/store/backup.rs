//! Backups of a running store, and bringing one back.
//!
//! Files of a store never change once they have their name, so a backup links them where the disk
//! can and copies them where it cannot. What is left is the log above the newest checkpoint, which is
//! copied up to one commit. While names are linked, nothing is merged or deleted; writes go on.
//!
//! A backup is a data directory with a list. The list comes last: without it, it is not a backup.

use std::{collections::BTreeSet, io, sync::Arc};

use parking_lot::MutexGuard;

use super::{
    backup_list::{BackupFile, BackupList, LIST, join, measure},
    lifecycle::{Compaction, Store},
    superblock::{CheckpointRef, Superblock},
    version::Version,
};
use crate::{
    error::{Error, IoContext, Result},
    ids,
    keyspace::checkpoint,
    segment,
    vfs::Vfs,
    wal,
};

/// How far a backup is.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct BackupProgress {
    /// Files that are in place.
    pub files: u64,
    /// Files in all.
    pub files_total: u64,
    /// Bytes of the files in place.
    pub bytes: u64,
    /// Files that share their bytes with the data directory.
    pub linked: u64,
    /// Files that share their bytes with the earlier backup.
    pub reused: u64,
    /// LSN of the last record that the backup holds.
    pub lsn: u64,
    /// Whether it is whole: the list is written.
    pub is_done: bool,
}

impl Store {
    /// Writes a backup into `target`, a directory that is empty or does not exist. Files that cannot
    /// be linked are taken from the backup `since` where it has them, else copied. `report` is told
    /// after each file.
    pub fn backup(
        &self,
        target: &str,
        since: Option<&str>,
        report: &mut dyn FnMut(&BackupProgress),
    ) -> Result<BackupProgress> {
        let vfs = &*self.vfs;
        // Nothing is merged, erased or deleted until all names are linked, and there is one backup at
        // a time.
        let compaction = self.compaction.lock();
        check_empty(vfs, target)?;
        let since = since
            .map(|directory| BackupList::load(vfs, directory).map(|list| (directory, list)))
            .transpose()?;
        if let Some((directory, list)) = &since
            && list.db.into_bytes() != self.database.id
        {
            let detail = format!("{directory} is a backup of another database");
            return Err(Error::invalid("since", detail));
        }
        let earlier = since.as_ref().map(|(directory, list)| (*directory, list));
        let mut job = Job {
            vfs,
            target,
            earlier,
            progress: BackupProgress::default(),
            paths: BTreeSet::new(),
            directories: BTreeSet::from([String::new()]),
            report,
        };
        let done = self.backup_into(&mut job, compaction);
        if done.is_err() {
            job.remove_all();
        }
        done
    }

    fn backup_into(
        &self,
        job: &mut Job<'_>,
        compaction: MutexGuard<'_, Compaction>,
    ) -> Result<BackupProgress> {
        let version = {
            let mut upkeep = self.upkeep.lock();
            self.flush_all(&mut upkeep)?;
            let (version, log_end) = self.sequencer.pin()?;
            let newest = upkeep
                .superblock
                .checkpoints
                .first()
                .copied()
                .unwrap_or(CheckpointRef { lsn: 0, replay_after: 0 });
            job.progress.lsn = version.lsn;
            job.count(&version);
            if newest.lsn > 0 {
                // Its name is a number, which another history of this database may have given too:
                // it never comes from an earlier backup.
                let path = checkpoint::path(newest.lsn);
                let len = self.vfs.open(&path).and_then(|file| file.len()).at(&path)?;
                job.copy(&path, len)?;
            }
            let after = newest.replay_after;
            match self.log.files_after(after, version.lsn, log_end)? {
                Some(files) => {
                    for (path, len) in files {
                        job.copy(&path, len)?;
                    }
                }
                None => {
                    let (mut records, tail) = self.log.read_after(&upkeep.superblock, after)?;
                    if tail.lsn_last < version.lsn {
                        let detail = format!("ends before record {}, which was there", version.lsn);
                        return Err(Error::corrupt("log", detail));
                    }
                    records.retain(|record| record.lsn <= version.lsn);
                    job.records(&records, self.database.id, self.rng.next_u64())?;
                }
            }
            let checkpoints = if newest.lsn > 0 { vec![newest] } else { Vec::new() };
            job.superblock(&Superblock { checkpoints, ..upkeep.superblock.clone() })?;
            for run in self.sequencer.id_runs() {
                job.share(&run.meta().path())?;
            }
            version
        };
        for segment in &version.segments {
            job.share(&segment.meta().path())?;
        }
        drop(compaction);
        job.finish(uuid::Uuid::from_bytes(self.database.id), self.clock.now_ms())
    }
}

/// A backup under way.
struct Job<'a> {
    vfs: &'a dyn Vfs,
    target: &'a str,
    earlier: Option<(&'a str, &'a BackupList)>,
    progress: BackupProgress,
    paths: BTreeSet<String>,
    directories: BTreeSet<String>,
    report: &'a mut dyn FnMut(&BackupProgress),
}

impl Job<'_> {
    fn count(&mut self, version: &Arc<Version>) {
        self.progress.files_total = version.segments.len() as u64;
    }

    fn place(&mut self, path: &str) -> Result<String> {
        if let Some((directory, _)) = path.rsplit_once('/') {
            let mut end = 0;
            while let Some(next) = directory[end..].find('/') {
                self.directories.insert(directory[..end + next].to_owned());
                end += next + 1;
            }
            if self.directories.insert(directory.to_owned()) {
                let place = join(self.target, directory);
                self.vfs.create_dir(&place).at(&place)?;
            }
        }
        Ok(join(self.target, path))
    }

    /// Gives an immutable file a second name, or copies it.
    fn share(&mut self, path: &str) -> Result<()> {
        let place = self.place(path)?;
        match self.vfs.link(path, &place) {
            Ok(()) => self.progress.linked += 1,
            Err(error) if !can_copy_instead(&error) => return Err(Error::io(place, &error)),
            Err(_) => {
                let len = self.vfs.len_of(path).at(path)?;
                let earlier = self.earlier.filter(|(_, list)| list.holds(path, len));
                let linked = earlier
                    .is_some_and(|(from, _)| self.vfs.link(&join(from, path), &place).is_ok());
                if linked {
                    self.progress.reused += 1;
                } else {
                    return self.copy(path, len);
                }
            }
        }
        self.added(path);
        Ok(())
    }

    /// Copies the first `len` bytes of a file.
    fn copy(&mut self, path: &str, len: u64) -> Result<()> {
        let place = self.place(path)?;
        let from = self.vfs.open(path).at(path)?;
        let to = self.vfs.create(&place).at(&place)?;
        self.paths.insert(path.to_owned());
        let mut buffer = vec![0; super::backup_list::CHUNK_BYTES];
        let mut offset = 0;
        while offset < len {
            let wanted = buffer.len().min((len - offset) as usize);
            let read = from.read_at(offset, &mut buffer[..wanted]).at(path)?;
            if read == 0 {
                return Err(Error::corrupt(path, "is shorter than it was"));
            }
            to.write_at(offset, &buffer[..read]).at(&place)?;
            offset += read as u64;
        }
        to.sync().at(&place)?;
        self.added(path);
        Ok(())
    }

    fn superblock(&mut self, superblock: &Superblock) -> Result<()> {
        superblock.slots().into_iter().try_for_each(|(path, bytes)| self.write(path, &bytes))
    }

    /// Makes a log file of records that are in no file.
    fn records(&mut self, records: &[wal::Record], db: [u8; 16], salt: u64) -> Result<()> {
        match wal::file_of(records, db, salt) {
            Some((path, bytes)) => self.write(&path, &bytes),
            None => Ok(()),
        }
    }

    fn write(&mut self, path: &str, bytes: &[u8]) -> Result<()> {
        let place = self.place(path)?;
        let file = self.vfs.create(&place).at(&place)?;
        self.paths.insert(path.to_owned());
        file.write_at(0, bytes).at(&place)?;
        file.sync().at(&place)?;
        self.added(path);
        Ok(())
    }

    fn added(&mut self, path: &str) {
        self.paths.insert(path.to_owned());
        self.progress.files = self.paths.len() as u64;
        self.progress.files_total = self.progress.files_total.max(self.progress.files);
        (self.report)(&self.progress);
    }

    /// Reads everything back for the list, makes all names durable, and writes the list.
    fn finish(&mut self, db: uuid::Uuid, created_ms: i64) -> Result<BackupProgress> {
        let mut files = Vec::new();
        for path in &self.paths {
            let place = join(self.target, path);
            let file = self.vfs.open(&place).at(&place)?;
            let (len, crc) = measure(&*file, |_| Ok(()))?;
            self.progress.bytes += len;
            files.push(BackupFile { path: path.clone(), len, crc });
            (self.report)(&self.progress);
        }
        // An empty store has no directory of its own for these, and a data directory has.
        for directory in [segment::FRESH_DIRECTORY, ids::DIRECTORY, wal::DIRECTORY] {
            let place = join(self.target, directory);
            self.vfs.create_dir(&place).at(&place)?;
        }
        for directory in &self.directories {
            let place = join(self.target, directory);
            let place = place.strip_suffix('/').unwrap_or(&place);
            self.vfs.sync_dir(place).at(place)?;
        }
        let list = BackupList { db, lsn: self.progress.lsn, created_ms, files };
        let (temporary, place) = (join(self.target, "BACKUP.partial"), join(self.target, LIST));
        let file = self.vfs.create(&temporary).at(&temporary)?;
        self.paths.extend(["BACKUP.partial".to_owned(), LIST.to_owned()]);
        file.write_at(0, list.write().as_bytes()).at(&temporary)?;
        file.sync().at(&temporary)?;
        self.vfs.rename(&temporary, &place).at(&place)?;
        self.vfs.sync_dir(self.target).at(self.target)?;
        // The directory's own name, and those of parents that may be as new.
        let mut child = self.target.trim_end_matches('/');
        let mut is_parent = true;
        while let Some((parent, _)) =
            child.rsplit_once('/').or((!child.is_empty()).then_some(("", child)))
        {
            let place =
                if parent.is_empty() && self.target.starts_with('/') { "/" } else { parent };
            match self.vfs.sync_dir(place) {
                Err(error) if is_parent => return Err(Error::io(place, &error)),
                _ => is_parent = false,
            }
            child = parent;
        }
        self.progress.is_done = true;
        (self.report)(&self.progress);
        Ok(self.progress.clone())
    }

    /// Takes back what was written, as far as that is possible.
    fn remove_all(&self) {
        for path in &self.paths {
            let _ = self.vfs.remove(&join(self.target, path));
        }
        let more = [segment::FRESH_DIRECTORY, segment::DIRECTORY, ids::DIRECTORY, wal::DIRECTORY];
        let more = more.iter().map(|directory| (*directory).to_owned());
        for directory in self.directories.iter().rev().cloned().chain(more) {
            let _ = self.vfs.remove_dir(&join(self.target, &directory));
        }
    }
}

/// Another disk, or one without links, or another owner's files.
fn can_copy_instead(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::CrossesDevices
            | io::ErrorKind::Unsupported
            | io::ErrorKind::PermissionDenied
            | io::ErrorKind::TooManyLinks
    )
}

fn check_empty(vfs: &dyn Vfs, target: &str) -> Result<()> {
    let names = |names: io::Result<Vec<String>>| match names {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
        names => names.at(target),
    };
    if names(vfs.list(target))?.is_empty() && names(vfs.list_dirs(target))?.is_empty() {
        return vfs.create_dir(target).at(target);
    }
    // A restore's files stand at the root of their disk.
    let name = if target.is_empty() { "the target" } else { target };
    Err(Error::invalid("directory", format!("{name} is not empty")))
}

/// Copies the backup in `from` into the empty directory `to`. Both are whole disks, so that a backup
/// can come from anywhere. Every byte is checked against the list.
///
/// Errors: `Invalid` when `from` is no backup or `to` is not empty, `Corrupt` naming the file that
/// differs from the list. Nothing is left behind then.
pub fn restore(from: &dyn Vfs, to: &dyn Vfs) -> Result<BackupList> {
    let list = BackupList::load(from, "")?;
    check_empty(to, "")?;
    let mut written = Vec::new();
    let done = restore_files(from, to, &list, &mut written);
    if done.is_err() {
        written.iter().for_each(|path: &String| drop(to.remove(path)));
    }
    done.map(|()| list)
}

fn restore_files(
    from: &dyn Vfs,
    to: &dyn Vfs,
    list: &BackupList,
    written: &mut Vec<String>,
) -> Result<()> {
    let mut directories = BTreeSet::from([String::new()]);
    // Those that a data directory has, also where none of its files is in them: a log elsewhere may have left no records.
    for directory in [segment::FRESH_DIRECTORY, ids::DIRECTORY, wal::DIRECTORY] {
        to.create_dir(directory).at(directory)?;
        directories.insert(directory.to_owned());
    }
    // The superblock comes last: without it the directory is not taken for a database.
    let is_superblock = |file: &&BackupFile| file.path.starts_with("SUPER.");
    let (last, first): (Vec<_>, Vec<_>) = list.files.iter().partition(is_superblock);
    for (at, files) in [first, last].into_iter().enumerate() {
        for file in files {
            let path = &file.path;
            if let Some((directory, _)) = path.rsplit_once('/') {
                to.create_dir(directory).at(directory)?;
                let whole = directory.match_indices('/').map(|(end, _)| &directory[..end]);
                directories.extend(whole.chain([directory]).map(str::to_owned));
            }
            written.push(path.clone());
            let (source, copy) = (from.open(path).at(path)?, to.create(path).at(path)?);
            let mut offset = 0;
            let (len, crc) = measure(&*source, |bytes| {
                copy.write_at(offset, bytes).at(path)?;
                offset += bytes.len() as u64;
                Ok(())
            })?;
            if (len, crc) != (file.len, file.crc) {
                return Err(Error::corrupt(path, "differs from the backup's list"));
            }
            copy.sync().at(path)?;
        }
        if at == 0 {
            for directory in &directories {
                to.sync_dir(directory).at(directory)?;
            }
        }
    }
    to.sync_dir("").at("the data directory")
}
