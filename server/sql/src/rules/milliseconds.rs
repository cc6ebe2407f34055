//! Optimizer rule: times in milliseconds are compared with times in milliseconds.
//!
//! A written time and what `date_trunc` makes of one are in nanoseconds, so the library compares each event's time as one of nanoseconds, too:
//! it is computed for each row, and where several conditions compare it, it becomes a column of its own.
//!
//! ```text
//! instant(timestamp) >= 2026-11-01T00:00:00.000000000    becomes    timestamp >= 2026-11-01T00:00:00.000
//! instant(timestamp) <  2026-11-01T00:00:00.000500000    becomes    timestamp <  2026-11-01T00:00:00.001
//! ```
//!
//! In a plan, of `WHERE timestamp >= '2026-11-01' AND timestamp < TIMESTAMP '2026-11-02 00:00:00.0005'`:
//!
//! ```text
//! Filter: instant(events.timestamp) >= TimestampNanosecond(1793491200000000000, None)
//!     AND instant(events.timestamp) < TimestampNanosecond(1793577600000500000, None)
//!
//! Filter: events.timestamp >= TimestampMillisecond(1793491200000, None) AND events.timestamp < TimestampMillisecond(1793577600001, None)
//! ```
//!
//! An equality with an instant between two milliseconds stays: nothing is equal to it, and for a null that is null and not false.

use arrow::datatypes::{DataType, TimeUnit};
use datafusion_common::{DFSchema, Result, ScalarValue, tree_node::Transformed};
use datafusion_expr::{BinaryExpr, Expr, ExprSchemable as _, Operator, binary_expr};

use super::rewrite::ExprRule;
use crate::tables::kept_cast;

/// Compares in milliseconds where that means the same.
pub const TIMES_IN_MILLISECONDS: ExprRule = ExprRule {
    name: "times_in_milliseconds",
    changes: |part| matches!(part, Expr::BinaryExpr(BinaryExpr { left, .. }) if kept_cast(left).is_some()),
    rewrite: in_milliseconds,
};

/// A comparison in milliseconds where there is one that means the same.
fn in_milliseconds(expr: Expr, schema: &DFSchema) -> Result<Transformed<Expr>> {
    let new = match &expr {
        Expr::BinaryExpr(BinaryExpr { left, op, right }) => compared(left, *op, right, schema),
        _ => None,
    };
    Ok(new.map_or_else(|| Transformed::no(expr), Transformed::yes))
}

/// The comparison of the time itself; nothing where the left is no cast to a finer unit, or the right no literal of that unit.
fn compared(left: &Expr, op: Operator, right: &Expr, schema: &DFSchema) -> Option<Expr> {
    let (time, to) = kept_cast(left)?;
    let from = time.get_type(schema).ok()?;
    let is_finer =
        matches!(to, DataType::Timestamp(TimeUnit::Microsecond | TimeUnit::Nanosecond, None));
    if from != DataType::Timestamp(TimeUnit::Millisecond, None) || !is_finer {
        return None;
    }
    let (value, in_one) = match right {
        Expr::Literal(ScalarValue::TimestampNanosecond(Some(value), None), _) => (value, 1_000_000),
        Expr::Literal(ScalarValue::TimestampMicrosecond(Some(value), None), _) => (value, 1_000),
        _ => return None,
    };
    let (whole, is_whole) = (value.div_euclid(in_one), value.rem_euclid(in_one) == 0);
    // Of a time between two milliseconds, no event is at it: those before it are at the earlier one or before.
    let milliseconds = match op {
        Operator::Lt | Operator::GtEq => whole + i64::from(!is_whole),
        Operator::LtEq | Operator::Gt => whole,
        Operator::Eq | Operator::NotEq if is_whole => whole,
        _ => return None,
    };
    let literal = ScalarValue::TimestampMillisecond(Some(milliseconds), None);
    Some(binary_expr(time.clone(), op, Expr::Literal(literal, None)))
}

#[cfg(test)]
mod tests {
    use arrow::datatypes::{Field, Schema};
    use datafusion_common::ScalarValue;
    use datafusion_expr::{col, lit};

    use super::*;
    use crate::tables::instant;

    #[test]
    fn comparisons_mean_what_they_meant() {
        let kind = DataType::Timestamp(TimeUnit::Millisecond, None);
        let schema = Schema::new(vec![Field::new("timestamp", kind, true)]);
        let schema = DFSchema::try_from(schema).unwrap();
        let nanoseconds = DataType::Timestamp(TimeUnit::Nanosecond, None);
        let left = || instant(col("timestamp"), nanoseconds.clone());
        let of = |value| lit(ScalarValue::TimestampNanosecond(Some(value), None));
        let (less, more) = (Operator::Lt, Operator::Gt);
        for (op, value, milliseconds) in [
            (less, 5_000_000, Some(5)),
            (less, 5_000_001, Some(6)),
            (less, -1, Some(0)),
            (Operator::LtEq, 5_999_999, Some(5)),
            (Operator::LtEq, -1, Some(-1)),
            (more, 5_999_999, Some(5)),
            (Operator::GtEq, 5_000_000, Some(5)),
            (Operator::GtEq, 5_000_001, Some(6)),
            (Operator::Eq, 5_000_000, Some(5)),
            (Operator::Eq, 5_000_001, None),
            (Operator::Plus, 5_000_000, None),
            (less, i64::MAX, Some(i64::MAX / 1_000_000 + 1)),
        ] {
            let written = binary_expr(left(), op, of(value));
            let new = in_milliseconds(written.clone(), &schema).unwrap();
            let expected = milliseconds.map(|value| {
                let literal = ScalarValue::TimestampMillisecond(Some(value), None);
                binary_expr(col("timestamp"), op, lit(literal))
            });
            assert_eq!(new.data, expected.unwrap_or(written), "{op} {value}");
        }
    }
}
