//! Scalar subqueries in conditions on events: answered before the statement around them is planned.
//!
//! ```text
//! SELECT date_bin(INTERVAL '15 minutes', timestamp) AS quarter, count(*) FROM events
//! WHERE timestamp > (SELECT max(timestamp) FROM events) - INTERVAL '1 day' GROUP BY 1
//! ```
//!
//! Its value is 2026-11-20 10:17:36.789, so the statement is planned as if that had been written:
//!
//! ```text
//! … WHERE timestamp > TIMESTAMP '2026-11-20 10:17:36.789' - INTERVAL '1 day' GROUP BY 1
//! ```
//!
//! The library computes such a subquery first as well, but its plan is made before the value is known. Written values bound what is read,
//! and conditions with them are met while groups are added up (`rules/aggregate_pushdown.rs`), of whatever column: `numeric_props['ms'] >
//! (SELECT avg(numeric_props['ms']) FROM events)`.
//!
//! The library is left with the others:
//!
//! ```text
//! timestamp > (SELECT max(e.timestamp) FROM events e WHERE e.tenant_id = t.tenant_id)     it has a value for each row outside
//! numeric_props['cost'] > (SELECT avg(cost) FROM spend)      spend, of WITH, may be read elsewhere as well, and is computed once
//! HAVING count(*) > (SELECT avg(n) …), SELECT (SELECT …)     groups have been added up by then, or it is computed for the answer anyway
//! tenant_id = (SELECT tenant_id FROM events)                 more than one row: it has the error
//! LIMIT 0                                                    no rows are asked for, as BI tools do to learn columns
//! ```

use std::{collections::HashMap, sync::Arc};

use datafusion_common::{
    Result, ScalarValue,
    tree_node::{Transformed, TreeNode as _, TreeNodeRecursion},
};
use datafusion_execution::TaskContext;
use datafusion_expr::{Expr, FetchType, Filter, LogicalPlan, utils::split_conjunction};
use datafusion_physical_plan::{ExecutionPlan, execute_stream};
use futures::StreamExt as _;

use super::planning::Planning;
use crate::tables::Kind;

/// Subqueries and what each comes to.
type ScalarValues = HashMap<Arc<LogicalPlan>, ScalarValue>;

/// A plan with values in the place of scalar subqueries, which are answered one after the other.
///
/// Errors: of planning or of answering one of them.
pub async fn with_values(
    plan: LogicalPlan,
    planning: &Planning<'_>,
    task: impl Fn() -> Arc<TaskContext>,
) -> Result<LogicalPlan> {
    let mut values = ScalarValues::new();
    for subquery in subqueries(&plan)? {
        let operators = planning.physical(LogicalPlan::clone(&subquery))?;
        if let Some(value) = value_of(operators, task()).await? {
            values.insert(subquery, value);
        }
    }
    if values.is_empty() { Ok(plan) } else { replaced(plan, &values) }
}

/// The subqueries of a plan that are worth an answer ahead of it, each once.
fn subqueries(plan: &LogicalPlan) -> Result<Vec<Arc<LogicalPlan>>> {
    let mut found: Vec<Arc<LogicalPlan>> = Vec::new();
    let mut asks_for_no_rows = false;
    plan.apply(|node| {
        match node {
            LogicalPlan::Limit(limit) => {
                asks_for_no_rows |= matches!(limit.get_fetch_type()?, FetchType::Literal(Some(0)));
            }
            LogicalPlan::Filter(filter) => {
                let conditions = split_conjunction(&filter.predicate).into_iter();
                for condition in conditions.filter(|condition| is_on_events(condition)) {
                    collect(condition, &mut found)?;
                }
            }
            _ => {}
        }
        Ok(TreeNodeRecursion::Continue)
    })?;
    if found.is_empty() || asks_for_no_rows {
        return Ok(Vec::new());
    }
    let mut all = Vec::new();
    plan.apply_with_subqueries(|node| node.apply_expressions(|expr| collect(expr, &mut all)))?;
    let count = |list: &[Arc<LogicalPlan>], one| list.iter().filter(|other| *other == one).count();
    let mut independent: Vec<Arc<LogicalPlan>> = Vec::new();
    for subquery in &found {
        let is_elsewhere = count(&all, subquery) > count(&found, subquery);
        if !is_elsewhere && !independent.contains(subquery) && !reads_names(subquery)? {
            independent.push(Arc::clone(subquery));
        }
    }
    Ok(independent)
}

/// Adds the scalar subqueries of an expression that look at no rows outside.
fn collect(expr: &Expr, found: &mut Vec<Arc<LogicalPlan>>) -> Result<TreeNodeRecursion> {
    expr.apply(|part| {
        if let Expr::ScalarSubquery(subquery) = part
            && subquery.outer_ref_columns.is_empty()
        {
            found.push(Arc::clone(&subquery.subquery));
        }
        Ok(TreeNodeRecursion::Continue)
    })
}

/// Whether a condition is on columns of events alone, by their names.
fn is_on_events(condition: &Expr) -> bool {
    let columns = Kind::Events.columns();
    let is_known = |name: &str| columns.iter().any(|column| column.name() == name);
    let named = condition.column_refs();
    !named.is_empty() && named.iter().all(|column| is_known(&column.name))
}

/// Whether a subquery reads rows of another one by a name, which may be computed for the statement anyway.
fn reads_names(subquery: &LogicalPlan) -> Result<bool> {
    let mut has_name = false;
    subquery.apply_with_subqueries(|node| {
        has_name |= matches!(node, LogicalPlan::SubqueryAlias(named)
            if !matches!(*named.input, LogicalPlan::TableScan(_)));
        Ok(if has_name { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
    })?;
    Ok(has_name)
}

/// The value of a subquery: null where it has no row, nothing where it has several. Its type is that of the analyzed plan: in that of the
/// written one, `CASE WHEN … THEN 0 ELSE 49.5 END` would be an integer.
async fn value_of(
    operators: Arc<dyn ExecutionPlan>,
    task: Arc<TaskContext>,
) -> Result<Option<ScalarValue>> {
    let schema = operators.schema();
    let mut batches = execute_stream(operators, task)?;
    let mut value = None;
    while let Some(batch) = batches.next().await {
        let batch = batch?;
        if batch.num_rows() > usize::from(value.is_none()) {
            return Ok(None);
        }
        if batch.num_rows() == 1 {
            value = Some(ScalarValue::try_from_array(batch.column(0), 0)?);
        }
    }
    value.map_or_else(|| ScalarValue::try_from(schema.field(0).data_type()), Ok).map(Some)
}

/// A plan with values in the conditions of its filters. Other expressions give columns their names, so they stay.
fn replaced(plan: LogicalPlan, values: &ScalarValues) -> Result<LogicalPlan> {
    let with_value = |expr: Expr| {
        let value = match &expr {
            Expr::ScalarSubquery(subquery) => values.get(&subquery.subquery),
            _ => None,
        };
        Ok(match value {
            Some(value) => Transformed::yes(Expr::Literal(value.clone(), None)),
            None => Transformed::no(expr),
        })
    };
    let plan = plan.transform_down(|node| {
        let LogicalPlan::Filter(filter) = node else { return Ok(Transformed::no(node)) };
        let Filter { predicate, input, .. } = filter;
        let predicate = predicate.transform_down(with_value)?;
        let filter = Filter::try_new(predicate.data, input)?;
        Ok(Transformed::new_transformed(LogicalPlan::Filter(filter), predicate.transformed))
    })?;
    Ok(plan.data)
}
