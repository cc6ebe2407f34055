//! Bounds of hours, days, weeks and months as people in a time zone know them.
//!
//! Days of Berlin around the end of summer time, with the window `from` 24 October 12:00Z `to` 27 October 00:00Z:
//!
//! ```text
//! starts(Europe/Berlin, Day, from, to, 1_000)
//! 2026-10-23T22:00Z   24 October, 24 hours; it meets the window, and begins before it
//! 2026-10-24T22:00Z   25 October, 25 hours
//! 2026-10-25T23:00Z   26 October
//! 2026-10-26T23:00Z   27 October
//! ```
//!
//! Weeks begin on Monday, months on the first. At the midnight at which Beirut puts its clocks forward, the day begins at 01:00.
//! 30 December 2011, which Samoa skipped, has no bucket.

use inlay_engine::Granularity;
use jiff::{Timestamp, ToSpan, Zoned, civil::Date, tz::TimeZone};

/// A time zone by its IANA name, such as `Europe/Berlin`. `None` for `Mars/X`, an empty text, offsets such as `+02:00`, and POSIX rules.
pub fn zone(name: &str) -> Option<TimeZone> {
    TimeZone::get(name).ok()
}

/// Starts of the buckets that meet the window from `from_ms` to before `to_ms`, at most `max`; `None`
/// when there are more, or the calendar ends before they do.
///
/// An hour has the same bounds in every zone: one that is put forward or back by half an hour, or by a
/// quarter, has none of its own. A day of a change has 23 or 25 hours.
pub fn starts(
    zone: &TimeZone,
    granularity: Granularity,
    from_ms: i64,
    to_ms: i64,
    max: usize,
) -> Option<Vec<i64>> {
    let mut starts = Vec::new();
    let mut add = |start: i64| {
        starts.push(start);
        (starts.len() <= max).then_some(())
    };
    if granularity == Granularity::Hour {
        let mut start = granularity.floor(from_ms);
        while start < to_ms {
            add(start)?;
            start = granularity.next(start);
        }
        return Some(starts);
    }
    let first = Timestamp::from_millisecond(from_ms).ok()?.to_zoned(zone.clone()).date();
    // The first bucket holds the beginning of the window, so it may begin before it.
    let mut date = match granularity {
        Granularity::Week => {
            first.checked_sub(i64::from(first.weekday().to_monday_zero_offset()).days()).ok()?
        }
        Granularity::Month => first.first_of_month(),
        Granularity::Hour | Granularity::Day => first,
    };
    let mut before = None;
    loop {
        let start = midnight(date, zone)?.timestamp().as_millisecond();
        if start >= to_ms {
            return Some(starts);
        }
        // A date that a zone has skipped begins when the next one does.
        if before != Some(start) {
            add(start)?;
        }
        before = Some(start);
        date = match granularity {
            Granularity::Hour | Granularity::Day => date.tomorrow().ok()?,
            Granularity::Week => date.checked_add(7.days()).ok()?,
            Granularity::Month => date.checked_add(1.month()).ok()?,
        };
    }
}

/// The first instant of a date: not always 00:00, where clocks are put forward at midnight.
fn midnight(date: Date, zone: &TimeZone) -> Option<Zoned> {
    date.to_zoned(zone.clone()).ok()?.start_of_day().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::instant;

    fn told(name: &str, granularity: Granularity, from: &str, to: &str) -> Vec<String> {
        let (from, to) = (instant::parse(from).unwrap(), instant::parse(to).unwrap());
        let starts = starts(&zone(name).unwrap(), granularity, from, to, 1_000).unwrap();
        starts.into_iter().map(|start| instant::format(start).replace(":00.000Z", "")).collect()
    }

    #[test]
    fn days_change_length_with_the_clocks() {
        assert_eq!(
            told("Europe/Berlin", Granularity::Day, "2026-10-24T12:00Z", "2026-10-27T00:00Z"),
            ["2026-10-23T22:00", "2026-10-24T22:00", "2026-10-25T23:00", "2026-10-26T23:00"]
        );
        // At this midnight the clocks of Beirut are put forward to one o'clock.
        assert_eq!(
            told("Asia/Beirut", Granularity::Day, "2026-03-28T12:00Z", "2026-03-30T00:00Z"),
            ["2026-03-27T22:00", "2026-03-28T22:00", "2026-03-29T21:00"]
        );
        assert_eq!(
            told("Asia/Kolkata", Granularity::Day, "2026-01-01T00:00Z", "2026-01-02T00:00Z"),
            ["2025-12-31T18:30", "2026-01-01T18:30"]
        );
    }

    /// Samoa went from 29 to 31 December 2011.
    #[test]
    fn a_day_that_never_was_has_no_bucket() {
        assert_eq!(
            told("Pacific/Apia", Granularity::Day, "2011-12-29T12:00Z", "2012-01-01T00:00Z"),
            ["2011-12-29T10:00", "2011-12-30T10:00", "2011-12-31T10:00"]
        );
    }

    #[test]
    fn weeks_start_on_monday_and_months_on_the_first() {
        assert_eq!(
            told("America/New_York", Granularity::Week, "2026-11-01T04:00Z", "2026-11-10T00:00Z"),
            ["2026-10-26T04:00", "2026-11-02T05:00", "2026-11-09T05:00"]
        );
        assert_eq!(
            told("Pacific/Auckland", Granularity::Month, "2026-03-31T11:30Z", "2026-05-01T00:00Z"),
            ["2026-03-31T11:00", "2026-04-30T12:00"]
        );
        assert_eq!(
            told("Asia/Kolkata", Granularity::Hour, "2026-01-01T00:30Z", "2026-01-01T02:00Z"),
            ["2026-01-01T00:00", "2026-01-01T01:00"]
        );
    }

    #[test]
    fn what_is_no_zone_or_too_much_is_refused() {
        for name in ["Mars/X", "", "+02:00", "EST5EDT4,M3.2.0,M11.1.0"] {
            assert!(zone(name).is_none(), "{name}");
        }
        let utc = zone("UTC").unwrap();
        assert_eq!(starts(&utc, Granularity::Day, 0, i64::MAX / 2, 1_000), None);
        assert_eq!(starts(&utc, Granularity::Day, i64::MIN / 2, 0, 1_000), None);
        assert_eq!(starts(&utc, Granularity::Day, 0, 0, 5), Some(vec![]));
    }
}
