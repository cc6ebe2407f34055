//! Trying an alert: a test to its receivers, and a look at when it would have fired.
//!
//! A rule is looked at each minute, and so is the past, where 43,201 looks are quick enough. Where they are not (a percentile
//! over a week), the steps are as short as they can be, and the answer says how long.

use std::time::{Duration, Instant};

use inlay_engine::Namespace;
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
    store::{
        AlertRule, AlertState, AlertStatus, AuditRow, Channel, Delivery, Notification,
        RecipientStatus,
    },
};

const MINUTE_MS: i64 = 60_000;
/// How far back a rule is tried.
const BACK_MS: i64 = 30 * 24 * 60 * MINUTE_MS;
/// Minutes between two looks, the shortest first.
const STEPS: [i64; 6] = [1, 2, 5, 10, 15, 30];
/// All looks are to take no longer, where longer steps can help.
const LOOKS_TIME: Duration = Duration::from_secs(2);
/// Looks by which it is guessed how long one takes.
const SAMPLED: i64 = 24;
/// Values that are shown, at most: more than the pixels of a chart are of no use.
const POINTS_MAX: i64 = 1_440;
/// Tenants of a rule that watches each, at most: those with most events.
const TENANTS_MAX: usize = 100;

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
    /// Firings and resolutions, oldest first.
    pub events: Vec<PreviewedChange>,
    /// The value at each look, or at every so many of them; of a rule that watches each tenant, how many fire.
    pub points: Vec<(i64, Option<f64>)>,
    /// Tenants that were looked at, of a rule that watches each.
    pub tenants: Option<usize>,
}

/// A firing or a resolution that would have been.
pub struct PreviewedChange {
    /// Whether it fired, or was resolved.
    pub is_firing: bool,
    /// The tenant, of a rule that watches each.
    pub tenant: Option<String>,
    /// The value at that look.
    pub value: Option<f64>,
    /// The instant of the look.
    pub at: i64,
}

/// The step at which all looks fit their time, in minutes, when one look takes so long. Never so long that a window, or the
/// time that a condition must hold, lies between two looks.
fn step_minutes(look: Duration, subjects: usize, rule: &AlertRule) -> i64 {
    let holds = Some(i64::from(rule.for_minutes)).filter(|minutes| *minutes > 0);
    let longest = i64::from(rule.lookback_minutes).min(holds.unwrap_or(i64::MAX)).max(1);
    let fits = |step: &&i64| {
        let looks = (BACK_MS / MINUTE_MS / **step) as f64 * subjects as f64;
        looks * look.as_secs_f64() <= LOOKS_TIME.as_secs_f64()
    };
    let fitting = STEPS.iter().find(fits).copied().unwrap_or(30);
    STEPS.into_iter().rev().find(|step| *step <= fitting.min(longest)).unwrap_or(1)
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
            further: Vec::new(),
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
        let namespace = caller.environment.namespace();
        let now = self.now_ms().div_euclid(MINUTE_MS) * MINUTE_MS;
        let mut subjects = self.preview_subjects(namespace, &rule, now)?;
        let look =
            |tenant: Option<&str>, at| self.watched_value(namespace, &rule, &widget, tenant, at);
        // Of the past, evenly, each of another subject.
        let began = Instant::now();
        for (turn, (tenant, _)) in (0..SAMPLED).zip(subjects.iter().cycle()) {
            look(tenant.as_deref(), now - turn * (BACK_MS / SAMPLED))?;
        }
        let each = began.elapsed() / SAMPLED as u32;
        let step_minutes = step_minutes(each, subjects.len(), &rule);
        let step = step_minutes * MINUTE_MS;
        // On whole steps many windows are whole hours, which rollups answer.
        let to = now.div_euclid(step) * step;
        let from = to - BACK_MS;
        let must_stop = self.query_control();
        let shown_every = (BACK_MS / step / POINTS_MAX).max(1);
        let tenants = rule.per_tenant.then_some(subjects.len());
        let (mut events, mut points) = (Vec::new(), Vec::new());
        for (turn, at) in (0..).zip((from..=to).step_by(step as usize)) {
            let mut shown = None;
            for (tenant, status) in &mut subjects {
                if must_stop() {
                    let message =
                        "trying this rule takes too long; a shorter lookback_minutes is quicker";
                    return Err(ApiError::new(Code::QueryTimeout, message));
                }
                let value = look(tenant.as_deref(), at)?;
                let (next, change) = next_state(&rule, status, value, at, 0);
                *status = next;
                shown = value;
                events.extend(change.map(|change| PreviewedChange {
                    is_firing: change == Change::Fired,
                    tenant: tenant.clone().filter(|_| rule.per_tenant),
                    value,
                    at,
                }));
            }
            if turn % shown_every == 0 {
                if rule.per_tenant {
                    let fire = |(_, status): &&(_, AlertStatus)| status.state == AlertState::Firing;
                    shown = Some(subjects.iter().filter(fire).count() as f64);
                }
                points.push((at, shown));
            }
        }
        Ok(AlertPreview { from, to, step_minutes, events, points, tenants })
    }

    /// The tenants that are looked at, each with its state 30 days ago; one subject for a rule about one tenant, or all together.
    fn preview_subjects(
        &self,
        namespace: Namespace,
        rule: &AlertRule,
        now: i64,
    ) -> Result<Vec<(Option<String>, AlertStatus)>> {
        let from = now - BACK_MS;
        let subject = |tenant: Option<String>| (tenant, fresh(String::new(), None, from));
        if !rule.per_tenant {
            return Ok(vec![subject(rule.tenant_id.clone())]);
        }
        let mut tenants = self.engine.tenants(namespace, from, now, &self.query_control())?;
        tenants.truncate(TENANTS_MAX);
        Ok(tenants.into_iter().map(|(tenant, _)| subject(Some(tenant))).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::Operator;

    #[test]
    fn steps_are_minutes_where_looks_are_quick_and_never_longer_than_a_window() {
        let rule = |lookback_minutes, for_minutes| {
            let rule = crate::app::alerts::state::tests::rule(Operator::Gt, 1.0);
            AlertRule { lookback_minutes, for_minutes, ..rule }
        };
        let us = Duration::from_micros;
        assert_eq!(step_minutes(us(20), 1, &rule(60, 0)), 1);
        assert_eq!(step_minutes(us(200), 1, &rule(60, 0)), 5, "8,640 looks of 0.2 ms");
        assert_eq!(
            step_minutes(us(200_000), 1, &rule(1_440, 0)),
            30,
            "longer steps would not help"
        );
        assert_eq!(step_minutes(us(200_000), 1, &rule(7, 0)), 5);
        assert_eq!(step_minutes(us(200_000), 1, &rule(60, 3)), 2);
        assert_eq!(step_minutes(us(200_000), 1, &rule(1, 0)), 1);
        assert_eq!(step_minutes(us(10), 100, &rule(60, 0)), 30);
        assert_eq!(step_minutes(us(10), 0, &rule(60, 0)), 1, "nobody to look at");
    }
}
