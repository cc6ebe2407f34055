//! Rewriting all expressions of a statement.

use datafusion_common::{
    DFSchema, Result,
    tree_node::{Transformed, TreeNode as _},
};
use datafusion_expr::{Expr, LogicalPlan, expr_rewriter::NamePreserver, utils::merge_schema};

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
