//! `string_props['model']` reads the column of that property.
//!
//! DataFusion plans it as `get_field(string_props, 'model')` and moves that down to the table, since it is cheap.
//! Where it has come to lie directly on the table, it becomes a column of the table, and the map need not be
//! made. Where it has not, as argument of a window function or on a subquery with a limit, the map is made and
//! looked into: slower, and right.

use std::sync::Arc;

use datafusion_common::{
    Column, Result,
    tree_node::{Transformed, TreeNode as _},
};
use datafusion_expr::{Expr, LogicalPlan, Projection, TableScan, expr_rewriter::NamePreserver};
use datafusion_optimizer::{ApplyOrder, OptimizerConfig, OptimizerRule};

use super::{
    condition::property,
    provider::Table,
    scans::{scan_of, table_of},
    schema::{Kind, Property},
    source::Provider as _,
};

/// Makes columns of properties that a projection reads from a table.
#[derive(Debug, Default)]
pub struct ReadProperties;

impl OptimizerRule for ReadProperties {
    fn name(&self) -> &str {
        "read_properties"
    }

    fn apply_order(&self) -> Option<ApplyOrder> {
        Some(ApplyOrder::BottomUp)
    }

    fn rewrite(
        &self,
        plan: LogicalPlan,
        _: &dyn OptimizerConfig,
    ) -> Result<Transformed<LogicalPlan>> {
        let LogicalPlan::Projection(projection) = &plan else { return Ok(Transformed::no(plan)) };
        let LogicalPlan::TableScan(scan) = &*projection.input else {
            return Ok(Transformed::no(plan));
        };
        let Some(table) = table_of(scan) else { return Ok(Transformed::no(plan)) };
        match rewritten(projection, scan, table)? {
            Some(plan) => Ok(Transformed::yes(plan)),
            None => Ok(Transformed::no(plan)),
        }
    }
}

fn rewritten(
    projection: &Projection,
    scan: &TableScan,
    table: &Table,
) -> Result<Option<LogicalPlan>> {
    let mut found: Vec<Property> = Vec::new();
    for expr in &projection.expr {
        expr.apply(|part| {
            if let Some((map, name)) = property(part).filter(|(map, _)| is_map(map)) {
                let one = Property { map: map.to_owned(), name: name.to_owned() };
                if !found.contains(&one) {
                    found.push(one);
                }
            }
            Ok(datafusion_common::tree_node::TreeNodeRecursion::Continue)
        })?;
    }
    if found.is_empty() {
        return Ok(None);
    }
    let (wider, places) = table.with_properties(&found);
    let names = NamePreserver::new_for_projection();
    let exprs = projection.expr.iter().map(|expr| {
        let saved = names.save(expr);
        let replaced = expr.clone().transform(|part| {
            let column = property(&part).filter(|(map, _)| is_map(map)).map(|(map, name)| {
                let field = Property { map: map.to_owned(), name: name.to_owned() }.field();
                Expr::Column(Column::new(Some(scan.table_name.clone()), field.name()))
            });
            Ok(match column {
                Some(column) => Transformed::yes(column),
                None => Transformed::no(part),
            })
        })?;
        Ok(saved.restore(replaced.data))
    });
    let exprs = exprs.collect::<Result<Vec<Expr>>>()?;
    // What is still read, and the new columns.
    let schema = wider.schema();
    let mut columns: Vec<usize> = places;
    for expr in &exprs {
        for column in expr.column_refs() {
            columns.extend(schema.index_of(&column.name).ok());
        }
    }
    let input = Arc::new(scan_of(scan, wider, columns)?);
    Ok(Some(LogicalPlan::Projection(Projection::try_new(exprs, input)?)))
}

fn is_map(name: &str) -> bool {
    Kind::property_type(name).is_some()
}
