//! Approximate percentiles: t-digests built from batches of values.

use tdigest::TDigest;

/// Centroids kept: an error of a few tenths of a percent in the tails of latency data.
const SIZE: usize = 200;
/// Values collected before they are merged: merging sorts, so it is done rarely.
const BATCH: usize = 512;
/// Bytes of an empty state, for memory accounting.
pub const EMPTY_BYTES: usize = 128;
/// Bytes of a full state.
const STATE_BYTES: usize = SIZE * 16 + BATCH * 16;

/// A quantile state.
pub struct Digest {
    merged: TDigest,
    batch: Vec<f64>,
    bytes: usize,
}

impl Default for Digest {
    fn default() -> Self {
        Self { merged: TDigest::new_with_size(SIZE), batch: Vec::new(), bytes: 0 }
    }
}

impl Digest {
    /// Adds a finite value; returns how many bytes the state has grown, at most.
    pub fn insert(&mut self, value: f64) -> usize {
        self.batch.push(value);
        if self.batch.len() >= BATCH {
            self.merge();
        }
        let grown = 16.min(STATE_BYTES - self.bytes);
        self.bytes += grown;
        grown
    }

    fn merge(&mut self) {
        if !self.batch.is_empty() {
            self.merged = self.merged.merge_unsorted(std::mem::take(&mut self.batch));
        }
    }

    /// Takes in the values of another.
    pub fn absorb(&mut self, mut other: Self) {
        self.merge();
        other.merge();
        let merged = std::mem::replace(&mut self.merged, TDigest::new_with_size(SIZE));
        self.merged = TDigest::merge_digests(vec![merged, other.merged]);
        self.bytes = STATE_BYTES.min(self.bytes + other.bytes);
    }

    /// Estimates the value below which a share `q` of all values lies; `None` without values.
    pub fn quantile(&mut self, q: f64) -> Option<f64> {
        self.merge();
        self.merged.estimate_quantile(q)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_of_a_ramp_are_close() {
        let mut digest = Digest::default();
        assert_eq!(digest.quantile(0.5), None);
        for n in 0..100_000u32 {
            digest.insert(f64::from(n.wrapping_mul(2_654_435_761) % 100_000));
        }
        for q in [0.5, 0.95, 0.99] {
            let found = digest.quantile(q).unwrap();
            assert!((found / 100_000.0 - q).abs() < 0.005, "{q}: {found}");
        }
    }
}
