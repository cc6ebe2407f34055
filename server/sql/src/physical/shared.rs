//! A part of a plan that stands in it several times and is computed once.
//!
//! `WITH spend AS (SELECT user_id, sum(cost) …) … FROM spend s JOIN (SELECT avg(…) FROM spend) u` groups its rows once. Whoever asks for a partition first has
//! it computed; its batches stay until all have read them.
//!
//! ```text
//! WITH spend AS (SELECT tenant_id, user_id, sum(numeric_props['ms']) AS ms FROM events GROUP BY 1, 2),
//! usual AS (SELECT tenant_id, avg(ms) AS mean FROM spend GROUP BY 1)
//! SELECT s.user_id, s.ms FROM spend s JOIN usual u ON s.tenant_id = u.tenant_id WHERE s.ms > u.mean
//!
//! HashJoinExec: mode=CollectLeft, join_type=LeftSemi, on=[(tenant_id@0, tenant_id@0)], filter=mean@1 < ms@0, projection=[user_id@1, ms@2]
//!   CoalescePartitionsExec
//!     SharedExec: ProjectionExec: expr=[tenant_id@0 as tenant_id, user_id@1 as user_id, sum of measure 0@2 as ms]
//!   ProjectionExec: expr=[tenant_id@0 as tenant_id, avg(spend.ms)@1 as mean]
//!     AggregateExec: mode=FinalPartitioned, gby=[tenant_id@0 as tenant_id], aggr=[avg(spend.ms)]
//!       …
//!         SharedExec: ProjectionExec: expr=[tenant_id@0 as tenant_id, user_id@1 as user_id, sum of measure 0@2 as ms]
//! ```
//!
//! Of partition 0, while the statement runs:
//!
//! ```text
//! left input asks for 0         nothing is there: the plan is executed, its batches are collected
//! aggregate asks for 0          the same future is awaited by both
//! the plan has ended            both project their columns from the same batches, which are counted once
//! both have ended               the operators are dropped with the plan, and the memory is given back
//! ```
//!
//! An error of the plan is the error of all that read it.

use std::{fmt, sync::Arc};

use arrow::{
    array::{RecordBatch, RecordBatchOptions},
    datatypes::{Schema, SchemaRef},
};
use datafusion_common::{
    DataFusionError, Result, Statistics, stats::Precision, tree_node::TreeNodeRecursion,
};
use datafusion_execution::{SendableRecordBatchStream, TaskContext, memory_pool::MemoryConsumer};
use datafusion_physical_expr::{EquivalenceProperties, Partitioning};
use datafusion_physical_plan::{
    DisplayAs, DisplayFormatType, ExecutionPlan, ExecutionPlanProperties as _, PhysicalExpr,
    PlanProperties, StatisticsArgs,
    display::DisplayableExecutionPlan,
    execution_plan::{Boundedness, EmissionType},
    statistics::StatisticsContext,
    stream::RecordBatchStreamAdapter,
};
use futures::{
    FutureExt as _, StreamExt as _, TryStreamExt as _,
    future::{BoxFuture, Shared},
};
use parking_lot::Mutex;

use super::held::HeldBatches;

/// The batches of a partition, which all readers hold.
type SharedBatches = Arc<HeldBatches>;
/// The batches of a partition as they will be, or the error that comes instead: a future that several may await.
type Computed = Shared<BoxFuture<'static, Result<SharedBatches, Arc<DataFusionError>>>>;

/// A part of a plan that several places read.
pub struct SharedPlan {
    /// What is computed once.
    plan: Arc<dyn ExecutionPlan>,
    /// Each partition, once somebody has asked for it.
    partitions: Arc<[Mutex<Option<Computed>>]>,
}

impl SharedPlan {
    /// A plan that is ready to be executed.
    pub fn new(plan: Arc<dyn ExecutionPlan>) -> Self {
        let partitions = plan.output_partitioning().partition_count();
        Self { plan, partitions: (0..partitions).map(|_| Mutex::default()).collect() }
    }
}

impl fmt::Debug for SharedPlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SharedPlan").field("plan", &self.plan).finish_non_exhaustive()
    }
}

impl SharedPlan {
    /// The operator by which one reader reads some of its columns, under these names: columns 0 and 2 as `tenant_id` and `ms`.
    pub fn read<'a>(
        &self,
        columns: &[usize],
        names: impl IntoIterator<Item = &'a String>,
    ) -> Arc<dyn ExecutionPlan> {
        let of = self.plan.schema();
        let fields = columns.iter().zip(names);
        let fields = fields.map(|(at, name)| of.field(*at).clone().with_name(name));
        let schema = Arc::new(Schema::new(fields.collect::<Vec<_>>()));
        let properties = PlanProperties::new(
            EquivalenceProperties::new(Arc::clone(&schema)),
            Partitioning::UnknownPartitioning(self.partitions.len()),
            EmissionType::Final,
            Boundedness::Bounded,
        );
        Arc::new(SharedExec {
            plan: Arc::clone(&self.plan),
            partitions: Arc::clone(&self.partitions),
            columns: columns.into(),
            schema,
            properties: Arc::new(properties),
        })
    }
}

/// One of the places in which a shared part of a plan stands.
#[derive(Clone)]
struct SharedExec {
    plan: Arc<dyn ExecutionPlan>,
    partitions: Arc<[Mutex<Option<Computed>>]>,
    /// The columns that are read here.
    columns: Arc<[usize]>,
    schema: SchemaRef,
    properties: Arc<PlanProperties>,
}

impl fmt::Debug for SharedExec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SharedExec").field("plan", &self.plan).finish_non_exhaustive()
    }
}

impl DisplayAs for SharedExec {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let first = DisplayableExecutionPlan::new(&*self.plan).one_line().to_string();
        write!(f, "SharedExec: {}", first.trim())
    }
}

/// All batches of a partition, counted as memory of the consumer `shared`.
///
/// Errors: those of the plan; more memory than there may be.
async fn computed(
    plan: Arc<dyn ExecutionPlan>,
    partition: usize,
    context: Arc<TaskContext>,
) -> Result<SharedBatches, Arc<DataFusionError>> {
    let memory = MemoryConsumer::new("shared").register(context.memory_pool());
    let held = HeldBatches::of(plan.execute(partition, context)?, memory).await?;
    Ok(Arc::new(held))
}

impl ExecutionPlan for SharedExec {
    fn name(&self) -> &str {
        "SharedExec"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    /// None: rules for operators have been applied to what is shared.
    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        Vec::new()
    }

    fn apply_expressions(
        &self,
        _: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        Ok(TreeNodeRecursion::Continue)
    }

    fn with_new_children(
        self: Arc<Self>,
        _: Vec<Arc<dyn ExecutionPlan>>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        Ok(self)
    }

    fn execute(
        &self,
        partition: usize,
        context: Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream> {
        let Some(slot) = self.partitions.get(partition) else {
            return Err(DataFusionError::Internal("a partition that is none".to_owned()));
        };
        let start = || computed(Arc::clone(&self.plan), partition, context).boxed().shared();
        let computed = slot.lock().get_or_insert_with(start).clone();
        let (columns, schema) = (Arc::clone(&self.columns), Arc::clone(&self.schema));
        let batches = futures::stream::once(async move {
            let batches = computed.await.map_err(DataFusionError::Shared)?;
            let read = (0..batches.batches.len()).map(move |at| {
                let batch = batches.batches[at].project(&columns)?;
                let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
                let (_, columns, _) = batch.into_parts();
                Ok(RecordBatch::try_new_with_options(Arc::clone(&schema), columns, &options)?)
            });
            Ok::<_, DataFusionError>(futures::stream::iter(read))
        });
        let batches = batches.try_flatten().boxed();
        Ok(Box::pin(RecordBatchStreamAdapter::new(Arc::clone(&self.schema), batches)))
    }

    fn statistics_from_inputs(
        &self,
        _: &[Arc<Statistics>],
        args: &StatisticsArgs,
    ) -> Result<Arc<Statistics>> {
        let inner = StatisticsContext::new().compute(&*self.plan, args)?;
        let rows = match inner.num_rows {
            Precision::Exact(rows) | Precision::Inexact(rows) => Precision::Inexact(rows),
            Precision::Absent => Precision::Absent,
        };
        Ok(Arc::new(Statistics::new_unknown(&self.schema).with_num_rows(rows)))
    }
}
