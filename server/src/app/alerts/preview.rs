//! Trying an alert: a test to its receivers, and a look at when it would have fired.
//!
//! A rule is looked at each minute, and so is the past, where 43,201 looks are quick enough. Where they are not (a percentile
//! over a week), the steps become longer, then fewer tenants are looked at, then fewer days; the answer says how many.

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
/// Firings and resolutions that an answer lists, at most.
const EVENTS_MAX: usize = 1_000;
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
    /// How often it fired.
    pub fired: usize,
    /// The newest firings and resolutions, oldest first.
    pub events: Vec<PreviewedChange>,
    /// The value at each look, or at every so many of them and at changes; of a rule that watches each tenant, how many fire.
    pub points: Vec<(i64, Option<f64>)>,
    /// Tenants that were looked at, of a rule that watches each, and those for which there was no time.
    pub tenants: Option<(usize, usize)>,
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

/// How far a preview looks.
#[derive(Debug, PartialEq, Eq)]
struct Reach {
    step_minutes: i64,
    tenants: usize,
    back_ms: i64,
}

/// What fits the time, when one look takes so long. Steps are never so long that a window, or the time that a condition must hold, lies
/// between two looks; where even those do not fit, it is fewer tenants, and at last fewer days.
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
        let delivery = |(channel, to): (Channel, &String)| {
            self.delivery(&caller.org, channel, to, "", &notification)
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
        let status = if outcome.result.error.is_none() { "sent" } else { "failed" };
        Ok(RecipientStatus {
            status: status.to_owned(),
            error: outcome.result.error,
            ..pending(delivery.channel, &delivery.to)
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
        let (mut subjects, unseen) = self.preview_subjects(namespace, &rule, now)?;
        let look =
            |tenant: Option<&str>, at| self.watched_value(namespace, &rule, &widget, tenant, at);
        // Of the past, evenly, each of another subject.
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

/// What a preview looks at.
struct PreviewSubject {
    tenant: Option<String>,
    status: AlertStatus,
    /// Days since 1970 on which, or not long before which, it sent something.
    days: BTreeSet<i64>,
    /// Whether it has sent something by now: before that, nothing is missing of it.
    has_begun: bool,
}

impl PreviewSubject {
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
