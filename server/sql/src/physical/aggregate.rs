//! `GROUP BY`: partial aggregates in each partition, then their merge.
//!
//! Where a function needs all rows of a group at once, as lists in an order do, rows are aggregated in one step.
//!
//! `GROUP BY ROLLUP (a, b)` groups by `(a, b)`, `(a)` and nothing: each grouping set says which of the columns are null in it.
//!
//! ```text
//! SELECT tenant_id, count(*) FROM events GROUP BY 1
//!
//! AggregateExec: mode=FinalPartitioned, gby=[group 0@0 as group 0], aggr=[sum(rows) as part 0]
//!   RepartitionExec: partitioning=Hash([group 0@0], 2), input_partitions=2
//!     AggregateExec: mode=Partial, gby=[tenant_id@0 as group 0], aggr=[sum(rows) as part 0]
//!       PartitionedExec: [tenant_id, rows]
//!
//! SELECT user_id, string_agg(event_name, ' > ' ORDER BY timestamp) FROM events GROUP BY 1
//!
//! AggregateExec: mode=SinglePartitioned, gby=[number of user_id@2 as number of user_id], aggr=[string_agg(…) ORDER BY […]]
//!   RepartitionExec: partitioning=Hash([number of user_id@2], 2), input_partitions=2
//!     RowsExec: [Event, Plain(Time), Number(Plain(User), …)], …
//!
//! SELECT array_agg(event_id ORDER BY timestamp), count(*) FROM events GROUP BY ROLLUP (event_name)
//!
//! AggregateExec: mode=Single, gby=[(NULL as event_name), (event_name@0 as event_name)], aggr=[array_agg(…) ORDER BY […], count(Int64(1))]
//!   CoalescePartitionsExec
//!     RowsExec: [Event, Plain(Time), Plain(EventId)], …
//! ```
//!
//! `RepartitionExec` and `CoalescePartitionsExec` are added by a rule, from what the modes require of their input.

use std::sync::Arc;

use arrow::datatypes::Schema;
use datafusion_common::{
    DFSchema, Result, ScalarValue,
    tree_node::{Transformed, TreeNode as _, TreeNodeRecursion},
};
use datafusion_expr::{Aggregate, AggregateUDF, Expr};
use datafusion_physical_expr::{
    PhysicalExpr, aggregate::LoweredAggregateBuilder, expressions::Literal,
};
use datafusion_physical_plan::{
    ExecutionPlan,
    aggregates::{AggregateExec, AggregateMode, PhysicalGroupBy},
};

use super::exprs::{Exprs, checked};
use crate::{
    aggregate::{WholeSums, needs_whole_groups},
    rules::grouping_sets,
};

/// Columns to group by: the expression and the name of each.
type Columns = Vec<(Arc<dyn PhysicalExpr>, String)>;

/// The plan of an aggregate. With `is_partitioned`, groups are merged in several partitions. Without keys there is one group, which one
/// partition merges.
///
/// Errors: what the library says of a function or an expression.
pub fn plan(
    exprs: Exprs<'_>,
    aggregate: &Aggregate,
    input: Arc<dyn ExecutionPlan>,
    is_partitioned: bool,
) -> Result<Arc<dyn ExecutionPlan>> {
    let (logical, physical) = (aggregate.input.schema(), input.schema());
    let groups = groups(exprs, &aggregate.group_expr, logical, &physical)?;
    let (mut functions, mut filters) = (Vec::new(), Vec::new());
    for expr in &aggregate.aggr_expr {
        let Exprs { props, subqueries } = exprs;
        let lowered = |expr: &Expr| {
            LoweredAggregateBuilder::new(expr, logical, &physical, props, subqueries).build()
        };
        let mut function = lowered(expr)?;
        let (called, result) = (function.aggregate.fun(), function.aggregate.field());
        if let Some(whole) = WholeSums::instead_of(called, result.data_type()) {
            function = lowered(&with_function(expr, &Arc::new(whole))?)?;
        }
        let arguments = function.aggregate.expressions().into_iter().map(checked);
        let arguments = arguments.collect::<Result<_>>()?;
        let orders = function.aggregate.order_bys().iter().map(|order| Arc::clone(&order.expr));
        let with_checks = function
            .aggregate
            .with_new_expressions(arguments, orders.map(checked).collect::<Result<_>>()?);
        functions.push(with_checks.map_or(function.aggregate, Arc::new));
        filters.push(function.filter.map(checked).transpose()?);
    }
    // One function that needs them decides for all: rows of a group are in one partition, and the others are aggregated there, too.
    let needs_whole_groups = functions.iter().any(|function| {
        let has_order = !function.order_bys().is_empty();
        needs_whole_groups(function.fun(), has_order, function.is_distinct())
    });
    if needs_whole_groups {
        // Groups of several sets are null in columns that rows are not.
        let mode = match is_partitioned && !groups.is_empty() && groups.is_single() {
            true => AggregateMode::SinglePartitioned,
            false => AggregateMode::Single,
        };
        let plan = AggregateExec::try_new(mode, groups, functions, filters, input, physical)?;
        return Ok(Arc::new(plan));
    }
    let mode = match is_partitioned && !groups.is_empty() {
        true => AggregateMode::FinalPartitioned,
        false => AggregateMode::Final,
    };
    let partial = Arc::new(AggregateExec::try_new(
        AggregateMode::Partial,
        groups,
        functions,
        filters.clone(),
        input,
        Arc::clone(&physical),
    )?);
    // The partial aggregate may have replaced a function, say the first value by the last of the reverse order.
    let functions = partial.aggr_expr().to_vec();
    let groups = partial.group_expr().as_final();
    Ok(Arc::new(AggregateExec::try_new(mode, groups, functions, filters, partial, physical)?))
}

/// An aggregate with another function, under the same name.
fn with_function(expr: &Expr, function: &Arc<AggregateUDF>) -> Result<Expr> {
    let with = expr.clone().transform_down(|part| match part {
        Expr::AggregateFunction(mut call) => {
            call.func = Arc::clone(function);
            Ok(Transformed::new(Expr::AggregateFunction(call), true, TreeNodeRecursion::Jump))
        }
        part => Ok(Transformed::no(part)),
    });
    with.map(|expr| expr.data)
}

/// The keys of groups: none, those of one set, or those of several sets with a list of the columns that are null in each.
fn groups(
    exprs: Exprs<'_>,
    group_by: &[Expr],
    logical: &DFSchema,
    physical: &Schema,
) -> Result<PhysicalGroupBy> {
    let named = |columns: &[Expr]| -> Result<Columns> {
        columns.iter().map(|column| exprs.named(column, logical)).collect()
    };
    match group_by {
        [] => Ok(PhysicalGroupBy::new(Vec::new(), Vec::new(), Vec::new(), false)),
        [Expr::GroupingSet(set)] => {
            let (columns, nulls) = grouping_sets(set)?;
            let columns = named(&columns)?;
            let null = |(column, name): &(Arc<dyn PhysicalExpr>, String)| -> Result<_> {
                let null = ScalarValue::try_from(&column.data_type(physical)?)?;
                Ok((Arc::new(Literal::new(null)) as Arc<dyn PhysicalExpr>, name.clone()))
            };
            let null_columns = columns.iter().map(null).collect::<Result<_>>()?;
            Ok(PhysicalGroupBy::new(columns, null_columns, nulls, true))
        }
        columns => Ok(PhysicalGroupBy::new_single(named(columns)?)),
    }
}
