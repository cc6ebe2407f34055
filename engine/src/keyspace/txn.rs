//! Reading and changing the part of the keyspace that is not the engine's own.

use std::sync::Arc;

use super::{
    USER,
    tree::{Bytes, Tree, Writes},
};

fn user_key(key: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(key.len() + 1);
    out.push(USER);
    out.extend_from_slice(key);
    out
}

/// A snapshot of the keys: it never changes.
#[derive(Clone)]
pub struct KeyReader(Tree);

impl KeyReader {
    /// A reader of `tree`.
    pub(crate) fn new(tree: Tree) -> Self {
        Self(tree)
    }

    /// The value of a key.
    pub fn find(&self, key: &[u8]) -> Option<Bytes> {
        self.0.find(&user_key(key)).cloned()
    }

    /// Keys that start with `prefix`, rising, with their values.
    pub fn scan(&self, prefix: &[u8]) -> Vec<(Vec<u8>, Bytes)> {
        scan(&self.0, prefix)
    }

    /// The first key that starts with `prefix` and is not below `from`, with its value.
    pub fn first(&self, prefix: &[u8], from: &[u8]) -> Option<(Vec<u8>, Bytes)> {
        let (prefix, from) = (user_key(prefix), user_key(from));
        let (key, value) = self.0.scan(&prefix, &from).next()?;
        Some((key[1..].to_vec(), Arc::clone(value)))
    }

    /// The first `limit` keys that start with `prefix`, rising.
    pub fn scan_first(&self, prefix: &[u8], limit: usize) -> Vec<(Vec<u8>, Bytes)> {
        let prefix = user_key(prefix);
        let found = self.0.scan(&prefix, &[]).take(limit);
        found.map(|(key, value)| (key[1..].to_vec(), Arc::clone(value))).collect()
    }

    /// The last `limit` keys that start with `prefix` and are below `end`, which starts with it too; falling.
    pub fn scan_last_below(
        &self,
        prefix: &[u8],
        end: &[u8],
        limit: usize,
    ) -> Vec<(Vec<u8>, Bytes)> {
        let (prefix, end) = (user_key(prefix), user_key(end));
        let found = self.0.range(&prefix, &end).rev().take(limit);
        found.map(|(key, value)| (key[1..].to_vec(), Arc::clone(value))).collect()
    }

    /// The last `limit` keys that start with `prefix`, falling.
    pub fn scan_last(&self, prefix: &[u8], limit: usize) -> Vec<(Vec<u8>, Bytes)> {
        let prefix = user_key(prefix);
        let found = self.0.scan(&prefix, &[]).rev().take(limit);
        found.map(|(key, value)| (key[1..].to_vec(), Arc::clone(value))).collect()
    }
}

fn scan(tree: &Tree, prefix: &[u8]) -> Vec<(Vec<u8>, Bytes)> {
    let prefix = user_key(prefix);
    tree.scan(&prefix, &[]).map(|(key, value)| (key[1..].to_vec(), Arc::clone(value))).collect()
}

/// A transaction: sees its own writes; all of them become durable together, or none.
///
/// Transactions run one after the other, so that checks inside one hold when it commits. Slow work
/// (hashing a password) belongs before it.
pub struct Txn {
    tree: Tree,
    writes: Writes,
}

impl Txn {
    pub(crate) fn new(tree: Tree) -> Self {
        Self { tree, writes: Writes::new() }
    }

    /// The value of a key.
    pub fn find(&self, key: &[u8]) -> Option<Bytes> {
        self.tree.find(&user_key(key)).cloned()
    }

    /// Keys that start with `prefix`, rising, with their values.
    pub fn scan(&self, prefix: &[u8]) -> Vec<(Vec<u8>, Bytes)> {
        scan(&self.tree, prefix)
    }

    /// Sets a key.
    pub fn put(&mut self, key: &[u8], value: &[u8]) {
        self.write(user_key(key), Some(value.into()));
    }

    /// Deletes a key; a missing one is fine.
    pub fn delete(&mut self, key: &[u8]) {
        self.write(user_key(key), None);
    }

    /// Sets or deletes one of the engine's own keys.
    pub(crate) fn write_system(&mut self, key: &[u8], value: Option<Vec<u8>>) {
        self.write(key.to_vec(), value.map(Bytes::from));
    }

    fn write(&mut self, key: Vec<u8>, value: Option<Bytes>) {
        let key: Bytes = key.into();
        self.tree.apply(Arc::clone(&key), value.clone());
        self.writes.push((key, value));
    }

    pub(crate) fn finish(self) -> (Tree, Writes) {
        (self.tree, self.writes)
    }
}
