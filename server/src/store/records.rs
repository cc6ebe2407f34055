//! What is stored. Times are milliseconds since 1970; views for the wire are beside the handlers.

use std::collections::BTreeMap;

use inlay_engine::Namespace;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::org::Record;

macro_rules! records {
    ($($name:ident $kind:literal;)*) => {
        $(impl Record for $name {
            const KIND: &'static str = $kind;
            fn id(&self) -> &str {
                &self.id
            }
        })*
    };
}

records! {
    Org "org";
    Member "member";
    ApiKey "api_key";
    Dashboard "dashboard";
    EmbedSession "embed_session";
    AuditRow "audit";
    UsageDay "usage_day";
    SavedQuery "saved_query";
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
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
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
    /// Who.
    pub user: String,
    /// Where.
    pub org: String,
    /// When it began.
    pub created_at: i64,
    /// When it was last used, to the minute.
    pub seen_at: i64,
}

/// What a key may do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
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

/// One thing on a dashboard.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Widget {
    /// Unique within its dashboard.
    pub id: String,
    /// What is drawn.
    pub kind: String,
    /// Heading.
    pub title: String,
    /// What is asked; the names of `GET /v1/query`.
    pub query: Map<String, Value>,
    /// Drawing options, kept as they are.
    pub viz: Map<String, Value>,
    /// Place on twelve columns.
    pub layout: Layout,
}

/// A place on twelve columns.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Layout {
    /// Column, from 0.
    pub x: u32,
    /// Row, from 0.
    pub y: u32,
    /// Columns.
    pub w: u32,
    /// Rows.
    pub h: u32,
}

/// Settings of a dashboard.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Settings {
    /// Period that an embed starts with.
    pub default_period: String,
    /// Origins that may frame the embed; any when empty.
    pub allowed_origins: Vec<String>,
    /// Colours of the embed.
    pub theme: Map<String, Value>,
}

impl Default for Settings {
    fn default() -> Self {
        Self { default_period: "30d".to_owned(), allowed_origins: Vec::new(), theme: Map::new() }
    }
}

/// What a dashboard shows: the draft, or what was published of it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DashboardConfig {
    /// Heading.
    pub name: String,
    /// In the order that they were given.
    pub widgets: Vec<Widget>,
    /// The rest.
    pub settings: Settings,
}

/// A dashboard: a draft, and the last published snapshot.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Dashboard {
    /// UUIDv7.
    pub id: String,
    /// What editors see.
    pub draft: DashboardConfig,
    /// The last published snapshot, kept when unpublished.
    pub published: Option<DashboardConfig>,
    /// Whether embeds show the snapshot.
    pub is_live: bool,
    /// Rises with every change.
    pub version: u64,
    /// When it was last published.
    pub published_at: Option<i64>,
    /// When.
    pub created_at: i64,
    /// When.
    pub updated_at: i64,
    /// Label of who made it.
    pub created_by: String,
}

/// What a viewer may do with an embedded dashboard.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Permissions {
    /// Whether the viewer may drill down.
    pub allow_drill_down: bool,
    /// Filters that always hold.
    pub locked_filters: BTreeMap<String, OneOrMany>,
    /// Widgets that do not exist for the viewer.
    pub hidden_widgets: Vec<String>,
    /// Properties that may be filtered by; absent: all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub allowed_dimensions: Option<Vec<String>>,
    /// Periods that may be chosen; absent: all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub allowed_periods: Option<Vec<String>>,
    /// Longest window; absent: any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_date_range_days: Option<u32>,
}

/// A value, or any of several.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum OneOrMany {
    /// Exactly this.
    One(String),
    /// Any of these.
    Many(Vec<String>),
}

impl OneOrMany {
    /// All accepted values.
    pub fn values(&self) -> Vec<String> {
        match self {
            Self::One(value) => vec![value.clone()],
            Self::Many(values) => values.clone(),
        }
    }
}

/// A minted embed session.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct EmbedSession {
    /// UUIDv7, the token's `jti`.
    pub id: String,
    /// For whom.
    pub tenant_id: String,
    /// Of what.
    pub dashboard_id: String,
    /// Id of the environment whose data it shows.
    pub environment: String,
    /// As granted.
    pub permissions: Permissions,
    /// Who minted it.
    pub actor: Actor,
    /// When.
    pub issued_at: i64,
    /// Until when.
    pub expires_at: i64,
    /// Whether it was revoked.
    pub revoked: bool,
}

/// Who did something.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
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

/// Events of one environment on one day.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct UsageDay {
    /// `<environment>:<date>`.
    pub id: String,
    /// Events stored.
    pub events: u64,
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
