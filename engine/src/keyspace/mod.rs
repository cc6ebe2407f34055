//! Ordered keys with transactions: metadata of the server, and the engine's own lists.
//!
//! A [`Tree`] is persistent: cloning it is one pointer, so a snapshot costs nothing and a writer
//! never disturbs a reader. A [`Txn`] works on a clone and collects its writes, which become one
//! log record. A checkpoint is a tree streamed to a file.
//!
//! The list of live segments and id runs is kept in the same tree: there is no second place that
//! could disagree.

mod tree;

mod txn;

pub mod checkpoint;

pub use tree::{Tree, Writes, read_writes, write_writes};
pub use txn::{KeyReader, Txn};

/// First byte of the engine's own keys.
pub const SYSTEM: u8 = 0;
/// First byte of the keys of [`Txn`] and [`KeyReader`].
pub const USER: u8 = 1;
