//! `/v1/saved-queries`: kept, changed, starred, deleted.

use axum::{
    Json,
    body::Bytes,
    extract::State,
    http::{HeaderMap, StatusCode},
};
use serde::Deserialize;
use serde_json::{Value, json};

use super::view::list as view_list;
use crate::{
    app::{Caller, SavedQueryChange},
    base::instant,
    error::Result,
    http::{
        context::Http,
        extract::{self, Id},
    },
    store::SavedQuery,
};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct CreateBody {
    name: String,
    sql: String,
    dataset: Option<String>,
    #[serde(default)]
    starred: bool,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct UpdateBody {
    name: Option<String>,
    sql: Option<String>,
    dataset: Option<String>,
    starred: Option<bool>,
}

/// All of the organisation: starred ones first, then newest first.
pub async fn list(State(http): State<Http>, caller: Caller) -> Result<Json<Value>> {
    let queries = http.run(move |app| app.saved_queries(&caller)).await?;
    Ok(Json(view_list(queries.iter().map(view).collect())))
}

/// Keeps a query. 201.
pub async fn create(
    State(http): State<Http>,
    caller: Caller,
    headers: HeaderMap,
    body: Bytes,
) -> Result<(StatusCode, Json<Value>)> {
    let body: CreateBody = extract::json(&headers, &body)?;
    let new = SavedQueryChange {
        name: Some(body.name),
        sql: Some(body.sql),
        dataset: body.dataset,
        starred: Some(body.starred),
    };
    let query = http.run(move |app| app.create_saved_query(&caller, new)).await?;
    Ok((StatusCode::CREATED, Json(view(&query))))
}

/// Changes a query.
pub async fn update(
    State(http): State<Http>,
    caller: Caller,
    Id(id): Id,
    headers: HeaderMap,
    body: Bytes,
) -> Result<Json<Value>> {
    let query = http
        .run(move |app| {
            app.find_saved_query(&caller, &id)?;
            let body: UpdateBody = extract::json(&headers, &body)?;
            let change = SavedQueryChange {
                name: body.name,
                sql: body.sql,
                dataset: body.dataset,
                starred: body.starred,
            };
            app.update_saved_query(&caller, &id, change)
        })
        .await?;
    Ok(Json(view(&query)))
}

/// Deletes a query. 204.
pub async fn delete(State(http): State<Http>, caller: Caller, Id(id): Id) -> Result<StatusCode> {
    http.run(move |app| app.delete_saved_query(&caller, &id)).await?;
    Ok(StatusCode::NO_CONTENT)
}

fn view(query: &SavedQuery) -> Value {
    json!({
        "id": query.id, "name": query.name, "sql": query.sql, "dataset": query.dataset,
        "starred": query.starred, "created_by": query.created_by,
        "created_at": instant::format(query.created_at),
        "updated_at": instant::format(query.updated_at),
    })
}
