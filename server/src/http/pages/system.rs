//! Whether the process lives, and whether it serves. And the reference of the API.

use std::future::{Ready, ready};

use axum::{
    Json,
    body::Bytes,
    extract::State,
    http::{HeaderValue, header},
    response::{IntoResponse, Response},
};
use serde_json::{Value, json};

use crate::{
    error::{ApiError, Code, Result},
    http::state::context::Http,
    web,
};

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

/// The reference of the API: a document for programs, and a page for people.
pub struct Reference {
    document: Bytes,
    page: Bytes,
}

/// The page needs nothing but its style sheets.
const PAGE_POLICY: &str = "default-src 'none'; style-src 'self'; font-src 'self'; base-uri 'none'; \
                           form-action 'none'; frame-ancestors 'none'";

impl Reference {
    /// Both, made once.
    pub fn new(http: &Http, document: &Value) -> Self {
        let base = http.files.base();
        let styles = ["dist/docs.css"].map(|file| format!("{base}/{file}"));
        let page = web::reference(document, &styles, &http.app.settings.base_url);
        Self { document: document.to_string().into(), page: page.into() }
    }

    /// Answers the document.
    pub fn document(&self) -> impl Fn() -> Ready<Response> + Clone + Send + 'static {
        let body = self.document.clone();
        move || {
            let kind = [(header::CONTENT_TYPE, HeaderValue::from_static("application/json"))];
            ready((kind, body.clone()).into_response())
        }
    }

    /// Answers the page.
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
