//! Who makes a request, and the callers of API keys that were decoded before.
//!
//! Three records say whose a key is. To decode them takes longer than to answer most queries, so a caller is decoded
//! once, and again when one of the records has changed.
//!
//! ```text
//! Authorization: Bearer inlay_admin_Vb3kQ…      the first request: digest, three records of JSON, an Identity
//! Authorization: Bearer inlay_admin_Vb3kQ…      the next: digest, three look-ups that compare addresses in memory
//! the key is renamed, revoked, or its use noted the three are decoded again
//! ```

use std::{
    collections::HashMap,
    net::IpAddr,
    ops::Deref,
    sync::{Arc, PoisonError, RwLock},
};

use inlay_engine::Txn;

use super::access::Principal;
use crate::{
    error::{ApiError, Code, Result},
    store::{Actor, ApiKey, Environment, KeyRecords, Keys, Member, OrgTxn, Session, global_find},
};

/// Callers that are cached, at most: about a kilobyte each.
const CALLERS_MAX: usize = 4_096;

/// An authenticated caller within one organisation and environment. Clones are cheap: each request has some.
#[derive(Debug, Clone)]
pub struct Caller {
    identity: Arc<Identity>,
    /// Where the request came from, as far as it is believed.
    pub ip: Option<IpAddr>,
}

/// Facts of a caller by its credentials, the same for all requests with them.
///
/// An admin key of Acme is `{principal: AdminKey, org: "0190…", environment: production, actor: {"api_key", "0190…", "Backend"}}`.
#[derive(Debug)]
pub struct Identity {
    /// Kind of caller.
    pub principal: Principal,
    /// Id of the organisation that the caller belongs to.
    pub org: String,
    /// The environment that the caller works in.
    pub environment: Environment,
    /// Author of changes, for the audit.
    pub actor: Actor,
    /// Digest of the cookie of a console session; `None` for callers without a cookie.
    pub session: Option<String>,
}

impl From<Identity> for Caller {
    /// The caller, of no address yet.
    fn from(identity: Identity) -> Self {
        Self { identity: Arc::new(identity), ip: None }
    }
}

impl Caller {
    /// The caller of a request that came from an address.
    pub fn at(self, ip: Option<IpAddr>) -> Self {
        Self { ip, ..self }
    }
}

impl Caller {
    /// Checks again, in the transaction of a change, that the credentials are valid: a body may
    /// arrive long after its head, and the key may have been revoked, the session ended or the
    /// member removed since.
    ///
    /// Errors: 401 and 403.
    pub fn check_again(&self, txn: &mut Txn) -> Result<()> {
        let is_open = match &self.session {
            Some(digest) => global_find::<Session>(txn, "session", digest)?.is_some(),
            None => true,
        };
        let records = OrgTxn::new(txn, &self.org);
        if self.is_key() {
            return match records.find::<ApiKey>(&self.actor.id)? {
                Some(_) => Ok(()),
                None => Err(ApiError::new(Code::Unauthenticated, "the API key is not valid")),
            };
        }
        match records.find::<Member>(&self.actor.id)?.filter(|_| is_open) {
            None => Err(ApiError::new(Code::SessionExpired, "the session has ended; log in again")),
            Some(member) if Principal::of_role(member.role) != self.principal => {
                Err(ApiError::new(Code::ForbiddenRole, "your role has changed; send it again"))
            }
            Some(_) => Ok(()),
        }
    }
}

impl Deref for Caller {
    type Target = Identity;

    fn deref(&self) -> &Identity {
        &self.identity
    }
}

impl Identity {
    /// Whether the caller may know where alerts and reports go.
    ///
    /// Viewers and editors see a webhook without its path and addresses by their first character; ingest keys do not get that far.
    pub fn sees_receivers(&self) -> bool {
        matches!(self.principal, Principal::Admin | Principal::Owner | Principal::AdminKey)
    }

    /// Whether the caller is a key, which always names a tenant.
    pub fn is_key(&self) -> bool {
        matches!(self.principal, Principal::AdminKey | Principal::IngestKey)
    }
}

/// The caller of an API key, and the records that say so.
///
/// Shared by all requests with the key, each of which adds its own address.
pub struct KeyCaller {
    /// The caller, of no address yet.
    pub caller: Caller,
    /// When the use of the key was last noted.
    pub last_used_at: Option<i64>,
    records: KeyRecords,
}

/// Callers of API keys, by the digest of the key.
#[derive(Default)]
pub struct KeyCallers(RwLock<HashMap<String, Arc<KeyCaller>>>);

impl KeyCallers {
    /// The caller of the key with this digest. `None` where the key, its organisation or its environment is missing.
    ///
    /// Errors: a record that cannot be read.
    pub fn find(
        &self,
        keys: &impl Keys,
        digest: &str,
        principal: Principal,
    ) -> Result<Option<Arc<KeyCaller>>> {
        let cached = self.0.read().unwrap_or_else(PoisonError::into_inner).get(digest).cloned();
        if let Some(found) = cached.filter(|found| found.records.are_current(keys)) {
            return Ok(Some(found));
        }
        let Some((records, key, org)) = KeyRecords::read(keys, digest)? else { return Ok(None) };
        let Some(environment) = org.environment_by_id(&key.environment).cloned() else {
            return Ok(None);
        };
        let actor = Actor { r#type: "api_key".to_owned(), id: key.id, label: key.label };
        let identity = Identity { principal, org: org.id, environment, actor, session: None };
        let caller = Caller::from(identity);
        let found = Arc::new(KeyCaller { caller, last_used_at: key.last_used_at, records });
        let mut all = self.0.write().unwrap_or_else(PoisonError::into_inner);
        // Emptied as a whole: with so many keys in use at once, finding the oldest would cost more than decoding some again.
        if all.len() >= CALLERS_MAX {
            all.clear();
        }
        all.insert(digest.to_owned(), Arc::clone(&found));
        Ok(Some(found))
    }
}

/// The server itself as the author of a change, for the audit: the part of it that made the change, and for whom.
///
/// `("mail", "ada@acme.example")` of a link that stops mails is `{"type": "system", "id": "mail", "label": "ada@acme.example"}`.
/// It has no rights of its own.
pub fn system_caller(org: &str, environment: &Environment, (part, label): (&str, &str)) -> Caller {
    let (r#type, id, label) = ("system".to_owned(), part.to_owned(), label.to_owned());
    Caller::from(Identity {
        principal: Principal::Anonymous,
        org: org.to_owned(),
        environment: environment.clone(),
        actor: Actor { r#type, id, label },
        session: None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        app::{App, Client, KeyRequest},
        base::secret,
        error::Code,
        store::Scope,
    };

    #[test]
    fn a_caller_is_decoded_once_and_after_each_change() {
        let app = App::in_memory();
        let client = Client::default();
        let made =
            app.register("a@acme.example", "a long password", "Ada", "Acme", client).unwrap();
        let (admin, _) = app.caller_of_key(&made.api_key.1).unwrap();
        let label = "Backend".to_owned();
        let request = KeyRequest { label, scope: Scope::Ingest, environment: None };
        let new = app.create_api_key(&admin, &request).unwrap();
        let find = || {
            let digest = secret::digest(&new.secret);
            app.key_callers.find(&app.engine.keys(), &digest, Principal::IngestKey).unwrap()
        };
        let found = find().unwrap();
        assert_eq!((found.caller.org.as_str(), found.last_used_at), (made.org.id.as_str(), None));
        assert!(Arc::ptr_eq(&found, &find().unwrap()));
        assert!(app.caller_of_key(&new.secret).unwrap().1, "its use is to be noted");
        app.note_use(&found.caller).unwrap();
        assert!(find().unwrap().last_used_at.is_some());
        assert!(!app.caller_of_key(&new.secret).unwrap().1);
        app.revoke_api_key(&admin, &found.caller.actor.id).unwrap();
        assert!(find().is_none());
        assert_eq!(app.caller_of_key(&new.secret).unwrap_err().code, Code::Unauthenticated);
    }
}
