//! Rules that work by themselves, and what became of them: alerts, reports, deliveries.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::org::records;

records! {
    AlertRule "alert";
    AlertEvent "alert_event";
    ReportRule "report";
    ReportRun "report_run";
    WebhookDelivery "webhook_delivery";
    Sequence "sequence";
}

/// The number that a rule was given last.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Sequence {
    /// `alert` or `report`.
    pub id: String,
    /// The last number.
    pub last: u64,
}

/// The id under which a rule with this number is stored: rules are in order of their numbers.
pub fn rule_id(number: u64) -> String {
    format!("{number:020}")
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
    /// Its number as [`rule_id`].
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
    /// Whether it fires now.
    pub state: AlertState,
    /// Since when.
    pub state_since: i64,
    /// The value that was seen last.
    pub last_value: Option<f64>,
    /// When.
    pub last_evaluated_at: Option<i64>,
    /// Why it could not be evaluated last.
    pub last_error: Option<String>,
    /// When.
    pub created_at: i64,
    /// When.
    pub updated_at: i64,
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
    /// When.
    pub created_at: i64,
}

/// When a report runs: a word, or a cron expression in a zone.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(untagged)]
pub enum Schedule {
    /// `hourly`, `daily`, `weekly` or `monthly`, at 08:00 UTC where there is an hour to choose.
    Word(String),
    /// Five fields and a zone.
    Cron(CronSchedule),
}

/// A cron expression in a zone.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct CronSchedule {
    /// Minute, hour, day of month, month, day of week.
    #[schema(example = "0 8 * * 1")]
    pub cron: String,
    /// IANA name; UTC without it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(example = "Europe/Berlin")]
    pub timezone: Option<String>,
}

/// What a report's artifact is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum ReportFormat {
    /// One long table.
    Csv,
    /// A picture of the dashboard.
    Png,
    /// The dashboard on pages.
    Pdf,
}

/// A rule that sends a dashboard from time to time.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct ReportRule {
    /// Its number as [`rule_id`].
    pub id: String,
    /// Its number.
    pub number: u64,
    /// Id of the environment whose data it shows.
    pub environment: String,
    /// For people.
    pub name: String,
    /// Dashboard.
    pub dashboard_id: String,
    /// When.
    pub schedule: Schedule,
    /// As what.
    pub format: ReportFormat,
    /// Who gets mail.
    pub recipients: Vec<String>,
    /// Where it is posted.
    pub webhook_url: Option<String>,
    /// Whether it runs.
    pub enabled: bool,
    /// One tenant; all of the environment without it.
    pub tenant_id: Option<String>,
    /// Period of the widgets; their own without it.
    pub period: Option<String>,
    /// When it runs next; never while it is disabled.
    pub next_run_at: Option<i64>,
    /// When.
    pub created_at: i64,
    /// When.
    pub updated_at: i64,
}

/// How a report's run went.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum RunStatus {
    /// It is under way.
    Running,
    /// Everything was delivered.
    Succeeded,
    /// A part was delivered.
    Partial,
    /// Nothing was delivered.
    Failed,
    /// It did not run.
    Skipped,
}

/// A run of a report.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct ReportRun {
    /// `<rule id>:<UUIDv7>`.
    pub id: String,
    /// How it went.
    pub status: RunStatus,
    /// `schedule` or `manual`.
    pub trigger: String,
    /// When it should have begun.
    pub scheduled_for: i64,
    /// When it began.
    pub started_at: Option<i64>,
    /// When it ended.
    pub finished_at: Option<i64>,
    /// Size of the artifact.
    pub bytes: Option<u64>,
    /// One a recipient or webhook.
    pub deliveries: Vec<RunDelivery>,
    /// Why it failed.
    pub error: Option<String>,
}

/// A run's way to one receiver.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct RunDelivery {
    /// `email` or `webhook`.
    #[schema(example = "email")]
    pub kind: String,
    /// Address.
    pub to: String,
    /// `sent` or `failed`.
    #[schema(example = "sent")]
    pub status: String,
    /// Why it failed.
    pub error: Option<String>,
}

/// An attempt to deliver to a webhook.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct WebhookDelivery {
    /// UUIDv7, so that attempts are in order of time.
    pub id: String,
    /// `alert` or `report`.
    pub source: String,
    /// Number of the rule.
    pub source_id: u64,
    /// Where it was posted.
    pub webhook_url: String,
    /// From 1.
    pub attempt: u32,
    /// HTTP status; 0 when there was no answer.
    pub status_code: u16,
    /// Why there was none.
    pub error: Option<String>,
    /// How the answer began.
    pub response_excerpt: Option<String>,
    /// How long it took.
    pub duration_ms: u64,
    /// When.
    pub created_at: i64,
}
