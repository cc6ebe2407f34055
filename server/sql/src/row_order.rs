//! The order of rows by several columns, as the indexes that they come from.
//!
//! Columns of numbers and times become one integer: `(tenant 7, user 130, 09:12:00.250)` takes 10, 17 and 33 bits where there are a
//! thousand tenants, a hundred thousand users and ninety days. Many integers of up to 64 bits are sorted by their digits,
//! others compared, and columns behind them, such as texts, are looked at only where the integers are the same.
//!
//! How a column becomes bits, and what is done with them:
//!
//! ```text
//! ORDER BY tenant, ms DESC NULLS LAST       tenant 7 9 7 7      ms 2.0 5.0 null 8.0
//! tenant, from the least one on             0 2 0 0             2 bits: 0 to 2
//! ms, as its doubles are counted            from 8.0 down       54 bits: 2.0 is 2⁵³ doubles below 8.0, and null is behind it
//! packed, 56 bits                           tenant, ms          sorted as integers: rows 3 0 2 1
//! ```
//!
//! A key that does not fit into 128 bits, or is a string, ends the packing; it and those behind it are compared row by row, within runs of equal integers.

use std::cmp::Ordering;

use arrow::{
    array::{
        Array as _, ArrayRef, ArrowPrimitiveType, AsArray as _, BooleanArray, DynComparator,
        make_comparator,
    },
    compute::SortOptions,
    datatypes::{
        DataType, Date32Type, DurationMillisecondType, Float64Type, Int32Type, Int64Type, TimeUnit,
        TimestampMicrosecondType, TimestampMillisecondType, TimestampNanosecondType,
        TimestampSecondType, UInt32Type, UInt64Type,
    },
};
use datafusion_common::Result;

/// Bits of a digit.
/// 2,048 counters fit into a first-level cache. 60 bits are six passes.
const DIGIT_BITS: u32 = 11;
/// Rows that are compared as fast as their digits are counted.
const FEW_ROWS: usize = 2_048;

/// A column to sort by.
/// With its direction and where nulls come.
pub type Key = (ArrayRef, SortOptions);

/// The indexes of rows in their order; rows that are alike stay as they are. All keys have as many rows, fewer than 2³².
///
/// Of `9, null, 7` ascending with nulls first it is `[1, 2, 0]`.
///
/// Errors: a type that has no order.
pub fn sorted(keys: &[Key], rows: usize) -> Result<Vec<u32>> {
    let Packed { values, bits, used } = Packed::of(keys, rows);
    let mut order = match bits <= u64::BITS {
        true => by_digits(values.iter().map(|value| *value as u64).collect(), bits),
        false => by_comparison(&values),
    };
    let rest = keys.get(used..).unwrap_or_default();
    if rest.is_empty() {
        return Ok(order);
    }
    let rest = rest.iter().map(|(column, options)| make_comparator(column, column, *options));
    let rest: Vec<DynComparator> = rest.collect::<Result<_, _>>()?;
    let compare = |a: &u32, b: &u32| {
        let each = rest.iter().map(|compare| compare(*a as usize, *b as usize));
        each.into_iter().find(|order| order.is_ne()).unwrap_or(Ordering::Equal)
    };
    for run in order.chunk_by_mut(|a, b| values[*a as usize] == values[*b as usize]) {
        if run.len() > 1 {
            run.sort_by(compare);
        }
    }
    Ok(order)
}

/// The first keys of rows as integers of the same order.
///
/// The first key is in the highest bits, `bits` is how many are used in all.
struct Packed {
    values: Vec<u128>,
    bits: u32,
    /// How many keys are in them.
    used: usize,
}

impl Packed {
    /// Packs keys from the first on, as long as they are numbers or times and fit.
    fn of(keys: &[Key], rows: usize) -> Self {
        let mut packed = Self { values: vec![0; rows], bits: 0, used: 0 };
        for (column, options) in keys {
            let Some((ranks, bits)) = ranks(column, *options) else { break };
            if packed.bits + bits > u128::BITS {
                break;
            }
            // A column with one value in all rows takes none.
            if bits > 0 {
                for (value, rank) in packed.values.iter_mut().zip(ranks) {
                    *value = *value << bits | rank;
                }
            }
            packed.bits += bits;
            packed.used += 1;
        }
        packed
    }
}

/// Numbers in the order of a column's values, from zero on, and how many bits the largest has. Nothing for types that are no numbers.
///
/// ```text
/// 7, 9, 7, null, ascending, nulls last       0 2 0 3     2 bits
/// ascending, nulls first                     1 3 1 0     2 bits
/// descending, nulls last                     2 0 2 3     2 bits
/// 7, 7                                       0 0         0 bits
/// ```
fn ranks(column: &ArrayRef, options: SortOptions) -> Option<(Vec<u128>, u32)> {
    let values = in_order(column)?;
    let nulls = column.nulls().filter(|nulls| nulls.null_count() > 0);
    let valid = |row: usize| nulls.is_none_or(|nulls| nulls.is_valid(row));
    let known = values.iter().enumerate().filter(|(row, _)| valid(*row)).map(|(_, value)| *value);
    let (least, most) =
        known.fold((u64::MAX, 0), |(least, most), value| (least.min(value), most.max(value)));
    // With nulls only, there is no value.
    let span = u128::from(most.saturating_sub(least));
    let before = u128::from(nulls.is_some() && options.nulls_first);
    let rank = |(row, value): (usize, u64)| match valid(row) {
        false if options.nulls_first => 0,
        false => span + 1,
        true if options.descending => before + u128::from(most - value),
        true => before + u128::from(value - least),
    };
    let largest = span + u128::from(nulls.is_some());
    let ranks = values.into_iter().enumerate().map(rank).collect();
    Some((ranks, u128::BITS - largest.leading_zeros()))
}

/// The values of a column as integers of the same order; any for nulls. Nothing for types that are no numbers.
///
/// Signed numbers have their top bit turned over: -1 is 0x7fff…, 0 is 0x8000…. Of a negative double all other bits are turned over as well, so that -2.0
/// comes before -1.0.
pub fn in_order(column: &ArrayRef) -> Option<Vec<u64>> {
    fn each<T: ArrowPrimitiveType>(column: &ArrayRef, to: impl Fn(T::Native) -> u64) -> Vec<u64> {
        column.as_primitive::<T>().values().iter().map(|value| to(*value)).collect()
    }
    let signed = |value: i64| value as u64 ^ 1 << 63;
    Some(match column.data_type() {
        DataType::Boolean => {
            let values: &BooleanArray = column.as_boolean();
            values.values().iter().map(u64::from).collect()
        }
        DataType::UInt32 => each::<UInt32Type>(column, u64::from),
        DataType::UInt64 => each::<UInt64Type>(column, |value| value),
        DataType::Int32 => each::<Int32Type>(column, |value| signed(value.into())),
        DataType::Int64 => each::<Int64Type>(column, signed),
        DataType::Date32 => each::<Date32Type>(column, |value| signed(value.into())),
        DataType::Float64 => each::<Float64Type>(column, |value| {
            let bits = value.to_bits() as i64;
            signed(bits ^ ((bits >> 63) as u64 >> 1) as i64)
        }),
        DataType::Duration(TimeUnit::Millisecond) => {
            each::<DurationMillisecondType>(column, signed)
        }
        DataType::Timestamp(unit, _) => match unit {
            TimeUnit::Second => each::<TimestampSecondType>(column, signed),
            TimeUnit::Millisecond => each::<TimestampMillisecondType>(column, signed),
            TimeUnit::Microsecond => each::<TimestampMicrosecondType>(column, signed),
            TimeUnit::Nanosecond => each::<TimestampNanosecondType>(column, signed),
        },
        _ => return None,
    })
}

/// The order of wide integers, by a stable sort.
fn by_comparison(values: &[u128]) -> Vec<u32> {
    let mut order: Vec<u32> = (0..values.len() as u32).collect();
    order.sort_by_key(|row| values[*row as usize]);
    order
}

/// The order of integers of so many bits: by their last digit first, each time leaving those that are alike as they are.
fn by_digits(values: Vec<u64>, bits: u32) -> Vec<u32> {
    if values.is_sorted() {
        return (0..values.len() as u32).collect();
    }
    let mut rows: Vec<(u64, u32)> = values.into_iter().zip(0..).collect();
    if rows.len() <= FEW_ROWS {
        rows.sort_by_key(|(value, _)| *value);
        return rows.into_iter().map(|(_, row)| row).collect();
    }
    let mut other = vec![(0, 0); rows.len()];
    for shift in (0..bits).step_by(DIGIT_BITS as usize) {
        let digit = |value: u64| (value >> shift) as usize & ((1 << DIGIT_BITS) - 1);
        let mut starts = [0usize; 1 << DIGIT_BITS];
        for (value, _) in &rows {
            starts[digit(*value)] += 1;
        }
        // All rows have the same digit here: the pass would move nothing.
        if starts.contains(&rows.len()) {
            continue;
        }
        // Counts become the index of the first row with each digit, which then moves on with each row that is written.
        let mut start = 0;
        for count in &mut starts {
            start += std::mem::replace(count, start);
        }
        for (value, row) in &rows {
            let slot = &mut starts[digit(*value)];
            other[*slot] = (*value, *row);
            *slot += 1;
        }
        std::mem::swap(&mut rows, &mut other);
    }
    rows.into_iter().map(|(_, row)| row).collect()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::{
        array::{
            Float64Array, Int64Array, StringViewArray, TimestampMillisecondArray, UInt32Array,
        },
        compute::{SortColumn, lexsort_to_indices},
    };

    use super::*;

    /// Numbers that are not in any order, the same each time.
    fn numbers(count: usize, below: u64, seed: u64) -> impl Iterator<Item = u64> {
        let mut state = seed;
        (0..count).map(move |_| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695);
            (state >> 33) % below
        })
    }

    #[test]
    fn rows_are_in_the_order_of_the_library() {
        for (rows, below) in [(0, 1), (1, 1), (40, 5), (5_000, 7), (20_000, 100_000)] {
            let maybe =
                |seed| numbers(rows, below + 1, seed).map(move |n| (n > 0).then_some(n as i64 - 3));
            let columns: [ArrayRef; 6] = [
                Arc::new(numbers(rows, 3, 1).map(|n| Some(n as u32)).collect::<UInt32Array>()),
                Arc::new(maybe(2).collect::<Int64Array>()),
                Arc::new(
                    maybe(3)
                        .map(|n| n.map(|n| (n as f64) * if n % 2 == 0 { -0.5 } else { 1e300 }))
                        .collect::<Float64Array>(),
                ),
                Arc::new(
                    maybe(4)
                        .map(|n| n.map(|n| 1_790_000_000_000 + n))
                        .collect::<TimestampMillisecondArray>(),
                ),
                Arc::new(
                    maybe(5).map(|n| n.map(|n| format!("text {n}"))).collect::<StringViewArray>(),
                ),
                // The indexes, so that rows that are alike have one order.
                Arc::new((0..rows as i64).map(Some).collect::<Int64Array>()),
            ];
            for indexes in [[0, 1, 5], [0, 3, 4], [2, 1, 5], [4, 0, 5], [3, 2, 1], [1, 4, 3]] {
                for turn in 0..8u8 {
                    let option = |at: usize| SortOptions {
                        descending: turn >> at & 1 == 1,
                        nulls_first: (turn + 1) >> at & 1 == 1,
                    };
                    let keys = indexes.iter().enumerate();
                    let mut keys: Vec<Key> = keys
                        .map(|(at, column)| (ArrayRef::clone(&columns[*column]), option(at)))
                        .collect();
                    keys.push((ArrayRef::clone(&columns[5]), SortOptions::default()));
                    let theirs: Vec<SortColumn> = keys
                        .iter()
                        .map(|(values, options)| SortColumn {
                            values: ArrayRef::clone(values),
                            options: Some(*options),
                        })
                        .collect();
                    let theirs = lexsort_to_indices(&theirs, None).unwrap();
                    assert_eq!(
                        sorted(&keys, rows).unwrap(),
                        theirs.values()[..],
                        "{indexes:?} {turn}"
                    );
                }
            }
        }
    }
}
