//! `/v1/settings/org`.

use axum::{extract::State, http::StatusCode};

use crate::{app::Caller, error::Result, http::context::Http};

/// Deletes the organisation and everything that belongs to it. 204.
pub async fn delete(State(http): State<Http>, caller: Caller) -> Result<StatusCode> {
    http.run(move |app| app.delete_org(&caller)).await?;
    Ok(StatusCode::NO_CONTENT)
}
