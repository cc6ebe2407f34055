//! `EXISTS` as a value: how many rows there are, and whether that is more than none.
//!
//! ```text
//! CASE WHEN EXISTS (SELECT 1 FROM events x WHERE x.user_id = u.user_id) THEN …
//! CASE WHEN (SELECT count(*) FROM events x WHERE x.user_id = u.user_id) > 0 THEN …
//! ```
//!
//! The library answers it in conditions alone, where rows are left out; a subquery for one value it answers everywhere.
//!
//! With `NOT` the comparison is `= 0`. Which of them are rewritten depends on where `EXISTS` stands and on what the subquery selects:
//!
//! ```text
//! SELECT EXISTS (SELECT 1 FROM t …) AS e            yes
//! SELECT … WHERE EXISTS (SELECT 1 FROM t …)         no: in a condition the library makes a semi join of it
//! SELECT EXISTS (SELECT count(*) FROM t)            no: an aggregate has a row even where t has none
//! SELECT EXISTS (SELECT a FROM t GROUP BY a)        no: count(*) would be one row for each group
//! SELECT EXISTS (SELECT a FROM t OFFSET 5)          no: count(*) would come before OFFSET
//! ```
//!
//! As a value, those that stay are refused later: `IN (SELECT …), and EXISTS over groups or with a LIMIT, are answered in WHERE, HAVING and ON, and not as a
//! value; …` (`refuse.rs`).

use datafusion_sql::sqlparser::ast::{
    BinaryOperator, Expr, Function, FunctionArg, FunctionArgExpr, FunctionArgumentList,
    FunctionArguments, GroupByExpr, Ident, ObjectName, Query, SelectItem, SetExpr, Value,
};

use super::own_exprs::{each_own_expr, each_select};

/// Counts rows where columns of a `SELECT` ask whether there are any.
///
/// Only the columns of each `SELECT` are changed, also of those within subqueries; conditions keep their `EXISTS`.
pub fn count_rows(query: &mut Query) {
    each_select(query, |select| each_own_expr(&mut select.projection, count_instead));
}

/// Puts a comparison of a count with 0 in the place of `EXISTS`, in brackets: it may be the operand of anything.
fn count_instead(expr: &mut Expr) {
    if let Expr::Exists { subquery, negated } = expr
        && let Some(count) = counted(subquery)
    {
        let op = if *negated { BinaryOperator::Eq } else { BinaryOperator::Gt };
        let left = Box::new(Expr::Subquery(Box::new(count)));
        let right = Box::new(Expr::value(Value::Number("0".to_owned(), false)));
        *expr = Expr::Nested(Box::new(Expr::BinaryOp { left, op, right }));
    }
}

/// A query that counts the rows of another one; nothing where these are groups, or only some of the rows.
///
/// `SELECT DISTINCT t.a FROM t WHERE … ORDER BY a` becomes `SELECT count(*) FROM t WHERE …`: neither `DISTINCT` nor an order changes whether there
/// is a row, and the library takes no order over a count.
fn counted(query: &Query) -> Option<Query> {
    let SetExpr::Select(select) = &*query.body else { return None };
    // A column or a constant for each row. Anything else might be an aggregate, which makes one row of many or of none.
    let is_plain = |item: &SelectItem| match item {
        SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. } => {
            matches!(expr, Expr::Value(_) | Expr::Identifier(_) | Expr::CompoundIdentifier(_))
        }
        SelectItem::Wildcard(_) | SelectItem::QualifiedWildcard(..) => true,
        SelectItem::ExprWithAliases { .. } => false,
    };
    let is_of_rows = query.limit_clause.is_none()
        && query.fetch.is_none()
        && select.having.is_none()
        && select.qualify.is_none()
        && matches!(&select.group_by, GroupByExpr::Expressions(exprs, _) if exprs.is_empty())
        && select.projection.iter().all(is_plain);
    if !is_of_rows {
        return None;
    }
    let mut select = select.clone();
    select.distinct = None;
    select.projection = vec![SelectItem::UnnamedExpr(Expr::Function(count_of_all()))];
    let body = Box::new(SetExpr::Select(select));
    Some(Query { body, order_by: None, ..query.clone() })
}

/// The call `count(*)`.
fn count_of_all() -> Function {
    let args = vec![FunctionArg::Unnamed(FunctionArgExpr::Wildcard)];
    Function {
        name: ObjectName::from(vec![Ident::new("count")]),
        uses_odbc_syntax: false,
        parameters: FunctionArguments::None,
        args: FunctionArguments::List(FunctionArgumentList {
            duplicate_treatment: None,
            args,
            clauses: Vec::new(),
        }),
        filter: None,
        null_treatment: None,
        over: None,
        within_group: Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use datafusion_sql::sqlparser::ast::Statement;

    use crate::gate::admit;

    #[test]
    fn rows_are_counted_where_a_column_asks_for_any() {
        for (written, counts) in [
            ("SELECT EXISTS (SELECT 1 FROM t WHERE t.a = u.a) AS e FROM u", true),
            (
                "SELECT CASE WHEN NOT EXISTS (SELECT DISTINCT t.a FROM t ORDER BY a) THEN 1 END AS e FROM u",
                true,
            ),
            ("SELECT u.a FROM u WHERE EXISTS (SELECT 1 FROM t WHERE t.a = u.a)", false),
            ("SELECT (SELECT max(a) FROM t WHERE EXISTS (SELECT * FROM v)) AS e FROM u", false),
            ("SELECT EXISTS (SELECT count(*) FROM t) AS e FROM u", false),
            ("SELECT EXISTS (SELECT a FROM t GROUP BY a) AS e FROM u", false),
            ("SELECT EXISTS (SELECT a FROM t OFFSET 5) AS e FROM u", false),
        ] {
            let Statement::Query(query) = admit(written).unwrap() else { panic!("a query") };
            let read = query.to_string();
            assert_eq!(!read.contains("EXISTS ("), counts, "{written}: {read}");
        }
    }
}
