//! `GET /embed/:dashboard_id?token=…`: the page that a host puts into a frame.
//!
//! No cookie, no storage. The answer is always a page: the dashboard, or why there is none.

use std::{sync::Arc, time::Duration};

use axum::{
    extract::{
        Path, Query, State,
        rejection::{PathRejection, QueryRejection},
    },
    http::{HeaderMap, HeaderValue, StatusCode, header},
    response::{IntoResponse, Response},
};
use serde::Deserialize;
use serde_json::{Map, Value, json};

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

#[derive(Deserialize)]
pub struct Parameters {
    #[serde(default)]
    token: String,
    /// What the first paint should look like: a mode, or an object as the message `setTheme` has it.
    #[serde(default)]
    theme: String,
    /// Which language and customs to follow; the browser's own without it.
    #[serde(default)]
    locale: String,
}

/// Longest theme in an address.
const THEME_BYTES_MAX: usize = 2_000;
/// Data that is there in this time comes with the page.
const FIRST_DATA: Duration = Duration::from_millis(150);

/// Draws the page.
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

fn display_theme(text: &str) -> Map<String, Value> {
    if text.is_empty() || text.len() > THEME_BYTES_MAX {
        return Map::new();
    }
    match serde_json::from_str(text) {
        Ok(Value::Object(theme)) => theme,
        _ => Map::from_iter([("mode".to_owned(), json!(text))]),
    }
}

/// Viewer and dashboard, when token and path belong together.
fn open(
    app: &App,
    throttle: &Throttle,
    dashboard_id: &str,
    token: &str,
) -> Result<(Viewer, EmbedView)> {
    let viewer = app.viewer(token)?;
    throttle.take(Quota::Embed, &format!("embed {}", viewer.session)).1?;
    if viewer.dashboard_id != dashboard_id {
        return Err(ApiError::new(Code::Unauthenticated, "the token is for another dashboard"));
    }
    let view = app.embed_view(&viewer)?;
    app.counters.add(&viewer.org, &viewer.environment, Counted::EmbedView);
    Ok((viewer, view))
}

fn refuse(
    http: &Http,
    error: ApiError,
    (theme, language): (&Theme, web::Language),
    nonce: &str,
) -> Response {
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

fn draw(
    http: &Http,
    viewer: &Viewer,
    view: &EmbedView,
    (display, language): (&Map<String, Value>, web::Language),
    data: &FirstData,
    nonce: &str,
) -> Result<String> {
    let cards: Vec<Card> = view.config.widgets.iter().map(card).collect();
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

fn card(widget: &Widget) -> Card {
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
    }
}

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
