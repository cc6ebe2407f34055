//! Joins: few, and each by an equality, or with a single row.
//!
//! Without an equality every row meets every other one; a million of each would run for ever.

use std::{collections::BTreeSet, ops::ControlFlow};

use datafusion_sql::sqlparser::ast::{
    BinaryOperator, Expr, GroupByExpr, JoinConstraint, JoinOperator, LimitClause, Query, Select,
    SelectItem, SetExpr, TableFactor, TableWithJoins, Value, Visit as _, Visitor,
};

use super::parts::name_of;
use inlay_sql_protocol::Refusal;

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
    let wide = select.from.iter().filter(|from| !are_one_row(from)).count();
    let equal = select.selection.as_ref().map_or(0, equalities);
    if wide > equal + 1 {
        let message = "tables side by side need an equality in WHERE for each";
        return Err(Refusal::invalid(message).hint(HINT));
    }
    for (at, from) in select.from.iter().enumerate() {
        joins += usize::from(at > 0) + from.joins.len();
        check_chain(from)?;
    }
    Ok(joins)
}

/// Tables joined one after the other.
fn check_chain(from: &TableWithJoins) -> Result<(), Refusal> {
    check_factor(&from.relation)?;
    // Whether everything so far comes to one row.
    let mut is_one = is_one_row(&from.relation);
    for join in &from.joins {
        check_factor(&join.relation)?;
        check_join(&join.join_operator, &join.relation, is_one)?;
        is_one &= is_one_row(&join.relation);
    }
    Ok(())
}

fn are_one_row(from: &TableWithJoins) -> bool {
    is_one_row(&from.relation) && from.joins.iter().all(|join| is_one_row(&join.relation))
}

fn check_factor(factor: &TableFactor) -> Result<(), Refusal> {
    let TableFactor::NestedJoin { table_with_joins, .. } = factor else { return Ok(()) };
    check_chain(table_with_joins)
}

fn check_join(
    operator: &JoinOperator,
    right: &TableFactor,
    left_is_one_row: bool,
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
    let keeps_right = matches!(
        operator,
        JoinOperator::Right(_) | JoinOperator::RightOuter(_) | JoinOperator::FullOuter(_)
    );
    if keeps_right && matches!(constraint, JoinConstraint::Using(_)) {
        // The library takes the column of the left side, which is null where only the right one has a row.
        let message = "USING in a RIGHT or FULL JOIN is not answered here";
        return Err(
            Refusal::invalid(message).hint("join ON a.x = b.x and select coalesce(a.x, b.x)")
        );
    }
    let has_equality = match constraint {
        JoinConstraint::On(expr) => equalities(expr) > 0,
        JoinConstraint::Using(names) => !names.is_empty(),
        // Tables without a common column would be joined by none.
        JoinConstraint::Natural => {
            return Err(Refusal::invalid("NATURAL is not answered here")
                .hint("name the columns: USING (…)"));
        }
        JoinConstraint::None => false,
    };
    if has_equality || is_one_row(right) || left_is_one_row {
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
            usize::from(connects(left, right))
        }
        _ => 0,
    }
}

/// Whether an equality is one between rows of two tables, as far as that is written.
fn connects(left: &Expr, right: &Expr) -> bool {
    let (left, right) = (Tables::of(left), Tables::of(right));
    let are_known = !left.has_unnamed && !right.has_unnamed;
    left.has_columns() && right.has_columns() && !(are_known && left.named == right.named)
}

/// Tables whose columns an expression reads.
#[derive(Default)]
struct Tables {
    named: BTreeSet<String>,
    /// Whether there are columns whose table is not named.
    has_unnamed: bool,
}

impl Tables {
    fn of(expr: &Expr) -> Self {
        let mut tables = Self::default();
        let _: ControlFlow<()> = expr.visit(&mut tables);
        tables
    }

    fn has_columns(&self) -> bool {
        self.has_unnamed || !self.named.is_empty()
    }
}

impl Visitor for Tables {
    type Break = ();

    fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<()> {
        match expr {
            Expr::Identifier(_) => self.has_unnamed = true,
            Expr::CompoundIdentifier(names) => {
                // The table is the last but one; of a field of a column, it is not told apart.
                let table = names.iter().rev().nth(1);
                self.named.extend(table.map(|name| name.value.to_lowercase()));
            }
            _ => {}
        }
        ControlFlow::Continue(())
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
                if function.over.is_none() && AGGREGATES.contains(&&*name_of(function)))
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
