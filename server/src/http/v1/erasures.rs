//! Erasing events, and the receipts.

use axum::{Json, extract::State, http::StatusCode};
use inlay_engine::{Erasure, Scope};
use serde_json::{Value, json};

use super::view::{instant_or_null, list as view_list};
use crate::{
    app::{Caller, scope_name},
    base::instant,
    error::Result,
    http::{
        context::Http,
        extract::{Id, TenantId, UserId},
    },
};

/// Erases all events of a tenant. 202 with the job.
pub async fn tenant(
    State(http): State<Http>,
    caller: Caller,
    TenantId(tenant): TenantId,
) -> Result<(StatusCode, Json<Value>)> {
    let erasure = http.run(move |app| app.erase_tenant(&caller, &tenant)).await?;
    Ok((StatusCode::ACCEPTED, Json(view(&erasure))))
}

/// Erases all events of one of a tenant's users. 202 with the job.
pub async fn user(
    State(http): State<Http>,
    caller: Caller,
    TenantId(tenant): TenantId,
    UserId(user): UserId,
) -> Result<(StatusCode, Json<Value>)> {
    let erasure = http.run(move |app| app.erase_user(&caller, &tenant, &user)).await?;
    Ok((StatusCode::ACCEPTED, Json(view(&erasure))))
}

/// All erasures of the environment, newest first.
pub async fn list(State(http): State<Http>, caller: Caller) -> Result<Json<Value>> {
    let erasures = http.run(move |app| app.erasures(&caller)).await?;
    Ok(Json(view_list(erasures.iter().map(view).collect())))
}

/// One erasure: how far it is, or its receipt.
pub async fn get(State(http): State<Http>, caller: Caller, Id(id): Id) -> Result<Json<Value>> {
    let erasure = http.run(move |app| app.erasure(&caller, &id)).await?;
    Ok(Json(view(&erasure)))
}

fn view(erasure: &Erasure) -> Value {
    let status = match (&erasure.finished_ms, &erasure.pending) {
        (Some(_), _) => "done",
        (None, Some(_)) => "running",
        (None, None) => "pending",
    };
    let tenant = match &erasure.scope {
        Scope::Namespace => None,
        Scope::Tenant(tenant) | Scope::User(tenant, _) => Some(tenant.to_string()),
    };
    json!({
        "id": erasure.id.to_string(), "scope": scope_name(erasure), "tenant_id": tenant, "status": status,
        "events_removed": erasure.rows_removed, "event_ids_forgotten": erasure.ids_removed,
        "segments_rewritten": erasure.segments_changed,
        "requested_at": instant::format(erasure.requested_ms),
        "finished_at": instant_or_null(erasure.finished_ms),
    })
}
