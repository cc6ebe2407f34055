//! About how many values a column of a plan has, as dictionaries below say.
//!
//! `SELECT e.string_props['plan'] FROM events e JOIN seats s ON …` has as many plans as the dictionaries of segments, however many rows the
//! join has.
//!
//! ```text
//! tenant_id                    2 tenants in one segment, 3 in another      4: the most of a segment, and one for null
//! string_props['endpoint']     900 values in one, 2,000 in another         2,901: dictionaries of more than 1,024 may differ, so all count
//! user_id, event_id, timestamp                                             nothing
//! ```
//!
//! `aggregate_below_joins` asks whether the groups of a join are few. Conditions and joins leave out rows and so values; the count stays an
//! estimate from above, unless segments have nothing in common.

use datafusion_common::{Column, Result};
use datafusion_expr::{LogicalPlan, expr::Expr};

use super::dictionary_columns::plain;
use crate::tables::Source;

/// About how many values a column of a plan has, one for null among them; nothing where that is not known.
///
/// The column is followed down to its scan, under the names that it has on the way; a computed one, as `lower(p)`, is not known.
///
/// Errors: damage of a segment.
pub fn value_count(plan: &LogicalPlan, column: &Column) -> Result<Option<usize>> {
    // A column of a projection or an aggregate is the column that its expression is.
    let of_expr = |input: &LogicalPlan, expr: Option<&Expr>| match expr.and_then(plain) {
        Some(column) => value_count(input, column),
        None => Ok(None),
    };
    match plan {
        LogicalPlan::TableScan(scan) => match scan.source.downcast_ref::<Source>() {
            Some(Source(table)) => table.value_count(&column.name),
            None => Ok(None),
        },
        LogicalPlan::SubqueryAlias(named) => {
            let Ok(at) = named.schema.index_of_column(column) else { return Ok(None) };
            value_count(&named.input, &Column::from(named.input.schema().qualified_field(at)))
        }
        LogicalPlan::Projection(projection) => {
            let at = projection.schema.index_of_column(column).ok();
            of_expr(&projection.input, at.and_then(|at| projection.expr.get(at)))
        }
        LogicalPlan::Aggregate(aggregate) => {
            let at = aggregate.schema.index_of_column(column).ok();
            of_expr(&aggregate.input, at.and_then(|at| aggregate.group_expr.get(at)))
        }
        LogicalPlan::Join(join) => {
            let is_left = join.left.schema().has_column(column);
            value_count(if is_left { &join.left } else { &join.right }, column)
        }
        LogicalPlan::Filter(filter) => value_count(&filter.input, column),
        LogicalPlan::Sort(sort) => value_count(&sort.input, column),
        LogicalPlan::Limit(limit) => value_count(&limit.input, column),
        LogicalPlan::Distinct(_) | LogicalPlan::Window(_) => match &*plan.inputs() {
            [input] if input.schema().has_column(column) => value_count(input, column),
            _ => Ok(None),
        },
        _ => Ok(None),
    }
}
