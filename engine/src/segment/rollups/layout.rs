//! What is kept of which rollup, and how its sections are called.
//!
//! The blocks of `model` in the golden file of the head of [`super`], whose dictionary is large, rare, small:
//!
//! ```text
//! kind 65 (counts), name model      bytes
//! block of (2, acme, call)          02                 totals, then hours
//!                                   02                 two values
//!                                   01 15              code 1 (large): 21 rows
//!                                   01 07              code 1 + 1 + 1 = 3 (small): 7 rows
//!                                   15 07              its one hour: 21 and 7
//! block of call, both tenants       01                 totals
//!                                   02 01 1a 01 09     large 26, small 9
//!
//! kind 66, name model/plan          01 03 02           totals of three pairs; plan has two codes
//!                                   02 14              number 2: model 1, plan 0: 20 rows
//!                                   00 01              number 3: model 1, plan 1: 1 row
//!                                   02 07              number 6: model 3, plan 0: 7 rows
//!
//! kind 70 of 200 rows, no users     02 00 00           an empty sketch for the day, and one for its hour
//! kind 68 of 28 rows                00                 not kept; where all are, the section is left out
//! ```

/// Values of a dimension in a segment, at most, with which it is rolled up: with more it groups nothing.
pub const VALUES_MAX: usize = 1_024;
/// Pairs of codes that two dimensions may have at most for their pairs to be counted: 63 values and 63 just fit, each with
/// "absent".
pub const PAIRS_MAX: usize = 4_096;
/// Numeric properties of a segment that are rolled up, by name.
pub const NUMBERS_MAX: usize = 32;
/// Rows of a series on a day with rows, on the mean, from which on it is rolled up: fewer are read as quickly.
pub const ROWS_A_DAY_MIN: usize = 64;
/// A rollup is kept with at most one count for so many rows of the series: 3 values of 28 rows are, 4 are not,
pub const ROWS_A_COUNT: usize = 8;
/// or one state of count, sum and extremes, which takes more room.
pub const ROWS_A_STATE: usize = 64;

/// A sketch is kept with at most one byte for so many rows: dense registers, 12,291 bytes with the form, from 24,582 rows
/// on.
pub const ROWS_A_SKETCH_BYTE: usize = 2;
/// Values of a dimension up to which each has a sketch: states take memory while they are made.
pub const SKETCH_VALUES_MAX: usize = 32;
/// Numeric properties of a segment that have digests.
pub const DIGEST_NUMBERS_MAX: usize = 4;
/// Rows of a series from which on its digests can be worth their bytes.
pub const DIGEST_ROWS_MIN: usize = 4_096;
/// The same for those by value of a dimension: rows for each value, on the mean.
pub const DIGEST_ROWS_A_VALUE: usize = 2_048;
/// The same for sketches of users by value.
pub const SKETCH_ROWS_A_VALUE: usize = 256;

/// Values of a dimension, with "absent", up to which the users of a day are known for each.
pub const USER_VALUES_MAX: usize = 8;

/// Form of a block: the rollup was not worth it, and nothing follows.
pub const NOT_KEPT: u8 = 0;
/// Form: the totals of the series on its day, of each value where the rollup is by value.
pub const TOTALS: u8 = 1;
/// Form: totals, then the same for each hour with rows.
pub const HOURS: u8 = 2;
/// Form, of a series with rows on several days: how many, the length of the block of each, and the blocks, each with a form of its
/// own.
pub const DAYS: u8 = 3;

/// The name of a section about a dimension and something else: `model/status`, `model/latency_ms`.
pub fn pair_name(dimension: &str, other: &str) -> String {
    format!("{dimension}/{other}")
}

/// The two parts of such a name. Dimensions have no slash in their names.
pub fn parts_of_name(name: &str) -> (&str, &str) {
    name.split_once('/').unwrap_or((name, ""))
}

/// Name of the form in the first byte of a block, as `inlay-inspect segment --blocks` prints it.
pub fn form_name(tag: u8) -> &'static str {
    match tag {
        NOT_KEPT => "not kept",
        TOTALS => "totals",
        HOURS => "totals and hours",
        DAYS => "days",
        _ => "?",
    }
}
