//! Organisations: what one is called, and deleting it.

use inlay_engine::Whose;

use crate::{
    app::request::{callers::Caller, context::App},
    base::text,
    error::{ApiError, Result},
    store::{Org, OrgTxn, forget_org},
};

impl App {
    /// Changes name and contact address of the caller's organisation; absent parts stay.
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
