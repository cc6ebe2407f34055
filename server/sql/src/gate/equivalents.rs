//! Expressions of PostgreSQL as others that the library has.
//!
//! ```text
//! user_id = ANY (SELECT user_id FROM …)            user_id IN (SELECT user_id FROM …)
//! tenant_id <> ALL (SELECT …)                      tenant_id NOT IN (SELECT …)
//! date(timestamp)                                  CAST(timestamp AS DATE)
//! timestamp - 3 * INTERVAL '1 day'                 timestamp - INTERVAL '3 day'
//! substring(user_id FROM '[0-9]+$')                (regexp_match(user_id, '([0-9]+$)'))[1]
//! regr_r2(y, x)                                    CASE WHEN regr_syy(y, x) = 0 AND regr_sxx(y, x) > 0 THEN 1.0 ELSE regr_r2(y, x) END
//! ```
//!
//! Of a pattern with groups PostgreSQL shows the first one, as `regexp_match` does. A number of intervals that stands in a column is left as it is:
//! the library has no product of these.

use std::ops::ControlFlow;

use datafusion_sql::sqlparser::{
    ast::{
        AccessExpr, BinaryOperator, CastKind, DataType, Expr, Function, FunctionArg,
        FunctionArgExpr, FunctionArgumentList, FunctionArguments, Ident, Interval, ObjectName,
        Query, Subscript, Value, ValueWithSpan, VisitMut as _, VisitorMut,
    },
    dialect::PostgreSqlDialect,
    parser::Parser,
};

use super::{
    literals::{literal, text_of, without_brackets},
    offered::name_of,
};

/// Writes `= ANY` and `<> ALL` of a subquery as `IN`, before subqueries are looked at.
pub fn write_any_as_in(query: &mut Query) {
    let _: ControlFlow<()> = query.visit(&mut Any);
}

/// Writes the other expressions, when columns have their names.
pub fn write_equivalents(query: &mut Query) {
    let _: ControlFlow<()> = query.visit(&mut Equivalents);
}

struct Any;

impl VisitorMut for Any {
    type Break = ();

    fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
        any_as_in(expr);
        ControlFlow::Continue(())
    }
}

struct Equivalents;

impl VisitorMut for Equivalents {
    type Break = ();

    fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
        equivalent(expr);
        ControlFlow::Continue(())
    }
}

/// In a function of its own: a chain of thousands of operators, which is refused later, is as many frames of the visitor.
#[inline(never)]
fn any_as_in(expr: &mut Expr) {
    let (left, right, negated) = match expr {
        Expr::AnyOp { left, compare_op: BinaryOperator::Eq, right, .. } => (left, right, false),
        Expr::AllOp { left, compare_op: BinaryOperator::NotEq, right } => (left, right, true),
        _ => return,
    };
    if let Expr::Subquery(subquery) = without_brackets(right) {
        let (left, subquery) = (left.clone(), subquery.clone());
        *expr = Expr::InSubquery { expr: left, subquery, negated };
    }
}

#[inline(never)]
fn equivalent(expr: &mut Expr) {
    let known = match &*expr {
        Expr::Function(function) if name_of(function) == "date" => date(function),
        Expr::Function(function) if name_of(function) == "regr_r2" => explained(function),
        Expr::BinaryOp { left, op: BinaryOperator::Multiply, right } => {
            multiple(left, right).or_else(|| multiple(right, left))
        }
        Expr::Substring { expr, substring_from: Some(from), substring_for: None, .. } => {
            part_of_pattern(expr, from)
        }
        _ => None,
    };
    if let Some(known) = known {
        *expr = known;
    }
}

/// The day of a time.
fn date(function: &Function) -> Option<Expr> {
    let FunctionArguments::List(list) = &function.args else { return None };
    let [FunctionArg::Unnamed(FunctionArgExpr::Expr(time))] = &*list.args else { return None };
    let (kind, expr) = (CastKind::Cast, Box::new(time.clone()));
    Some(Expr::Cast { kind, expr, data_type: DataType::Date, array: false, format: None })
}

/// How much of `y` a line explains: all of it where `y` is always the same, as in PostgreSQL; the library divides by nothing then.
fn explained(function: &Function) -> Option<Expr> {
    let called = |name: &str| {
        let name = ObjectName::from(vec![Ident::new(name)]);
        Expr::Function(Function { name, ..function.clone() })
    };
    let (of_x, of_y, share) = (called("regr_sxx"), called("regr_syy"), called("regr_r2"));
    let text = format!("CASE WHEN {of_y} = 0 AND {of_x} > 0 THEN 1.0 ELSE {share} END");
    Parser::new(&PostgreSqlDialect {}).try_with_sql(&text).ok()?.parse_expr().ok()
}

/// So many of an interval of one unit.
fn multiple(number: &Expr, interval: &Expr) -> Option<Expr> {
    let Expr::Value(ValueWithSpan { value: Value::Number(number, _), .. }) =
        without_brackets(number)
    else {
        return None;
    };
    let number: i64 = number.parse().ok()?;
    let Expr::Interval(interval) = without_brackets(interval) else { return None };
    let text = literal(&interval.value)?;
    let (count, unit) = text.trim().split_once(' ').unwrap_or((text.trim(), ""));
    let is_one_unit = unit.trim().bytes().all(|byte| byte.is_ascii_alphabetic());
    let count = count.parse::<i64>().ok().filter(|_| is_one_unit)?.checked_mul(number)?;
    let value = Box::new(text_of(format!("{count} {unit}").trim_end().to_owned()));
    Some(Expr::Interval(Interval { value, ..interval.clone() }))
}

/// The first part of a text that a pattern describes.
fn part_of_pattern(text: &Expr, pattern: &Expr) -> Option<Expr> {
    let pattern = literal(pattern)?;
    // Of two groups, one of which is met, the library shows that one and PostgreSQL the first.
    if pattern.contains('(') && pattern.contains('|') {
        return None;
    }
    let pattern = match pattern.contains('(') {
        true => pattern.to_owned(),
        false => format!("({pattern})"),
    };
    let argument = |expr: Expr| FunctionArg::Unnamed(FunctionArgExpr::Expr(expr));
    let args = FunctionArgumentList {
        duplicate_treatment: None,
        args: vec![argument(text.clone()), argument(text_of(pattern))],
        clauses: Vec::new(),
    };
    let called = Expr::Function(Function {
        name: ObjectName::from(vec![Ident::new("regexp_match")]),
        uses_odbc_syntax: false,
        parameters: FunctionArguments::None,
        args: FunctionArguments::List(args),
        filter: None,
        null_treatment: None,
        over: None,
        within_group: Vec::new(),
    });
    let first = Expr::Value(Value::Number("1".to_owned(), false).into());
    Some(Expr::CompoundFieldAccess {
        root: Box::new(Expr::Nested(Box::new(called))),
        access_chain: vec![AccessExpr::Subscript(Subscript::Index { index: first })],
    })
}

#[cfg(test)]
mod tests {
    use datafusion_sql::sqlparser::ast::Statement;

    use crate::gate::admit;

    #[test]
    fn expressions_are_those_that_the_library_has() {
        for (written, meant) in [
            ("a = ANY (SELECT b FROM u)", "a IN (SELECT b FROM u)"),
            ("a <> ALL (SELECT b FROM u)", "a NOT IN (SELECT b FROM u)"),
            ("date(a) = '2026-11-13'", "CAST(a AS DATE) = '2026-11-13'"),
            ("a > b - 3 * INTERVAL '2 days'", "a > b - INTERVAL '6 days'"),
            ("a > b - (INTERVAL '1' DAY) * 7", "a > b - INTERVAL '7' DAY"),
            ("a > b - 2 * INTERVAL '1 day 2 hours'", "a > b - 2 * INTERVAL '1 day 2 hours'"),
            ("a > b - n * INTERVAL '1 day'", "a > b - n * INTERVAL '1 day'"),
            ("substring(a FROM '[0-9]+$') = '7'", "(regexp_match(a, '([0-9]+$)'))[1] = '7'"),
            ("substring(a FROM 'x([0-9])') = '7'", "(regexp_match(a, 'x([0-9])'))[1] = '7'"),
            ("substring(a FROM '(x)|(y)') = '7'", "SUBSTRING(a FROM '(x)|(y)') = '7'"),
            ("substring(a FROM 2 FOR 3) = '7'", "SUBSTRING(a FROM 2 FOR 3) = '7'"),
        ] {
            let statement = admit(&format!("SELECT 1 FROM t WHERE {written}")).unwrap();
            let Statement::Query(query) = statement else { panic!("a query") };
            let text = query.to_string();
            assert!(text.ends_with(&format!("WHERE {meant}")), "{written}: {text}");
        }
    }
}
