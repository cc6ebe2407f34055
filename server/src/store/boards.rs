//! What is shown: dashboards, widgets, embed sessions.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use utoipa::ToSchema;

use super::{org::records, records::Actor};

records! {
    Dashboard "dashboard";
    StandaloneWidget "widget";
    EmbedSession "embed_session";
}

/// One thing on a dashboard.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Widget {
    /// Unique within its dashboard.
    #[schema(example = "calls")]
    pub id: String,
    /// What is drawn.
    #[schema(example = "line")]
    pub kind: String,
    /// Heading.
    #[schema(example = "Calls per day")]
    pub title: String,
    /// What is asked; the names of `GET /v1/query`.
    #[schema(value_type = Object, example = json!({
        "event_name": "api_call", "metric": "count", "period": "30d", "granularity": "day",
    }))]
    pub query: Map<String, Value>,
    /// Drawing options, kept as they are: `format`, `subtitle`, `color`, `thresholds`, `fill`, `axis`, `stack`, `order`, `value_label`,
    /// `good_direction`, `sparkline`, `drill`, `text`.
    #[schema(value_type = Object, example = json!({"format": {"style": "number"}}))]
    pub viz: Map<String, Value>,
    /// Place on twelve columns.
    pub layout: Layout,
}

/// A place on twelve columns.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Layout {
    /// Column, from 0.
    #[schema(maximum = 11, example = 0)]
    pub x: u32,
    /// Row, from 0.
    #[schema(maximum = 999, example = 0)]
    pub y: u32,
    /// Columns.
    #[schema(minimum = 1, maximum = 12, example = 6)]
    pub w: u32,
    /// Rows.
    #[schema(minimum = 1, maximum = 1000, example = 4)]
    pub h: u32,
}

/// Settings of a dashboard.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Settings {
    /// Period that an embed starts with.
    #[schema(example = "30d")]
    pub default_period: String,
    /// Origins that may frame the embed; any when empty.
    pub allowed_origins: Vec<String>,
    /// Colours of the embed.
    #[schema(value_type = Object)]
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

impl Dashboard {
    /// What reports show and alerts watch: what embeds show, or the draft while they show nothing.
    pub fn shown(&self) -> &DashboardConfig {
        self.published.as_ref().filter(|_| self.is_live).unwrap_or(&self.draft)
    }
}

/// What a viewer may do with an embedded dashboard.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, ToSchema)]
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
    #[schema(value_type = Option<Vec<PeriodName>>)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub allowed_periods: Option<Vec<String>>,
    /// Longest window; absent: any.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 1)]
    pub max_date_range_days: Option<u32>,
}

/// A period by its name.
#[derive(ToSchema)]
#[expect(dead_code, reason = "documents names that are parsed elsewhere")]
enum PeriodName {
    #[schema(rename = "1h")]
    Hour,
    #[schema(rename = "24h")]
    Day,
    #[schema(rename = "7d")]
    Week,
    #[schema(rename = "30d")]
    Month,
    #[schema(rename = "90d")]
    Quarter,
}

/// A value, or any of several.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
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

/// A widget that stands alone: a draft, and the last published snapshot.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct StandaloneWidget {
    /// UUIDv7, also that of the widgets inside.
    pub id: String,
    /// What admins see.
    pub draft: Widget,
    /// The last published snapshot.
    pub published: Option<Widget>,
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
