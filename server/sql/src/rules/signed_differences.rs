//! Analyzer rule: differences of unsigned numbers are signed.
//!
//! `rank()`, `row_number()` and `approx_distinct(x)` are unsigned in DataFusion, and so are their differences: `2 - 3`
//! would be refused. In PostgreSQL they are `bigint`, so both sides of a difference are cast to that here.

use arrow::datatypes::DataType;
use datafusion_common::{DFSchema, Result, tree_node::Transformed};
use datafusion_expr::{BinaryExpr, Expr, ExprSchemable as _, Operator, cast};

use super::rewrite::ExprRule;

/// Makes operands of differences signed.
pub const SIGNED_DIFFERENCES: ExprRule = ExprRule {
    name: "signed_differences",
    changes: |part| matches!(part, Expr::BinaryExpr(BinaryExpr { op: Operator::Minus, .. })),
    rewrite: signed_differences,
};

fn signed_differences(expr: Expr, schema: &DFSchema) -> Result<Transformed<Expr>> {
    let Expr::BinaryExpr(BinaryExpr { left, op: Operator::Minus, right }) = &expr else {
        return Ok(Transformed::no(expr));
    };
    let signed = |operand: &Expr| match operand.get_type(schema) {
        Ok(DataType::UInt64 | DataType::UInt32) => {
            Some(Box::new(cast(operand.clone(), DataType::Int64)))
        }
        _ => None,
    };
    let (new_left, new_right) = (signed(left), signed(right));
    if new_left.is_none() && new_right.is_none() {
        return Ok(Transformed::no(expr));
    }
    let left = new_left.unwrap_or_else(|| left.clone());
    let right = new_right.unwrap_or_else(|| right.clone());
    let new = BinaryExpr::new(left, Operator::Minus, right);
    Ok(Transformed::yes(Expr::BinaryExpr(new)))
}
