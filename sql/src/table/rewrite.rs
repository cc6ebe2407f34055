//! Rewriting all expressions of a statement, and the rule of the analyzer that does only that.

use datafusion_common::{
    DFSchema, Result,
    config::ConfigOptions,
    tree_node::{Transformed, TreeNode as _},
};
use datafusion_expr::{Expr, LogicalPlan, expr_rewriter::NamePreserver, utils::merge_schema};
use datafusion_optimizer::AnalyzerRule;

/// What a part of an expression becomes over the columns there are.
type Rewrite = fn(Expr, &DFSchema) -> Result<Transformed<Expr>>;

/// A rule of the analyzer that rewrites expressions part by part.
#[derive(Debug)]
pub struct ExprRule {
    /// Its name in plans and errors.
    pub name: &'static str,
    /// What it does.
    pub rewrite: Rewrite,
}

impl AnalyzerRule for ExprRule {
    fn name(&self) -> &str {
        self.name
    }

    fn analyze(&self, plan: LogicalPlan, _: &ConfigOptions) -> Result<LogicalPlan> {
        rewrite_exprs(plan, &self.rewrite)
    }
}

/// A plan, subqueries included, each part of whose expressions has become what `rewrite` makes of it over the columns
/// there are. Columns of the answer have the names that they had.
///
/// Errors: as of `rewrite`.
pub fn rewrite_exprs(
    plan: LogicalPlan,
    rewrite: &dyn Fn(Expr, &DFSchema) -> Result<Transformed<Expr>>,
) -> Result<LogicalPlan> {
    let rewritten = plan.transform_up_with_subqueries(|plan| {
        let schema = merge_schema(&plan.inputs());
        let names = NamePreserver::new(&plan);
        let rewritten = |expr: Expr| {
            let saved = names.save(&expr);
            let new = expr.transform_up(|part| rewrite(part, &schema))?;
            Ok(new.update_data(|expr| saved.restore(expr)))
        };
        plan.map_expressions(|expr| match expr {
            // Sets of groups have no name; the expressions in them have.
            Expr::GroupingSet(_) => expr.map_children(rewritten),
            expr => rewritten(expr),
        })
    });
    rewritten.map(|plan| plan.data)
}
