//! Expressions of a row's time: which times have the same value, so that rows between them are read as one.
//!
//! ```text
//! date_trunc('day', timestamp)                           another value each day
//! timestamp >= TIMESTAMP '2026-11-06 00:00:00'           another value from then on
//! floor(extract(epoch FROM timestamp) / 86400)           another value each day
//! date_trunc('day', timestamp AT TIME ZONE 'UTC' AT TIME ZONE 'Europe/Berlin')      another value at 22:00 or 23:00
//! date_bin(INTERVAL '15 minutes', timestamp)             another value each quarter of an hour
//! extract(minute FROM timestamp)                         another value each minute: nothing is said of it
//! ```
//!
//! What rises with time, or falls, has one value from a time to another if it has the same at both. So such an expression is
//! computed at the first and the last millisecond of each week, day, hour, or of 15, 5 or single minutes of a table, and nothing need be known of it. What a clock of a
//! zone shows rises within each hour in which it is not set.
//!
//! `floor(extract(epoch FROM timestamp) / 86400)` over the three weeks from 2026-10-26 on:
//!
//! ```text
//! by the week    Mon 00:00:00.000 is 20752, Sun 23:59:59.999 is 20758      not the same: too coarse
//! by the day     20752 at both ends of 10-26, 20753 at both of 10-27, …    the same: it changes 20 times in 21 days, so the grain is Day
//! ```
//!
//! Where it changes at no more than one in four of the steps, the boundaries are named instead: a month is one bucket, not thirty.

use std::{cell::OnceCell, sync::Arc};

use arrow::{
    array::{Array as _, ArrayRef, AsArray as _, BooleanArray},
    compute::{
        cast,
        kernels::cmp::{distinct, not_distinct},
    },
    datatypes::{DataType, Int64Type, TimeUnit},
};
use datafusion_common::{Result, ScalarValue};
use datafusion_expr::{BinaryExpr, Cast, Expr, Operator, expr::ScalarFunction};
use inlay_engine::rows::{Grain, Scan, TimeBuckets};

use super::{aggregate_spec::bounds, time_values::values};
use crate::tables::{Kind, KnownSteps, Steps, Table, kept_cast, time_boundaries};

/// Steps of a table at whose ends an expression is computed, at most: hours of four years, or minutes of four weeks.
const STEPS_MAX: i64 = 40_000;
/// Widths of buckets, the widest first.
const GRAINS: [Grain; 6] =
    [Grain::Week, Grain::Day, Grain::Hour, Grain::QuarterHour, Grain::FiveMinutes, Grain::Minute];
/// Nanoseconds of a millisecond.
const NANOSECONDS: i64 = 1_000_000;
/// Boundaries are named where there is at most one for so many steps; else the steps are.
const FEW: usize = 4;
/// Integers that are added, at most, so that nothing wraps around.
const INTEGER_MAX: u64 = 1 << 31;
/// Parts of a clock's time that hours have in common.
const CLOCK_PARTS: [&str; 10] =
    ["hour", "day", "dow", "isodow", "doy", "week", "month", "quarter", "year", "isoyear"];
/// Functions of one argument that rise with it.
const RISING: [&str; 9] = [
    "nearest",
    "floor",
    "ceil",
    "round",
    "trunc",
    "to_timestamp",
    "to_timestamp_seconds",
    "to_timestamp_millis",
    "from_unixtime",
];

/// The times of a table's rows.
pub struct Times {
    /// The snapshot, for the first and the last time of its rows.
    scan: Arc<Scan>,
    /// The first and the last.
    span: OnceCell<(i64, i64)>,
    /// Expressions that were computed before, in another pass or rule.
    known: KnownSteps,
}

impl Times {
    /// Of a table's rows.
    pub fn of(table: &Table) -> Self {
        let (scan, known) = (table.scan_of_rows(), table.known_steps());
        Self { scan, span: OnceCell::new(), known }
    }

    /// Buckets of time in each of which an expression has one value, if that is known. It is computed for a bucket's instant. Nothing for
    /// `extract(minute FROM timestamp)`, the time itself, and what names other columns.
    ///
    /// Errors: none that is expected; what the library says.
    pub fn buckets(&self, expr: &Expr) -> Result<Option<TimeBuckets>> {
        if let Some(grain) = truncated(expr).or_else(|| self.binned(expr)) {
            return Ok(Some(grain.into()));
        }
        if let Some(boundaries) = time_boundaries(expr) {
            let mut buckets = TimeBuckets::default();
            buckets.merge(&TimeBuckets { grain: None, boundaries });
            return Ok(Some(buckets));
        }
        let steps = self.steps(expr)?.map(|steps| steps.buckets);
        Ok(steps.or_else(|| grain_of(expr).map(TimeBuckets::from)))
    }

    /// Buckets of time in each of which an expression has one value, no two of which have the same: by these a group is one bucket. Nothing
    /// for `extract(hour FROM timestamp)`, which comes again each day.
    ///
    /// Errors: none that is expected; what the library says.
    pub fn own_buckets(&self, expr: &Expr) -> Result<Option<TimeBuckets>> {
        if let Some(grain) = truncated(expr).or_else(|| self.binned(expr)) {
            return Ok(Some(grain.into()));
        }
        let steps = self.steps(expr)?.filter(|steps| steps.is_injective);
        Ok(steps.map(|steps| steps.buckets))
    }

    /// The grain whose buckets are those of `date_bin`, if one is as wide as its stride and begins at its origin.
    fn binned(&self, expr: &Expr) -> Option<Grain> {
        let Expr::ScalarFunction(ScalarFunction { func, args }) = expr else { return None };
        let (stride, time, origin_ms) = match &**args {
            [Expr::Literal(stride, _), time] => (stride, time, 0),
            [Expr::Literal(stride, _), time, Expr::Literal(origin, _)] => {
                (stride, time, time_ms(origin)?)
            }
            _ => return None,
        };
        // It is null where nanoseconds since 1970 do not fit into 64 bits.
        let (first, last) = self.span();
        let fits = |ms: i64| ms.checked_mul(NANOSECONDS).is_some();
        let stride_ms = stride_ms(stride)?;
        let all_fit = fits(first.saturating_sub(stride_ms)) && fits(last);
        if func.name() != "date_bin" || !is_time(time) || !all_fit {
            return None;
        }
        let mut grains = GRAINS.into_iter();
        grains.find(|grain| grain.step_ms() == stride_ms && grain.start(origin_ms) == origin_ms)
    }

    /// The first and the last time of the table's rows.
    pub fn span(&self) -> (i64, i64) {
        let sources = self.scan.sources().iter();
        let span =
            || sources.map(bounds).reduce(|one, other| (one.0.min(other.0), one.1.max(other.1)));
        *self.span.get_or_init(|| span().unwrap_or_default())
    }

    /// Buckets of a monotone expression, if it has one value in each week, day, hour, or in each 15, 5 or single minutes.
    fn steps(&self, expr: &Expr) -> Result<Option<Steps>> {
        let clock = clock_of(expr);
        if is_time(expr) || clock.is_none() && !is_monotone(expr) {
            return Ok(None);
        }
        if let Some(known) = self.known.get(expr) {
            return Ok(known);
        }
        let mut found = None;
        let grains: &[Grain] = match clock {
            Some(_) => &[Grain::Hour],
            None => &GRAINS,
        };
        for grain in grains {
            found = self.steps_of(expr, clock, *grain)?;
            if found.is_some() {
                break;
            }
        }
        self.known.insert(expr.clone(), found.clone());
        Ok(found)
    }

    /// Its values at the first and the last millisecond of each step are compared, and those of neighbours: what is monotone has no
    /// value again. Of what is computed from a clock, the clock must go through each step without being set.
    fn steps_of(&self, expr: &Expr, clock: Option<&Expr>, grain: Grain) -> Result<Option<Steps>> {
        let (first, last) = self.span();
        let (first, step) = (grain.start(first), grain.step_ms());
        let steps = (last - first) / step + 1;
        if steps > STEPS_MAX {
            return Ok(None);
        }
        let starts: Vec<i64> = (0..steps).map(|at| first + at * step).collect();
        let ends: Vec<i64> = starts.iter().map(|start| start + step - 1).collect();
        if let Some(clock) = clock
            && !goes_on(clock, &starts, &ends)?
        {
            return Ok(None);
        }
        // An expression that is not the same in some step seldom is in the first one.
        let of_first = |times: &[i64]| times.first().copied().into_iter().collect();
        if constant_values(expr, of_first(&starts), of_first(&ends))?.is_none() {
            return Ok(None);
        }
        let Some(at_starts) = constant_values(expr, starts.clone(), ends)? else { return Ok(None) };
        let (before, after) =
            (at_starts.slice(0, starts.len() - 1), at_starts.slice(1, starts.len() - 1));
        let changes: BooleanArray = distinct(&before, &after)?;
        if changes.true_count() > starts.len() / FEW {
            let is_injective = clock.is_none() && changes.true_count() == changes.len();
            return Ok(Some(Steps { buckets: grain.into(), is_injective }));
        }
        let changed = starts.iter().skip(1).zip(changes.values().iter());
        let changed = changed.filter(|(_, is_other)| *is_other).map(|(start, _)| *start);
        // The instant of the first bucket is one of the table's, too.
        let boundaries = std::iter::once(first).chain(changed).collect();
        let buckets = TimeBuckets { grain: None, boundaries };
        // A clock that is set back shows an hour again.
        Ok(Some(Steps { buckets, is_injective: clock.is_none() }))
    }
}

/// The values of an expression at the starts of steps, if each is its value at the step's end, too. Nothing where it cannot be computed at
/// every time: that is left to those of rows.
fn constant_values(expr: &Expr, starts: Vec<i64>, ends: Vec<i64>) -> Result<Option<ArrayRef>> {
    let (Some(at_starts), Some(at_ends)) = (values(expr, starts)?, values(expr, ends)?) else {
        return Ok(None);
    };
    let Ok(is_same) = not_distinct(&at_starts, &at_ends) else { return Ok(None) };
    Ok((is_same.true_count() == at_starts.len()).then_some(at_starts))
}

/// What a clock of a zone shows, where an expression takes nothing else of the time, and only in whole hours or more:
/// `timezone('Europe/Berlin', timezone('UTC', timestamp))` of `date_trunc('day', …)` of it. Nothing of its minutes.
fn clock_of(expr: &Expr) -> Option<&Expr> {
    let Expr::ScalarFunction(ScalarFunction { func, args }) = expr else { return None };
    let [Expr::Literal(constant, _), inner] = &**args else { return None };
    match func.name() {
        // The instant of a day's beginning there.
        "timezone" => clock_of(inner),
        "date_part" | "date_trunc" if is_clock(inner) => {
            let part = constant.try_as_str().flatten()?.to_lowercase();
            CLOCK_PARTS.contains(&&*part).then_some(inner)
        }
        _ => None,
    }
}

/// Whether an expression is the time on a clock, or an instant made of one.
fn is_clock(expr: &Expr) -> bool {
    let Expr::ScalarFunction(ScalarFunction { func, args }) = expr else { return false };
    let [Expr::Literal(..), inner] = &**args else { return false };
    func.name() == "timezone" && (is_time(inner) || is_clock(inner))
}

/// Whether a clock is as far ahead at the end of each step as at its start: it is set once in a step, at most.
fn goes_on(clock: &Expr, starts: &[i64], ends: &[i64]) -> Result<bool> {
    let (Some(first), Some(last)) =
        (values(clock, starts.to_vec())?, values(clock, ends.to_vec())?)
    else {
        return Ok(false);
    };
    let (first, last) = (cast(&first, &DataType::Int64)?, cast(&last, &DataType::Int64)?);
    let (first, last) = (first.as_primitive::<Int64Type>(), last.as_primitive::<Int64Type>());
    let shown = first.values().iter().zip(last.values());
    let passed = starts.iter().zip(ends);
    Ok(shown.zip(passed).all(|((first, last), (start, end))| last - first == end - start))
}

/// Whether an expression of the time alone never falls while time rises, or never rises.
///
/// ```text
/// date_trunc('month', timestamp), CAST(timestamp AS date), timestamp < TIMESTAMP '2026-11-06', NOT that      yes
/// extract(year FROM timestamp), extract(epoch FROM timestamp) * 2.5, timestamp + INTERVAL '1 day'            yes
/// extract(month FROM timestamp), extract(epoch FROM timestamp) % 7, timestamp + INTERVAL '1 month'           no
/// timestamp AT TIME ZONE 'UTC' AT TIME ZONE 'Europe/Berlin'                                                  no: it is set back
/// ```
fn is_monotone(expr: &Expr) -> bool {
    match expr {
        _ if is_time(expr) => true,
        _ if let Some((inner, to)) = kept_cast(expr) => {
            // Clocks of a zone are set back.
            matches!(to, DataType::Timestamp(_, None)) && is_monotone(inner)
        }
        Expr::Alias(alias) => is_monotone(&alias.expr),
        Expr::Not(inner) => is_monotone(inner),
        Expr::Cast(Cast { expr, field }) => {
            let to = field.data_type();
            let is_ordered =
                to.is_numeric() || matches!(to, DataType::Date32 | DataType::Timestamp(_, None));
            is_ordered && is_monotone(expr)
        }
        Expr::BinaryExpr(BinaryExpr { left, op, right }) => match op {
            Operator::Plus | Operator::Minus => {
                is_monotone(left) && is_safe_operand(right)
                    || is_safe_operand(left) && is_monotone(right)
            }
            // A product of integers may wrap around.
            Operator::Multiply => {
                is_monotone(left) && is_double(right) || is_double(left) && is_monotone(right)
            }
            Operator::Divide => is_monotone(left) && is_safe_operand(right),
            Operator::Lt | Operator::LtEq | Operator::Gt | Operator::GtEq => {
                let is_literal = |expr: &Expr| matches!(expr, Expr::Literal(..));
                is_monotone(left) && is_literal(right) || is_literal(left) && is_monotone(right)
            }
            _ => false,
        },
        Expr::ScalarFunction(ScalarFunction { func, args }) => match (func.name(), &**args) {
            (name, [inner]) => RISING.contains(&name) && is_monotone(inner),
            ("date_trunc", [Expr::Literal(..), inner]) => is_monotone(inner),
            ("date_bin", [stride, inner]) | ("date_bin", [stride, inner, Expr::Literal(..)]) => {
                is_stride(stride) && is_monotone(inner)
            }
            ("date_part", [Expr::Literal(part, _), inner]) => {
                let part = part.try_as_str().flatten().map(str::to_lowercase);
                part.is_some_and(|part| ["epoch", "year", "isoyear"].contains(&&*part))
                    && is_monotone(inner)
            }
            _ => false,
        },
        _ => false,
    }
}

/// Whether it is a written finite double.
fn is_double(expr: &Expr) -> bool {
    matches!(expr, Expr::Literal(ScalarValue::Float64(Some(number)), _) if number.is_finite())
}

/// Whether it is a written interval that is not negative and has no months.
fn is_stride(expr: &Expr) -> bool {
    match expr {
        Expr::Literal(ScalarValue::IntervalMonthDayNano(Some(stride)), _) => {
            stride.months == 0 && stride.days >= 0 && stride.nanoseconds >= 0
        }
        Expr::Literal(ScalarValue::DurationMillisecond(Some(stride)), _) => *stride >= 0,
        _ => false,
    }
}

/// Whether it is a written number that makes no integer wrap around, or a written time or interval.
fn is_safe_operand(expr: &Expr) -> bool {
    let Expr::Literal(value, _) = expr else { return false };
    match value {
        ScalarValue::Float64(Some(number)) => number.is_finite(),
        ScalarValue::Int64(Some(number)) => number.unsigned_abs() <= INTEGER_MAX,
        // Days at the end of a month are the same day of a shorter one, but their hours are not.
        ScalarValue::IntervalMonthDayNano(Some(interval)) => interval.months == 0,
        ScalarValue::IntervalDayTime(Some(_))
        | ScalarValue::DurationMillisecond(Some(_))
        | ScalarValue::DurationMicrosecond(Some(_))
        | ScalarValue::DurationNanosecond(Some(_)) => true,
        ScalarValue::TimestampMillisecond(Some(_), None)
        | ScalarValue::TimestampMicrosecond(Some(_), None)
        | ScalarValue::TimestampNanosecond(Some(_), None)
        | ScalarValue::Date32(Some(_)) => true,
        _ => false,
    }
}

/// How finely an expression tells times apart, if it is a part of the time that minutes, hours, days or weeks have in common.
fn grain_of(expr: &Expr) -> Option<Grain> {
    match expr {
        Expr::ScalarFunction(call) => {
            let [Expr::Literal(part, _), time] = &*call.args else { return None };
            let part = part.try_as_str().flatten().filter(|_| is_time(time))?.to_lowercase();
            match (call.func.name(), &*part) {
                ("date_trunc", "minute") => Some(Grain::Minute),
                ("date_part" | "date_trunc", "hour") => Some(Grain::Hour),
                ("date_part" | "date_trunc", "week") => Some(Grain::Week),
                ("date_part" | "date_trunc", "day" | "month" | "quarter" | "year")
                | ("date_part", "dow" | "isodow" | "doy" | "isoyear") => Some(Grain::Day),
                _ => None,
            }
        }
        Expr::Cast(Cast { expr, field }) => {
            (*field.data_type() == DataType::Date32 && is_time(expr)).then_some(Grain::Day)
        }
        _ => None,
    }
}

/// The grain that an expression cuts times to: it rises with them and has another value for each bucket.
pub fn truncated(expr: &Expr) -> Option<Grain> {
    let Expr::ScalarFunction(call) = expr else {
        // A date.
        return grain_of(expr);
    };
    let [Expr::Literal(part, _), _] = &*call.args else { return None };
    let part = part.try_as_str().flatten()?.to_lowercase();
    let is_cut =
        call.func.name() == "date_trunc" && ["week", "day", "hour", "minute"].contains(&&*part);
    grain_of(expr).filter(|_| is_cut)
}

/// The milliseconds of a stride without months, if it has nothing below them.
fn stride_ms(stride: &ScalarValue) -> Option<i64> {
    match stride {
        ScalarValue::DurationMillisecond(Some(ms)) => Some(*ms),
        ScalarValue::IntervalMonthDayNano(Some(stride))
            if stride.months == 0 && stride.nanoseconds % NANOSECONDS == 0 =>
        {
            let of_days = i64::from(stride.days) * Grain::Day.step_ms();
            of_days.checked_add(stride.nanoseconds / NANOSECONDS)
        }
        _ => None,
    }
}

/// The milliseconds of a written time in UTC, if it has nothing below them.
fn time_ms(time: &ScalarValue) -> Option<i64> {
    let nanoseconds = time.cast_to(&DataType::Timestamp(TimeUnit::Nanosecond, None)).ok()?;
    match nanoseconds {
        ScalarValue::TimestampNanosecond(Some(time), _) if time % NANOSECONDS == 0 => {
            Some(time / NANOSECONDS)
        }
        _ => None,
    }
}

/// Whether an expression is the time itself, in one unit or another, in UTC.
pub fn is_time(expr: &Expr) -> bool {
    match expr {
        Expr::Column(column) => column.name == Kind::Events.time_column(),
        Expr::Cast(Cast { expr, field }) => {
            matches!(field.data_type(), DataType::Timestamp(_, None)) && is_time(expr)
        }
        _ => false,
    }
}
