//! Aggregate functions over stored states: sketches and digests of hours are merged into those of a week.
//!
//! ```text
//! SELECT day, sum(count), approx_distinct_merge(users_state) FROM events_daily GROUP BY day ORDER BY day DESC LIMIT 2
//! 2024-10-04   1    0
//! 2024-10-03   96   45
//!
//! SELECT round(approx_percentile_merge(numeric_states['ms'], 0.5)) FROM events_hourly
//! 50
//!
//! SELECT approx_percentile_merge(numeric_states['ms'], 1.5) FROM events_hourly
//! approx_percentile_merge: the second argument lies between 0 and 1
//! ```
//!
//! A state is what the engine stores of a tenant, an event and an hour (`users_state`, or an entry of `numeric_states`); the state of a partial
//! aggregate has the same form. A null state adds nothing: of no states there are 0 users, and no percentile.

use std::sync::Arc;

use arrow::{
    array::{ArrayRef, AsArray as _},
    datatypes::{DataType, Float64Type},
};
use datafusion_common::{DataFusionError, Result, ScalarValue};
use datafusion_expr::{Accumulator, AggregateUDF, Volatility, create_udaf};
use inlay_engine::rows::{NumberState, UserState};

/// Aggregates over states: `approx_distinct_merge(state)`, a `BIGINT`, and `approx_percentile_merge(state, share)`, a `DOUBLE`.
pub fn aggregates() -> Vec<AggregateUDF> {
    vec![
        create_udaf(
            "approx_distinct_merge",
            vec![DataType::Binary],
            Arc::new(DataType::Int64),
            Volatility::Immutable,
            Arc::new(|_| Ok(Box::new(Users::default()))),
            Arc::new(vec![DataType::Binary]),
        ),
        create_udaf(
            "approx_percentile_merge",
            vec![DataType::Binary, DataType::Float64],
            Arc::new(DataType::Float64),
            Volatility::Immutable,
            Arc::new(|_| Ok(Box::new(MergedDigest::default()))),
            Arc::new(vec![DataType::Binary, DataType::Float64]),
        ),
    ]
}

/// The error of a state that is none.
fn no_state(error: inlay_engine::Error) -> DataFusionError {
    DataFusionError::Execution(error.to_string())
}

/// Accumulator of `approx_distinct_merge`: merges sketches of users.
#[derive(Default)]
struct Users(UserState);

impl std::fmt::Debug for Users {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Users").finish_non_exhaustive()
    }
}

impl Accumulator for Users {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        let states = values[0].as_binary::<i32>();
        states.iter().flatten().try_for_each(|state| self.0.add(state).map_err(no_state))
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        Ok(ScalarValue::Int64(i64::try_from(self.0.estimate()).ok()))
    }

    fn size(&self) -> usize {
        size_of_val(self) + self.0.bytes_used()
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        Ok(vec![ScalarValue::Binary(Some(self.0.write()))])
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        self.update_batch(states)
    }
}

/// Accumulator of `approx_percentile_merge`: merges digests, and keeps the requested quantile.
#[derive(Default)]
struct MergedDigest {
    /// The digest of all states so far.
    state: NumberState,
    /// The share of the values below the answer: 0.95.
    part: Option<f64>,
}

impl std::fmt::Debug for MergedDigest {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Numbers").field("part", &self.part).finish_non_exhaustive()
    }
}

impl Accumulator for MergedDigest {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        let (states, parts) =
            (values[0].as_binary::<i32>(), values[1].as_primitive::<Float64Type>());
        if let Some(part) = parts.iter().flatten().next() {
            if !(0.0..=1.0).contains(&part) {
                let message = "approx_percentile_merge: the second argument lies between 0 and 1";
                return Err(DataFusionError::Execution(message.to_owned()));
            }
            self.part = Some(part);
        }
        states.iter().flatten().try_for_each(|state| self.state.add(state).map_err(no_state))
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        Ok(ScalarValue::Float64(self.part.and_then(|part| self.state.quantile(part))))
    }

    fn size(&self) -> usize {
        size_of_val(self) + self.state.bytes_used()
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        let state = ScalarValue::Binary(Some(self.state.write()));
        Ok(vec![state, ScalarValue::Float64(self.part)])
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        self.update_batch(states)
    }
}
