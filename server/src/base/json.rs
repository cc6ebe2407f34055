//! What is wrong with a JSON value, by the field.

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

/// Field, code and message of a JSON value that does not have the shape it must have.
pub fn explain(error: &PathError<serde_json::Error>) -> (Option<String>, Code, String) {
    let error = explain_text(&error.path().to_string(), &error.inner().to_string());
    (error.field, error.code, error.message)
}

/// The same of any parser that speaks as serde does.
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
