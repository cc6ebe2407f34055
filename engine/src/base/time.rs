//! Civil time: the bounds of hours, days, weeks and months in UTC.

use jiff::{Timestamp, ToSpan, tz::TimeZone};

/// One hour in milliseconds.
pub const HOUR_MS: i64 = 3_600_000;
/// One day in milliseconds.
pub const DAY_MS: i64 = 24 * HOUR_MS;
/// 1970-01-01 was a Thursday; weeks start on Monday, four days later.
const FIRST_MONDAY_MS: i64 = 4 * DAY_MS;
/// Seven days in milliseconds.
pub const WEEK_MS: i64 = 7 * DAY_MS;

/// Width of a time bucket.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Granularity {
    /// An hour of 3,600 seconds that begins at a full UTC hour.
    Hour,
    /// A UTC day.
    Day,
    /// Monday to Sunday.
    Week,
    /// A calendar month.
    Month,
}

impl Granularity {
    /// Start of the bucket that holds `ms`.
    pub fn floor(self, ms: i64) -> i64 {
        match self {
            Self::Hour => floor_to(ms, HOUR_MS, 0),
            Self::Day => floor_to(ms, DAY_MS, 0),
            Self::Week => floor_to(ms, WEEK_MS, FIRST_MONDAY_MS),
            Self::Month => month_start(ms, 0).unwrap_or_else(|| floor_to(ms, DAY_MS, 0)),
        }
    }

    /// Start of the bucket after the one that starts at `start`.
    pub fn next(self, start: i64) -> i64 {
        match self {
            Self::Hour => start.saturating_add(HOUR_MS),
            Self::Day => start.saturating_add(DAY_MS),
            Self::Week => start.saturating_add(WEEK_MS),
            Self::Month => month_start(start, 1).unwrap_or(i64::MAX),
        }
    }
}

/// Rounds `ms` down to a multiple of `width`, counted from `origin`.
pub fn floor_to(ms: i64, width: i64, origin: i64) -> i64 {
    ms - (ms - origin).rem_euclid(width)
}

/// Date of a day since 1970, as files are named: `2026-11-21`.
pub fn day_name(day: i64) -> String {
    match Timestamp::from_millisecond(day.saturating_mul(DAY_MS)) {
        Ok(start) => start.to_zoned(TimeZone::UTC).date().to_string(),
        // Beyond the calendar: a name all the same.
        Err(_) => format!("day{day}"),
    }
}

fn month_start(ms: i64, months_later: i32) -> Option<i64> {
    let date = Timestamp::from_millisecond(ms).ok()?.to_zoned(TimeZone::UTC).date();
    let start = date.first_of_month().checked_add(months_later.months()).ok()?;
    Some(start.to_zoned(TimeZone::UTC).ok()?.timestamp().as_millisecond())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(text: &str) -> i64 {
        text.parse::<Timestamp>().unwrap().as_millisecond()
    }

    #[test]
    fn buckets_start_where_a_calendar_says() {
        let at = ms("2024-02-29T13:45:10.5Z");
        assert_eq!(Granularity::Hour.floor(at), ms("2024-02-29T13:00:00Z"));
        assert_eq!(Granularity::Day.floor(at), ms("2024-02-29T00:00:00Z"));
        assert_eq!(Granularity::Week.floor(at), ms("2024-02-26T00:00:00Z"));
        assert_eq!(Granularity::Month.floor(at), ms("2024-02-01T00:00:00Z"));
        assert_eq!(Granularity::Month.next(ms("2023-12-01T00:00:00Z")), ms("2024-01-01T00:00:00Z"));
    }

    #[test]
    fn times_before_1970_round_down_too() {
        let at = ms("1969-12-31T23:59:59.999Z");
        assert_eq!(Granularity::Day.floor(at), ms("1969-12-31T00:00:00Z"));
        assert_eq!(Granularity::Week.floor(at), ms("1969-12-29T00:00:00Z"));
        assert_eq!(Granularity::Month.floor(at), ms("1969-12-01T00:00:00Z"));
    }
}
