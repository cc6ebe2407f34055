//! The engine's own keys: what each family is called and holds.

#![cfg_attr(not(test), deny(clippy::indexing_slicing, clippy::unwrap_used))]

use crate::{
    base::coding::Cursor,
    error::Result,
    event::Namespace,
    keyspace::{SYSTEM, Tree},
};

/// LSN up to which all events are in segments.
pub const FLUSHED_KEY: &[u8] = &[SYSTEM, b'f'];
/// Live segments, by uuid.
pub const SEGMENT_PREFIX: &[u8] = &[SYSTEM, b's'];
/// Live id runs, by uuid.
pub const ID_RUN_PREFIX: &[u8] = &[SYSTEM, b'i'];
/// Days that a namespace keeps its events, by namespace.
pub const RETENTION_PREFIX: &[u8] = &[SYSTEM, b'r'];
/// Namespaces that were dropped.
pub const DROPPED_PREFIX: &[u8] = &[SYSTEM, b'x'];
/// Erasures that are not done, by uuid.
pub const ERASURE_PREFIX: &[u8] = &[SYSTEM, b'e'];
/// Receipts of those that are, by namespace and uuid.
pub const RECEIPT_PREFIX: &[u8] = &[SYSTEM, b'd'];

/// The key of a thing with a uuid.
pub fn uuid_key(prefix: &[u8], uuid: uuid::Uuid) -> Vec<u8> {
    [prefix, uuid.as_bytes()].concat()
}

/// The key of a namespace.
pub fn namespace_key(prefix: &[u8], namespace: Namespace) -> Vec<u8> {
    [prefix, &namespace.0.to_be_bytes()].concat()
}

/// LSN up to which all events are in segments.
pub fn flushed_lsn(tree: &Tree) -> Result<u64> {
    tree.find(FLUSHED_KEY).map_or(Ok(0), |value| Cursor::new(value, "flushed lsn").u64())
}

/// Whether a namespace was dropped.
pub fn is_dropped(tree: &Tree, namespace: Namespace) -> bool {
    tree.find(&namespace_key(DROPPED_PREFIX, namespace)).is_some()
}
