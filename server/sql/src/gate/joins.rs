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
//! days d JOIN active a ON a.day > d.day - 7 AND a.day <= d.day    fine where days is a subquery with GROUP BY or DISTINCT; one such join in a SELECT
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
    BinaryOperator, Expr, JoinConstraint, JoinOperator, Select, TableFactor, TableWithJoins,
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
/// Comes with each refusal of this module that is about rows.
const HINT: &str = "join ON an equality, once ON a range where one side has GROUP BY or DISTINCT, or with few rows: \
                    aggregates without GROUP BY, VALUES or a LIMIT, 32 rows at most";

/// Number of joins of a SELECT.
///
/// `scopes` knows the rows of names of `WITH`; `in_all` is the product of the rows that each row meets without an equality, over all `SELECT`s of the
/// statement so far, and is multiplied here: a cross join with 32 rows in a subquery and another one around it are 1,024.
///
/// Errors: when one lets every row meet every other.
pub fn check(select: &Select, scopes: &mut Scopes, in_all: &mut u64) -> Result<usize, Refusal> {
    let mut check = JoinCheck { scopes, meets: 1, has_range: false };
    let mut joins = 0;
    // Tables side by side are joined by what WHERE says.
    let rows: Vec<_> = select.from.iter().map(|from| check.scopes.of_joins(from)).collect();
    let is_grouped = rows.iter().any(|rows| rows.is_grouped);
    let mut bounds: Vec<_> = rows.into_iter().map(|rows| rows.bound).collect();
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
    let has_range = select.selection.as_ref().is_some_and(has_range);
    if wide == equal + 2 && has_range && is_grouped {
        check.has_range = true;
    } else if wide > equal + 1 {
        let message = "tables side by side need an equality in WHERE for each";
        return Err(Refusal::invalid(message).hint(HINT));
    }
    for (at, from) in select.from.iter().enumerate() {
        joins += usize::from(at > 0) + from.joins.len();
        check.chain(from)?;
    }
    // At first there is no SELECT, and the product is 0 by default.
    *in_all = (*in_all).max(1).saturating_mul(check.meets);
    if *in_all > FEW_ROWS_IN_ALL {
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
        let RowBound { bound: mut left, mut is_grouped } = self.scopes.of_factor(&from.relation);
        for join in &from.joins {
            self.factor(&join.relation)?;
            let RowBound { bound: right, is_grouped: is_right_grouped } =
                self.scopes.of_factor(&join.relation);
            match joined_by(&join.join_operator)? {
                JoinedBy::Equality => {}
                JoinedBy::Range if (is_grouped || is_right_grouped) && !self.has_range => {
                    self.has_range = true;
                }
                _ => self.meet(left.into_iter().chain(right).min().unwrap_or(u64::MAX))?,
            }
            left = left.zip(right).map(|(left, right)| left.saturating_mul(right));
            // Once joined, groups may be as many as the rows that they have met.
            is_grouped = false;
        }
        Ok(())
    }

    /// Joins in brackets are checked as those around them: `events e JOIN ((SELECT 1) x CROSS JOIN events b) ON …`.
    fn factor(&mut self, factor: &TableFactor) -> Result<(), Refusal> {
        let TableFactor::NestedJoin { table_with_joins, .. } = factor else { return Ok(()) };
        self.chain(table_with_joins)
    }
}

/// What a join compares rows of its two sides by.
enum JoinedBy {
    Equality,
    /// Only `<`, `<=`, `>`, `>=` or `BETWEEN`.
    Range,
    Nothing,
}

/// What a join compares by.
///
/// Errors: a kind of join that there is not.
fn joined_by(operator: &JoinOperator) -> Result<JoinedBy, Refusal> {
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
        JoinConstraint::On(expr) if equalities(expr) > 0 => Ok(JoinedBy::Equality),
        JoinConstraint::On(expr) if has_range(expr) => Ok(JoinedBy::Range),
        JoinConstraint::Using(names) if !names.is_empty() => Ok(JoinedBy::Equality),
        // Tables without a common column would be joined by none.
        JoinConstraint::Natural => {
            Err(Refusal::invalid("NATURAL is not answered here")
                .hint("name the columns: USING (…)"))
        }
        JoinConstraint::On(_) | JoinConstraint::Using(_) | JoinConstraint::None => {
            Ok(JoinedBy::Nothing)
        }
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

/// Whether one of the conditions that hold for all rows compares two tables by their order.
/// True for `a.x < b.x AND a.z = 5`, and for `a.x BETWEEN b.x AND b.y`.
fn has_range(expr: &Expr) -> bool {
    use BinaryOperator::{And, Gt, GtEq, Lt, LtEq};
    match expr {
        Expr::Nested(inner) => has_range(inner),
        Expr::BinaryOp { left, op: And, right } => has_range(left) || has_range(right),
        Expr::BinaryOp { left, op: Lt | LtEq | Gt | GtEq, right } => connects(left, right),
        Expr::Between { expr, negated: false, low, high } => {
            connects(expr, low) || connects(expr, high)
        }
        _ => false,
    }
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
