//! What became of webhooks: the attempts of the last 24 hours, by rule.

use std::collections::HashMap;

use super::context::{App, Caller};
use crate::{
    error::Result,
    store::{AlertRule, ReportRule, WebhookDelivery},
};

/// How far back is looked.
pub const WINDOW_HOURS: i64 = 24;
/// Attempts of a rule that are shown one by one.
const ATTEMPTS_SHOWN: usize = 20;
/// Attempts that are looked at, at most.
const ATTEMPTS_MAX: usize = 100_000;

/// A rule with a webhook, and how it went.
pub struct RuleDeliveries {
    /// `alert` or `report`.
    pub source: &'static str,
    /// Number of the rule.
    pub source_id: u64,
    /// Its name.
    pub name: String,
    /// Where it posts.
    pub webhook_url: Option<String>,
    /// Attempts that were answered with 2xx.
    pub successes: usize,
    /// The others.
    pub failures: usize,
    /// The newest attempts, newest first.
    pub attempts: Vec<WebhookDelivery>,
}

impl App {
    /// Rules of the environment that post somewhere, and how it went: alerts first, newest first.
    pub fn webhook_deliveries(&self, caller: &Caller) -> Result<Vec<RuleDeliveries>> {
        let reader = self.org_reader(&caller.org);
        let since = self.now_ms() - WINDOW_HOURS * 3_600_000;
        let mut attempts: Vec<WebhookDelivery> = reader.list_last(ATTEMPTS_MAX)?;
        attempts.retain(|attempt| attempt.created_at >= since);
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
        for attempt in attempts {
            let place = places.get(&(attempt.source.as_str(), attempt.source_id));
            let Some(rule) = place.and_then(|&at| rules.get_mut(at)) else { continue };
            if (200..300).contains(&attempt.status_code) {
                rule.successes += 1;
            } else {
                rule.failures += 1;
            }
            if rule.attempts.len() < ATTEMPTS_SHOWN {
                rule.attempts.push(attempt);
            }
        }
        rules.retain(|rule| rule.webhook_url.is_some() || !rule.attempts.is_empty());
        Ok(rules)
    }
}
