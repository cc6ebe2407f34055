//! The table providers of `events`, `events_hourly` and `events_daily`: which columns a scan reads, and which conditions the engine
//! evaluates.
//!
//! ```text
//! SELECT string_props['plan'], count(*) FROM events WHERE tenant_id = 'acme' AND length(user_id) > 9 GROUP BY 1
//!
//! events               tenant_id, event_name, timestamp, event_id, user_id, string_props, numeric_props
//! with_properties      … and string_props['plan']␀                        a property as a column of its own
//! with_numbers         … and number of string_props['plan']␀              the number of each of its values
//! scan                 reads `number of string_props['plan']` and `user_id` of the rows of acme
//! pushdown             Exact for tenant_id = 'acme', Unsupported for length(user_id) > 9
//! ```
//!
//! Each step gives another table: columns are added behind those that there are, and a scan that was planned keeps the numbers of its columns.

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
    known_steps::KnownSteps,
    rollup_tables::Sums,
    row_reader::{ColumnSource, Reading},
    rows_exec::{RowsExec, ScanUnit},
    schema::{Kind, Property, STRINGS, number_column, schema_with},
    source::{NumberColumn, Provider, ScanRequest, WithNumbers},
    statement_dictionary::StatementDictionaries,
    text_values::EVENT,
};

/// Values of a dictionary that are likely to be those of others, too.
/// Plans and countries are the same in all segments, ids of sessions are not.
const SHORT_DICTIONARY: usize = 1_024;

/// A table over a snapshot.
/// Copies are cheap: they share the snapshot and the dictionaries.
#[derive(Clone)]
pub struct Table {
    kind: Kind,
    scan: Arc<Scan>,
    properties: Vec<Property>,
    /// Columns of texts that are read as numbers, too.
    numbers: Vec<NumberColumn>,
    /// Strings that the numbers stand for, in all scans of a statement.
    codes: StatementDictionaries,
    /// What was found about expressions of the time.
    known_steps: KnownSteps,
    schema: SchemaRef,
}

/// All tables over a snapshot.
///
/// They share the dictionaries of the statement, of which `events` alone makes use: there a string has the same number in all scans.
pub fn all(scan: &Arc<Scan>) -> Vec<Table> {
    let (codes, known_steps) = (StatementDictionaries::default(), KnownSteps::default());
    let table = |kind: Kind| {
        let (scan, codes, known_steps) = (Arc::clone(scan), codes.clone(), known_steps.clone());
        let schema = schema_with(kind, &[], std::iter::empty());
        Table {
            kind,
            scan,
            properties: Vec::new(),
            numbers: Vec::new(),
            codes,
            known_steps,
            schema,
        }
    };
    Kind::ALL.map(table).into()
}

impl Table {
    /// The same with other columns behind its own.
    fn with_columns(&self, properties: Vec<Property>, numbers: Vec<NumberColumn>) -> Self {
        let names = numbers.iter().map(|(name, _)| &**name);
        let schema = schema_with(self.kind, &properties, names);
        Self { properties, numbers, schema, ..self.clone() }
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

    /// What was found about expressions of the time in this statement.
    pub fn known_steps(&self) -> KnownSteps {
        self.known_steps.clone()
    }

    /// The snapshot that the table reads.
    pub fn scan_of_rows(&self) -> Arc<Scan> {
        Arc::clone(&self.scan)
    }

    /// The same with columns for these properties too, and where each of them stands.
    ///
    /// By the indexes of their columns in the schema: 7 and 8 for the first two properties of `events`. A property that has a column already keeps it.
    pub fn with_properties(&self, more: &[Property]) -> (Self, Vec<usize>) {
        let mut properties = self.properties.clone();
        let base = self.kind.columns().len();
        let indexes = more.iter().map(|property| {
            let at = properties.iter().position(|other| other == property).unwrap_or_else(|| {
                properties.push(property.clone());
                properties.len() - 1
            });
            base + at
        });
        let indexes = indexes.collect();
        (self.with_columns(properties, self.numbers.clone()), indexes)
    }

    /// The source of a column's values.
    ///
    /// By the number of the column: first those of the table, then properties, then numbers of strings.
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

    /// The operator that reads rows of `events`: morsels by the conditions of the engine, columns by the projection.
    ///
    /// Errors: damage of a segment.
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
        // Numeric properties have no dictionaries, so nothing is known of them.
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
        let wider = self.with_columns(self.properties.clone(), numbers);
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
        // Hours and days are added up by the engine: they are no rows of a source.
        let (kind, scan, properties) = (self.kind, Arc::clone(&self.scan), self.properties.clone());
        Sums { kind, scan, schema, properties, conditions, limit }.plan(partitions)
    }
}
