//! Permits of queries: as many run at once as there are cores, shared between organisations.
//!
//! A query that holds a permit calls [`QueryPermit::give_way`] at the borders of blocks, and pauses there when another one
//! is due: after a millisecond for an organisation that has fewer permits, after ten for another query of its own. So an
//! organisation that sends heavy queries without a pause has all cores while it is alone, and a small query of another
//! one waits for the end of a block.
//!
//! With two cores: `a` runs two queries and 30 of its own wait. One of `b` comes; the next of `a`'s two that reaches
//! the border of a block pauses, `b`'s runs, and when it ends the paused one goes on.
//!
//! ```text
//! time     runs        waits                  why
//! 0 ms     a1 a2       a3 … a32
//! 5 ms     a1 b1       a2 (first), a3 …       b has 0 permits and a has 2: a2 gives way
//! 6 ms     a1 a2       a3 …                   b1 has ended
//! 10 ms    a2 a3       a4 …, a1 (last)        a1 has run for 10 ms, and others of its own organisation wait
//! ```
//!
//! An organisation begins at most six queries more than there are permits, since each that has begun holds its memory.

use std::{
    collections::{HashMap, VecDeque},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use parking_lot::Mutex;
use tokio::sync::oneshot;

use super::query_threads::lower_priority_and_yield;

/// How long a query runs at least before it gives way to another organisation's.
const SLICE: Duration = Duration::from_millis(1);
/// How long a query runs at least before it gives way to one of its own organisation.
const OWN_SLICE: Duration = Duration::from_millis(10);
/// How long a query runs before the priority of its threads is lowered.
const LOWERED_AFTER: Duration = Duration::from_micros(500);
/// Queries of an organisation that have begun, beside as many as there are permits: each has memory.
const BEGUN_OF_ORG: usize = 6;
/// The same for all organisations together; an organisation without any may begin one until there are twice as many.
const BEGUN: usize = 32;

/// The permits of all queries, and the queries that wait for one.
pub struct QueryPermits {
    at_once: usize,
    state: Mutex<State>,
    /// Queries that wait, begun or not: read without the lock.
    waiting: AtomicUsize,
}

/// Number of queries by state.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct QueryCounts {
    /// Queries that hold a permit.
    pub running: usize,
    /// Queries that have begun and wait for a permit to go on.
    pub paused: usize,
    /// Queries that have not begun.
    pub waiting: usize,
}

/// Counts of all queries, under one lock. It is taken when a query begins or ends, and at the borders of blocks only while another one waits.
#[derive(Default)]
struct State {
    running: usize,
    paused: usize,
    /// Number of grants so far.
    grants: u64,
    /// Organisations that run queries or wait for permits, by their ids.
    orgs: HashMap<Arc<str>, OrgQueries>,
}

/// Queries of one organisation. Removed when it has none, so that idle organisations cost nothing.
#[derive(Default)]
struct OrgQueries {
    running: usize,
    paused: usize,
    /// Number of the last grant, or of the one before the organisation came: of equals, the longest waiting is next.
    last_grant: u64,
    waiters: VecDeque<Waiter>,
}

/// A query that waits for a permit.
struct Waiter {
    granted: oneshot::Sender<Slot>,
    /// Whether the query has begun.
    is_paused: bool,
}

/// A granted permit. When it is dropped, the next query gets it.
struct Slot {
    permits: Arc<QueryPermits>,
    org: Arc<str>,
    since: Instant,
    /// Whether dropping the slot releases nothing, since it is not counted.
    is_disarmed: bool,
}

/// The permit of a query, which several threads may work for.
pub struct QueryPermit {
    permits: Arc<QueryPermits>,
    org: Arc<str>,
    began: Instant,
    /// Locked while the query is paused, so that all its threads are.
    held: Mutex<SlotState>,
}

/// What the threads of a query share.
struct SlotState {
    slot: Option<Slot>,
    /// Time that the query ran before its present slot, since it last gave way to its own
    /// organisation.
    ran: Duration,
}

impl QueryPermits {
    /// A set of `at_once` permits, at least one.
    pub fn new(at_once: usize) -> Self {
        Self { at_once: at_once.max(1), state: Mutex::default(), waiting: AtomicUsize::new(0) }
    }

    /// Number of permits.
    pub fn at_once(&self) -> usize {
        self.at_once
    }

    /// A permit for a query of an organisation; `None` when none was granted within `wait`, for which requests are answered 503.
    pub async fn acquire(self: &Arc<Self>, org: &str, wait: Duration) -> Option<QueryPermit> {
        let org: Arc<str> = org.into();
        let granted = self.enqueue(&org);
        let slot = tokio::time::timeout(wait, granted).await.ok()?.ok()?;
        let (permits, began) = (Arc::clone(self), Instant::now());
        let held = Mutex::new(SlotState { slot: Some(slot), ran: Duration::ZERO });
        Some(QueryPermit { permits, org, began, held })
    }

    /// Number of queries that run, pause, and wait to begin.
    pub fn counts(&self) -> QueryCounts {
        let state = self.state.lock();
        let waiting = self.waiting.load(Ordering::Relaxed).saturating_sub(state.paused);
        QueryCounts { running: state.running, paused: state.paused, waiting }
    }

    /// Whether no query runs or waits.
    #[cfg(test)]
    pub fn is_idle(&self) -> bool {
        self.counts() == QueryCounts::default() && self.state.lock().orgs.is_empty()
    }

    /// Begins to wait for a permit.
    fn enqueue(self: &Arc<Self>, org: &Arc<str>) -> oneshot::Receiver<Slot> {
        let (granted, wait) = oneshot::channel();
        let mut state = self.state.lock();
        state.org(org).waiters.push_back(Waiter { granted, is_paused: false });
        self.waiting.fetch_add(1, Ordering::Relaxed);
        self.grant(&mut state);
        wait
    }

    /// Grants free permits to the queries whose turn it is.
    fn grant(self: &Arc<Self>, state: &mut State) {
        while state.running < self.at_once {
            let Some((org, waiter)) = state.next(self.at_once) else { return };
            self.waiting.fetch_sub(1, Ordering::Relaxed);
            let slot = Slot {
                permits: Arc::clone(self),
                org: Arc::clone(&org),
                since: Instant::now(),
                is_disarmed: false,
            };
            state.grants += 1;
            let grants = state.grants;
            let own = state.org(&org);
            let is_sent = match waiter.granted.send(slot) {
                Ok(()) => true,
                Err(slot) => {
                    // Nobody waits any more, and it is not counted yet.
                    slot.disarm();
                    false
                }
            };
            own.paused -= usize::from(waiter.is_paused);
            if is_sent {
                own.running += 1;
                own.last_grant = grants;
            }
            state.paused -= usize::from(waiter.is_paused);
            state.running += usize::from(is_sent);
        }
    }

    /// Gives a permit back, to the query whose turn it is.
    fn release(self: &Arc<Self>, org: &Arc<str>) {
        let mut state = self.state.lock();
        state.take_back(org);
        self.grant(&mut state);
        state.orgs.retain(|_, org| org.running > 0 || !org.waiters.is_empty());
    }

    /// Takes the permit of a query back if another query is due; and returns the receiver of its next one. `granted_for` is the
    /// time since the permit was granted, `ran` is what [`SlotState::ran`] becomes with it.
    fn pause(
        self: &Arc<Self>,
        org: &Arc<str>,
        granted_for: Duration,
        ran: &mut Duration,
    ) -> Option<oneshot::Receiver<Slot>> {
        let mut state = self.state.lock();
        let own_is_due = *ran + granted_for >= OWN_SLICE;
        if !state.is_due(org, granted_for, own_is_due, self.at_once) {
            return None;
        }
        let (granted, wait) = oneshot::channel();
        state.take_back(org);
        state.paused += 1;
        let own = state.org(org);
        own.paused += 1;
        let waiter = Waiter { granted, is_paused: true };
        match own_is_due {
            // After another organisation's query this one goes on.
            false => own.waiters.push_front(waiter),
            true => own.waiters.push_back(waiter),
        }
        *ran = if own_is_due { Duration::ZERO } else { *ran + granted_for };
        self.waiting.fetch_add(1, Ordering::Relaxed);
        self.grant(&mut state);
        Some(wait)
    }
}

impl State {
    fn org(&mut self, name: &Arc<str>) -> &mut OrgQueries {
        let last_grant = self.grants;
        let new = || OrgQueries { last_grant, ..OrgQueries::default() };
        self.orgs.entry(Arc::clone(name)).or_insert_with(new)
    }

    /// Counts a permit of an organisation as free.
    fn take_back(&mut self, org: &Arc<str>) {
        self.running -= 1;
        self.org(org).running -= 1;
    }

    /// Whether one more query of an organisation may begin.
    fn may_begin(&self, org: &OrgQueries, at_once: usize) -> bool {
        let begun = org.running + org.paused;
        let all = self.running + self.paused;
        begun < at_once + BEGUN_OF_ORG && all < at_once + if begun == 0 { 2 * BEGUN } else { BEGUN }
    }

    /// Where the next query of an organisation stands among its waiters: the first that has begun or may.
    fn next_of(&self, org: &OrgQueries, at_once: usize) -> Option<usize> {
        let may_begin = self.may_begin(org, at_once);
        org.waiters.iter().position(|waiter| may_begin || waiter.is_paused)
    }

    /// The query that is next: of the organisation with the fewest permits.
    fn next(&mut self, at_once: usize) -> Option<(Arc<str>, Waiter)> {
        let candidates = self.orgs.iter().filter_map(|(name, org)| {
            self.next_of(org, at_once).map(|at| (org.running, org.last_grant, name, at))
        });
        let (_, _, name, at) = candidates.min()?;
        let name = Arc::clone(name);
        let waiter = self.org(&name).waiters.remove(at)?;
        Some((name, waiter))
    }

    /// Whether a query gives way: to an organisation with fewer permits, or to another query of its own.
    fn is_due(
        &self,
        org: &Arc<str>,
        granted_for: Duration,
        own_is_due: bool,
        at_once: usize,
    ) -> bool {
        let Some(own) = self.orgs.get(org) else { return false };
        let is_waiting = |org: &OrgQueries| {
            let may_begin = self.may_begin(org, at_once);
            let mut waiters = org.waiters.iter();
            waiters.any(|waiter| (may_begin || waiter.is_paused) && !waiter.granted.is_closed())
        };
        let has_fewer = |(name, other): (&Arc<str>, &OrgQueries)| {
            name != org && other.running < own.running && is_waiting(other)
        };
        granted_for >= SLICE && self.orgs.iter().any(has_fewer) || own_is_due && is_waiting(own)
    }
}

impl Slot {
    /// Ends, but gives nothing back.
    fn disarm(mut self) {
        self.is_disarmed = true;
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        if !self.is_disarmed {
            self.permits.release(&self.org);
        }
    }
}

impl QueryPermit {
    /// Pauses the query while another one is due. Called by the threads that work for it, at the borders of blocks, with
    /// no lock held; the priority of these threads is lowered when the query is a long one.
    pub fn give_way(&self) {
        if self.began.elapsed() >= LOWERED_AFTER {
            lower_priority_and_yield();
        }
        // The usual case costs one load: nobody waits.
        if self.permits.waiting.load(Ordering::Relaxed) == 0 {
            return;
        }
        // Other threads of this query stop here while one of them waits for the permit of all.
        let mut held = self.held.lock();
        let Some(granted_for) = held.slot.as_ref().map(|slot| slot.since.elapsed()) else { return };
        let Some(wait) = self.permits.pause(&self.org, granted_for, &mut held.ran) else { return };
        held.slot.take().into_iter().for_each(Slot::disarm);
        held.slot = wait.blocking_recv().ok();
    }
}

#[cfg(test)]
mod tests {
    use std::{sync::atomic::AtomicBool, thread};

    use super::*;

    const LONG: Duration = Duration::from_secs(30);

    /// A query that runs, on a thread of its own, until it is asked to end.
    fn run(permit: QueryPermit, ends: &Arc<AtomicBool>) -> thread::JoinHandle<()> {
        let ends = Arc::clone(ends);
        thread::spawn(move || {
            while !ends.load(Ordering::Relaxed) {
                permit.give_way();
                thread::yield_now();
            }
        })
    }

    #[tokio::test]
    async fn a_long_query_gives_way_to_another_organisation_and_goes_on() {
        let permits = Arc::new(QueryPermits::new(2));
        let ends = Arc::default();
        let mut threads = Vec::new();
        for _ in 0..2 {
            threads.push(run(permits.acquire("a", LONG).await.unwrap(), &ends));
        }
        let more = tokio::spawn({
            let permits = Arc::clone(&permits);
            async move { permits.acquire("a", LONG).await.map(drop) }
        });
        for _ in 0..20 {
            let other = permits.acquire("b", LONG).await.unwrap();
            assert_eq!(permits.state.lock().orgs["a"].running, 1);
            // It keeps what it has, since `a` has as much.
            other.give_way();
            assert_eq!(permits.state.lock().orgs["b"].running, 1);
        }
        ends.store(true, Ordering::Relaxed);
        threads.into_iter().for_each(|thread| thread.join().unwrap());
        more.await.unwrap().unwrap();
        assert!(permits.is_idle());
    }

    #[tokio::test]
    async fn a_short_query_does_not_wait_for_a_long_one_of_its_own_organisation() {
        let permits = Arc::new(QueryPermits::new(1));
        let ends = Arc::default();
        let long = run(permits.acquire("a", LONG).await.unwrap(), &ends);
        for _ in 0..3 {
            permits.acquire("a", LONG).await.unwrap();
        }
        // No more than so many begin beside it.
        let mut begun = Vec::new();
        for _ in 0..BEGUN_OF_ORG {
            begun.push(run(permits.acquire("a", LONG).await.unwrap(), &ends));
        }
        assert!(permits.acquire("a", Duration::from_millis(100)).await.is_none());
        ends.store(true, Ordering::Relaxed);
        begun.into_iter().chain([long]).for_each(|thread| thread.join().unwrap());
        permits.acquire("a", LONG).await.unwrap();
        assert!(permits.is_idle());
    }

    #[tokio::test]
    async fn a_short_query_passes_a_long_one_of_its_own_while_others_are_busy() {
        let permits = Arc::new(QueryPermits::new(1));
        let ends = Arc::default();
        let mut long = Vec::new();
        for org in ["a", "b"] {
            long.push(run(permits.acquire(org, LONG).await.unwrap(), &ends));
        }
        for _ in 0..5 {
            permits.acquire("a", LONG).await.unwrap();
        }
        ends.store(true, Ordering::Relaxed);
        long.into_iter().for_each(|thread| thread.join().unwrap());
        assert!(permits.is_idle());
    }

    /// Those that have begun come to their end, too, while new ones come.
    #[tokio::test]
    async fn queries_that_have_begun_are_not_starved_by_new_ones() {
        let permits = Arc::new(QueryPermits::new(1));
        let mut threads: Vec<(Arc<AtomicBool>, thread::JoinHandle<()>)> = Vec::new();
        for number in 0..3 * BEGUN_OF_ORG {
            let permit = permits.acquire("a", LONG).await.unwrap();
            assert!(permits.state.lock().paused <= BEGUN_OF_ORG);
            // Each of the first ones has had its turns before the next may begin. A thread may still be ending then.
            let before = number.saturating_sub(2 * BEGUN_OF_ORG);
            let mut first = threads[..before].iter();
            assert!(
                first.all(|(has_had_turns, _)| has_had_turns.load(Ordering::SeqCst)),
                "{number}"
            );
            let has_had_turns = Arc::new(AtomicBool::new(false));
            let flag = Arc::clone(&has_had_turns);
            let thread = thread::spawn(move || {
                for _ in 0..30 {
                    thread::sleep(Duration::from_millis(1));
                    permit.give_way();
                }
                flag.store(true, Ordering::SeqCst);
                drop(permit);
            });
            threads.push((has_had_turns, thread));
        }
        threads.into_iter().for_each(|(_, thread)| thread.join().unwrap());
        assert!(permits.is_idle());
    }

    #[tokio::test]
    async fn a_caller_that_leaves_takes_no_permit_with_it() {
        let permits = Arc::new(QueryPermits::new(1));
        let held = permits.acquire("a", LONG).await.unwrap();
        for _ in 0..3 {
            assert!(permits.acquire("b", Duration::from_millis(1)).await.is_none());
        }
        // Granted, and never looked at.
        let granted = permits.enqueue(&"c".into());
        drop(held);
        assert_eq!(permits.state.lock().running, 1);
        drop(granted);
        assert!(permits.is_idle());
    }

    /// Many threads of several organisations: never more at once than permits, and all come to an end.
    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn never_more_run_than_there_are_permits() {
        let permits = Arc::new(QueryPermits::new(3));
        let running = Arc::new(AtomicUsize::new(0));
        let mut queries = tokio::task::JoinSet::new();
        for number in 0..200u64 {
            let (permits, running) = (Arc::clone(&permits), Arc::clone(&running));
            queries.spawn(async move {
                let org = ["a", "a", "a", "b", "c"][number as usize % 5];
                let wait = if number % 7 == 0 { Duration::from_millis(2) } else { LONG };
                let Some(permit) = permits.acquire(org, wait).await else { return };
                let work = move || {
                    for _ in 0..number % 6 {
                        assert!(running.fetch_add(1, Ordering::SeqCst) < 3);
                        thread::sleep(Duration::from_millis(2 + number % 11));
                        running.fetch_sub(1, Ordering::SeqCst);
                        permit.give_way();
                    }
                };
                tokio::task::spawn_blocking(work).await.unwrap();
            });
        }
        while let Some(done) = queries.join_next().await {
            done.unwrap();
        }
        assert!(permits.is_idle());
    }
}
