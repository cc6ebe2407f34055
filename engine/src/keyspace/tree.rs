//! The tree of keys, and lists of writes to it.

#![cfg_attr(not(test), deny(clippy::indexing_slicing, clippy::unwrap_used))]

use std::{ops::Bound, sync::Arc};

use rpds::RedBlackTreeMapSync;

use crate::{
    base::coding::{Cursor, Put},
    error::Result,
};

/// Bytes of a key or a value.
pub type Bytes = Arc<[u8]>;

/// Keys and their new values; `None` deletes.
pub type Writes = Vec<(Bytes, Option<Bytes>)>;

/// A persistent ordered map of byte keys.
#[derive(Clone, Default)]
pub struct Tree {
    map: RedBlackTreeMapSync<Bytes, Bytes>,
    /// Bytes of all keys and values.
    bytes: usize,
}

impl Tree {
    /// The value of a key.
    pub fn find(&self, key: &[u8]) -> Option<&Bytes> {
        self.map.get(key)
    }

    /// Sets a key, or deletes it.
    pub fn apply(&mut self, key: Bytes, value: Option<Bytes>) {
        if let Some(old) = self.map.get(&key) {
            self.bytes -= key.len() + old.len();
        }
        match value {
            Some(value) => {
                self.bytes += key.len() + value.len();
                self.map.insert_mut(key, value);
            }
            None => {
                self.map.remove_mut(&key);
            }
        }
    }

    /// Applies many writes.
    pub fn apply_all(&mut self, writes: &Writes) {
        for (key, value) in writes {
            self.apply(Arc::clone(key), value.clone());
        }
    }

    /// Keys from `from` on that start with `prefix`, rising.
    pub fn scan<'a>(
        &'a self,
        prefix: &'a [u8],
        from: &'a [u8],
    ) -> impl DoubleEndedIterator<Item = (&'a Bytes, &'a Bytes)> {
        let start = Bound::Included(from.max(prefix));
        // The smallest key behind the prefix: its last byte that can grow, grown.
        let end = prefix.iter().rposition(|&byte| byte < u8::MAX).map(|at| {
            let mut end = prefix.get(..=at).unwrap_or_default().to_vec();
            if let Some(last) = end.last_mut() {
                *last += 1;
            }
            end
        });
        let end: Bound<Bytes> = end.map_or(Bound::Unbounded, |end| Bound::Excluded(end.into()));
        let start: Bound<Bytes> = start.map(|start| start.into());
        // A start behind the end would panic in a range: it is an empty one.
        let start = match (&start, &end) {
            (Bound::Included(a), Bound::Excluded(b)) if a > b => Bound::Included(Arc::clone(b)),
            _ => start,
        };
        self.map.range((start, end))
    }

    /// Keys from `start` on and below `end`, rising; none where `end` is not above `start`.
    pub fn range(
        &self,
        start: &[u8],
        end: &[u8],
    ) -> impl DoubleEndedIterator<Item = (&Bytes, &Bytes)> {
        let (start, end): (Bytes, Bytes) = (start.into(), end.max(start).into());
        self.map.range((Bound::Included(start), Bound::Excluded(end)))
    }

    /// All keys, rising.
    pub fn iter(&self) -> impl Iterator<Item = (&Bytes, &Bytes)> {
        self.map.iter()
    }

    /// Bytes of all keys and values.
    pub fn bytes_used(&self) -> usize {
        self.bytes
    }

    /// Number of keys.
    pub fn len(&self) -> usize {
        self.map.size()
    }
}

/// Appends a list of writes.
pub fn write_writes(writes: &Writes, out: &mut Vec<u8>) {
    out.put_varint(writes.len() as u64);
    for (key, value) in writes {
        out.put_bytes(key);
        out.put_u8(u8::from(value.is_some()));
        if let Some(value) = value {
            out.put_bytes(value);
        }
    }
}

/// Reads a list of writes back.
pub fn read_writes(cursor: &mut Cursor<'_>) -> Result<Writes> {
    let mut writes = Vec::new();
    for _ in 0..cursor.count(2)? {
        let key: Bytes = cursor.bytes()?.into();
        let value = match cursor.u8()? {
            0 => None,
            1 => Some(cursor.bytes()?.into()),
            _ => return Err(cursor.error("a write has an unknown tag")),
        };
        writes.push((key, value));
    }
    Ok(writes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys(tree: &Tree, prefix: &[u8], from: &[u8]) -> Vec<Vec<u8>> {
        tree.scan(prefix, from).map(|(key, _)| key.to_vec()).collect()
    }

    #[test]
    fn bytes_are_those_of_all_keys_and_values() {
        let mut tree = Tree::default();
        let sum =
            |tree: &Tree| tree.iter().map(|(key, value)| key.len() + value.len()).sum::<usize>();
        for (key, value) in
            [("a", Some("1")), ("bb", Some("")), ("a", Some("three")), ("c", None), ("a", None)]
        {
            tree.apply(key.as_bytes().into(), value.map(|value| value.as_bytes().into()));
            assert_eq!(tree.bytes_used(), sum(&tree), "{key} {value:?}");
        }
        assert_eq!(tree.bytes_used(), 2);
    }

    #[test]
    fn scans_see_their_prefix_only() {
        let mut tree = Tree::default();
        for key in [&b"a"[..], b"ab", b"ab\xff", b"ac", b"b", b"\xff", b"\xff\xff\x01"] {
            tree.apply(key.into(), Some((*b"v").into()));
        }
        assert_eq!(keys(&tree, b"ab", b""), [&b"ab"[..], b"ab\xff"]);
        assert_eq!(keys(&tree, b"a", b"ab\xff"), [&b"ab\xff"[..], b"ac"]);
        assert_eq!(keys(&tree, b"\xff", b""), [&b"\xff"[..], b"\xff\xff\x01"]);
        assert_eq!(keys(&tree, b"a", b"z"), Vec::<Vec<u8>>::new());
        assert_eq!(keys(&tree, b"", b"").len(), 7);
    }
}
