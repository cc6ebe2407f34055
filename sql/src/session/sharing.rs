//! Groups that a statement asks for several times are computed once.
//!
//! A name of `WITH` is put in the place of each of its uses. Where two of them still group the same rows by the same keys for the same
//! aggregates when conditions and columns have been moved, a table that both read stands in their place.

use std::{collections::HashMap, sync::Arc};

use datafusion_common::{
    Column, Result, TableReference,
    tree_node::{Transformed, TreeNode as _, TreeNodeRecursion},
};
use datafusion_expr::{Expr, LogicalPlan, Projection, TableScanBuilder};
use datafusion_physical_plan::ExecutionPlan;

use crate::{
    physical::SharedPlan,
    table::{Provider, Source},
};

/// A plan in which groups that stand in it several times are a table, planned by `operators`.
///
/// Errors: as of `operators`.
pub fn with_shared_groups(
    plan: LogicalPlan,
    operators: &dyn Fn(LogicalPlan) -> Result<Arc<dyn ExecutionPlan>>,
) -> Result<LogicalPlan> {
    let repeated = repeated(&plan)?;
    if repeated.is_empty() {
        return Ok(plan);
    }
    let mut tables: HashMap<LogicalPlan, Arc<dyn Provider>> = HashMap::new();
    let shared = plan.transform_down(|node| {
        if !repeated.contains(&node) {
            return Ok(Transformed::no(node));
        }
        let table = match tables.get(&node) {
            Some(table) => Arc::clone(table),
            None => {
                let table: Arc<dyn Provider> = Arc::new(SharedPlan::new(operators(node.clone())?));
                tables.insert(node.clone(), Arc::clone(&table));
                table
            }
        };
        let read = read(&node, table)?;
        Ok(Transformed::new(read, true, TreeNodeRecursion::Jump))
    });
    shared.map(|plan| plan.data)
}

/// Groups that stand in a plan more than once. Those without aggregates, `SELECT DISTINCT user_id, country`, are joined by texts as a rule, which are
/// numbers only where they come from a table: to compare texts took twice the time that sharing them saved.
fn repeated(plan: &LogicalPlan) -> Result<Vec<LogicalPlan>> {
    let mut counts: HashMap<&LogicalPlan, usize> = HashMap::new();
    plan.apply(|node| {
        if let LogicalPlan::Aggregate(aggregate) = node
            && !aggregate.group_expr.is_empty()
            && !aggregate.aggr_expr.is_empty()
            && !has_subquery(node)?
        {
            *counts.entry(node).or_default() += 1;
        }
        Ok(TreeNodeRecursion::Continue)
    })?;
    Ok(counts.into_iter().filter(|(_, count)| *count > 1).map(|(node, _)| node.clone()).collect())
}

/// Whether something in it is answered by a plan of its own.
fn has_subquery(plan: &LogicalPlan) -> Result<bool> {
    let is_subquery = |part: &Expr| {
        matches!(
            part,
            Expr::ScalarSubquery(_)
                | Expr::InSubquery(_)
                | Expr::Exists(_)
                | Expr::OuterReferenceColumn(..)
        )
    };
    plan.exists(|node| {
        let mut is_there = false;
        node.apply_expressions(|expr| {
            is_there = expr.exists(|part| Ok(is_subquery(part)))?;
            Ok(if is_there { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
        })?;
        Ok(is_there)
    })
}

/// A table read under the names that the columns of a node have.
fn read(node: &LogicalPlan, table: Arc<dyn Provider>) -> Result<LogicalPlan> {
    let name = format!("shared {:x}", Arc::as_ptr(&table).addr());
    let scan =
        TableScanBuilder::new(TableReference::bare(name), Arc::new(Source(table))).build()?;
    let scan = LogicalPlan::TableScan(scan);
    let columns = scan.schema().columns().into_iter().zip(node.schema().iter());
    let columns = columns.map(|(column, (relation, field))| {
        Expr::Column(Column::clone(&column)).alias_qualified(relation.cloned(), field.name())
    });
    let columns = columns.collect();
    Ok(LogicalPlan::Projection(Projection::try_new(columns, Arc::new(scan))?))
}
