//! `Idempotency-Key`: the first answer to a POST is repeated for a day.
//!
//! Only callers with credentials can name a request. Answers that say that the request was not really
//! tried (429, 5xx) are not kept, nor are answers that are too long to be worth it.

use std::sync::Arc;

use axum::{
    body::{Body, Bytes, to_bytes},
    extract::Request,
    http::{HeaderName, HeaderValue, StatusCode, header},
    middleware::Next,
    response::{IntoResponse as _, Response},
};
use inlay_proto::names::IDEMPOTENCY_HEADER;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::{
    context::{Http, NAMED},
    respond::ErrorNote,
};
use crate::{
    app::{Known, NamedRequest},
    base::secret,
    error::{ApiError, Code, Fault, PlanLimit, Result},
};

/// Characters of a name, at most.
const NAME_CHARS_MAX: usize = 255;
/// Bytes of a body, at most: those of events.
const BODY_BYTES_MAX: usize = 10 << 20;
/// Bytes of an answer that is kept, at most.
const ANSWER_BYTES_MAX: usize = 1 << 20;
/// A body must arrive within this time.
const BODY_TIME_MAX: std::time::Duration = std::time::Duration::from_secs(20);

/// An answer as it is kept.
#[derive(Serialize, Deserialize)]
enum Kept {
    Good { status: u16, content_type: Option<String>, body: String },
    Error(KeptError),
}

#[derive(Serialize, Deserialize)]
struct KeptError {
    code: String,
    message: String,
    field: Option<String>,
    faults: Vec<(String, String, String)>,
    plan: Option<(String, Option<String>, u64, u64)>,
}

/// The name that a request carries.
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

/// Carries a named request out, or repeats what it was answered with.
pub async fn once(
    http: &Http,
    org: &str,
    credential: &str,
    name: &str,
    request: Request,
    next: Next,
) -> Result<Response> {
    let (parts, body) = request.into_parts();
    let said = parts.headers.get(header::CONTENT_LENGTH);
    let said = said.and_then(|value| value.to_str().ok()?.parse().ok());
    let place = http.body_place(said.unwrap_or(BODY_BYTES_MAX).min(BODY_BYTES_MAX)).await?;
    let received = tokio::time::timeout(BODY_TIME_MAX, to_bytes(body, BODY_BYTES_MAX)).await;
    let body = received
        .map_err(|_| ApiError::new(Code::Overloaded, "the body took too long to arrive"))?
        .map_err(|_| {
            ApiError::new(Code::PayloadTooLarge, "the body is larger than any path accepts")
        })?;
    let fingerprint = Sha256::new()
        .chain_update(parts.method.as_str())
        .chain_update("\0")
        .chain_update(parts.uri.to_string())
        .chain_update("\0")
        .chain_update(&body);
    let named = NamedRequest::new(org, credential, name, secret::hex(&fingerprint.finalize()));
    let _under_way = http.under_way.enter(&named.id)?;
    let asked = named.clone();
    if let Known::Answer(kept) = http.run(move |app| app.known_request(&asked)).await? {
        return repeat(&kept);
    }
    let request = Request::from_parts(parts, Body::from(body));
    let response = NAMED.scope(Arc::new(named.clone()), next.run(request)).await;
    drop(place);
    keep(http, named, response).await
}

/// Keeps an answer, if it is one to keep.
async fn keep(http: &Http, named: NamedRequest, response: Response) -> Result<Response> {
    let status = response.status();
    if status.is_server_error() || status == StatusCode::TOO_MANY_REQUESTS {
        return Ok(response);
    }
    if let Some(ErrorNote(error)) = response.extensions().get() {
        let kept = Kept::Error(KeptError::of(error));
        write(http, named, &kept).await;
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
    let kept = Kept::Good {
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

fn repeat(kept: &[u8]) -> Result<Response> {
    let kept: Kept = serde_json::from_slice(kept)
        .map_err(|error| ApiError::internal(format!("a kept answer is unreadable: {error}")))?;
    let mut response = match kept {
        Kept::Error(error) => error.into_error().into_response(),
        Kept::Good { status, content_type, body } => {
            let mut response = Response::new(Body::from(Bytes::from(body)));
            *response.status_mut() = StatusCode::from_u16(status).unwrap_or(StatusCode::OK);
            if let Some(value) = content_type.and_then(|text| HeaderValue::from_str(&text).ok()) {
                response.headers_mut().insert(header::CONTENT_TYPE, value);
            }
            response
        }
    };
    let name = HeaderName::from_static("idempotent-replayed");
    response.headers_mut().insert(name, HeaderValue::from_static("true"));
    Ok(response)
}

impl KeptError {
    fn of(error: &ApiError) -> Self {
        let fault = |fault: &Fault| {
            (fault.field.clone(), fault.code.name().to_owned(), fault.message.clone())
        };
        let plan = error.plan_limit.as_deref();
        Self {
            code: error.code.name().to_owned(),
            message: error.message.clone(),
            field: error.field.clone(),
            faults: error.faults.iter().map(fault).collect(),
            plan: plan
                .map(|plan| (plan.plan.clone(), plan.upgrade_to.clone(), plan.limit, plan.used)),
        }
    }

    fn into_error(self) -> ApiError {
        let code = |name: &str| {
            let found = Code::ALL.iter().find(|code| code.name() == name);
            found.copied().unwrap_or(Code::Conflict)
        };
        let fault = |(field, name, message): (String, String, String)| Fault {
            field,
            code: code(&name),
            message,
        };
        ApiError {
            field: self.field,
            faults: self.faults.into_iter().map(fault).collect(),
            plan_limit: self.plan.map(|(plan, upgrade_to, limit, used)| {
                Box::new(PlanLimit { plan, upgrade_to, limit, used })
            }),
            ..ApiError::new(code(&self.code), self.message)
        }
    }
}
