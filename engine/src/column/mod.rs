//! Rows in memory, column by column.
//!
//! [`Rows`] is what a batch, a memtable chunk and a log record have in common. String properties
//! are dictionary codes, numbers are floats with NaN for "absent" (events hold finite numbers
//! only), user and event ids are bytes end to end. A column that appears late is shorter than the
//! others; the missing rows are absent.

mod rows;

mod append;
mod wire;

pub use append::RowsBuilder;
pub use rows::{ABSENT, Rows, SeriesKey, TextColumn};
