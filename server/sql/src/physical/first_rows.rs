//! A rule for operators: a scan below a window of which the first rows are asked for leaves out rows that cannot be among them.
//!
//! ```text
//! FilterExec: rn = 1
//!   WindowsExec: row_number() PARTITION BY [number of tenant_id] ORDER BY [timestamp, event_id]
//!     RepartitionExec
//!       RowsExec                                   + the 1 earliest by number of tenant_id
//! ```
//!
//! The window and the filter stay: what the scan leaves out they would have left out, and what it lets pass they number.
//!
//! Over `FROM (SELECT tenant_id, user_id, string_props['plan'] AS p, … AS r FROM events) x WHERE …`:
//!
//! ```text
//! row_number() OVER (PARTITION BY tenant_id ORDER BY timestamp, event_id)       r = 1                 the 1 earliest of a tenant
//! rank() OVER (PARTITION BY tenant_id, user_id ORDER BY timestamp DESC)         r < 4                 the 3 latest of a user
//! row_number() OVER (PARTITION BY tenant_id ORDER BY timestamp)                 r = 1 AND p = 'pro'   the 1 earliest of a tenant
//! row_number() OVER (PARTITION BY tenant_id ORDER BY timestamp)                 r > 1                 all: any row may be asked for
//! row_number() OVER (PARTITION BY tenant_id ORDER BY timestamp)                 r = 1 OR p = 'pro'    all
//! dense_rank() OVER (PARTITION BY tenant_id ORDER BY timestamp)                 r = 1                 all
//! row_number() OVER (ORDER BY timestamp)                                        r = 1                 all: there is no partition
//! row_number() OVER (PARTITION BY tenant_id ORDER BY numeric_props['ms'])       r = 1                 all: not by time
//! row_number() OVER w AS r, lead(user_id) OVER w                                r = 1                 all: the next row is shown, too
//! ```

use std::sync::Arc;

use datafusion_common::{Result, ScalarValue, config::ConfigOptions, tree_node::Transformed};
use datafusion_expr::Operator;
use datafusion_physical_expr::{
    expressions::{BinaryExpr, Column, Literal},
    utils::split_conjunction,
};
use datafusion_physical_plan::{
    ExecutionPlan, PhysicalExpr,
    coalesce_partitions::CoalescePartitionsExec,
    execution_plan::replace_children_if_necessary,
    filter::FilterExec,
    projection::ProjectionExec,
    repartition::RepartitionExec,
    sorts::{sort::SortExec, sort_preserving_merge::SortPreservingMergeExec},
};

use super::{
    barrier::BarrierExec,
    rewrite::PlanRule,
    windows::{Kind, WindowsExec},
};
use crate::tables::{FIRST_MAX, RowsExec};

/// Has scans leave out rows behind the first of their partitions.
pub const READ_FIRST_ROWS: PlanRule =
    PlanRule { name: "read_first_rows", rewrite: read_first_rows };

/// The plan of a filter whose scan knows what it asks for; other operators stay as they are. Of several conditions the first that asks for
/// small numbers is taken.
fn read_first_rows(
    plan: Arc<dyn ExecutionPlan>,
    _: &ConfigOptions,
) -> Result<Transformed<Arc<dyn ExecutionPlan>>> {
    let Some(filter) = plan.downcast_ref::<FilterExec>() else { return Ok(Transformed::no(plan)) };
    let asked = split_conjunction(filter.predicate()).into_iter().find_map(asked_for);
    let input = match asked {
        Some((column, count)) => below_filter(filter.input(), column, count)?,
        None => None,
    };
    Ok(match input {
        Some(input) => Transformed::yes(replace_children_if_necessary(plan, vec![input])?),
        None => Transformed::no(plan),
    })
}

/// The column of which a condition asks for so many of the smallest numbers: `rn = 2`, `rn <= 2`, `rn < 3`. All three ask for two.
/// Nothing where it asks for none, or for more than [`FIRST_MAX`].
fn asked_for(condition: &Arc<dyn PhysicalExpr>) -> Option<(usize, usize)> {
    let binary = condition.downcast_ref::<BinaryExpr>()?;
    let column = binary.left().downcast_ref::<Column>()?;
    let number = binary.right().downcast_ref::<Literal>()?;
    let number = match *number.value() {
        ScalarValue::UInt64(Some(number)) => usize::try_from(number).ok()?,
        ScalarValue::Int64(Some(number)) => usize::try_from(number).ok()?,
        _ => return None,
    };
    let count = match binary.op() {
        Operator::Eq | Operator::LtEq => number,
        Operator::Lt => number.checked_sub(1)?,
        _ => return None,
    };
    (1..=FIRST_MAX).contains(&count).then_some((column.index(), count))
}

/// The plan below a filter on a column, if that numbers the rows of partitions. `column` is its index in `plan`: below a projection it is the
/// index of the column that the projection takes.
fn below_filter(
    plan: &Arc<dyn ExecutionPlan>,
    column: usize,
    count: usize,
) -> Result<Option<Arc<dyn ExecutionPlan>>> {
    if let (Some(windows), [input]) = (plan.downcast_ref::<WindowsExec>(), &*plan.children()) {
        // Columns of functions stand behind those of the input.
        if column < input.schema().fields().len() {
            return Ok(None);
        }
        let Some(request) = FirstRowsRequest::of(windows, count) else { return Ok(None) };
        let input = request.below(input)?;
        return input
            .map(|input| replace_children_if_necessary(Arc::clone(plan), vec![input]))
            .transpose();
    }
    let Some((input, columns)) = through(plan, &[column]) else { return Ok(None) };
    let [column] = *columns else { return Ok(None) };
    let input = below_filter(&input, column, count)?;
    input.map(|input| replace_children_if_necessary(Arc::clone(plan), vec![input])).transpose()
}

/// What is looked for, by indexes of columns.
#[derive(Clone)]
struct FirstRowsRequest {
    /// The columns of `PARTITION BY`, one or two.
    partition: Vec<usize>,
    /// The first column of `ORDER BY`.
    time: usize,
    /// Whether the latest rows are asked for.
    descending: bool,
    /// How many rows of a partition, 1 to 16.
    count: usize,
}

impl FirstRowsRequest {
    /// Of windows that number rows, and only that: others would miss what is left out.
    fn of(windows: &WindowsExec, count: usize) -> Option<Self> {
        let index = |expr: &Arc<dyn PhysicalExpr>| Some(expr.downcast_ref::<Column>()?.index());
        if !windows.kinds().all(|kind| matches!(kind, Kind::RowNumber | Kind::Rank)) {
            return None;
        }
        let partition = windows.partition_by().iter().map(index).collect::<Option<Vec<_>>>()?;
        let order = windows.order_by().first()?;
        let (time, descending) = (index(&order.expr)?, order.options.descending);
        ((1..=2).contains(&partition.len())).then_some(Self { partition, time, descending, count })
    }

    /// A plan whose scan knows.
    fn below(self, plan: &Arc<dyn ExecutionPlan>) -> Result<Option<Arc<dyn ExecutionPlan>>> {
        if let Some(rows) = plan.downcast_ref::<RowsExec>() {
            let Self { partition, time, descending, count } = &self;
            let rows = rows.with_first(partition, *time, *descending, *count);
            return Ok(rows.map(|rows| Arc::new(rows) as Arc<dyn ExecutionPlan>));
        }
        let columns: Vec<usize> = self.partition.iter().copied().chain([self.time]).collect();
        let Some((input, mut columns)) = through(plan, &columns) else { return Ok(None) };
        let Some(time) = columns.pop() else { return Ok(None) };
        let below = Self { partition: columns, time, ..self }.below(&input)?;
        below.map(|input| replace_children_if_necessary(Arc::clone(plan), vec![input])).transpose()
    }
}

/// The input of an operator that has the same rows, and where these columns stand there. Nothing for one that leaves out rows, as a sort with
/// a limit does, and where a projection computes one of the columns.
fn through(
    plan: &Arc<dyn ExecutionPlan>,
    columns: &[usize],
) -> Option<(Arc<dyn ExecutionPlan>, Vec<usize>)> {
    let [input] = &*plan.children() else { return None };
    let same = || Some((Arc::clone(input), columns.to_vec()));
    if let Some(projection) = plan.downcast_ref::<ProjectionExec>() {
        let index = |at: &usize| {
            let column = projection.expr().get(*at)?.expr.downcast_ref::<Column>()?;
            Some(column.index())
        };
        return Some((Arc::clone(input), columns.iter().map(index).collect::<Option<_>>()?));
    }
    let has_all = plan.downcast_ref::<RepartitionExec>().is_some()
        || plan.downcast_ref::<CoalescePartitionsExec>().is_some()
        || plan.downcast_ref::<BarrierExec>().is_some()
        || plan.downcast_ref::<SortExec>().is_some_and(|sort| sort.fetch().is_none())
        || plan
            .downcast_ref::<SortPreservingMergeExec>()
            .is_some_and(|merge| merge.fetch().is_none());
    if has_all { same() } else { None }
}
