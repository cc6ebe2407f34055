//! What is kept of which rollup, and how its sections are called.

/// Values of a dimension in a segment from which on it is not rolled up: it is no dimension then.
pub const VALUES_MAX: usize = 1_024;
/// Pairs of values that are counted at most.
pub const PAIRS_MAX: usize = 4_096;
/// Numeric properties of a segment that are rolled up, by name.
pub const NUMBERS_MAX: usize = 32;
/// Rows of a series on a day with rows, on the mean, from which on it is rolled up: fewer are read as quickly.
pub const ROWS_A_DAY_MIN: usize = 64;
/// A rollup is kept with at most one count for so many rows of the series,
pub const ROWS_A_COUNT: usize = 8;
/// or one state of count, sum and extremes, which takes more room.
pub const ROWS_A_STATE: usize = 64;

/// A sketch is kept with at most one byte for so many rows.
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

/// The rollup was not worth it.
pub const NOT_KEPT: u8 = 0;
/// Of each value what the series has on its day.
pub const TOTALS: u8 = 1;
/// Totals, then the hours of each value.
pub const HOURS: u8 = 2;
/// Days of a series with rows on several: how many, the length of each one's block, and the blocks.
pub const DAYS: u8 = 3;

/// The name of a section about a dimension and something else.
pub fn pair_name(dimension: &str, other: &str) -> String {
    format!("{dimension}/{other}")
}

/// The two parts of such a name. Dimensions have no slash in their names.
pub fn parts_of_name(name: &str) -> (&str, &str) {
    name.split_once('/').unwrap_or((name, ""))
}

/// What the first byte of a block says.
pub fn form_name(tag: u8) -> &'static str {
    match tag {
        NOT_KEPT => "not kept",
        TOTALS => "totals",
        HOURS => "totals and hours",
        DAYS => "days",
        _ => "?",
    }
}
