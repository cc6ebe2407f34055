//! Analyzer rule: a date plus an interval is a time.
//!
//! ```text
//! DATE '2026-03-01' + INTERVAL '1 hour'     2026-03-01T01:00:00, where the library says 2026-03-01
//! INTERVAL '1 hour' + DATE '2026-03-01'     the same
//! DATE '2026-03-01' - INTERVAL '1 day'      2026-02-28T00:00:00
//! DATE '2026-03-01' + 1                     2026-03-02: a number of days leaves a date
//! ```
//!
//! In a plan, where `intervals.rs` makes a duration of the interval later:
//!
//! ```text
//! CAST(events.timestamp AS Date32) - IntervalMonthDayNano { months: 0, days: 1, nanoseconds: 0 }
//! CAST(CAST(events.timestamp AS Date32) AS Timestamp(ms)) - IntervalMonthDayNano { months: 0, days: 1, nanoseconds: 0 }
//! ```

use arrow::datatypes::{DataType, TimeUnit};
use datafusion_common::{DFSchema, Result, tree_node::Transformed};
use datafusion_expr::{BinaryExpr, Expr, ExprSchemable as _, Operator, cast};

use super::rewrite::ExprRule;

/// Makes times of dates to which intervals are added.
pub const TIMES_OF_DATES: ExprRule = ExprRule {
    name: "times_of_dates",
    changes: |part| {
        let op = match part {
            Expr::BinaryExpr(BinaryExpr { op, .. }) => Some(*op),
            _ => None,
        };
        matches!(op, Some(Operator::Plus | Operator::Minus))
    },
    rewrite: times_of_dates,
};

/// A sum or a difference of a date and an interval over the time at which the date begins.
fn times_of_dates(expr: Expr, schema: &DFSchema) -> Result<Transformed<Expr>> {
    let Expr::BinaryExpr(BinaryExpr { left, op: op @ (Operator::Plus | Operator::Minus), right }) =
        &expr
    else {
        return Ok(Transformed::no(expr));
    };
    let is_date = |expr: &Expr| matches!(expr.get_type(schema), Ok(DataType::Date32));
    let is_interval = |expr: &Expr| matches!(expr.get_type(schema), Ok(DataType::Interval(_)));
    let time = |date: &Expr| {
        Box::new(cast(date.clone(), DataType::Timestamp(TimeUnit::Millisecond, None)))
    };
    let new = if is_date(left) && is_interval(right) {
        BinaryExpr::new(time(left), *op, right.clone())
    } else if *op == Operator::Plus && is_interval(left) && is_date(right) {
        BinaryExpr::new(left.clone(), *op, time(right))
    } else {
        return Ok(Transformed::no(expr));
    };
    Ok(Transformed::yes(Expr::BinaryExpr(new)))
}
