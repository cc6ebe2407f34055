//! How large a statement may be, part by part.
//!
//! A statement is small, and what the planner makes of it may be large: `GROUP BY CUBE` of n columns is 2ⁿ groupings. Each limit names itself in
//! the refusal:
//!
//! ```text
//! 1 + 1 + …                          of 202 terms       terms of a chain of operators: at most 200
//! SELECT 1, 1, …                     300 columns        columns of a SELECT: at most 200
//! x IN (1, 1, …)                     1,500 values       values of an IN: at most 1000
//! SELECT 1 UNION ALL SELECT 1 …      300 times          terms of a UNION: at most 200
//! SELECT *, *, …                     9 stars            stars of a SELECT: at most 8
//! CUBE (a, b, c, d), CUBE (e, f, g)  7 columns          columns of all CUBE and ROLLUP: at most 6
//! GROUPING SETS ((a), (a), …)        65 sets            sets of GROUPING SETS: at most 64
//! CASE WHEN x THEN CASE WHEN …       50 deep            parts of a statement within each other: at most 32
//! ```
//!
//! Depth is counted in nodes, but a chain of operators is one level, although the parser makes a tree of it that is as deep as it is long:
//!
//! ```text
//! a + b + c + d       ((a + b) + c) + d     a chain of 3 operators; 2 levels: the chain, and its operands
//! ((a + b) + c) + d   as it is written      3 chains of 1 operator; 6 levels: 3 chains, 2 brackets, operands
//! ```

use std::ops::ControlFlow;

use datafusion_sql::sqlparser::ast::{
    BinaryOperator, Expr, Query, Select, SelectItem, SetExpr, TableFactor, Visitor,
};

use super::{bounds::Scopes, joins, parts};
use inlay_sql_protocol::Refusal;

/// Expressions, queries and tables of a statement.
const NODES_MAX: usize = 2_000;
/// Of them, one within the other. A chain of operators, whichever they are, counts once.
const DEPTH_MAX: usize = 32;
/// Operators of a chain (201 terms), and terms of a union.
const CHAIN_MAX: usize = 200;
/// Columns of a SELECT.
const COLUMNS_MAX: usize = 200;
/// Values of an IN.
const LIST_MAX: usize = 1_000;
/// Columns of all CUBEs and ROLLUPs: what they come to is multiplied.
/// Six columns are 64 groupings.
const CUBE_MAX: usize = 6;
/// Columns of a SELECT that stand for all columns of a table.
/// Over a join of 9 tables one star is more than 60 columns.
const STARS_MAX: usize = 8;
/// Sets of GROUPING SETS.
const SETS_MAX: usize = 64;

/// Goes through a statement and breaks at what it may not have.
///
/// Its fields are counters of the whole statement (`nodes`, `joins`, `meets`, `cubes`) and stacks with one entry for each expression that is open,
/// which [`post_visit_expr`](Visitor::post_visit_expr) takes off again (`chained`, `chains`, `operators`).
#[derive(Default)]
pub struct Walk {
    /// Expressions, queries, `SELECT`s and tables so far, open or not.
    nodes: usize,
    /// Levels that are open now.
    depth: usize,
    /// Joins so far, of all `SELECT`s.
    joins: usize,
    /// Names of `WITH` that can be used at this point, with the rows that each has at most.
    scopes: Scopes,
    /// Rows that each row meets without an equality, by all joins so far.
    meets: joins::WithoutEquality,
    /// Columns of `CUBE` and `ROLLUP` so far.
    cubes: usize,
    /// Whether each open expression goes on a chain, which does not count as deeper.
    chained: Vec<bool>,
    /// Length of the chain that each open expression belongs to.
    chains: Vec<usize>,
    /// The operator of each open expression: `None` for one that is no operator, such as a bracket.
    operators: Vec<Option<BinaryOperator>>,
}

/// What a visitor returns: go on, or leave the walk with a refusal.
type Flow = ControlFlow<Refusal>;

fn flow(checked: Result<(), Refusal>) -> Flow {
    match checked {
        Ok(()) => ControlFlow::Continue(()),
        Err(refusal) => ControlFlow::Break(refusal),
    }
}

/// Refuses a count above its limit by name: 250 of at most 200 is `columns of a SELECT: at most 200`.
fn at_most(count: usize, most: usize, what: &str) -> Result<(), Refusal> {
    if count <= most { Ok(()) } else { Err(Refusal::invalid(format!("{what}: at most {most}"))) }
}

impl Walk {
    /// Counts a node of any kind.
    fn node(&mut self) -> Result<(), Refusal> {
        self.nodes += 1;
        at_most(self.nodes, NODES_MAX, "parts of a statement")
    }

    /// Opens a level; the caller closes it by subtracting from `depth`.
    fn deeper(&mut self) -> Result<(), Refusal> {
        self.depth += 1;
        at_most(self.depth, DEPTH_MAX, "parts of a statement within each other")
    }

    /// Counts an expression, its level unless it goes on a chain, and what its kind has a limit of its own for.
    fn open_expr(&mut self, expr: &Expr) -> Result<(), Refusal> {
        self.node()?;
        let operator = match expr {
            Expr::BinaryOp { op, .. } => Some(op.clone()),
            _ => None,
        };
        // A chain goes on only where an operator is the direct operand of another one: brackets, casts and calls begin a new chain within.
        let before = self.operators.last().cloned().flatten();
        let is_chained = operator.is_some() && before.is_some();
        let chain = if is_chained { self.chains.last().copied().unwrap_or(0) + 1 } else { 1 };
        at_most(chain, CHAIN_MAX, "terms of a chain of operators")?;
        self.chained.push(is_chained);
        self.chains.push(chain);
        self.operators.push(operator);
        if !is_chained {
            self.deeper()?;
        }
        parts::check_expr(expr)?;
        match expr {
            Expr::InList { list, .. } => at_most(list.len(), LIST_MAX, "values of an IN"),
            Expr::Cube(sets) | Expr::Rollup(sets) => {
                self.cubes += sets.len();
                at_most(self.cubes, CUBE_MAX, "columns of all CUBE and ROLLUP")
            }
            Expr::GroupingSets(sets) => at_most(sets.len(), SETS_MAX, "sets of GROUPING SETS"),
            _ => Ok(()),
        }
    }

    /// Counts a query, checks its kind, and makes the names of its `WITH` known to what is within it.
    fn open_query(&mut self, query: &Query) -> Result<(), Refusal> {
        self.node()?;
        self.deeper()?;
        let mut terms = 0;
        count_terms(&query.body, &mut terms)?;
        self.scopes.open(query);
        parts::check_query(query)
    }

    /// Counts a SELECT, its columns and its joins.
    fn open_select(&mut self, select: &Select) -> Result<(), Refusal> {
        self.node()?;
        at_most(select.projection.len(), COLUMNS_MAX, "columns of a SELECT")?;
        let wildcards = |item: &&SelectItem| {
            matches!(item, SelectItem::Wildcard(_) | SelectItem::QualifiedWildcard(..))
        };
        at_most(
            select.projection.iter().filter(wildcards).count(),
            STARS_MAX,
            "stars of a SELECT",
        )?;
        parts::check_select(select)?;
        self.joins += joins::check(select, &mut self.scopes, &mut self.meets)?;
        at_most(self.joins, joins::JOINS_MAX, "joins of a statement")
    }
}

/// Terms of unions and the like.
///
/// They are a tree that is walked by recursion, so the count ends the recursion, too.
fn count_terms(body: &SetExpr, terms: &mut usize) -> Result<(), Refusal> {
    *terms += 1;
    at_most(*terms, CHAIN_MAX, "terms of a UNION")?;
    if let SetExpr::SetOperation { left, right, .. } = body {
        count_terms(left, terms)?;
        count_terms(right, terms)?;
    }
    Ok(())
}

impl Visitor for Walk {
    type Break = Refusal;

    fn pre_visit_query(&mut self, query: &Query) -> Flow {
        flow(self.open_query(query))
    }

    fn post_visit_query(&mut self, _: &Query) -> Flow {
        self.scopes.close();
        self.depth = self.depth.saturating_sub(1);
        ControlFlow::Continue(())
    }

    fn pre_visit_select(&mut self, select: &Select) -> Flow {
        flow(self.open_select(select))
    }

    fn pre_visit_table_factor(&mut self, factor: &TableFactor) -> Flow {
        flow(self.node().and_then(|()| parts::check_factor(factor)))
    }

    fn pre_visit_expr(&mut self, expr: &Expr) -> Flow {
        flow(self.open_expr(expr))
    }

    fn post_visit_expr(&mut self, _: &Expr) -> Flow {
        self.operators.pop();
        self.chains.pop();
        if self.chained.pop() == Some(false) {
            self.depth = self.depth.saturating_sub(1);
        }
        ControlFlow::Continue(())
    }
}
