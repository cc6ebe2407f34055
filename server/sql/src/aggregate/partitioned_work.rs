//! Work that partitions do in parallel, piece by piece, and the table provider and operator over it.
//!
//! ```text
//! pieces, with their rows      partition 0        partition 1
//! a 900, b 500, c 400, d 100   a 900, d 100       b 500, c 400
//!
//! PartitionedExec: [tenant_id, rows]              the operator in a plan: the columns that are read of a group
//! ```
//!
//! A partition's batches are made when the operator above asks for them, and a piece's groups are dropped behind its last batch. How many groups
//! there will be is a guess, by which the library decides which input of a join is hashed.

use std::{fmt, sync::Arc};

use arrow::{
    array::{ArrayRef, BooleanArray, RecordBatch},
    datatypes::{Schema, SchemaRef},
};
use datafusion_common::{
    Result, Statistics, config::ConfigOptions, internal_err, stats::Precision,
    tree_node::TreeNodeRecursion,
};
use datafusion_execution::{SendableRecordBatchStream, TaskContext};
use datafusion_expr::{Expr, TableProviderFilterPushDown};
use datafusion_physical_expr::{EquivalenceProperties, Partitioning, PhysicalExpr};
use datafusion_physical_plan::{
    DisplayAs, DisplayFormatType, ExecutionPlan, PlanProperties,
    execution_plan::{Boundedness, EmissionType},
    filter_pushdown::{
        ChildPushdownResult, FilterPushdownPhase, FilterPushdownPropagation, PushedDown,
    },
    metrics::{ExecutionPlanMetricsSet, MetricBuilder, MetricsSet},
    statistics::StatisticsArgs,
    stream::RecordBatchStreamAdapter,
};

use crate::tables::{KnownFilter, Provider, ScanFilters, ScanRequest, balance_by_rows};

/// What is done with each piece.
pub trait PartitionedWork: Send + Sync + 'static {
    /// A part of it that needs no other.
    type Piece: Send + Sync + Clone + 'static;

    /// The columns of its batches.
    fn schema(&self) -> &SchemaRef;

    /// What a piece comes to: its groups, none of them twice. Groups that operators above are known to leave out need not be among them.
    ///
    /// Errors: damage of a segment; more memory than there may be.
    fn batches(
        &self,
        piece: Self::Piece,
        learned: &LearnedFilter,
        context: &TaskContext,
    ) -> Result<Batches>;
}

/// Conditions on groups that operators above have learned by the time that a piece is begun: of `WHERE tenant_id IN (SELECT … LIMIT 10)`
/// the ten tenants, whose groups alone are made. The operators check each group all the same.
pub struct LearnedFilter {
    known: Option<KnownFilter>,
    /// Columns of the work's schema that are read; all of them if none are named.
    projection: Option<Arc<[usize]>>,
}

impl LearnedFilter {
    /// Which of these values of a column of the work's schema groups may have; nothing where all may, and where a condition fails for a value:
    /// values are asked for here that no group has.
    pub fn passing_values(&self, column: usize, values: &ArrayRef) -> Option<BooleanArray> {
        let passing = self.known.as_ref()?.passing_values(self.position(column)?, values);
        passing.ok().flatten().filter(|passing| passing.has_false())
    }

    /// Where a column of the work's schema is among those that are read.
    fn position(&self, column: usize) -> Option<usize> {
        match &self.projection {
            Some(columns) => columns.iter().position(|read| *read == column),
            None => Some(column),
        }
    }
}

/// Batches that are made as they are asked for.
pub type Batches = Box<dyn Iterator<Item = Result<RecordBatch>> + Send>;

/// What is read by work, once it is asked for.
pub trait GroupSource: fmt::Debug + Send + Sync + 'static {
    /// How it is read.
    type PartitionedWork: PartitionedWork;

    /// The columns of its batches.
    fn schema(&self) -> &SchemaRef;

    /// The work in pieces, for so many partitions; beside each piece stands how many rows it reads.
    ///
    /// Errors: damage of a segment.
    fn pieces(
        &self,
        partitions: usize,
    ) -> Result<(Self::PartitionedWork, Pieces<Self::PartitionedWork>)>;

    /// About how many rows come of reading so many: which input of a join is the smaller one is decided by this.
    ///
    /// Errors: damage of a segment.
    fn rows_of(&self, rows_read: usize) -> Result<usize>;
}

/// Pieces, each behind the number of its rows.
pub type Pieces<W> = Vec<(usize, <W as PartitionedWork>::Piece)>;

/// It as a table, in which no conditions are looked for: they are part of it. A condition on what groups come to, as `HAVING` has it, stays
/// above; what joins and orders above learn while they run is taken as a hint.
#[derive(Debug)]
pub struct Table<R>(pub R);

impl<R: GroupSource> Provider for Table<R> {
    fn schema(&self) -> SchemaRef {
        Arc::clone(self.0.schema())
    }

    fn pushdown(&self, _: &Expr) -> TableProviderFilterPushDown {
        TableProviderFilterPushDown::Unsupported
    }

    fn is_grouped(&self) -> bool {
        true
    }

    fn scan(&self, request: ScanRequest<'_>) -> Result<Arc<dyn ExecutionPlan>> {
        let partitions = request.partitions.max(1);
        let (work, pieces) = self.0.pieces(partitions)?;
        let rows = self.0.rows_of(pieces.iter().map(|(rows, _)| rows).sum())?;
        let schema = match request.projection {
            Some(columns) => Arc::new(work.schema().project(columns)?),
            None => Arc::clone(work.schema()),
        };
        let projection = request.projection.map(|columns| Arc::from(columns.as_slice()));
        let shares = balance_by_rows(pieces, partitions);
        let properties = PlanProperties::new(
            EquivalenceProperties::new(Arc::clone(&schema)),
            Partitioning::UnknownPartitioning(partitions),
            EmissionType::Incremental,
            Boundedness::Bounded,
        );
        let properties = Arc::new(properties);
        Ok(Arc::new(PartitionedExec {
            work: Arc::new(work),
            shares,
            rows,
            projection,
            filters: ScanFilters::default(),
            metrics: ExecutionPlanMetricsSet::new(),
            schema,
            properties,
        }))
    }
}

/// The operator over partitioned work.
struct PartitionedExec<W: PartitionedWork> {
    work: Arc<W>,
    /// The pieces of each partition.
    shares: Vec<Vec<W::Piece>>,
    /// About how many rows there are.
    rows: usize,
    /// Columns of the work's batches, all of them if none are named.
    projection: Option<Arc<[usize]>>,
    /// What operators above learn.
    filters: ScanFilters,
    metrics: ExecutionPlanMetricsSet,
    schema: Arc<Schema>,
    properties: Arc<PlanProperties>,
}

impl<W: PartitionedWork> Clone for PartitionedExec<W> {
    fn clone(&self) -> Self {
        Self {
            work: Arc::clone(&self.work),
            shares: self.shares.clone(),
            rows: self.rows,
            projection: self.projection.clone(),
            filters: self.filters.clone(),
            metrics: self.metrics.clone(),
            schema: Arc::clone(&self.schema),
            properties: Arc::clone(&self.properties),
        }
    }
}

impl<W: PartitionedWork> fmt::Debug for PartitionedExec<W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PartitionedExec").field("rows", &self.rows).finish_non_exhaustive()
    }
}

impl<W: PartitionedWork> DisplayAs for PartitionedExec<W> {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let columns = self.schema.fields().iter().map(|field| field.name().as_str());
        write!(f, "PartitionedExec: [{}]", columns.collect::<Vec<_>>().join(", "))
    }
}

impl<W: PartitionedWork> ExecutionPlan for PartitionedExec<W> {
    fn name(&self) -> &str {
        "PartitionedExec"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        Vec::new()
    }

    fn apply_expressions(
        &self,
        visit: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        self.filters.apply(visit)
    }

    fn with_new_children(
        self: Arc<Self>,
        _: Vec<Arc<dyn ExecutionPlan>>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        Ok(self)
    }

    /// What was learned of other rows says nothing of these. Only statements that ask themselves again would need it, and the gate refuses
    /// `WITH RECURSIVE`.
    fn reset_state(self: Arc<Self>) -> Result<Arc<dyn ExecutionPlan>> {
        match self.filters.is_empty() {
            true => Ok(self),
            false => internal_err!("groups with filters that are read again"),
        }
    }

    fn execute(
        &self,
        partition: usize,
        context: Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream> {
        let (work, projection) = (Arc::clone(&self.work), self.projection.clone());
        let (filters, schema) = (self.filters.clone(), Arc::clone(&self.schema));
        let columns = projection.clone();
        let pieces = self.shares.get(partition).cloned().unwrap_or_default();
        let batches = pieces.into_iter().flat_map(move |piece| {
            let made = filters.current(&schema).and_then(|known| {
                let learned = LearnedFilter { known, projection: projection.clone() };
                work.batches(piece, &learned, &context)
            });
            made.unwrap_or_else(|error| Box::new(std::iter::once(Err(error))))
        });
        let output = MetricBuilder::new(&self.metrics).output_rows(partition);
        let batches = batches.map(move |batch| {
            let batch = batch?;
            output.add(batch.num_rows());
            Ok(match &columns {
                Some(columns) => batch.project(columns)?,
                None => batch,
            })
        });
        let (schema, batches) = (Arc::clone(&self.schema), futures::stream::iter(batches));
        Ok(Box::pin(RecordBatchStreamAdapter::new(schema, batches)))
    }

    fn metrics(&self) -> Option<MetricsSet> {
        Some(self.metrics.clone_inner())
    }

    /// Takes what operators above will learn, who go on to check their rows.
    fn handle_child_pushdown_result(
        &self,
        phase: FilterPushdownPhase,
        pushed: ChildPushdownResult,
        _: &ConfigOptions,
    ) -> Result<FilterPushdownPropagation<Arc<dyn ExecutionPlan>>> {
        if pushed.parent_filters.is_empty() || !matches!(phase, FilterPushdownPhase::Post) {
            return Ok(FilterPushdownPropagation::all_unsupported(pushed));
        }
        let mut with_filters = self.clone();
        let answer = with_filters.filters.take(pushed, PushedDown::No);
        Ok(answer.with_updated_node(Arc::new(with_filters)))
    }

    fn statistics_from_inputs(
        &self,
        _: &[Arc<Statistics>],
        args: &StatisticsArgs,
    ) -> Result<Arc<Statistics>> {
        let shares = args.partition().map_or(1, |_| self.shares.len().max(1));
        let rows = Precision::Inexact(self.rows.div_ceil(shares));
        Ok(Arc::new(Statistics::new_unknown(&self.schema).with_num_rows(rows)))
    }
}
