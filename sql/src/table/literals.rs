//! An analyzer's rule: constants stand on the right of comparisons.
//!
//! The library takes `'acme' = tenant_id AND tenant_id = 'acme'` for two conditions that exclude each other, since it
//! compares them as they are written.

use datafusion_common::{Result, config::ConfigOptions, tree_node::Transformed};
use datafusion_expr::{BinaryExpr, Expr, LogicalPlan};
use datafusion_optimizer::AnalyzerRule;

use super::rewrite::rewrite_exprs;

/// Turns comparisons around that have a constant on the left.
#[derive(Debug)]
pub struct ConstantsRight;

impl AnalyzerRule for ConstantsRight {
    fn name(&self) -> &str {
        "constants_right"
    }

    fn analyze(&self, plan: LogicalPlan, _: &ConfigOptions) -> Result<LogicalPlan> {
        rewrite_exprs(plan, &|expr, _| {
            Ok(match &expr {
                Expr::BinaryExpr(BinaryExpr { left, op, right })
                    if is_constant(left) && !is_constant(right) =>
                {
                    match op.swap() {
                        Some(op) => {
                            let new = BinaryExpr::new(right.clone(), op, left.clone());
                            Transformed::yes(Expr::BinaryExpr(new))
                        }
                        None => Transformed::no(expr),
                    }
                }
                _ => Transformed::no(expr),
            })
        })
    }
}

fn is_constant(expr: &Expr) -> bool {
    match expr {
        Expr::Literal(..) => true,
        Expr::Cast(cast) => is_constant(&cast.expr),
        _ => false,
    }
}
