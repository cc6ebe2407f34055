//! Dashboards, standalone widgets, and embed sessions.
//!
//! Times are milliseconds since 1970.

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
    /// Heading of the widget, up to 200 characters; may be empty.
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
    /// Width in columns; `x + w` is at most 12.
    #[schema(minimum = 1, maximum = 12, example = 6)]
    pub w: u32,
    /// Height in rows.
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

/// Content of a dashboard: of its draft, or of its published snapshot.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DashboardConfig {
    /// Name of the dashboard and heading of its embed, 1 to 200 characters.
    pub name: String,
    /// At most 100 widgets, in the order in which they were sent.
    pub widgets: Vec<Widget>,
    /// Default period, allowed origins and theme of the embed.
    pub settings: Settings,
}

/// A dashboard: a draft, and the last published snapshot.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Dashboard {
    /// UUIDv7; `/embed/<id>` is the path of its embed.
    pub id: String,
    /// The configuration that editors change.
    pub draft: DashboardConfig,
    /// The last published snapshot, retained when unpublished; absent before the first.
    pub published: Option<DashboardConfig>,
    /// Whether embeds show the snapshot.
    pub is_live: bool,
    /// Rises with every change, from 1.
    pub version: u64,
    /// When the snapshot was published; absent before the first.
    pub published_at: Option<i64>,
    /// When the dashboard was created.
    pub created_at: i64,
    /// When the draft or the published state last changed.
    pub updated_at: i64,
    /// Label of the creator, such as the e-mail address of a user.
    pub created_by: String,
}

impl Dashboard {
    /// The configuration for reports and alerts: the live snapshot, or else the draft.
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
    /// Exactly this value.
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

/// An embed session. Its token carries the same facts.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct EmbedSession {
    /// UUIDv7, the token's `jti`.
    pub id: String,
    /// Tenant whose data is shown, 1 to 256 bytes; claim `tenant_id`.
    pub tenant_id: String,
    /// Id of the dashboard that is shown; claim `sub`.
    pub dashboard_id: String,
    /// Id of the environment whose data is shown; claim `env`.
    pub environment: String,
    /// Permissions of the viewer, as they were requested; claim `perm`.
    pub permissions: Permissions,
    /// Actor that created the session.
    pub actor: Actor,
    /// When the session was created, cut to a whole second; claim `iat`.
    pub issued_at: i64,
    /// When the session ends, 60 seconds to 24 hours after `issued_at`; claim `exp`.
    pub expires_at: i64,
    /// Whether the session was ended before its time.
    pub revoked: bool,
}

/// A widget outside of any dashboard: a draft, and the last published snapshot.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct StandaloneWidget {
    /// UUIDv7; also the `id` of the draft and of the snapshot.
    pub id: String,
    /// The widget that admins change.
    pub draft: Widget,
    /// The last published snapshot; absent before the first.
    pub published: Option<Widget>,
    /// Rises with every change, from 1.
    pub version: u64,
    /// When the snapshot was published; absent before the first.
    pub published_at: Option<i64>,
    /// When the widget was created.
    pub created_at: i64,
    /// When the draft or the published state last changed.
    pub updated_at: i64,
    /// Label of the creator, such as the e-mail address of a user.
    pub created_by: String,
}
