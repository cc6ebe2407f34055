//! About how many values a column of a plan has, as dictionaries below say.
//!
//! `SELECT e.string_props['plan'] FROM events e JOIN seats s ON …` has as many plans as the dictionaries of segments, however many rows the
//! join has.

use datafusion_common::{Column, Result};
use datafusion_expr::{LogicalPlan, expr::Expr};

use super::dictionary_columns::plain;
use crate::tables::Source;

/// About how many values a column of a plan has, one for null among them; nothing where that is not known.
///
/// Errors: damage of a segment.
pub fn value_count(plan: &LogicalPlan, column: &Column) -> Result<Option<usize>> {
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
