//! `inlay import`: history from a file, or from standard input, to a running server.
//!
//! ```text
//! inlay import history.ndjson                                      events as the API takes them, one a line
//! inlay import orders.csv --value event_name=order --field tenant_id=account --field timestamp=created_at
//! zcat 2025.ndjson.gz | inlay import -
//! inlay import events.parquet --skip 4211000                       goes on behind an import that was interrupted
//! ```
//!
//! Rows are read by one thread, sent in batches over a few connections, and counted in their order. A row without an `event_id`
//! gets one that follows from its number and its contents, so that an import which is run again stores nothing twice.

mod columns;
mod rows;

mod batches;
mod csv_rows;
mod ndjson_rows;
mod parquet_rows;

mod sender;

mod command;

pub use command::{Import, import};
