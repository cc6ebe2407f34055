//! The write-ahead log: one sequence of records for events, metadata and the segment list.
//!
//! Records that wait together form a *group*: one frame, one write, one sync. The frame carries one
//! checksum, bound to the database, the file and the position, so that bytes of another file or of
//! an earlier life of this one are never taken for records. A group is acknowledged only after the
//! sync; the next group is written only after that. So at most the last frame of the log can be
//! torn, and a bad frame with a good one behind it is damage.
//!
//! Layout: `doc/format.md`, "Write-ahead log".

mod frame;

mod file;

mod writer;

mod reader;

mod copy;
mod harden;

pub use copy::file_of;
pub use frame::{RecordKind, put_record};
pub use harden::harden;
pub use reader::{LogTail, Record, files_after, read, records_of_group};
pub use writer::{AppendError, LogEnd, LogMeters, Writer};

/// Directory of the log files.
pub const DIRECTORY: &str = "wal";
