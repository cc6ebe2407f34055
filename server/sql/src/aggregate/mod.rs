//! Groups of events that are added up while they are read, without a batch of rows.
//!
//! ```text
//! SELECT tenant_id, date_trunc('day', timestamp), count(*), sum(numeric_props['ms']) FROM events GROUP BY 1, 2
//!
//! aggregate_rewriter   which expressions follow from groups, and what has to be added up: an aggregate_spec
//! groups_table         groups by anything but users: pre_aggregate adds up each source
//! user_groups_table    groups by users too: group_by_user hashes them, tenant by tenant
//! ```

mod case_branches;
mod code_set;
mod distinct_values;
mod literal_ranks;
mod state_functions;
mod total_exprs;

mod count_codes;
mod ordered_lists;

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

pub use aggregate_rewriter::{AggregateRewriter, RowsPerGroup};
pub use aggregate_spec::USER_NUMBER;
pub use count_codes::count_codes;
pub use ordered_lists::{OrderedLists, needs_whole_groups};
pub use state_functions::aggregates;
pub use total_exprs::is_total;
