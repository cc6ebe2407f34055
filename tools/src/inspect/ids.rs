//! `ids`: the id runs, which make a repeated event count once.
//!
//! ```text
//! $ inlay-inspect ids                                    (the golden files)
//! name                                  week of       ids     bytes  bytes/id   filter
//! 019a6356-6e00-7b29-9172-b1a4f0f3ae86  2025-10-30  1,150  13.1 KiB    11.629  1.8 KiB
//! 019a6356-6e00-7224-a59e-a97b070051b9  2025-11-06     34     570 B    16.765    116 B
//! 019a6356-6e00-7bae-a4bd-3fe53daa92cb  2025-11-06     17     344 B    20.235     68 B
//! 019a6356-6e00-7c8f-9db2-15c309d97b51  2025-11-06     26     454 B    17.462     84 B
//! ------------------------------------  ----------  -----  --------  --------  -------
//! 4 id runs                                         1,227  14.4 KiB    12.014  2.0 KiB
//! ```
//!
//! Weeks begin on Thursdays, as 1970 did. Small runs cost more an id: the list, the trailer and the filter have a least size.

use std::io::{self, Write};

use inlay_engine::{IdRunInfo, Inspection, Result};
use serde_json::{Value, json};

use crate::{
    amount,
    table::{Table, numbers, words},
    view::View,
};

/// The live id runs, by generation and then name.
pub struct IdRuns(Vec<IdRunInfo>);

impl IdRuns {
    /// Reads the facts of the live id runs of a data directory.
    pub fn of(inspection: &Inspection) -> Result<Self> {
        let mut runs = inspection.id_runs()?;
        runs.sort_by_key(|run| (run.generation, run.uuid));
        Ok(Self(runs))
    }

    fn sum(&self, of: impl Fn(&IdRunInfo) -> u64) -> u64 {
        self.0.iter().map(of).sum()
    }
}

impl View for IdRuns {
    fn text(&self, out: &mut dyn Write) -> io::Result<()> {
        let mut table = Table::new([
            words("name"),
            words("week of"),
            numbers("ids"),
            numbers("bytes"),
            numbers("bytes/id"),
            numbers("filter"),
            words("damage"),
        ]);
        for run in &self.0 {
            table.row([
                run.uuid.to_string(),
                run.day_first.clone(),
                amount::count(run.ids),
                amount::bytes(run.bytes),
                amount::ratio(amount::per(run.bytes, run.ids)),
                amount::bytes(run.filter_bytes),
                run.damage.as_ref().map_or_else(String::new, |_| "see below".to_owned()),
            ]);
        }
        let (ids, bytes) = (self.sum(|run| run.ids), self.sum(|run| run.bytes));
        table.rule();
        table.row([
            format!("{} id runs", amount::count(self.0.len() as u64)),
            String::new(),
            amount::count(ids),
            amount::bytes(bytes),
            amount::ratio(amount::per(bytes, ids)),
            amount::bytes(self.sum(|run| run.filter_bytes)),
            String::new(),
        ]);
        table.write(out)
    }

    fn json(&self) -> Value {
        let describe = |run: &IdRunInfo| {
            json!({
                "uuid": run.uuid.to_string(),
                "path": run.path,
                "generation": run.generation,
                "day_first": run.day_first,
                "ids": run.ids,
                "bytes": run.bytes,
                "filter_bytes": run.filter_bytes,
                "damage": run.damage,
            })
        };
        json!({
            "id_runs": self.0.iter().map(describe).collect::<Vec<_>>(),
            "ids": self.sum(|run| run.ids),
            "bytes": self.sum(|run| run.bytes),
            "filter_bytes": self.sum(|run| run.filter_bytes),
        })
    }

    fn damage(&self) -> Vec<String> {
        self.0.iter().filter_map(|run| run.damage.clone()).collect()
    }
}
