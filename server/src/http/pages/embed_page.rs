//! `GET /embed/:dashboard_id?token=…`: the page that a host puts into a frame.
//!
//! No cookie, no storage. The answer is always a page: the dashboard, or why there is none.
//!
//! ```text
//! token                            status   page                                code for the host
//! valid, dashboard published       200      the dashboard
//! valid, never published           200      This dashboard isn’t published      not_published
//! expired or revoked               401      Your session has ended              session_expired
//! of another dashboard, or `x`     401      This link isn’t valid               invalid_link
//! the dashboard was deleted        404      This link isn’t valid               invalid_link
//! 51 requests in a second          429      This dashboard couldn’t load        internal
//! the store fails                  500      This dashboard couldn’t load        internal
//! ```
//!
//! Also `?theme=dark` or `?theme={"primaryColor":"#0f766e"}` for the first paint, and `?locale=de`. Data that is computed within 150 ms comes in
//! the boot block of the page; the script asks for the rest. So a page of cached or rolled-up data takes one request:
//!
//! ```text
//! <script type="application/json" id="boot">{"allowed_periods":["1h","24h","7d","30d","90d"],…,"data":{"calls":{"data":[{"value":32}],…}}}</script>
//! ```
//!
//! Which pages may frame it is a setting of the dashboard: `frame-ancestors https://app.acme.example`, or `*` where it names none.

use std::{sync::Arc, time::Duration};

use axum::{
    extract::{
        Path, Query, State,
        rejection::{PathRejection, QueryRejection},
    },
    http::{HeaderMap, HeaderValue, StatusCode, header},
    response::{IntoResponse, Response},
};
use serde::{Deserialize, de::IgnoredAny};
use serde_json::{Map, Value, json, value::RawValue};

use crate::{
    app::{App, Counted, EmbedView, Quota, Viewer},
    base::{instant, secret},
    error::{ApiError, Code, Result},
    http::{
        respond::ErrorNote,
        state::{context::Http, throttle::Throttle},
        v1::{FirstData, first_data},
    },
    store::{OneOrMany, Widget},
    web::{self, Card, DashboardPage, Message, Theme},
};

/// Parameters of the query string. Unknown ones are ignored: hosts and trackers add some.
#[derive(Deserialize)]
pub struct Parameters {
    // The token of the session, a JWT. Empty without it, which is an invalid link.
    #[serde(default)]
    token: String,
    /// What the first paint should look like: a mode, or an object as the message `setTheme` has it.
    #[serde(default)]
    theme: String,
    /// Which language and customs to follow; the browser's own without it.
    #[serde(default)]
    locale: String,
}

/// Longest theme in an address, in bytes; a longer one is ignored, as is one that is no JSON object and no mode.
const THEME_BYTES_MAX: usize = 2_000;
/// Data that is there in this time comes with the page.
/// A page without data is there sooner, but its data later: the script has to be loaded before it asks.
const FIRST_DATA: Duration = Duration::from_millis(150);

/// Draws the page. A request that cannot be read has a page too: it is an invalid link.
///
/// The steps: viewer and dashboard of the token; data of the first look, for at most 150 ms of work and 300 ms in all; the document. Of these
/// only the first can refuse.
pub async fn page(
    State(http): State<Http>,
    path: Result<Path<String>, PathRejection>,
    query: Result<Query<Parameters>, QueryRejection>,
    headers: HeaderMap,
) -> Response {
    // What cannot be read is an invalid link, and has its page too.
    let dashboard_id = path.map_or_else(|_| String::new(), |Path(id)| id);
    let (token, display, locale) = query.map_or_else(
        |_| (String::new(), Map::new(), String::new()),
        |Query(parameters)| (parameters.token, display_theme(&parameters.theme), parameters.locale),
    );
    // A locale in the address counts before the language of the browser: the host knows which language its page has.
    let accepted = headers.get(header::ACCEPT_LANGUAGE).and_then(|value| value.to_str().ok());
    let wanted = if locale.is_empty() { accepted.unwrap_or_default() } else { &locale };
    let language = web::Language::of(wanted);
    let throttle = std::sync::Arc::clone(&http.throttle);
    let found = http.run(move |app| open(app, &throttle, &dashboard_id, &token)).await;
    let mut nonce = [0; 16];
    http.app.rng.fill(&mut nonce);
    let nonce = secret::hex(&nonce);
    match found {
        Ok((viewer, view)) => {
            let known = Arc::new((viewer, view));
            let asked = Arc::clone(&known);
            // A server that is too busy for it sends the page; the page asks again.
            let data = http.run_query(&known.0.org, move |app| {
                Ok(first_data(app, &asked.0, &asked.1, FIRST_DATA))
            });
            // It may wait for its turn, too.
            let data = tokio::time::timeout(2 * FIRST_DATA, data).await;
            let data = data.ok().and_then(Result::ok).unwrap_or_default();
            match draw(&http, &known.0, &known.1, (&display, language), &data, &nonce) {
                Ok(html) => {
                    let origins = &known.1.config.settings.allowed_origins;
                    document(StatusCode::OK, html, &nonce, origins)
                }
                Err(error) => refuse(&http, error, (&Theme::of(&display), language), &nonce),
            }
        }
        Err(error) => refuse(&http, error, (&Theme::of(&display), language), &nonce),
    }
}

/// The theme in an address: an object as the message `setTheme` has it, or a mode. `dark` is `{"mode": "dark"}`; an empty text is no change.
fn display_theme(text: &str) -> Map<String, Value> {
    if text.is_empty() || text.len() > THEME_BYTES_MAX {
        return Map::new();
    }
    match serde_json::from_str(text) {
        Ok(Value::Object(theme)) => theme,
        _ => Map::from_iter([("mode".to_owned(), json!(text))]),
    }
}

/// Viewer and dashboard, when token and path belong together. The view is counted for `GET /v1/usage`.
///
/// Errors: 401 for the token, or for a token of another dashboard; 404 and `not_published`; 429.
fn open(
    app: &App,
    throttle: &Throttle,
    dashboard_id: &str,
    token: &str,
) -> Result<(Viewer, EmbedView)> {
    let viewer = app.viewer(token)?;
    // Counted before the dashboard is read, in the bucket of the data of this session.
    throttle.take(Quota::Embed, &format!("embed {}", viewer.session)).1?;
    if viewer.dashboard_id != dashboard_id {
        return Err(ApiError::new(Code::Unauthenticated, "the token is for another dashboard"));
    }
    let view = app.embed_view(&viewer)?;
    app.counters.add(&viewer.org, &viewer.environment, Counted::EmbedView);
    Ok((viewer, view))
}

/// The page that says why there is no dashboard. Its script posts the code to the host, which can mint a new session for `session_expired`.
///
/// Failures of the server are logged here, since the answer is a page and has no error for the outer layer.
fn refuse(
    http: &Http,
    error: ApiError,
    (theme, language): (&Theme, web::Language),
    nonce: &str,
) -> Response {
    // The status is for logs and proxies; the host learns the code, by a message of the script.
    let (status, kind, code) = match error.code {
        Code::NotPublished => (StatusCode::OK, Message::NotPublished, "not_published"),
        Code::TokenExpired | Code::TokenRevoked => {
            (StatusCode::UNAUTHORIZED, Message::Expired, "session_expired")
        }
        Code::RateLimited => (StatusCode::TOO_MANY_REQUESTS, Message::Failed, "internal"),
        Code::NotFound => (StatusCode::NOT_FOUND, Message::InvalidLink, "invalid_link"),
        code if code.status() == 401 => {
            (StatusCode::UNAUTHORIZED, Message::InvalidLink, "invalid_link")
        }
        _ => (StatusCode::INTERNAL_SERVER_ERROR, Message::Failed, "internal"),
    };
    let message = match kind {
        Message::NotPublished => "This dashboard is not published.",
        Message::Expired => "The session has ended.",
        Message::InvalidLink => "This link is not valid.",
        Message::Failed => "The dashboard could not be loaded.",
    };
    if status.is_server_error() {
        // The outer layer logs an error note; this answer is a page and has none.
        tracing::error!(
            code = error.code.name(),
            cause = error.cause.as_deref().unwrap_or_default(),
            "embed page failed"
        );
    }
    let boot = json!({"protocol": 1, "origins": [], "error": {"code": code, "message": message}});
    let html = web::message(
        kind,
        &http.files.message_assets(),
        (theme, language),
        &boot.to_string(),
        nonce,
    );
    let html = html.unwrap_or_else(|error| {
        tracing::error!(cause = error.cause, "the page of a message cannot be drawn");
        message.to_owned()
    });
    let mut response = document(status, html, nonce, &[]);
    response.extensions_mut().remove::<ErrorNote>();
    response
}

/// The page of a dashboard: the theme in the address goes over the stored one, key by key.
fn draw(
    http: &Http,
    viewer: &Viewer,
    view: &EmbedView,
    (display, language): (&Map<String, Value>, web::Language),
    data: &FirstData,
    nonce: &str,
) -> Result<String> {
    let cards: Vec<Card> = view.config.widgets.iter().map(|widget| card(widget, data)).collect();
    let locked: Vec<(String, String)> = viewer
        .permissions
        .locked_filters
        .iter()
        .map(|(name, accepted): (&String, &OneOrMany)| (name.clone(), accepted.values().join(", ")))
        .collect();
    let mut theme = view.config.settings.theme.clone();
    theme.extend(display.clone());
    let boot = boot(http, viewer, view, data);
    web::dashboard(&DashboardPage {
        name: &view.config.name,
        cards: &cards,
        periods: &view.periods,
        period: &view.period,
        has_dates: view.allows_dates,
        // The script follows the same rule.
        has_filter: !view.offered.dimensions.is_empty()
            || !view.offered.numbers.is_empty()
            || (view.allows_dates && view.periods.len() < 2),
        locked: &locked,
        theme: &Theme::of(&theme),
        language,
        boot_json: &boot,
        assets: &http.files.assets(),
        nonce,
    })
}

/// A widget as the shell shows it. Subtitle and text of its drawing options are there before any data; the first answer says how many rows
/// it has.
fn card(widget: &Widget, data: &FirstData) -> Card {
    let layout = widget.layout;
    Card {
        kind: widget.kind.clone(),
        title: widget.title.clone(),
        subtitle: widget.viz.get("subtitle").and_then(Value::as_str).map(str::to_owned),
        text: widget.viz.get("text").and_then(Value::as_str).map(str::to_owned),
        x: layout.x,
        y: layout.y,
        w: layout.w,
        h: layout.h,
        rows: data.get(&widget.id).and_then(|answer| row_count(widget, answer)),
    }
}

/// Rows that an answer is drawn with: of a list the first groups, and one bar for the others where these add up. Nothing for bars over time.
/// The script follows the same rule.
fn row_count(widget: &Widget, answer: &RawValue) -> Option<usize> {
    #[derive(Deserialize)]
    struct Row {
        bucket: Option<IgnoredAny>,
    }
    #[derive(Deserialize)]
    struct Answer {
        data: Vec<Row>,
    }
    let kind = &*widget.kind;
    if !matches!(kind, "bar" | "bar_list" | "table" | "funnel") {
        return None;
    }
    let Answer { data } = serde_json::from_str(answer.get()).ok()?;
    if kind == "bar" && data.first().is_some_and(|row| row.bucket.is_some()) {
        return None;
    }
    let limit = widget.query.get("limit").and_then(Value::as_u64).filter(|limit| *limit > 0);
    let limit = limit.and_then(|limit| usize::try_from(limit).ok());
    let Some(limit) = limit.filter(|limit| *limit < data.len() && kind.starts_with("bar")) else {
        return Some(data.len());
    };
    let metric = widget.query.get("metric").and_then(Value::as_str);
    Some(limit + usize::from(matches!(metric, Some("count" | "sum"))))
}

/// The boot block: data that the script needs to begin, as JSON.
///
/// `permissions` are those that the page follows itself; the API checks them again. `now` is our clock, by which the page counts the seconds
/// until its session ends, whatever the clock of the browser says.
fn boot(http: &Http, viewer: &Viewer, view: &EmbedView, data: &FirstData) -> String {
    let permissions = &viewer.permissions;
    let boot = json!({
        "protocol": 1,
        "dashboard_id": view.id,
        "name": view.config.name,
        "widgets": view.config.widgets,
        "periods": view.periods,
        "allowed_periods": view.allowed_periods,
        "default_period": view.period,
        "permissions": {
            "allow_drill_down": permissions.allow_drill_down,
            "locked_filters": permissions.locked_filters,
            "allowed_dimensions": permissions.allowed_dimensions,
            "max_date_range_days": permissions.max_date_range_days,
        },
        "theme": view.config.settings.theme,
        "origins": view.config.settings.allowed_origins,
        "allows_dates": view.allows_dates,
        "offered": view.offered,
        "expires_in_seconds": view.expires_in_seconds,
        "now": instant::format(http.app.now_ms()),
    });
    // The answers are text already: they become the last field of the object.
    let mut text = boot.to_string();
    text.pop();
    let answers: Vec<String> =
        data.iter().map(|(id, answer)| format!("{}:{}", json!(id), answer.get())).collect();
    format!("{text},\"data\":{{{}}}}}", answers.join(","))
}

/// The document with its headers. A strict content policy: scripts and connections to this server only, styles with the nonce, no forms,
/// and only the origins of the dashboard as ancestors.
fn document(status: StatusCode, html: String, nonce: &str, origins: &[String]) -> Response {
    // Origins were checked when they were saved: they hold nothing that could end a directive.
    let ancestors = if origins.is_empty() { "*".to_owned() } else { origins.join(" ") };
    let policy = format!(
        "default-src 'none'; script-src 'self'; style-src 'self' 'nonce-{nonce}'; font-src 'self'; \
         img-src 'self' data: blob:; connect-src 'self'; base-uri 'none'; form-action 'none'; \
         frame-ancestors {ancestors}; require-trusted-types-for 'script'; trusted-types 'none'"
    );
    let policy = HeaderValue::from_str(&policy)
        .unwrap_or_else(|_| HeaderValue::from_static("default-src 'none'"));
    let fixed = |text: &'static str| HeaderValue::from_static(text);
    (
        status,
        [
            (header::CONTENT_TYPE, fixed("text/html; charset=utf-8")),
            (header::CONTENT_SECURITY_POLICY, policy),
            (header::REFERRER_POLICY, fixed("no-referrer")),
            (header::CACHE_CONTROL, fixed("no-store")),
            (
                header::HeaderName::from_static("permissions-policy"),
                fixed("camera=(), microphone=(), geolocation=(), clipboard-write=(self)"),
            ),
            (
                header::HeaderName::from_static("cross-origin-resource-policy"),
                fixed("cross-origin"),
            ),
        ],
        html,
    )
        .into_response()
}
