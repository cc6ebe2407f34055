//! Approximate count of distinct users: HyperLogLog++ of precision 14 over stable hashes.

use hyperloglogplus::{HyperLogLog as _, HyperLogLogPlus};

use crate::base::hash::IdentityHasher;

/// 2^14 registers: a standard error of 0.81 %, so that 95 % of answers are within 1.6 %.
const PRECISION: u8 = 14;
/// Bytes of an empty state, for memory accounting.
pub const EMPTY_BYTES: usize = 256;
/// Bytes of a state that has left its sparse form.
const DENSE_BYTES: usize = (1 << PRECISION) * 6 / 8;
/// Bytes that an inserted value takes before that, at most.
const SPARSE_ENTRY_BYTES: usize = 16;

/// Hashes are already hashes: their low half is used as it is.
type Builder = std::hash::BuildHasherDefault<IdentityHasher>;

/// A distinct-count state.
pub struct Distinct {
    state: HyperLogLogPlus<u128, Builder>,
    bytes: usize,
}

impl Default for Distinct {
    fn default() -> Self {
        let state = HyperLogLogPlus::new(PRECISION, Builder::default());
        let state = state.expect("14 is a precision that the crate accepts");
        Self { state, bytes: 0 }
    }
}

impl Distinct {
    /// Adds a user by hash; returns how many bytes the state has grown, at most.
    pub fn insert(&mut self, hash: u128) -> usize {
        self.state.insert(&hash);
        let grown = SPARSE_ENTRY_BYTES.min(DENSE_BYTES - self.bytes);
        self.bytes += grown;
        grown
    }

    /// Estimates the number of distinct users added so far, rounded.
    pub fn estimate(&mut self) -> u64 {
        self.state.count().round() as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::hash;

    #[test]
    fn estimates_stay_within_two_percent() {
        for count in [0u32, 1, 10, 1_000, 20_000, 100_000] {
            let mut state = Distinct::default();
            for repeat in 0..2 {
                for user in 0..count {
                    state.insert(hash::user(9, format!("user {user}").as_bytes()));
                }
                let error = (state.estimate() as f64 - f64::from(count)).abs();
                assert!(
                    error <= f64::from(count) * 0.02,
                    "{count} users, {error} off, pass {repeat}"
                );
            }
        }
    }
}
