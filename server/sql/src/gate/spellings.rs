//! Other spellings of what the library has.
//!
//! ```text
//! plan = ANY(ARRAY['pro', 'team'])      plan IN ('pro', 'team')
//! plan <> ALL(ARRAY['pro', 'team'])     plan NOT IN ('pro', 'team')
//! mod(a, 3)                             (a % 3)
//! sign(x), every(c)                     signum(x), bool_and(c)
//! -rank() OVER (…)                      (0 - rank() OVER (…)), since the library has no negative of it
//! FETCH FIRST 10 ROWS ONLY              LIMIT 10
//! ```

use std::ops::ControlFlow;

use datafusion_sql::sqlparser::ast::{
    Array, BinaryOperator, Expr, Fetch, Function, FunctionArg, FunctionArgExpr, FunctionArguments,
    Ident, LimitClause, ObjectName, Query, UnaryOperator, Value, VisitMut as _, VisitorMut,
};

use super::{literals::without_brackets, offered::name_of};

/// Functions whose results the library calls unsigned.
const UNSIGNED: [&str; 6] =
    ["row_number", "rank", "dense_rank", "ntile", "regr_count", "approx_distinct"];

/// Writes comparisons with arrays as lists, and `FETCH` as `LIMIT`.
pub fn write_lists(query: &mut Query) {
    let _: ControlFlow<()> = query.visit(&mut Lists);
}

/// Calls functions by the names that the library knows. Columns have theirs already.
pub fn call_by_known_names(query: &mut Query) {
    let _: ControlFlow<()> = query.visit(&mut KnownNames);
}

struct Lists;

impl VisitorMut for Lists {
    type Break = ();

    fn post_visit_query(&mut self, query: &mut Query) -> ControlFlow<()> {
        let Some(Fetch { with_ties: false, percent: false, quantity }) = &query.fetch else {
            return ControlFlow::Continue(());
        };
        let limit = quantity
            .clone()
            .unwrap_or_else(|| Expr::Value(Value::Number("1".to_owned(), false).into()));
        let offset = match query.limit_clause.take() {
            None => None,
            Some(LimitClause::LimitOffset { limit: None, offset, limit_by })
                if limit_by.is_empty() =>
            {
                offset
            }
            // Both are written, which the parser refuses already.
            other => {
                query.limit_clause = other;
                return ControlFlow::Continue(());
            }
        };
        query.fetch = None;
        query.limit_clause =
            Some(LimitClause::LimitOffset { limit: Some(limit), offset, limit_by: Vec::new() });
        ControlFlow::Continue(())
    }

    fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
        let (left, right, negated) = match expr {
            Expr::AnyOp { left, compare_op: BinaryOperator::Eq, right, .. } => (left, right, false),
            Expr::AllOp { left, compare_op: BinaryOperator::NotEq, right } => (left, right, true),
            _ => return ControlFlow::Continue(()),
        };
        let array = without_brackets(right);
        // Of no values nothing is true, and `IN ()` is no SQL.
        if let Expr::Array(Array { elem, .. }) = array
            && !elem.is_empty()
        {
            *expr = Expr::InList { expr: left.clone(), list: elem.clone(), negated };
        }
        ControlFlow::Continue(())
    }
}

struct KnownNames;

impl VisitorMut for KnownNames {
    type Break = ();

    fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
        if let Expr::UnaryOp { op: UnaryOperator::Minus, expr: number } = expr
            && let Expr::Function(function) = without_brackets(number)
            && UNSIGNED.contains(&&*name_of(function))
        {
            let zero = Expr::Value(Value::Number("0".to_owned(), false).into());
            let (left, right) = (Box::new(zero), number.clone());
            let difference = Expr::BinaryOp { left, op: BinaryOperator::Minus, right };
            *expr = Expr::Nested(Box::new(difference));
        }
        let Expr::Function(function) = expr else { return ControlFlow::Continue(()) };
        let known = match &*name_of(function) {
            "mod" => {
                if let Some((dividend, divisor)) = two_arguments(function) {
                    let (left, right) = (nested(dividend), nested(divisor));
                    let op = BinaryOperator::Modulo;
                    *expr = Expr::Nested(Box::new(Expr::BinaryOp { left, op, right }));
                }
                return ControlFlow::Continue(());
            }
            "sign" => "signum",
            "every" => "bool_and",
            _ => return ControlFlow::Continue(()),
        };
        function.name = ObjectName::from(vec![Ident::new(known)]);
        ControlFlow::Continue(())
    }
}

fn nested(expr: &Expr) -> Box<Expr> {
    Box::new(Expr::Nested(Box::new(expr.clone())))
}

fn two_arguments(function: &Function) -> Option<(&Expr, &Expr)> {
    let FunctionArguments::List(list) = &function.args else { return None };
    let is_plain = list.clauses.is_empty() && list.duplicate_treatment.is_none();
    match &*list.args {
        [
            FunctionArg::Unnamed(FunctionArgExpr::Expr(first)),
            FunctionArg::Unnamed(FunctionArgExpr::Expr(second)),
        ] if is_plain && function.over.is_none() && function.filter.is_none() => {
            Some((first, second))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use datafusion_sql::sqlparser::ast::Statement;

    use crate::gate::admit;

    #[test]
    fn other_spellings_are_the_known_ones() {
        for (written, meant) in [
            (
                "SELECT b FROM t WHERE a = ANY(ARRAY['x', NULL])",
                "SELECT b FROM t WHERE a IN ('x', NULL)",
            ),
            (
                "SELECT b FROM t WHERE a <> ALL(ARRAY[1, 2])",
                "SELECT b FROM t WHERE a NOT IN (1, 2)",
            ),
            ("SELECT mod(a + 1, 3) AS m FROM t", "SELECT ((a + 1) % (3)) AS m FROM t"),
            (
                "SELECT sign(a) AS s, every(b) AS e FROM t",
                "SELECT signum(a) AS s, bool_and(b) AS e FROM t",
            ),
            (
                "SELECT a FROM t ORDER BY a OFFSET 2 FETCH FIRST 3 ROWS ONLY",
                "SELECT a FROM t ORDER BY a LIMIT 3 OFFSET 2",
            ),
            (
                "SELECT -rank() OVER (ORDER BY a) AS r FROM t",
                "SELECT (0 - rank() OVER (ORDER BY a)) AS r FROM t",
            ),
            ("SELECT a FROM t FETCH NEXT ROW ONLY", "SELECT a FROM t LIMIT 1"),
        ] {
            let Statement::Query(query) = admit(written).unwrap() else { panic!("a query") };
            assert_eq!(query.to_string(), meant);
        }
        // A name that nobody wrote is the function's.
        let Statement::Query(query) = admit("SELECT mod(a, 3) FROM t").unwrap() else { panic!() };
        assert!(query.to_string().contains("AS \"mod"), "{query}");
    }
}
