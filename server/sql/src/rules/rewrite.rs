//! Rules that rewrite expressions part by part or nodes one by one, and the walk through a statement's expressions.
//!
//! An [`ExprRule`] looks at each part of an expression over the columns that its node has, from below. Of `lower(p) = 'pro' AND 5 < n` it is
//! asked for `p`, `lower(p)`, `'pro'`, `lower(p) = 'pro'`, `5`, `n`, `5 < n` and the whole. A node without a part for which `changes` is true
//! is passed over. Columns keep their names, so that nodes above find them:
//!
//! ```text
//! Projection: CAST(Float64(2.5) AS Int32)
//! Projection: CAST(nearest(CAST(Float64(2.5) AS Float64)) AS Int32) AS Float64(2.5)
//! ```
//!
//! A [`NodeRule`] looks at each node of a plan, and gives another plan instead of it, or nothing.

use datafusion_common::{
    DFSchema, Result,
    config::ConfigOptions,
    tree_node::{Transformed, TreeNode as _, TreeNodeRecursion},
};
use datafusion_expr::{Expr, LogicalPlan, expr_rewriter::NamePreserver, utils::merge_schema};
use datafusion_optimizer::{AnalyzerRule, ApplyOrder, OptimizerConfig, OptimizerRule};

use crate::tables::Source;

/// What a part of an expression becomes over the columns there are.
type Rewrite = fn(Expr, &DFSchema) -> Result<Transformed<Expr>>;

/// A rule of the analyzer or the optimizer that rewrites expressions part by part.
#[derive(Debug)]
pub struct ExprRule {
    /// Its name in plans and errors: `rounded_casts`.
    pub name: &'static str,
    /// Whether a part of an expression is of a form that it changes. Nodes of a plan without such a part cost nothing more.
    pub changes: fn(&Expr) -> bool,
    /// What it does with a part, whose own parts have been rewritten before; it is called for all parts of a node in which one changes.
    pub rewrite: Rewrite,
}

impl AnalyzerRule for ExprRule {
    fn name(&self) -> &str {
        self.name
    }

    fn analyze(&self, plan: LogicalPlan, _: &ConfigOptions) -> Result<LogicalPlan> {
        rewritten(plan, self.changes, &self.rewrite).map(|plan| plan.data)
    }
}

impl OptimizerRule for ExprRule {
    fn name(&self) -> &str {
        self.name
    }

    fn rewrite(
        &self,
        plan: LogicalPlan,
        _: &dyn OptimizerConfig,
    ) -> Result<Transformed<LogicalPlan>> {
        rewritten(plan, self.changes, &self.rewrite)
    }
}

/// A rule of the optimizer that rewrites a plan node by node.
#[derive(Debug)]
pub struct NodeRule {
    /// Its name in plans and errors: `add_up_early`. `session/library.rs` leaves rules out by it where a plan has nothing for them.
    pub name: &'static str,
    /// Whether a node is rewritten before its inputs.
    pub order: ApplyOrder,
    /// What a node becomes; nothing where it stays. The columns of the new one have the same names and types.
    pub rewrite: fn(&LogicalPlan) -> Result<Option<LogicalPlan>>,
}

impl OptimizerRule for NodeRule {
    fn name(&self) -> &str {
        self.name
    }

    fn apply_order(&self) -> Option<ApplyOrder> {
        Some(self.order)
    }

    fn rewrite(
        &self,
        plan: LogicalPlan,
        _: &dyn OptimizerConfig,
    ) -> Result<Transformed<LogicalPlan>> {
        Ok(match (self.rewrite)(&plan)? {
            Some(new) => Transformed::yes(new),
            None => Transformed::no(plan),
        })
    }
}

/// Whether a plan's rows are those of a table, and none that groups, joins or windows make: `SELECT lower(p) FROM events WHERE n > 5` is.
pub fn is_of_rows(plan: &LogicalPlan) -> bool {
    match plan {
        LogicalPlan::TableScan(_) => true,
        LogicalPlan::Projection(_) | LogicalPlan::Filter(_) | LogicalPlan::SubqueryAlias(_) => {
            plan.inputs().into_iter().all(is_of_rows)
        }
        _ => false,
    }
}

/// Whether a plan's rows are groups of a table's rows, some of them or all: an aggregate, or a table of groups that has replaced one.
pub fn is_of_groups(plan: &LogicalPlan) -> bool {
    match plan {
        LogicalPlan::TableScan(scan) => {
            scan.source.downcast_ref().is_some_and(|Source(table)| table.is_grouped())
        }
        LogicalPlan::Aggregate(_) => true,
        LogicalPlan::Projection(_) | LogicalPlan::Filter(_) | LogicalPlan::SubqueryAlias(_) => {
            plan.inputs().into_iter().all(is_of_groups)
        }
        _ => false,
    }
}

/// A plan, subqueries included, each part of whose expressions has become what `rewrite` makes of it over the columns
/// there are. Columns of the answer have the names that they had.
///
/// Errors: as of `rewrite`.
pub fn rewrite_exprs(
    plan: LogicalPlan,
    rewrite: &dyn Fn(Expr, &DFSchema) -> Result<Transformed<Expr>>,
) -> Result<LogicalPlan> {
    rewritten(plan, |_| true, rewrite).map(|plan| plan.data)
}

/// As [`rewrite_exprs`], for nodes with a part that `changes` is true of, and with whether anything has changed.
fn rewritten(
    plan: LogicalPlan,
    changes: fn(&Expr) -> bool,
    rewrite: &dyn Fn(Expr, &DFSchema) -> Result<Transformed<Expr>>,
) -> Result<Transformed<LogicalPlan>> {
    plan.transform_up_with_subqueries(|plan| {
        let mut has_part = false;
        plan.apply_expressions(|expr| {
            has_part = expr.exists(|part| Ok(changes(part)))?;
            Ok(if has_part { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
        })?;
        if !has_part {
            return Ok(Transformed::no(plan));
        }
        let schema = merge_schema(&plan.inputs());
        let names = NamePreserver::new(&plan);
        let rewritten = |expr: Expr| {
            let saved = names.save(&expr);
            let new = expr.transform_up(|part| rewrite(part, &schema))?;
            Ok(new.update_data(|expr| saved.restore(expr)))
        };
        plan.map_expressions(|expr| match expr {
            // Sets of groups have no name; the expressions in them have.
            Expr::GroupingSet(_) => expr.map_children(rewritten),
            expr => rewritten(expr),
        })
    })
}
