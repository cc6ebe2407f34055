//! The times that a condition of a scan leaves: parts whose times lie outside are not read.
//!
//! ```text
//! timestamp > 5 AND timestamp <= 9                        times 6 to 9
//! timestamp > 5 OR (timestamp = 5 AND user_id > 'u1')     from 5 on: an order by two columns
//! timestamp IS NULL OR timestamp > 5                      from 6 on: every row has a time
//! timestamp > 5 OR user_id > 'u1'                         all times
//! ```

use std::sync::Arc;

use arrow::{array::RecordBatch, datatypes::Schema};
use datafusion_common::{
    ScalarValue,
    tree_node::{TreeNode as _, TreeNodeRecursion},
};
use datafusion_expr::{ColumnarValue, Operator};
use datafusion_physical_expr::{
    expressions::{BinaryExpr, CastExpr, Column, IsNullExpr, Literal},
    scalar_subquery::ScalarSubqueryExpr,
};
use datafusion_physical_plan::PhysicalExpr;

/// Milliseconds since 1970, both ends among them.
pub type TimeBounds = (i64, i64);

/// Bounds that hold every time.
pub const ALL_TIMES: TimeBounds = (i64::MIN, i64::MAX);
/// Bounds that hold none: the earliest lies behind the latest.
const NO_TIMES: TimeBounds = (i64::MAX, i64::MIN);

/// Times outside of which a condition is not true. What is not understood may be true at any.
pub fn bounds(condition: &Arc<dyn PhysicalExpr>, time: usize) -> TimeBounds {
    // Every row has a time. An order from the latest asks for rows without one all the same: they would come first.
    if condition.downcast_ref::<IsNullExpr>().is_some_and(|null| is_time(null.arg(), time)) {
        return NO_TIMES;
    }
    let Some(binary) = condition.downcast_ref::<BinaryExpr>() else { return ALL_TIMES };
    match binary.op() {
        Operator::And => both(bounds(binary.left(), time), bounds(binary.right(), time)),
        Operator::Or => either(bounds(binary.left(), time), bounds(binary.right(), time)),
        op => {
            if let (true, Some(ms)) = (is_time(binary.left(), time), milliseconds(binary.right())) {
                return compared(*op, ms);
            }
            let swapped = op.swap();
            match (swapped, is_time(binary.right(), time), milliseconds(binary.left())) {
                (Some(op), true, Some(ms)) => compared(op, ms),
                _ => ALL_TIMES,
            }
        }
    }
}

/// Times that compare with an instant.
/// After the last millisecond, and before the first one, there is no time.
fn compared(op: Operator, ms: i64) -> TimeBounds {
    match op {
        Operator::Eq => (ms, ms),
        Operator::Gt => ms.checked_add(1).map_or(NO_TIMES, |ms| (ms, i64::MAX)),
        Operator::GtEq => (ms, i64::MAX),
        Operator::Lt => ms.checked_sub(1).map_or(NO_TIMES, |ms| (i64::MIN, ms)),
        Operator::LtEq => (i64::MIN, ms),
        _ => ALL_TIMES,
    }
}

/// Times in both of two bounds. Where there is none, the first lies behind the last.
pub fn both(one: TimeBounds, other: TimeBounds) -> TimeBounds {
    (one.0.max(other.0), one.1.min(other.1))
}

/// Bounds around two bounds, with what lies between them; of an empty one nothing.
fn either(one: TimeBounds, other: TimeBounds) -> TimeBounds {
    match (one.0 > one.1, other.0 > other.1) {
        (true, _) => other,
        (_, true) => one,
        _ => (one.0.min(other.0), one.1.max(other.1)),
    }
}

/// Whether an expression is the column of times.
fn is_time(expr: &Arc<dyn PhysicalExpr>, time: usize) -> bool {
    expr.downcast_ref::<Column>().is_some_and(|column| column.index() == time)
}

/// An expression without columns as an instant, if it is one in milliseconds.
fn milliseconds(expr: &Arc<dyn PhysicalExpr>) -> Option<i64> {
    match constant(expr)? {
        ScalarValue::TimestampMillisecond(ms, _) => ms,
        _ => None,
    }
}

/// What an expression without columns is: `(SELECT max(timestamp) FROM events) - INTERVAL '1 day'`, of which the subquery is
/// answered before rows are read.
fn constant(expr: &Arc<dyn PhysicalExpr>) -> Option<ScalarValue> {
    if let Some(literal) = expr.downcast_ref::<Literal>() {
        return Some(literal.value().clone());
    }
    let mut is_constant = true;
    expr.apply(|part| {
        is_constant &= part.downcast_ref::<Literal>().is_some()
            || part.downcast_ref::<BinaryExpr>().is_some()
            || part.downcast_ref::<CastExpr>().is_some()
            || part.downcast_ref::<ScalarSubqueryExpr>().is_some();
        Ok(if is_constant { TreeNodeRecursion::Continue } else { TreeNodeRecursion::Stop })
    })
    .ok()?;
    let no_columns = RecordBatch::new_empty(Arc::new(Schema::empty()));
    match is_constant.then(|| expr.evaluate(&no_columns).ok())?? {
        ColumnarValue::Scalar(value) => Some(value),
        ColumnarValue::Array(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use arrow::datatypes::{DataType, Field, SchemaRef, TimeUnit};
    use datafusion_physical_expr::expressions::{binary, col, lit};

    use super::*;

    fn schema() -> SchemaRef {
        Arc::new(Schema::new(vec![
            Field::new("user_id", DataType::Utf8View, true),
            Field::new("timestamp", DataType::Timestamp(TimeUnit::Millisecond, None), false),
        ]))
    }

    fn at(ms: i64) -> Arc<dyn PhysicalExpr> {
        lit(ScalarValue::TimestampMillisecond(Some(ms), None))
    }

    fn compare(
        left: Arc<dyn PhysicalExpr>,
        op: Operator,
        right: Arc<dyn PhysicalExpr>,
    ) -> Arc<dyn PhysicalExpr> {
        binary(left, op, right, &schema()).unwrap()
    }

    #[test]
    fn times_follow_from_comparisons_and_from_nothing_else() {
        let time = || col("timestamp", &schema()).unwrap();
        let user = || compare(col("user_id", &schema()).unwrap(), Operator::Gt, lit("u1"));
        let after = |ms| compare(time(), Operator::Gt, at(ms));
        let same = |ms| compare(time(), Operator::Eq, at(ms));
        let and = |a, b| compare(a, Operator::And, b);
        let or = |a, b| compare(a, Operator::Or, b);
        let known = |condition: Arc<dyn PhysicalExpr>| bounds(&condition, 1);
        assert_eq!(known(after(5)), (6, i64::MAX));
        assert_eq!(known(compare(at(5), Operator::Gt, time())), (i64::MIN, 4));
        assert_eq!(known(and(after(5), compare(time(), Operator::LtEq, at(9)))), (6, 9));
        // What orders by two columns: later, or at the same time and another user.
        assert_eq!(known(or(after(5), and(same(5), user()))), (5, i64::MAX));
        let none: Arc<dyn PhysicalExpr> = Arc::new(IsNullExpr::new(time()));
        assert_eq!(known(or(none, after(5))), (6, i64::MAX));
        assert_eq!(known(or(after(5), user())), ALL_TIMES);
        assert_eq!(known(user()), ALL_TIMES);
        assert_eq!(known(and(user(), after(i64::MAX))), NO_TIMES);
        assert_eq!(known(or(after(i64::MAX), same(7))), (7, 7));
        assert_eq!(known(compare(time(), Operator::NotEq, at(7))), ALL_TIMES);
        let day = lit(ScalarValue::DurationMillisecond(Some(3)));
        assert_eq!(
            known(compare(time(), Operator::GtEq, compare(at(9), Operator::Minus, day))),
            (6, i64::MAX)
        );
    }
}
