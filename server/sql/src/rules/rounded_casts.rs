//! Analyzer rule: a number with a point becomes the nearest integer, and of two the even one.
//!
//! ```text
//! CAST(3.5 AS bigint)     4, where the library cuts off: 3
//! CAST(-0.75 AS int)     -1
//! ```

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

/// The nearest whole number.
static NEAREST: LazyLock<Arc<ScalarUDF>> = LazyLock::new(|| {
    let number = DataType::Float64;
    Arc::new(create_udf(
        "nearest",
        vec![number.clone()],
        number,
        Volatility::Immutable,
        Arc::new(nearest),
    ))
});

fn rounded_casts(expr: Expr, schema: &DFSchema) -> Result<Transformed<Expr>> {
    let rounded = |number: &Expr| {
        let is_float = matches!(number.get_type(schema), Ok(DataType::Float64 | DataType::Float32));
        is_float.then(|| Box::new(NEAREST.call(vec![cast(number.clone(), DataType::Float64)])))
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

fn nearest(args: &[ColumnarValue]) -> Result<ColumnarValue> {
    match args {
        [ColumnarValue::Scalar(ScalarValue::Float64(number))] => {
            let rounded = number.map(f64::round_ties_even);
            Ok(ColumnarValue::Scalar(ScalarValue::Float64(rounded)))
        }
        [ColumnarValue::Array(numbers)] => {
            let numbers = numbers.as_primitive::<Float64Type>();
            let rounded: Float64Array = numbers.unary(f64::round_ties_even);
            Ok(ColumnarValue::Array(Arc::new(rounded) as ArrayRef))
        }
        _ => internal_err!("nearest takes one number"),
    }
}
