//! Organisations: deleting one.

use inlay_engine::Whose;

use super::context::{App, Caller};
use crate::{
    error::{ApiError, Result},
    store::{OrgTxn, forget_org},
};

impl App {
    /// Deletes the caller's organisation with everything that belongs to it. When this returns,
    /// nobody can see, enter or use any of it; its events are purged in the background.
    pub fn delete_org(&self, caller: &Caller) -> Result<()> {
        let org = self.org(&caller.org)?;
        self.engine.transact(|txn| {
            // Asked again where nobody can come between: two deletions are one.
            let found: Option<crate::store::Org> = OrgTxn::new(txn, &org.id).find(&org.id)?;
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
