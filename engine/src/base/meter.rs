//! Counting what happens: distributions over fixed bounds, without a lock.

use std::sync::atomic::{AtomicU64, Ordering};

/// Bounds for durations in microseconds: from a query out of memory to a stuck disk.
pub const MICROSECONDS: &[u64] = &[
    10, 25, 50, 100, 250, 500, 1_000, 2_500, 5_000, 10_000, 25_000, 50_000, 100_000, 250_000,
    500_000, 1_000_000, 2_500_000, 5_000_000, 10_000_000,
];
/// Bounds for small numbers, such as the records of a group.
pub const COUNTS: &[u64] = &[1, 2, 4, 8, 16, 32, 64, 128, 256, 512];

/// A distribution that is being counted.
pub struct Meter {
    bounds: &'static [u64],
    counts: Vec<AtomicU64>,
    total: AtomicU64,
}

/// A distribution as it was at one instant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Distribution {
    /// Upper bounds, inclusive, rising.
    pub bounds: &'static [u64],
    /// Number of values above the bound before and up to this one, for each bound; one more entry
    /// counts the values above all bounds.
    pub counts: Vec<u64>,
    /// Sum of all values.
    pub total: u64,
}

impl Meter {
    /// A distribution without values over `bounds`, which are inclusive upper bounds and rise.
    pub fn new(bounds: &'static [u64]) -> Self {
        let counts = (0..=bounds.len()).map(|_| AtomicU64::new(0)).collect();
        Self { bounds, counts, total: AtomicU64::new(0) }
    }

    /// Counts a value.
    pub fn record(&self, value: u64) {
        let at = self.bounds.partition_point(|&bound| bound < value);
        self.counts[at].fetch_add(1, Ordering::Relaxed);
        self.total.fetch_add(value, Ordering::Relaxed);
    }

    /// The counts so far.
    pub fn read(&self) -> Distribution {
        Distribution {
            bounds: self.bounds,
            counts: self.counts.iter().map(|count| count.load(Ordering::Relaxed)).collect(),
            total: self.total.load(Ordering::Relaxed),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_on_a_bound_counts_below_it() {
        let meter = Meter::new(&[10, 20]);
        for value in [0, 10, 11, 20, 21, 1_000] {
            meter.record(value);
        }
        assert_eq!(meter.read().counts, [2, 2, 2]);
        assert_eq!(meter.read().total, 1_062);
    }
}
