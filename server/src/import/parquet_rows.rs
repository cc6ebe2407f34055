//! Parquet: columns have types, so that numbers are numbers and times are times.
//!
//! ```text
//! account: string, at: timestamp, amount: double, labels: map<string, string>
//! ```
//!
//! A column of maps (`string_props`, or `labels` above) gives a property for each of its keys.
//!
//! ```text
//! account      BYTE_ARRAY (UTF8)           "acme"                          Text
//! at           INT64 (TIMESTAMP_MICROS)    1740823200000000                Instant(1740823200000)
//! amount       DOUBLE                      12.5                            Number
//! count        INT64                       9007199254740993                Integer, each digit of which counts in an id
//! request      FIXED_LEN_BYTE_ARRAY(16), UUID                              Text("0190aaaa-…")
//! labels       MAP<string, string>         {"plan": "pro"}                 string_props.plan
//! tags         LIST                        ["a", "b"]                      refused: tags has values in values; leave it out with --ignore tags
//! ```

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    path::Path,
    sync::Arc,
};

use anyhow::{Context as _, bail};
use parquet::{
    basic::{LogicalType, Type as PhysicalType},
    file::reader::{FileReader as _, SerializedFileReader},
    record::{Field, Row as Record, reader::RowIter},
    schema::types::Type,
};
use serde_json::{Map, Value as Json};

use super::{
    columns::{Cell, ColumnOptions, TableColumns, add_property, is_nothing},
    rows::{ParsedRow, Position, Row, RowStream, open_file},
};

/// The rows of a file, and how many there are.
///
/// Errors: a file that is not Parquet, and those of [`TableColumns::new`].
///
/// Standard input is refused, since Parquet has its metadata at the end.
pub fn rows(path: &Path, options: &ColumnOptions) -> anyhow::Result<(RowStream, Position)> {
    if path == Path::new("-") {
        bail!("Parquet is read from its end: it needs a file, and not standard input");
    }
    let name = path.display().to_string();
    let file = open_file(path)?;
    let reader = guarded(|| SerializedFileReader::new(file).map_err(Into::into));
    let reader = reader.with_context(|| format!("{name} is not a Parquet file"))?;
    let metadata = reader.metadata().file_metadata();
    let total = u64::try_from(metadata.num_rows()).unwrap_or_default();
    let schema = metadata.schema();
    let all: Vec<String> =
        schema.get_fields().iter().map(|field| field.name().to_owned()).collect();
    // Options may name a column that is left out.
    TableColumns::new(&all, options)?;
    // What is left out is not read: it may be of a type that cannot be.
    let is_read = |field: &&Arc<Type>| !options.ignored.iter().any(|name| name == field.name());
    let fields: Vec<Arc<Type>> = schema.get_fields().iter().filter(is_read).cloned().collect();
    let names: Vec<String> = fields.iter().map(|field| field.name().to_owned()).collect();
    let uuids = fields.iter().map(|field| is_uuid(field)).collect();
    let named = ColumnOptions { ignored: Vec::new(), ..options.clone() };
    let columns = TableColumns::new(&names, &named)?;
    let projection = Type::group_type_builder(schema.name()).with_fields(fields).build()?;
    let records = RowIter::from_file_into(Box::new(reader)).project(Some(projection))?;
    let position = Position::of(Some(total));
    let rows = ParquetRows { records, columns, uuids, read: position.clone(), count: 0, total };
    Ok((Box::new(rows), position))
}

/// The library counts rows by column, and ends in silence where a file is cut: so the rows are compared with the metadata.
struct ParquetRows {
    records: RowIter<'static>,
    columns: TableColumns,
    /// Which columns are UUIDs.
    uuids: Vec<bool>,
    read: Position,
    count: u64,
    total: u64,
}

impl Iterator for ParquetRows {
    type Item = anyhow::Result<Row>;

    fn next(&mut self) -> Option<Self::Item> {
        let read = guarded(|| {
            let record = self.records.next().transpose()?;
            Ok(record.map(|record| {
                let event = event(&record, &self.columns, &self.uuids)?;
                // It takes as long as all else, and only the id of an event without one needs it.
                let has_id = event.get("event_id").is_some_and(|id| !is_nothing(id));
                let raw = if has_id { Vec::new() } else { record.to_string().into_bytes() };
                Ok(ParsedRow::Event { event, raw, is_json: false })
            }))
        });
        match read {
            Ok(Some(row)) => {
                self.count += 1;
                self.read.advance(1);
                Some(Ok(row))
            }
            Ok(None) if self.count < self.total => {
                let (count, total) = (self.count, self.total);
                self.count = self.total;
                Some(Err(anyhow::anyhow!("the file says it has {total} rows, and has {count}")))
            }
            Ok(None) => None,
            Err(error) => {
                self.count = self.total;
                Some(Err(error))
            }
        }
    }
}

/// Runs a call of the library, which panics at values that it has no form for, and at some damage.
///
/// A panic of the library is an error here, and ends the import as any file that cannot be read on.
fn guarded<T>(call: impl FnOnce() -> anyhow::Result<T>) -> anyhow::Result<T> {
    catch_unwind(AssertUnwindSafe(call)).unwrap_or_else(|_| {
        bail!("the file is damaged, or has a column of a type that cannot be read: leave it out with --ignore")
    })
}

/// Whether a column has UUIDs, which the library gives as bytes.
fn is_uuid(field: &Type) -> bool {
    field.is_primitive()
        && field.get_physical_type() == PhysicalType::FIXED_LEN_BYTE_ARRAY
        && matches!(field.get_basic_info().logical_type_ref(), Some(LogicalType::Uuid))
}

/// The event of a record: its columns, then the entries of its maps.
///
/// Errors: a value that no event can have, by the name of its column; a key of a map that is no string.
fn event(
    record: &Record,
    columns: &TableColumns,
    uuids: &[bool],
) -> Result<Map<String, Json>, String> {
    let mut cells = Vec::with_capacity(record.len());
    let mut maps = Vec::new();
    for ((name, field), is_uuid) in record.get_column_iter().zip(uuids) {
        cells.push(match field {
            Field::MapInternal(map) => {
                maps.push(map);
                Cell::Nothing
            }
            Field::Bytes(bytes) if *is_uuid => match uuid::Uuid::from_slice(bytes.data()) {
                Ok(id) => Cell::Text(id.to_string()),
                Err(_) => return Err(format!("{name} is not a UUID")),
            },
            _ => cell(name, field)?,
        });
    }
    let mut event = columns.event(cells.into_iter())?;
    for map in maps {
        for (key, value) in map.entries() {
            let Field::Str(key) = key else {
                return Err(format!("{key} is a key and not a string"));
            };
            add_property(&mut event, key, cell(key, value)?)?;
        }
    }
    Ok(event)
}

/// A value of a column. Errors: a list or a struct, bytes that are no text.
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
            Err(_) => return Err(format!("{name} is {field}, which is not a number")),
        },
        Field::Str(text) => Cell::Text(text.clone()),
        Field::Bytes(bytes) => match bytes.as_utf8() {
            Ok(text) => Cell::Text(text.to_owned()),
            Err(_) => return Err(format!("{name} is bytes that are not text")),
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
