//! `GET /console/…`: the page that people of the customer company work in, and `/`, which leads there.
//!
//! The document is the same for every address below `/console/`; what it says beside is who is logged in. It holds no
//! data of the organisation: the script asks the public API for that, as everybody does.
//!
//! ```text
//! GET /                     307 Location: /console/
//! GET /console/alerts/7     200, with a session:      boot block {"me": {"user": {…}, "org": {…}, "role": "owner", …}, …}
//!                           200, without a session:   boot block {"me": null, …}; the page of the login is preloaded
//! GET /console/no/such      200: only the script knows which pages there are
//! ```
//!
//! The boot block is JSON inside of the document, which the script reads:
//!
//! ```text
//! {"base_url":"https://inlay.acme.com","billing":true,"demo":false,"me":{…},"nonce":"ed174fbc4f75a3088b44d5acd889218b"}
//! ```

use axum::{
    extract::{Path, State},
    http::{HeaderMap, HeaderValue, StatusCode, header},
    response::{IntoResponse, Response},
};
use serde_json::json;

use crate::{
    base::secret,
    error::Result,
    http::{
        middleware::caller::{cookie_named, cookie_of},
        state::context::Http,
        v1::me_of,
    },
    web::{self, Assets, ConsolePage},
};

/// Cookie with `light` or `dark`, set by the console's own script. Other values are ignored.
const MODE_COOKIE: &str = "inlay_mode";

/// Redirects to the console.
pub async fn root() -> Response {
    let to = HeaderValue::from_static("/console/");
    (StatusCode::TEMPORARY_REDIRECT, [(header::LOCATION, to)]).into_response()
}

/// The console's first page: `/console` and `/console/`.
pub async fn index(state: State<Http>, headers: HeaderMap) -> Result<Response> {
    page(state, Path(String::new()), headers).await
}

/// Any page of the console; `path` is the address below `/console/`, such as `alerts/7`. Never 401 or 404: the script draws those.
pub async fn page(
    State(http): State<Http>,
    Path(path): Path<String>,
    headers: HeaderMap,
) -> Result<Response> {
    let mut nonce = [0; 16];
    http.app.rng.fill(&mut nonce);
    let nonce = secret::hex(&nonce);
    // A session that has ended, and a store that does not answer, are the same here: the page asks again.
    let caller =
        cookie_of(&headers).and_then(|cookie| http.app.caller_of_session(cookie, None).ok());
    let me = match caller {
        Some((caller, _)) => me_of(&http, caller).await.ok(),
        None => None,
    };
    let boot = json!({
        "me": me,
        "base_url": http.app.settings.base_url,
        "demo": http.app.settings.demo,
        "billing": http.app.settings.billing.is_configured(),
        "nonce": nonce,
    });
    // The modules of the login, too, for a session that has ended: the script goes there.
    let page = if me.is_some() { path } else { "login".to_owned() };
    let assets =
        Assets { base: http.files.base().to_owned(), modules: http.files.console_modules(&page) };
    let mode = cookie_named(&headers, MODE_COOKIE).filter(|mode| matches!(*mode, "light" | "dark"));
    let html = web::console(&ConsolePage { assets: &assets, mode, boot_json: &boot.to_string() })?;
    Ok(document(&http, html, &nonce))
}

/// The document with its headers.
///
/// The embed that the console shows is framed from this server, by whichever of its names: `frame-src` has `'self'` and the base URL. No
/// page frames the console. Style elements carry the nonce, and scripts come from files only.
fn document(http: &Http, html: String, nonce: &str) -> Response {
    let policy = format!(
        "default-src 'none'; script-src 'self'; style-src 'self' 'nonce-{nonce}'; font-src 'self'; \
         img-src 'self' data: blob:; connect-src 'self'; frame-src 'self' {}; base-uri 'none'; form-action 'none'; \
         frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'",
        http.app.settings.base_url
    );
    let policy = HeaderValue::from_str(&policy)
        .unwrap_or_else(|_| HeaderValue::from_static("default-src 'none'"));
    let fixed = |text: &'static str| HeaderValue::from_static(text);
    let headers = [
        (header::CONTENT_TYPE, fixed("text/html; charset=utf-8")),
        (header::CONTENT_SECURITY_POLICY, policy),
        (header::CACHE_CONTROL, fixed("no-store")),
        (header::REFERRER_POLICY, fixed("no-referrer")),
        (header::X_FRAME_OPTIONS, fixed("DENY")),
        (
            header::HeaderName::from_static("permissions-policy"),
            fixed("camera=(), microphone=(), geolocation=(), clipboard-write=(self)"),
        ),
        (header::HeaderName::from_static("cross-origin-opener-policy"), fixed("same-origin")),
    ];
    (headers, html).into_response()
}
