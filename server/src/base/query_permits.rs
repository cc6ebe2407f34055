//! Permits of queries: as many run at once as there are cores, shared between organisations.
//!
//! Whoever holds a permit asks now and then, at the borders of blocks, whether it is somebody else's turn
//! ([`QueryPermit::give_way`]), and then pauses: after a millisecond for an organisation that has fewer permits, after
//! ten for another query of its own. So an organisation that asks heavy queries without a pause takes all cores while it
//! is alone, and a small query of another one waits for the end of a block.
//!
//! With two cores: `a` runs two queries and 30 of its own wait. One of `b` comes; the next of `a`'s two that reaches
//! the border of a block pauses, `b`'s runs, and when it ends the paused one goes on.

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

use super::query_threads::stand_back;

/// How long a query runs at least before it gives way to another organisation's.
const SLICE: Duration = Duration::from_millis(1);
/// How long a query runs at least before it gives way to one of its own organisation.
const OWN_SLICE: Duration = Duration::from_millis(10);
/// How long a query runs before its threads stand back behind those that read and write sockets.
const SHORT: Duration = Duration::from_micros(500);
/// Queries of an organisation that are begun and paused: each has memory.
const PAUSED_OF_ORG: usize = 6;
/// Queries that are paused, of everybody: each has a thread.
const PAUSED: usize = 64;

/// The permits of everybody.
pub struct QueryPermits {
    at_once: usize,
    state: Mutex<State>,
    /// Queries that wait, begun or not: read without the lock.
    waiting: AtomicUsize,
}

#[derive(Default)]
struct State {
    running: usize,
    paused: usize,
    /// Grants so far.
    grants: u64,
    /// Of organisations that run or wait.
    orgs: HashMap<Arc<str>, Org>,
}

#[derive(Default)]
struct Org {
    running: usize,
    paused: usize,
    /// Number of the last grant: of equals, it is the turn of whoever waits longest.
    last_grant: u64,
    waiters: VecDeque<Waiter>,
}

struct Waiter {
    granted: oneshot::Sender<Slot>,
    /// Whether the query has begun.
    is_paused: bool,
}

/// One of the permits while it is held. Dropped, it is somebody else's.
struct Slot {
    permits: Arc<QueryPermits>,
    org: Arc<str>,
    since: Instant,
    /// Whether it is somebody else's already.
    is_given_back: bool,
}

/// The permit of a query, which several threads may work for.
pub struct QueryPermit {
    permits: Arc<QueryPermits>,
    org: Arc<str>,
    began: Instant,
    /// Locked while the query is paused, so that all its threads are.
    slot: Mutex<Option<Slot>>,
}

impl QueryPermits {
    /// So many permits.
    pub fn new(at_once: usize) -> Self {
        Self { at_once: at_once.max(1), state: Mutex::default(), waiting: AtomicUsize::new(0) }
    }

    /// A permit for a query of an organisation, waited for so long; nothing when there was none.
    pub async fn acquire(self: &Arc<Self>, org: &str, wait: Duration) -> Option<QueryPermit> {
        let org: Arc<str> = org.into();
        let granted = self.enqueue(&org);
        let slot = tokio::time::timeout(wait, granted).await.ok()?.ok()?;
        let (permits, began) = (Arc::clone(self), Instant::now());
        Some(QueryPermit { permits, org, began, slot: Mutex::new(Some(slot)) })
    }

    /// Whether nobody runs or waits.
    #[cfg(test)]
    pub fn is_idle(&self) -> bool {
        let state = self.state.lock();
        let waiting = self.waiting.load(Ordering::Relaxed);
        (state.running, state.paused, state.orgs.len(), waiting) == (0, 0, 0, 0)
    }

    /// Begins to wait for a permit.
    fn enqueue(self: &Arc<Self>, org: &Arc<str>) -> oneshot::Receiver<Slot> {
        let (granted, wait) = oneshot::channel();
        let mut state = self.state.lock();
        let own = state.orgs.entry(Arc::clone(org)).or_default();
        own.waiters.push_back(Waiter { granted, is_paused: false });
        self.waiting.fetch_add(1, Ordering::Relaxed);
        self.grant(&mut state);
        wait
    }

    /// Gives free permits to those whose turn it is.
    fn grant(self: &Arc<Self>, state: &mut State) {
        while state.running < self.at_once {
            let Some((org, waiter)) = state.next() else { return };
            self.waiting.fetch_sub(1, Ordering::Relaxed);
            let slot = Slot {
                permits: Arc::clone(self),
                org: Arc::clone(&org),
                since: Instant::now(),
                is_given_back: false,
            };
            state.grants += 1;
            let grants = state.grants;
            let own = state.orgs.entry(org).or_default();
            if waiter.is_paused {
                own.paused -= 1;
                state.paused -= 1;
            }
            match waiter.granted.send(slot) {
                Ok(()) => {
                    own.running += 1;
                    own.last_grant = grants;
                    state.running += 1;
                }
                // Nobody waits any more; it was not counted yet.
                Err(slot) => slot.end_uncounted(),
            }
        }
    }

    fn release(self: &Arc<Self>, org: &Arc<str>) {
        let mut state = self.state.lock();
        state.take_back(org);
        self.grant(&mut state);
        state.orgs.retain(|_, org| org.running > 0 || !org.waiters.is_empty());
    }

    /// Takes the permit of a query back for another, if it is another's turn; what its own next one comes by.
    fn pause(self: &Arc<Self>, org: &Arc<str>, ran: Duration) -> Option<oneshot::Receiver<Slot>> {
        let mut state = self.state.lock();
        let is_for = state.turn_of(org, ran)?;
        let (granted, wait) = oneshot::channel();
        state.take_back(org);
        state.paused += 1;
        let own = state.orgs.entry(Arc::clone(org)).or_default();
        own.paused += 1;
        let waiter = Waiter { granted, is_paused: true };
        match is_for {
            // Its own queries keep their order.
            Turn::Other => own.waiters.push_front(waiter),
            Turn::Own => own.waiters.push_back(waiter),
        }
        self.waiting.fetch_add(1, Ordering::Relaxed);
        self.grant(&mut state);
        Some(wait)
    }
}

/// For whom a query pauses.
enum Turn {
    Other,
    Own,
}

impl State {
    fn take_back(&mut self, org: &Arc<str>) {
        self.running -= 1;
        if let Some(own) = self.orgs.get_mut(org) {
            own.running -= 1;
        }
    }

    /// The query whose turn it is: of the organisation with the fewest permits.
    fn next(&mut self) -> Option<(Arc<str>, Waiter)> {
        let candidates = self.orgs.iter().filter(|(_, org)| !org.waiters.is_empty());
        let (name, _) = candidates.min_by_key(|(_, org)| (org.running, org.last_grant))?;
        let name = Arc::clone(name);
        let waiter = self.orgs.get_mut(&name)?.waiters.pop_front()?;
        Some((name, waiter))
    }

    /// Whether a query of an organisation that ran so long gives way, and to whom.
    fn turn_of(&self, org: &Arc<str>, ran: Duration) -> Option<Turn> {
        if self.paused >= PAUSED {
            return None;
        }
        let own = self.orgs.get(org)?;
        let is_waiting = |org: &Org| org.waiters.iter().any(|waiter| !waiter.granted.is_closed());
        let has_fewer = |(name, other): (&Arc<str>, &Org)| {
            name != org && other.running < own.running && is_waiting(other)
        };
        if ran >= SLICE && self.orgs.iter().any(has_fewer) {
            return Some(Turn::Other);
        }
        (ran >= OWN_SLICE && own.paused < PAUSED_OF_ORG && is_waiting(own)).then_some(Turn::Own)
    }
}

impl Slot {
    /// Ends, but gives nothing back.
    fn end_uncounted(mut self) {
        self.is_given_back = true;
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        if !self.is_given_back {
            self.permits.release(&self.org);
        }
    }
}

impl QueryPermit {
    /// Pauses the query while it is somebody else's turn. Called by the threads that work for it, at the borders of
    /// blocks; their priority is lowered when the query is a long one.
    pub fn give_way(&self) {
        if self.began.elapsed() >= SHORT {
            stand_back();
        }
        if self.permits.waiting.load(Ordering::Relaxed) == 0 {
            return;
        }
        let mut held = self.slot.lock();
        let Some(slot) = held.as_ref() else { return };
        let Some(wait) = self.permits.pause(&self.org, slot.since.elapsed()) else { return };
        // It is counted as another's already.
        held.take().into_iter().for_each(Slot::end_uncounted);
        *held = wait.blocking_recv().ok();
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
        // No more than so many are begun and paused.
        let mut begun = Vec::new();
        for _ in 0..PAUSED_OF_ORG {
            begun.push(run(permits.acquire("a", LONG).await.unwrap(), &ends));
        }
        assert!(permits.acquire("a", Duration::from_millis(100)).await.is_none());
        ends.store(true, Ordering::Relaxed);
        begun.into_iter().chain([long]).for_each(|thread| thread.join().unwrap());
        permits.acquire("a", LONG).await.unwrap();
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
