//! What handlers take from a request, with errors that name the field.

use axum::{
    body::Bytes,
    extract::{FromRequestParts, RawPathParams},
    http::{HeaderMap, header, request::Parts},
};
use serde::de::DeserializeOwned;

use crate::{
    app::{Caller, Viewer},
    base::json as base_json,
    error::{ApiError, Code, Result},
    http::caller::SessionCookie,
};

impl<S: Send + Sync> FromRequestParts<S> for Caller {
    type Rejection = ApiError;
    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self> {
        found(parts.extensions.get().cloned())
    }
}

impl<S: Send + Sync> FromRequestParts<S> for Viewer {
    type Rejection = ApiError;
    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self> {
        found(parts.extensions.get().cloned())
    }
}

impl<S: Send + Sync> FromRequestParts<S> for SessionCookie {
    type Rejection = ApiError;
    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self> {
        found(parts.extensions.get().cloned())
    }
}

/// The guard puts them there for every operation that allows such a caller.
fn found<T>(value: Option<T>) -> Result<T> {
    value.ok_or_else(|| {
        ApiError::new(Code::Unauthenticated, "valid credentials for this operation are missing")
    })
}

/// The `{id}` of a path, a UUID.
pub struct Id(pub String);

impl<S: Send + Sync> FromRequestParts<S> for Id {
    type Rejection = ApiError;
    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self> {
        let id = parameter(parts, state, "id").await?;
        if id.len() == 36 && uuid::Uuid::try_parse(&id).is_ok() {
            return Ok(Self(id));
        }
        Err(ApiError::field(Code::InvalidField, "id", "id is not a UUID"))
    }
}

/// The `{widget_id}` of a path, any text.
pub struct WidgetId(pub String);

impl<S: Send + Sync> FromRequestParts<S> for WidgetId {
    type Rejection = ApiError;
    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self> {
        parameter(parts, state, "widget_id").await.map(Self)
    }
}

/// The `{tenant_id}` of a path, any text.
pub struct TenantId(pub String);

impl<S: Send + Sync> FromRequestParts<S> for TenantId {
    type Rejection = ApiError;
    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self> {
        parameter(parts, state, "tenant_id").await.map(Self)
    }
}

/// The `{user_id}` of a path, any text.
pub struct UserId(pub String);

impl<S: Send + Sync> FromRequestParts<S> for UserId {
    type Rejection = ApiError;
    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self> {
        parameter(parts, state, "user_id").await.map(Self)
    }
}

async fn parameter<S: Send + Sync>(parts: &mut Parts, state: &S, name: &str) -> Result<String> {
    let wrong = || ApiError::field(Code::InvalidField, name, format!("{name} is not readable"));
    let parameters = RawPathParams::from_request_parts(parts, state).await.map_err(|_| wrong())?;
    let value =
        parameters.iter().find(|(known, _)| *known == name).map(|(_, value)| value.to_owned());
    value.ok_or_else(wrong)
}

/// Reads a JSON body.
///
/// Errors: 415 for another media type, 400 naming the field that is wrong.
pub fn json<T: DeserializeOwned>(headers: &HeaderMap, body: &Bytes) -> Result<T> {
    let media_type = media_type(headers);
    if media_type != "application/json" && !media_type.ends_with("+json") {
        return Err(ApiError::new(
            Code::UnsupportedMediaType,
            "the body must be JSON: Content-Type: application/json",
        ));
    }
    let encoding = headers.get(header::CONTENT_ENCODING);
    if encoding.is_some_and(|encoding| encoding != "identity") {
        let message = "only events may be sent compressed";
        return Err(ApiError::new(Code::UnsupportedMediaType, message));
    }
    let text = std::str::from_utf8(body)
        .map_err(|_| ApiError::new(Code::InvalidJson, "the body is not UTF-8"))?;
    base_json::check_shape(text)?;
    let mut deserializer = serde_json::Deserializer::from_str(text);
    let value = serde_path_to_error::deserialize(&mut deserializer).map_err(|error| {
        if !error.inner().is_data() {
            let message = format!("the body is not valid JSON: {}", error.inner());
            return ApiError::new(Code::InvalidJson, message);
        }
        let (field, code, message) = base_json::explain(&error);
        ApiError { field, ..ApiError::new(code, message) }
    })?;
    deserializer.end().map_err(|error| {
        ApiError::new(Code::InvalidJson, format!("the body is not valid JSON: {error}"))
    })?;
    Ok(value)
}

/// The media type of a request without its parameters, in lower case.
pub fn media_type(headers: &HeaderMap) -> String {
    let value =
        headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    value.split(';').next().unwrap_or_default().trim().to_ascii_lowercase()
}
