//! Expressions that select one of several columns by conditions: `CASE WHEN timestamp < … THEN a ELSE -b END`.
//!
//! Their sum is that of each column in the groups in which its conditions hold:
//!
//! ```text
//! sum(CASE WHEN tenant_id = 'acme' THEN ms ELSE -ms END) … GROUP BY event_name
//!
//! branches                              parts, over groups by event and tenant
//! ms, where tenant_id = 'acme'          sum(CASE WHEN tenant_id = 'acme' THEN "sum of measure 0" END)
//! -ms, where that IS NOT TRUE           sum(CASE WHEN tenant_id = 'acme' IS NOT TRUE THEN "sum of measure 0" END)
//!
//! the first minus the second, null where both are
//! ```
//!
//! `CASE tenant_id WHEN 'acme' THEN …`, `a + b` and `coalesce(a, b)` are no such expressions.

use datafusion_expr::{Case, Expr};

/// Branches of an expression, at most.
const BRANCHES_MAX: usize = 8;

/// What an expression is where some conditions hold.
pub struct Branch<'e> {
    /// Conditions that hold, the negations of those of earlier branches among them.
    pub conditions: Vec<Expr>,
    /// The column that the expression is there.
    pub of: &'e Expr,
    /// Whether the expression is its negative.
    pub is_negative: bool,
}

/// The columns of which an expression is one, or the negative of one; nothing where it may be something else, is null everywhere,
/// or has more branches than [`BRANCHES_MAX`].
pub fn branches(expr: &Expr) -> Option<Vec<Branch<'_>>> {
    let mut found = Vec::new();
    (find(expr, &[], false, &mut found) && !found.is_empty()).then_some(found)
}

/// Appends the branches of an expression that is looked at where some conditions hold. False where it may be something else.
///
/// A null has no branch: it adds nothing to a sum. Two minus signs are none.
fn find<'e>(
    expr: &'e Expr,
    conditions: &[Expr],
    is_negative: bool,
    found: &mut Vec<Branch<'e>>,
) -> bool {
    if found.len() >= BRANCHES_MAX {
        return false;
    }
    match expr {
        Expr::Alias(alias) => find(&alias.expr, conditions, is_negative, found),
        Expr::Negative(inner) => find(inner, conditions, !is_negative, found),
        Expr::Literal(value, _) => value.is_null(),
        Expr::Column(_) => {
            found.push(Branch { conditions: conditions.to_vec(), of: expr, is_negative });
            true
        }
        Expr::Case(Case { expr: None, when_then_expr, else_expr }) => {
            let mut conditions = conditions.to_vec();
            for (condition, then) in when_then_expr {
                let with = [&*conditions, &[(**condition).clone()]].concat();
                if !find(then, &with, is_negative, found) {
                    return false;
                }
                conditions.push((**condition).clone().is_not_true());
            }
            let otherwise = else_expr.as_deref();
            otherwise.is_none_or(|expr| find(expr, &conditions, is_negative, found))
        }
        _ => false,
    }
}
