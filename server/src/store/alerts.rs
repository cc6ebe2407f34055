//! Alert rules, how what they watch is, and what became of it.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::org::records;

records! {
    AlertRule "alert";
    AlertStatus "alert_status";
    AlertEvent "alert_event";
}

/// When an alert fires.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum ConditionType {
    /// The metric against a value.
    Threshold,
    /// Its change in percent against the window before.
    Delta,
    /// No event matched.
    NoData,
}

/// How two numbers are compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum Operator {
    /// Greater.
    Gt,
    /// Greater or equal.
    Gte,
    /// Less.
    Lt,
    /// Less or equal.
    Lte,
    /// Equal.
    Eq,
    /// Not equal.
    Neq,
}

/// Whether an alert's condition holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum AlertState {
    /// It does not.
    Ok,
    /// It does.
    Firing,
}

/// A rule that watches a widget's metric.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct AlertRule {
    /// Its number as [`super::rule_id`].
    pub id: String,
    /// Its number.
    pub number: u64,
    /// Id of the environment whose data it watches.
    pub environment: String,
    /// For people.
    pub name: String,
    /// Dashboard.
    pub dashboard_id: String,
    /// Widget of the dashboard.
    pub widget_id: String,
    /// When it fires.
    pub condition_type: ConditionType,
    /// How the value is compared; nothing for `no_data`.
    pub operator: Option<Operator>,
    /// With what; nothing for `no_data`.
    pub threshold_value: Option<f64>,
    /// Length of the window.
    pub lookback_minutes: u32,
    /// Who gets mail.
    pub email_to: Vec<String>,
    /// Where it is posted.
    pub webhook_url: Option<String>,
    /// Whether it is evaluated.
    pub enabled: bool,
    /// One tenant; all of the environment without it.
    pub tenant_id: Option<String>,
    /// The condition must hold this long before it fires.
    pub for_minutes: u32,
    /// The value at which it recovers, when it is not the threshold.
    pub recovery_threshold: Option<f64>,
    /// Whether each tenant is watched by himself.
    #[serde(default)]
    pub per_tenant: bool,
    /// What its webhooks are signed with; they are not without it.
    #[serde(default)]
    pub webhook_secret: Option<String>,
    /// When.
    pub created_at: i64,
    /// When.
    pub updated_at: i64,
}

/// How one thing that a rule watches is: all of its data, or one tenant of a rule that watches each.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AlertStatus {
    /// The rule's id, and behind a colon the tenant in Base64 where each is watched.
    pub id: String,
    /// That tenant.
    pub tenant_id: Option<String>,
    /// Whether it fires.
    pub state: AlertState,
    /// Since when.
    pub state_since: i64,
    /// Since when the condition holds, while it must hold longer before it fires.
    pub pending_since: Option<i64>,
    /// The value that was seen last.
    pub last_value: Option<f64>,
    /// When.
    pub last_evaluated_at: Option<i64>,
    /// Why it could not be evaluated last.
    pub last_error: Option<String>,
}

/// An alert began to fire, or recovered.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct AlertEvent {
    /// `<rule id>:<UUIDv7>`.
    pub id: String,
    /// What it is now.
    pub state: AlertState,
    /// The value that was seen.
    pub value: Option<f64>,
    /// With what it was compared.
    pub threshold_value: Option<f64>,
    /// First millisecond of the window.
    pub window_from: i64,
    /// First millisecond after it.
    pub window_to: i64,
    /// Whose, where each tenant is watched.
    #[serde(default)]
    pub tenant_id: Option<String>,
    /// Why it ended, when it did not recover.
    #[serde(default)]
    pub reason: Option<String>,
    /// Recipients, with the status of each.
    #[serde(default)]
    pub deliveries: Vec<RecipientStatus>,
    /// When.
    pub created_at: i64,
}

/// A notification about a change of an alert, for webhooks and mails.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Notification {
    /// Number of the rule.
    pub alert: u64,
    /// Its name.
    pub name: String,
    /// Dashboard.
    pub dashboard_id: String,
    /// Its name.
    pub dashboard_name: String,
    /// Widget.
    pub widget_id: String,
    /// Its title.
    pub widget_title: String,
    /// When the rule fires.
    pub condition_type: ConditionType,
    /// How the value is compared.
    pub operator: Option<Operator>,
    /// With what.
    pub threshold_value: Option<f64>,
    /// What it is now.
    pub state: AlertState,
    /// When it began to fire.
    pub fired_at: i64,
    /// When it ended.
    pub resolved_at: Option<i64>,
    /// Whose, where one tenant is watched.
    pub tenant_id: Option<String>,
    /// The value that was seen.
    pub value: Option<f64>,
    /// First millisecond of the window.
    pub window_from: i64,
    /// First millisecond after it.
    pub window_to: i64,
    /// Why it ended, when it did not recover.
    pub reason: Option<String>,
}

/// Status of the delivery to one recipient.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(as = RunDelivery)]
pub struct RecipientStatus {
    /// `email` or `webhook`.
    #[schema(example = "email")]
    pub kind: String,
    /// Address.
    pub to: String,
    /// Whose report it is, of a report for each of several tenants.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tenant_id: Option<String>,
    /// `pending`, `sent` or `failed`.
    #[schema(example = "sent")]
    pub status: String,
    /// Why it failed.
    pub error: Option<String>,
}
