//! Trying an alert: a test message to its recipients, and a replay of the last 30 days.
//!
//! ```text
//! POST /v1/alerts/preview {"dashboard_id": "0190…", "widget_id": "errors", "condition_type": "threshold", "operator": "gt",
//!                          "threshold_value": 1000}
//! 200 {"from": "2026-10-21T10:17:00.000Z", "to": "2026-11-20T10:17:00.000Z", "step_minutes": 1, "fired": 1,
//!      "events": [{"state": "firing", "value": 1204.0, "at": "2026-11-19T22:03:00.000Z"}, {"state": "resolved", …}],
//!      "points": [{"at": "2026-10-21T10:17:00.000Z", "value": 31.0}, …]}
//!
//! POST /v1/alerts/7/test
//! 200 {"deliveries": [{"kind": "email", "to": "ops@acme.example", "status": "sent", "error": null},
//!                     {"kind": "webhook", "to": "https://…", "status": "failed", "error": "the receiver answered 404"}]}
//! 409 {"error": "this rule has no receivers: no email_to and no webhook_url", "code": "conflict", …}
//! ```

use std::{collections::BTreeSet, time::Instant};

use inlay_engine::Namespace;
use serde_json::json;

use super::{
    evaluation::{TENANT_SEEN_MS, watched_widget, window_ms},
    replay::{BACK_MS, Replay, ReplaySubject, Replayed},
    rules::{AlertChange, AlertSubject},
    state::fresh,
};
use crate::{
    app::{
        delivery::{
            mail_words::mail_words,
            queue::{Outcome, alert_attempt, pending},
        },
        request::{callers::Caller, context::App},
    },
    error::{ApiError, Code, Result},
    store::{AlertRule, AlertState, AuditRow, Channel, Delivery, Notification, RecipientStatus},
};

const MINUTE_MS: i64 = 60_000;
const DAY_MS: i64 = 86_400_000;
/// Tenants of a rule that watches each, at most: those with most events.
const TENANTS_MAX: usize = 100;

/// Tests of an organisation in a minute, at most: each may reach many receivers.
const TESTS_A_MINUTE: usize = 20;
/// Newest rows of the audit among which tests are counted.
const TESTS_LOOKED_AT: usize = 200;

impl App {
    /// Test messages for all recipients of a rule, which are not put into the queue: the caller sends them at once and waits. The value is
    /// that of the last evaluation, and the name is `Test of Too many errors`.
    ///
    /// Errors: 404; 409 without recipients; 429 for the twenty-first test of an organisation within a minute.
    pub fn test_deliveries(&self, caller: &Caller, number: u64) -> Result<Vec<Delivery>> {
        let alert = self.alert(caller, number)?;
        let (rule, now) = (alert.rule, self.now_ms());
        let dashboard = self.dashboard(caller, &rule.dashboard_id).ok();
        let widget = dashboard.as_ref().and_then(|found| watched_widget(found, &rule.widget_id));
        let notification = Notification {
            alert: rule.number,
            name: (mail_words(rule.locale).test_of)(&rule.name),
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
            locale: rule.locale,
        };
        let mails = rule.email_to.iter().map(|to| (Channel::Email, to));
        let channels: Vec<_> =
            mails.chain(rule.webhook_url.iter().map(|to| (Channel::Webhook, to))).collect();
        if channels.is_empty() {
            let message = "this rule has no receivers: no email_to and no webhook_url";
            return Err(ApiError::new(Code::Conflict, message));
        }
        let delivery = |(channel, to): (Channel, &String)| {
            self.delivery(&caller.org, channel, to, "", &notification)
        };
        let deliveries = channels.into_iter().map(delivery).collect();
        self.org_txn(&caller.org, |txn| {
            // The rows of the audit are the counter: nothing else is stored for the limit, and it survives a restart.
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

    /// Stores the attempt of a test at a webhook, which `GET /v1/webhooks` lists; gives the status of the recipient.
    pub fn record_test(&self, delivery: Delivery, outcome: Outcome) -> Result<RecipientStatus> {
        if delivery.channel == Channel::Webhook {
            let row = alert_attempt(self.new_id(), &delivery, &outcome);
            self.org_txn(&delivery.org, |txn| txn.put(&row))?;
        }
        let status = if outcome.result.error.is_none() { "sent" } else { "failed" };
        Ok(RecipientStatus {
            status: status.to_owned(),
            error: outcome.result.error,
            ..pending(delivery.channel, &delivery.to)
        })
    }

    /// When a rule would have fired in the last 30 days, and how many tenants were not evaluated, of a rule that watches each.
    ///
    /// Errors: 404 without the dashboard or the widget; 400 with the faults of the rule; `query_timeout` where even the shortest replay takes too long.
    pub fn preview_alert(
        &self,
        caller: &Caller,
        subject: AlertSubject,
        change: AlertChange,
    ) -> Result<(Replayed, Option<usize>)> {
        let (rule, widget) = self.plan_alert(caller, subject, change)?;
        let namespace = caller.environment.namespace();
        let now = self.now_ms().div_euclid(MINUTE_MS) * MINUTE_MS;
        let (subjects, unseen) = self.preview_subjects(namespace, &rule, now)?;
        let evaluate =
            |tenant: Option<&str>, at| self.watched_value(namespace, &rule, &widget, tenant, at);
        let (began, must_stop) = (Instant::now(), self.query_control());
        let replay = Replay {
            rule: &rule,
            subjects: &subjects,
            now,
            evaluate: &evaluate,
            elapsed: &|| began.elapsed(),
            must_stop: &must_stop,
        };
        let replayed = replay.run()?;
        let left_out = unseen + subjects.len() - replayed.subjects;
        Ok((replayed, rule.per_tenant.then_some(left_out)))
    }

    /// The tenants that are looked at, those with most events first, and how many more there are; one subject for a rule about one tenant, or
    /// all together.
    ///
    /// A tenant is watched on days on which it has an event, or had one in the seven days before, as the rule itself would have done then.
    fn preview_subjects(
        &self,
        namespace: Namespace,
        rule: &AlertRule,
        now: i64,
    ) -> Result<(Vec<ReplaySubject>, usize)> {
        let from = now - BACK_MS;
        let subject = |tenant: Option<String>| ReplaySubject {
            tenant,
            status: fresh(String::new(), None, from),
            days: BTreeSet::new(),
            has_begun: !rule.per_tenant,
        };
        if !rule.per_tenant {
            return Ok((vec![subject(rule.tenant_id.clone())], 0));
        }
        let control = self.query_control();
        let mut tenants = self.engine.tenants(namespace, from, now, &control)?;
        let unseen = tenants.len().saturating_sub(TENANTS_MAX);
        tenants.truncate(TENANTS_MAX);
        let mut subjects: Vec<ReplaySubject> =
            tenants.into_iter().map(|(tenant, _)| subject(Some(tenant))).collect();
        let lately = TENANT_SEEN_MS.max(window_ms(rule));
        for day in from.div_euclid(DAY_MS)..=now.div_euclid(DAY_MS) {
            let end = (day + 1) * DAY_MS;
            let seen = self.engine.tenants(namespace, end - DAY_MS - lately, end, &control)?;
            let seen: BTreeSet<String> = seen.into_iter().map(|(tenant, _)| tenant).collect();
            for subject in &mut subjects {
                if subject.tenant.as_ref().is_some_and(|tenant| seen.contains(tenant)) {
                    subject.days.insert(day);
                    subject.has_begun |= day == from.div_euclid(DAY_MS);
                }
            }
        }
        Ok((subjects, unseen))
    }
}
