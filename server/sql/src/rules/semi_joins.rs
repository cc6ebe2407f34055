//! Optimizer rule: whether a group is in the answer is asked of groups and not of their rows.
//!
//! ```text
//! SELECT tenant_id, count(*) FROM events t
//! WHERE EXISTS (SELECT 1 FROM events x WHERE x.tenant_id = t.tenant_id AND x.event_name = 'export')
//! GROUP BY tenant_id
//! ```
//!
//! joins rows of `t` with rows of `x`. As all rows of a tenant have a match or none has, rows of `t` are grouped first; and of `x` one row
//! of a tenant is as good as all. Both are then groups of a table, which are added up while it is read.
//!
//! ```text
//! Aggregate: groupBy=[[t.tenant_id]], aggr=[[count(Int64(1))]]
//!   LeftSemi Join: t.tenant_id = __correlated_sq_1.tenant_id
//!     SubqueryAlias: t
//!       TableScan: events projection=[tenant_id]
//!     SubqueryAlias: __correlated_sq_1
//!       SubqueryAlias: x
//!         TableScan: events projection=[tenant_id], full_filters=[events.event_name = Utf8View("export")]
//!
//! LeftSemi Join: t.tenant_id = __correlated_sq_1.tenant_id
//!   Aggregate: groupBy=[[t.tenant_id]], aggr=[[count(Int64(1))]]
//!     SubqueryAlias: t
//!       TableScan: events projection=[tenant_id]
//!   Projection: group 0 AS tenant_id
//!     Aggregate: groupBy=[[tenant_id AS group 0]], aggr=[[]]
//!       TableScan: groups 7fffd80372a0
//! ```
//!
//! Without groups above, the second half alone is done: `SELECT event_id FROM events t WHERE EXISTS (… x.user_id = t.user_id …)` looks for
//! users among the groups of `x`. Nothing is moved where the join compares something that is no key of the groups, as `x.timestamp >
//! t.timestamp`: then some rows of a group have a match and others have none.

use std::sync::Arc;

use datafusion_common::{Column, JoinType, Result};
use datafusion_expr::{Aggregate, Expr, Join, LogicalPlan, utils::expr_to_columns};
use datafusion_optimizer::ApplyOrder;

use super::{
    aggregate_pushdown::added_up,
    dictionary_columns::{plain, with_inputs},
    rewrite::NodeRule,
};

/// Joins that only leave out rows, of groups. Of several joins below a group, the next one is looked at when the first has been moved.
pub const SEMI_JOINS_OF_GROUPS: NodeRule = NodeRule {
    name: "semi_joins_of_groups",
    order: ApplyOrder::TopDown,
    rewrite: |plan| match plan {
        LogicalPlan::Aggregate(aggregate) => above_groups(aggregate),
        LogicalPlan::Join(join) => by_groups(join),
        _ => Ok(None),
    },
};

/// Groups of rows that a join by their keys leaves, as the groups that the join leaves; where groups are added up early.
///
/// Errors: damage of a segment.
fn above_groups(aggregate: &Aggregate) -> Result<Option<LogicalPlan>> {
    let LogicalPlan::Join(join) = &*aggregate.input else { return Ok(None) };
    let leaves_out = matches!(join.join_type, JoinType::LeftSemi | JoinType::LeftAnti);
    if !leaves_out || join.filter.is_some() {
        return Ok(None);
    }
    // The key as a column of the groups, by the index of the expression that it is there.
    let key_of_group = |(left, right): &(Expr, Expr)| {
        let at = aggregate.group_expr.iter().position(|group| plain(group) == plain(left))?;
        plain(left)?;
        let key = Column::from(aggregate.schema.qualified_field(at));
        Some((Expr::Column(key), right.clone()))
    };
    let on = join.on.iter().map(key_of_group).collect::<Option<Vec<_>>>();
    let Some(on) = on.filter(|on| !on.is_empty()) else { return Ok(None) };
    let (groups, exprs) = (aggregate.group_expr.clone(), aggregate.aggr_expr.clone());
    let groups = Aggregate::try_new(Arc::clone(&join.left), groups, exprs)?;
    // Several joins are moved one after the other.
    let is_moved_on = above_groups(&groups)?.is_some();
    if !is_moved_on && added_up(&groups)?.is_none() {
        return Ok(None);
    }
    let groups = Arc::new(LogicalPlan::Aggregate(groups));
    let moved = with_inputs(join, groups, Arc::clone(&join.right), on);
    // The join itself is not looked at again before keys are numbers.
    Ok(match &moved {
        Some(LogicalPlan::Join(join)) => by_groups(join)?.or(moved),
        _ => moved,
    })
}

/// A join that looks for a match among the groups of its keys. Nothing where rows of its right side are groups already, where a key is
/// computed, or where its filter looks at another column of that side.
///
/// Errors: damage of a segment.
fn by_groups(join: &Join) -> Result<Option<LogicalPlan>> {
    let leaves_out =
        matches!(join.join_type, JoinType::LeftSemi | JoinType::LeftAnti | JoinType::LeftMark);
    let is_grouped = matches!(&*join.right, LogicalPlan::Aggregate(_));
    if !leaves_out || is_grouped {
        return Ok(None);
    }
    let mut keys: Vec<Expr> = Vec::new();
    for (_, right) in &join.on {
        let Some(key) = plain(right) else { return Ok(None) };
        let key = Expr::Column(key.clone());
        if !keys.contains(&key) {
            keys.push(key);
        }
    }
    let mut compared = std::collections::HashSet::new();
    if let Some(filter) = &join.filter {
        expr_to_columns(filter, &mut compared)?;
    }
    let needs_more = compared.into_iter().any(|column| {
        join.right.schema().has_column(&column) && !keys.contains(&Expr::Column(column))
    });
    if keys.is_empty() || needs_more {
        return Ok(None);
    }
    let groups = Aggregate::try_new(Arc::clone(&join.right), keys, Vec::new())?;
    let Some(groups) = added_up(&groups)? else { return Ok(None) };
    Ok(with_inputs(join, Arc::clone(&join.left), Arc::new(groups), join.on.clone()))
}
