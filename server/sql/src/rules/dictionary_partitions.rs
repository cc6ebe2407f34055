//! Optimizer rule: window functions partition by dictionary codes.
//!
//! `lag(timestamp) OVER (PARTITION BY tenant_id, user_id ORDER BY timestamp)` sorts its rows by tenant and user first, though any
//! order of partitions will do: codes are sorted several times as fast as texts.
//!
//! The plan before and after; `lag(…)` stands for the whole name of the column, which is the same before and after:
//!
//! ```text
//! WindowAggr: windowExpr=[[lag(events.timestamp) PARTITION BY [events.tenant_id, events.user_id] ORDER BY [events.timestamp ASC NULLS LAST] …]]
//!   TableScan: events projection=[tenant_id, timestamp, user_id]
//!
//! Projection: events.tenant_id, events.timestamp, events.user_id, lag(… PARTITION BY [events.number of tenant_id, …] …) AS lag(…)
//!   WindowAggr: windowExpr=[[lag(events.timestamp) PARTITION BY [events.number of tenant_id, events.number of user_id] ORDER BY …]]
//!     TableScan: events projection=[tenant_id, timestamp, user_id, number of tenant_id, number of user_id]
//! ```
//!
//! `ORDER BY` stays by texts: numbers do not rise as texts do. Partitions by `event_id` or by a computed text are
//! numbered when the window is computed (`physical/windows/partition_numbers.rs`).

use std::sync::Arc;

use datafusion_common::{Column, Result};
use datafusion_expr::{Expr, LogicalPlan, Projection, Window};
use datafusion_optimizer::ApplyOrder;

use super::{
    dictionary_columns::{NumbersOf, is_text, number_each, plain},
    rewrite::NodeRule,
};

/// Replaces texts by their numbers in `PARTITION BY`.
pub const DICTIONARY_PARTITIONS: NodeRule = NodeRule {
    name: "partition_by_numbers",
    order: ApplyOrder::BottomUp,
    rewrite: |plan| match plan {
        LogicalPlan::Window(window) => rewritten(window),
        _ => Ok(None),
    },
};

/// The window over partitions by numbers; nothing where none of its keys has numbers.
fn rewritten(window: &Window) -> Result<Option<LogicalPlan>> {
    let keys = window.window_expr.iter().flat_map(partition_of).filter_map(plain);
    let texts = keys.filter(|column| is_text(window.input.schema(), column));
    let (input, numbers) = number_each(&window.input, texts)?;
    if numbers.is_empty() {
        return Ok(None);
    }
    let by_numbers = |expr: &Expr| with_partition(expr.clone(), &numbers);
    let functions = window.window_expr.iter().map(by_numbers).collect();
    // Where the library refuses it, as with two columns of one name, the window stays.
    let Ok(new) = Window::try_new(functions, Arc::clone(&input)) else { return Ok(None) };
    // The columns that there were, under their names.
    let own = window.input.schema().iter().map(|field| Expr::Column(Column::from(field)));
    let made = new.schema.columns().into_iter().skip(input.schema().fields().len());
    let names = window.schema.iter().skip(window.input.schema().fields().len());
    let made = made.zip(names).map(|(column, (relation, field))| {
        Expr::Column(column).alias_qualified(relation.cloned(), field.name())
    });
    let columns = own.chain(made).collect();
    let plan = Projection::try_new(columns, Arc::new(LogicalPlan::Window(new)));
    Ok(plan.ok().map(LogicalPlan::Projection))
}

/// The expressions of `PARTITION BY`; none of an expression that is no window function.
fn partition_of(expr: &Expr) -> &[Expr] {
    match expr {
        Expr::Alias(alias) => partition_of(&alias.expr),
        Expr::WindowFunction(call) => &call.params.partition_by,
        _ => &[],
    }
}

/// A window function whose partition keys are numbers where they have such; others stay: `PARTITION BY [number of tenant_id, event_id]`.
fn with_partition(expr: Expr, numbers: &NumbersOf<'_>) -> Expr {
    match expr {
        Expr::Alias(mut alias) => {
            alias.expr = Box::new(with_partition(*alias.expr, numbers));
            Expr::Alias(alias)
        }
        Expr::WindowFunction(mut call) => {
            for key in &mut call.params.partition_by {
                if let Some((number, _)) = plain(key).and_then(|column| numbers.get(column)) {
                    *key = Expr::Column(number.clone());
                }
            }
            Expr::WindowFunction(call)
        }
        other => other,
    }
}
