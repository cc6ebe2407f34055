//! Analyzer rule: frames of windows that mean something.
//!
//! `rank() OVER (ORDER BY max(timestamp) - min(timestamp))` has a frame, though nobody wrote one and `rank` has no use for it: all rows up to those that are
//! alike. The library looks for a distance of two durations there; groups of rows that are alike need none. `ORDER BY timestamp RANGE 1 PRECEDING`
//! it answers as if nothing had been said.
//!
//! ```text
//! rank() ORDER BY [max(events.timestamp) - min(events.timestamp) ASC NULLS LAST] RANGE BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
//! rank() ORDER BY [max(events.timestamp) - min(events.timestamp) ASC NULLS LAST] GROUPS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
//! ```
//!
//! Distances that the order does not have are refused:
//!
//! ```text
//! ORDER BY timestamp RANGE 1 PRECEDING                     a RANGE over times needs an interval: INTERVAL '1 day', not 1
//! ORDER BY tenant_id RANGE 1 PRECEDING                     a RANGE of 1 needs an ORDER BY of a number or a time
//! ORDER BY timestamp RANGE INTERVAL '-1 day' PRECEDING     a RANGE has no negative distance: -1 day
//! ```
//!
//! The rule runs before types are coerced, while a distance is still the text that was written.

use arrow::datatypes::DataType;
use datafusion_common::{DFSchema, Result, ScalarValue, plan_err, tree_node::Transformed};
use datafusion_expr::{Expr, ExprSchemable as _, WindowFrame, WindowFrameBound, WindowFrameUnits};

use super::rewrite::ExprRule;

/// Frames by peers where there are no distances, and no distances of another kind than the order.
pub const FRAMES: ExprRule = ExprRule {
    name: "frames",
    changes: |part| matches!(part, Expr::WindowFunction(call) if is_range(&call.params.window_frame)),
    rewrite: frames,
};

/// Whether a frame is by the values of its order.
fn is_range(frame: &WindowFrame) -> bool {
    frame.units == WindowFrameUnits::Range
}

/// A window function with a frame by peers, where its order is a duration or an interval without distances.
///
/// Errors: a distance that the order has not.
fn frames(expr: Expr, schema: &DFSchema) -> Result<Transformed<Expr>> {
    let Expr::WindowFunction(mut call) = expr else { return Ok(Transformed::no(expr)) };
    let frame = &call.params.window_frame;
    // Distances are of the first key: with several the library refuses them.
    let first = call.params.order_by.first().filter(|_| is_range(frame));
    let Some(order) = first.and_then(|first| first.expr.get_type(schema).ok()) else {
        return Ok(Transformed::no(Expr::WindowFunction(call)));
    };
    let distances: Vec<&str> =
        [&frame.start_bound, &frame.end_bound].into_iter().filter_map(distance).collect();
    for distance in &distances {
        check(distance, &order)?;
    }
    let is_length = matches!(order, DataType::Duration(_) | DataType::Interval(_));
    if !is_length || !distances.is_empty() {
        return Ok(Transformed::no(Expr::WindowFunction(call)));
    }
    let (start, end) = (by_peers(&frame.start_bound), by_peers(&frame.end_bound));
    call.params.window_frame = WindowFrame::new_bounds(WindowFrameUnits::Groups, start, end);
    Ok(Transformed::yes(Expr::WindowFunction(call)))
}

/// The distance of a bound, as it is written: `1 day` of `INTERVAL '1 day' PRECEDING`. Nothing of `UNBOUNDED PRECEDING` and `CURRENT ROW`.
fn distance(bound: &WindowFrameBound) -> Option<&str> {
    match bound {
        WindowFrameBound::Preceding(ScalarValue::Utf8(Some(text)))
        | WindowFrameBound::Following(ScalarValue::Utf8(Some(text))) => Some(text),
        _ => None,
    }
}

/// A bound of `GROUPS` that means what one of `RANGE` without a distance means; a null is unbounded.
fn by_peers(bound: &WindowFrameBound) -> WindowFrameBound {
    match bound {
        WindowFrameBound::Preceding(_) => WindowFrameBound::Preceding(ScalarValue::UInt64(None)),
        WindowFrameBound::Following(_) => WindowFrameBound::Following(ScalarValue::UInt64(None)),
        WindowFrameBound::CurrentRow => WindowFrameBound::CurrentRow,
    }
}

/// Errors: a distance that the order has not.
fn check(distance: &str, order: &DataType) -> Result<()> {
    let is_number = distance.trim().parse::<f64>().is_ok();
    if distance.trim_start().starts_with('-') {
        return plan_err!("a RANGE has no negative distance: {distance}");
    }
    match order {
        DataType::Utf8 | DataType::Utf8View | DataType::LargeUtf8 | DataType::Boolean => {
            plan_err!("a RANGE of {distance} needs an ORDER BY of a number or a time")
        }
        _ if order.is_temporal() && is_number => {
            plan_err!("a RANGE over times needs an interval: INTERVAL '1 day', not {distance}")
        }
        _ => Ok(()),
    }
}
