//! Reading `events`: units of rows, shared out among partitions, turned into batches.

use std::{cmp::Reverse, fmt, sync::Arc};

use arrow::{
    array::{ArrayRef, BooleanArray, RecordBatch, RecordBatchOptions},
    compute::filter,
    datatypes::{DataType, SchemaRef},
};
use datafusion_common::{
    DataFusionError, Result, Statistics, config::ConfigOptions, internal_err, stats::Precision,
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
use inlay_engine::rows::{Column, Filter, Scan, Source, Strip, TextTable, Unit, Values};

use super::{
    arrays::{Dictionaries, map_array},
    codes::Codes,
    scan_filters::{KnownFilter, ScanFilters, TimeBounds},
    schema::{NUMBERS, Property, STRINGS},
    shares::shared,
    wanted::{BATCH_ROWS, broken},
};

/// What a column of `events` is made of.
#[derive(Debug, Clone)]
pub enum Wanted {
    /// The tenant.
    Tenant,
    /// The event's name.
    Event,
    /// A column of the engine.
    Plain(Column),
    /// All string properties.
    Strings,
    /// All numeric properties.
    Numbers,
    /// Texts of something as numbers.
    Number(Box<Wanted>, Arc<Codes>),
}

impl Wanted {
    /// By the name of a column.
    pub fn named(name: &str) -> Option<Self> {
        match name {
            "tenant_id" => Some(Self::Tenant),
            "event_name" => Some(Self::Event),
            "timestamp" => Some(Self::Plain(Column::Time)),
            "event_id" => Some(Self::Plain(Column::EventId)),
            "user_id" => Some(Self::Plain(Column::User)),
            STRINGS => Some(Self::Strings),
            NUMBERS => Some(Self::Numbers),
            _ => None,
        }
    }

    /// Of a property.
    pub fn property(property: &Property) -> Self {
        match &*property.map {
            STRINGS => Self::Plain(Column::Text(property.name.clone())),
            _ => Self::Plain(Column::Number(property.name.clone())),
        }
    }
}

/// Rows that are read, and what of them.
pub struct Reading {
    /// Where they are.
    pub scan: Arc<Scan>,
    /// The columns, in the order of the schema.
    pub wanted: Vec<Wanted>,
    /// What rows must be like.
    pub filter: Filter,
    /// The columns' types.
    pub schema: SchemaRef,
    /// Rows that are enough.
    pub limit: Option<usize>,
    /// Dictionaries that were read.
    pub dictionaries: Dictionaries,
}

/// Some rows of a source.
#[derive(Debug, Clone)]
pub struct Part {
    /// The source, by its place in the scan.
    source: usize,
    unit: Unit,
    /// The earliest and the latest time of its series.
    times: TimeBounds,
}

impl Part {
    /// The rows of a unit.
    pub fn new(scan: &Scan, source: usize, unit: Unit) -> Self {
        let all = scan.sources().get(source).map(|source| source.series()).unwrap_or_default();
        let series = unit.strips.iter().filter_map(|strip| all.get(strip.series));
        let times = series.fold((i64::MAX, i64::MIN), |(first, last), series| {
            (first.min(series.first_ms), last.max(series.last_ms))
        });
        Self { source, unit, times }
    }
}

/// Reads rows.
#[derive(Clone)]
pub struct RowsExec {
    reading: Arc<Reading>,
    partitions: Vec<Vec<Part>>,
    properties: Arc<PlanProperties>,
    /// Conditions of the statement beyond those of the engine, and what operators learn while they run.
    filters: ScanFilters,
    /// Whether rows are read in about the order of their times, and whether the latest come first.
    descending: Option<bool>,
    metrics: ExecutionPlanMetricsSet,
}

/// Counts parts whose times lie outside of what was learnt.
const SKIPPED: &str = "parts_skipped";
/// The newest rows of a unit, or the oldest, that are read before its others: an operator that looks for some of them then
/// knows which others it does not need.
const HEAD_ROWS: usize = 1_024;

impl RowsExec {
    /// Shares parts out among so many partitions.
    pub fn new(reading: Reading, parts: Vec<Part>, partitions: usize) -> Self {
        let parts = parts.into_iter().map(|part| (part.unit.rows(), part));
        let partitions = shared(parts.collect(), partitions);
        let properties = PlanProperties::new(
            EquivalenceProperties::new(Arc::clone(&reading.schema)),
            Partitioning::UnknownPartitioning(partitions.len()),
            EmissionType::Incremental,
            Boundedness::Bounded,
        );
        let (reading, properties) = (Arc::new(reading), Arc::new(properties));
        let (filters, metrics) = (ScanFilters::default(), ExecutionPlanMetricsSet::new());
        Self { reading, partitions, properties, filters, descending: None, metrics }
    }

    /// The same rows, in about the order of their times: each partition begins with the earliest or the latest.
    fn by_time(&self, descending: bool) -> Self {
        let mut parts: Vec<Part> = self.partitions.iter().flatten().cloned().collect();
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
        f.debug_struct("RowsExec").field("wanted", &self.reading.wanted).finish_non_exhaustive()
    }
}

impl DisplayAs for RowsExec {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { reading, filters, .. } = self;
        write!(f, "RowsExec: {:?}, {:?}, {filters:?}", reading.wanted, reading.filter)
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
        let count = pushed.parent_filters.len();
        // The first rows of all would be counted before they are filtered.
        if count == 0 || self.reading.limit.is_some() {
            return Ok(FilterPushdownPropagation::all_unsupported(pushed));
        }
        let is_checked = match phase {
            FilterPushdownPhase::Pre => PushedDown::Yes,
            FilterPushdownPhase::Post => PushedDown::No,
        };
        let mut with_filters = self.clone();
        with_filters.filters.extend(pushed.parent_filters.into_iter().map(|pushed| pushed.filter));
        let answer =
            FilterPushdownPropagation::with_parent_pushdown_result(vec![is_checked; count]);
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
        let (descending, rest) = (self.descending, None);
        let output = MetricBuilder::new(&self.metrics).output_rows(partition);
        let skipped = MetricBuilder::new(&self.metrics).counter(SKIPPED, partition);
        let (open, sent) = (None, 0);
        let batches =
            Batches { reading, parts, filters, descending, rest, output, skipped, open, sent };
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
        let share = |parts: &Vec<Part>| parts.iter().map(|part| part.unit.rows()).sum::<usize>();
        let rows = match args.partition() {
            Some(partition) => self.partitions.get(partition).map_or(0, share),
            None => self.partitions.iter().map(share).sum(),
        };
        let is_exact = self.reading.filter.is_empty()
            && self.reading.limit.is_none()
            && self.filters.is_empty();
        let rows = if is_exact { Precision::Exact(rows) } else { Precision::Inexact(rows) };
        Ok(Arc::new(Statistics::new_unknown(&self.reading.schema).with_num_rows(rows)))
    }
}

/// Batches of a partition, one after the other.
struct Batches {
    reading: Arc<Reading>,
    parts: std::vec::IntoIter<Part>,
    filters: ScanFilters,
    descending: Option<bool>,
    /// The other rows of the last part, of which the head was read.
    rest: Option<Part>,
    output: Count,
    skipped: Count,
    /// What was read and is not yet handed on, and from where on.
    open: Option<(RecordBatch, usize)>,
    sent: usize,
}

impl Iterator for Batches {
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

impl Batches {
    /// The rows of a part that pass, as far as it is known by now what passes; of a large one that `has_head` and is read by
    /// time, the head alone.
    fn read(&mut self, (part, has_head): (Part, bool)) -> Result<Option<RecordBatch>> {
        let reading = Arc::clone(&self.reading);
        let Some(source) = reading.scan.sources().get(part.source) else { return Ok(None) };
        let known = self.filters.current(&reading.schema)?;
        if let (Some(known), Some(time)) = (&known, reading.time()) {
            let (first, last) = known.times(time);
            if part.times.1 < first || part.times.0 > last {
                self.skipped.add(1);
                return Ok(None);
            }
        }
        let Some(mut rows) = reading.chosen(source, &part.unit)? else { return Ok(None) };
        // What was learnt already tells rows apart better.
        let is_learnt = known.as_ref().is_some_and(|known| known.is_learnt);
        let has_head = has_head && !is_learnt && rows.count > 2 * HEAD_ROWS;
        if let Some(descending) = self.descending.filter(|_| has_head) {
            let (head, rest) = reading.split(source, rows, descending)?;
            self.rest = Some(Part { source: part.source, ..rest });
            rows = head;
        }
        reading.batch(source, rows, known.as_ref())
    }
}

impl Reading {
    /// Where the time stands among the columns.
    fn time(&self) -> Option<usize> {
        let is_time = |wanted: &Wanted| matches!(wanted, Wanted::Plain(Column::Time));
        self.wanted.iter().position(is_time)
    }

    /// The rows of a unit that the statement's conditions let pass, if there are any.
    fn chosen(&self, source: &Source, unit: &Unit) -> Result<Option<Chosen>> {
        if !self.filter.is_empty() && source.excludes(unit, &self.filter).map_err(broken)? {
            return Ok(None);
        }
        let marks = source.passing(unit, &self.filter).map_err(broken)?;
        Ok(Chosen::of(unit.clone(), marks))
    }

    /// The latest of some rows, or the earliest, and the others as a part.
    fn split(&self, source: &Source, rows: Chosen, descending: bool) -> Result<(Chosen, Part)> {
        let Values::Times(times) = rows.read(source, &Column::Time)? else {
            return Err(DataFusionError::Internal("times that are none".to_owned()));
        };
        let mut order: Vec<u32> = (0..times.len() as u32).collect();
        let time = |at: &u32| times[*at as usize];
        match descending {
            true => order.select_nth_unstable_by_key(HEAD_ROWS, |at| Reverse(time(at))),
            false => order.select_nth_unstable_by_key(HEAD_ROWS, time),
        };
        let (head, rest) = order.split_at(HEAD_ROWS);
        let bounds = rest
            .iter()
            .map(time)
            .fold((i64::MAX, i64::MIN), |(first, last), ms| (first.min(ms), last.max(ms)));
        let mut is_head = vec![false; times.len()];
        head.iter().for_each(|at| is_head[*at as usize] = true);
        let is_rest = is_head.iter().map(|is_head| !is_head).collect();
        let none = || DataFusionError::Internal("a part without rows".to_owned());
        let rest = rows.clone().only(&BooleanArray::new(is_rest, None)).ok_or_else(none)?;
        let head = rows.only(&BooleanArray::from(is_head)).ok_or_else(none)?;
        Ok((head, Part { source: 0, unit: rest.into_unit(), times: bounds }))
    }

    /// Columns of rows, as far as they pass what is known.
    fn batch(
        &self,
        source: &Source,
        mut rows: Chosen,
        known: Option<&KnownFilter>,
    ) -> Result<Option<RecordBatch>> {
        let mut arrays: Vec<Option<ArrayRef>> = vec![None; self.wanted.len()];
        if let Some(known) = known {
            for &at in &known.columns {
                arrays[at] = Some(self.array(source, &rows, at)?);
            }
            let of_filter = known.columns.iter().filter_map(|at| arrays[*at].clone()).collect();
            let passing = known.passing(of_filter, rows.count)?;
            if passing.true_count() < rows.count {
                for array in arrays.iter_mut().flatten() {
                    *array = filter(array, &passing)?;
                }
                let Some(fewer) = rows.only(&passing) else { return Ok(None) };
                rows = fewer;
            }
        }
        for (at, array) in arrays.iter_mut().enumerate() {
            if array.is_none() {
                *array = Some(self.array(source, &rows, at)?);
            }
        }
        let options = RecordBatchOptions::new().with_row_count(Some(rows.count));
        let (schema, arrays) = (Arc::clone(&self.schema), arrays.into_iter().flatten().collect());
        Ok(Some(RecordBatch::try_new_with_options(schema, arrays, &options)?))
    }

    /// A column of some rows.
    fn array(&self, source: &Source, rows: &Chosen, at: usize) -> Result<ArrayRef> {
        let read = |column: &Column| -> Result<ArrayRef> {
            let values = rows.read(source, column)?;
            if is_shared(column) {
                Ok(self.dictionaries.array(values)?)
            } else {
                Ok(self.dictionaries.once(values)?)
            }
        };
        let series = source.series();
        let tenants = || {
            rows.marked(series_values(&rows.unit, &|at| {
                (series[at].tenant, source.tenants().at(series[at].tenant as usize))
            }))
        };
        let events = || {
            rows.marked(series_values(&rows.unit, &|at| {
                (series[at].name, source.names()[series[at].name as usize].as_bytes())
            }))
        };
        let Some(wanted) = self.wanted.get(at) else {
            return Err(DataFusionError::Internal("a column that is none".to_owned()));
        };
        Ok(match wanted {
            Wanted::Tenant => self.dictionaries.once(tenants())?,
            Wanted::Event => self.dictionaries.once(events())?,
            Wanted::Plain(column) => read(column)?,
            Wanted::Number(of, codes) => match &**of {
                Wanted::Tenant => codes.array(&tenants(), false)?,
                Wanted::Event => codes.array(&events(), false)?,
                Wanted::Plain(column) => {
                    codes.array(&rows.read(source, column)?, is_shared(column))?
                }
                _ => return Err(DataFusionError::Internal("numbers of no texts".to_owned())),
            },
            Wanted::Strings => {
                let columns = source.texts().map_err(broken)?.into_iter();
                let columns = columns.map(|name| Ok((name, read(&Column::Text(name.to_owned()))?)));
                let columns = present(columns.collect::<Result<_>>()?, rows.count);
                map_array(&columns, rows.count, DataType::Utf8View)?
            }
            Wanted::Numbers => {
                let columns = source.numbers().map_err(broken)?.into_iter();
                let columns =
                    columns.map(|name| Ok((name, read(&Column::Number(name.to_owned()))?)));
                let columns = present(columns.collect::<Result<_>>()?, rows.count);
                map_array(&columns, rows.count, DataType::Float64)?
            }
        })
    }
}

/// Rows of a unit that pass: never none.
#[derive(Clone)]
struct Chosen {
    unit: Unit,
    /// Which rows of the unit, unless that is all of them.
    marks: Option<Vec<bool>>,
    count: usize,
}

/// Rows that pass are read alone where they are at most one of so many; else all are read, and the others dropped.
const ALONE_FROM: usize = 8;

impl Chosen {
    fn of(unit: Unit, marks: Option<Vec<bool>>) -> Option<Self> {
        let rows = unit.rows();
        let Some(marks) = marks else {
            return (rows > 0).then_some(Self { unit, marks: None, count: rows });
        };
        let count = marks.iter().filter(|mark| **mark).count();
        if count == 0 {
            return None;
        }
        if count > rows / ALONE_FROM {
            return Some(Self { unit, marks: Some(marks), count });
        }
        Some(Self { unit: marked_strips(&unit, &marks), marks: None, count })
    }

    /// Those of these rows that are marked; none where none is.
    fn only(self, passing: &BooleanArray) -> Option<Self> {
        let mut passing = passing.values().iter();
        let marks = match self.marks {
            None => passing.collect(),
            Some(mut marks) => {
                let passed = marks.iter_mut().filter(|mark| **mark);
                passed.for_each(|mark| *mark = passing.next().unwrap_or_default());
                marks
            }
        };
        Self::of(self.unit, Some(marks))
    }

    /// The same as a unit that has no other rows.
    fn into_unit(self) -> Unit {
        match self.marks {
            Some(marks) => marked_strips(&self.unit, &marks),
            None => self.unit,
        }
    }

    fn read(&self, source: &Source, column: &Column) -> Result<Values> {
        Ok(self.marked(source.read(&self.unit, column).map_err(broken)?))
    }

    fn marked(&self, mut values: Values) -> Values {
        if let Some(marks) = &self.marks {
            values.retain(marks);
        }
        values
    }
}

/// The rows of a unit that are marked, as a unit: rows beside each other are one strip.
fn marked_strips(unit: &Unit, marks: &[bool]) -> Unit {
    let mut strips: Vec<Strip> = Vec::new();
    let mut marks = marks.iter();
    for strip in &unit.strips {
        for (row, _) in strip.rows.clone().zip(marks.by_ref()).filter(|(_, mark)| **mark) {
            match strips.last_mut() {
                Some(last) if last.series == strip.series && last.rows.end == row => {
                    last.rows.end += 1;
                }
                _ => strips.push(Strip { series: strip.series, rows: row..row + 1 }),
            }
        }
    }
    Unit { strips }
}

/// Whether other rows of the segment have the same dictionary: those of users are made for the rows that are read.
fn is_shared(column: &Column) -> bool {
    matches!(column, Column::Text(_))
}

/// Columns that some row has.
fn present(mut columns: Vec<(&str, ArrayRef)>, rows: usize) -> Vec<(&str, ArrayRef)> {
    columns.retain(|(_, column)| column.null_count() < rows);
    columns
}

/// A text of its series for each row; `text` gives it, and its number in the source.
fn series_values<'a>(unit: &Unit, text: &dyn Fn(usize) -> (u32, &'a [u8])) -> Values {
    let (mut table, mut codes) = (TextTable::default(), Vec::with_capacity(unit.rows()));
    let mut last: Option<u32> = None;
    for strip in &unit.strips {
        let (number, text) = text(strip.series);
        if last != Some(number) {
            table.push(text);
            last = Some(number);
        }
        codes.resize(codes.len() + strip.rows.len(), table.len() as u32);
    }
    Values::Codes(codes, Arc::new(table))
}
