//! Groups of events that are added up while they are read, without a batch of rows.
//!
//! ```text
//! SELECT tenant_id, date_trunc('day', timestamp), count(*), sum(numeric_props['ms']) FROM events GROUP BY 1, 2
//!
//! aggregate_rewriter   which expressions follow from groups, and what has to be added up: an aggregate_spec
//! groups_table         groups by anything but users: pre_aggregate adds up each source
//! user_groups_table    groups by users too: group_by_user hashes them, tenant by tenant
//! ```
//!
//! What the tables have, of which operators above make the answer:
//!
//! ```text
//! tenant_id  timestamp                rows   count of measure 0  sum of measure 0  …
//! acme       2026-11-19T00:00:00.000     9                    7              41.5      from the first segment
//! acme       2026-11-19T00:00:00.000     3                    3              12.0      from the second
//! bolt       2026-11-19T00:00:00.000     2                    0              NULL      no event has the property
//! ```
//!
//! Parts of the above: `measures` are numbers that are added up, `row_values`, `time_values` and `total_exprs` say which expressions become
//! such numbers, `time_buckets` which rows have the same value of an expression of the time. `case_branches` and `literal_ranks` take
//! `CASE` apart. `partial_aggregates` are what an aggregate over rows becomes over groups.
//!
//! Three functions do without groups below the scan: `count_codes` (with `code_set`) counts distinct dictionary codes, `ordered_lists` makes lists
//! in an order, `percentiles` are exact. `state_functions` merges the states that the rollup tables have.

mod case_branches;
mod code_set;
mod distinct_values;
mod literal_ranks;
mod state_functions;
mod total_exprs;

mod count_codes;
mod ordered_lists;
mod percentiles;
mod whole_sums;

mod partitioned_work;

mod time_values;

mod row_values;

mod measures;

mod partial_aggregates;

mod aggregate_spec;

mod time_buckets;

mod group_columns;

mod user_range;

mod group_by_user;
mod pre_aggregate;

mod groups_table;
mod user_groups_table;

mod aggregate_rewriter;

pub use aggregate_rewriter::{AggregateRewriter, RowsPerGroup, names_users};
pub use aggregate_spec::{USER_NUMBER, USERS};
pub use count_codes::count_codes;
pub use ordered_lists::{OrderedLists, needs_whole_groups};
pub use partial_aggregates::of_scan;
pub use percentiles::{percentile_cont, percentiles};
pub use state_functions::aggregates;
pub use total_exprs::is_total;
pub use whole_sums::WholeSums;
