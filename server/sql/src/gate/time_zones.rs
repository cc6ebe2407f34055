//! `t AT TIME ZONE 'Europe/Berlin'` is `timezone('Europe/Berlin', t)`, as PostgreSQL has it.
//!
//! The library casts, which reads a time with a zone and one without alike and knows no hour that comes twice
//! (`session/time_zones.rs` does).
//!
//! ```text
//! t AT TIME ZONE 'UTC' AT TIME ZONE 'Europe/Berlin'
//! timezone('Europe/Berlin', timezone('UTC', t))
//! ```
//!
//! The function is looked up by its name like any other, so a statement may also call it itself.

use std::ops::ControlFlow;

use datafusion_sql::sqlparser::ast::{
    Expr, Function, FunctionArg, FunctionArgExpr, FunctionArgumentList, FunctionArguments, Ident,
    ObjectName, Query, VisitMut as _, VisitorMut,
};

/// Writes conversions as calls.
/// The zone is the first argument and the time the second, as in PostgreSQL. The zone is checked when types are known: `there is no time zone 'Berlin'; …`.
pub fn call_function(query: &mut Query) {
    let _: ControlFlow<()> = query.visit(&mut Replace);
}

struct Replace;

impl VisitorMut for Replace {
    type Break = ();

    fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
        if let Expr::AtTimeZone { timestamp, time_zone } = expr {
            // Parts of the expression were visited before it: of two conversions the inner one is a call already.
            let argument = |expr: &Expr| FunctionArg::Unnamed(FunctionArgExpr::Expr(expr.clone()));
            let args = FunctionArgumentList {
                duplicate_treatment: None,
                args: vec![argument(time_zone), argument(timestamp)],
                clauses: Vec::new(),
            };
            *expr = Expr::Function(Function {
                name: ObjectName::from(vec![Ident::new("timezone")]),
                uses_odbc_syntax: false,
                parameters: FunctionArguments::None,
                args: FunctionArguments::List(args),
                filter: None,
                null_treatment: None,
                over: None,
                within_group: Vec::new(),
            });
        }
        ControlFlow::Continue(())
    }
}

#[cfg(test)]
mod tests {
    use crate::gate::admit;

    #[test]
    fn conversions_are_calls_wherever_they_stand() {
        let statement = admit(
            "SELECT t AT TIME ZONE 'UTC' AT TIME ZONE 'Europe/Berlin' FROM x ORDER BY (t) AT TIME ZONE 'UTC'",
        );
        let text = statement.unwrap().to_string();
        assert!(text.contains("timezone('Europe/Berlin', timezone('UTC', t))"), "{text}");
        assert!(text.ends_with("ORDER BY timezone('UTC', (t))"), "{text}");
    }
}
