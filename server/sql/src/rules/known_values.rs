//! The values that a column of a plan can have, derived from conditions below.
//!
//! Of `SELECT tenant_id, min(timestamp) FROM events WHERE tenant_id IN ('acme', 'bolt') GROUP BY 1` it is known that `tenant_id` is
//! `acme` or `bolt`.
//!
//! ```text
//! tenant_id = 'acme'                                 acme
//! tenant_id = 'acme' OR tenant_id = 'bolt'           acme, bolt
//! tenant_id IN ('acme', 'bolt') AND event_name = 'x' acme, bolt      one part of a conjunction is enough
//! tenant_id IN ('acme', NULL)                        acme            no comparison with null is true
//! tenant_id <> 'acme', tenant_id LIKE 'a%'           nothing
//! tenant_id = 'acme' OR event_name = 'x'             nothing         either side of OR has to say so
//! ```
//!
//! Two rules ask: `propagate_values` passes the values on to the other side of a join, and `dictionary_joins` drops a key that is one and
//! the same on both sides.

use datafusion_common::{Column, JoinType, ScalarValue};
use datafusion_expr::{
    BinaryExpr, Expr, LogicalPlan, Operator, expr::InList, utils::split_conjunction,
};

use super::dictionary_columns::plain;
use crate::tables::Source;

/// The values of a column in all rows of a plan; never null. Nothing where no condition says so.
///
/// They are an upper bound: not every value has to occur. An empty list, of `x = NULL`, says that the plan has no rows.
pub fn known_values(plan: &LogicalPlan, column: &Column) -> Option<Vec<ScalarValue>> {
    match plan {
        // A scan has one table, whose columns may be named without it.
        LogicalPlan::TableScan(scan) => {
            let here = least(&scan.filters, &|known: &Column| known.name == column.name);
            let table = scan.source.downcast_ref::<Source>();
            fewer(here, table.and_then(|Source(table)| table.known_values(&column.name)))
        }
        LogicalPlan::Filter(filter) => {
            let here = least(std::slice::from_ref(&filter.predicate), &|known| known == column);
            fewer(here, known_values(&filter.input, column))
        }
        LogicalPlan::SubqueryAlias(named) => {
            let at = named.schema.index_of_column(column).ok()?;
            known_values(&named.input, &Column::from(named.input.schema().qualified_field(at)))
        }
        LogicalPlan::Projection(projection) => {
            let at = projection.schema.index_of_column(column).ok()?;
            known_values(&projection.input, plain(projection.expr.get(at)?)?)
        }
        LogicalPlan::Aggregate(aggregate) => {
            let at = aggregate.schema.index_of_column(column).ok()?;
            known_values(&aggregate.input, plain(aggregate.group_expr.get(at)?)?)
        }
        // These add columns or leave out rows.
        LogicalPlan::Window(window) if window.input.schema().has_column(column) => {
            known_values(&window.input, column)
        }
        LogicalPlan::Sort(sort) => known_values(&sort.input, column),
        LogicalPlan::Limit(limit) => known_values(&limit.input, column),
        LogicalPlan::Join(join) => {
            let is_left = join.left.schema().has_column(column);
            // Where a row may be without one of the other side, its columns are null.
            let has_all = match join.join_type {
                JoinType::Inner => true,
                JoinType::Left | JoinType::LeftSemi | JoinType::LeftAnti => is_left,
                JoinType::Right | JoinType::RightSemi | JoinType::RightAnti => !is_left,
                _ => false,
            };
            let side = if is_left { &join.left } else { &join.right };
            has_all.then(|| known_values(side, column)).flatten()
        }
        _ => None,
    }
}

/// A constant, cast or not: plans of shared subqueries are looked at before the library computes what is constant.
fn constant(expr: &Expr) -> Option<ScalarValue> {
    match expr {
        Expr::Literal(value, _) => Some(value.clone()),
        Expr::Cast(cast) => constant(&cast.expr)?.cast_to(cast.field.data_type()).ok(),
        _ => None,
    }
}

/// Values, each once; nothing where any value is possible.
type KnownTexts = Option<Vec<ScalarValue>>;

/// The shorter of two lists: both hold.
fn fewer(one: KnownTexts, other: KnownTexts) -> KnownTexts {
    one.into_iter().chain(other).min_by_key(Vec::len)
}

/// The fewest values that one of these conditions leaves.
fn least(conditions: &[Expr], is_it: &dyn Fn(&Column) -> bool) -> KnownTexts {
    let parts = conditions.iter().flat_map(split_conjunction);
    parts.filter_map(|part| values_where(part, is_it)).min_by_key(Vec::len)
}

/// What a column can be where a condition holds. `is_it` tells the column: a scan's conditions may name it without its table.
fn values_where(condition: &Expr, is_it: &dyn Fn(&Column) -> bool) -> KnownTexts {
    let values = match condition {
        Expr::BinaryExpr(BinaryExpr { left, op: Operator::Or, right }) => {
            let mut values = values_where(left, is_it)?;
            values.extend(values_where(right, is_it)?);
            values
        }
        Expr::BinaryExpr(BinaryExpr { left, op: Operator::Eq, right }) => match (&**left, &**right)
        {
            (Expr::Column(known), value) | (value, Expr::Column(known)) if is_it(known) => {
                vec![constant(value)?]
            }
            _ => return None,
        },
        Expr::InList(InList { expr, list, negated: false }) => match &**expr {
            Expr::Column(known) if is_it(known) => {
                list.iter().map(constant).collect::<Option<Vec<_>>>()?
            }
            _ => return None,
        },
        _ => return None,
    };
    let mut once: Vec<ScalarValue> = Vec::with_capacity(values.len());
    for value in values {
        if !value.is_null() && !once.contains(&value) {
            once.push(value);
        }
    }
    Some(once)
}
