//! A rule for operators: filters do not go through columns of the same name.
//!
//! `FROM events a RIGHT JOIN events b … WHERE length(a.user_id) > 1` has two columns `user_id` above the join. The library pushes
//! a filter through a projection by the names of columns, and would ask the other one. Above such a projection stands an
//! operator that hands rows on and lets no filter through, also none that another operator learns while it runs.
//!
//! ```text
//! SELECT a.event_id, b.event_id FROM events a RIGHT JOIN events b ON a.event_id = b.event_id WHERE length(a.user_id) > 1
//!
//! BarrierExec
//!   FilterExec: character_length(user_id@1) > 1, projection=[event_id@0, event_id@2]
//!     HashJoinExec: mode=CollectLeft, join_type=Right, on=[(event_id@0, event_id@0)]
//! ```
//!
//! The projection with the two columns `event_id` was above the filter when the barrier was put there; a later rule made it a part of the
//! filter.

use std::{collections::HashSet, fmt, sync::Arc};

use datafusion_common::{
    Result, Statistics, internal_err,
    tree_node::{Transformed, TreeNodeRecursion},
};
use datafusion_execution::{SendableRecordBatchStream, TaskContext};
use datafusion_physical_plan::{
    ChildStats, DisplayAs, DisplayFormatType, ExecutionPlan, PhysicalExpr, PlanProperties,
    StatisticsArgs, projection::ProjectionExec,
};

use super::rewrite::PlanRule;

/// Puts a barrier above projections that have a name twice.
pub const KEEP_NAMES_APART: PlanRule =
    PlanRule { name: "keep_names_apart", rewrite: keep_names_apart };

/// A barrier above a projection that has a name twice; other operators stay as they are.
fn keep_names_apart(plan: Arc<dyn ExecutionPlan>) -> Result<Transformed<Arc<dyn ExecutionPlan>>> {
    let is_projection = plan.downcast_ref::<ProjectionExec>().is_some();
    Ok(match is_projection && has_name_twice(&plan) {
        true => Transformed::yes(Arc::new(BarrierExec(plan))),
        false => Transformed::no(plan),
    })
}

/// Whether two columns of a plan have the same name.
fn has_name_twice(plan: &Arc<dyn ExecutionPlan>) -> bool {
    let schema = plan.schema();
    let mut names = HashSet::new();
    schema.fields().iter().any(|field| !names.insert(field.name()))
}

/// Hands on the rows of its input, in the same partitions and order. It does not take part in the pushdown of filters: what the trait does
/// by default is to let none through.
#[derive(Debug)]
pub struct BarrierExec(Arc<dyn ExecutionPlan>);

impl DisplayAs for BarrierExec {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "BarrierExec")
    }
}

impl ExecutionPlan for BarrierExec {
    fn name(&self) -> &str {
        "BarrierExec"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        self.0.properties()
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        vec![&self.0]
    }

    fn maintains_input_order(&self) -> Vec<bool> {
        vec![true]
    }

    fn benefits_from_input_partitioning(&self) -> Vec<bool> {
        vec![false]
    }

    fn apply_expressions(
        &self,
        _: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        Ok(TreeNodeRecursion::Continue)
    }

    fn with_new_children(
        self: Arc<Self>,
        mut children: Vec<Arc<dyn ExecutionPlan>>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        match (children.pop(), children.pop()) {
            (Some(input), None) => Ok(Arc::new(Self(input))),
            _ => internal_err!("a barrier has one input"),
        }
    }

    fn execute(
        &self,
        partition: usize,
        context: Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream> {
        self.0.execute(partition, context)
    }

    fn child_stats_requests(&self, partition: Option<usize>) -> Vec<ChildStats> {
        vec![ChildStats::At(partition)]
    }

    fn statistics_from_inputs(
        &self,
        inputs: &[Arc<Statistics>],
        _: &StatisticsArgs,
    ) -> Result<Arc<Statistics>> {
        match inputs {
            [input] => Ok(Arc::clone(input)),
            _ => internal_err!("a barrier has one input"),
        }
    }
}
