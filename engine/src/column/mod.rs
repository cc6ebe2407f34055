//! Rows in memory, column by column.
//!
//! [`Rows`] is what a batch, a memtable chunk and a log record have in common. String properties
//! are dictionary codes, numbers are floats with NaN for "absent" (events hold finite numbers
//! only), user and event ids are bytes end to end. A property that few rows have lists those rows.

mod cells;

mod rows;

mod append;
mod by_series;
mod image;
mod wire;

mod image_writer;

pub use append::RowsBuilder;
pub use by_series::{BySeries, owner_hash};
pub use cells::ABSENT;
pub use image::{ImageSeries, RowImage};
pub use image_writer::write_image;
pub use rows::{Rows, SeriesKey, TextColumn};
