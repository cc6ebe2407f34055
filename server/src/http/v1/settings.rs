//! `/v1/settings/org`: name and contact address of the organisation, and deleting it.
//!
//! ```text
//! PATCH /v1/settings/org {"name": "Acme Corp"}
//! 200 {"id":"01a21f84-…","name":"Acme Corp","email":"ada@acme.example","plan":"growth",
//!      "environments":[{"id":"01a21f84-…","name":"production"},{"id":"01a21f84-…","name":"development"}],"created_at":"2026-11-28T00:18:56.302Z"}
//! DELETE /v1/settings/org     204 for an owner; 403 for an admin and for a key
//! ```

use axum::extract::State;
use serde::Deserialize;
use utoipa::ToSchema;

use super::{
    auth::{self, OrgView},
    view::Name,
};
use crate::{
    app::Caller,
    error::Result,
    http::{
        extract::Body,
        respond::{Answer, NoContent},
        state::context::Http,
    },
};

/// What to change of the organisation; absent parts stay.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct UpdateOrg {
    #[schema(value_type = Option<Name>, example = "Acme Corp")]
    name: Option<String>,
    /// Contact address of the organisation.
    #[schema(format = "email", max_length = 254, example = "billing@acme.example")]
    email: Option<String>,
}

/// The caller's organisation with its plan and environments.
pub async fn get(State(http): State<Http>, caller: Caller) -> Result<Answer<OrgView>> {
    let org = http.run(move |app| app.org(&caller.org)).await?;
    Ok(Answer(auth::org(&org)))
}

/// Changes its name or contact address. The address is that of the organisation, not of a member who logs in.
pub async fn update(
    State(http): State<Http>,
    caller: Caller,
    body: Body<UpdateOrg>,
) -> Result<Answer<OrgView>> {
    let body = body.read()?;
    let org = http
        .run(move |app| app.update_org(&caller, body.name.as_deref(), body.email.as_deref()))
        .await?;
    Ok(Answer(auth::org(&org)))
}

/// Deletes the organisation and everything that belongs to it. 204: keys, sessions and embeds end in the same instant, and its events are
/// erased by a job, usually within seconds.
pub async fn delete(State(http): State<Http>, caller: Caller) -> Result<NoContent> {
    http.run(move |app| app.delete_org(&caller)).await?;
    Ok(NoContent)
}
