//! Of each partition of a window only rows that may be among its first by time.
//!
//! `row_number() OVER (PARTITION BY tenant_id ORDER BY timestamp) … WHERE rn = 1` needs one row of each tenant. A scan that knows
//! it reads numbers and times, and other columns of rows alone that are not behind as many rows of their partition as are asked
//! for:
//!
//! ```text
//! tenant   7  7  7  9  7         asked for: 1, the earliest
//! time     5  8  3  4  9
//! passes   -  -  x  x  -         the best are found first: 3 of tenant 7
//! ```
//!
//! Rows of other batches may be better; whoever numbers the rows sees to that.
//!
//! The next batch begins with what is known: with 3 as the best of tenant 7 and 4 of tenant 9, of `7 at 3, 9 at 5, none at 9` the first and the last pass. Of
//! equal times each may be the first, so all of them pass. The state is shared by all partitions of the scan, whose threads take turns: a batch is looked at
//! under one lock.

use std::{
    fmt,
    hash::{Hash, Hasher},
    sync::Arc,
};

use arrow::{
    array::{Array as _, ArrayRef, AsArray as _, BooleanArray, RecordBatch},
    datatypes::{DataType, Schema, TimestampMillisecondType, UInt32Type},
};
use datafusion_common::{DataFusionError, HashMap, Result, internal_err};
use datafusion_expr::ColumnarValue;
use datafusion_physical_plan::PhysicalExpr;
use parking_lot::Mutex;

/// Rows of a partition that are looked for, at most.
/// The best times of a partition are a sorted list, into which a row is inserted.
pub const FIRST_MAX: usize = 16;
/// Partitions whose best times are remembered, at most. Rows of others pass.
const PARTITIONS_MAX: usize = 1 << 18;
/// The number of a partition without a text.
const NONE: u32 = u32::MAX;

/// Whether a row may be among the first of its partition.
#[derive(Debug, Clone)]
pub struct FirstRows {
    /// The columns of numbers that tell partitions apart, one or two, and that of times.
    columns: Vec<Arc<dyn PhysicalExpr>>,
    /// Whether the latest rows are looked for.
    descending: bool,
    /// Rows of each partition that are looked for: 1 for `row_number() … = 1`.
    count: usize,
    /// Of all partitions of the scan.
    best_times: Arc<Mutex<BestTimes>>,
}

/// The best times of each partition, the worst of them last. Later times count as better when they are turned around.
#[derive(Debug, Default)]
struct BestTimes {
    /// The index of each partition in `best`, by its one or two numbers.
    indexes: HashMap<[u32; 2], u32>,
    /// At most `count` times of each partition, the best first.
    best: Vec<Vec<i64>>,
}

impl FirstRows {
    /// Of partitions by columns of numbers, so many of the earliest rows or of the latest.
    ///
    /// `partition` are one or two columns of dictionary codes, `time` that of times, all by their indexes in the scan's schema.
    pub fn new(
        partition: Vec<Arc<dyn PhysicalExpr>>,
        time: Arc<dyn PhysicalExpr>,
        descending: bool,
        count: usize,
    ) -> Self {
        let columns = partition.into_iter().chain([time]).collect();
        Self { columns, descending, count, best_times: Arc::default() }
    }
}

impl PartialEq for FirstRows {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.best_times, &other.best_times) && self.columns == other.columns
    }
}

impl Eq for FirstRows {}

impl Hash for FirstRows {
    fn hash<H: Hasher>(&self, state: &mut H) {
        Arc::as_ptr(&self.best_times).hash(state);
    }
}

impl fmt::Display for FirstRows {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let order = if self.descending { "latest" } else { "earliest" };
        write!(f, "the {} {order} by {:?}", self.count, self.columns)
    }
}

impl PhysicalExpr for FirstRows {
    fn data_type(&self, _: &Schema) -> Result<DataType> {
        Ok(DataType::Boolean)
    }

    fn nullable(&self, _: &Schema) -> Result<bool> {
        Ok(false)
    }

    fn evaluate(&self, batch: &RecordBatch) -> Result<ColumnarValue> {
        let rows = batch.num_rows();
        let arrays = self.columns.iter().map(|column| column.evaluate(batch)?.into_array(rows));
        let mut arrays = arrays.collect::<Result<Vec<ArrayRef>>>()?;
        let times = arrays.pop();
        let times =
            times.as_ref().and_then(|times| times.as_primitive_opt::<TimestampMillisecondType>());
        let Some(times) = times else { return internal_err!("times that are none") };
        let numbers = arrays.iter().map(|array| array.as_primitive_opt::<UInt32Type>());
        let Some(numbers) = numbers.collect::<Option<Vec<_>>>() else {
            return internal_err!("numbers that are none");
        };
        // Turned around by `!`, which has no overflow: `-i64::MIN` would have one. The order is the same.
        let rank = |row: usize| match self.descending {
            true => !times.value(row),
            false => times.value(row),
        };
        let mut best_times = self.best_times.lock();
        let BestTimes { indexes, best } = &mut *best_times;
        // The best of all rows are found first, so that few of a rising order pass.
        let mut of_rows = Vec::with_capacity(rows);
        let mut last = None;
        for row in 0..rows {
            let mut key = [NONE; 2];
            for (part, array) in key.iter_mut().zip(&numbers) {
                *part = if array.is_valid(row) { array.value(row) } else { NONE };
            }
            // Rows of a series follow each other, so the last partition is often the next one, too.
            let index = match last {
                Some((of, index)) if of == key => index,
                _ => match indexes.get(&key) {
                    Some(index) => *index,
                    None if best.len() < PARTITIONS_MAX => {
                        let index = best.len() as u32;
                        indexes.insert(key, index);
                        best.push(Vec::with_capacity(self.count));
                        index
                    }
                    None => NONE,
                },
            };
            last = Some((key, index));
            of_rows.push(index);
            if let Some(best) = best.get_mut(index as usize) {
                let at = best.partition_point(|other| *other <= rank(row));
                if at < self.count {
                    best.truncate(self.count - 1);
                    best.insert(at, rank(row));
                }
            }
        }
        let passes = of_rows.iter().enumerate().map(|(row, index)| {
            let Some(best) = best.get(*index as usize) else { return true };
            best.len() < self.count || best.last().is_none_or(|worst| rank(row) <= *worst)
        });
        Ok(ColumnarValue::Array(Arc::new(BooleanArray::from(passes.collect::<Vec<bool>>()))))
    }

    fn children(&self) -> Vec<&Arc<dyn PhysicalExpr>> {
        self.columns.iter().collect()
    }

    fn with_new_children(
        self: Arc<Self>,
        columns: Vec<Arc<dyn PhysicalExpr>>,
    ) -> Result<Arc<dyn PhysicalExpr>> {
        if columns.len() != self.columns.len() {
            return Err(DataFusionError::Internal("columns are missing".to_owned()));
        }
        Ok(Arc::new(Self { columns, ..(*self).clone() }))
    }

    fn fmt_sql(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }

    fn is_volatile_node(&self) -> bool {
        // It learns.
        true
    }
}

#[cfg(test)]
mod tests {
    use arrow::{
        array::{TimestampMillisecondArray, UInt32Array},
        datatypes::{Field, TimeUnit},
    };
    use datafusion_physical_expr::expressions::Column;

    use super::*;

    fn passing(first: &FirstRows, rows: &[(Option<u32>, i64)]) -> Vec<bool> {
        let time = DataType::Timestamp(TimeUnit::Millisecond, None);
        let fields = [Field::new("n", DataType::UInt32, true), Field::new("t", time, false)];
        let numbers: UInt32Array = rows.iter().map(|(number, _)| *number).collect();
        let times: TimestampMillisecondArray = rows.iter().map(|(_, ms)| Some(*ms)).collect();
        let columns: Vec<ArrayRef> = vec![Arc::new(numbers), Arc::new(times)];
        let batch = RecordBatch::try_new(Arc::new(Schema::new(fields.to_vec())), columns).unwrap();
        let passing = first.evaluate(&batch).unwrap().into_array(rows.len()).unwrap();
        passing.as_boolean().values().iter().collect()
    }

    fn first(descending: bool, count: usize) -> FirstRows {
        let column = |name, at| Arc::new(Column::new(name, at)) as Arc<dyn PhysicalExpr>;
        FirstRows::new(vec![column("n", 0)], column("t", 1), descending, count)
    }

    #[test]
    fn rows_behind_as_many_others_do_not_pass() {
        let earliest = first(false, 1);
        let rows = [(Some(7), 5), (Some(7), 8), (Some(7), 3), (Some(9), 4), (Some(7), 9)];
        assert_eq!(passing(&earliest, &rows), [false, false, true, true, false]);
        // Of equal ones each may be the first; rows without a number are a partition.
        let rows = [(Some(7), 3), (Some(9), 5), (None, 9), (None, 9), (None, 10)];
        assert_eq!(passing(&earliest, &rows), [true, false, true, true, false]);
        let latest = first(true, 2);
        let rows = [(Some(1), 1), (Some(1), 2), (Some(1), 3), (Some(1), 3), (Some(2), i64::MIN)];
        assert_eq!(passing(&latest, &rows), [false, false, true, true, true]);
        assert_eq!(
            passing(&latest, &[(Some(1), 2), (Some(1), i64::MAX), (Some(2), 0)]),
            [false, true, true]
        );
    }

    /// Of any rows in any batches, those that are among the first pass.
    #[test]
    fn none_of_the_first_is_left_out() {
        let mut state = 1u64;
        let mut random = |below: u64| {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) % below
        };
        for round in 0..200 {
            let (descending, count) = (round % 2 == 0, 1 + (round % 3) as usize);
            let filter = first(descending, count);
            let mut all: Vec<(Option<u32>, i64, bool)> = Vec::new();
            for _ in 0..4 {
                let rows: Vec<(Option<u32>, i64)> =
                    (0..20).map(|_| (Some(random(3) as u32), random(30) as i64)).collect();
                let passing = passing(&filter, &rows);
                all.extend(
                    rows.iter().zip(passing).map(|((number, ms), passes)| (*number, *ms, passes)),
                );
            }
            for (number, ms, passes) in &all {
                let is_before = |other: &i64| if descending { other > ms } else { other < ms };
                let before =
                    all.iter().filter(|(of, other, _)| of == number && is_before(other)).count();
                assert!(*passes || before >= count, "{number:?} {ms}");
            }
        }
    }
}
