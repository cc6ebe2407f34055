//! Report rules: which dashboard, when, as what, to whom. Running them is done elsewhere.

use serde_json::json;

use super::{
    context::{App, Caller},
    query::parse_period,
    rules::{next_number, receivers},
    schedule::Times,
};
use crate::{
    base::text,
    error::{ApiError, Code, Faults, Result},
    store::{OrgTxn, ReportFormat, ReportRule, ReportRun, Schedule, rule_id},
};

/// Report rules of an organisation, at most.
const REPORTS_MAX: usize = 1_000;
/// Runs of a report that are listed.
const RUNS_LISTED: usize = 100;

/// What a report rule should be; of an existing one absent parts stay.
#[derive(Default)]
pub struct ReportChange {
    /// For people.
    pub name: Option<String>,
    /// When.
    pub schedule: Option<Schedule>,
    /// As what.
    pub format: Option<ReportFormat>,
    /// Who gets mail.
    pub recipients: Option<Vec<String>>,
    /// Where it is posted; the inner absence ends it.
    pub webhook_url: Option<Option<String>>,
    /// Whether it runs.
    pub enabled: Option<bool>,
    /// One tenant; the inner absence is all of the environment.
    pub tenant_id: Option<Option<String>>,
    /// Period of the widgets; the inner absence is their own.
    pub period: Option<Option<String>>,
}

impl App {
    /// All rules of the environment with their last runs, newest first.
    pub fn reports(&self, caller: &Caller) -> Result<Vec<(ReportRule, Option<ReportRun>)>> {
        let mut rules: Vec<ReportRule> = self.org_reader(&caller.org).list()?;
        rules.retain(|rule| rule.environment == caller.environment.id);
        rules.into_iter().rev().map(|rule| self.with_last_run(caller, rule)).collect()
    }

    /// One rule with its last run.
    pub fn report(&self, caller: &Caller, number: u64) -> Result<(ReportRule, Option<ReportRun>)> {
        let found: Option<ReportRule> = self.org_reader(&caller.org).find(&rule_id(number))?;
        let rule = found.filter(|rule| rule.environment == caller.environment.id);
        self.with_last_run(caller, rule.ok_or_else(not_found)?)
    }

    fn with_last_run(
        &self,
        caller: &Caller,
        rule: ReportRule,
    ) -> Result<(ReportRule, Option<ReportRun>)> {
        let newest = self.org_reader(&caller.org).list_last_of(&format!("{}:", rule.id), 1)?;
        Ok((rule, newest.into_iter().next()))
    }

    /// The newest runs of a rule.
    pub fn report_runs(&self, caller: &Caller, number: u64) -> Result<Vec<ReportRun>> {
        let (rule, _) = self.report(caller, number)?;
        self.org_reader(&caller.org).list_last_of(&format!("{}:", rule.id), RUNS_LISTED)
    }

    /// Makes a rule. 404 without the dashboard.
    pub fn create_report(
        &self,
        caller: &Caller,
        dashboard_id: &str,
        format: ReportFormat,
        schedule: Schedule,
        change: ReportChange,
    ) -> Result<ReportRule> {
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
            next_run_at: None,
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
            Ok(rule)
        })
    }

    /// Changes a rule; when its times change, when it runs next is computed anew.
    pub fn update_report(
        &self,
        caller: &Caller,
        number: u64,
        change: ReportChange,
    ) -> Result<(ReportRule, Option<ReportRun>)> {
        let rule = self.org_txn(&caller.org, |txn| {
            let mut rule = found(txn, caller, number)?;
            self.apply_report(change, &mut rule)?;
            rule.updated_at = self.now_ms();
            txn.put(&rule)?;
            self.audit_report(txn, caller, &rule, "report.update")?;
            Ok(rule)
        })?;
        self.with_last_run(caller, rule)
    }

    /// Deletes a rule and its runs.
    pub fn delete_report(&self, caller: &Caller, number: u64) -> Result<()> {
        self.org_txn(&caller.org, |txn| {
            let rule = found(txn, caller, number)?;
            txn.delete::<ReportRule>(&rule.id);
            txn.delete_all_of::<ReportRun>(&format!("{}:", rule.id));
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

    fn apply_report(&self, change: ReportChange, rule: &mut ReportRule) -> Result<()> {
        let mut faults = Faults::default();
        let name = faults.take_some(change.name.map(|name| text::name("name", &name)));
        rule.name = name.unwrap_or_else(|| rule.name.clone());
        // Another name is no reason to pass over a run that is due.
        let is_other_time =
            rule.number == 0 || change.schedule.is_some() || change.enabled.is_some();
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
        let now = self.now_ms();
        let times = faults.take(Times::read(&rule.schedule, now));
        faults.end()?;
        if rule.recipients.is_empty() && rule.webhook_url.is_none() {
            let message = "a report needs recipients or a webhook_url";
            return Err(ApiError::field(Code::MissingField, "recipients", message));
        }
        if is_other_time {
            rule.next_run_at = times.filter(|_| rule.enabled).and_then(|times| times.after(now));
        }
        Ok(())
    }
}

fn found(txn: &OrgTxn<'_>, caller: &Caller, number: u64) -> Result<ReportRule> {
    let found: Option<ReportRule> = txn.find(&rule_id(number))?;
    found.filter(|rule| rule.environment == caller.environment.id).ok_or_else(not_found)
}

fn not_found() -> ApiError {
    ApiError::not_found("report")
}
