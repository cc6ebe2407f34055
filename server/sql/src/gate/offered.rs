//! The aggregates, and the functions of rows around a row, that statements may call.
//!
//! A SELECT with an aggregate and without GROUP BY has one row: `SELECT round(avg(x), 2) FROM events`.
//!
//! The gate needs these names before anything is planned: to see that the statement above has one row, so that it may be joined without an equality
//! (`bounds.rs`), and which functions take no `FILTER` with `OVER` (`parts.rs`). The session offers the functions of the same names
//! (`session/functions.rs`). Aliases of the library are not in the lists: a statement may call `stddev_samp` for `stddev`, but of `SELECT
//! stddev_samp(x) FROM events` it is not known here that it has one row.
//!
//! ```text
//! round(avg(x), 2)                        has an aggregate
//! sum(x) OVER (ORDER BY t)                has none: a window has a value for each row
//! (SELECT max(x) FROM events)             has none: the subquery has rows of its own
//! ```

use std::ops::ControlFlow;

use datafusion_sql::sqlparser::ast::{Expr, Function, Query, SelectItem, Visit as _, Visitor};

/// Names of the aggregates, in lower case. A test of the session checks that the library has each of them.
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

/// Other names of aggregates, by which statements may call them, in lower case.
pub const ALIASES: &[&str] = &[
    "approx_percentile_merge",
    "covar",
    "every",
    "mean",
    "quantile_cont",
    "stddev_samp",
    "var_population",
    "var_samp",
    "var_sample",
];

/// Names of the window functions, in lower case. Aggregates may be called with `OVER`, too; `first_value`, `last_value` and `nth_value` are both.
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

/// Whether a function of this name is computed of many rows, whatever name of it that is: `avg`, `mean`.
pub fn is_aggregate(name: &str) -> bool {
    AGGREGATES.contains(&name) || ALIASES.contains(&name)
}

/// Whether one of the columns of a SELECT is computed of all its rows. Windows and subqueries have rows of their own.
/// True for `[tenant_id, count(*)]`, false for `[tenant_id]` and for `[*]`.
pub fn has_aggregate(columns: &[SelectItem]) -> bool {
    columns.iter().any(|column| column.visit(&mut Search { queries: 0 }).is_break())
}

/// Looks for an aggregate outside of subqueries, and breaks where it finds one.
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
                    && is_aggregate(&name_of(function)) =>
            {
                ControlFlow::Break(())
            }
            _ => ControlFlow::Continue(()),
        }
    }
}

/// What a function is called, without quotes.
/// `avg` for `AVG(x)` and for `"avg"(x)`. Of a name with a schema it is the last part.
pub fn name_of(function: &Function) -> String {
    let name = function.name.0.last().and_then(|part| part.as_ident());
    name.map(|name| name.value.to_lowercase()).unwrap_or_default()
}
