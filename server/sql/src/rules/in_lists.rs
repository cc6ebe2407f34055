//! Lists of `IN` as a null is neither in nor not in.
//!
//! The library makes one list of two: `x IN (1, 2) AND x IN (2, 3)` becomes `x IN (2)`. It compares the items as they are written, and
//! where no item is left it says false or true, which is wrong for a null. So lists are merged here before it sees them, with a rule
//! of the analyzer, and of the optimizer where conditions have been moved to each other:
//!
//! ```text
//! x IN (1, 2) AND x IN (2, 3)    x IN (2)
//! x IN (1) AND x IN (2)          x IS NULL AND NULL
//! x NOT IN (1) OR x NOT IN (2)   x IS NOT NULL OR NULL
//! x NOT IN (1, NULL)             x NOT IN (1) AND NULL
//! x IN (1, 2, y)                 x IN (1, 2) OR x = y
//! ```
//!
//! What a null comes to, as in PostgreSQL:
//!
//! ```text
//! NULL IN (1, 2)       NULL          1 IN (1, NULL)       true
//! 3 IN (1, NULL)       NULL          3 NOT IN (1, NULL)   NULL
//! ```
//!
//! In a plan, with the casts that the analyzer has added by then:
//!
//! ```text
//! Filter: events.numeric_props['ms'] IN ([CAST(Int64(1) AS Float64), CAST(Int64(2) AS Float64)])
//!     AND events.numeric_props['ms'] IN ([CAST(Int64(2) AS Float64), CAST(Int64(3) AS Float64)])
//!
//! Filter: events.numeric_props['ms'] IN ([Float64(2)])
//! ```

use datafusion_common::{DFSchema, Result, ScalarValue, tree_node::Transformed};
use datafusion_expr::{BinaryExpr, Cast, Expr, Operator, binary_expr, expr::InList, lit, when};

use super::rewrite::ExprRule;

/// Lists of `IN` that a null is neither in nor not in.
pub const NULLS_OF_LISTS: ExprRule = ExprRule {
    name: "nulls_of_lists",
    changes: |part| {
        matches!(part, Expr::InList(_) | Expr::BinaryExpr(BinaryExpr { op: Operator::Or, .. }))
    },
    rewrite: nulls_of_lists,
};

/// What a part of a condition becomes. Parts come from below, so of `a AND b AND c` the first two are one list when the third is met.
fn nulls_of_lists(expr: Expr, _: &DFSchema) -> Result<Transformed<Expr>> {
    let new = match &expr {
        Expr::Not(inner) => match &**inner {
            Expr::InList(list) => {
                Some(Expr::InList(InList { negated: !list.negated, ..list.clone() }))
            }
            _ => None,
        },
        Expr::InList(list) => constants_alone(list),
        Expr::BinaryExpr(BinaryExpr { left, op: op @ (Operator::And | Operator::Or), right }) => {
            without_neutral(left, *op, right).or(merged(left, *op, right)?)
        }
        _ => None,
    };
    Ok(match new {
        Some(new) => Transformed::yes(new),
        None => Transformed::no(expr),
    })
}

/// The truth value that is neither: `NULL` as a boolean.
fn null() -> Expr {
    lit(ScalarValue::Boolean(None))
}

/// A list of the items that are constants, and what each of the others comes to: `x NOT IN (1, y, NULL)` is `x NOT IN (1) AND x <> y AND
/// NULL`. Nothing where all items are constants, or where `x` would be computed several times, as `lower(p) IN ('a', q)`.
fn constants_alone(list: &InList) -> Option<Expr> {
    let is_subquery = |item: &Expr| matches!(item, Expr::ScalarSubquery(_));
    if list.list.iter().any(is_subquery) || list.expr.is_volatile() {
        return None;
    }
    let (of_constants, others): (Vec<Expr>, Vec<Expr>) = (list.list.iter().cloned())
        .partition(|item| constant(item).is_some_and(|value| !value.is_null()));
    // It is repeated for each that is no constant.
    let is_repeated = others.iter().any(|item| constant(item).is_none());
    if others.is_empty() || is_repeated && !matches!(without_casts(&list.expr), Expr::Column(_)) {
        return None;
    }
    let (combine, compare) = match list.negated {
        false => (Operator::Or, Operator::Eq),
        true => (Operator::And, Operator::NotEq),
    };
    let constants = (!of_constants.is_empty())
        .then(|| Expr::InList(InList { list: of_constants, ..list.clone() }));
    let others = others.into_iter().map(|item| match constant(&item) {
        Some(_) => null(),
        None => binary_expr((*list.expr).clone(), compare, item),
    });
    constants.into_iter().chain(others).reduce(|all, one| binary_expr(all, combine, one))
}

/// One side, where the other is what changes nothing: lists beside each other may have stood apart. `x IN (1) AND 1 = 1` is `x IN (1)`.
fn without_neutral(left: &Expr, op: Operator, right: &Expr) -> Option<Expr> {
    let is_neutral = |side| truth(side) == Some(op == Operator::And);
    match (is_neutral(left), is_neutral(right)) {
        (true, _) => Some(right.clone()),
        (_, true) => Some(left.clone()),
        _ => None,
    }
}

/// What a condition is that names no column: `true`, `1 = 1`. Nothing for `NULL = 1`, which is neither, and for other operators.
fn truth(expr: &Expr) -> Option<bool> {
    match expr {
        Expr::Literal(ScalarValue::Boolean(value), _) => *value,
        Expr::BinaryExpr(BinaryExpr { left, op, right }) => {
            let (left, right) = (constant(left)?, constant(right)?);
            let order = left.partial_cmp(&right).filter(|_| !left.is_null() && !right.is_null())?;
            match op {
                Operator::Eq => Some(order.is_eq()),
                Operator::NotEq => Some(order.is_ne()),
                _ => None,
            }
        }
        _ => None,
    }
}

/// `x IN (1, 2)`, or `x = 1`, which the library takes for a list of one.
struct Items<'a> {
    /// What is looked for: `x`.
    of: &'a Expr,
    /// The items, cast to their type: `1, 2`.
    values: Vec<ScalarValue>,
    /// Whether it is `NOT IN`.
    negated: bool,
}

impl<'a> Items<'a> {
    /// Of a list of constants.
    fn of_list(expr: &'a Expr) -> Option<Self> {
        let Expr::InList(list) = expr else { return None };
        let values = list.list.iter().map(constant).collect::<Option<Vec<_>>>()?;
        Some(Self { of: &list.expr, values, negated: list.negated })
    }

    /// Of `x = 1` or `1 = x` over a column.
    fn of_equality(expr: &'a Expr) -> Option<Self> {
        let Expr::BinaryExpr(BinaryExpr { left, op: Operator::Eq, right }) = expr else {
            return None;
        };
        let (of, value) = match (&**left, &**right) {
            (of @ Expr::Column(_), value) | (value, of @ Expr::Column(_)) => (of, constant(value)?),
            _ => return None,
        };
        Some(Self { of, values: vec![value], negated: false })
    }
}

/// One list of two for the same expression.
///
/// ```text
/// x IN (1, 2) AND x IN (2, 3)          x IN (2)              items of both
/// x IN (1, 2) OR x IN (2, 3)           x IN (1, 2, 3)        items of either
/// x NOT IN (1, 2) AND x NOT IN (2, 3)  x NOT IN (1, 2, 3)
/// x IN (1, 2) AND x NOT IN (2, 3)      x IN (1)              items of the one that are not in the other
/// x IN (1, 2) OR x NOT IN (2, 3)       x NOT IN (3)
/// ```
///
/// Where no item is left the result is false, or true, for every value but null, for which it is null.
fn merged(left: &Expr, op: Operator, right: &Expr) -> Result<Option<Expr>> {
    let items = |expr| {
        let is_or = op == Operator::Or;
        Items::of_list(expr).or_else(|| is_or.then(|| Items::of_equality(expr)).flatten())
    };
    let (Some(first), Some(second)) = (items(left), items(right)) else { return Ok(None) };
    let is_merged_by_library = without_casts(first.of) == without_casts(second.of);
    let has_null = |items: &Items<'_>| items.values.iter().any(ScalarValue::is_null);
    if !is_merged_by_library || has_null(&first) || has_null(&second) {
        return Ok(None);
    }
    if first.of != second.of {
        // The library may find them the same when it has moved the cast to the items.
        let both = binary_expr(left.clone(), op, right.clone());
        return when(first.of.clone().is_null(), null()).otherwise(both).map(Some);
    }
    let is_and = op == Operator::And;
    let negated =
        if is_and { first.negated && second.negated } else { first.negated || second.negated };
    let mut values = first.values;
    match (first.negated, second.negated) {
        (one, other) if one == other && one == is_and => {
            values.extend(second.values);
        }
        (one, other) if one == other => values.retain(|value| second.values.contains(value)),
        // Those of the list that the result is like.
        (one, _) if one == negated => values.retain(|value| !second.values.contains(value)),
        _ => {
            let others = std::mem::replace(&mut values, second.values);
            values.retain(|value| !others.contains(value));
        }
    }
    let mut items: Vec<Expr> = Vec::with_capacity(values.len());
    let mut seen = std::collections::HashSet::new();
    items.extend(values.into_iter().filter(|value| seen.insert(value.clone())).map(lit));
    let of = first.of.clone();
    Ok(Some(match (items.is_empty(), negated) {
        (false, _) => of.in_list(items, negated),
        (true, false) => binary_expr(of.is_null(), Operator::And, null()),
        (true, true) => binary_expr(of.is_not_null(), Operator::Or, null()),
    }))
}

/// An expression without the casts around it: the library compares lists without them.
fn without_casts(expr: &Expr) -> &Expr {
    match expr {
        Expr::Cast(cast) => without_casts(&cast.expr),
        Expr::TryCast(cast) => without_casts(&cast.expr),
        other => other,
    }
}

/// The value of a constant, in the type that it is cast to.
fn constant(expr: &Expr) -> Option<ScalarValue> {
    match expr {
        Expr::Literal(value, _) => Some(value.clone()),
        Expr::Cast(Cast { expr, field }) => constant(expr)?.cast_to(field.data_type()).ok(),
        _ => None,
    }
}
