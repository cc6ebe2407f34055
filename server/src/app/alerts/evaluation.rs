//! Evaluation of alert rules: a query for each value that a rule watches, and a transaction that stores what follows.
//!
//! The queries take no lock and may be slow; the transaction is short and for many rules, and decides with the status as it is
//! then. A rule that was changed between the two is evaluated again at its next turn.
//!
//! ```text
//! check_alert("0190…", "00000000000000000007")                 reads rule, dashboard and events; nothing is locked
//!     Values([acme: 1,204, globex: 3, initech: error])         a rule that watches each tenant, in up to 10 seconds
//!     Gone("the widget was deleted")                           the rule is disabled, its firing ends with this reason
//!     Fault("a widget of kind table has no single value …")    the status gets last_error, and keeps its state
//! commit_checks([…])                                           one transaction for the checks of many rules
//!     alert_status/…:YWNtZQ     ok → firing                    an event, a webhook in the queue
//!     alert_status/…            firing, last_value 1           the number of tenants that fire
//!     a mail to each address, with the changes of all tenants
//! ```

use std::{
    cell::{Cell, RefCell},
    collections::BTreeSet,
    time::{Duration, Instant},
};

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use serde_json::json;

use super::state::{Change, fresh, is_due, next_state, percent_change, phase};
use crate::{
    app::{
        dashboards::widgets::watch_ask,
        delivery::queue::pending,
        request::{callers::system_caller, context::App},
    },
    error::{ApiError, Code, Result},
    store::{
        AlertEvent, AlertRule, AlertState, AlertStatus, Channel, ConditionType, Dashboard,
        Environment, Notification, Org, OrgReader, OrgTxn, Widget, global_ids,
    },
};

const MINUTE_MS: i64 = 60_000;
/// Webhooks that one evaluation of a rule enqueues, at most. Its mails are one for each address.
const WEBHOOKS_AT_ONCE: usize = 1_000;
/// Time for the values of all tenants of a rule: tenants beyond it get an error, and keep their state.
const LOOK_MAX: Duration = Duration::from_secs(10);
/// Tenants that one rule watches, at most: those with most events. As many that fire are watched beside them.
const TENANTS_MAX: usize = 1_000;
/// A tenant is watched when it has an event in this time, or in the window of the rule if that is longer.
pub const TENANT_SEEN_MS: i64 = 7 * 86_400_000;

/// The outcome of one evaluation of a rule, which is not stored yet.
#[derive(Debug)]
pub struct Check {
    org: String,
    /// The rule as it was when it was evaluated; one with another `updated_at` in the store discards this outcome.
    rule: AlertRule,
    environment: Environment,
    dashboard_name: String,
    widget_title: String,
    /// End of the window, in milliseconds since 1970.
    at: i64,
    found: Found,
    /// Webhooks that were enqueued because of it; counted anew when the transaction is repeated.
    webhooks: Cell<usize>,
    /// Changes for its mails, each with the id of its event; the first is the one that has the mails' status.
    mails: RefCell<Vec<(String, Notification)>>,
}

/// What an evaluation found.
#[derive(Debug)]
enum Found {
    /// The dashboard or the widget was deleted: `the widget was deleted`.
    Gone(&'static str),
    /// No value could be computed: `the query took too long`, for example. The state stays.
    Fault(String),
    /// One value, or one for each tenant.
    Values(Vec<Seen>),
}

/// A value that was computed; with its tenant, of a rule that watches each.
#[derive(Debug)]
struct Seen {
    tenant: Option<String>,
    value: Result<Option<f64>, String>,
}

impl App {
    /// Enabled or not, the rules whose turn comes in the seconds after `last_s` up to `now_s`, with
    /// their organisations.
    ///
    /// `[("<org>", "00000000000000000007"), …]`. Whether a rule is enabled, [`App::check_alert`] reads: ids alone need no decoding.
    pub fn due_alerts(&self, last_s: i64, now_s: i64, interval_s: i64) -> Vec<(String, String)> {
        let mut due = global_ids::<AlertRule>(&self.engine.keys());
        due.retain(|(org, id)| is_due(phase(org, id, interval_s), last_s, now_s, interval_s));
        due
    }

    /// Evaluates a rule at the present. `None` for a rule that is disabled or gone, or whose environment is.
    ///
    /// Errors: a record that cannot be read. A query that fails is an outcome, not an error.
    pub fn check_alert(&self, org: &str, id: &str) -> Result<Option<Check>> {
        let reader = self.org_reader(org);
        let rule: Option<AlertRule> = reader.find(id)?;
        let Some(rule) = rule.filter(|rule| rule.enabled) else { return Ok(None) };
        let at = self.now_ms();
        let organisation: Option<Org> = reader.find(org)?;
        let environment =
            organisation.and_then(|org| org.environment_by_id(&rule.environment).cloned());
        let Some(environment) = environment else { return Ok(None) };
        let dashboard: Option<Dashboard> = reader.find(&rule.dashboard_id)?;
        let mut check = Check {
            org: org.to_owned(),
            environment,
            dashboard_name: String::new(),
            widget_title: String::new(),
            at,
            found: Found::Gone("the dashboard was deleted"),
            webhooks: Cell::new(0),
            mails: RefCell::default(),
            rule,
        };
        let Some(dashboard) = dashboard else { return Ok(Some(check)) };
        check.dashboard_name.clone_from(&dashboard.shown().name);
        let Some(widget) = watched_widget(&dashboard, &check.rule.widget_id) else {
            check.found = Found::Gone("the widget was deleted");
            return Ok(Some(check));
        };
        check.widget_title.clone_from(&widget.title);
        if !has_single_value(&widget.kind) {
            let message = format!("a widget of kind {} has no single value to watch", widget.kind);
            check.found = Found::Fault(message);
            return Ok(Some(check));
        }
        check.found = match self.look(org, &check.rule, &check.environment, widget, at) {
            Ok(values) => Found::Values(values),
            Err(error) => Found::Fault(told(&error)),
        };
        Ok(Some(check))
    }

    /// The value of a rule at `at`, or one for each of its tenants.
    ///
    /// Errors: the query of a rule with one value, and the list of tenants; a fault of one tenant is in its [`Seen`].
    fn look(
        &self,
        org: &str,
        rule: &AlertRule,
        environment: &Environment,
        widget: &Widget,
        at: i64,
    ) -> Result<Vec<Seen>> {
        let namespace = environment.namespace();
        if !rule.per_tenant {
            let tenant = rule.tenant_id.as_deref();
            let value = self.watched_value(namespace, rule, widget, tenant, at)?;
            return Ok(vec![Seen { tenant: None, value: Ok(value) }]);
        }
        let (began, mut seen) = (Instant::now(), Vec::new());
        for tenant in self.watched_tenants(org, rule, environment, at)? {
            // One tenant's trouble is not that of the others; the time of all is bounded.
            let value = if began.elapsed() < LOOK_MAX {
                let value = self.watched_value(namespace, rule, widget, Some(&tenant), at);
                value.map_err(|error| told(&error))
            } else {
                Err("looking at all tenants takes too long".to_owned())
            };
            seen.push(Seen { tenant: Some(tenant), value });
        }
        Ok(seen)
    }

    /// Tenants with events lately, the 1,000 with most of them, and those that fire: one that sends nothing any more must recover.
    fn watched_tenants(
        &self,
        org: &str,
        rule: &AlertRule,
        environment: &Environment,
        at: i64,
    ) -> Result<BTreeSet<String>> {
        let from = at - TENANT_SEEN_MS.max(window_ms(rule));
        let control = self.query_control();
        let mut tenants = self.engine.tenants(environment.namespace(), from, at, &control)?;
        tenants.truncate(TENANTS_MAX);
        let firing = tenant_statuses(&self.org_reader(org), &rule.id)?;
        let firing = firing.into_iter().filter(|status| status.state == AlertState::Firing);
        let firing = firing.filter_map(|status| status.tenant_id).take(TENANTS_MAX);
        Ok(tenants.into_iter().map(|(tenant, _)| tenant).chain(firing).collect())
    }

    /// What a rule's condition is about, over the window that ends at an instant: the widget's
    /// metric of all groups together, its change in percent, or the number of its events.
    ///
    /// `tenant` narrows it to one; `None` are all tenants of the namespace together. `None` as a result is a missing value: an average of
    /// nothing, or a change from 0.
    ///
    /// Errors: those of the query, such as `query_timeout`.
    pub fn watched_value(
        &self,
        namespace: inlay_engine::Namespace,
        rule: &AlertRule,
        widget: &Widget,
        tenant: Option<&str>,
        at: i64,
    ) -> Result<Option<f64>> {
        let length = window_ms(rule);
        let value = |from: i64, to: i64| -> Result<Option<f64>> {
            let mut ask = watch_ask(widget, tenant, (from, to))?;
            if rule.condition_type == ConditionType::NoData {
                // The widget may ask for a sum; what is counted are the events that it would sum.
                (ask.metric, ask.numeric_prop) = ("count".to_owned(), None);
            }
            let answer = self.answer(namespace, &ask)?;
            Ok(answer.rows.first().and_then(|row| row.value.as_f64()))
        };
        let now = value(at - length, at)?;
        Ok(match rule.condition_type {
            ConditionType::Delta => percent_change(value(at - 2 * length, at - length)?, now),
            _ => now,
        })
    }

    /// Stores outcomes with what follows from them, in one transaction; each by itself when that fails, so that a rule with a broken record
    /// does not hold up the others.
    ///
    /// Errors: the first of those that could not be stored alone; all others are stored.
    pub fn commit_checks(&self, checks: &[Check]) -> Result<()> {
        if checks.len() > 1 && self.commit_together(checks).is_err() {
            let each = checks.iter().map(|check| self.commit_together(std::slice::from_ref(check)));
            return each.fold(Ok(()), Result::and);
        }
        self.commit_together(checks)
    }

    fn commit_together(&self, checks: &[Check]) -> Result<()> {
        if checks.is_empty() {
            return Ok(());
        }
        self.engine.transact(|txn| {
            for check in checks {
                // These were filled by the transaction of all, if it failed.
                check.webhooks.set(0);
                check.mails.take();
                let mut records = OrgTxn::new(txn, &check.org);
                let rule: Option<AlertRule> = records.find(&check.rule.id)?;
                // What was changed or deleted meanwhile was not looked at.
                if rule.is_some_and(|rule| rule.enabled && rule.updated_at == check.rule.updated_at)
                {
                    self.commit_check(&mut records, check)?;
                    let changes = check.mails.take();
                    self.enqueue_mails(&mut records, &check.org, &check.rule, &changes)?;
                }
            }
            Ok(())
        })
    }

    /// Stores the outcome of one rule: its status, and of each tenant that changed.
    fn commit_check(&self, records: &mut OrgTxn<'_>, check: &Check) -> Result<()> {
        let rule = &check.rule;
        let overall = find_status(records, &rule.id, rule.created_at)?;
        match &check.found {
            Found::Gone(reason) => self.end_rule(records, check, reason),
            Found::Fault(message) => records.put(&AlertStatus {
                last_error: Some(message.clone()),
                last_evaluated_at: Some(check.at),
                ..overall
            }),
            Found::Values(values) if !rule.per_tenant => {
                let Some(seen) = values.first() else { return Ok(()) };
                self.apply(records, check, overall, seen).map(|_| ())
            }
            Found::Values(values) => {
                let (mut firing, mut faults) = (0_u32, Vec::new());
                for seen in values {
                    faults.extend(seen.value.as_ref().err());
                    let tenant = seen.tenant.as_deref().unwrap_or_default();
                    let id = status_id(&rule.id, tenant);
                    let found = records.find(&id)?;
                    let status = found.unwrap_or_else(|| fresh(id, seen.tenant.clone(), check.at));
                    let state = self.apply(records, check, status, seen)?;
                    firing += u32::from(state == AlertState::Firing);
                }
                let state = if firing > 0 { AlertState::Firing } else { AlertState::Ok };
                let since = if state == overall.state { overall.state_since } else { check.at };
                records.put(&AlertStatus {
                    state,
                    state_since: since,
                    last_value: Some(firing.into()),
                    last_evaluated_at: Some(check.at),
                    last_error: faults.first().map(|first| {
                        format!("{} of {} tenants: {first}", faults.len(), values.len())
                    }),
                    ..overall
                })
            }
        }
    }

    /// Applies one value to one status; returns the state after it.
    fn apply(
        &self,
        records: &mut OrgTxn<'_>,
        check: &Check,
        status: AlertStatus,
        seen: &Seen,
    ) -> Result<AlertState> {
        let value = match &seen.value {
            Ok(value) => *value,
            Err(fault) => {
                let state = status.state;
                let (last_error, last_evaluated_at) = (Some(fault.clone()), Some(check.at));
                records.put(&AlertStatus { last_error, last_evaluated_at, ..status })?;
                return Ok(state);
            }
        };
        let slack_ms = self.settings.alert_interval_s * 500;
        let (next, change) = next_state(&check.rule, &status, value, check.at, slack_ms);
        // Of a tenant among many a status is written only when it changes: a thousand writes a minute would say nothing but the time, which
        // the status of the rule has.
        let last_evaluated_at = next.last_evaluated_at;
        let is_same =
            status.tenant_id.is_some() && next == AlertStatus { last_evaluated_at, ..status };
        if !is_same {
            records.put(&next)?;
        }
        if let Some(change) = change {
            self.tell(records, check, &next, change, value, None)?;
        }
        Ok(next.state)
    }

    /// Ends a rule whose dashboard or widget is gone: what fires is resolved with a reason, and the rule is disabled, by the system
    /// (`{"type": "system", "id": "alerts"}` in the audit).
    fn end_rule(&self, records: &mut OrgTxn<'_>, check: &Check, reason: &str) -> Result<()> {
        let mut statuses: Vec<AlertStatus> = records.list_of(&format!("{}:", check.rule.id))?;
        statuses.push(find_status(records, &check.rule.id, check.rule.created_at)?);
        for status in statuses {
            let is_overall = status.id == check.rule.id;
            let next = AlertStatus {
                state: AlertState::Ok,
                state_since: if status.state == AlertState::Ok {
                    status.state_since
                } else {
                    check.at
                },
                pending_since: None,
                last_error: Some(reason.to_owned()),
                last_evaluated_at: Some(check.at),
                ..status.clone()
            };
            records.put(&next)?;
            if status.state == AlertState::Firing && !(check.rule.per_tenant && is_overall) {
                let change = Change::Resolved { fired_at: status.state_since };
                self.tell(records, check, &next, change, None, Some(reason))?;
            }
        }
        let rule = AlertRule { enabled: false, updated_at: check.at, ..check.rule.clone() };
        records.put(&rule)?;
        let caller = system_caller(&check.org, &check.environment, ("alerts", "alerts"));
        let metadata = json!({"name": rule.name, "enabled": false, "reason": reason});
        let number = rule.number.to_string();
        self.audit(records, &caller, "alert.update", ("alert", &number), metadata)
    }

    /// Stores the event of a change, enqueues its webhook, and adds it to the mails of this evaluation.
    ///
    /// The second tenant that changes in one evaluation has no mails of its own: `mails_with` names the event whose mails list it, too.
    fn tell(
        &self,
        records: &mut OrgTxn<'_>,
        check: &Check,
        status: &AlertStatus,
        change: Change,
        value: Option<f64>,
        reason: Option<&str>,
    ) -> Result<()> {
        let rule = &check.rule;
        let (fired_at, resolved_at) = match change {
            Change::Fired => (check.at, None),
            Change::Resolved { fired_at } => (fired_at, Some(check.at)),
        };
        let notification = Notification {
            alert: rule.number,
            name: rule.name.clone(),
            dashboard_id: rule.dashboard_id.clone(),
            dashboard_name: check.dashboard_name.clone(),
            widget_id: rule.widget_id.clone(),
            widget_title: check.widget_title.clone(),
            condition_type: rule.condition_type,
            operator: rule.operator,
            threshold_value: rule.threshold_value,
            state: status.state,
            fired_at,
            resolved_at,
            tenant_id: status.tenant_id.clone().or_else(|| rule.tenant_id.clone()),
            value,
            window_from: check.at - window_ms(rule),
            window_to: check.at,
            reason: reason.map(str::to_owned),
            locale: check.rule.locale,
        };
        let id = format!("{}:{}", rule.id, self.new_id());
        let room = WEBHOOKS_AT_ONCE.saturating_sub(check.webhooks.get());
        let message = (id.as_str(), &notification);
        let webhook = self.enqueue_webhook(records, &check.org, rule, message, room)?;
        check.webhooks.set(check.webhooks.get() + usize::from(webhook.is_some()));
        let has_mails = !rule.email_to.is_empty();
        let mails_with = check.mails.borrow().first().map(|(first, _)| first.clone());
        let mails_with = mails_with.filter(|_| has_mails);
        let own_mails = if mails_with.is_none() { rule.email_to.as_slice() } else { &[] };
        let mails = own_mails.iter().map(|to| pending(Channel::Email, to));
        let deliveries = mails.chain(webhook).collect();
        check.mails.borrow_mut().push((id.clone(), notification.clone()));
        records.put(&AlertEvent {
            id,
            state: status.state,
            value,
            threshold_value: rule.threshold_value,
            window_from: notification.window_from,
            window_to: notification.window_to,
            tenant_id: status.tenant_id.clone(),
            reason: notification.reason,
            deliveries,
            mails_with,
            created_at: check.at,
        })
    }
}

/// Why a value could not be computed, as `last_error` of the rule: faults of ours without details.
fn told(error: &ApiError) -> String {
    match error.code {
        Code::Internal => "the server could not look at it; its log says why".to_owned(),
        _ => error.to_string(),
    }
}

/// Whether a widget of this kind has one number that can be watched.
///
/// `line`, `bar`, `number` and the like have: the metric over the window, of all groups together.
pub fn has_single_value(kind: &str) -> bool {
    !matches!(kind, "text" | "table" | "funnel")
}

/// The widget that a rule watches: as embeds show it, or in the draft while they do not.
///
/// A widget that was removed from the draft is watched for as long as the published snapshot has it.
pub fn watched_widget<'a>(dashboard: &'a Dashboard, id: &str) -> Option<&'a Widget> {
    let shown = dashboard.shown().widgets.iter().chain(&dashboard.draft.widgets);
    shown.into_iter().find(|widget| widget.id == id)
}

/// Length of a rule's window in milliseconds: 3,600,000 of 60 minutes.
pub fn window_ms(rule: &AlertRule) -> i64 {
    i64::from(rule.lookback_minutes) * MINUTE_MS
}

/// The statuses of the tenants that a rule watches, those that fire first, then by name.
pub fn tenant_statuses(reader: &OrgReader, rule: &str) -> Result<Vec<AlertStatus>> {
    let mut statuses: Vec<AlertStatus> = reader.list_of(&format!("{rule}:"))?;
    statuses.sort_by(|a, b| {
        let calm = |status: &AlertStatus| status.state == AlertState::Ok;
        calm(a).cmp(&calm(b)).then_with(|| a.tenant_id.cmp(&b.tenant_id))
    });
    Ok(statuses)
}

/// Id of the status of one tenant: `00000000000000000007:YWNtZQ` of `acme`. A name may hold a slash, which an id must not.
fn status_id(rule: &str, tenant: &str) -> String {
    format!("{rule}:{}", URL_SAFE_NO_PAD.encode(tenant))
}

/// The stored status of a rule, or that of one which was never evaluated.
fn find_status(records: &OrgTxn<'_>, rule: &str, created_at: i64) -> Result<AlertStatus> {
    Ok(records.find(rule)?.unwrap_or_else(|| fresh(rule.to_owned(), None, created_at)))
}
