//! Running a query over the raw rows of one version.
//!
//! Each segment run and each memtable chunk is cut into pieces of at most a vector of rows. A piece
//! passes the filters, which leave a list of rows; then each kept row is added to the accumulator of
//! its group and bucket. Strings stay codes until a group is first met.
//!
//! A question by bucket and group runs twice over the same version: once for the totals that decide
//! which groups are answered, once for their buckets. So memory is bounded by what is answered.

mod budget;
mod groups;

mod kept;

mod accumulate;

mod sink;

mod window;

mod memory;
mod rollups;

mod segments;

mod explain;
mod run;

mod discover;

pub use discover::{EventFacts, NumberFacts, TextFacts, discover};
pub use explain::{ExplainStep, explain};
pub use run::{Control, How, Resources, execute};
