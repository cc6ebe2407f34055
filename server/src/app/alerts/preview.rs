//! Trying an alert: a test to its receivers, and a look at when it would have fired.

use serde_json::json;

use super::{
    evaluation::{watched_widget, window_ms},
    rules::{AlertChange, AlertSubject},
    state::{Change, fresh, next_state},
};
use crate::{
    app::{
        delivery::queue::{Outcome, alert_attempt, kind_of},
        request::{callers::Caller, context::App},
    },
    error::{ApiError, Code, Result},
    store::{AlertState, AuditRow, Channel, Delivery, Notification, RecipientStatus},
};

const MINUTE_MS: i64 = 60_000;
/// How far back a rule is tried.
const BACK_MS: i64 = 30 * 24 * 60 * MINUTE_MS;
/// Time between two looks, at most and at least: seldom enough that a month is answered at once, often
/// enough that no window lies between two looks.
const STEP_MINUTES: std::ops::RangeInclusive<i64> = 5..=30;

/// Tests of an organisation in a minute, at most: each may reach many receivers.
const TESTS_A_MINUTE: usize = 20;
/// Rows of the audit in which they are looked for.
const TESTS_LOOKED_AT: usize = 200;

/// When a rule would have fired.
pub struct AlertPreview {
    /// The first look.
    pub from: i64,
    /// The last look.
    pub to: i64,
    /// Between two looks.
    pub step_minutes: i64,
    /// Whether it fired or recovered, at which value, when.
    pub events: Vec<(bool, Option<f64>, i64)>,
    /// The value at each look.
    pub points: Vec<(i64, Option<f64>)>,
}

impl App {
    /// Tests for all receivers of a rule, which are not in the queue. The value is that seen last.
    pub fn test_deliveries(&self, caller: &Caller, number: u64) -> Result<Vec<Delivery>> {
        let alert = self.alert(caller, number)?;
        let (rule, now) = (alert.rule, self.now_ms());
        let dashboard = self.dashboard(caller, &rule.dashboard_id).ok();
        let widget = dashboard.as_ref().and_then(|found| watched_widget(found, &rule.widget_id));
        let notification = Notification {
            alert: rule.number,
            name: format!("Test of {}", rule.name),
            dashboard_id: rule.dashboard_id.clone(),
            dashboard_name: dashboard.as_ref().map_or("", |found| &found.shown().name).to_owned(),
            widget_id: rule.widget_id.clone(),
            widget_title: widget.map_or("", |widget| &widget.title).to_owned(),
            condition_type: rule.condition_type,
            operator: rule.operator,
            threshold_value: rule.threshold_value,
            state: AlertState::Firing,
            fired_at: now,
            resolved_at: None,
            tenant_id: rule.tenant_id.clone(),
            value: alert.status.last_value,
            window_from: now - window_ms(&rule),
            window_to: now,
            reason: None,
        };
        let mails = rule.email_to.iter().map(|to| (Channel::Email, to));
        let channels: Vec<_> =
            mails.chain(rule.webhook_url.iter().map(|to| (Channel::Webhook, to))).collect();
        if channels.is_empty() {
            let message = "this rule has no receivers: no email_to and no webhook_url";
            return Err(ApiError::new(Code::Conflict, message));
        }
        let delivery = |(channel, to): (Channel, &String)| Delivery {
            id: self.new_id(),
            org: caller.org.clone(),
            due_at: now,
            is_leased: false,
            attempt: 1,
            channel,
            to: to.clone(),
            alert: rule.number,
            event: String::new(),
            notification: notification.clone(),
            retry: 0,
        };
        let deliveries = channels.into_iter().map(delivery).collect();
        self.org_txn(&caller.org, |txn| {
            let rows: Vec<AuditRow> = self.org_reader(&caller.org).list_last(TESTS_LOOKED_AT)?;
            let lately = rows.iter().filter(|row| row.created_at > now - MINUTE_MS);
            if lately.filter(|row| row.action == "alert.test").count() >= TESTS_A_MINUTE {
                let message = format!("an organisation may send {TESTS_A_MINUTE} tests a minute");
                let retry_after = Some(60);
                return Err(ApiError { retry_after, ..ApiError::new(Code::RateLimited, message) });
            }
            let target = ("alert", rule.number.to_string());
            self.audit(txn, caller, "alert.test", (target.0, &target.1), json!({"name": rule.name}))
        })?;
        Ok(deliveries)
    }

    /// Writes down what became of a test.
    pub fn record_test(&self, delivery: Delivery, outcome: Outcome) -> Result<RecipientStatus> {
        if delivery.channel == Channel::Webhook {
            let row = alert_attempt(self.new_id(), &delivery, &outcome);
            self.org_txn(&delivery.org, |txn| txn.put(&row))?;
        }
        Ok(RecipientStatus {
            kind: kind_of(delivery.channel).to_owned(),
            to: delivery.to,
            tenant_id: None,
            status: if outcome.result.error.is_none() { "sent" } else { "failed" }.to_owned(),
            error: outcome.result.error,
        })
    }

    /// When a rule would have fired in the last 30 days. 404 without the dashboard or the widget.
    pub fn preview_alert(
        &self,
        caller: &Caller,
        subject: AlertSubject,
        change: AlertChange,
    ) -> Result<AlertPreview> {
        let (rule, widget) = self.plan_alert(caller, subject, change)?;
        let waits = Some(i64::from(rule.for_minutes)).filter(|minutes| *minutes > 0);
        let wanted = i64::from(rule.lookback_minutes).min(waits.unwrap_or(i64::MAX));
        let step_minutes = wanted.clamp(*STEP_MINUTES.start(), *STEP_MINUTES.end());
        let step = step_minutes * MINUTE_MS;
        // On whole steps most windows are whole hours, which rollups answer.
        let to = self.now_ms().div_euclid(step) * step;
        let from = to - BACK_MS;
        let must_stop = self.query_control();
        let mut status = fresh(String::new(), None, from);
        let mut preview =
            AlertPreview { from, to, step_minutes, events: Vec::new(), points: Vec::new() };
        let namespace = caller.environment.namespace();
        for at in (from..=to).step_by(step as usize) {
            if must_stop() {
                let message =
                    "trying this rule takes too long; a shorter lookback_minutes is quicker";
                return Err(ApiError::new(Code::QueryTimeout, message));
            }
            let tenant = rule.tenant_id.as_deref();
            let value = self.watched_value(namespace, &rule, &widget, tenant, at)?;
            let (next, change) = next_state(&rule, &status, value, at, 0);
            status = next;
            preview.points.push((at, value));
            preview.events.extend(change.map(|change| (change == Change::Fired, value, at)));
        }
        Ok(preview)
    }
}
