//! Work shared out among partitions: pieces that make batches, one after the other; and work as a table.

use std::{cmp::Reverse, fmt, sync::Arc};

use arrow::{array::RecordBatch, datatypes::SchemaRef};
use datafusion_common::Result;
use datafusion_execution::{SendableRecordBatchStream, TaskContext};
use datafusion_expr::{Expr, TableProviderFilterPushDown};
use datafusion_physical_plan::{
    ExecutionPlan,
    stream::RecordBatchStreamAdapter,
    streaming::{PartitionStream, StreamingTableExec},
};
use futures::StreamExt as _;

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
        let work = Arc::new(work);
        let shares = shared(pieces, partitions).into_iter().map(|pieces| {
            let share = Share { work: Arc::clone(&work), pieces };
            Arc::new(share) as Arc<dyn PartitionStream>
        });
        let (schema, shares) = (Arc::clone(work.schema()), shares.collect());
        let ScanRequest { projection, limit, .. } = request;
        let plan = StreamingTableExec::try_new(schema, shares, projection, [], false, limit)?;
        Ok(Arc::new(plan))
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

/// What a partition does.
struct Share<W: Work> {
    work: Arc<W>,
    pieces: Vec<W::Piece>,
}

impl<W: Work> fmt::Debug for Share<W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Share").field("pieces", &self.pieces.len()).finish_non_exhaustive()
    }
}

impl<W: Work> PartitionStream for Share<W> {
    fn schema(&self) -> &SchemaRef {
        self.work.schema()
    }

    fn execute(&self, context: Arc<TaskContext>) -> SendableRecordBatchStream {
        let (work, schema) = (Arc::clone(&self.work), Arc::clone(self.work.schema()));
        let batches = self.pieces.clone().into_iter().map(move |piece| {
            let made = work.batches(piece, &context);
            made.unwrap_or_else(|error| Box::new(std::iter::once(Err(error))))
        });
        let batches = futures::stream::iter(batches).flat_map(futures::stream::iter);
        Box::pin(RecordBatchStreamAdapter::new(schema, batches))
    }
}
