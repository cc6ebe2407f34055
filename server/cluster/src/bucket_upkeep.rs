//! What processes do about the bucket, and their copies, from time to time.
//!
//! Objects of files that were merged away, and of old checkpoints, are deleted after half an hour to an hour: a database that fails over and lacks its newest rows names
//! them again, and everything before these rows is still there. What the bucket has lost of its own accord is uploaded again from the copy on this disk. And in any
//! process a copy that is damaged is fetched again.

use std::{
    sync::atomic::{AtomicUsize, Ordering},
    time::{Duration, Instant},
};

use inlay_engine::{Engine, remote::ObjectVfs};
use parking_lot::Mutex;
use tracing::{error, warn};

/// How often damaged copies are replaced, at most: where the bucket has no better one, that does not help.
const REPLACE_EVERY: Duration = Duration::from_secs(60);
/// How often. A file's object goes with the second time after the file.
const EVERY: Duration = Duration::from_secs(1_800);

/// When the bucket was looked after, and what was missing.
#[derive(Default)]
pub struct BucketUpkeep {
    last: Mutex<Option<Instant>>,
    lost: AtomicUsize,
    replaced: Mutex<Option<Instant>>,
}

impl BucketUpkeep {
    /// Whether it is time to: at the beginning, and then every half an hour. The next time begins with the answer.
    pub fn is_due(&self) -> bool {
        let mut last = self.last.lock();
        let is_due = last.is_none_or(|last| last.elapsed() > EVERY);
        if is_due {
            *last = Some(Instant::now());
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

    /// Deletes what was removed before the last time, and uploads what the bucket has lost.
    pub fn run(&self, files: &ObjectVfs, engine: &Engine, may_change: &dyn Fn() -> bool) {
        if !may_change() {
            return;
        }
        if let Err(failed) = files.sweep() {
            warn!(error = %failed, "objects that are not needed any more could not be deleted; tried again later");
        }
        match files.restore_lost(&engine.files(), may_change) {
            Ok(mut lost) => {
                // What was merged away meanwhile is not missing.
                let named = engine.files();
                lost.retain(|path| named.contains(path));
                for path in &lost {
                    error!(path, "the bucket has lost an object, and there is no copy here");
                }
                self.lost.store(lost.len(), Ordering::Relaxed);
            }
            Err(failed) => {
                warn!(error = %failed, "whether the bucket has all objects is not known")
            }
        }
    }
}
