//! A rule for operators that rewrites a plan node by node.
//!
//! `keep_names_apart` (`barrier.rs`), `learn_join_bounds` (`join_bounds.rs`) and `read_first_rows` (`first_rows.rs`) are such rules. The library's own are run before and
//! between them (`session/library.rs`), and behind a rule with `schema_check` the columns are compared with those of before.

use std::sync::Arc;

use datafusion_common::{
    Result,
    config::ConfigOptions,
    tree_node::{Transformed, TransformedResult as _, TreeNode as _},
};
use datafusion_physical_optimizer::PhysicalOptimizerRule;
use datafusion_physical_plan::ExecutionPlan;

/// What an operator becomes, whose inputs have been rewritten before.
type Rewrite =
    fn(Arc<dyn ExecutionPlan>, &ConfigOptions) -> Result<Transformed<Arc<dyn ExecutionPlan>>>;

/// A rule that rewrites operators one by one, inputs first.
#[derive(Debug)]
pub struct PlanRule {
    /// Its name in errors: `the rule keep_names_apart changes the columns of a plan`.
    pub name: &'static str,
    /// What an operator becomes; `Transformed::no` where it stays.
    pub rewrite: Rewrite,
}

impl PhysicalOptimizerRule for PlanRule {
    fn name(&self) -> &str {
        self.name
    }

    fn schema_check(&self) -> bool {
        true
    }

    fn optimize(
        &self,
        plan: Arc<dyn ExecutionPlan>,
        options: &ConfigOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        plan.transform_up(|plan| (self.rewrite)(plan, options)).data()
    }
}
