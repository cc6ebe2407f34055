//! `/v1/api-keys`: listed by prefix, made, revoked.

use axum::{
    Json,
    body::Bytes,
    extract::State,
    http::{HeaderMap, StatusCode},
};
use serde::Deserialize;
use serde_json::{Value, json};

use super::view::{instant_or_null, list as view_list};
use crate::{
    app::{Caller, KeyRequest},
    base::instant,
    error::{ApiError, Code, Result},
    http::{
        context::Http,
        extract::{self, Id},
    },
    store::{ApiKey, Scope},
};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct KeyBody {
    label: String,
    scope: String,
    environment: Option<String>,
}

/// All keys, newest first.
pub async fn list(State(http): State<Http>, caller: Caller) -> Result<Json<Value>> {
    let keys = http.run(move |app| app.api_keys(&caller)).await?;
    Ok(Json(view_list(keys.iter().map(|(key, environment)| view(key, environment)).collect())))
}

/// Makes a key: the one answer that holds the whole of it. 201.
pub async fn create(
    State(http): State<Http>,
    caller: Caller,
    headers: HeaderMap,
    body: Bytes,
) -> Result<(StatusCode, Json<Value>)> {
    let body: KeyBody = extract::json(&headers, &body)?;
    let scope = match body.scope.as_str() {
        "admin" => Scope::Admin,
        "ingest" => Scope::Ingest,
        other => {
            let message = format!("scope must be admin or ingest, not {other:?}");
            return Err(ApiError::field(Code::UnknownValue, "scope", message));
        }
    };
    let request = KeyRequest { label: body.label, scope, environment: body.environment };
    let made = http.run(move |app| app.create_api_key(&caller, &request)).await?;
    let mut view = view(&made.key, &made.environment);
    view["key"] = json!(made.secret);
    Ok((StatusCode::CREATED, Json(view)))
}

/// Revokes a key. 204.
pub async fn revoke(State(http): State<Http>, caller: Caller, Id(id): Id) -> Result<StatusCode> {
    http.run(move |app| app.revoke_api_key(&caller, &id)).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// A key as everybody may see it.
pub fn view(key: &ApiKey, environment: &str) -> Value {
    json!({
        "id": key.id, "label": key.label, "scope": key.scope, "prefix": key.prefix, "environment": environment,
        "created_at": instant::format(key.created_at), "created_by": key.created_by,
        "last_used_at": instant_or_null(key.last_used_at),
    })
}
