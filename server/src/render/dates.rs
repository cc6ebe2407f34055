//! The buckets of a chart as people read them, in a time zone and in the language of a report.
//!
//! The same rules as in `web/shared/format.js`, held together by the answers in `web/test/golden.json`. Months and weekdays of languages
//! are from CLDR, as a browser engine has them.
//!
//! ```text
//! grain    start                  not dated   dated       in full                       in German
//! hour     2026-01-01T00:00:00Z   12 AM       Jan 1       Thu, Jan 1, 12:00 AM          Do., 1. Jan., 0:00
//! day      2026-01-01T00:00:00Z   Jan 1       Jan 1       Thursday, Jan 1               Donnerstag, 1. Jan.
//! week     2026-01-01T00:00:00Z   Jan 1       Jan 1       Week of Jan 1, 2026           Woche ab 1. Jan. 2026
//! month    2026-01-01T00:00:00Z   Jan 2026    Jan 2026    January 2026                  Januar 2026
//! month    2026-03-01T00:00:00Z   Mar         Mar         March 2026                    März 2026
//! ```

use jiff::{Timestamp, Zoned, tz::TimeZone};

use super::words::words;
use crate::base::locale::Locale;

/// Length of the buckets of a chart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Grain {
    /// Buckets of one hour.
    Hour,
    /// Buckets of one calendar day.
    Day,
    /// Buckets of one calendar week.
    Week,
    /// Buckets of one calendar month.
    Month,
}

impl Grain {
    /// The grain with this name; a day for any other name and for none.
    pub fn named(name: Option<&str>) -> Self {
        match name {
            Some("hour") => Self::Hour,
            Some("week") => Self::Week,
            Some("month") => Self::Month,
            _ => Self::Day,
        }
    }
}

const DAY_MS: i64 = 86_400_000;

/// The instant as date and time of a zone; 1970 for an instant that no calendar has.
fn zoned(ms: i64, zone: &TimeZone) -> Zoned {
    Timestamp::from_millisecond(ms).unwrap_or_default().to_zoned(zone.clone())
}

/// Names of months and weekdays in a language, from January and from Monday on.
struct CalendarNames {
    months: [&'static str; 12],
    /// Beside a day or a year: `5. Sept.`
    months_short: [&'static str; 12],
    /// Alone on an axis: `Sep`.
    months_alone: [&'static str; 12],
    weekdays: [&'static str; 7],
    weekdays_short: [&'static str; 7],
}

const ENGLISH_SHORT: [&str; 12] =
    ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
const ENGLISH: CalendarNames = CalendarNames {
    months: [
        "January",
        "February",
        "March",
        "April",
        "May",
        "June",
        "July",
        "August",
        "September",
        "October",
        "November",
        "December",
    ],
    months_short: ENGLISH_SHORT,
    months_alone: ENGLISH_SHORT,
    weekdays: ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"],
    weekdays_short: ["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"],
};
const GERMAN: CalendarNames = CalendarNames {
    months: [
        "Januar",
        "Februar",
        "März",
        "April",
        "Mai",
        "Juni",
        "Juli",
        "August",
        "September",
        "Oktober",
        "November",
        "Dezember",
    ],
    months_short: [
        "Jan.", "Feb.", "März", "Apr.", "Mai", "Juni", "Juli", "Aug.", "Sept.", "Okt.", "Nov.",
        "Dez.",
    ],
    months_alone: [
        "Jan", "Feb", "Mär", "Apr", "Mai", "Jun", "Jul", "Aug", "Sep", "Okt", "Nov", "Dez",
    ],
    weekdays: ["Montag", "Dienstag", "Mittwoch", "Donnerstag", "Freitag", "Samstag", "Sonntag"],
    weekdays_short: ["Mo.", "Di.", "Mi.", "Do.", "Fr.", "Sa.", "So."],
};
const FRENCH_SHORT: [&str; 12] = [
    "janv.", "févr.", "mars", "avr.", "mai", "juin", "juil.", "août", "sept.", "oct.", "nov.",
    "déc.",
];
const FRENCH: CalendarNames = CalendarNames {
    months: [
        "janvier",
        "février",
        "mars",
        "avril",
        "mai",
        "juin",
        "juillet",
        "août",
        "septembre",
        "octobre",
        "novembre",
        "décembre",
    ],
    months_short: FRENCH_SHORT,
    months_alone: FRENCH_SHORT,
    weekdays: ["lundi", "mardi", "mercredi", "jeudi", "vendredi", "samedi", "dimanche"],
    weekdays_short: ["lun.", "mar.", "mer.", "jeu.", "ven.", "sam.", "dim."],
};
/// Months of Japanese are numbers.
const JAPANESE_MONTHS: [&str; 12] =
    ["1月", "2月", "3月", "4月", "5月", "6月", "7月", "8月", "9月", "10月", "11月", "12月"];
const JAPANESE: CalendarNames = CalendarNames {
    months: JAPANESE_MONTHS,
    months_short: JAPANESE_MONTHS,
    months_alone: JAPANESE_MONTHS,
    weekdays: ["月曜日", "火曜日", "水曜日", "木曜日", "金曜日", "土曜日", "日曜日"],
    weekdays_short: ["月", "火", "水", "木", "金", "土", "日"],
};

fn names(locale: Locale) -> &'static CalendarNames {
    match locale {
        Locale::En => &ENGLISH,
        Locale::De => &GERMAN,
        Locale::Fr => &FRENCH,
        Locale::Ja => &JAPANESE,
    }
}

/// The entry of a list for a month (1 to 12) or a weekday (1, Monday, to 7).
fn nth(list: &[&'static str], number: i8) -> &'static str {
    let at = usize::try_from(number - 1).ok();
    at.and_then(|at| list.get(at)).copied().unwrap_or_default()
}

/// `Nov 20`, `20. Nov.`, `20 nov.`, `11月20日`.
fn day_of_month(at: &Zoned, locale: Locale) -> String {
    let (month, day) = (nth(&names(locale).months_short, at.month()), at.day());
    match locale {
        Locale::En => format!("{month} {day}"),
        Locale::De => format!("{day}. {month}"),
        Locale::Fr => format!("{day} {month}"),
        Locale::Ja => format!("{month}{day}日"),
    }
}

/// A month of a year, by the name that it is given: `Nov 2026`, `2026年11月`.
fn month_of_year(month: &str, at: &Zoned, locale: Locale) -> String {
    match locale {
        Locale::Ja => format!("{}年{month}", at.year()),
        _ => format!("{month} {}", at.year()),
    }
}

/// A bucket's start on an axis.
///
/// The time of an hour where it is not `dated`; the year of a month only in January.
pub fn bucket_short(ms: i64, grain: Grain, dated: bool, zone: &TimeZone, locale: Locale) -> String {
    let (at, names) = (zoned(ms, zone), names(locale));
    match grain {
        Grain::Month => {
            // A day later and in UTC, so that the first of January in any zone is in January.
            let is_january = zoned(ms + DAY_MS, &TimeZone::UTC).month() == 1;
            if is_january {
                month_of_year(nth(&names.months_short, at.month()), &at, locale)
            } else {
                nth(&names.months_alone, at.month()).to_owned()
            }
        }
        Grain::Hour if !dated => match locale {
            Locale::En => at.strftime("%-I %p").to_string(),
            Locale::De => at.strftime("%H Uhr").to_string(),
            Locale::Fr => at.strftime("%H h").to_string(),
            Locale::Ja => at.strftime("%-H時").to_string(),
        },
        _ => day_of_month(&at, locale),
    }
}

/// A bucket in full.
/// `Thu, Jan 1, 12:00 AM` of an hour, `Thursday, Jan 1` of a day, `Week of Jan 1, 2026`, and `January 2026`.
pub fn bucket_long(ms: i64, grain: Grain, zone: &TimeZone, locale: Locale) -> String {
    let (at, names) = (zoned(ms, zone), names(locale));
    let (day, weekday) = (day_of_month(&at, locale), at.weekday().to_monday_one_offset());
    match grain {
        Grain::Month => month_of_year(nth(&names.months, at.month()), &at, locale),
        Grain::Week => (words(locale).week_of)(&match locale {
            Locale::En => format!("{day}, {}", at.year()),
            Locale::De | Locale::Fr => format!("{day} {}", at.year()),
            Locale::Ja => format!("{}年{day}", at.year()),
        }),
        Grain::Day => {
            let weekday = nth(&names.weekdays, weekday);
            match locale {
                Locale::En | Locale::De => format!("{weekday}, {day}"),
                Locale::Fr => format!("{weekday} {day}"),
                Locale::Ja => format!("{day}{weekday}"),
            }
        }
        Grain::Hour => {
            let weekday = nth(&names.weekdays_short, weekday);
            let clock = if locale == Locale::En { "%-I:%M %p" } else { "%-H:%M" };
            let clock = at.strftime(clock);
            match locale {
                Locale::En | Locale::De => format!("{weekday}, {day}, {clock}"),
                Locale::Fr => format!("{weekday} {day}, {clock}"),
                Locale::Ja => format!("{day}({weekday}) {clock}"),
            }
        }
    }
}

/// Whether an instant begins a day.
/// 14:00 UTC does not, and 23:00 UTC does in Berlin in winter: the zone decides.
pub fn starts_day(ms: i64, zone: &TimeZone) -> bool {
    let at = zoned(ms, zone);
    at.hour() == 0 && at.minute() == 0
}

/// When a bucket ends.
/// Of the month from 2026-01-01, 31 days later. Days are 24 hours here, also where the clock changes: the end only
/// decides whether a bucket is complete.
pub fn bucket_end(ms: i64, grain: Grain) -> i64 {
    match grain {
        Grain::Hour => ms + DAY_MS / 24,
        Grain::Day => ms + DAY_MS,
        Grain::Week => ms + 7 * DAY_MS,
        Grain::Month => {
            // A month of any time zone is well begun half a month after its start.
            let inside = zoned(ms + 15 * DAY_MS, &TimeZone::UTC);
            ms + i64::from(inside.days_in_month()) * DAY_MS
        }
    }
}
