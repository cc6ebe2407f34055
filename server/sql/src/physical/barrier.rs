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
//! A semi join asks both sides for what is asked of a key, the other one by the key's name, too: `EXISTS (SELECT 1 FROM events b WHERE b.y = a.x)` would
//! ask `b.x` for what is asked of `a.x`. There is a barrier for such columns of that side, which also refuses what the join itself
//! learns of them.
//!
//! The rule runs before filters are pushed down, and once more before what operators will learn is, since rules in between add operators.

use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
};

use arrow::datatypes::Schema;
use datafusion_common::{JoinType, Result, config::ConfigOptions, tree_node::Transformed};
use datafusion_physical_expr::expressions::Column;
use datafusion_physical_plan::{
    ExecutionPlan, PhysicalExpr,
    execution_plan::replace_children_if_necessary,
    filter_pushdown::{ChildFilterDescription, FilterPushdownPhase},
    joins::HashJoinExec,
    projection::ProjectionExec,
};

use super::{
    pass_through::{PassThrough, PassThroughExec},
    rewrite::PlanRule,
};

/// Puts a barrier above inputs that have a name twice, and above that side of a semi join which is not in its answer.
pub const KEEP_NAMES_APART: PlanRule =
    PlanRule { name: "keep_names_apart", rewrite: keep_names_apart };

/// An operator with barriers above inputs of which a filter may mean another column; a projection stays as it is.
fn keep_names_apart(
    plan: Arc<dyn ExecutionPlan>,
    _: &ConfigOptions,
) -> Result<Transformed<Arc<dyn ExecutionPlan>>> {
    let is_barrier = |plan: &Arc<dyn ExecutionPlan>| plan.downcast_ref::<BarrierExec>().is_some();
    let knows_positions = plan.downcast_ref::<ProjectionExec>().is_some();
    if knows_positions || is_barrier(&plan) {
        return Ok(Transformed::no(plan));
    }
    let of_semi_join = refused_by_semi_join(&plan);
    let mut inputs: Vec<Arc<dyn ExecutionPlan>> = Vec::new();
    let mut changed = false;
    for (at, input) in plan.children().into_iter().enumerate() {
        let refused = of_semi_join.iter().filter(|(side, _)| *side == at);
        let refused: HashSet<String> = refused.flat_map(|(_, names)| names.clone()).collect();
        let schema = input.schema();
        let is_mixed = unique_names(&schema).len() < schema.fields().len();
        let is_needed = (is_mixed || !refused.is_empty()) && !is_barrier(input);
        changed |= is_needed;
        inputs.push(match is_needed {
            true => Arc::new(BarrierExec::new(Arc::clone(input), Barrier { refused })),
            false => Arc::clone(input),
        });
    }
    Ok(match changed {
        true => Transformed::yes(replace_children_if_necessary(plan, inputs)?),
        false => Transformed::no(plan),
    })
}

/// Which input of a semi join is not in its answer, and the names of its columns that filters from above must not reach.
///
/// Rows of both sides have the same keys, so the library asks that side for what is asked of a key, too: of the column with the key's name, whichever
/// its partner is. Of `a.x = b.y` a filter on `a.x` would reach `b.x`.
fn refused_by_semi_join(plan: &Arc<dyn ExecutionPlan>) -> Option<(usize, HashSet<String>)> {
    let join = plan.downcast_ref::<HashJoinExec>()?;
    let (side, other) = match join.join_type() {
        JoinType::LeftSemi => (1, join.right()),
        JoinType::RightSemi => (0, join.left()),
        _ => return None,
    };
    // Keys of the side in the answer, and their partners.
    let keys = join.on().iter().map(|(left, right)| match side {
        0 => [right, left].map(name_of),
        _ => [left, right].map(name_of),
    });
    let keys: Vec<_> = keys.collect();
    // Two keys of one name may have different partners.
    let is_refused = |column: &str| {
        let mut of_name = keys.iter().filter(|[key, _]| *key == Some(column));
        of_name.any(|[_, partner]| *partner != Some(column))
    };
    let schema = other.schema();
    let names = schema.fields().iter().map(|field| field.name());
    Some((side, names.filter(|name| is_refused(name)).cloned().collect()))
}

/// The name of a key that is a column.
fn name_of(key: &Arc<dyn PhysicalExpr>) -> Option<&str> {
    key.downcast_ref::<Column>().map(Column::name)
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
pub struct Barrier {
    /// Names of other columns that no filter may ask for.
    refused: HashSet<String>,
}

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
        let schema = input.schema();
        let mut allowed = unique_names(&schema);
        allowed.retain(|column| !self.refused.contains(schema.field(*column).name()));
        ChildFilterDescription::from_child_with_allowed_indices(from_above, allowed, input)
    }
}
