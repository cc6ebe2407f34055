//! What the planner asks a table for: `events`, or a group of rows that is read as a table.
//!
//! A logical plan holds a [`Source`]; the physical planner asks it for the plan of a scan, and the rules of the
//! optimizer for the table itself.
//!
//! ```text
//! planner      get_table_source("events")            Source(Table)
//! rules        Source::table::<Table>()              with_numbers, value_count, known_values
//! optimizer    supports_filters_pushdown             Provider::pushdown
//! physical     Provider::scan(ScanRequest)           RowsExec
//! ```

use std::{any::Any, fmt::Debug, sync::Arc};

use arrow::datatypes::SchemaRef;
use datafusion_common::{Result, ScalarValue};
use datafusion_expr::{Expr, TableProviderFilterPushDown, TableSource, TableType};
use datafusion_physical_plan::ExecutionPlan;

use super::statement_dictionary::StatementDictionary;

/// The part of a table that a scan reads.
#[derive(Clone, Copy, Debug)]
pub struct ScanRequest<'a> {
    /// Numbers of the columns, in the order of the answer; all columns where there is no list.
    pub projection: Option<&'a Vec<usize>>,
    /// Conditions that [`Provider::pushdown`] has said to apply in full; columns have no qualifier.
    pub filters: &'a [Expr],
    /// How many rows are enough.
    pub limit: Option<usize>,
    /// Among how many threads the work is divided.
    pub partitions: usize,
}

/// The name of a column of numbers, and what these stand for.
pub type NumberColumn = (String, Arc<StatementDictionary>);

/// A table with more columns, those of numbers.
pub type WithNumbers = (Arc<dyn Provider>, Vec<NumberColumn>);

/// A table that can be read.
pub trait Provider: Any + Debug + Send + Sync {
    /// Names and types of the columns, as a statement sees them.
    fn schema(&self) -> SchemaRef;

    /// Whether the table itself applies a condition.
    fn pushdown(&self, filter: &Expr) -> TableProviderFilterPushDown;

    /// The values of a column in all rows, never null, where the table knows them.
    fn known_values(&self, column: &str) -> Option<Vec<ScalarValue>> {
        let _ = column;
        None
    }

    /// About how many values a column has, one for null among them. Nothing where the table does not know.
    ///
    /// Errors: damage of a segment.
    fn value_count(&self, column: &str) -> Result<Option<usize>> {
        let _ = column;
        Ok(None)
    }

    /// Whether a row is a group of rows, as a subquery with `GROUP BY` has them.
    fn is_grouped(&self) -> bool {
        false
    }

    /// The same with a column of numbers for each of these columns of texts, and these: nothing where the table has no numbers of one.
    /// Columns that it had stay where they are, or have the same names.
    ///
    /// Errors: none that is expected.
    fn with_numbers(&self, names: &[&str]) -> Result<Option<WithNumbers>> {
        let _ = names;
        Ok(None)
    }

    /// The plan that reads it.
    ///
    /// Errors: damage of a segment; a filter that was not to be applied.
    fn scan(&self, request: ScanRequest<'_>) -> Result<Arc<dyn ExecutionPlan>>;
}

/// A table as logical plans hold it.
#[derive(Clone, Debug)]
pub struct Source(pub Arc<dyn Provider>);

impl Source {
    /// A table in the form that plans are made with.
    pub fn of(table: impl Provider) -> Arc<dyn TableSource> {
        Arc::new(Self(Arc::new(table)))
    }

    /// The table, if it is of this type.
    pub fn table<T: Provider>(&self) -> Option<&T> {
        let table: &dyn Any = &*self.0;
        table.downcast_ref()
    }
}

impl TableSource for Source {
    fn schema(&self) -> SchemaRef {
        self.0.schema()
    }

    fn table_type(&self) -> TableType {
        TableType::View
    }

    fn supports_filters_pushdown(
        &self,
        filters: &[&Expr],
    ) -> Result<Vec<TableProviderFilterPushDown>> {
        Ok(filters.iter().map(|filter| self.0.pushdown(filter)).collect())
    }
}
