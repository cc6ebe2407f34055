//! How many rows a part of FROM has at most, as far as that is written in the statement.
//!
//! ```text
//! (SELECT avg(x) FROM events)        1
//! (VALUES (50), (90), (99))          3
//! (SELECT … ORDER BY n LIMIT 20)     20
//! usual                              1, below WITH usual AS (SELECT avg(x) FROM events)
//! events                             unknown
//! ```
//!
//! A join without an equality is allowed where one side has few rows (`joins.rs`), and this module says how many. It only looks at the text:
//! no number here is an estimate, each is one that the rows cannot exceed.
//!
//! ```text
//! a JOIN b                           rows of a × rows of b, at least those of the larger one (an outer join keeps them)
//! a FULL JOIN b                      the same, at least the sum of both
//! a UNION ALL b                      the sum
//! a EXCEPT b, a INTERSECT b          rows of a
//! SELECT count(*) FROM events        1
//! SELECT x FROM … GROUP BY x         rows of FROM: groups are not more than rows
//! … GROUP BY ROLLUP (x)              unknown: each grouping set has groups of its own
//! … LIMIT 20                         20, or fewer if the query has fewer
//! … LIMIT $1                         as without it: no value is known yet
//! ```

use std::{collections::HashMap, ops::ControlFlow};

use datafusion_sql::sqlparser::ast::{
    Distinct, Expr, GroupByExpr, Ident, JoinOperator, LimitClause, ObjectName, Query, Select,
    SetExpr, SetOperator, TableFactor, TableWithJoins, Value, Visit as _, Visitor,
};

use super::offered;

/// A number of rows, or none where it depends on the rows of a table.
type Bound = Option<u64>;

/// What is written of the rows of a part of FROM.
///
/// ```text
/// events                                                                     no bound, not grouped
/// (VALUES (50), (90), (99)) v (n)                                            3, not grouped
/// (SELECT DISTINCT date_trunc('day', timestamp) AS day FROM events) d        no bound, grouped
/// (SELECT day FROM days), below WITH days AS (SELECT … GROUP BY 1)           no bound, grouped: some of the groups
/// ```
#[derive(Default, Clone, Copy)]
pub struct RowBound {
    /// How many there are at most.
    pub bound: Bound,
    /// Whether they are groups: of `GROUP BY` or `DISTINCT`. There are few as a rule.
    pub is_grouped: bool,
}

impl RowBound {
    /// At most so many, or as many as a table has.
    fn at_most(bound: impl Into<Bound>) -> Self {
        Self { bound: bound.into(), is_grouped: false }
    }
}

/// Tables that a name of WITH may hide, but not in its own query and in those before it.
const TABLES: [&str; 3] = ["events", "events_hourly", "events_daily"];

/// The names of WITH that can be used, by query, the innermost last, and how many rows each has at most.
///
/// A name is looked up from the innermost query outwards, as the planner does it. `WITH u AS (…) SELECT … FROM (WITH v AS (…) SELECT …) x`
/// has two entries while the subquery is open: the names of the statement, then those of the subquery.
#[derive(Default)]
pub struct Scopes {
    /// Rows by name, one map for each query that is open.
    open: Vec<HashMap<String, RowBound>>,
    /// How often each name is made in the statement. Of those that are made twice it is not looked up which is meant.
    made: HashMap<String, usize>,
}

/// Counts each name that any `WITH` of the statement makes.
struct CountNames<'a>(&'a mut HashMap<String, usize>);

impl Visitor for CountNames<'_> {
    type Break = ();

    fn pre_visit_query(&mut self, query: &Query) -> ControlFlow<()> {
        for named in query.with.iter().flat_map(|with| &with.cte_tables) {
            *self.0.entry(name_of(&named.alias.name)).or_default() += 1;
        }
        ControlFlow::Continue(())
    }
}

/// A name as the planner compares it.
/// `Usual` is `usual`, and `"Usual"` stays as it is.
fn name_of(name: &Ident) -> String {
    match name.quote_style {
        Some(_) => name.value.clone(),
        None => name.value.to_lowercase(),
    }
}

impl Scopes {
    /// Enters a query. [`Self::close`] leaves it.
    ///
    /// The names of its `WITH` become known one after the other: each may use those before it. A name that is also a table's, or is made twice in the
    /// statement, is entered without a bound: which of the two is meant depends on where it is used.
    pub fn open(&mut self, query: &Query) {
        if self.open.is_empty() {
            let _: ControlFlow<()> = query.visit(&mut CountNames(&mut self.made));
        }
        self.open.push(HashMap::new());
        for named in query.with.iter().flat_map(|with| &with.cte_tables) {
            let rows = self.of_query(&named.query);
            let name = name_of(&named.alias.name);
            let is_plain = self.made.get(&name) == Some(&1) && !TABLES.contains(&name.as_str());
            if let Some(scope) = self.open.last_mut() {
                scope.insert(name, if is_plain { rows } else { RowBound::default() });
            }
        }
    }

    /// Leaves the query that was entered last.
    pub fn close(&mut self) {
        self.open.pop();
    }

    /// Rows of a table or subquery.
    /// Nothing is known of `events`; `(VALUES (1), (2), (3)) v (n)` has 3.
    pub fn of_factor(&mut self, factor: &TableFactor) -> RowBound {
        match factor {
            TableFactor::Derived { subquery, .. } => self.of_query(subquery),
            TableFactor::Table { name, args: None, .. } => self.of_name(name),
            TableFactor::NestedJoin { table_with_joins, .. } => self.of_joins(table_with_joins),
            _ => RowBound::default(),
        }
    }

    /// Rows of tables that are joined one after the other.
    ///
    /// `(VALUES (1), (2)) a LEFT JOIN (VALUES (1), (2), (3)) b ON …` has at most 6. No bound as soon as one of them has none, and groups only where nothing is
    /// joined.
    pub fn of_joins(&mut self, from: &TableWithJoins) -> RowBound {
        let first = self.of_factor(&from.relation);
        let mut rows = first.bound;
        for join in &from.joins {
            rows = rows.zip(self.of_factor(&join.relation).bound).map(|(rows, right)| {
                // An outer join has a row without a match once: even an empty side leaves the rows of the other one.
                let unmatched = match &join.join_operator {
                    JoinOperator::FullOuter(_) => rows.saturating_add(right),
                    _ => rows.max(right),
                };
                rows.saturating_mul(right).max(unmatched)
            });
        }
        RowBound { bound: rows, is_grouped: first.is_grouped && from.joins.is_empty() }
    }

    /// The rows of a name of `WITH`; nothing is known of a table, and of a name with a schema before it.
    fn of_name(&self, name: &ObjectName) -> RowBound {
        let [part] = &*name.0 else { return RowBound::default() };
        let Some(name) = part.as_ident().map(name_of) else { return RowBound::default() };
        self.open.iter().rev().find_map(|scope| scope.get(&name)).copied().unwrap_or_default()
    }

    /// The rows of a query with its `LIMIT`. An `OFFSET` only leaves out more, and is not looked at.
    fn of_query(&mut self, query: &Query) -> RowBound {
        self.open(query);
        let rows = self.of_body(&query.body);
        self.close();
        let limit = match &query.limit_clause {
            Some(LimitClause::LimitOffset { limit: Some(limit), .. }) => number(limit),
            _ => None,
        };
        RowBound { bound: rows.bound.into_iter().chain(limit).min(), ..rows }
    }

    /// The rows of what stands before `ORDER BY` and `LIMIT`.
    fn of_body(&mut self, body: &SetExpr) -> RowBound {
        match body {
            SetExpr::Select(select) => self.of_select(select),
            SetExpr::Query(query) => self.of_query(query),
            SetExpr::Values(values) => RowBound::at_most(values.rows.len() as u64),
            SetExpr::SetOperation { op, left, right, .. } => {
                let (left, right) = (self.of_body(left), self.of_body(right));
                let sum = left.bound.zip(right.bound).map(|(a, b)| a.saturating_add(b));
                let bound = if *op == SetOperator::Union { sum } else { left.bound };
                RowBound { bound, is_grouped: left.is_grouped && right.is_grouped }
            }
            _ => RowBound::default(),
        }
    }

    /// The rows of one SELECT: 1 for aggregates without groups, else at most the product of the tables in FROM. `SELECT 1` has 1, the empty product.
    fn of_select(&mut self, select: &Select) -> RowBound {
        let GroupByExpr::Expressions(groups, _) = &select.group_by else {
            return RowBound::default();
        };
        if groups.is_empty() && offered::has_aggregate(&select.projection) {
            return RowBound::at_most(1);
        }
        let from: Vec<RowBound> = select.from.iter().map(|from| self.of_joins(from)).collect();
        let is_grouped = !groups.is_empty()
            || matches!(select.distinct, Some(Distinct::Distinct | Distinct::On(_)))
            || matches!(&*from, [one] if one.is_grouped);
        // Each set has groups of its own.
        let is_set =
            |expr: &Expr| matches!(expr, Expr::GroupingSets(_) | Expr::Cube(_) | Expr::Rollup(_));
        if groups.iter().any(is_set) {
            return RowBound { bound: None, is_grouped };
        }
        let all = from.into_iter().map(|rows| rows.bound).collect::<Option<Vec<u64>>>();
        RowBound { bound: all.map(|all| all.into_iter().fold(1, u64::saturating_mul)), is_grouped }
    }
}

/// A number that is written: `20`, but neither `$1` nor `10 + 10`.
fn number(expr: &Expr) -> Option<u64> {
    match expr {
        Expr::Value(value) => match &value.value {
            Value::Number(number, _) => number.parse().ok(),
            _ => None,
        },
        _ => None,
    }
}
