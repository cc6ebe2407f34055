//! Events as the engine knows them, and the bounds of what it can hold.
//!
//! Rules about time windows, plans and JSON are the server's.

/// One environment of one organisation: the owner of events. Opaque to the engine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Namespace(pub u32);

/// One event as the caller has it.
#[derive(Debug, Clone, Copy)]
pub struct Event<'a> {
    /// The customer's customer. Not empty.
    pub tenant: &'a str,
    /// What happened. Not empty.
    pub name: &'a str,
    /// Milliseconds since 1970 in UTC.
    pub timestamp_ms: i64,
    /// Deduplication key; `None` counts always.
    pub event_id: Option<&'a str>,
    /// Who did it.
    pub user_id: Option<&'a str>,
}

/// First millisecond that an event can have: year 1. Days before have no names.
pub const TIMESTAMP_MS_MIN: i64 = -62_135_596_800_000;
/// Last millisecond that an event can have: the end of year 9999.
pub const TIMESTAMP_MS_MAX: i64 = 253_402_300_799_999;

/// Rows per batch, at most: the row mask of a log record and the server's limit agree on it.
pub const BATCH_ROWS_MAX: usize = 65_536;

/// Bytes of an event id, a user or a string value, at most: so many of them as a block has rows can
/// be read back in one piece.
pub const TEXT_BYTES_MAX: usize = 4_096;

/// Distinct property names in one batch, at most. A segment keeps one column for each name, so
/// a flood of names costs more than a flood of rows.
pub const BATCH_COLUMNS_MAX: usize = 2_000;
