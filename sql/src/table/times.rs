//! Comparisons that mean what they say: instants finer than a millisecond, times in zones, and zeros.
//!
//! The library turns `CAST(timestamp AS …) < literal` around and casts the literal instead, which cuts what is finer
//! than a millisecond and forgets zones. Here such a cast is a function before the library looks for one: it stays
//! where it is, and conditions that only meant a finer unit are still answered by the engine. A literal `-0.0` is zero,
//! as it is among the stored numbers.

use arrow::datatypes::DataType;
use datafusion_common::{Result, ScalarValue, config::ConfigOptions, tree_node::Transformed};
use datafusion_expr::{
    ColumnarValue, Expr, ExprSchemable as _, LogicalPlan, ScalarFunctionArgs, ScalarUDF,
    ScalarUDFImpl, Signature, Volatility,
};
use datafusion_optimizer::AnalyzerRule;

use super::rewrite::rewrite_exprs;

const UTC: &str = "+00:00";

/// Makes functions of casts between instants.
#[derive(Debug)]
pub enum KeepCasts {
    /// Those that are written. `AT TIME ZONE` is one: a time without a zone is one of that zone.
    Written,
    /// Those that the library adds, to compare a time with a zone and one without: which is UTC, as all are here.
    Added,
}

impl AnalyzerRule for KeepCasts {
    fn name(&self) -> &str {
        "keep_casts"
    }

    fn analyze(&self, plan: LogicalPlan, _: &ConfigOptions) -> Result<LogicalPlan> {
        rewrite_exprs(plan, &|expr, schema| {
            Ok(match &expr {
                Expr::Cast(cast) if is_instant(cast.field.data_type()) => {
                    let to = cast.field.data_type();
                    match cast.expr.get_type(schema) {
                        Ok(from) if is_instant(&from) && from != *to => {
                            Transformed::yes(self.kept((*cast.expr).clone(), &from, to))
                        }
                        _ => Transformed::no(expr),
                    }
                }
                Expr::Literal(ScalarValue::Float64(Some(number)), metadata)
                    if *number == 0.0 && number.is_sign_negative() =>
                {
                    let zero = ScalarValue::Float64(Some(0.0));
                    Transformed::yes(Expr::Literal(zero, metadata.clone()))
                }
                _ => Transformed::no(expr),
            })
        })
    }
}

impl KeepCasts {
    fn kept(&self, inner: Expr, from: &DataType, to: &DataType) -> Expr {
        let inner = match (self, from, to) {
            (Self::Added, DataType::Timestamp(_, None), DataType::Timestamp(unit, Some(_))) => {
                let utc = DataType::Timestamp(*unit, Some(UTC.into()));
                function(utc).call(vec![inner])
            }
            _ => inner,
        };
        instant(inner, to.clone())
    }
}

fn is_instant(kind: &DataType) -> bool {
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
