//! Text as markup: text that people have typed never ends an element, an attribute or a script.
//!
//! ```text
//! escape_json({"name":"</script>&"})     {"name":"\u003c/script\u003e\u0026"}
//! ```
//!
//! Templates escape what they are given by themselves, but for JSON in scripts.

use std::fmt::Write as _;

use askama::Template;

use crate::error::{ApiError, Result};

/// A document of a template.
///
/// Errors: none that is expected; what the template says.
pub fn rendered(document: &impl Template) -> Result<String> {
    document
        .render()
        .map_err(|error| ApiError::internal(format!("a page cannot be drawn: {error}")))
}

/// JSON that can stand inside a script element. These characters occur in JSON only within
/// strings, where an escape means the same.
pub fn escape_json(json: &str) -> String {
    let mut out = String::with_capacity(json.len());
    for c in json.chars() {
        match c {
            '<' | '>' | '&' | '\u{2028}' | '\u{2029}' => {
                // Writing to a string cannot fail.
                let _ = write!(out, "\\u{:04x}", u32::from(c));
            }
            c => out.push(c),
        }
    }
    out
}
