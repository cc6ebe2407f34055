//! `/v1/embed-sessions`: minting, listing and ending sessions. Their data is `embed_data`.
//!
//! A backend mints a session for one of its customers, and puts the address into a frame:
//!
//! ```text
//! POST /v1/embed-sessions
//! {"tenant_id": "acme", "dashboard_id": "01a21f85-7783-…", "expires_in": 3600,
//!  "permissions": {"locked_filters": {"plan": "pro"}, "hidden_widgets": ["models"], "allowed_periods": ["24h", "7d"]}}
//!
//! 201 {"token":"eyJ0eXAiOiJlbWJlZCtqd3QiLCJhbGciOiJIUzI1NiIs…","embed_url":"https://inlay.acme.com/embed/01a21f85-7783-…?token=eyJ0…",
//!      "expires_at":"2026-11-28T01:20:12.000Z"}
//! 400 expires_in must be at least 60                          with "expires_in": 5
//! 402 advanced_embed_permissions                              hidden widgets and the like, on the plan free
//! 404 dashboard not found
//! ```

use axum::extract::State;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::view::Time;
use crate::{
    app::{Caller, EmbedRequest},
    error::Result,
    http::{
        extract::{Body, Id, Page, Params},
        respond::{Created, List, NoContent},
        state::context::Http,
    },
    store::{Actor, EmbedSession, Permissions},
};

/// A session to mint.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct CreateEmbedSession {
    /// The customer whose data is shown.
    #[schema(min_length = 1, max_length = 256, example = "acme")]
    tenant_id: String,
    #[schema(format = Uuid, example = "0190aaaa-0000-7000-8000-000000000000")]
    dashboard_id: String,
    /// Seconds; 3,600 by default.
    #[schema(minimum = 60, maximum = 86400, example = 3600)]
    expires_in: Option<i64>,
    #[serde(default)]
    permissions: Permissions,
}

/// A minted session.
#[derive(Serialize, ToSchema)]
#[schema(as = NewEmbedSession)]
pub struct NewEmbedSessionView {
    /// Signed; the frame carries it.
    token: String,
    /// The page for the frame.
    #[schema(format = Uri)]
    embed_url: String,
    expires_at: Time,
}

/// A session that is still valid.
#[derive(Serialize, ToSchema)]
#[schema(as = EmbedSession)]
pub struct EmbedSessionView {
    #[schema(format = Uuid)]
    id: String,
    tenant_id: String,
    resource: Resource,
    #[schema(example = "embed:read")]
    scope: &'static str,
    permissions: Permissions,
    actor: Actor,
    issued_at: Time,
    expires_at: Time,
    ttl_seconds: i64,
}

/// What a session shows.
#[derive(Serialize, ToSchema)]
struct Resource {
    #[schema(example = "dashboard")]
    r#type: &'static str,
    #[schema(format = Uuid)]
    id: String,
    name: String,
}

/// Mints a session. 201. The dashboard need not be published yet; until it is, the page says so.
pub async fn create(
    State(http): State<Http>,
    caller: Caller,
    body: Body<CreateEmbedSession>,
) -> Result<Created<NewEmbedSessionView>> {
    let body = body.read()?;
    let request = EmbedRequest {
        tenant_id: body.tenant_id,
        dashboard_id: body.dashboard_id,
        expires_in: body.expires_in,
        permissions: body.permissions,
    };
    let minted = http.run(move |app| app.create_embed_session(&caller, request)).await?;
    Ok(Created(NewEmbedSessionView {
        token: minted.token,
        embed_url: minted.url,
        expires_at: Time(minted.expires_at),
    }))
}

/// Sessions that are still valid, newest first, without their tokens.
///
/// ```text
/// GET /v1/embed-sessions
/// 200 {"data":[{"id":"01a21f86-1ac2-…","tenant_id":"acme","resource":{"type":"dashboard","id":"01a21f85-…","name":"Usage 2"},
///               "scope":"embed:read","permissions":{…},"actor":{"type":"api_key","label":"Default admin key",…},
///               "issued_at":"2026-11-28T00:20:12.000Z","expires_at":"2026-11-28T01:20:12.000Z","ttl_seconds":3599}],"next":null}
/// ```
pub async fn list(
    State(http): State<Http>,
    caller: Caller,
    Params(page): Params<Page>,
) -> Result<List<EmbedSessionView>> {
    let now = http.app.now_ms();
    let sessions = http.run(move |app| app.embed_sessions(&caller)).await?;
    let (sessions, next) = page.cut(sessions, |(session, _)| session.id.clone())?;
    let data = sessions.into_iter().map(|(session, name)| entry(session, name, now)).collect();
    Ok(List { data, next })
}

/// Ends a session. 204; its token is 401 `token_revoked` from now on.
pub async fn revoke(State(http): State<Http>, caller: Caller, Id(id): Id) -> Result<NoContent> {
    http.run(move |app| app.revoke_embed_session(&caller, &id)).await?;
    Ok(NoContent)
}

/// A key that signs embed tokens, without its secret.
#[derive(Serialize, ToSchema)]
pub struct EmbedKey {
    /// What tokens name it by.
    #[schema(format = Uuid)]
    kid: String,
    /// Whose tokens it signs.
    #[schema(example = "production")]
    environment: String,
    created_at: Time,
}

/// Changes the key that signs the tokens of the caller's environment. 201:
///
/// ```text
/// {"kid":"01a21f86-1b10-…","environment":"production","created_at":"2026-11-28T00:20:12.176Z"}
/// ```
///
/// Tokens of the key before it stay valid until they expire; those of an older one end. The secret never leaves the server.
pub async fn rotate_key(State(http): State<Http>, caller: Caller) -> Result<Created<EmbedKey>> {
    let environment = caller.environment.name.clone();
    let created_at = Time(http.app.now_ms());
    let kid = http.run(move |app| app.rotate_signing_key(&caller)).await?;
    Ok(Created(EmbedKey { kid, environment, created_at }))
}

fn entry(session: EmbedSession, name: String, now: i64) -> EmbedSessionView {
    EmbedSessionView {
        id: session.id,
        tenant_id: session.tenant_id,
        resource: Resource { r#type: "dashboard", id: session.dashboard_id, name },
        scope: "embed:read",
        permissions: session.permissions,
        actor: session.actor,
        issued_at: Time(session.issued_at),
        expires_at: Time(session.expires_at),
        // Whole seconds that are left, by our clock.
        ttl_seconds: (session.expires_at - now).max(0) / 1_000,
    }
}
