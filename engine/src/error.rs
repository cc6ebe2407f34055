//! The engine's one error type.
//!
//! A kind says what the caller should do: repair or restore (`Corrupt`), look at the machine
//! (`Io`), change the request (`Invalid`), come back later or ask for less (`Limit`), restart
//! (`Closed`). Details are fields, so that the server can build its own message from them.

use std::io;

/// A failure of an engine call.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// Stored bytes are not what was written: `place` names the file and, where known, the offset.
    #[error("{place}: {detail}")]
    Corrupt {
        /// File, and offset where known.
        place: String,
        /// The invariant that does not hold.
        detail: String,
    },
    /// The operating system refused an operation.
    #[error("{place}: {detail}")]
    Io {
        /// File and operation.
        place: String,
        /// Kind of the failure, for decisions.
        kind: io::ErrorKind,
        /// The system's text.
        detail: String,
    },
    /// The caller asked for something that cannot be done.
    #[error("{field}: {detail}")]
    Invalid {
        /// Name of the offending argument.
        field: &'static str,
        /// Why the argument is not accepted.
        detail: String,
    },
    /// A bound was reached; nothing was changed.
    #[error("{detail}")]
    Limit {
        /// The bound that was reached.
        limit: Limit,
        /// The bound in words, or advice for the caller.
        detail: String,
    },
    /// This process follows: another one has the store, and takes writes.
    #[error("another process has the store, and takes writes")]
    Elsewhere,
    /// The engine no longer accepts writes, because an earlier one failed or it was closed.
    #[error("the store is closed for writes: {0}")]
    Closed(String),
}

/// The bounds that a request can meet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Limit {
    /// Recent rows wait for a flush; retry soon.
    Backlog,
    /// The disk is full; retry when space was freed.
    Disk,
    /// The query needs more memory than one query may have.
    QueryMemory,
    /// Other queries have the memory that this one needs; retry soon.
    QueriesMemory,
    /// The query ran longer than its deadline.
    QueryTime,
    /// A part of a file that is elsewhere cannot be fetched; retry soon.
    Unreachable,
}

/// Result of engine calls.
pub type Result<T, E = Error> = std::result::Result<T, E>;

impl Error {
    /// Damage at `place`.
    pub fn corrupt(place: impl Into<String>, detail: impl Into<String>) -> Self {
        Self::Corrupt { place: place.into(), detail: detail.into() }
    }

    /// An unusable argument.
    pub fn invalid(field: &'static str, detail: impl Into<String>) -> Self {
        Self::Invalid { field, detail: detail.into() }
    }

    /// A reached bound.
    pub fn limit(limit: Limit, detail: impl Into<String>) -> Self {
        Self::Limit { limit, detail: detail.into() }
    }

    /// A failed system call on `place`.
    pub fn io(place: impl Into<String>, error: &io::Error) -> Self {
        Self::Io { place: place.into(), kind: error.kind(), detail: error.to_string() }
    }

    /// Whether the disk had no room.
    pub fn is_disk_full(&self) -> bool {
        matches!(
            self,
            Self::Io { kind: io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded, .. }
        )
    }
}

/// Names the file when a system call fails.
pub trait IoContext<T> {
    /// Turns an `io::Error` into an [`Error::Io`] that names `place`.
    fn at(self, place: &str) -> Result<T>;
}

impl<T> IoContext<T> for io::Result<T> {
    fn at(self, place: &str) -> Result<T> {
        self.map_err(|error| Error::io(place, &error))
    }
}
