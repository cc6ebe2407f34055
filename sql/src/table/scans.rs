//! Scans of our tables in plans, and the same with more columns.

use std::sync::Arc;

use datafusion::{
    catalog::default_table_source::{DefaultTableSource, provider_as_source},
    common::Result,
    logical_expr::{LogicalPlan, TableScan, TableScanBuilder},
};

use super::provider::Table;

/// The table of a scan, if it is one of ours.
pub fn table_of(scan: &TableScan) -> Option<&Table> {
    let source: &dyn std::any::Any = &*scan.source;
    let source = source.downcast_ref::<DefaultTableSource>()?;
    source.table_provider.downcast_ref::<Table>()
}

/// The same scan of a table with more columns, of which these are read.
///
/// Errors: a column that is none.
pub fn scan_of(scan: &TableScan, wider: Table, mut columns: Vec<usize>) -> Result<LogicalPlan> {
    columns.sort_unstable();
    columns.dedup();
    let source = provider_as_source(Arc::new(wider));
    let scan = TableScanBuilder::new(scan.table_name.clone(), source)
        .with_projection(Some(columns))
        .with_filters(scan.filters.clone())
        .with_fetch(scan.fetch)
        .build()?;
    Ok(LogicalPlan::TableScan(scan))
}
