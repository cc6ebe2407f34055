//! `/v1/auth`: passwords that are forgotten or changed.
//!
//! ```text
//! POST /v1/auth/forgot-password {"email": "grace@acme.example"}
//! 202, and a mail with https://inlay.acme.com/console/reset-password?token=01a21f86-….LLutSZwW0Ub7…
//! POST /v1/auth/forgot-password {"email": "nobody@acme.example"}
//! 202, and no mail
//! POST /v1/auth/reset-password {"token": "01a21f86-….LLutSZwW0Ub7…", "password": "another horse battery"}
//! 200 {"user":{…},"org":{…},"role":"editor"}, Set-Cookie: service_session=…
//! the same again
//! 401 the link is not valid any more; ask for a new one
//! an hour after the mail
//! 401 {"code":"token_expired","error":"the link has expired; ask for a new one",…}
//!
//! POST /v1/auth/change-password {"current_password": "wrong", "new_password": "another horse battery"}
//! 400 {"code":"invalid_field","field":"current_password","error":"current_password is wrong",…}
//! ```

use std::time::Duration;

use axum::{extract::State, http::HeaderMap};
use serde::Deserialize;
use utoipa::ToSchema;

use super::auth::{LoggedIn, cookie, count_account, logged_in};
use crate::{
    app::{Caller, Client, Quota, SESSION_SECONDS},
    base::text,
    error::Result,
    http::{
        extract::Body,
        middleware::caller::cookie_of,
        respond::{AcceptedEmpty, Answer, NoContent, WithCookie},
        state::context::Http,
    },
    outbound::Bounce,
};

/// Waits before each attempt to send a link, which is good for an hour.
const WAITS: [Duration; 3] = [Duration::ZERO, Duration::from_secs(20), Duration::from_secs(120)];

/// An account whose password is forgotten.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ForgotPassword {
    #[schema(format = "email", max_length = 254, example = "ada@acme.example")]
    email: String,
}

/// A new password for the account that a link belongs to.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ResetPassword {
    /// The token of the link.
    token: String,
    #[schema(format = Password, min_length = 10, max_length = 200, example = "correct horse battery")]
    password: String,
}

/// A new password in place of the current one.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ChangePassword {
    #[schema(format = Password, example = "correct horse battery")]
    current_password: String,
    #[schema(format = Password, min_length = 10, max_length = 200, example = "another horse battery")]
    new_password: String,
}

/// Sends a link to the address if it has an account. 202 in either case, before anything is looked up: neither the answer
/// nor its time says whether there is one.
///
/// Errors: 400 for text that is no address, 429 by account and by address. Where 256 mails are under way, one is not sent, and the answer is
/// the same.
pub async fn forgot(State(http): State<Http>, body: Body<ForgotPassword>) -> Result<AcceptedEmpty> {
    let body = body.read()?;
    count_account(&http, Quota::Login, &body.email)?;
    let email = text::email("email", &body.email)?;
    match http.mailing.try_acquire() {
        Some(permit) => {
            tokio::spawn(async move {
                send_link(&http, email).await;
                drop(permit);
            });
        }
        None => tracing::warn!("too many links to new passwords at once; one is not sent"),
    }
    Ok(AcceptedEmpty)
}

/// Makes a link and sends it, three times at most: at once, after 20 s and after another 120 s. Failures are for the log only.
async fn send_link(http: &Http, email: String) {
    let mail = match http.run(move |app| app.request_password_reset(&email)).await {
        Ok(Some(mail)) => mail,
        Ok(None) => return,
        Err(error) => {
            tracing::warn!(code = error.code.name(), %error, "cannot make a link to a new password");
            return;
        }
    };
    for wait in WAITS {
        tokio::time::sleep(wait).await;
        match http.dispatcher.mailer.send(mail.clone()).await {
            Ok(()) => return,
            Err(Bounce { message, is_final }) => {
                tracing::warn!(error = message, "a link to a new password could not be sent");
                if is_final {
                    return;
                }
            }
        }
    }
}

/// Sets a new password and opens a session; all others of the user end. A link is good for once.
pub async fn reset(
    State(http): State<Http>,
    client: Client,
    headers: HeaderMap,
    body: Body<ResetPassword>,
) -> Result<WithCookie<Answer<LoggedIn>>> {
    let body = body.read()?;
    let before = cookie_of(&headers).map(str::to_owned);
    let session = http
        .run_hashing(move |app| {
            app.reset_password(&body.token, &body.password, before.as_deref(), client)
        })
        .await?;
    Ok(logged_in(&http, session))
}

/// Changes the caller's password; all other sessions end, and this one goes on with a new cookie. 204, or 400 naming
/// `current_password` when it is wrong.
pub async fn change(
    State(http): State<Http>,
    caller: Caller,
    client: Client,
    body: Body<ChangePassword>,
) -> Result<WithCookie<NoContent>> {
    let body = body.read()?;
    // A cookie that was taken must not be a way to guess the password.
    count_account(&http, Quota::Login, &caller.actor.label)?;
    let opened = http
        .run_hashing(move |app| {
            app.change_password(&caller, &body.current_password, &body.new_password, &client)
        })
        .await?;
    Ok(WithCookie { answer: NoContent, cookie: cookie(&http, &opened, SESSION_SECONDS) })
}
