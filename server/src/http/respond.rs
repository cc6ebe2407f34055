//! Answers: JSON, and the one shape of errors.

use axum::{
    Json,
    http::{HeaderValue, StatusCode, header},
    response::{IntoResponse, Response},
};
use serde_json::{Value, json};

use crate::error::{ApiError, Code};

/// Put into the response so that the outer layer can log it and add the request id.
#[derive(Clone)]
pub struct ErrorNote(pub ApiError);

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        let status =
            StatusCode::from_u16(self.code.status()).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let mut response = (status, Json(error_body(&self))).into_response();
        if let Some(seconds) = self.retry_after_seconds() {
            response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from(seconds));
        }
        if self.code.status() == 401 {
            response
                .headers_mut()
                .insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        response.extensions_mut().insert(ErrorNote(self));
        response
    }
}

/// The body of an error, without the request id, which the outer layer adds.
pub fn error_body(error: &ApiError) -> Value {
    let mut body = json!({"error": error.message, "code": error.code.name()});
    if let Some(field) = &error.field {
        body["field"] = json!(field);
        body["details"] =
            json!([{"field": field, "code": error.code.name(), "message": error.message}]);
    }
    if let Some(limit) = &error.plan_limit {
        body["plan"] = json!(limit.plan);
        body["upgrade_to"] = json!(limit.upgrade_to);
        body["limit"] = json!(limit.limit);
        body["used"] = json!(limit.used);
    }
    body
}

/// An unknown path.
pub async fn no_such_path() -> ApiError {
    ApiError::new(Code::NotFound, "there is nothing at this path")
}

/// A known path with a method that it does not have.
pub async fn no_such_method() -> ApiError {
    ApiError::new(Code::MethodNotAllowed, "this path does not have this method")
}
