//! Alert rules, the current status of each, and its history of firings and resolutions.
//!
//! Times are milliseconds since 1970.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::{org::records, rules::PreviousSecret};
use crate::base::locale::Locale;

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
    /// True for a value above the threshold.
    Gt,
    /// True for a value at the threshold or above.
    Gte,
    /// True for a value below the threshold.
    Lt,
    /// True for a value at the threshold or below.
    Lte,
    /// True for a value equal to the threshold.
    Eq,
    /// True for a value different from the threshold.
    Neq,
}

/// Whether an alert's condition holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum AlertState {
    /// The rule does not fire; its condition may be pending.
    Ok,
    /// The rule has fired and has not recovered.
    Firing,
}

/// A rule that watches a widget's metric.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct AlertRule {
    /// `number` as text by [`super::rule_id`], so that rules are in order of their numbers.
    pub id: String,
    /// Number within the organisation, from 1; never used again.
    pub number: u64,
    /// Id of the environment whose events the rule evaluates.
    pub environment: String,
    /// Name chosen by the user, 1 to 200 characters.
    pub name: String,
    /// Id of the dashboard with the widget.
    pub dashboard_id: String,
    /// Id of the widget within the dashboard.
    pub widget_id: String,
    /// Kind of condition under which the rule fires.
    pub condition_type: ConditionType,
    /// Comparison of the value with the threshold; absent only for `no_data`.
    pub operator: Option<Operator>,
    /// Threshold, in percent for `delta`; absent only for `no_data`.
    pub threshold_value: Option<f64>,
    /// Length of the window in minutes, 1 to 129,600 (90 days).
    pub lookback_minutes: u32,
    /// E-mail addresses that are notified, at most 50.
    pub email_to: Vec<String>,
    /// URL of the webhook that is notified; absent: no webhook.
    pub webhook_url: Option<String>,
    /// Whether the rule is evaluated.
    pub enabled: bool,
    /// Tenant whose events are evaluated; absent: all tenants of the environment.
    pub tenant_id: Option<String>,
    /// Minutes that the condition must hold before the rule fires, 0 to 1,440.
    pub for_minutes: u32,
    /// Value at which the rule recovers; absent: the threshold.
    pub recovery_threshold: Option<f64>,
    /// Whether each tenant is evaluated separately; `tenant_id` is absent then.
    #[serde(default)]
    pub per_tenant: bool,
    /// Secret that signs the webhooks, `whsec_` and Base64; absent: no signatures.
    #[serde(default)]
    pub webhook_secret: Option<String>,
    /// The secret before it, for a day after a change.
    #[serde(default)]
    pub previous_secret: Option<PreviousSecret>,
    /// Language of what it sends.
    #[serde(default, skip_serializing_if = "Locale::is_default")]
    pub locale: Locale,
    /// When the rule was created.
    pub created_at: i64,
    /// When the rule last changed; rises with every change by a user.
    pub updated_at: i64,
}

/// Current status of a rule, or of one tenant of a rule that evaluates each tenant separately.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AlertStatus {
    /// Id of the rule; for one tenant, followed by a colon and the tenant in Base64.
    pub id: String,
    /// Tenant of this status; absent in the status of the whole rule.
    pub tenant_id: Option<String>,
    /// State after the last evaluation; of a rule per tenant, `firing` if any tenant fires.
    pub state: AlertState,
    /// When the state began; at first, when the rule was created or the tenant first evaluated.
    pub state_since: i64,
    /// Since when the condition has held, while `for_minutes` has not passed.
    pub pending_since: Option<i64>,
    /// Value at the last evaluation that succeeded; of a rule per tenant, the number of firing
    /// tenants.
    pub last_value: Option<f64>,
    /// When the condition was last evaluated; absent before. The status of one tenant is stored,
    /// and this time with it, only when another field changes or the evaluation fails.
    pub last_evaluated_at: Option<i64>,
    /// Why the last evaluation failed; absent after a success.
    pub last_error: Option<String>,
}

/// One change of an alert: it began to fire, or it was resolved.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct AlertEvent {
    /// `<rule id>:<UUIDv7>`.
    pub id: String,
    /// State after the change.
    pub state: AlertState,
    /// Value that caused the change; absent when the dashboard or the widget was deleted.
    pub value: Option<f64>,
    /// Threshold of the rule at the change; a recovery threshold is not recorded.
    pub threshold_value: Option<f64>,
    /// First millisecond of the window.
    pub window_from: i64,
    /// First millisecond after it.
    pub window_to: i64,
    /// Tenant of a rule that evaluates each tenant separately; absent otherwise.
    #[serde(default)]
    pub tenant_id: Option<String>,
    /// Why the alert ended without a recovery; absent otherwise.
    #[serde(default)]
    pub reason: Option<String>,
    /// Recipients, with the status of each.
    #[serde(default)]
    pub deliveries: Vec<RecipientStatus>,
    /// Id of the event whose mails tell this one too: of a rule that watches each tenant, one look makes one mail to each address.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mails_with: Option<String>,
    /// When the evaluation took place that changed the state.
    pub created_at: i64,
}

/// A notification about a change of an alert, for webhooks and mails.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Notification {
    /// Number of the rule.
    pub alert: u64,
    /// Name of the rule at that time; of a test, `Test of` and the name.
    pub name: String,
    /// Id of the dashboard.
    pub dashboard_id: String,
    /// Name of the dashboard at that time; empty when it was deleted.
    pub dashboard_name: String,
    /// Id of the widget within the dashboard.
    pub widget_id: String,
    /// Title of the widget at that time; empty when it was deleted.
    pub widget_title: String,
    /// Kind of condition of the rule.
    pub condition_type: ConditionType,
    /// Comparison of the value with the threshold; absent only for `no_data`.
    pub operator: Option<Operator>,
    /// Threshold of the rule, in percent for `delta`; absent only for `no_data`.
    pub threshold_value: Option<f64>,
    /// State after the change.
    pub state: AlertState,
    /// When the rule began to fire.
    pub fired_at: i64,
    /// When the alert was resolved; absent while it fires.
    pub resolved_at: Option<i64>,
    /// Tenant of the rule, or the one that changed in a rule per tenant; absent otherwise.
    pub tenant_id: Option<String>,
    /// Value that caused the change; absent when it is not known.
    pub value: Option<f64>,
    /// First millisecond of the window.
    pub window_from: i64,
    /// First millisecond after it.
    pub window_to: i64,
    /// Why the alert ended without a recovery; absent otherwise.
    pub reason: Option<String>,
    /// Language of its mails.
    #[serde(default, skip_serializing_if = "Locale::is_default")]
    pub locale: Locale,
}

/// Status of the delivery to one recipient.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(as = RunDelivery)]
pub struct RecipientStatus {
    /// `email` or `webhook`.
    #[schema(example = "email")]
    pub kind: String,
    /// E-mail address, or URL of the webhook; masked for viewers and editors.
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
