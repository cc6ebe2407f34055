//! `POST /v1/widgets/preview/data`: a widget's data without saving it.

use std::collections::BTreeMap;

use axum::{Json, body::Bytes, extract::State, http::HeaderMap};
use serde::Deserialize;
use serde_json::value::RawValue;

use super::view;
use crate::{
    app::{Caller, Preview},
    error::Result,
    http::{context::Http, extract},
    store::{OneOrMany, Widget},
};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct PreviewBody {
    widget: Widget,
    tenant_id: Option<String>,
    #[serde(default)]
    overrides: Overrides,
}

#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields, default)]
struct Overrides {
    period: Option<String>,
    filters: BTreeMap<String, OneOrMany>,
}

/// Answers as `GET /v1/query`.
pub async fn preview(
    State(http): State<Http>,
    caller: Caller,
    headers: HeaderMap,
    body: Bytes,
) -> Result<Json<Box<RawValue>>> {
    let body: PreviewBody = extract::json(&headers, &body)?;
    let preview = Preview {
        widget: body.widget,
        tenant: body.tenant_id,
        period: body.overrides.period,
        filters: body.overrides.filters,
    };
    let body =
        http.run_query(move |app| view::widget(&app.preview_widget(&caller, &preview)?)).await?;
    Ok(Json(body))
}
