//! What queries may hold in memory: each a share, all together a bound that the machine can bear.
//!
//! A query that needs more than its share is refused for good; one that finds the shares of others
//! taken is refused for now. What is charged is given back when the charge is dropped.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use crate::error::{Error, Limit, Result};

/// The memory of all queries.
pub struct Budget {
    all_max: usize,
    each_max: usize,
    used: AtomicUsize,
}

impl Budget {
    /// At most `all_max` bytes for all queries and `each_max` for one.
    pub fn new(all_max: usize, each_max: usize) -> Arc<Self> {
        Arc::new(Self { all_max, each_max: each_max.min(all_max), used: AtomicUsize::new(0) })
    }

    /// Bytes that queries hold now.
    pub fn used(&self) -> usize {
        self.used.load(Ordering::Relaxed)
    }

    /// An account of one query, empty at first.
    pub fn charge(self: &Arc<Self>) -> Charge {
        Charge { budget: Arc::clone(self), bytes: 0 }
    }
}

/// What one query holds.
pub struct Charge {
    budget: Arc<Budget>,
    bytes: usize,
}

impl Charge {
    /// Adds bytes. They count even when they are refused, for they may be there already.
    ///
    /// Errors: `Limit` when the query has too much, or all queries together.
    pub fn add(&mut self, bytes: usize) -> Result<()> {
        if bytes == 0 {
            return Ok(());
        }
        self.bytes += bytes;
        let all = self.budget.used.fetch_add(bytes, Ordering::Relaxed) + bytes;
        if self.bytes > self.budget.each_max {
            let detail = format!(
                "the query needs more than {} MiB; ask for fewer groups, buckets or days",
                self.budget.each_max >> 20
            );
            return Err(Error::limit(Limit::QueryMemory, detail));
        }
        if all > self.budget.all_max {
            let detail = "other queries hold the memory that this one needs; retry soon";
            return Err(Error::limit(Limit::QueriesMemory, detail));
        }
        Ok(())
    }
}

impl Drop for Charge {
    fn drop(&mut self) {
        self.budget.used.fetch_sub(self.bytes, Ordering::Relaxed);
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
}
