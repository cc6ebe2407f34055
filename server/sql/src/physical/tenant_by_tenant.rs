//! A rule for operators: windows within tenants are computed a few tenants at a time.
//!
//! `lag(status) OVER (PARTITION BY tenant_id, user_id ORDER BY timestamp)` over all events of an organisation needs the rows of a user at
//! once, and no two tenants at once. By default rows are shared out by hash among as many partitions as there are threads, and each partition is
//! held until its last row has come: half of all rows with two threads. With this rule the scan has a partition for some tenants, and threads
//! take one after the other:
//!
//! ```text
//! before                                              after
//! AggregateExec: mode=Partial, gby=[source]           AggregateExec: mode=Partial, gby=[source]
//!   WindowsExec: lag … PARTITION BY [number of …]       PartitionQueueExec: 20 partitions by 2
//!     RepartitionExec: Hash([number of tenant_id, …])     WindowsExec: lag … PARTITION BY [number of …]
//!       RowsExec, 2 partitions                              RowsExec, 20 partitions
//! ```
//!
//! Everything between the scan and the first operator that brings partitions together is computed so, as far as it keeps tenants apart:
//!
//! ```text
//! PARTITION BY tenant_id, user_id         tenants are apart                 computed below the queue
//! GROUP BY tenant_id, user_id, run        of the rows of such a window      below the queue, without sharing out partial groups
//! PARTITION BY user_id                    a user may be of several tenants  nothing is changed
//! … WHERE tenant_id = 'largest'           one tenant has most of the rows   nothing is changed: all threads work on its users
//! ```
//!
//! Partitions of a queue come in no order, so the operator above must be one that relies on none.

use std::{
    fmt,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use datafusion_common::{
    Result, Statistics,
    config::ConfigOptions,
    internal_err,
    tree_node::{Transformed, TransformedResult as _, TreeNode as _, TreeNodeRecursion},
};
use datafusion_execution::{SendableRecordBatchStream, TaskContext};
use datafusion_physical_expr::{EquivalenceProperties, expressions::Column};
use datafusion_physical_optimizer::PhysicalOptimizerRule;
use datafusion_physical_plan::{
    ChildStats, DisplayAs, DisplayFormatType, ExecutionPlan, ExecutionPlanProperties as _,
    InputOrderMode, Partitioning, PhysicalExpr, PlanProperties, StatisticsArgs,
    aggregates::{AggregateExec, AggregateMode},
    coalesce_partitions::CoalescePartitionsExec,
    coop::make_cooperative,
    execution_plan::{EmissionType, InvariantLevel, replace_children_if_necessary},
    filter::FilterExec,
    projection::ProjectionExec,
    repartition::RepartitionExec,
    sorts::sort::SortExec,
    stream::RecordBatchStreamAdapter,
};
use futures::StreamExt as _;

use super::windows::WindowsExec;
use crate::tables::RowsExec;

/// Rows of a partition, about. Its columns and what sorts them are some ten megabytes.
pub const TENANT_PARTITION_ROWS: usize = 1 << 17;
/// Partitions that a scan must have rows for: of fewer all rows are held at once.
const PARTITIONS_MIN: usize = 4;

/// Has windows within tenants computed a few tenants at a time.
#[derive(Debug)]
pub struct TenantByTenant {
    /// Rows of a partition, about.
    partition_rows: usize,
}

impl TenantByTenant {
    /// The rule for partitions of about so many rows.
    pub fn of(partition_rows: usize) -> Self {
        Self { partition_rows }
    }
}

impl PhysicalOptimizerRule for TenantByTenant {
    fn name(&self) -> &'static str {
        "tenant_by_tenant"
    }

    fn schema_check(&self) -> bool {
        true
    }

    fn optimize(
        &self,
        plan: Arc<dyn ExecutionPlan>,
        _: &ConfigOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        if !plan.exists(|node| Ok(is_windows(node)))? || plan.exists(|node| Ok(has_order(node)))? {
            return Ok(plan);
        }
        let before = Arc::clone(&plan);
        let root = match self.below_queue(&plan)? {
            Some(root) => root,
            None => plan,
        };
        let below = |plan: Arc<dyn ExecutionPlan>| {
            let [input] = *plan.children() else { return Ok(Transformed::no(plan)) };
            if !relies_on_no_order(&plan) {
                return Ok(Transformed::no(plan));
            }
            Ok(match self.below_queue(input)? {
                // What is below the queue is by tenant already.
                Some(input) => {
                    let plan = replace_children_if_necessary(plan, vec![input])?;
                    Transformed::new(plan, true, TreeNodeRecursion::Jump)
                }
                None => Transformed::no(plan),
            })
        };
        let after = root.transform_down(below).data()?;
        // A join of partitions needs both sides divided alike, also through a sort that stands between.
        let is_broken =
            after.exists(|node| Ok(node.check_invariants(InvariantLevel::Executable).is_err()))?;
        Ok(if is_broken { before } else { after })
    }
}

impl TenantByTenant {
    /// The same rows, computed by tenants; `None` where that is not possible, or of no use.
    fn below_queue(&self, plan: &Arc<dyn ExecutionPlan>) -> Result<Option<Arc<dyn ExecutionPlan>>> {
        let threads = plan.output_partitioning().partition_count();
        // Dividing a scan by tenants costs a look at the tenants of each segment.
        let found = if threads > 1 && has_windows(plan) { self.by_tenant(plan)? } else { None };
        Ok(found.filter(|found| found.has_windows).map(|found| {
            Arc::new(PartitionQueueExec::new(found.plan, threads)) as Arc<dyn ExecutionPlan>
        }))
    }

    /// An operator over partitions of whole tenants.
    fn by_tenant(&self, plan: &Arc<dyn ExecutionPlan>) -> Result<Option<ByTenant>> {
        if let Some(rows) = plan.downcast_ref::<RowsExec>() {
            let divided = (rows.rows() >= PARTITIONS_MIN * self.partition_rows)
                .then(|| rows.by_tenant(self.partition_rows))
                .flatten();
            return Ok(divided.map(|(rows, tenant)| ByTenant {
                plan: Arc::new(rows),
                tenant,
                has_windows: false,
            }));
        }
        let [input] = *plan.children() else { return Ok(None) };
        if !is_by_partition(plan) {
            return Ok(None);
        }
        let Some(input) = self.by_tenant(input)? else { return Ok(None) };
        let ByTenant { plan: below, tenant, has_windows } = input;
        if let Some(repartition) = plan.downcast_ref::<RepartitionExec>() {
            let Partitioning::Hash(keys, _) = repartition.partitioning() else { return Ok(None) };
            // Rows with the same keys are of one tenant, so they are in one partition already.
            return Ok(any_is(keys, &tenant).then_some(ByTenant {
                plan: below,
                tenant,
                has_windows,
            }));
        }
        let Some(tenant) = tenant_after(plan, tenant) else { return Ok(None) };
        let has_windows = has_windows || is_windows(plan);
        let plan = replace_children_if_necessary(Arc::clone(plan), vec![below])?;
        Ok(Some(ByTenant { plan, tenant, has_windows }))
    }
}

/// An operator whose partitions have whole tenants.
struct ByTenant {
    plan: Arc<dyn ExecutionPlan>,
    /// Its columns that tell tenants apart, none where a projection has dropped them.
    tenant: Vec<usize>,
    /// Whether windows are computed in it.
    has_windows: bool,
}

/// Whether an aggregate reads its rows in an order, as `first_value(x ORDER BY t)` does: it may count on the order that windows promise.
fn has_order(plan: &Arc<dyn ExecutionPlan>) -> bool {
    plan.downcast_ref::<AggregateExec>().is_some_and(|aggregate| {
        aggregate.aggr_expr().iter().any(|function| !function.order_bys().is_empty())
    })
}

/// Whether windows are among the operators that are computed by partition.
fn has_windows(plan: &Arc<dyn ExecutionPlan>) -> bool {
    if is_windows(plan) {
        return true;
    }
    match *plan.children() {
        [input] if is_by_partition(plan) => has_windows(input),
        _ => false,
    }
}

fn is_windows(plan: &Arc<dyn ExecutionPlan>) -> bool {
    plan.downcast_ref::<WindowsExec>().is_some()
}

/// Whether an operator computes each partition of its input alone, or only shares rows out.
fn is_by_partition(plan: &Arc<dyn ExecutionPlan>) -> bool {
    plan.downcast_ref::<RepartitionExec>().is_some()
        || plan.downcast_ref::<ProjectionExec>().is_some()
        || plan.downcast_ref::<WindowsExec>().is_some()
        || plan.downcast_ref::<FilterExec>().is_some_and(|filter| filter.fetch().is_none())
        || plan
            .downcast_ref::<SortExec>()
            .is_some_and(|sort| sort.preserve_partitioning() && sort.fetch().is_none())
        || plan.downcast_ref::<AggregateExec>().is_some_and(|aggregate| {
            aggregate.limit_options().is_none() && aggregate.group_expr().is_single()
        })
}

/// The columns that tell tenants apart behind an operator, none where it drops them; `None` where it needs rows of several tenants.
///
/// Of `GROUP BY tenant_id, source` it is the first; `GROUP BY source` mixes tenants.
fn tenant_after(plan: &Arc<dyn ExecutionPlan>, tenant: Vec<usize>) -> Option<Vec<usize>> {
    let indexes = |exprs: &mut dyn Iterator<Item = &Arc<dyn PhysicalExpr>>| -> Vec<usize> {
        let all = exprs.enumerate().filter(|(_, expr)| is_one(expr, &tenant));
        all.map(|(at, _)| at).collect()
    };
    if let Some(projection) = plan.downcast_ref::<ProjectionExec>() {
        return Some(indexes(&mut projection.expr().iter().map(|column| &column.expr)));
    }
    if let Some(aggregate) = plan.downcast_ref::<AggregateExec>() {
        let indexes = indexes(&mut aggregate.group_expr().expr().iter().map(|(key, _)| key));
        return (!indexes.is_empty()).then_some(indexes);
    }
    if let Some(windows) = plan.downcast_ref::<WindowsExec>() {
        return any_is(windows.partition_by(), &tenant).then_some(tenant);
    }
    if let Some(filter) = plan.downcast_ref::<FilterExec>() {
        let Some(columns) = filter.projection() else { return Some(tenant) };
        let left = columns.iter().enumerate().filter(|(_, column)| tenant.contains(column));
        return Some(left.map(|(at, _)| at).collect());
    }
    plan.downcast_ref::<SortExec>().map(|_| tenant)
}

/// Whether an expression is one of these columns.
fn is_one(expr: &Arc<dyn PhysicalExpr>, columns: &[usize]) -> bool {
    expr.downcast_ref::<Column>().is_some_and(|column| columns.contains(&column.index()))
}

fn any_is(exprs: &[Arc<dyn PhysicalExpr>], columns: &[usize]) -> bool {
    exprs.iter().any(|expr| is_one(expr, columns))
}

/// Whether an operator takes rows in any order and in any partition.
///
/// Others, such as `SortPreservingMergeExec`, may rely on an order that their input promised when they were planned.
fn relies_on_no_order(plan: &Arc<dyn ExecutionPlan>) -> bool {
    plan.downcast_ref::<CoalescePartitionsExec>().is_some()
        || plan.downcast_ref::<SortExec>().is_some()
        || plan.downcast_ref::<RepartitionExec>().is_some_and(|plan| !plan.preserve_order())
        || plan.downcast_ref::<AggregateExec>().is_some_and(|aggregate| {
            *aggregate.mode() == AggregateMode::Partial
                && *aggregate.input_order_mode() == InputOrderMode::Linear
        })
}

/// Answers many partitions of its input as few: whoever has answered one takes the next.
pub struct PartitionQueueExec {
    input: Arc<dyn ExecutionPlan>,
    /// Partitions of the input that have been taken.
    taken: Arc<AtomicUsize>,
    /// Partitions of its own that have been asked for.
    executed: AtomicUsize,
    properties: Arc<PlanProperties>,
}

impl PartitionQueueExec {
    /// All partitions of an input, answered as so many.
    fn new(input: Arc<dyn ExecutionPlan>, partitions: usize) -> Self {
        let properties = PlanProperties::new(
            EquivalenceProperties::new(input.schema()),
            Partitioning::UnknownPartitioning(partitions),
            EmissionType::Incremental,
            input.boundedness(),
        );
        Self {
            input,
            taken: Arc::default(),
            executed: AtomicUsize::new(0),
            properties: Arc::new(properties),
        }
    }

    fn partitions(&self) -> usize {
        self.properties.output_partitioning().partition_count()
    }
}

impl fmt::Debug for PartitionQueueExec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PartitionQueueExec").field("input", &self.input).finish_non_exhaustive()
    }
}

impl DisplayAs for PartitionQueueExec {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let partitions = self.input.output_partitioning().partition_count();
        write!(f, "PartitionQueueExec: {partitions} partitions by {}", self.partitions())
    }
}

impl ExecutionPlan for PartitionQueueExec {
    fn name(&self) -> &'static str {
        "PartitionQueueExec"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        vec![&self.input]
    }

    fn apply_expressions(
        &self,
        _: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        Ok(TreeNodeRecursion::Continue)
    }

    fn with_new_children(
        self: Arc<Self>,
        children: Vec<Arc<dyn ExecutionPlan>>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let [input]: [_; 1] = children.try_into().or_else(|_| internal_err!("not one input"))?;
        Ok(Arc::new(Self::new(input, self.partitions())))
    }

    /// It can be executed as often as it has partitions: what has been taken is gone. A plan that was executed gets a new operator (`reset_state`).
    fn execute(&self, _: usize, context: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        if self.executed.fetch_add(1, Ordering::Relaxed) >= self.partitions() {
            return internal_err!("a queue of partitions was executed a second time");
        }
        let (input, taken) = (Arc::clone(&self.input), Arc::clone(&self.taken));
        let partitions = input.output_partitioning().partition_count();
        let next = move || {
            let at = taken.fetch_add(1, Ordering::Relaxed);
            (at < partitions).then(|| input.execute(at, Arc::clone(&context)))
        };
        let streams = futures::stream::iter(std::iter::from_fn(next));
        let batches = streams.flat_map(|stream| match stream {
            Ok(stream) => stream,
            Err(error) => futures::stream::once(async { Err(error) }).boxed(),
        });
        let batches = RecordBatchStreamAdapter::new(self.schema(), batches);
        Ok(make_cooperative(Box::pin(batches)))
    }

    fn child_stats_requests(&self, _: Option<usize>) -> Vec<ChildStats> {
        vec![ChildStats::At(None)]
    }

    fn statistics_from_inputs(
        &self,
        inputs: &[Arc<Statistics>],
        args: &StatisticsArgs,
    ) -> Result<Arc<Statistics>> {
        match (inputs, args.partition()) {
            ([input], None) => Ok(Arc::clone(input)),
            _ => Ok(Arc::new(Statistics::new_unknown(&self.schema()))),
        }
    }
}
