//! Analyzer rule: what is computed of unsigned numbers is computed of signed ones.
//!
//! `rank()`, `row_number()` and `approx_distinct(x)` are unsigned in DataFusion: `2 - 3` and `-rank()` would be refused, and
//! `1 / rank()` would be a number with a point. In PostgreSQL they are `bigint`, so operands are cast to that here.
//!
//! ```text
//! Int64(2) - rank() ORDER BY [events.timestamp ASC NULLS LAST] …
//! Int64(2) - CAST(rank() ORDER BY [events.timestamp ASC NULLS LAST] … AS Int64)
//!
//! 2 - row_number()     1, 0, -1 …        -rank()     -1, -2, -3 …        1 / rank()     1, 0, 0 …
//! ```
//!
//! A number that nothing is computed of stays unsigned, as in `SELECT rank() OVER (…)`.

use arrow::datatypes::DataType;
use datafusion_common::{DFSchema, Result, tree_node::Transformed};
use datafusion_expr::{BinaryExpr, Expr, ExprSchemable as _, Operator, cast};

use super::rewrite::ExprRule;

/// Makes operands signed.
pub const SIGNED_NUMBERS: ExprRule = ExprRule {
    name: "signed_numbers",
    changes: |part| match part {
        Expr::BinaryExpr(BinaryExpr { op, .. }) => computes(*op),
        Expr::Negative(_) => true,
        _ => false,
    },
    rewrite: signed_numbers,
};

/// Whether an operator makes a number of two.
fn computes(op: Operator) -> bool {
    use Operator::{Divide, Minus, Modulo, Multiply, Plus};
    matches!(op, Plus | Minus | Multiply | Divide | Modulo)
}

/// A sum, product and so on, or a negative, over signed operands; itself where they are signed.
fn signed_numbers(expr: Expr, schema: &DFSchema) -> Result<Transformed<Expr>> {
    let signed = |operand: &Expr| match operand.get_type(schema) {
        Ok(DataType::UInt64 | DataType::UInt32) => {
            Some(Box::new(cast(operand.clone(), DataType::Int64)))
        }
        _ => None,
    };
    let new = match &expr {
        Expr::Negative(operand) => signed(operand).map(Expr::Negative),
        Expr::BinaryExpr(BinaryExpr { left, op, right }) if computes(*op) => {
            match (signed(left), signed(right)) {
                (None, None) => None,
                (new_left, new_right) => Some(Expr::BinaryExpr(BinaryExpr::new(
                    new_left.unwrap_or_else(|| left.clone()),
                    *op,
                    new_right.unwrap_or_else(|| right.clone()),
                ))),
            }
        }
        _ => None,
    };
    Ok(new.map_or_else(|| Transformed::no(expr), Transformed::yes))
}
