//! The tables that a statement can name: `events`, `events_hourly`, `events_daily`.
//!
//! They hold the rows of one snapshot and nothing else, so no text can reach another one's. Conditions on tenant,
//! event, time and single properties are answered by the engine's own indexes; `string_props['model']` reads
//! the column of that property and never a map.

mod arrays;
mod errors;
mod rewrite;
mod schema;

mod in_lists;
mod intervals;
mod literals;
mod milliseconds;
mod range_frames;
mod signed;
mod times;

mod condition;

mod codes;
mod first_rows;
mod scan_filters;
mod source;

mod shares;

mod text_values;

mod amounts;
mod branches;
mod distinct;

mod wanted;

mod time_exprs;

mod reading;

mod rows;

mod rollup;

mod provider;

mod scans;

mod found;

mod crowd;
mod tally;

mod per_user;
mod totals;

mod reads;

mod numbered;

mod early;

mod distinct_groups;
mod grouping_sets;
mod known_values;
mod pass_on;
mod semi_joins;

mod groups;
mod keys;
mod partitions;
mod property_columns;

mod states;

pub use codes::Codes;
pub use distinct_groups::DISTINCT_AS_GROUPS;
pub use early::ADD_UP_EARLY;
pub use first_rows::FIRST_MAX;
pub use grouping_sets::{DistinctSetsAsUnion, grouping_sets};
pub use groups::GROUP_BY_NUMBERS;
pub use in_lists::NULLS_OF_LISTS;
pub use intervals::ADD_DURATIONS;
pub use keys::JOIN_BY_NUMBERS;
pub use known_values::known_values;
pub use literals::CONSTANTS_RIGHT;
pub use milliseconds::TIMES_IN_MILLISECONDS;
pub use numbered::{numbered, plain};
pub use partitions::PARTITION_BY_NUMBERS;
pub use pass_on::PASS_VALUES_ON;
pub use property_columns::PropertiesAsColumns;
pub use provider::all;
pub use range_frames::FRAMES;
pub use rewrite::is_of_rows;
pub use rows::RowsExec;
pub use schema::{Kind, number_column};
pub use semi_joins::SEMI_JOINS_OF_GROUPS;
pub use signed::SIGNED_DIFFERENCES;
pub use source::{NumberColumn, Provider, ScanRequest, Source, WithNumbers};
pub use states::aggregates;
pub use times::KeepCasts;
