//! The first of a list in order is one value: `(array_agg(x ORDER BY t))[1]` is `first_value(x ORDER BY t)`.
//!
//! That is how many ask for the value of the newest row of a group. The list would be made for each group, and thrown away.
//!
//! ```text
//! (array_agg(x ORDER BY t DESC))[1]                       first_value(x ORDER BY t DESC)
//! (array_agg(x ORDER BY t) FILTER (WHERE y > 1))[1]       first_value(x ORDER BY t) FILTER (WHERE y > 1)
//! (array_agg(x ORDER BY t))[2]                            stays: there is no aggregate for the second value
//! (array_agg(x))[1]                                       stays: which value is first is not said
//! (array_agg(DISTINCT x ORDER BY x))[1]                   stays
//! (array_agg(x ORDER BY t) OVER (…))[1]                   stays: of a window it has a value for each row
//! ```
//!
//! The first value may be null, as the first entry of the list: for the newest row of all without a user, `user_id` comes back as null.

use std::ops::ControlFlow;

use datafusion_sql::sqlparser::ast::{
    AccessExpr, Expr, FunctionArgumentClause, FunctionArguments, Ident, ObjectName, Query,
    Subscript, VisitMut as _, VisitorMut,
};

use super::offered::name_of;

/// Asks for single values where lists are made for their first one.
/// Anywhere in the statement, also in conditions and subqueries.
pub fn ask_for_first_values(query: &mut Query) {
    let _: ControlFlow<()> = query.visit(&mut Replace);
}

struct Replace;

impl VisitorMut for Replace {
    type Break = ();

    fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
        if let Some(first) = first_value(expr) {
            *expr = first;
        }
        ControlFlow::Continue(())
    }
}

/// The call of `first_value` that an expression is the same as, or nothing. Arguments, order and filter are taken over as they are.
fn first_value(expr: &Expr) -> Option<Expr> {
    let Expr::CompoundFieldAccess { root, access_chain } = expr else { return None };
    let [AccessExpr::Subscript(Subscript::Index { index })] = &**access_chain else { return None };
    let mut list = &**root;
    // PostgreSQL wants brackets around the call before `[1]`; there may be several.
    while let Expr::Nested(inner) = list {
        list = inner;
    }
    let Expr::Function(function) = list else { return None };
    let FunctionArguments::List(arguments) = &function.args else { return None };
    let has_order =
        arguments.clauses.iter().any(|clause| matches!(clause, FunctionArgumentClause::OrderBy(_)));
    let is_list = name_of(function) == "array_agg"
        && has_order
        && arguments.duplicate_treatment.is_none()
        && function.over.is_none()
        && index.to_string() == "1";
    if !is_list {
        return None;
    }
    let mut function = function.clone();
    function.name = ObjectName::from(vec![Ident::new("first_value")]);
    Some(Expr::Function(function))
}

#[cfg(test)]
mod tests {
    use datafusion_sql::sqlparser::ast::Statement;

    use crate::gate::admit;

    #[test]
    fn only_the_first_of_a_list_in_order_is_a_value() {
        for (written, is_value) in [
            ("(array_agg(x ORDER BY t DESC))[1]", true),
            ("(array_agg(x ORDER BY t) FILTER (WHERE y > 1))[1]", true),
            ("(array_agg(x ORDER BY t))[2]", false),
            ("(array_agg(x))[1]", false),
            ("(array_agg(DISTINCT x ORDER BY x))[1]", false),
            ("(string_agg(x, ',' ORDER BY t))[1]", false),
            ("array_agg(x ORDER BY t)", false),
        ] {
            let statement = admit(&format!("SELECT {written} FROM t")).unwrap();
            assert!(matches!(statement, Statement::Query(_)));
            assert_eq!(statement.to_string().contains("first_value"), is_value, "{written}");
        }
    }
}
