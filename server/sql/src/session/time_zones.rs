//! `AT TIME ZONE`, as PostgreSQL has it: a clock's time becomes an instant, and an instant what a clock shows.
//!
//! ```text
//! timestamp AT TIME ZONE 'UTC' AT TIME ZONE 'Europe/Berlin'      2026-11-12 23:30 in UTC is 2026-11-13 00:30 on the clock in Berlin
//! TIMESTAMP '2026-11-13 00:00:00' AT TIME ZONE 'Europe/Berlin'   when this day began there: 2026-11-12 23:00 in UTC
//! ```
//!
//! The gate writes both as calls of `timezone(zone, time)`, and types say which of them is meant. Where clocks are set back, an hour comes
//! twice: its second time, standard time, is taken. Where they are set forward, an hour is missing: it is read as if
//! clocks had not been set yet.
//!
//! ```text
//! Europe/Berlin       instant in UTC         what the clock shows
//! in spring           2026-03-29 00:59:59    2026-03-29 01:59:59
//!                     2026-03-29 01:00:00    2026-03-29 03:00:00
//! in autumn           2026-10-25 00:59:59    2026-10-25 02:59:59
//!                     2026-10-25 01:00:00    2026-10-25 02:00:00
//!
//!                     what a clock shows     which instant that is
//! missing             2026-03-29 02:30:00    2026-03-29 01:30:00 in UTC: as if it were 02:30 by standard time
//! twice               2026-10-25 02:30:00    2026-10-25 01:30:00 in UTC, and not 00:30
//! ```
//!
//! The name of a zone is a constant. Others are refused: `AT TIME ZONE takes the name of a zone, such as 'Europe/Berlin'` for a column, `there is no time zone
//! 'Berlin'; names are those of the IANA, such as 'Europe/Berlin'` for a name that there is not.

use std::sync::Arc;

use arrow::{
    array::{Array as _, ArrayRef, AsArray as _, PrimitiveArray, timezone::Tz},
    datatypes::{
        ArrowTimestampType, DataType, Field, FieldRef, TimeUnit, TimestampMicrosecondType,
        TimestampMillisecondType, TimestampNanosecondType, TimestampSecondType,
    },
    temporal_conversions::as_datetime,
};
use chrono::{LocalResult, NaiveDateTime, Offset as _, TimeDelta, TimeZone as _};
use datafusion_common::{Result, ScalarValue, exec_err, internal_err, plan_err};
use datafusion_expr::{
    ColumnarValue, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature,
    Volatility,
};

/// What the zone of instants is called.
/// The type of an instant is a timestamp with this zone, TIMESTAMP WITH TIME ZONE in answers; of a time on a clock it is one without.
const UTC: &str = "+00:00";
/// Offsets change at multiples of it, since clocks follow zones at all; where they do not, each time is looked up.
///
/// 15 minutes: offsets are looked up at both ends of such a step, and where they are the same they hold for all times between. Of rows in about the
/// order of their times only the first one in a step takes look-ups.
const STEP_MINUTES: i64 = 15;
/// Steps that a time which clocks skip is at most behind one that they show.
/// A day: Samoa had no 2011-12-30, when it moved across the date line.
const SKIPPED_STEPS_MAX: i32 = 24 * 4;

/// `timezone(zone, time)`.
///
/// ```text
/// timezone('Europe/Berlin', time without a zone)     the instant at which clocks in Berlin show it
/// timezone('Europe/Berlin', instant)                 what clocks in Berlin show then
/// ```
pub fn timezone() -> Arc<ScalarUDF> {
    let signature = Signature::user_defined(Volatility::Immutable);
    Arc::new(ScalarUDF::new_from_impl(TimeZone { signature }))
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct TimeZone {
    signature: Signature,
}

impl ScalarUDFImpl for TimeZone {
    fn name(&self) -> &str {
        "timezone"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    /// A time keeps its type, by which the direction is known; dates and strings become instants.
    ///
    /// Errors: another number of arguments; what is no time (`AT TIME ZONE takes a time, not Int64`).
    fn coerce_types(&self, types: &[DataType]) -> Result<Vec<DataType>> {
        let [_, time] = types else {
            return plan_err!("AT TIME ZONE takes a time and the name of a zone");
        };
        let time = match time {
            DataType::Timestamp(..) => time.clone(),
            // As PostgreSQL does: it takes them for instants.
            DataType::Date32 | DataType::Utf8 | DataType::Utf8View | DataType::Null => {
                DataType::Timestamp(TimeUnit::Millisecond, Some(UTC.into()))
            }
            other => return plan_err!("AT TIME ZONE takes a time, not {other}"),
        };
        Ok(vec![DataType::Utf8, time])
    }

    /// The direction: without a zone an instant comes back, with one a time on a clock. The unit stays.
    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        match types {
            [_, DataType::Timestamp(unit, None)] => {
                Ok(DataType::Timestamp(*unit, Some(UTC.into())))
            }
            [_, DataType::Timestamp(unit, Some(_))] => Ok(DataType::Timestamp(*unit, None)),
            _ => internal_err!("AT TIME ZONE of no time"),
        }
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs<'_>) -> Result<FieldRef> {
        let types: Vec<DataType> =
            args.arg_fields.iter().map(|field| field.data_type().clone()).collect();
        // A zone that there is not is an error of the statement, whether or not there are rows.
        let zone = args.scalar_arguments.first().copied().flatten();
        zone_of(zone)?;
        Ok(Arc::new(Field::new(self.name(), self.return_type(&types)?, true)))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let [ColumnarValue::Scalar(zone), times] = &*args.args else {
            return plan_err!("AT TIME ZONE takes the name of a zone");
        };
        let is_utc =
            zone.try_as_str().flatten().is_some_and(|name| name.eq_ignore_ascii_case("utc"));
        let zone = Some(zone_of(Some(zone))?).filter(|_| !is_utc);
        let converted = match times {
            ColumnarValue::Array(times) => ColumnarValue::Array(convert(times, zone)?),
            ColumnarValue::Scalar(time) => {
                let time = convert(&time.to_array()?, zone)?;
                ColumnarValue::Scalar(ScalarValue::try_from_array(&time, 0)?)
            }
        };
        Ok(converted)
    }
}

/// The zone that a constant names.
///
/// `Europe/Berlin`, or a fixed offset such as `+02:00`.
///
/// Errors: no constant; a name that the list of zones does not have.
fn zone_of(name: Option<&ScalarValue>) -> Result<Tz> {
    let Some(name) = name.and_then(|name| name.try_as_str().flatten()) else {
        return plan_err!("AT TIME ZONE takes the name of a zone, such as 'Europe/Berlin'");
    };
    match name.parse() {
        Ok(zone) => Ok(zone),
        // PostgreSQL takes this one in any case.
        Err(_) if name.eq_ignore_ascii_case("utc") => Ok(UTC.parse()?),
        Err(_) => {
            plan_err!(
                "there is no time zone '{name}'; names are those of the IANA, such as 'Europe/Berlin'"
            )
        }
    }
}

/// Converts a column of times of any unit, in the direction that its type says; without a zone, in UTC. Nulls stay null.
///
/// Errors: times outside of the years that the calendar has.
fn convert(times: &ArrayRef, zone: Option<Tz>) -> Result<ArrayRef> {
    match times.data_type() {
        DataType::Timestamp(TimeUnit::Second, _) => of_unit::<TimestampSecondType>(times, zone),
        DataType::Timestamp(TimeUnit::Millisecond, _) => {
            of_unit::<TimestampMillisecondType>(times, zone)
        }
        DataType::Timestamp(TimeUnit::Microsecond, _) => {
            of_unit::<TimestampMicrosecondType>(times, zone)
        }
        DataType::Timestamp(TimeUnit::Nanosecond, _) => {
            of_unit::<TimestampNanosecondType>(times, zone)
        }
        _ => internal_err!("AT TIME ZONE of no time"),
    }
}

/// The same for one unit. An offset is a number of seconds, which is added to each time in its unit.
fn of_unit<T: ArrowTimestampType>(times: &ArrayRef, zone: Option<Tz>) -> Result<ArrayRef> {
    let is_instant = matches!(times.data_type(), DataType::Timestamp(_, Some(_)));
    let times = times.as_primitive::<T>();
    let shown_in = (!is_instant).then_some(UTC);
    // Clocks in UTC show the instant itself.
    let Some(zone) = zone else { return Ok(Arc::new(times.clone().with_timezone_opt(shown_in))) };
    let second = match T::UNIT {
        TimeUnit::Second => 1,
        TimeUnit::Millisecond => 1_000,
        TimeUnit::Microsecond => 1_000_000,
        TimeUnit::Nanosecond => 1_000_000_000,
    };
    let step = STEP_MINUTES * 60 * second;
    // What is added to a time to convert it.
    let looked_up = |time: i64| -> Option<i64> {
        let time = as_datetime::<T>(time)?;
        let seconds = match is_instant {
            true => zone.offset_from_utc_datetime(&time).fix().local_minus_utc(),
            false => -offset_of_clock(zone, time)?,
        };
        Some(i64::from(seconds) * second)
    };
    // The step that was looked at last, and what is added in all of it.
    let mut last: Option<(i64, Option<i64>)> = None;
    let mut added = |time: i64| -> Option<i64> {
        let index = time.div_euclid(step);
        // `None` within `Some`: the offset changes within this step, so each of its times is looked up.
        let in_step = match last {
            Some((known, added)) if known == index => added,
            _ => {
                let start = index.checked_mul(step)?;
                let end = start.checked_add(step - 1);
                let (first, second) = (looked_up(start), end.and_then(looked_up));
                let added = first.filter(|_| first == second);
                last = Some((index, added));
                added
            }
        };
        in_step.or_else(|| looked_up(time))
    };
    let mut values = Vec::with_capacity(times.len());
    for (row, &time) in times.values().iter().enumerate() {
        if times.is_null(row) {
            // Whatever stands in the slot of a null could be outside of the years.
            values.push(0);
            continue;
        }
        let Some(converted) = added(time).and_then(|added| time.checked_add(added)) else {
            return exec_err!("AT TIME ZONE takes times between the years -262143 and 262142");
        };
        values.push(converted);
    }
    let nulls = times.nulls().cloned();
    let converted = PrimitiveArray::<T>::try_new(values.into(), nulls)?;
    Ok(Arc::new(converted.with_timezone_opt(shown_in)))
}

/// How many seconds a clock is ahead of UTC where it shows this time.
///
/// 3,600 in Berlin in winter. A time that is shown twice has two offsets, of which the later one is taken. For one that is skipped it is the offset of the
/// last time before it that clocks show, looked for in steps of a quarter of an hour.
fn offset_of_clock(zone: Tz, time: NaiveDateTime) -> Option<i32> {
    for steps in 0..=SKIPPED_STEPS_MAX {
        let before = time.checked_sub_signed(TimeDelta::minutes(STEP_MINUTES) * steps)?;
        match zone.offset_from_local_datetime(&before) {
            LocalResult::Single(offset) | LocalResult::Ambiguous(_, offset) => {
                return Some(offset.fix().local_minus_utc());
            }
            LocalResult::None => {}
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use arrow::array::TimestampMillisecondArray;

    use super::*;

    fn ms(text: &str) -> i64 {
        NaiveDateTime::parse_from_str(text, "%Y-%m-%d %H:%M:%S")
            .unwrap()
            .and_utc()
            .timestamp_millis()
    }

    fn converted(times: &[&str], zone: &str, is_instant: bool) -> Vec<i64> {
        let times = TimestampMillisecondArray::from_iter_values(times.iter().map(|text| ms(text)));
        let times: ArrayRef = Arc::new(times.with_timezone_opt(is_instant.then_some(UTC)));
        let converted = convert(&times, Some(zone.parse().unwrap())).unwrap();
        assert_eq!(matches!(converted.data_type(), DataType::Timestamp(_, Some(_))), !is_instant);
        converted.as_primitive::<TimestampMillisecondType>().values().to_vec()
    }

    #[test]
    fn clocks_that_are_set_show_hours_twice_or_not_at_all() {
        let all = |times: &[&str]| times.iter().map(|text| ms(text)).collect::<Vec<_>>();
        // Instants: every one is shown.
        assert_eq!(
            converted(
                &[
                    "2026-03-29 00:59:59",
                    "2026-03-29 01:00:00",
                    "2026-10-25 00:59:59",
                    "2026-10-25 01:00:00"
                ],
                "Europe/Berlin",
                true
            ),
            all(&[
                "2026-03-29 01:59:59",
                "2026-03-29 03:00:00",
                "2026-10-25 02:59:59",
                "2026-10-25 02:00:00"
            ])
        );
        // Times on a clock, as PostgreSQL reads them.
        assert_eq!(
            converted(
                &[
                    "2026-03-29 01:59:59",
                    "2026-03-29 02:30:00",
                    "2026-03-29 03:00:00",
                    "2026-10-25 01:59:59",
                    "2026-10-25 02:30:00",
                    "2026-10-25 03:00:00"
                ],
                "Europe/Berlin",
                false
            ),
            all(&[
                "2026-03-29 00:59:59",
                "2026-03-29 01:30:00",
                "2026-03-29 01:00:00",
                "2026-10-24 23:59:59",
                "2026-10-25 01:30:00",
                "2026-10-25 02:00:00"
            ])
        );
        // Half an hour, and seconds of the time before zones.
        assert_eq!(
            converted(&["2026-10-03 15:29:59", "2026-10-03 15:30:00"], "Australia/Lord_Howe", true),
            all(&["2026-10-04 01:59:59", "2026-10-04 02:30:00"])
        );
        assert_eq!(
            converted(&["1880-01-01 00:00:00"], "Europe/Berlin", true),
            all(&["1880-01-01 00:53:28"])
        );
    }

    #[test]
    fn the_last_minutes_of_a_day_that_a_zone_skips_have_an_instant() {
        assert_eq!(
            converted(&["2011-12-30 00:10:00", "2011-12-30 23:50:00"], "Pacific/Apia", false),
            [ms("2011-12-30 10:10:00"), ms("2011-12-31 09:50:00")]
        );
        let last: ArrayRef = Arc::new(TimestampMillisecondArray::from(vec![i64::MAX]));
        assert!(convert(&last, Some(UTC.parse().unwrap())).is_err());
    }

    #[test]
    fn a_time_on_a_clock_is_what_it_shows_at_the_instant_unless_it_is_skipped() {
        for zone in [
            "Europe/Berlin",
            "America/New_York",
            "Asia/Kathmandu",
            "Australia/Lord_Howe",
            "UTC",
            "Pacific/Apia",
        ] {
            let zone: Tz = zone.parse().unwrap();
            let times = (0..40_000).map(|n| ms("2009-12-01 00:00:00") + n * 6_599_000);
            let times: ArrayRef = Arc::new(TimestampMillisecondArray::from_iter_values(times));
            let instants = convert(&times, Some(zone)).unwrap();
            let again = convert(&instants, Some(zone)).unwrap();
            let (times, again) = (
                times.as_primitive::<TimestampMillisecondType>().values(),
                again.as_primitive::<TimestampMillisecondType>().values(),
            );
            let mut skipped = 0;
            for (time, again) in times.iter().zip(again) {
                let clock = as_datetime::<TimestampMillisecondType>(*time).unwrap();
                match zone.offset_from_local_datetime(&clock) {
                    LocalResult::None => skipped += 1,
                    _ => assert_eq!(time, again, "{clock}"),
                }
            }
            assert!(skipped < 30, "{skipped}");
        }
    }
}
