//! When a report runs: cron in a time zone.
//!
//! Where clocks go forward, a time that does not exist is run at the next that does; where they go
//! back, a time that comes twice is run once, the first time.
//!
//! ```text
//! "daily", asked on 2026-11-20 at 08:00:00                  2026-11-21T08:00:00.000Z      after the instant, never at it
//! "weekly", on a Friday                                     2026-11-23T08:00:00.000Z      Monday
//! "0 8 * * 1" in Europe/Berlin, in winter                   2026-11-23T07:00:00.000Z
//! "30 2 * * *" in Europe/Berlin, before 2026-03-29          2026-03-29T01:00:00.000Z      03:00 there: 02:30 does not exist
//! "30 2 * * *" in Europe/Berlin, before 2026-10-25          2026-10-25T00:30:00.000Z      the first of two 02:30
//! "0 8 30 2 *"                                              400, schedule.cron: no year has that day
//! "* * * *", "@daily"                                       400, schedule.cron "schedule.cron must have five fields"
//! {"cron": "0 8 * * 1", "timezone": "Mars/X"}               400, schedule.timezone "there is no time zone \"Mars/X\""
//! ```

use croner::{
    Cron,
    parser::{CronParser, Seconds, Year},
};
use jiff::{Timestamp, tz::TimeZone};

use crate::{
    error::{ApiError, Code, Result},
    store::Schedule,
};

/// Characters of a cron expression, at most.
const CRON_CHARS_MAX: usize = 200;
/// Years in which the next time is looked for: 29 February on a given day of the week comes within them. Without an
/// end, an expression that only ever names hours which clocks skip would be looked for through thousands of years.
const YEARS: i16 = 40;

/// A schedule that can be asked.
///
/// Read anew from the rule whenever it is needed: the search is bounded by years counted from then.
#[derive(Debug)]
pub struct RunTimes {
    cron: Cron,
    zone: TimeZone,
}

impl RunTimes {
    /// Reads a schedule.
    ///
    /// Errors: 400 naming the part that is wrong, also when it names no time that ever comes.
    pub fn read(schedule: &Schedule, now_ms: i64) -> Result<Self> {
        let (cron, zone) = match schedule {
            Schedule::Word(word) => (of_word(word)?, None),
            Schedule::Cron(cron) => (cron.cron.as_str(), cron.timezone.as_deref()),
        };
        let zone = match zone {
            None => TimeZone::UTC,
            Some(name) => TimeZone::get(name).map_err(|_| {
                let message = format!("there is no time zone {name:?}");
                ApiError::field(Code::UnknownValue, "schedule.timezone", message)
            })?,
        };
        let invalid = |message: String| {
            ApiError::field(Code::InvalidField, "schedule.cron", format!("schedule.cron {message}"))
        };
        // The parser would take six fields with seconds, and names such as `@daily`: neither is in our API.
        if cron.chars().count() > CRON_CHARS_MAX || cron.split_whitespace().count() != 5 {
            return Err(invalid("must have five fields".to_owned()));
        }
        let parser = CronParser::builder().seconds(Seconds::Required).year(Year::Required);
        let now = Timestamp::from_millisecond(now_ms).unwrap_or_default();
        let within = bounded(cron, now.to_zoned(zone.clone()).year());
        let cron = parser.build().parse(&within).map_err(|error| invalid(error.to_string()))?;
        let times = Self { cron, zone };
        times.after(now_ms).ok_or_else(|| invalid("names no time that ever comes".to_owned()))?;
        Ok(times)
    }

    /// The first time after an instant, in milliseconds since 1970.
    ///
    /// `None` where the next forty years have none; [`RunTimes::read`] has refused such a schedule.
    pub fn after(&self, ms: i64) -> Option<i64> {
        let start = Timestamp::from_millisecond(ms).ok()?.to_zoned(self.zone.clone());
        let next = self.cron.find_next_occurrence(&start, false).ok()?;
        Some(next.timestamp().as_millisecond())
    }
}

/// A cron expression with its seconds and the years in which it is looked for.
///
/// `0 8 * * 1` in 2026 is `0 0 8 * * 1 2026-2066`: seconds in front, years behind.
fn bounded(cron: &str, year: i16) -> String {
    format!("0 {cron} {year}-{}", year.saturating_add(YEARS))
}

/// The cron expression of a word, at 08:00 UTC where a day is chosen.
///
/// Errors: `unknown_value` of `schedule`, with the words.
fn of_word(word: &str) -> Result<&'static str> {
    Ok(match word {
        "hourly" => "0 * * * *",
        "daily" => "0 8 * * *",
        "weekly" => "0 8 * * 1",
        "monthly" => "0 8 1 * *",
        _ => {
            let message = "schedule must be hourly, daily, weekly, monthly, or an object with cron";
            return Err(ApiError::field(Code::UnknownValue, "schedule", message));
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{base::instant, store::CronSchedule};

    fn cron(cron: &str, zone: Option<&str>) -> Schedule {
        Schedule::Cron(CronSchedule { cron: cron.to_owned(), timezone: zone.map(str::to_owned) })
    }

    #[test]
    fn times_follow_each_other_across_changes_of_the_clock() {
        for (schedule, from, expected) in [
            (Schedule::Word("hourly".into()), "2026-11-20T10:17:36Z", "2026-11-20T11:00:00.000Z"),
            (Schedule::Word("daily".into()), "2026-11-20T08:00:00Z", "2026-11-21T08:00:00.000Z"),
            (Schedule::Word("weekly".into()), "2026-11-20T10:00:00Z", "2026-11-23T08:00:00.000Z"),
            (Schedule::Word("monthly".into()), "2026-12-01T08:00:01Z", "2027-01-01T08:00:00.000Z"),
            // Winter and summer in Berlin.
            (
                cron("0 8 * * 1", Some("Europe/Berlin")),
                "2026-11-20T10:00:00Z",
                "2026-11-23T07:00:00.000Z",
            ),
            (
                cron("0 8 * * *", Some("Europe/Berlin")),
                "2026-06-20T10:00:00Z",
                "2026-06-21T06:00:00.000Z",
            ),
            // 02:30 does not exist on the last Sunday of March, and comes twice on that of October.
            (
                cron("30 2 * * *", Some("Europe/Berlin")),
                "2026-03-28T12:00:00Z",
                "2026-03-29T01:00:00.000Z",
            ),
            (
                cron("30 2 * * *", Some("Europe/Berlin")),
                "2026-10-24T12:00:00Z",
                "2026-10-25T00:30:00.000Z",
            ),
            (
                cron("30 2 * * *", Some("Europe/Berlin")),
                "2026-10-25T00:30:00Z",
                "2026-10-26T01:30:00.000Z",
            ),
        ] {
            let from = instant::parse(from).unwrap();
            let times = RunTimes::read(&schedule, from).unwrap();
            let next = times.after(from).map(instant::format);
            assert_eq!(next.as_deref(), Some(expected), "{schedule:?}");
        }
    }

    /// A time of the night in three zones around both changes of the clock of a year: it does not exist where clocks go
    /// forward, and comes twice where they go back.
    #[test]
    fn changes_of_the_clock_neither_skip_nor_double_a_run() {
        const DAY_MS: i64 = 86_400_000;
        for (zone, date, hour, run, is_gap) in [
            ("Europe/Berlin", "2026-03-29", 2, "2026-03-29T01:00:00.000Z", true),
            ("Europe/Berlin", "2026-10-25", 2, "2026-10-25T00:30:00.000Z", false),
            ("America/New_York", "2026-03-08", 2, "2026-03-08T07:00:00.000Z", true),
            ("America/New_York", "2026-11-01", 1, "2026-11-01T05:30:00.000Z", false),
            ("Australia/Sydney", "2026-10-04", 2, "2026-10-03T16:00:00.000Z", true),
            ("Australia/Sydney", "2026-04-05", 2, "2026-04-04T15:30:00.000Z", false),
        ] {
            let day: u8 = date[8..].parse().unwrap();
            let usual = format!("0{hour}:30");
            let monthly = format!("30 {hour} {day} * *");
            let (daily, weekly) = (format!("30 {hour} * * *"), format!("30 {hour} * * 0"));
            let middle = instant::parse(run).unwrap();
            // All of these days are Sundays.
            for (pattern, days) in [(&daily, 1), (&weekly, 7), (&monthly, 31)] {
                let start = middle - 3 * days * DAY_MS;
                let times = RunTimes::read(&cron(pattern, Some(zone)), start).unwrap();
                let mut runs = Vec::new();
                let mut at = start;
                while let Some(next) =
                    times.after(at).filter(|next| *next <= middle + 2 * days * DAY_MS)
                {
                    runs.push(next);
                    at = next;
                }
                let of_day: Vec<_> =
                    runs.iter().filter(|run| (*run - middle).abs() < DAY_MS / 2).collect();
                assert_eq!(of_day, [&middle], "{pattern} in {zone} on {date}");
                let local = |ms: i64| {
                    let at = Timestamp::from_millisecond(ms).unwrap().in_tz(zone).unwrap();
                    at.strftime("%H:%M").to_string()
                };
                let changed = if is_gap { "03:00" } else { &usual };
                for run in &runs {
                    let expected = if *run == middle { changed } else { &usual };
                    assert_eq!(local(*run), expected, "{pattern} in {zone}");
                }
                assert!(runs.len() >= 4, "{pattern} in {zone}: {}", runs.len());
            }
        }
    }

    /// 23:00 on the Saturday before the last Sunday of March is always skipped in Greenland.
    #[test]
    fn the_search_for_the_next_time_ends() {
        let schedule = cron("0 23 24-30 3 +6", Some("America/Nuuk"));
        let error = RunTimes::read(&schedule, 1_795_169_856_789).unwrap_err();
        assert_eq!(error.field.as_deref(), Some("schedule.cron"));
        assert_eq!(bounded("0 23 24-30 3 +6", 2_026), "0 0 23 24-30 3 +6 2026-2066");
        let leap = cron("0 8 29 2 +1", None);
        assert!(RunTimes::read(&leap, 1_795_169_856_789).is_ok(), "29 February on a Monday: 2044");
    }

    #[test]
    fn what_never_comes_is_refused() {
        for (schedule, field) in [
            (cron("61 * * * *", None), "schedule.cron"),
            (cron("0 8 30 2 *", None), "schedule.cron"),
            (cron("* * * *", None), "schedule.cron"),
            (cron("0 0 0 * * *", None), "schedule.cron"),
            (cron("@daily", None), "schedule.cron"),
            (cron("", None), "schedule.cron"),
            (cron("0 8 * * 1", Some("Mars/X")), "schedule.timezone"),
            (Schedule::Word("sometimes".into()), "schedule"),
        ] {
            let error = RunTimes::read(&schedule, 1_795_169_856_789).unwrap_err();
            assert_eq!(error.field.as_deref(), Some(field), "{schedule:?}");
        }
    }
}
