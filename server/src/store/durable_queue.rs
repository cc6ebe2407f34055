//! Durable queues: records that belong to no organisation, in order of the times at which they are due.
//!
//! Whoever works on an entry leases it: the entry is due again when the lease ends, and says that it is leased. After a crash the lease ends,
//! or the next process releases it, so that nothing is lost and at most what was under way is repeated.
//!
//! ```text
//! g/delivery/00000001774000000000:0198…      due, not leased
//! g/delivery/00000001774000060000:0198…      leased for a minute, by the same id
//! ```

use inlay_engine::{Engine, KeyReader, Txn};
use serde::{Serialize, de::DeserializeOwned};

use super::keys::{
    Keys, decode, global_delete, global_find, global_key, global_list, global_put, global_scan,
};
use crate::error::Result;

/// Digits of a time in a key.
const TIME_DIGITS: usize = 20;

/// An entry of a durable queue.
pub trait QueueEntry: Clone + Serialize + DeserializeOwned {
    /// Kind of its records.
    const KIND: &'static str;

    /// What it is told apart by; the same however often it is due.
    fn id(&self) -> &str;

    /// The organisation that it belongs to.
    fn org(&self) -> &str;

    /// When it is due, or when its lease ends.
    fn due_at(&self) -> i64;

    /// Whether somebody works on it.
    fn is_leased(&self) -> bool;

    /// The same entry, due at another time.
    fn rescheduled(self, due_at: i64, is_leased: bool) -> Self;
}

/// Implements [`QueueEntry`] for types with fields `org`, `due_at` and `is_leased`, each with its kind and the field of its id.
macro_rules! queue_entries {
    ($($name:ident $kind:literal $id:ident;)*) => {
        $(impl $crate::store::durable_queue::QueueEntry for $name {
            const KIND: &'static str = $kind;
            fn id(&self) -> &str {
                &self.$id
            }
            fn org(&self) -> &str {
                &self.org
            }
            fn due_at(&self) -> i64 {
                self.due_at
            }
            fn is_leased(&self) -> bool {
                self.is_leased
            }
            fn rescheduled(self, due_at: i64, is_leased: bool) -> Self {
                Self { due_at, is_leased, ..self }
            }
        })*
    };
}
pub(super) use queue_entries;

/// Where an entry stands in its queue.
fn key_of<E: QueueEntry>(entry: &E) -> String {
    format!("{:0TIME_DIGITS$}:{}", entry.due_at().max(0), entry.id())
}

/// The key of an entry among all keys.
pub fn stored_key<E: QueueEntry>(entry: &E) -> Vec<u8> {
    global_key(E::KIND, &key_of(entry))
}

/// Stores an entry under its due time.
///
/// Errors: none that is expected.
pub fn enqueue<E: QueueEntry>(txn: &mut Txn, entry: &E) -> Result<()> {
    global_put(txn, E::KIND, &key_of(entry), entry)
}

/// Takes an entry out of its queue; whether it was there, due at the same time.
///
/// Errors: none that is expected.
pub fn dequeue<E: QueueEntry>(txn: &mut Txn, entry: &E) -> Result<bool> {
    let was_there = global_find::<E>(txn, E::KIND, &key_of(entry))?.is_some();
    global_delete(txn, E::KIND, &key_of(entry));
    Ok(was_there)
}

/// Leases an entry that was taken out: it is due again at `until`, unless it is settled before.
///
/// Errors: none that is expected.
pub fn lease<E: QueueEntry>(txn: &mut Txn, entry: &E, until: i64) -> Result<E> {
    let leased = entry.clone().rescheduled(until, true);
    enqueue(txn, &leased)?;
    Ok(leased)
}

/// All entries of a queue, in order of due times.
///
/// Errors: none that is expected.
pub fn queued<E: QueueEntry>(keys: &impl Keys) -> Result<Vec<E>> {
    Ok(global_list::<E>(keys, E::KIND)?.into_iter().map(|(_, entry)| entry).collect())
}

/// When the first entry of a queue is due; nothing where there is none. It takes one look-up.
pub fn first_due<E: QueueEntry>(keys: &KeyReader) -> Option<i64> {
    let prefix = global_key(E::KIND, "");
    let (key, _) = keys.first(&prefix, &prefix)?;
    let digits = key.get(prefix.len()..).and_then(|rest| rest.get(..TIME_DIGITS));
    let digits = digits.and_then(|digits| std::str::from_utf8(digits).ok());
    // What is no time is read, and said to be damaged.
    Some(digits.and_then(|digits| digits.parse().ok()).unwrap_or(0))
}

/// Takes the entries of an organisation that meet a condition out of a queue, and returns them. Entries of others are not decoded.
///
/// Errors: none that is expected.
pub fn remove_of<E: QueueEntry>(
    txn: &mut Txn,
    org: &str,
    is_one: impl Fn(&E) -> bool,
) -> Result<Vec<E>> {
    let mut removed = Vec::new();
    for (key, bytes) in global_scan(txn, E::KIND) {
        if !std::str::from_utf8(&bytes).is_ok_and(|text| text.contains(org)) {
            continue;
        }
        let entry: E = decode(&bytes)?;
        if entry.org() == org && is_one(&entry) {
            txn.delete(&key);
            removed.push(entry);
        }
    }
    Ok(removed)
}

/// Makes due what the process before had leased, and what is due later than `latest`, because the clock was set back.
///
/// Errors: when the store cannot write.
pub fn release<E: QueueEntry>(engine: &Engine, now: i64, latest: i64) -> Result<()> {
    let mut left = queued::<E>(&engine.keys())?;
    left.retain(|entry| entry.is_leased() || entry.due_at() > latest);
    if left.is_empty() {
        return Ok(());
    }
    engine.transact(|txn| {
        for entry in left {
            // It may have been settled meanwhile.
            if dequeue(txn, &entry)? {
                enqueue(txn, &entry.rescheduled(now, false))?;
            }
        }
        Ok(())
    })
}

#[cfg(test)]
mod tests {
    use inlay_engine::Options;
    use serde::Deserialize;

    use super::*;

    #[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
    struct Entry {
        id: String,
        org: String,
        due_at: i64,
        is_leased: bool,
    }

    queue_entries! {
        Entry "entry" id;
    }

    fn entry(id: &str, org: &str, due_at: i64) -> Entry {
        Entry { id: id.to_owned(), org: org.to_owned(), due_at, is_leased: false }
    }

    #[test]
    fn entries_are_leased_released_and_removed() {
        let directory = tempfile::tempdir().unwrap();
        let options = Options { background: false, ..Options::default() };
        let engine = Engine::open_directory(directory.path(), options).unwrap();
        assert_eq!(first_due::<Entry>(&engine.keys()), None);
        let (late, early) = (entry("a", "org-1", 900), entry("b", "org-2", -5));
        let leased = engine.transact(|txn| {
            enqueue(txn, &late)?;
            enqueue(txn, &early)?;
            assert!(dequeue(txn, &early)?, "it was there");
            assert!(!dequeue(txn, &early)?, "and is gone");
            lease(txn, &early, 60)
        });
        let leased: Entry = leased.unwrap();
        assert_eq!(leased, Entry { due_at: 60, is_leased: true, ..early.clone() });
        let all = || queued::<Entry>(&engine.keys()).unwrap();
        assert_eq!(all(), [leased, late.clone()], "in order of due times");
        assert_eq!(first_due::<Entry>(&engine.keys()), Some(60));
        // The lease of the process before ends, and what waits for longer than anything does is due.
        release::<Entry>(&engine, 10, 1_000).unwrap();
        assert_eq!(all(), [entry("b", "org-2", 10), late]);
        release::<Entry>(&engine, 20, 500).unwrap();
        assert_eq!(all(), [entry("b", "org-2", 10), entry("a", "org-1", 20)]);
        let removed = engine.transact(|txn| remove_of::<Entry>(txn, "org-1", |one| one.id == "a"));
        assert_eq!(removed.unwrap(), [entry("a", "org-1", 20)]);
        assert_eq!(all(), [entry("b", "org-2", 10)]);
    }
}
