//! `string_agg(event_name, ' > ' ORDER BY timestamp)`: all values of each group, in an order of their own.
//!
//! ```text
//! SELECT user_id, string_agg(event_name, ' > ' ORDER BY timestamp) FROM events GROUP BY user_id
//!
//! group  timestamp  event_name      sorted by group and time, then cut by groups
//! 0      09:12      visit
//! 1      09:13      visit           0  visit > sign_up
//! 0      09:15      sign_up         1  visit
//! ```
//!
//! The library has a list for each group, which it merges in the order of all partitions, and one order for all functions of a statement.
//! Here the rows of all groups are sorted at once at the end, each function by itself. So a group's rows have to be in one partition, and
//! there are no partial states. Lists without an order are the library's.
//!
//! ```text
//! string_agg(DISTINCT plan, '-')                   sorted by group and value, equal neighbours are one: `a-b`
//! array_agg(DISTINCT event_name ORDER BY event_name DESC)      ["login","export","call"]
//! string_agg(plan, '-' ORDER BY timestamp)         nulls are left out; a group of nulls alone is null
//! array_agg(plan ORDER BY timestamp)               nulls are items, unless IGNORE NULLS stands there
//! ```
//!
//! Refused:
//!
//! ```text
//! string_agg(DISTINCT event_name, ', ' ORDER BY timestamp)
//!     In an aggregate with DISTINCT, ORDER BY expressions must appear in argument list
//! string_agg(event_name, tenant_id ORDER BY timestamp)
//!     string_agg: the delimiter is a literal text
//! ```

use std::{cmp::Ordering, fmt::Write as _, sync::Arc};

use arrow::{
    array::{
        Array as _, ArrayRef, AsArray as _, BooleanArray, LargeStringBuilder, ListArray,
        UInt32Array, make_comparator, new_empty_array,
    },
    buffer::{NullBuffer, OffsetBuffer},
    compute::{SortOptions, and, cast, concat, filter, is_not_null, prep_null_mask_filter, take},
    datatypes::{DataType, FieldRef},
};
use datafusion_common::{Result, ScalarValue, internal_err, plan_err};
use datafusion_expr::{
    Accumulator, AggregateUDF, AggregateUDFImpl, EmitTo, GroupsAccumulator, Signature,
    function::{AccumulatorArgs, AggregateFunctionSimplification, StateFieldsArgs},
    utils::AggregateOrderSensitivity,
};
use datafusion_physical_expr::{PhysicalSortExpr, expressions::Literal};

use crate::{
    row_order::{Key, sorted},
    tables::with_own_texts,
};

/// Bytes that a row takes when it is sorted, besides a copy of its columns.
const SORTED_ROW_BYTES: usize = 64;

/// A function of the library that makes a list of values, or a text of them, in an order.
#[derive(Debug, PartialEq, Eq, Hash)]
pub struct OrderedLists {
    library: AggregateUDF,
}

impl OrderedLists {
    /// The library's `string_agg` or `array_agg`, with orders.
    pub fn of(library: AggregateUDF) -> AggregateUDF {
        AggregateUDF::from(Self { library })
    }
}

/// Whether a function's groups have to be complete in each partition, because of an order or of values that are taken once.
pub fn needs_whole_groups(function: &AggregateUDF, has_order: bool, is_distinct: bool) -> bool {
    let function: &dyn std::any::Any = &**function.inner();
    function.is::<OrderedLists>() && (has_order || is_distinct)
}

impl AggregateUDFImpl for OrderedLists {
    fn name(&self) -> &str {
        self.library.name()
    }

    fn signature(&self) -> &Signature {
        self.library.signature()
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        self.library.return_type(types)
    }

    fn state_fields(&self, args: StateFieldsArgs<'_>) -> Result<Vec<FieldRef>> {
        self.library.state_fields(args)
    }

    /// For rows that are one group, or a window. Values that are taken once are the library's here: it keeps those that differ, and knows which leave a
    /// window that moves.
    fn accumulator(&self, args: AccumulatorArgs<'_>) -> Result<Box<dyn Accumulator>> {
        Ok(match ListSpec::of(&args)? {
            Some(spec) if !spec.is_distinct => Box::new(OneList(ListRows::new(spec))),
            _ => self.library.accumulator(args)?,
        })
    }

    fn create_sliding_accumulator(
        &self,
        args: AccumulatorArgs<'_>,
    ) -> Result<Box<dyn Accumulator>> {
        self.library.create_sliding_accumulator(args)
    }

    fn groups_accumulator_supported(&self, args: AccumulatorArgs<'_>) -> bool {
        args.is_distinct
            || !args.order_bys.is_empty()
            || self.library.groups_accumulator_supported(args)
    }

    fn create_groups_accumulator(
        &self,
        args: AccumulatorArgs<'_>,
    ) -> Result<Box<dyn GroupsAccumulator>> {
        Ok(match ListSpec::of(&args)? {
            Some(spec) => Box::new(ListRows::new(spec)),
            None => self.library.create_groups_accumulator(args)?,
        })
    }

    fn order_sensitivity(&self) -> AggregateOrderSensitivity {
        // The columns of the order are handed over, and rows come in any order.
        AggregateOrderSensitivity::Beneficial
    }

    fn with_beneficial_ordering(
        self: Arc<Self>,
        _: bool,
    ) -> Result<Option<Arc<dyn AggregateUDFImpl>>> {
        Ok(Some(self))
    }

    fn simplify(&self) -> Option<AggregateFunctionSimplification> {
        self.library.simplify()
    }

    fn supports_null_handling_clause(&self) -> bool {
        self.library.supports_null_handling_clause()
    }
}

/// What is made of the values of a group.
#[derive(Debug, Clone)]
enum ListForm {
    /// A text, with this between two values.
    Text(String),
    /// A list, whose items have this field.
    List(FieldRef),
}

/// What is listed, and in which order.
#[derive(Debug, Clone)]
struct ListSpec {
    /// Whether a text or a list is made.
    form: ListForm,
    /// How each key of the order is sorted.
    order: Vec<SortOptions>,
    /// How many arguments stand before the keys of the order.
    arguments: usize,
    /// Whether each value is taken once in a group.
    is_distinct: bool,
    /// Whether rows without a value are left out: always of a text.
    skips_nulls: bool,
}

impl ListSpec {
    /// Of a call with an order, or whose values are taken once; nothing for another.
    ///
    /// Errors: a delimiter that is no literal text; an order that values which are taken once do not have.
    fn of(args: &AccumulatorArgs<'_>) -> Result<Option<Self>> {
        let is_distinct = args.is_distinct;
        if !is_distinct && args.order_bys.is_empty() {
            return Ok(None);
        }
        let is_by_value = |order: &[_]| match order {
            [] => true,
            [PhysicalSortExpr { expr, .. }] => {
                args.exprs.first().is_some_and(|value| value.eq(expr))
            }
            _ => false,
        };
        if is_distinct && !is_by_value(args.order_bys) {
            return plan_err!(
                "In an aggregate with DISTINCT, ORDER BY expressions must appear in argument list"
            );
        }
        let form = match args.return_field.data_type() {
            DataType::List(item) => ListForm::List(Arc::clone(item)),
            _ => ListForm::Text(delimiter(args)?),
        };
        Ok(Some(Self {
            skips_nulls: args.ignore_nulls || matches!(form, ListForm::Text(_)),
            form,
            order: args.order_bys.iter().map(|order| order.options).collect(),
            arguments: args.exprs.len(),
            is_distinct,
        }))
    }
}

/// What stands between two texts.
///
/// Errors: when it is no literal text.
fn delimiter(args: &AccumulatorArgs<'_>) -> Result<String> {
    let literal = args.exprs.get(1).and_then(|expr| Some(expr.downcast_ref::<Literal>()?.value()));
    match literal.map(ScalarValue::try_as_str) {
        Some(Some(text)) => Ok(text.unwrap_or_default().to_owned()),
        Some(None) if literal.is_some_and(ScalarValue::is_null) => Ok(String::new()),
        _ => plan_err!("string_agg: the delimiter is a literal text"),
    }
}

/// Rows of all groups, as they came: of each its group, its value, and the keys of its order.
#[derive(Debug)]
struct ListRows {
    spec: ListSpec,
    /// The group of each row.
    groups: Vec<u32>,
    /// Column by column, in batches.
    columns: Vec<Vec<ArrayRef>>,
    /// Bytes of all batches.
    bytes: usize,
    /// How many groups there are, those without rows among them.
    group_count: usize,
}

impl ListRows {
    fn new(spec: ListSpec) -> Self {
        let columns = vec![Vec::new(); 1 + spec.order.len()];
        Self { spec, groups: Vec::new(), columns, bytes: 0, group_count: 0 }
    }

    /// Adds rows of groups, those that pass.
    fn add(
        &mut self,
        values: &[ArrayRef],
        groups: impl Iterator<Item = u32>,
        passes: Option<&BooleanArray>,
    ) -> Result<()> {
        let Some((value, keys)) = values.first().zip(values.get(self.spec.arguments..)) else {
            return internal_err!("a list without its argument");
        };
        let mut passes = passes.cloned();
        if self.spec.skips_nulls && value.null_count() > 0 {
            let is_there = is_not_null(value)?;
            passes = Some(match passes {
                Some(passes) => and(&passes, &is_there)?,
                None => is_there,
            });
        }
        let passes = passes.map(|passes| match passes.null_count() {
            0 => passes,
            _ => prep_null_mask_filter(&passes),
        });
        match &passes {
            Some(passes) => {
                let passing = groups.zip(passes.values()).filter(|(_, passes)| *passes);
                self.groups.extend(passing.map(|(group, _)| group));
            }
            None => self.groups.extend(groups),
        }
        let order = keys.iter().take(self.spec.order.len());
        for (column, batches) in std::iter::once(value).chain(order).zip(&mut self.columns) {
            let column = match &passes {
                Some(passes) => filter(column, passes)?,
                None => Arc::clone(column),
            };
            let column = with_own_texts(column);
            self.bytes += bytes_of(&column)?;
            batches.push(column);
        }
        Ok(())
    }

    /// What the first groups come to, so many of them.
    fn lists(&self, group_count: usize) -> Result<ArrayRef> {
        let columns = self.columns.iter().map(|batches| match &**batches {
            [] => Ok(None),
            batches => {
                let batches: Vec<_> = batches.iter().map(|batch| &**batch).collect();
                concat(&batches).map(Some)
            }
        });
        let columns = columns.collect::<Result<Option<Vec<_>>, _>>()?.unwrap_or_default();
        let Some((value, keys)) = columns.split_first() else {
            return self.form(group_count, None);
        };
        let by_group: ArrayRef = Arc::new(UInt32Array::from(self.groups.clone()));
        let mut order: Vec<Key> = vec![(by_group, SortOptions::default())];
        order.extend(keys.iter().cloned().zip(self.spec.order.iter().copied()));
        if self.spec.is_distinct && keys.is_empty() {
            let nulls_last = SortOptions { descending: false, nulls_first: false };
            order.push((Arc::clone(value), nulls_last));
        }
        let mut rows = sorted(&order, self.groups.len())?;
        // Rows of other groups are behind these.
        let is_taken = |row: &u32| (self.groups[*row as usize] as usize) < group_count;
        rows.truncate(rows.partition_point(is_taken));
        if self.spec.is_distinct {
            let compare = make_comparator(value, value, SortOptions::default())?;
            rows.dedup_by(|row, before| {
                let (row, before) = (*row as usize, *before as usize);
                self.groups[row] == self.groups[before] && compare(row, before) == Ordering::Equal
            });
        }
        self.form(group_count, Some((value, rows)))
    }

    /// The answer of so many groups, of values in the order of these rows.
    fn form(&self, groups: usize, values: Option<(&ArrayRef, Vec<u32>)>) -> Result<ArrayRef> {
        let rows = values.as_ref().map(|(_, rows)| &**rows).unwrap_or_default();
        let mut lengths = vec![0usize; groups];
        rows.iter().for_each(|row| lengths[self.groups[*row as usize] as usize] += 1);
        match &self.spec.form {
            ListForm::Text(delimiter) => {
                let texts = match &values {
                    Some((value, _)) => Some(cast(value, &DataType::Utf8View)?),
                    None => None,
                };
                let texts = texts.as_ref().map(|texts| texts.as_string_view());
                let mut texts = rows
                    .iter()
                    .map(|row| texts.map(|texts| texts.value(*row as usize)).unwrap_or_default());
                let mut made = LargeStringBuilder::new();
                for length in lengths {
                    for (at, text) in texts.by_ref().take(length).enumerate() {
                        // To a builder nothing fails to be written.
                        let between = if at > 0 { &**delimiter } else { "" };
                        let _: std::fmt::Result = made.write_str(between);
                        let _: std::fmt::Result = made.write_str(text);
                    }
                    if length > 0 { made.append_value("") } else { made.append_null() }
                }
                Ok(Arc::new(made.finish()))
            }
            ListForm::List(item) => {
                let values = match &values {
                    Some((value, rows)) => take(value, &UInt32Array::from(rows.clone()), None)?,
                    None => new_empty_array(item.data_type()),
                };
                let nulls = NullBuffer::from_iter(lengths.iter().map(|length| *length > 0));
                let offsets = OffsetBuffer::from_lengths(lengths);
                let values = cast(&values, item.data_type())?;
                Ok(Arc::new(ListArray::try_new(Arc::clone(item), offsets, values, Some(nulls))?))
            }
        }
    }

    /// Forgets the first groups, so many of them.
    fn drop_first(&mut self, group_count: usize) -> Result<()> {
        let Self { spec, groups, columns, .. } = self;
        let mut rest = Self::new(spec.clone());
        rest.group_count = self.group_count.saturating_sub(group_count);
        let first = group_count as u32;
        let stays: BooleanArray = groups.iter().map(|group| Some(*group >= first)).collect();
        rest.groups = groups.iter().filter_map(|group| group.checked_sub(first)).collect();
        for (batches, rest_of) in columns.iter().zip(&mut rest.columns) {
            let mut start = 0;
            for batch in batches {
                let batch_stays = stays.slice(start, batch.len());
                start += batch.len();
                let batch = filter(batch, &batch_stays)?;
                if batch.is_empty() {
                    continue;
                }
                rest.bytes += bytes_of(&batch)?;
                rest_of.push(batch);
            }
        }
        *self = rest;
        Ok(())
    }

    /// Bytes that it takes, with those that it will take when rows are sorted.
    fn memory(&self) -> usize {
        let rows = self.groups.capacity() * size_of::<u32>() + self.bytes;
        size_of_val(self) + 2 * rows + self.groups.len() * SORTED_ROW_BYTES
    }
}

/// Bytes of a column's own rows: it may be a slice of a column that others are slices of, too. Texts have been copied.
fn bytes_of(column: &ArrayRef) -> Result<usize> {
    let texts = column
        .as_string_view_opt()
        .map_or(0, |texts| texts.data_buffers().iter().map(|buffer| buffer.len()).sum());
    Ok(column.to_data().get_slice_memory_size()? + texts)
}

impl GroupsAccumulator for ListRows {
    fn update_batch(
        &mut self,
        values: &[ArrayRef],
        group_indices: &[usize],
        filter: Option<&BooleanArray>,
        groups: usize,
    ) -> Result<()> {
        self.group_count = groups;
        self.add(values, group_indices.iter().map(|group| *group as u32), filter)
    }

    fn evaluate(&mut self, emit_to: EmitTo) -> Result<ArrayRef> {
        let groups = match emit_to {
            EmitTo::All => self.group_count,
            EmitTo::First(groups) => groups,
        };
        let lists = self.lists(groups)?;
        match emit_to {
            EmitTo::All => *self = Self::new(self.spec.clone()),
            EmitTo::First(groups) => self.drop_first(groups)?,
        }
        Ok(lists)
    }

    fn state(&mut self, _: EmitTo) -> Result<Vec<ArrayRef>> {
        internal_err!("a list in order has no partial state")
    }

    fn merge_batch(&mut self, _: &[ArrayRef], _: &[usize], _: usize) -> Result<()> {
        internal_err!("a list in order has no partial state")
    }

    fn convert_to_state(&self, _: &[ArrayRef], _: Option<&BooleanArray>) -> Result<Vec<ArrayRef>> {
        internal_err!("a list in order has no partial state")
    }

    fn size(&self) -> usize {
        self.memory()
    }
}

/// The list of all rows.
#[derive(Debug)]
struct OneList(ListRows);

impl Accumulator for OneList {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        let rows = values.first().map_or(0, |value| value.len());
        self.0.add(values, std::iter::repeat_n(0, rows), None)
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        ScalarValue::try_from_array(&self.0.lists(1)?, 0)
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        internal_err!("a list in order has no partial state")
    }

    fn merge_batch(&mut self, _: &[ArrayRef]) -> Result<()> {
        internal_err!("a list in order has no partial state")
    }

    fn size(&self) -> usize {
        self.0.memory()
    }
}

#[cfg(test)]
mod tests {
    use arrow::array::{Int64Array, StringViewArray};

    use super::*;

    fn rows(is_distinct: bool) -> ListRows {
        let order = vec![SortOptions { descending: true, nulls_first: false }];
        let form = ListForm::Text("-".to_owned());
        let order = if is_distinct { Vec::new() } else { order };
        ListRows::new(ListSpec { form, order, arguments: 1, is_distinct, skips_nulls: true })
    }

    fn texts(list: &[Option<&'static str>]) -> ArrayRef {
        Arc::new(list.iter().copied().collect::<StringViewArray>())
    }

    fn answer(rows: &mut ListRows, emit_to: EmitTo) -> Vec<Option<String>> {
        let lists = rows.evaluate(emit_to).unwrap();
        lists.as_string::<i64>().iter().map(|text| text.map(str::to_owned)).collect()
    }

    #[test]
    fn groups_are_in_order_and_may_be_asked_for_before_the_last_row() {
        let mut rows = rows(false);
        let values =
            texts(&[Some("a"), Some("b"), None, Some("a text that is longer than a view")]);
        let order: ArrayRef = Arc::new(Int64Array::from(vec![Some(1), None, Some(7), Some(3)]));
        let filter = BooleanArray::from(vec![Some(true), Some(true), Some(true), None]);
        rows.update_batch(&[Arc::clone(&values), Arc::clone(&order)], &[0, 0, 1, 2], None, 3)
            .unwrap();
        rows.update_batch(&[values, order], &[2, 1, 1, 0], Some(&filter), 4).unwrap();
        let expected = [Some("a-b".to_owned()), Some("b".to_owned())];
        assert_eq!(answer(&mut rows, EmitTo::First(2)), expected);
        // What was the third group is the first.
        rows.update_batch(
            &[texts(&[Some("c")]), Arc::new(Int64Array::from(vec![2]))],
            &[0],
            None,
            2,
        )
        .unwrap();
        let expected = [Some("a text that is longer than a view-c-a".to_owned()), None];
        assert_eq!(answer(&mut rows, EmitTo::All), expected);
        assert!(rows.groups.is_empty() && rows.bytes == 0);
    }

    #[test]
    fn slices_of_a_column_count_as_much_as_the_column() {
        let order: ArrayRef = Arc::new(Int64Array::from_iter_values(0..8_000));
        let values = texts(&[Some("a"); 8_000]);
        let mut whole = rows(false);
        whole
            .update_batch(&[Arc::clone(&values), Arc::clone(&order)], &[0; 8_000], None, 1)
            .unwrap();
        let mut of_slices = rows(false);
        for start in (0..8_000).step_by(100) {
            let slices = [values.slice(start, 100), order.slice(start, 100)];
            of_slices.update_batch(&slices, &[0; 100], None, 1).unwrap();
        }
        assert!(of_slices.bytes <= whole.bytes, "{} {}", of_slices.bytes, whole.bytes);
        assert!(whole.bytes >= 8_000 * 24, "{}", whole.bytes);
    }

    #[test]
    fn values_that_are_taken_once_are_sorted() {
        let mut rows = rows(true);
        let values = texts(&[Some("b"), Some("a"), Some("b"), None, Some("b")]);
        rows.update_batch(&[values], &[0, 0, 0, 0, 1], None, 2).unwrap();
        let expected = [Some("a-b".to_owned()), Some("b".to_owned())];
        assert_eq!(answer(&mut rows, EmitTo::All), expected);
    }
}
