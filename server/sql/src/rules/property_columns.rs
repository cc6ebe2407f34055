//! Analyzer rule: a property is a column of its table from the start.
//!
//! `a.string_props['plan']` is planned as a function of a map, which the library's rules move about between joins and
//! subqueries as well as they can. Where they cannot, the whole map is read, or the name of its column is lost. Here the scan of each table gets a
//! column for each property of it that the statement names, and the function becomes that column, wherever it is:
//!
//! ```text
//! Filter: get_field(a.string_props, 'plan') = 'pro'      Filter: a."string_props['plan']" = 'pro'
//!   SubqueryAlias: a                                →      SubqueryAlias: a
//!     TableScan: events                                      TableScan: events, with the column string_props['plan']
//! ```
//!
//! A subquery that passes the map on (`SELECT * FROM events WHERE …`) passes the columns on as well. Columns that nobody
//! asks for go with the other columns of that kind. Where the map comes from a `UNION` or `DISTINCT` it is made and looked into:
//! slower, and right.
//!
//! ```text
//! SELECT s['plan'] FROM (SELECT string_props AS s FROM events) t
//!
//! Projection: get_field(t.s, Utf8("plan"))           Projection: t.s['plan'] AS t.s[plan]
//!   SubqueryAlias: t                                   SubqueryAlias: t
//!     Projection: events.string_props AS s        →      Projection: events.string_props AS s, events.string_props['plan'] AS s['plan']
//!       TableScan: events                                  TableScan: events
//!
//! SELECT … FROM (SELECT string_props FROM events UNION ALL SELECT string_props FROM events) t
//!
//! ProjectionExec: expr=[get_field(string_props@0, plan) as t.string_props[plan]]
//!   UnionExec
//!     RowsExec: [Strings], …
//! ```
//!
//! Names of columns of properties end with a NUL, which the plans here do not show: no statement can write one.

use std::sync::Arc;

use datafusion_common::{
    Column, DFSchema, Result,
    config::ConfigOptions,
    tree_node::{Transformed, TreeNode as _, TreeNodeRecursion},
};
use datafusion_expr::{
    Aggregate, Expr, LogicalPlan, Projection, Subquery, TableScan, TableScanBuilder,
    expr::{Exists, InSubquery, SetComparison},
    expr_rewriter::NamePreserver,
    utils::merge_schema,
};
use datafusion_optimizer::AnalyzerRule;

use crate::tables::{Kind, Property, Provider, Source, property_column, table_of};

/// Makes columns of properties.
#[derive(Debug)]
pub struct PropertiesAsColumns;

impl AnalyzerRule for PropertiesAsColumns {
    fn name(&self) -> &str {
        "properties_as_columns"
    }

    fn analyze(&self, plan: LogicalPlan, _: &ConfigOptions) -> Result<LogicalPlan> {
        // All properties of the statement first: a scan below has to know what is asked for far above it.
        let mut used = Vec::new();
        plan.apply_with_subqueries(|plan| {
            plan.apply_expressions(|expr| {
                expr.apply(|part| {
                    used.extend(Access::of(part).map(|access| access.named()));
                    Ok(TreeNodeRecursion::Continue)
                })
            })
        })?;
        used.sort_unstable();
        used.dedup();
        if used.is_empty() { Ok(plan) } else { Widening { used }.plan(plan, None, false) }
    }
}

/// `get_field(map, 'key')` of a column, perhaps one of the query around.
struct Access<'a> {
    /// The column of the map, under the name that it has there: `a.string_props`, or `t.s`.
    map: &'a Column,
    /// The property: `plan`.
    key: &'a str,
    /// Whether the column is one of the query around a correlated subquery.
    is_outer: bool,
}

impl<'a> Access<'a> {
    /// Of an expression; nothing where the key is computed, as in `string_props[event_name]`, or the map is no column.
    fn of(expr: &'a Expr) -> Option<Self> {
        let Expr::ScalarFunction(call) = expr else { return None };
        let [map, Expr::Literal(key, _)] = &*call.args else { return None };
        let (map, is_outer) = match map {
            Expr::Column(map) => (map, false),
            Expr::OuterReferenceColumn(_, map) => (map, true),
            _ => return None,
        };
        let key = key.try_as_str().flatten().filter(|_| call.func.name() == "get_field")?;
        Some(Self { map, key, is_outer })
    }

    /// The name of the map and the key: `("string_props", "plan")`.
    fn named(&self) -> (String, String) {
        (self.map.name.clone(), self.key.to_owned())
    }

    /// The column of the property, if there is one in this schema.
    fn column(&self, schema: &DFSchema) -> Option<Expr> {
        let column =
            Column::new(self.map.relation.clone(), property_column(&self.map.name, self.key));
        let (_, field) = schema.qualified_field_from_column(&column).ok()?;
        Some(match self.is_outer {
            true => Expr::OuterReferenceColumn(Arc::clone(field), column),
            false => Expr::Column(column),
        })
    }
}

/// The properties that a statement names: what the map is called there, and the key.
struct Widening {
    /// Sorted, each once: `("s", "plan")` where a subquery calls the map `s`.
    used: Vec<(String, String)>,
}

impl Widening {
    /// A plan that reads columns. `outer` are the columns of the query around, and `may_widen` says whether the
    /// plan may have more columns than before: below a projection or an aggregate it may, which name the columns that they take. The
    /// outermost plan, a subquery for one value and the inputs of a `UNION` may not.
    ///
    /// Errors: none that is expected.
    fn plan(
        &self,
        plan: LogicalPlan,
        outer: Option<&DFSchema>,
        may_widen: bool,
    ) -> Result<LogicalPlan> {
        if let LogicalPlan::TableScan(scan) = &plan {
            return Ok(self.scan(scan).transpose()?.filter(|_| may_widen).unwrap_or(plan));
        }
        let inputs_may = match &plan {
            LogicalPlan::Projection(_) | LogicalPlan::Aggregate(_) => true,
            LogicalPlan::Filter(_)
            | LogicalPlan::Join(_)
            | LogicalPlan::Sort(_)
            | LogicalPlan::Limit(_)
            | LogicalPlan::SubqueryAlias(_)
            | LogicalPlan::Window(_) => may_widen,
            _ => false,
        };
        let before = Arc::clone(plan.schema());
        let plan =
            plan.map_children(|input| self.plan(input, outer, inputs_may).map(Transformed::yes))?;
        let plan = plan.data;
        let columns = merge_schema(&plan.inputs());
        // Names of groups and windows are put back above, so that expressions are as they would be of columns.
        let restores = matches!(plan, LogicalPlan::Aggregate(_) | LogicalPlan::Window(_));
        let keeps_names = !restores && !matches!(plan, LogicalPlan::Sort(_));
        let names = NamePreserver::new(&plan);
        let plan = plan.map_expressions(|expr| {
            let saved = keeps_names.then(|| names.save(&expr));
            let new = expr.transform_up(|part| self.part(part, &columns, outer))?;
            Ok(match saved {
                Some(saved) => new.update_data(|expr| saved.restore(expr)),
                None => new,
            })
        })?;
        match plan.data {
            LogicalPlan::Projection(projection) if may_widen => self.projection(projection),
            plan if restores => with_names(plan.recompute_schema()?, &before),
            plan => plan.recompute_schema(),
        }
    }

    /// The scan with columns of all properties that may be of its table. Nothing for other tables.
    fn scan(&self, scan: &TableScan) -> Option<Result<LogicalPlan>> {
        let table = table_of(scan)?;
        let schema = Provider::schema(table);
        let mut properties: Vec<Property> = Vec::new();
        for (map, name) in &self.used {
            // A subquery may have given the map another name.
            let is_known = Kind::property_type(map).is_some();
            let maps = schema.fields().iter().map(|field| field.name());
            let maps = maps.filter(|column| Kind::property_type(column).is_some());
            for map in maps.filter(|column| !is_known || *column == map) {
                let property = Property { map: map.clone(), name: name.clone() };
                if !properties.contains(&property) {
                    properties.push(property);
                }
            }
        }
        let (wider, _) = table.with_properties(&properties);
        let scan = TableScanBuilder::new(scan.table_name.clone(), Source::of(wider))
            .with_filters(scan.filters.clone())
            .with_fetch(scan.fetch)
            .build();
        Some(scan.map(LogicalPlan::TableScan))
    }

    /// What a part of an expression becomes over `columns`: a property its column, a subquery one that reads columns.
    fn part(
        &self,
        part: Expr,
        columns: &DFSchema,
        outer: Option<&DFSchema>,
    ) -> Result<Transformed<Expr>> {
        if let Some(access) = Access::of(&part) {
            let schema = if access.is_outer { outer } else { Some(columns) };
            let column = schema.and_then(|schema| access.column(schema));
            return Ok(column.map_or_else(|| Transformed::no(part.clone()), Transformed::yes));
        }
        let within = |subquery: Subquery| {
            let plan = self.plan(subquery.subquery.as_ref().clone(), Some(columns), false)?;
            let outer_ref_columns = plan.all_out_ref_exprs();
            Ok::<_, datafusion_common::DataFusionError>(Subquery {
                subquery: Arc::new(plan),
                outer_ref_columns,
                spans: subquery.spans,
            })
        };
        Ok(match part {
            Expr::ScalarSubquery(subquery) => {
                Transformed::yes(Expr::ScalarSubquery(within(subquery)?))
            }
            Expr::Exists(Exists { subquery, negated }) => {
                Transformed::yes(Expr::Exists(Exists::new(within(subquery)?, negated)))
            }
            Expr::InSubquery(InSubquery { expr, subquery, negated }) => Transformed::yes(
                Expr::InSubquery(InSubquery::new(expr, within(subquery)?, negated)),
            ),
            Expr::SetComparison(SetComparison { expr, subquery, op, quantifier }) => {
                let subquery = within(subquery)?;
                Transformed::yes(Expr::SetComparison(SetComparison {
                    expr,
                    subquery,
                    op,
                    quantifier,
                }))
            }
            part => Transformed::no(part),
        })
    }

    /// A projection that passes columns of properties on beside their maps, under the name of the map there: `string_props AS s` has
    /// `s['plan']` behind it.
    fn projection(&self, Projection { mut expr, input, .. }: Projection) -> Result<LogicalPlan> {
        let mut more = Vec::new();
        for item in &expr {
            let (map, name) = match item {
                Expr::Column(map) => (map, None),
                Expr::Alias(alias) => match &*alias.expr {
                    Expr::Column(map) => (map, Some(&alias.name)),
                    _ => continue,
                },
                _ => continue,
            };
            for (_, key) in &self.used {
                let access = Access { map, key, is_outer: false };
                let Some(column) = access.column(input.schema()) else { continue };
                let column = match name {
                    Some(name) => column.alias(property_column(name, key)),
                    None => column,
                };
                if !expr.contains(&column) && !more.contains(&column) {
                    more.push(column);
                }
            }
        }
        expr.extend(more);
        Projection::try_new(expr, input).map(LogicalPlan::Projection)
    }
}

/// A plan whose last columns have the names that all of them had in `before`.
///
/// An aggregate `sum(get_field(events.numeric_props, 'ms'))` is called `sum(events.numeric_props[ms])`, and nodes above look for that name;
/// the one over the column is `sum(events.numeric_props['ms'])`. Columns that are passed on come first, and there may be more of them now.
fn with_names(plan: LogicalPlan, before: &DFSchema) -> Result<LogicalPlan> {
    let schema = plan.schema();
    let passed_on = schema.fields().len().saturating_sub(before.fields().len());
    let fields = schema.iter().enumerate();
    let columns = fields.map(|(at, (relation, field))| {
        let column = Expr::Column(Column::from((relation, field)));
        match at.checked_sub(passed_on).map(|at| before.qualified_field(at)) {
            Some((relation, was))
                if is_window_or_group(&plan, at) && was.name() != field.name() =>
            {
                column.alias_qualified(relation.cloned(), was.name())
            }
            _ => column,
        }
    });
    // What tells sets of groups apart is found again by the rule that makes `grouping(x)` of it.
    let is_id = |column: &Expr| matches!(column, Expr::Column(column) if column.name == Aggregate::INTERNAL_GROUPING_ID);
    let columns: Vec<Expr> = columns.filter(|column| !is_id(column)).collect();
    if columns.iter().all(|column| matches!(column, Expr::Column(_))) {
        return Ok(plan);
    }
    Projection::try_new(columns, Arc::new(plan)).map(LogicalPlan::Projection)
}

/// Whether a column is made by the plan and not passed on from its input.
fn is_window_or_group(plan: &LogicalPlan, at: usize) -> bool {
    match plan {
        LogicalPlan::Window(window) => at >= window.input.schema().fields().len(),
        _ => true,
    }
}
