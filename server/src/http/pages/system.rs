//! Whether the process lives, and whether it serves. And the reference of the API.
//!
//! ```text
//! GET /healthz        200 {"status":"ok"}        always: the process answers
//! GET /readyz         200 {"status":"ready"}     the store takes writes and its background work succeeds
//!                     503 {"code":"overloaded","error":"the store cannot write; the log says why","request_id":"…"}
//! GET /leaderz        200 {"status":"leads"}         this process takes changes: a store of its own, or the lease of one that several have
//!                     503 {"status":"follows"}
//! GET /openapi.json   200 application/json       about 240 KB, for programs
//! GET /docs           200 text/html              the same for people, without a script
//! ```
//!
//! A supervisor restarts by `/healthz` and sends no requests where `/readyz` fails: a restart does not mend a full disk.

use std::{
    future::{Ready, ready},
    sync::atomic::Ordering,
    time::Duration,
};

use axum::{
    Json,
    body::Bytes,
    extract::State,
    http::{HeaderValue, StatusCode, header},
    response::{IntoResponse, Response},
};
use serde_json::{Value, json};

use crate::{
    error::{ApiError, Code, Result},
    http::state::context::Http,
    web,
};

/// 200 as long as the process answers.
pub async fn healthz() -> Json<Value> {
    Json(json!({"status": "ok"}))
}

/// How far a process that follows may be behind.
const BEHIND_MAX: Duration = Duration::from_secs(2);

/// 200 while this process takes changes. A balancer may send all requests that change something there, and save them a hop.
pub async fn leaderz(State(http): State<Http>) -> (StatusCode, Json<Value>) {
    let membership = &http.app.settings.membership;
    let is_draining = http.is_draining.load(Ordering::Relaxed);
    match membership.leads() && membership.is_valid() && !is_draining {
        true => (StatusCode::OK, Json(json!({"status": "leads"}))),
        false => (StatusCode::SERVICE_UNAVAILABLE, Json(json!({"status": "follows"}))),
    }
}

/// 200 while the store takes writes and background work succeeds; 503 otherwise, with the cause in the log. A process that follows is ready
/// while it is less than two seconds behind and knows a leader; one that is to stop is not.
pub async fn readyz(State(http): State<Http>) -> Result<Json<Value>> {
    if http.is_draining.load(Ordering::Relaxed) {
        return Err(ApiError::new(Code::Overloaded, "this server is stopping"));
    }
    if let Some(standing) = http.app.settings.membership.standing() {
        let is_behind = standing.behind.is_none_or(|behind| behind > BEHIND_MAX);
        let is_valid = !standing.leads || http.app.settings.membership.is_valid();
        if is_behind || !standing.has_leader || !is_valid {
            return Err(ApiError {
                cause: Some(format!("{standing:?}")),
                ..ApiError::new(
                    Code::Overloaded,
                    "this server does not have the newest, or knows no leader; the log says why",
                )
            });
        }
    }
    match http.app.engine.trouble() {
        None => Ok(Json(json!({"status": "ready"}))),
        Some(why) => Err(ApiError {
            cause: Some(why),
            ..ApiError::new(Code::Overloaded, "the store cannot write; the log says why")
        }),
    }
}

/// The reference of the API: a document for programs, and a page for people. Bodies that all answers share.
pub struct Reference {
    document: Bytes,
    page: Bytes,
}

/// The page needs nothing but its style sheets and fonts: no script, no request.
const PAGE_POLICY: &str = "default-src 'none'; style-src 'self'; font-src 'self'; base-uri 'none'; \
                           form-action 'none'; frame-ancestors 'none'";

impl Reference {
    /// Both, drawn once at start from the document of the operations.
    pub fn new(http: &Http, document: &Value) -> Self {
        let base = http.files.base();
        let styles = ["dist/docs.css"].map(|file| format!("{base}/{file}"));
        let page = web::reference(document, &styles, &http.app.settings.base_url);
        Self { document: document.to_string().into(), page: page.into() }
    }

    /// The handler of `/openapi.json`.
    pub fn document(&self) -> impl Fn() -> Ready<Response> + Clone + Send + 'static {
        let body = self.document.clone();
        move || {
            let kind = [(header::CONTENT_TYPE, HeaderValue::from_static("application/json"))];
            ready((kind, body.clone()).into_response())
        }
    }

    /// The handler of `/docs`. Its content policy allows style sheets and fonts of this server, and nothing else.
    pub fn page(&self) -> impl Fn() -> Ready<Response> + Clone + Send + 'static {
        let body = self.page.clone();
        move || {
            let fixed = |text: &'static str| HeaderValue::from_static(text);
            let headers = [
                (header::CONTENT_TYPE, fixed("text/html; charset=utf-8")),
                (header::CONTENT_SECURITY_POLICY, fixed(PAGE_POLICY)),
            ];
            ready((headers, body.clone()).into_response())
        }
    }
}
