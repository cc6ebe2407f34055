//! Forms of expressions that may be computed for any row: those that cannot fail, and those that are one of a few written numbers.
//!
//! `CASE WHEN string_props['status'] = 'ok' THEN 1 ELSE 0 END` is both. A division is neither: it may be computed for no row that a condition leaves out.
//!
//! ```text
//!                                                     cannot fail      one of a few numbers
//! lower(plan) IN ('pro', 'team')                      yes              no
//! ms > 500 OR coalesce(plan, '') = ''                 yes              no
//! CASE WHEN ms > 500 THEN 2 WHEN ms > 100 THEN 1 END  yes              yes, or null
//! CAST(plan AS double) > 5                            no: 'pro' is no number
//! 100 / ms, ms + 1, substr(plan, n)                   no               no
//! ```

use arrow::datatypes::DataType;
use datafusion_common::{ScalarValue, tree_node::TreeNode as _};
use datafusion_expr::{Case, Cast, Expr, Operator};

/// Written integers that are added up, at most: with four thousand million rows, a sum stays below 2^52.
const SUMMED_MAX: u64 = 1 << 20;

/// What `CASE WHEN condition THEN value END` is of, the condition, and whether it is zero otherwise: with `ELSE 0.0`, of doubles. Nothing with
/// two conditions, or another number behind `ELSE`.
pub fn conditional(expr: &Expr) -> Option<(&Expr, Option<&Expr>, bool)> {
    let Expr::Case(Case { expr: None, when_then_expr, else_expr }) = expr else { return None };
    let [(condition, then)] = &**when_then_expr else { return None };
    let is_else_zero = match else_expr.as_deref() {
        None => false,
        Some(Expr::Literal(value, _)) if value.is_null() => false,
        Some(Expr::Literal(ScalarValue::Float64(Some(0.0)), _)) => true,
        Some(_) => return None,
    };
    Some((then, Some(condition), is_else_zero))
}

/// Whether an expression has a value, or none, for all values of its columns: it may be computed for rows that a condition leaves out.
pub fn is_total(expr: &Expr) -> bool {
    let is_failing = expr.exists(|part| Ok(!is_total_part(part)));
    is_failing.is_ok_and(|is_failing| !is_failing)
}

/// Whether a part of an expression has a value, or none, for all values of its own parts.
pub fn is_total_part(part: &Expr) -> bool {
    match part {
        Expr::Column(_)
        | Expr::Literal(..)
        | Expr::Alias(_)
        | Expr::Case(_)
        | Expr::Like(_)
        | Expr::InList(_)
        | Expr::Between(_)
        | Expr::Not(_)
        | Expr::IsNull(_)
        | Expr::IsNotNull(_)
        | Expr::IsTrue(_)
        | Expr::IsFalse(_)
        | Expr::IsUnknown(_)
        | Expr::IsNotTrue(_)
        | Expr::IsNotFalse(_)
        | Expr::IsNotUnknown(_) => true,
        Expr::BinaryExpr(binary) => matches!(
            binary.op,
            Operator::Eq
                | Operator::NotEq
                | Operator::Lt
                | Operator::LtEq
                | Operator::Gt
                | Operator::GtEq
                | Operator::IsDistinctFrom
                | Operator::IsNotDistinctFrom
                | Operator::And
                | Operator::Or
        ),
        Expr::Cast(Cast { expr, field }) => {
            *field.data_type() == DataType::Float64 && is_number_of_few(expr)
        }
        Expr::ScalarFunction(call) => TOTAL_FUNCTIONS.contains(&call.func.name()),
        _ => false,
    }
}

/// Functions that fail for no values.
const TOTAL_FUNCTIONS: [&str; 5] = ["coalesce", "nullif", "lower", "upper", "starts_with"];

/// Whether an expression is one of a few written numbers; of integers a double has the exact sum over all rows.
pub fn is_number_of_few(expr: &Expr) -> bool {
    match expr {
        Expr::Literal(value, _) => match value {
            ScalarValue::Int64(number) => {
                number.is_none_or(|number| number.unsigned_abs() <= SUMMED_MAX)
            }
            // Rows without a value are told by NaN.
            ScalarValue::Float64(number) => number.is_none_or(f64::is_finite),
            ScalarValue::Null => true,
            _ => false,
        },
        Expr::Alias(alias) => is_number_of_few(&alias.expr),
        Expr::Cast(Cast { expr, field }) => {
            *field.data_type() == DataType::Float64 && is_number_of_few(expr)
        }
        Expr::Case(Case { when_then_expr, else_expr, .. }) => {
            let values = when_then_expr.iter().map(|(_, value)| value).chain(else_expr);
            values.into_iter().all(|value| is_number_of_few(value))
        }
        _ => false,
    }
}
