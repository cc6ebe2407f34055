//! One order for everything: duplicates are decided, records numbered, groups committed.
//!
//! A writer prepares under one lock: its rows are checked against the known ids, its transaction
//! runs against the newest state, and its record joins the pending group. Then it settles: it waits
//! for the commit lock, and whoever gets it writes all that is pending with one sync, publishes one
//! new version and fills the tickets of the others. While a sync runs, the next group forms; there
//! is no timer.
//!
//! What was prepared but not committed is visible to later writers only. A full disk rolls all of
//! it back. Any other failure of the log in files closes the store for writes: its state on disk is unknown
//! until a restart replays it. Readers go on with what was published.
//!
//! A log elsewhere may be away for a while, and not say whether it has a group. The group is then *unresolved*: its writers get an error that
//! says so, and no other write is taken until the log has said. A group that turns out to be there is published then, as if its
//! writers had been answered.

use std::{
    sync::{
        Arc, OnceLock,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use arc_swap::ArcSwap;
use parking_lot::Mutex;

use super::{dedup::Dedup, edit::Edit, log::LogWriter, names::is_dropped, version::Version};
use crate::{
    base::{
        coding::Put,
        hash::{self, HashSet128},
    },
    batch::Batch,
    column::{Rows, RowsBuilder},
    error::{Error, Limit, Result},
    ids::IdRun,
    keyspace::{Tree, Txn, Writes, write_writes},
    segment::Segment,
    wal::{self, AppendError, RecordKind, put_record},
};

/// Pending bytes at which a writer commits before it adds more, so that a group stays small enough
/// to be written in one go.
const GROUP_BYTES_MAX: usize = 4 << 20;
/// How long a store that is being closed asks the log whether it has a change of the files. Until then there is no limit.
const EDIT_TIME_MAX: Duration = Duration::from_secs(5);
/// Time between two of these questions.
const EDIT_PAUSE: Duration = Duration::from_millis(100);

/// Outcome of an ingest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ingested {
    /// Rows that were new.
    pub new: u32,
    /// For each row of the batch, whether it was known already.
    pub duplicates: Vec<bool>,
}

/// The result of one writer's record, filled by whoever commits it.
type Ticket = Arc<OnceLock<Result<()>>>;

enum Effect {
    None,
    Rows(Arc<Rows>),
    Edit(Edit),
}

struct Item {
    ticket: Ticket,
    effect: Effect,
    ids: Vec<u128>,
}

struct Prepare {
    lsn_next: u64,
    tree: Tree,
    dedup: Dedup,
    group: Group,
    last: Option<Ticket>,
    /// A group of which is not known whether the log has it.
    unresolved: Option<TakenGroup>,
}

#[derive(Default)]
struct Group {
    body: Vec<u8>,
    items: Vec<Item>,
}

/// Orders and commits changes.
pub struct Sequencer {
    hash_seed: u64,
    prepare: Mutex<Prepare>,
    commit: Mutex<Box<dyn LogWriter>>,
    version: ArcSwap<Version>,
    /// Why writes are refused, once they are.
    closed: OnceLock<String>,
    /// Whether an id run could not answer.
    ids_failed: AtomicBool,
    /// Whether a group is unresolved, for writers that look before they lock.
    is_unresolved: AtomicBool,
    /// Whether the store is about to be closed.
    is_ending: AtomicBool,
    /// Whether another process writes, and its records are applied here.
    follows: AtomicBool,
}

impl Sequencer {
    /// Continues after `version`, with the ids in `dedup` known.
    pub fn new(hash_seed: u64, version: Version, dedup: Dedup, writer: Box<dyn LogWriter>) -> Self {
        let prepare = Prepare {
            lsn_next: version.lsn + 1,
            tree: version.tree.clone(),
            dedup,
            group: Group::default(),
            last: None,
            unresolved: None,
        };
        Self {
            hash_seed,
            prepare: Mutex::new(prepare),
            commit: Mutex::new(writer),
            version: ArcSwap::from_pointee(version),
            closed: OnceLock::new(),
            ids_failed: AtomicBool::new(false),
            is_unresolved: AtomicBool::new(false),
            is_ending: AtomicBool::new(false),
            follows: AtomicBool::new(false),
        }
    }

    /// Follows what another process writes, which [`Sequencer::show`] is given; changes are refused.
    pub fn following(hash_seed: u64, version: Version, dedup: Dedup) -> Self {
        let this = Self::new(hash_seed, version, dedup, Box::new(NoLog));
        this.follows.store(true, Ordering::Release);
        this
    }

    /// Whether another process writes.
    pub fn follows(&self) -> bool {
        self.follows.load(Ordering::Acquire)
    }

    /// Shows readers a version that records of another process have led to. `change` may keep the ids that are known, add to them, or make them anew.
    pub fn show(&self, version: Version, change: impl FnOnce(&mut Dedup)) {
        let mut prepare = self.prepare.lock();
        prepare.lsn_next = version.lsn + 1;
        prepare.tree = version.tree.clone();
        change(&mut prepare.dedup);
        self.version.store(Arc::new(version));
    }

    /// Shows readers files that were opened anew in place of those of the same names. The caller sees to it that nobody shows another version meanwhile.
    pub fn replace_segments(&self, opened: &[Arc<Segment>]) {
        let _prepare = self.prepare.lock();
        let mut version = Version::clone(&self.version());
        let newer = |segment: &Arc<Segment>| {
            let is_it = |other: &&Arc<Segment>| other.meta() == segment.meta();
            Arc::clone(opened.iter().find(is_it).unwrap_or(segment))
        };
        version.segments = version.segments.over(version.segments.iter().map(newer).collect());
        self.version.store(Arc::new(version));
    }

    /// Writes from now on, behind the version that is shown.
    pub fn lead(&self, writer: Box<dyn LogWriter>) {
        *self.commit.lock() = writer;
        self.follows.store(false, Ordering::Release);
    }

    /// What readers see now.
    pub fn version(&self) -> Arc<Version> {
        self.version.load_full()
    }

    /// Stores the rows of a batch that are new, with the keyspace writes of `extra` in the same
    /// record. Returns when they are durable and visible.
    ///
    /// `extra` runs only when rows are new; its error stores nothing.
    pub fn ingest<E: From<Error>>(
        &self,
        batch: Batch,
        extra: impl FnOnce(&mut Txn, &Ingested) -> Result<(), E>,
    ) -> Result<Ingested, E> {
        let (namespace, rows) = (batch.namespace(), batch.into_rows());
        let hashes = self.id_hashes(namespace.0, &rows);
        let mut encoded = Vec::new();
        rows.write(&mut encoded);

        self.resolve()?;
        self.make_room()?;
        let mut prepare = self.prepare.lock();
        self.check_ready(&prepare)?;
        if is_dropped(&prepare.tree, namespace) {
            return Err(Error::invalid("namespace", "was dropped").into());
        }
        let (ingested, new_ids) = decide(&prepare.dedup, &hashes)
            .inspect_err(|_| self.ids_failed.store(true, Ordering::Relaxed))?;
        if ingested.new == 0 {
            let last = prepare.last.clone();
            drop(prepare);
            // The originals may still be pending: their durability is ours.
            if let Some(last) = last {
                self.settle(&last)?;
            }
            return Ok(ingested);
        }
        let mut txn = Txn::new(prepare.tree.clone());
        extra(&mut txn, &ingested)?;
        let (tree, writes) = txn.finish();

        let mut payload = Vec::with_capacity(encoded.len() + rows.len() / 8 + 64);
        put_mask(&ingested.duplicates, &mut payload);
        payload.put_bytes(&encoded);
        write_writes(&writes, &mut payload);
        let rows = self.keep_new(rows, &ingested);
        for &id in &new_ids {
            prepare.dedup.insert(id);
        }
        let ticket = prepare.push(RecordKind::Events, &payload, tree, Effect::Rows(rows), new_ids);
        drop(prepare);
        self.settle(&ticket)?;
        Ok(ingested)
    }

    /// Runs a transaction. Returns when its writes are durable and visible.
    pub fn transact<T, E: From<Error>>(
        &self,
        run: impl FnOnce(&mut Txn) -> Result<T, E>,
    ) -> Result<T, E> {
        self.resolve()?;
        self.make_room()?;
        let mut prepare = self.prepare.lock();
        self.check_ready(&prepare)?;
        let mut txn = Txn::new(prepare.tree.clone());
        let out = run(&mut txn)?;
        let (tree, writes) = txn.finish();
        let ticket = if writes.is_empty() {
            // What it read may still be pending.
            prepare.last.clone()
        } else {
            Some(prepare.push_writes(tree, &writes, Effect::None))
        };
        drop(prepare);
        if let Some(ticket) = ticket {
            self.settle(&ticket)?;
        }
        Ok(out)
    }

    /// Publishes a change of what is live, with more of the engine's own keys that `extra` writes.
    pub fn publish_edit(&self, edit: Edit, extra: impl FnOnce(&mut Txn)) -> Result<()> {
        self.resolve()?;
        let mut prepare = self.prepare.lock();
        self.check_ready(&prepare)?;
        let mut txn = Txn::new(prepare.tree.clone());
        edit.write(&mut txn);
        extra(&mut txn);
        let (tree, writes) = txn.finish();
        let ticket = prepare.push_writes(tree, &writes, Effect::Edit(edit));
        drop(prepare);
        // After an error that is none of the log's, the caller deletes the files that the edit names: it must not get one before it is known whether
        // the log has them.
        let mut ending_since = None;
        while ending_since.is_none_or(|since: Instant| since.elapsed() < EDIT_TIME_MAX) {
            if let Some(result) = self.try_settle(&ticket) {
                return result;
            }
            if self.is_ending.load(Ordering::Relaxed) {
                ending_since.get_or_insert_with(Instant::now);
            }
            thread::sleep(EDIT_PAUSE);
            let _ = self.resolve();
        }
        self.close("the log does not say whether it has a change of the files");
        self.check_open()
    }

    /// The store is about to be closed: what waits for the log waits a few seconds more, not for ever.
    pub fn begin_end(&self) {
        self.is_ending.store(true, Ordering::Relaxed);
    }

    /// The id runs that decide about duplicates.
    pub fn id_runs(&self) -> Vec<Arc<IdRun>> {
        self.prepare.lock().dedup.runs().to_vec()
    }

    /// Whether the id runs could answer when they were last asked.
    pub fn ids_answer(&self) -> bool {
        !self.ids_failed.swap(false, Ordering::Relaxed)
    }

    /// Ids in memory that no run holds yet.
    pub fn recent_ids(&self) -> usize {
        self.prepare.lock().dedup.recent()
    }

    /// What readers see now, and where the log ends that says so.
    pub fn pin(&self) -> Result<(Arc<Version>, Option<wal::LogEnd>)> {
        let writer = self.commit.lock();
        self.check_open()?;
        Ok((self.version(), writer.end()))
    }

    /// Ends the current log file: the next record starts a new one. Returns the last LSN before.
    pub fn rotate_log(&self) -> u64 {
        let mut writer = self.commit.lock();
        writer.rotate();
        self.version().lsn
    }

    /// Sets the memtable aside for a flush: its ids, and the LSN of its last row. `None` when it is
    /// empty.
    pub fn freeze(&self) -> Result<Option<(Arc<HashSet128>, u64)>> {
        let mut writer = self.commit.lock();
        let mut prepare = self.prepare.lock();
        self.check_ready(&prepare)?;
        // Rows that are pending belong to ids that would be set aside: commit them first.
        let group = prepare.take_group();
        if let Some(group) = group {
            self.commit_group(&mut **writer, group, Some(&mut prepare));
            self.check_ready(&prepare)?;
        }
        let mut version = Version::clone(&self.version());
        if version.active.rows() == 0 {
            return Ok(None);
        }
        version.frozen = Some(Arc::new(std::mem::take(&mut version.active)));
        let lsn = version.lsn;
        self.version.store(Arc::new(version));
        Ok(Some((prepare.dedup.freeze(), lsn)))
    }

    /// First LSN of the log file in use.
    pub fn log_file_lsn_first(&self) -> Option<u64> {
        self.commit.lock().end().map(|end| end.lsn_first)
    }

    /// Refuses further writes.
    pub fn close(&self, why: &str) {
        // Whoever prepared before this still commits: nothing is half done.
        let _prepare = self.prepare.lock();
        let _ = self.closed.set(why.to_owned());
    }

    /// Why writes are refused, if they are.
    pub fn closed(&self) -> Option<String> {
        self.closed.get().cloned()
    }

    fn check_open(&self) -> Result<()> {
        if self.follows() {
            return Err(Error::Elsewhere);
        }
        self.closed.get().map_or(Ok(()), |why| Err(Error::Closed(why.clone())))
    }

    /// Whether a change may be prepared: the store is open, and nothing before the change is unresolved.
    /// Called with the lock of `prepare`, under which a group becomes unresolved.
    fn check_ready(&self, _: &Prepare) -> Result<()> {
        self.check_open()?;
        match self.is_unresolved.load(Ordering::Acquire) {
            false => Ok(()),
            true => Err(unresolved("it has not answered yet")),
        }
    }

    /// Whether the log has not answered whether it has a group.
    pub fn is_unresolved(&self) -> bool {
        self.is_unresolved.load(Ordering::Acquire)
    }

    /// Asks the log once more about a group that is unresolved, if there is one.
    ///
    /// Errors: `Limit` while it cannot be known.
    pub fn resolve(&self) -> Result<()> {
        if !self.is_unresolved.load(Ordering::Acquire) {
            return Ok(());
        }
        let mut writer = self.commit.lock();
        let group = self.prepare.lock().unresolved.take();
        if let Some(group) = group {
            self.commit_group(&mut **writer, group, None);
        }
        let prepare = self.prepare.lock();
        // Not before the log has answered: what the group holds would pass for stored until then.
        if prepare.unresolved.is_none() {
            self.is_unresolved.store(false, Ordering::Release);
        }
        self.check_ready(&prepare)
    }

    fn id_hashes(&self, namespace: u32, rows: &Rows) -> Vec<Option<u128>> {
        let mut scratch = Vec::new();
        let hash = |row| {
            let id = rows.event_ids.value(row)?;
            let tenant = rows.series_of(row).tenant.as_bytes();
            Some(hash::event_id(self.hash_seed, namespace, tenant, id, &mut scratch))
        };
        (0..rows.len()).map(hash).collect()
    }

    fn keep_new(&self, rows: Rows, ingested: &Ingested) -> Arc<Rows> {
        if ingested.new as usize == rows.len() {
            return Arc::new(rows);
        }
        let chosen: Vec<u32> =
            (0..rows.len() as u32).filter(|&row| !ingested.duplicates[row as usize]).collect();
        let mut builder = RowsBuilder::new(self.hash_seed);
        builder.append(&rows, &chosen);
        Arc::new(builder.finish())
    }

    /// Commits what is pending when it is much, before more is added.
    fn make_room(&self) -> Result<()> {
        let last = {
            let prepare = self.prepare.lock();
            if prepare.group.body.len() < GROUP_BYTES_MAX {
                return Ok(());
            }
            prepare.last.clone()
        };
        last.map_or(Ok(()), |last| self.settle(&last))
    }

    /// Waits until the ticket is filled, committing if nobody else does.
    fn settle(&self, ticket: &Ticket) -> Result<()> {
        self.try_settle(ticket).unwrap_or_else(|| {
            match self.is_unresolved.load(Ordering::Acquire) {
                true => Err(unresolved("it has not answered yet")),
                // A ticket is filled by the commit of its group, which ran before or just now.
                false => Err(Error::Closed("a write was lost before it was committed".to_owned())),
            }
        })
    }

    /// As [`Sequencer::settle`]; `None` for an edit in a group that is unresolved.
    fn try_settle(&self, ticket: &Ticket) -> Option<Result<()>> {
        if let Some(result) = ticket.get() {
            return Some(result.clone());
        }
        let mut writer = self.commit.lock();
        if ticket.get().is_none() {
            let group = self.prepare.lock().take_group();
            if let Some(group) = group {
                self.commit_group(&mut **writer, group, None);
            }
        }
        ticket.get().cloned()
    }

    /// Writes, syncs and publishes a group, or rolls it back. `held` is the prepare lock, where the
    /// caller holds it.
    fn commit_group(
        &self,
        writer: &mut dyn LogWriter,
        group: TakenGroup,
        held: Option<&mut Prepare>,
    ) {
        let count = group.items.len() as u32;
        let written = writer.append(group.lsn_first, count, &group.body);
        let mut own;
        let prepare = match held {
            Some(held) => held,
            None => {
                own = self.prepare.lock();
                &mut own
            }
        };
        match written {
            Ok(()) => self.publish(group, prepare),
            Err(AppendError::Unknown(error)) => self.suspend(group, &error, prepare),
            Err(failure) => self.roll_back(group, failure, prepare),
        }
    }

    fn publish(&self, group: TakenGroup, prepare: &mut Prepare) {
        let mut version = Version::clone(&self.version());
        version.lsn = group.lsn_first + group.items.len() as u64 - 1;
        version.tree = group.tree;
        let mut tickets = Vec::with_capacity(group.items.len());
        for item in group.items {
            match item.effect {
                Effect::None => {}
                Effect::Rows(rows) => version.active.append(rows, self.hash_seed),
                Effect::Edit(edit) => edit.apply(&mut version, &mut prepare.dedup),
            }
            tickets.push(item.ticket);
        }
        self.version.store(Arc::new(version));
        for ticket in tickets {
            let _ = ticket.set(Ok(()));
        }
    }

    /// Keeps a group until the log says whether it has it, and undoes what was prepared after it.
    fn suspend(&self, group: TakenGroup, error: &Error, prepare: &mut Prepare) {
        let error = unresolved(&error.to_string());
        prepare.tree = group.tree.clone();
        prepare.lsn_next = group.lsn_first + group.items.len() as u64;
        prepare.last = None;
        for item in &std::mem::take(&mut prepare.group).items {
            prepare.dedup.forget(&item.ids);
            let _ = item.ticket.set(Err(error.clone()));
        }
        for item in group.items.iter().filter(|item| !matches!(item.effect, Effect::Edit(_))) {
            let _ = item.ticket.set(Err(error.clone()));
        }
        prepare.unresolved = Some(group);
        self.is_unresolved.store(true, Ordering::Release);
    }

    /// Undoes everything that was prepared since the last published version: later writers saw it.
    fn roll_back(&self, group: TakenGroup, failure: AppendError, prepare: &mut Prepare) {
        let error = match failure {
            AppendError::Retry(error) if error.is_disk_full() => {
                Error::limit(Limit::Disk, format!("the disk is full: {error}"))
            }
            AppendError::Retry(error) => {
                Error::limit(Limit::Backlog, format!("the log cannot grow: {error}"))
            }
            AppendError::Unknown(error) | AppendError::Fatal(error) => {
                let _ = self.closed.set(error.to_string());
                Error::Closed(error.to_string())
            }
        };
        prepare.tree = self.version().tree.clone();
        prepare.lsn_next = group.lsn_first;
        let later = std::mem::take(&mut prepare.group);
        for item in group.items.into_iter().chain(later.items) {
            prepare.dedup.forget(&item.ids);
            let _ = item.ticket.set(Err(error.clone()));
        }
        prepare.last = None;
    }
}

/// Where a process has no writer that follows another one. Nothing is prepared there, so nothing is appended.
struct NoLog;

impl LogWriter for NoLog {
    fn append(&mut self, _: u64, _: u32, _: &[u8]) -> Result<(), AppendError> {
        Err(AppendError::Retry(Error::Elsewhere))
    }

    fn rotate(&mut self) {}

    fn end(&self) -> Option<wal::LogEnd> {
        None
    }

    fn meters(&self) -> Arc<wal::LogMeters> {
        Arc::default()
    }
}

/// The error of a write of which is not known whether it is stored.
fn unresolved(why: &str) -> Error {
    let detail = format!(
        "the log cannot be reached ({why}), so it is not known whether the write is stored; retry soon"
    );
    Error::limit(Limit::Backlog, detail)
}

struct TakenGroup {
    lsn_first: u64,
    body: Vec<u8>,
    items: Vec<Item>,
    tree: Tree,
}

impl Prepare {
    fn push_writes(&mut self, tree: Tree, writes: &Writes, effect: Effect) -> Ticket {
        let mut payload = Vec::new();
        write_writes(writes, &mut payload);
        self.push(RecordKind::Writes, &payload, tree, effect, Vec::new())
    }

    fn push(
        &mut self,
        kind: RecordKind,
        payload: &[u8],
        tree: Tree,
        effect: Effect,
        ids: Vec<u128>,
    ) -> Ticket {
        put_record(kind, payload, &mut self.group.body);
        let ticket = Ticket::default();
        self.group.items.push(Item { ticket: Arc::clone(&ticket), effect, ids });
        self.tree = tree;
        self.lsn_next += 1;
        self.last = Some(Arc::clone(&ticket));
        ticket
    }

    fn take_group(&mut self) -> Option<TakenGroup> {
        if self.group.items.is_empty() {
            return None;
        }
        let group = std::mem::take(&mut self.group);
        let lsn_first = self.lsn_next - group.items.len() as u64;
        Some(TakenGroup {
            lsn_first,
            body: group.body,
            items: group.items,
            tree: self.tree.clone(),
        })
    }
}

/// Which rows are new: neither known nor seen earlier in the batch.
fn decide(dedup: &Dedup, hashes: &[Option<u128>]) -> Result<(Ingested, Vec<u128>)> {
    let mut seen = HashSet128::default();
    let mut new_ids = Vec::with_capacity(hashes.len());
    let mut duplicates = Vec::with_capacity(hashes.len());
    for hash in hashes {
        let known = match hash {
            None => false,
            Some(hash) => !seen.insert(*hash) || dedup.contains(*hash)?,
        };
        if !known {
            new_ids.extend(hash);
        }
        duplicates.push(known);
    }
    let new = duplicates.iter().filter(|&&duplicate| !duplicate).count() as u32;
    Ok((Ingested { new, duplicates }, new_ids))
}

/// Appends which rows are duplicates: nothing when none is, else a bit a row.
fn put_mask(duplicates: &[bool], out: &mut Vec<u8>) {
    if duplicates.iter().any(|&duplicate| duplicate) {
        let bytes: Vec<u8> = duplicates
            .chunks(8)
            .map(|bits| {
                bits.iter().enumerate().fold(0, |byte, (at, &bit)| byte | (u8::from(bit) << at))
            })
            .collect();
        out.put_bytes(&bytes);
    } else {
        out.put_bytes(&[]);
    }
}
