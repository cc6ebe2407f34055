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
//!
//! ```text
//! orders.csv  →  csv_rows, ndjson_rows, parquet_rows   a thread: rows, each an event or the reason why it is none
//!             →  columns                               which column is which field or property
//!             →  batches                               up to 1,000 rows or 4 MiB, with the ids that are missing
//!             →  sender                                4 requests at once, each until it is answered
//!             →  command                               61000 events, 9800 a second, 12 %, 46 s left
//! ```

mod columns;
mod rows;

mod batches;
mod csv_rows;
mod ndjson_rows;
mod parquet_rows;

mod sender;

mod command;

pub use command::{Import, import};
