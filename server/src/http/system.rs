//! Whether the process lives, and whether it serves. And files for browsers.

use axum::{
    Json,
    extract::{Path, State},
    http::{HeaderValue, StatusCode, header},
    response::{IntoResponse, Response},
};
use serde_json::{Value, json};

use super::context::Http;
use crate::error::{ApiError, Code, Result};

/// The process lives.
pub async fn healthz() -> Json<Value> {
    Json(json!({"status": "ok"}))
}

/// The store is recovered and takes writes.
pub async fn readyz(State(http): State<Http>) -> Result<Json<Value>> {
    match http.app.engine.trouble() {
        None => Ok(Json(json!({"status": "ready"}))),
        Some(why) => Err(ApiError {
            cause: Some(why),
            ..ApiError::new(Code::Overloaded, "the store cannot write; the log says why")
        }),
    }
}

/// A file of the hashed tree: it never changes under its name.
pub async fn asset(
    State(http): State<Http>,
    Path((hash, path)): Path<(String, String)>,
) -> Response {
    let is_current = http.files.base().ends_with(&format!("/{hash}"));
    match http.files.find(&path).filter(|_| is_current) {
        Some(file) => (
            [
                (header::CONTENT_TYPE, HeaderValue::from_static(file.content_type)),
                (
                    header::CACHE_CONTROL,
                    HeaderValue::from_static("public, max-age=31536000, immutable"),
                ),
                (header::ACCESS_CONTROL_ALLOW_ORIGIN, HeaderValue::from_static("*")),
                (
                    header::HeaderName::from_static("cross-origin-resource-policy"),
                    HeaderValue::from_static("cross-origin"),
                ),
            ],
            file.bytes.clone(),
        )
            .into_response(),
        None => (StatusCode::NOT_FOUND, "no such file").into_response(),
    }
}
