//! Rows in the form that was asked for.
//!
//! Of `SELECT tenant_id, count(*), count(*), '=1+1' AS f, '-5' AS g, NULL AS i …` one row:
//!
//! ```text
//! columns   [{"name":"tenant_id","type":"VARCHAR"},{"name":"count","type":"BIGINT"},{"name":"count","type":"BIGINT"},…]
//! Rows      ["t0",286,286,"=1+1","-5",null]                                    the next one as ,["t1",…]
//! Lines     {"tenant_id":"t0","count":286,"count_2":286,"f":"=1+1","g":"-5","i":null}
//! Csv       tenant_id,count,count,f,g,i
//!           t0,286,286,'=1+1,-5,                                               lines end in CR LF
//! ```
//!
//! Values that JSON does not have are strings:
//!
//! ```text
//! BIGINT 9007199254740993      "9007199254740993"              beyond 2⁵³ JavaScript would round it
//! DOUBLE 1e308 * 10            "Infinity"                       and "-Infinity", "NaN"
//! TIMESTAMP                    "2026-11-20T10:17:36.789Z"       with a zone, too: the same instant in UTC
//! … with microseconds          "2026-11-20T10:17:36.789001Z"
//! DATE, TIME, INTERVAL         "2026-01-02", "10:00:00", "1 days"
//! DECIMAL(5,2)                 "1.50"
//! BLOB                         "\\x00ff"
//! lists; maps and structs      ["model","plan"], {"plan":"free"}, {"k":1}
//! ```

use std::{fmt::Write as _, sync::Arc};

use arrow::{
    array::{Array, ArrayRef, AsArray as _, RecordBatch},
    datatypes::{
        DataType, Date32Type, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type,
        Schema, TimeUnit, UInt8Type, UInt16Type, UInt32Type, UInt64Type,
    },
    error::ArrowError,
    util::display::{ArrayFormatter, FormatOptions},
};
use serde_json::{Map, Value};

use inlay_sql_protocol::{Ask, Done, FRAME_BYTES_MAX, Form, Frame, OutColumn, Reason, Refusal};

use crate::gate::shown;

/// Bytes that are collected before they are sent.
/// One frame for some thousand small rows. A row that is larger makes a frame together with what was collected, which has a megabyte at most.
const SEND_BYTES: usize = 64 * 1024;
/// Integers from here on are no numbers any more in JavaScript.
/// 2⁵³ itself still is one; what is larger, or less than its negative, is written as a string.
const SAFE_INTEGER: u64 = 1 << 53;

/// Where an answer goes.
/// The pipe to the server in a worker, a list in tests.
pub trait Out: Send {
    /// Sends a part of it.
    ///
    /// Errors: when nobody takes it any more.
    fn send(&mut self, frame: Frame) -> std::io::Result<()>;
}

/// Writes rows until there are enough.
///
/// ```text
/// new      sends Frame::Columns; for CSV its first line is collected
/// write    collects rows, and sends Frame::Rows each 64 KiB
/// finish   sends the rest, and returns how many rows there were
/// ```
pub struct Writer<'a> {
    out: &'a mut dyn Out,
    form: Form,
    /// Names of the columns in objects, each there once: `count`, `count_2`.
    names: Vec<String>,
    /// Rows after which the answer is truncated.
    rows_max: usize,
    /// Bytes that rows may still have; the line of names in CSV is not counted.
    bytes_left: usize,
    /// Rows so far, sent or collected.
    rows: usize,
    /// Whether there was a row more than the limits allow.
    truncated: bool,
    /// Rows that have not been sent.
    buffer: Vec<u8>,
}

impl<'a> Writer<'a> {
    /// Sends the columns.
    ///
    /// `schema` has the names of the plan, which may end in a position that is not shown (`gate/names.rs`).
    ///
    /// Errors: when nobody takes them.
    pub fn new(schema: &Schema, ask: &Ask, out: &'a mut dyn Out) -> Result<Self, Refusal> {
        let columns = schema.fields().iter().map(|field| OutColumn {
            name: shown(field.name()).to_owned(),
            kind: sql_type(field.data_type()),
        });
        let columns: Vec<OutColumn> = columns.collect();
        // In objects each name is there once.
        let mut names: Vec<String> = Vec::new();
        for column in &columns {
            let mut name = column.name.clone();
            let mut number = 2;
            while names.contains(&name) {
                name = format!("{}_{number}", column.name);
                number += 1;
            }
            names.push(name);
        }
        let mut writer = Self {
            out,
            form: ask.form,
            names,
            rows_max: ask.rows_max,
            bytes_left: ask.bytes_max,
            rows: 0,
            truncated: false,
            buffer: Vec::new(),
        };
        let heads: Vec<String> = columns.iter().map(|column| column.name.clone()).collect();
        writer.send(Frame::Columns(columns))?;
        if writer.form == Form::Csv {
            let heads: Vec<String> = heads.into_iter().map(|head| cell(head.into())).collect();
            let line = csv_line(&heads)?;
            writer.buffer.extend(line);
        }
        Ok(writer)
    }

    fn send(&mut self, frame: Frame) -> Result<(), Refusal> {
        self.out.send(frame).map_err(|error| Refusal::new(Reason::Broken, error.to_string()))
    }

    /// Writes rows. Whether more are wanted.
    ///
    /// With `rows_max` 3 the fourth row is not written, `truncated` is set, and nothing more is computed by the caller.
    ///
    /// Errors: a row that is too large, or nobody who takes it.
    pub fn write(&mut self, batch: &RecordBatch) -> Result<bool, Refusal> {
        let options = FormatOptions::new().with_null("");
        let columns: Vec<ArrayRef> = batch.columns().iter().map(in_utc).collect();
        let formats = columns.iter().map(|array| ArrayFormatter::try_new(array, &options));
        let formats = formats.collect::<Result<Vec<_>, _>>().map_err(unwritable)?;
        for row in 0..batch.num_rows() {
            if self.rows == self.rows_max {
                self.truncated = true;
                return Ok(false);
            }
            let mut values = Vec::with_capacity(formats.len());
            for (array, format) in columns.iter().zip(&formats) {
                values.push(value(array, row, format).map_err(unwritable)?);
            }
            let line = self.line(values)?;
            // What is collected by now is less than `SEND_BYTES`, so both fit into a frame.
            if line.len() > FRAME_BYTES_MAX - SEND_BYTES {
                let message = "a row of the answer has more than a megabyte";
                return Err(Refusal::new(Reason::TooLarge, message));
            }
            if line.len() > self.bytes_left {
                self.truncated = true;
                return Ok(false);
            }
            self.bytes_left -= line.len();
            self.rows += 1;
            self.buffer.extend(line);
            if self.buffer.len() >= SEND_BYTES {
                self.flush()?;
            }
        }
        Ok(true)
    }

    /// A row in the form of the answer, with what separates it from the row before.
    fn line(&self, values: Vec<Value>) -> Result<Vec<u8>, Refusal> {
        let json = |value: &Value| {
            serde_json::to_vec(value)
                .map_err(|error| Refusal::new(Reason::Broken, error.to_string()))
        };
        match self.form {
            Form::Rows => {
                let mut line = json(&Value::Array(values))?;
                if self.rows > 0 {
                    line.insert(0, b',');
                }
                Ok(line)
            }
            Form::Lines => {
                let mut line = Vec::new();
                for (name, value) in self.names.iter().zip(&values) {
                    line.push(if line.is_empty() { b'{' } else { b',' });
                    line.extend(json(&Value::from(name.as_str()))?);
                    line.push(b':');
                    line.extend(json(value)?);
                }
                line.extend_from_slice(if line.is_empty() { b"{}\n" } else { b"}\n" });
                Ok(line)
            }
            Form::Csv => {
                let cells: Vec<String> = values.into_iter().map(cell).collect();
                csv_line(&cells)
            }
        }
    }

    fn flush(&mut self) -> Result<(), Refusal> {
        if self.buffer.is_empty() {
            return Ok(());
        }
        let rows = std::mem::take(&mut self.buffer);
        self.send(Frame::Rows(rows))
    }

    /// Sends what is left, and says how it ended.
    ///
    /// Errors: when nobody takes it.
    pub fn finish(mut self) -> Result<Done, Refusal> {
        self.flush()?;
        Ok(Done { rows: self.rows, truncated: self.truncated })
    }
}

/// Cells as a line, in quotes where they hold a comma, a quote or a line break.
fn csv_line(cells: &[String]) -> Result<Vec<u8>, Refusal> {
    let broken = |error: String| Refusal::new(Reason::Broken, error);
    let mut writer =
        csv::WriterBuilder::new().terminator(csv::Terminator::CRLF).from_writer(Vec::new());
    writer.write_record(cells).map_err(|error| broken(error.to_string()))?;
    writer.into_inner().map_err(|error| broken(error.to_string()))
}

/// A value that no answer can hold, as a time in the year 300,000.
fn unwritable(error: ArrowError) -> Refusal {
    Refusal::invalid(format!("a value of the answer cannot be written: {error}"))
}

/// Times with a zone as the same instants in UTC.
fn in_utc(array: &ArrayRef) -> ArrayRef {
    let DataType::Timestamp(unit, Some(_)) = array.data_type() else { return Arc::clone(array) };
    let utc = DataType::Timestamp(*unit, Some("+00:00".into()));
    arrow::compute::cast(array, &utc).unwrap_or_else(|_| Arc::clone(array))
}

/// A cell of CSV. Text that a spreadsheet would run as a formula gets an apostrophe before it.
fn cell(value: Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) if text.starts_with(['=', '+', '-', '@', '\t', '\r']) => {
            // Large integers are texts too, and no formulas.
            if text.parse::<f64>().is_ok() { text } else { format!("'{text}") }
        }
        Value::String(text) => text,
        other => other.to_string(),
    }
}

/// A type as SQL calls it.
///
/// `BIGINT` for 64 bits with or without a sign, `VARCHAR` for strings of any representation, `VARCHAR[]` for lists of them, `MAP(VARCHAR, DOUBLE)`, `STRUCT(k
/// BIGINT)`, `DECIMAL(5,2)`.
pub fn sql_type(kind: &DataType) -> String {
    match kind {
        DataType::Null => "NULL".to_owned(),
        DataType::Boolean => "BOOLEAN".to_owned(),
        DataType::Int8 => "TINYINT".to_owned(),
        DataType::Int16 | DataType::UInt8 => "SMALLINT".to_owned(),
        DataType::Int32 | DataType::UInt16 => "INTEGER".to_owned(),
        DataType::Int64 | DataType::UInt32 | DataType::UInt64 => "BIGINT".to_owned(),
        DataType::Float16 | DataType::Float32 => "REAL".to_owned(),
        DataType::Float64 => "DOUBLE".to_owned(),
        DataType::Timestamp(_, None) => "TIMESTAMP".to_owned(),
        DataType::Timestamp(_, Some(_)) => "TIMESTAMP WITH TIME ZONE".to_owned(),
        DataType::Date32 | DataType::Date64 => "DATE".to_owned(),
        DataType::Time32(_) | DataType::Time64(_) => "TIME".to_owned(),
        DataType::Duration(_) | DataType::Interval(_) => "INTERVAL".to_owned(),
        DataType::Binary
        | DataType::LargeBinary
        | DataType::BinaryView
        | DataType::FixedSizeBinary(_) => "BLOB".to_owned(),
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => "VARCHAR".to_owned(),
        DataType::Decimal32(p, s)
        | DataType::Decimal64(p, s)
        | DataType::Decimal128(p, s)
        | DataType::Decimal256(p, s) => format!("DECIMAL({p},{s})"),
        DataType::List(item) | DataType::LargeList(item) | DataType::FixedSizeList(item, _) => {
            format!("{}[]", sql_type(item.data_type()))
        }
        DataType::Map(entries, _) => match entries.data_type() {
            DataType::Struct(fields) => {
                let types: Vec<String> =
                    fields.iter().map(|field| sql_type(field.data_type())).collect();
                format!("MAP({})", types.join(", "))
            }
            _ => "MAP".to_owned(),
        },
        DataType::Struct(fields) => {
            let parts: Vec<String> = fields
                .iter()
                .map(|field| format!("{} {}", field.name(), sql_type(field.data_type())))
                .collect();
            format!("STRUCT({})", parts.join(", "))
        }
        DataType::Dictionary(_, value) => sql_type(value),
        other => other.to_string().to_uppercase(),
    }
}

/// A value as JSON. `format` writes types that have no case of their own here, such as times of day and intervals.
///
/// Errors: a value that the calendar does not have: `CAST(2000000000 AS DATE)` is `2000000000 days since 1970 are no date`.
fn value(array: &ArrayRef, row: usize, format: &ArrayFormatter<'_>) -> Result<Value, ArrowError> {
    if array.is_null(row) {
        return Ok(Value::Null);
    }
    Ok(match array.data_type() {
        DataType::Null => Value::Null,
        DataType::Boolean => Value::Bool(array.as_boolean().value(row)),
        DataType::Int8 => array.as_primitive::<Int8Type>().value(row).into(),
        DataType::Int16 => array.as_primitive::<Int16Type>().value(row).into(),
        DataType::Int32 => array.as_primitive::<Int32Type>().value(row).into(),
        DataType::UInt8 => array.as_primitive::<UInt8Type>().value(row).into(),
        DataType::UInt16 => array.as_primitive::<UInt16Type>().value(row).into(),
        DataType::UInt32 => array.as_primitive::<UInt32Type>().value(row).into(),
        DataType::Int64 => {
            let number = array.as_primitive::<Int64Type>().value(row);
            if number.unsigned_abs() > SAFE_INTEGER {
                number.to_string().into()
            } else {
                number.into()
            }
        }
        DataType::UInt64 => {
            let number = array.as_primitive::<UInt64Type>().value(row);
            if number > SAFE_INTEGER { number.to_string().into() } else { number.into() }
        }
        DataType::Float32 => {
            let number = array.as_primitive::<Float32Type>().value(row);
            // By its shortest digits, as it is written.
            number.to_string().parse().map_or_else(|_| float(f64::from(number)), float)
        }
        DataType::Float64 => float(array.as_primitive::<Float64Type>().value(row)),
        DataType::Utf8 => array.as_string::<i32>().value(row).into(),
        DataType::LargeUtf8 => array.as_string::<i64>().value(row).into(),
        DataType::Utf8View => array.as_string_view().value(row).into(),
        DataType::Timestamp(unit, zone) => timestamp(row, *unit, zone.is_some(), format)?,
        DataType::Date32 => {
            let date = array.as_primitive::<Date32Type>();
            let date = date.value_as_date(row).ok_or_else(|| {
                ArrowError::CastError(format!("{} days since 1970 are no date", date.value(row)))
            })?;
            date.to_string().into()
        }
        DataType::Binary => hex(array.as_binary::<i32>().value(row)),
        DataType::List(_) => list(&array.as_list::<i32>().value(row))?,
        DataType::LargeList(_) => list(&array.as_list::<i64>().value(row))?,
        DataType::FixedSizeList(..) => list(&array.as_fixed_size_list().value(row))?,
        DataType::Map(..) => {
            let entries = array.as_map().value(row);
            let (keys, values) = (list(entries.column(0))?, list(entries.column(1))?);
            object(keys, values)
        }
        DataType::Struct(fields) => {
            let parts = array.as_struct();
            let mut object = Map::new();
            for (field, column) in fields.iter().zip(parts.columns()) {
                let mut all = elements(&column.slice(row, 1))?;
                object.insert(field.name().clone(), all.pop().unwrap_or_default());
            }
            Value::Object(object)
        }
        _ => format.value(row).try_to_string()?.into(),
    })
}

/// A number, or its name as a string where JSON has no number for it.
fn float(number: f64) -> Value {
    match serde_json::Number::from_f64(number) {
        Some(number) => Value::Number(number),
        None if number.is_nan() => "NaN".into(),
        None if number > 0.0 => "Infinity".into(),
        None => "-Infinity".into(),
    }
}

/// Bytes as PostgreSQL writes them: `\x00ff`.
fn hex(bytes: &[u8]) -> Value {
    let mut text = String::with_capacity(2 + bytes.len() * 2);
    text.push_str("\\x");
    for byte in bytes {
        // Writing to a string cannot fail.
        let _ = write!(text, "{byte:02x}");
    }
    text.into()
}

/// An instant as everywhere in the API: in UTC, with milliseconds, more digits only where there are any.
fn timestamp(
    row: usize,
    unit: TimeUnit,
    has_zone: bool,
    format: &ArrayFormatter<'_>,
) -> Result<Value, ArrowError> {
    let text = format.value(row).try_to_string()?;
    // Zones have become UTC.
    let text = if has_zone { text.replace("+00:00", "Z") } else { text };
    let text = text.trim_end_matches('Z');
    let (whole, parts) = text.split_once('.').unwrap_or((text, ""));
    // At least three digits behind the point, and at most nine.
    let digits = if unit == TimeUnit::Second { "" } else { parts };
    let digits = digits.trim_end_matches('0');
    Ok(format!("{whole}.{digits:0<3}Z").into())
}

/// The values of an array in order, of any type: `value` calls it for lists and structs, and it calls `value`.
fn elements(array: &ArrayRef) -> Result<Vec<Value>, ArrowError> {
    let (array, options) = (&in_utc(array), FormatOptions::new().with_null(""));
    let format = ArrayFormatter::try_new(array, &options)?;
    (0..array.len()).map(|row| value(array, row, &format)).collect()
}

fn list(array: &ArrayRef) -> Result<Value, ArrowError> {
    elements(array).map(Value::Array)
}

/// Keys and values of a map as an object. Keys that are no strings are written as JSON.
fn object(keys: Value, values: Value) -> Value {
    let (Value::Array(keys), Value::Array(values)) = (keys, values) else { return Value::Null };
    let key = |key: Value| match key {
        Value::String(text) => text,
        other => other.to_string(),
    };
    Value::Object(keys.into_iter().map(key).zip(values).collect())
}
