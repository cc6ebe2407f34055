//! The aggregates, and the functions of rows around a row, that statements may call.
//!
//! A SELECT with an aggregate and without GROUP BY has one row: `SELECT round(avg(x), 2) FROM events`.

use std::ops::ControlFlow;

use datafusion_sql::sqlparser::ast::{Expr, Function, Query, SelectItem, Visit as _, Visitor};

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

/// Functions of the rows around a row, beside aggregates.
pub const WINDOWS: &[&str] = &[
    "row_number",
    "rank",
    "dense_rank",
    "percent_rank",
    "cume_dist",
    "ntile",
    "lag",
    "lead",
    "first_value",
    "last_value",
    "nth_value",
];

/// Whether one of the columns of a SELECT is computed of all its rows. Windows and subqueries have rows of their own.
pub fn has_aggregate(columns: &[SelectItem]) -> bool {
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

/// What a function is called, without quotes.
pub fn name_of(function: &Function) -> String {
    let name = function.name.0.last().and_then(|part| part.as_ident());
    name.map(|name| name.value.to_lowercase()).unwrap_or_default()
}
