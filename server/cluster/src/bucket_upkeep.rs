//! What processes do about the bucket, and their copies, from time to time.
//!
//! Objects of files that were merged away, and of old checkpoints, are deleted after half an hour to an hour: a database that fails over and lacks its newest rows names
//! them again, and everything before these rows is still there. What the bucket has lost of its own accord is uploaded again from the copy on this disk. And in any
//! process a copy that is damaged is fetched again.

use std::{
    collections::BTreeMap,
    sync::atomic::{AtomicUsize, Ordering},
    time::{Duration, Instant},
};

use inlay_engine::{
    Engine, Vfs as _,
    remote::{Compared, ObjectVfs},
};
use parking_lot::Mutex;
use tracing::{error, info, warn};

/// How often damaged copies are replaced, at most: where the bucket has no better one, that does not help.
const REPLACE_EVERY: Duration = Duration::from_secs(60);
/// How often. A file's object goes with the second time after the file.
const EVERY: Duration = Duration::from_secs(1_800);

/// How soon again where that failed.
const AGAIN: Duration = Duration::from_secs(60);
/// An object that nothing has named for so long is of a process that ended before it could be named.
const ORPHAN_AFTER: Duration = Duration::from_secs(86_400);

/// How long a disk may take no writes while this process leads.
const DISK_TIME_MAX: Duration = Duration::from_secs(10);

/// When the bucket was looked after, and what was missing.
#[derive(Default)]
pub struct BucketUpkeep {
    next: Mutex<Option<Instant>>,
    /// Objects that nothing named when that was looked at last, and since when.
    unnamed: Mutex<BTreeMap<String, Instant>>,
    lost: AtomicUsize,
    replaced: Mutex<Option<Instant>>,
    disk_failed: Mutex<Option<Instant>>,
}

impl BucketUpkeep {
    /// Whether it is time to: at the beginning, and then every half an hour, or soon where it failed. The next time begins with the answer.
    pub fn is_due(&self) -> bool {
        let mut next = self.next.lock();
        let is_due = next.is_none_or(|next| Instant::now() > next);
        if is_due {
            *next = Some(Instant::now() + AGAIN);
        }
        is_due
    }

    /// Whether a copy on this disk is damaged, and none was replaced just now. The next time begins with the answer.
    pub fn must_replace(&self, engine: &Engine) -> bool {
        let mut replaced = self.replaced.lock();
        let is_due = replaced.is_none_or(|at| at.elapsed() > REPLACE_EVERY) && engine.has_damage();
        if is_due {
            *replaced = Some(Instant::now());
        }
        is_due
    }

    /// Whether the disk of this process has taken no writes for so long that another one should lead. It is tried where the store is in trouble.
    pub fn disk_is_of_no_use(&self, files: &ObjectVfs, engine: &Engine) -> bool {
        let failure = engine.trouble().and_then(|_| files.try_disk().err());
        let mut since = self.disk_failed.lock();
        let Some(failure) = failure else {
            *since = None;
            return false;
        };
        let is_over = since.get_or_insert_with(Instant::now).elapsed() > DISK_TIME_MAX;
        if is_over {
            error!(error = %failure, "the data directory takes no writes; this process ends, so that another one leads");
        }
        is_over
    }

    /// Fetches damaged copies anew.
    pub fn replace(engine: &Engine) {
        match engine.replace_damaged() {
            Ok(count) => {
                warn!(count, "copies of files on this disk were damaged, and are fetched anew")
            }
            Err(failed) => {
                error!(error = %failed, "a copy of a file is damaged and could not be fetched anew")
            }
        }
    }

    /// Files that are in the bucket no more, and not on this disk either.
    pub fn lost(&self) -> usize {
        self.lost.load(Ordering::Relaxed)
    }

    /// Deletes what was removed before the last time, uploads what the bucket has lost, and removes what nothing has named for a day.
    pub fn run(&self, files: &ObjectVfs, engine: &Engine, may_change: &dyn Fn() -> bool) {
        if !may_change() {
            return;
        }
        let is_whole = |path: &str| engine.is_whole(path);
        let done = files.sweep().and_then(|swept| {
            let compared = files.restore_lost(&engine.files(), &is_whole, may_change)?;
            Ok((swept, compared))
        });
        let (swept, Compared { mut lost, unnamed }) = match done {
            Ok(done) => done,
            Err(failed) => {
                return warn!(error = %failed, "the bucket could not be looked after; tried again soon");
            }
        };
        // What was merged away meanwhile is not missing, and what was uploaded meanwhile may be named by now.
        let named = engine.files();
        lost.retain(|path| named.contains(path));
        for path in &lost {
            error!(path, "the bucket has lost an object, and there is no copy here that is whole");
        }
        // What a checkpoint says is in memory.
        if lost.iter().any(|path| path.starts_with("ckpt/")) {
            match engine.replace_checkpoints() {
                Ok(()) => {
                    warn!("checkpoints that were lost are written anew");
                    lost.retain(|path| !path.starts_with("ckpt/"));
                }
                Err(failed) => warn!(error = %failed, "checkpoints could not be written anew"),
            }
        }
        if lost.is_empty() {
            *self.next.lock() = Some(Instant::now() + EVERY);
        }
        self.lost.store(lost.len(), Ordering::Relaxed);
        let orphans = self.orphans(unnamed.into_iter().filter(|path| !named.contains(path)));
        if may_change() {
            // Deleted with the second time from now, as all that is removed.
            orphans.iter().for_each(|path| drop(files.remove(path)));
        }
        info!(swept, orphans = orphans.len(), "the bucket was looked after");
    }

    /// Those of the paths that were there a day ago as well: of a process that ended in between.
    fn orphans(&self, unnamed: impl Iterator<Item = String>) -> Vec<String> {
        let mut seen = self.unnamed.lock();
        let before = std::mem::take(&mut *seen);
        let since = |path: &String| before.get(path).copied().unwrap_or_else(Instant::now);
        *seen =
            unnamed.map(|path| (since(&path), path)).map(|(since, path)| (path, since)).collect();
        seen.iter()
            .filter(|(_, since)| since.elapsed() > ORPHAN_AFTER)
            .map(|(path, _)| path.clone())
            .collect()
    }
}
