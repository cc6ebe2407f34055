//! One process among those that have the same store: it leads, or it follows and takes over when the lease of the leader has ended.
//!
//! ```text
//! process A    leads: takes changes, renews its lease
//! process B    follows: reads the log every 20 ms, and whenever a request waits
//!
//! caught_up()  B: asks the log where it ends and applies what is there; a request that was begun before sees all that A has acknowledged
//! A ends       B finds the lease expired, takes the log over and leads; `until_leading` returns
//! A wakes up   its lease was taken: `is_lost`, and its process ends
//! ```
//!
//! A thread does this; those who wait for it share its turns. A process never goes back from leading to following: it ends and is started again, which
//! clears what it has in memory of a time in which it was the only one to change anything.

use std::{
    any::Any,
    panic::AssertUnwindSafe,
    sync::{
        Arc, OnceLock, Weak,
        atomic::{AtomicBool, AtomicU64, Ordering},
        mpsc::{self, Receiver, RecvTimeoutError, Sender},
    },
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};

use inlay_engine::{
    Engine, Error, Result,
    remote::{CacheMetrics, ObjectVfs},
};
use parking_lot::Mutex;
use tokio::sync::{oneshot, watch};
use tokio_postgres::types::Type;
use tracing::{info, warn};

use crate::{
    bounded_cache::BoundedCache,
    bucket_upkeep::BucketUpkeep,
    calls::{Calls, error_at},
    lease::Lease,
    log::{Head, PostgresLog},
    prefetcher::Prefetcher,
    read_index::ReadIndex,
    schema,
    session::{DatabaseSession, Value},
    uploads::Uploads,
};

/// How often a process that follows looks for records when nobody asks.
const POLL_EVERY: Duration = Duration::from_millis(20);
/// How often it does where that fails.
const POLL_AGAIN: Duration = Duration::from_millis(200);
/// How often a process says that it is there.
const SEEN_EVERY: Duration = Duration::from_secs(2);
/// How often room is freed on a disk that has not room for all files.
const EVICT_EVERY: Duration = Duration::from_secs(1);
/// After a take-over that did not succeed the next one is tried so much later.
const LEAD_AGAIN: Duration = Duration::from_millis(500);
/// How long a log or a file may be unreadable. A file that the leader has dropped is; the next record says so.
const BROKEN_TIME_MAX: Duration = Duration::from_secs(10);

/// Longest time for saying that it goes.
const GONE_TIME_MAX: Duration = Duration::from_secs(2);
/// Longest time for the end of the thread that follows.
const END_TIME_MAX: Duration = Duration::from_secs(12);

/// A request that waits until this process has applied all that was in the log when it asked.
type Waiting = oneshot::Sender<Result<(), String>>;

/// What the server asks about this process. Clones share it; where the last one goes, the process stops to follow and gives its lease back.
#[derive(Clone)]
pub struct Membership(Arc<MembershipGuard>);

/// Ends the thread when it goes.
struct MembershipGuard(Arc<Member>);

impl Drop for MembershipGuard {
    fn drop(&mut self) {
        self.0.is_ending.store(true, Ordering::Relaxed);
    }
}

/// Everything a process needs to take part.
pub struct MemberParts {
    /// The store, which follows.
    pub engine: Arc<Engine>,
    /// The log that the store follows.
    pub log: Arc<PostgresLog>,
    /// Where calls to the database run.
    pub calls: Calls,
    /// A session of the database for the lease, and for saying that the process is there.
    pub session: DatabaseSession,
    /// By which processes of this log know each other.
    pub secret: Vec<u8>,
    /// Files of the store: the bucket, and copies on the disk.
    pub files: Arc<ObjectVfs>,
    /// What was uploaded, for those that follow.
    pub uploads: Arc<Uploads>,
    /// How many bytes of segments and id runs the disk may have; all of them where nothing is said.
    pub cache_bytes_max: Option<u64>,
    /// The data directory is this process's own.
    pub cache_lock: Arc<dyn Any + Send + Sync>,
}

struct Member {
    parts: MemberParts,
    session: Arc<DatabaseSession>,
    read_index: ReadIndex,
    requests: Sender<Waiting>,
    lease: OnceLock<Lease>,
    leads: watch::Sender<bool>,
    is_lost: AtomicBool,
    is_ending: AtomicBool,
    url: Mutex<Option<String>>,
    thread: Mutex<Option<JoinHandle<()>>>,
    /// When the last turn began after which everything was applied.
    caught_up_at: Mutex<Option<Instant>>,
    turns: AtomicU64,
    prefetcher: Prefetcher,
    bucket: BucketUpkeep,
    cache: Option<BoundedCache>,
}

/// How a process stands to the log, for operators.
#[derive(Debug, Clone)]
pub struct Standing {
    /// Whether it leads.
    pub leads: bool,
    /// Epoch of the leader, as far as known.
    pub epoch: i64,
    /// Number of the last record in the log, when it was read last.
    pub lsn_last: u64,
    /// Number of the last record that is shown here.
    pub applied: u64,
    /// How long ago it had applied everything; `None` before the first time, zero where it leads.
    pub behind: Option<Duration>,
    /// Whether a leader is known that others can reach.
    pub has_leader: bool,
    /// Processes that were there within ten seconds.
    pub nodes: usize,
    /// How often it has read the log.
    pub log_reads: u64,
    /// Files that the store needs and the bucket has lost, as the leader saw it last.
    pub files_lost: usize,
    /// Files that were fetched before a record named them.
    pub files_prefetched: u64,
    /// The copies on this disk, where they have a bound.
    pub cache: Option<CacheMetrics>,
}

impl Membership {
    /// Takes part: leads at once where no other process does, else follows.
    ///
    /// Errors: those of taking over, and of starting a thread.
    pub fn join(parts: MemberParts) -> Result<Self> {
        let (requests, asked) = mpsc::channel();
        let session = Arc::new(parts.session.another());
        let read_index = ReadIndex::new(parts.session.another());
        let cache = parts.cache_bytes_max.map(BoundedCache::new);
        let member = Arc::new(Member {
            parts,
            session,
            read_index,
            requests,
            lease: OnceLock::new(),
            leads: watch::Sender::new(false),
            is_lost: AtomicBool::new(false),
            is_ending: AtomicBool::new(false),
            url: Mutex::default(),
            thread: Mutex::default(),
            caught_up_at: Mutex::default(),
            turns: AtomicU64::new(0),
            prefetcher: Prefetcher::default(),
            bucket: BucketUpkeep::default(),
            cache,
        });
        member.follow()?;
        member.prefetcher.begin();
        member.lead_if_free();
        member.parts.calls.spawn(Member::keep_saying(Arc::downgrade(&member)));
        member.parts.calls.spawn(Member::keep_fetching(Arc::downgrade(&member)));
        if member.cache.is_some() {
            member.parts.calls.spawn(Member::keep_evicting(Arc::downgrade(&member)));
        }
        let running = Arc::clone(&member);
        let thread = thread::Builder::new().name("inlay-follow".to_owned());
        let started = thread.spawn(move || {
            let run = AssertUnwindSafe(|| running.run(&asked));
            if std::panic::catch_unwind(run).is_err() {
                warn!(
                    "the thread that follows the log ended early; the process ends, to begin anew"
                );
                running.is_lost.store(true, Ordering::Relaxed);
            }
        });
        let started = started.map_err(|error| error_at("threads", &error))?;
        *member.thread.lock() = Some(started);
        Ok(Self(Arc::new(MembershipGuard(member))))
    }

    /// Says where other processes reach this one.
    pub fn announce(&self, url: &str) {
        *self.0.0.url.lock() = Some(url.to_owned());
    }

    /// Whether this process takes changes.
    pub fn leads(&self) -> bool {
        self.0.0.leads()
    }

    /// Returns when this process takes changes.
    pub async fn until_leading(&self) {
        let mut leads = self.0.0.leads.subscribe();
        if leads.wait_for(|leads| *leads).await.is_err() {
            std::future::pending().await
        }
    }

    /// Whether this process leads and no other one can, and shows all that those that follow may show: what it reads is the newest.
    pub fn is_valid(&self) -> bool {
        let member = &self.0.0;
        let has_lease = member.lease.get().is_some_and(Lease::is_valid) && !self.is_lost();
        has_lease && !member.parts.engine.is_unresolved()
    }

    /// Whether this process cannot go on: its lease was taken, or the log is not the one that it has.
    pub fn is_lost(&self) -> bool {
        let member = &self.0.0;
        member.is_lost.load(Ordering::Relaxed) || member.lease.get().is_some_and(Lease::is_lost)
    }

    /// Lets the lease end by itself: the store of this process cannot go on.
    pub fn give_up(&self) {
        let member = &self.0.0;
        member.is_lost.store(true, Ordering::Relaxed);
        if let Some(lease) = member.lease.get() {
            lease.give_up();
        }
    }

    /// Takes part no more: the lease is given back, so that the next process need not wait for its end. After the store is closed; blocks for some seconds at most.
    pub fn release(&self) {
        let member = &self.0.0;
        member.is_ending.store(true, Ordering::Relaxed);
        if let Some(lease) = member.lease.get() {
            lease.release();
        }
        member.say_gone();
        // It holds the store and the lock of the directory, which the next process may wait for.
        if let Some(thread) = member.thread.lock().take() {
            let start = Instant::now();
            while !thread.is_finished() && start.elapsed() < END_TIME_MAX {
                thread::sleep(POLL_EVERY);
            }
        }
    }

    /// Waits until this process shows all that was acknowledged before.
    ///
    /// Errors: why it cannot, for the log of the server.
    pub async fn caught_up(&self) -> Result<(), String> {
        let member = &self.0.0;
        if self.is_lost() {
            return Err("what this process has is not a part of the log any more".to_owned());
        }
        // Most of the time everything is applied already: then the thread is not waited for. The checksum tells this history from one that the database has come
        // back with.
        let end = member.read_index.end().await?;
        if member.parts.log.is_read_to(end)
            && member.parts.engine.applied() as i64 + 1 == end.lsn_next
        {
            return Ok(());
        }
        let (answer, answered) = oneshot::channel();
        let stopped = || "this process is stopping".to_owned();
        member.requests.send(answer).map_err(|_| stopped())?;
        answered.await.unwrap_or_else(|_| Err(stopped()))
    }

    /// Where the leader is reached, as far as known.
    pub fn leader_url(&self) -> Option<String> {
        let head = self.0.0.parts.log.head()?;
        (head.leader != Some(self.0.0.own())).then_some(head.leader_url).flatten()
    }

    /// By which processes of this store know each other.
    pub fn secret(&self) -> &[u8] {
        &self.0.0.parts.secret
    }

    /// Processes that were there within ten seconds, with this one.
    pub fn nodes(&self) -> usize {
        self.0.0.parts.log.nodes().max(1) as usize
    }

    /// How this process stands to the log.
    pub fn standing(&self) -> Standing {
        let member = &self.0.0;
        let (head, leads) = (member.parts.log.head(), self.leads());
        let applied = member.parts.engine.applied();
        let caught_up_at = *member.caught_up_at.lock();
        let behind = match leads {
            true => Some(Duration::ZERO),
            false => caught_up_at.map(|at| at.elapsed()),
        };
        let of = |pick: fn(&Head) -> i64| head.as_ref().map_or(0, pick);
        Standing {
            leads,
            epoch: of(|head| head.epoch),
            lsn_last: applied.max((of(|head| head.lsn_next) - 1).max(0) as u64),
            applied,
            behind,
            has_leader: leads || self.leader_url().is_some(),
            nodes: self.nodes(),
            log_reads: member.turns.load(Ordering::Relaxed),
            files_lost: member.bucket.lost(),
            files_prefetched: member.prefetcher.count(),
            cache: member.cache.as_ref().map(|cache| cache.metrics(&member.parts.files)),
        }
    }
}

impl Member {
    fn leads(&self) -> bool {
        self.lease.get().is_some()
    }

    fn own(&self) -> uuid::Uuid {
        self.parts.log.identity().own
    }

    /// The thread: follows until it leads, and says from time to time that this process is there.
    fn run(&self, requests: &Receiver<Waiting>) {
        let mut not_before: Option<Instant> = None;
        let mut broken_since = None;
        let mut pause = POLL_EVERY;
        while !self.is_ending() && !self.is_lost.load(Ordering::Relaxed) {
            let mut waiting = Vec::new();
            match requests.recv_timeout(pause) {
                Ok(first) => waiting.push(first),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return,
            }
            // All of them asked before this turn begins.
            waiting.extend(requests.try_iter());
            let turn = self.turn(&mut broken_since);
            pause = if turn.is_ok() && !self.leads() { POLL_EVERY } else { POLL_AGAIN };
            for one in waiting {
                // Who does not wait any more needs no answer.
                let _ = one.send(turn.clone());
            }
            // After the answers: a take-over takes longer, and so may the next attempt at one.
            if turn.is_ok() && not_before.is_none_or(|at| Instant::now() > at) {
                not_before = self.lead_if_free().then(|| Instant::now() + LEAD_AGAIN);
            }
        }
    }

    /// Says from time to time that this process is there, beside all else: until it ends. Asleep, it holds nothing: the store and the lock of the directory
    /// are free when the process has stopped.
    async fn keep_saying(member: Weak<Self>) {
        loop {
            let Some(this) = member.upgrade().filter(|this| !this.is_ending()) else { return };
            let is_said = this.say_seen().await;
            // How many processes there are, which those that follow read with the log. Where that fails, it is as it was.
            if is_said && this.leads() {
                let leader = Arc::clone(&this);
                let looked = move || {
                    if leader.bucket.disk_has_failed(
                        &leader.parts.files,
                        &leader.parts.engine,
                        Instant::now(),
                    ) {
                        leader.is_lost.store(true, Ordering::Relaxed);
                        leader.lease.get().into_iter().for_each(Lease::release);
                    }
                    leader.parts.log.look()
                };
                drop(tokio::task::spawn_blocking(looked).await);
                this.look_after_bucket();
            }
            if this.bucket.must_replace(&this.parts.engine, Instant::now()) {
                let engine = Arc::clone(&this.parts.engine);
                drop(tokio::task::spawn_blocking(move || BucketUpkeep::replace(&engine)));
            }
            drop(this);
            tokio::time::sleep(if is_said { SEEN_EVERY } else { POLL_AGAIN }).await;
        }
    }

    fn is_ending(&self) -> bool {
        self.is_ending.load(Ordering::Relaxed)
    }

    /// Applies what is new.
    fn turn(&self, broken_since: &mut Option<Instant>) -> Result<(), String> {
        if let Some(lease) = self.lease.get() {
            let ended = || "the lease has ended".to_owned();
            return lease.is_valid().then_some(()).ok_or_else(ended);
        }
        match self.follow() {
            Ok(()) => *broken_since = None,
            Err(error) => {
                let is_broken = matches!(error, Error::Corrupt { .. });
                let since = *broken_since.get_or_insert_with(Instant::now);
                if !is_broken {
                    *broken_since = None;
                } else if since.elapsed() > BROKEN_TIME_MAX {
                    warn!(%error, "what this process shows is not a part of the log any more; it ends, to begin anew");
                    self.is_lost.store(true, Ordering::Relaxed);
                }
                return Err(error.to_string());
            }
        }
        Ok(())
    }

    fn follow(&self) -> Result<()> {
        let began = Instant::now();
        self.turns.fetch_add(1, Ordering::Relaxed);
        let followed = self.parts.engine.follow();
        if let Some(head) = self.parts.log.head() {
            self.prefetcher.wake(head.uploads);
        }
        followed?;
        *self.caught_up_at.lock() = Some(began);
        Ok(())
    }

    /// Fetches what the leader announces, for as long as this process follows.
    async fn keep_fetching(member: Weak<Self>) {
        while let Some(this) = member.upgrade().filter(|this| !this.is_ending() && !this.leads()) {
            let parts = &this.parts;
            let goes_on = || !this.is_ending() && !this.leads();
            this.prefetcher.fetch(&parts.uploads, &parts.files, &parts.engine, goes_on).await;
            let woken = this.prefetcher.woken();
            drop(this);
            // Asleep, it holds nothing.
            let _ = tokio::time::timeout(SEEN_EVERY, woken.notified()).await;
        }
    }

    /// Frees room on the disk, once a second, for as long as this process runs.
    async fn keep_evicting(member: Weak<Self>) {
        while let Some(this) = member.upgrade().filter(|this| !this.is_ending()) {
            let ran = tokio::task::spawn_blocking(move || {
                if let Some(cache) = &this.cache {
                    cache.run(&this.parts.engine);
                }
            });
            drop(ran.await);
            tokio::time::sleep(EVICT_EVERY).await;
        }
    }

    /// From time to time, for a process that leads.
    fn look_after_bucket(self: &Arc<Self>) {
        if self.bucket.is_due(Instant::now()) {
            let this = Arc::clone(self);
            drop(tokio::task::spawn_blocking(move || {
                let may_change =
                    || this.lease.get().is_some_and(Lease::is_valid) && !this.is_ending();
                this.bucket.run(&this.parts.files, &this.parts.engine, &may_change, Instant::now());
            }));
        }
    }

    /// Takes the log over where no other process leads. Returns whether it was tried and did not succeed.
    fn lead_if_free(&self) -> bool {
        let identity = self.parts.log.identity();
        let Some(head) = self.parts.log.head() else { return false };
        let is_of_before = head.leader.is_some() && head.leader == identity.before;
        if self.leads() || (head.lease_ms >= 0 && !is_of_before) {
            return false;
        }
        // Renewed from the moment at which it is taken: what comes after may take longer than a lease.
        let (calls, session) = (&self.parts.calls, self.parts.session.another());
        let lease = Lease::new(calls, session, identity.own, Arc::clone(&self.parts.cache_lock));
        let led = self.parts.engine.lead().and_then(|()| lease.opened());
        match led {
            Ok(()) => {
                info!(former = ?head.leader, "this process leads");
                self.parts.uploads.allow_while(lease.validity());
                let _ = self.lease.set(lease);
                self.leads.send_replace(true);
                return false;
            }
            Err(error) if self.parts.engine.follows() => {
                // Where the answer was lost, the lease is ours all the same: it must have ended before it is taken again.
                lease.release();
                info!(%error, "the log was not taken over");
            }
            // The log is taken over, and the lease is not known to be ours: whoever comes next finds it expired.
            Err(error) => {
                warn!(%error, "the log was taken over, and its lease could not be renewed");
                self.is_lost.store(true, Ordering::Relaxed);
            }
        }
        true
    }

    /// Says that this process is there. Returns whether that is known now.
    async fn say_seen(&self) -> bool {
        let Some(url) = self.url.lock().clone() else { return false };
        let (own, applied) = (self.own(), self.parts.engine.applied() as i64);
        let (fetched, (first, last)) = (self.prefetcher.fetched(), schema::FORMATS);
        let said = self.session.run_here_within(SEEN_EVERY, move |client| async move {
            let values: [Value<'_>; 8] = [
                (&own, Type::UUID),
                (&url, Type::TEXT),
                (&env!("CARGO_PKG_VERSION"), Type::TEXT),
                (&applied, Type::INT8),
                (&fetched, Type::INT8),
                (&first, Type::INT4),
                (&last, Type::INT4),
                (&schema::FORMAT_WRITTEN, Type::INT4),
            ];
            client.execute_typed(schema::SEEN, &values).await
        });
        said.await.is_ok()
    }

    /// Says that it goes; where that fails, it is soon too old to count.
    fn say_gone(&self) {
        let own = self.own();
        let said = self.session.run_within(GONE_TIME_MAX, move |client| async move {
            client.execute_typed(schema::GONE, &[(&own, Type::UUID)]).await
        });
        if let Err(failure) = said {
            info!(error = %failure.error(), "other processes were not informed that this one goes");
        }
    }
}
