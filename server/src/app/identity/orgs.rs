//! Organisations: what one is called, and deleting it.
//!
//! ```text
//! PATCH /v1/settings/org {"name": "Acme Analytics"}     200, and the audit has
//!     {"action": "org.update", "metadata": {"before": {"name": "Acme", "email": "ada@acme.example"}, "name": "Acme Analytics", "email": …}}
//! DELETE /v1/settings/org                               204, by an owner in the console; next, with the same cookie
//! GET /v1/auth/me                                       401 {"code": "session_expired", …}
//! ```

use inlay_engine::Whose;

use crate::{
    app::request::{callers::Caller, context::App},
    base::text,
    error::{ApiError, Result},
    store::{Org, OrgTxn, forget_org},
};

impl App {
    /// Changes name and contact address of the caller's organisation; absent parts stay.
    ///
    /// The contact address is where nobody logs in: accounts have addresses of their own.
    ///
    /// Errors: 400 for either part.
    pub fn update_org(
        &self,
        caller: &Caller,
        name: Option<&str>,
        email: Option<&str>,
    ) -> Result<Org> {
        let name = name.map(|name| text::name("name", name)).transpose()?;
        let email = email.map(|email| text::email("email", email)).transpose()?;
        self.org_txn(&caller.org, |txn| {
            let found: Option<Org> = txn.find(&caller.org)?;
            let mut org = found.ok_or_else(|| ApiError::not_found("organisation"))?;
            let before = serde_json::json!({"name": org.name, "email": org.email});
            org.name = name.unwrap_or(org.name);
            org.email = email.unwrap_or(org.email);
            txn.put(&org)?;
            let metadata = serde_json::json!({
                "before": before, "name": org.name, "email": org.email,
            });
            self.audit(txn, caller, "org.update", ("org", &caller.org), metadata)?;
            Ok(org)
        })
    }

    /// Deletes the caller's organisation with everything that belongs to it. When this returns,
    /// nobody can see, enter or use any of it; its events are purged in the background.
    ///
    /// Records go in the transaction, events do not: both namespaces are hidden by it, and an erasure job of the engine removes their rows.
    ///
    /// Errors: 401 or 403 when the caller has lost the right meanwhile; 404 for the second of two deletions.
    pub fn delete_org(&self, caller: &Caller) -> Result<()> {
        let org = self.org(&caller.org)?;
        self.engine.transact(|txn| {
            self.check_acting(txn)?;
            // Asked again where nobody can come between: two deletions are one.
            let found: Option<Org> = OrgTxn::new(txn, &org.id).find(&org.id)?;
            let org = found.ok_or_else(|| ApiError::not_found("organisation"))?;
            for environment in &org.environments {
                self.engine.erase(txn, environment.namespace(), &Whose::Namespace);
            }
            let environments: Vec<String> =
                org.environments.iter().map(|environment| environment.id.clone()).collect();
            forget_org(txn, &org.id, &environments)
        })
    }
}
