//! Joins: few, and each by an equality, or with a single row.
//!
//! Without an equality every row meets every other one; a million of each would run for ever.

use datafusion::sql::sqlparser::ast::{
    BinaryOperator, Expr, GroupByExpr, JoinConstraint, JoinOperator, LimitClause, Query, Select,
    SelectItem, SetExpr, TableFactor, Value,
};

use crate::message::Refusal;

/// Joins of a statement.
pub const JOINS_MAX: usize = 4;
const HINT: &str =
    "join ON an equality, or with a subquery of one row: aggregates without GROUP BY, or LIMIT 1";

/// Number of joins of a SELECT.
///
/// Errors: when one lets every row meet every other.
pub fn check(select: &Select) -> Result<usize, Refusal> {
    let mut joins = 0;
    // Tables side by side are joined by what WHERE says.
    let wide = select.from.iter().filter(|from| !is_one_row(&from.relation)).count();
    let equal = select.selection.as_ref().map_or(0, equalities);
    if wide > equal + 1 {
        let message = "tables side by side need an equality in WHERE for each";
        return Err(Refusal::invalid(message).hint(HINT));
    }
    for (at, from) in select.from.iter().enumerate() {
        joins += usize::from(at > 0) + from.joins.len();
        for join in &from.joins {
            check_factor(&join.relation)?;
            check_join(&join.join_operator, &join.relation, &from.relation)?;
        }
        check_factor(&from.relation)?;
    }
    Ok(joins)
}

fn check_factor(factor: &TableFactor) -> Result<(), Refusal> {
    let TableFactor::NestedJoin { table_with_joins, .. } = factor else { return Ok(()) };
    for join in &table_with_joins.joins {
        check_factor(&join.relation)?;
        check_join(&join.join_operator, &join.relation, &table_with_joins.relation)?;
    }
    check_factor(&table_with_joins.relation)
}

fn check_join(
    operator: &JoinOperator,
    right: &TableFactor,
    left: &TableFactor,
) -> Result<(), Refusal> {
    let constraint = match operator {
        JoinOperator::Join(constraint)
        | JoinOperator::Inner(constraint)
        | JoinOperator::Left(constraint)
        | JoinOperator::LeftOuter(constraint)
        | JoinOperator::Right(constraint)
        | JoinOperator::RightOuter(constraint)
        | JoinOperator::FullOuter(constraint)
        | JoinOperator::Semi(constraint)
        | JoinOperator::LeftSemi(constraint)
        | JoinOperator::RightSemi(constraint)
        | JoinOperator::Anti(constraint)
        | JoinOperator::LeftAnti(constraint)
        | JoinOperator::RightAnti(constraint)
        | JoinOperator::CrossJoin(constraint) => constraint,
        _ => return Err(Refusal::invalid("a join of this kind is not answered here")),
    };
    let has_equality = match constraint {
        JoinConstraint::On(expr) => equalities(expr) > 0,
        JoinConstraint::Using(names) => !names.is_empty(),
        JoinConstraint::Natural => true,
        JoinConstraint::None => false,
    };
    if has_equality || is_one_row(right) || is_one_row(left) {
        return Ok(());
    }
    Err(Refusal::invalid("a join needs an equality").hint(HINT))
}

/// Equalities between two expressions that hold for all rows: those not below OR or NOT.
fn equalities(expr: &Expr) -> usize {
    match expr {
        Expr::Nested(inner) => equalities(inner),
        Expr::BinaryOp { left, op: BinaryOperator::And, right } => {
            equalities(left) + equalities(right)
        }
        Expr::BinaryOp { left, op: BinaryOperator::Eq, right } => {
            usize::from(!is_constant(left) && !is_constant(right))
        }
        _ => 0,
    }
}

fn is_constant(expr: &Expr) -> bool {
    match expr {
        Expr::Value(_) | Expr::TypedString(_) => true,
        Expr::Nested(inner)
        | Expr::Cast { expr: inner, .. }
        | Expr::UnaryOp { expr: inner, .. } => is_constant(inner),
        _ => false,
    }
}

/// Whether something has one row at most, whatever the tables hold.
fn is_one_row(factor: &TableFactor) -> bool {
    matches!(factor, TableFactor::Derived { subquery, .. } if has_one_row(subquery))
}

fn has_one_row(query: &Query) -> bool {
    let is_one = |expr: &Expr| match expr {
        Expr::Value(value) => matches!(&value.value, Value::Number(number, _) if number == "1"),
        _ => false,
    };
    let limit = match &query.limit_clause {
        Some(LimitClause::LimitOffset { limit, .. }) => limit.as_ref(),
        _ => None,
    };
    if limit.is_some_and(is_one) {
        return true;
    }
    let SetExpr::Select(select) = &*query.body else { return false };
    let is_grouped = match &select.group_by {
        GroupByExpr::All(_) => true,
        GroupByExpr::Expressions(exprs, _) => !exprs.is_empty(),
    };
    let is_aggregate = |item: &SelectItem| match item {
        SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. } => {
            matches!(expr, Expr::Function(function)
                if function.over.is_none() && AGGREGATES.contains(&&*function.name.to_string().to_lowercase()))
        }
        _ => false,
    };
    select.from.is_empty() || !is_grouped && select.projection.iter().all(is_aggregate)
}

/// Aggregates whose SELECT has one row.
const AGGREGATES: [&str; 9] = [
    "count",
    "sum",
    "min",
    "max",
    "avg",
    "median",
    "stddev",
    "approx_distinct",
    "approx_percentile_cont",
];
