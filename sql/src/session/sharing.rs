//! Subqueries that a statement uses several times are computed once.
//!
//! ```text
//! WITH spend AS (SELECT user_id, sum(numeric_props['cost']) AS cost, count(*) AS n FROM events GROUP BY user_id)
//! SELECT s.user_id, s.cost FROM spend s WHERE s.cost > 2 * (SELECT avg(cost) FROM spend)
//! ```
//!
//! A name of `WITH` is put in the place of each of its uses. Before conditions are moved and columns are left out, the uses are the same; a
//! table stands in the place of each (`shared_table.rs`). Rows of events are read where they are used: only groups, distinct rows and windows
//! are shared, and they are not where a condition on one use would have left out most of what is read.

use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
};

use datafusion_common::{
    Column, Result, TableReference,
    tree_node::{Transformed, TreeNode as _, TreeNodeRecursion},
};
use datafusion_expr::{
    BinaryExpr, Distinct, Expr, LogicalPlan, Operator, SubqueryAlias, TableScanBuilder,
    utils::split_conjunction,
};

use super::shared_table::SharedTable;
use crate::table::{Source, plain};

type Subqueries = HashSet<Arc<LogicalPlan>>;

/// A plan in which subqueries that it has several times are tables, and these: a table comes behind those that it reads.
///
/// Errors: none that is expected; what the library says.
pub fn share(plan: LogicalPlan) -> Result<(LogicalPlan, Vec<SharedTable>)> {
    let mut repeated = repeated(&plan)?;
    if !repeated.is_empty() {
        leave_out_narrowed(&plan, &mut repeated)?;
    }
    let mut tables = Tables::default();
    let plan = if repeated.is_empty() { plan } else { tables.replace(plan, &repeated)? };
    Ok((plan, tables.tables))
}

/// Subqueries under names that stand in a plan more than once. Within one that does, subqueries count once.
fn repeated(plan: &LogicalPlan) -> Result<Subqueries> {
    let mut counts: HashMap<Arc<LogicalPlan>, usize> = HashMap::new();
    plan.apply_with_subqueries(|node| {
        let Some(subquery) = subquery(node) else { return Ok(TreeNodeRecursion::Continue) };
        if !counts.contains_key(subquery) && !is_worth_sharing(subquery)? {
            return Ok(TreeNodeRecursion::Continue);
        }
        let count = counts.entry(Arc::clone(subquery)).or_default();
        *count += 1;
        Ok(if *count > 1 { TreeNodeRecursion::Jump } else { TreeNodeRecursion::Continue })
    })?;
    Ok(counts.into_iter().filter(|(_, count)| *count > 1).map(|(subquery, _)| subquery).collect())
}

/// What a node gives a name to. Of two names for the same it is the inner one.
fn subquery(node: &LogicalPlan) -> Option<&Arc<LogicalPlan>> {
    match node {
        LogicalPlan::SubqueryAlias(SubqueryAlias { input, .. })
            if !matches!(**input, LogicalPlan::SubqueryAlias(_) | LogicalPlan::TableScan(_)) =>
        {
            Some(input)
        }
        _ => None,
    }
}

/// Whether a subquery makes few rows of many, or takes long to make them. One that looks at the rows around it is another one in each place.
fn is_worth_sharing(subquery: &LogicalPlan) -> Result<bool> {
    let fields = subquery.schema().fields();
    let names: HashSet<&String> = fields.iter().map(|field| field.name()).collect();
    if names.len() < fields.len() {
        return Ok(false);
    }
    let (mut reads, mut computes, mut is_correlated) = (false, false, false);
    subquery.apply_with_subqueries(|node| {
        match node {
            LogicalPlan::TableScan(_) => reads = true,
            LogicalPlan::Aggregate(_) | LogicalPlan::Distinct(_) | LogicalPlan::Window(_) => {
                computes = true;
            }
            LogicalPlan::Subquery(subquery) => {
                is_correlated |= !subquery.outer_ref_columns.is_empty();
            }
            _ => {}
        }
        node.apply_expressions(|expr| {
            is_correlated |=
                expr.exists(|part| Ok(matches!(part, Expr::OuterReferenceColumn(..))))?;
            Ok(TreeNodeRecursion::Continue)
        })
    })?;
    Ok(reads && computes && !is_correlated)
}

/// Leaves out subqueries of which a condition on a use leaves a part that can be read alone: one tenant, one kind of events.
fn leave_out_narrowed(plan: &LogicalPlan, repeated: &mut Subqueries) -> Result<()> {
    let columns = columns_with_conditions(plan)?;
    plan.apply_with_subqueries(|node| {
        if !matches!(node, LogicalPlan::Filter(_) | LogicalPlan::Join(_)) {
            return Ok(TreeNodeRecursion::Continue);
        }
        let inputs = node.inputs();
        let pairs =
            inputs.iter().flat_map(|input| columns.iter().map(move |column| (input, column)));
        for (input, column) in pairs {
            let mut on_the_way = Vec::new();
            if narrows(input, column, &mut on_the_way) {
                repeated.retain(|subquery| !on_the_way.contains(subquery));
            }
        }
        Ok(TreeNodeRecursion::Continue)
    })?;
    Ok(())
}

/// Columns that are compared with constants, or with such columns: of `a.tenant_id = b.tenant_id AND b.tenant_id = 'acme'` both.
fn columns_with_conditions(plan: &LogicalPlan) -> Result<HashSet<Column>> {
    let (mut columns, mut equal) = (HashSet::new(), Vec::new());
    plan.apply_with_subqueries(|node| {
        let conditions = match node {
            LogicalPlan::Filter(filter) => split_conjunction(&filter.predicate),
            LogicalPlan::Join(join) => {
                let keys = join.on.iter().filter_map(|(left, right)| plain(left).zip(plain(right)));
                equal.extend(keys.map(|(left, right)| (left.clone(), right.clone())));
                join.filter.iter().flat_map(split_conjunction).collect()
            }
            _ => Vec::new(),
        };
        for condition in conditions {
            let named: Vec<&Column> = condition.column_refs().into_iter().collect();
            match (&*named, condition) {
                ([one], _) => columns.extend([Column::clone(one)]),
                ([one, other], Expr::BinaryExpr(BinaryExpr { op: Operator::Eq, .. })) => {
                    equal.push((Column::clone(one), Column::clone(other)));
                }
                _ => {}
            }
        }
        Ok(TreeNodeRecursion::Continue)
    })?;
    // Each pass adds one at least.
    loop {
        let more = equal.iter().find_map(|(one, other)| {
            match (columns.contains(one), columns.contains(other)) {
                (true, false) => Some(other),
                (false, true) => Some(one),
                _ => None,
            }
        });
        let Some(more) = more else { return Ok(columns) };
        columns.insert(more.clone());
    }
}

/// Whether a condition on a column is one that the engine reads less for, and the subqueries between it and the table.
fn narrows(plan: &LogicalPlan, column: &Column, on_the_way: &mut Vec<Arc<LogicalPlan>>) -> bool {
    let Ok(at) = plan.schema().index_of_column(column) else { return false };
    on_the_way.extend(subquery(plan).map(Arc::clone));
    let mut same_place = |input: &LogicalPlan| {
        let fields = input.schema();
        at < fields.fields().len()
            && narrows(input, &Column::from(fields.qualified_field(at)), on_the_way)
    };
    match plan {
        LogicalPlan::TableScan(_) => {
            ["tenant_id", "event_name", "user_id", "timestamp"].contains(&&*column.name)
        }
        LogicalPlan::SubqueryAlias(named) => same_place(&named.input),
        LogicalPlan::Distinct(Distinct::All(input)) => same_place(input),
        LogicalPlan::Union(union) => union.inputs.iter().any(|input| same_place(input)),
        LogicalPlan::Window(window) => same_place(&window.input),
        LogicalPlan::Sort(sort) => same_place(&sort.input),
        // The statement says itself which times it is about.
        LogicalPlan::Filter(filter) if is_about_time(&filter.predicate, column) => false,
        LogicalPlan::Filter(filter) => same_place(&filter.input),
        LogicalPlan::Projection(projection) => projection
            .expr
            .get(at)
            .and_then(source)
            .is_some_and(|column| narrows(&projection.input, column, on_the_way)),
        LogicalPlan::Aggregate(aggregate) => aggregate
            .group_expr
            .get(at)
            .and_then(source)
            .is_some_and(|column| narrows(&aggregate.input, column, on_the_way)),
        LogicalPlan::Join(join) => {
            let side = if join.left.schema().has_column(column) { &join.left } else { &join.right };
            narrows(side, column, on_the_way)
        }
        _ => false,
    }
}

/// The column that an expression is, or the time that it is computed of.
fn source(expr: &Expr) -> Option<&Column> {
    plain(expr).or_else(|| {
        let mut columns = expr.column_refs().into_iter();
        columns.next().filter(|column| column.name == "timestamp" && columns.next().is_none())
    })
}

fn is_about_time(condition: &Expr, column: &Column) -> bool {
    column.name == "timestamp" && condition.column_refs().contains(column)
}

/// The tables that have been made so far.
#[derive(Default)]
struct Tables {
    tables: Vec<SharedTable>,
    by_subquery: HashMap<Arc<LogicalPlan>, SharedTable>,
}

impl Tables {
    /// A plan that reads tables in the place of these subqueries.
    fn replace(&mut self, plan: LogicalPlan, repeated: &Subqueries) -> Result<LogicalPlan> {
        let replaced = plan.transform_down_with_subqueries(|node| {
            let Some(subquery) = subquery(&node).filter(|one| repeated.contains(*one)) else {
                return Ok(Transformed::no(node));
            };
            let table = self.table_for(subquery, repeated)?;
            let LogicalPlan::SubqueryAlias(SubqueryAlias { alias, .. }) = &node else {
                return Ok(Transformed::no(node));
            };
            let columns = (0..subquery.schema().fields().len()).collect();
            let name = TableReference::bare(table.name());
            let scan = TableScanBuilder::new(name, Arc::new(Source(Arc::new(table))));
            let scan = scan.with_projection(Some(columns)).build()?;
            let scan = Arc::new(LogicalPlan::TableScan(scan));
            let named = SubqueryAlias::try_new(scan, alias.clone())?;
            Ok(Transformed::new(LogicalPlan::SubqueryAlias(named), true, TreeNodeRecursion::Jump))
        });
        replaced.map(|plan| plan.data)
    }

    fn table_for(
        &mut self,
        subquery: &Arc<LogicalPlan>,
        repeated: &Subqueries,
    ) -> Result<SharedTable> {
        if let Some(table) = self.by_subquery.get(subquery) {
            return Ok(table.clone());
        }
        let plan = self.replace(LogicalPlan::clone(subquery), repeated)?;
        let table = SharedTable::new(self.tables.len(), plan);
        self.tables.push(table.clone());
        self.by_subquery.insert(Arc::clone(subquery), table.clone());
        Ok(table)
    }
}
