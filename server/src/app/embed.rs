//! Embeds: signed sessions that show one published dashboard for one tenant, and their limits.
//!
//! The token says which dashboard, tenant and permissions; the browser's requests can only narrow
//! that. Every rule is enforced here, whatever the page or the host sends.

use std::collections::BTreeMap;

use inlay_engine::{NumberFilter, TextFilter};
use inlay_proto::names::EMBED_TOKEN_TYPE;
use jsonwebtoken::{Algorithm, DecodingKey, EncodingKey, Header, Validation, errors::ErrorKind};
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::{
    context::{App, Caller},
    counters::Counted,
    plans,
    query::{parse_period, period_ms},
    widgets::{ViewFilters, WidgetAnswer},
};
use crate::{
    base::instant,
    error::{ApiError, Code, PlanLimit, Result},
    store::{
        Dashboard, DashboardConfig, EmbedSession, Environment, OneOrMany, Org, Permissions,
        SigningKey, Widget, global_delete, global_find, global_put,
    },
};

/// Seconds that a session may live.
const EXPIRES_IN: std::ops::RangeInclusive<i64> = 60..=86_400;
/// Seconds that it lives when nothing is said.
const EXPIRES_IN_DEFAULT: i64 = 3_600;
/// Clocks of our machines may differ by this much.
const SKEW_SECONDS: u64 = 5;
/// A token is never longer.
const TOKEN_BYTES_MAX: usize = 8 * 1_024;
const ISSUER: &str = "inlay";
const AUDIENCE: &str = "embed";
/// Periods that are offered when nothing restricts them.
const PERIODS_OFFERED: [&str; 4] = ["24h", "7d", "30d", "90d"];
const DAY_MS: i64 = 86_400_000;

/// A session to mint.
pub struct EmbedRequest {
    /// For whom.
    pub tenant_id: String,
    /// Of what.
    pub dashboard_id: String,
    /// For how long, in seconds.
    pub expires_in: Option<i64>,
    /// What the viewer may do.
    pub permissions: Permissions,
}

/// A minted session.
pub struct Minted {
    /// Signed token.
    pub token: String,
    /// The page's address.
    pub url: String,
    /// Until when.
    pub expires_at: i64,
}

/// Claims of a token; all are required.
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

/// Somebody who holds a valid token.
#[derive(Debug, Clone)]
pub struct Viewer {
    /// Id of the embed session.
    pub session: String,
    /// Organisation.
    pub org: String,
    /// Environment whose data is shown.
    pub environment: Environment,
    /// Tenant whose data is shown.
    pub tenant: String,
    /// The dashboard.
    pub dashboard_id: String,
    /// What is allowed.
    pub permissions: Permissions,
    /// Until when.
    pub expires_at: i64,
}

/// A published dashboard as one viewer sees it.
pub struct EmbedView {
    /// Id.
    pub id: String,
    /// What is shown, without what is hidden.
    pub config: DashboardConfig,
    /// Periods to choose from.
    pub periods: Vec<String>,
    /// The one to start with.
    pub period: String,
    /// Seconds left.
    pub expires_in_seconds: i64,
}

fn invalid_token() -> ApiError {
    ApiError::new(Code::Unauthenticated, "the embed token is not valid")
}

fn broken(message: impl Into<String>) -> ApiError {
    ApiError::new(Code::EmbedPermission, message)
}

impl App {
    /// Mints a session. 404 without the dashboard, 402 when the plan lacks the permissions asked for.
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

    /// Signs tokens of the caller's environment with a new key from now on; gives its `kid`. Those of the
    /// key before it count until they expire; those of the one before that end.
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

    /// The viewer behind a token. 401 when it is not ours, too old, or revoked.
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

    /// The published dashboard as the viewer may see it. 409 when it is not published.
    pub fn embed_view(&self, viewer: &Viewer) -> Result<EmbedView> {
        let dashboard: Option<Dashboard> =
            self.org_reader(&viewer.org).find(&viewer.dashboard_id)?;
        let dashboard = dashboard.ok_or_else(|| ApiError::not_found("dashboard"))?;
        let mut config = dashboard
            .published
            .filter(|_| dashboard.is_live)
            .ok_or_else(|| ApiError::new(Code::NotPublished, "this dashboard is not published"))?;
        config.widgets.retain(|widget| !viewer.permissions.hidden_widgets.contains(&widget.id));
        let periods = offered_periods(&viewer.permissions);
        let wanted = &config.settings.default_period;
        let period = periods.iter().find(|period| *period == wanted).or(periods.last());
        let period = period.cloned().unwrap_or_else(|| wanted.clone());
        Ok(EmbedView {
            id: dashboard.id,
            config,
            periods,
            period,
            expires_in_seconds: (viewer.expires_at - self.now_ms()).max(0) / 1_000,
        })
    }

    /// The widgets with these ids, if the viewer may see all of them. A hidden widget and one that
    /// does not exist are refused alike.
    pub fn embed_widgets(&self, view: &EmbedView, ids: &[String]) -> Result<Vec<Widget>> {
        let find = |id: &String| {
            let widget = view.config.widgets.iter().find(|widget| widget.id == *id);
            widget.cloned().ok_or_else(|| broken(format!("this session shows no widget {id:?}")))
        };
        ids.iter().map(find).collect()
    }

    /// Answers one widget for a viewer, under filters that [`Viewer::check`] has passed.
    pub fn embed_answer(
        &self,
        viewer: &Viewer,
        view: &EmbedView,
        widget: &Widget,
        filters: &ViewFilters,
    ) -> Result<WidgetAnswer> {
        self.counters.add(&viewer.org, &viewer.environment, Counted::Query);
        let mut filters = filters.clone();
        filters.texts.extend(locks(&viewer.permissions));
        if filters.range.is_none() && filters.period.is_none() {
            let own = widget.query.get("period").and_then(|period| period.as_str());
            let allowed = own.filter(|own| check_period(&viewer.permissions, own).is_ok());
            filters.period = Some(allowed.unwrap_or(&view.period).to_owned());
        }
        if let Some(period) = filters.period.as_deref().filter(|_| filters.range.is_none()) {
            check_period(&viewer.permissions, period)?;
        }
        let (namespace, tenant) = (viewer.environment.namespace(), Some(viewer.tenant.as_str()));
        self.widget_answer(namespace, tenant, widget, &filters, &view.period)
    }
}

/// Filters that hold whatever the viewer chooses.
fn locks(permissions: &Permissions) -> Vec<TextFilter> {
    let lock = |(name, accepted): (&String, &OneOrMany)| TextFilter {
        name: name.clone(),
        any_of: accepted.values(),
    };
    permissions.locked_filters.iter().map(lock).collect()
}

/// Periods that the viewer may choose, shortest first.
fn offered_periods(permissions: &Permissions) -> Vec<String> {
    let by_default = || PERIODS_OFFERED.iter().map(|period| (*period).to_owned()).collect();
    let mut periods: Vec<String> = permissions.allowed_periods.clone().unwrap_or_else(by_default);
    periods.retain(|period| check_period(permissions, period).is_ok());
    periods.sort_by_key(|period| period_ms(period));
    periods.dedup();
    periods
}

fn check_period(permissions: &Permissions, period: &str) -> Result<()> {
    if permissions
        .allowed_periods
        .as_ref()
        .is_some_and(|allowed| !allowed.iter().any(|known| known == period))
    {
        return Err(broken(format!("this session does not allow the period {period}")));
    }
    check_length(permissions, period_ms(period).unwrap_or(i64::MAX))
}

fn check_length(permissions: &Permissions, length_ms: i64) -> Result<()> {
    match permissions.max_date_range_days {
        Some(days) if length_ms > i64::from(days) * DAY_MS => {
            Err(broken(format!("this session allows at most {days} days")))
        }
        _ => Ok(()),
    }
}

/// Refuses permissions that the plan does not include.
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
        plan_limit: Some(Box::new(PlanLimit {
            plan: plan.name.to_owned(),
            upgrade_to: Some("growth".to_owned()),
            limit: 0,
            used: 0,
        })),
        ..ApiError::new(
            Code::AdvancedEmbedPermissions,
            format!("the plan {} has no advanced embed permissions", plan.name),
        )
    })
}

/// Filters as messages and data requests carry them.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default, rename_all = "camelCase")]
pub struct WireFilters {
    period: Option<String>,
    dimensions: BTreeMap<String, OneOrMany>,
    numeric_ranges: BTreeMap<String, WireRange>,
    date_ranges: BTreeMap<String, WireDates>,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct WireRange {
    min: Option<f64>,
    max: Option<f64>,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct WireDates {
    from: String,
    to: String,
}

impl Viewer {
    /// Checks a viewer's filters against his permissions. 400 when they mean nothing, 403 when they
    /// reach beyond.
    pub fn check(&self, wire: &WireFilters) -> Result<ViewFilters> {
        let permissions = &self.permissions;
        let mut filters = ViewFilters::default();
        if let Some(period) = &wire.period {
            parse_period("filters.period", period)?;
            if wire.date_ranges.is_empty() {
                check_period(permissions, period)?;
            }
            filters.period = Some(period.clone());
        }
        for (name, accepted) in &wire.dimensions {
            check_dimension(permissions, name)?;
            let any_of = accepted.values();
            if let Some(locked) = permissions.locked_filters.get(name) {
                let locked = locked.values();
                if any_of.iter().any(|value| !locked.contains(value)) {
                    return Err(broken(format!("{name} is locked in this session")));
                }
            }
            filters.texts.push(TextFilter { name: name.clone(), any_of });
        }
        for (name, range) in &wire.numeric_ranges {
            check_dimension(permissions, name)?;
            let (min, max) =
                (range.min.unwrap_or(f64::NEG_INFINITY), range.max.unwrap_or(f64::INFINITY));
            filters.numbers.push(NumberFilter { name: name.clone(), min, max });
        }
        for (name, dates) in &wire.date_ranges {
            filters.range = Some(self.check_dates(name, dates)?);
        }
        Ok(filters)
    }

    fn check_dates(&self, name: &str, dates: &WireDates) -> Result<(i64, i64)> {
        let field = format!("filters.dateRanges.{name}");
        if name != "timestamp" {
            return Err(ApiError::field(
                Code::UnknownField,
                field,
                "dates are filtered by timestamp only",
            ));
        }
        let read = |part: &str, text: &str| {
            instant::parse(text).ok_or_else(|| {
                let message = format!("{part} is not an ISO 8601 date-time or date");
                ApiError::field(Code::InvalidField, format!("{field}.{part}"), message)
            })
        };
        let (from, to) = (read("from", &dates.from)?, read("to", &dates.to)?);
        if from >= to {
            return Err(ApiError::field(Code::OutOfRange, field, "from must lie before to"));
        }
        // A list of periods says what may be seen; any range beside it needs a bound of its own.
        let permissions = &self.permissions;
        if permissions.allowed_periods.is_some() && permissions.max_date_range_days.is_none() {
            return Err(broken("this session allows its periods only"));
        }
        check_length(permissions, to - from)?;
        Ok((from, to))
    }
}

fn check_dimension(permissions: &Permissions, name: &str) -> Result<()> {
    let allowed = permissions.allowed_dimensions.as_ref();
    if allowed.is_some_and(|allowed| !allowed.iter().any(|known| known == name)) {
        return Err(broken(format!("this session does not allow filtering by {name}")));
    }
    Ok(())
}
