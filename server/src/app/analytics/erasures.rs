//! Erasing events of a tenant or of one of its users, with a receipt.
//!
//! The engine does the work in the background and survives restarts with it. Here is its row in the audit, which has the tenant
//! and the scope, and never the user's id.
//!
//! ```text
//! DELETE /v1/tenants/acme/users/u_7/events
//! 202 {"id": "0190…", "scope": "user", "tenant_id": "acme", "status": "pending", "events_removed": 0, "finished_at": null, …}
//! GET /v1/erasures/0190…
//! 200 {"id": "0190…", "scope": "user", "tenant_id": "acme", "status": "done", "events_removed": 2017, "event_ids_forgotten": 2017,
//!      "segments_rewritten": 12, "finished_at": "2026-11-20T10:18:02.101Z", …}
//! ```
//!
//! Events that are accepted after the job began stay, so that a tenant whose events are erased while it sends has some again.

use inlay_engine::{Erasure, Scope, Whose};
use serde_json::json;

use crate::{
    app::request::{callers::Caller, context::App},
    error::{ApiError, Code, Result},
    store::{Org, OrgTxn},
};

/// Bytes of a tenant's or user's id, at most, as for events.
const ID_BYTES_MAX: usize = 256;
/// Erasures in a list, at most.
const LISTED_MAX: usize = 1_000;

impl App {
    /// Starts erasing all events of a tenant that were accepted before, in the caller's environment.
    ///
    /// A tenant without events is erased as well: its receipt says 0.
    ///
    /// Errors: 400 for an id that is empty or has more than 256 bytes.
    pub fn erase_tenant(&self, caller: &Caller, tenant: &str) -> Result<Erasure> {
        check_id("tenant_id", tenant)?;
        self.erase(caller, tenant, &Whose::Tenant(tenant))
    }

    /// Starts erasing all events of one of a tenant's users that were accepted before.
    ///
    /// Rows of a job name the user by a hash only.
    pub fn erase_user(&self, caller: &Caller, tenant: &str, user: &str) -> Result<Erasure> {
        check_id("tenant_id", tenant)?;
        check_id("user_id", user)?;
        self.erase(caller, tenant, &Whose::User { tenant, user })
    }

    fn erase(&self, caller: &Caller, tenant: &str, whose: &Whose<'_>) -> Result<Erasure> {
        self.engine.transact(|txn| {
            self.check_acting(txn)?;
            // The job becomes durable with its row in the audit, or neither does.
            let erasure = self.engine.erase(txn, caller.environment.namespace(), whose);
            let mut records = OrgTxn::new(txn, &caller.org);
            if records.find::<Org>(&caller.org)?.is_none() {
                return Err(ApiError::not_found("organisation"));
            }
            let metadata = json!({"tenant_id": tenant, "scope": scope_name(&erasure)});
            let id = erasure.id.to_string();
            self.audit(&mut records, caller, "events.erase", ("erasure", &id), metadata)?;
            Ok(erasure)
        })
    }

    /// The newest erasures of the caller's environment, newest first.
    pub fn erasures(&self, caller: &Caller) -> Result<Vec<Erasure>> {
        Ok(self.engine.newest_erasures(caller.environment.namespace(), None, LISTED_MAX)?)
    }

    /// An erasure. 404 when the caller's environment has none of this id.
    pub fn erasure(&self, caller: &Caller, id: &str) -> Result<Erasure> {
        let id = uuid::Uuid::parse_str(id).ok();
        let namespace = caller.environment.namespace();
        let found = id.map(|id| self.engine.erasure(namespace, id)).transpose()?.flatten();
        found.ok_or_else(|| ApiError::not_found("erasure"))
    }
}

/// Scope of an erasure: `environment`, `tenant` or `user`.
pub fn scope_name(erasure: &Erasure) -> &'static str {
    match erasure.scope {
        Scope::Namespace => "environment",
        Scope::Tenant(_) => "tenant",
        Scope::User(..) => "user",
    }
}

/// The bounds that ids of events have: one beyond them cannot have events.
fn check_id(field: &str, id: &str) -> Result<()> {
    if id.is_empty() || id.len() > ID_BYTES_MAX {
        let message = format!("{field} must have 1 to {ID_BYTES_MAX} bytes");
        return Err(ApiError::field(Code::InvalidField, field, message));
    }
    Ok(())
}
