//! An analyzer's rule: lists of `IN` that exclude each other say nothing of null.
//!
//! The library makes one list of two: `x IN (1, 2) AND x IN (2, 3)` becomes `x IN (2)`. Where nothing is left it says false, and of
//! `x NOT IN (1) OR x NOT IN (2)` true, which for a null is neither. Lists with a null are taken apart, so that none is made of two:
//!
//! ```text
//! x IN (1) AND x IN (2)          x IS NULL AND NULL
//! x NOT IN (1) OR x NOT IN (2)   x IS NOT NULL OR NULL
//! x NOT IN (1, NULL)             x NOT IN (1) AND NULL
//! ```

use datafusion_common::{DFSchema, Result, ScalarValue, tree_node::Transformed};
use datafusion_expr::{BinaryExpr, Cast, Expr, Operator, binary_expr, expr::InList};

use super::rewrite::ExprRule;

/// Lists of `IN` that a null is neither in nor not in.
pub const NULLS_OF_LISTS: ExprRule = ExprRule { name: "nulls_of_lists", rewrite: nulls_of_lists };

fn nulls_of_lists(expr: Expr, _: &DFSchema) -> Result<Transformed<Expr>> {
    let new = match &expr {
        Expr::Not(inner) => match &**inner {
            Expr::InList(list) => {
                Some(Expr::InList(InList { negated: !list.negated, ..list.clone() }))
            }
            _ => None,
        },
        Expr::InList(list) => without_null(list),
        Expr::BinaryExpr(BinaryExpr { left, op, right }) => match (&**left, &**right) {
            (Expr::InList(left), Expr::InList(right)) if left.expr == right.expr => {
                both(left, *op, right)
            }
            _ => None,
        },
        _ => None,
    };
    Ok(match new {
        Some(new) => Transformed::yes(new),
        None => Transformed::no(expr),
    })
}

fn null() -> Expr {
    Expr::Literal(ScalarValue::Boolean(None), None)
}

/// A list with a null as one without, and what the null comes to.
fn without_null(list: &InList) -> Option<Expr> {
    let is_null = |item: &Expr| constant(item).is_some_and(|value| value.is_null());
    let mut rest = list.clone();
    rest.list.retain(|item| !is_null(item));
    if rest.list.len() == list.list.len() || rest.list.is_empty() {
        return None;
    }
    let op = if list.negated { Operator::And } else { Operator::Or };
    Some(binary_expr(Expr::InList(rest), op, null()))
}

/// What two lists for the same expression come to, where that is the same for all but null.
fn both(left: &InList, op: Operator, right: &InList) -> Option<Expr> {
    let values = |list: &InList| list.list.iter().map(constant).collect::<Option<Vec<_>>>();
    let (of_left, of_right) = (values(left)?, values(right)?);
    let is_within = |some: &[ScalarValue], others: &[ScalarValue]| {
        some.iter().all(|value| others.contains(value))
    };
    let is_apart = !of_left.iter().any(|value| of_right.contains(value));
    let is_all = match (op, left.negated, right.negated) {
        (Operator::And, false, false) if is_apart => false,
        (Operator::And, false, true) if is_within(&of_left, &of_right) => false,
        (Operator::And, true, false) if is_within(&of_right, &of_left) => false,
        (Operator::Or, true, true) if is_apart => true,
        (Operator::Or, true, false) if is_within(&of_left, &of_right) => true,
        (Operator::Or, false, true) if is_within(&of_right, &of_left) => true,
        _ => return None,
    };
    let of = (*left.expr).clone();
    Some(match is_all {
        true => binary_expr(of.is_not_null(), Operator::Or, null()),
        false => binary_expr(of.is_null(), Operator::And, null()),
    })
}

/// The value of a constant, in the type that it is cast to.
fn constant(expr: &Expr) -> Option<ScalarValue> {
    match expr {
        Expr::Literal(value, _) => Some(value.clone()),
        Expr::Cast(Cast { expr, field }) => constant(expr)?.cast_to(field.data_type()).ok(),
        _ => None,
    }
}
