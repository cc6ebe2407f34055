//! `/v1/alerts`: rules, and what became of them.
//!
//! A rule watches one widget of a dashboard. Making one, as an admin:
//!
//! ```text
//! POST /v1/alerts
//! {"dashboard_id": "01a21f85-7783-…", "widget_id": "calls", "name": "Too many errors", "condition_type": "threshold",
//!  "operator": "gt", "threshold_value": 1, "lookback_minutes": 10080, "email_to": ["ops@acme.example"],
//!  "webhook_url": "https://hooks.acme.com/in/secret", "webhook_signed": true}
//!
//! 201 {"id":1,"name":"Too many errors","condition_type":"threshold","operator":"gt","threshold_value":1.0,"lookback_minutes":10080,
//!      "email_to":["ops@acme.example"],"webhook_url":"https://hooks.acme.com/in/secret","enabled":true,"per_tenant":false,
//!      "webhook_signed":true,"webhook_secret":"whsec_8OabDEJVMb8gafn/duaXREWLduuIRWaMMtJmknB+r/Q=","state":"ok",…}
//! ```
//!
//! Without operator and threshold both are named at once:
//!
//! ```text
//! 400 {"code":"missing_field","field":"operator","error":"operator is required for this condition",
//!      "details":[{"field":"operator",…},{"field":"threshold_value","message":"threshold_value is required for this condition",…}],…}
//! ```
//!
//! Rules have numbers, counted by organisation: people name them in mails and in `X-Service-Alert-Id`.

use axum::extract::State;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::view::{Name, Time, present, recipient_view};
use crate::{
    app::{Alert, AlertChange, AlertSubject, Caller, SigningChange, masked_email, masked_url},
    base::locale::Locale,
    error::Result,
    http::{
        extract::{AlertId, Body, Page, Params},
        respond::{Answer, Created, List, NoContent},
        state::context::Http,
    },
    store::{AlertEvent, AlertState, AlertStatus, ConditionType, Operator, RecipientStatus},
};

/// Tenants of a rule that are listed with it.
const TENANTS_SHOWN: usize = 100;

// Doc comments of the types below are descriptions in the OpenAPI document.
/// A rule to make.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct CreateAlert {
    #[schema(format = Uuid, example = "0190aaaa-0000-7000-8000-000000000000")]
    dashboard_id: String,
    #[schema(example = "calls")]
    widget_id: String,
    #[schema(value_type = Name, example = "Too many errors")]
    name: String,
    condition_type: ConditionType,
    /// Required unless the condition is `no_data`.
    operator: Option<Operator>,
    /// Required unless the condition is `no_data`; percent for `delta`.
    #[schema(example = 100)]
    threshold_value: Option<f64>,
    /// Length of the window; 60 when absent or not above 0.
    #[schema(maximum = 129600, example = 60)]
    lookback_minutes: Option<i64>,
    /// Who gets mail.
    #[serde(default)]
    #[schema(max_items = 50, example = json!(["ops@acme.example"]))]
    email_to: Vec<String>,
    /// Where it is posted.
    #[schema(max_length = 2048, example = "https://hooks.acme.com/in/secret")]
    webhook_url: Option<String>,
    enabled: Option<bool>,
    /// One tenant; all of the environment without it.
    #[schema(min_length = 1, max_length = 256)]
    tenant_id: Option<String>,
    /// How long the condition must hold before it fires.
    #[schema(minimum = 0, maximum = 1440)]
    for_minutes: Option<i64>,
    /// The value at which it recovers, when it is not the threshold.
    recovery_threshold: Option<f64>,
    /// Watches each tenant by himself; every one fires and recovers alone.
    #[serde(default)]
    per_tenant: bool,
    /// Language of its mails: `en` without it.
    locale: Option<Locale>,
    /// Signs its webhooks; the answer then has the secret.
    webhook_signed: Option<bool>,
}

/// What to change of a rule; absent parts stay.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct UpdateAlert {
    #[schema(value_type = Option<Name>)]
    name: Option<String>,
    enabled: Option<bool>,
    operator: Option<Operator>,
    threshold_value: Option<f64>,
    #[schema(maximum = 129600)]
    lookback_minutes: Option<i64>,
    #[schema(max_items = 50)]
    email_to: Option<Vec<String>>,
    /// Null ends it.
    #[serde(default, deserialize_with = "present")]
    #[schema(value_type = Option<String>, max_length = 2048)]
    webhook_url: Option<Option<String>>,
    #[schema(minimum = 0, maximum = 1440)]
    for_minutes: Option<i64>,
    /// Null is the threshold.
    #[serde(default, deserialize_with = "present")]
    #[schema(value_type = Option<f64>)]
    recovery_threshold: Option<Option<f64>>,
    /// Language of its mails; null leaves it.
    locale: Option<Locale>,
    /// True makes a secret when there is none, which the answer has; false ends it.
    webhook_signed: Option<bool>,
    /// True replaces the secret by a new one, which the answer has. The one before signs beside it for 24 hours.
    #[serde(default)]
    rotate_webhook_secret: bool,
}

/// A rule with its state.
#[derive(Serialize, ToSchema)]
#[schema(as = Alert)]
pub struct AlertView {
    #[schema(example = 1)]
    id: u64,
    #[schema(format = Uuid)]
    dashboard_id: String,
    widget_id: String,
    name: String,
    condition_type: ConditionType,
    #[schema(required = false)]
    operator: Option<Operator>,
    threshold_value: Option<f64>,
    lookback_minutes: u32,
    /// Masked for viewers and editors.
    email_to: Vec<String>,
    /// Without its path for viewers and editors.
    webhook_url: Option<String>,
    enabled: bool,
    tenant_id: Option<String>,
    for_minutes: u32,
    recovery_threshold: Option<f64>,
    per_tenant: bool,
    /// Language of its mails.
    locale: Locale,
    webhook_signed: bool,
    /// What its webhooks are signed with, in the answer that made it and never again.
    #[serde(skip_serializing_if = "Option::is_none")]
    webhook_secret: Option<String>,
    /// Until when the secret before it signs, too.
    #[serde(skip_serializing_if = "Option::is_none")]
    previous_secret_until: Option<Time>,
    state: AlertState,
    state_since: Time,
    /// The value that was seen last; of a rule per tenant, how many fire.
    last_value: Option<f64>,
    last_evaluated_at: Option<Time>,
    last_error: Option<String>,
    /// Tenants that are watched, those that fire first, up to 100; only of a rule per tenant.
    #[serde(skip_serializing_if = "Option::is_none")]
    tenants: Option<Vec<TenantView>>,
    created_at: Time,
    updated_at: Time,
}

/// How one tenant of a rule per tenant is.
#[derive(Serialize, ToSchema)]
#[schema(as = AlertTenant)]
pub struct TenantView {
    tenant_id: String,
    state: AlertState,
    state_since: Time,
    last_value: Option<f64>,
}

/// A firing or a resolution.
#[derive(Serialize, ToSchema)]
#[schema(as = AlertEvent)]
pub struct AlertEventView {
    #[schema(format = Uuid)]
    id: String,
    alert_id: u64,
    /// `firing` or `resolved`.
    #[schema(example = "firing")]
    state: &'static str,
    value: Option<f64>,
    threshold_value: Option<f64>,
    window_from: Time,
    window_to: Time,
    /// Whose, of a rule per tenant.
    tenant_id: Option<String>,
    /// Why it ended, when it did not recover.
    reason: Option<String>,
    /// Whom it was told; receivers are masked for viewers and editors.
    deliveries: Vec<RecipientStatus>,
    created_at: Time,
}

/// All rules, newest first. Viewers and editors see where they send to without the secret part:
///
/// ```text
/// GET /v1/alerts?limit=1
/// 200 {"data":[{"id":1,"email_to":["o…@acme.example"],"webhook_url":"https://hooks.acme.com/…",…}],"next":null}
/// ```
pub async fn list(
    State(http): State<Http>,
    caller: Caller,
    Params(page): Params<Page>,
) -> Result<List<AlertView>> {
    let sees_all = caller.sees_receivers();
    let rules = http.run(move |app| app.alerts(&caller)).await?;
    let (rules, next) = page.cut(rules, |alert| alert.rule.id.clone())?;
    Ok(List { data: rules.into_iter().map(|alert| view(alert, sees_all)).collect(), next })
}

/// An alert rule with its state. 404 when the environment has none of this number.
///
/// ```text
/// GET /v1/alerts/99     404 alert not found
/// GET /v1/alerts/abc    400 alert_id is not a number
/// ```
pub async fn get(
    State(http): State<Http>,
    caller: Caller,
    AlertId(number): AlertId,
) -> Result<Answer<AlertView>> {
    let sees_all = caller.sees_receivers();
    let rule = http.run(move |app| app.alert(&caller, number)).await?;
    Ok(Answer(view(rule, sees_all)))
}

/// The newest firings and resolutions, newest first.
///
/// ```text
/// GET /v1/alerts/1/events
/// 200 {"data":[{"id":"01a21f87-1424-…","alert_id":1,"state":"firing","value":31.0,"threshold_value":1.0,
///               "window_from":"2026-11-21T00:21:14.938Z","window_to":"2026-11-28T00:21:14.938Z","tenant_id":null,"reason":null,
///               "deliveries":[{"kind":"email","to":"ops@acme.example","status":"sent","error":null},
///                             {"kind":"webhook","to":"https://hooks.acme.com/in/secret","status":"failed","error":"the receiver answered 500"}],…}],
///      "next":null}
/// ```
///
/// A delivery that is tried again later is `pending`, with the error of its last attempt.
pub async fn events(
    State(http): State<Http>,
    caller: Caller,
    AlertId(number): AlertId,
    Params(page): Params<Page>,
) -> Result<List<AlertEventView>> {
    let sees_all = caller.sees_receivers();
    let events = http.run(move |app| app.alert_events(&caller, number)).await?;
    let events = events.into_iter().map(|event| event_view(number, event, sees_all)).collect();
    let (data, next) = page.cut(events, |event: &AlertEventView| event.id.clone())?;
    Ok(List { data, next })
}

/// Makes a rule. 201, with the secret of its webhooks where they are signed.
///
/// Errors: 404 for a dashboard or widget that is not there, 409 for too many rules, 400 naming each field. A webhook of an internal address
/// is "webhook_url must be a public web address".
pub async fn create(
    State(http): State<Http>,
    caller: Caller,
    body: Body<CreateAlert>,
) -> Result<Created<AlertView>> {
    let body = body.read()?;
    let subject = AlertSubject {
        dashboard_id: body.dashboard_id,
        widget_id: body.widget_id,
        condition_type: body.condition_type,
        tenant_id: body.tenant_id,
        per_tenant: body.per_tenant,
    };
    // Before the transaction: a name is resolved, which takes up to 800 ms.
    http.check_webhook(body.webhook_url.as_deref()).await?;
    let change = AlertChange {
        name: Some(body.name),
        operator: body.operator,
        threshold_value: body.threshold_value,
        lookback_minutes: body.lookback_minutes,
        email_to: Some(body.email_to),
        webhook_url: Some(body.webhook_url),
        enabled: body.enabled,
        for_minutes: body.for_minutes,
        recovery_threshold: Some(body.recovery_threshold),
        locale: body.locale,
        signing: SigningChange { signed: body.webhook_signed, rotate: false },
    };
    let rule = http.run(move |app| app.create_alert(&caller, subject, change)).await?;
    Ok(Created(view(rule, true)))
}

/// Changes a rule; absent parts stay, null ends a webhook or a recovery threshold. 200 with the whole rule.
///
/// ```text
/// PATCH /v1/alerts/1 {"rotate_webhook_secret": true}
/// 200 {…,"webhook_secret":"whsec_goQYo5smfRaiU2/vXob/KWl8t8MjlKmhMpVfTUsLADk=","previous_secret_until":"2026-11-29T00:20:36.927Z",…}
/// PATCH /v1/alerts/1 {"webhook_url": null, "webhook_signed": false}
/// 200 {…,"webhook_url":null,"webhook_signed":false,…}
/// ```
pub async fn update(
    State(http): State<Http>,
    caller: Caller,
    AlertId(number): AlertId,
    body: Body<UpdateAlert>,
) -> Result<Answer<AlertView>> {
    // Whether the rule exists comes before what is wrong with the body.
    let finding = caller.clone();
    http.run(move |app| app.alert(&finding, number)).await?;
    let body = body.read()?;
    http.check_webhook(body.webhook_url.as_ref().and_then(Option::as_deref)).await?;
    let change = AlertChange {
        name: body.name,
        operator: body.operator,
        threshold_value: body.threshold_value,
        lookback_minutes: body.lookback_minutes,
        email_to: body.email_to,
        webhook_url: body.webhook_url,
        enabled: body.enabled,
        for_minutes: body.for_minutes,
        recovery_threshold: body.recovery_threshold,
        locale: body.locale,
        signing: SigningChange { signed: body.webhook_signed, rotate: body.rotate_webhook_secret },
    };
    let rule = http.run(move |app| app.update_alert(&caller, number, change)).await?;
    Ok(Answer(view(rule, true)))
}

/// Deletes a rule with its state and events. 204, or 404.
pub async fn delete(
    State(http): State<Http>,
    caller: Caller,
    AlertId(number): AlertId,
) -> Result<NoContent> {
    http.run(move |app| app.delete_alert(&caller, number)).await?;
    Ok(NoContent)
}

/// The JSON of a rule. `sees_all`: whether the caller may know where it sends to.
fn view(alert: Alert, sees_all: bool) -> AlertView {
    let Alert { rule, status, tenants, new_secret } = alert;
    let email = |address: String| if sees_all { address } else { masked_email(&address) };
    let url = |url: String| if sees_all { url } else { masked_url(&url) };
    let tenant = |status: AlertStatus| TenantView {
        tenant_id: status.tenant_id.unwrap_or_default(),
        state: status.state,
        state_since: Time(status.state_since),
        last_value: status.last_value,
    };
    let tenants: Vec<TenantView> = tenants.into_iter().take(TENANTS_SHOWN).map(tenant).collect();
    AlertView {
        id: rule.number,
        dashboard_id: rule.dashboard_id,
        widget_id: rule.widget_id,
        name: rule.name,
        condition_type: rule.condition_type,
        operator: rule.operator,
        threshold_value: rule.threshold_value,
        lookback_minutes: rule.lookback_minutes,
        email_to: rule.email_to.into_iter().map(email).collect(),
        webhook_url: rule.webhook_url.map(url),
        enabled: rule.enabled,
        tenant_id: rule.tenant_id,
        for_minutes: rule.for_minutes,
        recovery_threshold: rule.recovery_threshold,
        per_tenant: rule.per_tenant,
        locale: rule.locale,
        webhook_signed: rule.webhook_secret.is_some(),
        webhook_secret: new_secret,
        previous_secret_until: rule.previous_secret.map(|previous| Time(previous.until)),
        state: status.state,
        state_since: Time(status.state_since),
        last_value: status.last_value,
        last_evaluated_at: status.last_evaluated_at.map(Time),
        last_error: status.last_error,
        tenants: rule.per_tenant.then_some(tenants),
        created_at: Time(rule.created_at),
        updated_at: Time(rule.updated_at),
    }
}

fn event_view(alert_id: u64, event: AlertEvent, sees_all: bool) -> AlertEventView {
    AlertEventView {
        // The id of the record begins with the rule, so that the events of a rule can be listed; the API shows the UUID.
        id: event.id.rsplit(':').next().unwrap_or_default().to_owned(),
        alert_id,
        state: if event.state == AlertState::Firing { "firing" } else { "resolved" },
        value: event.value,
        threshold_value: event.threshold_value,
        window_from: Time(event.window_from),
        window_to: Time(event.window_to),
        tenant_id: event.tenant_id,
        reason: event.reason,
        deliveries: event
            .deliveries
            .into_iter()
            .map(|recipient| recipient_view(recipient, sees_all))
            .collect(),
        created_at: Time(event.created_at),
    }
}
