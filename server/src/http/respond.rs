//! Answers: JSON with its status, lists, and the one shape of errors.
//!
//! A handler's return type is its answer, and the description of it in the OpenAPI document (`Gives`):
//!
//! ```text
//! Answer<T>        200 {…}
//! Created<T>       201 {…}
//! Accepted<T>      202 {…}              a job that has begun
//! AcceptedEmpty    202                  no body
//! NoContent        204
//! List<T>          200 {"data": […], "next": "01a21f84-f455-7000-a7e5-e8da328d01f9"}, or "next": null
//! Versioned<T>     200 {…}, ETag: "7"; or 304 where If-None-Match has "7"
//! Download         200, Content-Disposition: attachment; filename="Weekly-usage-2026-11-28.csv"; …
//! WithCookie<R>    as R, and Set-Cookie: service_session=…; HttpOnly; SameSite=Lax; Path=/; Max-Age=1209600
//! ApiError         its status, {"error": "alert not found", "code": "not_found"}
//! ```
//!
//! A 429 or 503 has `Retry-After`, a 401 `WWW-Authenticate: Bearer`. The request id is added by `middleware::observe`, which knows it.

use std::marker::PhantomData;

use axum::{
    Json,
    http::{HeaderValue, StatusCode, header},
    response::{IntoResponse, Response},
};
use serde::Serialize;
use serde_json::{Value, json, value::RawValue};
use utoipa::{
    ToSchema,
    openapi::{
        Content,
        schema::{ArrayBuilder, ObjectBuilder, Schema, SchemaType, Type},
    },
};

use super::openapi::describe::{Description, Gives};
use crate::error::{ApiError, Code, More};

/// 200 with an object.
pub struct Answer<T>(pub T);

/// 201 with what was made.
pub struct Created<T>(pub T);

/// 202 with what will be done.
pub struct Accepted<T>(pub T);

/// 200 with a file to be saved under a name.
///
/// `Übersicht.pdf` is sent as `filename="_bersicht.pdf"; filename*=UTF-8''%C3%9Cbersicht.pdf`: old clients take the first.
pub struct Download {
    /// Its name, with letters of any script.
    pub name: String,
    /// Its media type.
    pub content_type: &'static str,
    /// The whole content; files of reports have some megabytes at most.
    pub bytes: Vec<u8>,
}

/// 202 without a body: what will be done is nothing to show.
pub struct AcceptedEmpty;

/// 204 without a body.
pub struct NoContent;

/// 200 with a list.
pub struct List<T> {
    /// Entries of this page, in order.
    pub data: Vec<T>,
    /// Cursor of the next page; `None` on the last page.
    pub next: Option<String>,
}

/// 200 with an object whose JSON was written already, where its memory is accounted for. `T` is its schema.
pub struct Written<T>(pub String, pub PhantomData<T>);

/// 200 with an object and its version as `ETag`; 304 when the client has this version already.
pub struct Versioned<T> {
    /// Object that becomes the body.
    pub value: T,
    /// Version of the object, which is sent as `ETag`.
    pub version: u64,
    /// Header `If-None-Match`: versions that the client has.
    pub known: Option<HeaderValue>,
}

/// An answer that sets the session cookie.
pub struct WithCookie<R> {
    /// Answer that gets the header.
    pub answer: R,
    /// Complete value of the header `Set-Cookie`.
    pub cookie: String,
}

impl<T: Serialize> IntoResponse for Answer<T> {
    fn into_response(self) -> Response {
        Json(self.0).into_response()
    }
}

impl<T: Serialize> IntoResponse for Created<T> {
    fn into_response(self) -> Response {
        (StatusCode::CREATED, Json(self.0)).into_response()
    }
}

impl<T: Serialize> IntoResponse for Accepted<T> {
    fn into_response(self) -> Response {
        (StatusCode::ACCEPTED, Json(self.0)).into_response()
    }
}

impl IntoResponse for Download {
    fn into_response(self) -> Response {
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._".contains(&byte);
        let plain: String = self
            .name
            .chars()
            .map(|c| if u8::try_from(c).is_ok_and(is_plain) { c } else { '_' })
            .collect();
        // RFC 8187: bytes of UTF-8, but for letters and digits in hexadecimal.
        let mut encoded = String::new();
        for byte in self.name.bytes() {
            if is_plain(byte) {
                encoded.push(char::from(byte));
            } else {
                encoded.push_str(&format!("%{byte:02X}"));
            }
        }
        let disposition = format!("attachment; filename=\"{plain}\"; filename*=UTF-8''{encoded}");
        let headers = [
            (header::CONTENT_TYPE, self.content_type.to_owned()),
            (header::CONTENT_DISPOSITION, disposition),
        ];
        (headers, self.bytes).into_response()
    }
}

impl IntoResponse for AcceptedEmpty {
    fn into_response(self) -> Response {
        StatusCode::ACCEPTED.into_response()
    }
}

impl IntoResponse for NoContent {
    fn into_response(self) -> Response {
        StatusCode::NO_CONTENT.into_response()
    }
}

impl<T: Serialize> IntoResponse for List<T> {
    fn into_response(self) -> Response {
        Json(json!({"data": self.data, "next": self.next})).into_response()
    }
}

impl<T> From<Box<RawValue>> for Written<T> {
    fn from(json: Box<RawValue>) -> Self {
        Self(Box::<str>::from(json).into(), PhantomData)
    }
}

impl<T> IntoResponse for Written<T> {
    fn into_response(self) -> Response {
        let json = HeaderValue::from_static("application/json");
        ([(header::CONTENT_TYPE, json)], self.0).into_response()
    }
}

impl<T: Serialize> IntoResponse for Versioned<T> {
    fn into_response(self) -> Response {
        let tag = format!("\"{}\"", self.version);
        let is_known =
            self.known.as_ref().and_then(|known| known.to_str().ok()).is_some_and(|known| {
                known.split(',').any(|one| {
                    let one = one.trim();
                    one == "*" || one.strip_prefix("W/").unwrap_or(one) == tag
                })
            });
        let mut response = if is_known {
            StatusCode::NOT_MODIFIED.into_response()
        } else {
            Json(self.value).into_response()
        };
        if let Ok(tag) = HeaderValue::from_str(&tag) {
            response.headers_mut().insert(header::ETAG, tag);
        }
        response
    }
}

impl<R: IntoResponse> IntoResponse for WithCookie<R> {
    fn into_response(self) -> Response {
        let mut response = self.answer.into_response();
        if let Ok(cookie) = HeaderValue::from_str(&self.cookie) {
            response.headers_mut().append(header::SET_COOKIE, cookie);
        }
        response
    }
}

impl<T: ToSchema> Gives for Answer<T> {
    fn gives(description: &mut Description) {
        description.answers::<T>(200, "The object.");
    }
}

impl<T: ToSchema> Gives for Written<T> {
    fn gives(description: &mut Description) {
        description.answers::<T>(200, "The answer.");
    }
}

impl<T: ToSchema> Gives for Created<T> {
    fn gives(description: &mut Description) {
        description.answers::<T>(201, "What was made.");
    }
}

impl<T: ToSchema> Gives for Accepted<T> {
    fn gives(description: &mut Description) {
        description.answers::<T>(202, "What will be done.");
    }
}

impl Gives for Download {
    fn gives(description: &mut Description) {
        let mut response = utoipa::openapi::Response::new("The file.");
        for kind in ["text/csv", "image/png", "application/pdf"] {
            let content = Content::new(Some(utoipa::openapi::schema::empty()));
            response.content.insert(kind.to_owned(), content.into());
        }
        description.success.push((200, response));
        description.header("Content-Disposition", "`attachment`, with the name of the file.");
    }
}

impl Gives for AcceptedEmpty {
    fn gives(description: &mut Description) {
        let response = utoipa::openapi::Response::new("Accepted.");
        description.success.push((202, response));
    }
}

impl Gives for NoContent {
    fn gives(description: &mut Description) {
        let response = utoipa::openapi::Response::new("Done.");
        description.success.push((204, response));
    }
}

impl<T: ToSchema> Gives for List<T> {
    fn gives(description: &mut Description) {
        let items = description.schema_of::<T>();
        let next = ObjectBuilder::new()
            .schema_type(SchemaType::from_iter([Type::String, Type::Null]))
            .description(Some("The cursor of the next page; null at the end."));
        let list = ObjectBuilder::new()
            .property("data", ArrayBuilder::new().items(items))
            .required("data")
            .property("next", next)
            .required("next");
        description.answers_with(200, "The list.", Schema::from(list).into());
    }
}

impl<T: ToSchema> Gives for Versioned<T> {
    fn gives(description: &mut Description) {
        description.answers::<T>(200, "The object.");
        description.header("ETag", "The version, in quotes.");
        let unchanged = utoipa::openapi::Response::new("It has not changed.");
        description.success.push((304, unchanged));
    }
}

impl<R: Gives> Gives for WithCookie<R> {
    fn gives(description: &mut Description) {
        R::gives(description);
        description.header("Set-Cookie", "The session.");
    }
}

/// The error of a response, as an extension of it.
///
/// The outer layer logs it, with its cause, and writes the body again with the request id.
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
///
/// ```text
/// one field        {"error", "code", "field", "details": [{"field", "code", "message"}]}
/// several          the same of the first, and all of them in "details"
/// no field         {"error", "code"}
/// 402              and "plan", "upgrade_to", "limit", "used"
/// a statement      and "line", "column", "hint", each where it is known
/// ```
pub fn error_body(error: &ApiError) -> Value {
    let mut body = json!({"error": error.message, "code": error.code.name()});
    if let Some(field) = &error.field {
        body["field"] = json!(field);
        body["details"] =
            json!([{"field": field, "code": error.code.name(), "message": error.message}]);
    }
    if !error.faults.is_empty() {
        let fault = |fault: &crate::error::Fault| json!({"field": fault.field, "code": fault.code.name(), "message": fault.message});
        body["details"] = error.faults.iter().map(fault).collect();
    }
    match error.more.as_deref() {
        Some(More::Plan(limit)) => {
            body["plan"] = json!(limit.plan);
            body["upgrade_to"] = json!(limit.upgrade_to);
            body["limit"] = json!(limit.limit);
            body["used"] = json!(limit.used);
        }
        Some(More::Statement(advice)) => {
            if let Some((line, column)) = advice.position {
                body["line"] = json!(line);
                body["column"] = json!(column);
            }
            if let Some(hint) = &advice.hint {
                body["hint"] = json!(hint);
            }
        }
        Some(More::Elsewhere) | None => {}
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
