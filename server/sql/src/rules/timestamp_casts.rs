//! Comparisons that mean what they say: instants finer than a millisecond, times in zones, and zeros.
//!
//! The library turns `CAST(timestamp AS …) < literal` around and casts the literal instead, which cuts what is finer
//! than a millisecond and forgets zones. Here such a cast is a function before the library looks for one
//! (`tables/instants.rs`). A literal `-0.0` is zero, as it is among the stored numbers.
//!
//! ```text
//! WHERE timestamp < TIMESTAMP '2026-11-02 00:00:00.0005'
//!
//! CAST(events.timestamp AS Timestamp(ns)) < CAST(Utf8("2026-11-02 00:00:00.0005") AS Timestamp(ns))
//! instant(events.timestamp) < CAST(Utf8("2026-11-02 00:00:00.0005") AS Timestamp(ns))
//!
//! turned around by the library       timestamp < 2026-11-02 00:00:00.000, which leaves out the event at midnight
//! with `instant`, by milliseconds.rs timestamp < 2026-11-02 00:00:00.001
//! ```
//!
//! A time without a zone that is compared with one that has a zone is in UTC:
//!
//! ```text
//! CAST(timezone(Utf8("Europe/Berlin"), events.timestamp) AS Timestamp(ns, "+00:00")) < timezone(Utf8("UTC"), …)
//! instant(timezone(Utf8("Europe/Berlin"), events.timestamp)) < timezone(Utf8("UTC"), …)
//! ```

use arrow::datatypes::DataType;
use datafusion_common::{Result, ScalarValue, config::ConfigOptions, tree_node::Transformed};
use datafusion_expr::{Expr, ExprSchemable as _, LogicalPlan};
use datafusion_optimizer::AnalyzerRule;

use super::rewrite::rewrite_exprs;
use crate::tables::{instant, is_instant};

/// The zone of times that are written without one.
const UTC: &str = "+00:00";

/// Makes functions of casts between instants.
#[derive(Debug)]
pub enum PreserveTimestampCasts {
    /// Those that are written. `AT TIME ZONE` is one: a time without a zone is one of that zone.
    Written,
    /// Those that the library adds, to compare a time with a zone and one without: which is UTC, as all are here.
    Added,
}

impl AnalyzerRule for PreserveTimestampCasts {
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

impl PreserveTimestampCasts {
    /// The cast of `inner` from one kind of instant to another, as a function. A zone that the library has added is reached by way of UTC.
    fn kept(&self, inner: Expr, from: &DataType, to: &DataType) -> Expr {
        let inner = match (self, from, to) {
            (Self::Added, DataType::Timestamp(_, None), DataType::Timestamp(unit, Some(_))) => {
                instant(inner, DataType::Timestamp(*unit, Some(UTC.into())))
            }
            _ => inner,
        };
        instant(inner, to.clone())
    }
}
