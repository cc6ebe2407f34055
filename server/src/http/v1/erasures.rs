//! Erasing events, and the receipts.
//!
//! ```text
//! DELETE /v1/tenants/globex/users/u_3/events
//! 202 {"id":"01a21f86-ef3b-…","scope":"user","tenant_id":"globex","status":"pending","events_removed":0,"event_ids_forgotten":0,
//!      "segments_rewritten":0,"requested_at":"2026-11-28T00:21:06.491Z","finished_at":null}
//!
//! GET /v1/erasures/01a21f86-ef3b-…     108 ms later
//! 200 {…,"status":"done","events_removed":2,"event_ids_forgotten":2,"segments_rewritten":2,…,"finished_at":"2026-11-28T00:21:06.599Z"}
//! ```
//!
//! `pending` becomes `running` and then `done`. The user's id is in no answer, since the receipt stays.

use axum::extract::State;
use inlay_engine::{Erasure, Scope};
use serde::Serialize;
use utoipa::ToSchema;

use super::view::Time;
use crate::{
    app::{Caller, scope_name},
    error::Result,
    http::{
        extract::{Id, Page, Params, TenantId, UserId},
        respond::{Accepted, Answer, List},
        state::context::Http,
    },
};

/// An erasure: how far it is, or its receipt.
#[derive(Serialize, ToSchema)]
#[schema(as = Erasure)]
pub struct ErasureView {
    #[schema(format = Uuid)]
    id: String,
    /// `environment`, `tenant` or `user`; a user's id is not kept.
    #[schema(example = "tenant")]
    scope: &'static str,
    tenant_id: Option<String>,
    /// `pending`, `running` or `done`.
    #[schema(example = "done")]
    status: &'static str,
    events_removed: u64,
    event_ids_forgotten: u64,
    segments_rewritten: u64,
    requested_at: Time,
    finished_at: Option<Time>,
}

/// Erases all events of a tenant in the caller's environment that were accepted before. 202 with the job, also where there are none.
pub async fn tenant(
    State(http): State<Http>,
    caller: Caller,
    TenantId(tenant): TenantId,
) -> Result<Accepted<ErasureView>> {
    let erasure = http.run(move |app| app.erase_tenant(&caller, &tenant)).await?;
    Ok(Accepted(view(&erasure)))
}

/// Erases all events of one of a tenant's users. 202 with the job. The same user id under another tenant is another user.
pub async fn user(
    State(http): State<Http>,
    caller: Caller,
    TenantId(tenant): TenantId,
    UserId(user): UserId,
) -> Result<Accepted<ErasureView>> {
    let erasure = http.run(move |app| app.erase_user(&caller, &tenant, &user)).await?;
    Ok(Accepted(view(&erasure)))
}

/// All erasures of the environment, newest first, also those that are done: they are the receipts.
pub async fn list(
    State(http): State<Http>,
    caller: Caller,
    Params(page): Params<Page>,
) -> Result<List<ErasureView>> {
    let erasures = http.run(move |app| app.erasures(&caller)).await?;
    end_readers(&http, &erasures).await;
    let (erasures, next) = page.cut(erasures, |erasure| erasure.id.to_string())?;
    Ok(List { data: erasures.iter().map(view).collect(), next })
}

/// One erasure: how far it is, or its receipt. 404 for one of another environment.
pub async fn get(
    State(http): State<Http>,
    caller: Caller,
    Id(id): Id,
) -> Result<Answer<ErasureView>> {
    let erasure = http.run(move |app| app.erasure(&caller, &id)).await?;
    end_readers(&http, std::slice::from_ref(&erasure)).await;
    Ok(Answer(view(&erasure)))
}

/// Before a receipt is shown, no process is left that has the erased rows mapped and waits for a statement.
async fn end_readers(http: &Http, erasures: &[Erasure]) {
    if erasures.iter().any(|erasure| erasure.finished_ms.is_some()) {
        http.statements.retire_workers().await;
    }
}

/// The JSON of an erasure. One that has begun has a list of the work that is left (`pending`); one that is done has a time.
fn view(erasure: &Erasure) -> ErasureView {
    let status = match (&erasure.finished_ms, &erasure.pending) {
        (Some(_), _) => "done",
        (None, Some(_)) => "running",
        (None, None) => "pending",
    };
    let tenant_id = match &erasure.scope {
        Scope::Namespace => None,
        Scope::Tenant(tenant) | Scope::User(tenant, _) => Some(tenant.to_string()),
    };
    ErasureView {
        id: erasure.id.to_string(),
        scope: scope_name(erasure),
        tenant_id,
        status,
        events_removed: erasure.rows_removed,
        event_ids_forgotten: erasure.ids_removed,
        segments_rewritten: erasure.segments_changed,
        requested_at: Time(erasure.requested_ms),
        finished_at: erasure.finished_ms.map(Time),
    }
}
