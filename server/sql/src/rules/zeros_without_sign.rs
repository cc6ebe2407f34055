//! Optimizer rule: what is computed is never the zero with a sign.
//!
//! `0 * -3.5` is `-0.0`, which is equal to `0.0` for people, PostgreSQL and IEEE 754, and another value for the kernels that compare,
//! group and look up lists. Adding `0.0` makes one zero of both. Stored numbers have none.
//!
//! ```text
//! (0 * numeric_props['ms']) IN (0.0, 1.0)     (0 * numeric_props['ms'] + 0.0) IN (0.0, 1.0)
//! SELECT DISTINCT 0 * numeric_props['cost']   one zero, beside the null of rows without a cost
//! avg(numeric_props['ms'])                    part 0 / CAST(part 1 AS Float64) + 0, where groups are added up early
//! ```
//!
//! It runs once, when no other rule follows, and changes doubles alone: integers and decimals have one zero. A constant that the library has
//! computed by then is a literal, whose sign is dropped.

use arrow::datatypes::DataType;
use datafusion_common::{DFSchema, Result, ScalarValue, tree_node::Transformed};
use datafusion_expr::{BinaryExpr, Expr, ExprSchemable as _, Operator, lit};

use super::rewrite::ExprRule;

/// Takes the sign of zeros away. It comes last, since other rules know products and negatives.
pub const ZEROS_WITHOUT_SIGN: ExprRule = ExprRule {
    name: "zeros_without_sign",
    changes: may_be_negative_zero,
    rewrite: zeros_without_sign,
};

/// Functions that round towards zero, or leave a zero as it is.
const ROUNDING: [&str; 5] = ["round", "ceil", "trunc", "nearest", "signum"];

/// Whether a part of an expression can come to `-0.0`: a sum or a difference of two values that are none cannot.
fn may_be_negative_zero(part: &Expr) -> bool {
    match part {
        Expr::Negative(_) => true,
        Expr::BinaryExpr(BinaryExpr { op, .. }) => {
            matches!(op, Operator::Multiply | Operator::Divide | Operator::Modulo)
        }
        Expr::ScalarFunction(function) => ROUNDING.contains(&function.name()),
        Expr::Literal(ScalarValue::Float64(Some(number)), _) => {
            *number == 0.0 && number.is_sign_negative()
        }
        _ => false,
    }
}

/// The part plus `0.0`, or the literal without its sign.
fn zeros_without_sign(expr: Expr, schema: &DFSchema) -> Result<Transformed<Expr>> {
    let is_float = || matches!(expr.get_type(schema), Ok(DataType::Float64));
    if !may_be_negative_zero(&expr) || !is_float() {
        return Ok(Transformed::no(expr));
    }
    let new = match expr {
        Expr::Literal(..) => lit(0.0),
        expr => {
            Expr::BinaryExpr(BinaryExpr::new(Box::new(expr), Operator::Plus, Box::new(lit(0.0))))
        }
    };
    Ok(Transformed::yes(new))
}
