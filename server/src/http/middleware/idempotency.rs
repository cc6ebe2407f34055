//! `Idempotency-Key`: the first answer to a POST is repeated for a day.
//!
//! Only callers with credentials can name a request. Answers to requests that changed something are kept,
//! unless they are too long to be worth it.
//!
//! ```text
//! POST /v1/saved-queries {"name": "A", "sql": "SELECT 1"}, Idempotency-Key: order-4711
//! 201 {"id": "01a21f87-784b-7001-b917-3a0e2b3519a7", …}
//! the same again
//! 201 {"id": "01a21f87-784b-7001-b917-3a0e2b3519a7", …}, Idempotent-Replayed: true
//! POST /v1/saved-queries {"name": "B", "sql": "SELECT 1"}, Idempotency-Key: order-4711
//! 409 {"error": "this key was used for another request", "code": "conflict", "field": "Idempotency-Key", …}
//! ```
//!
//! Two requests are the same when credential, environment, path with query, media type, encoding and body are. The store has the key, the
//! fingerprint of these, and the answer under `g/idempotent_request/<id>`, encrypted by a key that only the client can name.
//!
//! ```text
//! refused (4xx, 5xx)          not stored: sent again, it is carried out again
//! changed nothing             not stored either
//! killed before the answer    409 the request was carried out, but its answer is lost
//! ```

use std::sync::Arc;

use axum::{
    body::{Body, to_bytes},
    extract::Request,
    http::{HeaderName, HeaderValue, StatusCode, header},
    middleware::Next,
    response::Response,
};
use inlay_proto::names::IDEMPOTENCY_HEADER;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::{
    app::{Caller, Known, NamedRequest},
    base::secret,
    error::{ApiError, Code, Result},
    http::state::context::{ACTING, Http, NAMED},
};

/// Characters of a name, at most.
const NAME_CHARS_MAX: usize = 255;
/// Bytes of a body, at most: those of events.
const BODY_BYTES_MAX: usize = 10 << 20;
/// Bytes of an answer that is kept, at most.
const ANSWER_BYTES_MAX: usize = 2 << 20;
/// A body must arrive within this time.
const BODY_TIME_MAX: std::time::Duration = std::time::Duration::from_secs(20);

/// An answer as it is stored, as JSON before encryption. Its headers are not, but for the media type: the request id is of each request.
#[derive(Serialize, Deserialize)]
struct Kept {
    status: u16,
    content_type: Option<String>,
    body: String,
}

/// The idempotency key that a request carries; `None` without the header.
///
/// Errors: 400, "Idempotency-Key must have 1 to 255 printable characters".
pub fn name_of(request: &Request) -> Result<Option<String>> {
    let Some(value) = request.headers().get(IDEMPOTENCY_HEADER) else { return Ok(None) };
    let name = value.to_str().unwrap_or_default();
    if name.is_empty()
        || name.len() > NAME_CHARS_MAX
        || name.contains(|char: char| char.is_control())
    {
        let message =
            format!("Idempotency-Key must have 1 to {NAME_CHARS_MAX} printable characters");
        return Err(ApiError::field(Code::InvalidField, "Idempotency-Key", message));
    }
    Ok(Some(name.to_owned()))
}

/// Carries a named request out, or repeats the answer that it had.
///
/// Errors: 409 while the first one runs, for another request with this key, and where the answer is lost; 413 and 503 for its body.
pub async fn once(
    http: &Http,
    caller: Caller,
    credential: &str,
    name: &str,
    request: Request,
    next: Next,
) -> Result<Response> {
    let (parts, body) = request.into_parts();
    let said = parts.headers.get(header::CONTENT_LENGTH);
    let said = said.and_then(|value| value.to_str().ok()?.parse().ok());
    let permit = http.body_permit(said.unwrap_or(BODY_BYTES_MAX).min(BODY_BYTES_MAX)).await?;
    let received = tokio::time::timeout(BODY_TIME_MAX, to_bytes(body, BODY_BYTES_MAX)).await;
    let body = received
        .map_err(|_| ApiError::new(Code::Overloaded, "the body took too long to arrive"))?
        .map_err(|_| {
            ApiError::new(Code::PayloadTooLarge, "the body is larger than any path accepts")
        })?;
    let path = parts.uri.path_and_query().map_or("", |path| path.as_str());
    // Zero bytes part the values: without them "ab" and "c" would be "a" and "bc".
    let mut fingerprint = Sha256::new().chain_update(&caller.environment.id).chain_update(path);
    for header in [header::CONTENT_TYPE, header::CONTENT_ENCODING] {
        let value = parts.headers.get(header).map_or(&b""[..], HeaderValue::as_bytes);
        fingerprint = fingerprint.chain_update("\0").chain_update(value);
    }
    let fingerprint = secret::hex(&fingerprint.chain_update("\0").chain_update(&body).finalize());
    let attempt = http.app.new_id();
    let named = NamedRequest::new(&caller.org, credential, name, fingerprint, attempt);
    let under_way = http.under_way.enter(&named.id)?;
    let asked = named.clone();
    if let Known::Answer(kept) = http.run(move |app| app.known_request(&asked)).await? {
        return repeat(&kept);
    }
    // What works on the body takes memory for it again.
    drop(permit);
    let request = Request::from_parts(parts, Body::from(body));
    let http = http.clone();
    // A client that goes away comes back for the answer: the work goes on without it.
    let work = tokio::spawn(async move {
        let handled = NAMED.scope(Arc::new(named.clone()), next.run(request));
        let response = ACTING.scope(caller, handled).await;
        let kept = keep(&http, named, response).await;
        drop(under_way);
        kept
    });
    work.await.unwrap_or_else(|error| Err(ApiError::internal(format!("a task ended: {error}"))))
}

/// Stores an answer that is a success of at most 2 MiB; a longer one passes on unstored. `App::keep_answer` stores it only where the request
/// has made a change.
async fn keep(http: &Http, named: NamedRequest, response: Response) -> Result<Response> {
    let status = response.status();
    if !status.is_success() {
        return Ok(response);
    }
    let (parts, body) = response.into_parts();
    let length = http_body::Body::size_hint(&body).exact().unwrap_or(u64::MAX);
    if length > ANSWER_BYTES_MAX as u64 {
        return Ok(Response::from_parts(parts, body));
    }
    let body = to_bytes(body, ANSWER_BYTES_MAX)
        .await
        .map_err(|error| ApiError::internal(format!("an answer cannot be read: {error}")))?;
    let content_type = parts.headers.get(header::CONTENT_TYPE);
    let kept = Kept {
        status: status.as_u16(),
        content_type: content_type.and_then(|value| value.to_str().ok()).map(str::to_owned),
        body: String::from_utf8_lossy(&body).into_owned(),
    };
    write(http, named, &kept).await;
    Ok(Response::from_parts(parts, Body::from(body)))
}

/// The request was carried out: that its answer cannot be kept does not change what it was.
async fn write(http: &Http, named: NamedRequest, kept: &Kept) {
    let Ok(kept) = serde_json::to_vec(kept) else { return };
    if let Err(error) = http.run(move |app| app.keep_answer(&named, &kept)).await {
        tracing::warn!(code = error.code.name(), %error, "cannot keep an answer");
    }
}

/// The stored answer as a response, with `Idempotent-Replayed: true`.
fn repeat(kept: &[u8]) -> Result<Response> {
    let kept: Kept = serde_json::from_slice(kept)
        .map_err(|error| ApiError::internal(format!("a kept answer is unreadable: {error}")))?;
    let Kept { status, content_type, body } = kept;
    let mut response = Response::new(Body::from(body));
    *response.status_mut() = StatusCode::from_u16(status).unwrap_or(StatusCode::OK);
    if let Some(value) = content_type.and_then(|text| HeaderValue::from_str(&text).ok()) {
        response.headers_mut().insert(header::CONTENT_TYPE, value);
    }
    let name = HeaderName::from_static("idempotent-replayed");
    response.headers_mut().insert(name, HeaderValue::from_static("true"));
    Ok(response)
}
