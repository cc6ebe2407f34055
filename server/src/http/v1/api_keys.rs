//! `/v1/api-keys`: listed by prefix, made, revoked.
//!
//! ```text
//! POST /v1/api-keys {"label": "Backend", "scope": "ingest"}
//! 201 {"id":"01a21f84-f455-…","label":"Backend","scope":"ingest","prefix":"inlay_ingest_tGyGO","environment":"production",
//!      "created_at":"2026-11-28T00:18:56.725Z","created_by":null,"last_used_at":null,
//!      "key":"inlay_ingest_tGyGOtpN8YehA7tbmz7uGTBiimYLZm698kcCtW-sojQC5BYQ2"}
//!
//! POST /v1/api-keys {"label": "Backend", "scope": "write"}
//! 400 {"code":"unknown_value","error":"scope must be one of admin, ingest","field":"scope",…}
//! ```
//!
//! The store has a digest of the key; a key that is lost is revoked and replaced.

use axum::extract::State;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::view::{Name, Time};
use crate::{
    app::{Caller, KeyRequest},
    error::Result,
    http::{
        extract::{Body, Id, Page, Params},
        respond::{Created, List, NoContent},
        state::context::Http,
    },
    store::{ApiKey, Scope},
};

/// A key to make.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct CreateApiKey {
    /// A label by which people recognise the key.
    #[schema(value_type = Name, example = "Backend")]
    label: String,
    /// `ingest` sends events, `admin` does everything.
    scope: Scope,
    /// Name of its environment; the caller's by default.
    #[schema(example = "production", pattern = "^(production|development)$")]
    environment: Option<String>,
}

/// A key as everybody may see it.
#[derive(Serialize, ToSchema)]
#[schema(as = ApiKey)]
pub struct ApiKeyView {
    #[schema(format = Uuid)]
    id: String,
    label: String,
    scope: Scope,
    /// The first characters, for recognition.
    #[schema(example = "inlay_admin_Vb3kQz")]
    prefix: String,
    environment: String,
    created_at: Time,
    /// Id of the user, if a user made it.
    created_by: Option<String>,
    /// To the minute.
    last_used_at: Option<Time>,
}

/// A key that was just made, with the whole of it.
#[derive(Serialize, ToSchema)]
#[schema(as = NewApiKey)]
pub struct NewApiKeyView {
    #[serde(flatten)]
    pub record: ApiKeyView,
    /// The whole key, shown this once.
    pub key: String,
}

/// All keys that the caller sees, newest first, without their secrets: of the organisation for a session, of its environment for a key.
///
/// ```text
/// GET /v1/api-keys?limit=1
/// 200 {"data":[{"id":"01a21f84-f455-…","label":"Backend",…}],"next":"01a21f84-f455-7000-a7e5-e8da328d01f9"}
/// ```
pub async fn list(
    State(http): State<Http>,
    caller: Caller,
    Params(page): Params<Page>,
) -> Result<List<ApiKeyView>> {
    let keys = http.run(move |app| app.api_keys(&caller)).await?;
    let (keys, next) = page.cut(keys, |(key, _)| key.id.clone())?;
    let data = keys.into_iter().map(|(key, environment)| view(key, environment)).collect();
    Ok(List { data, next })
}

/// Makes a key: the one answer that holds the whole of it. 201, or 402 `api_keys_limit` when the plan has no room for another key.
pub async fn create(
    State(http): State<Http>,
    caller: Caller,
    body: Body<CreateApiKey>,
) -> Result<Created<NewApiKeyView>> {
    let body = body.read()?;
    let request =
        KeyRequest { label: body.label, scope: body.scope, environment: body.environment };
    let made = http.run(move |app| app.create_api_key(&caller, &request)).await?;
    Ok(Created(NewApiKeyView { record: view(made.key, made.environment), key: made.secret }))
}

/// Revokes a key. 204, also for the key of the request itself; from now on it is 401.
pub async fn revoke(State(http): State<Http>, caller: Caller, Id(id): Id) -> Result<NoContent> {
    http.run(move |app| app.revoke_api_key(&caller, &id)).await?;
    Ok(NoContent)
}

/// A key as everybody may see it.
pub fn view(key: ApiKey, environment: String) -> ApiKeyView {
    ApiKeyView {
        id: key.id,
        label: key.label,
        scope: key.scope,
        prefix: key.prefix,
        environment,
        created_at: Time(key.created_at),
        // None where another key made it: the audit names that one.
        created_by: key.created_by,
        last_used_at: key.last_used_at.map(Time),
    }
}
