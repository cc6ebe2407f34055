//! Count, sum, minimum and maximum of a number within a group of rows.
//!
//! `min(timestamp), avg(numeric_props['ms']) … GROUP BY user_id` has two measures: the time, and a property. So has `max(string_props['plan']),
//! count(*) FILTER (WHERE string_props['status'] = 'error')`: the rank of a text, and rows that meet a condition.
//!
//! ```text
//! by user    min(timestamp)                                          Time                    least of measure 0
//! by user    avg(numeric_props['ms'])                                Property("ms")          sum and count of measure 1
//! by user    max(string_props['plan'])                               Text(order of plan)     most of measure 2, a rank, shown as its text
//! by user    sum(CASE WHEN event_name = 'pay' THEN 1 ELSE 0 END)     Computed(…)             sum of measure 3
//! by event   count(*) FILTER (WHERE numeric_props['ms'] > 40)        Where { of: Rows, … }   count of measure 0
//! ```
//!
//! Each row has a double for each measure, or NaN where it lacks the value. Of values 3, NaN, 8 and -2 a group has count 3, sum 9, least -2 and
//! most 8; of NaN alone count 0, and the others null.

use std::sync::Arc;

use arrow::{
    array::{ArrayRef, Float64Builder, Int64Builder, TimestampMillisecondBuilder},
    datatypes::{DataType, Field, TimeUnit},
};
use datafusion_common::{DataFusionError, Result};
use inlay_engine::rows::{Column, TimeBuckets, Values};

use super::{row_values::RowValues, time_values::MorselRows};
use crate::tables::{TextOrder, broken};

/// What is added up.
#[derive(Debug, Clone, PartialEq)]
pub enum Measure {
    /// One for each row.
    Rows,
    /// The time, in milliseconds, which every row has.
    Time,
    /// A numeric property.
    Property(String),
    /// A string property, of which the first and the last in order are known; its sum means nothing.
    Text(Arc<TextOrder>),
    /// A number that is computed of a row.
    Computed(RowValues),
    /// Another measure in rows that meet a condition; other rows lack it, or have zero: `sum(CASE WHEN … THEN ms ELSE 0.0 END)`.
    Where { of: Box<Measure>, condition: RowValues, is_else_zero: bool },
}

impl Measure {
    /// Of each row of a morsel; NaN where the row lacks it.
    ///
    /// Errors: damage of a segment.
    pub fn read(&self, rows: MorselRows<'_>) -> Result<Vec<f64>> {
        let MorselRows { source, morsel, .. } = rows;
        let column = match self {
            Self::Rows => return Ok(vec![1.0; morsel.rows()]),
            Self::Time => Column::Time,
            Self::Property(name) => Column::Number(name.clone()),
            Self::Text(order) => return order.read(source, morsel),
            Self::Computed(values) => return values.read(rows),
            Self::Where { of, condition, is_else_zero } => {
                let mut values = of.read(rows)?;
                let passes = condition.read(rows)?;
                let other = if *is_else_zero { 0.0 } else { f64::NAN };
                let left_out = values.iter_mut().zip(passes).filter(|(_, passes)| *passes != 1.0);
                left_out.for_each(|(value, _)| *value = other);
                return Ok(values);
            }
        };
        match source.read(morsel, &column).map_err(broken)? {
            Values::Times(times) => Ok(times.into_iter().map(|ms| ms as f64).collect()),
            Values::Numbers(numbers) => Ok(numbers),
            Values::Codes(..) | Values::Texts(_) => Err(DataFusionError::Internal(
                "a measure of a number has a value that is not a number".to_owned(),
            )),
        }
    }

    /// Makes buckets of time as fine as they need to be for it.
    pub fn refine(&self, buckets: &mut TimeBuckets) {
        match self {
            Self::Computed(values) => values.refine(buckets),
            Self::Where { of, condition, .. } => {
                of.refine(buckets);
                condition.refine(buckets);
            }
            Self::Rows | Self::Time | Self::Property(_) | Self::Text(_) => {}
        }
    }

    /// The measure whose values these are in the rows that count: `Time` of the time in rows that meet two conditions.
    fn innermost(&self) -> &Self {
        match self {
            Self::Where { of, .. } => of.innermost(),
            other => other,
        }
    }

    /// The columns of its parts, by the measure's index among others: a count of rows, a sum, the least and the most, null where
    /// no row of a group has it.
    pub fn fields(&self, at: usize) -> impl Iterator<Item = Field> + '_ {
        MeasureStat::ALL.into_iter().map(move |part| {
            let (kind, nullable) = match (self.innermost(), part) {
                (_, MeasureStat::Count) => (DataType::Int64, false),
                (Self::Time, MeasureStat::Least | MeasureStat::Most) => {
                    (DataType::Timestamp(TimeUnit::Millisecond, None), true)
                }
                (Self::Text(_), MeasureStat::Least | MeasureStat::Most) => {
                    (DataType::Utf8View, true)
                }
                _ => (DataType::Float64, true),
            };
            Field::new(part.column(at), kind, nullable)
        })
    }

    /// Its columns, a row for each state.
    ///
    /// Errors: damage of a segment.
    pub fn arrays(
        &self,
        states: impl ExactSizeIterator<Item = MeasureState> + Clone,
    ) -> Result<Vec<ArrayRef>> {
        let mut counts = Int64Builder::with_capacity(states.len());
        states.clone().for_each(|state| counts.append_value(state.count as i64));
        let sums = numbers(states.clone(), |state| state.sum);
        let extreme = |value: fn(MeasureState) -> f64| match self.innermost() {
            Self::Time => Ok(times(states.clone(), value)),
            Self::Text(order) => {
                let rank = |state: MeasureState| (state.count > 0).then(|| value(state) as u32);
                order.texts(&states.clone().map(rank).collect())
            }
            _ => Ok(numbers(states.clone(), value)),
        };
        Ok(vec![
            Arc::new(counts.finish()),
            sums,
            extreme(|state| state.least)?,
            extreme(|state| state.most)?,
        ])
    }
}

/// Statistic of a measure, one column of a group.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MeasureStat {
    /// Number of rows that have a value.
    Count,
    /// Sum of the values in these rows.
    Sum,
    /// Smallest value; of a string property the first in order.
    Least,
    /// Largest value; of a string property the last in order.
    Most,
}

impl MeasureStat {
    /// All of them, in the order of their columns.
    const ALL: [Self; 4] = [Self::Count, Self::Sum, Self::Least, Self::Most];

    /// The column of a measure's part, which no statement can name: `least of measure 1`.
    pub fn column(self, measure: usize) -> String {
        let of = match self {
            Self::Count => "count",
            Self::Sum => "sum",
            Self::Least => "least",
            Self::Most => "most",
        };
        format!("{of} of measure {measure}")
    }
}

/// Count, sum, smallest and largest value of a measure in a group.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct MeasureState {
    /// Rows that have a value.
    count: u64,
    /// Zero before any row.
    sum: f64,
    /// Infinite before any row, as is the most, with the other sign.
    least: f64,
    most: f64,
}

impl MeasureState {
    /// The state before any row.
    pub const NONE: Self =
        Self { count: 0, sum: 0.0, least: f64::INFINITY, most: f64::NEG_INFINITY };

    /// Adds rows whose times rise, of which nobody asks for the sum.
    pub fn add_times(&mut self, rows: u64, first_ms: i64, last_ms: i64) {
        self.count += rows;
        self.least = self.least.min(first_ms as f64);
        self.most = self.most.max(last_ms as f64);
    }

    /// Adds a row's number. NaN stands for a row that lacks it; there is one zero.
    pub fn add(&mut self, number: f64) {
        if !number.is_nan() {
            let number = number + 0.0;
            self.count += 1;
            self.sum += number;
            self.least = self.least.min(number);
            self.most = self.most.max(number);
        }
    }
}

/// A column of doubles, null where no row of a group has the measure.
fn numbers(
    states: impl ExactSizeIterator<Item = MeasureState>,
    value: impl Fn(MeasureState) -> f64,
) -> ArrayRef {
    let mut numbers = Float64Builder::with_capacity(states.len());
    for state in states {
        numbers.append_option((state.count > 0).then(|| value(state)));
    }
    Arc::new(numbers.finish())
}

/// A time in milliseconds is below 2^53, so an `f64` holds it exactly.
fn times(
    states: impl ExactSizeIterator<Item = MeasureState>,
    value: impl Fn(MeasureState) -> f64,
) -> ArrayRef {
    let mut times = TimestampMillisecondBuilder::with_capacity(states.len());
    for state in states {
        times.append_option((state.count > 0).then(|| value(state) as i64));
    }
    Arc::new(times.finish())
}
