//! Optimizer rule: values that a join key can have on one side are a condition on the other side.
//!
//! `WITH begun AS (SELECT tenant_id, user_id, min(timestamp) AS since FROM events WHERE tenant_id = 'acme' GROUP BY 1, 2) … FROM events e
//! JOIN begun b ON b.tenant_id = e.tenant_id AND b.user_id = e.user_id` reads `acme` twice, and no other tenant. DataFusion propagates conditions
//! on a join's own columns, not those within a subquery.
//!
//! ```text
//! Inner Join: e.tenant_id = b.tenant_id, e.user_id = b.user_id
//!   SubqueryAlias: e
//!     TableScan: events
//!   SubqueryAlias: b
//!     Aggregate: groupBy=[[events.tenant_id, events.user_id]], aggr=[[min(events.timestamp)]]
//!       Filter: events.tenant_id = Utf8View("acme")
//!
//! Inner Join: e.tenant_id = b.tenant_id, e.user_id = b.user_id
//!   Filter: e.tenant_id IN ([Utf8View("acme")])
//!     SubqueryAlias: e
//!       TableScan: events
//!   SubqueryAlias: b
//!     …
//! ```
//!
//! To which side values are passed, by the kind of the join:
//!
//! ```text
//! INNER JOIN, EXISTS                     to both: a row without a partner is in no answer
//! LEFT JOIN, NOT EXISTS                  to the right alone: rows of the left are answered without a partner, too
//! FULL JOIN, NOT IN                      to neither
//! ```

use std::sync::Arc;

use datafusion_common::{Column, JoinType, Result, ScalarValue};
use datafusion_expr::{Expr, Filter, Join, LogicalPlan, lit};
use datafusion_optimizer::ApplyOrder;

use super::{
    dictionary_columns::{plain, with_inputs},
    known_values::known_values,
    rewrite::NodeRule,
};

/// Values that are passed on, at most: a longer list is no gain where it is looked through for each row.
const VALUES_MAX: usize = 64;

/// Passes values of keys on to the other side of a join.
pub const PROPAGATE_VALUES: NodeRule = NodeRule {
    name: "pass_values_on",
    order: ApplyOrder::BottomUp,
    rewrite: |plan| match plan {
        LogicalPlan::Join(join) => passed_on(join),
        _ => Ok(None),
    },
};

/// The join whose inputs have conditions on their keys; nothing where neither side learns anything.
fn passed_on(join: &Join) -> Result<Option<LogicalPlan>> {
    // A side whose rows are in the answer without one of the other side has them whatever their keys are.
    let (to_left, to_right) = match join.join_type {
        JoinType::Inner | JoinType::LeftSemi | JoinType::RightSemi => (true, true),
        JoinType::Left | JoinType::LeftAnti | JoinType::LeftMark => (false, true),
        JoinType::Right | JoinType::RightAnti | JoinType::RightMark => (true, false),
        JoinType::Full => (false, false),
    };
    // There it matters whether the other side has a null at all.
    if join.null_aware {
        return Ok(None);
    }
    let (mut left, mut right) = (Arc::clone(&join.left), Arc::clone(&join.right));
    let mut is_passed = false;
    for (left_key, right_key) in &join.on {
        let (Some(of_left), Some(of_right)) = (plain(left_key), plain(right_key)) else { continue };
        let (values_left, values_right) =
            (known_values(&left, of_left), known_values(&right, of_right));
        if to_right && is_news(values_left.as_deref(), values_right.as_deref()) {
            right = only(right, of_right, values_left.unwrap_or_default())?;
            is_passed = true;
        } else if to_left && is_news(values_right.as_deref(), values_left.as_deref()) {
            left = only(left, of_left, values_right.unwrap_or_default())?;
            is_passed = true;
        }
    }
    Ok(is_passed.then(|| with_inputs(join, left, right, join.on.clone())).flatten())
}

/// Whether values of one side leave out some of the other one: `acme` does where nothing is known there, or `acme` and `bolt`. Lists of equal
/// length are not passed on, so the rule ends when both sides have the same.
fn is_news(known: Option<&[ScalarValue]>, there: Option<&[ScalarValue]>) -> bool {
    known.is_some_and(|known| {
        known.len() <= VALUES_MAX && there.is_none_or(|there| known.len() < there.len())
    })
}

/// A plan with those of its rows whose column has one of these values.
fn only(
    plan: Arc<LogicalPlan>,
    column: &Column,
    values: Vec<ScalarValue>,
) -> Result<Arc<LogicalPlan>> {
    let column = Expr::Column(column.clone());
    let condition = column.in_list(values.into_iter().map(lit).collect(), false);
    Ok(Arc::new(LogicalPlan::Filter(Filter::try_new(condition, plan)?)))
}
