//! Windows by name in `QUALIFY`, which the planner knows in the columns of a `SELECT` alone.
//!
//! `… WINDOW w AS (ORDER BY n) QUALIFY sum(n) OVER w < 100` becomes `… QUALIFY sum(n) OVER (ORDER BY n) < 100`.
//!
//! A name that `WINDOW` does not define stays, and the planner refuses it. A subquery within `QUALIFY` has windows of its own: the names in it are
//! those of its own `WINDOW`, also where the outer one defines the same name.

use datafusion_sql::sqlparser::ast::{
    Expr, Ident, NamedWindowDefinition, NamedWindowExpr, Query, WindowSpec, WindowType,
};

use super::own_exprs::{each_own_expr, each_select};

/// Writes windows out where conditions name them.
///
/// `SELECT n FROM (VALUES (60), (30), (50)) t(n) WINDOW w AS (ORDER BY n) QUALIFY sum(n) OVER w < 100` then has the rows 30 and 50.
pub fn write_out(query: &mut Query) {
    each_select(query, |select| {
        let windows = &select.named_window;
        each_own_expr(&mut select.qualify, |expr| {
            if let Expr::Function(function) = expr
                && let Some(WindowType::NamedWindow(name)) = &function.over
                && let Some(window) = definition(windows, name)
            {
                function.over = Some(WindowType::WindowSpec(window.clone()));
            }
        });
    });
}

/// What a name stands for.
///
/// Names are compared as the planner does it: `w` and `W` are one name, `"W"` is another.
fn definition<'a>(windows: &'a [NamedWindowDefinition], name: &Ident) -> Option<&'a WindowSpec> {
    // As the planner compares names.
    let plain = |name: &Ident| match name.quote_style {
        Some(_) => name.value.clone(),
        None => name.value.to_lowercase(),
    };
    match &windows.iter().find(|window| plain(&window.0) == plain(name))?.1 {
        NamedWindowExpr::WindowSpec(window) => Some(window),
        // Not in this dialect.
        NamedWindowExpr::NamedWindow(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use crate::gate::admit;

    #[test]
    fn conditions_name_windows_of_their_select() {
        for (written, read) in [
            (
                "SELECT n FROM t WINDOW w AS (ORDER BY n) QUALIFY sum(n) OVER W < 100",
                "SELECT n FROM t WINDOW w AS (ORDER BY n) QUALIFY sum(n) OVER (ORDER BY n) < 100",
            ),
            (
                "SELECT n FROM t WINDOW v AS (ORDER BY n), w AS (ORDER BY m) QUALIFY rank() OVER v = 1 AND m IN (SELECT m FROM t WINDOW w AS (ORDER BY m) QUALIFY rank() OVER w = 1)",
                "SELECT n FROM t WINDOW v AS (ORDER BY n), w AS (ORDER BY m) QUALIFY rank() OVER (ORDER BY n) = 1 AND m IN (SELECT m FROM t WINDOW w AS (ORDER BY m) QUALIFY rank() OVER (ORDER BY m) = 1)",
            ),
            (
                "SELECT n FROM t WINDOW \"W\" AS (ORDER BY m), w AS (ORDER BY n) QUALIFY rank() OVER w = 1",
                "SELECT n FROM t WINDOW \"W\" AS (ORDER BY m), w AS (ORDER BY n) QUALIFY rank() OVER (ORDER BY n) = 1",
            ),
            (
                "SELECT n FROM t WINDOW v AS (ORDER BY n) QUALIFY rank() OVER w = 1",
                "SELECT n FROM t WINDOW v AS (ORDER BY n) QUALIFY rank() OVER w = 1",
            ),
        ] {
            assert_eq!(admit(written).unwrap().to_string(), read);
        }
    }
}
