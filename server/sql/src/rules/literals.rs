//! Analyzer rule: constants stand on the right of comparisons.
//!
//! DataFusion takes `'acme' = tenant_id AND tenant_id = 'acme'` for two conditions that exclude each other, since it
//! compares them as they are written.
//!
//! ```text
//! Filter: CAST(Utf8("acme") AS Utf8View) = events.tenant_id AND CAST(Int64(5) AS Float64) < events.numeric_props['ms']
//!
//! Filter: events.tenant_id = CAST(Utf8("acme") AS Utf8View) AND events.numeric_props['ms'] > CAST(Int64(5) AS Float64)
//! ```
//!
//! It runs when types have been coerced, so a constant may have a cast around it. `1 = 1` and `5 - x` stay: both sides are constants, or the
//! operator has no counterpart.

use datafusion_common::{DFSchema, Result, tree_node::Transformed};
use datafusion_expr::{BinaryExpr, Expr};

use super::rewrite::ExprRule;

/// Turns comparisons around that have a constant on the left.
pub const CONSTANTS_RIGHT: ExprRule = ExprRule {
    name: "constants_right",
    changes: |part| matches!(part, Expr::BinaryExpr(BinaryExpr { left, .. }) if is_constant(left)),
    rewrite: constants_right,
};

/// `5 < x` as `x > 5`. Parts without a constant on the left stay as they are.
fn constants_right(expr: Expr, _: &DFSchema) -> Result<Transformed<Expr>> {
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
}

/// Whether an expression is a literal, cast or not.
fn is_constant(expr: &Expr) -> bool {
    match expr {
        Expr::Literal(..) => true,
        Expr::Cast(cast) => is_constant(&cast.expr),
        _ => false,
    }
}
