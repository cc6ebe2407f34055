//! Rows in memory, column by column.
//!
//! [`Rows`] is what a batch, a memtable chunk and a log record have in common. String properties
//! are dictionary codes, numbers are floats with NaN for "absent" (events hold finite numbers
//! only), user and event ids are bytes end to end. A property that few rows have lists those rows.
//!
//! ```text
//! events of a batch (namespace 1)                       Rows
//!
//! acme login 1000 ms, user u, plan pro                  series        [(1, acme, login)]
//! acme login 2000 ms, ms 2.5                            series_codes  [0, 0]
//!                                                       timestamps    [1000, 2000]
//!                                                       event_ids     [none, none]
//!                                                       users         [u, none]      user_hashes  [hash of u, 0]
//!                                                       strings       plan: values [pro], codes [0, absent]
//!                                                       numbers       ms: [absent, 2.5]
//! ```
//!
//! From here they go to the log ([`Rows::write`]), to a memtable chunk that queries read ([`BySeries`] finds the rows of a tenant),
//! to a flush that sorts them into a segment, and, for SQL, into an image that another process maps ([`write_image`]).

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
