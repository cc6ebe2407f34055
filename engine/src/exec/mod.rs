//! Running a query over one version: what is kept, rollups, and rows.
//!
//! Each segment run and each memtable chunk is cut into pieces of at most a vector of rows. A piece
//! passes the filters, which leave a list of rows; then the kept rows are added to the accumulators of
//! their groups and bucket. Strings stay codes until a group is first met.
//!
//! A question by bucket and group runs once where the states of its groups add up to the totals that
//! decide which of them are answered, and are not too many. Else it runs twice over the same version, once
//! for the totals and once for the buckets of what is answered. So memory is bounded.

mod budget;
mod groups;
mod ranks;
mod reads;

mod users;

mod cells;

mod partials;

mod kept;

mod accumulate;

mod sink;

mod window;

mod memory;
mod rollups;

mod bucket_rows;

mod plan;

mod segments;

mod reuse;

mod work;

mod run;

mod discover;
mod explain;
mod tenants;

pub use discover::{EventFacts, NumberFacts, TextFacts, discover};
pub use explain::{ExplainStep, explain};
pub use run::{Control, ExactUpTo, How, Resources, Sources, Wait, execute};
pub use tenants::tenants;
