//! `/v1/embed`: what the embed page asks for, with the token of its session.
//!
//! The page asks for all widgets at once, and for lines, so that each card is drawn when its data is there:
//!
//! ```text
//! POST /v1/embed/data
//! Accept: application/x-ndjson
//! {"widgets": ["calls", "models"], "filters": {"period": "7d", "dimensions": {"model": ["gpt-large"]}}}
//!
//! 200
//! {"widget":"calls","data":[{"value":21}],"meta":{"event_name":"api_call","metric":"count","period":"7d",…},"spark":[…]}
//! {"widget":"models","code":"query_timeout","error":"…"}
//! {"expires_in_seconds":3599}
//! ```
//!
//! Without this `Accept` the same is one object: `{"widgets":{"calls":{…},"models":{…}},"expires_in_seconds":3599}`. A request beyond the session
//! is refused as a whole, before anything is computed:
//!
//! ```text
//! {"widgets": ["models"]}                                 403 this session shows no widget "models"
//! {"widgets": ["calls"], "filters": {"period": "90d"}}    403 this session does not allow the period 90d
//! {"widgets": ["calls", "calls"]}                         400 a widget is named twice
//! {"widgets": ["calls"], "filters": {"plan": "free"}}     400 filters.plan is not a field of this request
//! a dashboard that is not published                       409 this dashboard is not published
//! ```
//!
//! Answers for viewers say nothing of how they were found: `rows_scanned` would tell of rows that the locks of a session hide.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

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
use tokio::{sync::mpsc, task::JoinSet};
use utoipa::{ToSchema, openapi::Content};

use super::view::{self, For};
use crate::{
    app::{App, EmbedView, Offered, ViewFilters, Viewer, WireFilters},
    error::{ApiError, Code, Result},
    http::{
        extract::Body,
        openapi::describe::{Description, Gives},
        state::context::Http,
    },
    store::{Permissions, Widget},
};

/// Widgets of one data request, at most.
const WIDGETS_MAX: usize = 100;
/// A reader that takes no line for this long is given up.
const READER_TIMEOUT: Duration = Duration::from_secs(30);
/// What comes with a page at most; more would keep the page itself waiting.
const FIRST_BYTES_MAX: usize = 256 << 10;
/// Lines that wait for a slow reader before the next widget is computed.
const LINES_AHEAD: usize = 4;

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
    /// Whether dates may be chosen instead.
    allows_dates: bool,
    /// Properties that are offered to filter by.
    offered: Offered,
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

/// The published dashboard as this session may see it: without hidden widgets, and without their names.
///
/// ```text
/// 200 {"id":"01a21f85-…","name":"Usage 2","widgets":[{"id":"calls",…}],"theme":{},"permissions":{…,"hidden_widgets":[],…},
///      "periods":["24h","7d"],"allows_dates":false,"offered":{"dimensions":["model"],"numbers":[]},"expires_in_seconds":3599}
/// ```
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
        allows_dates: view.allows_dates,
        offered: view.offered,
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
    let (view, asked) = match body.is_small() {
        true => check(&http.app, &viewer, &body.read()?)?,
        false => {
            let viewer = viewer.clone();
            http.run(move |app| check(app, &viewer, &body.read()?)).await?
        }
    };
    let shared = Arc::new((viewer, view));
    if wants_lines {
        return Ok(DataResponse(stream(&http, shared, asked)));
    }
    let expires_in_seconds = shared.1.expires_in_seconds;
    let mut answers = Answers::new(&http, shared, asked);
    let mut widgets = BTreeMap::new();
    while let Some((id, answer)) = answers.next().await? {
        widgets.insert(id, answer?);
    }
    let body = EmbeddedData { widgets, expires_in_seconds };
    Ok(DataResponse(NotStored(body).into_response()))
}

/// Answers of widgets as they are ready: short ones are computed on this thread while as many others as there are permits
/// have threads of their own.
struct Answers {
    http: Http,
    shared: Arc<(Viewer, EmbedView)>,
    asked: std::vec::IntoIter<(Widget, ViewFilters)>,
    running: JoinSet<IdAndAnswer>,
}

/// A widget's id, and its answer or why it has none. Errors: the server is too busy.
type IdAndAnswer = (String, Result<Box<RawValue>>);

impl Answers {
    fn new(
        http: &Http,
        shared: Arc<(Viewer, EmbedView)>,
        asked: Vec<(Widget, ViewFilters)>,
    ) -> Self {
        let (http, asked) = (http.clone(), asked.into_iter());
        Self { http, shared, asked, running: JoinSet::new() }
    }

    /// The next one. Errors: a task that was ended.
    async fn next(&mut self) -> Result<Option<IdAndAnswer>> {
        while self.running.len() < self.http.queries_at_once() {
            let Some((widget, filters)) = self.asked.next() else { break };
            let (id, shared) = (widget.id.clone(), Arc::clone(&self.shared));
            // Why a widget has no answer is an answer too, but for an attempt that is given up.
            let work = move |app: &App| {
                let answer = app.embed_answer(&shared.0, &shared.1, &widget, &filters);
                Ok(answer.and_then(|answer| view::widget(&answer, For::Viewer)))
            };
            if let Some(answer) = self.http.attempt(&work) {
                // Many short ones must not keep others of this thread waiting.
                tokio::task::yield_now().await;
                return Ok(Some((id, answer.and_then(one))));
            }
            let (http, org) = (self.http.clone(), self.shared.0.org.clone());
            self.running
                .spawn(async move { (id, http.run_after_attempt(&org, work).await.and_then(one)) });
        }
        let ended = self.running.join_next().await.transpose();
        ended.map_err(|error| ApiError::internal(format!("a task ended: {error}")))
    }
}

/// The dashboard, and each widget with what it is asked. All rules are checked before anything is
/// computed, so that lines and whole answers refuse alike.
///
/// Errors: 403 for widgets, periods and properties beyond the session; 400 for more than 100 widgets, one that is named twice, wrong filters.
fn check(
    app: &App,
    viewer: &Viewer,
    body: &AskEmbedData,
) -> Result<(EmbedView, Vec<(Widget, ViewFilters)>)> {
    let view = app.embed_view(viewer)?;
    if body.widgets.len() > WIDGETS_MAX {
        let message = format!("a request asks for at most {WIDGETS_MAX} widgets");
        return Err(ApiError::field(Code::OutOfRange, "widgets", message));
    }
    let asked: BTreeSet<&String> = body.widgets.iter().collect();
    if asked.len() != body.widgets.len() {
        return Err(ApiError::field(Code::InvalidField, "widgets", "a widget is named twice"));
    }
    let widgets = app.embed_widgets(&view, &body.widgets)?;
    let chosen = viewer.check(&body.filters)?;
    let asked = widgets
        .into_iter()
        .map(|widget| {
            let filters = viewer.filters_for(&view, &widget, &chosen)?;
            Ok((widget, filters))
        })
        .collect::<Result<_>>()?;
    Ok((view, asked))
}

/// Answers of widgets by their ids, as text.
pub type FirstData = BTreeMap<String, Box<RawValue>>;

/// Data of the first look, for the page itself: of as many widgets as are answered within `limit`, up to 256 KiB.
///
/// Widgets that fail or come too late are missing; the page asks for them as for all others.
pub fn first_data(app: &App, viewer: &Viewer, view: &EmbedView, limit: Duration) -> FirstData {
    let started = std::time::Instant::now();
    let mut answers = BTreeMap::new();
    let mut bytes = 0;
    let chosen = ViewFilters { period: Some(view.period.clone()), ..ViewFilters::default() };
    for widget in view.config.widgets.iter().filter(|widget| widget.kind != "text") {
        if started.elapsed() > limit {
            break;
        }
        // What fails here is asked for again by the page, which shows why.
        let answer = viewer
            .filters_for(view, widget, &chosen)
            .and_then(|filters| app.embed_answer(viewer, view, widget, &filters));
        if let Ok(body) = answer.and_then(|answer| view::widget(&answer, For::Viewer)) {
            bytes += body.get().len();
            if bytes > FIRST_BYTES_MAX {
                break;
            }
            answers.insert(widget.id.clone(), body);
        }
    }
    answers
}

/// A widget's answer, or `{"error", "code"}` where it has none: one widget that fails leaves the others as they are.
fn one(answer: Result<Box<RawValue>>) -> Result<Box<RawValue>> {
    let error = match answer {
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
    shared: Arc<(Viewer, EmbedView)>,
    asked: Vec<(Widget, ViewFilters)>,
) -> Response {
    let (sender, receiver) = mpsc::channel::<Bytes>(LINES_AHEAD);
    let http = http.clone();
    tokio::spawn(async move {
        let expires_in_seconds = shared.1.expires_in_seconds;
        let mut answers = Answers::new(&http, shared, asked);
        loop {
            let (id, answer) = match answers.next().await {
                Ok(Some(next)) => next,
                Ok(None) => break,
                Err(_) => return,
            };
            let Ok(answer) = answer.or_else(|error| one(Err(error))) else { return };
            let id = json!(id);
            // The answer is an object that is not empty: the id becomes its first field.
            let rest = answer.get().get(1..).unwrap_or_default();
            let line = format!("{{\"widget\":{id},{rest}");
            let sent = sender.send_timeout(Bytes::from(format!("{line}\n")), READER_TIMEOUT).await;
            if sent.is_err() {
                return;
            }
        }
        let last = json!({"expires_in_seconds": expires_in_seconds});
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
pub struct Lines(pub mpsc::Receiver<Bytes>);

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

/// Which values are wanted.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct AskEmbedValues {
    /// The string property whose values are listed.
    #[schema(min_length = 1, max_length = 128, example = "plan")]
    dimension: String,
    /// Part of the values wanted, in any case.
    #[serde(default)]
    #[schema(max_length = 200, example = "pro")]
    search: String,
    /// What the viewer has chosen of other properties.
    #[serde(default)]
    #[schema(value_type = Object)]
    filters: WireFilters,
}

/// Values of a property, most frequent first.
#[derive(Serialize, ToSchema)]
pub struct EmbeddedValues {
    values: Vec<ValueCount>,
    /// Whether there are more than these; a search finds them.
    has_more: bool,
}

/// A value and the number of events that have it.
#[derive(Serialize, ToSchema)]
struct ValueCount {
    #[schema(example = "pro")]
    value: String,
    count: u64,
}

/// Lists values of a property to filter by, most frequent first, at most 100.
///
/// ```text
/// POST /v1/embed/values {"dimension": "model", "search": "LARGE"}
/// 200 {"values":[{"value":"gpt-large","count":21}],"has_more":false}
/// POST /v1/embed/values {"dimension": "plan"}
/// 403 this session lists no values of plan          the dashboard does not offer it
/// ```
pub async fn values(
    State(http): State<Http>,
    viewer: Viewer,
    body: Body<AskEmbedValues>,
) -> Result<NotStored<EmbeddedValues>> {
    let found = http
        .run_query(&viewer.org.clone(), move |app| {
            let body = body.read()?;
            let view = app.embed_view(&viewer)?;
            app.embed_values(&viewer, &view, &body.dimension, &body.search, &body.filters)
        })
        .await?;
    let values = found.values.into_iter().map(|(value, count)| ValueCount { value, count });
    Ok(NotStored(EmbeddedValues { values: values.collect(), has_more: found.has_more }))
}

/// Which slice is wanted.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct AskEmbedDetail {
    #[schema(example = "calls")]
    widget: String,
    /// The property that the widget is grouped by.
    #[schema(min_length = 1, max_length = 128, example = "plan")]
    dimension: String,
    /// Value of the property that the row is grouped by.
    #[schema(example = "pro")]
    value: String,
    /// What the viewer has chosen.
    #[serde(default)]
    #[schema(value_type = Object)]
    filters: WireFilters,
}

/// One slice of a widget; each part as a widget's answer.
#[derive(Serialize, ToSchema)]
pub struct EmbeddedDetail {
    /// The number, compared with the window before.
    #[schema(value_type = Object)]
    total: Box<RawValue>,
    /// The number over time.
    #[schema(value_type = Object)]
    course: Box<RawValue>,
    breakdowns: Vec<Breakdown>,
}

/// The number by another property.
#[derive(Serialize, ToSchema)]
struct Breakdown {
    #[schema(example = "model")]
    dimension: String,
    #[schema(value_type = Object)]
    answer: Box<RawValue>,
}

/// Breaks one slice of a widget down further, on a click.
///
/// ```text
/// POST /v1/embed/detail {"widget": "models", "dimension": "model", "value": "gpt-large", "filters": {"period": "24h"}}
/// 200 {"total":{"data":[{"value":3}],…},"course":{"data":[{"bucket":"2026-11-27T00:00:00.000Z","value":0},…],…},"breakdowns":[]}
/// 403 this session does not allow drilling down     without the permission `allow_drill_down`
/// ```
pub async fn detail(
    State(http): State<Http>,
    viewer: Viewer,
    body: Body<AskEmbedDetail>,
) -> Result<NotStored<EmbeddedDetail>> {
    http.run_query(&viewer.org.clone(), move |app| {
        let body = body.read()?;
        let view = app.embed_view(&viewer)?;
        let ids = std::slice::from_ref(&body.widget);
        let [widget] = <[Widget; 1]>::try_from(app.embed_widgets(&view, ids)?)
            .map_err(|_| ApiError::not_found("widget"))?;
        let slice = (body.dimension.as_str(), body.value.as_str());
        let detail = app.embed_detail(&viewer, &view, &widget, slice, &body.filters)?;
        let breakdown = |(dimension, answer)| {
            Ok(Breakdown { dimension, answer: view::widget(&answer, For::Viewer)? })
        };
        Ok(NotStored(EmbeddedDetail {
            total: view::widget(&detail.total, For::Viewer)?,
            course: view::widget(&detail.course, For::Viewer)?,
            breakdowns: detail.breakdowns.into_iter().map(breakdown).collect::<Result<_>>()?,
        }))
    })
    .await
}
