//! What is wrong with a JSON value, by the field.
//!
//! The parser of serde reports a position in a text that the sender may never have seen, and lets the last of two equal fields win.
//! Here each fault names its field:
//!
//! ```text
//! {"name": "a", "name": "b"}          name comes twice
//! [1]                                 the body must be a JSON object
//! {                                   the body is not valid JSON: EOF while parsing an object at line 1 column 1
//! {"a": {"a": … 33 levels … }}        the body is nested deeper than 32 levels
//! {"a": 1.0, "b": [1.5, -0.0, 1e300]} is read as {"a":1,"b":[1.5,0,1e+300]}
//! ```

use std::fmt;

use serde::{
    Deserialize, Deserializer,
    de::{MapAccess, SeqAccess, Visitor},
};
use serde_json::{Map, Value};
use serde_path_to_error::Error as PathError;

use crate::error::{ApiError, Code, Result};

/// Levels of a body, at most. What is stored nests a little deeper and must be readable again.
const DEPTH_MAX: usize = 32;

/// Checks what the parser does not: the body is an object, and not nested without end.
pub fn check_shape(text: &str) -> Result<()> {
    if !text.trim_start().starts_with('{') {
        return Err(ApiError::new(Code::InvalidJson, "the body must be a JSON object"));
    }
    let (mut depth, mut in_text, mut escaped) = (0usize, false, false);
    // Brackets within strings do not count. All bytes of interest are ASCII, which no byte of a longer character is.
    for byte in text.bytes() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if in_text => escaped = true,
            b'"' => in_text = !in_text,
            b'{' | b'[' if !in_text => depth += 1,
            b'}' | b']' if !in_text => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth > DEPTH_MAX {
            let message = format!("the body is nested deeper than {DEPTH_MAX} levels");
            return Err(ApiError::new(Code::InvalidJson, message));
        }
    }
    Ok(())
}

/// Reads a JSON text: a field that comes twice is a fault, and a number without a fraction is an integer,
/// however it was written.
pub fn parse(text: &str) -> Result<Value> {
    let mut deserializer = serde_json::Deserializer::from_str(text);
    let read = Tree::deserialize(&mut deserializer).and_then(|tree| {
        deserializer.end()?;
        Ok(tree.0)
    });
    read.map_err(|error| {
        let message = error.to_string();
        if let Some(field) = message.strip_prefix(TWICE).and_then(|rest| rest.split('`').nth(1)) {
            let message = format!("{field} comes twice");
            return ApiError::field(Code::InvalidField, field, message);
        }
        ApiError::new(Code::InvalidJson, format!("the body is not valid JSON: {message}"))
    })
}

/// Marks our own error among those of the parser, which passes only text on.
const TWICE: &str = "comes twice: ";

/// A value as it is read, before it is checked against a schema.
struct Tree(Value);

impl<'de> Deserialize<'de> for Tree {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(TreeVisitor).map(Self)
    }
}

struct TreeVisitor;

impl<'de> Visitor<'de> for TreeVisitor {
    type Value = Value;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        /// Up to here every integer is a float.
        const EXACT: f64 = 9_007_199_254_740_992.0;
        let is_whole = value.fract() == 0.0 && value.abs() <= EXACT;
        Ok(if is_whole { (value as i64).into() } else { value.into() })
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Value, A::Error> {
        let mut values = Vec::new();
        while let Some(Tree(value)) = list.next_element()? {
            values.push(value);
        }
        Ok(Value::Array(values))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Value, A::Error> {
        let mut fields = Map::new();
        while let Some((name, Tree(value))) = map.next_entry::<String, Tree>()? {
            if fields.contains_key(&name) {
                return Err(serde::de::Error::custom(format!("{TWICE}`{name}`")));
            }
            fields.insert(name, value);
        }
        Ok(Value::Object(fields))
    }
}

/// Field, code and message of a JSON value that does not have the shape it must have.
///
/// For values without a check by a schema (the query of a widget, an event, a billing webhook), and for faults of a body that its schema
/// cannot express.
pub fn explain(error: &PathError<serde_json::Error>) -> (Option<String>, Code, String) {
    let error = explain_text(&error.path().to_string(), &error.inner().to_string());
    (error.field, error.code, error.message)
}

/// The same of any parser that speaks as serde does, with the path where it stopped and its message.
///
/// ```text
/// path        message                                             error
///             missing field `name`                                missing_field, name: "name is required"
/// widgets[0]  missing field `id`                                  missing_field, widgets[0].id: "widgets[0].id is required"
/// page        unknown field `page`, expected `limit` or `cursor`  unknown_field, page: "page is not a field of this request"
/// limit       invalid digit found in string                       invalid_field, limit: "limit: invalid digit found in string"
/// ```
pub fn explain_text(path: &str, message: &str) -> ApiError {
    // The parser appends a position that means nothing to whoever sent one field.
    let message = message.split(" at line ").next().unwrap_or_default().to_owned();
    let path = path.trim_start_matches('.').to_owned();
    let inside = |name: &str| {
        if path.is_empty() || path == "." { name.to_owned() } else { format!("{path}.{name}") }
    };
    let named = message.split('`').nth(1).unwrap_or_default().to_owned();
    if message.starts_with("missing field") {
        let field = inside(&named);
        let message = format!("{field} is required");
        return ApiError::field(Code::MissingField, field, message);
    }
    if message.starts_with("unknown field") {
        // The path ends at the unknown field already.
        let field = if path.ends_with(&named) { path } else { inside(&named) };
        let message = format!("{field} is not a field of this request");
        return ApiError::field(Code::UnknownField, field, message);
    }
    let field = (!path.is_empty() && path != ".").then_some(path);
    let subject = field.as_deref().unwrap_or("the request");
    ApiError {
        field: field.clone(),
        ..ApiError::new(Code::InvalidField, format!("{subject}: {message}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_read_strictly() {
        let read = parse(r#"{"a": 1.0, "b": [1.5, -0.0, 1e300], "c": {"a": null}}"#).unwrap();
        assert_eq!(read.to_string(), r#"{"a":1,"b":[1.5,0,1e+300],"c":{"a":null}}"#);
        let error = parse(r#"{"a": {"b": 1, "b": 2}}"#).unwrap_err();
        assert_eq!((error.code, error.field.as_deref()), (Code::InvalidField, Some("b")));
        for wrong in ["", "{", "{} x", "{\"a\": NaN}", "[1,]"] {
            assert_eq!(parse(wrong).unwrap_err().code, Code::InvalidJson, "{wrong}");
        }
    }

    #[test]
    fn depth_counts_outside_of_texts_only() {
        let nested = |levels: usize| format!("{}1{}", "{\"a\":".repeat(levels), "}".repeat(levels));
        assert!(check_shape(&nested(32)).is_ok() && check_shape(&nested(33)).is_err());
        assert!(
            check_shape(&format!("{{\"a\":\"{}\\\"{}\"}}", "[".repeat(99), "{".repeat(99))).is_ok()
        );
        assert!(
            check_shape("[1]").is_err() && check_shape("").is_err() && check_shape(" {}").is_ok()
        );
    }
}
