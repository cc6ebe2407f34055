//! An optimizer's rule: what a statement counts and adds up by group is added up while it is read.
//!
//! A group by tenants, events, string properties and hours, days or weeks of the time needs no rows, only what each group of a
//! segment comes to: [`Totals`](super::totals::Totals). What is computed of such columns, before or after, is computed of
//! the groups instead: a sum over rows that are alike is a product with their number. A group by users is read tenant by
//! tenant, and complete: [`PerUser`](super::per_user::PerUser).

use std::sync::Arc;

use arrow::datatypes::DataType;
use datafusion_common::{
    Column, DataFusionError, Result,
    tree_node::{Transformed, TreeNode as _, TreeNodeRecursion},
};
use datafusion_expr::{
    Aggregate, Expr, ExprSchemable as _, LogicalPlan, Projection, TableScan, TableScanBuilder, cast,
};
use datafusion_optimizer::{ApplyOrder, OptimizerConfig, OptimizerRule};

use super::{
    condition::Conditions,
    reads::{Read, Rows},
    scans::table_of,
    schema::Kind,
    source::Source,
};

/// Adds up while it is read.
#[derive(Debug, Default)]
pub struct AddUpEarly;

impl OptimizerRule for AddUpEarly {
    fn name(&self) -> &str {
        "add_up_early"
    }

    fn apply_order(&self) -> Option<ApplyOrder> {
        // What is around a distinct is looked at first: both may be one.
        Some(ApplyOrder::TopDown)
    }

    fn rewrite(
        &self,
        plan: LogicalPlan,
        _: &dyn OptimizerConfig,
    ) -> Result<Transformed<LogicalPlan>> {
        let LogicalPlan::Aggregate(aggregate) = &plan else { return Ok(Transformed::no(plan)) };
        match rewritten(aggregate)? {
            Some(plan) => Ok(Transformed::yes(plan)),
            None => Ok(Transformed::no(plan)),
        }
    }
}

fn rewritten(aggregate: &Aggregate) -> Result<Option<LogicalPlan>> {
    // What only looks for the first and the last is not changed by rows that are alike.
    let is_indifferent = aggregate.aggr_expr.iter().all(is_extreme);
    let Some((scan, columns)) = columns_of(&aggregate.input, is_indifferent)? else {
        return Ok(None);
    };
    let Some(table) = table_of(scan).filter(|table| table.kind() == Kind::Events) else {
        return Ok(None);
    };
    let of_scan = |expr: &Expr| replaced(expr, &aggregate.input, &columns);
    let mut read = Read::new(scan, table);
    let mut groups = Vec::new();
    for expr in &aggregate.group_expr {
        let Some(group) = of_scan(expr)? else { return Ok(None) };
        if !read.takes_group(&group)? {
            return Ok(None);
        }
        groups.push(group);
    }
    let mut aggregates = Vec::new();
    let mut outputs = Vec::new();
    for expr in &aggregate.aggr_expr {
        let Some(expr) = of_scan(expr)? else { return Ok(None) };
        let Some(parts) = read.takes_aggregate(&expr)? else { return Ok(None) };
        let mut names = Vec::new();
        for part in parts.aggregates {
            let name = format!("part {}", aggregates.len());
            aggregates.push((part, name.clone()));
            names.push(Expr::Column(Column::new_unqualified(name)));
        }
        outputs.push((parts.finish)(names)?);
    }
    let Ok(conditions) = Conditions::of(Kind::Events, &scan.filters) else { return Ok(None) };
    let Some((provider, rows)) = read.provider(&groups, conditions)? else {
        return Ok(None);
    };
    let inner = TableScanBuilder::new(scan.table_name.clone(), Arc::new(Source(provider)));
    let inner = Arc::new(LogicalPlan::TableScan(inner.build()?));
    // Two groups that are the same would be one.
    let names = (0..groups.len()).map(|at| format!("group {at}"));
    let groups = groups.into_iter().zip(names.clone()).map(|(group, name)| group.alias(name));
    let parts = aggregates.into_iter();
    let new = if rows == Rows::One {
        // A group is in one row, which is the first, the last and the sum of itself.
        let parts = parts.map(|(part, name)| Ok(argument(part)?.alias(name)));
        let all = groups.map(Ok).chain(parts).collect::<Result<Vec<_>>>()?;
        LogicalPlan::Projection(Projection::try_new(all, inner)?)
    } else {
        let parts = parts.map(|(part, name)| once(part, rows).alias(name)).collect();
        LogicalPlan::Aggregate(Aggregate::try_new(inner, groups.collect(), parts)?)
    };
    let new_groups = names.map(|name| Expr::Column(Column::new_unqualified(name)));
    let outer = aggregate.schema.iter().zip(new_groups.chain(outputs));
    let outer = outer
        .map(|((relation, field), expr)| {
            let expr = cast_to(expr, field.data_type(), &new)?;
            Ok(expr.alias_qualified(relation.cloned(), field.name()))
        })
        .collect::<Result<Vec<_>>>()?;
    Ok(Some(LogicalPlan::Projection(Projection::try_new(outer, Arc::new(new))?)))
}

/// Whether an aggregate is the least or the most of something.
fn is_extreme(expr: &Expr) -> bool {
    match expr {
        Expr::Alias(alias) => is_extreme(&alias.expr),
        Expr::AggregateFunction(call) => ["min", "max"].contains(&call.func.name()),
        _ => false,
    }
}

/// What an aggregate of one argument is of.
fn argument(expr: Expr) -> Result<Expr> {
    let argument = match expr {
        Expr::AggregateFunction(call) => call.params.args.into_iter().next(),
        _ => None,
    };
    argument.ok_or_else(|| DataFusionError::Internal("a part of nothing".to_owned()))
}

/// A part where users who are in one row each need not be told apart.
fn once(mut part: Expr, rows: Rows) -> Expr {
    if let Expr::AggregateFunction(call) = &mut part
        && rows == Rows::OneOfUser
    {
        call.params.distinct = false;
    }
    part
}

fn cast_to(expr: Expr, kind: &DataType, plan: &LogicalPlan) -> Result<Expr> {
    match expr.get_type(plan.schema())? == *kind {
        true => Ok(expr),
        false => Ok(cast(expr, kind.clone())),
    }
}

/// The scan below a plan, and each column of the plan as an expression of the scan's columns. With `is_indifferent`, rows
/// that are alike may have become one in between.
fn columns_of(plan: &LogicalPlan, is_indifferent: bool) -> Result<Option<(&TableScan, Vec<Expr>)>> {
    match plan {
        LogicalPlan::TableScan(scan) if scan.fetch.is_none() => {
            let names = scan.projected_schema.fields().iter().map(|field| field.name());
            let columns = names.map(|name| Expr::Column(Column::new_unqualified(name))).collect();
            Ok(Some((scan, columns)))
        }
        LogicalPlan::SubqueryAlias(named) => columns_of(&named.input, is_indifferent),
        LogicalPlan::Projection(projection) => {
            replaced_all(&projection.expr, &projection.input, is_indifferent)
        }
        LogicalPlan::Aggregate(distinct) if is_indifferent && distinct.aggr_expr.is_empty() => {
            replaced_all(&distinct.group_expr, &distinct.input, is_indifferent)
        }
        _ => Ok(None),
    }
}

fn replaced_all<'a>(
    exprs: &[Expr],
    plan: &'a LogicalPlan,
    is_indifferent: bool,
) -> Result<Option<(&'a TableScan, Vec<Expr>)>> {
    let Some((scan, inner)) = columns_of(plan, is_indifferent)? else { return Ok(None) };
    let columns = exprs.iter().map(|expr| replaced(expr, plan, &inner));
    Ok(columns.collect::<Result<Option<Vec<_>>>>()?.map(|columns| (scan, columns)))
}

/// An expression over a plan's columns as one of what they are.
fn replaced(expr: &Expr, plan: &LogicalPlan, columns: &[Expr]) -> Result<Option<Expr>> {
    let mut all_known = !expr.is_volatile() && !matches!(expr, Expr::GroupingSet(_));
    let new = expr.clone().transform_down(|part| match &part {
        Expr::Column(column) => {
            let at = plan.schema().index_of_column(column).ok();
            Ok(match at.and_then(|at| columns.get(at)) {
                Some(of) => Transformed::new(of.clone(), true, TreeNodeRecursion::Jump),
                None => {
                    all_known = false;
                    Transformed::no(part)
                }
            })
        }
        Expr::OuterReferenceColumn(..)
        | Expr::ScalarSubquery(_)
        | Expr::InSubquery(_)
        | Expr::Exists(_) => {
            all_known = false;
            Ok(Transformed::no(part))
        }
        _ => Ok(Transformed::no(part)),
    })?;
    // A column that is computed has a name of its own, which is nothing here.
    Ok(all_known.then(|| new.data.unalias_nested().data))
}
