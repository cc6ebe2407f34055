//! Records of organisations, users, keys, usage and billing.
//!
//! Times are milliseconds since 1970. The views of the API are beside its handlers.

use inlay_engine::Namespace;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

use super::org::records;

records! {
    Org "org";
    Member "member";
    ApiKey "api_key";
    AuditRow "audit";
    UsageDay "usage_day";
    UsageMonth "usage_month";
    SavedQuery "saved_query";
    Invite "invite";
}

/// An organisation. The record is stored in the organisation itself, under the same id.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Org {
    /// UUIDv7; `o/<id>/` begins the keys of all its records.
    pub id: String,
    /// Display name, 1 to 200 characters.
    pub name: String,
    /// E-mail address of the contact, in lower case.
    pub email: String,
    /// Name of the plan in `app::plans`; an unknown one counts as the smallest.
    pub plan: String,
    /// Subscription at the billing provider.
    #[serde(default)]
    pub billing: Billing,
    /// `production`, then `development`; both are made at registration.
    pub environments: Vec<Environment>,
    /// When the organisation was registered.
    pub created_at: i64,
}

impl Org {
    /// The environment with this name.
    pub fn environment(&self, name: &str) -> Option<&Environment> {
        self.environments.iter().find(|environment| environment.name == name)
    }

    /// The environment with this id.
    pub fn environment_by_id(&self, id: &str) -> Option<&Environment> {
        self.environments.iter().find(|environment| environment.id == id)
    }
}

/// A separate set of events within an organisation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Environment {
    /// UUIDv7, the claim `env` of embed tokens.
    pub id: String,
    /// `production` or `development`.
    pub name: String,
    /// Namespace of its events in the engine.
    pub namespace: u32,
}

impl Environment {
    /// Namespace of its events in the engine.
    pub fn namespace(&self) -> Namespace {
        Namespace(self.namespace)
    }
}

/// An account, stored outside of any organisation under its id. It is a member of one of them.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct User {
    /// UUIDv7 of the account; the member has the same id.
    pub id: String,
    /// E-mail address in lower case, unique in the server.
    pub email: String,
    /// Display name, 1 to 200 characters.
    pub name: String,
    /// bcrypt of the SHA-512 of the password, as text with cost and salt.
    pub password_hash: String,
    /// Id of the organisation that a login opens, its only one.
    pub org: String,
    /// When the account was registered or accepted its invite.
    pub created_at: i64,
}

/// What a member may do; each role includes those before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// Reads dashboards, rules, members and usage, and runs metric queries.
    Viewer,
    /// Also creates, changes, publishes and deletes dashboards.
    Editor,
    /// All but deleting the organisation, changing roles, and removing admins and owners.
    Admin,
    /// All operations of the console.
    Owner,
}

/// The membership of a user in an organisation.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Member {
    /// Id of the user.
    pub id: String,
    /// Permissions in the organisation.
    pub role: Role,
    /// When the user registered the organisation or accepted the invite.
    pub joined_at: i64,
}

/// A console session, stored under the digest of its cookie.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Session {
    /// UUIDv7 by which the user ends the session. Empty in sessions of builds without ids, which
    /// count as ended.
    #[serde(default)]
    pub id: String,
    /// Id of the user.
    pub user: String,
    /// Id of the organisation.
    pub org: String,
    /// When it began.
    pub created_at: i64,
    /// When it was last used, to the minute.
    pub seen_at: i64,
    /// Address that it was opened from.
    #[serde(default)]
    pub ip: Option<String>,
    /// The `User-Agent` that it was opened with.
    #[serde(default)]
    pub user_agent: Option<String>,
}

/// A link to a new password, stored under the id of its user: the next one replaces it.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct PasswordReset {
    /// Id of the organisation.
    pub org: String,
    /// Digest of the secret in the link.
    pub digest: String,
    /// When the link expires; from this millisecond on it is refused.
    pub expires_at: i64,
}

/// What a key may do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum Scope {
    /// Everything that an admin may do through the API.
    Admin,
    /// Sending events, and reading the identity of the key.
    Ingest,
}

/// An API key; only its digest is stored.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct ApiKey {
    /// UUIDv7 of the record; no part of the key itself.
    pub id: String,
    /// Name chosen by the user, 1 to 200 characters.
    pub label: String,
    /// Permissions of the key.
    pub scope: Scope,
    /// First 18 characters of the key, for lists.
    pub prefix: String,
    /// SHA-256 of the whole key, as 64 hexadecimal digits.
    pub digest: String,
    /// Id of its environment.
    pub environment: String,
    /// When the key was made.
    pub created_at: i64,
    /// Id of the user who made the key; absent when another key did.
    pub created_by: Option<String>,
    /// When the key was last used, to the minute; absent before its first use.
    pub last_used_at: Option<i64>,
}

/// Reference from the digest of a key to its record.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct KeyRef {
    /// Id of the organisation that owns the key.
    pub org: String,
    /// Id of the key.
    pub id: String,
}

/// Who did something.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Actor {
    /// `user`, `api_key` or `system`.
    pub r#type: String,
    /// Id of the user or API key; for `system`, a name such as `alerts`.
    pub id: String,
    /// E-mail address of the user, or label of the API key, at that time.
    pub label: String,
}

/// A key that signs embed tokens of one environment; stored under its `kid`.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct SigningKey {
    /// Id of the organisation that owns the environment.
    pub org: String,
    /// Id of the environment.
    pub environment: String,
    /// 32 random bytes as 64 hexadecimal digits. The digits as text are the key of HMAC-SHA-256.
    pub secret: String,
    /// When the key was made.
    pub created_at: i64,
    /// `kid` of the key before, whose tokens stay valid; absent in the first and in replaced keys.
    #[serde(default)]
    pub previous: Option<String>,
    /// When a newer key replaced this one; absent in the current key.
    #[serde(default)]
    pub retired_at: Option<i64>,
}

/// One change of state, for the audit.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct AuditRow {
    /// UUIDv7, so that rows are in order of time.
    pub id: String,
    /// Name of the operation, such as `dashboard.publish`.
    pub action: String,
    /// User, API key or part of the server that made the change.
    pub actor: Actor,
    /// Type and id of the changed thing.
    pub target: (String, String),
    /// JSON object with details, such as name, version, and values before the change.
    pub metadata: Value,
    /// Id of the environment that the caller worked in.
    #[serde(default)]
    pub environment: Option<String>,
    /// IP address of the request; absent when it is unknown or the server made the change.
    pub ip: Option<String>,
    /// When the change was made.
    pub created_at: i64,
}

/// Usage of one environment on one day in UTC.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct UsageDay {
    /// `<environment>:<date>`, the date as `2026-11-20`.
    pub id: String,
    /// Events first stored on this day; repeated event ids do not count.
    pub events: u64,
    /// Queries and SQL statements that were started, those of embeds included. Counts are written
    /// every ten seconds, so that a crash loses the last ones.
    pub queries: u64,
    /// Embed sessions minted.
    pub embed_sessions: u64,
    /// Embed pages shown.
    pub embed_views: u64,
}

/// Events that an organisation stored in one month in UTC, over all environments.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct UsageMonth {
    /// Month as `YYYY-MM`, such as `2026-11`.
    pub id: String,
    /// Events first stored in the month, for the limit of the plan; samples do not count.
    pub events: u64,
}

/// Subscription of an organisation, as the billing provider last reported it.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Billing {
    /// Id of the organisation at the provider; absent before the first subscription.
    pub customer_id: Option<String>,
    /// Id of the subscription at the provider; absent before the first.
    pub subscription_id: Option<String>,
    /// Status of the subscription.
    pub status: BillingStatus,
    /// End of the period that is paid; absent when the provider did not name one.
    pub current_period_end: Option<i64>,
    /// Time of the last applied event at the provider; older events are ignored.
    pub occurred_at: Option<i64>,
}

/// How a subscription stands.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum BillingStatus {
    /// There is none.
    #[default]
    None,
    /// Not paid yet.
    Trialing,
    /// The current period is paid.
    Active,
    /// Not paid in time.
    PastDue,
    /// The subscription has ended, and the plan is `free`.
    Canceled,
}

/// A received billing event; stored outside of any organisation, under the digest of its id.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct BillingEvent {
    /// SHA-256 of its body, as hexadecimal digits.
    pub digest: String,
    /// When the event first arrived; repeated ones are ignored for 100 days.
    pub received_at: i64,
}

/// State of the demo; stored outside of any organisation.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Demo {
    /// Id of the organisation of the demo.
    pub org: String,
    /// Id of the dashboard that the demo shows.
    pub dashboard: String,
    /// Events up to this time have been seeded; 0 before the first.
    pub seeded_until: i64,
}

/// A saved query of the console.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct SavedQuery {
    /// UUIDv7, so that queries are in order of time.
    pub id: String,
    /// Name chosen by the user, 1 to 200 characters.
    pub name: String,
    /// SQL text as typed, up to 64 KiB; checked when it runs.
    pub sql: String,
    /// Name of the dataset that the query is mainly about; `events` by default.
    pub dataset: String,
    /// Whether lists show the query before those without a star.
    pub starred: bool,
    /// Id of the user who saved the query; absent when an API key did.
    pub created_by: Option<String>,
    /// When the query was saved.
    pub created_at: i64,
    /// When it was last changed.
    pub updated_at: i64,
}

/// A pending invite; the record is deleted when it is accepted or withdrawn.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Invite {
    /// UUIDv7, the token's `sub`.
    pub id: String,
    /// Invited e-mail address in lower case.
    pub email: String,
    /// Role of the new member; never `owner`.
    pub role: Role,
    /// Label of the inviter, such as the e-mail address of a user.
    pub invited_by: String,
    /// When the invite was made.
    pub created_at: i64,
    /// When the invite expires, 7 days after `created_at`.
    pub expires_at: i64,
}

/// The key that signs the invites of an organisation; stored under the organisation's id.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct InviteKey {
    /// Id of the organisation.
    pub org: String,
    /// 32 random bytes as 64 hexadecimal digits. The digits as text are the key of HMAC-SHA-256.
    pub secret: String,
}

/// A request with an idempotency key, and its answer; stored outside of any organisation.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct IdempotentRequest {
    /// Id of the organisation of the caller.
    pub org: String,
    /// Digest of environment, path, type and body, with a secret of the caller.
    pub fingerprint: String,
    /// Id of the attempt that was carried out.
    pub attempt: String,
    /// When the change or the answer was stored, whichever came last; expires 24 hours later.
    pub created_at: i64,
    /// Nonce and encrypted answer in Base64 without padding; absent when the answer is not known
    /// yet, is too large, or was lost.
    pub answer: Option<String>,
}
