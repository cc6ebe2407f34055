//! Rows as batches for the API, each event with an id.
//!
//! ```text
//! row 4,211,001   {"event_name":"order","tenant_id":"acme"}   → "event_id":"8c0b…"   the same whenever the file is read again
//! ```
//!
//! ```text
//! row 1    {"tenant_id":"a"}     {"event_id":"50377eda-482e-8953-9afc-5270df86f8d1","tenant_id":"a"}
//! row 2    {"tenant_id":"a"}     {"event_id":"1b1d2e66-b851-87aa-bc89-f3e3a1f356e9","tenant_id":"a"}     alike, and another event
//! row 3                          an empty line has a number and no event
//! row 4    {"event_id":"e"}      {"event_id":"e"}, as it stands; with --value tenant_id=t  {"tenant_id":"t","event_id":"e"}
//! row 5    {"x":"…70,000 y…"}    refused: an event has at most 65536 bytes
//! ```
//!
//! A batch ends at 1,000 rows or where its events have 4 MiB, whichever comes first: a body of the API has 10 MiB at most.

use anyhow::bail;
use serde_json::{Map, Value as Json, json};
use sha2::{Digest as _, Sha256};

use super::{
    columns::{ColumnOptions, is_nothing},
    rows::{ParsedRow, RowStream},
};

/// Rows of a batch, at most: as many events as the API takes in a request.
const EVENTS_MAX: usize = 1_000;
/// Bytes of a request from which on no event is added.
const BYTES_MAX: usize = 4 << 20;
/// Bytes of an event, as the API has it.
const EVENT_BYTES_MAX: usize = 64 << 10;

/// Events for one request.
///
/// `events` and `refused` together are its rows, but for empty lines.
#[derive(Debug, Default)]
pub struct ImportBatch {
    /// The events as JSON, each with the number of its row in the file, from 1.
    pub events: Vec<(u64, String)>,
    /// Rows that are not sent, and why.
    pub refused: Vec<(u64, String)>,
    /// The last row that was read for it, from 1; a batch without a row is none.
    pub last_row: u64,
}

/// Cuts rows into batches.
///
/// An iterator: an error is the last thing that it gives.
pub struct BatchCutter {
    rows: RowStream,
    options: ColumnOptions,
    /// Rows that were read.
    read: u64,
    skip: u64,
    has_failed: bool,
}

impl BatchCutter {
    /// Cuts all rows but the first `skip`, which are read and counted: ids of the others follow from their numbers.
    pub fn new(rows: RowStream, options: ColumnOptions, skip: u64) -> Self {
        Self { rows, options, read: 0, skip, has_failed: false }
    }

    /// The next batch, or `None` at the end.
    ///
    /// Errors: a file that cannot be read on, `behind row 4211000: …`; `--skip 5, and there are 1 rows`.
    fn next_batch(&mut self) -> anyhow::Result<Option<ImportBatch>> {
        while self.read < self.skip {
            match self.rows.next() {
                Some(row) => drop(row.map_err(|error| error.context(self.place()))?),
                None => bail!("--skip {}, and there are {} rows", self.skip, self.read),
            }
            self.read += 1;
        }
        let mut batch = ImportBatch::default();
        let mut bytes = 0;
        while batch.events.len() + batch.refused.len() < EVENTS_MAX && bytes < BYTES_MAX {
            let Some(row) = self.rows.next() else { break };
            let row = row.map_err(|error| error.context(self.place()))?;
            self.read += 1;
            batch.last_row = self.read;
            let event = row.map(|row| match row {
                ParsedRow::Blank => None,
                ParsedRow::Event { event, raw, is_json } => Some(self.event(event, &raw, is_json)),
            });
            match event {
                Ok(None) => {}
                Ok(Some(event)) if event.len() > EVENT_BYTES_MAX => {
                    let message = format!("an event has at most {EVENT_BYTES_MAX} bytes");
                    batch.refused.push((self.read, message));
                }
                Ok(Some(event)) => {
                    bytes += event.len();
                    batch.events.push((self.read, event));
                }
                Err(message) => batch.refused.push((self.read, message)),
            }
        }
        Ok((batch.last_row > 0).then_some(batch))
    }

    /// Where an error is, for people who look for it in the file.
    fn place(&self) -> String {
        format!("behind row {}", self.read)
    }

    /// The event of the row that was just read, with what it lacks. Lines of JSON stay as they are: what is wrong in them, such as a field
    /// that comes twice, is for the API to say.
    ///
    /// The added fields stand in front: `{"event_id":"…","tenant_id":"a"}`.
    fn event(&self, mut event: Map<String, Json>, raw: &[u8], is_json: bool) -> String {
        let mut added = Map::new();
        let is_missing = |event: &Map<_, _>, field: &str| event.get(field).is_none_or(is_nothing);
        for (field, value) in &self.options.values {
            if is_missing(&event, field) {
                added.insert(field.clone(), json!(value));
            }
        }
        if is_missing(&event, "event_id") && !added.contains_key("event_id") {
            added.insert("event_id".to_owned(), json!(event_id(self.read, raw)));
        }
        let text = std::str::from_utf8(raw).ok().filter(|_| is_json);
        // A field that is empty would come twice.
        let text = text.filter(|_| added.keys().all(|field| !event.contains_key(field)));
        // Rows of tables, and lines with an empty field that is added: written anew from the parsed event.
        let Some(rest) = text.and_then(|text| text.strip_prefix('{')) else {
            event.extend(added);
            return Json::Object(event).to_string();
        };
        let mut whole = Json::Object(added).to_string();
        if whole == "{}" {
            return format!("{{{rest}");
        }
        whole.pop();
        let comma = if event.is_empty() { "" } else { "," };
        format!("{whole}{comma}{rest}")
    }
}

impl Iterator for BatchCutter {
    type Item = anyhow::Result<ImportBatch>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.has_failed {
            return None;
        }
        let batch = self.next_batch();
        self.has_failed = batch.is_err();
        batch.transpose()
    }
}

/// The id of an event that has none: it follows from the row as it stands in the file, and from its number, since rows may be alike.
///
/// A UUID of version 8 of the first 16 bytes of SHA-256 over the number (8 bytes, little-endian) and the row. Of a table the row is its values
/// as they stand, so that other options give the same id.
fn event_id(number: u64, raw: &[u8]) -> String {
    let mut hash = Sha256::new();
    hash.update(number.to_le_bytes());
    hash.update(raw);
    let mut bytes = [0; 16];
    bytes.iter_mut().zip(hash.finalize()).for_each(|(byte, of_hash)| *byte = of_hash);
    uuid::Builder::from_custom_bytes(bytes).into_uuid().to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::import::rows::Row;

    fn line(text: &str) -> Row {
        let event = serde_json::from_str(text).unwrap();
        Ok(ParsedRow::Event { event, raw: text.as_bytes().to_vec(), is_json: true })
    }

    fn batches(count: usize, skip: u64) -> Vec<ImportBatch> {
        let rows = (0..count).map(|n| {
            Ok(match n % 500 {
                7 => Err("not valid JSON".to_owned()),
                8 => Ok(ParsedRow::Blank),
                9 => line(r#"{"event_id":"mine"}"#),
                _ => line(r#"{"tenant_id":"a"}"#),
            })
        });
        let cut = BatchCutter::new(Box::new(rows), ColumnOptions::default(), skip);
        cut.map(Result::unwrap).collect()
    }

    #[test]
    fn each_row_has_its_number_and_an_id_of_its_own_that_is_always_the_same() {
        let all = batches(2_100, 0);
        let sizes: Vec<_> = all.iter().map(|batch| (batch.events.len(), batch.last_row)).collect();
        assert_eq!(sizes, [(998, 1_002), (998, 2_004), (94, 2_100)]);
        let refused: Vec<u64> =
            all.iter().flat_map(|batch| &batch.refused).map(|row| row.0).collect();
        assert_eq!(refused, [8, 508, 1_008, 1_508, 2_008]);
        let ids = |batches: &[ImportBatch]| -> Vec<String> {
            let events = batches.iter().flat_map(|batch| &batch.events);
            let id =
                |text: &str| serde_json::from_str::<Json>(text).unwrap()["event_id"].to_string();
            events.map(|(_, text)| id(text)).collect()
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
    fn what_an_event_lacks_is_added_to_the_line_as_it_stands() {
        let event = |text: &str, values: &[(&str, &str)]| {
            let own = |pair: &(&str, &str)| (pair.0.to_owned(), pair.1.to_owned());
            let options =
                ColumnOptions { values: values.iter().map(own).collect(), ..Default::default() };
            let rows = vec![Ok(line(text))].into_iter();
            let mut cut = BatchCutter::new(Box::new(rows), options, 0);
            cut.next().unwrap().unwrap().events.remove(0).1
        };
        let twice = r#"{"event_id":"e","tenant_id":"a","tenant_id":"b"}"#;
        assert_eq!(event(twice, &[]), twice, "the API says that it comes twice");
        let with = event(r#"{"event_id":"e"}"#, &[("tenant_id", "t")]);
        assert_eq!(with, r#"{"tenant_id":"t","event_id":"e"}"#);
        let empty = event(r#"{ "event_id":"", "tenant_id":"a"}"#, &[]);
        let empty: Json = serde_json::from_str(&empty).unwrap();
        assert!(empty["tenant_id"] == "a" && empty["event_id"].as_str().unwrap().len() == 36);
        let nothing: Json = serde_json::from_str(&event("{ }", &[("tenant_id", "t")])).unwrap();
        assert!(nothing["tenant_id"] == "t" && nothing["event_id"].is_string());
        // Options change no ids.
        let id = |text: &str| serde_json::from_str::<Json>(text).unwrap()["event_id"].clone();
        let one = r#"{"tenant_id":"a"}"#;
        assert_eq!(id(&event(one, &[])), id(&event(one, &[("event_name", "x")])));
    }

    #[test]
    fn large_rows_make_small_batches_or_are_refused() {
        let text = |bytes: usize| line(&format!("{{\"x\":\"{}\"}}", "y".repeat(bytes)));
        let rows = (0..100).map(move |n| Ok(text(if n == 50 { 70_000 } else { 60_000 })));
        let batches: Vec<_> = BatchCutter::new(Box::new(rows), ColumnOptions::default(), 0)
            .map(Result::unwrap)
            .collect();
        assert_eq!(batches.iter().map(|batch| batch.events.len()).sum::<usize>(), 99);
        assert!(batches.len() > 1 && batches[0].refused[0].0 == 51);
    }

    #[test]
    fn errors_among_skipped_rows_and_files_that_are_shorter_end_the_import() {
        let rows = || vec![Ok(line("{}")), Err(anyhow::anyhow!("broken"))].into_iter();
        let fail = |skip| {
            let mut cut = BatchCutter::new(Box::new(rows()), ColumnOptions::default(), skip);
            let error = cut.next().unwrap().unwrap_err();
            assert!(cut.next().is_none());
            format!("{error:#}")
        };
        assert_eq!(fail(0), "behind row 1: broken");
        assert_eq!(fail(5), "behind row 1: broken");
        let short = vec![Ok(line("{}"))].into_iter();
        let mut cut = BatchCutter::new(Box::new(short), ColumnOptions::default(), 5);
        assert_eq!(cut.next().unwrap().unwrap_err().to_string(), "--skip 5, and there are 1 rows");
    }
}
