//! Alert rules: the widget that each watches, its recipients and its status. `evaluation` computes
//! the value, `state` decides whether the rule fires.
//!
//! ```text
//! POST /v1/alerts {"dashboard_id": "0190…", "widget_id": "errors", "name": "Too many errors", "condition_type": "threshold",
//!                  "operator": "gt", "threshold_value": 1000, "lookback_minutes": 60, "recovery_threshold": 800,
//!                  "email_to": ["ops@acme.example"], "webhook_url": "https://hooks.acme.com/in/secret", "webhook_signed": true}
//! 201 {"id": 7, "state": "ok", "webhook_secret": "whsec_…", "last_value": null, …}      the secret in this one answer
//! 400 {"details": [{"field": "recovery_threshold", …}, {"field": "operator", "code": "missing_field", …}], …}    all faults at once
//! 400 {"field": "widget_id", "error": "a widget of kind table has no single value to watch", …}
//! 404 {"field": "widget_id", "error": "widget not found", …}
//! ```
//!
//! Stored under the organisation, the number with twenty digits, so that rules are in the order in which they were made:
//!
//! ```text
//! alert/00000000000000000007                      the rule
//! alert_status/00000000000000000007               {"state": "firing", "state_since": …, "last_value": 1204.0, …}
//! alert_status/00000000000000000007:YWNtZQ        of the tenant acme, in Base64, where each tenant is watched
//! alert_event/00000000000000000007:0190…          a firing or a resolution, with the recipients and how each was reached
//! ```

use std::collections::{BTreeMap, btree_map::Entry};

use serde_json::json;

use super::{
    evaluation::{has_single_value, tenant_statuses, watched_widget},
    state::{fresh, recovery_fits},
};
use crate::{
    app::{
        delivery::{
            queue::{drop_deliveries, kind_of},
            rule_fields::{SigningChange, next_number, receivers},
        },
        request::{callers::Caller, context::App},
    },
    base::{locale::Locale, text},
    error::{ApiError, Code, Faults, Result},
    store::{
        AlertEvent, AlertRule, AlertState, AlertStatus, Channel, ConditionType, Dashboard,
        Operator, OrgReader, OrgTxn, RecipientStatus, Widget, rule_id,
    },
};

/// Minutes of the window where a request names none, or 0 or less.
const LOOKBACK_MINUTES: u32 = 60;
/// Minutes of the window, at most: 90 days, the longest period.
const LOOKBACK_MINUTES_MAX: i64 = 90 * 24 * 60;
/// Minutes for which a condition may have to hold, at most.
const FOR_MINUTES_MAX: i64 = 24 * 60;
/// Alert rules of an organisation, at most. A rule that watches each tenant is one of them.
const ALERTS_MAX: usize = 10_000;
/// Events of an alert that are listed.
const EVENTS_LISTED: usize = 100;

/// Fields of an alert rule to make or change; absent fields of an existing rule stay.
///
/// `webhook_url: None` leaves the webhook, `Some(None)` removes it, `Some(Some(url))` replaces it: JSON says the same by absence, null
/// and text.
#[derive(Default)]
pub struct AlertChange {
    /// Display name, 1 to 200 characters after trimming.
    pub name: Option<String>,
    /// Comparison of the value with the threshold; not needed for `no_data`.
    pub operator: Option<Operator>,
    /// Threshold of the comparison; percent for `delta`, not needed for `no_data`.
    pub threshold_value: Option<f64>,
    /// Length of the window in minutes, at most 90 days; 0 and less mean an hour.
    pub lookback_minutes: Option<i64>,
    /// Mail addresses of the recipients, at most 50.
    pub email_to: Option<Vec<String>>,
    /// URL of the webhook for notifications; the inner `None` removes the webhook.
    pub webhook_url: Option<Option<String>>,
    /// Whether it is evaluated.
    pub enabled: Option<bool>,
    /// Minutes for which the condition must hold before the rule fires, 0 to 1,440.
    pub for_minutes: Option<i64>,
    /// Value at which the rule recovers; the inner `None` stands for the threshold itself.
    pub recovery_threshold: Option<Option<f64>>,
    /// Language of its mails.
    pub locale: Option<Locale>,
    /// How webhooks are signed.
    /// `webhook_signed` and `rotate_webhook_secret` of the request.
    pub signing: SigningChange,
}

/// Subject of a new alert rule, which does not change later.
///
/// Another widget or condition is another rule: the history of this one would mix values of two kinds.
pub struct AlertSubject {
    /// Id of a dashboard of the caller's organisation.
    pub dashboard_id: String,
    /// Id of a widget of this dashboard; its kind must have a single value.
    pub widget_id: String,
    /// Kind of condition under which the rule fires.
    pub condition_type: ConditionType,
    /// The tenant that is watched; `None` for all tenants of the environment together.
    pub tenant_id: Option<String>,
    /// Whether each tenant is watched separately; excludes `tenant_id`.
    pub per_tenant: bool,
}

/// An alert rule with its status.
pub struct Alert {
    /// The rule as it is stored.
    pub rule: AlertRule,
    /// Status of the rule; with `per_tenant`, whether any tenant fires.
    pub status: AlertStatus,
    /// Status of each tenant of a rule with `per_tenant`, firing tenants first; empty otherwise.
    pub tenants: Vec<AlertStatus>,
    /// Secret that signs the webhooks, only when this operation made the secret.
    pub new_secret: Option<String>,
}

impl App {
    /// All rules of the environment, newest first.
    ///
    /// Rules of the other environment are not among them, with a session neither: `X-Service-Environment` chooses.
    pub fn alerts(&self, caller: &Caller) -> Result<Vec<Alert>> {
        let reader = self.org_reader(&caller.org);
        let mut rules: Vec<AlertRule> = reader.list()?;
        rules.retain(|rule| rule.environment == caller.environment.id);
        let now = self.now_ms();
        rules.into_iter().rev().map(|rule| with_status(&reader, rule, now)).collect()
    }

    /// A rule with its status. 404 when the environment has no rule of this number.
    pub fn alert(&self, caller: &Caller, number: u64) -> Result<Alert> {
        let reader = self.org_reader(&caller.org);
        let found: Option<AlertRule> = reader.find(&rule_id(number))?;
        let rule = found.filter(|rule| rule.environment == caller.environment.id);
        with_status(&reader, rule.ok_or_else(not_found)?, self.now_ms())
    }

    /// The newest 100 firings and resolutions of a rule, newest first, each with all recipients.
    ///
    /// Errors: 404 when the environment has no rule of this number.
    pub fn alert_events(&self, caller: &Caller, number: u64) -> Result<Vec<AlertEvent>> {
        let Alert { rule, .. } = self.alert(caller, number)?;
        let reader = self.org_reader(&caller.org);
        let mut events: Vec<AlertEvent> =
            reader.list_last_of(&format!("{}:", rule.id), EVENTS_LISTED)?;
        // One evaluation of several tenants sends one mail to each address, whose status stands in the first of its events only.
        let mut mails: BTreeMap<String, Vec<RecipientStatus>> = BTreeMap::new();
        for event in &mut events {
            let Some(first) = &event.mails_with else { continue };
            let of_first = match mails.entry(first.clone()) {
                Entry::Occupied(known) => known.into_mut(),
                Entry::Vacant(unknown) => {
                    let found: Option<AlertEvent> = reader.find(first)?;
                    let deliveries = found.map(|event| event.deliveries).unwrap_or_default();
                    let mail = kind_of(Channel::Email);
                    unknown.insert(deliveries.into_iter().filter(|one| one.kind == mail).collect())
                }
            };
            event.deliveries.splice(0..0, of_first.iter().cloned());
        }
        Ok(events)
    }

    /// A rule that is not stored, and the widget that it watches. 404 without the dashboard or the
    /// widget.
    ///
    /// Both a new rule and a preview begin here, so that a preview refuses what could not be saved.
    ///
    /// Errors: 400 with all faults of the fields.
    pub fn plan_alert(
        &self,
        caller: &Caller,
        subject: AlertSubject,
        change: AlertChange,
    ) -> Result<(AlertRule, Widget)> {
        let dashboard = self.rule_dashboard(caller, &subject.dashboard_id)?;
        let mut faults = Faults::default();
        let widget = faults.take(check_widget(&dashboard, &subject.widget_id));
        if subject.per_tenant && subject.tenant_id.is_some() {
            let message = "per_tenant watches every tenant, and tenant_id names one";
            faults.take::<()>(Err(ApiError::field(Code::InvalidField, "per_tenant", message)));
        }
        let now = self.now_ms();
        let mut rule = AlertRule {
            id: String::new(),
            number: 0,
            environment: caller.environment.id.clone(),
            name: String::new(),
            dashboard_id: subject.dashboard_id,
            widget_id: subject.widget_id,
            condition_type: subject.condition_type,
            operator: None,
            threshold_value: None,
            lookback_minutes: LOOKBACK_MINUTES,
            email_to: Vec::new(),
            webhook_url: None,
            enabled: true,
            tenant_id: subject.tenant_id,
            for_minutes: 0,
            recovery_threshold: None,
            per_tenant: subject.per_tenant,
            webhook_secret: None,
            previous_secret: None,
            locale: Locale::En,
            created_at: now,
            updated_at: now,
        };
        faults.take(self.apply_alert(change, &mut rule));
        faults.end()?;
        let widget = widget.ok_or_else(|| ApiError::not_found("widget"))?;
        Ok((rule, widget))
    }

    /// Makes a rule, enabled unless the request says otherwise, and with the next number of the organisation.
    ///
    /// Errors: those of [`App::plan_alert`]; 409 beyond 10,000 rules of the organisation.
    pub fn create_alert(
        &self,
        caller: &Caller,
        subject: AlertSubject,
        change: AlertChange,
    ) -> Result<Alert> {
        let (mut rule, _) = self.plan_alert(caller, subject, change)?;
        self.org_txn(&caller.org, |txn| {
            if txn.list::<AlertRule>()?.len() >= ALERTS_MAX {
                let message = format!("an organisation has at most {ALERTS_MAX} alert rules");
                return Err(ApiError::new(Code::Conflict, message));
            }
            rule.number = next_number(txn, "alert")?;
            rule.id = rule_id(rule.number);
            txn.put(&rule)?;
            self.audit_alert(txn, caller, &rule, "alert.create")?;
            let status = fresh(rule.id.clone(), None, rule.created_at);
            let new_secret = rule.webhook_secret.clone();
            Ok(Alert { status, rule, tenants: Vec::new(), new_secret })
        })
    }

    /// Changes a rule. When its condition changes or it is switched off, it starts anew.
    ///
    /// A rule that fires and starts anew is `ok` at once, without a notification: nobody knows whether the new condition holds.
    ///
    /// Errors: 404; 400 with all faults; the rule is unchanged then.
    pub fn update_alert(&self, caller: &Caller, number: u64, change: AlertChange) -> Result<Alert> {
        let is_rotated = change.signing.rotate;
        let new_secret = self.org_txn(&caller.org, |txn| {
            let mut rule = found(txn, caller, number)?;
            let before = rule.clone();
            self.apply_alert(change, &mut rule)?;
            let now = self.now_ms();
            if !rule.enabled || condition(&rule) != condition(&before) {
                reset(txn, &rule, now)?;
            }
            if !rule.enabled {
                drop_deliveries(txn.global(), &caller.org, rule.number)?;
            }
            // An evaluation under way must notice the change, also within the same millisecond.
            rule.updated_at = now.max(before.updated_at + 1);
            txn.put(&rule)?;
            self.audit_alert(txn, caller, &rule, "alert.update")?;
            if is_rotated {
                self.audit_alert(txn, caller, &rule, "alert.rotate_secret")?;
            }
            // The secret is answered once, when it was made or replaced; later answers say `webhook_signed` only.
            let is_new = before.webhook_secret != rule.webhook_secret;
            Ok(rule.webhook_secret.filter(|_| is_new))
        })?;
        Ok(Alert { new_secret, ..self.alert(caller, number)? })
    }

    /// Deletes a rule and its events.
    ///
    /// Deliveries that wait are removed from the queue; one that is under way may still arrive.
    ///
    /// Errors: 404 when the environment has no rule of this number.
    pub fn delete_alert(&self, caller: &Caller, number: u64) -> Result<()> {
        self.org_txn(&caller.org, |txn| {
            let rule = found(txn, caller, number)?;
            txn.delete::<AlertRule>(&rule.id);
            txn.delete::<AlertStatus>(&rule.id);
            txn.delete_all_of::<AlertStatus>(&format!("{}:", rule.id));
            txn.delete_all_of::<AlertEvent>(&format!("{}:", rule.id));
            drop_deliveries(txn.global(), &caller.org, rule.number)?;
            self.audit_alert(txn, caller, &rule, "alert.delete")
        })
    }

    fn audit_alert(
        &self,
        txn: &mut OrgTxn<'_>,
        caller: &Caller,
        rule: &AlertRule,
        action: &str,
    ) -> Result<()> {
        let metadata = json!({"name": rule.name, "enabled": rule.enabled});
        self.audit(txn, caller, action, ("alert", &rule.number.to_string()), metadata)
    }

    /// Changes the fields of a rule that a request names, and checks the rule as it is then.
    ///
    /// Errors: all faults at once. `rule` may be half changed after an error, and is not stored.
    fn apply_alert(&self, change: AlertChange, rule: &mut AlertRule) -> Result<()> {
        let mut faults = Faults::default();
        let name = faults.take_some(change.name.map(|name| text::name("name", &name)));
        rule.name = name.unwrap_or_else(|| rule.name.clone());
        rule.operator = change.operator.or(rule.operator);
        rule.threshold_value = change.threshold_value.or(rule.threshold_value);
        if let Some(minutes) = change.lookback_minutes {
            let checked = minutes_within("lookback_minutes", minutes.max(0), LOOKBACK_MINUTES_MAX);
            let minutes = faults.take(checked).unwrap_or_default();
            rule.lookback_minutes = if minutes == 0 { LOOKBACK_MINUTES } else { minutes };
        }
        if let Some(minutes) = change.for_minutes {
            let checked = minutes_within("for_minutes", minutes, FOR_MINUTES_MAX);
            rule.for_minutes = faults.take(checked).unwrap_or_default();
        }
        if let Some(addresses) = change.email_to {
            rule.email_to = faults.take(receivers("email_to", &addresses)).unwrap_or_default();
        }
        if let Some(url) = change.webhook_url {
            rule.webhook_url = faults.take_some(url.map(|url| self.webhook(&url)));
        }
        rule.recovery_threshold = change.recovery_threshold.unwrap_or(rule.recovery_threshold);
        rule.enabled = change.enabled.unwrap_or(rule.enabled);
        rule.locale = change.locale.unwrap_or(rule.locale);
        let (secret, previous) = (&mut rule.webhook_secret, &mut rule.previous_secret);
        faults.take(change.signing.apply(secret, previous, self.now_ms(), &*self.rng));
        if !recovery_fits(rule) {
            let message = "recovery_threshold must lie on the side of threshold_value where the rule \
                           does not fire: not above it for gt and gte, not below it for lt and lte";
            let fault = ApiError::field(Code::InvalidField, "recovery_threshold", message);
            faults.take::<()>(Err(fault));
        }
        if rule.condition_type != ConditionType::NoData {
            for (field, is_there) in [
                ("operator", rule.operator.is_some()),
                ("threshold_value", rule.threshold_value.is_some()),
            ] {
                if !is_there {
                    let message = format!("{field} is required for this condition");
                    faults.take::<()>(Err(ApiError::field(Code::MissingField, field, message)));
                }
            }
        }
        faults.end()
    }
}

/// The fields that decide whether a rule fires: a change of one resets the status.
///
/// The name, the recipients and the secret are not among them: to change these while a rule fires must not notify again.
fn condition(rule: &AlertRule) -> (Option<Operator>, Option<f64>, u32, u32, Option<f64>) {
    let AlertRule { operator, threshold_value, lookback_minutes, .. } = rule;
    (*operator, *threshold_value, *lookback_minutes, rule.for_minutes, rule.recovery_threshold)
}

/// Resets the status of a rule: nothing fires, no value is known.
///
/// `state_since` of a rule that was `ok` stays: it has been calm since then, under either condition.
fn reset(txn: &mut OrgTxn<'_>, rule: &AlertRule, now: i64) -> Result<()> {
    let before: Option<AlertStatus> = txn.find(&rule.id)?;
    let calm = before.filter(|status| status.state == AlertState::Ok);
    let since = calm.map_or(now, |status| status.state_since);
    txn.delete_all_of::<AlertStatus>(&format!("{}:", rule.id));
    txn.put(&fresh(rule.id.clone(), None, since))
}

/// A rule as its readers see it: with its status, and without a replaced secret whose day is over.
fn with_status(reader: &OrgReader, mut rule: AlertRule, now: i64) -> Result<Alert> {
    rule.previous_secret = rule.previous_secret.filter(|previous| previous.signs(now));
    let status = reader.find(&rule.id)?;
    let status = status.unwrap_or_else(|| fresh(rule.id.clone(), None, rule.created_at));
    let tenants = if rule.per_tenant { tenant_statuses(reader, &rule.id)? } else { Vec::new() };
    Ok(Alert { rule, status, tenants, new_secret: None })
}

/// Minutes from 0 to `max`.
///
/// Errors: `out_of_range`, `for_minutes must be between 0 and 1440`.
fn minutes_within(field: &str, minutes: i64, max: i64) -> Result<u32> {
    let within = (0..=max).contains(&minutes).then(|| u32::try_from(minutes).ok()).flatten();
    within.ok_or_else(|| {
        let message = format!("{field} must be between 0 and {max}");
        ApiError::field(Code::OutOfRange, field, message)
    })
}

/// The widget with this id, if it has a number to watch: no text, table or funnel.
fn check_widget(dashboard: &Dashboard, id: &str) -> Result<Widget> {
    let widget = watched_widget(dashboard, id).cloned();
    let widget = widget.ok_or_else(|| ApiError {
        field: Some("widget_id".to_owned()),
        ..ApiError::not_found("widget")
    })?;
    if !has_single_value(&widget.kind) {
        let message = format!("a widget of kind {} has no single value to watch", widget.kind);
        return Err(ApiError::field(Code::InvalidField, "widget_id", message));
    }
    Ok(widget)
}

/// The rule of this number as the transaction has it. Errors: 404, also for a rule of the other environment.
fn found(txn: &OrgTxn<'_>, caller: &Caller, number: u64) -> Result<AlertRule> {
    let found: Option<AlertRule> = txn.find(&rule_id(number))?;
    found.filter(|rule| rule.environment == caller.environment.id).ok_or_else(not_found)
}

fn not_found() -> ApiError {
    ApiError::not_found("alert")
}
