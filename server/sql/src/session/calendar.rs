//! Hours, weekdays and weeks of instants, by arithmetic; and rounding to a zero without a sign.
//!
//! The library makes a date of every instant to take its hour. Instants here are milliseconds in UTC, where hours,
//! days and weeks are of one length; all else is left to the library:
//!
//! ```text
//! timestamp = 2026-11-20T10:17:36.789Z, a Friday, in milliseconds 1795169856789
//! date_part('hour', timestamp)        10     ms mod day / hour
//! date_part('minute', timestamp)      17     ms mod hour / minute
//! date_part('dow', timestamp)         5      days since a Sunday, mod 7
//! date_part('isodow', timestamp)      5      days since a Monday, mod 7, plus 1
//! date_trunc('week', timestamp)       2026-11-16T00:00:00.000Z, the Monday
//! date_part('month', timestamp)       the library's: months are of several lengths
//! ```
//!
//! What lies between two instants has days, hours of a day and so on, as in PostgreSQL, where the library answers with all of its hours, and cuts its
//! seconds:
//!
//! ```text
//! 2 days 5 hours 7 minutes 11.25 seconds, and the same before zero
//! day 2   hour 5   minute 7   second 11   millisecond 11250   microsecond 11250000   epoch 191231.25
//! day -2  hour -5  minute -7  second -11  …                                          epoch -191231.25
//! ```
//!
//! `round(-0.3)` is `-0.0` in the library, which joins, lists and partitions would tell apart from zero. Here it is `0.0`, and so are those of `trunc` and
//! `ceil`.

use std::{str::FromStr as _, sync::Arc};

use arrow::{
    array::{ArrayRef, AsArray as _},
    compute::{cast, kernels::cast_utils::IntervalUnit},
    datatypes::{
        DataType, FieldRef, Float64Type, Int32Type, Int64Type, TimeUnit, TimestampMillisecondType,
    },
};
use datafusion_common::{Result, ScalarValue};
use datafusion_expr::{
    ColumnarValue, Documentation, Expr, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF,
    ScalarUDFImpl, Signature,
    planner::{ExprPlanner, PlannerResult},
    preimage::PreimageResult,
    simplify::{ExprSimplifyResult, SimplifyContext},
    sort_properties::{ExprProperties, SortProperties},
};
use datafusion_functions::datetime::date_part;

const MINUTE_MS: i64 = 60_000;
const HOUR_MS: i64 = 60 * MINUTE_MS;
const DAY_MS: i64 = 24 * HOUR_MS;
const WEEK_MS: i64 = 7 * DAY_MS;
/// The first Monday after the start of 1970, which was a Thursday.
/// 1970-01-05T00:00:00Z. Weeks are counted from it, before 1970 too: the quotient is rounded down.
const MONDAY_MS: i64 = 4 * DAY_MS;
/// 1970-01-04T00:00:00Z, from which days of the week are counted where Sunday is 0.
const SUNDAY_MS: i64 = 3 * DAY_MS;

/// A function of the library with its quick cases before it.
/// Of other names it comes back as it is.
pub fn quick(function: Arc<ScalarUDF>) -> Arc<ScalarUDF> {
    match function.name() {
        "date_part" | "date_trunc" | "round" | "trunc" | "ceil" => {
            Arc::new(ScalarUDF::new_from_impl(Quick(function)))
        }
        _ => function,
    }
}

/// `EXTRACT(hour FROM t)` is `date_part('hour', t)`, with its quick cases.
/// The library's own planner of this syntax, which is not in use, would call the function without them.
#[derive(Debug)]
pub struct Extract;

impl ExprPlanner for Extract {
    fn plan_extract(&self, args: Vec<Expr>) -> Result<PlannerResult<Vec<Expr>>> {
        Ok(PlannerResult::Planned(quick(date_part()).call(args)))
    }
}

/// A function of the library that is asked only where [`answer`](Self::answer) has none. All else, such as its name, its types and what it tells the
/// optimizer about itself, is the library's: a rule that knows `date_trunc` knows this one.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Quick(Arc<ScalarUDF>);

impl Quick {
    /// The answer, if this is a quick case.
    ///
    /// Quick is a part that is a constant, of a column of instants in milliseconds without a zone; or of a duration, column or constant. Names of parts are
    /// compared in any case. Nulls stay null: the arithmetic runs over what stands in their slots, too, and the mask of nulls is taken over.
    fn answer(&self, args: &[ColumnarValue]) -> Option<ArrayRef> {
        let [ColumnarValue::Scalar(part), times] = args else { return None };
        if matches!(times.data_type(), DataType::Duration(_)) && self.0.name() == "date_part" {
            let part = part.try_as_str().flatten()?.to_lowercase();
            return part_of_duration(&part, times);
        }
        let ColumnarValue::Array(times) = times else { return None };
        if *times.data_type() != DataType::Timestamp(TimeUnit::Millisecond, None) {
            return None;
        }
        let times = times.as_primitive::<TimestampMillisecondType>();
        let part = part.try_as_str().flatten()?.to_lowercase();
        if self.0.name() == "date_trunc" {
            return (part == "week").then(|| {
                let week = |ms: i64| (ms - MONDAY_MS).div_euclid(WEEK_MS) * WEEK_MS + MONDAY_MS;
                Arc::new(times.unary::<_, TimestampMillisecondType>(week)) as ArrayRef
            });
        }
        // The part within a larger unit: `of` is the larger one, `unit` the one that is counted, `start` where they begin, `first` the first number.
        let within = |of: i64, unit: i64, start: i64, first: i32| -> ArrayRef {
            let number = move |ms: i64| ((ms - start).rem_euclid(of) / unit) as i32 + first;
            Arc::new(times.unary::<_, arrow::datatypes::Int32Type>(number))
        };
        Some(match part.as_str() {
            "minute" => within(HOUR_MS, MINUTE_MS, 0, 0),
            "hour" => within(DAY_MS, HOUR_MS, 0, 0),
            "dow" => within(WEEK_MS, DAY_MS, SUNDAY_MS, 0),
            "isodow" => within(WEEK_MS, DAY_MS, MONDAY_MS, 1),
            _ => return None,
        })
    }
}

/// Days, hours of a day, minutes of an hour and so on of what lies between two instants, towards zero; or all of it in seconds.
///
/// Nothing for parts that are not of one length, or are none: the library says which of them it has. A count that exceeds 32 bits is the largest
/// such number: the type is that of the library.
fn part_of_duration(part: &str, duration: &ColumnarValue) -> Option<ArrayRef> {
    let DataType::Duration(unit) = duration.data_type() else { return None };
    let second: i64 = match unit {
        TimeUnit::Second => 1,
        TimeUnit::Millisecond => 1_000,
        TimeUnit::Microsecond => 1_000_000,
        TimeUnit::Nanosecond => 1_000_000_000,
    };
    let counts = match duration {
        ColumnarValue::Array(array) => Arc::clone(array),
        ColumnarValue::Scalar(scalar) => scalar.to_array().ok()?,
    };
    // How many units of the duration's own type there are: of milliseconds, 191,231,250 for the example above.
    let counts = cast(&counts, &DataType::Int64).ok()?;
    let counts = counts.as_primitive::<Int64Type>();
    if part == "epoch" {
        let seconds = |count: i64| count as f64 / second as f64;
        return Some(Arc::new(counts.unary::<_, Float64Type>(seconds)));
    }
    // What is left of whole ones of the next larger unit, and the unit itself; or how many there are in one of the duration.
    let (of, unit, factor) = match IntervalUnit::from_str(part.trim_matches(['\'', '"'])).ok()? {
        IntervalUnit::Day => (i64::MAX, 86_400 * second, 1),
        IntervalUnit::Hour => (86_400 * second, 3_600 * second, 1),
        IntervalUnit::Minute => (3_600 * second, 60 * second, 1),
        IntervalUnit::Second => (60 * second, second, 1),
        IntervalUnit::Millisecond => {
            (60 * second, (second / 1_000).max(1), (1_000 / second).max(1))
        }
        IntervalUnit::Microsecond => {
            (60 * second, (second / 1_000_000).max(1), (1_000_000 / second).max(1))
        }
        _ => return None,
    };
    let number = |count: i64| i32::try_from(count % of / unit * factor).unwrap_or(i32::MAX);
    Some(Arc::new(counts.unary::<_, Int32Type>(number)))
}

/// The same numbers, of which no zero has a sign.
///
/// `-0.0 + 0.0` is `0.0`, and any other number stays itself. A column without such a zero is not copied.
fn without_sign_of_zero(value: ColumnarValue) -> ColumnarValue {
    match value {
        ColumnarValue::Array(array) if *array.data_type() == DataType::Float64 => {
            let numbers = array.as_primitive::<Float64Type>();
            let is_signed = |number: &f64| *number == 0.0 && number.is_sign_negative();
            match numbers.values().iter().any(is_signed) {
                true => {
                    let plain = numbers.unary::<_, Float64Type>(|number| number + 0.0);
                    ColumnarValue::Array(Arc::new(plain))
                }
                false => ColumnarValue::Array(array),
            }
        }
        ColumnarValue::Scalar(ScalarValue::Float64(Some(number))) => {
            ColumnarValue::Scalar(ScalarValue::Float64(Some(number + 0.0)))
        }
        other => other,
    }
}

impl ScalarUDFImpl for Quick {
    fn name(&self) -> &str {
        self.0.name()
    }

    fn aliases(&self) -> &[String] {
        self.0.aliases()
    }

    fn signature(&self) -> &Signature {
        self.0.signature()
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        self.0.return_type(types)
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs<'_>) -> Result<FieldRef> {
        self.0.return_field_from_args(args)
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        match self.answer(&args.args) {
            // Of a constant.
            Some(array) if matches!(args.args.as_slice(), [_, ColumnarValue::Scalar(_)]) => {
                ScalarValue::try_from_array(&array, 0).map(ColumnarValue::Scalar)
            }
            Some(array) => Ok(ColumnarValue::Array(array)),
            None => self.0.inner().invoke_with_args(args).map(without_sign_of_zero),
        }
    }

    fn simplify(&self, args: Vec<Expr>, info: &SimplifyContext) -> Result<ExprSimplifyResult> {
        self.0.simplify(args, info)
    }

    fn preimage(
        &self,
        args: &[Expr],
        literal: &Expr,
        info: &SimplifyContext,
    ) -> Result<PreimageResult> {
        self.0.preimage(args, literal, info)
    }

    fn output_ordering(&self, inputs: &[ExprProperties]) -> Result<SortProperties> {
        self.0.output_ordering(inputs)
    }

    fn coerce_types(&self, types: &[DataType]) -> Result<Vec<DataType>> {
        self.0.coerce_types(types)
    }

    fn documentation(&self) -> Option<&Documentation> {
        self.0.documentation()
    }
}

#[cfg(test)]
mod tests {
    use arrow::array::{Int32Array, TimestampMillisecondArray};
    use datafusion_common::config::ConfigOptions;

    use super::*;

    #[test]
    fn durations_have_hours_of_a_day_and_seconds_with_their_fraction() {
        let ms = 2 * DAY_MS + 5 * HOUR_MS + 7 * MINUTE_MS + 11_250;
        let part = |part: &str, kind: DataType, count: i64| {
            let durations = arrow::array::Int64Array::from(vec![count]);
            let durations = ColumnarValue::Array(cast(&durations, &kind).unwrap());
            let part = part_of_duration(part, &durations).unwrap();
            let number = cast(&part, &DataType::Float64).unwrap();
            number.as_primitive::<Float64Type>().value(0)
        };
        for (name, expected) in [
            ("epoch", 191_231.25),
            ("day", 2.0),
            ("hour", 5.0),
            ("minute", 7.0),
            ("second", 11.0),
            ("millisecond", 11_250.0),
            ("microseconds", 11_250_000.0),
            ("hr", 5.0),
            ("'min'", 7.0),
        ] {
            for (unit, factor) in [(TimeUnit::Millisecond, 1), (TimeUnit::Nanosecond, 1_000_000)] {
                let kind = DataType::Duration(unit);
                assert_eq!(part(name, kind.clone(), ms * factor), expected, "{name} {unit:?}");
                assert_eq!(part(name, kind, -ms * factor), -expected, "{name} {unit:?}");
            }
        }
    }

    #[test]
    fn quick_answers_are_those_of_the_library() {
        let times: Vec<Option<i64>> = (-40..4_000)
            .map(|n| (n % 13 != 0).then_some(n * 7_919_000_003 / 13))
            .chain([Some(0), Some(-1), Some(MONDAY_MS), Some(SUNDAY_MS - 1)])
            .collect();
        let times: ArrayRef = Arc::new(TimestampMillisecondArray::from(times));
        let all = datafusion_functions::all_default_functions();
        for (name, parts) in [
            ("date_part", &["minute", "HOUR", "dow", "isodow", "day", "month"][..]),
            ("date_trunc", &["week", "Week", "day", "month"]),
        ] {
            let function = all.iter().find(|function| function.name() == name).unwrap();
            for part in parts {
                let args = |times: &ArrayRef| {
                    let part = ScalarValue::from(*part);
                    vec![ColumnarValue::Scalar(part), ColumnarValue::Array(Arc::clone(times))]
                };
                let answer = |function: &ScalarUDF| {
                    let field = |name: &str, kind: &DataType| {
                        Arc::new(arrow::datatypes::Field::new(name, kind.clone(), true))
                    };
                    let (text, time) =
                        (field("part", &DataType::Utf8), field("time", times.data_type()));
                    let args = ScalarFunctionArgs {
                        args: args(&times),
                        arg_fields: vec![text, Arc::clone(&time)],
                        number_rows: times.len(),
                        return_field: time,
                        config_options: Arc::new(ConfigOptions::default()),
                    };
                    let answer = function.inner().invoke_with_args(args).unwrap();
                    answer.into_array(times.len()).unwrap()
                };
                let (plain, quick) = (answer(function), answer(&quick(Arc::clone(function))));
                assert_eq!(&plain, &quick, "{name} {part}");
            }
        }
        let is_quick = |part: &str| {
            let function = all.iter().find(|function| function.name() == "date_part").unwrap();
            let part = ColumnarValue::Scalar(ScalarValue::from(part));
            let args = [part, ColumnarValue::Array(Arc::clone(&times))];
            Quick(Arc::clone(function))
                .answer(&args)
                .is_some_and(|answer| answer.as_any().is::<Int32Array>())
        };
        assert!(is_quick("dow") && !is_quick("month"));
    }
}
