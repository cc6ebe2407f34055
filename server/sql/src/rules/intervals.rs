//! Analyzer rule: times plus hours and days are sums of integers.
//!
//! `timestamp + INTERVAL '1 hour'` is an instant 3,600,000 ms later. The library finds it by way of a calendar, since months
//! have no length of their own, which takes longer than everything else in a join by time. An interval without months is
//! a duration, and so is the difference of two times: `timestamp - lag(timestamp) … <= INTERVAL '1 day'` compares
//! durations. The library would compare days with days, of which a difference has none. Where intervals are compared, a month has
//! thirty days.
//!
//! ```text
//! timestamp + INTERVAL '1 day 2 hours'                    timestamp + 93,600,000 ms
//! CAST(gap AS interval) > INTERVAL '1 day'                gap > 86,400,000 ms, where gap is a difference of times
//! gap BETWEEN INTERVAL '1 day' AND INTERVAL '2 days'      gap BETWEEN 86,400,000 ms AND 172,800,000 ms
//! INTERVAL '1 month' = INTERVAL '30 days'                 both 2,592,000 s: true
//! timestamp + INTERVAL '1 month'                          stays: February is shorter
//! timestamp + INTERVAL '1 microsecond'                    stays: no whole number of milliseconds
//! timestamptz + INTERVAL '1 day'                          stays: a day of a zone may have 23 hours
//! ```
//!
//! The column is called what was written: `events.timestamp + DurationMillisecond("93600000") AS events.timestamp + IntervalMonthDayNano(…)`.

use arrow::datatypes::{DataType, IntervalMonthDayNano, IntervalUnit, TimeUnit};
use datafusion_common::{DFSchema, Result, ScalarValue, tree_node::Transformed};
use datafusion_expr::{Between, BinaryExpr, Cast, Expr, ExprSchemable as _, Operator};

use super::rewrite::ExprRule;

/// Nanoseconds of a day of a clock that is never set.
const NANOS_A_DAY: i64 = 86_400_000_000_000;
/// Days of a month where intervals are compared, as in PostgreSQL.
const DAYS_A_MONTH: i32 = 30;

/// Makes durations of intervals.
pub const ADD_DURATIONS: ExprRule = ExprRule {
    name: "add_durations",
    changes: |part| matches!(part, Expr::BinaryExpr(_) | Expr::Between(_)),
    rewrite: add_durations,
};

/// What a sum, a difference or a comparison becomes.
fn add_durations(expr: Expr, schema: &DFSchema) -> Result<Transformed<Expr>> {
    let (left, op, right) = match &expr {
        Expr::BinaryExpr(BinaryExpr { left, op, right }) => (left, op, right),
        Expr::Between(between) => {
            return Ok(match between_durations(between, schema) {
                Some(between) => Transformed::yes(Expr::Between(between)),
                None => Transformed::no(expr),
            });
        }
        _ => return Ok(Transformed::no(expr)),
    };
    let new = match op {
        Operator::Plus => {
            with_duration(left, right, schema).or_else(|| with_duration(right, left, schema))
        }
        Operator::Minus => with_duration(left, right, schema),
        _ if op.supports_propagation() => compared(left, right, schema)
            .or_else(|| compared(right, left, schema).map(|(right, left)| (left, right)))
            .or_else(|| lengths(left, right)),
        _ => None,
    };
    Ok(match new {
        Some((left, right)) => {
            let new = BinaryExpr::new(Box::new(left), *op, Box::new(right));
            Transformed::yes(Expr::BinaryExpr(new))
        }
        None => Transformed::no(expr),
    })
}

/// A time and the duration that is added to it or taken from it. Nothing where the time has no such type, or the interval no fixed length in
/// its unit.
fn with_duration(time: &Expr, interval: &Expr, schema: &DFSchema) -> Option<(Expr, Expr)> {
    let interval = literal(interval)?;
    let Ok(DataType::Timestamp(unit, zone)) = time.get_type(schema) else { return None };
    // Days of a zone may have 23 hours.
    let has_length = zone.is_none() || interval.days == 0;
    Some((time.clone(), duration(interval, unit).filter(|_| has_length)?))
}

/// A duration and the one that it is compared with: both were to be intervals. `cast` is the difference of times that type coercion has
/// cast, `interval` the literal.
fn compared(cast: &Expr, interval: &Expr, schema: &DFSchema) -> Option<(Expr, Expr)> {
    let interval = days_for_months(literal(interval)?)?;
    let Expr::Cast(Cast { expr, field }) = cast else { return None };
    let Ok(DataType::Duration(unit)) = expr.get_type(schema) else { return None };
    let is_added = *field.data_type() == DataType::Interval(IntervalUnit::MonthDayNano);
    Some(((**expr).clone(), duration(interval, unit).filter(|_| is_added)?))
}

/// Two intervals that are compared, as durations: `INTERVAL '1 day' > INTERVAL '25 hours'` is false, though `1 day` has more days.
fn lengths(left: &Expr, right: &Expr) -> Option<(Expr, Expr)> {
    let length = |expr| duration(days_for_months(literal(expr)?)?, TimeUnit::Nanosecond);
    Some((length(left)?, length(right)?))
}

/// An interval with thirty days for each of its months; nothing where that is too large.
fn days_for_months(interval: IntervalMonthDayNano) -> Option<IntervalMonthDayNano> {
    let days = interval.months.checked_mul(DAYS_A_MONTH)?.checked_add(interval.days)?;
    Some(IntervalMonthDayNano { months: 0, days, nanoseconds: interval.nanoseconds })
}

/// A range of durations; nothing where one of its bounds is no literal interval.
fn between_durations(between: &Between, schema: &DFSchema) -> Option<Between> {
    let (expr, low) = compared(&between.expr, &between.low, schema)?;
    let (_, high) = compared(&between.expr, &between.high, schema)?;
    Some(Between::new(Box::new(expr), between.negated, Box::new(low), Box::new(high)))
}

/// The interval that an expression is.
fn literal(expr: &Expr) -> Option<IntervalMonthDayNano> {
    match expr {
        Expr::Literal(ScalarValue::IntervalMonthDayNano(interval), _) => *interval,
        _ => None,
    }
}

/// An interval without months as so many of a unit, where it is a whole number of them: 1 day and 2 hours are 93,600,000 milliseconds.
fn duration(interval: IntervalMonthDayNano, unit: TimeUnit) -> Option<Expr> {
    if interval.months != 0 {
        return None;
    }
    let days = i64::from(interval.days).checked_mul(NANOS_A_DAY)?;
    let nanos = days.checked_add(interval.nanoseconds)?;
    let whole = |nanos_a_unit| (nanos % nanos_a_unit == 0).then_some(Some(nanos / nanos_a_unit));
    let value = match unit {
        TimeUnit::Second => ScalarValue::DurationSecond(whole(1_000_000_000)?),
        TimeUnit::Millisecond => ScalarValue::DurationMillisecond(whole(1_000_000)?),
        TimeUnit::Microsecond => ScalarValue::DurationMicrosecond(whole(1_000)?),
        TimeUnit::Nanosecond => ScalarValue::DurationNanosecond(whole(1)?),
    };
    Some(Expr::Literal(value, None))
}
