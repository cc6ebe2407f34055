//! Named pools of permits: how much of one kind of work is under way at once in the whole server. `GET /metrics` has a row for each.
//!
//! ```text
//! password_hashes   2     a third waits three seconds, and is refused
//! drawings          1     a core for up to seconds
//! deliveries        64    what is due beyond that waits in its queue
//! body_kib          …     memory: a permit is a KiB
//! ```
//!
//! Queries and statements have permits of their own, which organisations share (`query_permits.rs`, `sql/admission.rs`).

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use parking_lot::Mutex;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Some permits of a pool. Dropped, they are free again.
pub type Permit = OwnedSemaphorePermit;

/// The permits for one kind of work.
#[derive(Debug)]
pub struct PermitPool {
    name: &'static str,
    all: usize,
    free: Arc<Semaphore>,
    refused: AtomicU64,
}

/// How many permits of a pool there are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PoolCounts {
    /// The name of the pool.
    pub name: &'static str,
    /// Permits, free or not.
    pub all: usize,
    /// Permits that work under way has, and those that the first of those who wait has collected so far.
    pub in_use: usize,
    /// How often nothing was granted, since the server started.
    pub refused: u64,
}

impl PermitPool {
    /// A pool that no other part of the server knows: it is in no metric. [`PermitPools::pool`] makes one that is.
    pub fn new(name: &'static str, all: usize) -> Arc<Self> {
        let all = all.clamp(1, Semaphore::MAX_PERMITS);
        let (free, refused) = (Arc::new(Semaphore::new(all)), AtomicU64::new(0));
        Arc::new(Self { name, all, free, refused })
    }

    /// So many permits, waited for in turn; `None` when they were not free within `wait`. Who asks for more than there are gets all.
    pub async fn acquire(&self, count: usize, wait: Duration) -> Option<Permit> {
        let count = u32::try_from(count.min(self.all)).unwrap_or(u32::MAX);
        let granted = Arc::clone(&self.free).acquire_many_owned(count);
        match tokio::time::timeout(wait, granted).await {
            Ok(Ok(permit)) => Some(permit),
            _ => self.refuse(),
        }
    }

    /// A permit, waited for as long as it takes; others that wait come first. Never `None`, since no pool is closed.
    pub async fn acquire_in_turn(&self) -> Option<Permit> {
        // It is never closed.
        Arc::clone(&self.free).acquire_owned().await.ok()
    }

    /// A permit if one is free. Where none is, the refusal is counted (`permits_refused_total`).
    pub fn try_acquire(&self) -> Option<Permit> {
        match Arc::clone(&self.free).try_acquire_owned() {
            Ok(permit) => Some(permit),
            Err(_) => self.refuse(),
        }
    }

    /// A permit if one is free; work that goes on without one is not refused.
    pub fn acquire_if_free(&self) -> Option<Permit> {
        Arc::clone(&self.free).try_acquire_owned().ok()
    }

    /// Permits that are free.
    pub fn free(&self) -> usize {
        self.free.available_permits()
    }

    fn refuse(&self) -> Option<Permit> {
        self.refused.fetch_add(1, Ordering::Relaxed);
        None
    }

    fn counts(&self) -> PoolCounts {
        let in_use = self.all.saturating_sub(self.free());
        let refused = self.refused.load(Ordering::Relaxed);
        PoolCounts { name: self.name, all: self.all, in_use, refused }
    }
}

/// The pools of a server.
#[derive(Debug, Default)]
pub struct PermitPools(Mutex<Vec<Arc<PermitPool>>>);

impl PermitPools {
    /// A new pool of so many permits, at least one. It takes the place of one with the same name.
    pub fn pool(&self, name: &'static str, all: usize) -> Arc<PermitPool> {
        let pool = PermitPool::new(name, all);
        let mut pools = self.0.lock();
        pools.retain(|known| known.name != name);
        pools.push(Arc::clone(&pool));
        pool
    }

    /// Counts of each pool, in the order of their names: `body_kib` before `drawings`.
    pub fn counts(&self) -> Vec<PoolCounts> {
        let mut counts: Vec<PoolCounts> = self.0.lock().iter().map(|pool| pool.counts()).collect();
        counts.sort_unstable_by_key(|counts| counts.name);
        counts
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn permits_are_granted_in_turn_and_counted() {
        let pools = PermitPools::default();
        let pool = pools.pool("drawings", 2);
        let other = pools.pool("body_kib", 1_000);
        let first = pool.try_acquire();
        assert!(first.is_some() && pool.free() == 1);
        let soon = Duration::from_secs(1);
        assert!(pool.acquire(2, soon).await.is_none(), "one is in use");
        let second = pool.acquire(1, soon).await;
        assert!(second.is_some() && pool.try_acquire().is_none());
        drop(first);
        assert!(pool.acquire_in_turn().await.is_some());
        let all = other.acquire(5_000, soon).await;
        assert!(all.is_some(), "more than there are");
        let counts = |name, all, in_use, refused| PoolCounts { name, all, in_use, refused };
        let expected = [counts("body_kib", 1_000, 1_000, 0), counts("drawings", 2, 1, 2)];
        assert_eq!(pools.counts(), expected);
    }
}
