//! API keys: made, listed by prefix, revoked.
//!
//! ```text
//! POST /v1/api-keys {"label": "Backend", "scope": "ingest", "environment": "production"}
//! 201 {"id": "0190…", "label": "Backend", "scope": "ingest", "prefix": "inlay_ingest_Vb3kQ", "key": "inlay_ingest_Vb3kQ…", …}
//! 402 {"code": "api_keys_limit", "error": "the plan free allows 2 API keys", "limit": 2, "used": 2, "upgrade_to": "growth", …}
//! 403 {"code": "forbidden_scope", "field": "environment", "error": "an API key makes keys of its own environment only", …}
//! 400 {"code": "unknown_value", "field": "environment", "error": "there is no environment staging", …}
//! ```
//!
//! The key is in this one answer. Two records are stored, the second of which a request is looked up by:
//!
//! ```text
//! o/<org>/api_key/0190…      {"label": "Backend", "scope": "ingest", "prefix": "inlay_ingest_Vb3kQ", "digest": "<64 digits>", …}
//! g/api_key/<64 digits>      {"org": "<org>", "id": "0190…"}
//! ```

use crate::{
    app::{
        plans,
        request::{callers::Caller, context::App},
    },
    base::{secret, text},
    error::{ApiError, Code, Result},
    store::{ApiKey, Environment, KeyRef, Org, OrgTxn, Scope, global_delete, global_put},
};

/// Characters of a key that lists show: the scope and five or six random ones, enough to recognise a key and too few to guess it.
const PREFIX_CHARS: usize = 18;

/// Fields of a new API key.
pub struct KeyRequest {
    /// Display label, 1 to 200 characters after trimming.
    pub label: String,
    /// Scope: the operations that the key may call.
    pub scope: Scope,
    /// Name of the key's environment; `None` is the environment of the caller.
    pub environment: Option<String>,
}

/// A key, its environment's name, and the secret that is shown once.
pub struct NewKey {
    /// Stored record, with a digest instead of the secret.
    pub key: ApiKey,
    /// Name of the environment.
    pub environment: String,
    /// The whole key, which is not stored.
    pub secret: String,
}

impl App {
    /// All keys, newest first, with the names of their environments.
    ///
    /// A session sees the keys of both environments, an admin key those of its own.
    pub fn api_keys(&self, caller: &Caller) -> Result<Vec<(ApiKey, String)>> {
        let org = self.org(&caller.org)?;
        let mut keys: Vec<ApiKey> = self.org_reader(&caller.org).list()?;
        // A key sees its own environment only; a session sees the organisation.
        keys.retain(|key| !caller.is_key() || key.environment == caller.environment.id);
        keys.reverse();
        Ok(keys
            .into_iter()
            .map(|key| {
                let name = environment_name(&org, &key);
                (key, name)
            })
            .collect())
    }

    /// Makes a key. 402 when the plan has no place for another.
    ///
    /// Errors: 400 for the label or an environment that does not exist; 403 when a key asks for another environment than its own.
    pub fn create_api_key(&self, caller: &Caller, request: &KeyRequest) -> Result<NewKey> {
        let label = text::name("label", &request.label)?;
        let org = self.org(&caller.org)?;
        let environment = match request.environment.as_deref() {
            None => caller.environment.clone(),
            Some(name) => org.environment(name).cloned().ok_or_else(|| {
                ApiError::field(
                    Code::UnknownValue,
                    "environment",
                    format!("there is no environment {name}"),
                )
            })?,
        };
        // A key never makes a key of another environment: it would see what it must not.
        if caller.is_key() && environment != caller.environment {
            return Err(ApiError::field(
                Code::ForbiddenScope,
                "environment",
                "an API key makes keys of its own environment only",
            ));
        }
        let (key, secret) = self.org_txn(&caller.org, |txn| {
            let org: Org =
                txn.find(&caller.org)?.ok_or_else(|| ApiError::not_found("organisation"))?;
            // Counted in the transaction that adds the key: two requests at once do not both take the last one of the plan.
            let used = txn.list::<ApiKey>()?.len() as u64;
            plans::check(&org, Code::ApiKeysLimit, "API keys", |plan| plan.api_keys, used, 1)?;
            let (key, secret) =
                self.put_api_key(txn, caller, &label, request.scope, &environment)?;
            let metadata = serde_json::json!({"label": key.label, "scope": key.scope});
            self.audit(txn, caller, "api_key.create", ("api_key", &key.id), metadata)?;
            Ok((key, secret))
        })?;
        Ok(NewKey { key, environment: environment.name, secret })
    }

    /// Revokes a key: the next request with it is refused.
    ///
    /// A request under way with it is refused as well, when it comes to its change ([`Caller::check_again`]). A key may revoke itself.
    ///
    /// Errors: 404 for an id that is none of a key which the caller sees.
    pub fn revoke_api_key(&self, caller: &Caller, id: &str) -> Result<()> {
        self.org_txn(&caller.org, |txn| {
            let found: Option<ApiKey> = txn.find(id)?;
            let is_visible =
                |key: &ApiKey| !caller.is_key() || key.environment == caller.environment.id;
            let key = found.filter(is_visible).ok_or_else(|| ApiError::not_found("API key"))?;
            txn.delete::<ApiKey>(id);
            global_delete(txn.global(), "api_key", &key.digest);
            let metadata = serde_json::json!({"label": key.label});
            self.audit(txn, caller, "api_key.revoke", ("api_key", id), metadata)
        })
    }

    /// Stores a new key within a transaction; gives record and secret.
    ///
    /// Registering makes the first key of an organisation by it, `Default admin key`, without asking a plan.
    pub fn put_api_key(
        &self,
        txn: &mut OrgTxn<'_>,
        caller: &Caller,
        label: &str,
        scope: Scope,
        environment: &Environment,
    ) -> Result<(ApiKey, String)> {
        let prefix = match scope {
            Scope::Admin => "inlay_admin_",
            Scope::Ingest => "inlay_ingest_",
        };
        let whole = secret::mint(prefix, &*self.rng);
        let key = ApiKey {
            id: self.new_id(),
            label: label.to_owned(),
            scope,
            prefix: whole.get(..PREFIX_CHARS).unwrap_or_default().to_owned(),
            digest: secret::digest(&whole),
            environment: environment.id.clone(),
            created_at: self.now_ms(),
            created_by: (!caller.is_key()).then(|| caller.actor.id.clone()),
            last_used_at: None,
        };
        txn.put(&key)?;
        let reference = KeyRef { org: caller.org.clone(), id: key.id.clone() };
        global_put(txn.global(), "api_key", &key.digest, &reference)?;
        Ok((key, whole))
    }
}

fn environment_name(org: &Org, key: &ApiKey) -> String {
    org.environment_by_id(&key.environment)
        .map_or_else(String::new, |environment| environment.name.clone())
}
