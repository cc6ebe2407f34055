//! `OVER (…)` for all rows of an input at once.
//!
//! The library's operators for windows ask each function row by row or partition by partition, which costs a dozen allocations each time;
//! there are a hundred thousand partitions where they are users. This one collects its input, sorts it, finds where partitions begin, and
//! computes each function's column in one pass:
//!
//! ```text
//! WindowsExec: lag(timestamp) … PARTITION BY [number of user_id] ORDER BY [timestamp, event_id]
//!   RepartitionExec: Hash([number of user_id], 2)
//!     RowsExec
//! ```
//!
//! Functions and frames that are not known here are the library's (`plan.rs`).
//!
//! The steps, for `lag(ms) OVER (PARTITION BY user_id ORDER BY timestamp)` and `row_number()` beside it:
//!
//! ```text
//! rows as they come           sorted: `indexes`         ranges               columns
//! 0  user 9  09:12  ms 5      1   user 7  09:10        partition 0..1       lag NULL   row_number 1
//! 1  user 7  09:10  ms 3      2   user 9  09:11        partition 1..3       lag NULL   row_number 1
//! 2  user 9  09:11  ms 4      0   user 9  09:12                             lag 4      row_number 2
//! ```
//!
//! Rows are answered in the sorted order, in batches of the session's size, each with the columns of the input and those of the functions
//! behind them. Memory is counted as the consumer `windows`: the input, 96 bytes a row for what is sorted, and each column that is made.

mod frames;
mod partition_numbers;

mod aggregates;

mod functions;

mod plan;

use std::{fmt, ops::Range, sync::Arc};

use arrow::{
    array::{Array as _, ArrayRef, RecordBatch, RecordBatchOptions, UInt32Array},
    compute::{concat_batches, partition, take, take_record_batch},
    datatypes::SchemaRef,
};
use datafusion_common::{
    ColumnStatistics, Result, Statistics, cast::as_boolean_array, internal_err,
    tree_node::TreeNodeRecursion,
};
use datafusion_execution::{SendableRecordBatchStream, TaskContext, memory_pool::MemoryConsumer};
use datafusion_physical_expr::{EquivalenceProperties, LexOrdering, PhysicalSortExpr};
use datafusion_physical_plan::{
    ChildStats, DisplayAs, DisplayFormatType, Distribution, ExecutionPlan,
    ExecutionPlanProperties as _, InputDistributionRequirements, PhysicalExpr, PlanProperties,
    StatisticsArgs, execution_plan::EmissionType, stream::RecordBatchStreamAdapter,
};
use futures::{StreamExt as _, TryStreamExt as _};

use super::held::HeldBatches;
use crate::{row_order::sorted, tables::with_own_texts};
use frames::Layout;
pub use functions::Kind;
use functions::{Function, Input};
use partition_numbers::{is_numbered, numbered};
pub use plan::plan;

/// Rows that an input can have: indexes of rows are of 32 bits, and one more is needed.
const ROWS_MAX: usize = u32::MAX as usize - 1;
/// Bytes of a value in a column, at most, but for texts and maps.
const COPIED_VALUE_BYTES: usize = 16;
/// Bytes that a row takes besides its columns: its keys, its index, and what is sorted.
const SORTED_ROW_BYTES: usize = 96;

/// Functions that share their partitions and their order, over rows in that order.
#[derive(Clone)]
pub struct WindowsExec {
    /// Where rows come from, in any order.
    input: Arc<dyn ExecutionPlan>,
    /// In the order of their columns.
    functions: Arc<[Function]>,
    /// What tells partitions apart: `number of user_id@1`. All rows are one partition without it.
    partition_by: Arc<[Arc<dyn PhysicalExpr>]>,
    /// The order within a partition: `timestamp@0 ASC NULLS LAST`.
    order_by: Arc<[PhysicalSortExpr]>,
    /// Partitions and order; nothing where all rows are one partition in any order.
    sort: Option<LexOrdering>,
    /// Whether rows of different partitions may be in different inputs.
    is_partitioned: bool,
    /// The columns of the input, then those of the functions.
    schema: SchemaRef,
    properties: Arc<PlanProperties>,
}

impl WindowsExec {
    /// An operator over an input, whose order it promises to operators above only where partitions are sorted by their values: texts are
    /// sorted by numbers of their own, so partitions of texts stand beside each other in no order that could be promised.
    fn new(
        input: Arc<dyn ExecutionPlan>,
        functions: Arc<[Function]>,
        partition_by: Arc<[Arc<dyn PhysicalExpr>]>,
        order_by: Arc<[PhysicalSortExpr]>,
        is_partitioned: bool,
        schema: SchemaRef,
    ) -> Self {
        let partitions =
            partition_by.iter().map(|key| PhysicalSortExpr::new_default(Arc::clone(key)));
        let sort = LexOrdering::new(partitions.chain(order_by.iter().cloned()));
        let schema_before = input.schema();
        let is_numbered = |key: &Arc<dyn PhysicalExpr>| {
            key.data_type(&schema_before).is_ok_and(|kind| is_numbered(&kind))
        };
        let is_in_order = is_sorted(&input, sort.as_ref()) || !partition_by.iter().any(is_numbered);
        let order = sort.clone().filter(|_| is_in_order);
        let equal = EquivalenceProperties::new_with_orderings(Arc::clone(&schema), order);
        let partitioning = input.output_partitioning().clone();
        let properties =
            PlanProperties::new(equal, partitioning, EmissionType::Final, input.boundedness());
        let properties = Arc::new(properties);
        Self { input, functions, partition_by, order_by, sort, is_partitioned, schema, properties }
    }

    /// Its functions, in the order of their columns.
    pub fn kinds(&self) -> impl Iterator<Item = &Kind> {
        self.functions.iter().map(|function| &function.kind)
    }

    /// What tells partitions apart.
    pub fn partition_by(&self) -> &[Arc<dyn PhysicalExpr>] {
        &self.partition_by
    }

    /// The order within a partition.
    pub fn order_by(&self) -> &[PhysicalSortExpr] {
        &self.order_by
    }

    /// All rows of the input, in order and with the columns of functions, in batches.
    ///
    /// Errors: more memory than there may be; what an expression says.
    fn answers(
        &self,
        rows: HeldBatches,
        batch_rows: usize,
    ) -> Result<impl Iterator<Item = Result<RecordBatch>> + use<>> {
        let HeldBatches { batches, memory, .. } = rows;
        let rows: usize = batches.iter().map(RecordBatch::num_rows).sum();
        // Texts are shared with the copy; the batches themselves are dropped when it is made.
        let copied = rows.saturating_mul(self.input.schema().fields().len() * COPIED_VALUE_BYTES);
        memory.try_grow(copied)?;
        let batch = concat_batches(&self.input.schema(), &batches)?;
        drop(batches);
        memory.shrink(copied);
        if rows > ROWS_MAX {
            return internal_err!("{rows} rows of one window");
        }
        memory.try_grow(rows.saturating_mul(SORTED_ROW_BYTES))?;
        let sorted = Sorted::of(self, &batch)?;
        let layout = sorted.layout(self)?;
        let mut columns: Vec<ArrayRef> = Vec::new();
        for function in self.functions.iter() {
            let column = |expr: &Arc<dyn PhysicalExpr>| sorted.column(expr, &batch);
            let filter = function.filter.as_ref().map(column).transpose()?;
            let input = Input {
                argument: function.argument.as_ref().map(column).transpose()?,
                filter: filter.map(|filter| as_boolean_array(&filter).cloned()).transpose()?,
            };
            let answers = with_own_texts(function.answers(&input, &layout)?);
            memory.try_grow(answers.get_array_memory_size())?;
            columns.push(answers);
        }
        let (schema, indexes) = (Arc::clone(&self.schema), sorted.indexes);
        // Batches are made as they are asked for; what is counted stays counted until the last.
        let batches = (0..rows).step_by(batch_rows.max(1)).map(move |start| {
            let length = batch_rows.min(rows - start);
            let _held = &memory;
            let input = match &indexes {
                Some(indexes) => take_record_batch(&batch, &indexes.slice(start, length))?,
                None => batch.slice(start, length),
            };
            let made = columns.iter().map(|column| column.slice(start, length));
            let all = input.columns().iter().cloned().chain(made).map(with_own_texts).collect();
            let options = RecordBatchOptions::new().with_row_count(Some(length));
            Ok(RecordBatch::try_new_with_options(Arc::clone(&schema), all, &options)?)
        });
        Ok(batches)
    }
}

/// Whether an input has its rows in an order already, as another window with the same partitions and order gives them.
fn is_sorted(input: &Arc<dyn ExecutionPlan>, sort: Option<&LexOrdering>) -> bool {
    let has = |sort: &LexOrdering| input.equivalence_properties().ordering_satisfy(sort.clone());
    sort.is_none_or(|sort| has(sort).unwrap_or(false))
}

/// Rows in their order.
struct Sorted {
    /// Where each row comes from; nothing where they are in order already.
    indexes: Option<UInt32Array>,
    /// What tells partitions apart, texts by their numbers.
    partition_by: Vec<ArrayRef>,
    /// The columns of the order within a partition.
    order_by: Vec<ArrayRef>,
    /// How many rows there are.
    rows: usize,
}

impl Sorted {
    /// The order of a batch with all rows.
    ///
    /// Errors: what an expression says; a type that has no order.
    fn of(windows: &WindowsExec, batch: &RecordBatch) -> Result<Self> {
        let rows = batch.num_rows();
        let evaluated = |expr: &Arc<dyn PhysicalExpr>| expr.evaluate(batch)?.into_array(rows);
        let is_sorted = is_sorted(&windows.input, windows.sort.as_ref());
        let mut partition_by = Vec::new();
        for expr in windows.partition_by.iter() {
            let column = evaluated(expr)?;
            // Rows that are in order already are compared with their neighbours alone: numbering texts would take longer.
            partition_by.push(if is_sorted { column } else { numbered(column) });
        }
        let mut keys = Vec::new();
        for key in windows.sort.iter().flatten() {
            let partition = windows.partition_by.iter().position(|expr| expr.eq(&key.expr));
            let column = match partition {
                // The numbers, where texts have them: partitions are sorted by the same column that tells them apart.
                Some(at) => Arc::clone(&partition_by[at]),
                None => evaluated(&key.expr)?,
            };
            keys.push((column, key.options));
        }
        let indexes = (!is_sorted).then(|| sorted(&keys, rows)).transpose()?.map(UInt32Array::from);
        let mut sorted = Self { indexes, partition_by: Vec::new(), order_by: Vec::new(), rows };
        for column in partition_by {
            sorted.partition_by.push(sorted.in_order(column)?);
        }
        for key in windows.order_by.iter() {
            sorted.order_by.push(sorted.column(&key.expr, batch)?);
        }
        Ok(sorted)
    }

    /// An expression over the rows in their order.
    fn column(&self, expr: &Arc<dyn PhysicalExpr>, batch: &RecordBatch) -> Result<ArrayRef> {
        self.in_order(expr.evaluate(batch)?.into_array(batch.num_rows())?)
    }

    /// A column of the rows as they came.
    fn in_order(&self, column: ArrayRef) -> Result<ArrayRef> {
        Ok(match &self.indexes {
            Some(indexes) => take(&column, indexes, None)?,
            None => column,
        })
    }

    /// Where partitions begin, and which rows of them are alike where a function or a frame asks for that.
    fn layout(&self, windows: &WindowsExec) -> Result<Layout> {
        let partitions = self.ranges(&self.partition_by)?;
        let needs_peers = |function: &Function| {
            function.kind.needs_peers() || function.kind.has_frame() && function.frame.needs_peers()
        };
        let peers = match windows.functions.iter().any(needs_peers) {
            true => {
                let mut all = self.partition_by.clone();
                all.extend(self.order_by.iter().cloned());
                self.ranges(&all)?
            }
            false => Vec::new(),
        };
        let first = self.order_by.first().zip(windows.order_by.first());
        let order = first.map(|(column, key)| (ArrayRef::clone(column), key.options));
        Ok(Layout { partitions, peers, order })
    }

    /// Rows that are alike in these columns, which are sorted: `7, 9, 9` is `0..1, 1..3`. Without columns all rows are alike.
    fn ranges(&self, columns: &[ArrayRef]) -> Result<Vec<Range<usize>>> {
        match (self.rows, columns) {
            (0, _) => Ok(Vec::new()),
            (rows, []) => Ok(std::iter::once(0..rows).collect()),
            (_, columns) => Ok(partition(columns)?.ranges()),
        }
    }
}

impl fmt::Debug for WindowsExec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WindowsExec").field("functions", &self.functions).finish_non_exhaustive()
    }
}

impl DisplayAs for WindowsExec {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&str> =
            self.functions.iter().map(|function| function.field.name().as_str()).collect();
        write!(f, "WindowsExec: {}, PARTITION BY [", names.join(", "))?;
        for (at, key) in self.partition_by.iter().enumerate() {
            write!(f, "{}{key}", if at > 0 { ", " } else { "" })?;
        }
        write!(f, "] ORDER BY [")?;
        for (at, key) in self.order_by.iter().enumerate() {
            write!(f, "{}{key}", if at > 0 { ", " } else { "" })?;
        }
        write!(f, "]")
    }
}

impl ExecutionPlan for WindowsExec {
    fn name(&self) -> &str {
        "WindowsExec"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        vec![&self.input]
    }

    fn input_distribution_requirements(&self) -> InputDistributionRequirements {
        let distribution = match self.is_partitioned && !self.partition_by.is_empty() {
            true => Distribution::KeyPartitioned(self.partition_by.to_vec()),
            false => Distribution::SinglePartition,
        };
        InputDistributionRequirements::new(vec![distribution])
    }

    fn required_input_distribution(&self) -> Vec<Distribution> {
        self.input_distribution_requirements().into_per_child()
    }

    fn apply_expressions(
        &self,
        visit: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        let of_functions = self
            .functions
            .iter()
            .flat_map(|function| function.argument.iter().chain(&function.filter));
        let order = self.order_by.iter().map(|key| &key.expr);
        for expr in of_functions.chain(self.partition_by.iter()).chain(order) {
            if visit(expr)? == TreeNodeRecursion::Stop {
                return Ok(TreeNodeRecursion::Stop);
            }
        }
        Ok(TreeNodeRecursion::Continue)
    }

    fn with_new_children(
        self: Arc<Self>,
        children: Vec<Arc<dyn ExecutionPlan>>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let [input]: [_; 1] = children.try_into().or_else(|_| internal_err!("not one input"))?;
        let Self { functions, partition_by, order_by, is_partitioned, schema, .. } =
            Self::clone(&self);
        let new = Self::new(input, functions, partition_by, order_by, is_partitioned, schema);
        Ok(Arc::new(new))
    }

    fn execute(
        &self,
        partition: usize,
        context: Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream> {
        let input = self.input.execute(partition, Arc::clone(&context))?;
        let memory = MemoryConsumer::new("windows").register(context.memory_pool());
        let (windows, batch_rows) = (self.clone(), context.session_config().batch_size());
        let batches = futures::stream::once(async move {
            let rows = HeldBatches::of(input, memory).await?;
            windows.answers(rows, batch_rows)
        });
        let batches = batches.map_ok(futures::stream::iter).try_flatten();
        Ok(Box::pin(RecordBatchStreamAdapter::new(Arc::clone(&self.schema), batches.boxed())))
    }

    fn child_stats_requests(&self, partition: Option<usize>) -> Vec<ChildStats> {
        vec![ChildStats::At(partition)]
    }

    fn statistics_from_inputs(
        &self,
        inputs: &[Arc<Statistics>],
        _: &StatisticsArgs,
    ) -> Result<Arc<Statistics>> {
        let mut statistics = Statistics::new_unknown(&self.schema);
        if let Some(input) = inputs.first() {
            statistics.num_rows = input.num_rows;
            statistics.column_statistics = input.column_statistics.clone();
            let made = self.functions.iter().map(|_| ColumnStatistics::new_unknown());
            statistics.column_statistics.extend(made);
        }
        Ok(Arc::new(statistics))
    }
}
