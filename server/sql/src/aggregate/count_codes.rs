//! The aggregate function `count_codes`: how many distinct dictionary codes a group has.
//!
//! ```text
//! SELECT date_trunc('day', timestamp), count(DISTINCT user_id) FROM events GROUP BY 1
//! SELECT date_trunc('day', timestamp), count_codes("number of user_id") FROM events GROUP BY 1
//! ```
//!
//! Codes of a statement are dense, so a group's [`CodeSet`] takes an eighth of a byte to some eight bytes a code, where a hash table of groups and
//! values takes sixteen and more.
//!
//! ```text
//! partition 0   day 1: {0, 3}   day 2: {3}         states, a group in each row: 00 00000000 03000000 | 00 03000000
//! partition 1   day 1: {3, 7}                      states: 00 03000000 07000000
//! merged        day 1: {0, 3, 7}   day 2: {3}      answers 3 and 1
//! ```
//!
//! Rows without a code, and those that a `FILTER` leaves out, count for nothing. A group without codes is 0, never null.

use std::sync::Arc;

use arrow::{
    array::{
        Array as _, ArrayRef, AsArray as _, BinaryArray, BinaryBuilder, BooleanArray, Int64Array,
    },
    datatypes::{DataType, Field, FieldRef, UInt32Type},
};
use datafusion_common::{Result, ScalarValue};
use datafusion_expr::{
    Accumulator, AggregateUDF, AggregateUDFImpl, EmitTo, GroupsAccumulator, Signature, Volatility,
    function::{AccumulatorArgs, StateFieldsArgs},
};

use super::code_set::{self, CodeSet};

/// `count_codes(code)`: of `UInt32`, with `Int64` as its answer. Statements cannot name it; `rules/dictionary_group_by.rs` puts it in.
pub fn count_codes() -> AggregateUDF {
    let signature = Signature::exact(vec![DataType::UInt32], Volatility::Immutable);
    AggregateUDF::new_from_impl(CountCodes { signature })
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct CountCodes {
    /// One argument, a code.
    signature: Signature,
}

impl AggregateUDFImpl for CountCodes {
    fn name(&self) -> &str {
        "count_codes"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(DataType::Int64)
    }

    fn is_nullable(&self) -> bool {
        false
    }

    fn default_value(&self, _: &DataType) -> Result<ScalarValue> {
        Ok(ScalarValue::Int64(Some(0)))
    }

    fn state_fields(&self, args: StateFieldsArgs<'_>) -> Result<Vec<FieldRef>> {
        let name = format!("{}[codes]", args.name);
        Ok(vec![Arc::new(Field::new(name, DataType::Binary, true))])
    }

    fn accumulator(&self, _: AccumulatorArgs<'_>) -> Result<Box<dyn Accumulator>> {
        Ok(Box::new(One::default()))
    }

    fn groups_accumulator_supported(&self, _: AccumulatorArgs<'_>) -> bool {
        true
    }

    fn create_groups_accumulator(
        &self,
        _: AccumulatorArgs<'_>,
    ) -> Result<Box<dyn GroupsAccumulator>> {
        Ok(Box::new(CodeGroups::default()))
    }
}

/// Codes of all rows, of a statement without groups.
#[derive(Debug, Default)]
struct One {
    set: CodeSet,
}

impl Accumulator for One {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        let codes = values[0].as_primitive::<UInt32Type>();
        for code in codes.iter().flatten() {
            self.set.insert(code);
        }
        Ok(())
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        Ok(ScalarValue::Int64(i64::try_from(self.set.len()).ok()))
    }

    fn size(&self) -> usize {
        size_of_val(self) + self.set.heap_bytes()
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        let mut state = Vec::new();
        self.set.write(&mut state);
        Ok(vec![ScalarValue::Binary(Some(state))])
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        let states = states[0].as_binary::<i32>();
        states.iter().flatten().try_for_each(|state| self.set.merge(state))
    }
}

/// Codes of each group, by the group's index.
#[derive(Debug, Default)]
struct CodeGroups {
    /// One set for each group.
    sets: Vec<CodeSet>,
    /// Bytes of all sets on the heap, about.
    heap_bytes: usize,
}

impl CodeGroups {
    /// Changes the set of a group, and what is counted of it.
    fn change<T>(&mut self, group: usize, change: impl FnOnce(&mut CodeSet) -> T) -> T {
        let set = &mut self.sets[group];
        let before = set.heap_bytes();
        let changed = change(set);
        self.heap_bytes = (self.heap_bytes + set.heap_bytes()).saturating_sub(before);
        changed
    }

    /// The sets of the first groups or of all; those behind have lower indexes then.
    fn take(&mut self, emit_to: EmitTo) -> Vec<CodeSet> {
        let sets = emit_to.take_needed(&mut self.sets);
        self.heap_bytes = self.sets.iter().map(|set| set.heap_bytes()).sum();
        sets
    }
}

impl GroupsAccumulator for CodeGroups {
    fn update_batch(
        &mut self,
        values: &[ArrayRef],
        group_indices: &[usize],
        opt_filter: Option<&BooleanArray>,
        total_num_groups: usize,
    ) -> Result<()> {
        self.sets.resize_with(total_num_groups, CodeSet::default);
        let codes = values[0].as_primitive::<UInt32Type>();
        for (row, (group, code)) in group_indices.iter().zip(codes.values()).enumerate() {
            let is_left_out = codes.is_null(row) || opt_filter.is_some_and(|f| !passes(f, row));
            if !is_left_out {
                // Most codes are known, and cost a look.
                if self.sets[*group].contains(*code) {
                    continue;
                }
                self.change(*group, |set| set.insert(*code));
            }
        }
        Ok(())
    }

    fn evaluate(&mut self, emit_to: EmitTo) -> Result<ArrayRef> {
        let sets = self.take(emit_to);
        Ok(Arc::new(sets.iter().map(|set| set.len() as i64).collect::<Int64Array>()))
    }

    fn state(&mut self, emit_to: EmitTo) -> Result<Vec<ArrayRef>> {
        let mut states = BinaryBuilder::new();
        let mut state = Vec::new();
        for set in self.take(emit_to) {
            state.clear();
            set.write(&mut state);
            states.append_value(&state);
        }
        Ok(vec![Arc::new(states.finish())])
    }

    fn merge_batch(
        &mut self,
        values: &[ArrayRef],
        group_indices: &[usize],
        total_num_groups: usize,
    ) -> Result<()> {
        self.sets.resize_with(total_num_groups, CodeSet::default);
        let states = values[0].as_binary::<i32>();
        for (group, state) in group_indices.iter().zip(states) {
            self.change(*group, |set| set.merge(state.unwrap_or_default()))?;
        }
        Ok(())
    }

    /// A state for each row, where grouping before the merge would not pay: a list of one code, or a null.
    fn convert_to_state(
        &self,
        values: &[ArrayRef],
        opt_filter: Option<&BooleanArray>,
    ) -> Result<Vec<ArrayRef>> {
        let codes = values[0].as_primitive::<UInt32Type>();
        let state = |(row, code): (usize, Option<u32>)| {
            let code = code.filter(|_| opt_filter.is_none_or(|filter| passes(filter, row)))?;
            let [a, b, c, d] = code.to_le_bytes();
            Some([code_set::LISTED, a, b, c, d])
        };
        let states: BinaryArray = codes.iter().enumerate().map(state).collect();
        Ok(vec![Arc::new(states)])
    }

    fn size(&self) -> usize {
        self.sets.capacity() * size_of::<CodeSet>() + self.heap_bytes
    }
}

/// Whether a filter is true for a row; a null is not.
fn passes(filter: &BooleanArray, row: usize) -> bool {
    filter.is_valid(row) && filter.value(row)
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use arrow::array::UInt32Array;

    use super::*;

    #[test]
    fn codes_of_groups_are_counted_once_however_they_are_merged() {
        let rows: Vec<(usize, Option<u32>, bool)> = (0..60_000_u32)
            .map(|n| {
                let group = (n % 7) as usize;
                // Groups of few, of many in a small range, and of many far apart.
                let code = match group {
                    0 => n % 5,
                    1 | 2 => n * 7_919 % 4_000,
                    _ => n.wrapping_mul(2_654_435_761),
                };
                (group, (n % 11 > 0).then_some(code), n % 3 > 0)
            })
            .collect();
        let mut expected: Vec<HashSet<u32>> = vec![HashSet::new(); 8];
        for (group, code, passes) in &rows {
            expected[*group].extend(code.filter(|_| *passes));
        }
        let expected: Vec<i64> = expected.iter().map(|set| set.len() as i64).collect();
        let mut merged = CodeGroups::default();
        let converted = CodeGroups::default();
        for (at, part) in rows.chunks(9_000).enumerate() {
            let indices: Vec<usize> = part.iter().map(|(group, ..)| *group).collect();
            let codes: UInt32Array = part.iter().map(|(_, code, _)| *code).collect();
            let filter = BooleanArray::from(part.iter().map(|row| row.2).collect::<Vec<_>>());
            let values: Vec<ArrayRef> = vec![Arc::new(codes)];
            if at % 2 == 0 {
                let mut groups = CodeGroups::default();
                groups.update_batch(&values, &indices, Some(&filter), 8).unwrap();
                let state = groups.state(EmitTo::First(3)).unwrap();
                merged.merge_batch(&state, &[0, 1, 2], 8).unwrap();
                let state = groups.state(EmitTo::All).unwrap();
                merged.merge_batch(&state, &[3, 4, 5, 6, 7], 8).unwrap();
                assert_eq!(groups.heap_bytes, 0);
            } else {
                let state = converted.convert_to_state(&values, Some(&filter)).unwrap();
                merged.merge_batch(&state, &indices, 8).unwrap();
            }
        }
        let codes = expected.iter().sum::<i64>() as usize;
        assert!(merged.size() > codes, "{} of {codes}", merged.size());
        let counts = merged.evaluate(EmitTo::All).unwrap();
        assert_eq!(counts.as_primitive::<arrow::datatypes::Int64Type>().values(), &*expected);
    }
}
