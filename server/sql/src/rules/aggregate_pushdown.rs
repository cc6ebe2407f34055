//! Optimizer rule: pushes grouped aggregates below the scan, so that a source returns one partial row for each group instead of
//! its rows.
//!
//! ```text
//! SELECT tenant_id, date_trunc('day', timestamp), count(*) FROM events GROUP BY 1, 2
//! SELECT tenant_id, timestamp, sum(rows) FROM (partial groups by tenant and day) GROUP BY 1, 2
//! ```
//!
//! Groups by tenant, event, string properties and weeks, days, hours or some minutes need no rows: `aggregate/groups_table.rs`. Expressions of such columns
//! are computed from the groups instead: a sum over equal rows is a product with their number. Groups by user are read tenant by
//! tenant and complete: `aggregate/user_groups_table.rs`.
//!
//! The plan before and after, of `SELECT upper(string_props['plan']), avg(numeric_props['ms']) FROM events WHERE tenant_id = 'acme'
//! GROUP BY 1`:
//!
//! ```text
//! Aggregate: groupBy=[[upper(events.string_props['plan'])]], aggr=[[avg(events.numeric_props['ms'])]]
//!   TableScan: events projection=[numeric_props['ms'], string_props['plan']], full_filters=[events.tenant_id = Utf8View("acme")]
//!
//! Projection: group 0 AS upper(events.string_props['plan']), part 0 / CAST(part 1 AS Float64) AS avg(events.numeric_props['ms'])
//!   Aggregate: groupBy=[[upper(string_props['plan']) AS group 0]], aggr=[[sum(sum of measure 0) AS part 0, sum(count of measure 0) AS part 1]]
//!     TableScan: groups 7fffd801c9e0
//! ```
//!
//! Of `SELECT tenant_id, user_id, count(*), min(timestamp) … GROUP BY 1, 2` a group has one row, so nothing is left to be aggregated:
//!
//! ```text
//! Projection: group 0 AS tenant_id, group 1 AS user_id, CASE WHEN part 0 IS NOT NULL THEN part 0 ELSE Int64(0) END AS count(Int64(1)), …
//!   Projection: tenant_id AS group 0, user_id AS group 1, count of measure 0 AS part 0, least of measure 1 AS part 1
//!     TableScan: groups 7fffe4001ff0
//! ```
//!
//! Rows are read all the same where a group needs what groups do not know: `count(DISTINCT event_id)`, `extract(minute FROM timestamp)`,
//! `GROUP BY user_id` over several tenants, or a `LIMIT` below the aggregate.

use std::sync::Arc;

use arrow::datatypes::DataType;
use datafusion_common::{
    Column, DFSchema, DataFusionError, Result, TableReference,
    tree_node::{Transformed, TreeNode as _, TreeNodeRecursion},
};
use datafusion_expr::{
    Aggregate, Expr, ExprSchemable as _, Filter, GroupingSet, LogicalPlan, Projection, TableScan,
    TableScanBuilder, cast, utils::conjunction,
};
use datafusion_functions_aggregate::expr_fn::sum;
use datafusion_optimizer::ApplyOrder;

use super::rewrite::NodeRule;
use crate::{
    aggregate::{AggregateRewriter, RowsPerGroup, USER_NUMBER, USERS, names_users, of_scan},
    tables::{Conditions, Kind, Source, table_of},
};

/// The rule. It goes from the root down: an aggregate above a `DISTINCT` is tried first, since one scan may answer both.
pub const AGGREGATE_PUSHDOWN: NodeRule = NodeRule {
    name: "add_up_early",
    order: ApplyOrder::TopDown,
    rewrite: |plan| match plan {
        LogicalPlan::Aggregate(aggregate) => added_up(aggregate),
        _ => Ok(None),
    },
};

/// What gives the same rows as an aggregate and adds up while it reads; nothing where rows are needed.
///
/// Errors: damage of a segment.
pub fn added_up(aggregate: &Aggregate) -> Result<Option<LogicalPlan>> {
    // What only looks for the first and the last is not changed by rows that are alike: `SELECT tenant_id, user_id, min(w) FROM (SELECT
    // DISTINCT tenant_id, user_id, date_trunc('week', timestamp) AS w …) …` needs no `DISTINCT`.
    let is_indifferent = aggregate.aggr_expr.iter().all(is_extreme);
    let Some(input) = Input::of(&aggregate.input, is_indifferent)? else { return Ok(None) };
    let scan = input.scan;
    let Some(table) = table_of(scan).filter(|table| table.kind() == Kind::Events) else {
        return Ok(None);
    };
    let of_scan = |expr: &Expr| replaced(expr, &aggregate.input, &input.columns);
    let set = match &*aggregate.group_expr {
        [Expr::GroupingSet(set)] => Some(set),
        _ => None,
    };
    let group_exprs = match set {
        Some(set) => set.distinct_expr(),
        None => aggregate.group_expr.iter().collect(),
    };
    let groups =
        group_exprs.iter().map(|expr| of_scan(expr)).collect::<Result<Option<Vec<_>>>>()?;
    let exprs = aggregate.aggr_expr.iter().map(of_scan).collect::<Result<Option<Vec<_>>>>()?;
    let Some((groups, exprs)) = groups.zip(exprs) else { return Ok(None) };
    // Keys before aggregates: an aggregate over a key needs no measure, and what is counted once needs groups by user.
    let mut read = AggregateRewriter::new(scan, table, &groups, &exprs)?;
    for group in &groups {
        if !read.takes_group(group)? {
            return Ok(None);
        }
    }
    for condition in &input.conditions {
        if !read.takes_key(condition)? {
            return Ok(None);
        }
    }
    let mut aggregates = Vec::new();
    let mut outputs = Vec::new();
    for expr in &exprs {
        // An average is two parts, the others are one: `part 0`, `part 1` and so on over the whole list of aggregates.
        let Some(parts) = read.takes_aggregate(expr)? else { return Ok(None) };
        let mut names = Vec::new();
        for part in parts.aggregates {
            let name = format!("part {}", aggregates.len());
            aggregates.push((part, name.clone()));
            names.push(Expr::Column(Column::new_unqualified(name)));
        }
        outputs.push((parts.finish)(names)?);
    }
    let Ok(mut conditions) = Conditions::of(Kind::Events, &scan.filters) else { return Ok(None) };
    for condition in &input.conditions {
        conditions.narrow(Kind::Events, condition);
    }
    // Of a set of groups, each row of a table is in several: `ROLLUP (tenant_id, event_name)` has each in three.
    let told_apart: &[Expr] = if set.is_some() { &[] } else { &groups };
    let mut names_any_user = false;
    for expr in groups.iter().chain(&input.conditions).chain(aggregates.iter().map(|(of, _)| of)) {
        names_any_user |= names_users(expr)?;
    }
    let Some((provider, rows)) = read.provider(told_apart, conditions, names_any_user)? else {
        return Ok(None);
    };
    // Scans are compared by their names and columns where subqueries are the same: conditions that are part of the table must
    // tell.
    let name = format!("groups {:x}", Arc::as_ptr(&provider).addr());
    let inner = TableScanBuilder::new(TableReference::bare(name), Arc::new(Source(provider)));
    let mut inner = LogicalPlan::TableScan(inner.build()?);
    if let Some(condition) = conjunction(input.conditions) {
        inner = LogicalPlan::Filter(Filter::try_new(condition, Arc::new(inner))?);
    }
    let inner = Arc::new(inner);
    // Two groups that are the same would be one: `SELECT a, b … GROUP BY a, b` over two names of one property.
    let names: Vec<String> = (0..groups.len()).map(|at| format!("group {at}")).collect();
    let groups = groups.into_iter().zip(&names).map(|(group, name)| group.alias(name));
    let parts = aggregates.into_iter();
    let new = if let Some(set) = set {
        let set = renamed(set, &group_exprs, &names);
        let parts = parts.map(|(part, name)| once(part, rows).alias(name)).collect();
        // Sets have names of columns, which are made below.
        let columns = groups.chain(columns_of_table(&inner)).collect();
        let inner = Arc::new(LogicalPlan::Projection(Projection::try_new(columns, inner)?));
        LogicalPlan::Aggregate(Aggregate::try_new(inner, vec![Expr::GroupingSet(set)], parts)?)
    } else if rows == RowsPerGroup::One {
        // A group is in one row, which is the first, the last and the sum of itself.
        let parts = parts.map(|(part, name)| Ok(argument(part)?.alias(name)));
        let all = groups.map(Ok).chain(parts).collect::<Result<Vec<_>>>()?;
        LogicalPlan::Projection(Projection::try_new(all, inner)?)
    } else {
        let parts = parts.map(|(part, name)| once(part, rows).alias(name)).collect();
        LogicalPlan::Aggregate(Aggregate::try_new(inner, groups.collect(), parts)?)
    };
    // `grouping(x)` and sets that differ by nulls alone are told apart by the library's column.
    let id = set.map(|_| Aggregate::INTERNAL_GROUPING_ID.to_owned());
    let new_groups =
        names.into_iter().chain(id).map(|name| Expr::Column(Column::new_unqualified(name)));
    with_columns_of(&aggregate.schema, new_groups.chain(outputs), new).map(Some)
}

/// A plan whose columns have the names and types of a schema: of each column, what it is made of in another plan.
///
/// `schema` is that of the node which the plan replaces, and `exprs` has one expression for each of its columns, in the same order. Nodes
/// above find their columns by name, so a part that became `sum(rows)` is called `count(Int64(1))` again, and is cast where its type differs.
///
/// Errors: none that is expected.
pub fn with_columns_of(
    schema: &DFSchema,
    exprs: impl Iterator<Item = Expr>,
    plan: LogicalPlan,
) -> Result<LogicalPlan> {
    let columns = schema.iter().zip(exprs);
    let columns = columns
        .map(|((relation, field), expr)| {
            let expr = cast_to(expr, field.data_type(), &plan)?;
            Ok(expr.alias_qualified(relation.cloned(), field.name()))
        })
        .collect::<Result<Vec<_>>>()?;
    Ok(LogicalPlan::Projection(Projection::try_new(columns, Arc::new(plan))?))
}

/// The columns of a plan, as a projection passes them on.
fn columns_of_table(plan: &LogicalPlan) -> impl Iterator<Item = Expr> + '_ {
    plan.schema().iter().map(|field| Expr::Column(Column::from(field)))
}

/// Sets of groups by the names of the columns that their expressions have become: `ROLLUP (events.tenant_id, events.event_name)` is
/// `ROLLUP (group 0, group 1)`.
fn renamed(set: &GroupingSet, exprs: &[&Expr], names: &[String]) -> GroupingSet {
    let column = |expr: &Expr| {
        let name = exprs.iter().position(|known| *known == expr).and_then(|at| names.get(at));
        name.map_or_else(|| expr.clone(), |name| Expr::Column(Column::new_unqualified(name)))
    };
    let all = |exprs: &Vec<Expr>| exprs.iter().map(column).collect();
    match set {
        GroupingSet::Rollup(exprs) => GroupingSet::Rollup(all(exprs)),
        GroupingSet::Cube(exprs) => GroupingSet::Cube(all(exprs)),
        GroupingSet::GroupingSets(sets) => {
            GroupingSet::GroupingSets(sets.iter().map(all).collect())
        }
    }
}

/// Whether an aggregate is the least or the most of something.
fn is_extreme(expr: &Expr) -> bool {
    match expr {
        Expr::Alias(alias) => is_extreme(&alias.expr),
        Expr::AggregateFunction(call) => ["min", "max"].contains(&call.func.name()),
        _ => false,
    }
}

/// What an aggregate of one argument is of: `least of measure 1` of `min(least of measure 1)`.
///
/// Errors: an aggregate without an argument, which is a mistake of ours.
fn argument(expr: Expr) -> Result<Expr> {
    let argument = match expr {
        Expr::AggregateFunction(call) => call.params.args.into_iter().next(),
        _ => None,
    };
    argument.ok_or_else(|| DataFusionError::Internal("a part of nothing".to_owned()))
}

/// The aggregate of a part over partial rows: where each has a user of its own a distinct count is a plain one, else users are
/// compared by their numbers.
///
/// ```text
/// count(DISTINCT user_id) by tenant               users are counted          sum(users)
/// the same beside max(user_id)                    a row for each user        count(user_id)
/// count(DISTINCT user_id) by tenant, lower(plan)  one for each of the plans  count(DISTINCT "number of user_id")
/// ```
fn once(mut part: Expr, rows: RowsPerGroup) -> Expr {
    if let Expr::AggregateFunction(call) = &mut part
        && call.params.distinct
    {
        match rows {
            RowsPerGroup::Counted => return sum(of_scan(USERS)),
            RowsPerGroup::OneOfUser => call.params.distinct = false,
            RowsPerGroup::Numbered => {
                let number = Expr::Column(Column::new_unqualified(USER_NUMBER));
                call.params.args = vec![number];
            }
            RowsPerGroup::One | RowsPerGroup::Many => {}
        }
    }
    part
}

/// The expression in a type; itself where it has that type over the plan.
fn cast_to(expr: Expr, kind: &DataType, plan: &LogicalPlan) -> Result<Expr> {
    match expr.get_type(plan.schema())? == *kind {
        true => Ok(expr),
        false => Ok(cast(expr, kind.clone())),
    }
}

/// The scan below a plan.
///
/// Of `SELECT p FROM (SELECT string_props['plan'] AS p FROM events) x WHERE p <> ''` it has the scan of `events`, the column
/// `string_props['plan']` for `p`, and the condition `string_props['plan'] <> ''`.
struct Input<'a> {
    scan: &'a TableScan,
    /// Each column of the plan as an expression of the scan's columns.
    columns: Vec<Expr>,
    /// What rows of the scan have to meet, besides its own conditions.
    conditions: Vec<Expr>,
}

impl<'a> Input<'a> {
    /// The input that a plan reads, if it is one. With `is_indifferent`, a `DISTINCT` in between may have merged equal rows.
    fn of(plan: &'a LogicalPlan, is_indifferent: bool) -> Result<Option<Self>> {
        match plan {
            LogicalPlan::TableScan(scan) if scan.fetch.is_none() => {
                let names = scan.projected_schema.fields().iter().map(|field| field.name());
                let columns = names.map(|name| Expr::Column(Column::new_unqualified(name)));
                Ok(Some(Self { scan, columns: columns.collect(), conditions: Vec::new() }))
            }
            LogicalPlan::SubqueryAlias(named) => Self::of(&named.input, is_indifferent),
            LogicalPlan::Filter(filter) => {
                let Some(mut input) = Self::of(&filter.input, is_indifferent)? else {
                    return Ok(None);
                };
                let condition = replaced(&filter.predicate, &filter.input, &input.columns)?;
                Ok(condition.map(|condition| {
                    input.conditions.push(condition);
                    input
                }))
            }
            LogicalPlan::Projection(projection) => {
                Self::replaced(&projection.expr, &projection.input, is_indifferent)
            }
            LogicalPlan::Aggregate(distinct) if is_indifferent && distinct.aggr_expr.is_empty() => {
                Self::replaced(&distinct.group_expr, &distinct.input, is_indifferent)
            }
            _ => Ok(None),
        }
    }

    /// The input below a projection or a `DISTINCT` of these expressions over `plan`; nothing where one of them cannot be written with
    /// columns of the scan.
    fn replaced(
        exprs: &[Expr],
        plan: &'a LogicalPlan,
        is_indifferent: bool,
    ) -> Result<Option<Self>> {
        let Some(input) = Self::of(plan, is_indifferent)? else { return Ok(None) };
        let columns = exprs.iter().map(|expr| replaced(expr, plan, &input.columns));
        let columns = columns.collect::<Result<Option<Vec<_>>>>()?;
        Ok(columns.map(|columns| Self { columns, ..input }))
    }
}

/// An expression over a plan's columns as one of what they are. Nothing for a volatile one, or one that looks at other rows, as a
/// subquery does.
fn replaced(expr: &Expr, plan: &LogicalPlan, columns: &[Expr]) -> Result<Option<Expr>> {
    let mut all_known = !expr.is_volatile() && !matches!(expr, Expr::GroupingSet(_));
    let new = expr.clone().transform_down(|part| match &part {
        Expr::Column(column) => {
            let at = plan.schema().index_of_column(column).ok();
            Ok(match at.and_then(|at| columns.get(at)) {
                Some(of) => Transformed::new(of.clone(), true, TreeNodeRecursion::Jump),
                None => {
                    all_known = false;
                    Transformed::no(part)
                }
            })
        }
        Expr::OuterReferenceColumn(..)
        | Expr::ScalarSubquery(_)
        | Expr::InSubquery(_)
        | Expr::Exists(_) => {
            all_known = false;
            Ok(Transformed::no(part))
        }
        _ => Ok(Transformed::no(part)),
    })?;
    // A column that is computed has a name of its own, which is nothing here.
    Ok(all_known.then(|| new.data.unalias_nested().data))
}
