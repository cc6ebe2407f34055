//! A rule for operators that rewrites a plan node by node.

use std::sync::Arc;

use datafusion_common::{
    Result,
    config::ConfigOptions,
    tree_node::{Transformed, TransformedResult as _, TreeNode as _},
};
use datafusion_physical_optimizer::PhysicalOptimizerRule;
use datafusion_physical_plan::ExecutionPlan;

/// What an operator becomes, whose inputs have been rewritten before.
type Rewrite = fn(Arc<dyn ExecutionPlan>) -> Result<Transformed<Arc<dyn ExecutionPlan>>>;

/// A rule that rewrites operators one by one, inputs first.
#[derive(Debug)]
pub struct PlanRule {
    /// Its name in plans and errors.
    pub name: &'static str,
    /// What it does.
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
        _: &ConfigOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        plan.transform_up(self.rewrite).data()
    }
}
