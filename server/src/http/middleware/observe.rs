//! Around every request: an id, a line in the log, errors in one shape, headers of every response.
//!
//! ```text
//! INFO …observe: request request_id=01a21f84-f1e0-7677-839c-8e1bd7c39263 method="POST" path="/v1/auth/register" status=201 duration_ms=207.955363
//! INFO …observe: request refused request_id=01a21f84-f2b2-… method="POST" path="/v1/auth/register" status=409 duration_ms=0.152432 code="duplicate_email"
//! ERROR …observe: request failed request_id=… method="GET" path="/v1/query" status=500 duration_ms=… code="internal" cause="panic: …"
//! ```
//!
//! The client of the second one has the same id in `X-Request-Id` and in the body:
//!
//! ```text
//! 409 {"code": "duplicate_email", "error": "an account with this e-mail address exists", "request_id": "01a21f84-f2b2-…", …}
//! ```

use std::{
    pin::Pin,
    sync::atomic::Ordering,
    time::{Duration, Instant},
};

use axum::{
    Json,
    extract::{MatchedPath, Request, State},
    http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, Version, header},
    middleware::Next,
    response::{IntoResponse, Response},
};
use futures::FutureExt as _;
use inlay_proto::names::REQUEST_ID_HEADER;
use tracing::{error, info, warn};

use super::cluster::{self, FromLeader};
use crate::{
    error::{ApiError, Code},
    http::{
        respond::{ErrorNote, error_body},
        state::context::Http,
    },
};

/// Longest time until an answer begins; then it is 503, "the request took too long". A stream may take longer once it has begun.
const ANSWER_TIME_MAX: Duration = Duration::from_secs(60);
const REQUEST_ID: HeaderName = HeaderName::from_static(REQUEST_ID_HEADER);
const CROSS_ORIGIN_RESOURCE_POLICY: HeaderName =
    HeaderName::from_static("cross-origin-resource-policy");

/// Gives the request an id, logs it, and puts the id on the answer and into an error's body.
///
/// The log has the pattern of the path, never the path or the query: they hold ids and tokens.
pub fn observe(
    State(http): State<Http>,
    request: Request,
    next: Next,
) -> impl Future<Output = Response> {
    let id = uuid::Uuid::now_v7().to_string();
    let method_name = known_method(request.method());
    // Read before the request is consumed; nothing for a path that no route has.
    let path = request.extensions().get::<MatchedPath>().cloned();
    let started = Instant::now();
    let closes = request.version() <= Version::HTTP_11 && http.is_draining.load(Ordering::Relaxed);
    // The future of this layer is without the request: smaller ones cost less.
    let answer: Pin<Box<dyn Future<Output = Response> + Send>> =
        match http.app.settings.membership.is_alone() {
            true => Box::pin(next.run(request)),
            false => Box::pin(cluster::answer(http.clone(), request, next)),
        };
    async move {
        let path = path.as_ref().map_or("(none)", MatchedPath::as_str);
        let response = in_one_shape(answer_of(answer).await);
        let mut response = observed(&http, response, id, method_name, path, started);
        if closes {
            response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
        }
        response
    }
}

/// Logs and counts an answer, and gives it its headers.
///
/// A 5xx is an error in the log, all other refusals are information: clients make mistakes all the time.
fn observed(
    http: &Http,
    mut response: Response,
    id: String,
    method_name: &'static str,
    path: &str,
    started: Instant,
) -> Response {
    let duration_ms = started.elapsed().as_secs_f64() * 1_000.0;
    let status = response.status().as_u16();
    // The leader has given it one, which its body may have as well.
    let id = match response.extensions().get::<FromLeader>() {
        Some(_) => id_of(response.headers()).unwrap_or(id),
        None => id,
    };
    http.requests.count(path, method_name, status, duration_ms / 1_000.0);
    if let Some(ErrorNote(note)) = response.extensions_mut().remove() {
        let (code, cause) = (note.code.name(), note.cause.as_deref().unwrap_or_default());
        // A server without billing works as it was configured.
        if status >= 500 && note.code != Code::BillingNotConfigured {
            error!(request_id = %id, method = method_name, path, status, duration_ms, code, cause, "request failed");
        } else {
            info!(request_id = %id, method = method_name, path, status, duration_ms, code, "request refused");
        }
        let mut body = error_body(&note);
        body["request_id"] = id.clone().into();
        // The body is written anew, since the layer within did not know the id; status and headers such as `Retry-After` stay.
        let (parts, _) = response.into_parts();
        let mut rebuilt = Json(body).into_response();
        *rebuilt.status_mut() = parts.status;
        for (name, value) in &parts.headers {
            if name != header::CONTENT_LENGTH && name != header::CONTENT_TYPE {
                rebuilt.headers_mut().append(name, value.clone());
            }
        }
        response = rebuilt;
    } else {
        info!(request_id = %id, method = method_name, path, status, duration_ms, "request");
    }
    if let Ok(value) = HeaderValue::try_from(id) {
        response.headers_mut().insert(REQUEST_ID, value);
    }
    secure(response.headers_mut(), http.app.settings.base_url.starts_with("https://"));
    response
}

/// The id that an answer has.
fn id_of(headers: &HeaderMap) -> Option<String> {
    headers.get(REQUEST_ID)?.to_str().ok().map(str::to_owned)
}

/// The answer of the layers within: 504 where it takes too long, 500 where a handler panics.
async fn answer_of(answer: Pin<Box<impl Future<Output = Response> + ?Sized>>) -> Response {
    let guarded = std::panic::AssertUnwindSafe(answer).catch_unwind();
    match tokio::time::timeout(ANSWER_TIME_MAX, guarded).await {
        Ok(Ok(response)) => response,
        Ok(Err(panic)) => after_panic(panic),
        Err(_) => StatusCode::GATEWAY_TIMEOUT.into_response(),
    }
}

/// Headers that keep browsers from doing with an answer what it is not for. A page that needs more
/// has said so itself.
///
/// The answer of an API has all five as they are here; `/embed/…` has a policy of its own, files have `Cache-Control` and are for any origin.
/// Over HTTPS, `Strict-Transport-Security` makes browsers use HTTPS only, for a year.
fn secure(headers: &mut HeaderMap, is_https: bool) {
    let defaults = [
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::CONTENT_SECURITY_POLICY, "default-src 'none'; frame-ancestors 'none'"),
        (header::REFERRER_POLICY, "no-referrer"),
        (header::CACHE_CONTROL, "no-store"),
        (CROSS_ORIGIN_RESOURCE_POLICY, "same-origin"),
    ];
    // One allocation for all of them: this runs for each answer.
    headers.reserve(defaults.len() + 1);
    for (name, value) in defaults {
        headers.entry(name).or_insert(HeaderValue::from_static(value));
    }
    if is_https {
        let a_year = HeaderValue::from_static("max-age=31536000");
        headers.insert(header::STRICT_TRANSPORT_SECURITY, a_year);
    }
}

/// The method, if it is one that everybody knows: others are without number, and would be a row of the metrics each.
fn known_method(method: &Method) -> &'static str {
    const KNOWN: [Method; 9] = [
        Method::GET,
        Method::POST,
        Method::PUT,
        Method::PATCH,
        Method::DELETE,
        Method::HEAD,
        Method::OPTIONS,
        Method::TRACE,
        Method::CONNECT,
    ];
    const NAMES: [&str; 9] =
        ["GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS", "TRACE", "CONNECT"];
    let at = KNOWN.iter().position(|known| known == method);
    at.and_then(|at| NAMES.get(at)).copied().unwrap_or("other")
}

/// Answers of layers that know nothing of our errors, such as the 405 of the router or the 404 of a file, in the one shape.
fn in_one_shape(response: Response) -> Response {
    let extensions = response.extensions();
    if extensions.get::<ErrorNote>().is_some() || extensions.get::<FromLeader>().is_some() {
        return response;
    }
    let code = match response.status() {
        StatusCode::PAYLOAD_TOO_LARGE => Code::PayloadTooLarge,
        StatusCode::UNSUPPORTED_MEDIA_TYPE => Code::UnsupportedMediaType,
        StatusCode::METHOD_NOT_ALLOWED => Code::MethodNotAllowed,
        StatusCode::REQUEST_TIMEOUT | StatusCode::GATEWAY_TIMEOUT => Code::Overloaded,
        StatusCode::BAD_REQUEST if is_plain(&response) => Code::InvalidField,
        StatusCode::NOT_FOUND if is_plain(&response) => Code::NotFound,
        _ => return response,
    };
    let message = match code {
        Code::PayloadTooLarge => "the body is larger than this path accepts",
        Code::UnsupportedMediaType => "this content encoding or type is not supported",
        Code::MethodNotAllowed => "this path does not have this method",
        Code::InvalidField => "the request cannot be read",
        Code::NotFound => "there is nothing at this path",
        _ => "the request took too long",
    };
    ApiError::new(code, message).into_response()
}

/// A framework's text, not an answer or a page of ours.
fn is_plain(response: &Response) -> bool {
    let content_type = response.headers().get(header::CONTENT_TYPE);
    content_type.is_none_or(|value| value.as_bytes().starts_with(b"text/plain"))
}

/// A panic in a handler: the request fails with 500, the process goes on. The text of the panic is for the log.
fn after_panic(panic: Box<dyn std::any::Any + Send>) -> Response {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    let text = text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_default();
    warn!(panic = text, "a handler panicked");
    ApiError::internal(format!("panic: {text}")).into_response()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_handlers_panic_is_an_answer() {
        let panics = || -> Response { panic!("as a test wants") };
        let answer = answer_of(Box::pin(async move { panics() })).await;
        assert_eq!(answer.status(), StatusCode::INTERNAL_SERVER_ERROR);
        let ErrorNote(note) = answer.extensions().get().unwrap();
        assert_eq!(
            (note.code, note.cause.as_deref()),
            (Code::Internal, Some("panic: as a test wants"))
        );
        let answer = answer_of(Box::pin(async { StatusCode::CREATED.into_response() })).await;
        assert_eq!(answer.status(), StatusCode::CREATED);
    }

    #[tokio::test(start_paused = true)]
    async fn an_answer_that_takes_too_long_is_refused() {
        let answer = answer_of(Box::pin(std::future::pending())).await;
        assert_eq!(answer.status(), StatusCode::GATEWAY_TIMEOUT);
        assert_eq!(in_one_shape(answer).status().as_u16(), Code::Overloaded.status());
    }
}
