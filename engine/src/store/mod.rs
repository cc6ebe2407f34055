//! The store: one order of all changes, and the versions that readers see.
//!
//! `superblock` and `recovery` start it, `sequencer` orders and commits, `flush` turns the memtable
//! into segments, `checkpoint` bounds the log. A [`Version`] is everything one query sees.

mod dedup;
mod memtable;
mod superblock;

mod version;

mod sequencer;

mod recovery;

mod flush;

mod checkpoint;

mod manage;

pub use manage::{Limits, Store};
pub use sequencer::Ingested;
pub use version::Version;

/// Directory where every file starts; emptied at each start.
pub const TEMPORARY: &str = "tmp";
/// The file that a second process cannot lock.
pub const LOCK: &str = "LOCK";
