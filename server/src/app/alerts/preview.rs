//! Trying an alert: a test message to its recipients, and a replay of the last 30 days.
//!
//! A rule is evaluated each minute, and so is the past, where 43,201 evaluations are quick enough. Where they are not (a percentile
//! over a week), the steps become longer, then fewer tenants are evaluated, then fewer days; the answer says how many.
//!
//! ```text
//! POST /v1/alerts/preview {"dashboard_id": "0190…", "widget_id": "errors", "condition_type": "threshold", "operator": "gt",
//!                          "threshold_value": 1000}
//! 200 {"from": "2026-10-21T10:17:00.000Z", "to": "2026-11-20T10:17:00.000Z", "step_minutes": 1, "fired": 1,
//!      "events": [{"state": "firing", "value": 1204.0, "at": "2026-11-19T22:03:00.000Z"}, {"state": "resolved", …}],
//!      "points": [{"at": "2026-10-21T10:17:00.000Z", "value": 31.0}, …]}
//!
//! one evaluation    tenants    step          tenants, days
//! 20 µs             1          1 minute      1, 30
//! 200 µs            1          5 minutes     1, 30      8,640 evaluations
//! 10 µs             100        30 minutes    100, 30
//! 6 µs              100        1 minute      7, 30      for_minutes is 1, and no step may be longer
//! 1 ms              1          5 minutes     1, 6       a window of 7 minutes
//!
//! POST /v1/alerts/7/test
//! 200 {"deliveries": [{"kind": "email", "to": "ops@acme.example", "status": "sent", "error": null},
//!                     {"kind": "webhook", "to": "https://…", "status": "failed", "error": "the receiver answered 404"}]}
//! 409 {"error": "this rule has no receivers: no email_to and no webhook_url", "code": "conflict", …}
//! ```

use std::{
    collections::{BTreeSet, VecDeque},
    time::{Duration, Instant},
};

use inlay_engine::Namespace;
use serde_json::json;

use super::{
    evaluation::{TENANT_SEEN_MS, watched_widget, window_ms},
    rules::{AlertChange, AlertSubject},
    state::{Change, fresh, next_state},
};
use crate::{
    app::{
        delivery::queue::{Outcome, alert_attempt, pending},
        request::{callers::Caller, context::App},
    },
    error::{ApiError, Code, Result},
    store::{
        AlertRule, AlertState, AlertStatus, AuditRow, Channel, Delivery, Notification,
        RecipientStatus,
    },
};

const MINUTE_MS: i64 = 60_000;
const DAY_MS: i64 = 86_400_000;
/// Milliseconds of the past that a preview covers at most: 30 days.
const BACK_MS: i64 = 30 * 24 * 60 * MINUTE_MS;
/// Minutes between two evaluations, the shortest first.
const STEPS: [i64; 6] = [1, 2, 5, 10, 15, 30];
/// Time for all evaluations, as far as longer steps, fewer tenants and fewer days can keep it.
const LOOKS_TIME: Duration = Duration::from_secs(2);
/// Evaluations that are timed first, spread over the 30 days.
const SAMPLED: i64 = 24;
/// Values that an answer has at even times: more than a chart has pixels are of no use.
const POINTS_MAX: i64 = 1_440;
/// Firings and resolutions that an answer lists, at most.
const EVENTS_MAX: usize = 1_000;
/// Tenants of a rule that watches each, at most: those with most events.
const TENANTS_MAX: usize = 100;

/// Tests of an organisation in a minute, at most: each may reach many receivers.
const TESTS_A_MINUTE: usize = 20;
/// Newest rows of the audit among which tests are counted.
const TESTS_LOOKED_AT: usize = 200;

/// When a rule would have fired.
///
/// Times are milliseconds since 1970.
pub struct AlertPreview {
    /// Time of the first evaluation.
    pub from: i64,
    /// Time of the last evaluation.
    pub to: i64,
    /// Minutes from one evaluation to the next: 1, 2, 5, 10, 15 or 30.
    pub step_minutes: i64,
    /// How often it would have fired, over all tenants; `events` may have fewer.
    pub fired: usize,
    /// The newest firings and resolutions, oldest first.
    pub events: Vec<PreviewedChange>,
    /// The value at each evaluation, or at every so many of them and at changes; of a rule that watches each tenant, how many fire.
    pub points: Vec<(i64, Option<f64>)>,
    /// Tenants that were evaluated, of a rule that watches each, and how many more there are: `Some((7, 93))`.
    pub tenants: Option<(usize, usize)>,
}

/// A firing or a resolution that would have been.
pub struct PreviewedChange {
    /// Whether it fired, or was resolved.
    pub is_firing: bool,
    /// The tenant, of a rule that watches each.
    pub tenant: Option<String>,
    /// The value that caused it.
    pub value: Option<f64>,
    /// Time of the evaluation, in milliseconds since 1970.
    pub at: i64,
}

/// What a preview evaluates: steps, tenants and days.
#[derive(Debug, PartialEq, Eq)]
struct Reach {
    step_minutes: i64,
    tenants: usize,
    back_ms: i64,
}

/// What fits into the time when one evaluation takes `look`. Steps are never so long that a window, or the time that a condition must
/// hold, lies between two evaluations; where even those do not fit, it is fewer tenants, and at last fewer days, but always one.
fn reach(look: Duration, tenants: usize, rule: &AlertRule) -> Reach {
    let holds = Some(i64::from(rule.for_minutes)).filter(|minutes| *minutes > 0);
    let longest = i64::from(rule.lookback_minutes).min(holds.unwrap_or(i64::MAX)).max(1);
    let looks = (LOOKS_TIME.as_secs_f64() / look.as_secs_f64().max(1e-9)) as i64;
    let allowed = || STEPS.into_iter().filter(|step| *step <= longest);
    let of_one = |step: i64| BACK_MS / MINUTE_MS / step;
    let fits = |step: &i64| of_one(*step).saturating_mul(tenants as i64) <= looks;
    let step_minutes = allowed().find(fits).or(allowed().next_back()).unwrap_or(1);
    let fitting = usize::try_from(looks / of_one(step_minutes)).unwrap_or(usize::MAX);
    let step_ms = step_minutes * MINUTE_MS;
    let back_ms = if fitting > 0 { BACK_MS } else { (looks * step_ms).max(DAY_MS) };
    Reach { step_minutes, tenants: tenants.min(fitting.max(1)), back_ms: back_ms.min(BACK_MS) }
}

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

    /// When a rule would have fired in the last 30 days. 404 without the dashboard or the widget.
    ///
    /// Errors: 400 with the faults of the rule; `query_timeout` where even the shortest replay takes too long.
    pub fn preview_alert(
        &self,
        caller: &Caller,
        subject: AlertSubject,
        change: AlertChange,
    ) -> Result<AlertPreview> {
        let (rule, widget) = self.plan_alert(caller, subject, change)?;
        let namespace = caller.environment.namespace();
        let now = self.now_ms().div_euclid(MINUTE_MS) * MINUTE_MS;
        let (mut subjects, unseen) = self.preview_subjects(namespace, &rule, now)?;
        let look =
            |tenant: Option<&str>, at| self.watched_value(namespace, &rule, &widget, tenant, at);
        // Spread over the past and over the tenants: recent hours are quicker than months that are sealed, and large tenants slower.
        let (began, mut sampled) = (Instant::now(), 0);
        for (turn, subject) in (0..SAMPLED).zip(subjects.iter().cycle()) {
            if began.elapsed() > LOOKS_TIME {
                break;
            }
            look(subject.tenant.as_deref(), now - turn * (BACK_MS / SAMPLED))?;
            sampled += 1;
        }
        let each = began.elapsed() / sampled.max(1);
        let Reach { step_minutes, tenants, back_ms } = reach(each, subjects.len(), &rule);
        let left_out = unseen + subjects.len().saturating_sub(tenants);
        subjects.truncate(tenants);
        let step = step_minutes * MINUTE_MS;
        // On whole steps many windows are whole hours, which rollups answer.
        let to = now.div_euclid(step) * step;
        let from = (to - back_ms).div_euclid(step) * step;
        let must_stop = self.query_control();
        let shown_every = (back_ms / step / POINTS_MAX).max(1);
        let (mut events, mut points, mut fired) = (VecDeque::new(), Vec::new(), 0);
        for (turn, at) in (0..).zip((from..=to).step_by(step as usize)) {
            let (mut shown, mut has_changed) = (None, false);
            for subject in &mut subjects {
                if must_stop() {
                    let message = "trying this rule takes too long; a metric other than a percentile, or one tenant, is quicker";
                    return Err(ApiError::new(Code::QueryTimeout, message));
                }
                // As the rule does: one that sends nothing any more, or nothing yet, is not watched.
                let is_watched = subject.seen_on(at) || subject.status.state == AlertState::Firing;
                if rule.per_tenant && !is_watched {
                    continue;
                }
                let value = look(subject.tenant.as_deref(), at)?;
                subject.has_begun |= value.is_some_and(|value| value != 0.0);
                if !subject.has_begun {
                    continue;
                }
                let (next, change) = next_state(&rule, &subject.status, value, at, 0);
                subject.status = next;
                shown = value;
                let Some(change) = change else { continue };
                has_changed = true;
                let is_firing = change == Change::Fired;
                fired += usize::from(is_firing);
                let tenant = subject.tenant.clone().filter(|_| rule.per_tenant);
                events.push_back(PreviewedChange { is_firing, tenant, value, at });
                if events.len() > EVENTS_MAX {
                    events.pop_front();
                }
            }
            if turn % shown_every == 0 || has_changed && points.len() < 2 * POINTS_MAX as usize {
                if rule.per_tenant {
                    let fires =
                        |subject: &&PreviewSubject| subject.status.state == AlertState::Firing;
                    shown = Some(subjects.iter().filter(fires).count() as f64);
                }
                points.push((at, shown));
            }
        }
        let tenants = rule.per_tenant.then_some((tenants, left_out));
        Ok(AlertPreview { from, to, step_minutes, fired, events: events.into(), points, tenants })
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
    ) -> Result<(Vec<PreviewSubject>, usize)> {
        let from = now - BACK_MS;
        let subject = |tenant: Option<String>| PreviewSubject {
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
        let mut subjects: Vec<PreviewSubject> =
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

/// A tenant of a preview, or all of them together, with the status so far.
struct PreviewSubject {
    /// `None` for all tenants together.
    tenant: Option<String>,
    status: AlertStatus,
    /// Days since 1970 on which, or not long before which, it sent something.
    days: BTreeSet<i64>,
    /// Whether it has sent something by now: before that, nothing is missing of it.
    has_begun: bool,
}

impl PreviewSubject {
    /// Whether the rule would have watched it at this time.
    fn seen_on(&self, at: i64) -> bool {
        self.days.contains(&at.div_euclid(DAY_MS))
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
        let of = |us, tenants, rule: AlertRule| {
            let Reach { step_minutes, tenants, back_ms } =
                reach(Duration::from_micros(us), tenants, &rule);
            (step_minutes, tenants, back_ms / DAY_MS)
        };
        assert_eq!(of(20, 1, rule(60, 0)), (1, 1, 30));
        assert_eq!(of(200, 1, rule(60, 0)), (5, 1, 30), "8,640 looks of 0.2 ms");
        assert_eq!(of(10, 100, rule(60, 0)), (30, 100, 30));
        // Where the longest step is too short: fewer tenants, then fewer days, but always one.
        assert_eq!(of(6, 100, rule(60, 1)), (1, 7, 30));
        assert_eq!(of(1_000, 1, rule(7, 0)), (5, 1, 6));
        assert_eq!(of(200_000, 3, rule(60, 3)), (2, 1, 1));
        assert_eq!(of(10, 0, rule(60, 0)), (1, 0, 30), "nobody to look at");
    }
}
