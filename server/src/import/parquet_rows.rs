//! Parquet: columns have types, so that numbers are numbers and times are times.
//!
//! ```text
//! account: string, at: timestamp, amount: double, labels: map<string, string>
//! ```
//!
//! A column of maps (`string_props`, or `labels` above) gives a property for each of its keys.

use std::path::Path;

use anyhow::{Context as _, bail};
use parquet::{
    file::reader::{FileReader as _, SerializedFileReader},
    record::{Field, Row as Record},
};
use serde_json::{Map, Value as Json};

use super::{
    columns::{Cell, ColumnOptions, TableColumns, add_property},
    rows::{Position, Row, RowStream, open_file},
};

/// The rows of a file, and how many there are.
///
/// Errors: a file that is not Parquet, and those of [`TableColumns::new`].
pub fn rows(path: &Path, options: &ColumnOptions) -> anyhow::Result<(RowStream, Position)> {
    if path == Path::new("-") {
        bail!("Parquet is read from its end: it needs a file, and not standard input");
    }
    let name = path.display();
    let reader = SerializedFileReader::new(open_file(path)?)
        .with_context(|| format!("{name} is no Parquet file"))?;
    let metadata = reader.metadata().file_metadata();
    let position = Position::of(u64::try_from(metadata.num_rows()).ok());
    let fields = metadata.schema().get_fields();
    let names: Vec<String> = fields.iter().map(|field| field.name().to_owned()).collect();
    let columns = TableColumns::new(&names, options)?;
    let ignored = options.ignored.clone();
    let records = reader.into_iter();
    let read = position.clone();
    let rows = records.map(move |record| {
        read.advance(1);
        let record = record.context("cannot read on")?;
        Ok(row(&record, &columns, &ignored))
    });
    Ok((Box::new(rows), position))
}

fn row(record: &Record, columns: &TableColumns, ignored: &[String]) -> Row {
    let mut cells = Vec::with_capacity(record.len());
    let mut maps = Vec::new();
    for (name, field) in record.get_column_iter() {
        let is_ignored = ignored.contains(name);
        cells.push(match field {
            Field::MapInternal(map) if !is_ignored => {
                maps.push(map);
                Cell::Nothing
            }
            _ if is_ignored => Cell::Nothing,
            _ => cell(name, field)?,
        });
    }
    let mut event: Map<String, Json> = columns.event(cells.into_iter())?;
    for map in maps {
        for (key, value) in map.entries() {
            let Field::Str(key) = key else {
                return Err(format!("{key} is a key that is no string"));
            };
            add_property(&mut event, key, cell(key, value)?)?;
        }
    }
    Ok(event)
}

fn cell(name: &str, field: &Field) -> Result<Cell, String> {
    Ok(match field {
        Field::Null => Cell::Nothing,
        Field::Bool(value) => Cell::Boolean(*value),
        Field::Byte(number) => Cell::Integer((*number).into()),
        Field::Short(number) => Cell::Integer((*number).into()),
        Field::Int(number) => Cell::Integer((*number).into()),
        Field::Long(number) => Cell::Integer(*number),
        Field::UByte(number) => Cell::Integer((*number).into()),
        Field::UShort(number) => Cell::Integer((*number).into()),
        Field::UInt(number) => Cell::Integer((*number).into()),
        Field::ULong(number) => match i64::try_from(*number) {
            Ok(number) => Cell::Integer(number),
            Err(_) => Cell::Number(*number as f64),
        },
        Field::Float(number) => Cell::Number((*number).into()),
        Field::Double(number) => Cell::Number(*number),
        Field::Float16(_) | Field::Decimal(_) => match field.to_string().parse() {
            Ok(number) => Cell::Number(number),
            Err(_) => return Err(format!("{name} is {field}, which is no number")),
        },
        Field::Str(text) => Cell::Text(text.clone()),
        Field::Bytes(bytes) => match bytes.as_utf8() {
            Ok(text) => Cell::Text(text.to_owned()),
            // An id of sixteen bytes, in the form that people read.
            Err(_) => match uuid::Uuid::from_slice(bytes.data()) {
                Ok(id) => Cell::Text(id.to_string()),
                Err(_) => return Err(format!("{name} is bytes that are no text")),
            },
        },
        Field::TimestampMillis(ms) => Cell::Instant(*ms),
        Field::TimestampMicros(us) => Cell::Instant(us.div_euclid(1_000)),
        Field::Date(_) | Field::TimeMillis(_) | Field::TimeMicros(_) => {
            Cell::Text(field.to_string().trim_matches('"').to_owned())
        }
        Field::Group(_) | Field::ListInternal(_) | Field::MapInternal(_) => {
            return Err(format!("{name} has values in values; leave it out with --ignore {name}"));
        }
    })
}
