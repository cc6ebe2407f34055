//! Statistics of a query: rows that were read, and rollups that answered instead.

use crate::query::RollupGrain;

/// Statistics of a scan.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct ScanStats {
    /// Rows that were read, without those that rollups or run directories answered for.
    pub rows: u64,
    /// Kinds of rollups that answered for other rows.
    pub served: Served,
}

/// Kinds of rollups that gave a part of an answer.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Served {
    /// Whether rollups of whole days did.
    pub days: bool,
    /// Whether rollups of hours, or row counts of the run directory, did.
    pub hours: bool,
}

impl ScanStats {
    /// Rows were counted by the run directory, which has the number of rows of each hour.
    pub const COUNTED: Self = Self { rows: 0, served: Served { days: false, hours: true } };

    /// Adds the statistics of another part of the query.
    pub fn add(&mut self, other: &Self) {
        self.rows += other.rows;
        self.served.days |= other.served.days;
        self.served.hours |= other.served.hours;
    }

    /// The finest rollup that gave a part of the answer.
    pub fn rollup(&self) -> Option<RollupGrain> {
        match (self.served.hours, self.served.days) {
            (true, _) => Some(RollupGrain::Hour),
            (false, true) => Some(RollupGrain::Day),
            (false, false) => None,
        }
    }
}
