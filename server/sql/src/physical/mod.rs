//! From a logical plan to operators: what `SELECT … FROM events WHERE …` is executed by.
//!
//! The SQL library has a planner for everything that it can do, files and catalogues included; a build of it takes
//! minutes and brings megabytes of readers that a worker must never use. This one knows the kinds of nodes that a
//! statement can have behind the gate, over our own tables, and refuses the rest. Operators, expressions and the rules
//! that improve a plan are the library's.
//!
//! ```text
//! SELECT event_id FROM events WHERE numeric_props['ms'] > (SELECT avg(numeric_props['ms']) FROM events)
//! ORDER BY timestamp DESC LIMIT 3 OFFSET 2
//!
//! ScalarSubqueryExec: subqueries=1
//!   ProjectionExec: expr=[event_id@0 as event_id]
//!     GlobalLimitExec: skip=2, fetch=3
//!       SortPreservingMergeExec: [timestamp@1 DESC], fetch=5
//!         SortExec: TopK(fetch=5), expr=[timestamp@1 DESC], preserve_partitioning=[true]
//!           ProjectionExec: expr=[event_id@1 as event_id, timestamp@0 as timestamp]
//!             RowsExec: [Plain(Time), Plain(EventId), Plain(Number("ms"))], …
//!   ProjectionExec: expr=[part 0@0 / CAST(part 1@1 AS Float64) + 0 as avg(events.numeric_props[ms])]
//!     AggregateExec: mode=Final, gby=[], aggr=[sum(sum of measure 0) as part 0, sum(count of measure 0) as part 1]
//!       …
//!         PartitionedExec: [count of measure 0, sum of measure 0]
//! ```
//!
//! That is the plan after the rules for operators, which add `CoalescePartitionsExec` and `RepartitionExec`, make one operator of a sort and a
//! limit, and push conditions down into `RowsExec`. Here each node of a logical plan becomes one operator, or two:
//!
//! ```text
//! TableScan               RowsExec or PartitionedExec, whichever the table makes (`tables`, `aggregate`); SharedExec for shared rows
//! Aggregate               AggregateExec, partial and final            (aggregate)
//! Join                    HashJoinExec, NestedLoopJoinExec, CrossJoinExec     (join)
//! Window                  WindowsExec, or operators of the library    (windows)
//! Filter, Projection      FilterExec, ProjectionExec
//! Sort, Limit             SortExec, LocalLimitExec and GlobalLimitExec
//! Union                   UnionExec
//! Values, EmptyRelation   a source in memory; PlaceholderRowExec for `SELECT 1`, EmptyExec where no row can pass
//! SubqueryAlias           its input: names are those of the logical plan
//! ```

use std::sync::Arc;

use datafusion_common::{
    DFSchema, HashMap, Result, internal_err, not_impl_err,
    tree_node::{TreeNode as _, TreeNodeRecursion},
};
use datafusion_datasource::memory::MemorySourceConfig;
use datafusion_execution::config::SessionConfig;
use datafusion_expr::{
    EmptyRelation, Expr, FetchType, Filter, Limit, LogicalPlan, Projection, SkipType, Sort,
    TableScan, Values,
    execution_props::ExecutionProps,
    expr::physical_name,
    expr_rewriter::unnormalize_cols,
    logical_plan::Subquery,
    physical_planning_context::{PhysicalPlanningContext, ScalarSubqueryResults, SubqueryIndex},
};
use datafusion_physical_expr::LexOrdering;
use datafusion_physical_plan::{
    ExecutionPlan, ExecutionPlanProperties as _,
    empty::EmptyExec,
    execution_plan::replace_children_if_necessary,
    filter::FilterExecBuilder,
    limit::{GlobalLimitExec, LocalLimitExec},
    placeholder_row::PlaceholderRowExec,
    projection::{ProjectionExec, ProjectionExpr},
    scalar_subquery::{ScalarSubqueryExec, ScalarSubqueryLink},
    sorts::sort::SortExec,
    union::UnionExec,
};

use crate::tables::{ScanRequest, Source};

mod exprs;
mod pass_through;
mod rewrite;

mod barrier;
mod held;

mod aggregate;
mod join;
mod join_bounds;
mod shared;
mod windows;

mod first_rows;
mod tenant_by_tenant;

pub use barrier::KEEP_NAMES_APART;
use exprs::Exprs;
pub use first_rows::READ_FIRST_ROWS;
pub use join_bounds::{DROP_UNUSED_BOUNDS, LEARN_JOIN_BOUNDS};
pub use shared::SharedPlan;
pub use tenant_by_tenant::{TENANT_PARTITION_ROWS, TenantByTenant};

/// Makes physical plans of one statement.
#[derive(Clone, Copy, Debug)]
pub struct Planner<'a> {
    /// Settings of the session: two target partitions, say, rows of a batch, and which operators may be repartitioned.
    pub config: &'a SessionConfig,
    /// When the statement began, which is what `now()` gives.
    pub props: &'a ExecutionProps,
}

impl Planner<'_> {
    /// The operators of a plan that the optimizer has left, before rules for operators.
    ///
    /// Errors: a kind of node that no statement can have; what the library says of an expression; damage of a segment.
    pub fn plan(&self, plan: &LogicalPlan) -> Result<Arc<dyn ExecutionPlan>> {
        // Subqueries for one value are plans of their own, which are run before the rows that are compared with their results.
        let (mut links, mut indexes) = (Vec::new(), HashMap::new());
        for subquery in scalar_subqueries(plan)? {
            let index = SubqueryIndex::new(links.len());
            links.push(ScalarSubqueryLink { plan: self.plan(&subquery.subquery)?, index });
            indexes.insert(subquery, index);
        }
        if links.is_empty() {
            return self.node(plan, &PhysicalPlanningContext::default());
        }
        let results = ScalarSubqueryResults::new(links.len());
        let subqueries = PhysicalPlanningContext::new(indexes, results.clone());
        let plan = self.node(plan, &subqueries)?;
        Ok(Arc::new(ScalarSubqueryExec::new(plan, links, results)))
    }

    /// The operator of a node, over those of its inputs. `subqueries` says where results of scalar subqueries will be.
    fn node(
        &self,
        plan: &LogicalPlan,
        subqueries: &PhysicalPlanningContext,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let inputs = plan.inputs().into_iter().map(|input| self.node(input, subqueries));
        let inputs = inputs.collect::<Result<Vec<_>>>()?;
        let exprs = Exprs { props: self.props, subqueries };
        let is_parallel = self.config.target_partitions() > 1;
        Ok(match plan {
            LogicalPlan::TableScan(scan) => return self.scan(scan),
            LogicalPlan::Values(values) => return self::values(exprs, values),
            LogicalPlan::EmptyRelation(EmptyRelation { produce_one_row: false, schema }) => {
                Arc::new(EmptyExec::new(Arc::clone(schema.inner())))
            }
            LogicalPlan::EmptyRelation(EmptyRelation { produce_one_row: true, schema }) => {
                Arc::new(PlaceholderRowExec::new(Arc::clone(schema.inner())))
            }
            LogicalPlan::Projection(node) => return projection(exprs, node, one(inputs)?),
            LogicalPlan::Filter(node) => return self.filter(exprs, node, one(inputs)?),
            LogicalPlan::Aggregate(node) => {
                let is_partitioned = is_parallel && self.config.repartition_aggregations();
                return aggregate::plan(exprs, node, one(inputs)?, is_partitioned);
            }
            LogicalPlan::Window(node) => {
                let is_partitioned = is_parallel && self.config.repartition_window_functions();
                return windows::plan(exprs, node, one(inputs)?, is_partitioned);
            }
            LogicalPlan::Join(node) => {
                let is_partitioned = is_parallel && self.config.repartition_joins();
                return join::plan(exprs, node, two(inputs)?, is_partitioned);
            }
            LogicalPlan::Sort(Sort { expr, input, fetch }) => {
                let Some(order) = LexOrdering::new(exprs.order(expr, input.schema())?) else {
                    return internal_err!("an order of nothing");
                };
                Arc::new(SortExec::new(order, one(inputs)?).with_fetch(*fetch))
            }
            LogicalPlan::Limit(node) => return limit(node, one(inputs)?),
            LogicalPlan::SubqueryAlias(_) => one(inputs)?,
            LogicalPlan::Union(_) => UnionExec::try_new(inputs)?,
            LogicalPlan::Subquery(_) => {
                return not_impl_err!("Physical plan does not support undecorrelated Subquery");
            }
            other => return not_impl_err!("{}", other.display()),
        })
    }

    /// The plan by which a table is read, with the conditions that it has taken.
    fn scan(&self, scan: &TableScan) -> Result<Arc<dyn ExecutionPlan>> {
        let Some(Source(table)) = scan.source.downcast_ref() else {
            return internal_err!("{} is no table of ours", scan.table_name);
        };
        table.scan(ScanRequest {
            projection: scan.projection.as_ref(),
            filters: &unnormalize_cols(scan.filters.iter().cloned()),
            limit: scan.fetch,
            partitions: self.config.target_partitions(),
        })
    }

    /// A filter, with the share of rows that it is expected to let pass where nothing better is known.
    fn filter(
        &self,
        exprs: Exprs<'_>,
        node: &Filter,
        input: Arc<dyn ExecutionPlan>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let predicate = exprs.one(&node.predicate, node.input.schema())?;
        let filter = FilterExecBuilder::new(predicate, input);
        let filter = filter.with_batch_size(self.config.batch_size()).build()?;
        let selectivity = self.config.options().optimizer.default_filter_selectivity;
        Ok(Arc::new(filter.with_default_selectivity(selectivity)?))
    }
}

/// Subqueries for one value that do not look at rows around them, each once. Those inside of another one are its own. Correlated ones have
/// become joins in the optimizer.
fn scalar_subqueries(plan: &LogicalPlan) -> Result<Vec<Subquery>> {
    let mut found: Vec<Subquery> = Vec::new();
    plan.apply(|node| {
        for expr in node.expressions() {
            expr.apply(|expr| {
                if let Expr::ScalarSubquery(subquery) = expr
                    && subquery.outer_ref_columns.is_empty()
                    && !found.contains(subquery)
                {
                    found.push(subquery.clone());
                }
                Ok(TreeNodeRecursion::Continue)
            })?;
        }
        Ok(TreeNodeRecursion::Continue)
    })?;
    Ok(found)
}

/// The rows of `VALUES (1, 'a'), (2, 'b')`, held in memory.
fn values(exprs: Exprs<'_>, node: &Values) -> Result<Arc<dyn ExecutionPlan>> {
    let rows = node.values.iter().map(|row| exprs.all(row, &node.schema));
    let rows = rows.collect::<Result<Vec<_>>>()?;
    Ok(MemorySourceConfig::try_new_as_values(Arc::clone(node.schema.inner()), rows)?)
}

/// Columns of a projection under the names that operators have for them.
fn projection(
    exprs: Exprs<'_>,
    node: &Projection,
    input: Arc<dyn ExecutionPlan>,
) -> Result<Arc<dyn ExecutionPlan>> {
    let (logical, physical): (&DFSchema, _) = (node.input.schema(), input.schema());
    let column = |expr: &Expr| -> Result<ProjectionExpr> {
        // A column that was computed below has the name that it got there, and not that of the expression.
        let known = match expr {
            Expr::Column(column) => logical.index_of_column(column).ok(),
            _ => None,
        };
        let alias = match known {
            Some(at) => physical.field(at).name().clone(),
            None => physical_name(expr)?,
        };
        Ok(ProjectionExpr { expr: exprs.one(expr, logical)?, alias })
    };
    let columns = node.expr.iter().map(column).collect::<Result<Vec<_>>>()?;
    let schema = node.schema.as_arrow();
    Ok(Arc::new(ProjectionExec::try_new_with_schema_metadata(columns, input, schema)?))
}

/// `LIMIT` and `OFFSET`: each partition gives as many rows as both together, then the merged rows are counted.
///
/// ```text
/// LIMIT 3 OFFSET 2      LocalLimitExec: fetch=5 in each partition, GlobalLimitExec: skip=2, fetch=3
/// OFFSET 5              GlobalLimitExec: skip=5, fetch=None
/// LIMIT (SELECT 1)      This feature is not implemented: LIMIT and OFFSET that are no numbers
/// ```
fn limit(node: &Limit, input: Arc<dyn ExecutionPlan>) -> Result<Arc<dyn ExecutionPlan>> {
    let (SkipType::Literal(skip), FetchType::Literal(fetch)) =
        (node.get_skip_type()?, node.get_fetch_type()?)
    else {
        return not_impl_err!("LIMIT and OFFSET that are no numbers");
    };
    // Above a projection that drops what rows are ordered by, the library takes an order without a fetch for one that nobody needs.
    if let (None, Some(projection)) = (fetch, input.downcast_ref::<ProjectionExec>()) {
        let skipped = limit(node, Arc::clone(projection.input()))?;
        return replace_children_if_necessary(input, vec![skipped]);
    }
    let is_parallel = input.output_partitioning().partition_count() > 1;
    let input = match fetch.and_then(|fetch| fetch.checked_add(skip)).filter(|_| is_parallel) {
        Some(rows) => Arc::new(LocalLimitExec::new(input, rows)),
        None => input,
    };
    Ok(Arc::new(GlobalLimitExec::new(input, skip, fetch)))
}

/// The only input of a node.
fn one(inputs: Vec<Arc<dyn ExecutionPlan>>) -> Result<Arc<dyn ExecutionPlan>> {
    let [input]: [_; 1] = inputs.try_into().or_else(|_| internal_err!("not one input"))?;
    Ok(input)
}

/// Both inputs of a join.
fn two(inputs: Vec<Arc<dyn ExecutionPlan>>) -> Result<[Arc<dyn ExecutionPlan>; 2]> {
    inputs.try_into().or_else(|_| internal_err!("not two inputs"))
}
