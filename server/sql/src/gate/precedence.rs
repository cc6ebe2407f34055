//! `IS DISTINCT FROM` binds more tightly than `AND`, `OR` and `NOT`.
//!
//! The parser takes all that stands behind it for what is compared: `a IS DISTINCT FROM b AND c` is read as `a IS DISTINCT FROM (b AND
//! c)`. What stands in brackets is a node of its own, so the others can be told and put right.
//!
//! ```text
//! written                                read by the parser as                       put right
//! a IS DISTINCT FROM b AND c             a IS DISTINCT FROM (b AND c)                (a IS DISTINCT FROM b) AND c
//! NOT a IS DISTINCT FROM b AND c         NOT (a IS DISTINCT FROM (b AND c))          (NOT (a IS DISTINCT FROM b)) AND c
//! p AND a IS DISTINCT FROM b OR c        p AND (a IS DISTINCT FROM (b OR c))         (p AND (a IS DISTINCT FROM b)) OR c
//! a IS DISTINCT FROM (b AND c)           the same                                    stays: brackets are a node
//! ```

use std::ops::ControlFlow;

use datafusion_sql::sqlparser::ast::{
    BinaryOperator, Expr, Query, UnaryOperator, VisitMut as _, VisitorMut,
};

/// Puts right what the parser has read in another order.
/// Whole statements, also conditions of joins and subqueries. A statement without `IS DISTINCT FROM` comes out as it went in.
pub fn put_right(query: &mut Query) {
    let _: ControlFlow<()> = query.visit(&mut Rotate);
}

/// Rotates the tree where an operator has one below it, as its last operand, that binds less tightly.
///
/// ```text
/// IS DISTINCT FROM            AND
///  ├ a                         ├ IS DISTINCT FROM
///  └ AND                  →    │  ├ a
///     ├ b                      │  └ b
///     └ c                      └ c
/// ```
struct Rotate;

impl VisitorMut for Rotate {
    type Break = ();

    /// Parts have been put right before.
    fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
        let binds = match expr {
            Expr::IsDistinctFrom(..) | Expr::IsNotDistinctFrom(..) => binds_more_than_and,
            Expr::UnaryOp { op: UnaryOperator::Not, .. } => binds_more_than_and,
            Expr::BinaryOp { op: BinaryOperator::And, .. } => binds_more_than_or,
            _ => return ControlFlow::Continue(()),
        };
        let Some(last) = last_part(expr) else { return ControlFlow::Continue(()) };
        // The last operand is taken out, and a placeholder stands in its place: parts of a tree are exchanged without copies.
        let mut tree = std::mem::replace(last, placeholder());
        if binds(&tree) {
            *last = tree;
            return ControlFlow::Continue(());
        }
        // The first part of what was read as the last part is that; all of it stands above.
        let mut first = &mut tree;
        while !binds(first) {
            let Expr::BinaryOp { left, .. } = first else { break };
            first = left;
        }
        std::mem::swap(last, first);
        *first = std::mem::replace(expr, placeholder());
        *expr = tree;
        ControlFlow::Continue(())
    }
}

/// Stands where a part was taken out, and is replaced before the visitor goes on. It is a star, which has no parts.
fn placeholder() -> Expr {
    Expr::Wildcard(datafusion_sql::sqlparser::ast::helpers::attached_token::AttachedToken::empty())
}

/// What an expression ends with.
/// Of `a AND b = c` that is `b = c`, the right operand of `AND`.
fn last_part(expr: &mut Expr) -> Option<&mut Expr> {
    match expr {
        Expr::IsDistinctFrom(_, last) | Expr::IsNotDistinctFrom(_, last) => Some(last),
        Expr::UnaryOp { expr, .. } => Some(expr),
        Expr::BinaryOp { right, .. } => Some(right),
        _ => None,
    }
}

/// Whether an expression can be an operand of `AND` without brackets.
fn binds_more_than_or(expr: &Expr) -> bool {
    !matches!(expr, Expr::BinaryOp { op: BinaryOperator::Or | BinaryOperator::Xor, .. })
}

/// Whether it can be an operand of `NOT` or `IS DISTINCT FROM` without brackets.
fn binds_more_than_and(expr: &Expr) -> bool {
    binds_more_than_or(expr) && !matches!(expr, Expr::BinaryOp { op: BinaryOperator::And, .. })
}

#[cfg(test)]
mod tests {
    use datafusion_sql::sqlparser::ast::{SetExpr, Statement};

    use super::*;
    use crate::gate::admit;

    /// A condition with brackets around each of its parts.
    fn shape(expr: &Expr) -> String {
        match expr {
            Expr::Nested(inner) => shape(inner),
            Expr::BinaryOp { left, op, right } => {
                format!("({} {op} {})", shape(left), shape(right))
            }
            Expr::UnaryOp { op, expr } => format!("({op} {})", shape(expr)),
            Expr::IsDistinctFrom(left, right) => format!("({} <> {})", shape(left), shape(right)),
            Expr::IsNotDistinctFrom(left, right) => {
                format!("({} == {})", shape(left), shape(right))
            }
            other => other.to_string(),
        }
    }

    #[test]
    fn and_or_and_not_bind_less() {
        for (written, meant) in [
            ("a IS DISTINCT FROM b AND c", "((a <> b) AND c)"),
            ("a IS NOT DISTINCT FROM b AND c OR d", "(((a == b) AND c) OR d)"),
            ("p AND a IS DISTINCT FROM b OR c", "((p AND (a <> b)) OR c)"),
            ("NOT a IS DISTINCT FROM b AND c", "((NOT (a <> b)) AND c)"),
            ("p OR NOT a IS DISTINCT FROM b = c AND d", "(p OR ((NOT (a <> (b = c))) AND d))"),
            (
                "a IS DISTINCT FROM b OR c IS DISTINCT FROM d AND e",
                "((a <> b) OR ((c <> d) AND e))",
            ),
            ("a IS DISTINCT FROM b AND c AND d OR e", "((((a <> b) AND c) AND d) OR e)"),
            ("a IS DISTINCT FROM (b AND c)", "(a <> (b AND c))"),
            ("NOT (a IS DISTINCT FROM b AND c)", "(NOT ((a <> b) AND c))"),
            ("a AND b OR NOT c AND d", "((a AND b) OR ((NOT c) AND d))"),
        ] {
            let statement = admit(&format!("SELECT 1 FROM t WHERE {written}")).unwrap();
            let Statement::Query(query) = statement else { panic!("a query") };
            let SetExpr::Select(select) = *query.body else { panic!("a select") };
            assert_eq!(shape(&select.selection.unwrap()), meant, "{written}");
        }
    }
}
