//! `percentile_cont(0.95) WITHIN GROUP (ORDER BY x)`, exact.
//!
//! The library's own goes from one value to the next in steps of a millionth, and what it answers differs from PostgreSQL's
//! in the seventh digit. Here the value at position `p · (n - 1)` of the sorted numbers is `low + (high - low) · rest`, as
//! there:
//!
//! ```text
//! of 40, 10, 30, 20        sorted 10 20 30 40
//! percentile_cont(0.75)    position 0.75 · 3 = 2.25     30 + (40 - 30) · 0.25 = 32.5
//! … (ORDER BY x DESC)      sorted 40 30 20 10           20 + (10 - 20) · 0.25 = 17.5
//! percentile_cont(0)       position 0                   10
//! of 7                     any                          7
//! of none, or nulls only                                null
//! ```
//!
//! `quantile_cont(x, 0.75)` is the same by another name. `percentile_cont(1.5)` and one that is a column are refused: `percentile_cont: the percentile is a
//! number from 0 to 1`. Several percentiles of the same numbers become one call with a list of them (`rules/percentiles_together.rs`), whose answer is a list: of
//! `[0.5, 0.75]` and the numbers above `[25, 32.5]`, and of none `[null, null]`.
//!
//! All numbers of a group are in memory until its value is known: 8 bytes each, which groups count twice, for the copy in which they are handed on. What threads hand to each other of a group is the
//! list of its numbers.

use std::{collections::HashMap, sync::Arc};

use arrow::{
    array::{Array, ArrayRef, AsArray as _, BooleanArray, Float64Array, ListArray, RecordBatch},
    buffer::{NullBuffer, OffsetBuffer},
    datatypes::{DataType, Field, FieldRef, Float64Type},
};
use datafusion_common::{
    Result, ScalarValue, exec_datafusion_err, plan_err,
    types::{NativeType, logical_float64},
};
use datafusion_expr::{
    Accumulator, AggregateUDF, AggregateUDFImpl, Coercion, ColumnarValue, EmitTo,
    GroupsAccumulator, Signature, TypeSignatureClass, Volatility,
    function::{AccumulatorArgs, StateFieldsArgs},
    utils::format_state_name,
};

/// The aggregate function `percentile_cont`, also called `quantile_cont`.
///
/// Both arguments are numbers of any type, which become doubles. `WITHIN GROUP (ORDER BY x)` puts `x` before the percentile.
pub fn percentile_cont() -> AggregateUDF {
    AggregateUDF::from(PercentileCont::new())
}

/// Several percentiles of the same numbers: the second argument is a list of doubles, and the answer is one. No statement can call it.
pub fn percentiles() -> AggregateUDF {
    let arguments = vec![DataType::Float64, DataType::List(item())];
    let signature = Signature::exact(arguments, Volatility::Immutable);
    AggregateUDF::from(PercentileCont { name: "percentiles", signature, aliases: Vec::new() })
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct PercentileCont {
    name: &'static str,
    signature: Signature,
    aliases: Vec<String>,
}

impl PercentileCont {
    fn new() -> Self {
        let number = || {
            Coercion::new_implicit(
                TypeSignatureClass::Native(logical_float64()),
                vec![TypeSignatureClass::Numeric],
                NativeType::Float64,
            )
        };
        let signature = Signature::coercible(vec![number(), number()], Volatility::Immutable);
        Self { name: "percentile_cont", signature, aliases: vec!["quantile_cont".to_owned()] }
    }
}

impl AggregateUDFImpl for PercentileCont {
    fn name(&self) -> &str {
        self.name
    }

    fn aliases(&self) -> &[String] {
        &self.aliases
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, arguments: &[DataType]) -> Result<DataType> {
        Ok(match arguments.get(1) {
            Some(DataType::List(_)) => DataType::List(item()),
            _ => DataType::Float64,
        })
    }

    fn state_fields(&self, args: StateFieldsArgs<'_>) -> Result<Vec<FieldRef>> {
        // One column of state: the numbers so far, in any order.
        let name = format_state_name(args.name, "values");
        Ok(vec![Arc::new(Field::new(name, DataType::List(item()), true))])
    }

    fn accumulator(&self, args: AccumulatorArgs<'_>) -> Result<Box<dyn Accumulator>> {
        let (percentiles, is_distinct) = (percentiles_of(&args)?, args.is_distinct);
        Ok(Box::new(PercentileValues { percentiles, is_distinct, values: Vec::new() }))
    }

    fn groups_accumulator_supported(&self, args: AccumulatorArgs<'_>) -> bool {
        !args.is_distinct
    }

    fn create_groups_accumulator(
        &self,
        args: AccumulatorArgs<'_>,
    ) -> Result<Box<dyn GroupsAccumulator>> {
        Ok(Box::new(PercentileGroups {
            percentiles: percentiles_of(&args)?,
            values: Vec::new(),
            bytes: 0,
        }))
    }

    fn supports_within_group_clause(&self) -> bool {
        true
    }
}

/// The percentiles that a call asks for.
///
/// They are the second argument, a constant: it is evaluated over a batch without rows.
///
/// Errors: when one is no number from 0 to 1.
fn percentiles_of(args: &AccumulatorArgs<'_>) -> Result<Percentiles> {
    let none = RecordBatch::new_empty(Arc::new(args.schema.clone()));
    let parts = args.exprs.get(1).map(|part| part.evaluate(&none)).transpose()?;
    let (parts, is_list) = match parts {
        Some(ColumnarValue::Scalar(ScalarValue::Float64(part))) => (vec![part], false),
        Some(ColumnarValue::Scalar(ScalarValue::Float32(part))) => {
            (vec![part.map(f64::from)], false)
        }
        Some(ColumnarValue::Scalar(ScalarValue::List(list))) => {
            (numbers(&[Arc::clone(list.values())])?.iter().collect(), true)
        }
        _ => (vec![None], false),
    };
    let is_part = |part: &Option<f64>| part.is_some_and(|part| (0.0..=1.0).contains(&part));
    if !parts.iter().all(is_part) {
        return plan_err!("percentile_cont: the percentile is a number from 0 to 1");
    }
    let is_falling = args.order_bys.first().is_some_and(|order| order.options.descending);
    let parts = parts.into_iter().flatten();
    Ok(Percentiles { all: parts.map(|part| Percentile { part, is_falling }).collect(), is_list })
}

/// What a call asks for of its numbers.
#[derive(Debug)]
struct Percentiles {
    all: Vec<Percentile>,
    /// Whether the answer is a list, of one percentile, too.
    is_list: bool,
}

impl Percentiles {
    /// The answers for groups. The order of their numbers changes.
    fn of<'a>(&self, groups: impl Iterator<Item = &'a mut Vec<f64>>) -> ArrayRef {
        let (mut values, mut count) = (Vec::new(), 0);
        for numbers in groups {
            values.extend(self.all.iter().map(|percentile| at_part(numbers, *percentile)));
            count += 1;
        }
        let values = Arc::new(Float64Array::from(values));
        if !self.is_list {
            return values;
        }
        let offsets = OffsetBuffer::from_lengths(std::iter::repeat_n(self.all.len(), count));
        Arc::new(ListArray::new(item(), offsets, values, None))
    }
}

/// How far through the sorted numbers, and in which order.
#[derive(Debug, Clone, Copy)]
struct Percentile {
    /// From 0 to 1: 0.95 for the 95th percentile.
    part: f64,
    /// Whether the largest number is the first.
    is_falling: bool,
}

/// What lies at a part of the way through the sorted numbers. Their order changes.
///
/// Two selections instead of a sort: the number at the whole position, then the least of those behind it. That is linear in the numbers; `None` if there are
/// none.
fn at_part(numbers: &mut [f64], Percentile { part, is_falling }: Percentile) -> Option<f64> {
    let last = numbers.len().checked_sub(1)?;
    let position = part * last as f64;
    let (whole, rest) = (position.floor() as usize, position.fract());
    let order = |a: &f64, b: &f64| if is_falling { b.total_cmp(a) } else { a.total_cmp(b) };
    let (_, here, behind) = numbers.select_nth_unstable_by(whole, order);
    let here = *here;
    let next = behind.iter().copied().min_by(order).unwrap_or(here);
    // Between two infinities there is nothing to compute.
    Some(if rest == 0.0 || here == next { here } else { here + (next - here) * rest })
}

/// The element of a list of states: a double, of which the type says that it may be null, as lists of the library have it.
fn item() -> FieldRef {
    Arc::new(Field::new_list_field(DataType::Float64, true))
}

/// A list for each group.
/// `[[1, 3], []]` has the offsets 0, 2, 2 and the values 1, 3.
fn lists(groups: Vec<Vec<f64>>, nulls: Option<NullBuffer>) -> ListArray {
    let offsets = OffsetBuffer::from_lengths(groups.iter().map(Vec::len));
    // With room for all: a list that doubles would have three copies for a while.
    let mut values = Vec::with_capacity(groups.iter().map(Vec::len).sum());
    groups.into_iter().for_each(|group| values.extend(group));
    ListArray::new(item(), offsets, Arc::new(Float64Array::from(values)), nulls)
}

/// The numbers of an argument; a column without a type has none.
fn numbers(values: &[ArrayRef]) -> Result<Float64Array> {
    let Some(column) = values.first() else {
        return Err(exec_datafusion_err!("percentile_cont: there is no argument"));
    };
    match column.as_primitive_opt::<Float64Type>() {
        Some(numbers) => Ok(numbers.clone()),
        None => Ok(Float64Array::new_null(column.len())),
    }
}

/// Numbers of one group, or of a window that moves.
#[derive(Debug)]
struct PercentileValues {
    /// What the call asks for.
    percentiles: Percentiles,
    /// Whether each number counts once: of 1, 1, 1, 9 the median is 5 then, and else 1.
    is_distinct: bool,
    values: Vec<f64>,
}

impl Accumulator for PercentileValues {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        self.values.extend(numbers(values)?.iter().flatten());
        Ok(())
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        let lists = states.first().and_then(|lists| lists.as_list_opt::<i32>());
        for list in lists.into_iter().flat_map(|lists| lists.iter().flatten()) {
            self.update_batch(&[list])?;
        }
        Ok(())
    }

    /// Takes numbers out that have left the window, each as often as it left: of 1, 5, 5, 9 without 1 and 5 there is 5, 9.
    fn retract_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        let mut gone: HashMap<u64, usize> = HashMap::new();
        for value in numbers(values)?.iter().flatten() {
            *gone.entry(value.to_bits()).or_default() += 1;
        }
        self.values.retain(|value| match gone.get_mut(&value.to_bits()) {
            Some(count) if *count > 0 => {
                *count -= 1;
                false
            }
            _ => true,
        });
        Ok(())
    }

    fn supports_retract_batch(&self) -> bool {
        true
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        let list = lists(vec![std::mem::take(&mut self.values)], None);
        Ok(vec![ScalarValue::List(Arc::new(list))])
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        let answer = if self.is_distinct {
            // A copy: a window that moves on still needs each number as often as it is there.
            let mut distinct = self.values.clone();
            distinct.sort_unstable_by(f64::total_cmp);
            distinct.dedup();
            self.percentiles.of([&mut distinct].into_iter())
        } else {
            self.percentiles.of([&mut self.values].into_iter())
        };
        ScalarValue::try_from_array(&answer, 0)
    }

    fn size(&self) -> usize {
        size_of_val(self) + self.values.capacity() * size_of::<f64>()
    }
}

/// Numbers of many groups.
#[derive(Debug)]
struct PercentileGroups {
    percentiles: Percentiles,
    /// The numbers of each group, by its index.
    values: Vec<Vec<f64>>,
    /// Bytes of the inner lists.
    bytes: usize,
}

impl PercentileGroups {
    /// Adds numbers to a group and counts what its list has grown by: lists double, so the capacity is counted and not the length.
    fn extend(&mut self, group: usize, more: impl Iterator<Item = f64>) {
        if let Some(values) = self.values.get_mut(group) {
            let before = values.capacity();
            values.extend(more);
            self.bytes += (values.capacity() - before) * size_of::<f64>();
        }
    }

    /// Makes room for a list of another partition. There is one of each, as a rule as long as the others: room for just as many is enough, where a list
    /// that doubles would have half of its room for nothing.
    fn reserve(&mut self, group: usize, more: usize) {
        if let Some(values) = self.values.get_mut(group)
            && more >= (values.len() / 4).max(4)
        {
            let before = values.capacity();
            values.reserve_exact(more);
            self.bytes += (values.capacity() - before) * size_of::<f64>();
        }
    }

    /// The numbers of the first groups, or of all, which are forgotten here.
    fn take(&mut self, emit_to: EmitTo) -> Vec<Vec<f64>> {
        let taken = emit_to.take_needed(&mut self.values);
        self.bytes -= taken.iter().map(Vec::capacity).sum::<usize>() * size_of::<f64>();
        taken
    }
}

/// Whether a filter lets a row through.
fn is_let_through(filter: Option<&BooleanArray>, row: usize) -> bool {
    filter.is_none_or(|filter| filter.is_valid(row) && filter.value(row))
}

impl GroupsAccumulator for PercentileGroups {
    fn update_batch(
        &mut self,
        values: &[ArrayRef],
        group_indices: &[usize],
        filter: Option<&BooleanArray>,
        groups: usize,
    ) -> Result<()> {
        // Groups are numbered from 0 on, and `groups` says how many there are by now.
        self.values.resize(groups, Vec::new());
        for (row, (number, &group)) in numbers(values)?.iter().zip(group_indices).enumerate() {
            if is_let_through(filter, row) {
                self.extend(group, number.into_iter());
            }
        }
        Ok(())
    }

    fn merge_batch(
        &mut self,
        states: &[ArrayRef],
        group_indices: &[usize],
        groups: usize,
    ) -> Result<()> {
        self.values.resize(groups, Vec::new());
        let lists = states.first().and_then(|lists| lists.as_list_opt::<i32>());
        let lists = lists.into_iter().flat_map(ListArray::iter);
        for (list, &group) in lists.zip(group_indices) {
            let Some(list) = list else { continue };
            let numbers = numbers(&[list])?;
            self.reserve(group, numbers.len());
            self.extend(group, numbers.iter().flatten());
        }
        Ok(())
    }

    fn state(&mut self, emit_to: EmitTo) -> Result<Vec<ArrayRef>> {
        let groups = self.take(emit_to);
        Ok(vec![Arc::new(lists(groups, None))])
    }

    fn evaluate(&mut self, emit_to: EmitTo) -> Result<ArrayRef> {
        let mut groups = self.take(emit_to);
        Ok(self.percentiles.of(groups.iter_mut()))
    }

    /// Each row as the state of a group of its own, for where the library finds that groups are nearly as many as rows: a list of one number, or of none
    /// for null and for rows that the filter leaves out.
    fn convert_to_state(
        &self,
        values: &[ArrayRef],
        filter: Option<&BooleanArray>,
    ) -> Result<Vec<ArrayRef>> {
        let numbers = numbers(values)?;
        let rows = numbers.iter().enumerate();
        let groups = rows.map(|(row, number)| {
            number.filter(|_| is_let_through(filter, row)).into_iter().collect()
        });
        Ok(vec![Arc::new(lists(groups.collect(), None))])
    }

    /// Numbers are copied when they are handed on, and another time when they are merged, which nobody counts before it is done: so they count
    /// twice, and the statement has asked for that memory when it is needed.
    fn size(&self) -> usize {
        self.values.capacity() * size_of::<Vec<f64>>() + 2 * self.bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn half() -> Percentiles {
        Percentiles { all: vec![Percentile { part: 0.5, is_falling: false }], is_list: false }
    }

    #[test]
    fn a_percentile_lies_between_its_neighbours() {
        let of = |numbers: &[f64], part| {
            at_part(&mut numbers.to_vec(), Percentile { part, is_falling: false })
        };
        assert_eq!(of(&[], 0.5), None);
        assert_eq!(of(&[7.0], 0.99), Some(7.0));
        assert_eq!(of(&[40.0, 10.0, 30.0, 20.0], 0.75), Some(32.5));
        assert_eq!(of(&[40.0, 10.0, 30.0, 20.0], 0.0), Some(10.0));
        assert_eq!(of(&[40.0, 10.0, 30.0, 20.0], 1.0), Some(40.0));
        // A third is no multiple of a millionth.
        assert_eq!(of(&[0.0, 3e9], 1.0 / 3.0), Some(1e9));
        assert_eq!(of(&[f64::INFINITY, f64::INFINITY], 0.5), Some(f64::INFINITY));
        // Nine tenths from the top are one tenth, which no float is.
        let mut tens: Vec<f64> = (0..=10).map(|n| f64::from(n) * 10.0).collect();
        assert_eq!(at_part(&mut tens, Percentile { part: 0.9, is_falling: true }), Some(10.0));
    }

    #[test]
    fn what_leaves_a_window_is_counted_no_more() {
        let batch = |numbers: &[f64]| -> Vec<ArrayRef> {
            vec![Arc::new(Float64Array::from(numbers.to_vec()))]
        };
        let mut window =
            PercentileValues { percentiles: half(), is_distinct: false, values: Vec::new() };
        window.update_batch(&batch(&[1.0, 5.0, 5.0, 9.0])).unwrap();
        window.retract_batch(&batch(&[1.0, 5.0])).unwrap();
        assert_eq!(window.evaluate().unwrap(), ScalarValue::Float64(Some(7.0)));
        let mut distinct =
            PercentileValues { percentiles: half(), is_distinct: true, values: Vec::new() };
        distinct.update_batch(&batch(&[1.0, 5.0, 5.0, 5.0, 9.0, 9.0, 9.0, 10.0])).unwrap();
        assert_eq!(distinct.evaluate().unwrap(), ScalarValue::Float64(Some(7.0)));
    }

    #[test]
    fn groups_go_through_states() {
        let values: Vec<ArrayRef> =
            vec![Arc::new(Float64Array::from(vec![Some(1.0), None, Some(3.0), Some(100.0)]))];
        let filter = BooleanArray::from(vec![true, true, true, false]);
        let mut whole = PercentileGroups { percentiles: half(), values: Vec::new(), bytes: 0 };
        whole.update_batch(&values, &[0, 0, 0, 1], Some(&filter), 2).unwrap();
        let rows = whole.convert_to_state(&values, Some(&filter)).unwrap();
        let states = whole.state(EmitTo::All).unwrap();
        assert_eq!(whole.bytes, 0);
        let mut merged = PercentileGroups { percentiles: half(), values: Vec::new(), bytes: 0 };
        merged.merge_batch(&states, &[1, 0], 2).unwrap();
        merged.merge_batch(&rows, &[0, 0, 0, 0], 2).unwrap();
        let lists = merged.values.capacity() * size_of::<Vec<f64>>();
        assert!(merged.bytes >= 4 * size_of::<f64>());
        assert_eq!(merged.size(), lists + 2 * merged.bytes, "numbers count twice");
        let answer = merged.evaluate(EmitTo::All).unwrap();
        let answer: Vec<_> = answer.as_primitive::<Float64Type>().iter().collect();
        assert_eq!(answer, [Some(2.0), Some(2.0)]);
    }

    #[test]
    fn a_list_of_percentiles_is_a_list_of_numbers() {
        let parts = [0.5, 0.75].map(|part| Percentile { part, is_falling: false });
        let percentiles = Percentiles { all: parts.to_vec(), is_list: true };
        let mut groups = [vec![40.0, 10.0, 30.0, 20.0], Vec::new()];
        let answer = percentiles.of(groups.iter_mut());
        let lists = answer.as_list::<i32>();
        let of = |at: usize| -> Vec<_> {
            lists.value(at).as_primitive::<Float64Type>().iter().collect()
        };
        assert_eq!((of(0), of(1)), (vec![Some(25.0), Some(32.5)], vec![None, None]));
    }
}
