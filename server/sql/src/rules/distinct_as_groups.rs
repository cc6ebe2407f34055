//! Optimizer rule: distinct values are counted as groups by them, where those groups can be pushed below the scan.
//!
//! ```text
//! SELECT tenant_id, count(*), count(DISTINCT date_trunc('day', timestamp)) FROM events GROUP BY tenant_id
//! SELECT tenant_id, sum(n), count(day) FROM (SELECT tenant_id, date_trunc('day', timestamp) AS day, count(*) AS n FROM events GROUP BY 1, 2) GROUP BY 1
//! ```
//!
//! Groups by tenant and day are read without rows. DataFusion's own rule does so beside sums, minima and maxima alone.
//!
//! ```text
//! Aggregate: groupBy=[[events.tenant_id]], aggr=[[count(Int64(1)), count(DISTINCT date_trunc(Utf8("day"), events.timestamp))]]
//!   TableScan: events projection=[tenant_id, timestamp]
//!
//! Projection: key 0 AS tenant_id, CASE WHEN outer 0 IS NULL THEN Int64(0) ELSE outer 0 END AS count(Int64(1)), outer 1 AS count(DISTINCT …)
//!   Aggregate: groupBy=[[key 0]], aggr=[[sum(inner 0) AS outer 0, count(key 1) AS outer 1]]
//!     Projection: group 0 AS key 0, group 1 AS key 1, CASE WHEN part 0 IS NOT NULL THEN part 0 ELSE Int64(0) END AS inner 0
//!       Aggregate: groupBy=[[tenant_id AS group 0, date_trunc(Utf8("day"), timestamp) AS group 1]], aggr=[[sum(rows) AS part 0]]
//!         TableScan: groups 7fffe40208c0
//! ```
//!
//! What each function becomes in the inner groups and above them:
//!
//! ```text
//! count(DISTINCT x)     x is the last key            count(x)
//! count(*)              count(*)                     sum, or 0 where there is no group
//! sum, min, max         the same                     the same
//! avg of a double       sum and count                the quotient of both sums
//! ```
//!
//! Not rewritten: two different distinct arguments, `count(DISTINCT x) FILTER (…)`, other functions beside it such as `stddev`, grouping
//! sets, and arguments by which groups cannot be read, as `upper(event_id)`.

use std::sync::Arc;

use arrow::datatypes::DataType;
use datafusion_common::{Column, Result};
use datafusion_expr::{
    Aggregate, AggregateUDF, Expr, ExprSchemable as _, LogicalPlan, Operator, binary_expr, cast,
    expr::{AggregateFunction, AggregateFunctionParams},
    lit, when,
};
use datafusion_functions_aggregate::{
    count::count_udaf,
    expr_fn::{count, max, min, sum},
    sum::sum_udaf,
};
use datafusion_optimizer::ApplyOrder;

use super::{
    aggregate_pushdown::{added_up, with_columns_of},
    rewrite::NodeRule,
};

/// Groups within groups.
pub const DISTINCT_AS_GROUPS: NodeRule = NodeRule {
    name: "distinct_as_groups",
    order: ApplyOrder::TopDown,
    rewrite: |plan| match plan {
        LogicalPlan::Aggregate(aggregate) => in_groups(aggregate),
        _ => Ok(None),
    },
};

/// The aggregate as one over groups by the argument that is distinct; nothing where that reads rows, too.
fn in_groups(aggregate: &Aggregate) -> Result<Option<LogicalPlan>> {
    let is_set = matches!(&*aggregate.group_expr, [Expr::GroupingSet(_)]);
    let calls = aggregate.aggr_expr.iter().map(call_of).collect::<Option<Vec<_>>>();
    let Some(calls) = calls.filter(|_| !is_set) else { return Ok(None) };
    let mut distinct = calls.iter().filter(|call| call.params.distinct);
    let Some(argument) = distinct.next().and_then(|first| distinct_argument(first)) else {
        return Ok(None);
    };
    if distinct.any(|other| distinct_argument(other) != Some(argument)) {
        return Ok(None);
    }
    let mut groups: Vec<Expr> = aggregate.group_expr.clone();
    groups.push(argument.clone());
    let groups = groups.into_iter().enumerate();
    let groups: Vec<Expr> =
        groups.map(|(at, group)| group.unalias().alias(format!("key {at}"))).collect();
    let distinct_key = name("key", aggregate.group_expr.len());
    let (mut inner, mut outer, mut outputs) = (Vec::new(), Vec::new(), Vec::new());
    let schema = aggregate.input.schema();
    let is_of_doubles = |call: &AggregateFunction| {
        let kind = call.params.args.first().map(|argument| argument.get_type(schema));
        matches!(kind, Some(Ok(DataType::Float64)))
    };
    // `inner` are calls over rows, by inner group; `outer` are calls over these, by group of the statement; `outputs` are made of those.
    for call in &calls {
        // The column of an aggregate over inner groups, of the same function or of one that is a part of it.
        let mut inner_column = |of: Option<Arc<AggregateUDF>>| {
            let func = of.unwrap_or_else(|| Arc::clone(&call.func));
            let call = AggregateFunction { func, params: call.params.clone() };
            let index = name("inner", inner.len());
            inner.push(Expr::AggregateFunction(call).alias(format!("inner {}", inner.len())));
            index
        };
        // The column of an aggregate over what inner groups come to.
        let mut outer_column = |expr: Expr| {
            let index = name("outer", outer.len());
            outer.push(expr.alias(format!("outer {}", outer.len())));
            index
        };
        outputs.push(match call.func.name() {
            _ if call.params.distinct => outer_column(count(distinct_key.clone())),
            "count" => {
                let rows = outer_column(sum(inner_column(None)));
                when(rows.clone().is_null(), lit(0_i64)).otherwise(rows)?
            }
            "sum" => outer_column(sum(inner_column(None))),
            "min" => outer_column(min(inner_column(None))),
            "max" => outer_column(max(inner_column(None))),
            // Averages of other numbers are numbers of other types.
            "avg" if is_of_doubles(call) => {
                let all = outer_column(sum(inner_column(Some(sum_udaf()))));
                let rows = outer_column(sum(inner_column(Some(count_udaf()))));
                binary_expr(all, Operator::Divide, cast(rows, DataType::Float64))
            }
            _ => return Ok(None),
        });
    }
    let inner = Aggregate::try_new(Arc::clone(&aggregate.input), groups, inner)?;
    // The inner groups are worth it only where they are read as groups.
    let Some(inner) = added_up(&inner)? else { return Ok(None) };
    let keys: Vec<Expr> = { 0..aggregate.group_expr.len() }.map(|at| name("key", at)).collect();
    let plan = Aggregate::try_new(Arc::new(inner), keys.clone(), outer)?;
    let columns = keys.into_iter().chain(outputs);
    with_columns_of(&aggregate.schema, columns, LogicalPlan::Aggregate(plan)).map(Some)
}

/// A column by its kind and index: `key 0`, `inner 2`, `outer 1`.
fn name(kind: &str, at: usize) -> Expr {
    Expr::Column(Column::new_unqualified(format!("{kind} {at}")))
}

/// The call that an aggregate is, if it asks for no order; a filter may be there.
fn call_of(expr: &Expr) -> Option<&AggregateFunction> {
    match expr {
        Expr::Alias(alias) => call_of(&alias.expr),
        Expr::AggregateFunction(call) => {
            let AggregateFunctionParams { order_by, null_treatment, .. } = &call.params;
            (order_by.is_empty() && null_treatment.is_none()).then_some(call)
        }
        _ => None,
    }
}

/// The argument of `count(DISTINCT x)`, where every row counts; nothing of `sum(DISTINCT x)`.
fn distinct_argument(call: &AggregateFunction) -> Option<&Expr> {
    match &*call.params.args {
        [only] if call.func.name() == "count" && call.params.filter.is_none() => Some(only),
        _ => None,
    }
}
