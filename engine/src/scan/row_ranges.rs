//! The rows of a source that are read: series, row ranges within a series, morsels of row ranges.

use std::ops::Range;

use crate::base::time::{DAY_MS, HOUR_MS};
pub use crate::segment::Series;

/// Rows of one series.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RowRange {
    /// Which series of the source.
    pub series: usize,
    /// Which rows of the source.
    pub rows: Range<u32>,
}

/// Row ranges that are read together: those of one block.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Morsel {
    /// Row ranges in the order of their rows.
    pub row_ranges: Vec<RowRange>,
}

impl Morsel {
    /// Number of rows.
    pub fn rows(&self) -> usize {
        self.row_ranges.iter().map(|row_range| row_range.rows.len()).sum()
    }
}

/// The tenants and events whose rows are read; `None` stands for all.
#[derive(Debug, Clone, Copy, Default)]
pub struct SeriesFilter<'a> {
    /// Names of tenants.
    pub tenants: Option<&'a [String]>,
    /// Names of events.
    pub names: Option<&'a [String]>,
}

/// Width of time buckets. Each width is a multiple of the next one, so rows that two widths tell apart are told apart by the finer, which is
/// the greater variant.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Grain {
    /// By the week, which begins on a Monday, in UTC.
    Week,
    /// By the day, in UTC.
    Day,
    /// By the hour.
    Hour,
    /// By the quarter of an hour.
    QuarterHour,
    /// By five minutes.
    FiveMinutes,
    /// By the minute.
    Minute,
}

/// Milliseconds of a minute.
const MINUTE_MS: i64 = 60_000;
/// A Monday at midnight, 1969-12-29: weeks are counted from it.
const WEEKS_FROM_MS: i64 = -3 * DAY_MS;

impl Grain {
    /// Width in milliseconds.
    pub fn step_ms(self) -> i64 {
        match self {
            Self::Week => 7 * DAY_MS,
            Self::Day => DAY_MS,
            Self::Hour => HOUR_MS,
            Self::QuarterHour => 15 * MINUTE_MS,
            Self::FiveMinutes => 5 * MINUTE_MS,
            Self::Minute => MINUTE_MS,
        }
    }

    /// The start of the bucket of a time.
    pub fn start(self, ms: i64) -> i64 {
        let from = if self == Self::Week { WEEKS_FROM_MS } else { 0 };
        let steps = ms.saturating_sub(from).div_euclid(self.step_ms());
        steps.saturating_mul(self.step_ms()).saturating_add(from)
    }
}

/// Buckets of rows by time: `WHERE timestamp >= '2026-11-06'` gives one boundary,
/// `date_trunc('day', timestamp)` a grain. With both, a day with a boundary within it is two
/// buckets. With neither, all rows are in one bucket.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TimeBuckets {
    /// Width of the buckets; `None` when only boundaries part them.
    pub grain: Option<Grain>,
    /// Milliseconds since 1970 at which another bucket begins, rising.
    pub boundaries: Vec<i64>,
}

impl From<Grain> for TimeBuckets {
    fn from(grain: Grain) -> Self {
        Self { grain: Some(grain), boundaries: Vec::new() }
    }
}

impl TimeBuckets {
    /// Whether all rows are in one bucket.
    pub fn is_one(&self) -> bool {
        self.grain.is_none() && self.boundaries.is_empty()
    }

    /// Also parts rows where another set of buckets does.
    pub fn merge(&mut self, other: &Self) {
        self.grain = self.grain.max(other.grain);
        self.boundaries.extend(&other.boundaries);
        self.boundaries.sort_unstable();
        self.boundaries.dedup();
        // A bucket of the grain begins there anyway.
        if let Some(grain) = self.grain {
            self.boundaries.retain(|boundary| grain.start(*boundary) != *boundary);
        }
    }

    /// An instant that stands for the bucket of a time, the same for each time in it: its start, or
    /// one millisecond before the first boundary for the bucket before it.
    pub fn start(&self, ms: i64) -> i64 {
        self.start_behind(self.boundaries.partition_point(|boundary| *boundary <= ms), ms)
    }

    /// The same for a time, where so many of the boundaries are at it or before it.
    fn start_behind(&self, boundaries: usize, ms: i64) -> i64 {
        let last = boundaries.checked_sub(1).and_then(|at| self.boundaries.get(at)).copied();
        let of_grain = self.grain.map(|grain| grain.start(ms));
        let before_first = || self.boundaries.first().map_or(0, |first| first.saturating_sub(1));
        last.max(of_grain).unwrap_or_else(before_first)
    }

    /// End of the bucket of a time, excluded.
    pub fn end(&self, ms: i64) -> i64 {
        let next = self.boundaries.partition_point(|boundary| *boundary <= ms);
        let of_grain = self.grain.map(|grain| grain.start(ms).saturating_add(grain.step_ms()));
        let ends = self.boundaries.get(next).copied().into_iter().chain(of_grain);
        ends.min().unwrap_or(i64::MAX)
    }

    /// Upper bound of the number of buckets from one time to another.
    pub fn count(&self, first_ms: i64, last_ms: i64) -> usize {
        let steps = self.grain.map_or(1, |grain| {
            let steps = (grain.start(last_ms) - grain.start(first_ms)) / grain.step_ms();
            usize::try_from(steps).map_or(usize::MAX, |steps| steps.saturating_add(1))
        });
        steps.saturating_add(self.boundaries.len())
    }
}

/// Rows of a row range that are in one bucket of time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BucketRun {
    /// Which series of the source.
    pub series: usize,
    /// An instant of the bucket in milliseconds since 1970, as [`TimeBuckets::start`] gives it;
    /// zero where all times are in one bucket.
    pub start_ms: i64,
    /// Number of rows.
    pub rows: u32,
}

/// Adds rows to the last run of a bucket, or begins another one.
pub fn push_rows(out: &mut Vec<BucketRun>, series: usize, start_ms: i64, rows: u32) {
    match out.last_mut() {
        Some(last) if (last.series, last.start_ms) == (series, start_ms) => last.rows += rows,
        _ => out.push(BucketRun { series, start_ms, rows }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_bucket_has_one_instant() {
        let buckets = |grain, boundaries: &[i64]| {
            let boundaries = boundaries.to_vec();
            move |ms| TimeBuckets { grain, boundaries: boundaries.clone() }.start(ms)
        };
        let two = buckets(None, &[100, 200]);
        assert_eq!([0, 99, 100, 199, 200, i64::MAX].map(two), [99, 99, 100, 100, 200, 200]);
        let days = buckets(Some(Grain::Day), &[DAY_MS + 7]);
        let around = [0, DAY_MS, DAY_MS + 6, DAY_MS + 7, 2 * DAY_MS - 1, 2 * DAY_MS];
        assert_eq!(around.map(days), [0, DAY_MS, DAY_MS, DAY_MS + 7, DAY_MS + 7, 2 * DAY_MS]);
        assert_eq!(buckets(None, &[])(5), 0);
        let end = |grain, ms| TimeBuckets { grain, boundaries: vec![DAY_MS + 7] }.end(ms);
        assert_eq!([0, DAY_MS + 7].map(|ms| end(None, ms)), [DAY_MS + 7, i64::MAX]);
        let around = [0, DAY_MS, DAY_MS + 7].map(|ms| end(Some(Grain::Day), ms));
        assert_eq!(around, [DAY_MS, DAY_MS + 7, 2 * DAY_MS]);
        let mut both = TimeBuckets::from(Grain::Day);
        both.merge(&TimeBuckets { grain: Some(Grain::Week), boundaries: vec![7, 3, 7] });
        assert_eq!(both, TimeBuckets { grain: Some(Grain::Day), boundaries: vec![3, 7] });
        assert_eq!(both.count(0, 3 * DAY_MS), 6);
        let minutes = [Grain::Minute, Grain::FiveMinutes, Grain::QuarterHour, Grain::Hour];
        let at = DAY_MS + 44 * MINUTE_MS + 59_999;
        let starts = minutes.map(|grain| (grain.start(at) - DAY_MS) / MINUTE_MS);
        assert_eq!(starts, [44, 40, 30, 0]);
        assert_eq!(minutes.map(|grain| grain.start(-1)), [-1, -5, -15, -60].map(|n| n * MINUTE_MS));
        // The finer of two parts rows wherever the coarser does.
        let grains = [
            Grain::Week,
            Grain::Day,
            Grain::Hour,
            Grain::QuarterHour,
            Grain::FiveMinutes,
            Grain::Minute,
        ];
        for pair in grains.windows(2) {
            assert!(pair[0] < pair[1] && pair[0].step_ms() % pair[1].step_ms() == 0, "{pair:?}");
        }
        let before = both.clone();
        both.merge(&TimeBuckets { grain: None, boundaries: vec![DAY_MS] });
        assert_eq!(both, before, "a day begins there");
    }
}
