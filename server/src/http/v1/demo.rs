//! `GET /v1/demo/embed-url`.

use axum::{
    Json,
    extract::{Query, State},
};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::{base::instant, error::Result, http::context::Http};

#[derive(Deserialize)]
pub struct Parameters {
    tenant_id: Option<String>,
}

/// A fresh session of the demo. 404 when the server runs without it.
pub async fn embed_url(
    State(http): State<Http>,
    Query(parameters): Query<Parameters>,
) -> Result<Json<Value>> {
    let (minted, tenant, dashboard) =
        http.run(move |app| app.demo_session(parameters.tenant_id.as_deref())).await?;
    Ok(Json(json!({
        "embed_url": minted.url, "expires_at": instant::format(minted.expires_at),
        "tenant_id": tenant, "dashboard_id": dashboard,
    })))
}
