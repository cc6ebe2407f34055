//! Analyzer rule: a number with a point becomes the nearest integer, and of two the even one; of a `numeric` the one further from zero.
//!
//! ```text
//! CAST(3.5 AS bigint)     4, where the library cuts off: 3
//! CAST(-0.75 AS int)     -1
//! CAST(2.5 AS int)        2, of two the even one
//! CAST(CAST(2.5 AS numeric(5,1)) AS int)      3, and -3 of -2.5
//! ```
//!
//! In a plan:
//!
//! ```text
//! Projection: CAST(events.numeric_props['ms'] AS Int64)
//! Projection: CAST(nearest(CAST(events.numeric_props['ms'] AS Float64)) AS Int64)
//! ```
//!
//! A number that is too large for the integer is refused by the cast, as before: `nearest` gives a double.

use std::sync::{Arc, LazyLock};

use arrow::{
    array::{ArrayRef, AsArray as _, Float64Array},
    datatypes::{DataType, Float64Type},
};
use datafusion_common::{DFSchema, Result, ScalarValue, internal_err, tree_node::Transformed};
use datafusion_expr::{
    Cast, ColumnarValue, Expr, ExprSchemable as _, ScalarUDF, Volatility, cast, create_udf,
};

use super::rewrite::ExprRule;

/// Rounds what is cast to an integer.
pub const ROUNDED_CASTS: ExprRule = ExprRule {
    name: "rounded_casts",
    changes: |part| match part {
        Expr::Cast(Cast { field, .. }) => field.data_type().is_integer(),
        Expr::TryCast(part) => part.field.data_type().is_integer(),
        _ => false,
    },
    rewrite: rounded_casts,
};

/// The nearest whole number, and of two the even one.
static NEAREST: LazyLock<Arc<ScalarUDF>> =
    LazyLock::new(|| function("nearest", f64::round_ties_even));

/// The nearest whole number, and of two the one further from zero.
static NEAREST_OF_NUMERIC: LazyLock<Arc<ScalarUDF>> =
    LazyLock::new(|| function("nearest_of_numeric", f64::round));

/// A function of one double, which rounds it.
fn function(name: &str, round: fn(f64) -> f64) -> Arc<ScalarUDF> {
    let number = DataType::Float64;
    let call = move |args: &[ColumnarValue]| nearest(args, round);
    let of = vec![number.clone()];
    Arc::new(create_udf(name, of, number, Volatility::Immutable, Arc::new(call)))
}

/// A cast to an integer whose argument is rounded first; a cast of an integer or a text stays.
fn rounded_casts(expr: Expr, schema: &DFSchema) -> Result<Transformed<Expr>> {
    let rounded = |number: &Expr| {
        let nearest = match number.get_type(schema) {
            Ok(DataType::Float64 | DataType::Float32) => &*NEAREST,
            Ok(DataType::Decimal128(..) | DataType::Decimal256(..)) => &*NEAREST_OF_NUMERIC,
            _ => return None,
        };
        Some(Box::new(nearest.call(vec![cast(number.clone(), DataType::Float64)])))
    };
    Ok(match expr {
        Expr::Cast(mut part) if part.field.data_type().is_integer() => match rounded(&part.expr) {
            Some(number) => {
                part.expr = number;
                Transformed::yes(Expr::Cast(part))
            }
            None => Transformed::no(Expr::Cast(part)),
        },
        Expr::TryCast(mut part) if part.field.data_type().is_integer() => {
            match rounded(&part.expr) {
                Some(number) => {
                    part.expr = number;
                    Transformed::yes(Expr::TryCast(part))
                }
                None => Transformed::no(Expr::TryCast(part)),
            }
        }
        expr => Transformed::no(expr),
    })
}

/// The rounded numbers of an array, or of one constant; nulls stay.
fn nearest(args: &[ColumnarValue], round: fn(f64) -> f64) -> Result<ColumnarValue> {
    match args {
        [ColumnarValue::Scalar(ScalarValue::Float64(number))] => {
            let rounded = number.map(round);
            Ok(ColumnarValue::Scalar(ScalarValue::Float64(rounded)))
        }
        [ColumnarValue::Array(numbers)] => {
            let numbers = numbers.as_primitive::<Float64Type>();
            let rounded: Float64Array = numbers.unary(round);
            Ok(ColumnarValue::Array(Arc::new(rounded) as ArrayRef))
        }
        _ => internal_err!("nearest takes one number"),
    }
}
