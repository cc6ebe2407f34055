//! Work that nobody waits for: compaction, erasures, repairs.
//!
//! One thing at a time. A step that fails is tried again later; a segment that cannot be read is left
//! alone, so that it does not stop the others.

use std::{collections::BTreeSet, sync::atomic::Ordering, thread, time::Duration};

use super::{
    checkpoint,
    compaction::{Done, Worker},
    edit::Edit,
    erasure::{self, Erasure, Scope},
    lifecycle::{Compaction, Store, waits},
    names::{DROPPED_PREFIX, namespace_key},
    recovery, retention,
    version::Version,
};
use crate::{
    error::{Error, IoContext as _, Limit, Result},
    event::Namespace,
    keyspace::Txn,
};

/// Erasures are done within this time, or the store says that it is in trouble.
const ERASURE_DEADLINE_MS: u64 = 24 * 3_600_000;
/// Checkpoints that an erasure takes, at most, to outlive the log that knew its rows.
const ROUNDS_MAX: u32 = 20;
/// How long a step waits at each block while queries run. A block takes about as long, so that
/// compaction gets half of one core then and still comes to its end.
const YIELD: Duration = Duration::from_millis(1);

impl Store {
    /// Does one piece of background work if one is due. Returns whether it did.
    ///
    /// Errors: what the work met; it is tried again later.
    pub fn compact_step(&self) -> Result<bool> {
        let mut compaction = self.compaction.lock();
        if self.closed().is_some() || waits(compaction.failed_at_ms, self.clock.now_ms()) {
            return Ok(false);
        }
        let done = self.work(&compaction);
        match &done {
            Ok(_) => {
                *self.compaction_trouble.lock() = None;
                compaction.failed_at_ms = None;
            }
            Err(_) if self.pace.must_end.load(Ordering::Relaxed) => {}
            Err(error) => {
                *self.compaction_trouble.lock() = Some(error.to_string());
                compaction.failed_at_ms = Some(self.clock.now_ms());
                self.leave_damaged(&mut compaction, error);
                if matches!(error, Error::Corrupt { place, .. } if place.starts_with("ids/")) {
                    self.ids_are_damaged.store(true, Ordering::Relaxed);
                }
            }
        }
        done
    }

    /// Does background work until nothing is left to do, also what failed a moment ago. Returns how
    /// many steps that were.
    pub fn compact(&self) -> Result<u64> {
        self.compaction.lock().failed_at_ms = None;
        self.compact_when_due()
    }

    /// Does background work until nothing is due. Returns how many steps that were.
    pub fn compact_when_due(&self) -> Result<u64> {
        if self.follows() {
            return Ok(0);
        }
        let mut steps = 0;
        while self.compact_step()? {
            steps += 1;
        }
        Ok(steps)
    }

    /// Does the first of these that can be done: repairs, merges when fresh segments pile up, erasures,
    /// merges. What cannot go on (no room, a damaged segment) does not stop the others; its error is
    /// returned when nothing else is left to do.
    fn work(&self, compaction: &Compaction) -> Result<bool> {
        let mut first_error = None;
        if self.ids_are_damaged.load(Ordering::Relaxed) {
            match self.with_worker(|worker| worker.repair_runs()) {
                Ok(_) => self.ids_are_damaged.store(false, Ordering::Relaxed),
                Err(error) => first_error = Some(error),
            }
        }
        // Each erasure flushes: many of them must not pile up what writes are refused for.
        let fresh_many = 2 * self.limits.compaction.fan_in;
        if self.version().fresh_segments() >= fresh_many
            && self.merge_step(&self.listed(compaction)?)?
        {
            return Ok(true);
        }
        for erasure in erasure::unfinished(&self.version().tree)? {
            match self.erase_step(&erasure) {
                Ok(()) => return Ok(true),
                Err(error) => first_error = first_error.or(Some(error)),
            }
        }
        match (self.merge_step(&self.listed(compaction)?)?, first_error) {
            (false, Some(error)) => Err(error),
            (done, _) => Ok(done),
        }
    }

    /// Segments that merges must leave alone: damaged ones, and those that an erasure has listed.
    /// These keep their names until it comes to them: rows that were merged into another segment
    /// would be passed over.
    fn listed(&self, compaction: &Compaction) -> Result<BTreeSet<uuid::Uuid>> {
        let mut untouched = compaction.damaged.clone();
        for erasure in erasure::unfinished(&self.version().tree)? {
            untouched.extend(erasure.pending.unwrap_or_default());
        }
        Ok(untouched)
    }

    /// Merges what is due, but for the segments in `untouched`.
    fn merge_step(&self, untouched: &BTreeSet<uuid::Uuid>) -> Result<bool> {
        let before_us = self.clock.elapsed_us();
        let done = self.with_worker(|worker| worker.step(untouched))?;
        if let Some(done) = done {
            let took_us = self.clock.elapsed_us().saturating_sub(before_us);
            self.totals.compaction_us.record(took_us);
            self.count(&done);
        }
        Ok(done.is_some())
    }

    fn with_worker<T>(&self, run: impl FnOnce(&Worker<'_>) -> Result<T>) -> Result<T> {
        let (now_ms, elapsed_us) = (self.clock.now_ms(), self.clock.elapsed_us());
        let wait_ms = self.limits.compaction.expiry_wait_ms;
        let settled_ms = self.settled.lock().observe(now_ms, elapsed_us, wait_ms);
        // Before the first window has passed nothing is old.
        let settled_ms = settled_ms.unwrap_or(i64::MIN);
        run(&Worker {
            vfs: &*self.vfs,
            database: self.database,
            sequencer: &self.sequencer,
            limits: &self.limits.compaction,
            retention_days: self.limits.retention_days,
            uuid: &|| self.uuid(),
            now_ms,
            settled_ms,
            breathe: &|| self.breathe(),
        })
    }

    fn breathe(&self) -> Result<()> {
        if self.pace.must_end.load(Ordering::Relaxed) {
            return Err(Error::Closed("the store is being closed".to_owned()));
        }
        if self.pace.queries.load(Ordering::Relaxed) > 0 {
            self.totals.compaction_yields.fetch_add(1, Ordering::Relaxed);
            thread::sleep(YIELD);
        }
        Ok(())
    }

    fn count(&self, done: &Done) {
        let add = |total: &std::sync::atomic::AtomicU64, more| {
            total.fetch_add(more, Ordering::Relaxed);
        };
        add(&self.totals.compacted_rows, done.rows);
        add(&self.totals.compaction_read_bytes, done.bytes_read);
        add(&self.totals.compaction_written_bytes, done.bytes_written);
        add(&self.totals.expired_rows, done.rows_expired);
    }

    /// A merge that met damage names the file: the segment is left out of later ones.
    fn leave_damaged(&self, compaction: &mut Compaction, error: &Error) {
        let Error::Corrupt { place, .. } = error else { return };
        let version = self.version();
        let metas = version.segments.iter().map(|segment| segment.meta());
        compaction.damaged.extend(metas.filter(|meta| meta.path() == *place).map(|meta| meta.uuid));
    }

    /// Remembers that the last round of a thread of the background ended by a panic, or that it did not.
    pub fn note_round(&self, thread: &'static str, panicked: bool) {
        let mut threads = self.panicked.lock();
        if panicked {
            threads.insert(thread);
        } else {
            threads.remove(thread);
        }
    }

    /// Why the last step of the background failed, until one succeeds.
    pub fn compaction_trouble(&self) -> Option<String> {
        let panicked = self.panicked.lock().first().copied();
        let panicked =
            panicked.map(|thread| format!("the thread {thread} panicked and tries again"));
        panicked.or_else(|| self.compaction_trouble.lock().clone()).or_else(|| self.overdue())
    }

    /// Ends the step under way at its next block, and all later ones.
    pub fn stop_compaction(&self) {
        self.pace.must_end.store(true, Ordering::Relaxed);
        self.sequencer.begin_end();
    }

    /// Counts a query that runs, until the guard is dropped: compaction makes room for it.
    pub fn query_guard(&self) -> impl Drop + '_ {
        self.pace.queries.fetch_add(1, Ordering::Relaxed);
        QueryGuard(self)
    }

    /// Records that events must go, within a transaction. A namespace is gone for readers when that
    /// is durable; tenants and users when the erasure is done.
    pub fn erase(&self, txn: &mut Txn, namespace: Namespace, scope: Scope) -> Erasure {
        let erasure = Erasure {
            id: self.uuid(),
            namespace,
            scope,
            requested_ms: self.clock.now_ms(),
            finished_ms: None,
            pending: None,
            rows_removed: 0,
            ids_removed: 0,
            segments_changed: 0,
        };
        if erasure.scope == Scope::Namespace {
            let since = erasure.requested_ms.to_le_bytes().to_vec();
            txn.write_system(&namespace_key(DROPPED_PREFIX, namespace), Some(since));
        }
        erasure.put(txn);
        erasure
    }

    /// The erasure `id` of a namespace, if there is one.
    pub fn erasure(&self, namespace: Namespace, id: uuid::Uuid) -> Result<Option<Erasure>> {
        erasure::find(&self.version().tree, namespace, id)
    }

    /// The newest erasures of a namespace, at most `count`, of those before `before`.
    pub fn newest_erasures(
        &self,
        namespace: Namespace,
        before: Option<uuid::Uuid>,
        count: usize,
    ) -> Result<Vec<Erasure>> {
        erasure::newest(&self.version().tree, namespace, before, count)
    }

    /// All erasures, oldest first.
    pub fn erasures(&self) -> Result<Vec<Erasure>> {
        erasure::all(&self.version().tree)
    }

    /// When each erasure that is not done was asked for.
    pub fn pending_erasures(&self) -> Vec<i64> {
        let pending = erasure::unfinished(&self.version().tree).unwrap_or_default();
        pending.into_iter().map(|erasure| erasure.requested_ms).collect()
    }

    /// Says when an erasure has waited past its deadline.
    fn overdue(&self) -> Option<String> {
        let now_ms = self.clock.now_ms();
        let is_late = |since: &i64| now_ms.abs_diff(*since) > ERASURE_DEADLINE_MS;
        let late = self.pending_erasures().iter().filter(|since| is_late(since)).count();
        (late > 0).then(|| format!("{late} erasures are not done after a day"))
    }

    fn erase_step(&self, erasure: &Erasure) -> Result<()> {
        match &erasure.pending {
            None => {
                self.flush()?;
                self.with_worker(|worker| worker.list_erasure(erasure))
            }
            Some(pending) if !pending.is_empty() => {
                self.with_worker(|worker| worker.continue_erasure(erasure))
            }
            Some(_) => self.finish_erasure(erasure),
        }
    }

    /// Nothing that is live holds the events any more: now the log and the checkpoints that do are
    /// replaced by younger ones, and files that nothing names go.
    fn finish_erasure(&self, erasure: &Erasure) -> Result<()> {
        let touch = || self.sequencer.publish_edit(Edit::default(), |txn| erasure.put(txn));
        // Before a record is appended: when that succeeds, no other process has named any of them.
        let files = recovery::list_files(&*self.vfs)?;
        let mut upkeep = self.upkeep.lock();
        let rotated_at = self.sequencer.rotate_log();
        // Two checkpoints are kept: both have to be younger than the rows. One that was taken beside
        // an ingest may still need the log before: then another follows.
        for round in 0.. {
            touch()?;
            self.flush_all(&mut upkeep)?;
            let needed = upkeep.superblock.checkpoints.iter().map(|kept| kept.replay_after).min();
            if round > 0 && needed.is_some_and(|needed| needed >= rotated_at) {
                break;
            }
            if round >= ROUNDS_MAX {
                return Err(Error::limit(Limit::Backlog, "the log is still needed; retried later"));
            }
        }
        checkpoint::delete_older(&*self.vfs, &upkeep.superblock)?;
        recovery::delete_dead(&*self.vfs, &self.version().tree, &files)?;
        // What follows may take minutes elsewhere, and flushes go on meanwhile.
        drop(upkeep);
        // Files that come back after a loss of power are deleted by the next start, but for those of the log: they
        // would be taken for the beginning of a longer one.
        self.log.settle_deletions()?;
        // Where files are elsewhere: the log has been asked once more, so these are not named again.
        self.vfs.purge().at("removed files")?;
        let done = Erasure { finished_ms: Some(self.clock.now_ms()), ..erasure.clone() };
        self.sequencer.publish_edit(Edit::default(), |txn| done.put(txn))
    }

    /// Sets how many days a namespace keeps; `None` keeps everything.
    pub fn set_retention(&self, namespace: Namespace, days: Option<u32>) -> Result<()> {
        self.transact(|txn: &mut Txn| {
            retention::set(txn, namespace, days);
            Ok(())
        })
    }

    /// First millisecond that readers of a namespace see in `version`.
    pub fn horizon_ms(&self, version: &Version, namespace: Namespace) -> i64 {
        let (days, now_ms) = (self.limits.retention_days, self.clock.now_ms());
        retention::horizon_ms(&version.tree, namespace, days, now_ms)
    }

    /// Writes id runs that could not be opened at the start anew from the segments.
    pub(super) fn replace_lost_runs(&self, lost: &[uuid::Uuid]) -> Result<()> {
        if lost.is_empty() {
            return Ok(());
        }
        let runs_in = self.with_worker(|worker| worker.rebuild_runs(&self.version().segments))?;
        let edit = Edit { runs_out: lost.to_vec(), runs_in, ..Edit::default() };
        self.with_worker(|worker| worker.publish(edit, &[], &[], |_| ()))
    }
}

struct QueryGuard<'a>(&'a Store);

impl Drop for QueryGuard<'_> {
    fn drop(&mut self) {
        self.0.pace.queries.fetch_sub(1, Ordering::Relaxed);
    }
}
