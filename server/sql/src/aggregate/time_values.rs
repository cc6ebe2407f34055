//! Numbers that stand for times: what an expression of the time alone comes to in each bucket of time.
//!
//! ```text
//! CASE WHEN extract(month FROM timestamp) = 8 THEN 1 ELSE 0 END      from 2026-08-01 on 1, from 2026-09-01 on 0
//! timestamp >= TIMESTAMP '2026-11-06 00:00:00'                        before that 0, from then on 1
//! ```
//!
//! Rows are read bucket by bucket, so no time is decoded where directories know the hours:
//!
//! ```text
//! starts   2026-07-13   2026-08-01   2026-09-01        runs of a morsel    before 2026-08-01: 30 rows, from then on: 12 rows
//! values   0            1            0                 numbers             thirty times 0, twelve times 1
//! ```

use std::{collections::HashMap, sync::Arc};

use arrow::{
    array::{ArrayRef, RecordBatch, TimestampMillisecondArray},
    compute::cast,
    datatypes::DataType,
};
use datafusion_common::{DFSchema, Result};
use datafusion_expr::{
    Expr, execution_props::ExecutionProps, physical_planning_context::PhysicalPlanningContext,
};
use datafusion_physical_expr::create_physical_expr;
use inlay_engine::rows::{BucketRun, Morsel, Source, TimeBuckets};

use crate::tables::{Kind, doubles};

/// Buckets in which an expression is computed, at most.
const BUCKETS_MAX: usize = 40_000;
/// Buckets are those of its values where these change once in so many others, at most.
const FEW: usize = 4;

/// Rows of a morsel of a source.
#[derive(Clone, Copy)]
pub struct MorselRows<'a> {
    /// The segment, or the rows in memory.
    pub source: &'a Source,
    /// Which of its rows.
    pub morsel: &'a Morsel,
    /// The same rows by time, as finely as the measures need it; empty where none needs it.
    pub bucket_runs: &'a [BucketRun],
}

/// What an expression comes to in each bucket of time.
#[derive(Debug)]
pub struct TimeValues {
    /// As it stands in the statement; two of the same expression are equal.
    expr: Expr,
    /// In each of which it has one value.
    buckets: TimeBuckets,
    /// Where each of its values begins, rising; times before the first have that value, too.
    starts: Vec<i64>,
    /// The value from each start on.
    values: Vec<f64>,
}

impl PartialEq for TimeValues {
    fn eq(&self, other: &Self) -> bool {
        self.expr == other.expr
    }
}

impl TimeValues {
    /// Of an expression that is true, false, a number or null, the same in each of these buckets; nothing where it cannot be
    /// computed for all times from one to another, or has too many buckets there.
    ///
    /// Buckets that follow each other and have the same value become one: a month is thirty days, and a row need be told apart only
    /// at its ends.
    ///
    /// Errors: none that is expected; what the library says.
    pub fn new(
        expr: Expr,
        buckets: TimeBuckets,
        (first_ms, last_ms): (i64, i64),
    ) -> Result<Option<Arc<Self>>> {
        if buckets.count(first_ms, last_ms) > BUCKETS_MAX {
            return Ok(None);
        }
        let next = |start: &i64| Some(buckets.end(*start)).filter(|end| *end <= last_ms);
        let starts: Vec<i64> = std::iter::successors(Some(first_ms), next).collect();
        let Some(values) = values(&expr, starts.clone())? else { return Ok(None) };
        let values = doubles(&cast(&values, &DataType::Float64)?);
        let all = starts.len();
        let mut changes: Vec<(i64, f64)> = starts.into_iter().zip(values).collect();
        changes.dedup_by_key(|(_, value)| value.to_bits());
        let is_few = changes.len() <= all / FEW + 1;
        let (starts, values): (Vec<i64>, Vec<f64>) = changes.into_iter().unzip();
        let boundaries = || starts.get(1..).unwrap_or_default().to_vec();
        let buckets =
            if is_few { TimeBuckets { grain: None, boundaries: boundaries() } } else { buckets };
        Ok(Some(Arc::new(Self { expr, buckets, starts, values })))
    }

    /// Buckets in each of which it has one value.
    pub fn buckets(&self) -> &TimeBuckets {
        &self.buckets
    }

    /// A number for each row: 1 and 0 for true and false, NaN for null.
    pub fn read(&self, rows: MorselRows<'_>) -> Vec<f64> {
        let mut out = Vec::with_capacity(rows.morsel.rows());
        for run in rows.bucket_runs {
            let until = self.starts.partition_point(|start| *start <= run.start_ms);
            let value = self.values.get(until.saturating_sub(1)).copied().unwrap_or(f64::NAN);
            out.resize(out.len() + run.rows as usize, value);
        }
        out
    }
}

/// An expression of the time for some times, if it can be computed for all of them. Times are in milliseconds since 1970.
///
/// Errors: none that is expected; what the library says.
pub fn values(expr: &Expr, times: Vec<i64>) -> Result<Option<ArrayRef>> {
    let rows = times.len();
    let mut columns = Kind::Events.columns().into_iter();
    let Some(field) = columns.find(|field| field.name() == Kind::Events.time_column()) else {
        return Ok(None);
    };
    let schema = DFSchema::from_unqualified_fields([field].into_iter().collect(), HashMap::new())?;
    let (props, subqueries) = (ExecutionProps::new(), PhysicalPlanningContext::default());
    let evaluated = create_physical_expr(expr, &schema, &props, &subqueries)?;
    let times = Arc::new(TimestampMillisecondArray::from(times));
    let batch = RecordBatch::try_new(Arc::clone(schema.inner()), vec![times])?;
    Ok(evaluated.evaluate(&batch).and_then(|values| values.into_array(rows)).ok())
}
