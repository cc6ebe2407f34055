//! Optimizer rule: percentiles of the same numbers are found in one list of these.
//!
//! ```text
//! SELECT source, percentile_cont(0.5) WITHIN GROUP (ORDER BY ms), percentile_cont(0.9) WITHIN GROUP (ORDER BY ms) FROM t GROUP BY source
//!
//! Projection: source, array_element(list 0, Int64(1)) AS percentile_cont(…0.5…), array_element(list 0, Int64(2)) AS percentile_cont(…0.9…)
//!   Aggregate: groupBy=[[source]], aggr=[[percentiles([0.5, 0.9]) WITHIN GROUP [ms ASC NULLS LAST] AS list 0]]
//! ```
//!
//! Each call holds all numbers of its groups, eight bytes each and twice that while lists grow: seven percentiles of two properties over ten
//! million events are two lists instead of seven.
//!
//! Calls are together where all but the percentile is the same: the numbers, their order, and the `FILTER`. Left as they are: a percentile
//! of its own, one that is no constant from 0 to 1 (which is refused later), `DISTINCT`, and aggregates by `GROUPING SETS`.

use std::sync::Arc;

use arrow::datatypes::DataType;
use datafusion_common::{Column, Result, ScalarValue};
use datafusion_expr::{Aggregate, Expr, LogicalPlan, expr::AggregateFunction, lit};
use datafusion_functions_nested::expr_fn::array_element;
use datafusion_optimizer::ApplyOrder;

use super::{aggregate_pushdown::with_columns_of, rewrite::NodeRule};
use crate::aggregate::percentiles;

/// What names of columns begin with that no statement can write: groups stand beside them by their own names.
const LIST: &str = "list\0";
const OTHER: &str = "other\0";

/// Several percentiles in one call.
pub const PERCENTILES_TOGETHER: NodeRule = NodeRule {
    name: "percentiles_together",
    order: ApplyOrder::TopDown,
    rewrite: |plan| match plan {
        LogicalPlan::Aggregate(aggregate) => together(aggregate),
        _ => Ok(None),
    },
};

/// Percentiles of the same numbers: the first call, and the percentile of each.
struct PercentileGroup<'a> {
    first: &'a AggregateFunction,
    percentiles: Vec<f64>,
}

/// The aggregate with one call for each list of numbers; nothing where no two calls are of the same.
fn together(aggregate: &Aggregate) -> Result<Option<LogicalPlan>> {
    if matches!(&*aggregate.group_expr, [Expr::GroupingSet(_)]) {
        return Ok(None);
    }
    let mut all: Vec<PercentileGroup<'_>> = Vec::new();
    // Of each aggregate its list and the index there, if it is a percentile.
    let mut positions: Vec<Option<(usize, usize)>> = Vec::new();
    for expr in &aggregate.aggr_expr {
        let Some((call, part)) = percentile_of(expr) else {
            positions.push(None);
            continue;
        };
        let known = all.iter().position(|calls| is_of_same_numbers(calls.first, call));
        let list = known.unwrap_or(all.len());
        if known.is_none() {
            all.push(PercentileGroup { first: call, percentiles: Vec::new() });
        }
        positions.push(Some((list, all[list].percentiles.len())));
        all[list].percentiles.push(part);
    }
    if all.iter().all(|calls| calls.percentiles.len() < 2) {
        return Ok(None);
    }
    // A call for each list, and behind these the other aggregates as they are.
    let mut exprs: Vec<Expr> = Vec::new();
    for (at, calls) in all.iter().enumerate() {
        let parts: Vec<ScalarValue> = calls.percentiles.iter().map(|part| (*part).into()).collect();
        let parts = ScalarValue::List(ScalarValue::new_list_nullable(&parts, &DataType::Float64));
        let mut call = calls.first.clone();
        call.params.args.truncate(1);
        call.params.args.push(lit(parts));
        call.func = Arc::new(percentiles());
        exprs.push(Expr::AggregateFunction(call).alias(format!("{LIST}{at}")));
    }
    let mut outputs = Vec::new();
    for (expr, index) in aggregate.aggr_expr.iter().zip(positions) {
        outputs.push(match index {
            Some((list, at)) => {
                let list = Expr::Column(Column::new_unqualified(format!("{LIST}{list}")));
                array_element(list, lit(at as i64 + 1))
            }
            None => {
                let name = format!("{OTHER}{}", exprs.len());
                exprs.push(expr.clone().unalias().alias(&name));
                Expr::Column(Column::new_unqualified(name))
            }
        });
    }
    let input = Arc::clone(&aggregate.input);
    let plan = Aggregate::try_new(input, aggregate.group_expr.clone(), exprs)?;
    let groups = 0..aggregate.group_expr.len();
    let groups: Vec<Expr> =
        groups.map(|at| Expr::Column(Column::from(plan.schema.qualified_field(at)))).collect();
    let columns = groups.into_iter().chain(outputs);
    with_columns_of(&aggregate.schema, columns, LogicalPlan::Aggregate(plan)).map(Some)
}

/// The call of `percentile_cont` that an aggregate is, and its percentile.
fn percentile_of(expr: &Expr) -> Option<(&AggregateFunction, f64)> {
    match expr {
        Expr::Alias(alias) => percentile_of(&alias.expr),
        Expr::AggregateFunction(call) if call.func.name() == "percentile_cont" => {
            let [_, Expr::Literal(ScalarValue::Float64(Some(part)), _)] = &*call.params.args else {
                return None;
            };
            let is_plain = !call.params.distinct && !expr.is_volatile();
            (is_plain && (0.0..=1.0).contains(part)).then_some((call, *part))
        }
        _ => None,
    }
}

/// Whether two calls differ in their percentiles alone.
fn is_of_same_numbers(one: &AggregateFunction, other: &AggregateFunction) -> bool {
    let (one, other) = (&one.params, &other.params);
    one.args.first() == other.args.first()
        && one.order_by == other.order_by
        && one.filter == other.filter
        && one.null_treatment == other.null_treatment
}
