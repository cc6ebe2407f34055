//! The store: one order of all changes, and the versions that readers see.
//!
//! `log` is the interface to where records and superblock are. `recovery` starts from them, `sequencer` orders and commits, `flush` turns the memtable
//! into segments, `checkpoint` bounds the log. `policy` says what to merge, `compaction` does it,
//! `erase` takes out what was deleted. A [`Version`] is everything one query sees, and an `Edit` is
//! the only way to change which files are live.

mod backup_list;
mod dedup;
mod memtable_part;
mod names;
mod superblock;

mod log;
mod memtable;

mod retention;
mod trusted_clock;
mod version;

mod edit;
mod policy;

mod sequencer;
mod sim_log;

mod erasure;

mod recovery;

mod checkpoint;
mod flush;

mod compaction;

mod erase;

mod lifecycle;

mod follow;

mod background;
mod backup;
mod cache;

mod metrics;

pub use backup::{BackupProgress, restore};
pub use backup_list::{BackupFile, BackupList, LIST, measure};
pub use cache::{CacheMetrics, CacheRound};
pub use erasure::{Erasure, Scope, id_hashes};
pub use lifecycle::{Dependencies, Limits, Store};
pub use log::{FileLog, Log, LogWriter};
pub use memtable_part::PartImage;
pub use metrics::{LevelMetrics, Metrics};
pub use names::{FLUSHED_KEY, ID_RUN_PREFIX, SEGMENT_PREFIX, flushed_lsn};
pub use policy::CompactionLimits;
pub use recovery::{State, read_state, rows_of, writes_of};
pub use sequencer::Ingested;
pub use sim_log::SimLog;
pub use superblock::Superblock;
pub use version::{Segments, Version};
#[cfg(any(test, feature = "fuzz"))]
pub use {erasure::all as erasures, retention::horizon_ms};

/// Directory where every file starts; emptied at each start.
pub const TEMPORARY: &str = "tmp";
/// The file that a second process cannot lock.
pub const LOCK: &str = "LOCK";
