//! What queries may hold in memory: each a share, all together a bound that the machine can bear.
//!
//! A query that needs more than its share is refused for good. One that finds the memory taken by others
//! gives back what it has and starts again with a whole share, for which it waits its turn: it holds
//! nothing meanwhile, so that two of them never wait for each other. What is charged is given back when
//! the charge is dropped.

use std::{
    mem,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use parking_lot::{Condvar, Mutex};

use crate::error::{Error, Limit, Result};

/// How often who waits looks whether he still should.
const LOOK: Duration = Duration::from_millis(20);

/// A query is small up to this part of its share.
const SMALL: usize = 16;
/// This part of the memory is not given away in whole shares.
const LEFT: usize = 8;

/// The memory of all queries.
pub struct Budget {
    all_max: usize,
    each_max: usize,
    used: AtomicUsize,
    /// Queries that wait for a share. Others leave them room.
    waiting: AtomicUsize,
    /// Held by the one whose turn it is.
    turn: Mutex<()>,
    freed: Condvar,
}

impl Budget {
    /// At most `all_max` bytes for all queries and `each_max` for one.
    pub fn new(all_max: usize, each_max: usize) -> Arc<Self> {
        Arc::new(Self {
            all_max,
            each_max: each_max.min(all_max),
            used: AtomicUsize::new(0),
            waiting: AtomicUsize::new(0),
            turn: Mutex::new(()),
            freed: Condvar::new(),
        })
    }

    /// Bytes that one query may hold.
    pub fn query_max(&self) -> usize {
        self.each_max
    }

    /// Bytes that queries hold now.
    pub fn used(&self) -> usize {
        self.used.load(Ordering::Relaxed)
    }

    /// An account of one query, empty at first.
    pub fn charge(self: &Arc<Self>) -> Charge {
        Charge { budget: Arc::clone(self), bytes: 0, reserved: 0, max: self.each_max }
    }

    /// An account that holds a whole share from the start. Waits until there is one.
    ///
    /// Errors: `Limit` when `give_up` says so first.
    pub fn reserve(self: &Arc<Self>, give_up: &dyn Fn() -> bool) -> Result<Charge> {
        let _waits = WaitingQuery::new(self);
        loop {
            if let Some(mut turn) = self.turn.try_lock_for(LOOK) {
                if self.take_share() {
                    let budget = Arc::clone(self);
                    let max = self.each_max;
                    return Ok(Charge { budget, bytes: 0, reserved: max, max });
                }
                self.freed.wait_for(&mut turn, LOOK);
            }
            // With no lock held: it may block until other queries have run, which give memory back.
            if give_up() {
                return Err(taken());
            }
        }
    }

    fn take_share(&self) -> bool {
        // A share counts as a whole however little of it is used: something is left for small queries.
        let shares_max = self.all_max - self.all_max / LEFT;
        let with_share = |used: usize| {
            let with_share = used.saturating_add(self.each_max);
            (used == 0 || with_share <= shares_max).then_some(with_share)
        };
        self.used.fetch_update(Ordering::Relaxed, Ordering::Relaxed, with_share).is_ok()
    }

    /// What all queries may hold when one that did not wait and has `bytes` wants more. Room is left for
    /// who waits, but small queries, which are most, are not held up by large ones.
    fn open_max(&self, bytes: usize) -> usize {
        let is_small = bytes <= self.each_max / SMALL;
        let leaves_room = !is_small && self.waiting.load(Ordering::Relaxed) > 0;
        self.all_max - if leaves_room { self.each_max } else { 0 }
    }
}

/// One that waits, until it is dropped.
struct WaitingQuery<'a>(&'a Budget);

impl<'a> WaitingQuery<'a> {
    fn new(budget: &'a Budget) -> Self {
        budget.waiting.fetch_add(1, Ordering::Relaxed);
        Self(budget)
    }
}

impl Drop for WaitingQuery<'_> {
    fn drop(&mut self) {
        self.0.waiting.fetch_sub(1, Ordering::Relaxed);
    }
}

fn taken() -> Error {
    let detail = "other queries hold the memory that this one needs; retry soon";
    Error::limit(Limit::QueriesMemory, detail)
}

/// What one query holds.
pub struct Charge {
    budget: Arc<Budget>,
    bytes: usize,
    /// Bytes that are counted whether they are used or not.
    reserved: usize,
    /// Bytes that it may have.
    max: usize,
}

impl Charge {
    /// Adds bytes. They count even when they are refused, for they may be there already.
    ///
    /// Errors: `Limit` when the query has too much, or all queries together.
    pub fn add(&mut self, bytes: usize) -> Result<()> {
        if bytes == 0 {
            return Ok(());
        }
        let counted = self.counted();
        self.bytes += bytes;
        let more = self.counted() - counted;
        let all = self.budget.used.fetch_add(more, Ordering::Relaxed) + more;
        if self.bytes > self.max {
            let detail = format!(
                "the query needs more than {} MiB; ask for fewer groups, buckets or days",
                self.budget.each_max >> 20
            );
            return Err(Error::limit(Limit::QueryMemory, detail));
        }
        if more > 0 && all > self.budget.open_max(self.bytes) {
            return Err(taken());
        }
        Ok(())
    }

    /// Gives all of it to another account; this one is empty then.
    pub fn take(&mut self) -> Self {
        let (bytes, reserved) = (mem::take(&mut self.bytes), mem::take(&mut self.reserved));
        Self { budget: Arc::clone(&self.budget), bytes, reserved, max: self.max }
    }

    /// Accounts of others that work for the same query, and this one: each may have its part of what the
    /// query may have.
    pub fn part(&mut self, others: usize) -> Vec<Self> {
        self.max = self.budget.each_max / (others + 1);
        let mut others: Vec<Self> = (0..others).map(|_| self.budget.charge()).collect();
        others.iter_mut().for_each(|other| other.max = self.max);
        others
    }

    /// Takes over what the others hold that worked for the same query.
    pub fn join(&mut self, others: Vec<Self>) {
        for mut other in others {
            let counted = self.counted() + other.counted();
            self.bytes += mem::take(&mut other.bytes);
            other.reserved = 0;
            self.budget.used.fetch_sub(counted - self.counted(), Ordering::Relaxed);
        }
        self.max = self.budget.each_max;
    }

    /// Bytes that were added.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Gives back what was added since there were `bytes`.
    pub fn shrink_to(&mut self, bytes: usize) {
        let counted = self.counted();
        self.bytes = self.bytes.min(bytes);
        self.budget.used.fetch_sub(counted - self.counted(), Ordering::Relaxed);
        self.budget.freed.notify_one();
    }

    fn counted(&self) -> usize {
        self.bytes.max(self.reserved)
    }
}

impl Drop for Charge {
    fn drop(&mut self) {
        self.budget.used.fetch_sub(self.counted(), Ordering::Relaxed);
        self.budget.freed.notify_one();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_query_has_a_share_and_all_have_a_bound() {
        let budget = Budget::new(100, 60);
        let limit = |result: Result<()>| match result {
            Err(Error::Limit { limit, .. }) => Some(limit),
            Err(error) => panic!("{error}"),
            Ok(()) => None,
        };
        let (mut one, mut other) = (budget.charge(), budget.charge());
        assert_eq!(limit(one.add(60)), None);
        assert_eq!(limit(other.add(40)), None);
        assert_eq!(limit(other.add(1)), Some(Limit::QueriesMemory));
        drop(other);
        assert_eq!(budget.used(), 60, "what was refused is given back as well");
        assert_eq!(limit(one.add(1)), Some(Limit::QueryMemory));
        drop(one);
        assert_eq!(budget.used(), 0);
    }

    #[test]
    fn an_account_changes_hands_and_shrinks() {
        let budget = Budget::new(100, 60);
        let mut one = budget.charge();
        one.add(20).unwrap();
        let mut other = one.take();
        assert_eq!((one.bytes(), other.bytes(), budget.used()), (0, 20, 20));
        other.add(30).unwrap();
        other.shrink_to(25);
        other.shrink_to(40);
        assert_eq!((other.bytes(), budget.used()), (25, 25));
        drop(one);
        assert_eq!(budget.used(), 25);
        let mut share = budget.reserve(&|| true).unwrap();
        share.add(5).unwrap();
        let mut taken = share.take();
        drop(share);
        taken.shrink_to(0);
        assert_eq!(budget.used(), 85, "a share is a share however little of it is used");
    }

    #[test]
    fn a_share_is_parted_among_those_who_work_for_a_query() {
        let budget = Budget::new(100, 60);
        let mut one = budget.charge();
        let mut others = one.part(2);
        assert!(one.add(21).is_err() && others[0].add(20).is_ok() && others[1].add(10).is_ok());
        one.join(others);
        assert_eq!((one.bytes(), budget.used()), (51, 51));
        assert!(one.add(9).is_ok() && one.add(1).is_err());
        drop(one);
        assert_eq!(budget.used(), 0);
    }

    /// Who finds the memory taken gets a share of it in his turn, however much others ask for.
    #[test]
    fn who_waits_gets_a_share() {
        let budget = Budget::new(100, 60);
        let is_taken = |result: Result<()>| {
            matches!(result, Err(Error::Limit { limit: Limit::QueriesMemory, .. }))
        };
        assert!(matches!(budget.reserve(&|| true), Ok(charge) if charge.counted() == 60));
        let (mut one, mut other) = (budget.charge(), budget.charge());
        one.add(20).unwrap();
        other.add(30).unwrap();
        assert!(is_taken(budget.reserve(&|| true).map(drop)), "he gave up");
        std::thread::scope(|scope| {
            let waiting = scope.spawn(|| budget.reserve(&|| false).unwrap().counted());
            while budget.waiting.load(Ordering::Relaxed) == 0 {
                std::thread::yield_now();
            }
            budget.charge().add(3).unwrap();
            assert!(is_taken(other.add(1)), "room is left for who waits");
            drop(other);
            assert_eq!(waiting.join().unwrap(), 60);
            // Nobody waits any more, and what is left serves small ones.
            let share = budget.reserve(&|| false);
            assert!(share.is_ok_and(|share| share.counted() == 60));
        });
        drop(one);
        assert_eq!(budget.used(), 0);
        let mut whole = budget.reserve(&|| true).unwrap();
        whole.add(60).unwrap();
        assert_eq!(budget.used(), 60, "a share is counted once");
        assert!(whole.add(1).is_err());
        drop(whole);
        assert_eq!(budget.used(), 0);
    }
}
