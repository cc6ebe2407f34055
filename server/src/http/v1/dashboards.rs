//! `/v1/dashboards` and their inline widgets.
//!
//! Editors change a draft; embeds show the snapshot of the last publishing.
//!
//! ```text
//! request                                                   answer                                       version, status
//! POST /v1/dashboards {"name": "Usage", "widgets": […]}     201 {"id":"01a21f85-7783-…",…}               1, draft
//! PATCH /v1/dashboards/01a21f85-… {"name": "Usage 2"}       200, ETag: "2"                               2, draft
//! the same, If-Match: "1"                                   409 the dashboard is at version 2 by now     2, draft
//! GET …/published                                           404 published dashboard not found
//! POST …/publish                                            204                                          3, published
//! POST …/widgets {"id": "lat", "kind": "line", …}           201 the widget                               4, has_unpublished_changes
//! POST …/widgets, another "lat"                             409 another widget has this id               4
//! PATCH …/widgets/lat {"title": "p95"}                      200 the widget                               5
//! GET …, If-None-Match: "5"                                 304
//! POST …/restore-published                                  200, the draft as it was published           6
//! POST …/unpublish                                          204: embeds show that it is not published
//! ```
//!
//! A body with several mistakes is answered once:
//!
//! ```text
//! POST /v1/dashboards {"title": "x", "widgets": [{"w": 0}]}
//! 400 {"code":"unknown_field","error":"title is not a field of this request","details":[
//!   {"field":"title","code":"unknown_field",…},{"field":"widgets[0].w","code":"unknown_field",…},
//!   {"field":"widgets[0].id","code":"missing_field","message":"widgets[0].id is required"},…,{"field":"name","code":"missing_field",…}],…}
//! ```

use axum::extract::State;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use utoipa::ToSchema;

use super::view::{Name, Time};
use crate::{
    app::{Caller, DashboardChange, NewDashboard, Status, WidgetChange},
    error::{ApiError, Result},
    http::{
        extract::{BaseVersion, Body, Id, KnownVersion, Page, Params, WidgetId},
        respond::{Answer, Created, List, NoContent, Versioned},
        state::context::Http,
    },
    store::{Dashboard, DashboardConfig, Layout, Settings, Widget},
};

/// A dashboard to make.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct CreateDashboard {
    #[schema(value_type = Name, example = "Usage")]
    name: String,
    #[serde(default)]
    #[schema(max_items = 100)]
    widgets: Vec<Widget>,
    #[serde(default)]
    settings: Settings,
}

/// What to change of the draft; absent parts stay.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct UpdateDashboard {
    #[schema(value_type = Option<Name>)]
    name: Option<String>,
    /// All of them.
    #[schema(max_items = 100)]
    widgets: Option<Vec<Widget>>,
    settings: Option<Settings>,
}

/// What to change of a widget; absent parts stay.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct UpdateDashboardWidget {
    title: Option<String>,
    #[schema(value_type = Option<Object>)]
    query: Option<Map<String, Value>>,
    #[schema(value_type = Option<Object>)]
    viz: Option<Map<String, Value>>,
    layout: Option<Layout>,
}

/// A dashboard: its draft, and where it is in its life.
#[derive(Serialize, ToSchema)]
#[schema(as = Dashboard)]
pub struct DashboardView {
    #[schema(format = Uuid)]
    id: String,
    #[schema(example = "Usage")]
    name: String,
    status: Status,
    /// Whether the draft differs from what was published last.
    has_unpublished_changes: bool,
    /// Rises with every change; `If-Match` takes it.
    #[schema(example = 7)]
    version: u64,
    widgets: Vec<Widget>,
    settings: Settings,
    published_at: Option<Time>,
    created_at: Time,
    updated_at: Time,
    /// Label of who made it.
    created_by: String,
}

/// The snapshot of a dashboard that was published last.
#[derive(Serialize, ToSchema)]
pub struct PublishedDashboard {
    #[schema(example = "Usage")]
    name: String,
    widgets: Vec<Widget>,
    settings: Settings,
    published_at: Time,
}

/// All dashboards of the environment, newest first, with their drafts.
pub async fn list(
    State(http): State<Http>,
    caller: Caller,
    Params(page): Params<Page>,
) -> Result<List<DashboardView>> {
    let all = http.run(move |app| app.dashboards(&caller)).await?;
    let (all, next) = page.cut(all, |dashboard| dashboard.id.clone())?;
    Ok(List { data: all.into_iter().map(view).collect(), next })
}

/// The draft of a dashboard, its version as `ETag`. 304 when the client has this version.
/// 404 for an id of another environment or organisation, too.
pub async fn get(
    State(http): State<Http>,
    caller: Caller,
    Id(id): Id,
    KnownVersion(known): KnownVersion,
) -> Result<Versioned<DashboardView>> {
    let dashboard = http.run(move |app| app.dashboard(&caller, &id)).await?;
    Ok(Versioned { version: dashboard.version, value: view(dashboard), known })
}

/// What embeds show. 404 when the dashboard was never published.
pub async fn published(
    State(http): State<Http>,
    caller: Caller,
    Id(id): Id,
) -> Result<Answer<PublishedDashboard>> {
    let (config, published_at) = http.run(move |app| app.published_dashboard(&caller, &id)).await?;
    let DashboardConfig { name, widgets, settings } = config;
    Ok(Answer(PublishedDashboard { name, widgets, settings, published_at: Time(published_at) }))
}

/// Makes a dashboard. 201, or 409 for the 1,001st of the organisation. Nothing is published by it.
pub async fn create(
    State(http): State<Http>,
    caller: Caller,
    body: Body<CreateDashboard>,
) -> Result<Created<DashboardView>> {
    let body = body.read()?;
    let new = NewDashboard { name: body.name, widgets: body.widgets, settings: body.settings };
    http.run(move |app| app.create_dashboard(&caller, new)).await.map(view).map(Created)
}

/// Changes the draft; `widgets` and `settings` replace the whole. 409 when `If-Match` names an older version: somebody else has changed it.
pub async fn update(
    State(http): State<Http>,
    caller: Caller,
    Id(id): Id,
    base: BaseVersion,
    body: Body<UpdateDashboard>,
) -> Result<Versioned<DashboardView>> {
    let dashboard = http
        .run(move |app| {
            // Whether it exists comes before what is wrong with the body.
            app.dashboard(&caller, &id)?;
            let body = body.read()?;
            let change = DashboardChange {
                name: body.name,
                widgets: body.widgets,
                settings: body.settings,
                if_match: base.read()?,
            };
            app.update_dashboard(&caller, &id, change)
        })
        .await?;
    Ok(Versioned { version: dashboard.version, value: view(dashboard), known: None })
}

/// Deletes a dashboard with its draft and snapshot. 204. Alert rules over it are switched off; embeds of it are 404.
pub async fn delete(State(http): State<Http>, caller: Caller, Id(id): Id) -> Result<NoContent> {
    http.run(move |app| app.delete_dashboard(&caller, &id)).await?;
    Ok(NoContent)
}

/// Publishes the draft. 204, or 402 when the plan has no place left:
///
/// ```text
/// 402 {"code":"published_dashboards_limit","error":"the plan free allows 1 published dashboards","plan":"free","upgrade_to":"growth",
///      "limit":1,"used":1,…}
/// ```
pub async fn publish(State(http): State<Http>, caller: Caller, Id(id): Id) -> Result<NoContent> {
    http.run(move |app| app.publish_dashboard(&caller, &id)).await?;
    Ok(NoContent)
}

/// Embeds show nothing of it from now on: `not_published`. 204. The snapshot stays, for [`restore`].
pub async fn unpublish(State(http): State<Http>, caller: Caller, Id(id): Id) -> Result<NoContent> {
    http.run(move |app| app.unpublish_dashboard(&caller, &id)).await?;
    Ok(NoContent)
}

/// Replaces the draft by the published snapshot. 409 "the dashboard was never published" when there is none.
pub async fn restore(
    State(http): State<Http>,
    caller: Caller,
    Id(id): Id,
) -> Result<Answer<DashboardView>> {
    http.run(move |app| app.restore_dashboard(&caller, &id)).await.map(view).map(Answer)
}

/// Adds a widget to the draft. 201 with the widget; its id is the caller's, unique in the dashboard.
pub async fn add_widget(
    State(http): State<Http>,
    caller: Caller,
    Id(id): Id,
    body: Body<Widget>,
) -> Result<Created<Widget>> {
    let widget = http
        .run(move |app| {
            app.dashboard(&caller, &id)?;
            app.add_widget(&caller, &id, body.read()?)
        })
        .await?;
    Ok(Created(widget))
}

/// Changes a widget of the draft. 404 "widget not found", 409 by `If-Match` as for the whole.
pub async fn update_widget(
    State(http): State<Http>,
    caller: Caller,
    Id(id): Id,
    WidgetId(widget_id): WidgetId,
    base: BaseVersion,
    body: Body<UpdateDashboardWidget>,
) -> Result<Answer<Widget>> {
    let widget = http
        .run(move |app| {
            let dashboard = app.dashboard(&caller, &id)?;
            if !dashboard.draft.widgets.iter().any(|widget| widget.id == widget_id) {
                return Err(ApiError::not_found("widget"));
            }
            let body = body.read()?;
            let change = WidgetChange {
                title: body.title,
                query: body.query,
                viz: body.viz,
                layout: body.layout,
            };
            app.update_widget(&caller, &id, &widget_id, change, base.read()?)
        })
        .await?;
    Ok(Answer(widget))
}

/// Removes a widget from the draft. 204.
pub async fn delete_widget(
    State(http): State<Http>,
    caller: Caller,
    Id(id): Id,
    WidgetId(widget_id): WidgetId,
) -> Result<NoContent> {
    http.run(move |app| app.delete_widget(&caller, &id, &widget_id)).await?;
    Ok(NoContent)
}

fn view(dashboard: Dashboard) -> DashboardView {
    DashboardView {
        status: dashboard.status(),
        has_unpublished_changes: dashboard.has_unpublished_changes(),
        id: dashboard.id,
        name: dashboard.draft.name,
        version: dashboard.version,
        widgets: dashboard.draft.widgets,
        settings: dashboard.draft.settings,
        published_at: dashboard.published_at.map(Time),
        created_at: Time(dashboard.created_at),
        updated_at: Time(dashboard.updated_at),
        created_by: dashboard.created_by,
    }
}
