//! `POST /v1/events`: JSON or NDJSON, compressed or not, of at most 10 MiB.
//!
//! Each event is checked alone: good ones are stored, others are listed with their position.
//!
//! ```text
//! POST /v1/events
//! {"events": [
//!   {"tenant_id": "acme", "event_name": "api_call", "timestamp": "2026-11-27T10:17:36.789Z", "event_id": "e_81", "user_id": "u_7",
//!    "string_props": {"model": "gpt-large"}, "numeric_props": {"latency_ms": 12.5}},
//!   {"tenant_id": "acme", "event_name": "api_call", "timestamp": "yesterday"}]}
//!
//! 200 {"accepted":1,"status":"partial","duplicates":0,"rejected":1,"errors":[
//!   {"index":1,"event_id":null,"field":"timestamp","code":"invalid_field","message":"timestamp is not an ISO 8601 date-time or date"}]}
//! the same again
//! 200 {"accepted":1,"status":"partial","duplicates":1,"rejected":1,…}      e_81 is stored once
//! ```
//!
//! As NDJSON, an event a line: `{"tenant_id":"globex"}` is refused with "event_name is required". Bodies that cannot be read at all:
//!
//! ```text
//! Content-Type: application/x-www-form-urlencoded     415 events are sent as application/json or application/x-ndjson
//! Content-Encoding: br                                415 a body may be compressed with gzip or zstd
//! more than 10 MiB, before or after decompression     413 a body has at most 10 MiB after decompression
//! slower than 20 s                                    503 the body took too long to arrive
//! ```

use std::io::Read;

use axum::{
    body::{Body, Bytes, to_bytes},
    extract::{FromRequest, Request, State},
    http::{HeaderMap, header},
};
use inlay_proto::names::NDJSON;
use serde::Serialize;
use utoipa::ToSchema;

use crate::{
    app::{App, Caller, Envelope, RawEvent, RejectedEvent},
    error::{ApiError, Code, Result},
    http::{
        extract::media_type,
        openapi::describe::{Description, Takes},
        respond::Answer,
        state::context::Http,
    },
};

/// Bytes of a body after decompression, at most.
const BODY_BYTES_MAX: usize = 10 << 20;

/// A body must arrive within this time.
const BODY_TIME_MAX: std::time::Duration = std::time::Duration::from_secs(20);

/// What became of the events.
#[derive(Serialize, ToSchema)]
pub struct Ingested {
    /// Stored now, or known already.
    #[schema(example = 998)]
    accepted: usize,
    /// `ok`, or `partial` when some were refused.
    #[schema(example = "partial")]
    status: &'static str,
    /// Events that were stored before, by their `event_id`.
    #[schema(example = 1)]
    duplicates: usize,
    /// Number of events that were refused.
    #[schema(example = 2)]
    rejected: usize,
    errors: Vec<RejectedView>,
}

/// An event that was refused.
#[derive(Serialize, ToSchema)]
#[schema(as = RejectedEvent)]
struct RejectedView {
    /// Position of the event in the request, from 0.
    #[schema(example = 17)]
    index: usize,
    event_id: Option<String>,
    #[schema(example = "timestamp")]
    field: Option<String>,
    #[schema(example = "invalid_field")]
    code: &'static str,
    message: String,
}

/// A body of events, not yet received.
pub struct EventBody {
    headers: HeaderMap,
    body: Body,
}

impl<S: Send + Sync> FromRequest<S> for EventBody {
    type Rejection = ApiError;
    async fn from_request(request: Request, _: &S) -> Result<Self> {
        let (parts, body) = request.into_parts();
        Ok(Self { headers: parts.headers, body })
    }
}

impl Takes for EventBody {
    fn takes(description: &mut Description) {
        let events = description.schema_of::<Envelope<'_>>();
        let event = description.schema_of::<RawEvent<'_>>();
        description.takes_body(vec![("application/json", events), (NDJSON, event)]);
        description.codes.extend([
            Code::InvalidJson,
            Code::InvalidField,
            Code::MissingField,
            Code::UnknownField,
            Code::OutOfRange,
            Code::TooManyEvents,
            Code::MonthlyEventsLimit,
            Code::PayloadTooLarge,
            Code::UnsupportedMediaType,
        ]);
    }
}

/// Stores events. 200 once they are on disk and visible; refused ones are listed.
///
/// Memory is granted twice: for the body while it is received, and four times its size for the work on it. So a slow sender holds nothing that
/// work needs.
///
/// Errors: 402 beyond the events of the month, 400 for more than 1,000 events, 503 where memory is not granted within 10 s.
pub async fn ingest(
    State(http): State<Http>,
    caller: Caller,
    sent: EventBody,
) -> Result<Answer<Ingested>> {
    let EventBody { headers, body } = sent;
    let is_ndjson = match media_type(&headers).as_str() {
        "application/json" => false,
        NDJSON => true,
        _ => {
            let message = "events are sent as application/json or application/x-ndjson";
            return Err(ApiError::new(Code::UnsupportedMediaType, message));
        }
    };
    let encoding = Encoding::of(&headers)?;
    let receiving = http.body_permit(encoding.body_bytes(&headers)).await?;
    let received = tokio::time::timeout(BODY_TIME_MAX, to_bytes(body, BODY_BYTES_MAX)).await;
    let body = received
        .map_err(|_| ApiError::new(Code::Overloaded, "the body took too long to arrive"))?
        .map_err(|error| unreadable(&error))?;
    let body = match encoding {
        Encoding::Identity => body,
        _ => http.run(move |_| encoding.decode(&body)).await?,
    };
    let permit = http.ingest_permit(body.len()).await?;
    drop(receiving);
    let work = move |app: &App| app.ingest(&caller, &body, is_ndjson);
    let accepted = http.run_in(Some(permit), work).await?;
    http.requests.reject(accepted.rejected.len());
    Ok(Answer(Ingested {
        accepted: accepted.accepted,
        status: if accepted.rejected.is_empty() { "ok" } else { "partial" },
        duplicates: accepted.duplicates,
        rejected: accepted.rejected.len(),
        errors: accepted.rejected.into_iter().map(refused).collect(),
    }))
}

fn refused(event: RejectedEvent) -> RejectedView {
    RejectedView {
        index: event.index,
        event_id: event.event_id,
        field: event.field,
        code: event.code.name(),
        message: event.message,
    }
}

/// How a body is compressed, by its `Content-Encoding`.
#[derive(Clone, Copy)]
enum Encoding {
    Identity,
    Gzip,
    Zstd,
}

impl Encoding {
    fn of(headers: &HeaderMap) -> Result<Self> {
        let Some(value) = headers.get(header::CONTENT_ENCODING) else { return Ok(Self::Identity) };
        match value.to_str().unwrap_or_default().trim().to_ascii_lowercase().as_str() {
            "" | "identity" => Ok(Self::Identity),
            "gzip" | "x-gzip" => Ok(Self::Gzip),
            "zstd" => Ok(Self::Zstd),
            _ => {
                let message = "a body may be compressed with gzip or zstd";
                Err(ApiError::new(Code::UnsupportedMediaType, message))
            }
        }
    }

    /// Bytes that a body takes at most until it is worked on.
    fn body_bytes(self, headers: &HeaderMap) -> usize {
        let said = headers.get(header::CONTENT_LENGTH);
        let said = said.and_then(|value| value.to_str().ok()?.parse().ok());
        match self {
            Self::Identity => said.unwrap_or(BODY_BYTES_MAX).min(BODY_BYTES_MAX),
            // It unfolds to as much.
            Self::Gzip | Self::Zstd => BODY_BYTES_MAX,
        }
    }

    /// The whole content: all members of a gzip file, all frames of zstd, and nothing behind them.
    fn decode(self, body: &Bytes) -> Result<Bytes> {
        let broken = |error: std::io::Error| {
            ApiError::new(Code::InvalidJson, format!("the body does not decompress: {error}"))
        };
        let reader: Box<dyn Read + '_> = match self {
            Self::Identity => return Ok(body.clone()),
            Self::Gzip => Box::new(flate2::read::MultiGzDecoder::new(&body[..])),
            Self::Zstd => Box::new(zstd::stream::read::Decoder::new(&body[..]).map_err(broken)?),
        };
        let mut out = Vec::new();
        reader.take(BODY_BYTES_MAX as u64 + 1).read_to_end(&mut out).map_err(broken)?;
        if out.len() > BODY_BYTES_MAX {
            return Err(too_large());
        }
        Ok(out.into())
    }
}

/// 413, for a body that was too long as it was sent, or became too long.
fn too_large() -> ApiError {
    let message = format!("a body has at most {} MiB after decompression", BODY_BYTES_MAX >> 20);
    ApiError::new(Code::PayloadTooLarge, message)
}

/// Too long, or broken on the way: the causes are nested, and only their texts tell.
fn unreadable(error: &axum::Error) -> ApiError {
    let mut cause: Option<&dyn std::error::Error> = Some(error);
    while let Some(error) = cause {
        if error.to_string().contains("length limit exceeded") {
            return too_large();
        }
        cause = error.source();
    }
    ApiError::new(Code::InvalidJson, format!("the body cannot be read: {error}"))
}
