//! Values of the engine as Arrow arrays.
//!
//! Strings are views into the dictionary of their segment, so a row costs sixteen bytes whatever its text.
//!
//! ```text
//! dictionary of a segment   bytes "freeproteam", ends 4 7 11
//! rows                      codes 2 0 1 3        0 for a row that lacks the property
//! array                     "pro" null "free" "team"
//!
//! numbers                   1.5 NaN -0.0         NaN for a row that lacks the property
//! array                     1.5 null 0.0
//!
//! rows of a map             {"plan": "pro"}, {}, {"org": "o1", "plan": "free"}
//! map array                 keys plan org plan; values pro o1 free; offsets 0 1 1 3
//! ```

use std::{collections::HashMap, sync::Arc};

use arrow::{
    array::{
        Array as _, ArrayRef, AsArray as _, Float64Array, MapArray, StringArray, StringBuilder,
        StringViewArray, StructArray, TimestampMillisecondArray, UInt32Array,
    },
    buffer::{Buffer, NullBuffer, OffsetBuffer},
    compute::take,
    datatypes::{DataType, Field, Float64Type},
    error::{ArrowError, Result},
};
use inlay_engine::rows::{TextTable, Values};
use parking_lot::Mutex;

use super::schema::entries_of;

/// A column that holds no texts but its own: each operator above counts what a column holds.
///
/// A view of 16 bytes may hold a whole dictionary in memory. An operator that keeps a few rows of each batch would keep, and count, all dictionaries.
pub fn with_own_texts(column: ArrayRef) -> ArrayRef {
    match column.as_string_view_opt() {
        Some(texts) if !texts.data_buffers().is_empty() => Arc::new(texts.gc()),
        _ => column,
    }
}

/// Dictionaries as arrays, each made once.
///
/// By the address of the engine's table: the engine hands out the same table for all morsels of a segment.
#[derive(Default)]
pub struct Dictionaries(Mutex<HashMap<usize, (Arc<TextTable>, ArrayRef)>>);

impl Dictionaries {
    /// A dictionary's strings. It stays in memory with the table, so that its address stays its own.
    fn of(&self, table: &Arc<TextTable>) -> Result<ArrayRef> {
        let key = Arc::as_ptr(table).addr();
        if let Some((_, array)) = self.0.lock().get(&key) {
            return Ok(Arc::clone(array));
        }
        let array: ArrayRef = Arc::new(StringViewArray::from(&strings(table)?));
        self.0.lock().insert(key, (Arc::clone(table), Arc::clone(&array)));
        Ok(array)
    }

    /// Values as an array.
    /// For columns whose rows share a dictionary: the array of its strings is made at the first morsel.
    ///
    /// Errors: when texts are not UTF-8.
    pub fn array(&self, values: Values) -> Result<ArrayRef> {
        Self::made(values, |table| self.of(table))
    }

    /// The same, of a dictionary that nobody else has.
    /// Such as the users of one morsel: nothing is remembered.
    ///
    /// Errors: when texts are not UTF-8.
    pub fn once(&self, values: Values) -> Result<ArrayRef> {
        Self::made(values, |table| Ok(Arc::new(StringViewArray::from(&strings(table)?))))
    }

    fn made(
        values: Values,
        dictionary: impl Fn(&Arc<TextTable>) -> Result<ArrayRef>,
    ) -> Result<ArrayRef> {
        Ok(match values {
            Values::Times(times) => Arc::new(TimestampMillisecondArray::from(times)),
            Values::Numbers(numbers) => Arc::new(number_array(numbers)),
            Values::Codes(codes, table) => {
                let nulls = codes
                    .contains(&0)
                    .then(|| NullBuffer::from_iter(codes.iter().map(|code| *code > 0)));
                // A row without the property has the key 0, which its null hides.
                let keys: Vec<u32> = codes.into_iter().map(|code| code.saturating_sub(1)).collect();
                if table.is_empty() {
                    return Ok(Arc::new(StringViewArray::new_null(keys.len())));
                }
                take(&dictionary(&table)?, &UInt32Array::new(keys.into(), nulls), None)?
            }
            // A string for each row: the bytes are taken over as they are, and an empty one is null.
            Values::Texts(table) => {
                let texts = strings(&table)?;
                let is_there = (0..table.len()).map(|at| !table.at(at).is_empty());
                let (offsets, bytes, _) = texts.into_parts();
                let nulls = NullBuffer::from_iter(is_there);
                Arc::new(StringViewArray::from(&StringArray::try_new(offsets, bytes, Some(nulls))?))
            }
        })
    }
}

/// The strings of a table.
/// Its `ends` are the offsets of an Arrow array behind a first 0, so only they are converted; Arrow checks that the bytes are UTF-8.
///
/// Errors: when they are too large, or not UTF-8.
pub fn strings(table: &TextTable) -> Result<StringArray> {
    let ends = table.ends.iter().map(|end| i32::try_from(*end));
    let ends = ends.collect::<std::result::Result<Vec<i32>, _>>();
    let ends = ends.map_err(|_| ArrowError::MemoryError("too many bytes of strings".to_owned()))?;
    let offsets = std::iter::once(0).chain(ends).collect::<Vec<i32>>();
    StringArray::try_new(
        OffsetBuffer::new(offsets.into()),
        Buffer::from_slice_ref(&table.bytes),
        None,
    )
}

/// The numbers of an array of doubles; NaN for null.
pub fn doubles(array: &ArrayRef) -> Vec<f64> {
    let numbers = array.as_primitive::<Float64Type>().iter();
    numbers.map(|number| number.unwrap_or(f64::NAN)).collect()
}

/// Numbers as an array; NaN stands for null.
pub fn number_array(mut numbers: Vec<f64>) -> Float64Array {
    // There is one zero: some operators of the library would tell two of them apart.
    numbers.iter_mut().for_each(|number| *number += 0.0);
    let nulls = numbers
        .iter()
        .any(|number| number.is_nan())
        .then(|| NullBuffer::from_iter(numbers.iter().map(|number| !number.is_nan())));
    Float64Array::new(numbers.into(), nulls)
}

/// A map a row, of named columns; what a row lacks is not in its map.
///
/// `columns` are all properties of a source that some row has, each as long as there are rows; `value` is the type of all of them.
///
/// Errors: when they are too many to be counted.
pub fn map_array(columns: &[(&str, ArrayRef)], rows: usize, value: DataType) -> Result<ArrayRef> {
    let mut keys = StringBuilder::new();
    let mut indexes: Vec<(usize, usize)> = Vec::new();
    let mut ends = vec![0i32];
    for row in 0..rows {
        for (at, (name, column)) in columns.iter().enumerate() {
            if column.is_valid(row) {
                keys.append_value(name);
                indexes.push((at, row));
            }
        }
        let end = i32::try_from(indexes.len())
            .map_err(|_| ArrowError::MemoryError("too many properties".to_owned()))?;
        ends.push(end);
    }
    let arrays: Vec<&dyn arrow::array::Array> =
        columns.iter().map(|(_, column)| column.as_ref()).collect();
    let values = if arrays.is_empty() {
        arrow::array::new_empty_array(&value)
    } else {
        arrow::compute::interleave(&arrays, &indexes)?
    };
    let fields = entries_of(value);
    let entries =
        StructArray::try_new(fields.clone(), vec![Arc::new(keys.finish()), values], None)?;
    let field = Arc::new(Field::new("entries", DataType::Struct(fields), false));
    Ok(Arc::new(MapArray::try_new(field, OffsetBuffer::new(ends.into()), entries, None, false)?))
}
