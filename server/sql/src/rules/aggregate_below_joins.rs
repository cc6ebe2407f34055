//! Optimizer rule: rows of a join are added up before further inputs are joined to them, where they have few groups.
//!
//! ```text
//! SELECT a.endpoint, b.endpoint, count(*), p.users FROM used a JOIN used b ON b.user_id = a.user_id
//! JOIN popular p ON p.endpoint = a.endpoint GROUP BY 1, 2, 4
//!
//! SELECT ab.a, ab.b, sum(n), p.users FROM (SELECT a.endpoint AS a, b.endpoint AS b, count(*) AS n FROM used a JOIN used b
//! ON b.user_id = a.user_id GROUP BY 1, 2) ab JOIN popular p ON p.endpoint = ab.a GROUP BY 1, 2, 4
//! ```
//!
//! A million pairs are a thousand groups, of which each is looked up once. All rows of a group have the same matches, since what
//! further joins compare is among its keys.
//!
//! So is a table beside a single row, such as a total that each group is compared with:
//!
//! ```text
//! SELECT e.source, count(*), count(*) * 1.0 / o.n FROM events e CROSS JOIN (SELECT count(*) AS n FROM events) o GROUP BY e.source, o.n
//!
//! SELECT g.source, sum(g.n), … FROM (SELECT source, count(*) AS n FROM events GROUP BY source) g CROSS JOIN … o GROUP BY g.source, o.n
//! ```
//!
//! The plans before and after of a similar statement, without projections and what is below the inner join:
//!
//! ```text
//! Aggregate: groupBy=[[a.p, b.p, q.n]], aggr=[[count(Int64(1))]]
//!   Inner Join: a.p = q.p
//!     Inner Join: a.user_id = b.user_id Filter: b.p > a.p
//!     SubqueryAlias: q
//!
//! Projection: group 0 AS p, group 1 AS p, group 2 AS n, CASE WHEN late 0 IS NOT NULL THEN late 0 ELSE Int64(0) END AS count(Int64(1))
//!   Aggregate: groupBy=[[a.p AS group 0, b.p AS group 1, q.n AS group 2]], aggr=[[sum(early0) AS late 0]]
//!     Inner Join: a.p = q.p
//!       Aggregate: groupBy=[[a.p, b.p]], aggr=[[count(Int64(1)) AS early0]]
//!         Inner Join: a.user_id = b.user_id Filter: b.p > a.p
//!       SubqueryAlias: q
//! ```
//!
//! What it leaves as it is, over the same joins:
//!
//! ```text
//! SELECT a.p, sum(q.n) … GROUP BY 1                    the argument is a column of the further input
//! SELECT a.user_id, count(*), q.n … GROUP BY 1, 3      how many users there are is not known without reading them
//! SELECT a.p, count(DISTINCT b.user_id) … GROUP BY 1   distinct counts of two groups cannot be added
//! SELECT count(*) …                                    without keys there is a row of no rows
//! ```

use std::{collections::BTreeSet, sync::Arc};

use datafusion_common::{Column, JoinType, Result};
use datafusion_expr::{
    Aggregate, Expr, Join, LogicalPlan, Projection, expr::AggregateFunction, lit,
    utils::expr_to_columns, when,
};
use datafusion_functions_aggregate::expr_fn::{max, min, sum};
use datafusion_optimizer::ApplyOrder;

use super::{
    aggregate_pushdown::with_columns_of, dictionary_columns::with_inputs, rewrite::NodeRule,
    value_counts::value_count,
};
use crate::aggregate::is_total;

/// Groups that are few, whatever the rows are: the product of the value counts of the keys, say 256 plans by 256 endpoints, each with one
/// for null.
const GROUPS_MAX: usize = 65_536;

/// What the names of columns of groups begin with. No statement can write the NUL, so an aggregate over such columns is one that this
/// rule has made: it would be rewritten in every pass otherwise.
const EARLY: &str = "early\0";

/// Aggregates of joins of joins.
pub const AGGREGATE_BELOW_JOINS: NodeRule = NodeRule {
    name: "aggregate_below_joins",
    order: ApplyOrder::TopDown,
    rewrite: |plan| match plan {
        LogicalPlan::Aggregate(aggregate) => added_up_below(aggregate),
        _ => Ok(None),
    },
};

/// A node between an aggregate and the join whose rows are added up first.
enum Above<'a> {
    /// A projection, which passes the early columns on beside those of its columns that are still there.
    Projection(&'a Projection),
    /// A join, and whether its left input is the one that is added up.
    Join(&'a Join, bool),
}

/// The aggregate over early groups; nothing where its functions, its keys or the joins below do not allow it.
///
/// Errors: damage of a segment, when values are counted.
fn added_up_below(aggregate: &Aggregate) -> Result<Option<LogicalPlan>> {
    let is_set = matches!(&*aggregate.group_expr, [Expr::GroupingSet(_)]);
    // Of no rows there is a group, where there are no keys.
    if is_set || aggregate.group_expr.is_empty() || aggregate.aggr_expr.is_empty() {
        return Ok(None);
    }
    let calls = aggregate.aggr_expr.iter().map(call_of).collect::<Option<Vec<_>>>();
    let Some(calls) = calls else { return Ok(None) };
    let mut arguments = BTreeSet::new();
    for call in &calls {
        let exprs = call.params.args.iter().chain(call.params.filter.as_deref());
        arguments.extend(exprs.flat_map(Expr::column_refs).cloned());
    }
    // It was added up already.
    if arguments.iter().any(|column| column.name.starts_with(EARLY)) {
        return Ok(None);
    }
    let mut keys = BTreeSet::new();
    for group in &aggregate.group_expr {
        keys.extend(group.column_refs().into_iter().cloned());
    }
    let Some(found) = joined_rows(&aggregate.input, keys, &arguments)? else { return Ok(None) };
    let JoinedRows { rows, keys, above } = found;
    // Of each function its call over rows, the call that merges its early results, and the column of the answer.
    let mut early = Vec::new();
    let mut late = Vec::new();
    let mut outputs = Vec::new();
    for (at, call) in calls.iter().enumerate() {
        let name = format!("{EARLY}{at}");
        early.push(Expr::AggregateFunction((*call).clone()).alias(&name));
        let part = Expr::Column(Column::new_unqualified(&name));
        let late_name = format!("late {at}");
        let whole = Expr::Column(Column::new_unqualified(&late_name));
        let (merged, output) = match call.func.name() {
            "min" => (min(part), whole),
            "max" => (max(part), whole),
            "sum" => (sum(part), whole),
            // A count is never null.
            _ => (sum(part), when(whole.clone().is_not_null(), whole).otherwise(lit(0i64))?),
        };
        late.push(merged.alias(late_name));
        outputs.push(output);
    }
    let groups = keys.into_iter().map(Expr::Column).collect();
    let mut plan = LogicalPlan::Aggregate(Aggregate::try_new(rows, groups, early)?);
    let part = |at| Expr::Column(Column::new_unqualified(format!("{EARLY}{at}")));
    let parts: Vec<Expr> = (0..calls.len()).map(part).collect();
    // The nodes between are built again from the join up, each with the early columns.
    for node in above.iter().rev() {
        let input = Arc::new(plan);
        plan = match node {
            Above::Projection(projection) => {
                // Arguments of functions, and what else no key is made of, end at the early aggregate.
                let has = |expr: &&Expr| {
                    expr.column_refs().iter().all(|column| input.schema().has_column(column))
                };
                let exprs = projection.expr.iter().filter(has).chain(&parts).cloned().collect();
                LogicalPlan::Projection(Projection::try_new(exprs, input)?)
            }
            Above::Join(join, is_left) => {
                let (left, right) = match is_left {
                    true => (input, Arc::clone(&join.right)),
                    false => (Arc::clone(&join.left), input),
                };
                match with_inputs(join, left, right, join.on.clone()) {
                    Some(join) => join,
                    None => return Ok(None),
                }
            }
        };
    }
    // Two keys may be called alike, as `a.p` and `b.p` are.
    let names = (0..aggregate.group_expr.len()).map(|at| format!("group {at}"));
    let names: Vec<String> = names.collect();
    let groups = aggregate.group_expr.iter().zip(&names);
    let groups = groups.map(|(group, name)| group.clone().alias(name)).collect();
    let whole = LogicalPlan::Aggregate(Aggregate::try_new(Arc::new(plan), groups, late)?);
    let groups = names.into_iter().map(|name| Expr::Column(Column::new_unqualified(name)));
    with_columns_of(&aggregate.schema, groups.chain(outputs), whole).map(Some)
}

/// Rows that are added up first.
struct JoinedRows<'a> {
    /// The plan that makes them: the input of the lowest node of `above`.
    rows: Arc<LogicalPlan>,
    /// Columns of them that are asked for further up, but for arguments of aggregates.
    keys: BTreeSet<Column>,
    /// What is between them and the aggregate, from there down.
    above: Vec<Above<'a>>,
}

/// Of the joins below a plan the last whose rows have few groups. `keys` and `arguments` are columns of the plan; the latter are those of the
/// join, too.
///
/// On the way down, keys become the columns that they are made of, and a join adds to them what it compares:
///
/// ```text
/// Aggregate                         keys q.n, a.p, b.p
/// Inner Join: a.p = q.p             of its left input: a.p, which is compared, too, and b.p
/// Inner Join: a.user_id = b.user_id the join whose rows are grouped by a.p, b.p
/// ```
fn joined_rows<'a>(
    plan: &'a LogicalPlan,
    mut keys: BTreeSet<Column>,
    arguments: &BTreeSet<Column>,
) -> Result<Option<JoinedRows<'a>>> {
    let (mut path, mut node) = (Vec::new(), plan);
    let mut found = None;
    loop {
        match node {
            LogicalPlan::Projection(projection) => {
                let Some(new_keys) = below(projection, &keys) else { break };
                // Arguments stay as they are written.
                if !arguments.iter().all(|column| is_passed_on(projection, column)) {
                    break;
                }
                keys = new_keys;
                path.push(Above::Projection(projection));
                node = &projection.input;
            }
            LogicalPlan::Join(join) if join.join_type == JoinType::Inner && !join.null_aware => {
                // A side that is a join itself multiplies rows, and one beside a single row is joined for nothing row by row. Only with all
                // arguments a side can be aggregated alone.
                let has_all = |side: &LogicalPlan| {
                    arguments.iter().all(|column| side.schema().has_column(column))
                };
                let (left, right) = (&join.left, &join.right);
                let is_cross = join.on.is_empty() && join.filter.is_none();
                let is_single = |side: &LogicalPlan| is_cross && side.max_rows() == Some(1);
                let is_left = match (has_all(left), has_all(right)) {
                    (true, _) if is_single(right) => true,
                    (_, true) if is_single(left) => false,
                    (true, _) if is_join(left) => true,
                    (_, true) if is_join(right) => false,
                    _ => break,
                };
                let side = if is_left { &join.left } else { &join.right };
                let mut needed: BTreeSet<Column> = keys.clone();
                for (left, right) in &join.on {
                    needed.extend(left.column_refs().into_iter().cloned());
                    needed.extend(right.column_refs().into_iter().cloned());
                }
                let mut compared = std::collections::HashSet::new();
                if let Some(filter) = &join.filter {
                    expr_to_columns(filter, &mut compared)?;
                }
                needed.extend(compared);
                needed.retain(|column| side.schema().has_column(column));
                keys = needed;
                path.push(Above::Join(join, is_left));
                node = side;
                // Without keys there is a group of no rows.
                if !keys.is_empty() && has_few_groups(node, &keys)? {
                    found = Some((path.len(), Arc::clone(side), keys.clone()));
                }
            }
            _ => break,
        }
    }
    let Some((steps, rows, keys)) = found else { return Ok(None) };
    path.truncate(steps);
    Ok(Some(JoinedRows { rows, keys, above: path }))
}

/// The call of an aggregate whose parts can be added up: each is a count, a sum, the least or the most of all rows, or of those that a
/// `FILTER` passes. Not with `DISTINCT` or an order, nor of an argument or a condition that may fail, as a quotient.
fn call_of(expr: &Expr) -> Option<&AggregateFunction> {
    match expr {
        Expr::Alias(alias) => call_of(&alias.expr),
        Expr::AggregateFunction(call) => {
            let params = &call.params;
            let is_plain =
                !params.distinct && params.order_by.is_empty() && params.null_treatment.is_none();
            let is_added_up = ["count", "sum", "min", "max"].contains(&call.func.name());
            // They are computed for rows, too, that have no match further up.
            let is_total = params.args.iter().chain(params.filter.as_deref()).all(is_total);
            (is_plain && is_added_up && is_total && !expr.is_volatile()).then_some(call)
        }
        _ => None,
    }
}

/// The columns that a projection makes some of its columns of: of `lower(a.p) AS p` and `p` it is `a.p`. Nothing where a column is none of
/// its own, or has another value each time.
fn below(projection: &Projection, columns: &BTreeSet<Column>) -> Option<BTreeSet<Column>> {
    let mut found = BTreeSet::new();
    for column in columns {
        let at = projection.schema.index_of_column(column).ok()?;
        let expr = projection.expr.get(at)?;
        if expr.is_volatile() {
            return None;
        }
        found.extend(expr.column_refs().into_iter().cloned());
    }
    Some(found)
}

/// Whether a column of a projection is the same one of its input.
fn is_passed_on(projection: &Projection, column: &Column) -> bool {
    let at = projection.schema.index_of_column(column).ok();
    let expr = at.and_then(|at| projection.expr.get(at));
    matches!(expr, Some(Expr::Column(inner)) if inner == column)
}

/// Whether rows come from a join, with other columns or fewer.
fn is_join(plan: &LogicalPlan) -> bool {
    match plan {
        LogicalPlan::Join(join) => join.join_type == JoinType::Inner,
        LogicalPlan::Projection(projection) => is_join(&projection.input),
        _ => false,
    }
}

/// Whether the value counts of keys have a product of [`GROUPS_MAX`] at most. False where the values of a key are not known.
///
/// Errors: damage of a segment.
fn has_few_groups(plan: &LogicalPlan, keys: &BTreeSet<Column>) -> Result<bool> {
    let mut groups = 1usize;
    for key in keys {
        let Some(values) = value_count(plan, key)? else { return Ok(false) };
        groups = groups.saturating_mul(values);
    }
    Ok(groups <= GROUPS_MAX)
}
