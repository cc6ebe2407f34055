//! `GET /v1/audit`.

use axum::{Json, extract::State};
use serde_json::{Value, json};

use super::view::list as view_list;
use crate::{app::Caller, base::instant, error::Result, http::context::Http, store::AuditRow};

/// The newest rows.
pub async fn list(State(http): State<Http>, caller: Caller) -> Result<Json<Value>> {
    let rows = http.run(move |app| app.audit_rows(&caller)).await?;
    Ok(Json(view_list(rows.iter().map(view).collect())))
}

fn view(row: &AuditRow) -> Value {
    json!({
        "id": row.id, "action": row.action, "actor": row.actor,
        "target": {"type": row.target.0, "id": row.target.1},
        "metadata": row.metadata, "ip": row.ip, "created_at": instant::format(row.created_at),
    })
}
