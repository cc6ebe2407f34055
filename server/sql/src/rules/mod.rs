//! Rules of the analyzer and the optimizer that know our tables.
//!
//! ```text
//! aggregate_pushdown        SELECT tenant_id, count(*) FROM events GROUP BY 1      reads groups, not rows
//! dictionary_group_by       … GROUP BY user_id                                     compares dictionary codes
//! property_columns          string_props['plan']                                   is a column of its own
//! distinct_as_groups        count(DISTINCT plan)                                   counts groups
//! ```

mod rewrite;

mod in_lists;
mod intervals;
mod literals;
mod milliseconds;
mod range_frames;
mod rounded_casts;
mod signed_numbers;
mod times_of_dates;
mod timestamp_casts;
mod zeros_without_sign;

mod dictionary_columns;

mod aggregate_pushdown;
mod known_values;
mod value_counts;

mod aggregate_below_joins;

mod dictionary_group_by;
mod dictionary_joins;
mod dictionary_partitions;

mod distinct_as_groups;
mod grouping_sets;
mod propagate_values;
mod property_columns;
mod semi_joins;

pub use aggregate_below_joins::AGGREGATE_BELOW_JOINS;
pub use aggregate_pushdown::AGGREGATE_PUSHDOWN;
pub use dictionary_columns::{numbered, plain};
pub use dictionary_group_by::{COUNT_DISTINCT_CODES, DICTIONARY_GROUP_BY};
pub use dictionary_joins::DICTIONARY_JOINS;
pub use dictionary_partitions::DICTIONARY_PARTITIONS;
pub use distinct_as_groups::DISTINCT_AS_GROUPS;
pub use grouping_sets::{DistinctSetsAsUnion, grouping_sets};
pub use in_lists::NULLS_OF_LISTS;
pub use intervals::ADD_DURATIONS;
pub use known_values::known_values;
pub use literals::CONSTANTS_RIGHT;
pub use milliseconds::TIMES_IN_MILLISECONDS;
pub use propagate_values::PROPAGATE_VALUES;
pub use property_columns::PropertiesAsColumns;
pub use range_frames::FRAMES;
pub use rewrite::{is_of_groups, is_of_rows};
pub use rounded_casts::ROUNDED_CASTS;
pub use semi_joins::SEMI_JOINS_OF_GROUPS;
pub use signed_numbers::SIGNED_NUMBERS;
pub use times_of_dates::TIMES_OF_DATES;
pub use timestamp_casts::PreserveTimestampCasts;
pub use value_counts::value_count;
pub use zeros_without_sign::ZEROS_WITHOUT_SIGN;
