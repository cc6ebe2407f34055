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
    sync::Arc,
};

use arrow::datatypes::Schema;
use datafusion_common::{Result, tree_node::Transformed};
use datafusion_physical_plan::{
    ExecutionPlan, PhysicalExpr,
    execution_plan::replace_children_if_necessary,
    filter_pushdown::{ChildFilterDescription, FilterPushdownPhase},
    projection::ProjectionExec,
};

use super::{
    pass_through::{PassThrough, PassThroughExec},
    rewrite::PlanRule,
};

/// Puts a barrier above inputs that have a name twice.
pub const KEEP_NAMES_APART: PlanRule =
    PlanRule { name: "keep_names_apart", rewrite: keep_names_apart };

/// An operator with barriers above its inputs that have a name twice; a projection stays as it is.
fn keep_names_apart(plan: Arc<dyn ExecutionPlan>) -> Result<Transformed<Arc<dyn ExecutionPlan>>> {
    let knows_positions = plan.downcast_ref::<ProjectionExec>().is_some();
    let is_mixed = |input: &Arc<dyn ExecutionPlan>| {
        let schema = input.schema();
        let has_name_twice = unique_names(&schema).len() < schema.fields().len();
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
            true => Arc::new(BarrierExec::new(Arc::clone(input), Barrier)),
            false => Arc::clone(input),
        }
    });
    let inputs = inputs.collect();
    Ok(Transformed::yes(replace_children_if_necessary(plan, inputs)?))
}

/// Columns, by their positions, whose names no other column has.
pub fn unique_names(schema: &Schema) -> HashSet<usize> {
    let mut counts: HashMap<&str, usize> = HashMap::new();
    schema.fields().iter().for_each(|field| *counts.entry(field.name()).or_default() += 1);
    let columns = schema.fields().iter().enumerate();
    let unique = columns.filter(|(_, field)| counts.get(field.name().as_str()) == Some(&1));
    unique.map(|(at, _)| at).collect()
}

/// Lets filters of columns through whose names are there once.
#[derive(Debug, Clone)]
pub struct Barrier;

/// The operator that does so.
pub type BarrierExec = PassThroughExec<Barrier>;

impl PassThrough for Barrier {
    const NAME: &'static str = "BarrierExec";

    /// A filter that asks for another column of a name was given the first one, so it is refused with those that mean this one.
    fn filters(
        &self,
        input: &Arc<dyn ExecutionPlan>,
        _: FilterPushdownPhase,
        from_above: &[Arc<dyn PhysicalExpr>],
    ) -> Result<ChildFilterDescription> {
        let unique = unique_names(&input.schema());
        ChildFilterDescription::from_child_with_allowed_indices(from_above, unique, input)
    }
}
