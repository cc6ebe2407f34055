//! Values for `$1`, `$2` and so on.

use std::collections::HashSet;

use datafusion_common::ScalarValue;
use serde_json::Value;

use inlay_sql_protocol::Refusal;

/// Checks that each place has a value, and each value a place.
///
/// Errors: which is missing.
pub fn check(places: &HashSet<String>, params: &[Value]) -> Result<(), Refusal> {
    let mut numbers: Vec<usize> = Vec::new();
    for place in places {
        let number = place.strip_prefix('$').and_then(|number| number.parse().ok());
        let number = number.filter(|number| *number > 0);
        numbers.push(number.ok_or_else(|| {
            Refusal::invalid(format!("{place}: parameters are numbered, as in $1"))
        })?);
    }
    numbers.sort_unstable();
    if let Some(missing) = numbers.iter().find(|number| **number > params.len()) {
        let message = format!("${missing} has no value: params holds {}", params.len());
        return Err(Refusal::invalid(message));
    }
    match (1..=params.len()).find(|number| !numbers.contains(number)) {
        Some(number) => {
            Err(Refusal::invalid(format!("params[{}] is not used as ${number}", number - 1)))
        }
        None => Ok(()),
    }
}

/// A value as SQL has it.
///
/// Errors: for lists and objects.
pub fn scalar(value: &Value) -> Result<ScalarValue, Refusal> {
    Ok(match value {
        Value::Null => ScalarValue::Null,
        Value::Bool(truth) => ScalarValue::Boolean(Some(*truth)),
        Value::String(text) => ScalarValue::Utf8(Some(text.clone())),
        Value::Number(number) => match number.as_i64() {
            Some(number) => ScalarValue::Int64(Some(number)),
            // There is one zero.
            None => ScalarValue::Float64(number.as_f64().map(|number| number + 0.0)),
        },
        Value::Array(_) | Value::Object(_) => {
            let message = "params holds texts, numbers, truths and null";
            return Err(Refusal::invalid(message));
        }
    })
}
