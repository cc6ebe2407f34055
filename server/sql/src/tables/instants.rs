//! An instant as one of another unit or zone, by a function that the library does not turn around.
//!
//! The library turns `CAST(timestamp AS …) < literal` around and casts the literal instead, which cuts what is finer than a millisecond and
//! forgets zones. A cast that is a function (`rules/timestamp_casts.rs` makes it one) stays where it is, and conditions that only meant
//! a finer unit are still answered by the engine.
//!
//! ```text
//! written                 timestamp < TIMESTAMP '2026-11-17 10:00:00.0005'
//! types are coerced       CAST(timestamp AS Timestamp(ns)) < 2026-11-17T10:00:00.0005
//! as the library has it   timestamp < 2026-11-17T10:00:00.000              a row of 10:00:00.000 would be left out
//! here                    instant(timestamp) < 2026-11-17T10:00:00.0005    timestamp to before 10:00:00.001 (conditions.rs)
//! ```

use arrow::datatypes::DataType;
use datafusion_common::Result;
use datafusion_expr::{
    ColumnarValue, Expr, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};

/// Whether a type is one of instants.
/// Of any unit, with or without a zone.
pub fn is_instant(kind: &DataType) -> bool {
    matches!(kind, DataType::Timestamp(..))
}

/// An instant as one of another unit or zone, by a function that the library does not turn around.
pub fn instant(inner: Expr, to: DataType) -> Expr {
    function(to).call(vec![inner])
}

fn function(to: DataType) -> ScalarUDF {
    ScalarUDF::new_from_impl(Instant { to, signature: Signature::any(1, Volatility::Immutable) })
}

/// What an expression casts to what kind of instant, if it is such a cast.
/// `(timestamp, Timestamp(Nanosecond, None))` for the call above.
pub fn kept_cast(expr: &Expr) -> Option<(&Expr, &DataType)> {
    let Expr::ScalarFunction(call) = expr else { return None };
    let [inner] = &*call.args else { return None };
    let function: &dyn std::any::Any = &**call.func.inner();
    Some((inner, &function.downcast_ref::<Instant>()?.to))
}

/// An instant as one of another unit or zone.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Instant {
    to: DataType,
    signature: Signature,
}

impl ScalarUDFImpl for Instant {
    fn name(&self) -> &str {
        "instant"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(self.to.clone())
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        args.args[0].cast_to(&self.to, None)
    }
}
