//! Embed sessions: signed tokens that show one published dashboard to one tenant.
//!
//! A token says which dashboard, tenant and permissions. What a request with it may ask is decided
//! in `limits`; what it is answered, in `views`.
//!
//! ```text
//! POST /v1/embed-sessions {"tenant_id": "acme", "dashboard_id": "0190…", "expires_in": 600,
//!                          "permissions": {"locked_filters": {"status": "ok"}, "hidden_widgets": ["secret"]}}
//! 201 {"token": "eyJ…", "embed_url": "https://inlay.acme.com/embed/0190…?token=eyJ…", "expires_at": "2026-11-20T10:27:36.000Z"}
//!
//! {"typ": "embed+jwt", "alg": "HS256", "kid": "0190…"}
//! {"iss": "inlay", "aud": "embed", "sub": "<dashboard>", "jti": "<session>", "iat": 1795169856, "nbf": 1795169856, "exp": 1795170456,
//!  "org": "0190…", "env": "0190…", "tenant_id": "acme", "perm": {"allow_drill_down": false, "locked_filters": {"status": "ok"}, …}}
//!
//! 401 unauthenticated "the embed token is not valid"     another signature, type, algorithm, organisation; more than 8 KiB
//! 401 token_expired   "the embed session has ended"      from 5 seconds after exp on
//! 401 token_revoked   "the embed session was revoked"    DELETE /v1/embed-sessions/<session>
//! 402 advanced_embed_permissions                         hidden_widgets and the like on the plan free
//! ```
//!
//! Keys of an environment, and the tokens that they leave valid:
//!
//! ```text
//!                        current    previous
//! registered             k1         –           tokens of k1
//! POST …/rotate-key      k2         k1          tokens of k2 and k1, these until they expire
//! POST …/rotate-key      k3         k2          tokens of k3 and k2; those of k1 end at once
//! ```

use inlay_proto::names::EMBED_TOKEN_TYPE;
use jsonwebtoken::{Algorithm, DecodingKey, EncodingKey, Header, Validation, errors::ErrorKind};
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::{
    app::{
        periods::parse_period,
        plans,
        request::{callers::Caller, context::App},
    },
    error::{ApiError, Code, More, PlanLimit, Result},
    store::{
        Dashboard, EmbedSession, Environment, Org, Permissions, SigningKey, global_delete,
        global_find, global_put,
    },
};

/// Seconds that a session may live.
const EXPIRES_IN: std::ops::RangeInclusive<i64> = 60..=86_400;
/// Seconds that it lives when nothing is said.
const EXPIRES_IN_DEFAULT: i64 = 3_600;
/// Seconds for which a token counts before its `nbf` and after its `exp`: clocks differ, also that of one machine once it was set.
const SKEW_SECONDS: u64 = 5;
/// Bytes of a token, at most: it stands in a URL and in a header.
const TOKEN_BYTES_MAX: usize = 8 * 1_024;
// Claims that tell our embed tokens from other tokens, and from tokens of others.
const ISSUER: &str = "inlay";
const AUDIENCE: &str = "embed";

/// A session to mint.
pub struct EmbedRequest {
    /// Tenant whose data is shown, 1 to 256 bytes.
    pub tenant_id: String,
    /// Id of the dashboard that is shown; it may be unpublished when the session is minted.
    pub dashboard_id: String,
    /// Lifetime in seconds, 60 to 86,400; `None` is an hour.
    pub expires_in: Option<i64>,
    /// What the viewer may do.
    pub permissions: Permissions,
}

/// A minted embed session.
pub struct Minted {
    /// Signed token: a JWT with HS256, at most 8 KiB.
    pub token: String,
    /// Address of the embed page, with the token in its query.
    pub url: String,
    /// End of the session, in milliseconds since 1970.
    pub expires_at: i64,
}

/// Claims of a token; all are required.
///
/// `sub` is the dashboard, `jti` the session, `env` the environment; times are seconds since 1970.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Claims {
    iss: String,
    aud: String,
    sub: String,
    jti: String,
    iat: i64,
    nbf: i64,
    exp: i64,
    org: String,
    env: String,
    tenant_id: String,
    perm: Permissions,
}

/// The holder of a valid embed token.
///
/// Made by [`App::viewer`] alone: its tenant and permissions were signed.
#[derive(Debug, Clone)]
pub struct Viewer {
    /// Id of the embed session.
    pub session: String,
    /// Id of the organisation.
    pub org: String,
    /// Environment whose data is shown.
    pub environment: Environment,
    /// Tenant whose data is shown.
    pub tenant: String,
    /// Id of the dashboard that the token shows.
    pub dashboard_id: String,
    /// Permissions that the token grants.
    pub permissions: Permissions,
    /// End of the session by its token, in milliseconds since 1970.
    pub expires_at: i64,
}

/// The one error of all tokens that are not ours: it does not say what is wrong with them.
fn invalid_token() -> ApiError {
    ApiError::new(Code::Unauthenticated, "the embed token is not valid")
}

impl App {
    /// Mints a session. 404 without the dashboard, 402 when the plan lacks the permissions asked for.
    ///
    /// `issued_at` is cut to a whole second, as the claim is. The token is not stored.
    ///
    /// Errors: 400 for the lifetime, the tenant, a period, `max_date_range_days` of 0, and permissions that do not fit into a token.
    pub fn create_embed_session(&self, caller: &Caller, request: EmbedRequest) -> Result<Minted> {
        self.dashboard(caller, &request.dashboard_id)?;
        let expires_in = request.expires_in.unwrap_or(EXPIRES_IN_DEFAULT);
        if !EXPIRES_IN.contains(&expires_in) {
            let message = format!(
                "expires_in must be from {} to {} seconds",
                EXPIRES_IN.start(),
                EXPIRES_IN.end()
            );
            return Err(ApiError::field(Code::OutOfRange, "expires_in", message));
        }
        if request.tenant_id.is_empty() || request.tenant_id.len() > 256 {
            return Err(ApiError::field(
                Code::InvalidField,
                "tenant_id",
                "tenant_id must have 1 to 256 bytes",
            ));
        }
        for (index, period) in request.permissions.allowed_periods.iter().flatten().enumerate() {
            parse_period(&format!("permissions.allowed_periods[{index}]"), period)?;
        }
        if request.permissions.max_date_range_days == Some(0) {
            let message = "max_date_range_days must be at least 1";
            return Err(ApiError::field(
                Code::OutOfRange,
                "permissions.max_date_range_days",
                message,
            ));
        }
        let org = self.org(&caller.org)?;
        check_plan(&org, &request.permissions)?;
        let now = self.now_ms();
        let issued = now / 1_000;
        let session = EmbedSession {
            id: self.new_id(),
            tenant_id: request.tenant_id,
            dashboard_id: request.dashboard_id,
            environment: caller.environment.id.clone(),
            permissions: request.permissions,
            actor: caller.actor.clone(),
            issued_at: issued * 1_000,
            expires_at: (issued + expires_in) * 1_000,
            revoked: false,
        };
        let token = self.sign(&caller.org, &session)?;
        let url =
            format!("{}/embed/{}?token={token}", self.settings.base_url, session.dashboard_id);
        if token.len() > TOKEN_BYTES_MAX {
            return Err(ApiError::field(
                Code::OutOfRange,
                "permissions",
                "the permissions do not fit into a token",
            ));
        }
        self.org_txn(&caller.org, |txn| {
            txn.put(&session)?;
            self.count_embed_session(txn, caller)?;
            let metadata = json!({"tenant_id": session.tenant_id, "dashboard_id": session.dashboard_id, "expires_in": expires_in});
            self.audit(txn, caller, "embed_session.create", ("embed_session", &session.id), metadata)
        })?;
        Ok(Minted { token, url, expires_at: session.expires_at })
    }

    /// Signs tokens of the caller's environment with a new key from now on; gives its `kid`. Tokens of the key before it count until
    /// they expire; those of the key before that end. So a second rotation ends what the first left valid, if that must be.
    pub fn rotate_signing_key(&self, caller: &Caller) -> Result<String> {
        let environment = &caller.environment.id;
        self.org_txn(&caller.org, |txn| {
            let keys = txn.global();
            let old: Option<String> = global_find(keys, "signing_key_of", environment)?;
            if let Some(kid) = &old
                && let Some(mut key) = global_find::<SigningKey>(keys, "signing_key", kid)?
            {
                if let Some(before) = key.previous.take() {
                    global_delete(keys, "signing_key", &before);
                }
                key.retired_at = Some(self.now_ms());
                global_put(keys, "signing_key", kid, &key)?;
            }
            let kid = self.add_signing_key(keys, &caller.org, environment, old)?;
            let metadata = json!({"environment": caller.environment.name});
            self.audit(txn, caller, "embed_key.rotate", ("embed_key", &kid), metadata)?;
            Ok(kid)
        })
    }

    /// Signs the token of a session with the current key of its environment.
    fn sign(&self, org: &str, session: &EmbedSession) -> Result<String> {
        let keys = self.engine.keys();
        let kid: String = global_find(&keys, "signing_key_of", &session.environment)?
            .ok_or_else(|| ApiError::internal("an environment has no signing key"))?;
        let key: SigningKey = global_find(&keys, "signing_key", &kid)?
            .ok_or_else(|| ApiError::internal("a signing key is missing"))?;
        let mut header = Header::new(Algorithm::HS256);
        header.typ = Some(EMBED_TOKEN_TYPE.to_owned());
        header.kid = Some(kid);
        let claims = Claims {
            iss: ISSUER.to_owned(),
            aud: AUDIENCE.to_owned(),
            sub: session.dashboard_id.clone(),
            jti: session.id.clone(),
            iat: session.issued_at / 1_000,
            nbf: session.issued_at / 1_000,
            exp: session.expires_at / 1_000,
            org: org.to_owned(),
            env: session.environment.clone(),
            tenant_id: session.tenant_id.clone(),
            perm: session.permissions.clone(),
        };
        jsonwebtoken::encode(&header, &claims, &EncodingKey::from_secret(key.secret.as_bytes()))
            .map_err(|error| ApiError::internal(format!("a token cannot be signed: {error}")))
    }

    /// The viewer behind a token. 401 when this server did not sign the token, or it has expired or
    /// was revoked.
    ///
    /// Everything is read from memory. Errors: those at the head of this file.
    pub fn viewer(&self, token: &str) -> Result<Viewer> {
        if token.len() > TOKEN_BYTES_MAX {
            return Err(invalid_token());
        }
        let header = jsonwebtoken::decode_header(token).map_err(|_| invalid_token())?;
        let kid = header.kid.filter(|kid| kid.len() <= 64).ok_or_else(invalid_token)?;
        if header.typ.as_deref() != Some(EMBED_TOKEN_TYPE) || header.alg != Algorithm::HS256 {
            return Err(invalid_token());
        }
        let keys = self.engine.keys();
        let key: SigningKey = global_find(&keys, "signing_key", &kid)?.ok_or_else(invalid_token)?;
        let mut validation = Validation::new(Algorithm::HS256);
        validation.set_required_spec_claims(&["exp", "nbf", "aud", "iss", "sub"]);
        validation.set_audience(&[AUDIENCE]);
        validation.set_issuer(&[ISSUER]);
        // Times are checked below, against our own clock.
        validation.validate_exp = false;
        validation.validate_nbf = false;
        let key_bytes = DecodingKey::from_secret(key.secret.as_bytes());
        let claims = jsonwebtoken::decode::<Claims>(token, &key_bytes, &validation)
            .map_err(|error| match error.kind() {
                ErrorKind::Provider(_) => {
                    ApiError::internal(format!("tokens cannot be verified: {error}"))
                }
                _ => invalid_token(),
            })?
            .claims;
        // A key signs for its own organisation and environment, whatever the claims say.
        if claims.org != key.org || claims.env != key.environment {
            return Err(invalid_token());
        }
        let now = self.now_ms() / 1_000;
        if now + (SKEW_SECONDS as i64) < claims.nbf {
            return Err(invalid_token());
        }
        if now >= claims.exp + SKEW_SECONDS as i64 {
            return Err(ApiError::new(Code::TokenExpired, "the embed session has ended"));
        }
        let reader = self.org_reader(&claims.org);
        let session: EmbedSession = reader.find(&claims.jti)?.ok_or_else(invalid_token)?;
        if session.revoked {
            return Err(ApiError::new(Code::TokenRevoked, "the embed session was revoked"));
        }
        let org: Org = reader.find(&claims.org)?.ok_or_else(invalid_token)?;
        let environment = org.environment_by_id(&claims.env).cloned().ok_or_else(invalid_token)?;
        Ok(Viewer {
            session: claims.jti,
            org: claims.org,
            environment,
            tenant: claims.tenant_id,
            dashboard_id: claims.sub,
            permissions: claims.perm,
            expires_at: claims.exp * 1_000,
        })
    }

    /// Sessions that are still valid, newest first, with the names of their dashboards.
    ///
    /// Sessions of the caller's environment. A dashboard that was deleted has an empty name.
    pub fn embed_sessions(&self, caller: &Caller) -> Result<Vec<(EmbedSession, String)>> {
        let reader = self.org_reader(&caller.org);
        let now = self.now_ms();
        let mut sessions: Vec<EmbedSession> = reader.list()?;
        sessions.retain(|session| {
            session.expires_at > now
                && !session.revoked
                && session.environment == caller.environment.id
        });
        sessions.reverse();
        let name = |session: EmbedSession| {
            let dashboard = reader.find::<Dashboard>(&session.dashboard_id)?;
            let name = dashboard.map_or_else(String::new, |dashboard| dashboard.draft.name);
            Ok((session, name))
        };
        sessions.into_iter().map(name).collect()
    }

    /// Ends a session: the next request with its token is refused.
    ///
    /// The record stays until a day after its end, so that the answer is `token_revoked` and not that the token is not ours.
    ///
    /// Errors: 404 when the environment has no such session, or it was revoked before.
    pub fn revoke_embed_session(&self, caller: &Caller, id: &str) -> Result<()> {
        self.org_txn(&caller.org, |txn| {
            let found: Option<EmbedSession> = txn.find(id)?;
            let mut session = found
                .filter(|session| session.environment == caller.environment.id && !session.revoked)
                .ok_or_else(|| ApiError::not_found("embed session"))?;
            session.revoked = true;
            txn.put(&session)?;
            self.audit(txn, caller, "embed_session.revoke", ("embed_session", id), json!({}))
        })
    }
}

/// Refuses permissions that the plan does not include.
///
/// Drilling down and locked filters are part of every plan.
fn check_plan(org: &Org, permissions: &Permissions) -> Result<()> {
    let plan = plans::plan_of(org);
    let is_advanced = !permissions.hidden_widgets.is_empty()
        || permissions.allowed_dimensions.is_some()
        || permissions.allowed_periods.is_some()
        || permissions.max_date_range_days.is_some();
    if plan.advanced_embed_permissions || !is_advanced {
        return Ok(());
    }
    Err(ApiError {
        more: Some(Box::new(More::Plan(PlanLimit {
            plan: plan.name.to_owned(),
            upgrade_to: Some("growth".to_owned()),
            limit: 0,
            used: 0,
        }))),
        ..ApiError::new(
            Code::AdvancedEmbedPermissions,
            format!("the plan {} has no advanced embed permissions", plan.name),
        )
    })
}
