//! NDJSON: each line is an event, as the API takes it.
//!
//! ```text
//! 1    {"tenant_id": "a", "event_name": "e"}     an event
//! 2                                              an empty line: passed over, with a number
//! 3    [1]                                       refused: a line is an object: {"tenant_id": …, "event_name": …}
//! 4    {"tenant_id": "a"                         refused: not valid JSON: EOF while parsing an object at line 1 column 17
//! 5    a line of more than 1 MiB                 refused: a line has at most 1048576 bytes
//! 6    {}                                        an event for this file; the API refuses it
//! ```

use std::io::{BufRead, Read as _};

use anyhow::Context as _;
use serde_json::Value as Json;

use super::rows::{ParsedRow, Row, RowStream};

/// Bytes of a line, at most. The API takes 64 KiB of an event; longer lines are read to be refused by their number.
const LINE_BYTES_MAX: usize = 1 << 20;

/// The rows of a reader. An empty line is a row without an event: it is passed over, but numbered.
pub fn rows(mut reader: Box<dyn BufRead + Send>) -> RowStream {
    let mut line = Vec::new();
    Box::new(std::iter::from_fn(move || {
        line.clear();
        match read_line(&mut *reader, &mut line) {
            Ok(false) => None,
            Ok(true) => Some(Ok(parse(&line))),
            Err(error) => Some(Err(error)),
        }
    }))
}

/// Reads a line, or the first bytes of one that is too long. False at the end.
fn read_line(mut reader: &mut dyn BufRead, line: &mut Vec<u8>) -> anyhow::Result<bool> {
    // One byte more than a line may have tells one that is too long from one that just fits.
    let limit = LINE_BYTES_MAX as u64 + 1;
    let read = (&mut reader).take(limit).read_until(b'\n', line).context("cannot read on")?;
    if read as u64 == limit && line.last() != Some(&b'\n') {
        reader.skip_until(b'\n').context("cannot read on")?;
    }
    Ok(read > 0)
}

/// The event of a line, or why it has none. `raw` is the line without spaces around it.
fn parse(line: &[u8]) -> Row {
    if line.len() > LINE_BYTES_MAX {
        return Err(format!("a line has at most {LINE_BYTES_MAX} bytes"));
    }
    let raw = line.trim_ascii().to_vec();
    if raw.is_empty() {
        return Ok(ParsedRow::Blank);
    }
    match serde_json::from_slice(&raw) {
        Ok(Json::Object(event)) => Ok(ParsedRow::Event { event, raw, is_json: true }),
        Ok(_) => Err("a line is an object: {\"tenant_id\": …, \"event_name\": …}".to_owned()),
        Err(error) => Err(format!("not valid JSON: {error}")),
    }
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use super::*;

    #[test]
    fn lines_are_events_or_say_why_not() {
        let long = "x".repeat(LINE_BYTES_MAX + 10);
        let text = format!("{{\"tenant_id\": \"a\"}}\n \n[1]\n{long}\n{{}}");
        let rows: Vec<Row> = rows(Box::new(Cursor::new(text))).map(Result::unwrap).collect();
        assert_eq!(rows.len(), 5);
        let ParsedRow::Event { event, raw, .. } = rows[0].as_ref().unwrap() else { panic!() };
        assert!(event["tenant_id"] == "a" && raw == b"{\"tenant_id\": \"a\"}");
        assert_eq!(rows[1], Ok(ParsedRow::Blank));
        assert!(rows[2].as_ref().unwrap_err().contains("object"));
        assert!(rows[3].as_ref().unwrap_err().contains("at most"));
        assert!(matches!(rows[4], Ok(ParsedRow::Event { .. })), "an event that the API refuses");
    }
}
