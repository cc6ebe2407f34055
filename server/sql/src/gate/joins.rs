//! Joins: few, and each by an equality, by a range of groups, or with few rows.
//!
//! Without an equality every row meets every other one; a million of each would run for ever. Groups are few as a rule, such as the days of a calendar that
//! users of the seven days before are counted for.
//!
//! ```text
//! events a JOIN events b ON a.user_id = b.user_id                 fine
//! events a, events b WHERE lower(a.x) = lower(b.x)                fine: one equality connects the two
//! events e CROSS JOIN (VALUES (50), (90), (99)) p (q)             fine: each row meets 3
//! events e, (SELECT max(x) AS m FROM events) s                    fine: each row meets 1
//! days d JOIN active a ON a.day > d.day - 7 AND a.day <= d.day    fine where days has GROUP BY or DISTINCT; one in a SELECT, two in a statement
//! events a JOIN events b ON a.timestamp < b.timestamp             a join needs an equality
//! events a JOIN events b ON a.x = b.x OR true                     a join needs an equality: below OR it holds for some rows only
//! events a JOIN events b ON a.x = a.x                             a join needs an equality: it connects no two tables
//! events a, events b WHERE a.x = 1                                tables side by side need an equality in WHERE for each
//! events CROSS JOIN (SELECT x FROM events LIMIT 33) s             a join needs an equality: 33 rows are more than 32
//! events NATURAL JOIN events_daily                                NATURAL is not answered here
//! events FULL JOIN events_daily USING (tenant_id)                 USING in a RIGHT or FULL JOIN is not answered here
//! ```
//!
//! The check reads the text alone: an equality that is true for all rows passes, as do groups by `event_id`, and the statement ends at the limit of its time.

use std::{collections::BTreeSet, ops::ControlFlow};

use datafusion_sql::sqlparser::ast::{
    BinaryOperator, Expr, JoinConstraint, JoinOperator, Query, Select, TableFactor, TableWithJoins,
    Visit as _, Visitor,
};

use super::bounds::{RowBound, Scopes};
use inlay_sql_protocol::Refusal;

/// Joins of a statement.
pub const JOINS_MAX: usize = 8;
/// Rows that each row of another table may meet without an equality, by all joins of a SELECT.
const FEW_ROWS: u64 = 32;
/// By all joins of a statement: a subquery may be joined itself.
const FEW_ROWS_IN_ALL: u64 = 1_024;
/// Joins by a range in a statement: of the week and of the month up to each day. One stands in a `SELECT`.
const RANGES_MAX: usize = 2;
/// Comes with each refusal of this module that is about rows.
const HINT: &str = "join ON an equality, ON a range with a subquery that has GROUP BY or DISTINCT (its columns named with \
                    its alias), or with few rows: aggregates without GROUP BY, VALUES or a LIMIT, 32 rows at most";

/// Joins without an equality in a statement.
#[derive(Default)]
pub struct WithoutEquality {
    /// The product of the rows that each row meets.
    meets: u64,
    /// Joins by a range.
    ranges: usize,
}

/// Number of joins of a SELECT.
///
/// `scopes` knows the rows of names of `WITH`; `in_all` has what is multiplied and added up over all `SELECT`s of the statement so far: a cross join with
/// 32 rows in a subquery and another one around it are 1,024.
///
/// Errors: when one lets every row meet every other.
pub fn check(
    select: &Select,
    scopes: &mut Scopes,
    in_all: &mut WithoutEquality,
) -> Result<usize, Refusal> {
    let mut check = JoinCheck { scopes, meets: 1, has_range: false };
    let mut joins = 0;
    // Tables side by side are joined by what WHERE says.
    let rows: Vec<_> = select.from.iter().map(|from| check.scopes.of_joins(from)).collect();
    let mut bounds: Vec<_> = rows.iter().map(|rows| rows.bound).collect();
    // The rows of the largest meet those of the others. One that has no bound is the largest.
    bounds.sort_by_key(|rows| rows.unwrap_or(u64::MAX));
    let largest = bounds.pop();
    // Tables that have no small bound. One of them needs no equality, each further one does.
    let mut wide = usize::from(largest.is_some());
    for rows in bounds {
        match rows {
            Some(rows) if rows <= FEW_ROWS => check.meet(rows)?,
            _ => wide += 1,
        }
    }
    let equal = select.selection.as_ref().map_or(0, equalities);
    if wide > equal + 1 {
        let tables = select.from.iter().zip(&rows).map(|(from, rows)| {
            name_of(&from.relation).filter(|_| from.joins.is_empty()).map(|name| (name, *rows))
        });
        let tables = tables.collect::<Option<Vec<_>>>();
        check.has_range = match (tables.as_deref(), &select.selection) {
            (Some([one, other]), Some(condition)) => {
                is_range_of_groups(condition, one, std::slice::from_ref(&other.0))
                    || is_range_of_groups(condition, other, std::slice::from_ref(&one.0))
            }
            _ => false,
        };
        if !check.has_range {
            let message = "tables side by side need an equality in WHERE for each";
            return Err(Refusal::invalid(message).hint(HINT));
        }
    }
    for (at, from) in select.from.iter().enumerate() {
        joins += usize::from(at > 0) + from.joins.len();
        check.chain(from)?;
    }
    // At first there is no SELECT, and the product is 0 by default.
    in_all.meets = in_all.meets.max(1).saturating_mul(check.meets);
    in_all.ranges += usize::from(check.has_range);
    if in_all.meets > FEW_ROWS_IN_ALL || in_all.ranges > RANGES_MAX {
        return Err(without_equality());
    }
    Ok(joins)
}

/// The refusal `a join needs an equality`, with the hint how to write the join.
fn without_equality() -> Refusal {
    Refusal::invalid("a join needs an equality").hint(HINT)
}

/// The check of one SELECT.
struct JoinCheck<'a> {
    scopes: &'a mut Scopes,
    /// Rows that each row meets without an equality so far.
    meets: u64,
    /// Whether two tables are joined by a range. One more such join would multiply the rows that meet.
    has_range: bool,
}

impl JoinCheck<'_> {
    /// Counts a table that is joined without an equality: its rows multiply what each row meets, to 32 at most.
    ///
    /// Errors: when it has more rows, or all such tables together multiply to more.
    fn meet(&mut self, rows: u64) -> Result<(), Refusal> {
        self.meets = self.meets.saturating_mul(rows.max(1));
        if self.meets <= FEW_ROWS {
            return Ok(());
        }
        Err(without_equality())
    }

    /// Tables joined one after the other.
    ///
    /// `left` is the bound of everything to the left of a join, so that a few rows may stand on either side: `(VALUES (1)) v CROSS JOIN events`.
    fn chain(&mut self, from: &TableWithJoins) -> Result<(), Refusal> {
        self.factor(&from.relation)?;
        // Rows of everything so far.
        let first = self.scopes.of_factor(&from.relation);
        let mut left = first.bound;
        let mut names: Vec<String> = name_of(&from.relation).into_iter().collect();
        for (at, join) in from.joins.iter().enumerate() {
            self.factor(&join.relation)?;
            let right = self.scopes.of_factor(&join.relation);
            let name = name_of(&join.relation);
            let fewest = left.into_iter().chain(right.bound).min();
            if !has_equality(&join.join_operator)? {
                // Once joined, groups may be as many as the rows that they have met.
                let ranged = condition_of(&join.join_operator).zip(name.clone());
                let is_range = ranged.is_some_and(|(condition, name)| {
                    is_range_of_groups(condition, &(name.clone(), right), &names)
                        || at == 0
                            && names.first().is_some_and(|left| {
                                is_range_of_groups(condition, &(left.clone(), first), &[name])
                            })
                });
                if fewest.is_none_or(|rows| rows > FEW_ROWS) && is_range && !self.has_range {
                    self.has_range = true;
                } else {
                    self.meet(fewest.unwrap_or(u64::MAX))?;
                }
            }
            names.extend(name);
            left = left.zip(right.bound).map(|(left, right)| left.saturating_mul(right));
        }
        Ok(())
    }

    /// Joins in brackets are checked as those around them: `events e JOIN ((SELECT 1) x CROSS JOIN events b) ON …`.
    fn factor(&mut self, factor: &TableFactor) -> Result<(), Refusal> {
        let TableFactor::NestedJoin { table_with_joins, .. } = factor else { return Ok(()) };
        self.chain(table_with_joins)
    }
}

/// The condition behind `ON`.
fn condition_of(operator: &JoinOperator) -> Option<&Expr> {
    use JoinOperator::{FullOuter, Inner, Join, Left, LeftOuter, Right, RightOuter};
    match operator {
        Join(JoinConstraint::On(on))
        | Inner(JoinConstraint::On(on))
        | Left(JoinConstraint::On(on))
        | LeftOuter(JoinConstraint::On(on))
        | Right(JoinConstraint::On(on))
        | RightOuter(JoinConstraint::On(on))
        | FullOuter(JoinConstraint::On(on)) => Some(on),
        _ => None,
    }
}

/// Whether a join has an equality.
///
/// Errors: a kind of join that there is not.
fn has_equality(operator: &JoinOperator) -> Result<bool, Refusal> {
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
    match constraint {
        JoinConstraint::On(expr) => Ok(equalities(expr) > 0),
        JoinConstraint::Using(names) => Ok(!names.is_empty()),
        // Tables without a common column would be joined by none.
        JoinConstraint::Natural => {
            Err(Refusal::invalid("NATURAL is not answered here")
                .hint("name the columns: USING (…)"))
        }
        JoinConstraint::None => Ok(false),
    }
}

/// Equalities between two expressions that hold for all rows: those not below OR or NOT.
/// 2 for `a.x = b.x AND (a.y = b.y AND a.z > 5)`.
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

/// Whether one of the conditions that hold for all rows compares groups with rows of other tables by their order.
///
/// `groups` are the name and the rows of the table that may be grouped, `others` the names of those that it is joined with.
///
/// ```text
/// a.day > d.day - INTERVAL '7 days'      yes, where d are groups and a is another one
/// a.x BETWEEN d.first AND d.last         yes
/// ts >= d.day                            yes, by the benefit of the doubt: the table of ts is not written
/// a.x > day                              no: the groups have to be named
/// a.x < (SELECT max(x) FROM d)           no: that is one number
/// ```
fn is_range_of_groups(condition: &Expr, groups: &(String, RowBound), others: &[String]) -> bool {
    use BinaryOperator::{And, Gt, GtEq, Lt, LtEq};
    let ranges = |left: &Expr, right: &Expr| {
        let (left, right) = (Tables::of(left), Tables::of(right));
        let is_of_groups = |tables: &Tables| {
            !tables.has_unnamed && tables.named.iter().eq(std::iter::once(&groups.0))
        };
        let is_of_others = |tables: &Tables| {
            tables.has_columns() && tables.named.iter().all(|name| others.contains(name))
        };
        !left.has_subquery
            && !right.has_subquery
            && (is_of_groups(&left) && is_of_others(&right)
                || is_of_groups(&right) && is_of_others(&left))
    };
    if !groups.1.is_grouped || others.contains(&groups.0) {
        return false;
    }
    match condition {
        Expr::Nested(inner) => is_range_of_groups(inner, groups, others),
        Expr::BinaryOp { left, op: And, right } => {
            is_range_of_groups(left, groups, others) || is_range_of_groups(right, groups, others)
        }
        Expr::BinaryOp { left, op: Lt | LtEq | Gt | GtEq, right } => ranges(left, right),
        Expr::Between { expr, negated: false, low, high } => {
            ranges(expr, low) || ranges(expr, high)
        }
        _ => false,
    }
}

/// The name by which columns of a table are written: that of its alias, if it has one. None of joins in brackets.
fn name_of(factor: &TableFactor) -> Option<String> {
    let name = match factor {
        TableFactor::Table { alias: Some(alias), .. }
        | TableFactor::Derived { alias: Some(alias), .. } => &alias.name.value,
        TableFactor::Table { name, .. } => &name.0.last()?.as_ident()?.value,
        _ => return None,
    };
    Some(name.to_lowercase())
}

/// Whether a comparison is one between rows of two tables, as far as that is written.
///
/// ```text
/// a.x = b.x              yes
/// lower(a.x) = b.y       yes
/// a.x = 1                no: one side has no column
/// a.x = a.y              no: both sides are of one table
/// x = a.y                yes, by the benefit of the doubt: the table of x is not written
/// ```
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
    /// Whether a subquery is part of the expression.
    has_subquery: bool,
}

impl Tables {
    fn of(expr: &Expr) -> Self {
        let mut tables = Self::default();
        let _: ControlFlow<()> = expr.visit(&mut tables);
        tables
    }

    /// Whether the expression depends on a row at all.
    fn has_columns(&self) -> bool {
        self.has_unnamed || !self.named.is_empty()
    }
}

impl Visitor for Tables {
    type Break = ();

    fn pre_visit_query(&mut self, _: &Query) -> ControlFlow<()> {
        self.has_subquery = true;
        ControlFlow::Continue(())
    }

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
