//! The server of Inlay: REST, gRPC and embed pages over the engine.
//!
//! The groups of modules below are floors: a module uses those of the groups above it, never of
//! its own group or below. `app` is the product as ordinary functions; `http` and `grpc` are how it
//! is spoken; `serve` puts them together.

mod error;

mod base;

mod config;
mod store;

mod app;

mod web;

mod grpc;
mod http;

mod serve;

pub use config::{Config, RateLimits, unknown_variable};
pub use error::Code;
pub use inlay_engine as engine;
pub use serve::{Running, serve, serve_with};

use serde_path_to_error::Error as PathError;

/// Field, code and message of a JSON value that does not have the shape it must have.
fn error_path(error: &PathError<serde_json::Error>) -> (Option<String>, Code, String) {
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
