//! The table providers of `events`, `events_hourly` and `events_daily`: which columns a scan reads, and which conditions the engine
//! evaluates.

use std::{fmt, sync::Arc};

use arrow::datatypes::{DataType, SchemaRef};
use datafusion_common::{DataFusionError, Result};
use datafusion_expr::{Expr, TableProviderFilterPushDown};
use datafusion_physical_plan::ExecutionPlan;
use inlay_engine::rows::Scan;

use super::{
    arrays::Dictionaries,
    conditions::Conditions,
    errors::broken,
    rollup_tables::Sums,
    row_reader::{ColumnSource, Reading},
    rows_exec::{RowsExec, ScanUnit},
    schema::{Kind, Property, STRINGS, number_column, schema_with},
    source::{NumberColumn, Provider, ScanRequest, WithNumbers},
    statement_dictionary::StatementDictionaries,
    text_values::EVENT,
};

/// Values of a dictionary that are likely to be those of others, too.
const SHORT_DICTIONARY: usize = 1_024;

/// A table over a snapshot.
#[derive(Clone)]
pub struct Table {
    kind: Kind,
    scan: Arc<Scan>,
    properties: Vec<Property>,
    /// Columns of texts that are read as numbers, too.
    numbers: Vec<NumberColumn>,
    /// Strings that the numbers stand for, in all scans of a statement.
    codes: StatementDictionaries,
    schema: SchemaRef,
}

/// All tables over a snapshot.
pub fn all(scan: &Arc<Scan>) -> Vec<Table> {
    let codes = StatementDictionaries::default();
    let table = |kind| Table::new(kind, Arc::clone(scan), Vec::new(), Vec::new(), codes.clone());
    Kind::ALL.map(table).into()
}

impl Table {
    fn new(
        kind: Kind,
        scan: Arc<Scan>,
        properties: Vec<Property>,
        numbers: Vec<NumberColumn>,
        codes: StatementDictionaries,
    ) -> Self {
        let schema = schema_with(kind, &properties, numbers.iter().map(|(name, _)| &**name));
        Self { kind, scan, properties, numbers, codes, schema }
    }

    /// Name of the table in SQL.
    pub fn name(&self) -> &'static str {
        self.kind.name()
    }

    /// Which table it is.
    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// Properties that have columns of their own.
    pub fn properties(&self) -> &[Property] {
        &self.properties
    }

    /// The snapshot that the table reads.
    pub fn scan_of_rows(&self) -> Arc<Scan> {
        Arc::clone(&self.scan)
    }

    /// The same with columns for these properties too, and where each of them stands.
    pub fn with_properties(&self, more: &[Property]) -> (Self, Vec<usize>) {
        let mut properties = self.properties.clone();
        let base = self.kind.columns().len();
        let places = more.iter().map(|property| {
            let at = properties.iter().position(|other| other == property).unwrap_or_else(|| {
                properties.push(property.clone());
                properties.len() - 1
            });
            base + at
        });
        let places = places.collect();
        let (numbers, codes) = (self.numbers.clone(), self.codes.clone());
        (Self::new(self.kind, Arc::clone(&self.scan), properties, numbers, codes), places)
    }

    /// The source of a column's values.
    fn column_source(&self, at: usize) -> Result<ColumnSource> {
        let base = self.kind.columns().len();
        let wanted = match at.checked_sub(base) {
            None => ColumnSource::named(self.schema.field(at).name()),
            Some(at) if at < self.properties.len() => {
                self.properties.get(at).map(ColumnSource::property)
            }
            Some(at) => match self.numbers.get(at - self.properties.len()) {
                Some((name, codes)) => {
                    let of = self.column_source(self.schema.index_of(name)?)?;
                    Some(ColumnSource::Number(Box::new(of), Arc::clone(codes)))
                }
                None => None,
            },
        };
        wanted.ok_or_else(|| DataFusionError::Internal("a column that is none".to_owned()))
    }

    fn rows(
        &self,
        projection: &[usize],
        conditions: Conditions,
        limit: Option<usize>,
        partitions: usize,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let mut parts: Vec<ScanUnit> = Vec::new();
        for (at, source) in self.scan.sources().iter().enumerate() {
            let morsels = conditions.morsels(source).map_err(broken)?;
            parts.extend(morsels.into_iter().map(|morsel| ScanUnit::new(&self.scan, at, morsel)));
        }
        let reading = Reading {
            scan: Arc::clone(&self.scan),
            columns: projection.iter().map(|at| self.column_source(*at)).collect::<Result<_>>()?,
            filter: conditions.filter,
            schema: Arc::new(self.schema.project(projection)?),
            limit,
            dictionaries: Dictionaries::default(),
        };
        Ok(Arc::new(RowsExec::new(reading, parts, partitions)))
    }
}

impl fmt::Debug for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Table")
            .field("kind", &self.kind)
            .field("properties", &self.properties)
            .finish_non_exhaustive()
    }
}

impl Provider for Table {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }

    fn pushdown(&self, filter: &Expr) -> TableProviderFilterPushDown {
        match Conditions::takes(self.kind, filter) {
            true => TableProviderFilterPushDown::Exact,
            false => TableProviderFilterPushDown::Unsupported,
        }
    }

    fn value_count(&self, column: &str) -> Result<Option<usize>> {
        let is_it = |property: &&Property| property.field().name() == column;
        let property = self.properties.iter().filter(|one| one.map == STRINGS).find(is_it);
        let (mut most, mut sum) = (0, 0usize);
        for source in self.scan.sources() {
            let here = match (property, column) {
                (Some(property), _) => source.values(&property.name).map_err(broken)?,
                (None, EVENT) => source.names().len(),
                (None, "tenant_id") => source.tenants().len(),
                (None, _) => return Ok(None),
            };
            most = most.max(here);
            sum = sum.saturating_add(here);
        }
        // Short dictionaries are nearly the same in all segments; long ones may have nothing in common.
        Ok(Some(1 + if most <= SHORT_DICTIONARY { most } else { sum }))
    }

    fn with_numbers(&self, names: &[&str]) -> Result<Option<WithNumbers>> {
        // Hours and days are few.
        if self.kind != Kind::Events {
            return Ok(None);
        }
        let mut numbers = self.numbers.clone();
        let mut found = Vec::new();
        for &name in names {
            let Ok(field) = self.schema.field_with_name(name) else { return Ok(None) };
            // Ids of events differ in each row: to give each a number takes longer than to group by it.
            if *field.data_type() != DataType::Utf8View || name == "event_id" {
                return Ok(None);
            }
            let codes = self.codes.of(name);
            if !numbers.iter().any(|(known, _)| known == name) {
                numbers.push((name.to_owned(), Arc::clone(&codes)));
            }
            found.push((number_column(name), codes));
        }
        let (properties, codes) = (self.properties.clone(), self.codes.clone());
        let wider = Self::new(self.kind, Arc::clone(&self.scan), properties, numbers, codes);
        Ok(Some((Arc::new(wider), found)))
    }

    fn scan(&self, request: ScanRequest<'_>) -> Result<Arc<dyn ExecutionPlan>> {
        let ScanRequest { projection, filters, limit, partitions } = request;
        let all: Vec<usize> = (0..self.kind.columns().len()).collect();
        let projection = projection.unwrap_or(&all);
        let conditions = Conditions::of(self.kind, filters)?;
        if self.kind == Kind::Events {
            return self.rows(projection, conditions, limit, partitions);
        }
        let schema = Arc::new(self.schema.project(projection)?);
        let (kind, scan, properties) = (self.kind, Arc::clone(&self.scan), self.properties.clone());
        Sums { kind, scan, schema, properties, conditions, limit }.plan(partitions)
    }
}
