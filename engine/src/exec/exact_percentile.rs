//! Numbers of which one percentile is asked for: only those are kept that can still be it.
//!
//! Of rows at most so many, the 99th percentile is among the largest hundredth. So a state counts all of
//! its numbers, and keeps that many of the largest; whenever it has twice as many, the smaller half goes,
//! and from then on what is not larger than the smallest kept is counted only. The answer is exact: no
//! number that is dropped can have the rank that is asked for.

/// Numbers below which nothing is dropped: it would not be worth the search for the smaller half.
const KEPT_MIN: usize = 512;

/// A share of one hundred. Below the median everything is kept.
fn needed(percent: u8, rows_max: u64) -> usize {
    if percent < 50 {
        return usize::MAX;
    }
    let last = rows_max.saturating_sub(1);
    // One more than the rank needs, which may lie between two, and one for the rounding of the rank.
    let needed = rows_max - (u128::from(last) * u128::from(percent) / 100) as u64 + 2;
    usize::try_from(needed).unwrap_or(usize::MAX).max(KEPT_MIN)
}

/// The numbers of a state.
#[derive(Clone)]
pub struct ExactPercentile {
    /// How many numbers there were.
    count: usize,
    /// The largest of them, and perhaps others.
    kept: Vec<f64>,
    /// What is not larger than this is not kept; NaN, to which nothing compares, while all are.
    bound: f64,
    /// How many of the largest are kept at least.
    needed: usize,
    /// Bytes that were accounted for.
    bytes: usize,
}

/// All are kept.
impl Default for ExactPercentile {
    fn default() -> Self {
        Self { count: 0, kept: Vec::new(), bound: f64::NAN, needed: usize::MAX, bytes: 0 }
    }
}

impl ExactPercentile {
    /// No numbers yet, of `rows_max` at most; `percent` is what will be asked.
    pub fn new(percent: u8, rows_max: u64) -> Self {
        Self { needed: needed(percent, rows_max), ..Self::default() }
    }

    /// Adds a number. Returns how many bytes the state has grown.
    #[inline]
    pub fn push(&mut self, number: f64) -> usize {
        self.count += 1;
        if number <= self.bound {
            return 0;
        }
        self.kept.push(number);
        let is_more = self.kept.capacity() * size_of::<f64>() > self.bytes;
        if is_more || self.is_full() { self.grown() } else { 0 }
    }

    /// Adds numbers. Returns how many bytes the state has grown.
    pub fn extend(&mut self, numbers: &[f64]) -> usize {
        self.count += numbers.len();
        if self.bound.is_nan() {
            self.kept.extend_from_slice(numbers);
            return self.grown();
        }
        // Without branches, which would be hard to foresee: each is written, and stays or is overwritten.
        let mut end = self.kept.len();
        self.kept.resize(end + numbers.len(), 0.0);
        for &number in numbers {
            self.kept[end] = number;
            end += usize::from(number > self.bound);
        }
        self.kept.truncate(end);
        self.grown()
    }

    /// Takes in another state, which was made for the same percentile of as many rows, and whose bytes are
    /// accounted for. Returns how many bytes more there are.
    pub fn merge(&mut self, other: Self) -> usize {
        if self.count == 0 {
            *self = Self { needed: self.needed, ..other };
            return self.grown();
        }
        // As many numbers as are needed are not smaller in one of the two, those that equal the bound among
        // them: nothing of what was kept is left out. NaN gives way.
        self.bound = self.bound.max(other.bound);
        self.count += other.count;
        self.kept.extend_from_slice(&other.kept);
        self.grown()
    }

    fn is_full(&self) -> bool {
        self.kept.len() / 2 >= self.needed
    }

    fn grown(&mut self) -> usize {
        if self.is_full() {
            let dropped = self.kept.len() - self.needed;
            let (_, &mut bound, _) = self.kept.select_nth_unstable_by(dropped, f64::total_cmp);
            self.kept.drain(..dropped);
            self.bound = bound;
        }
        // Room that was made stays.
        let before = std::mem::replace(&mut self.bytes, self.kept.capacity() * size_of::<f64>());
        self.bytes.saturating_sub(before)
    }

    /// All numbers, where none were dropped.
    pub fn into_list(self) -> Vec<f64> {
        assert!(self.kept.len() == self.count, "a list has every number");
        self.kept
    }

    /// The value below which a share `q` lies, interpolated between the closest ranks as numpy does by
    /// default; reorders the values.
    pub fn percentile(&mut self, q: f64) -> Option<f64> {
        let last = self.count.checked_sub(1)?;
        let rank = q * last as f64;
        let share = rank - rank.floor();
        let above = last - (rank as usize).min(last);
        // A wrong number would be worse than none.
        assert!(above < self.kept.len(), "more numbers than were expected");
        let place = self.kept.len().checked_sub(above + 1)?;
        let (_, &mut low, above) = self.kept.select_nth_unstable_by(place, f64::total_cmp);
        let high = above.iter().copied().min_by(f64::total_cmp).unwrap_or(low);
        let distance = high - low;
        if share == 0.0 || !distance.is_finite() {
            // Numbers at the ends of what a float holds: their distance is none.
            return Some(low * (1.0 - share) + high * share);
        }
        // Numpy interpolates from the nearer end.
        Some(if share < 0.5 { low + distance * share } else { high - distance * (1.0 - share) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::rng::{Rng as _, SeededRng};

    fn percentile(numbers: &[f64], q: f64) -> Option<f64> {
        let mut ranks = ExactPercentile::default();
        ranks.extend(numbers);
        ranks.percentile(q)
    }

    #[test]
    fn percentiles_interpolate_between_ranks() {
        assert_eq!(percentile(&[], 0.95), None);
        assert_eq!(percentile(&[7.0], 0.95), Some(7.0));
        assert_eq!(percentile(&[4.0, 1.0, 3.0, 2.0], 0.5), Some(2.5));
        let ramp: Vec<f64> = (0..=100).rev().map(f64::from).collect();
        assert_eq!(percentile(&ramp, 0.95), Some(95.0));
        assert_eq!(percentile(&[0.0, 10.0], 0.95), Some(9.5));
        assert_eq!(percentile(&[-1.0, -0.0, 0.0], 0.5), Some(0.0));
        assert_eq!(percentile(&[-1e308, 1e308], 0.5), Some(0.0));
        assert_eq!(percentile(&[-1e308, 1e308, 1e308], 0.5), Some(1e308));
    }

    /// Against all numbers: every percentile, as many rows as were expected or fewer, in one state or in
    /// several, one by one or many at a time, rising, falling, and often equal.
    #[test]
    fn dropped_numbers_never_matter() {
        let rng = SeededRng::new(5);
        let random = |below: u64| rng.next_u64() % below;
        let mut dropped = 0;
        for case in 0..400 {
            let percent = [0, 1, 25, 49, 50, 75, 90, 95, 99, 100][random(10) as usize];
            let rows_max = 1 + random(30_000);
            let rows = if random(2) == 0 { rows_max } else { 1 + random(rows_max) };
            let distinct = [3, 1_000, u64::MAX][random(3) as usize];
            let mut numbers: Vec<f64> =
                (0..rows).map(|_| random(distinct) as f64 - 1_000.0).collect();
            match case % 3 {
                0 => numbers.sort_by(f64::total_cmp),
                1 => numbers.sort_by(|a, b| b.total_cmp(a)),
                _ => {}
            }
            let mut states = vec![ExactPercentile::new(percent, rows_max); 1 + random(3) as usize];
            let mut bytes = 0;
            let mut rest = &numbers[..];
            while !rest.is_empty() {
                let (some, others) = rest.split_at(rest.len().min(1 + random(2_000) as usize));
                let at = random(states.len() as u64) as usize;
                let state = &mut states[at];
                bytes += match random(4) {
                    0 => some.iter().map(|&number| state.push(number)).sum::<usize>(),
                    _ => state.extend(some),
                };
                rest = others;
            }
            let mut whole = ExactPercentile::new(percent, rows_max);
            bytes += states.into_iter().map(|state| whole.merge(state)).sum::<usize>();
            let taken = whole.kept.capacity() * size_of::<f64>();
            assert!(bytes >= taken, "{bytes} of {taken} bytes are accounted for");
            dropped += whole.count - whole.kept.len();
            let q = f64::from(percent) / 100.0;
            assert_eq!(whole.percentile(q), percentile(&numbers, q), "case {case}");
        }
        assert!(dropped > 1_000_000, "only {dropped} numbers were dropped");
    }
}
