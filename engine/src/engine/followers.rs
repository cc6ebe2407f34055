//! A store that another process has: shown here, and taken over when that one has ended.
//!
//! ```text
//! open_follower      shows what the log held
//! follow             and what has come since; call it before each answer that must be the newest
//! lead               from now on this process takes changes
//! ```

use std::sync::Arc;

use super::{Engine, Options};
use crate::{
    error::Result,
    store::{CacheRound, Dependencies, Log, Store},
    vfs::Vfs,
};

impl Options {
    /// What a store is opened with on this disk and log.
    pub(super) fn dependencies(self, vfs: Arc<dyn Vfs>, log: Arc<dyn Log>) -> Dependencies {
        Dependencies { vfs, log, clock: self.clock, rng: self.rng, limits: self.limits }
    }
}

impl Engine {
    /// Opens a store that another process has, to show what that one writes: [`Engine::follow`] applies it. Changes are refused with `Elsewhere`.
    ///
    /// Errors: as of [`open_with_log`](Self::open_with_log); `Invalid` where there is no database yet. A file that the other process has dropped
    /// meanwhile is `Corrupt`: the start may be tried again.
    pub fn open_follower(vfs: Arc<dyn Vfs>, log: Arc<dyn Log>, options: Options) -> Result<Self> {
        let (clock, background) = (Arc::clone(&options.clock), options.background);
        let (limits, exact) = (options.limits, options.exact);
        let store = Store::open_follower(options.dependencies(vfs, log))?;
        Self::of(store, clock, limits, exact, background)
    }

    /// Applies what another process has written. Returns the number of the last record that is shown now.
    ///
    /// Errors: `Invalid` where this process leads; `Corrupt` where the log does not reach back to what is shown, which has to be opened anew.
    pub fn follow(&self) -> Result<u64> {
        self.store.follow()
    }

    /// Takes no changes from now on, and writes nothing to segments: another process goes on from the log. What it shows stays.
    pub fn hand_over(&self) {
        self.store.hand_over();
    }

    /// Whether the log has not answered yet whether it has a change: those that follow may show it, and this process does not.
    pub fn is_unresolved(&self) -> bool {
        self.store.is_unresolved()
    }

    /// Paths of all files that the store needs as it is now: segments, id runs, and checkpoints.
    pub fn files(&self) -> Vec<String> {
        self.store.files()
    }

    /// Whether a block that was read of a copy on this disk is damaged.
    pub fn has_damage(&self) -> bool {
        self.store.has_damage()
    }

    /// Fetches such copies anew from where the files are. Returns how many.
    ///
    /// Errors: those of the object store; `Corrupt` where it has no better one.
    pub fn replace_damaged(&self) -> Result<usize> {
        self.store.replace_damaged()
    }

    /// Evicts copies of segments from the disk until those that are left, and the id runs, take `bytes_max` bytes: those that were read last stay. To be called once a second.
    ///
    /// Errors: those of the disk; `Unsupported` where files are not elsewhere, or copied as wholes.
    pub fn evict(&self, bytes_max: u64) -> Result<CacheRound> {
        self.store.evict(bytes_max)
    }

    /// Has copies of all segments in the directory again, where it was deleted: other processes of this machine open them there.
    ///
    /// Errors: those of where the files are, and of the disk.
    pub fn restore_copies(&self) -> Result<()> {
        self.store.restore_copies()
    }

    /// Writes all checkpoints that are kept anew: those that there were are lost. Fine only where this process leads.
    ///
    /// Errors: those of a flush.
    pub fn replace_checkpoints(&self) -> Result<()> {
        self.store.replace_checkpoints()
    }

    /// Whether the copy on this disk of a file that the store needs is whole.
    pub fn is_whole(&self, path: &str) -> bool {
        self.store.is_whole(path)
    }

    /// Throws copies away of those of `paths` that nothing names. Returns those of which the copy could not be removed.
    pub fn discard_unnamed(&self, paths: &[String]) -> Vec<String> {
        self.store.discard_unnamed(paths)
    }

    /// Number of the last record that is shown.
    pub fn applied(&self) -> u64 {
        self.store.version().lsn
    }

    /// Takes the log over, after the last record of whoever had it: changes are taken from now on.
    ///
    /// Errors: those of [`Engine::follow`], and where another process leads. This one goes on to follow then.
    pub fn lead(&self) -> Result<()> {
        self.store.lead()
    }

    /// Whether another process takes changes, and this one follows.
    pub fn follows(&self) -> bool {
        self.store.follows()
    }
}
