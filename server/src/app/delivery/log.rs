//! Results of webhook deliveries: the attempts of the last 24 hours, by rule.
//!
//! ```text
//! GET /v1/webhooks
//! 200 {"window_hours": 24, "rules": [
//!       {"source": "report", "source_id": 1, "name": "report 1", "webhook_url": "https://hooks.acme.com/x",
//!        "success_24h": 1, "failure_24h": 2, "last_status_code": 0, "last_error": "connection refused",
//!        "attempts": [{"id": "0190…", "attempt": 1, "status_code": 0, "error": "connection refused", "duration_ms": 12, …}, …]}]}
//! ```

use std::collections::HashMap;

use crate::{
    app::request::{callers::Caller, context::App},
    error::Result,
    store::{AlertRule, ReportRule, WebhookDelivery},
};

/// Hours of attempts that are reported.
pub const WINDOW_HOURS: i64 = 24;
/// Attempts of a rule that are shown one by one.
const ATTEMPTS_SHOWN: usize = 20;
/// Attempts are in the order in which they ended, and `created_at` is when they began: none takes longer than this, so that reading on
/// for as long finds all of the window.
const ATTEMPT_MS_MAX: i64 = 600_000;

/// A rule with a webhook, and the results of its attempts.
pub struct RuleDeliveries {
    /// `alert` or `report`.
    pub source: &'static str,
    /// Number of the rule.
    pub source_id: u64,
    /// Display name of the rule.
    pub name: String,
    /// Current URL of the webhook; `None` when it was removed after an attempt.
    pub webhook_url: Option<String>,
    /// Number of attempts that were answered with 2xx.
    pub successes: usize,
    /// Number of attempts with another status, or without an answer.
    pub failures: usize,
    /// The newest attempts, at most 20, newest first.
    pub attempts: Vec<WebhookDelivery>,
}

impl App {
    /// Rules of the environment with a webhook or attempts, and their results: alerts first, newest
    /// first.
    ///
    /// A rule without a webhook is among them while the window has attempts of the one that it had.
    ///
    /// Errors: a record that cannot be read.
    pub fn webhook_deliveries(&self, caller: &Caller) -> Result<Vec<RuleDeliveries>> {
        let reader = self.org_reader(&caller.org);
        let since = self.now_ms() - WINDOW_HOURS * 3_600_000;
        let rule = |source: &'static str, source_id, name, webhook_url| RuleDeliveries {
            source,
            source_id,
            name,
            webhook_url,
            successes: 0,
            failures: 0,
            attempts: Vec::new(),
        };
        let environment = &caller.environment.id;
        let mut rules: Vec<RuleDeliveries> = Vec::new();
        for alert in reader.list::<AlertRule>()?.into_iter().rev() {
            if alert.environment == *environment {
                rules.push(rule("alert", alert.number, alert.name, alert.webhook_url));
            }
        }
        for report in reader.list::<ReportRule>()?.into_iter().rev() {
            if report.environment == *environment {
                rules.push(rule("report", report.number, report.name, report.webhook_url));
            }
        }
        let places: HashMap<(&str, u64), usize> = rules
            .iter()
            .enumerate()
            .map(|(at, rule)| ((rule.source, rule.source_id), at))
            .collect();
        reader.visit_last(None, |attempt: WebhookDelivery| {
            let place = places.get(&(attempt.source.as_str(), attempt.source_id));
            let rule = place.and_then(|&at| rules.get_mut(at));
            let created_at = attempt.created_at;
            if let Some(rule) = rule.filter(|_| created_at >= since) {
                match attempt.status_code {
                    200..300 => rule.successes += 1,
                    _ => rule.failures += 1,
                }
                if rule.attempts.len() < ATTEMPTS_SHOWN {
                    rule.attempts.push(attempt);
                }
            }
            created_at >= since - ATTEMPT_MS_MAX
        })?;
        rules.retain(|rule| rule.webhook_url.is_some() || !rule.attempts.is_empty());
        Ok(rules)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::{
        app::{Client, identity::sessions::caller_of_user},
        base::locale::Locale,
        store::{
            AlertEvent, AlertState, ReportFormat, ReportRun, Role, RunStatus, Schedule, rule_id,
        },
    };

    const DAY_MS: i64 = 86_400_000;

    fn report(app: &App, caller: &Caller, number: u64) -> ReportRule {
        ReportRule {
            id: rule_id(number),
            number,
            environment: caller.environment.id.clone(),
            name: format!("report {number}"),
            dashboard_id: "d".to_owned(),
            schedule: Schedule::Word("daily".to_owned()),
            format: ReportFormat::Csv,
            recipients: Vec::new(),
            webhook_url: Some("https://hooks.acme.com/x".to_owned()),
            enabled: true,
            tenant_id: None,
            period: None,
            burst: Vec::new(),
            webhook_secret: None,
            previous_secret: None,
            next_run_at: None,
            locale: Locale::En,
            created_at: app.now_ms(),
            updated_at: app.now_ms(),
        }
    }

    fn delivery(app: &App, source_id: u64, status_code: u16, ago_ms: i64) -> WebhookDelivery {
        WebhookDelivery {
            id: app.new_id(),
            source: "report".to_owned(),
            source_id,
            webhook_url: "https://hooks.acme.com/x".to_owned(),
            attempt: 1,
            status_code,
            error: (status_code == 0).then(|| "connection refused".to_owned()),
            response_excerpt: None,
            duration_ms: 12,
            created_at: app.now_ms() - ago_ms,
            retry: 0,
            message: None,
        }
    }

    #[test]
    fn attempts_of_a_day_are_told_by_rule() {
        let app = App::in_memory();
        let made = app
            .register("a@b.example", "correct horse battery", "A", "A", Client::default())
            .unwrap();
        let caller = caller_of_user(&made.user, Role::Owner, &made.org, &Client::default());
        app.org_txn(&caller.org, |txn| {
            // Numbers that begin alike are those of different rules.
            for number in [1, 10] {
                txn.put(&report(&app, &caller, number))?;
            }
            txn.put(&delivery(&app, 1, 200, 2 * DAY_MS))?;
            for status in [200, 500, 0] {
                txn.put(&delivery(&app, 1, status, 1_000))?;
            }
            // More than are read at once.
            for _ in 0..300 {
                txn.put(&delivery(&app, 10, 204, 500))?;
            }
            txn.put(&delivery(&app, 77, 200, 500))?;
            for (number, runs) in [(1, 3), (10, 120)] {
                for at in 0..runs {
                    txn.put(&ReportRun {
                        id: format!("{}:{}", rule_id(number), app.new_id()),
                        status: RunStatus::Succeeded,
                        trigger: "schedule".to_owned(),
                        scheduled_for: at,
                        started_at: None,
                        finished_at: None,
                        bytes: None,
                        deliveries: Vec::new(),
                        error: None,
                        tenant_id: None,
                        retries: BTreeMap::new(),
                    })?;
                }
            }
            txn.put(&AlertEvent {
                id: format!("{}:{}", rule_id(1), app.new_id()),
                state: AlertState::Firing,
                value: Some(1.0),
                threshold_value: Some(0.5),
                window_from: 0,
                window_to: 1,
                tenant_id: None,
                reason: None,
                deliveries: Vec::new(),
                mails_with: None,
                created_at: 1,
            })
        })
        .unwrap();
        let rules = app.webhook_deliveries(&caller).unwrap();
        let told: Vec<_> = rules
            .iter()
            .map(|rule| (rule.source_id, rule.successes, rule.failures, rule.attempts.len()))
            .collect();
        assert_eq!(told, [(10, 300, 0, ATTEMPTS_SHOWN), (1, 1, 2, 3)]);
        assert_eq!(rules[1].attempts[0].error.as_deref(), Some("connection refused"));
        let runs = app.report_runs(&caller, 10).unwrap();
        assert_eq!((runs.len(), runs[0].scheduled_for), (100, 119), "the newest hundred");
        assert_eq!(app.report_runs(&caller, 1).unwrap().len(), 3);
        assert_eq!(app.report(&caller, 1).unwrap().last_run.unwrap().scheduled_for, 2);
        app.delete_report(&caller, 1).unwrap();
        assert_eq!(app.report_runs(&caller, 10).unwrap().len(), 100, "those of another rule stay");
    }
}
