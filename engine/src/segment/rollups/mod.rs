//! Rollups: what a segment's rows add up to, for its large series.
//!
//! A rollup is a projection of the rows of its own segment, so it is never out of date: rows are never
//! changed, and a segment that is made of others computes its own. For each series with enough rows,
//! day by day, there are: counts by hour of each value of a rollup dimension, count, sum and
//! extremes of each number by hour and by value of a dimension, counts of pairs of values, sketches of
//! its users and numbers, and the users themselves. The counts of a series itself are in the run directory. The same, without hours,
//! is kept for each event of all tenants together, for questions that name none. What would take more than
//! it saves is left out: such a question reads the rows.
//!
//! Verifying a segment computes its rollups again and compares.
//!
//! ```text
//! golden file 019a6356-6e00-7ec8-b074-7e0b5b63c210, series (2, acme, call): 28 rows of one hour
//!
//! kind             name        content
//! counts           model       large 21, small 7; the same for its hour
//! pairs            model/plan  large without a plan 20, large on trial 1, small without a plan 7
//! numbers          ms          28 values: sum, smallest, largest
//! users            -           not kept: a sketch takes more than half a byte for each of 28 rows
//! user sets        -           users 1 to 6
//! user sets by     model       each of them has rows of large and of small
//! ```
//!
//! A question about a part of a day that no hours are kept for, by two properties that are no dimensions, or with a filter on
//! another property reads rows as it would without rollups. Both ways give the same answer: `tests/rollups.rs`.

mod layout;

mod sketches;
mod user_sets;

mod build;
mod read;

pub use build::{build, events_worth_it, worth_it};
pub use layout::{DIGEST_ROWS_MIN, form_name, pair_name, parts_of_name};
pub use read::{DimensionCounts, RollupAt, RollupForm, RollupReader};
