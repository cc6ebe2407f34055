//! Instants as text: RFC 3339 in UTC with milliseconds on the way out, ISO 8601 on the way in.
//!
//! Inside, an instant is a number of milliseconds since 1970. These are read, all as the same instant:
//!
//! ```text
//! 2026-11-13T12:00:00Z       2026-11-13T13:00:00+01:00      2026-11-13T12:00
//! 2026-11-13T12:00:00.000Z   2026-11-13 12:00:00            without an offset it is UTC
//! ```
//!
//! and these are not: `yesterday`, `1794571200`, `2026-13-01`, `2026-11-13T25:00:00Z`, `2026-11-13T12:00:00Z[UTC]`.

use jiff::{Timestamp, civil, fmt::temporal::DateTimePrinter, tz::TimeZone};

const DAY_MS: i64 = 86_400_000;

static PRINTER: DateTimePrinter = DateTimePrinter::new().precision(Some(3));

/// `1794571200007` as `2026-11-13T12:00:00.007Z`. Instants that no calendar knows are shown as the nearest that it does.
pub fn format(ms: i64) -> String {
    PRINTER.timestamp_to_string(&nearest(ms))
}

/// Writes many instants as [`format()`] shows them: `2026-11-13T00:00:00.000Z`. One of the same day as the one before it,
/// or of the next day, needs no calendar.
#[derive(Default)]
pub struct Instants {
    last: Option<(i64, civil::Date)>,
}

impl Instants {
    /// Appends an instant, without quotes.
    pub fn write(&mut self, out: &mut Vec<u8>, ms: i64) {
        let ms = clamped(ms);
        let (day, ms_of_day) = (ms.div_euclid(DAY_MS), ms.rem_euclid(DAY_MS));
        // A series has one bucket a day, or 24: nearly all take one of the first two arms, which need no calendar arithmetic.
        let date = match self.last {
            Some((last, date)) if last == day => Some(date),
            Some((last, date)) if last.checked_add(1) == Some(day) => date.tomorrow().ok(),
            _ => Some(TimeZone::UTC.to_datetime(nearest(ms)).date()),
        };
        // Years before the first have a sign and more digits.
        let Some(date) = date.filter(|date| date.year() >= 0) else {
            return out.extend_from_slice(format(ms).as_bytes());
        };
        self.last = Some((day, date));
        let two = |number: i64| [b'0' + (number / 10) as u8, b'0' + (number % 10) as u8];
        let year = i64::from(date.year());
        let ([a, b], [c, d]) = (two(year / 100), two(year % 100));
        let ([e, f], [g, h]) = (two(date.month().into()), two(date.day().into()));
        let seconds = ms_of_day / 1_000;
        let ([i, j], [k, l], [m, n]) =
            (two(seconds / 3_600), two(seconds / 60 % 60), two(seconds % 60));
        let (o, [p, q]) = (b'0' + (ms_of_day % 1_000 / 100) as u8, two(ms_of_day % 100));
        out.extend_from_slice(&[
            a, b, c, d, b'-', e, f, b'-', g, h, b'T', i, j, b':', k, l, b':', m, n, b'.', o, p, q,
            b'Z',
        ]);
    }
}

/// The instant, or the nearest that the calendar has.
fn nearest(ms: i64) -> Timestamp {
    Timestamp::from_millisecond(clamped(ms)).unwrap_or_default()
}

fn clamped(ms: i64) -> i64 {
    // The library takes no milliseconds of its last second.
    ms.clamp(Timestamp::MIN.as_second() * 1_000, Timestamp::MAX.as_second() * 1_000)
}

/// An instant for people, to the minute: `2026-11-13 10:17 UTC`.
pub fn format_minute(ms: i64) -> String {
    let text = format(ms);
    let (date, time) = (text.get(..10), text.get(11..16));
    format!("{} {} UTC", date.unwrap_or_default(), time.unwrap_or_default())
}

/// Milliseconds since 1970 of a date-time with offset, a date-time in UTC, or a date, which is its midnight in UTC.
///
/// Fractions are cut: `12:00:00.1239` has 123 ms. A leap second counts as the second before it:
/// `2016-12-31T23:59:60Z` is `2016-12-31T23:59:59Z`. `None` for everything else.
pub fn parse(text: &str) -> Option<i64> {
    // Zones and calendars in brackets are another standard.
    if !text.is_ascii() || text.len() > TEXT_MAX || text.contains('[') {
        return None;
    }
    if let Ok(timestamp) = text.parse::<Timestamp>() {
        return Some(timestamp.as_millisecond());
    }
    // Without an offset it is UTC; with a zone in brackets or other extras it is refused.
    let is_plain =
        |text: &str| text.bytes().all(|byte| byte.is_ascii_digit() || b"-:.,T t".contains(&byte));
    if !is_plain(text) {
        return None;
    }
    let civil = text.parse::<civil::DateTime>().ok()?;
    Some(civil.to_zoned(TimeZone::UTC).ok()?.timestamp().as_millisecond())
}

/// No timestamp is longer than this.
const TEXT_MAX: usize = 64;

/// The date of an instant in UTC, `2026-11-13`.
pub fn date(ms: i64) -> String {
    format(ms).get(..10).unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn instants_one_after_the_other_are_those_alone() {
        let day = |days: i64| days * DAY_MS;
        let (first, last) = (Timestamp::MIN.as_millisecond(), Timestamp::MAX.as_millisecond());
        let around = [0, day(-719_529), day(19_000), day(19_782), first, last, i64::MIN, i64::MAX];
        let steps = [0, 0, 1, 999, 3_600_000, DAY_MS, DAY_MS, -1, -DAY_MS, day(40), day(400)];
        for mut ms in around {
            let mut instants = Instants::default();
            for step in steps {
                ms = ms.saturating_add(step);
                let mut text = Vec::new();
                instants.write(&mut text, ms);
                assert_eq!(String::from_utf8(text).unwrap(), format(ms), "{ms}");
            }
        }
    }

    #[test]
    fn the_forms_of_the_specification_are_read() {
        let noon = 1_794_571_200_000;
        for text in [
            "2026-11-13T12:00:00Z",
            "2026-11-13T12:00:00.000Z",
            "2026-11-13T13:00:00+01:00",
            "2026-11-13T12:00:00",
            "2026-11-13 12:00:00",
            "2026-11-13T12:00",
        ] {
            assert_eq!(parse(text), Some(noon), "{text}");
        }
        // A leap second is the last one of its day: no second of a day is longer for that.
        assert_eq!(parse("2016-12-31T23:59:60Z"), parse("2016-12-31T23:59:59Z"));
        assert_eq!(parse("2016-12-31T23:59:60Z"), Some(1_483_228_799_000));
        assert_eq!(parse("2026-11-13"), Some(noon - 12 * 3_600_000));
        assert_eq!(parse("2026-11-13T12:00:00.1239Z"), Some(noon + 123));
        for text in [
            "",
            "yesterday",
            "2026-13-01",
            "1794571200",
            "2026-11-13T25:00:00Z",
            "2026-11-13T12:00:00[Mars/X]",
            "2026-11-13T12:00:00Z[UTC]",
            "２０２６-11-13",
        ] {
            assert_eq!(parse(text), None, "{text}");
        }
    }

    #[test]
    fn instants_are_shown_with_milliseconds() {
        assert_eq!(format(1_794_571_200_007), "2026-11-13T12:00:00.007Z");
        assert_eq!(format(0), "1970-01-01T00:00:00.000Z");
        assert_eq!(format(i64::MAX), "9999-12-30T22:00:00.000Z");
        assert_eq!(format(i64::MIN), "-009999-01-02T01:59:59.000Z");
    }
}
