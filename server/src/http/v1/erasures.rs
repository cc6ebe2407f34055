//! Erasing events, and the receipts.

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
    /// `namespace`, `tenant` or `user`; a user's id is not kept.
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

/// Erases all events of a tenant. 202 with the job.
pub async fn tenant(
    State(http): State<Http>,
    caller: Caller,
    TenantId(tenant): TenantId,
) -> Result<Accepted<ErasureView>> {
    let erasure = http.run(move |app| app.erase_tenant(&caller, &tenant)).await?;
    Ok(Accepted(view(&erasure)))
}

/// Erases all events of one of a tenant's users. 202 with the job.
pub async fn user(
    State(http): State<Http>,
    caller: Caller,
    TenantId(tenant): TenantId,
    UserId(user): UserId,
) -> Result<Accepted<ErasureView>> {
    let erasure = http.run(move |app| app.erase_user(&caller, &tenant, &user)).await?;
    Ok(Accepted(view(&erasure)))
}

/// All erasures of the environment, newest first.
pub async fn list(
    State(http): State<Http>,
    caller: Caller,
    Params(page): Params<Page>,
) -> Result<List<ErasureView>> {
    let erasures = http.run(move |app| app.erasures(&caller)).await?;
    let (erasures, next) = page.cut(erasures, |erasure| erasure.id.to_string())?;
    Ok(List { data: erasures.iter().map(view).collect(), next })
}

/// One erasure: how far it is, or its receipt.
pub async fn get(
    State(http): State<Http>,
    caller: Caller,
    Id(id): Id,
) -> Result<Answer<ErasureView>> {
    let erasure = http.run(move |app| app.erasure(&caller, &id)).await?;
    Ok(Answer(view(&erasure)))
}

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
