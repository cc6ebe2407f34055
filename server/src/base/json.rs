//! What is wrong with a JSON value, by the field.

use serde_path_to_error::Error as PathError;

use crate::error::Code;

/// Field, code and message of a JSON value that does not have the shape it must have.
pub fn explain(error: &PathError<serde_json::Error>) -> (Option<String>, Code, String) {
    let message = error.inner().to_string();
    // The parser appends a position that means nothing to whoever sent one field.
    let message = message.split(" at line ").next().unwrap_or_default().to_owned();
    let path = error.path().to_string();
    let path = path.trim_start_matches('.').to_owned();
    let inside = |name: &str| {
        if path.is_empty() || path == "." { name.to_owned() } else { format!("{path}.{name}") }
    };
    let named = message.split('`').nth(1).unwrap_or_default().to_owned();
    if message.starts_with("missing field") {
        let field = inside(&named);
        return (Some(field.clone()), Code::MissingField, format!("{field} is required"));
    }
    if message.starts_with("unknown field") {
        // The path ends at the unknown field already.
        let field = if path.ends_with(&named) { path } else { inside(&named) };
        return (
            Some(field.clone()),
            Code::UnknownField,
            format!("{field} is not a field of this request"),
        );
    }
    let field = (!path.is_empty() && path != ".").then_some(path);
    let subject = field.as_deref().unwrap_or("the body");
    let text = format!("{subject}: {message}");
    (field, Code::InvalidField, text)
}
