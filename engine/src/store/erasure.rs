//! Erasures: events of a user, a tenant or a whole namespace that must not be anywhere any more.
//!
//! An erasure is a record in the keyspace until it is done, and a receipt afterwards. It takes all
//! matching events that arrived before it runs: memory is flushed, each segment with such rows is
//! rewritten without them, their ids leave the id runs, and then the log and the checkpoints that
//! knew them are replaced. A crash at any point resumes where the last record says.
//!
//! Users are named by their hash only, so that the record itself does not keep what it erases.

#![cfg_attr(not(test), deny(clippy::indexing_slicing, clippy::unwrap_used))]

use std::{ops::Range, sync::Arc};

use super::names::{ERASURE_PREFIX, RECEIPT_PREFIX, namespace_key, uuid_key};
use crate::{
    base::{
        coding::{Cursor, Put},
        hash::{self, HashSet128},
    },
    column::SeriesKey,
    encode::BLOCK_ROWS,
    error::Result,
    event::Namespace,
    keyspace::{Tree, Txn},
    segment::{Fate, Segment},
};

/// A segment, and the segments that hold what is left of its rows.
pub type Renamed = (uuid::Uuid, Vec<uuid::Uuid>);

/// The events that are removed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Scope {
    /// All of the namespace, which is gone for readers at once and takes no more events.
    Namespace,
    /// All events of a tenant.
    Tenant(Arc<str>),
    /// All events of a user of a tenant, by the hash of the user's id.
    User(Arc<str>, u128),
}

/// An erasure, under way or done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Erasure {
    /// Name of the erasure; names sort by the time at which they were given.
    pub id: uuid::Uuid,
    /// Namespace whose events are removed.
    pub namespace: Namespace,
    /// Which of them.
    pub scope: Scope,
    /// Time of the request, in milliseconds since 1970.
    pub requested_ms: i64,
    /// Time of completion, in milliseconds since 1970; `None` while it is under way.
    pub finished_ms: Option<i64>,
    /// Segments that still have to be looked at; `None` before the first look.
    pub pending: Option<Vec<uuid::Uuid>>,
    /// Events that were removed.
    pub rows_removed: u64,
    /// Event ids that were forgotten.
    pub ids_removed: u64,
    /// Segments that were rewritten or dropped.
    pub segments_changed: u64,
}

const NAMESPACE: u8 = 0;
const TENANT: u8 = 1;
const USER: u8 = 2;

impl Erasure {
    /// Decides about the rows of a series.
    pub fn fate(&self, series: &SeriesKey) -> Fate {
        let is_tenants = |tenant: &str| &*series.tenant == tenant;
        match &self.scope {
            _ if series.namespace != self.namespace => Fate::Keep,
            Scope::Namespace => Fate::Drop,
            Scope::Tenant(tenant) if is_tenants(tenant) => Fate::Drop,
            Scope::User(tenant, hash) if is_tenants(tenant) => Fate::WithoutUser(*hash),
            _ => Fate::Keep,
        }
    }

    /// Whether a segment may hold rows that go.
    pub fn concerns(&self, segment: &Segment) -> Result<bool> {
        let mut fates = segment.runs().runs().iter().map(|run| (run, self.fate(&run.key)));
        match fates.find(|(_, fate)| *fate != Fate::Keep) {
            Some((run, Fate::WithoutUser(hash))) => {
                let tenant = segment.tenants().of_row(run.first_row);
                Ok(segment.user_code(tenant, hash)?.is_some())
            }
            fate => Ok(fate.is_some()),
        }
    }

    /// Follows segments that were rewritten under new names. Returns whether it had listed any.
    pub fn follow(&mut self, renamed: &[Renamed]) -> bool {
        let Some(pending) = &mut self.pending else { return false };
        let listed = pending.len();
        for (old, new) in renamed {
            if let Some(at) = pending.iter().position(|uuid| uuid == old) {
                pending.splice(at..=at, new.iter().copied());
            }
        }
        let names = |(_, new): &Renamed| new.iter().any(|uuid| pending.contains(uuid));
        pending.len() != listed || renamed.iter().any(names)
    }

    /// Writes the record, or the receipt in its place.
    pub fn put(&self, txn: &mut Txn) {
        let open = uuid_key(ERASURE_PREFIX, self.id);
        if self.finished_ms.is_none() {
            return txn.write_system(&open, Some(self.encode()));
        }
        txn.write_system(&open, None);
        txn.write_system(&receipt_key(self.namespace, self.id), Some(self.encode()));
    }

    fn encode(&self) -> Vec<u8> {
        let mut out = Vec::new();
        out.put_u32(self.namespace.0);
        match &self.scope {
            Scope::Namespace => out.put_u8(NAMESPACE),
            Scope::Tenant(tenant) => {
                out.put_u8(TENANT);
                out.put_bytes(tenant.as_bytes());
            }
            Scope::User(tenant, hash) => {
                out.put_u8(USER);
                out.put_bytes(tenant.as_bytes());
                out.put_u128(*hash);
            }
        }
        out.put_i64(self.requested_ms);
        out.put_i64(self.finished_ms.unwrap_or(i64::MIN));
        out.put_u64(self.rows_removed);
        out.put_u64(self.ids_removed);
        out.put_u64(self.segments_changed);
        out.put_u8(u8::from(self.pending.is_some()));
        out.put_varint(self.pending.iter().flatten().count() as u64);
        for uuid in self.pending.iter().flatten() {
            out.extend_from_slice(uuid.as_bytes());
        }
        out
    }

    /// Reads the record back.
    pub fn decode(id: uuid::Uuid, bytes: &[u8]) -> Result<Self> {
        let mut cursor = Cursor::new(bytes, "erasure record");
        let namespace = Namespace(cursor.u32()?);
        let scope = match cursor.u8()? {
            NAMESPACE => Scope::Namespace,
            TENANT => Scope::Tenant(cursor.text()?.into()),
            USER => Scope::User(cursor.text()?.into(), cursor.u128()?),
            _ => return Err(cursor.error("has an unknown scope")),
        };
        let (requested_ms, finished) = (cursor.i64()?, cursor.i64()?);
        let (rows_removed, ids_removed) = (cursor.u64()?, cursor.u64()?);
        let segments_changed = cursor.u64()?;
        let was_listed = cursor.u8()? != 0;
        let count = cursor.count(16)?;
        let pending = (0..count).map(|_| cursor.uuid()).collect::<Result<Vec<_>>>()?;
        cursor.finish()?;
        Ok(Self {
            id,
            namespace,
            scope,
            requested_ms,
            finished_ms: (finished != i64::MIN).then_some(finished),
            pending: was_listed.then_some(pending),
            rows_removed,
            ids_removed,
            segments_changed,
        })
    }
}

/// The erasure `id` of a namespace, if there is one.
pub fn find(tree: &Tree, namespace: Namespace, id: uuid::Uuid) -> Result<Option<Erasure>> {
    let receipt = || tree.find(&receipt_key(namespace, id));
    let record = tree.find(&uuid_key(ERASURE_PREFIX, id)).or_else(receipt);
    let erasure = record.map(|bytes| Erasure::decode(id, bytes)).transpose()?;
    Ok(erasure.filter(|erasure| erasure.namespace == namespace))
}

/// The `count` erasures of a namespace that were asked for last, newest first, of those before `before`.
pub fn newest(
    tree: &Tree,
    namespace: Namespace,
    before: Option<uuid::Uuid>,
    count: usize,
) -> Result<Vec<Erasure>> {
    let is_before = |id: uuid::Uuid| before.is_none_or(|before| id < before);
    let mut found = unfinished(tree)?;
    found.retain(|erasure| erasure.namespace == namespace && is_before(erasure.id));
    let prefix = namespace_key(RECEIPT_PREFIX, namespace);
    let receipts = tree.scan(&prefix, &[]).rev().map(|(key, value)| read(key, &prefix, value));
    // Ids rise with time.
    let receipts = receipts.filter(|read| read.as_ref().map_or(true, |read| is_before(read.id)));
    for receipt in receipts.take(count) {
        found.push(receipt?);
    }
    found.sort_by_key(|erasure| std::cmp::Reverse(erasure.id));
    found.truncate(count);
    Ok(found)
}

/// All erasures and receipts, oldest first. Shape: reads every one.
pub fn all(tree: &Tree) -> Result<Vec<Erasure>> {
    let mut all = unfinished(tree)?;
    let namespace_end = RECEIPT_PREFIX.len() + 4;
    for (key, value) in tree.scan(RECEIPT_PREFIX, &[]) {
        let prefix = key.get(..namespace_end).unwrap_or_default();
        all.push(read(key, prefix, value)?);
    }
    all.sort_by_key(|erasure| erasure.id);
    Ok(all)
}

/// The erasures that are not done, oldest first.
pub fn unfinished(tree: &Tree) -> Result<Vec<Erasure>> {
    tree.scan(ERASURE_PREFIX, &[]).map(|(key, value)| read(key, ERASURE_PREFIX, value)).collect()
}

fn read(key: &[u8], prefix: &[u8], value: &[u8]) -> Result<Erasure> {
    let id = Cursor::new(key.get(prefix.len()..).unwrap_or_default(), "erasure key").uuid()?;
    Erasure::decode(id, value)
}

fn receipt_key(namespace: Namespace, id: uuid::Uuid) -> Vec<u8> {
    uuid_key(&namespace_key(RECEIPT_PREFIX, namespace), id)
}

/// The hashes of the event ids of some rows of a segment.
pub fn id_hashes(
    segment: &Segment,
    rows: &[Range<u32>],
    hash_seed: u64,
    out: &mut HashSet128,
) -> Result<()> {
    let mut rows = rows.to_vec();
    rows.sort_by_key(|range| range.start);
    let mut block = None;
    let (mut text, mut scratch) = (Vec::new(), Vec::new());
    let mut runs = segment.runs().runs().iter().peekable();
    for row in rows.into_iter().flatten() {
        while runs.peek().is_some_and(|run| row >= run.first_row + run.rows) {
            runs.next();
        }
        let Some(run) = runs.peek() else { break };
        let index = row as usize / BLOCK_ROWS;
        if block.as_ref().is_none_or(|(open, _)| *open != index) {
            block = Some((index, segment.event_ids(index)?));
        }
        let ids = block.as_ref().map(|(_, ids)| ids);
        if let Some(id) = ids.and_then(|ids| ids.value(row as usize % BLOCK_ROWS, &mut text)) {
            let tenant = run.key.tenant.as_bytes();
            out.insert(hash::event_id(hash_seed, run.key.namespace.0, tenant, id, &mut scratch));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two erasures list the same segments: what one rewrites is still on the list of the other.
    #[test]
    fn lists_follow_segments_under_their_new_names() {
        let name = uuid::Uuid::from_u128;
        let mut erasure = Erasure {
            id: name(0),
            namespace: Namespace(3),
            scope: Scope::Namespace,
            requested_ms: 5,
            finished_ms: None,
            pending: None,
            rows_removed: 0,
            ids_removed: 0,
            segments_changed: 0,
        };
        let renamed = [(name(2), vec![name(20), name(21)]), (name(4), vec![]), (name(9), vec![])];
        assert!(!erasure.follow(&renamed), "it has no list yet");
        erasure.pending = Some(vec![name(1), name(2), name(3), name(4)]);
        assert!(erasure.follow(&renamed));
        assert_eq!(erasure.pending, Some(vec![name(1), name(20), name(21), name(3)]));
        assert!(!erasure.follow(&[(name(9), vec![name(90)])]));
        assert!(erasure.follow(&[(name(1), vec![name(10)])]));
        assert_eq!(erasure.pending, Some(vec![name(10), name(20), name(21), name(3)]));
    }

    #[test]
    fn records_round_trip() {
        let mut erasure = Erasure {
            id: uuid::Uuid::from_u128(7),
            namespace: Namespace(3),
            scope: Scope::User("acme".into(), 99),
            requested_ms: 5,
            finished_ms: None,
            pending: None,
            rows_removed: 1,
            ids_removed: 2,
            segments_changed: 3,
        };
        for scope in [erasure.scope.clone(), Scope::Namespace, Scope::Tenant("x".into())] {
            erasure.scope = scope;
            erasure.pending = Some(vec![uuid::Uuid::from_u128(1)]);
            let mut txn = Txn::new(Tree::default());
            erasure.put(&mut txn);
            let (tree, _) = txn.finish();
            let at = erasure.namespace;
            assert_eq!(find(&tree, at, erasure.id).unwrap(), Some(erasure.clone()));
            assert_eq!(find(&tree, Namespace(4), erasure.id).unwrap(), None);
            assert_eq!(all(&tree).unwrap(), [erasure.clone()]);
            assert_eq!(newest(&tree, at, None, 5).unwrap(), [erasure.clone()]);
            assert_eq!(newest(&tree, Namespace(4), None, 5).unwrap(), []);
            assert_eq!(
                unfinished(&tree).unwrap().len(),
                usize::from(erasure.finished_ms.is_none())
            );
            erasure.finished_ms = Some(8);
        }
    }

    #[test]
    fn newest_come_first_a_page_at_a_time() {
        let mut txn = Txn::new(Tree::default());
        for n in 0..9 {
            let erasure = Erasure {
                id: uuid::Uuid::from_u128(n + 1),
                namespace: Namespace(u32::from(n == 4)),
                scope: Scope::Namespace,
                requested_ms: 5,
                finished_ms: (n != 2 && n != 7).then_some(6),
                pending: None,
                rows_removed: 0,
                ids_removed: 0,
                segments_changed: 0,
            };
            erasure.put(&mut txn);
        }
        let (tree, _) = txn.finish();
        let mut pages: Vec<Vec<u128>> = Vec::new();
        let mut before = None;
        loop {
            let page = newest(&tree, Namespace(0), before, 3).unwrap();
            before = page.last().map(|erasure| erasure.id);
            pages.push(page.iter().map(|erasure| erasure.id.as_u128()).collect());
            if before.is_none() {
                break;
            }
        }
        assert_eq!(pages, [vec![9, 8, 7], vec![6, 4, 3], vec![2, 1], vec![]]);
    }
}
