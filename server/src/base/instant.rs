//! Instants as text: RFC 3339 in UTC with milliseconds on the way out, ISO 8601 on the way in.

use jiff::{Timestamp, civil, fmt::temporal::DateTimePrinter, tz::TimeZone};

static PRINTER: DateTimePrinter = DateTimePrinter::new().precision(Some(3));

/// `2026-11-13T00:00:00.000Z`. Instants that no calendar knows are shown as the nearest it does.
pub fn format(ms: i64) -> String {
    PRINTER.timestamp_to_string(&nearest(ms))
}

/// Appends an instant to `text` as [`format()`] shows it.
pub fn write(text: &mut String, ms: i64) {
    // A text takes whatever it is given.
    let _ = PRINTER.print_timestamp(&nearest(ms), text);
}

/// The instant, or the nearest that the calendar has.
fn nearest(ms: i64) -> Timestamp {
    let clamped =
        ms.clamp(Timestamp::MIN.as_millisecond() + 1, Timestamp::MAX.as_millisecond() - 1);
    Timestamp::from_millisecond(clamped).unwrap_or_default()
}

/// An instant for people, to the minute: `2026-11-13 10:17 UTC`.
pub fn format_minute(ms: i64) -> String {
    let text = format(ms);
    let (date, time) = (text.get(..10), text.get(11..16));
    format!("{} {} UTC", date.unwrap_or_default(), time.unwrap_or_default())
}

/// Milliseconds since 1970 of a date-time with offset, a date-time in UTC, or a date.
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
        let mut text = "at ".to_owned();
        write(&mut text, 1_794_571_200_007);
        assert_eq!(text, "at 2026-11-13T12:00:00.007Z");
        assert!(!format(i64::MAX).is_empty() && !format(i64::MIN).is_empty());
    }
}
