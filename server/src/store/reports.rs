//! Report rules and their runs.
//!
//! Times are milliseconds since 1970.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::{
    alerts::RecipientStatus, durable_queue::queue_entries, org::records, rules::PreviousSecret,
};
use crate::base::locale::Locale;

records! {
    ReportRule "report";
    ReportRun "report_run";
}

queue_entries! {
    RunWork "report_work" run;
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
    /// `number` as text by [`super::rule_id`], so that rules are in order of their numbers.
    pub id: String,
    /// Number within the organisation, from 1; never used again.
    pub number: u64,
    /// Id of the environment whose events the report shows.
    pub environment: String,
    /// Name chosen by the user, 1 to 200 characters; also the subject of the mails.
    pub name: String,
    /// Id of the dashboard that the report shows.
    pub dashboard_id: String,
    /// Times at which the report runs.
    pub schedule: Schedule,
    /// File format of the report.
    pub format: ReportFormat,
    /// E-mail addresses that get the report, at most 50.
    pub recipients: Vec<String>,
    /// URL of the webhook that gets the report; absent: no webhook.
    pub webhook_url: Option<String>,
    /// Whether the report runs on its schedule.
    pub enabled: bool,
    /// Tenant that the report is about; absent: all tenants of the environment.
    pub tenant_id: Option<String>,
    /// Name of the period of all widgets; absent: the default period of the dashboard.
    pub period: Option<String>,
    /// Tenants that each get a report of their own, at most 200; `tenant_id` is absent then.
    #[serde(default)]
    pub burst: Vec<Share>,
    /// Secret that signs the webhooks, `whsec_` and Base64; absent: no signatures.
    #[serde(default)]
    pub webhook_secret: Option<String>,
    /// The secret before it, for a day after a change.
    #[serde(default)]
    pub previous_secret: Option<PreviousSecret>,
    /// Language of what it sends.
    #[serde(default, skip_serializing_if = "Locale::is_default")]
    pub locale: Locale,
    /// When the report runs next; absent while the rule is disabled.
    pub next_run_at: Option<i64>,
    /// When the rule was created.
    pub created_at: i64,
    /// When the rule last changed.
    pub updated_at: i64,
}

/// A tenant with those who get his report.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = ReportShare)]
pub struct Share {
    /// Tenant that this report is about, 1 to 256 bytes.
    #[schema(min_length = 1, max_length = 256, example = "acme")]
    pub tenant_id: String,
    /// Who gets mail about him, beside the rule's own receivers.
    #[serde(default)]
    #[schema(max_items = 50)]
    pub recipients: Vec<String>,
}

impl ReportRule {
    /// Whether every file that it makes has somebody who gets it.
    pub fn has_receivers(&self) -> bool {
        let reaches_shares =
            !self.burst.is_empty() && self.burst.iter().all(|share| !share.recipients.is_empty());
        !self.recipients.is_empty() || self.webhook_url.is_some() || reaches_shares
    }
}

/// A run that is to be started or continued; stored outside of any organisation under
/// `<due>:<run>`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunWork {
    /// Id of the run.
    pub run: String,
    /// Id of the organisation; the entry is deleted with it.
    pub org: String,
    /// When the run is due; while leased, when the lease ends.
    pub due_at: i64,
    /// Number of the attempt, from 1.
    pub attempt: u32,
    /// Starts so far. A run that stops the server each time fails after eight of them.
    #[serde(default)]
    pub starts: u32,
    /// Whether the run is in progress.
    pub is_leased: bool,
    /// Whether the run repeats deliveries of an ended run by hand.
    #[serde(default)]
    pub is_retry: bool,
}

/// How a report's run went.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum RunStatus {
    /// The run is queued or in progress.
    Running,
    /// Every recipient was reached, with all widgets.
    Succeeded,
    /// A recipient was reached, but not every one, or not with all widgets.
    Partial,
    /// No recipient was reached.
    Failed,
    /// The run was not started, since the one before was still in progress.
    Skipped,
}

/// A run of a report.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct ReportRun {
    /// `<rule id>:<UUIDv7>`.
    pub id: String,
    /// Outcome so far.
    pub status: RunStatus,
    /// `schedule` or `manual`.
    pub trigger: String,
    /// Time of the schedule; of a manual run, when it was requested.
    pub scheduled_for: i64,
    /// When the first attempt began; absent before.
    pub started_at: Option<i64>,
    /// When the run ended; absent before.
    pub finished_at: Option<i64>,
    /// Bytes of the files that were made, over all tenants; of several attempts, the largest sum.
    /// Absent when none was made.
    pub bytes: Option<u64>,
    /// Status of the delivery to each recipient and webhook.
    pub deliveries: Vec<RecipientStatus>,
    /// Why the run failed, in part or as a whole, or was skipped; absent otherwise.
    pub error: Option<String>,
    /// Tenant of the rule when the run began.
    #[serde(default)]
    pub tenant_id: Option<String>,
    /// Retries by hand, by index into `deliveries`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub retries: BTreeMap<usize, u32>,
}
