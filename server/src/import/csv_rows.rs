//! CSV with a header: separated by commas, semicolons or tabs, whichever the header has.
//!
//! Whether a property is a string or a number is decided once for its column, by its values in the first thousand rows, or by its first
//! value if it has none there: a number in one row and a string in the next would be two properties of one name.
//!
//! ```text
//! tenant_id;zip;amount;id;none            semicolons, since the header has more of these than of commas
//! 7;01234;1.5;9007199254740993;           {"tenant_id": "7", "string_props": {"zip": "01234", "id": "9007199254740993"},
//!                                          "numeric_props": {"amount": 1.5}}
//! 8;99;-2;1;2.5                           zip and id are strings here, too; none is a number from its first value on
//! 9;99                                    refused: 2 values of 5 columns
//! 9;99;old;1;      behind the first 1,000 rows, which are numbers
//!                                         refused: amount is "old", and a number in the rows before: with --text amount it is a string in all
//! 9;"oops; to the end of the file         refused: a quote is not closed: the row and the lines behind it are one
//! ```

use std::io::{self, BufRead, Cursor, Read};

use anyhow::{Context as _, bail};
use csv::{ByteRecord, StringRecord};

use super::{
    columns::{Cell, ColumnOptions, TableColumns},
    rows::{ParsedRow, Row, RowStream},
};

/// Rows by which the kinds of columns are decided.
const SAMPLED: usize = 1_000;
/// Bytes of the header, or of a row, at most: without a bound a quote that nobody closes would read the rest of the file into memory.
const ROW_BYTES_MAX: usize = 1 << 20;

/// The rows of a reader.
///
/// Errors: a file without a header, and those of [`TableColumns::new`].
///
/// Rows are read as they are asked for, but for the first thousand.
pub fn rows(
    mut reader: Box<dyn BufRead + Send>,
    options: &ColumnOptions,
) -> anyhow::Result<RowStream> {
    let mut header = Vec::new();
    let limit = ROW_BYTES_MAX as u64;
    (&mut reader).take(limit).read_until(b'\n', &mut header).context("cannot read the header")?;
    // Of equals the last wins: a header with one column has none of them, and is read with tabs.
    let delimiter = *b",;\t".iter().max_by_key(|byte| count(&header, **byte)).unwrap_or(&b',');
    let whole = Recent { inner: Cursor::new(header).chain(reader), bytes: Vec::new(), offset: 0 };
    let mut csv = csv::ReaderBuilder::new().delimiter(delimiter).flexible(true).from_reader(whole);
    let names: Vec<String> = csv.headers()?.iter().map(|name| name.trim().to_owned()).collect();
    if names.iter().all(String::is_empty) {
        bail!("the first line names the columns, and there is none");
    }
    let columns = TableColumns::new(&names, options)?;
    let mut records = Records { csv, delimiter, is_done: false };
    let sample: Vec<_> = records.by_ref().take(SAMPLED).collect();
    let values = |at: usize| {
        let records = sample.iter().filter_map(|record| record.as_ref().ok()?.as_ref().ok());
        records.filter_map(move |record| record.get(at))
    };
    let mut kinds: Vec<Option<bool>> = { 0..names.len() }
        .map(|at| if columns.may_be_number(at) { are_numeric(values(at)) } else { Some(false) })
        .collect();
    Ok(Box::new(sample.into_iter().chain(records).map(move |record| {
        Ok(record?.and_then(|record| row(&record, &names, &columns, &mut kinds)))
    })))
}

/// How often a byte is in a text.
fn count(text: &[u8], byte: u8) -> usize {
    text.iter().filter(|other| **other == byte).count()
}

/// Whether all values are numbers; nothing where there is none.
///
/// `None` is decided by the first value that comes.
fn are_numeric<'v>(values: impl Iterator<Item = &'v str>) -> Option<bool> {
    let mut values = values.filter(|value| !value.trim().is_empty()).peekable();
    values.peek()?;
    Some(values.all(|value| number(value).is_some()))
}

/// A number as people write one: `007`, `+1` and `inf` are codes and words, and integers of more digits than a number keeps are ids.
///
/// `1.5`, `-2`, `0.5` and `1e3` are numbers. `007`, `+1`, `inf`, `.5` and `9007199254740993` are texts.
fn number(text: &str) -> Option<f64> {
    let text = text.trim();
    let digits = text.strip_prefix('-').unwrap_or(text);
    let is_code = digits.len() > 1 && digits.starts_with('0') && !digits.starts_with("0.");
    let begins = digits.starts_with(|first: char| first.is_ascii_digit());
    let number: f64 = text.parse().ok()?;
    let is_id = digits.bytes().all(|byte| byte.is_ascii_digit())
        && number.abs() >= 2_f64.powi(53)
        && format!("{number:.0}") != text;
    (begins && !is_code && !is_id && number.is_finite()).then_some(number)
}

/// The event of a record. `kinds` says of each column whether it is of numbers; a column that had no value so far is decided here.
///
/// Errors: too many or too few values; text in a column of numbers.
fn row(
    record: &StringRecord,
    names: &[String],
    columns: &TableColumns,
    kinds: &mut [Option<bool>],
) -> Row {
    if record.len() != names.len() {
        return Err(format!("{} values of {} columns", record.len(), names.len()));
    }
    let mut cells = Vec::with_capacity(names.len());
    let mut raw = Vec::new();
    for ((value, name), kind) in record.iter().zip(names).zip(kinds) {
        raw.extend_from_slice(value.as_bytes());
        // A separator that no value has: `a,bc` and `ab,c` must not be one row.
        raw.push(0x1f);
        cells.push(if value.trim().is_empty() {
            Cell::Nothing
        } else if !*kind.get_or_insert_with(|| number(value).is_some()) {
            Cell::Text(value.to_owned())
        } else if let Some(number) = number(value) {
            Cell::Number(number)
        } else {
            return Err(format!(
                "{name} is {value:?}, and a number in the rows before: with --text {name} it is a string in all"
            ));
        });
    }
    Ok(ParsedRow::Event { event: columns.event(cells.into_iter())?, raw, is_json: false })
}

/// A reader that keeps what a row was read from, and ends where a row is too long: a quote that nobody closes takes all that follows.
struct Recent<R> {
    inner: R,
    bytes: Vec<u8>,
    /// Offset of the first of these bytes in the file.
    offset: u64,
}

impl<R> Recent<R> {
    /// The bytes from a place on.
    fn since(&self, place: u64) -> &[u8] {
        let at = usize::try_from(place.saturating_sub(self.offset)).unwrap_or(usize::MAX);
        self.bytes.get(at..).unwrap_or_default()
    }

    /// Drops the bytes before a place in the file.
    fn forget_before(&mut self, place: u64) {
        let count = usize::try_from(place.saturating_sub(self.offset)).unwrap_or(usize::MAX);
        let count = count.min(self.bytes.len());
        // Seldom, so that not each row moves what is behind it.
        if count > ROW_BYTES_MAX / 4 {
            self.bytes.drain(..count);
            self.offset += count as u64;
        }
    }
}

impl<R: Read> Read for Recent<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.bytes.len() > 2 * ROW_BYTES_MAX {
            let message =
                format!("a row has more than {ROW_BYTES_MAX} bytes: is a quote not closed?");
            return Err(io::Error::other(message));
        }
        let read = self.inner.read(buffer)?;
        self.bytes.extend_from_slice(buffer.get(..read).unwrap_or_default());
        Ok(read)
    }
}

/// The records of a file; the inner error is of one that is refused.
struct Records<R> {
    csv: csv::Reader<Recent<R>>,
    delimiter: u8,
    is_done: bool,
}

impl<R: Read> Iterator for Records<R> {
    type Item = anyhow::Result<Result<StringRecord, String>>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.is_done {
            return None;
        }
        let mut record = ByteRecord::new();
        let line = self.csv.position().line();
        match self.csv.read_byte_record(&mut record) {
            Ok(false) => return None,
            Ok(true) => {}
            Err(error) => {
                self.is_done = true;
                let context = format!("in the row that begins in line {line}");
                return Some(Err(anyhow::Error::from(error).context(context)));
            }
        }
        let begin = record.position().map_or(0, |position| position.byte());
        let end = self.csv.position().byte();
        let recent = self.csv.get_ref();
        // Only the last row of a file can be open.
        let may_be_open = end >= recent.offset + recent.bytes.len() as u64;
        let is_open = may_be_open && ends_in_quotes(recent.since(begin), self.delimiter);
        self.csv.get_mut().forget_before(end);
        Some(Ok(if is_open {
            Err("a quote is not closed: the row and the lines behind it are one".to_owned())
        } else {
            StringRecord::from_byte_record(record).map_err(|error| error.to_string())
        }))
    }
}

/// Whether a row ends within quotes.
///
/// `a,"x` does; `a,"x ""y"""` does not, nor does `a,5" pipe`: a quote within a value is a sign.
fn ends_in_quotes(row: &[u8], delimiter: u8) -> bool {
    let (mut is_quoted, mut is_start) = (false, true);
    let mut bytes = row.iter().copied().peekable();
    while let Some(byte) = bytes.next() {
        if is_quoted {
            if byte == b'"' && bytes.next_if_eq(&b'"').is_none() {
                is_quoted = false;
            }
        } else {
            is_quoted = is_start && byte == b'"';
            is_start = byte == delimiter || byte == b'\n' || byte == b'\r';
        }
    }
    is_quoted
}

#[cfg(test)]
mod tests {
    use serde_json::{Map, Value as Json, json};

    use super::*;

    fn read(text: &str, options: &ColumnOptions) -> Vec<Result<Map<String, Json>, String>> {
        let reader = Box::new(Cursor::new(text.to_owned()));
        let event = |row: Row| match row {
            Ok(ParsedRow::Event { event, .. }) => Ok(event),
            Ok(ParsedRow::Blank) => panic!("no row of a table is blank"),
            Err(why) => Err(why),
        };
        rows(reader, options).unwrap().map(|row| event(row.unwrap())).collect()
    }

    #[test]
    fn a_column_is_of_numbers_if_its_values_are() {
        let text =
            "tenant_id;zip;amount;id;none\r\n7;01234;1.5;9007199254740993;\r\n8;99;-2;1;2.5\r\n";
        let rows = read(text, &ColumnOptions::default());
        assert_eq!(
            json!(rows[0].as_ref().unwrap()),
            json!({"tenant_id": "7", "string_props": {"zip": "01234", "id": "9007199254740993"}, "numeric_props": {"amount": 1.5}})
        );
        let second = rows[1].as_ref().unwrap();
        assert_eq!(second["string_props"], json!({"zip": "99", "id": "1"}));
        assert_eq!(second["numeric_props"]["none"], 2.5);
        // One that is empty for long is decided by its first value.
        let mut text = "tenant_id,discount\n".to_owned();
        text += &"t,\n".repeat(SAMPLED + 5);
        text += "t,2.5\nt,x\n";
        let rows = read(&text, &ColumnOptions::default());
        assert_eq!(rows[SAMPLED + 5].as_ref().unwrap()["numeric_props"]["discount"], 2.5);
        assert!(rows[SAMPLED + 6].as_ref().unwrap_err().contains("discount is \"x\""));
    }

    #[test]
    fn a_row_that_does_not_fit_is_refused_with_its_reason() {
        let mut text = "tenant_id,age\n".to_owned();
        (0..SAMPLED).for_each(|n| text += &format!("t,{n}\n"));
        text += "t,old\nt\nt,\"5\"\n";
        let rows = read(&text, &ColumnOptions::default());
        let why = rows[SAMPLED].as_ref().unwrap_err();
        assert!(why.starts_with("age is \"old\"") && why.contains("--text age"), "{why}");
        assert_eq!(rows[SAMPLED + 1].as_ref().unwrap_err(), "1 values of 2 columns");
        assert_eq!(rows[SAMPLED + 2].as_ref().unwrap()["numeric_props"]["age"], 5.0);
        let texts = ColumnOptions { texts: vec!["age".into()], ..ColumnOptions::default() };
        assert_eq!(read(&text, &texts)[0].as_ref().unwrap()["string_props"]["age"], "0");
    }

    #[test]
    fn quotes_that_are_not_closed_take_nothing_with_them_in_silence() {
        let rows =
            read("tenant_id,note\na,\"x \"\"y\"\"\nz\"\nb,5\" pipe\n", &ColumnOptions::default());
        assert_eq!(rows[0].as_ref().unwrap()["string_props"]["note"], "x \"y\"\nz");
        assert_eq!(rows[1].as_ref().unwrap()["string_props"]["note"], "5\" pipe");
        let rows = read("tenant_id,note\na,x\nb,\"oops\nc,y\nd,z\n", &ColumnOptions::default());
        assert_eq!(rows.len(), 2);
        assert!(rows[1].as_ref().unwrap_err().contains("not closed"));
        let mut long = "tenant_id,note\na,x\nb,\"oops\n".to_owned();
        long += &"c,y\n".repeat(ROW_BYTES_MAX);
        let stream = super::rows(Box::new(Cursor::new(long)), &ColumnOptions::default()).unwrap();
        let last = stream.last().unwrap().unwrap_err();
        assert!(
            format!("{last:#}").contains("line 3") && format!("{last:#}").contains("not closed"),
            "{last:#}"
        );
    }
}
