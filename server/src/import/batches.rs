//! Rows as batches for the API, each event with an id.
//!
//! ```text
//! row 4,211,001   {"event_name":"order","tenant_id":"acme"}   → "event_id":"8c0b…"   the same whenever the file is read again
//! ```

use serde_json::{Map, Value as Json, json};
use sha2::{Digest as _, Sha256};

use super::{
    columns::{ColumnOptions, is_nothing},
    rows::{Row, RowStream},
};

/// Events of a request, at most.
const EVENTS_MAX: usize = 1_000;
/// Bytes of a request from which on no event is added.
const BYTES_MAX: usize = 4 << 20;

/// Events for one request, as NDJSON.
#[derive(Debug, Default)]
pub struct ImportBatch {
    /// The events, one a line.
    pub body: String,
    /// The number of each event's row in the file, from 1.
    pub rows: Vec<u64>,
    /// Rows that are no events, and why.
    pub refused: Vec<(u64, String)>,
    /// The last row that was read for it.
    pub last_row: u64,
}

/// Cuts rows into batches.
pub struct BatchCutter {
    rows: RowStream,
    options: ColumnOptions,
    next_row: u64,
}

impl BatchCutter {
    /// Of all rows but the first `skip`.
    pub fn new(rows: RowStream, options: ColumnOptions, skip: u64) -> Self {
        let rows = rows.skip(usize::try_from(skip).unwrap_or(usize::MAX));
        Self { rows: Box::new(rows), options, next_row: skip + 1 }
    }
}

impl Iterator for BatchCutter {
    type Item = anyhow::Result<ImportBatch>;

    fn next(&mut self) -> Option<Self::Item> {
        let mut batch = ImportBatch::default();
        while batch.rows.len() + batch.refused.len() < EVENTS_MAX && batch.body.len() < BYTES_MAX {
            let Some(row) = self.rows.next() else { break };
            let number = self.next_row;
            self.next_row += 1;
            batch.last_row = number;
            match row {
                Ok(row) => batch.push(number, row, &self.options),
                Err(error) => {
                    return Some(Err(error.context(format!("behind row {}", number - 1))));
                }
            }
        }
        (batch.last_row > 0).then_some(Ok(batch))
    }
}

impl ImportBatch {
    fn push(&mut self, number: u64, row: Row, options: &ColumnOptions) {
        match row {
            // A line without anything.
            Ok(event) if event.is_empty() => {}
            Ok(mut event) => {
                options.complete(&mut event);
                if event.get("event_id").is_none_or(is_nothing) {
                    let id = event_id(number, &event);
                    event.insert("event_id".to_owned(), json!(id));
                }
                self.rows.push(number);
                self.body += &Json::Object(event).to_string();
                self.body.push('\n');
            }
            Err(message) => self.refused.push((number, message)),
        }
    }
}

/// The id of an event that has none: it follows from the row, and from its number, since rows may be alike.
fn event_id(number: u64, event: &Map<String, Json>) -> String {
    let mut hash = Sha256::new();
    hash.update(number.to_le_bytes());
    hash.update(json!(event).to_string());
    let mut bytes = [0; 16];
    bytes.iter_mut().zip(hash.finalize()).for_each(|(byte, of_hash)| *byte = of_hash);
    uuid::Builder::from_custom_bytes(bytes).into_uuid().to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn batches(count: usize, skip: u64) -> Vec<ImportBatch> {
        let rows = (0..count).map(|n| {
            Ok(match n % 500 {
                7 => Err("no JSON".to_owned()),
                8 => Ok(Map::new()),
                9 => Ok(Map::from_iter([("event_id".to_owned(), json!("mine"))])),
                _ => Ok(Map::from_iter([("tenant_id".to_owned(), json!("a"))])),
            })
        });
        BatchCutter::new(Box::new(rows), ColumnOptions::default(), skip)
            .map(Result::unwrap)
            .collect()
    }

    #[test]
    fn each_row_has_its_number_and_an_id_of_its_own_that_is_always_the_same() {
        let all = batches(2_100, 0);
        let sizes: Vec<_> = all.iter().map(|batch| (batch.rows.len(), batch.last_row)).collect();
        assert_eq!(sizes, [(998, 1_002), (998, 2_004), (94, 2_100)]);
        let refused: Vec<u64> =
            all.iter().flat_map(|batch| &batch.refused).map(|row| row.0).collect();
        assert_eq!(refused, [8, 508, 1_008, 1_508, 2_008]);
        let ids = |batches: &[ImportBatch]| -> Vec<String> {
            let lines = batches.iter().flat_map(|batch| batch.body.lines());
            lines
                .map(|line| serde_json::from_str::<Json>(line).unwrap()["event_id"].to_string())
                .collect()
        };
        let first = ids(&all);
        let distinct: std::collections::BTreeSet<&String> = first.iter().collect();
        assert_eq!(distinct.len(), first.len() - 4, "five rows have the id `mine`");
        assert_eq!(ids(&batches(2_100, 0)), first);
        // What was skipped does not change what follows.
        let skipped = ids(&batches(2_100, 1_002));
        assert_eq!(skipped, first[998..]);
    }

    #[test]
    fn large_rows_make_small_batches() {
        let rows =
            (0..10).map(|_| Ok(Ok(Map::from_iter([("x".to_owned(), json!("y".repeat(1 << 20)))]))));
        let batches =
            BatchCutter::new(Box::new(rows), ColumnOptions::default(), 0).map(Result::unwrap);
        assert_eq!(batches.map(|batch| batch.rows.len()).collect::<Vec<_>>(), [4, 4, 2]);
    }
}
