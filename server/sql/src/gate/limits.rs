//! How large a statement may be, part by part.

use std::ops::ControlFlow;

use datafusion_sql::sqlparser::ast::{
    BinaryOperator, Expr, Query, Select, SelectItem, SetExpr, TableFactor, Visitor,
};

use super::{bounds::Scopes, joins, parts};
use inlay_sql_protocol::Refusal;

/// Expressions, queries and tables of a statement.
const NODES_MAX: usize = 2_000;
/// Of them, one within the other, chains of one operator counted once.
const DEPTH_MAX: usize = 32;
/// Terms of a chain of operators, or of unions.
const CHAIN_MAX: usize = 200;
/// Columns of a SELECT.
const COLUMNS_MAX: usize = 200;
/// Values of an IN.
const LIST_MAX: usize = 1_000;
/// Columns of all CUBEs and ROLLUPs: what they come to is multiplied.
const CUBE_MAX: usize = 6;
/// Columns of a SELECT that stand for all columns of a table.
const STARS_MAX: usize = 8;
/// Sets of GROUPING SETS.
const SETS_MAX: usize = 64;

/// Goes through a statement and breaks at what it may not have.
#[derive(Default)]
pub struct Walk {
    nodes: usize,
    depth: usize,
    joins: usize,
    scopes: Scopes,
    /// Rows that each row meets without an equality, by all joins so far.
    meets: u64,
    cubes: usize,
    /// Whether each open expression goes on a chain, which does not count as deeper.
    chained: Vec<bool>,
    /// Length of the chain that each open expression belongs to.
    chains: Vec<usize>,
    operators: Vec<Option<BinaryOperator>>,
}

type Flow = ControlFlow<Refusal>;

fn flow(checked: Result<(), Refusal>) -> Flow {
    match checked {
        Ok(()) => ControlFlow::Continue(()),
        Err(refusal) => ControlFlow::Break(refusal),
    }
}

fn at_most(count: usize, most: usize, what: &str) -> Result<(), Refusal> {
    if count <= most { Ok(()) } else { Err(Refusal::invalid(format!("{what}: at most {most}"))) }
}

impl Walk {
    fn node(&mut self) -> Result<(), Refusal> {
        self.nodes += 1;
        at_most(self.nodes, NODES_MAX, "parts of a statement")
    }

    fn deeper(&mut self) -> Result<(), Refusal> {
        self.depth += 1;
        at_most(self.depth, DEPTH_MAX, "parts of a statement within each other")
    }

    fn open_expr(&mut self, expr: &Expr) -> Result<(), Refusal> {
        self.node()?;
        let operator = match expr {
            Expr::BinaryOp { op, .. } => Some(op.clone()),
            _ => None,
        };
        // Brackets and casts of an operand neither end a chain nor begin one.
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

    fn open_query(&mut self, query: &Query) -> Result<(), Refusal> {
        self.node()?;
        self.deeper()?;
        let mut terms = 0;
        count_terms(&query.body, &mut terms)?;
        self.scopes.open(query);
        parts::check_query(query)
    }

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
