//! Changing expressions of each `SELECT` of a statement, but not those of queries within them, which are changed as their own.
//!
//! ```text
//! SELECT EXISTS (SELECT a FROM t WHERE b) AS e FROM u
//!   each_select       first SELECT a FROM t WHERE b, then SELECT EXISTS (…) AS e FROM u
//!   each_own_expr     of the columns of the outer one: EXISTS (…), and neither a nor b
//! ```

use std::ops::ControlFlow;

use datafusion_sql::sqlparser::ast::{Expr, Query, Select, VisitMut, VisitorMut};

/// Changes each `SELECT` of a query, those within another one first.
/// All of them are visited, in FROM, in conditions and in `WITH`; the tree is changed in place.
pub fn each_select(query: &mut Query, change: impl FnMut(&mut Select)) {
    let _: ControlFlow<()> = query.visit(&mut Selects(change));
}

/// Changes the expressions in a part of a `SELECT`, parts of an expression before it.
///
/// The part is what the caller hands over, for instance the list of columns: `a + lower(b)` calls `change` with `a`, `b`, `lower(b)` and `a + lower(b)`.
/// What `change` puts in the place of an expression is not visited again.
pub fn each_own_expr(part: &mut impl VisitMut, change: impl FnMut(&mut Expr)) {
    let _: ControlFlow<()> = part.visit(&mut OwnExprs { change, queries: 0 });
}

/// Visits each SELECT once all that is within it has been visited.
struct Selects<F>(F);

impl<F: FnMut(&mut Select)> VisitorMut for Selects<F> {
    type Break = ();

    fn post_visit_select(&mut self, select: &mut Select) -> ControlFlow<()> {
        (self.0)(select);
        ControlFlow::Continue(())
    }
}

/// Visits expressions, but not those of queries: `queries` is above zero while one is open.
struct OwnExprs<F> {
    change: F,
    /// How many queries an expression lies within.
    queries: usize,
}

impl<F: FnMut(&mut Expr)> VisitorMut for OwnExprs<F> {
    type Break = ();

    fn pre_visit_query(&mut self, _: &mut Query) -> ControlFlow<()> {
        self.queries += 1;
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, _: &mut Query) -> ControlFlow<()> {
        self.queries -= 1;
        ControlFlow::Continue(())
    }

    fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
        if self.queries == 0 {
            (self.change)(expr);
        }
        ControlFlow::Continue(())
    }
}
