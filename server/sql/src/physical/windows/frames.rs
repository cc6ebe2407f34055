//! Rows around each row: `ROWS 6 PRECEDING`, `RANGE BETWEEN INTERVAL '1 hour' PRECEDING AND CURRENT ROW`.
//!
//! Of sorted rows whose order is `10, 20, 20, 35`, `RANGE 10 PRECEDING` is `0..1, 0..3, 0..3, 3..4`, and `ROWS 1 PRECEDING` is
//! `0..1, 0..2, 1..3, 2..4`.
//!
//! ```text
//! RANGE BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW      0..1  0..3  0..3  0..4     up to the last row that is alike
//! ROWS BETWEEN 1 FOLLOWING AND 2 FOLLOWING               1..3  2..4  3..4  4..4     the last has no rows: a sum is null
//! ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW       0..1  0..2  0..3  0..4
//! RANGE BETWEEN 10 FOLLOWING AND UNBOUNDED FOLLOWING     1..4  3..4  3..4  4..4     from 20, 30, 30 and 45 on
//! ```
//!
//! Rows whose order is null are alike, and nothing is at a distance from them: a bound with a distance is that of these rows. With `DESC`,
//! values are turned around and rise again.

use std::{cmp::Ordering, ops::Range};

use arrow::{
    array::{Array as _, ArrayRef, AsArray as _},
    compute::SortOptions,
    datatypes::{
        DataType, Float64Type, Int64Type, IntervalMonthDayNano, TimeUnit, TimestampMillisecondType,
        UInt64Type,
    },
};
use datafusion_common::ScalarValue;
use datafusion_expr::{WindowFrame, WindowFrameBound, WindowFrameUnits};

/// Milliseconds of a day.
const DAY_MS: i64 = 86_400_000;
/// Nanoseconds of a millisecond.
const MS_NANOS: i64 = 1_000_000;

/// Which rows a function looks at.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct WindowBounds {
    /// Where it begins, that row included.
    start: Bound,
    /// Where it ends, that row included.
    end: Bound,
}

/// Where a frame begins or ends.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Bound {
    /// The first or the last row of the partition.
    Partition,
    /// The first or the last row that is like this one in the order.
    Peers,
    /// So many rows further on; before where it is negative.
    Rows(i64),
    /// Where the order is larger by so much, smaller where it is negative: of numbers with a point, and of all others.
    Values(f64, i64),
}

impl WindowBounds {
    /// Of what is written. `order` is the type of the first key of the order. Nothing for kinds of frames that are not known here:
    ///
    /// ```text
    /// ROWS 6 PRECEDING                            Rows(-6), Rows(0)
    /// RANGE INTERVAL '1 hour' PRECEDING           Values(-3600000.0, -3600000), Peers        over times in milliseconds
    /// UNBOUNDED PRECEDING AND CURRENT ROW         Partition, Peers                           RANGE or GROUPS
    /// GROUPS 2 PRECEDING                          nothing
    /// RANGE INTERVAL '1 month' PRECEDING          nothing: months have no length
    /// ```
    pub fn of(frame: &WindowFrame, order: Option<&DataType>) -> Option<Self> {
        let bound = |bound: &WindowFrameBound| -> Option<Bound> {
            let (distance, sign) = match bound {
                WindowFrameBound::CurrentRow => (None, 0),
                WindowFrameBound::Preceding(distance) if distance.is_null() => {
                    return Some(Bound::Partition);
                }
                WindowFrameBound::Following(distance) if distance.is_null() => {
                    return Some(Bound::Partition);
                }
                WindowFrameBound::Preceding(distance) => (Some(distance), -1),
                WindowFrameBound::Following(distance) => (Some(distance), 1),
            };
            match (frame.units, distance) {
                (WindowFrameUnits::Rows, None) => Some(Bound::Rows(0)),
                (WindowFrameUnits::Rows, Some(ScalarValue::UInt64(Some(rows)))) => {
                    Some(Bound::Rows(i64::try_from(*rows).ok()? * sign))
                }
                (WindowFrameUnits::Range | WindowFrameUnits::Groups, None) => Some(Bound::Peers),
                (WindowFrameUnits::Range, Some(distance)) => {
                    let (float, whole) = between(distance, order?)?;
                    Some(Bound::Values(float * sign as f64, whole * sign))
                }
                _ => None,
            }
        };
        Some(Self { start: bound(&frame.start_bound)?, end: bound(&frame.end_bound)? })
    }

    /// Whether it needs to be known which rows are alike. Frames by distance need it for rows whose order is null.
    pub fn needs_peers(&self) -> bool {
        [self.start, self.end].contains(&Bound::Peers)
            || matches!((self.start, self.end), (Bound::Values(..), _) | (_, Bound::Values(..)))
    }
}

/// A distance between values of a type, as a number and as a whole one. Nothing where it is neither: `1.5` over doubles is 1.5 and 0, an hour
/// over times 3,600,000 both ways, a negative distance and a microsecond nothing.
fn between(distance: &ScalarValue, order: &DataType) -> Option<(f64, i64)> {
    let whole = |value: i64| (value >= 0).then_some((value as f64, value));
    match (distance, order) {
        (ScalarValue::Int64(Some(value)), DataType::Int64) => whole(*value),
        (ScalarValue::UInt64(Some(value)), DataType::UInt64) => whole(i64::try_from(*value).ok()?),
        (ScalarValue::Float64(Some(value)), DataType::Float64) => {
            (*value >= 0.0).then_some((*value, 0))
        }
        (
            ScalarValue::IntervalMonthDayNano(Some(IntervalMonthDayNano {
                months: 0,
                days,
                nanoseconds,
            })),
            DataType::Timestamp(TimeUnit::Millisecond, _),
        ) if nanoseconds % MS_NANOS == 0 => {
            whole((i64::from(*days) * DAY_MS).checked_add(nanoseconds / MS_NANOS)?)
        }
        _ => None,
    }
}

/// Rows in their order, and what belongs together. Ranges are of rows of all partitions together: `0..1, 1..3`.
pub struct Layout {
    /// Rows of each partition.
    pub partitions: Vec<Range<usize>>,
    /// Rows that are alike in their order, each within a partition; nothing where nobody asks.
    pub peers: Vec<Range<usize>>,
    /// The first column of the order, and how it is sorted.
    pub order: Option<(ArrayRef, SortOptions)>,
}

/// The first row of each row's frame, and the one behind the last.
pub type Frames = (Vec<u32>, Vec<u32>);

impl Layout {
    /// The frame of each row.
    pub fn frames(&self, frame: &WindowBounds) -> Frames {
        let rows = self.partitions.last().map_or(0, |partition| partition.end);
        let (mut starts, mut ends) = (Vec::with_capacity(rows), Vec::with_capacity(rows));
        self.bounds(frame.start, true, &mut starts);
        self.bounds(frame.end, false, &mut ends);
        // A frame that ends before it begins has no rows.
        for (start, end) in starts.iter().zip(&mut ends) {
            *end = (*end).max(*start);
        }
        (starts, ends)
    }

    /// The first row of each frame, or the row behind the last, appended to `to`.
    fn bounds(&self, bound: Bound, is_start: bool, to: &mut Vec<u32>) {
        let side = |range: &Range<usize>| if is_start { range.start } else { range.end } as u32;
        let each = |ranges: &[Range<usize>], to: &mut Vec<u32>| {
            for range in ranges {
                to.extend(std::iter::repeat_n(side(range), range.len()));
            }
        };
        match bound {
            Bound::Partition => each(&self.partitions, to),
            Bound::Peers => each(&self.peers, to),
            Bound::Rows(distance) => {
                let distance = distance.saturating_add(i64::from(!is_start));
                for partition in &self.partitions {
                    let (first, end) = (partition.start as i64, partition.end as i64);
                    let row = |row: i64| row.saturating_add(distance).clamp(first, end) as u32;
                    to.extend((first..end).map(row));
                }
            }
            Bound::Values(float, whole) => {
                // Rows without a value are alike, and nobody is at a distance of them.
                each(&self.peers, to);
                let Some((order, options)) = &self.order else { return };
                let sign = if options.descending { -1 } else { 1 };
                match order.data_type() {
                    DataType::Float64 => {
                        let values = order.as_primitive::<Float64Type>().values();
                        let value = |row: usize| values[row] * f64::from(sign);
                        let add = |value: f64| value + float;
                        self.at_distance(order, value, add, f64::total_cmp, is_start, to);
                    }
                    DataType::Int64 => {
                        let values = order.as_primitive::<Int64Type>().values();
                        let value = |row: usize| i128::from(values[row]) * i128::from(sign);
                        let add = |value: i128| value + i128::from(whole);
                        self.at_distance(order, value, add, i128::cmp, is_start, to);
                    }
                    DataType::UInt64 => {
                        let values = order.as_primitive::<UInt64Type>().values();
                        let value = |row: usize| i128::from(values[row]) * i128::from(sign);
                        let add = |value: i128| value + i128::from(whole);
                        self.at_distance(order, value, add, i128::cmp, is_start, to);
                    }
                    _ => {
                        let values = order.as_primitive::<TimestampMillisecondType>().values();
                        let value = |row: usize| i128::from(values[row]) * i128::from(sign);
                        let add = |value: i128| value + i128::from(whole);
                        self.at_distance(order, value, add, i128::cmp, is_start, to);
                    }
                }
            }
        }
    }

    /// Bounds of the rows that have a value: values rise within a partition, and so do bounds, so each row is passed once.
    ///
    /// `value` gives the order of a row, turned around where it falls, and `add` the limit of a row. Of `10, 20, 20, 35` and `RANGE 10
    /// PRECEDING` limits are 0, 10, 10 and 25, and the first rows at them or behind them 0, 0, 0 and 3.
    fn at_distance<V>(
        &self,
        order: &ArrayRef,
        value: impl Fn(usize) -> V,
        add: impl Fn(V) -> V,
        compare: impl Fn(&V, &V) -> Ordering,
        is_start: bool,
        to: &mut [u32],
    ) {
        for partition in &self.partitions {
            let known = |row: &usize| order.is_valid(*row);
            let Some(first) = partition.clone().find(known) else { continue };
            let end = first + (first..partition.end).take_while(known).count();
            let mut at = first;
            for (row, bound) in (first..end).zip(&mut to[first..end]) {
                let limit = add(value(row));
                let is_before = |at: usize| match compare(&value(at), &limit) {
                    Ordering::Less => true,
                    Ordering::Equal => !is_start,
                    Ordering::Greater => false,
                };
                while at < end && is_before(at) {
                    at += 1;
                }
                *bound = at as u32;
            }
        }
    }
}
