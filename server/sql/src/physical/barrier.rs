//! A rule for operators: filters do not go through columns of the same name.
//!
//! `FROM events a RIGHT JOIN events b … WHERE length(a.user_id) > 1` has two columns `user_id` above the join. The library pushes
//! a filter into an input by the names of columns, and would ask the first of that name. Above an input that has a name twice stands an
//! operator that hands rows on and lets those filters alone through that ask for columns whose names are there once, also of
//! those that another operator learns while it runs. Under a projection there is none: what it pushes down it knows by the columns' positions.
//!
//! ```text
//! SELECT a.event_id, b.event_id FROM events a RIGHT JOIN events b ON a.event_id = b.event_id WHERE length(a.user_id) > 1
//!
//! FilterExec: character_length(user_id@1) > 1, projection=[event_id@0, event_id@2]
//!   BarrierExec
//!     HashJoinExec: mode=CollectLeft, join_type=Right, on=[(event_id@0, event_id@0)]
//! ```
//!
//! The rule runs before filters are pushed down, and once more before what operators will learn is, since rules in between add operators.

use std::{
    collections::{HashMap, HashSet},
    fmt,
    sync::Arc,
};

use datafusion_common::{
    Result, Statistics,
    config::ConfigOptions,
    internal_err,
    tree_node::{Transformed, TreeNodeRecursion},
};
use datafusion_execution::{SendableRecordBatchStream, TaskContext};
use datafusion_physical_plan::{
    ChildStats, DisplayAs, DisplayFormatType, ExecutionPlan, PhysicalExpr, PlanProperties,
    StatisticsArgs,
    execution_plan::replace_children_if_necessary,
    filter_pushdown::{ChildFilterDescription, FilterDescription, FilterPushdownPhase},
    projection::ProjectionExec,
};

use super::rewrite::PlanRule;

/// Puts a barrier above inputs that have a name twice.
pub const KEEP_NAMES_APART: PlanRule =
    PlanRule { name: "keep_names_apart", rewrite: keep_names_apart };

/// An operator with barriers above its inputs that have a name twice; a projection stays as it is.
fn keep_names_apart(plan: Arc<dyn ExecutionPlan>) -> Result<Transformed<Arc<dyn ExecutionPlan>>> {
    let knows_positions = plan.downcast_ref::<ProjectionExec>().is_some();
    let is_mixed = |input: &Arc<dyn ExecutionPlan>| {
        let has_name_twice = unique_names(input).len() < input.schema().fields().len();
        has_name_twice && input.downcast_ref::<BarrierExec>().is_none()
    };
    let inputs = plan.children();
    if knows_positions || plan.downcast_ref::<BarrierExec>().is_some() {
        return Ok(Transformed::no(plan));
    }
    if !inputs.iter().any(|input| is_mixed(input)) {
        return Ok(Transformed::no(plan));
    }
    let inputs = inputs.into_iter().map(|input| -> Arc<dyn ExecutionPlan> {
        match is_mixed(input) {
            true => Arc::new(BarrierExec(Arc::clone(input))),
            false => Arc::clone(input),
        }
    });
    let inputs = inputs.collect();
    Ok(Transformed::yes(replace_children_if_necessary(plan, inputs)?))
}

/// Columns of a plan, by their positions, whose names no other column has.
fn unique_names(plan: &Arc<dyn ExecutionPlan>) -> HashSet<usize> {
    let schema = plan.schema();
    let mut counts: HashMap<&str, usize> = HashMap::new();
    schema.fields().iter().for_each(|field| *counts.entry(field.name()).or_default() += 1);
    let columns = schema.fields().iter().enumerate();
    let unique = columns.filter(|(_, field)| counts.get(field.name().as_str()) == Some(&1));
    unique.map(|(at, _)| at).collect()
}

/// Hands on the rows of its input, in the same partitions and order, and filters of columns whose names are there once.
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

    /// A filter that asks for another column of a name was given the first one, so it is refused with those that mean this one.
    fn gather_filters_for_pushdown(
        &self,
        _: FilterPushdownPhase,
        filters: Vec<Arc<dyn PhysicalExpr>>,
        _: &ConfigOptions,
    ) -> Result<FilterDescription> {
        let unique = unique_names(&self.0);
        let through =
            ChildFilterDescription::from_child_with_allowed_indices(&filters, unique, &self.0)?;
        Ok(FilterDescription::new().with_child(through))
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
