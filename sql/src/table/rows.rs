//! Reading `events`: units of rows, shared out among partitions, turned into batches.

use std::{fmt, sync::Arc};

use arrow::{
    array::{ArrayRef, RecordBatch, RecordBatchOptions},
    datatypes::{DataType, SchemaRef},
};
use datafusion_common::{
    DataFusionError, Result, Statistics, stats::Precision, tree_node::TreeNodeRecursion,
};
use datafusion_execution::{SendableRecordBatchStream, TaskContext};
use datafusion_physical_expr::EquivalenceProperties;
use datafusion_physical_plan::{
    DisplayAs, DisplayFormatType, ExecutionPlan, Partitioning, PhysicalExpr, PlanProperties,
    execution_plan::{Boundedness, EmissionType},
    statistics::StatisticsArgs,
    stream::RecordBatchStreamAdapter,
};
use inlay_engine::rows::{Column, Filter, Scan, Source, TextTable, Unit, Values};

use super::{
    arrays::{Dictionaries, map_array},
    codes::Codes,
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

/// A source, by its place in the scan, and some of its rows.
pub type Part = (usize, Unit);

/// Reads rows.
pub struct RowsExec {
    reading: Arc<Reading>,
    partitions: Vec<Vec<Part>>,
    properties: Arc<PlanProperties>,
}

impl RowsExec {
    /// Shares parts out among so many partitions.
    pub fn new(reading: Reading, parts: Vec<Part>, partitions: usize) -> Self {
        let parts = parts.into_iter().map(|part| (part.1.rows(), part));
        let partitions = shared(parts.collect(), partitions);
        let properties = PlanProperties::new(
            EquivalenceProperties::new(Arc::clone(&reading.schema)),
            Partitioning::UnknownPartitioning(partitions.len()),
            EmissionType::Incremental,
            Boundedness::Bounded,
        );
        Self { reading: Arc::new(reading), partitions, properties: Arc::new(properties) }
    }
}

impl fmt::Debug for RowsExec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RowsExec").field("wanted", &self.reading.wanted).finish_non_exhaustive()
    }
}

impl DisplayAs for RowsExec {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "RowsExec: {:?}, {:?}", self.reading.wanted, self.reading.filter)
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

    fn execute(&self, partition: usize, _: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        let parts = self.partitions.get(partition).cloned().unwrap_or_default();
        let reading = Arc::clone(&self.reading);
        let schema = Arc::clone(&reading.schema);
        let batches = Batches { reading, parts: parts.into_iter(), open: None, sent: 0 };
        Ok(Box::pin(RecordBatchStreamAdapter::new(schema, futures::stream::iter(batches))))
    }

    fn statistics_from_inputs(
        &self,
        _: &[Arc<Statistics>],
        args: &StatisticsArgs,
    ) -> Result<Arc<Statistics>> {
        let share = |parts: &Vec<Part>| parts.iter().map(|(_, unit)| unit.rows()).sum::<usize>();
        let rows = match args.partition() {
            Some(partition) => self.partitions.get(partition).map_or(0, share),
            None => self.partitions.iter().map(share).sum(),
        };
        let is_exact = self.reading.filter.is_empty() && self.reading.limit.is_none();
        let rows = if is_exact { Precision::Exact(rows) } else { Precision::Inexact(rows) };
        Ok(Arc::new(Statistics::new_unknown(&self.reading.schema).with_num_rows(rows)))
    }
}

/// Batches of a partition, one after the other.
struct Batches {
    reading: Arc<Reading>,
    parts: std::vec::IntoIter<Part>,
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
                    return Some(Ok(slice));
                }
            }
            let (source, unit) = self.parts.next()?;
            let source = self.reading.scan.sources().get(source)?;
            match self.reading.batch(source, &unit) {
                Ok(batch) => self.open = batch.map(|batch| (batch, 0)),
                Err(error) => return Some(Err(error)),
            }
        }
    }
}

impl Reading {
    /// The rows of a unit that pass, if there are any.
    fn batch(&self, source: &Source, unit: &Unit) -> Result<Option<RecordBatch>> {
        if !self.filter.is_empty() && source.excludes(unit, &self.filter).map_err(broken)? {
            return Ok(None);
        }
        let marks = source.passing(unit, &self.filter).map_err(broken)?;
        let rows = match &marks {
            None => unit.rows(),
            Some(marks) => marks.iter().filter(|mark| **mark).count(),
        };
        if rows == 0 {
            return Ok(None);
        }
        let kept = |mut values: Values| {
            if let Some(marks) = &marks {
                values.retain(marks);
            }
            values
        };
        let read = |column: &Column| -> Result<ArrayRef> {
            let values = kept(source.read(unit, column).map_err(broken)?);
            if is_shared(column) {
                Ok(self.dictionaries.array(values)?)
            } else {
                Ok(self.dictionaries.once(values)?)
            }
        };
        let series = source.series();
        let tenants = || {
            kept(series_values(unit, &|at| {
                (series[at].tenant, source.tenants().at(series[at].tenant as usize))
            }))
        };
        let events = || {
            kept(series_values(unit, &|at| {
                (series[at].name, source.names()[series[at].name as usize].as_bytes())
            }))
        };
        let mut arrays = Vec::with_capacity(self.wanted.len());
        for wanted in &self.wanted {
            arrays.push(match wanted {
                Wanted::Tenant => self.dictionaries.once(tenants())?,
                Wanted::Event => self.dictionaries.once(events())?,
                Wanted::Plain(column) => read(column)?,
                Wanted::Number(of, codes) => match &**of {
                    Wanted::Tenant => codes.array(&tenants(), false)?,
                    Wanted::Event => codes.array(&events(), false)?,
                    Wanted::Plain(column) => {
                        let values = kept(source.read(unit, column).map_err(broken)?);
                        codes.array(&values, is_shared(column))?
                    }
                    _ => return Err(DataFusionError::Internal("numbers of no texts".to_owned())),
                },
                Wanted::Strings => {
                    let columns = source.texts().map_err(broken)?.into_iter();
                    let columns =
                        columns.map(|name| Ok((name, read(&Column::Text(name.to_owned()))?)));
                    let columns = present(columns.collect::<Result<_>>()?, rows);
                    map_array(&columns, rows, DataType::Utf8View)?
                }
                Wanted::Numbers => {
                    let columns = source.numbers().map_err(broken)?.into_iter();
                    let columns =
                        columns.map(|name| Ok((name, read(&Column::Number(name.to_owned()))?)));
                    let columns = present(columns.collect::<Result<_>>()?, rows);
                    map_array(&columns, rows, DataType::Float64)?
                }
            });
        }
        let options = RecordBatchOptions::new().with_row_count(Some(rows));
        let schema = Arc::clone(&self.schema);
        Ok(Some(RecordBatch::try_new_with_options(schema, arrays, &options)?))
    }
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
