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
    Expr, GroupByExpr, Ident, JoinOperator, LimitClause, ObjectName, Query, Select, SetExpr,
    SetOperator, TableFactor, TableWithJoins, Value, Visit as _, Visitor,
};

use super::offered;

/// A number of rows, or none where it depends on the rows of a table.
type Bound = Option<u64>;

/// Tables that a name of WITH may hide, but not in its own query and in those before it.
const TABLES: [&str; 3] = ["events", "events_hourly", "events_daily"];

/// The names of WITH that can be used, by query, the innermost last, and how many rows each has at most.
///
/// A name is looked up from the innermost query outwards, as the planner does it. `WITH u AS (…) SELECT … FROM (WITH v AS (…) SELECT …) x`
/// has two entries while the subquery is open: the names of the statement, then those of the subquery.
#[derive(Default)]
pub struct Scopes {
    /// Bounds by name, one map for each query that is open.
    open: Vec<HashMap<String, Bound>>,
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
            let bound = self.of_query(&named.query);
            let name = name_of(&named.alias.name);
            let is_plain = self.made.get(&name) == Some(&1) && !TABLES.contains(&name.as_str());
            if let Some(scope) = self.open.last_mut() {
                scope.insert(name, bound.filter(|_| is_plain));
            }
        }
    }

    /// Leaves the query that was entered last.
    pub fn close(&mut self) {
        self.open.pop();
    }

    /// Rows of a table or subquery.
    /// `None` for `events`, 3 for `(VALUES (1), (2), (3)) v (n)`.
    pub fn of_factor(&mut self, factor: &TableFactor) -> Bound {
        match factor {
            TableFactor::Derived { subquery, .. } => self.of_query(subquery),
            TableFactor::Table { name, args: None, .. } => self.of_name(name),
            TableFactor::NestedJoin { table_with_joins, .. } => self.of_joins(table_with_joins),
            _ => None,
        }
    }

    /// Rows of tables that are joined one after the other.
    ///
    /// `(VALUES (1), (2)) a LEFT JOIN (VALUES (1), (2), (3)) b ON …` has at most 6. `None` as soon as one of them has no bound.
    pub fn of_joins(&mut self, from: &TableWithJoins) -> Bound {
        let mut rows = self.of_factor(&from.relation)?;
        for join in &from.joins {
            let right = self.of_factor(&join.relation)?;
            // An outer join has a row without a match once: even an empty side leaves the rows of the other one.
            let unmatched = match &join.join_operator {
                JoinOperator::FullOuter(_) => rows.saturating_add(right),
                _ => rows.max(right),
            };
            rows = rows.saturating_mul(right).max(unmatched);
        }
        Some(rows)
    }

    /// The bound of a name of `WITH`; `None` for a table, and for a name with a schema before it.
    fn of_name(&self, name: &ObjectName) -> Bound {
        let [part] = &*name.0 else { return None };
        let name = name_of(part.as_ident()?);
        *self.open.iter().rev().find_map(|scope| scope.get(&name))?
    }

    /// The bound of a query with its `LIMIT`. An `OFFSET` only leaves out more, and is not looked at.
    fn of_query(&mut self, query: &Query) -> Bound {
        self.open(query);
        let rows = self.of_body(&query.body);
        self.close();
        let limit = match &query.limit_clause {
            Some(LimitClause::LimitOffset { limit: Some(limit), .. }) => number(limit),
            _ => None,
        };
        rows.into_iter().chain(limit).min()
    }

    /// The bound of what stands before `ORDER BY` and `LIMIT`.
    fn of_body(&mut self, body: &SetExpr) -> Bound {
        match body {
            SetExpr::Select(select) => self.of_select(select),
            SetExpr::Query(query) => self.of_query(query),
            SetExpr::Values(values) => Some(values.rows.len() as u64),
            SetExpr::SetOperation { op: SetOperator::Union, left, right, .. } => {
                Some(self.of_body(left)?.saturating_add(self.of_body(right)?))
            }
            SetExpr::SetOperation { left, .. } => self.of_body(left),
            _ => None,
        }
    }

    /// The bound of one SELECT: 1 for aggregates without groups, else the product of the tables in FROM. `SELECT 1` has 1, the empty product.
    fn of_select(&mut self, select: &Select) -> Bound {
        let groups = match &select.group_by {
            GroupByExpr::Expressions(groups, _) => &**groups,
            GroupByExpr::All(_) => return None,
        };
        if groups.is_empty() && offered::has_aggregate(&select.projection) {
            return Some(1);
        }
        // Each set has groups of its own.
        let is_set =
            |expr: &Expr| matches!(expr, Expr::GroupingSets(_) | Expr::Cube(_) | Expr::Rollup(_));
        if groups.iter().any(is_set) {
            return None;
        }
        let rows = select.from.iter().map(|from| self.of_joins(from));
        let all = rows.collect::<Option<Vec<u64>>>()?;
        Some(all.into_iter().fold(1, u64::saturating_mul))
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
