//! A rule of the analyzer: `DISTINCT ON` in an order leaves the first row of each window.
//!
//! ```text
//! SELECT DISTINCT ON (user_id) user_id, timestamp, event_name FROM events ORDER BY user_id, timestamp DESC
//! ```
//!
//! The library takes the first value of each column in this order, column by column. Here rows are numbered in each partition and those
//! with another number than 1 are left out, which the scan knows to read few rows for (`physical/first_rows.rs`).
//!
//! As if it had been written so, where `n` is the name of the window function:
//!
//! ```text
//! SELECT user_id, timestamp, event_name
//! FROM (SELECT *, row_number() OVER (PARTITION BY user_id ORDER BY timestamp DESC) AS n FROM events)
//! WHERE n = 1 ORDER BY user_id
//! ```
//!
//! The rest of an order behind the keys is that of the window: `ORDER BY user_id, timestamp DESC, event_id` numbers by time and id. These stay with the
//! library:
//!
//! ```text
//! DISTINCT ON (user_id) … ORDER BY user_id                             no order says which row is first
//! DISTINCT ON (user_id) … ORDER BY user_id, numeric_props['ms']        a scan leaves out rows by time alone
//! DISTINCT ON (upper(event_name)) … ORDER BY …, timestamp              the key is no text of the table
//! DISTINCT ON (t) … FROM (SELECT …, count(*) … GROUP BY …) ORDER BY …  groups, and no rows of a table
//! ```

use std::sync::Arc;

use datafusion_common::{
    Column, DFSchema, Result,
    config::ConfigOptions,
    tree_node::{Transformed, TreeNodeRecursion},
};
use datafusion_expr::{
    Distinct, DistinctOn, Expr, ExprFunctionExt as _, ExprSchemable as _, LogicalPlan,
    LogicalPlanBuilder, SubqueryAlias, expr_rewriter::normalize_cols, lit,
};
use datafusion_functions_window::row_number::row_number;
use datafusion_optimizer::AnalyzerRule;

use crate::{rules::is_of_rows, tables::Kind};

/// The first rows of windows, where there is an order within them.
#[derive(Debug)]
pub struct DistinctOnAsWindow;

impl AnalyzerRule for DistinctOnAsWindow {
    fn name(&self) -> &str {
        "distinct_on_as_window"
    }

    fn analyze(&self, plan: LogicalPlan, _: &ConfigOptions) -> Result<LogicalPlan> {
        let rewritten = plan.transform_down_with_subqueries(|plan| {
            let new = match &plan {
                // Rows of a table that is named in `FROM` need no order.
                LogicalPlan::SubqueryAlias(SubqueryAlias { input, alias, .. }) => {
                    match first_rows(input, false)? {
                        Some(input) => Some(LogicalPlan::SubqueryAlias(SubqueryAlias::try_new(
                            Arc::new(input),
                            alias.clone(),
                        )?)),
                        None => None,
                    }
                }
                plan => first_rows(plan, true)?,
            };
            Ok(match new {
                Some(new) => Transformed::new(new, true, TreeNodeRecursion::Continue),
                None => Transformed::no(plan),
            })
        });
        rewritten.map(|plan| plan.data)
    }
}

/// A text that the table has a number for: a column, or a property.
/// By these numbers a scan tells partitions apart: `user_id`, `string_props['plan']`, but not `upper(event_name)`.
fn is_text(expr: &Expr, schema: &DFSchema) -> bool {
    let is_of_table = match expr {
        Expr::Column(_) => true,
        Expr::ScalarFunction(call) => {
            let is_column = matches!(call.args.first(), Some(Expr::Column(_)));
            call.func.name() == "get_field" && is_column
        }
        _ => false,
    };
    is_of_table && expr.get_type(schema).is_ok_and(|kind| kind.is_string())
}

/// Whether an expression is the column `timestamp`.
fn is_time(expr: &Expr) -> bool {
    matches!(expr, Expr::Column(column) if column.name == Kind::Events.time_column())
}

/// What `DISTINCT ON` in an order becomes.
///
/// With `keeps_order` the rows are sorted by the keys afterwards. The rows of a subquery in FROM have no order by SQL, and are not sorted.
///
/// Errors: none that is expected; what the library says.
fn first_rows(plan: &LogicalPlan, keeps_order: bool) -> Result<Option<LogicalPlan>> {
    let LogicalPlan::Distinct(Distinct::On(distinct)) = plan else { return Ok(None) };
    let DistinctOn { select_expr, on_expr, sort_expr, input, schema } = distinct;
    // An order begins with what is distinct.
    let sort_expr = sort_expr.as_deref().unwrap_or_default();
    let (by_key, within) = sort_expr.split_at(on_expr.len().min(sort_expr.len()));
    let keys = normalize_cols(on_expr.iter().cloned(), input)?;
    if !within.first().is_some_and(|first| is_time(&first.expr))
        || !keys.iter().all(|key| is_text(key, input.schema()))
        // Of groups and joins no scan could leave any out, and to sort all of them takes longer than to compare each with the first.
        || !is_of_rows(input)
    {
        return Ok(None);
    }
    let number = row_number().partition_by(keys).order_by(within.to_vec()).build()?;
    let is_first = Expr::Column(Column::from_name(number.schema_name().to_string())).eq(lit(1_u64));
    let columns = normalize_cols(select_expr.iter().cloned(), input)?;
    // Each column has the name that it had: readers above look for it.
    let columns = columns.into_iter().zip(schema.iter()).map(|(column, (qualifier, field))| {
        column.alias_qualified(qualifier.cloned(), field.name())
    });
    let rows = LogicalPlanBuilder::from(input.as_ref().clone());
    let mut first = rows.window(vec![number])?.filter(is_first)?;
    if keeps_order {
        // Of each key there is one row.
        first = first.sort(by_key.to_vec())?;
    }
    first.project(columns)?.build().map(Some)
}
