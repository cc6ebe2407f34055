//! Report rules and their runs.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::{alerts::RecipientStatus, org::records};

records! {
    ReportRule "report";
    ReportRun "report_run";
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
    /// Its number as [`super::rule_id`].
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
    /// Period of the widgets; that of the dashboard without it.
    pub period: Option<String>,
    /// Tenants that each get a report of their own.
    #[serde(default)]
    pub burst: Vec<Share>,
    /// What its webhooks are signed with; they are not without it.
    #[serde(default)]
    pub webhook_secret: Option<String>,
    /// When it runs next; never while it is disabled.
    pub next_run_at: Option<i64>,
    /// When.
    pub created_at: i64,
    /// When.
    pub updated_at: i64,
}

/// A tenant with those who get his report.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = ReportShare)]
pub struct Share {
    /// Tenant.
    #[schema(min_length = 1, max_length = 256, example = "acme")]
    pub tenant_id: String,
    /// Who gets mail about him, beside the rule's own receivers.
    #[serde(default)]
    #[schema(max_items = 50)]
    pub recipients: Vec<String>,
}

/// A run that is to be made or gone on with, due at a time: stored for nobody under `<due>:<run>`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunWork {
    /// Id of the run.
    pub run: String,
    /// Organisation that it belongs to, and that it goes with.
    pub org: String,
    /// When it is worked on; while it is, when it is again if that is never heard of.
    pub due_at: i64,
    /// Number of the attempt, from 1.
    pub attempt: u32,
    /// How often it was begun: what ends the server each time must end some day.
    #[serde(default)]
    pub starts: u32,
    /// Whether somebody works on it.
    pub is_leased: bool,
    /// Whether it sends again what an ended run could not deliver.
    #[serde(default)]
    pub is_retry: bool,
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
    pub deliveries: Vec<RecipientStatus>,
    /// Why it failed.
    pub error: Option<String>,
    /// Tenant of the rule when the run began.
    #[serde(default)]
    pub tenant_id: Option<String>,
    /// Retries by hand, by index into `deliveries`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub retries: BTreeMap<usize, u32>,
}
