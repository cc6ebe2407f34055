//! From a logical plan to operators: what `SELECT … FROM events WHERE …` is executed by.
//!
//! The SQL library has a planner for everything that it can do, files and catalogues included; a build of it takes
//! minutes and brings megabytes of readers that a worker must never use. This one knows the kinds of nodes that a
//! statement can have behind the gate, over our own tables, and refuses the rest. Operators, expressions and the rules
//! that improve a plan are the library's.

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
mod rewrite;

mod barrier;
mod held;

mod aggregate;
mod join;
mod shared;
mod windows;

mod first_rows;

pub use barrier::KEEP_NAMES_APART;
use exprs::Exprs;
pub use first_rows::READ_FIRST_ROWS;
pub use shared::SharedPlan;

/// Makes physical plans of one statement.
#[derive(Clone, Copy, Debug)]
pub struct Planner<'a> {
    pub config: &'a SessionConfig,
    pub props: &'a ExecutionProps,
}

impl Planner<'_> {
    /// The operators of a plan that the optimizer has left, before rules for operators.
    ///
    /// Errors: a kind of node that no statement can have; what the library says of an expression; damage of a segment.
    pub fn plan(&self, plan: &LogicalPlan) -> Result<Arc<dyn ExecutionPlan>> {
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

/// Subqueries for one value that do not look at rows around them, each once. Those inside of another one are its own.
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

fn values(exprs: Exprs<'_>, node: &Values) -> Result<Arc<dyn ExecutionPlan>> {
    let rows = node.values.iter().map(|row| exprs.all(row, &node.schema));
    let rows = rows.collect::<Result<Vec<_>>>()?;
    Ok(MemorySourceConfig::try_new_as_values(Arc::clone(node.schema.inner()), rows)?)
}

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

fn one(inputs: Vec<Arc<dyn ExecutionPlan>>) -> Result<Arc<dyn ExecutionPlan>> {
    let [input]: [_; 1] = inputs.try_into().or_else(|_| internal_err!("not one input"))?;
    Ok(input)
}

fn two(inputs: Vec<Arc<dyn ExecutionPlan>>) -> Result<[Arc<dyn ExecutionPlan>; 2]> {
    inputs.try_into().or_else(|_| internal_err!("not two inputs"))
}
