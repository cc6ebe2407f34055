//! Reading columns of `events`: of the rows of a morsel that pass, as arrays.
//!
//! Conditions come first. `WHERE length(user_id) > 9` reads `user_id` of a morsel; of the rows that pass, and of them alone,
//! `event_id` is read then.
//!
//! The way of a morsel, here of 8,192 rows:
//!
//! ```text
//! Source::excludes             whether any of its rows can pass, without reading one
//! Source::passing              the engine's conditions: 2,500 rows are marked
//! mark_users, mark_event_ids   users and ids that a join has found: 300 are left
//! PassingRows                  300 are fewer than one of eight: they become a morsel of their own
//! batch                        300 rows of user_id are read for length(user_id) > 9, which 40 pass
//!                              40 rows of event_id are read
//! ```

use std::{cmp::Reverse, sync::Arc};

use arrow::{
    array::{ArrayRef, BooleanArray, RecordBatch, RecordBatchOptions},
    compute::filter,
    datatypes::{DataType, SchemaRef},
};
use datafusion_common::{DataFusionError, Result};
use inlay_engine::rows::{
    Column, EventIdCondition, EventIdPrefix, Filter, Morsel, RowRange, Scan, Source, TextTable,
    Values,
};

use super::{
    arrays::{Dictionaries, map_array},
    errors::broken,
    scan_filters::KnownFilter,
    schema::{NUMBERS, Property, STRINGS},
    statement_dictionary::StatementDictionary,
    time_bounds::TimeBounds,
};

/// What a column of `events` is made of.
/// One for each column of a scan, in the order of the columns.
#[derive(Debug, Clone)]
pub enum ColumnSource {
    /// The tenant of the row's series.
    /// The same for all rows of a series: nothing of the row is read.
    Tenant,
    /// The event's name.
    Event,
    /// A column of the engine.
    /// Time, event id, user, or one property.
    Plain(Column),
    /// All string properties.
    /// A map for each row: every column of strings that the segment has is read.
    Strings,
    /// All numeric properties.
    Numbers,
    /// Texts of something as numbers.
    /// Of the column within, by the codes of the statement's dictionary.
    Number(Box<ColumnSource>, Arc<StatementDictionary>),
}

impl ColumnSource {
    /// By the name of a column.
    /// `None` for a name that is no column of `events`.
    pub fn named(name: &str) -> Option<Self> {
        match name {
            "tenant_id" => Some(Self::Tenant),
            "event_name" => Some(Self::Event),
            "timestamp" => Some(Self::Plain(Column::Time)),
            "event_id" => Some(Self::Plain(Column::EventId)),
            "user_id" => Some(Self::Plain(Column::User)),
            STRINGS => Some(Self::Strings),
            NUMBERS => Some(Self::Numbers),
            _ => None,
        }
    }

    /// Whether it tells tenants apart: their names, or the numbers of these.
    pub fn is_of_tenant(&self) -> bool {
        match self {
            Self::Tenant => true,
            Self::Number(of, _) => of.is_of_tenant(),
            _ => false,
        }
    }

    /// Of a property.
    /// `string_props['plan']` is the column of strings `plan`, `numeric_props['ms']` that of numbers `ms`.
    pub fn property(property: &Property) -> Self {
        match &*property.map {
            STRINGS => Self::Plain(Column::Text(property.name.clone())),
            _ => Self::Plain(Column::Number(property.name.clone())),
        }
    }
}

/// Users that are searched for in a segment, at most: of more, each row's is looked at.
/// A search in the sorted users of each tenant takes some steps for each of them.
const USERS_MAX: usize = 64;

/// Rows that are read, and what of them.
pub struct Reading {
    /// Where they are.
    pub scan: Arc<Scan>,
    /// The columns, in the order of the schema.
    pub columns: Vec<ColumnSource>,
    /// What rows must be like.
    pub filter: Filter,
    /// The columns' types.
    pub schema: SchemaRef,
    /// Rows that are enough.
    pub limit: Option<usize>,
    /// Dictionaries that were read.
    pub dictionaries: Dictionaries,
}

/// The newest rows of a morsel, or the oldest, that are read before its others: an operator that looks for some of them then
/// knows which others it does not need. An eighth of a batch.
const HEAD_ROWS: usize = 1_024;

impl Reading {
    /// Where the time stands among the columns.
    /// `None` where the scan does not read it: then nothing is known of the times that are needed.
    pub fn time(&self) -> Option<usize> {
        self.index_of(&Column::Time)
    }

    fn index_of(&self, wanted: &Column) -> Option<usize> {
        self.columns.iter().position(|source| match source {
            ColumnSource::Plain(column) => column == wanted,
            _ => false,
        })
    }

    /// The rows of a morsel that the statement's conditions let pass, if there are any. Of those that are `known`, users and event
    /// ids are searched for in the segment here; `batch` checks conditions, and hints that leave out rows.
    ///
    /// `known` is what the scan's own conditions were when the morsel was begun (`scan_filters.rs`). `None` where no row passes, which reads no column.
    ///
    /// Errors: damage of a segment.
    pub fn passing(
        &self,
        source: &Source,
        morsel: &Morsel,
        known: Option<&KnownFilter>,
    ) -> Result<Option<PassingRows>> {
        if !self.filter.is_empty() && source.excludes(morsel, &self.filter).map_err(broken)? {
            return Ok(None);
        }
        let mut marks = source.passing(morsel, &self.filter).map_err(broken)?;
        let all = || vec![true; morsel.rows()];
        if let Some(users) = known.and_then(|known| self.known_users(known)) {
            let users: Vec<&[u8]> = users.iter().map(|user| &**user).collect();
            source.mark_users(morsel, &users, marks.get_or_insert_with(all)).map_err(broken)?;
        }
        let ids = known
            .and_then(|known| known.texts(self.index_of(&Column::EventId)?))
            .map(|ids| EventIdCondition::AnyOf(ids.into_iter().map(str::as_bytes).collect()));
        let prefix = || {
            let prefix = known?.prefix(self.index_of(&Column::EventId)?)?;
            Some(EventIdCondition::StartsWith(EventIdPrefix::new(prefix.as_bytes())))
        };
        if let Some(ids) = ids.or_else(prefix) {
            source.mark_event_ids(morsel, &ids, marks.get_or_insert_with(all)).map_err(broken)?;
        }
        Ok(PassingRows::of(morsel.clone(), marks))
    }

    /// The users that rows can have, by their texts or by their numbers, where they are known and few.
    ///
    /// From `user_id IN ('u1', 'u2')`, or from the numbers that a join has found among its smaller side. `None` where there are more than [`USERS_MAX`].
    fn known_users(&self, known: &KnownFilter) -> Option<Vec<Vec<u8>>> {
        let is_few = |count: usize| count <= USERS_MAX;
        let texts = self.index_of(&Column::User).and_then(|at| known.texts(at));
        if let Some(texts) = texts.filter(|texts| is_few(texts.len())) {
            let users = texts.into_iter().filter(|user| !user.is_empty());
            return Some(users.map(|user| user.as_bytes().to_vec()).collect());
        }
        self.columns.iter().enumerate().find_map(|(at, source)| match source {
            ColumnSource::Number(of, codes)
                if matches!(**of, ColumnSource::Plain(Column::User)) =>
            {
                let numbers = known.numbers(at).filter(|numbers| is_few(numbers.len()))?;
                numbers.into_iter().map(|number| codes.text(number)).collect()
            }
            _ => None,
        })
    }

    /// The latest of some rows, or the earliest, and the others as a morsel with the bounds of their times.
    ///
    /// 1,024 rows are selected by their times, not sorted. The bounds tell whether the others are needed once the operator above has learnt from these.
    ///
    /// Errors: damage of a segment.
    pub fn split(
        &self,
        source: &Source,
        rows: PassingRows,
        descending: bool,
    ) -> Result<(PassingRows, Morsel, TimeBounds)> {
        let Values::Times(times) = rows.read(source, &Column::Time)? else {
            return Err(DataFusionError::Internal("times that are none".to_owned()));
        };
        let mut order: Vec<u32> = (0..times.len() as u32).collect();
        let time = |at: &u32| times[*at as usize];
        match descending {
            true => order.select_nth_unstable_by_key(HEAD_ROWS, |at| Reverse(time(at))),
            false => order.select_nth_unstable_by_key(HEAD_ROWS, time),
        };
        let (head, rest) = order.split_at(HEAD_ROWS);
        let bounds = rest
            .iter()
            .map(time)
            .fold((i64::MAX, i64::MIN), |(first, last), ms| (first.min(ms), last.max(ms)));
        let mut is_head = vec![false; times.len()];
        head.iter().for_each(|at| is_head[*at as usize] = true);
        let (head, rest) = rows.split_by(is_head)?;
        Ok((head, rest, bounds))
    }

    /// Columns of rows, as far as they pass what is known.
    ///
    /// The columns of the conditions are read first, then those rows are dropped that do not pass, then the other columns are read. Ids of events are the
    /// slowest to read, so conditions that ask for them as well (`ORDER BY cost DESC, event_id LIMIT 1`) drop rows by their other columns before. `None` where
    /// no row is left.
    ///
    /// Errors: damage of a segment; what the library says of an expression.
    pub fn batch(
        &self,
        source: &Source,
        mut rows: PassingRows,
        known: Option<&KnownFilter>,
    ) -> Result<Option<RecordBatch>> {
        let mut arrays: Vec<Option<ArrayRef>> = vec![None; self.columns.len()];
        let ids = self.index_of(&Column::EventId).zip(known);
        let without_ids = ids.map(|(ids, known)| known.without(ids)).transpose()?.flatten();
        for known in without_ids.as_ref().into_iter().chain(known) {
            for &at in &known.columns {
                if arrays[at].is_none() {
                    arrays[at] = Some(self.array(source, &rows, at)?);
                }
            }
            let of_filter = known.columns.iter().filter_map(|at| arrays[*at].clone()).collect();
            let passing = known.passing(of_filter, rows.count)?;
            if passing.true_count() < rows.count {
                for array in arrays.iter_mut().flatten() {
                    *array = filter(array, &passing)?;
                }
                let Some(fewer) = rows.narrow(&passing) else { return Ok(None) };
                rows = fewer;
            }
        }
        for (at, array) in arrays.iter_mut().enumerate() {
            if array.is_none() {
                *array = Some(self.array(source, &rows, at)?);
            }
        }
        let options = RecordBatchOptions::new().with_row_count(Some(rows.count));
        let (schema, arrays) = (Arc::clone(&self.schema), arrays.into_iter().flatten().collect());
        Ok(Some(RecordBatch::try_new_with_options(schema, arrays, &options)?))
    }

    /// A column of some rows.
    /// `at` is its number in the scan's schema.
    fn array(&self, source: &Source, rows: &PassingRows, at: usize) -> Result<ArrayRef> {
        let read = |column: &Column| -> Result<ArrayRef> {
            let values = rows.read(source, column)?;
            if is_shared(column) {
                Ok(self.dictionaries.array(values)?)
            } else {
                Ok(self.dictionaries.once(values)?)
            }
        };
        let series = source.series();
        let tenants = || {
            rows.marked(series_values(&rows.morsel, &|at| {
                (series[at].tenant, source.tenants().at(series[at].tenant as usize))
            }))
        };
        let events = || {
            rows.marked(series_values(&rows.morsel, &|at| {
                (series[at].name, source.names()[series[at].name as usize].as_bytes())
            }))
        };
        let Some(wanted) = self.columns.get(at) else {
            return Err(DataFusionError::Internal("a column that is none".to_owned()));
        };
        Ok(match wanted {
            ColumnSource::Tenant => self.dictionaries.once(tenants())?,
            ColumnSource::Event => self.dictionaries.once(events())?,
            ColumnSource::Plain(column) => read(column)?,
            ColumnSource::Number(of, codes) => match &**of {
                ColumnSource::Tenant => codes.array(&tenants(), false)?,
                ColumnSource::Event => codes.array(&events(), false)?,
                ColumnSource::Plain(Column::User) => rows.user_numbers(source, codes)?,
                ColumnSource::Plain(column) => {
                    codes.array(&rows.read(source, column)?, is_shared(column))?
                }
                _ => return Err(DataFusionError::Internal("numbers of no texts".to_owned())),
            },
            ColumnSource::Strings => {
                let columns = source.texts().map_err(broken)?.into_iter();
                let columns = columns.map(|name| Ok((name, read(&Column::Text(name.to_owned()))?)));
                let columns = present(columns.collect::<Result<_>>()?, rows.count);
                map_array(&columns, rows.count, DataType::Utf8View)?
            }
            ColumnSource::Numbers => {
                let columns = source.numbers().map_err(broken)?.into_iter();
                let columns =
                    columns.map(|name| Ok((name, read(&Column::Number(name.to_owned()))?)));
                let columns = present(columns.collect::<Result<_>>()?, rows.count);
                map_array(&columns, rows.count, DataType::Float64)?
            }
        })
    }
}

/// Rows of a morsel that pass: never none.
///
/// `marks` has an entry for each row of the morsel, `count` of which are true.
#[derive(Clone)]
pub struct PassingRows {
    morsel: Morsel,
    /// Which rows of the morsel, unless that is all of them.
    marks: Option<Vec<bool>>,
    count: usize,
}

/// Rows that pass are read alone where they are at most one of so many; else all are read, and the others dropped.
const ALONE_FROM: usize = 8;

impl PassingRows {
    /// Whether they are enough to read some of them before the others.
    pub fn have_head(&self) -> bool {
        self.count > 2 * HEAD_ROWS
    }

    /// Rows of a morsel with these marks; `None` where none is marked. Few of them become a morsel of their own.
    fn of(morsel: Morsel, marks: Option<Vec<bool>>) -> Option<Self> {
        let rows = morsel.rows();
        let Some(marks) = marks else {
            return (rows > 0).then_some(Self { morsel, marks: None, count: rows });
        };
        let count = marks.iter().filter(|mark| **mark).count();
        if count == 0 {
            return None;
        }
        if count > rows / ALONE_FROM {
            return Some(Self { morsel, marks: Some(marks), count });
        }
        Some(Self { morsel: marked_strips(&morsel, &marks), marks: None, count })
    }

    /// The first rows, and the others as a morsel; there are more than [`HEAD_ROWS`].
    ///
    /// Errors: none that is expected.
    pub fn split_off(self) -> Result<(Self, Morsel)> {
        let is_head = (0..self.count).map(|at| at < HEAD_ROWS).collect();
        self.split_by(is_head)
    }

    /// Marked rows, and the others as a morsel; there are some of both.
    fn split_by(self, is_head: Vec<bool>) -> Result<(Self, Morsel)> {
        let is_rest = is_head.iter().map(|is_head| !is_head).collect();
        let none = || DataFusionError::Internal("a part without rows".to_owned());
        let rest = self.clone().narrow(&BooleanArray::new(is_rest, None)).ok_or_else(none)?;
        let head = self.narrow(&BooleanArray::from(is_head)).ok_or_else(none)?;
        Ok((head, rest.into_unit()))
    }

    /// Those of these rows that are marked; none where none is.
    /// `passing` has an entry for each row that has passed so far, and not for each row of the morsel.
    fn narrow(self, passing: &BooleanArray) -> Option<Self> {
        let mut passing = passing.values().iter();
        let marks = match self.marks {
            None => passing.collect(),
            Some(mut marks) => {
                let passed = marks.iter_mut().filter(|mark| **mark);
                passed.for_each(|mark| *mark = passing.next().unwrap_or_default());
                marks
            }
        };
        Self::of(self.morsel, Some(marks))
    }

    /// The same as a morsel that has no other rows.
    fn into_unit(self) -> Morsel {
        match self.marks {
            Some(marks) => marked_strips(&self.morsel, &marks),
            None => self.morsel,
        }
    }

    /// The values of a column for the rows that pass.
    fn read(&self, source: &Source, column: &Column) -> Result<Values> {
        Ok(self.marked(source.read(&self.morsel, column).map_err(broken)?))
    }

    /// The users' numbers: texts are looked at once a user of the source, where this has indexes for them.
    fn user_numbers(&self, source: &Source, codes: &StatementDictionary) -> Result<ArrayRef> {
        let Some(mut indexes) = source.users(&self.morsel).map_err(broken)? else {
            return Ok(codes.array(&self.read(source, &Column::User)?, false)?);
        };
        if let Some(marks) = &self.marks {
            let mut marks = marks.iter();
            indexes.retain(|_| marks.next().is_some_and(|mark| *mark));
        }
        let none = || DataFusionError::Internal("users without texts".to_owned());
        codes.users(source, &indexes)?.ok_or_else(none)
    }

    /// Values of all rows of the morsel without those that do not pass.
    fn marked(&self, mut values: Values) -> Values {
        if let Some(marks) = &self.marks {
            values.retain(marks);
        }
        values
    }
}

/// The rows of a morsel that are marked, as a morsel: rows beside each other are one row range.
///
/// Rows 10 to 14 with the marks 1 1 0 0 1 are the row ranges 10..12 and 14..15.
fn marked_strips(morsel: &Morsel, marks: &[bool]) -> Morsel {
    let mut row_ranges: Vec<RowRange> = Vec::new();
    let mut marks = marks.iter();
    for row_range in &morsel.row_ranges {
        for (row, _) in row_range.rows.clone().zip(marks.by_ref()).filter(|(_, mark)| **mark) {
            match row_ranges.last_mut() {
                Some(last) if last.series == row_range.series && last.rows.end == row => {
                    last.rows.end += 1;
                }
                _ => row_ranges.push(RowRange { series: row_range.series, rows: row..row + 1 }),
            }
        }
    }
    Morsel { row_ranges }
}

/// Whether other rows of the segment have the same dictionary: those of users are made for the rows that are read.
fn is_shared(column: &Column) -> bool {
    matches!(column, Column::Text(_))
}

/// Columns that some row has.
/// A map names only properties that its row has, so the others are not looked at for each row.
fn present(mut columns: Vec<(&str, ArrayRef)>, rows: usize) -> Vec<(&str, ArrayRef)> {
    columns.retain(|(_, column)| column.null_count() < rows);
    columns
}

/// A text of its series for each row; `text` gives it, and its number in the source.
///
/// Row ranges of tenant 7, 7 and 9 with 2, 1 and 3 rows are the codes 1 1 1 2 2 2 over a table of two strings.
fn series_values<'a>(morsel: &Morsel, text: &dyn Fn(usize) -> (u32, &'a [u8])) -> Values {
    let (mut table, mut codes) = (TextTable::default(), Vec::with_capacity(morsel.rows()));
    let mut last: Option<u32> = None;
    for row_range in &morsel.row_ranges {
        let (number, text) = text(row_range.series);
        if last != Some(number) {
            table.push(text);
            last = Some(number);
        }
        codes.resize(codes.len() + row_range.rows.len(), table.len() as u32);
    }
    Values::Codes(codes, Arc::new(table))
}
