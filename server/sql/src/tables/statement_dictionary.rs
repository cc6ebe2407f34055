//! The dictionary of one statement: each text of a column has a code for as long as the statement runs, in all segments.
//!
//! Rows are grouped by codes several times as fast as by texts. A segment's dictionary has codes of its own, which are
//! translated once a text and not once a row.
//!
//! Hundreds of thousands of users do not fit into the processor's caches. So the dictionary has parts by hashes, and texts are looked up
//! in batches, part by part: one lock for each part, whose table is small, and look-ups that do not wait for each other.
//!
//! ```text
//! SELECT string_props['plan'], count(*) FROM events GROUP BY 1
//!
//! segment 1, dictionary   free pro team      codes of the segment 1 2 3    numbers of the statement 5 0 16
//! segment 2, dictionary   enterprise pro     codes of the segment 1 2      numbers of the statement 21 0
//! group by numbers        5: 3, 0: 8, 16: 1, 21: 4
//! text_of                 free 3, pro 8, team 1, enterprise 4
//! ```
//!
//! A number says where its string is: 37 is the third one (37 / 16 = 2, counted from 0) of part 5 (37 mod 16). Which part a string is in follows from its hash,
//! so numbers have no order and no meaning in another statement.

use std::{
    collections::HashMap,
    hash::BuildHasher as _,
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
};

use arrow::{
    array::{
        Array as _, ArrayRef, AsArray as _, StringArray, StringViewArray, UInt32Array, UInt64Array,
    },
    buffer::NullBuffer,
    compute::take,
    datatypes::{DataType, Field, FieldRef, UInt32Type},
    error::{ArrowError, Result},
};
use datafusion_common::{Column, Result as PlanResult, hash_utils::RandomState};
use datafusion_expr::{
    ColumnarValue, Expr, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature,
    Volatility,
};
use hashbrown::HashTable;
use inlay_engine::rows::{Source, TextTable, Values};
use parking_lot::Mutex;

use super::{arrays::strings, errors::broken};

/// Stands for a user that was not met yet, and is the number of no text.
const NONE: u32 = u32::MAX;
/// Stands for a user that a thread is looking up.
/// Another thread that meets it does not wait, but looks the user up itself: both find the same number.
const PENDING: u32 = NONE - 1;
/// Parts of the texts, so that threads seldom wait for each other.
/// A batch locks each part once, for all of its strings there.
const PARTS: usize = 16;

/// The numbers of a column's texts.
///
/// It only grows: a string that has a number keeps it until the statement ends. All methods may be called by several threads.
#[derive(Default)]
pub struct StatementDictionary {
    /// Texts by their hashes: the text at index p of part k has the number p times the parts plus k.
    parts: [Mutex<Texts>; PARTS],
    /// Dictionaries that were translated, by their addresses; they stay, so that these stay theirs.
    translated: Mutex<HashMap<usize, Translated>>,
    /// The numbers of the users of sources by their indexes, as far as they were met, by the sources' addresses.
    users: Mutex<HashMap<usize, Arc<[AtomicU32]>>>,
    /// All texts as an array, part after part, and where each part begins; made when they are shown.
    shown: Mutex<Option<(Arc<StringArray>, [usize; PARTS])>>,
}

/// A dictionary, and the number of each of its texts.
type Translated = (Arc<TextTable>, Arc<[u32]>);

#[derive(Default)]
struct Texts {
    /// Finds a string of the list by its hash.
    entries: HashTable<TextEntry>,
    /// The strings of one part, in the order in which they were met.
    list: TextTable,
}

/// A text: half of its hash, which tells nearly all apart, and where it is in the list.
#[derive(Clone, Copy)]
struct TextEntry {
    /// Lower half of the hash of the string.
    hash: u32,
    /// Index in the list of the part.
    index: u32,
}

impl Texts {
    /// The index of a string in the list, which is appended if it was not met before.
    ///
    /// Errors: when the part would have more bytes than a sixteenth of 2 GiB.
    fn index(&mut self, hash: u64, text: &[u8]) -> Result<usize> {
        let Self { entries, list } = self;
        let is_it =
            |entry: &TextEntry| entry.hash == hash as u32 && list.at(entry.index as usize) == text;
        if let Some(entry) = entries.find(spread(hash as u32), is_it) {
            return Ok(entry.index as usize);
        }
        // Lists of strings count their bytes in 31 bits.
        if list.bytes.len() + text.len() > i32::MAX as usize / PARTS {
            return Err(ArrowError::MemoryError("too many texts".to_owned()));
        }
        let index = list.len();
        list.push(text);
        let entry = TextEntry { hash: hash as u32, index: index as u32 };
        entries.insert_unique(spread(entry.hash), entry, |entry| spread(entry.hash));
        Ok(index)
    }
}

/// A hash for the table, of the half that an entry has: the table takes its highest bits, too.
pub fn spread(hash: u32) -> u64 {
    u64::from(hash).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

impl std::fmt::Debug for StatementDictionary {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("StatementDictionary").finish_non_exhaustive()
    }
}

impl StatementDictionary {
    /// The number of each of some texts.
    ///
    /// In the order of the strings. Hashes are computed first and strings sorted by their parts: the table of one part stays in the processor's cache while
    /// all of its strings are looked up.
    ///
    /// Errors: when there are too many strings, or they are too long in all.
    fn numbers<'t>(&self, texts: impl Iterator<Item = &'t [u8]> + Clone) -> Result<Vec<u32>> {
        let hasher = RandomState::default();
        let hashes: Vec<u64> = texts.clone().map(|text| hasher.hash_one(text)).collect();
        // Other bits than those that a part looks for its texts by.
        let part_of = |hash: &u64| (hash >> 40) as usize % PARTS;
        let mut by_part: [Vec<(u32, &[u8])>; PARTS] = Default::default();
        for (at, (hash, text)) in hashes.iter().zip(texts).enumerate() {
            by_part[part_of(hash)].push((at as u32, text));
        }
        let mut numbers = vec![0; hashes.len()];
        for (part, texts) in by_part.iter().enumerate().filter(|(_, texts)| !texts.is_empty()) {
            let mut known = self.parts[part].lock();
            for (at, text) in texts {
                let index = known.index(hashes[*at as usize], text)?;
                let number =
                    u32::try_from(index * PARTS + part).ok().filter(|number| *number < PENDING);
                numbers[*at as usize] =
                    number.ok_or_else(|| ArrowError::MemoryError("too many texts".to_owned()))?;
            }
        }
        Ok(numbers)
    }

    /// The number of one string.
    fn number(&self, text: &[u8]) -> Result<u32> {
        Ok(self.numbers(std::iter::once(text))?.pop().unwrap_or_default())
    }

    /// Values of texts as their numbers. `is_shared` tells that other rows have the same dictionary.
    ///
    /// Codes 2 0 1 over the dictionary free, pro become the numbers of pro, null and free.
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
                let texts = (0..table.len()).map(|at| table.at(at));
                let there = texts.clone().filter(|text| !text.is_empty());
                let mut numbers = self.numbers(there)?.into_iter();
                texts.map(|text| if text.is_empty() { None } else { numbers.next() }).collect()
            }
            Values::Times(_) | Values::Numbers(_) => {
                return Err(ArrowError::InvalidArgumentError("no column of texts".to_owned()));
            }
        };
        let nulls = NullBuffer::from_iter(numbers.iter().map(Option::is_some));
        let numbers = numbers.into_iter().map(Option::unwrap_or_default).collect();
        Ok(Arc::new(UInt32Array::new(numbers, Some(nulls))))
    }

    /// Users of a source of the statement's scan, by their indexes plus 1, as their numbers.
    ///
    /// `None` where the source has no indexes for users: rows in memory. An index of 0 is a row without a user, and null here.
    ///
    /// Errors: damage of a segment; when there are too many texts.
    pub fn users(&self, source: &Source, indexes: &[u32]) -> PlanResult<Option<ArrayRef>> {
        let Some((mut texts, count)) = source.user_texts().map_err(broken)? else {
            return Ok(None);
        };
        let known = {
            let mut users = self.users.lock();
            let known = users.entry(std::ptr::from_ref(source).addr());
            // Four bytes for each user of the source, also for those that no row asks for.
            let none = || (0..count).map(|_| AtomicU32::new(NONE)).collect();
            Arc::clone(known.or_insert_with(none))
        };
        // Those that are met first are looked up together, in the order of the segment.
        let slot_of = |index: u32| known.get((index as usize).checked_sub(1)?);
        let mut pending: Vec<u32> = Vec::new();
        for &index in indexes {
            if let Some(slot) = slot_of(index).filter(|slot| slot.load(Ordering::Relaxed) == NONE) {
                slot.store(PENDING, Ordering::Relaxed);
                pending.push(index);
            }
        }
        pending.sort_unstable();
        let mut met = TextTable::default();
        for index in &pending {
            met.push(texts.at(*index as usize - 1).map_err(broken)?);
        }
        let numbers_of_met = self.numbers((0..met.len()).map(|at| met.at(at)))?;
        for (index, number) in pending.into_iter().zip(numbers_of_met) {
            slot_of(index).into_iter().for_each(|slot| slot.store(number, Ordering::Relaxed));
        }
        let mut numbers = Vec::with_capacity(indexes.len());
        for &index in indexes {
            let mut number = slot_of(index).map_or(0, |slot| slot.load(Ordering::Relaxed));
            // Another thread is about to find the same number.
            if number >= PENDING {
                number = self.number(texts.at(index as usize - 1).map_err(broken)?)?;
            }
            numbers.push(number);
        }
        let nulls = NullBuffer::from_iter(indexes.iter().map(|index| *index > 0));
        Ok(Some(Arc::new(UInt32Array::new(numbers.into(), Some(nulls)))))
    }

    /// The number of each text of a dictionary.
    /// Looked up once where `is_shared` says that other morsels have the same dictionary.
    fn translated(&self, table: &Arc<TextTable>, is_shared: bool) -> Result<Arc<[u32]>> {
        let key = Arc::as_ptr(table).addr();
        if is_shared && let Some((_, known)) = self.translated.lock().get(&key) {
            return Ok(Arc::clone(known));
        }
        let numbers: Arc<[u32]> = self.numbers((0..table.len()).map(|at| table.at(at)))?.into();
        if is_shared {
            let kept = (Arc::clone(table), Arc::clone(&numbers));
            self.translated.lock().insert(key, kept);
        }
        Ok(numbers)
    }

    /// The text of a number; nothing where it is no text's.
    /// As bytes, for example to search for a user in a segment.
    pub fn text(&self, number: u32) -> Option<Vec<u8>> {
        let number = number as usize;
        let list = &self.parts[number % PARTS].lock().list;
        let index = number / PARTS;
        (index < list.len()).then(|| list.at(index).to_vec())
    }

    /// The texts of numbers. They are copied: what is kept of them later must not keep all others, nor be counted as
    /// if it did.
    fn texts(&self, numbers: &UInt32Array) -> Result<ArrayRef> {
        let (all, starts) = self.shown()?;
        let index = |number: u32| {
            let number = number as usize;
            (starts[number % PARTS] + number / PARTS) as u64
        };
        let indexes: UInt64Array = numbers.unary(index);
        let texts = take(&*all, &indexes, None)?;
        Ok(Arc::new(StringViewArray::from(texts.as_string::<i32>())))
    }

    /// All strings so far as one array, and where each part begins in it. It is made anew when strings have been added since.
    fn shown(&self) -> Result<(Arc<StringArray>, [usize; PARTS])> {
        let mut shown = self.shown.lock();
        let count: usize = self.parts.iter().map(|part| part.lock().list.len()).sum();
        if let Some((all, starts)) = &*shown
            && all.len() == count
        {
            return Ok((Arc::clone(all), *starts));
        }
        let (mut table, mut starts) = (TextTable::default(), [0; PARTS]);
        for (part, start) in self.parts.iter().zip(&mut starts) {
            *start = table.len();
            let list = &part.lock().list;
            (0..list.len()).for_each(|at| table.push(list.at(at)));
        }
        let all = Arc::new(strings(&table)?);
        *shown = Some((Arc::clone(&all), starts));
        Ok((all, starts))
    }
}

/// The numbers of each column's texts, the same wherever a statement reads the column.
#[derive(Clone, Default)]
pub struct StatementDictionaries(Arc<Mutex<HashMap<String, Arc<StatementDictionary>>>>);

impl StatementDictionaries {
    /// Those of a column.
    /// By its name in the table, so that `a.tenant_id` and `b.tenant_id` of two scans have the same numbers. `tenant_id` and `user_id` have dictionaries of
    /// their own: a number of one is no number of the other.
    pub fn of(&self, column: &str) -> Arc<StatementDictionary> {
        Arc::clone(self.0.lock().entry(column.to_owned()).or_default())
    }
}

/// The column of numbers that an expression makes texts of, and what they stand for.
///
/// Of `text_of("number of tenant_id␀") AS t` the column `number of tenant_id␀`.
pub fn codes_of(expr: &Expr) -> Option<(Column, Arc<StatementDictionary>)> {
    let call = match expr {
        Expr::Alias(alias) => return codes_of(&alias.expr),
        Expr::ScalarFunction(call) => call,
        _ => return None,
    };
    let function: &dyn std::any::Any = &**call.func.inner();
    let codes = &function.downcast_ref::<TextOf>()?.codes;
    match &*call.args {
        [Expr::Column(column)] => Some((column.clone(), Arc::clone(codes))),
        _ => None,
    }
}

/// The function that makes numbers of texts, as a column's texts have them.
///
/// A string that no scan has met gets a number, too. Null stays null.
pub fn number_of(codes: &Arc<StatementDictionary>) -> ScalarUDF {
    let signature = Signature::exact(vec![DataType::Utf8View], Volatility::Immutable);
    ScalarUDF::new_from_impl(NumberOf { codes: Arc::clone(codes), signature })
}

#[derive(Debug)]
struct NumberOf {
    codes: Arc<StatementDictionary>,
    signature: Signature,
}

impl PartialEq for NumberOf {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.codes, &other.codes)
    }
}

impl Eq for NumberOf {}

impl std::hash::Hash for NumberOf {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        Arc::as_ptr(&self.codes).hash(state);
    }
}

impl ScalarUDFImpl for NumberOf {
    fn name(&self) -> &str {
        "number_of"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> PlanResult<DataType> {
        Ok(DataType::UInt32)
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> PlanResult<ColumnarValue> {
        let arrays = ColumnarValue::values_to_arrays(&args.args)?;
        let texts = arrays[0].as_string_view();
        let there = texts.iter().flatten().map(str::as_bytes);
        let mut numbers = self.codes.numbers(there)?.into_iter();
        let numbers: UInt32Array =
            texts.iter().map(|text| text.and_then(|_| numbers.next())).collect();
        Ok(ColumnarValue::Array(Arc::new(numbers)))
    }
}

/// The function that makes texts of a column's numbers.
///
/// It stands above groups and joins that were made by numbers: `SELECT text_of(n) … GROUP BY n`.
pub fn text_of(codes: &Arc<StatementDictionary>) -> ScalarUDF {
    let signature = Signature::exact(vec![DataType::UInt32], Volatility::Immutable);
    ScalarUDF::new_from_impl(TextOf { codes: Arc::clone(codes), signature })
}

#[derive(Debug)]
struct TextOf {
    codes: Arc<StatementDictionary>,
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

    fn return_field_from_args(&self, args: ReturnFieldArgs) -> PlanResult<FieldRef> {
        let nullable = args.arg_fields.iter().any(|field| field.is_nullable());
        Ok(Arc::new(Field::new(self.name(), DataType::Utf8View, nullable)))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> PlanResult<ColumnarValue> {
        let arrays = ColumnarValue::values_to_arrays(&args.args)?;
        Ok(ColumnarValue::Array(self.codes.texts(arrays[0].as_primitive::<UInt32Type>())?))
    }
}
