//! Accounts: registering and logging in, and the caller behind an API key.
//!
//! ```text
//! POST /v1/auth/register {"email": "ada@acme.example", "password": "correct horse battery", "name": "Ada Lovelace", "org_name": "Acme"}
//! 201 {"user": {"email": "ada@acme.example", …}, "org": {"name": "Acme", "plan": "self_hosted", …}, "role": "owner",
//!      "environments": [{"name": "production", …}, {"name": "development", …}], "api_key": {"key": "inlay_admin_…", …}}
//!     Set-Cookie: service_session=…; HttpOnly; SameSite=Lax; Path=/; Max-Age=1209600
//! 409 {"code": "duplicate_email", "field": "email", "error": "an account with this e-mail address exists", …}      of ADA@acme.example, too
//! 401 {"code": "unauthenticated", "error": "e-mail address or password is wrong", …}                               POST /v1/auth/login
//! ```
//!
//! Registering stores all of it in one transaction, so that there is never an account without its organisation:
//!
//! ```text
//! g/email/ada@acme.example              "<user>"
//! g/user/<user>                         {"email": "ada@acme.example", "password_hash": "$2b$12$…", "org": "<org>", …}
//! g/signing_key/<kid>                   of each environment, and g/signing_key_of/<environment> with "<kid>"
//! g/session/<digest of the cookie>      and g/session_of/<user>/<digest of the cookie>
//! g/api_key/<digest of the key>         {"org": "<org>", "id": "<key>"}
//! o/<org>/…                             org/<org>, member/<user>, api_key/<key>, audit/<row> with the action org.create
//! ```

use sha2::{Digest, Sha512};

use super::sessions::{Client, SEEN_EVERY_MS, caller_of_user, no_environment};
use crate::{
    app::request::{access::Principal, callers::Caller, context::App},
    base::{secret, text},
    error::{ApiError, Code, Faults, Result},
    store::{
        self, Billing, Environment, Member, Org, OrgTxn, Role, Scope, Session, SigningKey, User,
        global_end_session, global_find, global_put,
    },
};

/// Names of the environments of a new organisation.
const ENVIRONMENTS: [&str; 2] = ["production", "development"];
/// Addresses of accounts that are ours, where nobody gets mail.
pub const RESERVED_DOMAIN: &str = "@inlay.invalid";

/// Result of a registration.
pub struct Registration {
    /// Account of the user, who owns the new organisation.
    pub user: User,
    /// The new organisation, with its two environments.
    pub org: Org,
    /// First API key of the organisation, and its whole secret, which is shown once.
    pub api_key: (store::ApiKey, String),
    /// The cookie's value.
    pub session: String,
}

/// A console session that was opened.
pub struct SessionOpened {
    /// Account of the user.
    pub user: User,
    /// Organisation that the session belongs to.
    pub org: Org,
    /// Role of the user in the organisation.
    pub role: Role,
    /// The cookie's value.
    /// 49 characters; the store has only its SHA-256.
    pub session: String,
}

impl App {
    /// Makes user, organisation, owner membership, environments, an admin key and a session.
    ///
    /// The first environment is `production`, where the key and the session belong. The plan is `default_plan` of the settings.
    ///
    /// Errors: 400 with all faults of address, password and names at once; 409 `duplicate_email`, however the address is capitalised.
    pub fn register(
        &self,
        email: &str,
        password: &str,
        name: &str,
        org_name: &str,
        client: Client,
    ) -> Result<Registration> {
        let mut faults = Faults::default();
        let email = faults.take(text::email("email", email));
        faults.take(text::password("password", password));
        let (name, org_name) =
            (faults.take(text::name("name", name)), faults.take(text::name("org_name", org_name)));
        let (Some(email), Some(name), Some(org_name)) = (email, name, org_name) else {
            return Err(faults.error());
        };
        faults.end()?;
        let duplicate = || {
            ApiError::field(
                Code::DuplicateEmail,
                "email",
                "an account with this e-mail address exists",
            )
        };
        if global_find::<String>(&self.engine.keys(), "email", &email)?.is_some() {
            return Err(duplicate());
        }
        let password_hash = self.hash_password(password)?;
        // The hash takes some tenths of a second, so that it is made outside of the transaction, for which all other writers wait.
        let now = self.now_ms();
        let (user_id, org_id) = (self.new_id(), self.new_id());
        self.engine.transact(|txn| {
            // Checked again where nobody can come between.
            if global_find::<String>(txn, "email", &email)?.is_some() {
                return Err(duplicate());
            }
            let mut environments = Vec::new();
            for name in ENVIRONMENTS {
                let namespace = store::next_namespace(txn)?;
                environments.push(Environment {
                    id: self.new_id(),
                    name: name.to_owned(),
                    namespace,
                });
            }
            let user = User {
                id: user_id.clone(),
                email: email.clone(),
                name: name.clone(),
                password_hash: password_hash.clone(),
                org: org_id.clone(),
                created_at: now,
            };
            let org = Org {
                id: org_id.clone(),
                name: org_name.clone(),
                email: email.clone(),
                plan: self.settings.default_plan.clone(),
                billing: Billing::default(),
                environments,
                created_at: now,
            };
            global_put(txn, "email", &email, &user_id)?;
            global_put(txn, "user", &user_id, &user)?;
            for environment in &org.environments {
                self.add_signing_key(txn, &org.id, &environment.id, None)?;
            }
            let session = self.open_session(txn, &user_id, &org_id, &client)?;
            let mut records = OrgTxn::new(txn, &org_id);
            records.put(&org)?;
            records.put(&Member { id: user_id.clone(), role: Role::Owner, joined_at: now })?;
            let caller = caller_of_user(&user, Role::Owner, &org, &client);
            let api_key = self.put_api_key(
                &mut records,
                &caller,
                "Default admin key",
                Scope::Admin,
                &org.environments[0],
            )?;
            let target = ("org", org_id.as_str());
            self.audit(
                &mut records,
                &caller,
                "org.create",
                target,
                serde_json::json!({"name": org.name}),
            )?;
            Ok(Registration { user, org, api_key, session })
        })
    }

    /// Adds a key that signs the embed tokens of an environment from now on; gives its `kid`.
    ///
    /// `previous` is the `kid` of the key that it replaces: tokens of that one stay valid.
    pub fn add_signing_key(
        &self,
        txn: &mut inlay_engine::Txn,
        org: &str,
        environment: &str,
        previous: Option<String>,
    ) -> Result<String> {
        let mut bytes = [0; 32];
        self.rng.fill(&mut bytes);
        let key = SigningKey {
            org: org.to_owned(),
            environment: environment.to_owned(),
            secret: secret::hex(&bytes),
            created_at: self.now_ms(),
            previous,
            retired_at: None,
        };
        let kid = self.new_id();
        global_put(txn, "signing_key", &kid, &key)?;
        global_put(txn, "signing_key_of", environment, &kid)?;
        Ok(kid)
    }

    /// Opens a session with a password. The session that the browser had, if it had one, ends.
    ///
    /// Errors: 401 with the same message and after the same time for an unknown address and a wrong password; nothing says which it was.
    pub fn login(
        &self,
        email: &str,
        password: &str,
        before: Option<&str>,
        client: Client,
    ) -> Result<SessionOpened> {
        let refused =
            || ApiError::new(Code::Unauthenticated, "e-mail address or password is wrong");
        // Text that is no address becomes the empty address, which no account has.
        let email = text::email("email", email).unwrap_or_default();
        let keys = self.engine.keys();
        let user = match global_find::<String>(&keys, "email", &email)? {
            Some(id) => global_find::<User>(&keys, "user", &id)?,
            None => None,
        };
        // An unknown address takes as long as a known one.
        let hash =
            user.as_ref().map_or_else(|| self.unusable_hash(), |user| user.password_hash.clone());
        let matches = is_password(password, &hash)?;
        let user = user.filter(|_| matches).ok_or_else(refused)?;
        let org = self.org(&user.org)?;
        let member: Member = self.org_reader(&org.id).find(&user.id)?.ok_or_else(refused)?;
        let session = self.engine.transact(|txn| {
            // The password may have been changed, or the member removed, while it was compared.
            let known: Option<User> = global_find(txn, "user", &user.id)?;
            let is_known = known.is_some_and(|known| known.password_hash == user.password_hash);
            if !is_known || OrgTxn::new(txn, &org.id).find::<Member>(&user.id)?.is_none() {
                return Err(refused());
            }
            if let Some(before) = before {
                global_end_session(txn, &secret::digest(before))?;
            }
            let caller = caller_of_user(&user, member.role, &org, &client);
            let target = ("user", user.id.as_str());
            let mut records = OrgTxn::new(txn, &org.id);
            self.audit(&mut records, &caller, "session.create", target, serde_json::json!({}))?;
            self.open_session(txn, &user.id, &org.id, &client)
        })?;
        Ok(SessionOpened { user, org, role: member.role, session })
    }

    /// The environment of an organisation that a request names.
    ///
    /// `production` or `development`, from `X-Service-Environment`. Errors: 404 without the organisation, 400 for another name.
    pub fn environment(&self, org: &str, name: &str) -> Result<Environment> {
        self.org(org)?.environment(name).cloned().ok_or_else(|| no_environment(name))
    }

    /// The caller behind an API key, from memory alone, and whether its use is to be noted.
    ///
    /// A key with another prefix, a mistyped or a cut one is refused by its checksum, before anything is looked up. `true` when its use was
    /// never noted or a minute ago or more; [`App::note_use`] is called then.
    ///
    /// Errors: 401, the same for a revoked key and one that never was.
    pub fn caller_of_key(&self, key: &str) -> Result<(Caller, bool)> {
        let refused = || ApiError::new(Code::Unauthenticated, "the API key is not valid");
        let scopes =
            [("inlay_admin_", Principal::AdminKey), ("inlay_ingest_", Principal::IngestKey)];
        let (_, principal) = *scopes
            .iter()
            .find(|(prefix, _)| secret::is_well_formed(prefix, key))
            .ok_or_else(refused)?;
        let found = self.key_callers.find(&self.engine.keys(), &secret::digest(key), principal)?;
        let found = found.ok_or_else(refused)?;
        let now = self.now_ms();
        let is_due = found.last_used_at.is_none_or(|used| now >= used + SEEN_EVERY_MS);
        Ok((found.caller.clone(), is_due))
    }

    /// Stores the current time as the last use of the caller's key or session.
    ///
    /// Errors: those of the store, but for one that takes no writes: a read must not fail because its time cannot be written down.
    pub fn note_use(&self, caller: &Caller) -> Result<()> {
        let now = self.now_ms();
        // It may have ended since; noting its use must not bring it back.
        let noted = match &caller.session {
            Some(digest) => self.engine.transact(|txn| {
                if let Some(mut session) = global_find::<Session>(txn, "session", digest)? {
                    session.seen_at = now;
                    global_put(txn, "session", digest, &session)?;
                }
                Ok::<_, ApiError>(())
            }),
            None => self.org_txn(&caller.org, |txn| {
                if let Some(mut key) = txn.find::<store::ApiKey>(&caller.actor.id)? {
                    key.last_used_at = Some(now);
                    txn.put(&key)?;
                }
                Ok(())
            }),
        };
        // A store that takes no writes still answers questions.
        noted.or_else(|error| match error.code == Code::Overloaded && !error.is_elsewhere() {
            true => Ok(()),
            false => Err(error),
        })
    }

    /// The user of a console session, `None` for a key.
    pub fn user_of(&self, caller: &Caller) -> Result<Option<User>> {
        if caller.is_key() {
            return Ok(None);
        }
        global_find(&self.engine.keys(), "user", &caller.actor.id)
    }

    /// SHA-512 first, so that every byte of a long password counts: bcrypt itself stops at 71.
    ///
    /// `$2b$12$` with 53 characters of salt and digest. One hash takes 2^cost rounds, which is what makes guessing slow: callers take a
    /// permit of the pool `password_hashes` first.
    pub fn hash_password(&self, password: &str) -> Result<String> {
        bcrypt::hash(Sha512::digest(password.as_bytes()), self.settings.password_cost)
            .map_err(|error| ApiError::internal(format!("bcrypt: {error}")))
    }

    /// A hash of the configured cost that no password has: comparing with it takes as long as with
    /// any other. Salt and digest are zero.
    fn unusable_hash(&self) -> String {
        const SALT_AND_DIGEST_CHARS: usize = 53;
        format!("$2b${:02}${}", self.settings.password_cost, ".".repeat(SALT_AND_DIGEST_CHARS))
    }
}

/// Whether a password is the one of a hash. It takes as long as hashing it.
pub fn is_password(password: &str, hash: &str) -> Result<bool> {
    bcrypt::verify(Sha512::digest(password.as_bytes()), hash)
        .map_err(|error| ApiError::internal(format!("bcrypt: {error}")))
}
