//! `log`: the records that a start would read.
//!
//! ```text
//! $ inlay-inspect log                                    (the golden files)
//! LSN  kind       events  bytes  file                          offset  keys
//!  83  writes          0     46  wal/00000000000000000082.wal     269  user deleted and 2 more
//!  84  events         22  2,381  wal/00000000000000000082.wal     349  user usage/1
//!  85  events          5    498  wal/00000000000000000082.wal   2,765  user usage/2
//! ---  ---------  ------  -----  ----------------------------  ------  -----------------------
//!      3 records      27  2,925                                        5
//! ```
//!
//! Without records: `No records: a checkpoint holds everything up to LSN 306.` After a crash in a write:
//! `1.2 KiB behind the last record were never completed; a start ignores them.`

use std::io::{self, Write};

use inlay_engine::{Inspection, RecordInfo};
use serde_json::{Value, json};

use crate::{
    amount,
    table::{Table, numbers, words},
    view::View,
};

/// Records of the log, in order.
pub struct Log {
    records: Vec<RecordInfo>,
    lsn_last: u64,
    torn_bytes: u64,
}

impl Log {
    /// Reads those from `lsn_from` on; 0 for all that a start would read.
    pub fn of(inspection: &Inspection, lsn_from: u64) -> Self {
        Self {
            records: inspection.log(lsn_from).collect(),
            lsn_last: inspection.lsn(),
            torn_bytes: inspection.torn_bytes(),
        }
    }

    fn sum(&self, of: impl Fn(&RecordInfo) -> u64) -> u64 {
        self.records.iter().map(of).sum()
    }
}

impl View for Log {
    fn text(&self, out: &mut dyn Write) -> io::Result<()> {
        if self.records.is_empty() {
            let last = amount::count(self.lsn_last);
            writeln!(out, "No records: a checkpoint holds everything up to LSN {last}.")?;
        } else {
            self.write_records(out)?;
        }
        if self.torn_bytes > 0 {
            let torn = amount::bytes(self.torn_bytes);
            writeln!(
                out,
                "\n{torn} behind the last record were never completed; a start ignores them."
            )?;
        }
        Ok(())
    }

    fn json(&self) -> Value {
        let describe = |record: &RecordInfo| {
            json!({
                "lsn": record.lsn,
                "kind": record.kind,
                "file": record.file,
                "offset": record.offset,
                "bytes": record.bytes,
                "events": record.events,
                "keys": record.keys,
                "damage": record.damage,
            })
        };
        json!({
            "records": self.records.iter().map(describe).collect::<Vec<_>>(),
            "lsn_last": self.lsn_last,
            "torn_bytes": self.torn_bytes,
        })
    }

    fn damage(&self) -> Vec<String> {
        self.records.iter().filter_map(|record| record.damage.clone()).collect()
    }
}

impl Log {
    fn write_records(&self, out: &mut dyn Write) -> io::Result<()> {
        let mut table = Table::new([
            numbers("LSN"),
            words("kind"),
            numbers("events"),
            numbers("bytes"),
            words("file"),
            numbers("offset"),
            words("keys"),
            words("damage"),
        ]);
        for record in &self.records {
            table.row([
                record.lsn.to_string(),
                record.kind.to_owned(),
                amount::count(record.events as u64),
                amount::count(record.bytes),
                record.file.clone(),
                amount::count(record.offset),
                keys(record),
                record.damage.as_ref().map_or_else(String::new, |_| "see below".to_owned()),
            ]);
        }
        table.rule();
        table.row([
            String::new(),
            format!("{} records", amount::count(self.records.len() as u64)),
            amount::count(self.sum(|record| record.events as u64)),
            amount::count(self.sum(|record| record.bytes)),
            String::new(),
            String::new(),
            amount::count(self.sum(|record| record.keys.len() as u64)),
            String::new(),
        ]);
        table.write(out)
    }
}

/// The first key that a record changes, and how many more there are; JSON has them all.
fn keys(record: &RecordInfo) -> String {
    match &record.keys[..] {
        [] => String::new(),
        [key] => key.clone(),
        [key, more @ ..] => format!("{key} and {} more", more.len()),
    }
}
