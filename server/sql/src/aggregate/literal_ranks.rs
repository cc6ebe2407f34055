//! Written texts, dates, times or truth values that an expression selects from, as numbers in their order: the first and the last of them are then
//! those of numbers.
//!
//! ```text
//! max(CASE WHEN extract(month FROM timestamp) = 8 THEN 'a' ELSE '-' END)
//! max(CASE WHEN extract(month FROM timestamp) = 8 THEN 1 ELSE 0 END), of which 0 is '-' and 1 is 'a'
//! ```
//!
//! The answer over groups, where the measure is the number:
//!
//! ```text
//! CASE WHEN part 0 = Float64(0) THEN Utf8("-") WHEN part 0 = Float64(1) THEN Utf8("a") END
//! ```
//!
//! A null stays a null: neither number is equal to it. Written numbers need no ranks (`total_exprs.rs`), and values of two types have no order
//! in common.

use datafusion_common::{DataFusionError, Result, ScalarValue};
use datafusion_expr::{Case, Expr, lit, when};

/// Values in their order, each once: the number of a value is its index.
pub struct RankedLiterals(Vec<ScalarValue>);

impl RankedLiterals {
    /// The value whose number an expression is.
    ///
    /// Errors: none that is expected.
    pub fn value(self, number: Expr) -> Result<Expr> {
        let mut values = self.0.into_iter().zip(0i32..);
        let of = |at: i32| number.clone().eq(lit(f64::from(at)));
        let first = values.next();
        let (first, at) =
            first.ok_or_else(|| DataFusionError::Internal("no literal".to_owned()))?;
        let mut found = when(of(at), Expr::Literal(first, None));
        for (value, at) in values {
            found = found.when(of(at), Expr::Literal(value, None));
        }
        found.end()
    }
}

/// An expression that selects from written values, none of them a number, with their numbers instead. Nothing where it selects from
/// anything else, or from nulls alone.
pub fn ranked(expr: &Expr) -> Option<(Expr, RankedLiterals)> {
    let mut values = Vec::new();
    find(expr, &mut values).then_some(())?;
    let is_ranked = |value: &ScalarValue| {
        matches!(
            value,
            ScalarValue::Utf8(_)
                | ScalarValue::Utf8View(_)
                | ScalarValue::Date32(_)
                | ScalarValue::Boolean(_)
                | ScalarValue::TimestampMillisecond(..)
                | ScalarValue::TimestampMicrosecond(..)
                | ScalarValue::TimestampNanosecond(..)
        )
    };
    let kind = values.first()?.data_type();
    if !values.iter().all(|value| is_ranked(value) && value.data_type() == kind) {
        return None;
    }
    let compare = |one: &ScalarValue, other: &ScalarValue| {
        one.partial_cmp(other).unwrap_or(std::cmp::Ordering::Equal)
    };
    values.sort_by(compare);
    values.dedup();
    let numbers = with_numbers(expr, &values)?;
    Some((numbers, RankedLiterals(values)))
}

/// Appends the values that an expression selects from. False where it may be something else.
fn find(expr: &Expr, values: &mut Vec<ScalarValue>) -> bool {
    match expr {
        Expr::Alias(alias) => find(&alias.expr, values),
        Expr::Literal(value, _) => {
            if !value.is_null() {
                values.push(value.clone());
            }
            true
        }
        Expr::Case(Case { when_then_expr, else_expr, .. }) => {
            let results = when_then_expr.iter().map(|(_, then)| then).chain(else_expr);
            results.into_iter().all(|result| find(result, values))
        }
        _ => false,
    }
}

/// The same with the index of each value among these.
fn with_numbers(expr: &Expr, values: &[ScalarValue]) -> Option<Expr> {
    Some(match expr {
        Expr::Alias(alias) => with_numbers(&alias.expr, values)?,
        Expr::Literal(value, _) => {
            let at = values.iter().position(|known| known == value);
            let number = at.and_then(|at| i64::try_from(at).ok());
            Expr::Literal(ScalarValue::Int64(number), None)
        }
        Expr::Case(Case { expr, when_then_expr, else_expr }) => {
            let boxed = |result| Some(Box::new(with_numbers(result, values)?));
            let branches = when_then_expr.iter();
            let branches =
                branches.map(|(condition, then)| Some((condition.clone(), boxed(then)?)));
            let otherwise = match else_expr {
                Some(result) => Some(boxed(result)?),
                None => None,
            };
            Expr::Case(Case::new(expr.clone(), branches.collect::<Option<_>>()?, otherwise))
        }
        _ => return None,
    })
}
