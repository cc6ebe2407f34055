//! `GET` and `POST /unsubscribe?token=…`: the page behind the link in mails that stops them.
//!
//! Opening the link changes nothing, since scanners of mails open links. The button of the page does, and a mail program
//! that sends `List-Unsubscribe=One-Click` (RFC 8058).

use askama::Template;
use axum::{
    extract::{Query, State, rejection::QueryRejection},
    http::{HeaderValue, StatusCode, header},
    response::{IntoResponse, Response},
};
use serde::Deserialize;

use crate::{
    app::{App, MailSource, MailSubscription},
    error::{Code, Result},
    http::state::context::Http,
};

#[derive(Deserialize)]
pub struct Parameters {
    #[serde(default)]
    token: String,
}

/// The page posts to itself.
const PAGE_POLICY: &str = "default-src 'none'; style-src 'self'; font-src 'self'; base-uri 'none'; \
                           form-action 'self'; frame-ancestors 'none'";

#[derive(Template)]
#[template(path = "unsubscribe.html")]
struct UnsubscribePage {
    style: String,
    found: Option<MailSubscription>,
}

/// Asks whether the mails should stop.
pub async fn ask(http: State<Http>, query: Result<Query<Parameters>, QueryRejection>) -> Response {
    answer(http, query, App::mail_subscription).await
}

/// Stops the mails of the link.
pub async fn stop(http: State<Http>, query: Result<Query<Parameters>, QueryRejection>) -> Response {
    answer(http, query, App::unsubscribe).await
}

async fn answer(
    State(http): State<Http>,
    query: Result<Query<Parameters>, QueryRejection>,
    of: fn(&App, &str) -> Result<MailSubscription>,
) -> Response {
    let token = query.map_or_else(|_| String::new(), |Query(parameters)| parameters.token);
    let (status, found) = match http.run(move |app| of(app, &token)).await {
        Ok(found) => (StatusCode::OK, Some(found)),
        Err(error) if error.code == Code::NotFound => (StatusCode::NOT_FOUND, None),
        Err(error) => return error.into_response(),
    };
    let page = UnsubscribePage { style: format!("{}/dist/docs.css", http.files.base()), found };
    let fixed = |text: &'static str| HeaderValue::from_static(text);
    let headers = [
        (header::CONTENT_TYPE, fixed("text/html; charset=utf-8")),
        (header::CONTENT_SECURITY_POLICY, fixed(PAGE_POLICY)),
        (header::CACHE_CONTROL, fixed("no-store")),
        (header::REFERRER_POLICY, fixed("no-referrer")),
    ];
    (status, headers, page.render().unwrap_or_default()).into_response()
}
