//! Forming keys, and records that belong to no organisation.

use inlay_engine::{KeyReader, Txn};
use serde::{Serialize, de::DeserializeOwned};

use crate::error::{ApiError, Result};

/// Anything keys can be read from: a snapshot, or a transaction with its own writes.
pub trait Keys {
    /// The value of a key.
    fn value(&self, key: &[u8]) -> Option<std::sync::Arc<[u8]>>;
    /// Keys with a prefix, rising.
    fn values(&self, prefix: &[u8]) -> Vec<(Vec<u8>, std::sync::Arc<[u8]>)>;
}

impl Keys for KeyReader {
    fn value(&self, key: &[u8]) -> Option<std::sync::Arc<[u8]>> {
        self.find(key)
    }
    fn values(&self, prefix: &[u8]) -> Vec<(Vec<u8>, std::sync::Arc<[u8]>)> {
        self.scan(prefix)
    }
}

impl Keys for Txn {
    fn value(&self, key: &[u8]) -> Option<std::sync::Arc<[u8]>> {
        self.find(key)
    }
    fn values(&self, prefix: &[u8]) -> Vec<(Vec<u8>, std::sync::Arc<[u8]>)> {
        self.scan(prefix)
    }
}

/// Key of a record of an organisation.
pub fn org_key(org: &str, kind: &str, id: &str) -> Vec<u8> {
    format!("o/{org}/{kind}/{id}").into_bytes()
}

/// Key of a record of nobody.
pub(super) fn global_key(kind: &str, id: &str) -> Vec<u8> {
    format!("g/{kind}/{id}").into_bytes()
}

/// Reads a stored record.
pub fn decode<R: DeserializeOwned>(bytes: &[u8]) -> Result<R> {
    serde_json::from_slice(bytes)
        .map_err(|error| ApiError::internal(format!("a stored record is unreadable: {error}")))
}

/// Writes a record down.
pub fn encode<R: Serialize>(record: &R) -> Result<Vec<u8>> {
    serde_json::to_vec(record)
        .map_err(|error| ApiError::internal(format!("a record cannot be stored: {error}")))
}

/// A record that belongs to no organisation.
pub fn global_find<R: DeserializeOwned>(
    keys: &impl Keys,
    kind: &str,
    id: &str,
) -> Result<Option<R>> {
    keys.value(&global_key(kind, id)).map(|bytes| decode(&bytes)).transpose()
}

/// Stores a record that belongs to no organisation.
pub fn global_put<R: Serialize>(txn: &mut Txn, kind: &str, id: &str, record: &R) -> Result<()> {
    txn.put(&global_key(kind, id), &encode(record)?);
    Ok(())
}

/// Removes a record that belongs to no organisation.
pub fn global_delete(txn: &mut Txn, kind: &str, id: &str) {
    txn.delete(&global_key(kind, id));
}

/// Keys and bytes of a kind that belongs to no organisation, rising.
pub fn global_scan(keys: &impl Keys, kind: &str) -> Vec<(Vec<u8>, std::sync::Arc<[u8]>)> {
    keys.values(&global_key(kind, ""))
}

/// All records of a kind that belong to no organisation, with their ids.
pub fn global_list<R: DeserializeOwned>(keys: &impl Keys, kind: &str) -> Result<Vec<(String, R)>> {
    let prefix = global_key(kind, "");
    let record = |(key, bytes): &(Vec<u8>, std::sync::Arc<[u8]>)| {
        let id = String::from_utf8_lossy(key.get(prefix.len()..).unwrap_or_default()).into_owned();
        Ok((id, decode(bytes)?))
    };
    keys.values(&prefix).iter().map(record).collect()
}

/// Removes every record of an organisation, and those of nobody that belong to it: its users with
/// their addresses, sessions, keys and signing keys.
pub fn forget_org(txn: &mut Txn, org: &str, environments: &[String]) -> Result<()> {
    for environment in environments {
        global_delete(txn, "signing_key_of", environment);
    }
    let prefix = format!("o/{org}/").into_bytes();
    let mut gone: Vec<Vec<u8>> = txn.scan(&prefix).into_iter().map(|(key, _)| key).collect();
    let globals = txn.scan(b"g/");
    let mut users = Vec::new();
    for (key, bytes) in &globals {
        let record: serde_json::Value = decode(bytes)?;
        if record.get("org").and_then(serde_json::Value::as_str) == Some(org) {
            if key.starts_with(b"g/user/") {
                users.push(record.get("id").cloned().unwrap_or_default());
            }
            gone.push(key.clone());
        }
    }
    // An address leads to its user's id.
    for (key, bytes) in globals.iter().filter(|(key, _)| key.starts_with(b"g/email/")) {
        if users.contains(&decode(bytes)?) {
            gone.push(key.clone());
        }
    }
    gone.iter().for_each(|key| txn.delete(key));
    Ok(())
}

/// The next unused namespace of the engine.
pub fn next_namespace(txn: &mut Txn) -> Result<u32> {
    let next = global_find::<u32>(txn, "counter", "namespace")?.unwrap_or(1);
    global_put(txn, "counter", "namespace", &(next + 1))?;
    Ok(next)
}
