//! Texts as numbers: each text of a column has one for as long as the statement runs.
//!
//! Rows are grouped by numbers several times as fast as by texts, and a segment has them already: its dictionary's
//! codes need only be translated, once a text and not once a row.

use std::{collections::HashMap, sync::Arc};

use arrow::{
    array::{ArrayRef, AsArray as _, StringViewArray, UInt32Array},
    buffer::NullBuffer,
    compute::take,
    datatypes::{DataType, UInt32Type},
    error::{ArrowError, Result},
};
use datafusion::{
    common::hash_utils::RandomState,
    error::Result as PlanResult,
    logical_expr::{
        ColumnarValue, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
    },
};
use inlay_engine::rows::{TextTable, Values};
use parking_lot::Mutex;

use super::arrays::strings;

/// The numbers of a column's texts.
#[derive(Default)]
pub struct Codes {
    texts: Mutex<Texts>,
    /// Dictionaries that were translated, by their addresses; they stay, so that these stay theirs.
    translated: Mutex<HashMap<usize, Translated>>,
    /// All texts as an array, made when they are shown.
    shown: Mutex<Option<ArrayRef>>,
}

/// A dictionary, and the number of each of its texts.
type Translated = (Arc<TextTable>, Arc<[u32]>);

#[derive(Default)]
struct Texts {
    numbers: HashMap<Box<[u8]>, u32, RandomState>,
    list: TextTable,
}

impl Texts {
    fn number(&mut self, text: &[u8]) -> Result<u32> {
        if let Some(number) = self.numbers.get(text) {
            return Ok(*number);
        }
        // Lists of strings count their bytes in 31 bits.
        if self.list.bytes.len() + text.len() > i32::MAX as usize {
            return Err(ArrowError::MemoryError("too many texts".to_owned()));
        }
        let number = self.list.len() as u32;
        self.list.push(text);
        self.numbers.insert(text.into(), number);
        Ok(number)
    }
}

impl std::fmt::Debug for Codes {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Codes").finish_non_exhaustive()
    }
}

impl Codes {
    /// Values of texts as their numbers. `is_shared` tells that other rows have the same dictionary.
    ///
    /// Errors: when there are too many texts.
    pub fn array(&self, values: &Values, is_shared: bool) -> Result<ArrayRef> {
        let numbers: Vec<Option<u32>> = match values {
            Values::Codes(codes, table) => {
                let translated = self.translated(table, is_shared)?;
                let number = |code: &u32| {
                    code.checked_sub(1).map(|at| translated.get(at as usize).copied().unwrap_or(0))
                };
                if !codes.contains(&0) {
                    let all = codes.iter().map(|code| number(code).unwrap_or(0));
                    return Ok(Arc::new(UInt32Array::new(all.collect(), None)));
                }
                codes.iter().map(number).collect()
            }
            Values::Texts(table) => {
                let mut texts = self.texts.lock();
                let number = |at: usize| match table.at(at) {
                    [] => Ok(None),
                    text => texts.number(text).map(Some),
                };
                (0..table.len()).map(number).collect::<Result<_>>()?
            }
            Values::Times(_) | Values::Numbers(_) => {
                return Err(ArrowError::InvalidArgumentError("no column of texts".to_owned()));
            }
        };
        let nulls = NullBuffer::from_iter(numbers.iter().map(Option::is_some));
        let numbers = numbers.into_iter().map(Option::unwrap_or_default).collect();
        Ok(Arc::new(UInt32Array::new(numbers, Some(nulls))))
    }

    /// The number of each text of a dictionary.
    fn translated(&self, table: &Arc<TextTable>, is_shared: bool) -> Result<Arc<[u32]>> {
        let key = Arc::as_ptr(table).addr();
        if is_shared && let Some((_, known)) = self.translated.lock().get(&key) {
            return Ok(Arc::clone(known));
        }
        let mut texts = self.texts.lock();
        let numbers = (0..table.len()).map(|at| texts.number(table.at(at)));
        let numbers: Arc<[u32]> = numbers.collect::<Result<_>>()?;
        drop(texts);
        if is_shared {
            let kept = (Arc::clone(table), Arc::clone(&numbers));
            self.translated.lock().insert(key, kept);
        }
        Ok(numbers)
    }

    /// The texts of numbers.
    fn texts(&self, numbers: &UInt32Array) -> Result<ArrayRef> {
        let all = {
            let (mut shown, texts) = (self.shown.lock(), self.texts.lock());
            match &*shown {
                Some(all) if all.len() == texts.list.len() => Arc::clone(all),
                _ => {
                    let all: ArrayRef = Arc::new(StringViewArray::from(&strings(&texts.list)?));
                    Arc::clone(shown.insert(all))
                }
            }
        };
        take(&all, numbers, None)
    }
}

/// The function that makes texts of a column's numbers.
pub fn text_of(codes: &Arc<Codes>) -> ScalarUDF {
    let signature = Signature::exact(vec![DataType::UInt32], Volatility::Immutable);
    ScalarUDF::new_from_impl(TextOf { codes: Arc::clone(codes), signature })
}

#[derive(Debug)]
struct TextOf {
    codes: Arc<Codes>,
    signature: Signature,
}

impl PartialEq for TextOf {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.codes, &other.codes)
    }
}

impl Eq for TextOf {}

impl std::hash::Hash for TextOf {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        Arc::as_ptr(&self.codes).hash(state);
    }
}

impl ScalarUDFImpl for TextOf {
    fn name(&self) -> &str {
        "text_of"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> PlanResult<DataType> {
        Ok(DataType::Utf8View)
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> PlanResult<ColumnarValue> {
        let arrays = ColumnarValue::values_to_arrays(&args.args)?;
        Ok(ColumnarValue::Array(self.codes.texts(arrays[0].as_primitive::<UInt32Type>())?))
    }
}
