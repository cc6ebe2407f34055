//! Records of one organisation, and no other.

use inlay_engine::{KeyReader, Txn};
use serde::{Serialize, de::DeserializeOwned};

use super::keys::{Keys, decode, encode, org_key};
use crate::error::Result;

/// A kind of record that an organisation owns.
pub trait Record: Serialize + DeserializeOwned {
    /// The `<kind>` in the key `o/<org>/<kind>/<id>`.
    const KIND: &'static str;
    /// The `<id>` in the key, unique within the organisation and the kind.
    fn id(&self) -> &str;
}

/// Implements [`Record`] for types with a field `id`, each with its kind.
macro_rules! records {
    ($($name:ident $kind:literal;)*) => {
        $(impl $crate::store::org::Record for $name {
            const KIND: &'static str = $kind;
            fn id(&self) -> &str {
                &self.id
            }
        })*
    };
}
pub(super) use records;

/// Records that are read at once, where it is not known how many are needed.
const AT_ONCE: usize = 128;

/// Reads records of one organisation.
pub struct OrgReader {
    keys: KeyReader,
    org: String,
}

impl OrgReader {
    /// A reader of the records of `org` as of now.
    pub fn new(keys: KeyReader, org: &str) -> Self {
        Self { keys, org: org.to_owned() }
    }

    /// The record of a kind with this id. `None` when there is none, or the id contains a slash.
    ///
    /// Errors: a record that cannot be decoded.
    pub fn find<R: Record>(&self, id: &str) -> Result<Option<R>> {
        find(&self.keys, &self.org, id)
    }

    /// All records of a kind in order of their ids; UUIDv7 puts the oldest first.
    pub fn list<R: Record>(&self) -> Result<Vec<R>> {
        list(&self.keys, &self.org)
    }
}

impl OrgReader {
    /// All records of a kind whose ids begin with `prefix`, in order of their ids.
    pub fn list_of<R: Record>(&self, prefix: &str) -> Result<Vec<R>> {
        list_of(&self.keys, &self.org, prefix)
    }

    /// The newest records of a kind whose ids begin with `prefix`, newest first.
    pub fn list_last_of<R: Record>(&self, prefix: &str, limit: usize) -> Result<Vec<R>> {
        let found = self.keys.scan_last(&org_key(&self.org, R::KIND, prefix), limit);
        found.iter().map(|(_, bytes)| decode(bytes)).collect()
    }

    /// Visits records of a kind whose ids rise with time, newest first, until `visit` returns `false`: some at a time
    /// are read. With `end` it begins below this id.
    pub fn visit_last<R: Record>(
        &self,
        end: Option<&str>,
        mut visit: impl FnMut(R) -> bool,
    ) -> Result<()> {
        // No character of an id is above this.
        let mut end = end.unwrap_or("~").to_owned();
        loop {
            let some: Vec<R> = self.list_last_below(&end, AT_ONCE)?;
            let Some(last) = some.last() else { return Ok(()) };
            last.id().clone_into(&mut end);
            for record in some {
                if !visit(record) {
                    return Ok(());
                }
            }
        }
    }

    /// The oldest records of a kind whose ids rise with time, oldest first.
    pub fn list_first<R: Record>(&self, limit: usize) -> Result<Vec<R>> {
        let found = self.keys.scan_first(&org_key(&self.org, R::KIND, ""), limit);
        found.iter().map(|(_, bytes)| decode(bytes)).collect()
    }

    /// The newest records of a kind, newest first.
    pub fn list_last<R: Record>(&self, limit: usize) -> Result<Vec<R>> {
        let found = self.keys.scan_last(&org_key(&self.org, R::KIND, ""), limit);
        found.iter().map(|(_, bytes)| decode(bytes)).collect()
    }

    fn list_last_below<R: Record>(&self, end: &str, limit: usize) -> Result<Vec<R>> {
        let (prefix, end) = (org_key(&self.org, R::KIND, ""), org_key(&self.org, R::KIND, end));
        let found = self.keys.scan_last_below(&prefix, &end, limit);
        found.iter().map(|(_, bytes)| decode(bytes)).collect()
    }
}

/// Changes records of one organisation within a transaction.
pub struct OrgTxn<'a> {
    txn: &'a mut Txn,
    org: String,
}

impl<'a> OrgTxn<'a> {
    /// Records of `org` within `txn`.
    pub fn new(txn: &'a mut Txn, org: &str) -> Self {
        Self { txn, org: org.to_owned() }
    }

    /// The record of a kind with this id, with the writes of this transaction. `None` when there is
    /// none, or the id contains a slash.
    ///
    /// Errors: a record that cannot be decoded.
    pub fn find<R: Record>(&self, id: &str) -> Result<Option<R>> {
        find(self.txn, &self.org, id)
    }

    /// All records of a kind, oldest first.
    pub fn list<R: Record>(&self) -> Result<Vec<R>> {
        list(self.txn, &self.org)
    }

    /// All records of a kind whose ids begin with `prefix`, in order of their ids.
    pub fn list_of<R: Record>(&self, prefix: &str) -> Result<Vec<R>> {
        list_of(self.txn, &self.org, prefix)
    }

    /// Stores a record under its id.
    pub fn put<R: Record>(&mut self, record: &R) -> Result<()> {
        self.txn.put(&org_key(&self.org, R::KIND, record.id()), &encode(record)?);
        Ok(())
    }

    /// Removes a record.
    pub fn delete<R: Record>(&mut self, id: &str) {
        self.txn.delete(&org_key(&self.org, R::KIND, id));
    }

    /// Removes all records of a kind whose ids begin with `prefix`.
    pub fn delete_all_of<R: Record>(&mut self, prefix: &str) {
        let found = self.txn.scan(&org_key(&self.org, R::KIND, prefix));
        found.iter().for_each(|(key, _)| self.txn.delete(key));
    }

    /// The transaction, for records that belong to no organisation.
    pub fn global(&mut self) -> &mut Txn {
        self.txn
    }
}

fn find<R: Record>(keys: &impl Keys, org: &str, id: &str) -> Result<Option<R>> {
    // An id never reaches into another kind or organisation.
    if id.contains('/') {
        return Ok(None);
    }
    keys.value(&org_key(org, R::KIND, id)).map(|bytes| decode(&bytes)).transpose()
}

fn list<R: Record>(keys: &impl Keys, org: &str) -> Result<Vec<R>> {
    list_of(keys, org, "")
}

fn list_of<R: Record>(keys: &impl Keys, org: &str, prefix: &str) -> Result<Vec<R>> {
    keys.values(&org_key(org, R::KIND, prefix)).iter().map(|(_, bytes)| decode(bytes)).collect()
}

/// Ids of all organisations. Takes one key look-up for each, however many records they have.
pub fn global_orgs(keys: &KeyReader) -> Vec<String> {
    let (prefix, mut from, mut orgs) = (b"o/", b"o/".to_vec(), Vec::new());
    while let Some((key, _)) = keys.first(prefix, &from) {
        let rest = key.get(prefix.len()..).unwrap_or_default();
        let org = rest.split(|&byte| byte == b'/').next().unwrap_or_default();
        // `0` is the byte after `/`: continue behind all keys of this organisation.
        from = [prefix, org, b"0"].concat();
        orgs.push(String::from_utf8_lossy(org).into_owned());
    }
    orgs
}

/// All records of a kind over all organisations, each with the id of its organisation.
pub fn global_records<R: Record>(keys: &KeyReader) -> Result<Vec<(String, R)>> {
    let mut out = Vec::new();
    for org in global_orgs(keys) {
        let records: Vec<R> = list(keys, &org)?;
        out.extend(records.into_iter().map(|record| (org.clone(), record)));
    }
    Ok(out)
}

/// Ids of all records of a kind over all organisations, each with the id of its organisation.
pub fn global_ids<R: Record>(keys: &KeyReader) -> Vec<(String, String)> {
    let mut out = Vec::new();
    for org in global_orgs(keys) {
        let prefix = org_key(&org, R::KIND, "");
        for (key, _) in keys.scan(&prefix) {
            let id = String::from_utf8_lossy(key.get(prefix.len()..).unwrap_or_default());
            out.push((org.clone(), id.into_owned()));
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{app::App, error::ApiError, store::Sequence};

    #[test]
    fn organisations_and_their_records_are_found_by_steps() {
        let app = App::in_memory();
        app.engine
            .transact(|txn| {
                // One id begins like another, and other kinds stand around.
                for org in ["a", "a-b", "b"] {
                    let mut records = OrgTxn::new(txn, org);
                    for id in ["x", "y"] {
                        records.put(&Sequence { id: id.to_owned(), last: 1 })?;
                    }
                    txn.put(&org_key(org, "aaa", "1"), b"{}");
                    txn.put(&org_key(org, "zzz", "1"), b"{}");
                }
                txn.put(b"p/other", b"{}");
                Ok::<_, ApiError>(())
            })
            .unwrap();
        let keys = app.engine.keys();
        // In the order of their keys: a dash comes before a slash.
        assert_eq!(global_orgs(&keys), ["a-b", "a", "b"]);
        let ids = global_ids::<Sequence>(&keys);
        let ids: Vec<String> = ids.into_iter().map(|(org, id)| org + "/" + &id).collect();
        assert_eq!(ids, ["a-b/x", "a-b/y", "a/x", "a/y", "b/x", "b/y"]);
        assert_eq!(global_records::<Sequence>(&keys).unwrap().len(), 6);
    }
}
