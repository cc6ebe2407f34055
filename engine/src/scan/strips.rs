//! Which rows of a source are read: those of a series, strips of them, units of strips.

use std::{ops::Range, sync::Arc};

/// The rows of a series in a source. They stand together and rise in time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Series {
    /// The customer's customer.
    pub tenant: Arc<str>,
    /// Event name.
    pub name: Arc<str>,
    /// Which rows of the source.
    pub rows: Range<u32>,
    /// Earliest time, in milliseconds since 1970.
    pub first_ms: i64,
    /// Latest time.
    pub last_ms: i64,
}

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
