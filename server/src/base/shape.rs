//! The shape of a JSON body: all of its faults at once, by the field.
//!
//! A parser stops at the first thing that is wrong. A form with three mistakes should not take three
//! requests to mend, so a body is held against the schema that the OpenAPI document shows, and every
//! fault is told. What a schema cannot say (an address, a query that cannot be drawn) is checked by
//! whoever reads the parsed body.

use jsonschema::{ValidationError, Validator, error::ValidationErrorKind};
use serde_json::Value;

use crate::error::{ApiError, Code, Fault, Result};

/// Faults that an answer lists, at most.
const FAULTS_MAX: usize = 20;

/// A compiled schema.
pub struct Shape(Validator);

impl Shape {
    /// Compiles a schema. Its references lead into itself, nowhere else.
    pub fn compile(schema: &Value) -> Result<Self> {
        jsonschema::draft202012::options()
            .build(schema)
            .map(Self)
            .map_err(|error| ApiError::internal(format!("a schema does not compile: {error}")))
    }

    /// All faults of a body, in the order of the schema.
    pub fn faults(&self, body: &Value) -> Vec<Fault> {
        let mut faults = Vec::new();
        for error in self.0.iter_errors(body) {
            explain(&error, body, &mut faults);
            if faults.len() >= FAULTS_MAX {
                break;
            }
        }
        faults.truncate(FAULTS_MAX);
        faults
    }
}

fn explain(error: &ValidationError<'_>, body: &Value, faults: &mut Vec<Fault>) {
    use ValidationErrorKind as Kind;
    let path = field_path(error.instance_path().as_str(), body);
    let subject = if path.is_empty() { "the body" } else { &path };
    let fault = |field: &str, code, message| Fault { field: field.to_owned(), code, message };
    let inside =
        |name: &str| if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") };
    match error.kind() {
        Kind::Required { property } => {
            let field = inside(property.as_str().unwrap_or_default());
            faults.push(fault(&field, Code::MissingField, format!("{field} is required")));
        }
        Kind::AdditionalProperties { unexpected } => {
            faults.extend(unexpected.iter().map(|name| {
                let field = inside(name);
                let message = format!("{field} is not a field of this request");
                fault(&field, Code::UnknownField, message)
            }));
        }
        Kind::OneOfNotValid { context } | Kind::AnyOf { context } => {
            // The alternative that the value was meant to be has its own kind of value.
            let here = error.instance_path().as_str();
            let is_meant = |errors: &&Vec<ValidationError<'static>>| {
                !errors.iter().any(|error| {
                    matches!(error.kind(), Kind::Type { .. })
                        && error.instance_path().as_str() == here
                })
            };
            match context.iter().find(is_meant) {
                Some(errors) => errors.iter().for_each(|error| explain(error, body, faults)),
                None => {
                    let message = format!("{subject} has none of the shapes that it may have");
                    faults.push(fault(&path, Code::InvalidField, message));
                }
            }
        }
        // What a pattern says, the checks of texts say better.
        Kind::Pattern { .. } => {}
        kind => {
            let (code, what) = match kind {
                Kind::Type { .. } => (Code::InvalidField, type_message(error)),
                Kind::Enum { options } => (Code::UnknownValue, one_of(options)),
                Kind::MinLength { limit: 1 } => {
                    (Code::InvalidField, "must not be empty".to_owned())
                }
                Kind::MinLength { limit } => {
                    (Code::InvalidField, format!("must have at least {limit} characters"))
                }
                Kind::MaxLength { limit } => {
                    (Code::InvalidField, format!("must have at most {limit} characters"))
                }
                Kind::MinItems { limit } => {
                    (Code::InvalidField, format!("must have at least {limit} entries"))
                }
                Kind::MaxItems { limit } => {
                    (Code::OutOfRange, format!("must have at most {limit} entries"))
                }
                Kind::Minimum { limit } => (Code::OutOfRange, format!("must be at least {limit}")),
                Kind::Maximum { limit } => (Code::OutOfRange, format!("must be at most {limit}")),
                other => (Code::InvalidField, format!("breaks the rule {}", other.keyword())),
            };
            faults.push(fault(&path, code, format!("{subject} {what}")));
        }
    }
}

fn type_message(error: &ValidationError<'_>) -> String {
    // The value itself is not repeated: it may be long, or a secret in the wrong place.
    let text = error.to_string();
    let wanted = text.rsplit(" is not of type").next().unwrap_or_default();
    format!("must be of type{}", wanted.strip_prefix('s').unwrap_or(wanted).replace('"', ""))
}

fn one_of(options: &Value) -> String {
    let names: Vec<&str> =
        options.as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    format!("must be one of {}", names.join(", "))
}

/// `/widgets/0/id` as `widgets[0].id`.
fn field_path(pointer: &str, body: &Value) -> String {
    let (mut path, mut at) = (String::new(), Some(body));
    for segment in pointer.split('/').skip(1) {
        let name = segment.replace("~1", "/").replace("~0", "~");
        if at.is_some_and(Value::is_array) {
            path.push_str(&format!("[{name}]"));
            at = name.parse::<usize>().ok().and_then(|index| at?.get(index));
        } else {
            if !path.is_empty() {
                path.push('.');
            }
            path.push_str(&name);
            at = at.and_then(|value| value.get(&name));
        }
    }
    path
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn every_fault_is_named_at_once() {
        let shape = Shape::compile(&json!({
            "type": "object", "additionalProperties": false, "required": ["name", "widgets"],
            "properties": {
                "name": {"type": "string", "minLength": 1, "maxLength": 3},
                "kind": {"type": "string", "enum": ["a", "b"]},
                "widgets": {"type": "array", "items": {"$ref": "#/components/schemas/Widget"}},
                "place": {"oneOf": [{"type": "null"}, {"$ref": "#/components/schemas/Widget"}]},
            },
            "components": {"schemas": {"Widget": {
                "type": "object", "required": ["id"],
                "properties": {"id": {"type": ["string", "null"]}, "w": {"type": "integer", "minimum": 1}},
            }}},
        }))
        .unwrap();
        let body = json!({
            "kind": "c", "extra": 1, "widgets": [{"id": 7}, {"w": 0}], "place": {"w": 1},
        });
        let mut faults: Vec<(String, &str)> =
            shape.faults(&body).into_iter().map(|fault| (fault.field, fault.code.name())).collect();
        faults.sort();
        let expected = [
            ("extra", "unknown_field"),
            ("kind", "unknown_value"),
            ("name", "missing_field"),
            ("place.id", "missing_field"),
            ("widgets[0].id", "invalid_field"),
            ("widgets[1].id", "missing_field"),
            ("widgets[1].w", "out_of_range"),
        ];
        assert_eq!(faults, expected.map(|(field, code)| (field.to_owned(), code)));
        let messages = |body: Value| -> Vec<String> {
            shape.faults(&body).into_iter().map(|fault| fault.message).collect()
        };
        assert_eq!(messages(json!({"name": 5, "widgets": []})), ["name must be of type string"]);
        assert_eq!(
            messages(json!({"name": "x", "widgets": [{"id": false}]})),
            ["widgets[0].id must be of type null, string"]
        );
        assert_eq!(messages(json!([])), ["the body must be of type object"]);
        assert!(
            messages(json!({"name": "ab", "widgets": [{"id": "x"}], "place": null})).is_empty()
        );
    }
}
