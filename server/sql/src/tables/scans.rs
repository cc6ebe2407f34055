//! Finds the scans of our tables in logical plans, and adds columns to them.
//!
//! ```text
//! TableScan events, columns 0 2            SELECT tenant_id, timestamp
//! scan_of with a property, columns 0 2 7   the same scan of a wider table, which reads string_props['plan'], too
//! ```

use std::sync::Arc;

use datafusion_common::Result;
use datafusion_expr::{LogicalPlan, TableScan, TableScanBuilder};

use super::{
    events_table::Table,
    source::{Provider, Source},
};

/// The table of a scan, if it is one of ours.
/// `None` for a subquery that is read as a table (`session/shared_table.rs`).
pub fn table_of(scan: &TableScan) -> Option<&Table> {
    scan.source.downcast_ref::<Source>()?.table()
}

/// The same scan of a table with more columns, of which these are read.
/// Its name, conditions and limit stay; `columns` may come in any order and several times.
///
/// Errors: a column that is none.
pub fn scan_of(
    scan: &TableScan,
    wider: Arc<dyn Provider>,
    mut columns: Vec<usize>,
) -> Result<LogicalPlan> {
    columns.sort_unstable();
    columns.dedup();
    let source = Arc::new(Source(wider));
    let scan = TableScanBuilder::new(scan.table_name.clone(), source)
        .with_projection(Some(columns))
        .with_filters(scan.filters.clone())
        .with_fetch(scan.fetch)
        .build()?;
    Ok(LogicalPlan::TableScan(scan))
}
