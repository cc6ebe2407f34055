//! The aggregates that statements may call.
//!
//! A SELECT with one of them and without GROUP BY has one row: `SELECT round(avg(x), 2) FROM events`.

use std::ops::ControlFlow;

use datafusion_sql::sqlparser::ast::{Expr, Query, SelectItem, Visit as _, Visitor};

use super::parts::name_of;

/// Their names, of which the library offers those that it has.
pub const AGGREGATES: &[&str] = &[
    "count",
    "sum",
    "min",
    "max",
    "avg",
    "median",
    "stddev",
    "stddev_pop",
    "var",
    "var_pop",
    "corr",
    "covar_pop",
    "covar_samp",
    "approx_distinct",
    "approx_median",
    "approx_percentile_cont",
    "approx_percentile_cont_with_weight",
    "percentile_cont",
    "array_agg",
    "string_agg",
    "bool_and",
    "bool_or",
    "bit_and",
    "bit_or",
    "bit_xor",
    "first_value",
    "last_value",
    "nth_value",
    "grouping",
    "regr_avgx",
    "regr_avgy",
    "regr_count",
    "regr_intercept",
    "regr_r2",
    "regr_slope",
    "regr_sxx",
    "regr_sxy",
    "regr_syy",
];

/// Whether one of the columns of a SELECT is computed of all its rows. Windows and subqueries have rows of their own.
pub fn are_in(columns: &[SelectItem]) -> bool {
    columns.iter().any(|column| column.visit(&mut Search { queries: 0 }).is_break())
}

struct Search {
    /// Subqueries that are open.
    queries: usize,
}

impl Visitor for Search {
    type Break = ();

    fn pre_visit_query(&mut self, _: &Query) -> ControlFlow<()> {
        self.queries += 1;
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, _: &Query) -> ControlFlow<()> {
        self.queries -= 1;
        ControlFlow::Continue(())
    }

    fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<()> {
        match expr {
            Expr::Function(function)
                if self.queries == 0
                    && function.over.is_none()
                    && AGGREGATES.contains(&&*name_of(function)) =>
            {
                ControlFlow::Break(())
            }
            _ => ControlFlow::Continue(()),
        }
    }
}
