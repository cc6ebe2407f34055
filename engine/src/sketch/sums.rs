//! Count, sum and extremes of numbers, without rounding errors that matter.
//!
//! A rollup stores one for each series, day and property, and for each value of a dimension. Adding 1e16, 1 and -1e16:
//!
//! ```text
//! total              1e16   1e16   0
//! lost to rounding      0      1   1
//! sum = total + lost               1    (plain floats give 0)
//! ```
//!
//! The bytes, a varint each; the bytes of a float are reversed first, so that numbers of few digits take few bytes:
//!
//! ```text
//! [1.5, 2.5]          offset  bytes
//! count 2                  0  02
//! total 4.0                1  c0 20
//! lost 0.0                 3  00
//! min 1.5                  4  bf f0 03
//! max 2.5                  7  c0 08
//!
//! []                       0  00
//! ```

use crate::{
    base::coding::{Cursor, Put},
    error::Result,
};

/// A running total and what it lost (Knuth's TwoSum), which together keep about 106 bits: the sum does
/// not depend on the order of the numbers in practice, nor on how they were parted and merged. Numbers are finite: batches
/// refuse others.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Sums {
    total: f64,
    lost: f64,
    count: u64,
    min: f64,
    max: f64,
}

impl Default for Sums {
    fn default() -> Self {
        Self { total: 0.0, lost: 0.0, count: 0, min: f64::INFINITY, max: f64::NEG_INFINITY }
    }
}

impl Sums {
    /// Adds a number. Absent rows are not added: they count neither in the mean nor in the extremes.
    pub fn add(&mut self, value: f64) {
        self.add_to_total(value);
        self.count += 1;
        self.min = self.min.min(value);
        self.max = self.max.max(value);
    }

    /// Adds the numbers of another, as if each had been added here.
    pub fn merge(&mut self, other: &Self) {
        self.add_to_total(other.total);
        self.lost += other.lost;
        self.count += other.count;
        self.min = self.min.min(other.min);
        self.max = self.max.max(other.max);
    }

    /// TwoSum: `back` is the part of `value` that arrived in the new total; the rest of both operands is lost to rounding and collected.
    fn add_to_total(&mut self, value: f64) {
        let total = self.total + value;
        let back = total - self.total;
        self.lost += (self.total - (total - back)) + (value - back);
        self.total = total;
    }

    /// How many numbers there were.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Their sum, 0 of nothing.
    pub fn sum(&self) -> f64 {
        // An overflow to infinity leaves NaN in what was lost.
        if self.total.is_finite() { self.total + self.lost } else { self.total }
    }

    /// The smallest, if there was any.
    pub fn min(&self) -> Option<f64> {
        (self.count > 0).then_some(self.min)
    }

    /// The largest, if there was any.
    pub fn max(&self) -> Option<f64> {
        (self.count > 0).then_some(self.max)
    }

    /// Appends the state: one byte for nothing, at most 50 for any other.
    pub fn write(&self, out: &mut Vec<u8>) {
        out.put_varint(self.count);
        if self.count > 0 {
            // Numbers of few digits have zeros in their low bytes.
            [self.total, self.lost, self.min, self.max]
                .iter()
                .for_each(|part| out.put_varint(part.to_bits().swap_bytes()));
        }
    }

    /// Reads a state back. Any bits are taken for numbers: a reader of a rollup has checked the block's checksum.
    ///
    /// Errors: `Corrupt` when the input ends within the state, or a varint is longer than 64 bits.
    pub fn read(cursor: &mut Cursor<'_>) -> Result<Self> {
        let count = cursor.varint()?;
        if count == 0 {
            return Ok(Self::default());
        }
        let mut part =
            || Ok::<_, crate::error::Error>(f64::from_bits(cursor.varint()?.swap_bytes()));
        Ok(Self { total: part()?, lost: part()?, count, min: part()?, max: part()? })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn of(values: impl IntoIterator<Item = f64>) -> Sums {
        let mut state = Sums::default();
        values.into_iter().for_each(|value| state.add(value));
        state
    }

    #[test]
    fn sums_do_not_depend_on_order() {
        let values: Vec<f64> =
            (0..10_000).map(|n| 0.1 * f64::from(n % 977) - 3.3e9 * f64::from(n % 2)).collect();
        let forward = of(values.iter().copied()).sum();
        assert_eq!(forward, of(values.iter().rev().copied()).sum());
        let mut sorted = values.clone();
        sorted.sort_by(f64::total_cmp);
        assert_eq!(forward, of(sorted).sum());
    }

    proptest! {
        /// What rollups add up equals what the rows add up.
        #[test]
        fn merged_parts_equal_the_whole(
            values in prop::collection::vec(-1_000_000i64..1_000_000, 0..300),
            part in 1usize..50,
        ) {
            let values: Vec<f64> = values.into_iter().map(|value| value as f64 / 1_000.0).collect();
            let whole = of(values.iter().copied());
            let mut merged = Sums::default();
            for part in values.chunks(part) {
                let mut bytes = Vec::new();
                of(part.iter().copied()).write(&mut bytes);
                let mut cursor = Cursor::new(&bytes, "test");
                merged.merge(&Sums::read(&mut cursor).unwrap());
                cursor.finish().unwrap();
            }
            prop_assert_eq!(merged.sum(), whole.sum());
            prop_assert_eq!((merged.count(), merged.min(), merged.max()), (whole.count(), whole.min(), whole.max()));
        }
    }
}
