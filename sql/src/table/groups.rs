//! Grouping by texts becomes grouping by their numbers.
//!
//! `GROUP BY tenant_id` is planned as one over a column of texts. Where that column comes straight from a table, through
//! filters, names and projections, rows are grouped by numbers instead, and what comes out is turned into texts: a few
//! groups instead of all rows. `count(DISTINCT string_props['model'])` counts numbers likewise.

use std::{collections::BTreeSet, sync::Arc};

use datafusion_common::{Column, DFSchema, ExprSchema as _, Result, tree_node::Transformed};
use datafusion_expr::{
    Aggregate, Expr, Filter, LogicalPlan, Projection, SubqueryAlias, TableScan,
    expr::AggregateFunction,
};
use datafusion_optimizer::{ApplyOrder, OptimizerConfig, OptimizerRule};

use super::{
    codes::{Codes, text_of},
    scans::{scan_of, table_of},
    source::Provider as _,
};

/// Groups by numbers where texts were to be grouped by.
#[derive(Debug, Default)]
pub struct GroupByNumbers;

impl OptimizerRule for GroupByNumbers {
    fn name(&self) -> &str {
        "group_by_numbers"
    }

    fn apply_order(&self) -> Option<ApplyOrder> {
        Some(ApplyOrder::BottomUp)
    }

    fn rewrite(
        &self,
        plan: LogicalPlan,
        _: &dyn OptimizerConfig,
    ) -> Result<Transformed<LogicalPlan>> {
        let LogicalPlan::Aggregate(aggregate) = &plan else { return Ok(Transformed::no(plan)) };
        Ok(match rewritten(aggregate)? {
            Some(plan) => Transformed::yes(plan),
            None => Transformed::no(plan),
        })
    }
}

fn rewritten(aggregate: &Aggregate) -> Result<Option<LogicalPlan>> {
    let Aggregate { input, group_expr, aggr_expr, schema, .. } = aggregate;
    if group_expr.iter().any(|expr| matches!(expr, Expr::GroupingSet(_))) {
        return Ok(None);
    }
    let is_text = |column: &&Column| is_text(input.schema(), column);
    let groups: Vec<Option<&Column>> =
        group_expr.iter().map(|expr| plain(expr).filter(is_text)).collect();
    let mut counts: Vec<Option<&Column>> =
        aggr_expr.iter().map(|expr| counted(expr).filter(is_text)).collect();
    let both = |counts: &[Option<&Column>]| {
        let columns = groups.iter().chain(counts).flatten();
        columns.map(|column| (*column).clone()).collect::<BTreeSet<_>>().into_iter().collect()
    };
    let mut wanted: Vec<Column> = both(&counts);
    let mut found = numbered(input, &wanted)?;
    if found.is_none() && counts.iter().any(Option::is_some) {
        // What is counted has no numbers: groups may have.
        counts.fill(None);
        wanted = both(&counts);
        found = numbered(input, &wanted)?;
    }
    let Some((input, numbers)) = found.filter(|_| !wanted.is_empty()) else { return Ok(None) };
    let number =
        |column: &Column| wanted.iter().position(|one| one == column).map(|at| &numbers[at]);

    let mut new_groups = Vec::new();
    for (expr, column) in group_expr.iter().zip(&groups) {
        new_groups.push(match column.and_then(number) {
            Some((number, _)) => Expr::Column(number.clone()),
            None => expr.clone(),
        });
    }
    let mut new_aggregates = Vec::new();
    for (expr, column) in aggr_expr.iter().zip(&counts) {
        new_aggregates.push(match column.and_then(number) {
            Some((number, _)) => counting(expr, number),
            None => expr.clone(),
        });
    }
    // The same text may be grouped by twice, under two names.
    let mut once = new_groups.clone();
    once.dedup();
    if once.len() < new_groups.len() {
        return Ok(None);
    }
    let new = Aggregate::try_new(Arc::new(input), new_groups, new_aggregates)?;
    let outer = schema.iter().zip(new.schema.columns()).enumerate();
    let outer = outer.map(|(at, ((relation, field), column))| {
        let expr = match groups.get(at).copied().flatten().and_then(number) {
            Some((_, codes)) => text_of(codes).call(vec![Expr::Column(column)]),
            None => Expr::Column(column),
        };
        expr.alias_qualified(relation.cloned(), field.name())
    });
    let outer = outer.collect();
    let input = Arc::new(LogicalPlan::Aggregate(new));
    Ok(Some(LogicalPlan::Projection(Projection::try_new(outer, input)?)))
}

fn is_text(schema: &DFSchema, column: &Column) -> bool {
    let field = schema.field_from_column(column);
    field.is_ok_and(|field| *field.data_type() == arrow::datatypes::DataType::Utf8View)
}

fn plain(expr: &Expr) -> Option<&Column> {
    match expr {
        Expr::Column(column) => Some(column),
        Expr::Alias(alias) => plain(&alias.expr),
        _ => None,
    }
}

/// The column of `count(DISTINCT column)`.
fn counted(expr: &Expr) -> Option<&Column> {
    match expr {
        Expr::Alias(alias) => counted(&alias.expr),
        Expr::AggregateFunction(AggregateFunction { func, params }) => {
            let is_plain = params.distinct && params.filter.is_none() && params.order_by.is_empty();
            match &*params.args {
                [Expr::Column(column)] if is_plain && func.name() == "count" => Some(column),
                _ => None,
            }
        }
        _ => None,
    }
}

fn counting(expr: &Expr, number: &Column) -> Expr {
    match expr {
        Expr::Alias(alias) => {
            counting(&alias.expr, number).alias_qualified(alias.relation.clone(), &alias.name)
        }
        Expr::AggregateFunction(function) => {
            let mut function = function.clone();
            function.params.args = vec![Expr::Column(number.clone())];
            Expr::AggregateFunction(function)
        }
        other => other.clone(),
    }
}

type Numbered = (LogicalPlan, Vec<(Column, Arc<Codes>)>);

/// The same plan with a column of numbers for each of these columns of texts; nothing where one does not come from a
/// table.
fn numbered(plan: &LogicalPlan, wanted: &[Column]) -> Result<Option<Numbered>> {
    match plan {
        LogicalPlan::TableScan(scan) => of_scan(scan, wanted),
        LogicalPlan::Filter(filter) => {
            let Some((input, numbers)) = numbered(&filter.input, wanted)? else { return Ok(None) };
            let filter = Filter::try_new(filter.predicate.clone(), Arc::new(input))?;
            Ok(Some((LogicalPlan::Filter(filter), numbers)))
        }
        LogicalPlan::SubqueryAlias(named) => {
            let inner = |column: &Column| {
                let at = named.schema.index_of_column(column).ok()?;
                Some(Column::from(named.input.schema().qualified_field(at)))
            };
            let Some(inner) = wanted.iter().map(inner).collect::<Option<Vec<_>>>() else {
                return Ok(None);
            };
            let Some((input, numbers)) = numbered(&named.input, &inner)? else { return Ok(None) };
            let plan = SubqueryAlias::try_new(Arc::new(input), named.alias.clone())?;
            let renamed = |(column, codes): (Column, Arc<Codes>)| {
                (Column::new(Some(named.alias.clone()), column.name), codes)
            };
            let numbers = numbers.into_iter().map(renamed).collect();
            Ok(Some((LogicalPlan::SubqueryAlias(plan), numbers)))
        }
        LogicalPlan::Projection(projection) => {
            let inner = |column: &Column| {
                let at = projection.schema.index_of_column(column).ok()?;
                plain(projection.expr.get(at)?).cloned()
            };
            let Some(inner) = wanted.iter().map(inner).collect::<Option<Vec<_>>>() else {
                return Ok(None);
            };
            let Some((input, numbers)) = numbered(&projection.input, &inner)? else {
                return Ok(None);
            };
            let mut exprs = projection.expr.clone();
            for (column, _) in &numbers {
                let expr = Expr::Column(column.clone());
                if !exprs.contains(&expr) {
                    exprs.push(expr);
                }
            }
            let plan = Projection::try_new(exprs, Arc::new(input))?;
            Ok(Some((LogicalPlan::Projection(plan), numbers)))
        }
        _ => Ok(None),
    }
}

fn of_scan(scan: &TableScan, wanted: &[Column]) -> Result<Option<Numbered>> {
    let Some(table) = table_of(scan) else { return Ok(None) };
    let names: Vec<&str> = wanted.iter().map(|column| column.name.as_str()).collect();
    let Some((wider, fields)) = table.with_numbers(&names) else { return Ok(None) };
    let schema = wider.schema();
    // What was read, found by name: there may be more columns before it now.
    let mut columns = Vec::new();
    for field in scan.projected_schema.fields() {
        columns.push(schema.index_of(field.name())?);
    }
    for (name, _) in &fields {
        columns.push(schema.index_of(name)?);
    }
    let plan = scan_of(scan, wider, columns)?;
    let name = scan.table_name.clone();
    let column = |(field, codes)| (Column::new(Some(name.clone()), field), codes);
    let numbers = fields.into_iter().map(column).collect();
    Ok(Some((plan, numbers)))
}
