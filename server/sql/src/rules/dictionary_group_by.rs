//! Optimizer rule: `GROUP BY` over texts becomes one over their dictionary codes.
//!
//! `GROUP BY tenant_id` is planned over a column of texts. Where that column comes straight from a table, through
//! filters, aliases and projections, rows are grouped by codes, and only the groups' codes are decoded. `count(DISTINCT
//! string_props['model'])` becomes `count_codes("number of string_props['model']")`, which has a bitmap for each group. DataFusion would group by the
//! distinct values, too, and count those groups: only groups that can be pushed below the scan are better.
//!
//! ```text
//! Aggregate: groupBy=[[events.user_id]], aggr=[[max(events.event_id)]]
//!   TableScan: events projection=[event_id, user_id]
//!
//! Projection: text_of(events.number of user_id) AS user_id, max(events.event_id) AS max(events.event_id)
//!   Aggregate: groupBy=[[events.number of user_id]], aggr=[[max(events.event_id)]]
//!     TableScan: events projection=[event_id, user_id, number of user_id]
//! ```
//!
//! With distinct counts, of `SELECT date_trunc('day', timestamp), count(DISTINCT user_id), sum(numeric_props['ms']) … GROUP BY 1`:
//!
//! ```text
//! Aggregate: groupBy=[[date_trunc(Utf8("day"), events.timestamp)]],
//!   aggr=[[count(DISTINCT events.user_id), sum(events.numeric_props['ms'])]]
//!
//! Aggregate: groupBy=[[date_trunc(Utf8("day"), events.timestamp)]],
//!   aggr=[[count_codes(events.number of user_id) AS count 0, sum(events.numeric_props['ms'])]]
//! ```
//!
//! Groups of `GROUP BY lower(user_id)` or by `event_id` stay groups of texts, and so do grouping sets. A null has no number, so the group
//! of rows without a user is that of a null number, and `text_of` gives null for it.

use std::{
    collections::HashSet,
    sync::{Arc, LazyLock},
};

use datafusion_common::{Column, Result};
use datafusion_expr::{
    Aggregate, AggregateUDF, Expr, LogicalPlan, Projection, expr::AggregateFunction,
};
use datafusion_optimizer::ApplyOrder;

use super::{
    aggregate_pushdown::added_up,
    dictionary_columns::{is_text, number_each, plain},
    rewrite::NodeRule,
};
use crate::{aggregate::count_codes, tables::text_of};

/// Groups by numbers where texts were to be grouped by.
pub const DICTIONARY_GROUP_BY: NodeRule = NodeRule {
    name: "group_by_numbers",
    order: ApplyOrder::BottomUp,
    rewrite: |plan| match plan {
        LogicalPlan::Aggregate(aggregate) => rewritten(aggregate),
        _ => Ok(None),
    },
};

/// Counts distinct codes where distinct texts of tables are counted, by themselves or beside other aggregates.
pub const COUNT_DISTINCT_CODES: NodeRule = NodeRule {
    name: "count_distinct_codes",
    order: ApplyOrder::BottomUp,
    rewrite: |plan| match plan {
        LogicalPlan::Aggregate(aggregate) => with_codes_counted(aggregate),
        _ => Ok(None),
    },
};

/// The function, which has no state: all plans share it.
static COUNT_CODES: LazyLock<Arc<AggregateUDF>> = LazyLock::new(|| Arc::new(count_codes()));

/// Counts codes where all distinct counts of an aggregate are of columns of texts, and cannot be had of groups below the scan.
fn with_codes_counted(aggregate: &Aggregate) -> Result<Option<LogicalPlan>> {
    let schema = aggregate.input.schema();
    let counts: HashSet<&Column> = aggregate.aggr_expr.iter().filter_map(counted).collect();
    if counts.is_empty() || !counts.iter().all(|column| is_text(schema, column)) {
        return Ok(None);
    }
    // One column beside functions that can be merged is what DataFusion makes groups of.
    if let [only] = &*Vec::from_iter(counts)
        && !aggregate.group_expr.iter().any(|expr| matches!(expr, Expr::GroupingSet(_)))
    {
        let mut groups = aggregate.group_expr.clone();
        groups.push(Expr::Column((*only).clone()));
        let groups = Aggregate::try_new(Arc::clone(&aggregate.input), groups, Vec::new())?;
        // `SELECT tenant_id, count(DISTINCT user_id)`: groups by tenant and user are read without rows, so that is left to happen.
        if added_up(&groups)?.is_some() {
            return Ok(None);
        }
    }
    rewritten(aggregate)
}

/// The aggregate over numbers, and above it the projection that makes texts of them. Nothing where no column has numbers.
fn rewritten(aggregate: &Aggregate) -> Result<Option<LogicalPlan>> {
    let Aggregate { input, group_expr, aggr_expr, schema, .. } = aggregate;
    if group_expr.iter().any(|expr| matches!(expr, Expr::GroupingSet(_))) {
        return Ok(None);
    }
    let is_text = |column: &&Column| is_text(input.schema(), column);
    let groups: Vec<Option<&Column>> =
        group_expr.iter().map(|expr| plain(expr).filter(is_text)).collect();
    let counts: Vec<Option<&Column>> =
        aggr_expr.iter().map(|expr| counted(expr).filter(is_text)).collect();
    let wanted = groups.iter().chain(&counts).copied().flatten();
    let (input, numbers) = number_each(input, wanted)?;
    if numbers.is_empty() {
        return Ok(None);
    }
    let number = |column: &Column| numbers.get(column);

    let mut new_groups = Vec::new();
    for (expr, column) in group_expr.iter().zip(&groups) {
        new_groups.push(match column.and_then(number) {
            Some((number, _)) => Expr::Column(number.clone()),
            None => expr.clone(),
        });
    }
    let mut new_aggregates = Vec::new();
    for (at, (expr, column)) in aggr_expr.iter().zip(&counts).enumerate() {
        new_aggregates.push(match column.and_then(number) {
            // Two columns may have the same numbers, under two names.
            Some((number, _)) => counting(expr, number).unalias().alias(format!("count {at}")),
            None => expr.clone(),
        });
    }
    // The same text may be grouped by twice, under two names.
    if new_groups.iter().collect::<HashSet<_>>().len() < new_groups.len() {
        return Ok(None);
    }
    let new = Aggregate::try_new(input, new_groups, new_aggregates)?;
    // Names and qualifiers are those of before: `events.user_id` is `text_of(number of user_id)`.
    let outer = schema.iter().zip(new.schema.columns()).enumerate();
    let outer = outer.map(|(at, ((relation, field), column))| {
        let expr = match groups.get(at).copied().flatten().and_then(number) {
            Some((_, codes)) => text_of(codes).call(vec![Expr::Column(column)]),
            None => Expr::Column(column),
        };
        expr.alias_qualified(relation.cloned(), field.name())
    });
    let outer = outer.collect();
    let input = Arc::new(LogicalPlan::Aggregate(new));
    Ok(Some(LogicalPlan::Projection(Projection::try_new(outer, input)?)))
}

/// The column of `count(DISTINCT column)`, with a filter or without; nothing of `count(column)` and `count(DISTINCT lower(column))`.
fn counted(expr: &Expr) -> Option<&Column> {
    match expr {
        Expr::Alias(alias) => counted(&alias.expr),
        Expr::AggregateFunction(AggregateFunction { func, params }) => {
            let is_plain = params.distinct && params.order_by.is_empty();
            match &*params.args {
                [Expr::Column(column)] if is_plain && func.name() == "count" => Some(column),
                _ => None,
            }
        }
        _ => None,
    }
}

/// `count(DISTINCT user_id)` as `count_codes("number of user_id")`, with its filter, under its name.
fn counting(expr: &Expr, number: &Column) -> Expr {
    match expr {
        Expr::Alias(alias) => {
            counting(&alias.expr, number).alias_qualified(alias.relation.clone(), &alias.name)
        }
        Expr::AggregateFunction(function) => {
            let mut params = function.params.clone();
            (params.args, params.distinct) = (vec![Expr::Column(number.clone())], false);
            let func = Arc::clone(&COUNT_CODES);
            Expr::AggregateFunction(AggregateFunction { func, params })
        }
        other => other.clone(),
    }
}
