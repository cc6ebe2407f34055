//! What is stored. Times are milliseconds since 1970; views for the wire are beside the handlers.

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

/// An organisation; its id is that of its own record.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Org {
    /// UUIDv7.
    pub id: String,
    /// Display name.
    pub name: String,
    /// Contact address.
    pub email: String,
    /// Name of its plan.
    pub plan: String,
    /// What it pays for.
    #[serde(default)]
    pub billing: Billing,
    /// Both are made at registration.
    pub environments: Vec<Environment>,
    /// When.
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

/// A separate world of events within an organisation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Environment {
    /// UUIDv7.
    pub id: String,
    /// `production` or `development`.
    pub name: String,
    /// The engine's number for it.
    pub namespace: u32,
}

impl Environment {
    /// The engine's number for it.
    pub fn namespace(&self) -> Namespace {
        Namespace(self.namespace)
    }
}

/// A person; belongs to no organisation, memberships do.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct User {
    /// UUIDv7.
    pub id: String,
    /// In lower case.
    pub email: String,
    /// Display name.
    pub name: String,
    /// bcrypt.
    pub password_hash: String,
    /// The organisation that a login opens.
    pub org: String,
    /// When.
    pub created_at: i64,
}

/// What a member may do; each role includes those before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// Reads.
    Viewer,
    /// Edits dashboards.
    Editor,
    /// Everything but the organisation itself.
    Admin,
    /// Everything.
    Owner,
}

/// A user in an organisation; the id is the user's.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Member {
    /// The user.
    pub id: String,
    /// What he may do.
    pub role: Role,
    /// When.
    pub joined_at: i64,
}

/// A console session, stored under the digest of its cookie.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Session {
    /// UUIDv7, by which its user ends it; empty in sessions of builds without ids, which count as ended.
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
    /// The first instant at which it is not good any more.
    pub expires_at: i64,
}

/// What a key may do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum Scope {
    /// Everything that an admin may do through the API.
    Admin,
    /// Sending events.
    Ingest,
}

/// An API key; only its digest is stored.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct ApiKey {
    /// UUIDv7.
    pub id: String,
    /// For people.
    pub label: String,
    /// What it may do.
    pub scope: Scope,
    /// The first characters, for recognition.
    pub prefix: String,
    /// SHA-256 of the whole key.
    pub digest: String,
    /// Id of its environment.
    pub environment: String,
    /// When.
    pub created_at: i64,
    /// Id of the user, if a user made it.
    pub created_by: Option<String>,
    /// Last use, to the minute.
    pub last_used_at: Option<i64>,
}

/// Where a key's digest leads.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct KeyRef {
    /// Organisation.
    pub org: String,
    /// Id of the key.
    pub id: String,
}

/// Who did something.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Actor {
    /// `user`, `api_key` or `system`.
    pub r#type: String,
    /// Its id.
    pub id: String,
    /// For people.
    pub label: String,
}

/// A key that signs embed tokens of one environment; stored under its `kid`.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct SigningKey {
    /// Organisation.
    pub org: String,
    /// Id of the environment.
    pub environment: String,
    /// 32 bytes, hexadecimal.
    pub secret: String,
    /// When.
    pub created_at: i64,
    /// `kid` of the key before it.
    #[serde(default)]
    pub previous: Option<String>,
    /// When another took its place.
    #[serde(default)]
    pub retired_at: Option<i64>,
}

/// One change of state.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct AuditRow {
    /// UUIDv7, so that rows are in order of time.
    pub id: String,
    /// What was done.
    pub action: String,
    /// By whom.
    pub actor: Actor,
    /// To what: type and id.
    pub target: (String, String),
    /// Details.
    pub metadata: Value,
    /// Id of the environment that the caller worked in.
    #[serde(default)]
    pub environment: Option<String>,
    /// From where.
    pub ip: Option<String>,
    /// When.
    pub created_at: i64,
}

/// What one environment used on one day.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct UsageDay {
    /// `<environment>:<date>`.
    pub id: String,
    /// Events stored.
    pub events: u64,
    /// Questions answered.
    pub queries: u64,
    /// Embed sessions minted.
    pub embed_sessions: u64,
    /// Embed pages shown.
    pub embed_views: u64,
}

/// Events that an organisation stored in one month, over all environments.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct UsageMonth {
    /// `2026-11`.
    pub id: String,
    /// Events stored.
    pub events: u64,
}

/// What an organisation pays for, as the billing provider told last.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Billing {
    /// Its id there.
    pub customer_id: Option<String>,
    /// Its subscription there.
    pub subscription_id: Option<String>,
    /// How it stands.
    pub status: BillingStatus,
    /// Until when it is paid.
    pub current_period_end: Option<i64>,
    /// When what is known happened there.
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
    /// Paid.
    Active,
    /// Not paid in time.
    PastDue,
    /// Ended.
    Canceled,
}

/// A billing event that was taken; belongs to nobody, stored under the digest of its id.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct BillingEvent {
    /// Digest of its body.
    pub digest: String,
    /// When.
    pub received_at: i64,
}

/// What the demo has seeded so far; belongs to nobody.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Demo {
    /// The demo's organisation.
    pub org: String,
    /// Its dashboard.
    pub dashboard: String,
    /// Events up to here exist.
    pub seeded_until: i64,
}

/// A query of the console that was worth keeping.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct SavedQuery {
    /// UUIDv7.
    pub id: String,
    /// For people.
    pub name: String,
    /// As it was typed; checked when it runs.
    pub sql: String,
    /// The dataset that it is mainly about.
    pub dataset: String,
    /// Whether it stands at the top.
    pub starred: bool,
    /// Id of the user, if a user made it.
    pub created_by: Option<String>,
    /// When.
    pub created_at: i64,
    /// When it was last changed.
    pub updated_at: i64,
}

/// A pending invite; it is gone when it was accepted or withdrawn.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Invite {
    /// UUIDv7.
    pub id: String,
    /// In lower case.
    pub email: String,
    /// What he will be.
    pub role: Role,
    /// Label of who invited.
    pub invited_by: String,
    /// When.
    pub created_at: i64,
    /// Until when.
    pub expires_at: i64,
}

/// The key that signs the invites of an organisation; stored under its id.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct InviteKey {
    /// Organisation.
    pub org: String,
    /// 32 bytes, hexadecimal.
    pub secret: String,
}

/// A request that was named by its client, and what it was answered with; belongs to nobody.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct IdempotentRequest {
    /// Organisation.
    pub org: String,
    /// Digest of environment, path and body.
    pub fingerprint: String,
    /// Which attempt at it was carried out.
    pub attempt: String,
    /// When.
    pub created_at: i64,
    /// Nonce and encrypted answer, base64; absent when it is not known yet, or lost.
    pub answer: Option<String>,
}
