//! An optimizer's rule: what a statement counts and adds up by group is added up while it is read.
//!
//! A group by tenants, events, string properties and hours or days of the time needs no rows, only what each group of a
//! segment comes to: [`Totals`]. What is computed of such columns, before or after, is computed of the groups instead:
//! a sum over rows that are alike is a product with their number.

use std::sync::Arc;

use arrow::datatypes::DataType;
use datafusion::{
    catalog::default_table_source::provider_as_source,
    common::{
        Column, Result, ScalarValue,
        tree_node::{Transformed, TreeNode as _, TreeNodeRecursion},
    },
    functions_aggregate::expr_fn::{max, min, sum},
    logical_expr::{
        Aggregate, Cast, Expr, ExprSchemable as _, LogicalPlan, Projection, TableScan,
        TableScanBuilder, cast, expr::AggregateFunction, lit, when,
    },
    optimizer::{ApplyOrder, OptimizerConfig, OptimizerRule},
};
use inlay_engine::rows::Grain;

use super::{
    condition::Conditions,
    provider::Table,
    scans::table_of,
    schema::{Kind, NUMBERS, Property, STRINGS},
    tally::{Key, Part, ROWS},
    totals::Totals,
};

/// Adds up while it is read.
#[derive(Debug, Default)]
pub struct AddUpEarly;

impl OptimizerRule for AddUpEarly {
    fn name(&self) -> &str {
        "add_up_early"
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
        match rewritten(aggregate)? {
            Some(plan) => Ok(Transformed::yes(plan)),
            None => Ok(Transformed::no(plan)),
        }
    }
}

fn rewritten(aggregate: &Aggregate) -> Result<Option<LogicalPlan>> {
    let Some((scan, columns)) = columns_of(&aggregate.input)? else { return Ok(None) };
    let Some(table) = table_of(scan).filter(|table| table.kind() == Kind::Events) else {
        return Ok(None);
    };
    let of_scan = |expr: &Expr| in_terms_of_scan(expr, aggregate, &columns);
    let mut read = Read { scan, table, keys: Vec::new(), numbers: Vec::new() };
    let mut groups = Vec::new();
    for expr in &aggregate.group_expr {
        let Some(group) = of_scan(expr)? else { return Ok(None) };
        if !read.takes_key(&group)? {
            return Ok(None);
        }
        // Two that are the same would be one.
        let group = group.alias(format!("group {}", groups.len()));
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
            aggregates.push(part.alias(&name));
            names.push(Expr::Column(Column::new_unqualified(name)));
        }
        outputs.push((parts.finish)(names)?);
    }
    let Ok(conditions) = Conditions::of(Kind::Events, &scan.filters) else { return Ok(None) };
    let Read { keys, numbers, .. } = read;
    let totals = Totals::new(table.scan_of_rows(), keys, numbers, conditions);
    if !totals.is_worth_it()? {
        return Ok(None);
    }
    let source = provider_as_source(Arc::new(totals));
    let inner = TableScanBuilder::new(scan.table_name.clone(), source).build()?;
    let inner = Arc::new(LogicalPlan::TableScan(inner));
    let count = groups.len();
    let new = Aggregate::try_new(inner, groups, aggregates)?;
    let new_groups =
        (0..count).map(|at| Expr::Column(Column::new_unqualified(format!("group {at}"))));
    let outer = aggregate.schema.iter().zip(new_groups.chain(outputs));
    let outer = outer
        .map(|((relation, field), expr)| {
            let expr = cast_to(expr, field.data_type(), &new)?;
            Ok(expr.alias_qualified(relation.cloned(), field.name()))
        })
        .collect::<Result<Vec<_>>>()?;
    let input = Arc::new(LogicalPlan::Aggregate(new));
    Ok(Some(LogicalPlan::Projection(Projection::try_new(outer, input)?)))
}

fn cast_to(expr: Expr, kind: &DataType, aggregate: &Aggregate) -> Result<Expr> {
    match expr.get_type(&aggregate.schema)? == *kind {
        true => Ok(expr),
        false => Ok(cast(expr, kind.clone())),
    }
}

/// The scan below a plan, and each column of the plan as an expression of the scan's columns.
fn columns_of(plan: &LogicalPlan) -> Result<Option<(&TableScan, Vec<Expr>)>> {
    match plan {
        LogicalPlan::TableScan(scan) if scan.fetch.is_none() => {
            let names = scan.projected_schema.fields().iter().map(|field| field.name());
            let columns = names.map(|name| Expr::Column(Column::new_unqualified(name))).collect();
            Ok(Some((scan, columns)))
        }
        LogicalPlan::SubqueryAlias(named) => columns_of(&named.input),
        LogicalPlan::Projection(projection) => {
            let Some((scan, inner)) = columns_of(&projection.input)? else { return Ok(None) };
            let mut columns = Vec::new();
            for expr in &projection.expr {
                match replaced(expr, &projection.input, &inner)? {
                    Some(expr) => columns.push(expr),
                    None => return Ok(None),
                }
            }
            Ok(Some((scan, columns)))
        }
        _ => Ok(None),
    }
}

fn in_terms_of_scan(expr: &Expr, aggregate: &Aggregate, columns: &[Expr]) -> Result<Option<Expr>> {
    if matches!(expr, Expr::GroupingSet(_)) || expr.is_volatile() {
        return Ok(None);
    }
    replaced(expr, &aggregate.input, columns)
}

/// An expression over a plan's columns as one of what they are.
fn replaced(expr: &Expr, plan: &LogicalPlan, columns: &[Expr]) -> Result<Option<Expr>> {
    let mut all_known = !expr.is_volatile();
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

/// What totals are read, found as expressions are looked at.
struct Read<'a> {
    scan: &'a TableScan,
    table: &'a Table,
    keys: Vec<(String, Key)>,
    numbers: Vec<String>,
}

/// The aggregates over totals that an aggregate over rows becomes, and what is made of them.
struct Parts {
    aggregates: Vec<Expr>,
    finish: Box<dyn FnOnce(Vec<Expr>) -> Result<Expr>>,
}

impl Parts {
    fn one(aggregate: Expr) -> Self {
        Self { aggregates: vec![aggregate], finish: Box::new(first) }
    }

    /// A count: of no groups it is zero, not nothing.
    fn count(aggregate: Expr) -> Self {
        let finish = |parts| {
            let sum = first(parts)?;
            // In this order it is known that it is never nothing, as a count is.
            when(sum.clone().is_not_null(), sum).otherwise(lit(0i64))
        };
        Self { aggregates: vec![aggregate], finish: Box::new(finish) }
    }
}

fn first(parts: Vec<Expr>) -> Result<Expr> {
    let first = parts.into_iter().next();
    first.ok_or_else(|| datafusion::common::DataFusionError::Internal("no part".to_owned()))
}

fn of_scan(name: impl Into<String>) -> Expr {
    Expr::Column(Column::new_unqualified(name))
}

impl Read<'_> {
    /// Whether an expression says the same of all rows of a group; its columns become keys.
    fn takes_key(&mut self, expr: &Expr) -> Result<bool> {
        let mut is_taken = true;
        let mut found: Vec<(String, Key)> = Vec::new();
        expr.apply(|part| {
            if let Some(grain) = grain_of(part) {
                found.push(("timestamp".to_owned(), Key::Time(grain)));
                return Ok(TreeNodeRecursion::Jump);
            }
            let Expr::Column(column) = part else { return Ok(TreeNodeRecursion::Continue) };
            match self.key(&column.name) {
                Some(key) => found.push((column.name.clone(), key)),
                None => is_taken = false,
            }
            Ok(TreeNodeRecursion::Continue)
        })?;
        if is_taken {
            found.into_iter().for_each(|(name, key)| self.add_key(name, key));
        }
        Ok(is_taken)
    }

    fn add_key(&mut self, name: String, key: Key) {
        match self.keys.iter_mut().find(|(known, _)| *known == name) {
            Some((_, Key::Time(known))) => {
                if let Key::Time(grain) = key {
                    *known = grain.max(*known);
                }
            }
            Some(_) => {}
            None => self.keys.push((name, key)),
        }
    }

    fn key(&self, column: &str) -> Option<Key> {
        match column {
            "tenant_id" => Some(Key::Tenant),
            "event_name" => Some(Key::Event),
            _ => self.property(column, STRINGS).map(Key::Text),
        }
    }

    /// The name of a property that has a column.
    fn property(&self, column: &str, map: &str) -> Option<String> {
        let is_it = |property: &&Property| property.map == map && property.field().name() == column;
        self.table.properties().iter().find(is_it).map(|property| property.name.clone())
    }

    fn number(&mut self, expr: &Expr) -> Option<String> {
        let Expr::Column(column) = expr else { return None };
        let name = self.property(&column.name, NUMBERS)?;
        if !self.numbers.contains(&name) {
            self.numbers.push(name.clone());
        }
        Some(name)
    }

    /// An aggregate over rows as aggregates over totals.
    fn takes_aggregate(&mut self, expr: &Expr) -> Result<Option<Parts>> {
        let AggregateFunction { func, params } = match expr {
            Expr::Alias(alias) => return self.takes_aggregate(&alias.expr),
            Expr::AggregateFunction(function) => function,
            _ => return Ok(None),
        };
        if params.distinct || !params.order_by.is_empty() || params.null_treatment.is_some() {
            return Ok(None);
        }
        let only = match (&*params.args, func.name()) {
            ([], "count") => lit(1i64),
            ([only], _) => only.clone(),
            _ => return Ok(None),
        };
        if let Some(filter) = &params.filter {
            // Only rows are counted by a condition; sums would need a state for each answer to it.
            let is_all = matches!(&only, Expr::Literal(value, _) if !value.is_null());
            if func.name() != "count" || !is_all || !self.takes_key(filter)? {
                return Ok(None);
            }
            let some = when((**filter).clone(), of_scan(ROWS)).otherwise(lit(0i64))?;
            return Ok(Some(Parts::count(sum(some))));
        }
        if let Some(name) = self.number(&only) {
            let part = |part: Part| of_scan(part.column(&name));
            return Ok(match func.name() {
                "count" => Some(Parts::count(sum(part(Part::Count)))),
                "sum" => Some(Parts::one(sum(part(Part::Sum)))),
                "min" => Some(Parts::one(min(part(Part::Least)))),
                "max" => Some(Parts::one(max(part(Part::Most)))),
                "avg" => Some(Parts {
                    aggregates: vec![sum(part(Part::Sum)), sum(part(Part::Count))],
                    finish: Box::new(|parts| {
                        let mut parts = parts.into_iter();
                        let (sum, count) = (parts.next(), parts.next());
                        let both = sum.zip(count).map(|(sum, count)| {
                            sum / Expr::Cast(Cast::new(Box::new(count), DataType::Float64))
                        });
                        first(both.into_iter().collect())
                    }),
                }),
                _ => None,
            });
        }
        if !self.takes_key(&only)? {
            return Ok(None);
        }
        let nothing = || Expr::Literal(ScalarValue::Int64(None), None);
        let kind = only.get_type(&*self.scan.projected_schema);
        Ok(match (func.name(), kind) {
            ("count", _) if matches!(&only, Expr::Literal(value, _) if !value.is_null()) => {
                Some(Parts::count(sum(of_scan(ROWS))))
            }
            ("count", _) => {
                let some = when(only.is_not_null(), of_scan(ROWS)).otherwise(nothing())?;
                Some(Parts::count(sum(some)))
            }
            ("sum", Ok(DataType::Int64)) => Some(Parts::one(sum(only * of_scan(ROWS)))),
            ("sum", Ok(DataType::Float64)) => {
                Some(Parts::one(sum(only * cast(of_scan(ROWS), DataType::Float64))))
            }
            ("min", Ok(_)) => Some(Parts::one(min(only))),
            ("max", Ok(_)) => Some(Parts::one(max(only))),
            _ => None,
        })
    }
}

/// How finely an expression tells times apart, if it is a part of the time that hours or days have in common.
fn grain_of(expr: &Expr) -> Option<Grain> {
    match expr {
        Expr::ScalarFunction(call) => {
            let [Expr::Literal(part, _), time] = &*call.args else { return None };
            let part = part.try_as_str().flatten().filter(|_| is_time(time))?.to_lowercase();
            match (call.func.name(), &*part) {
                ("date_part" | "date_trunc", "hour") => Some(Grain::Hour),
                ("date_part" | "date_trunc", "day" | "week" | "month" | "quarter" | "year")
                | ("date_part", "dow" | "isodow" | "doy" | "isoyear") => Some(Grain::Day),
                _ => None,
            }
        }
        Expr::Cast(Cast { expr, field }) => {
            (*field.data_type() == DataType::Date32 && is_time(expr)).then_some(Grain::Day)
        }
        _ => None,
    }
}

/// Whether an expression is the time itself, in one unit or another, in UTC.
fn is_time(expr: &Expr) -> bool {
    match expr {
        Expr::Column(column) => column.name == Kind::Events.time_column(),
        Expr::Cast(Cast { expr, field }) => {
            matches!(field.data_type(), DataType::Timestamp(_, None)) && is_time(expr)
        }
        _ => false,
    }
}
