//! Changing expressions of each `SELECT` of a statement, but not those of queries within them, which are changed as their own.

use std::ops::ControlFlow;

use datafusion_sql::sqlparser::ast::{Expr, Query, Select, VisitMut, VisitorMut};

/// Changes each `SELECT` of a query, those within another one first.
pub fn each_select(query: &mut Query, change: impl FnMut(&mut Select)) {
    let _: ControlFlow<()> = query.visit(&mut Selects(change));
}

/// Changes the expressions in a part of a `SELECT`, parts of an expression before it.
pub fn each_own_expr(part: &mut impl VisitMut, change: impl FnMut(&mut Expr)) {
    let _: ControlFlow<()> = part.visit(&mut OwnExprs { change, queries: 0 });
}

struct Selects<F>(F);

impl<F: FnMut(&mut Select)> VisitorMut for Selects<F> {
    type Break = ();

    fn post_visit_select(&mut self, select: &mut Select) -> ControlFlow<()> {
        (self.0)(select);
        ControlFlow::Continue(())
    }
}

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
