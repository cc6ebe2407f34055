//! Approximate percentiles: t-digests (Dunning and Ertl, "Computing extremely accurate quantiles using
//! t-digests", 2019), merged by sorting.
//!
//! A digest is a list of centroids, each the mean of some neighbouring values and how many there are: few at
//! the ends, where percentiles are asked for, and many in the middle. Small digests hold every value and are
//! exact. Values and other digests are collected and brought together rarely, all at once and in order of
//! size; so the answer does not depend on the order in which digests were added, up to some hundred of them.
//!
//! ```text
//! the numbers 0 to 9,999 in random order: some 180 centroids
//! values in each      1  2  4  6  …  about 100 in the middle  …  4  3  1
//!
//! [1, 2, 3]        offset  bytes
//! centroids             0  03
//! min 1.0               1  00 00 00 00 00 00 f0 3f
//! max 3.0               9  00 00 00 00 00 00 08 40
//! mean 1.0, 1 value    17  00 00 00 00 00 00 f0 3f  01
//! mean 2.0, 1 value    26  00 00 00 00 00 00 00 40  01
//! mean 3.0, 1 value    35  00 00 00 00 00 00 08 40  01
//!
//! []                    0  00
//! ```
//!
//! Between centroids an answer is on the line between their means: the median of 1, 2, 3, 4 is 2.5, as the exact one is.

use std::cmp::Ordering;

use crate::{
    base::coding::{Cursor, Put},
    error::Result,
};

/// Sine and cosine of the angle of a step, a 300th of a circle, of which the scale has half: so there are at most
/// 300 centroids, usually about two thirds.
const STEP_SIN: f64 = 0.020_942_419_883_356_957;
const STEP_COS: f64 = 0.999_780_683_474_845_5;
/// Centroids of a settled state, at most. Up to some 190 values each is a centroid of its own.
const CENTROIDS_MAX: usize = 300;
/// Values collected before they are brought together: that sorts them, so it is done rarely. When it is done decides where
/// centroids end, so the number belongs to the stored format.
const BATCH: usize = 512;
/// Centroids of other digests collected before they are.
const COLLECTED_MAX: usize = 1 << 15;
/// Values of a stored state, at most: more than rows of any segment, and few enough to be added up.
const WEIGHT_MAX: u64 = 1 << 40;
/// Bytes of an empty state, for memory accounting.
pub const EMPTY_BYTES: usize = 128;

/// Neighbouring values as one point: their mean and how many there are.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Centroid {
    mean: f64,
    weight: u64,
}

impl Centroid {
    fn of(mean: f64) -> Self {
        Self { mean, weight: 1 }
    }

    /// Centroids that compare equal have equal bits, so sorting may leave them in any order.
    fn order(&self, other: &Self) -> Ordering {
        self.mean.total_cmp(&other.mean).then_with(|| self.weight.cmp(&other.weight))
    }
}

/// A quantile state, from which `p95(latency_ms)` of an approximate question is computed.
#[derive(Debug, Clone)]
pub struct Digest {
    /// Own centroids, rising, as few as the scale allows.
    centroids: Vec<Centroid>,
    /// Centroids of merged digests, in any order. They are combined with own values only at the
    /// end, so that the order of merges does not matter.
    others: Vec<Centroid>,
    /// Values that were not brought together yet, by [`rank_of`]: integers are sorted faster.
    batch: Vec<i64>,
    min: f64,
    max: f64,
}

impl Default for Digest {
    fn default() -> Self {
        Self {
            centroids: Vec::new(),
            others: Vec::new(),
            batch: Vec::new(),
            min: f64::INFINITY,
            max: f64::NEG_INFINITY,
        }
    }
}

impl Digest {
    /// Adds a value, if it is finite, as all are that were not damaged; returns how many bytes the state has
    /// grown, for the memory account of the query.
    pub fn insert(&mut self, value: f64) -> usize {
        self.extend(&[value])
    }

    /// Adds values as [`insert`](Self::insert) does.
    pub fn extend(&mut self, values: &[f64]) -> usize {
        let before = self.bytes_used();
        for &value in values.iter().filter(|value| value.is_finite()) {
            self.batch.push(rank_of(value));
            self.min = self.min.min(value);
            self.max = self.max.max(value);
            if self.batch.len() == BATCH {
                self.settle_own();
            }
        }
        self.bytes_used().saturating_sub(before)
    }

    /// Adds the values of another; returns how many bytes this one has grown.
    pub fn merge(&mut self, other: &Self) -> usize {
        let before = self.bytes_used();
        self.others.extend_from_slice(&other.centroids);
        self.others.extend_from_slice(&other.others);
        self.others.extend(other.batch.iter().map(|&rank| Centroid::of(value_of(rank))));
        self.min = self.min.min(other.min);
        self.max = self.max.max(other.max);
        // Bounds the memory: 512 KiB of centroids. Only from here on does the order of merges leave a trace.
        if self.others.len() > COLLECTED_MAX {
            bring_together(&mut self.others);
        }
        self.bytes_used().saturating_sub(before)
    }

    /// Brings the own centroids and the collected values together. `inlay verify` makes stored digests again and
    /// compares bytes, so the order is part of the format.
    fn settle_own(&mut self) {
        self.batch.sort_unstable();
        // Usually in order already, but for equal means, of which the lighter one comes first.
        self.centroids.sort_by(Centroid::order);
        let own: u64 = self.centroids.iter().map(|centroid| centroid.weight).sum();
        let total = own + self.batch.len() as u64;
        let mut kept =
            Vec::with_capacity(CENTROIDS_MAX.min(self.centroids.len() + self.batch.len()));
        let mut values = self.batch.drain(..).map(|rank| Centroid::of(value_of(rank))).peekable();
        let mut open: Option<Open> = None;
        let mut add = |next| match &mut open {
            None => open = Some(Open::first(next, total)),
            Some(open) => kept.extend(open.add(next)),
        };
        for centroid in self.centroids.drain(..) {
            // Two sorted lists are merged: values that come before this centroid first.
            while let Some(value) = values.next_if(|value| value.order(&centroid).is_le()) {
                add(value);
            }
            add(centroid);
        }
        values.for_each(add);
        kept.extend(open.map(|open| open.centroid));
        self.centroids = kept;
    }

    /// Combines all collected values and centroids: own ones, collected ones and those of others in one sorted pass.
    pub fn settle(&mut self) {
        if self.batch.is_empty() && self.others.is_empty() {
            return;
        }
        self.centroids.append(&mut self.others);
        self.settle_own();
    }

    /// Estimates the value below which a share `q` of all values lies, `q` from 0 to 1; `None` without values.
    ///
    /// Of 0, 1, … 40 the quantile 0.95 is 38; of 1, 2, 3, 4 the quantile 1.0 is 4. A larger `q` never gives a smaller value.
    /// Source: interpolation between centroids as in Dunning and Ertl, with ranks as exact percentiles have them.
    pub fn quantile(&mut self, q: f64) -> Option<f64> {
        self.settle();
        let total = self.count();
        let last = total.checked_sub(1)?;
        // Value n of all, in order, lies at n + 0.5; a centroid lies in the middle of its values.
        let wanted = q * last as f64 + 0.5;
        let mut low = (0.5, self.min);
        let mut behind = 0;
        for centroid in &self.centroids {
            // The middle of the values of this centroid: on the way there from the middle of the one before lies the answer.
            let here = (behind as f64 + centroid.weight as f64 / 2.0, centroid.mean);
            if wanted <= here.0 {
                return Some(between(low, here, wanted));
            }
            low = here;
            behind += centroid.weight;
        }
        Some(between(low, (total as f64 - 0.5, self.max), wanted))
    }

    /// How many values there are, exactly: the weights add up to them.
    pub fn count(&self) -> u64 {
        let all = self.centroids.iter().chain(&self.others);
        all.map(|centroid| centroid.weight).sum::<u64>() + self.batch.len() as u64
    }

    /// Whether there are no values.
    pub fn is_empty(&self) -> bool {
        self.centroids.is_empty() && self.others.is_empty() && self.batch.is_empty()
    }

    /// The state, settled, with no room to spare; caches and rollups keep it so.
    pub fn settled(mut self) -> Self {
        self.settle();
        (self.batch, self.others) = (Vec::new(), Vec::new());
        self.centroids.shrink_to_fit();
        self
    }

    /// Bytes on the heap.
    pub fn bytes_used(&self) -> usize {
        let centroids = self.centroids.capacity() + self.others.capacity();
        centroids * size_of::<Centroid>() + self.batch.capacity() * 8
    }

    /// Appends the state, which is settled.
    pub fn write(&self, out: &mut Vec<u8>) {
        debug_assert!(self.batch.is_empty() && self.others.is_empty());
        out.put_varint(self.centroids.len() as u64);
        if self.centroids.is_empty() {
            return;
        }
        out.put_u64(self.min.to_bits());
        out.put_u64(self.max.to_bits());
        for centroid in &self.centroids {
            out.put_u64(centroid.mean.to_bits());
            out.put_varint(centroid.weight);
        }
    }

    /// Reads a state back.
    ///
    /// Errors: `Corrupt` when a number is not finite, means fall, a weight is 0 or the weights exceed 2^40, or the input ends
    /// too early.
    pub fn read(cursor: &mut Cursor<'_>) -> Result<Self> {
        let mut state = Self::default();
        // A centroid takes at least nine bytes: eight of its mean and one of its weight.
        let count = cursor.count(9)?;
        if count == 0 {
            return Ok(state);
        }
        state.min = f64::from_bits(cursor.u64()?);
        state.max = f64::from_bits(cursor.u64()?);
        if !state.min.is_finite() {
            return Err(cursor.error("the smallest value of a digest is no number"));
        }
        state.centroids.reserve_exact(count);
        let (mut before, mut total) = (state.min, 0u64);
        for _ in 0..count {
            let mean = f64::from_bits(cursor.u64()?);
            let weight = cursor.varint()?;
            let sum = total.checked_add(weight).filter(|&sum| weight > 0 && sum <= WEIGHT_MAX);
            total = sum.ok_or_else(|| cursor.error("a centroid of a digest has no such weight"))?;
            if !(mean.is_finite() && mean >= before) {
                return Err(cursor.error("the centroids of a digest are not in order"));
            }
            before = mean;
            state.centroids.push(Centroid { mean, weight });
        }
        if !(state.max.is_finite() && state.max >= before) {
            return Err(cursor.error("the largest value of a digest is not the largest"));
        }
        Ok(state)
    }
}

/// Sorts centroids, and brings neighbours together as far as the scale allows. In place, but for what the
/// sort takes meanwhile.
fn bring_together(centroids: &mut Vec<Centroid>) {
    // Digests come in order one behind the other, which a stable sort makes use of.
    centroids.sort_by(Centroid::order);
    let total = centroids.iter().map(|centroid| centroid.weight).sum();
    let Some(&first) = centroids.first() else { return };
    let (mut open, mut kept) = (Open::first(first, total), 0);
    for at in 1..centroids.len() {
        if let Some(closed) = open.add(centroids[at]) {
            centroids[kept] = closed;
            kept += 1;
        }
    }
    centroids[kept] = open.centroid;
    centroids.truncate(kept + 1);
}

/// The centroid that neighbours are added to, one after the other in their order.
struct Open {
    centroid: Centroid,
    /// Values before it, and all.
    behind: u64,
    total: u64,
    /// Where it must end, at the latest.
    limit: f64,
}

impl Open {
    /// The first of all, which always is at least the centroid that it starts with, however small the limit.
    fn first(centroid: Centroid, total: u64) -> Self {
        Self { centroid, behind: 0, total, limit: weight_limit(0, total) }
    }

    /// Adds the next one; gives the centroid that ends before it, if one does.
    fn add(&mut self, next: Centroid) -> Option<Centroid> {
        let open = &mut self.centroid;
        let weight = open.weight + next.weight;
        if (self.behind + weight) as f64 <= self.limit {
            open.weight = weight;
            open.mean = towards(open.mean, next.mean, next.weight as f64 / weight as f64);
            return None;
        }
        self.behind += open.weight;
        self.limit = weight_limit(self.behind, self.total);
        Some(std::mem::replace(open, next))
    }
}

/// An integer that orders as `f64::total_cmp` does: of negative numbers all bits but the sign are turned.
fn rank_of(value: f64) -> i64 {
    let bits = value.to_bits() as i64;
    bits ^ ((bits >> 63) as u64 >> 1) as i64
}

/// The value of a rank: the same turn once more.
fn value_of(rank: i64) -> f64 {
    f64::from_bits((rank ^ ((rank >> 63) as u64 >> 1) as i64) as u64)
}

/// Where a centroid must end that begins behind `behind` of `total` values: a step further on a scale that
/// has many steps at both ends, the arc sine of `x = 2q - 1`. A step is `sin(asin(x) + angle)`, written
/// without either: what a mathematics library rounds differs between machines, and bytes must not.
///
/// ```text
/// of 1,000 values      behind 0: up to 0.1      behind 500: up to 510.5      (so one value first, ten in the middle)
/// of 100,000 values    behind 0: up to 11.0     behind 50,000: up to 51,047
/// ```
fn weight_limit(behind: u64, total: u64) -> f64 {
    let x = 2.0 * (behind as f64 / total.max(1) as f64) - 1.0;
    let x =
        if x >= STEP_COS { 1.0 } else { x * STEP_COS + ((1.0 - x) * (1.0 + x)).sqrt() * STEP_SIN };
    f64::midpoint(x, 1.0) * total as f64
}

/// On the line from one point to another, where `x` lies: 2.5 for (1.5, 2.0), (2.5, 3.0) and 2.0.
fn between(low: (f64, f64), high: (f64, f64), x: f64) -> f64 {
    let width = high.0 - low.0;
    if width <= 0.0 || low.1 == high.1 {
        return high.1;
    }
    towards(low.1, high.1, ((x - low.0) / width).clamp(0.0, 1.0))
}

/// A share of the way from a value to a larger one or to an equal one.
fn towards(low: f64, high: f64, share: f64) -> f64 {
    if low == high {
        return high;
    }
    // In two parts, so that neither overflows; rounding must not lead out of the line.
    (low * (1.0 - share) + high * share).clamp(low, high)
}

#[cfg(test)]
pub(super) mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::base::rng::{Rng as _, SeededRng};

    fn of(values: impl IntoIterator<Item = f64>) -> Digest {
        let mut digest = Digest::default();
        for value in values {
            digest.insert(value);
        }
        digest.settle();
        digest
    }

    fn written(digest: &Digest) -> Vec<u8> {
        let mut bytes = Vec::new();
        digest.write(&mut bytes);
        bytes
    }

    /// A value between 0 and 1.
    pub fn unit(rng: &SeededRng) -> f64 {
        (rng.below(1 << 52) as f64 + 0.5) / (1u64 << 52) as f64
    }

    /// Its name, and what it makes of a number between 0 and 1.
    type Distribution = (&'static str, fn(f64) -> f64);

    fn distributions() -> [Distribution; 4] {
        [
            ("uniform", |u| u * 1_000.0),
            ("exponential", |u| -u.ln() * 120.0),
            ("heavy tail", |u| u.powf(-1.0 / 1.5)),
            ("steps", |u| (u * 40.0).floor() * 25.0),
        ]
    }

    /// Own values and those of others give the same, whichever came first.
    #[test]
    fn values_and_digests_may_come_in_any_order() {
        let rng = SeededRng::new(11);
        let parts: Vec<Digest> = (0..5)
            .map(|_| {
                let mut part = Digest::default();
                for _ in 0..3_000 {
                    part.insert(unit(&rng));
                }
                part.settled()
            })
            .collect();
        let values: Vec<f64> = (0..2_000).map(|_| unit(&rng)).collect();
        let (mut first, mut last, mut between) = <(Digest, Digest, Digest)>::default();
        for part in &parts {
            first.merge(part);
        }
        for (at, &value) in values.iter().enumerate() {
            first.insert(value);
            last.insert(value);
            between.insert(value);
            if at % 400 == 0 {
                between.merge(&parts[at / 400]);
            }
        }
        for part in &parts {
            last.merge(part);
        }
        for q in [0.01, 0.5, 0.95, 0.999] {
            let asked = first.quantile(q);
            assert_eq!((last.quantile(q), between.quantile(q)), (asked, asked), "{q}");
        }
        assert_eq!(first.count(), 17_000);
    }

    #[test]
    fn a_step_of_the_scale_is_of_its_angle() {
        let angle = 2.0 * std::f64::consts::PI / CENTROIDS_MAX as f64;
        assert!((STEP_SIN - angle.sin()).abs() < 1e-15 && (STEP_COS - angle.cos()).abs() < 1e-15);
        let total = 1_000_000_000;
        for behind in (0..=total).step_by(999_999) {
            let q = behind as f64 / total as f64;
            let next = (2.0 * q - 1.0).asin() + angle;
            let next = if next >= std::f64::consts::FRAC_PI_2 { 1.0 } else { next.sin() };
            let expected = f64::midpoint(next, 1.0) * total as f64;
            assert!((weight_limit(behind, total) - expected).abs() < 1e-3, "{behind}");
        }
    }

    #[test]
    fn small_digests_are_exact() {
        assert_eq!(Digest::default().quantile(0.5), None);
        let mut one = of([7.0]);
        assert_eq!((one.quantile(0.0), one.quantile(0.95)), (Some(7.0), Some(7.0)));
        let mut four = of([4.0, 1.0, 3.0, 2.0]);
        assert_eq!((four.quantile(0.5), four.quantile(1.0)), (Some(2.5), Some(4.0)));
        let mut ramp = of((0..=40).rev().map(f64::from));
        assert!((ramp.quantile(0.95).unwrap() - 38.0).abs() < 1e-9);
    }

    /// Measured in shares of all values, which is what a t-digest bounds: half a percent in the middle, and
    /// less at the ends. The digest is that of many parts.
    #[test]
    fn errors_stay_within_those_of_the_scale() {
        for (name, draw) in distributions() {
            for count in [100, 10_000, 300_000] {
                let rng = SeededRng::new(count);
                let values: Vec<f64> = (0..count).map(|_| draw(unit(&rng))).collect();
                let mut digest = Digest::default();
                for part in values.chunks((count as usize / 7).max(1)) {
                    digest.merge(&of(part.iter().copied()));
                }
                let mut sorted = values;
                sorted.sort_by(f64::total_cmp);
                for (q, error_max) in [(0.5, 0.006), (0.95, 0.003), (0.99, 0.001)] {
                    let found = digest.quantile(q).unwrap();
                    let below = sorted.partition_point(|value| *value < found) as f64;
                    let upto = sorted.partition_point(|value| *value <= found) as f64;
                    // Where values repeat, all shares that they cover are right.
                    let one = 1.0 / count as f64;
                    let (low, high) = (below * one - q, q - upto * one);
                    let error = low.max(high);
                    assert!(error <= error_max + one, "{name}, {count}, {q}: {error}");
                }
                assert!(digest.centroids.len() <= CENTROIDS_MAX, "{}", digest.centroids.len());
            }
        }
    }

    /// The crate that this could have been.
    #[test]
    fn estimates_are_as_good_as_those_of_another() {
        let rng = SeededRng::new(3);
        let values: Vec<f64> = (0..100_000).map(|_| -unit(&rng).ln() * 50.0).collect();
        let mut sorted = values.clone();
        sorted.sort_by(f64::total_cmp);
        let theirs = tdigest::TDigest::new_with_size(200).merge_unsorted(values.clone());
        let mut ours = of(values);
        for q in [0.5, 0.9, 0.95, 0.99, 0.999] {
            let exact = sorted[(q * 99_999.0) as usize];
            let off = |found: f64| (found / exact - 1.0).abs();
            let theirs = off(theirs.estimate_quantile(q).unwrap());
            let ours = off(ours.quantile(q).unwrap());
            assert!(ours <= theirs.max(0.005), "{q}: {ours} and {theirs}");
        }
    }

    #[test]
    fn damaged_bytes_are_refused() {
        let read = |bytes: &[u8]| Digest::read(&mut Cursor::new(bytes, "test")).map(drop);
        let good = written(&of([1.0, 2.0, 3.0]));
        assert!(read(&good).is_ok() && read(&[0]).is_ok());
        for len in 0..good.len() {
            assert!(read(&good[..len]).is_err(), "{len}");
        }
        for (at, byte) in [(24, 0xff), (25, 0), (16, 0xbf), (8, 0xff)] {
            let mut bad = good.clone();
            bad[at] = byte;
            assert!(read(&bad).is_err(), "{at}");
        }
    }

    /// The centroids of a digest, made in the plainest way.
    #[derive(Default)]
    struct Plain {
        own: Vec<Centroid>,
        others: Vec<Centroid>,
        batch: usize,
    }

    impl Plain {
        fn insert(&mut self, value: f64) {
            self.own.push(Centroid::of(value));
            self.batch += 1;
            if self.batch == BATCH {
                self.bring_together();
            }
        }

        fn settle(&mut self) {
            if self.batch > 0 || !self.others.is_empty() {
                self.own.append(&mut self.others);
                self.bring_together();
            }
        }

        fn bring_together(&mut self) {
            self.batch = 0;
            self.own.sort_by(|a, b| a.mean.total_cmp(&b.mean).then(a.weight.cmp(&b.weight)));
            let total: u64 = self.own.iter().map(|centroid| centroid.weight).sum();
            let (mut kept, mut behind) = (Vec::<Centroid>::new(), 0);
            let mut limit = weight_limit(0, total);
            for next in self.own.drain(..) {
                match kept.last_mut() {
                    Some(open) if (behind + open.weight + next.weight) as f64 <= limit => {
                        open.weight += next.weight;
                        let share = next.weight as f64 / open.weight as f64;
                        open.mean = between((0.0, open.mean), (1.0, next.mean), share);
                    }
                    Some(open) => {
                        behind += open.weight;
                        limit = weight_limit(behind, total);
                        kept.push(next);
                    }
                    None => kept.push(next),
                }
            }
            self.own = kept;
        }
    }

    proptest! {
        #[test]
        fn quantiles_never_go_backwards_and_stay_inside(
            values in prop::collection::vec(-1e300f64..1e300, 1..3_000),
            part in 1usize..700,
        ) {
            let mut digest = Digest::default();
            for part in values.chunks(part) {
                digest.merge(&of(part.iter().copied()));
            }
            let least = values.iter().copied().fold(f64::INFINITY, f64::min);
            let most = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            let mut before = least;
            for step in 0..=1_000 {
                let found = digest.quantile(f64::from(step) / 1_000.0).unwrap();
                prop_assert!(found >= before && found <= most, "{}: {} after {}", step, found, before);
                before = found;
            }
        }

        /// Stored bytes are those of the plain way: everything in one list, sorted, and neighbours brought together.
        #[test]
        fn bytes_are_those_of_sorting_everything(
            steps in prop::collection::vec((0u8..4, prop::collection::vec(0usize..9, 1..700)), 1..8),
        ) {
            const VALUES: [f64; 9] = [0.0, -0.0, 5e-324, -1.5, 2.0, 2.5, 3.0, 1e300, -7.25];
            let (mut ours, mut plain) = <(Digest, Plain)>::default();
            for (kind, picked) in &steps {
                let values: Vec<f64> = picked.iter().map(|&at| VALUES[at]).collect();
                match kind {
                    0 => {
                        ours.extend(&values);
                    }
                    1 => values.iter().for_each(|&value| {
                        ours.insert(value);
                    }),
                    // As it is, or stored and read back.
                    _ => {
                        let mut part = Digest::default();
                        part.extend(&values);
                        part.settle();
                        if *kind == 3 {
                            let bytes = written(&part);
                            part = Digest::read(&mut Cursor::new(&bytes, "test")).unwrap();
                        }
                        ours.merge(&part);
                    }
                }
                if *kind < 2 {
                    values.iter().for_each(|&value| plain.insert(value));
                } else {
                    let mut part = Plain::default();
                    values.iter().for_each(|&value| part.insert(value));
                    part.settle();
                    plain.others.extend(part.own);
                }
            }
            ours.settle();
            plain.settle();
            prop_assert_eq!(&ours.centroids, &plain.own);
            let bits = |list: &[Centroid]| list.iter().map(|one| one.mean.to_bits()).collect::<Vec<_>>();
            prop_assert_eq!(bits(&ours.centroids), bits(&plain.own));
        }

        /// Neither the order of the parts matters nor that they were stored.
        #[test]
        fn parts_merge_alike_in_any_order(
            values in prop::collection::vec(0u32..10_000, 1..4_000),
            part in 1usize..900,
        ) {
            let parts: Vec<Digest> =
                values.chunks(part).map(|part| of(part.iter().map(|&value| f64::from(value)))).collect();
            let (mut forward, mut backward) = (Digest::default(), Digest::default());
            for part in &parts {
                forward.merge(part);
            }
            for part in parts.iter().rev() {
                let bytes = written(part);
                let mut cursor = Cursor::new(&bytes, "test");
                backward.merge(&Digest::read(&mut cursor).unwrap());
                cursor.finish().unwrap();
            }
            forward.settle();
            backward.settle();
            prop_assert_eq!(written(&forward), written(&backward));
        }
    }
}
