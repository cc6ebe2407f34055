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
//!
//! What the statement above becomes:
//!
//! ```text
//! shared 0      SELECT user_id, sum(numeric_props['cost']) AS cost, count(*) AS n FROM events GROUP BY user_id
//! statement     SELECT s.user_id, s.cost FROM "shared 0" s WHERE s.cost > 2 * (SELECT avg(cost) FROM "shared 0")
//! ```
//!
//! And what is not shared:
//!
//! ```text
//! WITH r AS (SELECT user_id, timestamp FROM events) … FROM r a JOIN r b …
//!     rows of events: each use reads them itself
//! WITH g AS (SELECT string_props['org'] AS o, max(…) AS m FROM events GROUP BY 1) … (SELECT m FROM g WHERE o = 'o1'), (SELECT m FROM g WHERE o = 'o2')
//!     each use reads one organisation: shared, all of them would be read
//! WITH g AS (SELECT tenant_id, count(*) … GROUP BY 1) … FROM g a JOIN g b ON a.tenant_id = b.tenant_id WHERE b.tenant_id = 'acme'
//!     not at first, for the same reason; but when the condition has been moved into both, they are the same groups again (share_groups)
//! ```

use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
};

use datafusion_common::{
    Column, Result, TableReference,
    tree_node::{Transformed, TreeNode as _, TreeNodeRecursion},
};
use datafusion_expr::{
    BinaryExpr, Distinct, Expr, LogicalPlan, Operator, Projection, SubqueryAlias, TableScanBuilder,
    utils::split_conjunction,
};

use super::shared_table::{SharedTable, mark_columns_read};
use crate::{rules::plain, tables::Source};

/// Plans of subqueries, which are equal where all of their nodes and expressions are.
type Subqueries = HashSet<Arc<LogicalPlan>>;

/// A plan in which each subquery that stands in it several times is a table, and these tables: one comes behind those that it reads.
///
/// The tables come back in the order in which they can be computed: `shared 1` may read `shared 0`.
///
/// Errors: none that is expected; what the library says.
pub fn share(plan: LogicalPlan) -> Result<(LogicalPlan, Vec<SharedTable>)> {
    let mut repeated = repeated(&plan)?;
    if !repeated.is_empty() {
        // Conditions are still where they were written, above the uses that they are about.
        leave_out_narrowed(&plan, &mut repeated)?;
    }
    let mut tables = SharedTables::default();
    let plan = if repeated.is_empty() { plan } else { tables.replace(plan, &repeated)? };
    Ok((plan, tables.tables))
}

/// Subqueries under names that stand in a plan more than once. Within one that does, subqueries count once.
///
/// Of `WITH a AS (…), b AS (SELECT … FROM a) SELECT … FROM b JOIN b` that is `b`; `a` stands in it twice only because `b` does.
fn repeated(plan: &LogicalPlan) -> Result<Subqueries> {
    let mut counts: HashMap<Arc<LogicalPlan>, usize> = HashMap::new();
    plan.apply_with_subqueries(|node| {
        let Some(subquery) = subquery(node) else { return Ok(TreeNodeRecursion::Continue) };
        if !counts.contains_key(subquery) && !is_worth_sharing(subquery)? {
            return Ok(TreeNodeRecursion::Continue);
        }
        let count = counts.entry(Arc::clone(subquery)).or_default();
        *count += 1;
        // The second time nothing within is counted: it was counted the first time.
        Ok(if *count > 1 { TreeNodeRecursion::Jump } else { TreeNodeRecursion::Continue })
    })?;
    Ok(counts.into_iter().filter(|(_, count)| *count > 1).map(|(subquery, _)| subquery).collect())
}

/// What a node gives a name to. Of two names for the same it is the inner one.
/// A table of events under a name is none: it is read where it is used.
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

/// Whether a subquery makes few rows of many, or takes long to make them. One that looks at the rows around it is another one in each place; one
/// with two columns of a name is no table.
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
        for input in node.inputs() {
            for (column, comparison) in &columns {
                let mut passed = Vec::new();
                if narrows(input, column, *comparison, &mut passed) {
                    repeated.retain(|subquery| !passed.contains(subquery));
                }
            }
        }
        Ok(TreeNodeRecursion::Continue)
    })?;
    Ok(())
}

/// How a column is compared with constants.
///
/// `tenant_id = 'acme'` leaves one of many tenants of a table; `cost > 5` leaves out groups that have to be computed first, unless the column is the time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Comparison {
    /// It is one of a few.
    Equality,
    /// It is less or more than one.
    Range,
}

/// Columns that are compared with constants, or are equal to such columns: of `a.tenant_id = b.tenant_id AND b.tenant_id = 'acme'` both.
///
/// Of `WHERE n.e = 'call' AND n.timestamp >= '2026-11-01'` it is `n.e` by an equality and `n.timestamp` by a range.
fn columns_with_conditions(plan: &LogicalPlan) -> Result<HashMap<Column, Comparison>> {
    let (mut columns, mut equal) = (HashMap::new(), Vec::new());
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
            if let Some((column, comparison)) = compared_with_constants(condition) {
                let known = columns.entry(column.clone()).or_insert(comparison);
                if comparison == Comparison::Equality {
                    *known = comparison;
                }
            }
            if let Expr::BinaryExpr(BinaryExpr { left, op: Operator::Eq, right }) = condition
                && let (Some(left), Some(right)) = (plain(left), plain(right))
            {
                equal.push((left.clone(), right.clone()));
            }
        }
        Ok(TreeNodeRecursion::Continue)
    })?;
    // Each pass adds one at least.
    loop {
        let more =
            equal.iter().find_map(|(one, other)| match (columns.get(one), columns.get(other)) {
                (Some(comparison), None) => Some((other, *comparison)),
                (None, Some(comparison)) => Some((one, *comparison)),
                _ => None,
            });
        let Some((more, comparison)) = more else { return Ok(columns) };
        columns.insert(more.clone(), comparison);
    }
}

/// The column that a condition compares with constants.
///
/// ```text
/// o = 'o1'                        o, Equality
/// o IN ('o1', 'o2')               o, Equality
/// 'o1' = o OR o = 'o2'            o, Equality: both parts are about the same column
/// timestamp BETWEEN x AND y       timestamp, Range
/// n <> 5, n = m, o LIKE 'a%'      nothing
/// ```
fn compared_with_constants(condition: &Expr) -> Option<(&Column, Comparison)> {
    match condition {
        Expr::BinaryExpr(BinaryExpr { left, op: Operator::Or, right }) => {
            let (one, comparison) = compared_with_constants(left)?;
            let (other, of_other) = compared_with_constants(right)?;
            (one == other).then_some((
                one,
                if comparison == of_other { comparison } else { Comparison::Range },
            ))
        }
        Expr::BinaryExpr(BinaryExpr { left, op, right }) => {
            let comparison = match op {
                Operator::Eq => Comparison::Equality,
                Operator::Lt | Operator::LtEq | Operator::Gt | Operator::GtEq => Comparison::Range,
                _ => return None,
            };
            let column = match (&**left, &**right) {
                (column, constant) if is_constant(constant) => column,
                (constant, column) if is_constant(constant) => column,
                _ => return None,
            };
            Some((plain_or_cast(column)?, comparison))
        }
        Expr::Between(between) if !between.negated => {
            let is_constant = is_constant(&between.low) && is_constant(&between.high);
            plain_or_cast(&between.expr).filter(|_| is_constant).map(|one| (one, Comparison::Range))
        }
        Expr::InList(list) if !list.negated => {
            let is_constant = list.list.iter().all(is_constant);
            plain_or_cast(&list.expr).filter(|_| is_constant).map(|one| (one, Comparison::Equality))
        }
        _ => None,
    }
}

/// The column that an expression is, also under a name or within casts.
fn plain_or_cast(expr: &Expr) -> Option<&Column> {
    match expr {
        Expr::Cast(cast) => plain_or_cast(&cast.expr),
        other => plain(other),
    }
}

/// Whether an expression is the same for all rows: of a subquery nobody knows what it is when tables are read.
fn is_constant(expr: &Expr) -> bool {
    let varies = |part: &Expr| {
        matches!(
            part,
            Expr::Column(_)
                | Expr::OuterReferenceColumn(..)
                | Expr::ScalarSubquery(_)
                | Expr::InSubquery(_)
                | Expr::Exists(_)
        )
    };
    !expr.exists(|part| Ok(varies(part))).unwrap_or(true)
}

/// Whether a condition on a column is one for which less is read of a table, and the subqueries between it and the table.
///
/// The column is followed down to the table. A key of a group goes on below the aggregate, a sum does not: `narrows` is false where the column ends before a
/// table. `passed` gets the named subqueries on the way, which would be read as a whole if they were shared.
fn narrows(
    plan: &LogicalPlan,
    column: &Column,
    comparison: Comparison,
    passed: &mut Vec<Arc<LogicalPlan>>,
) -> bool {
    let Ok(at) = plan.schema().index_of_column(column) else { return false };
    passed.extend(subquery(plan).map(Arc::clone));
    let mut through = |input: &LogicalPlan| {
        let fields = input.schema();
        at < fields.fields().len()
            && narrows(input, &Column::from(fields.qualified_field(at)), comparison, passed)
    };
    match plan {
        LogicalPlan::TableScan(_) => {
            comparison == Comparison::Equality || column.name == "timestamp"
        }
        LogicalPlan::SubqueryAlias(named) => through(&named.input),
        LogicalPlan::Distinct(Distinct::All(input)) => through(input),
        LogicalPlan::Union(union) => union.inputs.iter().any(|input| through(input)),
        LogicalPlan::Sort(sort) => through(&sort.input),
        // A function needs all rows of its partitions: a condition on another column leaves out rows only behind it.
        LogicalPlan::Window(window) => {
            window.window_expr.iter().all(|function| is_partitioned_by(function, column))
                && through(&window.input)
        }
        // The subquery has a condition on the time itself.
        LogicalPlan::Filter(filter) if is_about_time(&filter.predicate, column) => false,
        LogicalPlan::Filter(filter) => through(&filter.input),
        LogicalPlan::Projection(projection) => projection
            .expr
            .get(at)
            .and_then(source)
            .is_some_and(|column| narrows(&projection.input, column, comparison, passed)),
        LogicalPlan::Aggregate(aggregate) => aggregate
            .group_expr
            .get(at)
            .and_then(source)
            .is_some_and(|column| narrows(&aggregate.input, column, comparison, passed)),
        LogicalPlan::Join(join) => {
            let side = if join.left.schema().has_column(column) { &join.left } else { &join.right };
            narrows(side, column, comparison, passed)
        }
        _ => false,
    }
}

/// Whether a window function has the column among the keys of its partitions, so that whole partitions are left out.
fn is_partitioned_by(function: &Expr, column: &Column) -> bool {
    match function {
        Expr::Alias(alias) => is_partitioned_by(&alias.expr, column),
        Expr::WindowFunction(window) => {
            window.params.partition_by.iter().any(|key| plain(key) == Some(column))
        }
        _ => false,
    }
}

/// The column that an expression is, or the time that it is computed of.
/// `timestamp` for `date_trunc('day', timestamp)`: a condition on the day leaves out times.
fn source(expr: &Expr) -> Option<&Column> {
    plain(expr).or_else(|| {
        let mut columns = expr.column_refs().into_iter();
        columns.next().filter(|column| column.name == "timestamp" && columns.next().is_none())
    })
}

/// Whether a condition has something to do with this column, and this is the time.
fn is_about_time(condition: &Expr, column: &Column) -> bool {
    column.name == "timestamp" && condition.column_refs().contains(column)
}

/// Groups that a plan still has several times, once conditions and columns have been moved, become tables, behind those that there are.
///
/// Errors: none that is expected; what the library says.
pub fn share_groups(plan: LogicalPlan, shared: &mut Vec<SharedTable>) -> Result<LogicalPlan> {
    let mut counts: HashMap<&LogicalPlan, usize> = HashMap::new();
    plan.apply(|node| {
        if let LogicalPlan::Aggregate(aggregate) = node
            && !aggregate.group_expr.is_empty()
            && !aggregate.aggr_expr.is_empty()
        {
            *counts.entry(node).or_default() += 1;
        }
        Ok(TreeNodeRecursion::Continue)
    })?;
    let mut repeated = Vec::new();
    for (node, count) in counts {
        if count > 1 && is_worth_sharing(node)? {
            repeated.push(node.clone());
        }
    }
    if repeated.is_empty() {
        return Ok(plan);
    }
    let mut tables: HashMap<LogicalPlan, SharedTable> = HashMap::new();
    let replaced = plan.transform_down(|node| {
        if !repeated.contains(&node) {
            return Ok(Transformed::no(node));
        }
        let table = tables.entry(node.clone()).or_insert_with(|| {
            let table = SharedTable::new(shared.len(), node.clone());
            shared.push(table.clone());
            table
        });
        let scan = Arc::new(scan_of(table, &node)?);
        let columns = scan.schema().columns().into_iter().zip(node.schema().iter());
        let columns = columns.map(|(column, (relation, field))| {
            Expr::Column(column).alias_qualified(relation.cloned(), field.name())
        });
        let named = Projection::try_new(columns.collect(), scan)?;
        Ok(Transformed::new(LogicalPlan::Projection(named), true, TreeNodeRecursion::Jump))
    });
    let plan = replaced?.data;
    mark_columns_read(&plan)?;
    Ok(plan)
}

/// A scan of a table that stands in the place of a subquery.
/// It reads all columns at first; rules leave out those that are not needed, as of any table.
fn scan_of(table: &SharedTable, subquery: &LogicalPlan) -> Result<LogicalPlan> {
    let columns = (0..subquery.schema().fields().len()).collect();
    let name = TableReference::bare(table.name());
    let scan = TableScanBuilder::new(name, Arc::new(Source(Arc::new(table.clone()))));
    Ok(LogicalPlan::TableScan(scan.with_projection(Some(columns)).build()?))
}

/// The tables that have been made so far.
#[derive(Default)]
struct SharedTables {
    /// One for each subquery, each behind those that it reads.
    tables: Vec<SharedTable>,
    /// The table of a subquery, by the plan that it had before its own subqueries were replaced.
    by_subquery: HashMap<Arc<LogicalPlan>, SharedTable>,
}

impl SharedTables {
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
            let scan = scan_of(&table, subquery)?;
            let named = SubqueryAlias::try_new(Arc::new(scan), alias.clone())?;
            Ok(Transformed::new(LogicalPlan::SubqueryAlias(named), true, TreeNodeRecursion::Jump))
        });
        replaced.map(|plan| plan.data)
    }

    /// The table of a subquery, which is made at its first use: its own repeated subqueries become tables before it.
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
