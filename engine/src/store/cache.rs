//! The bound on copies of segments, where the files are elsewhere and the disk is smaller than all of them.
//!
//! A round looks which segments were read since the last one, and evicts those that were not read for the longest time until the others fit:
//!
//! ```text
//! bound 100 MB      a: 60 MB, idle for 3 rounds    b: 30 MB, idle for 1    c: 40 MB, just read
//! evicted           a                              70 MB are left
//! bound 50 MB       a, then b: 40 MB are left
//! ```
//!
//! An evicted segment stays open: its directories are in memory, and blocks are fetched when they are read. Queries that run go on with the copy that they have, whose
//! room is free when the last of them ends.

use std::{cmp::Reverse, io::ErrorKind, sync::Arc, time::Duration};

use super::lifecycle::Store;
use crate::{
    error::{IoContext as _, Result},
    segment::Segment,
};

/// Copies that are shorter stay: to evict one would free less than it costs.
const EVICTED_BYTES_MIN: u64 = 256 << 10;

/// How long a round waits for a flush, or for a record that is applied.
const UPKEEP_TIME_MAX: Duration = Duration::from_secs(1);

/// What a round found.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CacheRound {
    /// Bytes of segments and id runs on this disk after it, those of evicted copies that are still read among them.
    pub bytes: u64,
    /// Segments that it evicted.
    pub evicted: u64,
}

/// The copies of files on a disk that has not room for all of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CacheMetrics {
    /// How many bytes they may have.
    pub bytes_max: u64,
    /// How many they have, as of the last round.
    pub bytes: u64,
    /// Segments that were evicted since the start.
    pub evicted: u64,
    /// Calls of the bucket for parts of files since the start.
    pub reads: u64,
    /// Bytes that came by them.
    pub read_bytes: u64,
}

/// A copy that may be evicted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Copy {
    at: usize,
    bytes: u64,
    idle_rounds: u32,
    /// Latest time of its rows: of two that are idle for as long, the older one goes.
    ts_max: i64,
}

/// Which copies are evicted so that `bytes` become `bytes_max`, or as few as can be: positions, in the order in which they go.
fn evicted(mut copies: Vec<Copy>, mut bytes: u64, bytes_max: u64) -> Vec<usize> {
    copies.retain(|copy| copy.bytes >= EVICTED_BYTES_MIN);
    copies.sort_by_key(|copy| (Reverse(copy.idle_rounds), copy.ts_max));
    let mut evicted = Vec::new();
    for copy in copies {
        if bytes <= bytes_max {
            break;
        }
        bytes = bytes.saturating_sub(copy.bytes);
        evicted.push(copy.at);
    }
    evicted
}

impl Store {
    /// Evicts copies of segments until those that are left fit `bytes_max`. Id runs count and stay. To be called once a second.
    ///
    /// Errors: those of the disk; `Unsupported` where files are not elsewhere.
    pub fn evict(&self, bytes_max: u64) -> Result<CacheRound> {
        let version = self.version();
        let copy_of = |(at, segment): (usize, &Arc<Segment>)| Copy {
            at,
            bytes: segment.cached_bytes(),
            idle_rounds: segment.idle_rounds(),
            ts_max: segment.meta().ts_max,
        };
        // Damaged ones are fetched anew, and known by their damage until then.
        let segments = version.segments.iter().enumerate();
        let copies: Vec<Copy> =
            segments.filter(|(_, segment)| !segment.is_damaged()).map(copy_of).collect();
        let of_runs: u64 = self.sequencer.id_runs().iter().map(|run| run.meta().len).sum();
        let bytes = of_runs + copies.iter().map(|copy| copy.bytes).sum::<u64>();
        let chosen = evicted(copies, bytes, bytes_max).into_iter();
        let chosen: Vec<&Arc<Segment>> = chosen.filter_map(|at| version.segments.get(at)).collect();
        let evicted = self.exchange(&chosen)?;
        let whole = |segment: &&Arc<Segment>| segment.view().copy_path().is_none();
        let live = self.version();
        let of_whole: u64 = live.segments.iter().filter(whole).map(|one| one.cached_bytes()).sum();
        Ok(CacheRound { bytes: of_runs + of_whole + self.vfs.bytes_of_parts(), evicted })
    }

    /// Has a copy of each segment under the name by which other processes of this machine open it, where the files are elsewhere: the directory may be deleted at
    /// any time, and this process goes on with what it has open. One round at a time; where one runs, there is nothing to do.
    ///
    /// Errors: those of where the files are, and of the disk.
    pub fn restore_copies(&self) -> Result<()> {
        let Some(_one) = self.restoring.try_lock().filter(|_| self.vfs.is_shared()) else {
            return Ok(());
        };
        let version = self.version();
        let path_of = |segment: &Arc<Segment>| {
            segment.view().copy_path().map_or_else(|| segment.meta().path(), str::to_owned)
        };
        let lost = |segment: &&Arc<Segment>| !self.vfs.has_copy(&path_of(segment));
        let lost: Vec<&Arc<Segment>> = version.segments.iter().filter(lost).collect();
        if self.vfs.copies_parts() {
            return self.exchange(&lost).map(drop);
        }
        let paths: Vec<String> = lost.iter().map(|segment| segment.meta().path()).collect();
        let fetched = paths.iter().try_for_each(|path| match self.vfs.map(path) {
            // Merged away since.
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
            fetched => fetched.at(path).map(drop),
        });
        // One that was merged away while it was fetched must not stay.
        self.discard_unnamed(&paths);
        fetched
    }

    /// Puts empty copies in the place of those of some segments. Returns of how many: others were merged away or replaced since they were chosen, or are being fetched.
    fn exchange(&self, segments: &[&Arc<Segment>]) -> Result<u64> {
        if segments.is_empty() {
            return Ok(0);
        }
        // Neither a follower's next version nor a flush comes in between. One that takes long is not waited for.
        let Some(_upkeep) = self.upkeep.try_lock_for(UPKEEP_TIME_MAX) else { return Ok(0) };
        let live = self.version();
        let is_live =
            |segment: &Arc<Segment>| live.segments.iter().any(|other| Arc::ptr_eq(other, segment));
        let mut opened = Vec::new();
        let mut done = Ok(());
        for segment in segments.iter().filter(|segment| is_live(segment)) {
            let path = segment.meta().path();
            match self.vfs.map_evicted(&path, segment.meta().len) {
                Ok(view) => opened.push(Arc::new(segment.over(view))),
                // It is being fetched, or was merged away: the next round comes to it again, if it is there.
                Err(error)
                    if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::NotFound) => {}
                Err(error) => {
                    done = Err(error).at(&path);
                    break;
                }
            }
        }
        // What was evicted before an error is: its name is another one.
        if !opened.is_empty() {
            self.sequencer.replace_segments(&opened);
        }
        done.map(|()| opened.len() as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_idle_for_longest_goes_until_the_others_fit() {
        const MB: u64 = 1 << 20;
        let copy = |at, bytes, idle_rounds| Copy { at, bytes, idle_rounds, ts_max: -(at as i64) };
        let copies = vec![copy(0, 60 * MB, 3), copy(1, 30 * MB, 1), copy(2, 40 * MB, 0)];
        let evicted = |bytes_max| evicted(copies.clone(), 130 * MB, bytes_max);
        assert_eq!(evicted(130 * MB), [] as [usize; 0]);
        assert_eq!(evicted(100 * MB), [0]);
        assert_eq!(evicted(50 * MB), [0, 1]);
        // What is being read goes as well where the rest is not enough.
        assert_eq!(evicted(0), [0, 1, 2]);
        let alike = vec![copy(0, 2 * MB, 1), copy(1, 2 * MB, 1), copy(2, MB / 5, 9)];
        assert_eq!(super::evicted(alike, 4 * MB, 3 * MB), [1], "the older one, and no short one");
    }
}
