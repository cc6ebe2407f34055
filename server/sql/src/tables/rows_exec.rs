//! The operator that reads `events`: morsels of rows, balanced among partitions, as batches.
//!
//! ```text
//! SELECT event_id FROM events WHERE length(user_id) > 9 ORDER BY timestamp DESC LIMIT 100
//!
//! SortExec: fetch 100, learns timestamp > … once it has a hundred rows
//!   RowsExec: columns event_id, user_id, timestamp; filters length(user_id) > 9, and what the sort learns
//!
//! partition 0   morsels of Nov 24, Nov 22, …      the latest first: try_pushdown_sort
//!   1   of Nov 24 the latest 1,024 rows are read, those that pass are handed on
//!   2   the others of Nov 24, of which by now those after 09:12 pass
//!   3   Nov 22 ends before 09:12 of Nov 24: skipped, and counted as parts_skipped
//! ```
//!
//! A filter of a statement is checked here and nowhere else; what operators learn only spares rows, and they still check each row that they get.

use std::{
    cmp::Reverse,
    collections::{BTreeMap, HashSet},
    fmt,
    sync::{Arc, OnceLock},
};

use arrow::array::RecordBatch;
use datafusion_common::{
    Result, Statistics, config::ConfigOptions, internal_err, stats::Precision,
    tree_node::TreeNodeRecursion,
};
use datafusion_execution::{SendableRecordBatchStream, TaskContext};
use datafusion_physical_expr::{
    EquivalenceProperties, PhysicalSortExpr, expressions::Column as ColumnExpr,
};
use datafusion_physical_plan::{
    DisplayAs, DisplayFormatType, ExecutionPlan, Partitioning, PhysicalExpr, PlanProperties,
    SortOrderPushdownResult,
    execution_plan::{Boundedness, EmissionType},
    filter_pushdown::{
        ChildPushdownResult, FilterPushdownPhase, FilterPushdownPropagation, PushedDown,
    },
    metrics::{Count, ExecutionPlanMetricsSet, MetricBuilder, MetricsSet},
    statistics::StatisticsArgs,
    stream::RecordBatchStreamAdapter,
};
use inlay_engine::rows::{Morsel, RowRange, Scan};

use super::partitions::{BATCH_ROWS, balance_by_rows};
use super::{
    errors::broken,
    first_rows::FirstRows,
    row_reader::{ColumnSource, Reading},
    scan_filters::{KnownFilter, ScanFilters},
    tenant_partitions::partition_of_tenants,
    time_bounds::TimeBounds,
};

/// Some rows of a source.
/// A morsel, or what is left of one whose head has been read.
#[derive(Debug, Clone)]
pub struct ScanUnit {
    /// The source, by its index in the scan.
    source: usize,
    morsel: Morsel,
    /// The earliest and the latest time of its series.
    /// In milliseconds: bounds of its rows, which need not be reached.
    times: TimeBounds,
}

impl ScanUnit {
    /// The rows of a morsel.
    /// `source` is the number of the source among those of the scan.
    pub fn new(scan: &Scan, source: usize, morsel: Morsel) -> Self {
        let all = scan.sources().get(source).map(|source| source.series()).unwrap_or_default();
        let series = morsel.row_ranges.iter().filter_map(|row_range| all.get(row_range.series));
        let times = series.fold((i64::MAX, i64::MIN), |(first, last), series| {
            (first.min(series.first_ms), last.max(series.last_ms))
        });
        Self { source, morsel, times }
    }
}

/// Rows of units, before any filter.
fn rows_of(units: &[ScanUnit]) -> usize {
    units.iter().map(|unit| unit.morsel.rows()).sum()
}

/// Units divided so that rows of a tenant are in one partition, the partition with the most rows first.
fn divide_by_tenant<'a>(
    scan: &Scan,
    units: impl Iterator<Item = &'a ScanUnit> + Clone,
    partition_rows: usize,
) -> Vec<Vec<ScanUnit>> {
    let tenant_of = |unit: &ScanUnit, row_range: &RowRange| {
        let source = &scan.sources()[unit.source];
        source.tenants().at(source.series()[row_range.series].tenant as usize)
    };
    let mut rows_by_tenant: BTreeMap<&[u8], usize> = BTreeMap::new();
    for unit in units.clone() {
        for row_range in &unit.morsel.row_ranges {
            *rows_by_tenant.entry(tenant_of(unit, row_range)).or_default() += row_range.rows.len();
        }
    }
    let (partition_of, partitions) = partition_of_tenants(&rows_by_tenant, partition_rows);
    let mut divided: Vec<(usize, Vec<ScanUnit>)> = vec![Default::default(); partitions];
    for unit in units {
        let partition = |row_range: &RowRange| partition_of.get(tenant_of(unit, row_range));
        // Row ranges stand in the order of tenants, so those of a partition stand together.
        for row_ranges in unit.morsel.row_ranges.chunk_by(|a, b| partition(a) == partition(b)) {
            let morsel = Morsel { row_ranges: row_ranges.to_vec() };
            let Some(at) = row_ranges.first().and_then(partition) else { continue };
            divided[*at].0 += morsel.rows();
            divided[*at].1.push(ScanUnit::new(scan, unit.source, morsel));
        }
    }
    divided.sort_by_key(|(rows, _)| Reverse(*rows));
    divided.into_iter().map(|(_, units)| units).collect()
}

/// Operator that reads rows of `events` and gives them as record batches.
#[derive(Clone)]
pub struct RowsExec {
    /// What is read of each row, the same for all partitions.
    reading: Arc<Reading>,
    /// The rows of each partition, in the order in which they are read.
    partitions: Vec<Vec<ScanUnit>>,
    properties: Arc<PlanProperties>,
    /// Conditions of the statement beyond those of the engine, and what operators learn while they run.
    filters: ScanFilters,
    /// Whether rows are read in about the order of their times, and whether the latest come first.
    descending: Option<bool>,
    /// Tenants of the rows, once somebody has asked.
    tenant_count: OnceLock<usize>,
    metrics: ExecutionPlanMetricsSet,
}

/// Counts parts whose times lie outside of what was learnt.
/// The name of the metric; tests read it.
const SKIPPED: &str = "parts_skipped";
impl RowsExec {
    /// Shares parts out among so many partitions.
    /// By their rows: each partition gets about as many (`partitions.rs`). At least one partition, which may be empty.
    pub fn new(reading: Reading, parts: Vec<ScanUnit>, partitions: usize) -> Self {
        let parts = parts.into_iter().map(|part| (part.morsel.rows(), part));
        let partitions = balance_by_rows(parts.collect(), partitions);
        let properties = PlanProperties::new(
            EquivalenceProperties::new(Arc::clone(&reading.schema)),
            Partitioning::UnknownPartitioning(partitions.len()),
            EmissionType::Incremental,
            Boundedness::Bounded,
        );
        let (reading, properties) = (Arc::new(reading), Arc::new(properties));
        let (filters, metrics) = (ScanFilters::default(), ExecutionPlanMetricsSet::new());
        let (descending, tenant_count) = (None, OnceLock::new());
        Self { reading, partitions, properties, filters, descending, tenant_count, metrics }
    }

    /// Without rows that are behind so many others of their partition, by the columns of numbers that tell partitions apart and the
    /// time. Nothing where the columns are others.
    ///
    /// `partition` and `time` are numbers of columns of the scan, `count` the rows of each partition that are looked for. Also nothing where the scan has a
    /// limit: the rows that it counts would be others.
    pub fn with_first(
        &self,
        partition: &[usize],
        time: usize,
        descending: bool,
        count: usize,
    ) -> Option<Self> {
        let is_number =
            |at: &usize| matches!(self.reading.columns.get(*at), Some(ColumnSource::Number(..)));
        let is_known = self.reading.time() == Some(time) && partition.iter().all(is_number);
        if !is_known || self.reading.limit.is_some() {
            return None;
        }
        let column = |at: usize| {
            let name = self.reading.schema.field(at).name();
            Arc::new(ColumnExpr::new(name, at)) as Arc<dyn PhysicalExpr>
        };
        let partition = partition.iter().map(|at| column(*at)).collect();
        let first = FirstRows::new(partition, column(time), descending, count);
        let mut with_first = self.clone();
        with_first.filters.add_hints([Arc::new(first) as Arc<dyn PhysicalExpr>]);
        Some(with_first)
    }

    /// The same rows, those of a tenant in one partition, of about so many rows each or of one large tenant; and the columns of the scan that
    /// tell tenants apart. The largest partition comes first.
    ///
    /// `None` where no column does, where a limit counts rows, where all are one partition, and where one has so many of the rows that it
    /// would be computed when all others are done.
    pub fn by_tenant(&self, partition_rows: usize) -> Option<(Self, Vec<usize>)> {
        let columns = self.reading.columns.iter().enumerate();
        let columns: Vec<usize> =
            columns.filter(|(_, column)| column.is_of_tenant()).map(|(at, _)| at).collect();
        if columns.is_empty() || self.reading.limit.is_some() {
            return None;
        }
        let units = self.partitions.iter().flatten();
        let partitions = divide_by_tenant(&self.reading.scan, units, partition_rows);
        let largest = partitions.first().map_or(0, |units| rows_of(units));
        if partitions.len() < 2 || largest.saturating_mul(self.partitions.len()) > self.rows() {
            return None;
        }
        let properties = PlanProperties::new(
            EquivalenceProperties::new(Arc::clone(&self.reading.schema)),
            Partitioning::UnknownPartitioning(partitions.len()),
            EmissionType::Incremental,
            Boundedness::Bounded,
        );
        let properties = Arc::new(properties);
        Some((Self { partitions, properties, ..self.clone() }, columns))
    }

    /// Rows of all partitions, before any filter.
    pub fn rows(&self) -> usize {
        self.partitions.iter().map(|units| rows_of(units)).sum()
    }

    /// About how many tenants the rows have: the most of one source, so that groups by tenant are known to be few.
    fn tenant_count(&self) -> usize {
        *self.tenant_count.get_or_init(|| {
            let mut of_sources: BTreeMap<usize, HashSet<u32>> = BTreeMap::new();
            for unit in self.partitions.iter().flatten() {
                let Some(source) = self.reading.scan.sources().get(unit.source) else { continue };
                let series = |row_range: &RowRange| source.series().get(row_range.series);
                let tenants =
                    unit.morsel.row_ranges.iter().filter_map(series).map(|series| series.tenant);
                of_sources.entry(unit.source).or_default().extend(tenants);
            }
            of_sources.values().map(HashSet::len).max().unwrap_or_default()
        })
    }

    /// The same rows, in about the order of their times: each partition begins with the earliest or the latest.
    ///
    /// Parts are dealt out in turn, so that all partitions begin with some of the latest, whatever number of rows they have.
    fn by_time(&self, descending: bool) -> Self {
        let mut parts: Vec<ScanUnit> = self.partitions.iter().flatten().cloned().collect();
        match descending {
            true => parts.sort_by_key(|part| Reverse(part.times.1)),
            false => parts.sort_by_key(|part| part.times.0),
        }
        let mut partitions = vec![Vec::new(); self.partitions.len()];
        for (at, part) in parts.into_iter().enumerate() {
            partitions[at % self.partitions.len()].push(part);
        }
        Self { partitions, descending: Some(descending), ..self.clone() }
    }
}

impl fmt::Debug for RowsExec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RowsExec").field("columns", &self.reading.columns).finish_non_exhaustive()
    }
}

impl DisplayAs for RowsExec {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { reading, filters, .. } = self;
        write!(f, "RowsExec: {:?}, {:?}, {filters:?}", reading.columns, reading.filter)
    }
}

impl ExecutionPlan for RowsExec {
    fn name(&self) -> &str {
        "RowsExec"
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

    /// Takes the conditions of filters above, which are not needed then, and what operators will learn.
    fn handle_child_pushdown_result(
        &self,
        phase: FilterPushdownPhase,
        pushed: ChildPushdownResult,
        _: &ConfigOptions,
    ) -> Result<FilterPushdownPropagation<Arc<dyn ExecutionPlan>>> {
        // The first rows of all would be counted before they are filtered.
        if pushed.parent_filters.is_empty() || self.reading.limit.is_some() {
            return Ok(FilterPushdownPropagation::all_unsupported(pushed));
        }
        // `Pre` are filters of the plan above, which are then taken out of it. `Post` are those of operators that learn: they go on to check their rows.
        let is_checked = match phase {
            FilterPushdownPhase::Pre => PushedDown::Yes,
            FilterPushdownPhase::Post => PushedDown::No,
        };
        let mut with_filters = self.clone();
        let answer = with_filters.filters.take(pushed, is_checked);
        Ok(answer.with_updated_node(Arc::new(with_filters)))
    }

    /// Begins with the rows that an order by time asks for first.
    fn try_pushdown_sort(
        &self,
        order: &[PhysicalSortExpr],
    ) -> Result<SortOrderPushdownResult<Arc<dyn ExecutionPlan>>> {
        let column = order.first().and_then(|first| first.expr.downcast_ref::<ColumnExpr>());
        let is_time = column.is_some_and(|column| Some(column.index()) == self.reading.time());
        Ok(match order.first() {
            Some(first) if is_time => SortOrderPushdownResult::Inexact {
                inner: Arc::new(self.by_time(first.options.descending)),
            },
            _ => SortOrderPushdownResult::Unsupported,
        })
    }

    /// What was learnt of other rows says nothing of these. Only statements that ask themselves again would need it, and
    /// the gate refuses `WITH RECURSIVE`.
    fn reset_state(self: Arc<Self>) -> Result<Arc<dyn ExecutionPlan>> {
        match self.filters.is_empty() {
            true => Ok(self),
            false => internal_err!("a scan with filters that is read again"),
        }
    }

    fn with_new_children(
        self: Arc<Self>,
        _: Vec<Arc<dyn ExecutionPlan>>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        Ok(self)
    }

    fn execute(&self, partition: usize, _: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        let parts = self.partitions.get(partition).cloned().unwrap_or_default();
        let reading = Arc::clone(&self.reading);
        let schema = Arc::clone(&reading.schema);
        let (parts, filters) = (parts.into_iter(), self.filters.clone());
        // Where nobody learns, one row is read as soon as the other.
        let descending = self.descending.filter(|_| self.filters.can_learn());
        let rest = None;
        let output = MetricBuilder::new(&self.metrics).output_rows(partition);
        let skipped = MetricBuilder::new(&self.metrics).counter(SKIPPED, partition);
        let (open, sent) = (None, 0);
        let is_sampled = !self.filters.can_learn();
        let batches = RowBatches {
            reading,
            parts,
            filters,
            descending,
            is_sampled,
            rest,
            output,
            skipped,
            open,
            sent,
        };
        Ok(Box::pin(RecordBatchStreamAdapter::new(schema, futures::stream::iter(batches))))
    }

    fn metrics(&self) -> Option<MetricsSet> {
        Some(self.metrics.clone_inner())
    }

    fn statistics_from_inputs(
        &self,
        _: &[Arc<Statistics>],
        args: &StatisticsArgs,
    ) -> Result<Arc<Statistics>> {
        // Of a filter it is not known how many rows pass, so the number is only exact without one.
        let rows = match args.partition() {
            Some(partition) => self.partitions.get(partition).map_or(0, |units| rows_of(units)),
            None => self.rows(),
        };
        let is_exact = self.reading.filter.is_empty()
            && self.reading.limit.is_none()
            && self.filters.is_empty();
        let rows = if is_exact { Precision::Exact(rows) } else { Precision::Inexact(rows) };
        let mut statistics = Statistics::new_unknown(&self.reading.schema).with_num_rows(rows);
        for (column, source) in statistics.column_statistics.iter_mut().zip(&self.reading.columns) {
            if source.is_of_tenant() {
                column.distinct_count = Precision::Inexact(self.tenant_count());
            }
        }
        Ok(Arc::new(statistics))
    }
}

/// Batches of a partition, one after the other.
///
/// A morsel is read when its first batch is asked for, so that it meets what has been learnt until then.
struct RowBatches {
    reading: Arc<Reading>,
    /// Parts that have not been begun.
    parts: std::vec::IntoIter<ScanUnit>,
    /// Shared with the operators that learn.
    filters: ScanFilters,
    /// The order by time, where an operator learns from it.
    descending: Option<bool>,
    /// Whether some rows have been handed on from which an operator above could learn, or none learns.
    is_sampled: bool,
    /// The other rows of the last part, of which the head was read.
    rest: Option<ScanUnit>,
    output: Count,
    skipped: Count,
    /// What was read and is not yet handed on, and from where on.
    open: Option<(RecordBatch, usize)>,
    /// Rows that have been handed on, for the limit.
    sent: usize,
}

impl Iterator for RowBatches {
    type Item = Result<RecordBatch>;

    fn next(&mut self) -> Option<Self::Item> {
        let left = self.reading.limit.map_or(usize::MAX, |limit| limit.saturating_sub(self.sent));
        if left == 0 {
            return None;
        }
        loop {
            if let Some((batch, from)) = &mut self.open {
                let rows = (batch.num_rows() - *from).min(BATCH_ROWS).min(left);
                if rows > 0 {
                    let slice = batch.slice(*from, rows);
                    *from += rows;
                    self.sent += rows;
                    self.output.add(rows);
                    return Some(Ok(slice));
                }
            }
            let part = match self.rest.take() {
                Some(rest) => (rest, false),
                None => (self.parts.next()?, true),
            };
            match self.read(part) {
                Ok(batch) => self.open = batch.map(|batch| (batch, 0)),
                Err(error) => return Some(Err(error)),
            }
        }
    }
}

impl RowBatches {
    /// The rows of a part that pass, as far as it is known by now what passes; of a large one that `has_head` and is read by
    /// time, the head alone.
    ///
    /// `None` where the part is skipped, or none of the rows that were read passes. Of a large part the rows behind the head are in `rest` afterwards.
    fn read(&mut self, (mut part, has_head): (ScanUnit, bool)) -> Result<Option<RecordBatch>> {
        let reading = Arc::clone(&self.reading);
        let Some(source) = reading.scan.sources().get(part.source) else { return Ok(None) };
        let known = self.filters.current(&reading.schema)?;
        if known.as_ref().is_some_and(KnownFilter::passes_none) {
            self.skipped.add(1);
            return Ok(None);
        }
        if let (Some(known), Some(time)) = (&known, reading.time()) {
            let (first, last) = known.times(time);
            if part.times.1 < first || part.times.0 > last {
                self.skipped.add(1);
                return Ok(None);
            }
            // What an order by time learns changes all the time, and to find its rows takes longer than to read a head.
            let is_narrower = first > part.times.0 || last < part.times.1;
            if is_narrower && self.descending.is_none() {
                let times = first..last.saturating_add(1);
                part.morsel = source.within(&part.morsel, &times).map_err(broken)?;
            }
        }
        let Some(mut rows) = reading.passing(source, &part.morsel, known.as_ref())? else {
            return Ok(None);
        };
        // What was learnt of older rows lets all of a newer part pass.
        if let Some(descending) = self.descending.filter(|_| has_head)
            && rows.have_head()
        {
            let (head, morsel, times) = reading.split(source, rows, descending)?;
            self.rest = Some(ScanUnit { source: part.source, morsel, times });
            rows = head;
        } else if !self.is_sampled && rows.have_head() {
            // Where largest numbers are looked for, those of a few rows let few others pass.
            let (head, morsel) = rows.split_off()?;
            self.rest = Some(ScanUnit { source: part.source, morsel, times: part.times });
            rows = head;
        }
        self.is_sampled = true;
        reading.batch(source, rows, known.as_ref())
    }
}
