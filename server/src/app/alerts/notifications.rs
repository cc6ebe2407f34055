//! Messages of an alert: the body of its webhook, and its mail.
//!
//! ```text
//! POST https://hooks.acme.com/in/secret
//! Content-Type: application/json
//! X-Service-Alert-Id: 7
//! X-Service-Dashboard-Id: d
//! webhook-id: 0190…
//!
//! {"alert_id": 7, "name": "Too many errors", "dashboard_id": "d", "widget_id": "w",
//!  "condition": {"type": "threshold", "operator": "gt", "value": 1000.0}, "state": "firing", "fired_at": "2026-11-20T10:17:36.789Z"}
//! ```
//!
//! The mail about the same, and the subject of one about several tenants:
//!
//! ```text
//! Firing: Too many errors
//!
//! Its condition holds.
//!
//! Condition: above 1,000
//! Value: 12,345.5
//! Window: 2026-11-20 09:17 UTC to 2026-11-20 10:17 UTC (60 minutes)
//! Widget: Errors on Usage & more
//! Fired at: 2026-11-20 10:17 UTC
//!
//! http://127.0.0.1:8080/console/alerts/7
//!
//! Firing for 122 tenants, resolved for 1 tenant: Too many errors
//! ```

use std::time::Duration;

use askama::Template;
use serde::Serialize;

use crate::{
    app::{
        delivery::{
            mail_words::{MailWords, mail_words},
            rule_fields::signing_secrets,
            signature::signature_headers,
            unsubscribe::MailSource,
        },
        request::context::App,
    },
    base::{instant, locale::Locale, text::one_line},
    error::{ApiError, Result},
    outbound::{Mail, OutboundMessage, Post},
    render::{Spec, full},
    store::{
        AlertRule, AlertState, Channel, ConditionType, Delivery, FurtherChange, Notification,
        Operator, rule_id,
    },
};

/// Content id of the chart in a mail, which the HTML shows as `cid:value`.
const CHART_ID: &str = "value";
/// Tenants that a mail lists, at most; below them stands `and 23 more`.
const TENANTS_SHOWN: usize = 100;
/// Colours of the two states in the HTML: red, green.
const FIRING: &str = "#c62a2f";
const RESOLVED: &str = "#18794e";

/// Time limit of one attempt at a webhook; an attempt that takes longer is repeated like one that was refused.
const WEBHOOK_TIMEOUT: Duration = Duration::from_secs(10);

/// The body of a webhook.
///
/// Fields that do not apply are absent: `resolved_at` of a firing, `tenant_id` of a rule about all tenants together. The value itself is
/// not in it.
#[derive(Serialize)]
struct WebhookBody<'a> {
    alert_id: u64,
    name: &'a str,
    dashboard_id: &'a str,
    widget_id: &'a str,
    condition: Condition,
    state: &'static str,
    fired_at: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    resolved_at: Option<String>,
    /// Only of a rule about one tenant, or about each.
    #[serde(skip_serializing_if = "Option::is_none")]
    tenant_id: Option<&'a str>,
}

/// The condition of the rule, `value` being its threshold; both are null for `no_data`.
#[derive(Serialize)]
struct Condition {
    r#type: ConditionType,
    operator: Option<Operator>,
    value: Option<f64>,
}

/// The body of the webhook for a notification. It is the same at every attempt, so that a signature of it stays one of the same message.
pub fn webhook_body(notification: &Notification) -> Result<Vec<u8>> {
    let body = WebhookBody {
        alert_id: notification.alert,
        name: &notification.name,
        dashboard_id: &notification.dashboard_id,
        widget_id: &notification.widget_id,
        condition: Condition {
            r#type: notification.condition_type,
            operator: notification.operator,
            value: notification.threshold_value,
        },
        state: state_of(notification),
        fired_at: instant::format(notification.fired_at),
        resolved_at: notification.resolved_at.map(instant::format),
        tenant_id: notification.tenant_id.as_deref(),
    };
    serde_json::to_vec(&body).map_err(|error| ApiError::internal(error.to_string()))
}

#[derive(Template)]
#[template(path = "alert.html")]
struct AlertMailHtml<'a> {
    mail: &'a AlertMail,
}

#[derive(Template)]
#[template(path = "alert.txt", escape = "none")]
struct AlertMailText<'a> {
    mail: &'a AlertMail,
}

/// What both parts of a mail say.
struct AlertMail {
    words: &'static MailWords,
    locale: Locale,
    heading: String,
    state: &'static str,
    color: &'static str,
    name: String,
    sentence: String,
    facts: Vec<(&'static str, String)>,
    /// Of a mail about several tenants, each of them, and how many more there are.
    tenants: Vec<TenantLine>,
    left_out: usize,
    /// Whether the mail has a picture of the value.
    has_chart: bool,
    link: String,
    unsubscribe: String,
}

impl AlertMail {
    /// How many tenants are not listed.
    fn more(&self) -> String {
        (self.words.more)(self.left_out)
    }
}

/// What became of one tenant.
struct TenantLine {
    tenant: String,
    state: &'static str,
    value: String,
    link: String,
}

impl App {
    /// The outbound message of a delivery, for an attempt that begins at `at_ms`.
    ///
    /// Made anew at each attempt: the headers have its time and the secrets of then.
    pub fn alert_message(&self, delivery: &Delivery, at_ms: i64) -> Result<OutboundMessage> {
        Ok(match delivery.channel {
            Channel::Webhook => OutboundMessage::Post(self.alert_post(delivery, at_ms)?),
            Channel::Email => {
                let mail = self.alert_mail(delivery)?;
                OutboundMessage::Mail(Box::new(mail))
            }
        })
    }

    /// The POST request of a delivery, for an attempt that begins at `at_ms` (milliseconds since 1970).
    ///
    /// Signed where the rule has a secret, with two signatures for a day after it was replaced. A rule that was deleted signs nothing.
    pub fn alert_post(&self, delivery: &Delivery, at_ms: i64) -> Result<Post> {
        let body = webhook_body(&delivery.notification)?;
        let rule: Option<AlertRule> =
            self.org_reader(&delivery.org).find(&rule_id(delivery.alert))?;
        let secrets = rule.as_ref().map_or_else(Vec::new, |rule| {
            let (secret, previous) =
                (rule.webhook_secret.as_deref(), rule.previous_secret.as_ref());
            signing_secrets(secret, previous, at_ms)
        });
        let mut headers = signature_headers(&secrets, &delivery.id, at_ms, &body);
        headers.push(("x-service-alert-id", delivery.alert.to_string()));
        headers.push(("x-service-dashboard-id", delivery.notification.dashboard_id.clone()));
        Ok(Post {
            url: delivery.to.clone(),
            content_type: "application/json",
            headers,
            body,
            timeout: WEBHOOK_TIMEOUT,
        })
    }

    /// The mail of a delivery, as text and HTML, with a chart where one can be drawn.
    pub fn alert_mail(&self, delivery: &Delivery) -> Result<Mail> {
        let Delivery { id, to, notification, .. } = delivery;
        let rule = (MailSource::Alert, delivery.alert);
        let unsubscribe = self.unsubscribe_url(&delivery.org, rule, to)?;
        let base_url = &self.settings.base_url;
        // A mail about several tenants has no one value that could be drawn.
        let is_of_one = delivery.further.is_empty();
        let chart = is_of_one.then(|| self.alert_chart(delivery)).flatten();
        let content = content(notification, &delivery.further, base_url, unsubscribe.clone());
        let content = AlertMail { has_chart: chart.is_some(), ..content };
        let failed = |error: askama::Error| ApiError::internal(error.to_string());
        Ok(Mail {
            id: id.clone(),
            written_at: notification.resolved_at.unwrap_or(notification.fired_at),
            to: to.clone(),
            subject: content.heading.clone(),
            text: AlertMailText { mail: &content }.render().map_err(failed)?,
            html: AlertMailHtml { mail: &content }.render().map_err(failed)?,
            unsubscribe: Some(unsubscribe),
            picture: chart.map(|chart| (CHART_ID, chart.to_vec())),
            file: None,
        })
    }
}

/// What both parts of a mail say, about one change or about several.
fn content(
    notification: &Notification,
    further: &[FurtherChange],
    base_url: &str,
    unsubscribe: String,
) -> AlertMail {
    if !further.is_empty() {
        return digest(notification, further, base_url, unsubscribe);
    }
    // Names are text of users, and a line break in one would begin another header or another line of the mail.
    let plain = Notification {
        name: one_line(&notification.name),
        dashboard_name: one_line(&notification.dashboard_name),
        widget_title: one_line(&notification.widget_title),
        tenant_id: notification.tenant_id.as_deref().map(one_line),
        ..notification.clone()
    };
    let notification = &plain;
    let words = mail_words(notification.locale);
    let is_firing = notification.state == AlertState::Firing;
    let (state, color) =
        if is_firing { (words.firing, FIRING) } else { (words.resolved, RESOLVED) };
    let value = notification.value.map(|value| shown(notification, value));
    let mut facts = vec![(words.condition, condition(notification, words))];
    facts.extend(value.map(|value| (words.value, value)));
    facts.push((words.window, window(notification, words)));
    facts.extend(notification.tenant_id.clone().map(|tenant| (words.tenant, tenant)));
    let widget = (words.on_dashboard)(&notification.widget_title, &notification.dashboard_name);
    facts.push((words.widget, widget));
    facts.push((words.fired_at, instant::format_minute(notification.fired_at)));
    let resolved_at = notification.resolved_at.map(instant::format_minute);
    facts.extend(resolved_at.map(|at| (words.resolved_at, at)));
    let sentence = match &notification.reason {
        Some(reason) => ended(reason, words),
        None if is_firing => words.holds.to_owned(),
        None => words.holds_no_more.to_owned(),
    };
    let name = match &notification.tenant_id {
        Some(tenant) => format!("{} ({tenant})", notification.name),
        None => notification.name.clone(),
    };
    AlertMail {
        words,
        locale: notification.locale,
        heading: [state, words.colon, &name].concat(),
        state,
        color,
        name: notification.name.clone(),
        sentence,
        facts,
        tenants: Vec::new(),
        left_out: 0,
        has_chart: false,
        link: format!("{base_url}/console/alerts/{}", notification.alert),
        unsubscribe,
    }
}

/// The content of one mail about all tenants whose state an evaluation changed, each with a link to the dashboard of the tenant.
///
/// One that fires decides colour and state of the whole: `Firing for 2 tenants, resolved for 1 tenant: …`.
fn digest(
    first: &Notification,
    further: &[FurtherChange],
    base_url: &str,
    unsubscribe: String,
) -> AlertMail {
    let words = mail_words(first.locale);
    let changes = || {
        let first = (first.tenant_id.as_deref(), first.state, first.value);
        let further = further.iter().map(|one| (one.tenant_id.as_deref(), one.state, one.value));
        std::iter::once(first).chain(further)
    };
    let fires = |state: AlertState| state == AlertState::Firing;
    let firing = changes().filter(|(_, state, _)| fires(*state)).count();
    let resolved = changes().count() - firing;
    let (state, color) =
        if firing > 0 { (words.firing, FIRING) } else { (words.resolved, RESOLVED) };
    let sentence = match (&first.reason, firing, resolved) {
        (Some(reason), ..) => ended(reason, words),
        (None, 0, _) => words.holds_no_more.to_owned(),
        (None, _, 0) => words.holds.to_owned(),
        _ => words.holds_for_some.to_owned(),
    };
    let line = |(tenant, state, value): (Option<&str>, AlertState, Option<f64>)| {
        let tenant = tenant.unwrap_or_default();
        let query =
            form_urlencoded::Serializer::new(String::new()).append_pair("tenant", tenant).finish();
        TenantLine {
            tenant: one_line(tenant),
            state: if fires(state) { words.firing_in_list } else { words.resolved_in_list },
            value: value.map_or(String::new(), |value| shown(first, value)),
            link: format!("{base_url}/console/dashboards/{}?{query}", first.dashboard_id),
        }
    };
    let name = one_line(&first.name);
    let (widget, dashboard) = (one_line(&first.widget_title), one_line(&first.dashboard_name));
    AlertMail {
        words,
        locale: first.locale,
        heading: [&(words.counts)(firing, resolved), words.colon, &name].concat(),
        state,
        color,
        name,
        sentence,
        facts: vec![
            (words.condition, condition(first, words)),
            (words.window, window(first, words)),
            (words.widget, (words.on_dashboard)(&widget, &dashboard)),
        ],
        tenants: changes().take(TENANTS_SHOWN).map(line).collect(),
        left_out: changes().count().saturating_sub(TENANTS_SHOWN),
        has_chart: false,
        link: format!("{base_url}/console/alerts/{}", first.alert),
        unsubscribe,
    }
}

/// Why a rule ended that did not recover. The reason is stored in English.
fn ended(reason: &str, words: &MailWords) -> String {
    let english = mail_words(Locale::En);
    (words.ended)(match reason {
        reason if reason == english.dashboard_deleted => words.dashboard_deleted,
        reason if reason == english.widget_deleted => words.widget_deleted,
        other => other,
    })
}

/// The window in words: `2026-11-20 09:17 UTC to 2026-11-20 10:17 UTC (60 minutes)`.
fn window(notification: &Notification, words: &MailWords) -> String {
    let (from, to) = (notification.window_from, notification.window_to);
    let minutes = (to - from) / 60_000;
    (words.window_of)(&instant::format_minute(from), &instant::format_minute(to), minutes)
}

/// A value or a threshold, to at most two decimal places, six below 1: `12,345.5`, `0.9995`, or `−20%` of a change.
fn shown(notification: &Notification, value: f64) -> String {
    let places = if value.abs() < 1.0 { 6 } else { 2 };
    let locale = notification.locale;
    let (value, spec) = match notification.condition_type {
        ConditionType::Delta => (value / 100.0, Spec::percent(locale)),
        _ => (value, Spec::plain(locale)),
    };
    full(Some(value), &spec.with_decimals(places))
}

/// A condition in words: `above 1,000`, `change below −20% against the window before`, `no events`.
fn condition(notification: &Notification, words: &MailWords) -> String {
    let threshold = notification.threshold_value.map(|value| shown(notification, value));
    match (notification.condition_type, notification.operator.zip(threshold)) {
        (ConditionType::NoData, _) | (_, None) => words.no_events.to_owned(),
        (ConditionType::Threshold, Some((operator, value))) => {
            words.compared.with(operator, &value)
        }
        (ConditionType::Delta, Some((operator, value))) => (words.changed)(operator, &value),
    }
}

/// The state as the API names it: what is `ok` in a status was resolved in a notification.
fn state_of(notification: &Notification) -> &'static str {
    match notification.state {
        AlertState::Firing => "firing",
        AlertState::Ok => "resolved",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::app::Client;

    fn notification() -> Notification {
        Notification {
            alert: 7,
            name: "Too many <errors>\r\nBcc: x@y.example".to_owned(),
            dashboard_id: "d".to_owned(),
            dashboard_name: "Usage & more".to_owned(),
            widget_id: "w".to_owned(),
            widget_title: "Errors".to_owned(),
            condition_type: ConditionType::Threshold,
            operator: Some(Operator::Gt),
            threshold_value: Some(1_000.0),
            state: AlertState::Firing,
            fired_at: 1_795_169_856_789,
            resolved_at: None,
            tenant_id: None,
            value: Some(12_345.5),
            window_from: 1_795_166_256_789,
            window_to: 1_795_169_856_789,
            reason: None,
            locale: Locale::En,
        }
    }

    #[test]
    fn a_webhook_tells_what_the_specification_names() {
        let body: serde_json::Value =
            serde_json::from_slice(&webhook_body(&notification()).unwrap()).unwrap();
        let expected = serde_json::json!({
            "alert_id": 7, "name": notification().name, "dashboard_id": "d", "widget_id": "w",
            "condition": {"type": "threshold", "operator": "gt", "value": 1000.0},
            "state": "firing", "fired_at": "2026-11-20T10:17:36.789Z",
        });
        assert_eq!(body, expected);
        let resolved = Notification {
            state: AlertState::Ok,
            resolved_at: Some(1_795_170_000_000),
            tenant_id: Some("acme".to_owned()),
            ..notification()
        };
        let body: serde_json::Value =
            serde_json::from_slice(&webhook_body(&resolved).unwrap()).unwrap();
        assert_eq!((&body["state"], &body["tenant_id"]), (&"resolved".into(), &"acme".into()));
        assert_eq!(body["resolved_at"], "2026-11-20T10:20:00.000Z");
        assert_eq!(body["fired_at"], expected["fired_at"]);
    }

    #[test]
    fn a_mail_tells_value_condition_window_and_link() {
        let app = App::in_memory();
        let password = "correct horse battery";
        let made = app.register("a@b.example", password, "A", "A", Client::default()).unwrap();
        let delivery = Delivery {
            id: "id".to_owned(),
            org: made.org.id,
            due_at: 0,
            is_leased: false,
            attempt: 1,
            channel: Channel::Email,
            to: "ops@acme.example".to_owned(),
            alert: 7,
            event: String::new(),
            notification: notification(),
            retry: 0,
            further: Vec::new(),
        };
        let mail = app.alert_mail(&delivery).unwrap();
        let unsubscribe = mail.unsubscribe.as_deref().unwrap();
        assert!(unsubscribe.starts_with("http://127.0.0.1:8080/v1/unsubscribe?token="));
        for part in [
            "above 1,000",
            "12,345.5",
            "2026-11-20 09:17 UTC to 2026-11-20 10:17 UTC (60 minutes)",
            "http://127.0.0.1:8080/console/alerts/7",
            unsubscribe,
        ] {
            assert!(mail.text.contains(part) && mail.html.contains(part), "{part}\n{}", mail.text);
        }
        assert!(mail.text.contains("Usage & more"));
        assert!(!mail.html.contains("<errors>") && !mail.html.contains("Usage & more"));

        let of = |tenant: &str, state, value| FurtherChange {
            tenant_id: Some(tenant.to_owned()),
            state,
            value: Some(value),
        };
        let mut further =
            vec![of("<b>&co", AlertState::Firing, 7.0), of("calm", AlertState::Ok, 1.0)];
        further.extend((0..120).map(|n| of(&format!("t{n}"), AlertState::Firing, 9.0)));
        let notification = Notification { tenant_id: Some("first".to_owned()), ..notification() };
        let mail = app.alert_mail(&Delivery { notification, further, ..delivery }).unwrap();
        assert!(
            mail.subject.starts_with("Firing for 122 tenants, resolved for 1 tenant: Too many")
        );
        assert!(mail.text.contains("calm: resolved, 1") && mail.text.contains("t96: firing, 9"));
        assert!(!mail.text.contains("t97:") && mail.text.contains("and 23 more"), "{}", mail.text);
        assert!(mail.html.contains("/console/dashboards/d?tenant=%3Cb%3E%26co"), "{}", mail.html);
        assert!(!mail.html.contains("<b>&co"));
    }

    #[test]
    fn a_mail_is_in_the_language_of_its_rule() {
        let mail = |locale, condition_type, threshold| {
            let notification = Notification {
                name: "Errors".to_owned(),
                locale,
                condition_type,
                threshold_value: Some(threshold),
                ..notification()
            };
            content(&notification, &[], "http://x", String::new())
        };
        let of = |locale| {
            let mail = mail(locale, ConditionType::Threshold, 1_000.0);
            (mail.heading, mail.facts[0].1.clone(), mail.facts[1].1.clone())
        };
        let texts = |all: [&str; 3]| (all[0].to_owned(), all[1].to_owned(), all[2].to_owned());
        assert_eq!(of(Locale::En), texts(["Firing: Errors", "above 1,000", "12,345.5"]));
        assert_eq!(of(Locale::De), texts(["Ausgelöst: Errors", "über 1.000", "12.345,5"]));
        let french = ["Déclenchée\u{a0}: Errors", "supérieur à 1\u{202f}000", "12\u{202f}345,5"];
        assert_eq!(of(Locale::Fr), texts(french));
        assert_eq!(of(Locale::Ja), texts(["発生: Errors", "1,000 より大きい", "12,345.5"]));
        let delta = mail(Locale::De, ConditionType::Delta, -20.0).facts[0].1.clone();
        assert_eq!(delta, "Änderung über −20\u{a0}% gegenüber dem Zeitfenster davor");
        let delta = mail(Locale::Fr, ConditionType::Delta, 12.25).facts[0].1.clone();
        assert!(delta.starts_with("évolution supérieure à 12,25\u{a0}%"), "{delta}");
        for (threshold, text) in
            [(0.9995, "above 0.9995"), (0.001_234, "above 0.001234"), (-0.0, "above 0")]
        {
            let mail = mail(Locale::En, ConditionType::Threshold, threshold);
            assert_eq!(mail.facts[0].1, text);
        }
        let reason = Some("the widget was deleted".to_owned());
        let gone = Notification { locale: Locale::Fr, reason, ..notification() };
        let sentence = content(&gone, &[], "http://x", String::new()).sentence;
        assert!(sentence.contains("le widget a été supprimé"), "{sentence}");
    }
}
