//! Values for `$1`, `$2` and so on.
//!
//! ```text
//! {"sql": "SELECT $1 AS a, $2 AS b", "params": ["x", 1.5]}       x of type VARCHAR, 1.5 of type DOUBLE
//! {"sql": "SELECT $2", "params": [1]}                            $2 has no value: params holds 1
//! {"sql": "SELECT 1", "params": [1]}                             params[0] is not used as $1
//! {"sql": "SELECT $x", "params": [1]}                            $x: parameters are numbered, as in $1
//! {"sql": "SELECT $1", "params": [[1]]}                          params holds texts, numbers, truths and null
//! ```
//!
//! A value is never a part of the text: it stands in the plan where its parameter stood, and cannot be a name or a keyword.

use std::collections::HashSet;

use datafusion_common::ScalarValue;
use serde_json::Value;

use inlay_sql_protocol::Refusal;

/// Checks that each place has a value, and each value a place.
///
/// `places` are the names of the plan's parameters, such as `$1`; each may stand in the statement several times.
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
/// `1` is a BIGINT and `1.5` a DOUBLE. An integer beyond 63 bits is a DOUBLE, too, which has 53 bits of it: 18446744073709551615 is 1.8446744073709552e19.
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
