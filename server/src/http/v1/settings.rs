//! `/v1/settings/org`: what the organisation is called, and deleting it.

use axum::{
    Json,
    body::Bytes,
    extract::State,
    http::{HeaderMap, StatusCode},
};
use serde::Deserialize;
use serde_json::Value;

use super::auth;
use crate::{
    app::Caller,
    error::Result,
    http::{context::Http, extract},
};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct UpdateBody {
    name: Option<String>,
    email: Option<String>,
}

/// The organisation.
pub async fn get(State(http): State<Http>, caller: Caller) -> Result<Json<Value>> {
    let org = http.run(move |app| app.org(&caller.org)).await?;
    Ok(Json(auth::org(&org)))
}

/// Changes its name or contact address.
pub async fn update(
    State(http): State<Http>,
    caller: Caller,
    headers: HeaderMap,
    body: Bytes,
) -> Result<Json<Value>> {
    let body: UpdateBody = extract::json(&headers, &body)?;
    let org = http
        .run(move |app| app.update_org(&caller, body.name.as_deref(), body.email.as_deref()))
        .await?;
    Ok(Json(auth::org(&org)))
}

/// Deletes the organisation and everything that belongs to it. 204.
pub async fn delete(State(http): State<Http>, caller: Caller) -> Result<StatusCode> {
    http.run(move |app| app.delete_org(&caller)).await?;
    Ok(StatusCode::NO_CONTENT)
}
