//! Numbers that stand for texts of one string property, or for names of events: what an expression comes to for each text,
//! and where each text stands among all of them.
//!
//! Both are computed for dictionaries, not for rows. `sum(CASE WHEN string_props['status'] = 'ok' THEN 0 ELSE 1
//! END)` by user looks up a number for each row's code, and `max(string_props['plan'])` compares ranks:
//!
//! ```text
//! dictionary of a segment   free  pro  team      of another   enterprise  pro
//! CASE WHEN … = 'pro' …     0     1    0                      0           1
//! rank                      1     2    3                      0           2
//! ```

use std::{collections::HashMap, fmt, sync::Arc};

use arrow::{
    array::{Array as _, ArrayRef, RecordBatch, StringViewArray, UInt32Array},
    compute::{cast, take},
    datatypes::{DataType, Field},
};
use datafusion_common::{DFSchema, DataFusionError, Result};
use datafusion_expr::{
    Expr, execution_props::ExecutionProps, physical_planning_context::PhysicalPlanningContext,
};
use datafusion_physical_expr::create_physical_expr;
use datafusion_physical_plan::PhysicalExpr;
use inlay_engine::rows::{Column, Morsel, Scan, Source, TextTable, Values};
use parking_lot::Mutex;

use super::{
    arrays::{doubles, strings},
    errors::broken,
    schema::Property,
};

/// The column of names of events.
pub const EVENT: &str = "event_name";

/// Numbers by code: the first one is that of rows that lack the property. NaN stands for null.
type Numbers = Arc<[f64]>;

/// Numbers by dictionary. The dictionary stays in memory with them, so that its address stays its own.
type ByDictionary = HashMap<usize, (Arc<TextTable>, Numbers)>;

/// A column of texts of which there are few.
/// Its strings are in dictionaries, or in the list of event names of a source.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TextColumn {
    /// Names of events.
    Event,
    /// A string property.
    Property(Property),
}

/// What an expression over one column of texts comes to.
#[derive(Debug)]
pub struct TextValues {
    column: TextColumn,
    expr: Expr,
    evaluated: Arc<dyn PhysicalExpr>,
    schema: DFSchema,
    known: Mutex<ByDictionary>,
}

impl PartialEq for TextValues {
    fn eq(&self, other: &Self) -> bool {
        self.column == other.column && self.expr == other.expr
    }
}

impl TextValues {
    /// Of an expression that is true, false or a number, and cannot fail for any text.
    ///
    /// Errors: none that is expected; what the library says.
    pub fn new(column: TextColumn, expr: Expr) -> Result<Self> {
        let field = match &column {
            TextColumn::Event => Field::new(EVENT, DataType::Utf8View, true),
            TextColumn::Property(property) => property.field(),
        };
        let fields = [field].into_iter().collect();
        let schema = DFSchema::from_unqualified_fields(fields, HashMap::new())?;
        let (props, subqueries) = (ExecutionProps::new(), PhysicalPlanningContext::default());
        let evaluated = create_physical_expr(&expr, &schema, &props, &subqueries)?;
        Ok(Self { column, expr, evaluated, schema, known: Mutex::default() })
    }

    /// A number for each row of a morsel: 1 and 0 for true and false, NaN for null.
    ///
    /// Errors: damage of a segment.
    pub fn read(&self, source: &Source, morsel: &Morsel) -> Result<Vec<f64>> {
        let TextColumn::Property(property) = &self.column else {
            return self.read_of_events(source, morsel);
        };
        let (codes, table) = codes(source, morsel, &property.name)?;
        // A block without the property has an empty dictionary of its own.
        let numbers = match table.is_empty() {
            true => self.evaluate(&table)?,
            false => self.of_dictionary(Arc::as_ptr(&table).addr(), || Ok(table))?,
        };
        by_code(&codes, &numbers)
    }

    /// The same for names of events: one look-up for each row range, whose rows are of one series.
    fn read_of_events(&self, source: &Source, morsel: &Morsel) -> Result<Vec<f64>> {
        let names = source.names();
        let table = || {
            let mut table = TextTable::default();
            names.iter().for_each(|name| table.push(name.as_bytes()));
            Ok(Arc::new(table))
        };
        let numbers = self.of_dictionary(names.as_ptr().addr(), table)?;
        let mut rows = Vec::with_capacity(morsel.rows());
        for row_range in &morsel.row_ranges {
            let name = source.series().get(row_range.series).map_or(0, |series| series.name);
            let number = by_code(&[name.saturating_add(1)], &numbers)?;
            rows.resize(rows.len() + row_range.rows.len(), number[0]);
        }
        Ok(rows)
    }

    /// The numbers of a dictionary, whose address is `key` as long as the statement runs.
    /// `table` is only called where the dictionary was not met before.
    fn of_dictionary(
        &self,
        key: usize,
        table: impl FnOnce() -> Result<Arc<TextTable>>,
    ) -> Result<Numbers> {
        let known = self.known.lock().get(&key).map(|(_, numbers)| Arc::clone(numbers));
        if let Some(numbers) = known {
            return Ok(numbers);
        }
        let table = table()?;
        let numbers = self.evaluate(&table)?;
        self.known.lock().insert(key, (table, Arc::clone(&numbers)));
        Ok(numbers)
    }

    /// The expression for null and for each string: of `CASE WHEN plan = 'pro' THEN 1 ELSE 0 END` over free, pro these are 0, 0 and 1.
    fn evaluate(&self, table: &TextTable) -> Result<Numbers> {
        let texts = strings(table)?;
        let texts = std::iter::once(None).chain(texts.iter()).collect::<StringViewArray>();
        let rows = texts.len();
        let schema = Arc::clone(self.schema.inner());
        let batch = RecordBatch::try_new(schema, vec![Arc::new(texts)])?;
        let values = self.evaluated.evaluate(&batch)?.into_array(rows)?;
        Ok(doubles(&cast(&values, &DataType::Float64)?).into())
    }
}

/// The texts of a string property in all sources of a scan, in order.
/// Made at the first read: a statement that is only planned does not need it.
pub struct TextOrder {
    scan: Arc<Scan>,
    property: Property,
    ranked: Mutex<Option<Arc<Ranked>>>,
}

impl PartialEq for TextOrder {
    fn eq(&self, other: &Self) -> bool {
        self.property == other.property
    }
}

impl Eq for TextOrder {}

impl fmt::Debug for TextOrder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TextOrder").field("property", &self.property).finish_non_exhaustive()
    }
}

struct Ranked {
    /// All strings, sorted by their bytes, each once: the string of a rank.
    texts: ArrayRef,
    /// The rank of each code, by dictionary; NaN for code 0.
    ranks: ByDictionary,
}

impl TextOrder {
    /// Of a property, if its values are so few that they are all looked at.
    ///
    /// Errors: damage of a segment.
    pub fn new(scan: &Arc<Scan>, property: Property, values_max: usize) -> Result<Option<Self>> {
        let is_possible = has_few(scan, &property.name, values_max)?;
        let order = || Self { scan: Arc::clone(scan), property, ranked: Mutex::default() };
        Ok(is_possible.then(order))
    }

    /// The rank of each row's text; NaN for rows without the property.
    ///
    /// Errors: damage of a segment.
    pub fn read(&self, source: &Source, morsel: &Morsel) -> Result<Vec<f64>> {
        let ranked = self.ranked()?;
        let (codes, table) = codes(source, morsel, &self.property.name)?;
        if table.is_empty() {
            return Ok(vec![f64::NAN; codes.len()]);
        }
        let Some((_, ranks)) = ranked.ranks.get(&Arc::as_ptr(&table).addr()) else {
            return Err(DataFusionError::Internal("a dictionary of no source".to_owned()));
        };
        by_code(&codes, ranks)
    }

    /// How many texts there are.
    ///
    /// Errors: damage of a segment.
    pub fn len(&self) -> Result<usize> {
        Ok(self.ranked()?.texts.len())
    }

    /// The texts of ranks.
    ///
    /// Errors: damage of a segment.
    pub fn texts(&self, ranks: &UInt32Array) -> Result<ArrayRef> {
        Ok(take(&self.ranked()?.texts, ranks, None)?)
    }

    /// The order of all strings, which the first thread that asks for it makes while others wait.
    fn ranked(&self) -> Result<Arc<Ranked>> {
        let mut known = self.ranked.lock();
        if let Some(ranked) = &*known {
            return Ok(Arc::clone(ranked));
        }
        let sources = self.scan.sources().iter();
        let tables = sources.map(|source| source.dictionary(&self.property.name).map_err(broken));
        let tables = tables.collect::<Result<Vec<_>>>()?;
        let mut texts: Vec<&[u8]> = tables.iter().flat_map(|table| table.iter()).collect();
        texts.sort_unstable();
        texts.dedup();
        let rank = |text: &[u8]| texts.partition_point(|other| *other < text) as f64;
        let ranks = tables.iter().map(|table| {
            let ranks = std::iter::once(f64::NAN).chain(table.iter().map(rank)).collect();
            (Arc::as_ptr(table).addr(), (Arc::clone(table), ranks))
        });
        let ranks = ranks.collect();
        let mut all = TextTable::default();
        texts.iter().for_each(|text| all.push(text));
        let ranked =
            Arc::new(Ranked { texts: Arc::new(StringViewArray::from(&strings(&all)?)), ranks });
        *known = Some(Arc::clone(&ranked));
        Ok(ranked)
    }
}

/// Whether the dictionaries of a string property have so many values in all, at most.
///
/// Errors: damage of a segment.
pub fn has_few(scan: &Scan, property: &str, values_max: usize) -> Result<bool> {
    let mut values = 0usize;
    for source in scan.sources() {
        values = values.saturating_add(source.values(property).map_err(broken)?);
    }
    Ok(values <= values_max)
}

/// The codes of a string property for the rows of a morsel, and their dictionary.
fn codes(source: &Source, morsel: &Morsel, name: &str) -> Result<(Vec<u32>, Arc<TextTable>)> {
    match source.read(morsel, &Column::Text(name.to_owned())).map_err(broken)? {
        Values::Codes(codes, table) => Ok((codes, table)),
        _ => Err(DataFusionError::Internal("a text has no codes".to_owned())),
    }
}

/// The number of each code: of codes 2 0 1 over 0.5, 1, 2 these are 2, 0.5 and 1.
fn by_code(codes: &[u32], numbers: &[f64]) -> Result<Vec<f64>> {
    let number = |code: &u32| numbers.get(*code as usize).copied();
    let numbers = codes.iter().map(number).collect::<Option<Vec<f64>>>();
    numbers.ok_or_else(|| DataFusionError::Internal("a code exceeds its dictionary".to_owned()))
}
