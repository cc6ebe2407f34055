//! `POST /v1/events`.

use std::io::Read;

use axum::{
    Json,
    body::{Body, Bytes, to_bytes},
    extract::State,
    http::{HeaderMap, header},
};
use inlay_proto::names::NDJSON;
use serde_json::{Value, json};

use crate::{
    app::{App, Caller},
    error::{ApiError, Code, Result},
    http::{context::Http, extract::media_type},
};

/// Bytes of a body after decompression, at most.
const BODY_BYTES_MAX: usize = 10 << 20;

/// A body must arrive within this time.
const BODY_TIME_MAX: std::time::Duration = std::time::Duration::from_secs(20);

/// Stores events. 200 once they are on disk and visible; refused ones are listed.
pub async fn ingest(
    State(http): State<Http>,
    caller: Caller,
    headers: HeaderMap,
    body: Body,
) -> Result<Json<Value>> {
    let is_ndjson = match media_type(&headers).as_str() {
        "application/json" => false,
        NDJSON => true,
        _ => {
            let message = "events are sent as application/json or application/x-ndjson";
            return Err(ApiError::new(Code::UnsupportedMediaType, message));
        }
    };
    let encoding = Encoding::of(&headers)?;
    let receiving = http.body_place(encoding.body_bytes(&headers)).await?;
    let received = tokio::time::timeout(BODY_TIME_MAX, to_bytes(body, BODY_BYTES_MAX)).await;
    let body = received
        .map_err(|_| ApiError::new(Code::Overloaded, "the body took too long to arrive"))?
        .map_err(|error| unreadable(&error))?;
    let body = match encoding {
        Encoding::Identity => body,
        _ => http.run(move |_| encoding.decode(&body)).await?,
    };
    let place = http.ingest_place(body.len()).await?;
    drop(receiving);
    let work = move |app: &App| app.ingest(&caller, &body, is_ndjson);
    let accepted = http.run_in(Some(place), work).await?;
    http.requests.reject(accepted.rejected.len());
    let errors: Vec<Value> = accepted
        .rejected
        .iter()
        .map(|event| {
            json!({
                "index": event.index, "event_id": event.event_id, "field": event.field,
                "code": event.code.name(), "message": event.message,
            })
        })
        .collect();
    Ok(Json(json!({
        "accepted": accepted.accepted,
        "status": if errors.is_empty() { "ok" } else { "partial" },
        "duplicates": accepted.duplicates,
        "rejected": errors.len(),
        "errors": errors,
    })))
}

/// How a body is compressed.
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
