//! The records that say whose an API key is: the reference under the digest of its secret, the key, the organisation.

use std::sync::Arc;

use super::{
    keys::{Keys, decode, global_key, org_key},
    org::Record as _,
    records::{ApiKey, KeyRef, Org},
};
use crate::error::Result;

/// Names and bytes of the three records, as they were when they were read.
pub struct KeyRecords([(Vec<u8>, Arc<[u8]>); 3]);

impl KeyRecords {
    /// Reads and decodes the records of the key with this digest. `None` where one is missing.
    ///
    /// Errors: a record that cannot be read.
    pub fn read(keys: &impl Keys, digest: &str) -> Result<Option<(Self, ApiKey, Org)>> {
        let read = |name: Vec<u8>| keys.value(&name).map(|bytes| (name, bytes));
        let Some(reference) = read(global_key("api_key", digest)) else { return Ok(None) };
        let KeyRef { org, id } = decode(&reference.1)?;
        let key = read(org_key(&org, ApiKey::KIND, &id));
        let (Some(key), Some(org)) = (key, read(org_key(&org, Org::KIND, &org))) else {
            return Ok(None);
        };
        let decoded = (decode(&key.1)?, decode(&org.1)?);
        Ok(Some((Self([reference, key, org]), decoded.0, decoded.1)))
    }

    /// Whether none of them has changed since: a record that is written anew has other bytes in memory, and those that
    /// are held here are not used for another.
    pub fn are_current(&self, keys: &impl Keys) -> bool {
        self.0.iter().all(|(name, bytes)| {
            keys.value(name).is_some_and(|current| Arc::ptr_eq(&current, bytes))
        })
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use serde_json::json;

    use super::*;

    #[derive(Default)]
    struct Stored(BTreeMap<Vec<u8>, Arc<[u8]>>);

    impl Keys for Stored {
        fn value(&self, key: &[u8]) -> Option<Arc<[u8]>> {
            self.0.get(key).map(Arc::clone)
        }
        fn values(&self, _: &[u8]) -> Vec<(Vec<u8>, Arc<[u8]>)> {
            Vec::new()
        }
    }

    fn stored() -> Stored {
        let records = [
            (global_key("api_key", "d1"), json!({"org": "o1", "id": "k1"})),
            (
                org_key("o1", "api_key", "k1"),
                json!({
                    "id": "k1", "label": "Backend", "scope": "admin", "prefix": "inlay_admin_a", "digest": "d1",
                    "environment": "e1", "created_at": 1, "created_by": null, "last_used_at": null,
                }),
            ),
            (
                org_key("o1", "org", "o1"),
                json!({
                    "id": "o1", "name": "Acme", "email": "a@acme.example", "plan": "free",
                    "billing": serde_json::to_value(crate::store::Billing::default()).unwrap(),
                    "environments": [], "created_at": 1,
                }),
            ),
        ];
        let bytes = |(name, record): (Vec<u8>, serde_json::Value)| {
            (name, Arc::from(record.to_string().into_bytes()))
        };
        Stored(records.into_iter().map(bytes).collect())
    }

    #[test]
    fn a_change_of_any_record_is_noticed() {
        let names: Vec<_> = stored().0.into_keys().collect();
        for name in names {
            let mut stored = stored();
            let (records, key, org) = KeyRecords::read(&stored, "d1").unwrap().unwrap();
            assert_eq!((key.id.as_str(), org.id.as_str()), ("k1", "o1"));
            assert!(records.are_current(&stored));
            let same_text = Arc::from(stored.0[&name].to_vec());
            stored.0.insert(name.clone(), same_text);
            assert!(!records.are_current(&stored));
            stored.0.remove(&name);
            assert!(!records.are_current(&stored));
            assert!(KeyRecords::read(&stored, "d1").unwrap().is_none());
        }
        assert!(KeyRecords::read(&stored(), "d2").unwrap().is_none());
    }
}
