//! Analyzer rule: arithmetic of integer constants is done here, where what is too large is an error.
//!
//! The library computes constants before it plans, and goes round at the end of 64 bits; in rows it is checked (`physical/exprs.rs`).
//!
//! ```text
//! 2 * 30 + n                  60 + n
//! 9223372036854775807 + 1     Arithmetic overflow: Overflow happened on: 9223372036854775807 + 1
//! -(-9223372036854775808)     Arithmetic overflow: Overflow happened on: - -9223372036854775808
//! -n                          0 - n, which is checked in rows as other differences are
//! 7 / 0, 7 % 0                as they are: the library's error
//! ```
//!
//! It runs when types have been coerced: a constant may have casts between integers around it.

use arrow::{datatypes::DataType, error::ArrowError};
use datafusion_common::{DFSchema, Result, ScalarValue, tree_node::Transformed};
use datafusion_expr::{BinaryExpr, Expr, ExprSchemable as _, Operator, lit};

use super::rewrite::ExprRule;

/// Computes sums, differences and products of integer constants.
pub const WHOLE_CONSTANTS: ExprRule = ExprRule {
    name: "whole_constants",
    changes: |part| matches!(part, Expr::BinaryExpr(_) | Expr::Negative(_)),
    rewrite: computed,
};

fn computed(expr: Expr, schema: &DFSchema) -> Result<Transformed<Expr>> {
    let done = match &expr {
        Expr::BinaryExpr(BinaryExpr { left, op, right }) => {
            let operation: fn(i64, i64) -> Option<i64> = match op {
                Operator::Plus => i64::checked_add,
                Operator::Minus => i64::checked_sub,
                Operator::Multiply => i64::checked_mul,
                _ => return Ok(Transformed::no(expr)),
            };
            let (Some(a), Some(b)) = (whole(left), whole(right)) else {
                return Ok(Transformed::no(expr));
            };
            operation(a, b).ok_or_else(|| format!("{a} {op} {b}"))
        }
        Expr::Negative(of) => {
            let Some(value) = whole(of) else {
                let is_whole = of.get_type(schema)? == DataType::Int64;
                return Ok(match is_whole {
                    true => Transformed::yes(lit(0_i64) - (**of).clone()),
                    false => Transformed::no(expr),
                });
            };
            value.checked_neg().ok_or_else(|| format!("- {value}"))
        }
        _ => return Ok(Transformed::no(expr)),
    };
    let overflow =
        |what: String| ArrowError::ArithmeticOverflow(format!("Overflow happened on: {what}"));
    let value = ScalarValue::Int64(Some(done.map_err(overflow)?));
    Ok(Transformed::yes(Expr::Literal(value, None)))
}

/// The value of a constant of 64 bits, cast or not.
fn whole(expr: &Expr) -> Option<i64> {
    match expr {
        Expr::Literal(ScalarValue::Int64(value), _) => *value,
        Expr::Cast(cast) if *cast.field.data_type() == DataType::Int64 => match &*cast.expr {
            Expr::Literal(ScalarValue::Int64(value), _) => *value,
            Expr::Literal(ScalarValue::Int32(value), _) => value.map(i64::from),
            _ => None,
        },
        _ => None,
    }
}
