//! `/v1/embed-sessions`, and the data calls of the embed page under `/v1/embed`.

use std::collections::{BTreeMap, BTreeSet};

use axum::{
    Json,
    body::{Body as ResponseBody, Bytes},
    extract::State,
    http::{HeaderMap, HeaderValue, header},
    response::{IntoResponse, Response},
};
use inlay_proto::names::NDJSON;
use serde::{Deserialize, Serialize};
use serde_json::{
    Value, json,
    value::{RawValue, to_raw_value},
};
use tokio::sync::mpsc;
use utoipa::{ToSchema, openapi::Content};

use super::view::{self, Time};
use crate::{
    app::{Caller, EmbedRequest, EmbedView, ViewFilters, Viewer, WireFilters},
    error::{ApiError, Code, Result},
    http::{
        context::Http,
        describe::{Description, Gives},
        extract::{Body, Id, Page, Params},
        respond::{Created, List, NoContent},
    },
    store::{Actor, EmbedSession, Permissions, Widget},
};

/// Widgets of one data request, at most.
const WIDGETS_MAX: usize = 100;
/// A reader that takes no line for this long is given up.
const READER_TIMEOUT: std::time::Duration = std::time::Duration::from_secs(30);
/// Lines that wait for a slow reader before the next widget is computed.
const LINES_AHEAD: usize = 4;

/// A session to mint.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct CreateEmbedSession {
    /// The customer whose data is shown.
    #[schema(min_length = 1, max_length = 256, example = "acme")]
    tenant_id: String,
    #[schema(example = "0190aaaa-0000-7000-8000-000000000000")]
    dashboard_id: String,
    /// Seconds; 3,600 by default.
    #[schema(minimum = 60, maximum = 86400, example = 3600)]
    expires_in: Option<i64>,
    #[serde(default)]
    permissions: Permissions,
}

/// A minted session.
#[derive(Serialize, ToSchema)]
#[schema(as = NewEmbedSession)]
pub struct NewEmbedSessionView {
    /// Signed; the frame carries it.
    token: String,
    /// The page for the frame.
    #[schema(format = Uri)]
    embed_url: String,
    expires_at: Time,
}

/// A session that is still valid.
#[derive(Serialize, ToSchema)]
#[schema(as = EmbedSession)]
pub struct EmbedSessionView {
    #[schema(format = Uuid)]
    id: String,
    tenant_id: String,
    resource: Resource,
    #[schema(example = "embed:read")]
    scope: &'static str,
    permissions: Permissions,
    actor: Actor,
    issued_at: Time,
    expires_at: Time,
    ttl_seconds: i64,
}

/// What a session shows.
#[derive(Serialize, ToSchema)]
struct Resource {
    #[schema(example = "dashboard")]
    r#type: &'static str,
    #[schema(format = Uuid)]
    id: String,
    name: String,
}

/// The published dashboard as a session may see it.
#[derive(Serialize, ToSchema)]
pub struct EmbeddedDashboard {
    #[schema(format = Uuid)]
    id: String,
    name: String,
    widgets: Vec<Widget>,
    #[schema(value_type = Object)]
    theme: serde_json::Map<String, Value>,
    permissions: Permissions,
    /// Periods that may be chosen.
    periods: Vec<String>,
    expires_in_seconds: i64,
}

/// Data of widgets, by their ids; a failed one is `{"error", "code"}`.
#[derive(Serialize, ToSchema)]
struct EmbeddedData {
    #[schema(value_type = BTreeMap<String, Object>)]
    widgets: BTreeMap<String, Box<RawValue>>,
    expires_in_seconds: i64,
}

/// Which data is wanted.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct AskEmbedData {
    /// Ids of widgets.
    #[schema(example = json!(["calls"]))]
    widgets: Vec<String>,
    /// What the viewer has chosen.
    #[serde(default)]
    #[schema(value_type = Object)]
    filters: WireFilters,
}

/// Mints a session. 201.
pub async fn create(
    State(http): State<Http>,
    caller: Caller,
    body: Body<CreateEmbedSession>,
) -> Result<Created<NewEmbedSessionView>> {
    let body = body.read()?;
    let request = EmbedRequest {
        tenant_id: body.tenant_id,
        dashboard_id: body.dashboard_id,
        expires_in: body.expires_in,
        permissions: body.permissions,
    };
    let minted = http.run(move |app| app.create_embed_session(&caller, request)).await?;
    Ok(Created(NewEmbedSessionView {
        token: minted.token,
        embed_url: minted.url,
        expires_at: Time(minted.expires_at),
    }))
}

/// Sessions that are still valid, newest first.
pub async fn list(
    State(http): State<Http>,
    caller: Caller,
    Params(page): Params<Page>,
) -> Result<List<EmbedSessionView>> {
    let now = http.app.now_ms();
    let sessions = http.run(move |app| app.embed_sessions(&caller)).await?;
    let (sessions, next) = page.cut(sessions, |(session, _)| session.id.clone())?;
    let data = sessions.into_iter().map(|(session, name)| entry(session, name, now)).collect();
    Ok(List { data, next })
}

/// Ends a session. 204.
pub async fn revoke(State(http): State<Http>, caller: Caller, Id(id): Id) -> Result<NoContent> {
    http.run(move |app| app.revoke_embed_session(&caller, &id)).await?;
    Ok(NoContent)
}

/// A key that signs embed tokens, without its secret.
#[derive(Serialize, ToSchema)]
pub struct EmbedKey {
    /// What tokens name it by.
    #[schema(format = Uuid)]
    kid: String,
    /// Whose tokens it signs.
    #[schema(example = "production")]
    environment: String,
    created_at: Time,
}

/// Changes the key that signs the tokens of the caller's environment. 201.
pub async fn rotate_key(State(http): State<Http>, caller: Caller) -> Result<Created<EmbedKey>> {
    let environment = caller.environment.name.clone();
    let created_at = Time(http.app.now_ms());
    let kid = http.run(move |app| app.rotate_signing_key(&caller)).await?;
    Ok(Created(EmbedKey { kid, environment, created_at }))
}

fn entry(session: EmbedSession, name: String, now: i64) -> EmbedSessionView {
    EmbedSessionView {
        id: session.id,
        tenant_id: session.tenant_id,
        resource: Resource { r#type: "dashboard", id: session.dashboard_id, name },
        scope: "embed:read",
        permissions: session.permissions,
        actor: session.actor,
        issued_at: Time(session.issued_at),
        expires_at: Time(session.expires_at),
        ttl_seconds: (session.expires_at - now).max(0) / 1_000,
    }
}

/// An answer that no cache keeps.
pub struct NotStored<T>(T);

impl<T: Serialize> IntoResponse for NotStored<T> {
    fn into_response(self) -> Response {
        ([(header::CACHE_CONTROL, HeaderValue::from_static("no-store"))], Json(self.0))
            .into_response()
    }
}

impl<T: ToSchema> Gives for NotStored<T> {
    fn gives(description: &mut Description) {
        description.answers::<T>(200, "As this session may see it.");
    }
}

/// The published dashboard as this session may see it.
pub async fn dashboard(
    State(http): State<Http>,
    viewer: Viewer,
) -> Result<NotStored<EmbeddedDashboard>> {
    // What is hidden is not named either.
    let permissions = Permissions { hidden_widgets: Vec::new(), ..viewer.permissions.clone() };
    let view = http.run(move |app| app.embed_view(&viewer)).await?;
    Ok(NotStored(EmbeddedDashboard {
        id: view.id,
        name: view.config.name,
        widgets: view.config.widgets,
        theme: view.config.settings.theme,
        permissions,
        periods: view.periods,
        expires_in_seconds: view.expires_in_seconds,
    }))
}

/// Data of widgets, whole or line by line.
pub struct DataResponse(Response);

impl IntoResponse for DataResponse {
    fn into_response(self) -> Response {
        self.0
    }
}

impl Gives for DataResponse {
    fn gives(description: &mut Description) {
        description.answers::<EmbeddedData>(200, "Data of the widgets; a line each as NDJSON.");
        if let Some((_, response)) = description.success.last_mut() {
            let line = Content::new(Some(utoipa::openapi::schema::empty()));
            response.content.insert(NDJSON.to_owned(), line.into());
        }
    }
}

/// Data of widgets: one object, or a line a widget for those who ask for lines.
pub async fn data(
    State(http): State<Http>,
    viewer: Viewer,
    headers: HeaderMap,
    body: Body<AskEmbedData>,
) -> Result<DataResponse> {
    let wants_lines = headers
        .get(header::ACCEPT)
        .and_then(|value| value.to_str().ok())
        .is_some_and(|accept| accept.contains(NDJSON));
    let checked = viewer.clone();
    let (view, widgets, filters) = http
        .run(move |app| {
            let body = body.read()?;
            let view = app.embed_view(&checked)?;
            if body.widgets.len() > WIDGETS_MAX {
                let message = format!("a request asks for at most {WIDGETS_MAX} widgets");
                return Err(ApiError::field(Code::OutOfRange, "widgets", message));
            }
            let asked: BTreeSet<&String> = body.widgets.iter().collect();
            if asked.len() != body.widgets.len() {
                return Err(ApiError::field(
                    Code::InvalidField,
                    "widgets",
                    "a widget is named twice",
                ));
            }
            let widgets = app.embed_widgets(&view, &body.widgets)?;
            let filters = checked.check(&body.filters)?;
            Ok((view, widgets, filters))
        })
        .await?;
    if wants_lines {
        return Ok(DataResponse(stream(&http, viewer, view, widgets, filters)));
    }
    let expires_in_seconds = view.expires_in_seconds;
    let answers = http
        .run_query(move |app| {
            let mut answers = BTreeMap::new();
            for widget in &widgets {
                let answer = app.embed_answer(&viewer, &view, widget, &filters);
                // A broken rule fails the request; anything else only its widget.
                if let Err(error) = &answer
                    && error.code == Code::EmbedPermission
                {
                    return Err(error.clone());
                }
                answers.insert(widget.id.clone(), one(answer)?);
            }
            Ok(answers)
        })
        .await?;
    let body = EmbeddedData { widgets: answers, expires_in_seconds };
    Ok(DataResponse(NotStored(body).into_response()))
}

/// A widget's answer, or why it has none.
fn one(answer: Result<crate::app::WidgetAnswer>) -> Result<Box<RawValue>> {
    let error = match answer.and_then(|answer| view::widget(&answer)) {
        Ok(body) => return Ok(body),
        Err(error) => error,
    };
    if let Some(cause) = &error.cause {
        tracing::error!(code = error.code.name(), cause, "a widget failed");
    }
    to_raw_value(&json!({"error": error.message, "code": error.code.name()}))
        .map_err(|error| ApiError::internal(format!("an error cannot be written: {error}")))
}

/// Lines as the widgets finish. Computing waits for a slow reader without holding a thread, and
/// stops when the reader takes too long or goes away.
fn stream(
    http: &Http,
    viewer: Viewer,
    view: EmbedView,
    widgets: Vec<Widget>,
    filters: ViewFilters,
) -> Response {
    let (sender, receiver) = mpsc::channel::<Bytes>(LINES_AHEAD);
    let http = http.clone();
    let shared = std::sync::Arc::new((viewer, view, filters));
    tokio::spawn(async move {
        for widget in widgets {
            let (known, asked) = (std::sync::Arc::clone(&shared), widget.clone());
            let answer = http
                .run_query(move |app| one(app.embed_answer(&known.0, &known.1, &asked, &known.2)))
                .await;
            let answer = answer.or_else(|error| one(Err(error)));
            let (Ok(answer), id) = (answer, json!(widget.id)) else { return };
            // The answer is an object that is not empty: the id becomes its first field.
            let rest = answer.get().get(1..).unwrap_or_default();
            let line = format!("{{\"widget\":{id},{rest}");
            let sent = sender.send_timeout(Bytes::from(format!("{line}\n")), READER_TIMEOUT).await;
            if sent.is_err() {
                return;
            }
        }
        let last = json!({"expires_in_seconds": shared.1.expires_in_seconds});
        let _ = sender.send_timeout(Bytes::from(format!("{last}\n")), READER_TIMEOUT).await;
    });
    let lines = ResponseBody::new(Lines(receiver));
    (
        [
            (header::CONTENT_TYPE, HeaderValue::from_static(NDJSON)),
            (header::CACHE_CONTROL, HeaderValue::from_static("no-store")),
        ],
        lines,
    )
        .into_response()
}

/// A body whose chunks are what the channel brings.
struct Lines(mpsc::Receiver<Bytes>);

impl http_body::Body for Lines {
    type Data = Bytes;
    type Error = std::convert::Infallible;

    fn poll_frame(
        mut self: std::pin::Pin<&mut Self>,
        context: &mut std::task::Context<'_>,
    ) -> std::task::Poll<Option<Result<http_body::Frame<Bytes>, Self::Error>>> {
        self.0.poll_recv(context).map(|chunk| chunk.map(|chunk| Ok(http_body::Frame::data(chunk))))
    }
}
