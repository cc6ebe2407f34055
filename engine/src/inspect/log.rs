//! Records of the log and keys of the keyspace, described.
//!
//! ```text
//! RecordInfo  lsn 84  events  wal/00000000000000000082.wal  offset 349  2,381 bytes  22 events
//!             keys ["user usage/1"]                                        written in the same transaction
//! RecordInfo  lsn 82  writes  …                 keys ["engine s 019a6356-…", "engine i 019a6356-…", "engine f"]     a flush
//!
//! key bytes                           printed
//! 00 66                               engine f
//! 00 73 01 9a 63 56 …                 engine s 019a6356-6e00-7ec8-b074-7e0b5b63c210
//! 00 72 00 00 00 07                   engine r 7
//! 01 6f 2f 61 0a                      user o/a\n
//! ```

use super::Inspection;
use crate::{
    keyspace::SYSTEM,
    store::{rows_of, writes_of},
    wal::RecordKind,
};

/// One record of the log.
#[derive(Debug, Clone, PartialEq)]
pub struct RecordInfo {
    /// Log sequence number of the record.
    pub lsn: u64,
    /// `events` or `writes`.
    pub kind: &'static str,
    /// Path of the log file in the data directory.
    pub file: String,
    /// Offset of the payload in the file.
    pub offset: u64,
    /// Length of the payload in bytes.
    pub bytes: u64,
    /// Events that were new; rows that were known before are in the record and are not counted.
    pub events: usize,
    /// Keys that were written or deleted: each one's space and key, as [`KeyInfo`] has them, with a
    /// blank between.
    pub keys: Vec<String>,
    /// Why the record cannot be decoded; `None` when it can.
    pub damage: Option<String>,
}

/// One key of the keyspace, with its value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyInfo {
    /// `engine` or `user`.
    pub space: &'static str,
    /// The key, printable: `s 019a6356-…`, `o/acme/dashboard/019a…`; bytes that are none of printable ASCII as `\x00`.
    pub key: String,
    /// Bytes of its value.
    pub value: Vec<u8>,
}

impl Inspection {
    /// The records that a start would read, those above the newest checkpoint's `replay_after`, from
    /// `lsn_from` on.
    pub fn log(&self, lsn_from: u64) -> impl Iterator<Item = RecordInfo> + '_ {
        let records = self.records.iter().filter(move |record| record.lsn >= lsn_from);
        records.map(|record| {
            let mut info = RecordInfo {
                lsn: record.lsn,
                kind: match record.kind {
                    RecordKind::Events => "events",
                    RecordKind::Writes => "writes",
                },
                file: format!("wal/{:020}.wal", record.file_lsn_first),
                offset: record.offset(),
                bytes: record.payload().len() as u64,
                events: 0,
                keys: Vec::new(),
                damage: None,
            };
            match writes_of(record) {
                Ok(writes) => {
                    let keys = writes.iter().map(|(key, _)| named(key));
                    info.keys = keys.map(|(space, key)| format!("{space} {key}")).collect();
                }
                Err(error) => info.damage = Some(error.to_string()),
            }
            if record.kind == RecordKind::Events {
                match rows_of(record, self.superblock.hash_seed) {
                    Ok(rows) => info.events = rows.len(),
                    Err(error) => info.damage = Some(error.to_string()),
                }
            }
            info
        })
    }

    /// The keys that start with `prefix`, as they are printed, in order: `"s"` gives the segments, and keys of the user that begin so.
    pub fn keys<'a>(&'a self, prefix: &'a str) -> impl Iterator<Item = KeyInfo> + 'a {
        self.tree.iter().filter_map(move |(key, value)| {
            let (space, key) = named(key);
            key.starts_with(prefix).then(|| KeyInfo { space, key, value: value.to_vec() })
        })
    }
}

/// Space of a key, and its printed form. A key of the engine itself is a letter, then nothing, a
/// uuid, or the number of a namespace.
fn named(key: &[u8]) -> (&'static str, String) {
    let Some((&space, key)) = key.split_first() else { return ("user", String::new()) };
    if space != SYSTEM {
        return ("user", printable(key));
    }
    let (letter, rest) = key.split_at(key.len().min(1));
    let rest = match (<[u8; 16]>::try_from(rest), <[u8; 4]>::try_from(rest)) {
        (Ok(uuid), _) => format!(" {}", uuid::Uuid::from_bytes(uuid)),
        (_, Ok(namespace)) => format!(" {}", u32::from_be_bytes(namespace)),
        _ => printable(rest),
    };
    ("engine", printable(letter) + &rest)
}

/// Printable ASCII as it is, other bytes as `\n`, `\x00` and the like.
fn printable(bytes: &[u8]) -> String {
    bytes.iter().flat_map(|&byte| std::ascii::escape_default(byte)).map(char::from).collect()
}
