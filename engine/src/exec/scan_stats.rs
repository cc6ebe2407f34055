//! What a query has looked at: rows, and rollups that answered for rows.

use crate::query::RollupGrain;

/// What a query has looked at.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct ScanStats {
    /// Rows.
    pub rows: u64,
    /// What rollups gave instead.
    pub served: Served,
}

/// What was answered without reading rows.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Served {
    /// Whether whole days were answered at once.
    pub days: bool,
    /// Whether hours were.
    pub hours: bool,
}

impl ScanStats {
    /// Rows were counted by the directory of runs, which knows how many each hour has.
    pub const COUNTED: Self = Self { rows: 0, served: Served { days: false, hours: true } };

    /// Adds what another part of the query has looked at.
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
