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
mod exact_percentile;
mod groups;
mod scan_stats;

mod user_interner;

mod partial_states;

mod partial_cache;

mod query_cache;

mod accumulate;
mod exact_up_to;

mod sink;

mod window;

mod memtable;
mod rollups;

mod shape_reader;

mod bucket_rows;

mod plan;

mod segments;

mod partial_reuse;

mod parallel_scan;

mod run;

mod discover;
mod explain;
mod tenants;

pub use discover::{EventFacts, NumberFacts, TextFacts, discover};
pub use exact_up_to::ExactUpTo;
pub use explain::{ExplainStep, explain};
pub use run::{AnswerSources, Control, ExecOptions, MemoryWait, Resources, execute};
pub use tenants::tenants;
