//! The tables that a statement can name: `events`, `events_hourly`, `events_daily`.
//!
//! They hold the rows of one snapshot and nothing else, so no text can reach another one's. Conditions on tenant,
//! event, time and single properties are answered by the engine's own indexes; `string_props['model']` reads
//! the column of that property and never a map.
//!
//! ```text
//! events_table   what the planner is told: columns, and which conditions the engine answers (conditions)
//! rows_exec      the operator: morsels of rows, read by row_reader, as far as scan_filters let them pass
//! rollup_tables  hours and days that the engine has added up
//! ```
//!
//! The way of a statement through them:
//!
//! ```text
//! SELECT string_props['plan'], numeric_props['ms'] FROM events WHERE tenant_id = 'acme' AND length(user_id) > 9 ORDER BY timestamp DESC LIMIT 10
//! planner       Table::pushdown: tenant_id = 'acme' is exact. Table::scan: the morsels of acme in each source, a RowsExec over them
//! optimizer     RowsExec takes length(user_id) > 9, and reads the latest morsels first
//! execution     of a morsel user_id and timestamp are read, then plan and ms of the rows that pass; older morsels are skipped
//! ```

mod errors;
mod instants;
mod partitions;
mod schema;
mod time_bounds;

mod arrays;

mod conditions;

mod first_rows;
mod known_steps;
mod scan_filters;
mod statement_dictionary;

mod source;
mod tenant_partitions;

mod text_values;

mod row_reader;

mod rows_exec;

mod rollup_tables;

mod events_table;

mod scans;

pub use arrays::{doubles, number_array, strings, with_own_texts};
pub use conditions::{Conditions, time_boundaries};
pub use errors::broken;
pub use events_table::{Table, all};
pub use first_rows::FIRST_MAX;
pub use instants::{instant, is_instant, kept_cast};
pub use known_steps::{KnownSteps, Steps};
pub use partitions::{BATCH_ROWS, balance_by_rows};
pub use rows_exec::RowsExec;
pub use scan_filters::{KnownFilter, ScanFilters};
pub use scans::{scan_of, table_of};
pub use schema::{Kind, NUMBERS, Property, STRINGS, number_column, property_column};
pub use source::{NumberColumn, Provider, ScanRequest, Source, WithNumbers};
pub use statement_dictionary::{StatementDictionary, codes_of, number_of, spread, text_of};
pub use text_values::{EVENT, TextColumn, TextOrder, TextValues, has_few};
