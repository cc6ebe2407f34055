//! NDJSON: each line is an event, as the API takes it.

use std::io::{BufRead, Read as _};

use anyhow::Context as _;
use serde_json::{Map, Value as Json};

use super::rows::{Row, RowStream};

/// Bytes of a line, at most.
const LINE_BYTES_MAX: usize = 1 << 20;

/// The rows of a reader. An empty line is no row of its own: it is passed over, but numbered.
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
    let limit = LINE_BYTES_MAX as u64 + 1;
    let read = (&mut reader).take(limit).read_until(b'\n', line).context("cannot read on")?;
    if read as u64 == limit && line.last() != Some(&b'\n') {
        reader.skip_until(b'\n').context("cannot read on")?;
    }
    Ok(read > 0)
}

fn parse(line: &[u8]) -> Row {
    if line.len() > LINE_BYTES_MAX {
        return Err(format!("a line has at most {LINE_BYTES_MAX} bytes"));
    }
    if line.trim_ascii().is_empty() {
        return Ok(Map::new());
    }
    match serde_json::from_slice(line) {
        Ok(Json::Object(event)) => Ok(event),
        Ok(_) => Err("a line is an object: {\"tenant_id\": …, \"event_name\": …}".to_owned()),
        Err(error) => Err(format!("no JSON: {error}")),
    }
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use super::*;

    #[test]
    fn lines_are_events_or_say_why_not() {
        let long = "x".repeat(LINE_BYTES_MAX + 10);
        let text = format!("{{\"tenant_id\": \"a\"}}\n\n[1]\n{long}\n{{\"b\": 1}}");
        let rows: Vec<Row> = rows(Box::new(Cursor::new(text))).map(Result::unwrap).collect();
        assert_eq!(rows.len(), 5);
        assert_eq!(rows[0].as_ref().unwrap()["tenant_id"], "a");
        assert!(rows[1].as_ref().unwrap().is_empty());
        assert!(rows[2].as_ref().unwrap_err().contains("object"));
        assert!(rows[3].as_ref().unwrap_err().contains("at most"));
        assert_eq!(rows[4].as_ref().unwrap()["b"], 1);
    }
}
