//! Counts, sums, least and most of frames of rows.
//!
//! Of integers, sums up to each row are enough: a frame's is the difference of two. Numbers with a point are added up, from the frame before where
//! one goes on from it and from sums of blocks where not. The least and the most are among few rows that come into question.
//!
//! ```text
//! integers   3  1  4  1  5        sums before each row   0  3  4  8  9  14       1..4 is 9 - 3 = 6
//! counted    y  n  y  y  y        counted before each    0  1  1  2  3  4        1..4 is 3 - 1 = 2
//! doubles    frames 0..3, 0..4    the second is the first plus row 3
//!            frames 0..9000, 1..9000    rows 1 to 63, then blocks: 63 of 64 rows, one of 4,096, 12 of 64, and rows 8960 to 8999
//! most of    3  1  4  1  5        the queue after row 1: 3, 1; after row 2: 4; after row 3: 4, 1; after row 4: 5
//! ```

use std::{cmp::Ordering, collections::VecDeque, ops::Range, sync::Arc};

use arrow::{
    array::{
        Array as _, ArrayRef, AsArray as _, BooleanArray, Float64Array, Int64Array, UInt32Array,
        UInt64Array, make_comparator,
    },
    buffer::NullBuffer,
    compute::SortOptions,
    datatypes::{DataType, Float64Type, Int64Type, UInt64Type},
};
use datafusion_common::{Result, exec_err, internal_err};

use crate::row_order::in_order;

/// Rows that are added up as one where a frame does not go on from the last one, and such sums that are again: a frame of a million rows is a
/// few hundred additions.
const BLOCK_ROWS: usize = 64;

/// Rows that have a value and meet the filter; nothing where all do.
pub fn counted(values: &ArrayRef, filter: Option<&BooleanArray>) -> Option<NullBuffer> {
    let known = values.logical_nulls();
    let passing = filter.map(|filter| {
        let is_true = filter.iter().map(|passes| passes == Some(true));
        NullBuffer::from_iter(is_true)
    });
    NullBuffer::union(known.as_ref(), passing.as_ref())
}

/// How many rows before each are counted.
pub enum Counts {
    /// Every row is: a frame's count is its length.
    All,
    /// Of each row how many before it are, and behind the last how many there are in all: `0, 1, 1, 2` of yes, no, yes.
    Before(Vec<u32>),
}

impl Counts {
    /// Of these rows, all where none are named.
    pub fn new(counted: Option<&NullBuffer>, rows: usize) -> Self {
        let Some(counted) = counted else { return Self::All };
        let mut before = Vec::with_capacity(rows + 1);
        let mut count = 0;
        before.push(count);
        before.extend(counted.iter().map(|is_counted| {
            count += u32::from(is_counted);
            count
        }));
        Self::Before(before)
    }

    /// How many of a frame's rows are counted.
    pub fn within(&self, frame: &Range<usize>) -> usize {
        match self {
            Self::All => frame.len(),
            Self::Before(before) => (before[frame.end] - before[frame.start]) as usize,
        }
    }
}

/// Sums and averages of frames; null where no row is counted. The answer has the type of the values: integers, or doubles.
///
/// Errors: another type, which [`super::Kind::takes`] has refused.
pub fn sums(
    is_average: bool,
    values: &ArrayRef,
    is_valid: impl Fn(usize) -> bool,
    frames: impl Iterator<Item = Range<usize>>,
    counts: &Counts,
) -> Result<ArrayRef> {
    Ok(match values.data_type() {
        DataType::Int64 => {
            let all = values.as_primitive::<Int64Type>().values();
            let value = |row: usize| if is_valid(row) { i128::from(all[row]) } else { 0 };
            let sums = whole_sums(values.len(), value, frames, counts);
            Arc::new(sums.collect::<Result<Int64Array>>()?)
        }
        DataType::UInt64 => {
            let all = values.as_primitive::<UInt64Type>().values();
            let value = |row: usize| if is_valid(row) { i128::from(all[row]) } else { 0 };
            let sums = whole_sums(values.len(), value, frames, counts);
            Arc::new(sums.collect::<Result<UInt64Array>>()?)
        }
        DataType::Float64 => {
            let all = values.as_primitive::<Float64Type>().values();
            let known: Vec<f64> = all
                .iter()
                .enumerate()
                .map(|(row, value)| if is_valid(row) { *value } else { 0.0 })
                .collect();
            let mut sums = FloatSums::new(&known);
            let each = frames.map(|frame| {
                let count = counts.within(&frame);
                let sum = sums.of(frame);
                match is_average {
                    _ if count == 0 => None,
                    true => Some(sum / count as f64),
                    false => Some(sum),
                }
            });
            Arc::new(each.collect::<Float64Array>())
        }
        other => return internal_err!("a sum of {other}"),
    })
}

/// Sums of integers of frames, each the difference of two; null where no row is counted.
///
/// Errors: one that is too large for its type.
fn whole_sums<T: TryFrom<i128>>(
    rows: usize,
    value: impl Fn(usize) -> i128,
    frames: impl Iterator<Item = Range<usize>>,
    counts: &Counts,
) -> impl Iterator<Item = Result<Option<T>>> {
    let before = running(rows, value, |a: i128, b| a + b);
    frames.map(move |frame| {
        if counts.within(&frame) == 0 {
            return Ok(None);
        }
        let sum = before[frame.end] - before[frame.start];
        match T::try_from(sum) {
            Ok(sum) => Ok(Some(sum)),
            Err(_) => exec_err!("integer out of range: a sum is {sum}"),
        }
    })
}

/// The sum before each row, and behind the last that of all: `0, 3, 4, 8` of `3, 1, 4`.
fn running<T: Copy + Default>(
    rows: usize,
    value: impl Fn(usize) -> T,
    add: impl Fn(T, T) -> T,
) -> Vec<T> {
    let mut all = Vec::with_capacity(rows + 1);
    let mut sum = T::default();
    all.push(sum);
    all.extend((0..rows).map(|row| {
        sum = add(sum, value(row));
        sum
    }));
    all
}

/// Sums of numbers with a point, which are added up and never taken away: a difference of large sums would have few digits left.
struct FloatSums<'a> {
    /// Zero where a row is not counted.
    values: &'a [f64],
    /// Sums of so many rows each, and so on: 64, 4,096, 262,144.
    levels: Vec<(usize, Vec<f64>)>,
    /// The frame that was added up last, and its sum.
    last: Range<usize>,
    sum: f64,
}

impl<'a> FloatSums<'a> {
    /// With the sums of all blocks, which takes one pass over the values.
    fn new(values: &'a [f64]) -> Self {
        let mut levels: Vec<(usize, Vec<f64>)> = Vec::new();
        let mut size = BLOCK_ROWS;
        while size <= values.len() {
            let below = levels.last().map_or(values, |(_, sums)| sums);
            let sums = below.chunks(BLOCK_ROWS).map(|block| block.iter().sum()).collect();
            levels.push((size, sums));
            size *= BLOCK_ROWS;
        }
        Self { values, levels, last: 0..0, sum: 0.0 }
    }

    /// The sum of a frame: that of the last one and the rows behind it, where both begin at the same row, else from the largest blocks that fit.
    fn of(&mut self, frame: Range<usize>) -> f64 {
        let goes_on = frame.start == self.last.start && frame.end >= self.last.end;
        let (mut sum, mut at) =
            if goes_on { (self.sum, self.last.end) } else { (0.0, frame.start) };
        while at < frame.end {
            let fits =
                |(size, _): &&(usize, Vec<f64>)| at.is_multiple_of(*size) && at + size <= frame.end;
            match self.levels.iter().rev().find(fits) {
                Some((size, sums)) => {
                    sum += sums[at / size];
                    at += size;
                }
                None => {
                    sum += self.values[at];
                    at += 1;
                }
            }
        }
        (self.last, self.sum) = (frame, sum);
        sum
    }
}

/// The index of the least or the most value of each frame. Neither end of a frame is before that of the frame before, within a
/// partition. Null where no row of a frame has a value; of equal values the row of any.
///
/// Errors: a type that has no order.
pub fn extremes(
    values: &ArrayRef,
    is_most: bool,
    is_valid: impl Fn(usize) -> bool,
    frames: impl Iterator<Item = Range<usize>>,
) -> Result<UInt32Array> {
    let compare: Box<dyn Fn(usize, usize) -> Ordering> = match in_order(values) {
        Some(numbers) => Box::new(move |a, b| numbers[a].cmp(&numbers[b])),
        None => Box::new(make_comparator(values, values, SortOptions::default())?),
    };
    let is_better = |one: usize, other: usize| {
        let order = compare(one, other);
        if is_most { order.is_ge() } else { order.is_le() }
    };
    // Rows that are the best of those behind them.
    let mut best: VecDeque<usize> = VecDeque::new();
    let mut end = 0;
    let each = frames.map(|frame| {
        for row in end.max(frame.start)..frame.end {
            if is_valid(row) {
                while best.pop_back_if(|last| is_better(row, *last)).is_some() {}
                best.push_back(row);
            }
        }
        end = end.max(frame.end);
        while best.pop_front_if(|first| *first < frame.start).is_some() {}
        best.front().filter(|first| frame.contains(first)).map(|first| *first as u32)
    });
    Ok(each.collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Frames whose ends do not go back, the same each time.
    fn frames(rows: usize, seed: u64) -> Vec<Range<usize>> {
        let mut state = seed;
        let mut next = |below: usize| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695);
            (state >> 33) as usize % below
        };
        let (mut start, mut end) = (0, 0);
        (0..rows)
            .map(|_| {
                start = (start + next(4)).min(rows);
                end = (end + next(5)).clamp(start, rows);
                start..end
            })
            .collect()
    }

    #[test]
    fn frames_come_to_what_their_rows_come_to() {
        for (rows, seed) in [(0, 1), (1, 2), (90, 3), (5_000, 4)] {
            let numbers: Vec<f64> =
                (0..rows).map(|row| ((row * 7_919) % 1_013) as f64 - 500.0).collect();
            let frames = frames(rows, seed);
            let mut sums = FloatSums::new(&numbers);
            for frame in &frames {
                assert_eq!(sums.of(frame.clone()), numbers[frame.clone()].iter().sum::<f64>());
            }
            // Every frame to the end, none of which goes on from the one before.
            let mut sums = FloatSums::new(&numbers);
            for start in 0..rows {
                assert_eq!(sums.of(start..rows), numbers[start..].iter().sum::<f64>());
            }
            let values: ArrayRef = Arc::new(Float64Array::from(numbers.clone()));
            let is_valid = |row: usize| !row.is_multiple_of(3);
            let most = extremes(&values, true, is_valid, frames.iter().cloned()).unwrap();
            for (at, frame) in most.iter().zip(frames) {
                let known = frame.filter(|row| is_valid(*row)).map(|row| numbers[row]);
                let expected = known.fold(None, |most: Option<f64>, one| {
                    Some(most.map_or(one, |most| most.max(one)))
                });
                assert_eq!(at.map(|at| numbers[at as usize]), expected);
            }
        }
    }
}
