//! Numbers that stand for times: what an expression of the time alone comes to in each bucket of time.
//!
//! ```text
//! CASE WHEN extract(month FROM timestamp) = 8 THEN 1 ELSE 0 END      2026-08-31 1, 2026-09-01 0, …
//! timestamp >= TIMESTAMP '2026-11-06 00:00:00'                        until then 0, from then on 1
//! ```

use std::{collections::HashMap, sync::Arc};

use arrow::{
    array::{ArrayRef, RecordBatch, TimestampMillisecondArray},
    compute::cast,
    datatypes::DataType,
};
use datafusion_common::{DFSchema, DataFusionError, Result};
use datafusion_expr::{
    Expr, execution_props::ExecutionProps, physical_planning_context::PhysicalPlanningContext,
};
use datafusion_physical_expr::create_physical_expr;
use inlay_engine::rows::{BucketRun, Morsel, Source, TimeBuckets};
use parking_lot::Mutex;

use crate::tables::{Kind, doubles};

/// Rows of a morsel of a source.
#[derive(Clone, Copy)]
pub struct MorselRows<'a> {
    pub source: &'a Source,
    pub morsel: &'a Morsel,
    /// The same rows by time, as finely as the measures need it; empty where none needs it.
    pub bucket_runs: &'a [BucketRun],
}

/// What an expression comes to, by the instants that stand for buckets.
#[derive(Debug)]
pub struct TimeValues {
    expr: Expr,
    buckets: TimeBuckets,
    known: Mutex<HashMap<i64, f64>>,
}

impl PartialEq for TimeValues {
    fn eq(&self, other: &Self) -> bool {
        self.expr == other.expr
    }
}

impl TimeValues {
    /// Of an expression that is true, false, a number or null, the same in each of these buckets, and can be computed for
    /// each of them.
    pub fn new(expr: Expr, buckets: TimeBuckets) -> Arc<Self> {
        Arc::new(Self { expr, buckets, known: Mutex::default() })
    }

    /// Buckets in each of which it has one value.
    pub fn buckets(&self) -> &TimeBuckets {
        &self.buckets
    }

    /// A number for each row: 1 and 0 for true and false, NaN for null.
    ///
    /// Errors: none that is expected; what the library says.
    pub fn read(&self, rows: MorselRows<'_>) -> Result<Vec<f64>> {
        let mut known = self.known.lock();
        let starts = rows.bucket_runs.iter().map(|run| run.start_ms);
        let mut missing: Vec<i64> = starts.filter(|start| !known.contains_key(start)).collect();
        missing.sort_unstable();
        missing.dedup();
        if !missing.is_empty() {
            let found = values(&self.expr, missing.clone())?;
            let found = found.ok_or_else(|| {
                DataFusionError::Internal(format!("{} cannot be computed for a time", self.expr))
            })?;
            known.extend(missing.into_iter().zip(doubles(&cast(&found, &DataType::Float64)?)));
        }
        let mut out = Vec::with_capacity(rows.morsel.rows());
        for run in rows.bucket_runs {
            let value = known.get(&run.start_ms).copied().unwrap_or(f64::NAN);
            out.resize(out.len() + run.rows as usize, value);
        }
        Ok(out)
    }
}

/// An expression of the time for some times, if it can be computed for all of them.
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
