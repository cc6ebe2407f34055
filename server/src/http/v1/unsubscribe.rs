//! `GET` and `POST /v1/unsubscribe?token=…`: the page behind the link in mails that stops them.
//!
//! Opening the link changes nothing, since scanners of mails open links. The button of the page does, and a mail program
//! that sends `List-Unsubscribe=One-Click` (RFC 8058).
//!
//! ```text
//! GET /v1/unsubscribe?token=eyJ0eXAiOiJ1bnN1YnNjcmliZSt…
//! 200 "Stop these mails?" The alert Too many errors sends mails to ops@acme.example. [Stop mails to this address]
//! POST /v1/unsubscribe?token=eyJ0eXAiOiJ1bnN1YnNjcmliZSt…
//! 200 "No more mails"
//! GET /v1/unsubscribe?token=x
//! 404 "This link is not valid"
//! POST /v1/unsubscribe?token=x
//! 404 {"code":"not_found","error":"this link is not valid, or its rule is gone",…}
//! ```
//!
//! No login: the token is signed, and names rule and address.

use askama::Template;
use axum::{
    extract::State,
    http::{HeaderValue, StatusCode, header},
    response::{IntoResponse, Response},
};
use serde::Deserialize;
use utoipa::{IntoParams, openapi::Content};

use crate::{
    app::{MailSubscription, UnsubscribeWords, unsubscribe_words},
    base::locale::Locale,
    error::{Code, Result},
    http::{
        extract::Params,
        openapi::describe::{Description, Gives, text_schema},
        state::context::Http,
    },
};

/// Unknown parameters are ignored: trackers between a mail and its reader add some.
#[derive(Deserialize, IntoParams)]
pub struct LinkParameters {
    /// The token of the link.
    #[serde(default)]
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
    lang: &'static str,
    words: &'static UnsubscribeWords,
    found: Option<MailSubscription>,
}

/// A page that asks; 404 with one that says that the link is not valid.
pub struct AskPage(UnsubscribePage);

/// Asks whether the mails should stop. 200 with a button, 404 with a page that says that the link is not valid.
pub async fn ask(
    State(http): State<Http>,
    Params(parameters): Params<LinkParameters>,
) -> Result<AskPage> {
    match http.run(move |app| app.mail_subscription(&parameters.token)).await {
        Ok(found) => Ok(AskPage(UnsubscribePage::new(&http, Some(found)))),
        Err(error) if error.code == Code::NotFound => {
            Ok(AskPage(UnsubscribePage::new(&http, None)))
        }
        Err(error) => Err(error),
    }
}

/// Stops the mails of the link. 200 with a page; again with the same link, the answer is the same. Its token is the credential.
pub async fn stop(
    State(http): State<Http>,
    Params(parameters): Params<LinkParameters>,
) -> Result<UnsubscribePage> {
    let found = http.run(move |app| app.unsubscribe(&parameters.token)).await?;
    Ok(UnsubscribePage::new(&http, Some(found)))
}

impl UnsubscribePage {
    fn new(http: &Http, found: Option<MailSubscription>) -> Self {
        let locale = found.as_ref().map_or(Locale::En, |found| found.locale);
        let style = format!("{}/dist/docs.css", http.files.base());
        Self { style, lang: locale.name(), words: unsubscribe_words(locale), found }
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

impl IntoResponse for AskPage {
    fn into_response(self) -> Response {
        let status = if self.0.found.is_some() { StatusCode::OK } else { StatusCode::NOT_FOUND };
        (status, self.0).into_response()
    }
}

/// The description of an answer that is a page.
fn page_response(text: &str) -> utoipa::openapi::Response {
    let mut response = utoipa::openapi::Response::new(text);
    let content = Content::new(Some(text_schema()));
    response.content.insert("text/html".to_owned(), content.into());
    response
}

impl Gives for UnsubscribePage {
    fn gives(description: &mut Description) {
        description.success.push((200, page_response("A page that says so.")));
    }
}

impl Gives for AskPage {
    fn gives(description: &mut Description) {
        description.success.push((200, page_response("A page with a button.")));
        description
            .success
            .push((404, page_response("A page that says that the link is not valid.")));
    }
}
