//! Report rules: dashboard, schedule, format and recipients. `runs` runs them.
//!
//! ```text
//! POST /v1/reports {"dashboard_id": "0190…", "name": "Weekly usage", "schedule": {"cron": "30 9 * * 1", "timezone": "Europe/Berlin"},
//!                   "format": "pdf", "recipients": ["boss@acme.example"], "period": "7d",
//!                   "burst": [{"tenant_id": "acme", "recipients": ["ada@acme.example"]}, {"tenant_id": "globex", "recipients": []}]}
//! 201 {"id": 3, "next_run_at": "2026-11-23T08:30:00.000Z",
//!      "next_runs": ["2026-11-23T08:30:00.000Z", "2026-11-30T08:30:00.000Z", "2026-12-07T08:30:00.000Z"], "last_run": null, …}
//! 400 {"field": "recipients", "code": "missing_field", "error": "a report needs recipients or a webhook_url", …}
//! 400 {"field": "burst", "error": "burst names the tenants, and tenant_id is one for all", …}
//! 400 {"field": "burst[1].tenant_id", "error": "tenant_id must have 1 to 256 bytes, and each tenant comes once", …}
//! ```

use serde_json::json;

use super::schedule::RunTimes;
use crate::{
    app::{
        delivery::{
            report_queue::drop_runs,
            rule_fields::{SigningChange, next_number, receivers},
        },
        periods::parse_period,
        request::{callers::Caller, context::App},
    },
    base::{locale::Locale, text},
    error::{ApiError, Code, Faults, Result},
    store::{OrgTxn, ReportFormat, ReportRule, ReportRun, Schedule, Share, rule_id},
};

/// Report rules of an organisation, at most.
const REPORTS_MAX: usize = 1_000;
/// Runs of a report that are listed.
const RUNS_LISTED: usize = 100;

/// Coming times that a report and a preview of a schedule list.
const NEXT_RUNS: usize = 3;
/// Tenants of a burst, at most.
const SHARES_MAX: usize = 200;
/// Bytes of a tenant's name, at most.
const TENANT_BYTES_MAX: usize = 256;

/// Fields of a report rule to make or change; absent fields of an existing rule stay.
///
/// `tenant_id: Some(None)` is null in a request and means all tenants; `None` leaves it as it is. So with `period` and `webhook_url`.
#[derive(Default)]
pub struct ReportChange {
    /// Display name, 1 to 200 characters after trimming.
    pub name: Option<String>,
    /// Times of the runs: a word such as `daily`, or a cron expression with a time zone.
    pub schedule: Option<Schedule>,
    /// Format of the file: CSV, PNG or PDF.
    pub format: Option<ReportFormat>,
    /// Mail addresses of the recipients, at most 50.
    pub recipients: Option<Vec<String>>,
    /// URL of the webhook that gets the file; the inner `None` removes the webhook.
    pub webhook_url: Option<Option<String>>,
    /// Whether the schedule starts runs.
    pub enabled: Option<bool>,
    /// The tenant that is shown; the inner `None` is all tenants of the environment together.
    pub tenant_id: Option<Option<String>>,
    /// Name of the period of all widgets; the inner `None` is the default period of the dashboard.
    pub period: Option<Option<String>>,
    /// Tenants that each get a report of their own, at most 200; excludes `tenant_id`.
    pub burst: Option<Vec<Share>>,
    /// Language of the file and of its mails.
    pub locale: Option<Locale>,
    /// How webhooks are signed.
    pub signing: SigningChange,
}

/// A rule with its last run.
pub struct Report {
    /// The rule as it is stored.
    pub rule: ReportRule,
    /// The newest run; `None` before the first.
    pub last_run: Option<ReportRun>,
    /// Secret that signs the webhooks, only when this operation made the secret.
    pub new_secret: Option<String>,
}

impl App {
    /// All rules of the environment with their last runs, newest first.
    pub fn reports(&self, caller: &Caller) -> Result<Vec<Report>> {
        let mut rules: Vec<ReportRule> = self.org_reader(&caller.org).list()?;
        rules.retain(|rule| rule.environment == caller.environment.id);
        rules.into_iter().rev().map(|rule| self.with_last_run(caller, rule)).collect()
    }

    /// One rule with its last run.
    ///
    /// Errors: 404 when the environment has no rule of this number.
    pub fn report(&self, caller: &Caller, number: u64) -> Result<Report> {
        let found: Option<ReportRule> = self.org_reader(&caller.org).find(&rule_id(number))?;
        let rule = found.filter(|rule| rule.environment == caller.environment.id);
        self.with_last_run(caller, rule.ok_or_else(not_found)?)
    }

    /// A rule as its readers see it: with its newest run, and without a replaced secret whose day is over.
    fn with_last_run(&self, caller: &Caller, mut rule: ReportRule) -> Result<Report> {
        let now = self.now_ms();
        rule.previous_secret = rule.previous_secret.filter(|previous| previous.signs(now));
        let newest = self.org_reader(&caller.org).list_last_of(&format!("{}:", rule.id), 1)?;
        Ok(Report { rule, last_run: newest.into_iter().next(), new_secret: None })
    }

    /// The newest 100 runs of a rule, newest first. Errors: 404.
    pub fn report_runs(&self, caller: &Caller, number: u64) -> Result<Vec<ReportRun>> {
        let Report { rule, .. } = self.report(caller, number)?;
        self.org_reader(&caller.org).list_last_of(&format!("{}:", rule.id), RUNS_LISTED)
    }

    /// Makes a rule. 404 without the dashboard.
    ///
    /// Errors: 400 with all faults of the fields, then for want of a recipient; 409 beyond 1,000 rules of the organisation.
    pub fn create_report(
        &self,
        caller: &Caller,
        dashboard_id: &str,
        format: ReportFormat,
        schedule: Schedule,
        change: ReportChange,
    ) -> Result<Report> {
        self.rule_dashboard(caller, dashboard_id)?;
        let now = self.now_ms();
        let mut rule = ReportRule {
            id: String::new(),
            number: 0,
            environment: caller.environment.id.clone(),
            name: String::new(),
            dashboard_id: dashboard_id.to_owned(),
            schedule,
            format,
            recipients: Vec::new(),
            webhook_url: None,
            enabled: true,
            tenant_id: None,
            period: None,
            burst: Vec::new(),
            webhook_secret: None,
            previous_secret: None,
            next_run_at: None,
            locale: Locale::En,
            created_at: now,
            updated_at: now,
        };
        self.apply_report(change, &mut rule)?;
        self.org_txn(&caller.org, |txn| {
            if txn.list::<ReportRule>()?.len() >= REPORTS_MAX {
                let message = format!("an organisation has at most {REPORTS_MAX} report rules");
                return Err(ApiError::new(Code::Conflict, message));
            }
            rule.number = next_number(txn, "report")?;
            rule.id = rule_id(rule.number);
            txn.put(&rule)?;
            self.audit_report(txn, caller, &rule, "report.create")?;
            let new_secret = rule.webhook_secret.clone();
            Ok(Report { rule, last_run: None, new_secret })
        })
    }

    /// Changes a rule; when its times change, when it runs next is computed anew.
    ///
    /// A run that is under way goes on with the rule as it was when it was claimed, but sends no mail to an address that has left it.
    ///
    /// Errors: 404; 400, and the rule is unchanged then.
    pub fn update_report(
        &self,
        caller: &Caller,
        number: u64,
        change: ReportChange,
    ) -> Result<Report> {
        let is_rotated = change.signing.rotate;
        let (rule, new_secret) = self.org_txn(&caller.org, |txn| {
            let mut rule = found(txn, caller, number)?;
            let secret_before = rule.webhook_secret.clone();
            self.apply_report(change, &mut rule)?;
            rule.updated_at = self.now_ms();
            txn.put(&rule)?;
            self.audit_report(txn, caller, &rule, "report.update")?;
            if is_rotated {
                self.audit_report(txn, caller, &rule, "report.rotate_secret")?;
            }
            let new_secret = rule.webhook_secret.clone();
            let new_secret = new_secret.filter(|_| rule.webhook_secret != secret_before);
            Ok((rule, new_secret))
        })?;
        Ok(Report { new_secret, ..self.with_last_run(caller, rule)? })
    }

    /// Deletes a rule and its runs.
    ///
    /// A run under way sends nothing more: it looks for its record before each message. Errors: 404.
    pub fn delete_report(&self, caller: &Caller, number: u64) -> Result<()> {
        self.org_txn(&caller.org, |txn| {
            let rule = found(txn, caller, number)?;
            txn.delete::<ReportRule>(&rule.id);
            txn.delete_all_of::<ReportRun>(&format!("{}:", rule.id));
            drop_runs(txn.global(), &caller.org, &rule.id)?;
            self.audit_report(txn, caller, &rule, "report.delete")
        })
    }

    fn audit_report(
        &self,
        txn: &mut OrgTxn<'_>,
        caller: &Caller,
        rule: &ReportRule,
        action: &str,
    ) -> Result<()> {
        let metadata = json!({"name": rule.name, "enabled": rule.enabled});
        self.audit(txn, caller, action, ("report", &rule.number.to_string()), metadata)
    }

    /// Changes the fields of a rule that a request names, and checks the rule as it is then.
    ///
    /// Errors: all faults at once. `rule` may be half changed after an error, and is not stored.
    fn apply_report(&self, change: ReportChange, rule: &mut ReportRule) -> Result<()> {
        let mut faults = Faults::default();
        let name = faults.take_some(change.name.map(|name| text::name("name", &name)));
        rule.name = name.unwrap_or_else(|| rule.name.clone());
        // Only another time is a reason to pass over a run that is due.
        let before = (rule.number > 0).then(|| (rule.schedule.clone(), rule.enabled));
        let had_none = rule.number > 0 && !rule.has_receivers();
        rule.schedule = change.schedule.unwrap_or_else(|| rule.schedule.clone());
        rule.format = change.format.unwrap_or(rule.format);
        if let Some(addresses) = change.recipients {
            rule.recipients = faults.take(receivers("recipients", &addresses)).unwrap_or_default();
        }
        if let Some(url) = change.webhook_url {
            rule.webhook_url = faults.take_some(url.map(|url| self.webhook(&url)));
        }
        if let Some(period) = &change.period {
            faults.take_some(period.as_deref().map(|period| parse_period("period", period)));
        }
        rule.period = change.period.unwrap_or_else(|| rule.period.clone());
        rule.tenant_id = change.tenant_id.unwrap_or_else(|| rule.tenant_id.clone());
        rule.enabled = change.enabled.unwrap_or(rule.enabled);
        rule.locale = change.locale.unwrap_or(rule.locale);
        if let Some(burst) = change.burst {
            rule.burst = faults.take(shares(burst)).unwrap_or_default();
        }
        if !rule.burst.is_empty() && rule.tenant_id.is_some() {
            let message = "burst names the tenants, and tenant_id is one for all";
            faults.take::<()>(Err(ApiError::field(Code::InvalidField, "burst", message)));
        }
        let (secret, previous) = (&mut rule.webhook_secret, &mut rule.previous_secret);
        faults.take(change.signing.apply(secret, previous, self.now_ms(), &*self.rng));
        let now = self.now_ms();
        let times = faults.take(RunTimes::read(&rule.schedule, now));
        faults.end()?;
        // One whose receivers have all stopped their mails is disabled, and may stay so.
        if !rule.has_receivers() && (rule.enabled || !had_none) {
            let message = "a report needs recipients or a webhook_url";
            return Err(ApiError::field(Code::MissingField, "recipients", message));
        }
        if before.is_none_or(|before| before != (rule.schedule.clone(), rule.enabled)) {
            rule.next_run_at = times.filter(|_| rule.enabled).and_then(|times| times.after(now));
        }
        Ok(())
    }
}

/// When a schedule would run after an instant, the next three times in milliseconds since 1970.
///
/// Errors: 400 naming the part of the schedule that is wrong.
///
/// For `POST /v1/reports/preview`, which stores nothing.
pub fn runs_after(schedule: &Schedule, now_ms: i64) -> Result<Vec<i64>> {
    let times = RunTimes::read(schedule, now_ms)?;
    Ok(runs_from(&times, times.after(now_ms)))
}

/// When a report runs next, the three times after one another; none while it is disabled.
pub fn next_runs(rule: &ReportRule) -> Vec<i64> {
    let times = rule.next_run_at.and_then(|first| RunTimes::read(&rule.schedule, first).ok());
    times.map(|times| runs_from(&times, rule.next_run_at)).unwrap_or_default()
}

/// A time of a schedule and those that follow it, three in all.
fn runs_from(times: &RunTimes, first: Option<i64>) -> Vec<i64> {
    std::iter::successors(first, |at| times.after(*at)).take(NEXT_RUNS).collect()
}

/// Tenants with their receivers, each tenant once.
///
/// Errors: `out_of_range` for more than 200; every tenant and address that is wrong, with its index.
fn shares(burst: Vec<Share>) -> Result<Vec<Share>> {
    if burst.len() > SHARES_MAX {
        let message = format!("burst must have at most {SHARES_MAX} entries");
        return Err(ApiError::field(Code::OutOfRange, "burst", message));
    }
    let mut faults = Faults::default();
    let mut checked: Vec<Share> = Vec::new();
    for (at, share) in burst.into_iter().enumerate() {
        let field = format!("burst[{at}].tenant_id");
        let is_known = checked.iter().any(|known| known.tenant_id == share.tenant_id);
        if is_known || share.tenant_id.is_empty() || share.tenant_id.len() > TENANT_BYTES_MAX {
            let message = "tenant_id must have 1 to 256 bytes, and each tenant comes once";
            faults.take::<()>(Err(ApiError::field(Code::InvalidField, field, message)));
        }
        let field = format!("burst[{at}].recipients");
        let recipients = faults.take(receivers(&field, &share.recipients)).unwrap_or_default();
        checked.push(Share { recipients, ..share });
    }
    faults.end()?;
    Ok(checked)
}

fn found(txn: &OrgTxn<'_>, caller: &Caller, number: u64) -> Result<ReportRule> {
    let found: Option<ReportRule> = txn.find(&rule_id(number))?;
    found.filter(|rule| rule.environment == caller.environment.id).ok_or_else(not_found)
}

fn not_found() -> ApiError {
    ApiError::not_found("report")
}
