//! Work shared out among partitions: pieces that make batches, one after the other; and work as a table.

use std::{cmp::Reverse, fmt, sync::Arc};

use arrow::{
    array::RecordBatch,
    datatypes::{Schema, SchemaRef},
};
use datafusion_common::{Result, Statistics, stats::Precision, tree_node::TreeNodeRecursion};
use datafusion_execution::{SendableRecordBatchStream, TaskContext};
use datafusion_expr::{Expr, TableProviderFilterPushDown};
use datafusion_physical_expr::{EquivalenceProperties, Partitioning, PhysicalExpr};
use datafusion_physical_plan::{
    DisplayAs, DisplayFormatType, ExecutionPlan, PlanProperties,
    execution_plan::{Boundedness, EmissionType},
    statistics::StatisticsArgs,
    stream::RecordBatchStreamAdapter,
};

use super::source::{Provider, ScanRequest};

/// What is done with each piece.
pub trait Work: Send + Sync + 'static {
    /// A part of it that needs no other.
    type Piece: Send + Sync + Clone + 'static;

    /// The columns of its batches.
    fn schema(&self) -> &SchemaRef;

    /// What a piece comes to.
    ///
    /// Errors: damage of a segment; more memory than there may be.
    fn batches(&self, piece: Self::Piece, context: &TaskContext) -> Result<Batches>;
}

/// Batches that are made as they are asked for.
pub type Batches = Box<dyn Iterator<Item = Result<RecordBatch>> + Send>;

/// What is read by work, once it is asked for.
pub trait Readable: fmt::Debug + Send + Sync + 'static {
    /// How it is read.
    type Work: Work;

    /// The columns of its batches.
    fn schema(&self) -> &SchemaRef;

    /// The work in pieces, for so many partitions; beside each piece stands how many rows it reads.
    ///
    /// Errors: damage of a segment.
    fn pieces(&self, partitions: usize) -> Result<(Self::Work, Pieces<Self::Work>)>;

    /// About how many rows come of reading so many: which input of a join is the smaller one is decided by this.
    ///
    /// Errors: damage of a segment.
    fn rows_of(&self, rows_read: usize) -> Result<usize>;
}

/// Pieces, each behind the number of its rows.
pub type Pieces<W> = Vec<(usize, <W as Work>::Piece)>;

/// It as a table, in which no conditions are looked for: they are part of it.
#[derive(Debug)]
pub struct Table<R>(pub R);

impl<R: Readable> Provider for Table<R> {
    fn schema(&self) -> SchemaRef {
        Arc::clone(self.0.schema())
    }

    fn pushdown(&self, _: &Expr) -> TableProviderFilterPushDown {
        TableProviderFilterPushDown::Unsupported
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
        let shares = shared(pieces, partitions);
        let properties = PlanProperties::new(
            EquivalenceProperties::new(Arc::clone(&schema)),
            Partitioning::UnknownPartitioning(partitions),
            EmissionType::Incremental,
            Boundedness::Bounded,
        );
        let properties = Arc::new(properties);
        Ok(Arc::new(WorkExec {
            work: Arc::new(work),
            shares,
            rows,
            projection,
            schema,
            properties,
        }))
    }
}

/// The largest first, each to who has the least.
pub fn shared<T>(mut pieces: Vec<(usize, T)>, partitions: usize) -> Vec<Vec<T>> {
    pieces.sort_by_key(|(rows, _)| Reverse(*rows));
    let mut shares: Vec<(usize, Vec<T>)> = Vec::new();
    shares.resize_with(partitions.max(1), Default::default);
    for (rows, piece) in pieces {
        if let Some(share) = shares.iter_mut().min_by_key(|(rows, _)| *rows) {
            share.0 += rows;
            share.1.push(piece);
        }
    }
    shares.into_iter().map(|(_, pieces)| pieces).collect()
}

/// Work as an operator.
struct WorkExec<W: Work> {
    work: Arc<W>,
    /// The pieces of each partition.
    shares: Vec<Vec<W::Piece>>,
    /// About how many rows there are.
    rows: usize,
    /// Columns of the work's batches, all of them if none are named.
    projection: Option<Arc<[usize]>>,
    schema: Arc<Schema>,
    properties: Arc<PlanProperties>,
}

impl<W: Work> fmt::Debug for WorkExec<W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WorkExec").field("rows", &self.rows).finish_non_exhaustive()
    }
}

impl<W: Work> DisplayAs for WorkExec<W> {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let columns = self.schema.fields().iter().map(|field| field.name().as_str());
        write!(f, "WorkExec: [{}]", columns.collect::<Vec<_>>().join(", "))
    }
}

impl<W: Work> ExecutionPlan for WorkExec<W> {
    fn name(&self) -> &str {
        "WorkExec"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

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
        let (work, projection) = (Arc::clone(&self.work), self.projection.clone());
        let pieces = self.shares.get(partition).cloned().unwrap_or_default();
        let batches = pieces.into_iter().flat_map(move |piece| {
            let made = work.batches(piece, &context);
            made.unwrap_or_else(|error| Box::new(std::iter::once(Err(error))))
        });
        let batches = batches.map(move |batch| match &projection {
            Some(columns) => Ok(batch?.project(columns)?),
            None => batch,
        });
        let (schema, batches) = (Arc::clone(&self.schema), futures::stream::iter(batches));
        Ok(Box::pin(RecordBatchStreamAdapter::new(schema, batches)))
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
