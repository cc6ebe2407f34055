//! Distinct values counted in groups by user: the days on which a user came, the names of events, the values of a property.
//!
//! There are few of each, so a group has a bitmap with a bit for each value. `count(DISTINCT date_trunc('day',
//! timestamp)) … GROUP BY tenant_id, user_id` over ninety days takes two words a group.
//!
//! ```text
//! days from 2026-11-01 to 2026-11-20     twenty bits: 0 is 2026-11-01
//! ada came on the 1st, 3rd and 3rd       bits 0 and 2: 0b101, a count of 2
//! ```
//!
//! Bits of two rows of one group could be merged, counts cannot: so distinct values are counted here only where a group is in one row.

use std::sync::Arc;

use arrow::datatypes::{DataType, Field};
use datafusion_common::Result;
use inlay_engine::rows::{Grain, Scan};

use crate::tables::TextOrder;

/// Values at most, so that a group takes no more than half a kilobyte.
pub const DISTINCT_MAX: usize = 4_096;

/// Values of which each counts once in a group.
#[derive(Debug, Clone, PartialEq)]
pub enum Distinct {
    /// Minutes, hours, days or weeks: when the first begins, in milliseconds since 1970, and how many there are up to the last row of the scan.
    Starts { grain: Grain, first_ms: i64, count: usize },
    /// Names of events, and how many there are at most.
    Events { count: usize },
    /// Texts of a string property.
    Texts { order: Arc<TextOrder>, count: usize },
}

impl Distinct {
    /// Minutes, hours, days or weeks of a scan, if they are few: nothing for the hours of six months, which are 4,380.
    pub fn starts(scan: &Scan, grain: Grain) -> Option<Self> {
        let series = || scan.sources().iter().flat_map(|source| source.series());
        let first_ms =
            grain.start(series().map(|series| series.first_ms).min().unwrap_or_default());
        let last_ms = grain.start(series().map(|series| series.last_ms).max().unwrap_or_default());
        let steps = last_ms.saturating_sub(first_ms) / grain.step_ms();
        let count = usize::try_from(steps).unwrap_or(usize::MAX).saturating_add(1);
        (count <= DISTINCT_MAX).then_some(Self::Starts { grain, first_ms, count })
    }

    /// Names of events of a scan, if they are few.
    pub fn events(scan: &Scan) -> Option<Self> {
        let names = scan.sources().iter().flat_map(|source| source.names());
        let count = names.collect::<std::collections::HashSet<_>>().len();
        (count <= DISTINCT_MAX).then_some(Self::Events { count })
    }

    /// Texts of a property, each with its rank as its bit.
    ///
    /// Errors: damage of a segment.
    pub fn texts(order: Arc<TextOrder>) -> Result<Self> {
        let count = order.len()?;
        Ok(Self::Texts { order, count })
    }

    /// How finely times have to be known for it.
    pub fn grain(&self) -> Option<Grain> {
        match self {
            Self::Starts { grain, .. } => Some(*grain),
            Self::Events { .. } | Self::Texts { .. } => None,
        }
    }

    /// Words of bits that a group takes: one for up to 64 values, 64 for the most that there may be.
    pub fn words(&self) -> usize {
        let (Self::Starts { count, .. } | Self::Events { count } | Self::Texts { count, .. }) =
            self;
        count.div_ceil(u64::BITS as usize)
    }

    /// The column of its number, by its index, which no statement can name: `distinct 0`.
    pub fn column(at: usize) -> String {
        format!("distinct {at}")
    }

    /// The column of the counts: an integer of 64 bits, never null.
    pub fn field(at: usize) -> Field {
        Field::new(Self::column(at), DataType::Int64, false)
    }
}

/// Bits of groups.
pub struct Bits {
    /// Words of a group.
    words_each: usize,
    /// Those of all groups, one behind the other.
    words: Vec<u64>,
}

impl Bits {
    /// Of no group.
    pub fn new(words_each: usize) -> Self {
        Self { words_each, words: Vec::new() }
    }

    /// Makes room for another group.
    pub fn push(&mut self) {
        self.words.resize(self.words.len() + self.words_each, 0);
    }

    /// Sets a bit of a group; one that there is not is not set.
    pub fn set(&mut self, group: usize, bit: usize) {
        let (word, bit) = (bit / u64::BITS as usize, bit % u64::BITS as usize);
        if word < self.words_each
            && let Some(word) = self.words.get_mut(group * self.words_each + word)
        {
            *word |= 1 << bit;
        }
    }

    /// Removes a group, whose index the last one takes.
    pub fn swap_remove(&mut self, group: usize) {
        let last = self.words.len().saturating_sub(self.words_each);
        self.words.copy_within(last.., group * self.words_each);
        self.words.truncate(last);
    }

    /// How many bits of a group are set.
    pub fn count(&self, group: usize) -> i64 {
        let words = self.words.iter().skip(group * self.words_each).take(self.words_each);
        words.map(|word| i64::from(word.count_ones())).sum()
    }

    /// Bytes of a group.
    pub fn group_bytes(&self) -> usize {
        self.words_each * size_of::<u64>()
    }
}
