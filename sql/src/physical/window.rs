//! `OVER (…)`: functions of rows around a row.

use std::sync::Arc;

use datafusion_common::{DFSchema, Result, internal_err, plan_err};
use datafusion_expr::{
    Expr, Window, WindowFrame, WindowFrameBound,
    expr::{NullTreatment, WindowFunctionParams},
};
use datafusion_physical_plan::{
    ExecutionPlan, InputOrderMode, WindowExpr,
    windows::{self, BoundedWindowAggExec, WindowAggExec},
};

use super::exprs::Exprs;

/// The plan of window functions that share their partitions and their order. With `is_partitioned`, rows may be
/// repartitioned.
pub fn plan(
    exprs: Exprs<'_>,
    window: &Window,
    input: Arc<dyn ExecutionPlan>,
    is_partitioned: bool,
) -> Result<Arc<dyn ExecutionPlan>> {
    let functions = window.window_expr.iter();
    let functions =
        functions.map(|expr| function(exprs, expr, &window.schema)).collect::<Result<Vec<_>>>()?;
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
fn is_valid(frame: &WindowFrame) -> bool {
    use WindowFrameBound::{CurrentRow, Following, Preceding};
    match (&frame.start_bound, &frame.end_bound) {
        (Following(_), Preceding(_) | CurrentRow) | (CurrentRow, Preceding(_)) => false,
        (Preceding(start), Preceding(end)) => !end.is_null() && (start.is_null() || start >= end),
        (Following(start), Following(end)) => !start.is_null() && (end.is_null() || start <= end),
        _ => true,
    }
}
