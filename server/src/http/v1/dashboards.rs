//! `/v1/dashboards` and their inline widgets.

use axum::{
    Json,
    body::Bytes,
    extract::State,
    http::{HeaderMap, StatusCode, header},
};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::view::{instant_or_null, list as view_list};
use crate::{
    app::{Caller, DashboardChange, NewDashboard, Status, WidgetChange},
    base::instant,
    error::{ApiError, Code, Result},
    http::{
        context::Http,
        extract::{self, Id, WidgetId},
    },
    store::{Dashboard, Layout, Settings, Widget},
};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct CreateBody {
    name: String,
    #[serde(default)]
    widgets: Vec<Widget>,
    #[serde(default)]
    settings: Settings,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct UpdateBody {
    name: Option<String>,
    widgets: Option<Vec<Widget>>,
    settings: Option<Settings>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct UpdateWidgetBody {
    title: Option<String>,
    query: Option<Map<String, Value>>,
    viz: Option<Map<String, Value>>,
    layout: Option<Layout>,
}

/// All dashboards, newest first.
pub async fn list(State(http): State<Http>, caller: Caller) -> Result<Json<Value>> {
    let all = http.run(move |app| app.dashboards(&caller)).await?;
    Ok(Json(view_list(all.iter().map(view).collect())))
}

/// One dashboard.
pub async fn get(State(http): State<Http>, caller: Caller, Id(id): Id) -> Result<Json<Value>> {
    let dashboard = http.run(move |app| app.dashboard(&caller, &id)).await?;
    Ok(Json(view(&dashboard)))
}

/// Makes a dashboard. 201.
pub async fn create(
    State(http): State<Http>,
    caller: Caller,
    headers: HeaderMap,
    body: Bytes,
) -> Result<(StatusCode, Json<Value>)> {
    let body: CreateBody = extract::json(&headers, &body)?;
    let new = NewDashboard { name: body.name, widgets: body.widgets, settings: body.settings };
    let dashboard = http.run(move |app| app.create_dashboard(&caller, new)).await?;
    Ok((StatusCode::CREATED, Json(view(&dashboard))))
}

/// Changes the draft. 409 when `If-Match` names an older version.
pub async fn update(
    State(http): State<Http>,
    caller: Caller,
    Id(id): Id,
    headers: HeaderMap,
    body: Bytes,
) -> Result<Json<Value>> {
    let dashboard = http
        .run(move |app| {
            // Whether it exists comes before what is wrong with the body.
            app.dashboard(&caller, &id)?;
            let body: UpdateBody = extract::json(&headers, &body)?;
            let change = DashboardChange {
                name: body.name,
                widgets: body.widgets,
                settings: body.settings,
                if_match: if_match(&headers)?,
            };
            app.update_dashboard(&caller, &id, change)
        })
        .await?;
    Ok(Json(view(&dashboard)))
}

fn if_match(headers: &HeaderMap) -> Result<Option<u64>> {
    let Some(value) = headers.get(header::IF_MATCH) else { return Ok(None) };
    let version = value.to_str().ok().and_then(|text| text.trim().trim_matches('"').parse().ok());
    version.map(Some).ok_or_else(|| {
        ApiError::field(Code::InvalidField, "If-Match", "If-Match must be a version")
    })
}

/// Deletes a dashboard. 204.
pub async fn delete(State(http): State<Http>, caller: Caller, Id(id): Id) -> Result<StatusCode> {
    http.run(move |app| app.delete_dashboard(&caller, &id)).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Publishes the draft. 204, or 402 when the plan has no place left.
pub async fn publish(State(http): State<Http>, caller: Caller, Id(id): Id) -> Result<StatusCode> {
    http.run(move |app| app.publish_dashboard(&caller, &id)).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Ends what embeds show. 204.
pub async fn unpublish(State(http): State<Http>, caller: Caller, Id(id): Id) -> Result<StatusCode> {
    http.run(move |app| app.unpublish_dashboard(&caller, &id)).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Replaces the draft by the published snapshot. 409 when there is none.
pub async fn restore(State(http): State<Http>, caller: Caller, Id(id): Id) -> Result<Json<Value>> {
    let dashboard = http.run(move |app| app.restore_dashboard(&caller, &id)).await?;
    Ok(Json(view(&dashboard)))
}

/// Adds a widget to the draft. 201 with the widget.
pub async fn add_widget(
    State(http): State<Http>,
    caller: Caller,
    Id(id): Id,
    headers: HeaderMap,
    body: Bytes,
) -> Result<(StatusCode, Json<Widget>)> {
    let widget = http
        .run(move |app| {
            app.dashboard(&caller, &id)?;
            app.add_widget(&caller, &id, extract::json(&headers, &body)?)
        })
        .await?;
    Ok((StatusCode::CREATED, Json(widget)))
}

/// Changes a widget of the draft.
pub async fn update_widget(
    State(http): State<Http>,
    caller: Caller,
    Id(id): Id,
    WidgetId(widget_id): WidgetId,
    headers: HeaderMap,
    body: Bytes,
) -> Result<Json<Widget>> {
    let widget = http
        .run(move |app| {
            let dashboard = app.dashboard(&caller, &id)?;
            if !dashboard.draft.widgets.iter().any(|widget| widget.id == widget_id) {
                return Err(ApiError::not_found("widget"));
            }
            let body: UpdateWidgetBody = extract::json(&headers, &body)?;
            let change = WidgetChange {
                title: body.title,
                query: body.query,
                viz: body.viz,
                layout: body.layout,
            };
            app.update_widget(&caller, &id, &widget_id, change)
        })
        .await?;
    Ok(Json(widget))
}

/// Removes a widget from the draft. 204.
pub async fn delete_widget(
    State(http): State<Http>,
    caller: Caller,
    Id(id): Id,
    WidgetId(widget_id): WidgetId,
) -> Result<StatusCode> {
    http.run(move |app| app.delete_widget(&caller, &id, &widget_id)).await?;
    Ok(StatusCode::NO_CONTENT)
}

fn view(dashboard: &Dashboard) -> Value {
    let status = match dashboard.status() {
        Status::Draft => "draft",
        Status::Published => "published",
        Status::Unpublished => "unpublished",
    };
    json!({
        "id": dashboard.id, "name": dashboard.draft.name, "status": status,
        "has_unpublished_changes": dashboard.has_unpublished_changes(),
        "version": dashboard.version,
        "widgets": dashboard.draft.widgets, "settings": dashboard.draft.settings,
        "published_at": instant_or_null(dashboard.published_at),
        "created_at": instant::format(dashboard.created_at),
        "updated_at": instant::format(dashboard.updated_at),
        "created_by": dashboard.created_by,
    })
}
