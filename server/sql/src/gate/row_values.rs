//! Comparisons of rows: `(timestamp, event_id) < ('2026-11-20', 'b7')` asks for what comes before a page's first row.
//!
//! The library compares single values. As in PostgreSQL, a comparison is null where a null decides. Each comparison of rows becomes one of their
//! values, with the first one apart, by which a scan leaves out rows:
//!
//! ```text
//! (a, b) < (x, y)      a <= x AND (a < x OR b < y)
//! (a, b) = (x, y)      a = x AND b = y
//! (a, b) <> (x, y)     a <> x OR b <> y
//! (a, b) IN ((x, y))   a = x AND b = y
//! ```
//!
//! `(1, NULL) = (1, 2)` is null by these, `(2, NULL) < (1, 2)` is false, since the first values decide. Why the first comparison stands apart: of
//! `timestamp <= x AND (timestamp < x OR event_id < y)` a scan understands `timestamp <= x`, and reads no later rows; of `timestamp < x OR …` it
//! understands nothing.
//!
//! Of more values the rest is a comparison of rows again:
//!
//! ```text
//! (a, b, c) > (1, 2, 3)          a >= 1 AND (a > 1 OR b >= 2 AND (b > 2 OR c > 3))
//! (a, b) IN ((1, 2), (3, c))     (a = 1 AND b = 2) OR (a = 3 AND b = c)
//! (a, b) NOT IN ((1, NULL))      a <> 1 OR b <> NULL
//! (a, b) < (x, y, z)             stays, and is refused by the library
//! ```

use std::ops::ControlFlow;

use datafusion_sql::sqlparser::ast::{
    BinaryOperator, Expr, Query, Visit as _, VisitMut as _, Visitor, VisitorMut,
};

use inlay_sql_protocol::Refusal;

/// Parts that all comparisons of a statement may come to: values are repeated, and they may be comparisons themselves.
const PARTS_MAX: usize = 4_000;
/// Parts of these that lists of rows may come to; a longer list is the library's.
const LISTED_PARTS_MAX: usize = 1_000;
/// Values of a row.
const VALUES_MAX: usize = 16;

/// Puts comparisons of values in the place of those of rows.
///
/// Errors: rows of more than 16 values, and comparisons beyond the limit of all parts: the library would compare these as structs, where two nulls are
/// equal. An `IN` beyond the limit is the library's, for a list of values without null.
pub fn compare_values(query: &mut Query) -> Result<(), Refusal> {
    match query.visit(&mut Compare { parts: 0, listed: 0 }) {
        ControlFlow::Continue(()) => Ok(()),
        ControlFlow::Break(()) => Err(Refusal::invalid(format!(
            "rows that are compared have at most {VALUES_MAX} values, and those of a statement {PARTS_MAX} parts together"
        ))),
    }
}

struct Compare {
    /// Parts that comparisons of two rows have come to so far.
    parts: usize,
    /// Parts that lists of rows have come to so far.
    listed: usize,
}

/// Counts the parts of an expression.
struct CountNodes(usize);

impl Visitor for CountNodes {
    type Break = ();

    fn pre_visit_expr(&mut self, _: &Expr) -> ControlFlow<()> {
        self.0 += 1;
        ControlFlow::Continue(())
    }
}

impl VisitorMut for Compare {
    type Break = ();

    fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
        if let Expr::InList { expr: row, list, negated } = expr {
            let listed = self.listed;
            match self.in_list(row, list, *negated) {
                Some(compared) => *expr = Expr::Nested(Box::new(compared)),
                // The library's own comparison takes no parts.
                None => self.listed = listed,
            }
        } else if let Expr::BinaryOp { left, op, right } = expr
            && let (Expr::Tuple(left), Expr::Tuple(right)) = (&**left, &**right)
            && left.len() == right.len()
        {
            // The library compares longer rows as if null were a value.
            if left.len() > VALUES_MAX
                || !has_room(&mut self.parts, PARTS_MAX, left.iter().chain(right))
            {
                return ControlFlow::Break(());
            }
            if let Some(compared) = compared(left, op, right) {
                *expr = Expr::Nested(Box::new(compared));
            }
        }
        ControlFlow::Continue(())
    }
}

impl Compare {
    /// A list of rows as comparisons with each. The library takes a null in one for a value.
    /// `None` where one of the list is no row of the same length, or there is no room for all.
    fn in_list(&mut self, row: &Expr, list: &[Expr], negated: bool) -> Option<Expr> {
        let Expr::Tuple(row) = row else { return None };
        let rows = list.iter().map(|item| match item {
            Expr::Tuple(values) if values.len() == row.len() => Some(values.as_slice()),
            _ => None,
        });
        let rows = rows.collect::<Option<Vec<_>>>()?;
        let (compare, combine) = match negated {
            false => (BinaryOperator::Eq, BinaryOperator::Or),
            true => (BinaryOperator::NotEq, BinaryOperator::And),
        };
        let mut all: Option<Expr> = None;
        for values in rows {
            if !has_room(&mut self.listed, LISTED_PARTS_MAX, row.iter().chain(values)) {
                return None;
            }
            let one = nested(compared(row, &compare, values)?);
            all = Some(match all {
                Some(all) => binary(all, combine.clone(), one),
                None => one,
            });
        }
        all
    }
}

/// Counts what these values come to, each of which is written twice, if that is not too much together with what was `used`.
///
/// A comparison within a comparison would be doubled at each level: ten of them within each other would be a thousand copies of the innermost.
fn has_room<'a>(used: &mut usize, max: usize, values: impl Iterator<Item = &'a Expr>) -> bool {
    let mut nodes = CountNodes(0);
    for value in values {
        let _: ControlFlow<()> = value.visit(&mut nodes);
    }
    let parts = *used + 2 * nodes.0;
    let has_room = parts <= max;
    if has_room {
        *used = parts;
    }
    has_room
}

/// The comparison of two rows of the same length; `None` for operators that are no comparison.
///
/// `[a, b] < [x, y]` is `a <= x AND (a < x OR b < y)`, `[a] < [x]` is `a < x`.
fn compared(left: &[Expr], op: &BinaryOperator, right: &[Expr]) -> Option<Expr> {
    use BinaryOperator::{And, Eq, Gt, GtEq, Lt, LtEq, NotEq, Or};
    let (first, rest) = (left.split_first()?, right.split_first()?);
    let ((a, left), (x, right)) = (first, rest);
    let one = |op: BinaryOperator| binary(a.clone(), op, x.clone());
    if left.is_empty() {
        return [Eq, NotEq, Lt, LtEq, Gt, GtEq].contains(op).then(|| one(op.clone()));
    }
    let rest = compared(left, op, right)?;
    Some(match op {
        Eq => binary(one(Eq), And, rest),
        NotEq => binary(one(NotEq), Or, rest),
        Lt | LtEq => binary(one(LtEq), And, nested(binary(one(Lt), Or, rest))),
        Gt | GtEq => binary(one(GtEq), And, nested(binary(one(Gt), Or, rest))),
        _ => return None,
    })
}

fn binary(left: Expr, op: BinaryOperator, right: Expr) -> Expr {
    Expr::BinaryOp { left: Box::new(left), op, right: Box::new(right) }
}

fn nested(expr: Expr) -> Expr {
    Expr::Nested(Box::new(expr))
}

#[cfg(test)]
mod tests {
    use datafusion_sql::sqlparser::ast::Statement;

    use crate::gate::admit;

    #[test]
    fn comparisons_within_comparisons_do_not_multiply() {
        let mut inner = "a".to_owned();
        for _ in 0..14 {
            inner = format!("({inner}, 1) < (b, 1)");
        }
        let refusal = admit(&format!("SELECT 1 FROM t WHERE {inner}")).unwrap_err();
        assert!(refusal.message.contains("parts"), "{refusal:?}");
    }

    #[test]
    fn a_long_list_of_rows_leaves_room_for_comparisons_and_longer_rows_are_refused() {
        // As a worker has it: a chain of 100 terms is as many frames.
        let thread = std::thread::Builder::new().stack_size(crate::worker::STACK_BYTES);
        thread.spawn(long_lists_and_rows).unwrap().join().unwrap();
    }

    fn long_lists_and_rows() {
        let pairs = vec!["('x', 'y')"; 200].join(", ");
        let compared = vec!["(a, b) = ('x', 'y')"; 100].join(" OR ");
        admit(&format!("SELECT 1 FROM t WHERE (a, b) IN ({pairs}) AND ({compared})")).unwrap();
        let row = |value: &str| vec![value; super::VALUES_MAX + 1].join(", ");
        let refusal = admit(&format!("SELECT 1 FROM t WHERE ({}) = ({})", row("a"), row("NULL")));
        assert!(refusal.unwrap_err().message.contains("at most 16 values"));
    }

    #[test]
    fn rows_are_compared_by_their_first_values_that_differ() {
        for (written, meant) in [
            ("(a, b) < (x, y)", "(a <= x AND (a < x OR b < y))"),
            ("(a, b) >= (x, y)", "(a >= x AND (a > x OR b >= y))"),
            ("(a, b, c) > (1, 2, 3)", "(a >= 1 AND (a > 1 OR b >= 2 AND (b > 2 OR c > 3)))"),
            ("(a, b) = (x, y)", "(a = x AND b = y)"),
            ("NOT (a, b) <> (x, y) AND c", "NOT (a <> x OR b <> y) AND c"),
            ("(a, b) < (x, y, z)", "(a, b) < (x, y, z)"),
            ("(a) < (x)", "(a) < (x)"),
            ("(a, b) IN ((1, 2), (3, c))", "((a = 1 AND b = 2) OR (a = 3 AND b = c))"),
            ("(a, b) NOT IN ((1, NULL))", "((a <> 1 OR b <> NULL))"),
        ] {
            let statement = admit(&format!("SELECT 1 FROM t WHERE {written}")).unwrap();
            let Statement::Query(query) = statement else { panic!("a query") };
            assert!(query.to_string().ends_with(&format!("WHERE {meant}")), "{written}: {query}");
        }
    }
}
