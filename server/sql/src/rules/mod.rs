//! Rules of the analyzer and the optimizer that know our tables.
//!
//! ```text
//! aggregate_pushdown        SELECT tenant_id, count(*) FROM events GROUP BY 1      reads groups, not rows
//! dictionary_group_by       … GROUP BY user_id                                     compares dictionary codes
//! property_columns          string_props['plan']                                   is a column of its own
//! distinct_as_groups        count(DISTINCT plan)                                   counts groups
//! ```
//!
//! The order in which a statement meets them (`session/library.rs`); rules of the library stand in between:
//!
//! ```text
//! analyzer, before types are coerced
//!   property_columns        get_field(string_props, 'plan')            string_props['plan']
//!   times_of_dates          DATE '2026-03-01' + INTERVAL '1 hour'      CAST(DATE '2026-03-01' AS timestamp) + INTERVAL '1 hour'
//!   signed_numbers          2 - rank()                                 2 - CAST(rank() AS bigint)
//!   range_frames            rank() OVER (ORDER BY a duration)          GROUPS instead of RANGE
//!   timestamp_casts         CAST(timestamp AS …), as written           instant(timestamp)
//! analyzer, with types
//!   timestamp_casts         the casts that coercion has added          instant(timestamp)
//!   intervals               timestamp + INTERVAL '1 hour'              timestamp + 3,600,000 ms
//!   literals                'acme' = tenant_id                         tenant_id = 'acme'
//!   whole_constants         2 * 30 + n                                 60 + n, or an error where the library goes round
//!   in_lists                x IN (1, 2) AND x IN (2, 3)                x IN (2)
//!   rounded_casts           CAST(3.5 AS bigint)                        CAST(nearest(3.5) AS bigint)
//!   grouping_sets           count(DISTINCT …) by GROUPING SETS         UNION ALL of an aggregate for each set
//! optimizer, among the rules of the library
//!   in_lists                once more, where conditions have met
//!   milliseconds            instant(timestamp) >= 1793491200000000000  timestamp >= 1793491200000
//!   propagate_values        e.tenant_id = b.tenant_id, b is of acme    e.tenant_id IN ('acme')
//!   aggregate_below_joins   GROUP BY above two joins                   GROUP BY above the first, and above both
//! optimizer, last
//!   percentiles_together    percentile_cont(0.5), …(0.9) of x          percentiles([0.5, 0.9]) of x
//!   semi_joins              GROUP BY above EXISTS                      EXISTS above GROUP BY
//!   aggregate_pushdown      count(*) of rows                           sum(rows) of groups
//!   distinct_as_groups      count(DISTINCT day)                        count(day) of groups by day
//!   dictionary_group_by     count(DISTINCT user_id), GROUP BY plan     count_codes(number), GROUP BY number
//!   dictionary_joins        a.user_id = b.user_id                      numbers of both
//!   dictionary_partitions   PARTITION BY user_id                       PARTITION BY number
//! before operators are made
//!   zeros_without_sign      0 * ms                                     0 * ms + 0.0
//! ```
//!
//! The others are no rules: `rewrite` has the two forms of rules, `known_values` and `value_counts` say what is known of a column in a
//! plan, and `dictionary_columns` adds columns of dictionary codes to a plan.

mod rewrite;

mod in_lists;
mod intervals;
mod literals;
mod milliseconds;
mod range_frames;
mod rounded_casts;
mod short_times;
mod signed_numbers;
mod times_of_dates;
mod timestamp_casts;
mod whole_constants;
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
mod percentiles_together;
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
pub use percentiles_together::PERCENTILES_TOGETHER;
pub use propagate_values::PROPAGATE_VALUES;
pub use property_columns::PropertiesAsColumns;
pub use range_frames::FRAMES;
pub use rewrite::{is_of_groups, is_of_rows};
pub use rounded_casts::ROUNDED_CASTS;
pub use semi_joins::SEMI_JOINS_OF_GROUPS;
pub use short_times::SECONDS_OF_TIMES;
pub use signed_numbers::SIGNED_NUMBERS;
pub use times_of_dates::TIMES_OF_DATES;
pub use timestamp_casts::PreserveTimestampCasts;
pub use value_counts::value_count;
pub use whole_constants::WHOLE_CONSTANTS;
pub use zeros_without_sign::ZEROS_WITHOUT_SIGN;
