//! Which operator computes functions of rows around a row: ours, or the library's for what ours does not know.
//!
//! ```text
//! row_number() OVER (PARTITION BY event_id ORDER BY timestamp)         WindowsExec
//! sum(ms) OVER (… ORDER BY timestamp ROWS 6 PRECEDING)                 WindowsExec
//! stddev(ms) OVER (PARTITION BY tenant_id)                             WindowAggExec: a function that is not known
//! sum(DISTINCT ms) OVER (…), lag(ms) IGNORE NULLS OVER (…)             the library's
//! lag(ms, n) OVER (…), n of each row                                   refused: `There is only support Literal types for field at idx: 1 …`
//! sum(ms) OVER (… GROUPS 2 PRECEDING)                                  the library's: a frame that is not known
//! ```
//!
//! Functions of one node share their partitions and their sort. If one of them is not known, the library computes all of that node; functions
//! over another window have a node of their own:
//!
//! ```text
//! WindowsExec: row_number() … PARTITION BY [event_id@1] ORDER BY [timestamp@0 ASC NULLS LAST]
//!   RepartitionExec: partitioning=Hash([event_id@1], 2), input_partitions=2
//!     …
//!       WindowAggExec: wdw=[stddev(events.numeric_props['ms']) PARTITION BY [events.number of tenant_id] …]
//!         SortExec: expr=[number of tenant_id@3 ASC NULLS LAST], preserve_partitioning=[true]
//! ```

use std::sync::Arc;

use arrow::datatypes::{FieldRef, Fields, Schema};
use datafusion_common::{DFSchema, Result, internal_err, plan_err};
use datafusion_expr::{
    Expr, Window, WindowFrame, WindowFrameBound,
    expr::{NullTreatment, WindowFunctionParams},
};
use datafusion_physical_expr::PhysicalSortExpr;
use datafusion_physical_plan::{
    ExecutionPlan, InputOrderMode, PhysicalExpr, WindowExpr,
    windows::{self, BoundedWindowAggExec, WindowAggExec},
};

use super::{
    WindowsExec,
    frames::WindowBounds,
    functions::{Function, Kind},
};
use crate::physical::exprs::Exprs;

/// The plan of window functions that share their partitions and their order. With `is_partitioned`, rows may be
/// repartitioned.
///
/// Errors: a frame that ends before it starts, as `ROWS BETWEEN CURRENT ROW AND 1 PRECEDING`: `Invalid window frame: start bound (CURRENT ROW)
/// cannot be larger than end bound (1 PRECEDING)`; what the library says of an argument.
pub fn plan(
    exprs: Exprs<'_>,
    window: &Window,
    input: Arc<dyn ExecutionPlan>,
    is_partitioned: bool,
) -> Result<Arc<dyn ExecutionPlan>> {
    let functions = window.window_expr.iter();
    let functions =
        functions.map(|expr| function(exprs, expr, &window.schema)).collect::<Result<Vec<_>>>()?;
    let columns = functions.iter().map(|function| function.field()).collect::<Result<Vec<_>>>()?;
    if let Some(plan) = at_once(exprs, window, &input, columns, is_partitioned)? {
        return Ok(plan);
    }
    // Functions that look at a few rows around each need not keep a whole partition.
    Ok(match functions.iter().all(|function| function.uses_bounded_memory()) {
        true => Arc::new(BoundedWindowAggExec::try_new(
            functions,
            input,
            InputOrderMode::Sorted,
            is_partitioned,
        )?),
        false => Arc::new(WindowAggExec::try_new(functions, input, is_partitioned)?),
    })
}

/// Partitions, and the order within them.
type Over = (Vec<Arc<dyn PhysicalExpr>>, Vec<PhysicalSortExpr>);

/// All functions at once, whose columns are these; nothing where one is not known: its name, an argument that is no literal where one is
/// needed, its frame, or a type that is not computed here, as a sum of decimals.
fn at_once(
    exprs: Exprs<'_>,
    window: &Window,
    input: &Arc<dyn ExecutionPlan>,
    columns: Vec<FieldRef>,
    is_partitioned: bool,
) -> Result<Option<Arc<dyn ExecutionPlan>>> {
    let schema = input.schema();
    let mut functions = Vec::new();
    // Functions that share a sort may differ in what of it is their order: `PARTITION BY a ORDER BY a, t` beside `PARTITION BY a ORDER BY t`.
    let mut over: Option<Over> = None;
    for (expr, field) in window.window_expr.iter().zip(&columns) {
        let expr = expr.clone().unalias_nested().data;
        let Expr::WindowFunction(call) = &expr else { return Ok(None) };
        let params = &call.params;
        if params.distinct || params.null_treatment == Some(NullTreatment::IgnoreNulls) {
            return Ok(None);
        }
        // The schema of the node has the columns of the input first, so their indexes are those of the input.
        let args = exprs.all(&params.args, &window.schema)?;
        let order = exprs.order(&params.order_by, &window.schema)?;
        let first = order.first().map(|key| key.expr.data_type(&schema)).transpose()?;
        let known =
            Kind::of(&call.fun, &args).zip(WindowBounds::of(&params.window_frame, first.as_ref()));
        let Some((kind, frame)) = known else { return Ok(None) };
        let argument = args.into_iter().next().filter(|_| kind.has_argument());
        let of = argument.as_ref().map(|argument| argument.data_type(&schema)).transpose()?;
        if !kind.takes(of.as_ref(), field.data_type()) {
            return Ok(None);
        }
        let filter = params.filter.as_ref();
        let filter = filter.map(|filter| exprs.one(filter, &window.schema)).transpose()?;
        let own = (exprs.all(&params.partition_by, &window.schema)?, order);
        if over.get_or_insert_with(|| own.clone()) != &own {
            return Ok(None);
        }
        functions.push(Function { kind, argument, filter, frame, field: Arc::clone(field) });
    }
    let (partition_by, order_by) = over.unwrap_or_default();
    let all = schema.fields().iter().cloned().chain(columns).collect::<Fields>();
    let all = Arc::new(Schema::new_with_metadata(all, schema.metadata().clone()));
    let (input, functions) = (Arc::clone(input), functions.into());
    let (partition_by, order_by) = (partition_by.into(), order_by.into());
    let plan = WindowsExec::new(input, functions, partition_by, order_by, is_partitioned, all);
    Ok(Some(Arc::new(plan)))
}

/// A window function as the library has it, under the name of its column.
///
/// Errors: as of [`plan`].
fn function(exprs: Exprs<'_>, expr: &Expr, schema: &DFSchema) -> Result<Arc<dyn WindowExpr>> {
    let (name, expr) = match expr {
        Expr::Alias(alias) => (alias.name.clone(), (*alias.expr).clone().unalias_nested().data),
        _ => (expr.schema_name().to_string(), expr.clone()),
    };
    let Expr::WindowFunction(call) = &expr else {
        return internal_err!("{expr} is no window function");
    };
    let WindowFunctionParams {
        args,
        partition_by,
        order_by,
        window_frame,
        filter,
        null_treatment,
        distinct,
    } = &call.params;
    if !is_valid(window_frame) {
        return plan_err!(
            "Invalid window frame: start bound ({}) cannot be larger than end bound ({})",
            window_frame.start_bound,
            window_frame.end_bound
        );
    }
    windows::create_window_expr(
        &call.fun,
        name,
        &exprs.all(args, schema)?,
        &exprs.all(partition_by, schema)?,
        &exprs.order(order_by, schema)?,
        Arc::new(window_frame.clone()),
        Arc::clone(schema.inner()),
        *null_treatment == Some(NullTreatment::IgnoreNulls),
        *distinct,
        filter.as_ref().map(|filter| exprs.one(filter, schema)).transpose()?,
    )
}

/// Whether a frame does not end before it starts. A bound of null is unbounded.
///
/// ```text
/// BETWEEN 6 PRECEDING AND CURRENT ROW          true
/// BETWEEN 1 PRECEDING AND 6 PRECEDING          false
/// BETWEEN 1 FOLLOWING AND UNBOUNDED FOLLOWING  true
/// BETWEEN CURRENT ROW AND 1 PRECEDING          false
/// ```
fn is_valid(frame: &WindowFrame) -> bool {
    use WindowFrameBound::{CurrentRow, Following, Preceding};
    match (&frame.start_bound, &frame.end_bound) {
        (Following(_), Preceding(_) | CurrentRow) | (CurrentRow, Preceding(_)) => false,
        (Preceding(start), Preceding(end)) => !end.is_null() && (start.is_null() || start >= end),
        (Following(start), Following(end)) => !start.is_null() && (end.is_null() || start <= end),
        _ => true,
    }
}
