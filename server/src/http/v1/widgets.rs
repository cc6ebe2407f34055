//! `/v1/widgets`: standalone widgets, and a widget's data without saving it.
//!
//! ```text
//! POST /v1/widgets {"kind": "number", "title": "Calls", "query": {"event_name": "api_call", "metric": "count", "period": "7d"}}
//! 201 {"id":"01a21f85-77a5-…","kind":"number",…,"viz":{},"layout":{"x":0,"y":0,"w":6,"h":4},"status":"draft","version":1,…}
//! PATCH /v1/widgets/01a21f85-77a5-… {"title": "All calls"}, If-Match: "1"
//! 200, ETag: "2"
//! POST /v1/widgets/01a21f85-77a5-…/publish
//! 204, version 3, status published
//!
//! POST /v1/widgets/preview/data
//! {"widget": {"id": "t", "kind": "table", "title": "Models", "query": {"event_name": "api_call", "group_by": "model", "period": "7d",
//!    "measures": [{"metric": "count", "label": "Calls"}, {"metric": "avg", "numeric_prop": "latency_ms", "label": "Latency"}]},
//!    "viz": {}, "layout": {"x": 0, "y": 0, "w": 6, "h": 4}},
//!  "tenant_id": "acme", "overrides": {"period": "24h", "filters": {"plan": "pro"}}}
//! 200 {"data":[{"group":"gpt-large","values":[2,58.75]},{"group":"gpt-small","values":[1,100]}],"meta":{…}}
//! ```

use std::collections::BTreeMap;

use axum::extract::State;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use utoipa::{IntoParams, ToSchema};

use super::view::{self, Time, WidgetData};
use crate::{
    app::{Caller, Preview, StandaloneChange, Status, WidgetChange},
    error::Result,
    http::{
        extract::{BaseVersion, Body, Id, KnownVersion, Page, Params, WidgetId},
        respond::{Created, List, NoContent, Versioned, Written},
        state::context::Http,
    },
    store::{Layout, OneOrMany, StandaloneWidget, Widget},
};

/// Columns and rows of a standalone widget that names none.
const LAYOUT: Layout = Layout { x: 0, y: 0, w: 6, h: 4 };

/// A standalone widget to make; its id is ours.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct CreateWidget {
    /// What is drawn.
    #[schema(example = "number")]
    kind: String,
    #[schema(example = "Calls")]
    title: String,
    /// What is asked; the names of `GET /v1/query`.
    #[schema(value_type = Object, example = json!({
        "event_name": "api_call", "metric": "count", "period": "7d",
    }))]
    query: Map<String, Value>,
    /// Options of how the widget is drawn.
    #[serde(default)]
    #[schema(value_type = Object)]
    viz: Map<String, Value>,
    layout: Option<Layout>,
}

/// What to change of a standalone widget; absent parts stay.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct UpdateWidget {
    kind: Option<String>,
    title: Option<String>,
    #[schema(value_type = Option<Object>)]
    query: Option<Map<String, Value>>,
    #[schema(value_type = Option<Object>)]
    viz: Option<Map<String, Value>>,
    layout: Option<Layout>,
}

/// A standalone widget: its draft, and where it is in its life.
#[derive(Serialize, ToSchema)]
#[schema(as = StandaloneWidget)]
pub struct StandaloneView {
    #[serde(flatten)]
    draft: Widget,
    status: Status,
    /// Whether the draft differs from what was published last.
    has_unpublished_changes: bool,
    /// Rises with every change.
    version: u64,
    published_at: Option<Time>,
    created_at: Time,
    updated_at: Time,
    /// Label of who made it.
    created_by: String,
}

/// A widget whose data is wanted.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct PreviewWidget {
    widget: Widget,
    /// Required of API keys; a session may leave it out and sees all tenants.
    #[schema(example = "acme")]
    tenant_id: Option<String>,
    #[serde(default)]
    overrides: Overrides,
}

/// What a viewer would choose.
#[derive(Deserialize, Default, ToSchema)]
#[serde(deny_unknown_fields, default)]
struct Overrides {
    #[schema(example = "24h")]
    period: Option<String>,
    filters: BTreeMap<String, OneOrMany>,
}

/// All standalone widgets, newest first.
pub async fn list(
    State(http): State<Http>,
    caller: Caller,
    Params(page): Params<Page>,
) -> Result<List<StandaloneView>> {
    let all = http.run(move |app| app.standalone_widgets(&caller)).await?;
    let (all, next) = page.cut(all, |widget| widget.id.clone())?;
    Ok(List { data: all.into_iter().map(standalone).collect(), next })
}

/// A standalone widget with its version as `ETag`. 304 when the client has this version, 404 for one of another environment.
pub async fn get(
    State(http): State<Http>,
    caller: Caller,
    Id(id): Id,
    KnownVersion(known): KnownVersion,
) -> Result<Versioned<StandaloneView>> {
    let widget = http.run(move |app| app.standalone_widget(&caller, &id)).await?;
    Ok(Versioned { version: widget.version, value: standalone(widget), known })
}

/// Makes a standalone widget as a draft. 201, or 409 for the 1,001st of the organisation.
pub async fn create(
    State(http): State<Http>,
    caller: Caller,
    body: Body<CreateWidget>,
) -> Result<Created<StandaloneView>> {
    let body = body.read()?;
    let draft = Widget {
        // Replaced by that of the record.
        id: "new".to_owned(),
        kind: body.kind,
        title: body.title,
        query: body.query,
        viz: body.viz,
        layout: body.layout.unwrap_or(LAYOUT),
    };
    let made = http.run(move |app| app.create_standalone_widget(&caller, draft)).await?;
    Ok(Created(standalone(made)))
}

/// Changes the draft; absent parts stay. 409 when `If-Match` names an older version.
pub async fn update(
    State(http): State<Http>,
    caller: Caller,
    Id(id): Id,
    base: BaseVersion,
    body: Body<UpdateWidget>,
) -> Result<Versioned<StandaloneView>> {
    let widget = http
        .run(move |app| {
            app.standalone_widget(&caller, &id)?;
            let UpdateWidget { kind, title, query, viz, layout } = body.read()?;
            let rest = WidgetChange { title, query, viz, layout };
            let change = StandaloneChange { kind, rest };
            app.update_standalone_widget(&caller, &id, change, base.read()?)
        })
        .await?;
    Ok(Versioned { version: widget.version, value: standalone(widget), known: None })
}

/// Publishes a snapshot of the draft. 204.
pub async fn publish(State(http): State<Http>, caller: Caller, Id(id): Id) -> Result<NoContent> {
    http.run(move |app| app.publish_standalone_widget(&caller, &id)).await?;
    Ok(NoContent)
}

/// Deletes a standalone widget with its snapshot. 204.
pub async fn delete(State(http): State<Http>, caller: Caller, Id(id): Id) -> Result<NoContent> {
    http.run(move |app| app.delete_standalone_widget(&caller, &id)).await?;
    Ok(NoContent)
}

/// Answers a widget that need not be stored, as `GET /v1/query` does: the editor draws with it while somebody types. A text has no data:
/// `{"data":[],"meta":{}}`.
pub async fn preview(
    State(http): State<Http>,
    caller: Caller,
    body: Body<PreviewWidget>,
) -> Result<Written<WidgetData>> {
    let body = body.read()?;
    let preview = Preview {
        widget: body.widget,
        tenant: body.tenant_id,
        period: body.overrides.period,
        filters: body.overrides.filters,
    };
    let body = http
        .run_query(&caller.org.clone(), move |app| {
            view::widget(&app.preview_widget(&caller, &preview)?, view::For::Builder)
        })
        .await?;
    Ok(body.into())
}

/// For whom, and over which time.
#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
pub struct WidgetParameters {
    /// A tenant; all of the environment without it, which an API key may not ask for.
    tenant_id: Option<String>,
    /// In place of the widget's own.
    #[param(example = "7d")]
    period: Option<String>,
}

/// Answers a widget of a draft as `GET /v1/query`.
///
/// ```text
/// GET /v1/dashboards/01a21f85-…/widgets/calls/data?tenant_id=acme&period=7d
/// 200 {"data":[{"value":32}],"meta":{…},"spark":[{"bucket":"2026-11-21T00:00:00.000Z","value":5},…]}
/// the same without tenant_id, with a key
/// 400 tenant_id is required
/// ```
pub async fn data(
    State(http): State<Http>,
    caller: Caller,
    Id(id): Id,
    WidgetId(widget_id): WidgetId,
    Params(parameters): Params<WidgetParameters>,
) -> Result<Written<WidgetData>> {
    let WidgetParameters { tenant_id, period } = parameters;
    let body = http
        .run_query(&caller.org.clone(), move |app| {
            let answer = app.draft_widget_data(&caller, &id, &widget_id, tenant_id, period)?;
            view::widget(&answer, view::For::Builder)
        })
        .await?;
    Ok(body.into())
}

fn standalone(widget: StandaloneWidget) -> StandaloneView {
    StandaloneView {
        status: if widget.published.is_some() { Status::Published } else { Status::Draft },
        has_unpublished_changes: widget.has_unpublished_changes(),
        draft: widget.draft,
        version: widget.version,
        published_at: widget.published_at.map(Time),
        created_at: Time(widget.created_at),
        updated_at: Time(widget.updated_at),
        created_by: widget.created_by,
    }
}
