//! `GET /v1/audit`: changes of the organisation, newest first.
//!
//! ```text
//! GET /v1/audit?limit=2
//! 200 {"data":[
//!   {"id":"01a21f86-ef1e-…","action":"org.update","actor":{"type":"api_key","id":"01a21f84-…","label":"Default admin key"},
//!    "target":{"type":"org","id":"01a21f84-…"},"metadata":{"before":{"name":"Acme","email":"ada@acme.example"},"name":"Acme Corp",…},
//!    "ip":"127.0.0.1","created_at":"2026-11-28T00:21:06.462Z"},
//!   {"id":"01a21f86-ef16-…","action":"member.update","metadata":{"before":"editor","role":"viewer"},…}],
//!  "next":"01a21f86-ef16-7000-9a10-51696f452e98"}
//!
//! GET /v1/audit?action=member.update&before=2027-01-01     200 with the second row only
//! GET /v1/audit?limit=101                                  400 limit must be between 1 and 100
//! GET /v1/audit?before=soon                                400 before is not an ISO 8601 date-time
//! ```

use axum::extract::State;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::{IntoParams, ToSchema};

use super::view::Time;
use crate::{
    app::{AuditFilter, Caller},
    base::instant,
    error::{ApiError, Code, Result},
    http::{
        extract::{Page, Params},
        respond::List,
        state::context::Http,
    },
    store::{Actor, AuditRow},
};

/// Rows of an answer, at most.
const ROWS_MAX: usize = 100;

/// Which rows are wanted.
#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
pub struct AuditParameters {
    /// Only rows from before this instant.
    #[param(value_type = Option<Time>)]
    before: Option<String>,
    /// Only rows of this action.
    #[param(example = "dashboard.publish")]
    action: Option<String>,
    /// Rows of a page; 100 are the most.
    #[param(minimum = 1, maximum = 100, example = 50)]
    limit: Option<usize>,
    /// `next` of the page before.
    #[param(pattern = "^[0-9a-f-]{20,40}$")]
    cursor: Option<String>,
}

/// A change of state.
#[derive(Serialize, ToSchema)]
#[schema(as = AuditRow)]
pub struct AuditRowView {
    #[schema(format = Uuid)]
    id: String,
    #[schema(example = "dashboard.publish")]
    action: String,
    actor: Actor,
    target: Target,
    /// Fields that were changed, or what else belongs to the action.
    #[schema(value_type = Object)]
    metadata: Value,
    /// Where the request came from.
    #[schema(example = "203.0.113.7")]
    ip: Option<String>,
    created_at: Time,
}

/// What was changed.
#[derive(Serialize, ToSchema)]
struct Target {
    #[schema(example = "dashboard")]
    r#type: String,
    id: String,
}

/// The newest rows, at most 100 at once: of the organisation for a session, of its environment for a key. Refused requests have none.
pub async fn list(
    State(http): State<Http>,
    caller: Caller,
    Params(parameters): Params<AuditParameters>,
) -> Result<List<AuditRowView>> {
    let before = parameters.before.as_deref().map(|text| {
        instant::parse(text).ok_or_else(|| {
            ApiError::field(Code::InvalidField, "before", "before is not an ISO 8601 date-time")
        })
    });
    let page =
        Page { limit: Some(parameters.limit.unwrap_or(ROWS_MAX)), cursor: parameters.cursor };
    if page.limit.is_some_and(|limit| !(1..=ROWS_MAX).contains(&limit)) {
        let message = format!("limit must be between 1 and {ROWS_MAX}");
        return Err(ApiError::field(Code::OutOfRange, "limit", message));
    }
    let filter = AuditFilter {
        before: before.transpose()?,
        action: parameters.action,
        cursor: page.cursor.clone(),
    };
    // One more says whether there is a further page.
    let rows = http.run(move |app| app.audit_rows(&caller, &filter, ROWS_MAX + 1)).await?;
    let (rows, next) = page.cut(rows, |row| row.id.clone())?;
    Ok(List { data: rows.into_iter().map(view).collect(), next })
}

fn view(row: AuditRow) -> AuditRowView {
    AuditRowView {
        id: row.id,
        action: row.action,
        actor: row.actor,
        target: Target { r#type: row.target.0, id: row.target.1 },
        metadata: row.metadata,
        ip: row.ip,
        created_at: Time(row.created_at),
    }
}
