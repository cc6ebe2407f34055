//! Which rows of a source are read: those of a series, strips of them, units of strips.

use std::ops::Range;

use crate::base::time::{DAY_MS, HOUR_MS};
pub use crate::segment::Series;

/// Rows of one series.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Strip {
    /// Which series of the source.
    pub series: usize,
    /// Which rows of the source.
    pub rows: Range<u32>,
}

/// Strips that are read together: those of one block.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Unit {
    /// In the order of their rows.
    pub strips: Vec<Strip>,
}

impl Unit {
    /// Number of rows.
    pub fn rows(&self) -> usize {
        self.strips.iter().map(|strip| strip.rows.len()).sum()
    }
}

/// Of which tenants and events rows are read; nothing stands for all.
#[derive(Debug, Clone, Copy, Default)]
pub struct Chosen<'a> {
    /// Names of tenants.
    pub tenants: Option<&'a [String]>,
    /// Names of events.
    pub names: Option<&'a [String]>,
}

/// How finely times are told apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Grain {
    /// By the week, which begins on a Monday, in UTC.
    Week,
    /// By the day, in UTC.
    Day,
    /// By the hour.
    Hour,
}

/// A Monday.
const WEEKS_FROM_MS: i64 = -3 * DAY_MS;

impl Grain {
    /// How long it is in milliseconds.
    pub fn step_ms(self) -> i64 {
        match self {
            Self::Week => 7 * DAY_MS,
            Self::Day => DAY_MS,
            Self::Hour => HOUR_MS,
        }
    }

    /// The start of the hour, day or week of a time.
    pub fn start(self, ms: i64) -> i64 {
        let from = match self {
            Self::Week => WEEKS_FROM_MS,
            Self::Day | Self::Hour => 0,
        };
        let steps = ms.saturating_sub(from).div_euclid(self.step_ms());
        steps.saturating_mul(self.step_ms()).saturating_add(from)
    }
}

/// Rows of a strip that begin in the same hour, day or week.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stretch {
    /// Which series of the source.
    pub series: usize,
    /// Start of it in milliseconds since 1970; zero where times are not asked for.
    pub start_ms: i64,
    /// Number of rows.
    pub rows: u32,
}

/// Adds rows to the last stretch, or begins another one.
pub fn push_rows(out: &mut Vec<Stretch>, series: usize, start_ms: i64, rows: u32) {
    match out.last_mut() {
        Some(last) if (last.series, last.start_ms) == (series, start_ms) => last.rows += rows,
        _ => out.push(Stretch { series, start_ms, rows }),
    }
}
