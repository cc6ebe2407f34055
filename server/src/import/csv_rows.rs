//! CSV with a header: separated by commas, semicolons or tabs, whichever the header has.
//!
//! Whether a property is a string or a number is decided once for its column, by its first thousand values: a number in one row
//! and a string in the next would be two properties of one name.

use std::io::{BufRead, Cursor, Read as _};

use anyhow::{Context as _, bail};
use csv::StringRecord;

use super::{
    columns::{Cell, ColumnOptions, TableColumns},
    rows::{Row, RowStream},
};

/// Rows by which the kinds of columns are decided.
const SAMPLED: usize = 1_000;
/// Bytes of the header, at most.
const HEADER_BYTES_MAX: u64 = 1 << 20;

/// The rows of a reader.
///
/// Errors: a file without a header, and those of [`TableColumns::new`].
pub fn rows(
    mut reader: Box<dyn BufRead + Send>,
    options: &ColumnOptions,
) -> anyhow::Result<RowStream> {
    let mut header = Vec::new();
    let cannot_read = "cannot read the header";
    reader.by_ref().take(HEADER_BYTES_MAX).read_until(b'\n', &mut header).context(cannot_read)?;
    let mark = b"\xef\xbb\xbf";
    let header = header.strip_prefix(mark).unwrap_or(&header).to_vec();
    let delimiter = *b",;\t".iter().max_by_key(|byte| count(&header, **byte)).unwrap_or(&b',');
    let whole = Cursor::new(header).chain(reader);
    let mut csv = csv::ReaderBuilder::new().delimiter(delimiter).flexible(true).from_reader(whole);
    let names: Vec<String> = csv.headers()?.iter().map(|name| name.trim().to_owned()).collect();
    if names.iter().all(String::is_empty) {
        bail!("the first line names the columns, and there is none");
    }
    let columns = TableColumns::new(&names, options)?;
    let mut records = csv.into_records();
    let sample: Vec<_> = records.by_ref().take(SAMPLED).collect();
    let values = |at: usize| sample.iter().flatten().filter_map(move |record| record.get(at));
    let are_numbers: Vec<bool> =
        { 0..names.len() }.map(|at| columns.may_be_number(at) && is_numeric(values(at))).collect();
    Ok(Box::new(sample.into_iter().chain(records).map(move |record| match record {
        Ok(record) => Ok(row(&record, &names, &columns, &are_numbers)),
        Err(error) if error.is_io_error() => Err(error.into()),
        Err(error) => Ok(Err(error.to_string())),
    })))
}

fn count(text: &[u8], byte: u8) -> usize {
    text.iter().filter(|other| **other == byte).count()
}

/// Whether there are values, and all of them are numbers.
fn is_numeric<'v>(values: impl Iterator<Item = &'v str>) -> bool {
    let mut values = values.filter(|value| !value.trim().is_empty()).peekable();
    values.peek().is_some() && values.all(|value| number(value).is_some())
}

/// A number as people write one: `007`, `+1` and `inf` are codes and words.
fn number(text: &str) -> Option<f64> {
    let text = text.trim();
    let digits = text.strip_prefix('-').unwrap_or(text);
    let is_code = digits.len() > 1 && digits.starts_with('0') && !digits.starts_with("0.");
    let begins = digits.starts_with(|first: char| first.is_ascii_digit());
    text.parse().ok().filter(|number: &f64| begins && !is_code && number.is_finite())
}

fn row(
    record: &StringRecord,
    names: &[String],
    columns: &TableColumns,
    are_numbers: &[bool],
) -> Row {
    if record.len() != names.len() {
        return Err(format!("{} values of {} columns", record.len(), names.len()));
    }
    let mut cells = Vec::with_capacity(names.len());
    for ((value, name), is_number) in record.iter().zip(names).zip(are_numbers) {
        cells.push(match number(value) {
            _ if value.trim().is_empty() => Cell::Nothing,
            _ if !is_number => Cell::Text(value.to_owned()),
            Some(number) => Cell::Number(number),
            None => {
                return Err(format!(
                    "{name} is {value:?}, and a number in the rows before: with --text {name} it is a string in all"
                ));
            }
        });
    }
    columns.event(cells.into_iter())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(text: &str, options: &ColumnOptions) -> Vec<Row> {
        let reader = Box::new(Cursor::new(text.to_owned()));
        rows(reader, options).unwrap().map(Result::unwrap).collect()
    }

    #[test]
    fn a_column_is_of_numbers_if_its_values_are() {
        let text = "\u{feff}tenant_id;zip;amount;none\r\n7;01234;1.5;\r\n8;99;-2;\r\n";
        let rows = read(text, &ColumnOptions::default());
        let first = rows[0].as_ref().unwrap();
        assert_eq!(
            json!(first),
            json!({"tenant_id": "7", "string_props": {"zip": "01234"}, "numeric_props": {"amount": 1.5}})
        );
        assert_eq!(rows[1].as_ref().unwrap()["string_props"]["zip"], "99");
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
}
