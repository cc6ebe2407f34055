//! `GET` and `POST /v1/unsubscribe?token=…`: the page behind the link in mails that stops them.
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
use utoipa::{IntoParams, openapi::Content};

use crate::{
    app::{MailSource, MailSubscription},
    error::{Code, Result},
    http::{
        extract::Params,
        openapi::describe::{Description, Gives, text_schema},
        state::context::Http,
    },
};

#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
pub struct UnsubscribeParameters {
    /// The token of the link.
    token: String,
}

/// The page posts to itself.
const PAGE_POLICY: &str = "default-src 'none'; style-src 'self'; font-src 'self'; base-uri 'none'; \
                           form-action 'self'; frame-ancestors 'none'";

/// What became of a link, as a page.
#[derive(Template)]
#[template(path = "unsubscribe.html")]
pub struct UnsubscribePage {
    style: String,
    found: Option<MailSubscription>,
}

/// Asks whether the mails should stop. The answer is always a page.
pub async fn ask(
    State(http): State<Http>,
    query: Result<Query<UnsubscribeParameters>, QueryRejection>,
) -> Response {
    let token = query.map_or_else(|_| String::new(), |Query(parameters)| parameters.token);
    match http.run(move |app| app.mail_subscription(&token)).await {
        Ok(found) => UnsubscribePage::new(&http, Some(found)).into_response(),
        Err(error) if error.code == Code::NotFound => {
            (StatusCode::NOT_FOUND, UnsubscribePage::new(&http, None)).into_response()
        }
        Err(error) => error.into_response(),
    }
}

/// Stops the mails of the link. Its token is the credential.
pub async fn stop(
    State(http): State<Http>,
    Params(parameters): Params<UnsubscribeParameters>,
) -> Result<UnsubscribePage> {
    let found = http.run(move |app| app.unsubscribe(&parameters.token)).await?;
    Ok(UnsubscribePage::new(&http, Some(found)))
}

impl UnsubscribePage {
    fn new(http: &Http, found: Option<MailSubscription>) -> Self {
        Self { style: format!("{}/dist/docs.css", http.files.base()), found }
    }
}

impl IntoResponse for UnsubscribePage {
    fn into_response(self) -> Response {
        let fixed = |text: &'static str| HeaderValue::from_static(text);
        let headers = [
            (header::CONTENT_TYPE, fixed("text/html; charset=utf-8")),
            (header::CONTENT_SECURITY_POLICY, fixed(PAGE_POLICY)),
            (header::CACHE_CONTROL, fixed("no-store")),
            (header::REFERRER_POLICY, fixed("no-referrer")),
        ];
        (headers, self.render().unwrap_or_default()).into_response()
    }
}

impl Gives for UnsubscribePage {
    fn gives(description: &mut Description) {
        let mut response = utoipa::openapi::Response::new("A page that says so.");
        let content = Content::new(Some(text_schema()));
        response.content.insert("text/html".to_owned(), content.into());
        description.success.push((200, response));
    }
}
