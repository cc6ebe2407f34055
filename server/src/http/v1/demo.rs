//! `/v1/demo`: the embed of the demo, and a guest's session in its console.
//!
//! ```text
//! GET /v1/demo/embed-url?tenant_id=northwind
//! 200 {"embed_url":"https://inlay.acme.com/embed/01a21f84-62ed-…?token=…","expires_at":"2026-11-28T01:21:12.000Z",
//!      "tenant_id":"northwind","dashboard_id":"01a21f84-62ed-…"}
//!
//! POST /v1/demo/session
//! 200 {"user":{"email":"guest@inlay.invalid","name":"Guest",…},"org":{"name":"Inlay demo",…},"role":"viewer"}, Set-Cookie: service_session=…
//! POST /v1/dashboards, with this session
//! 403 your role may not do this
//! ```
//!
//! Both are 404 where the server runs without `--demo`.

use axum::{extract::State, http::HeaderMap};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use super::{
    auth::{LoggedIn, logged_in},
    view::Time,
};
use crate::{
    app::Client,
    error::Result,
    http::{
        extract::Params,
        middleware::caller::cookie_of,
        respond::{Answer, WithCookie},
        state::context::Http,
    },
};

/// Query parameters of the embed session of the demo.
#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
pub struct DemoParameters {
    /// A tenant of the demo.
    tenant_id: Option<String>,
}

/// An embed session of the demo.
#[derive(Serialize, ToSchema)]
pub struct DemoEmbedUrl {
    /// Address of the embed page of the demo.
    #[schema(format = Uri)]
    embed_url: String,
    expires_at: Time,
    tenant_id: String,
    #[schema(format = Uuid)]
    dashboard_id: String,
}

/// A fresh session of the demo, for a tenant or the first one. A tenant that the demo does not have sees a dashboard without data.
pub async fn embed_url(
    State(http): State<Http>,
    Params(parameters): Params<DemoParameters>,
) -> Result<Answer<DemoEmbedUrl>> {
    let (minted, tenant_id, dashboard_id) =
        http.run(move |app| app.demo_session(parameters.tenant_id.as_deref())).await?;
    Ok(Answer(DemoEmbedUrl {
        embed_url: minted.url,
        expires_at: Time(minted.expires_at),
        tenant_id,
        dashboard_id,
    }))
}

/// Lets a guest look at the demo's console; whoever it is may change nothing. 404 when the server runs without the demo.
pub async fn session(
    State(http): State<Http>,
    client: Client,
    headers: HeaderMap,
) -> Result<WithCookie<Answer<LoggedIn>>> {
    let before = cookie_of(&headers).map(str::to_owned);
    let session =
        http.run_hashing(move |app| app.guest_session(before.as_deref(), &client)).await?;
    Ok(logged_in(&http, session))
}
