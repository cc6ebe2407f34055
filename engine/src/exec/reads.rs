//! What a query has looked at: rows, and entries of rollups that answered for rows.

use crate::query::RollupGrain;

/// What a query has looked at.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Reads {
    /// Rows.
    pub rows: u64,
    /// What rollups gave instead.
    pub served: Served,
}

/// What was answered without reading rows.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Served {
    /// Entries of rollups that were read.
    pub entries: u64,
    /// Whether whole days were answered at once.
    pub days: bool,
    /// Whether hours were.
    pub hours: bool,
}

impl Reads {
    /// Notes that rows were counted without reading one: all of a run, or a part of it.
    pub fn count_rows(&mut self, rows: u64, is_all: bool, is_rolled_up: bool) {
        if is_rolled_up {
            self.served.entries += 1;
            self.served.days |= is_all;
            self.served.hours |= !is_all;
        } else {
            self.rows += rows;
        }
    }

    /// Adds what another part of the query has looked at.
    pub fn add(&mut self, other: &Self) {
        self.rows += other.rows;
        self.served.entries += other.served.entries;
        self.served.days |= other.served.days;
        self.served.hours |= other.served.hours;
    }

    /// Rows and entries.
    pub fn scanned(&self) -> u64 {
        self.rows + self.served.entries
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
