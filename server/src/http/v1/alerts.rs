//! `/v1/alerts`: rules, and what became of them.

use axum::extract::State;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::view::{Name, Time, present};
use crate::{
    app::{AlertChange, AlertSubject, Caller, masked_email, masked_url},
    error::Result,
    http::{
        context::Http,
        extract::{AlertId, Body, Page, Params},
        respond::{Answer, Created, List, NoContent},
    },
    store::{AlertEvent, AlertRule, AlertState, ConditionType, Operator},
};

/// A rule to make.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct CreateAlert {
    #[schema(example = "0190aaaa-0000-7000-8000-000000000000")]
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
}

/// A rule with its state.
#[derive(Serialize, ToSchema)]
#[schema(as = Alert)]
pub struct AlertView {
    #[schema(example = 1)]
    id: u64,
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
    state: AlertState,
    state_since: Time,
    last_value: Option<f64>,
    last_evaluated_at: Option<Time>,
    last_error: Option<String>,
    created_at: Time,
    updated_at: Time,
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
    created_at: Time,
}

/// All rules, newest first.
pub async fn list(
    State(http): State<Http>,
    caller: Caller,
    Params(page): Params<Page>,
) -> Result<List<AlertView>> {
    let sees_all = caller.sees_receivers();
    let rules = http.run(move |app| app.alerts(&caller)).await?;
    let (rules, next) = page.cut(rules, |rule| rule.id.clone())?;
    Ok(List { data: rules.into_iter().map(|rule| view(rule, sees_all)).collect(), next })
}

/// One rule.
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
pub async fn events(
    State(http): State<Http>,
    caller: Caller,
    AlertId(number): AlertId,
    Params(page): Params<Page>,
) -> Result<List<AlertEventView>> {
    let events = http.run(move |app| app.alert_events(&caller, number)).await?;
    let events = events.into_iter().map(|event| event_view(number, event)).collect();
    let (data, next) = page.cut(events, |event: &AlertEventView| event.id.clone())?;
    Ok(List { data, next })
}

/// Makes a rule. 201.
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
    };
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
    };
    let rule = http.run(move |app| app.create_alert(&caller, subject, change)).await?;
    Ok(Created(view(rule, true)))
}

/// Changes a rule.
pub async fn update(
    State(http): State<Http>,
    caller: Caller,
    AlertId(number): AlertId,
    body: Body<UpdateAlert>,
) -> Result<Answer<AlertView>> {
    let rule = http
        .run(move |app| {
            app.alert(&caller, number)?;
            let body = body.read()?;
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
            };
            app.update_alert(&caller, number, change)
        })
        .await?;
    Ok(Answer(view(rule, true)))
}

/// Deletes a rule. 204.
pub async fn delete(
    State(http): State<Http>,
    caller: Caller,
    AlertId(number): AlertId,
) -> Result<NoContent> {
    http.run(move |app| app.delete_alert(&caller, number)).await?;
    Ok(NoContent)
}

fn view(rule: AlertRule, sees_all: bool) -> AlertView {
    let email = |address: String| if sees_all { address } else { masked_email(&address) };
    let url = |url: String| if sees_all { url } else { masked_url(&url) };
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
        state: rule.state,
        state_since: Time(rule.state_since),
        last_value: rule.last_value,
        last_evaluated_at: rule.last_evaluated_at.map(Time),
        last_error: rule.last_error,
        created_at: Time(rule.created_at),
        updated_at: Time(rule.updated_at),
    }
}

fn event_view(alert_id: u64, event: AlertEvent) -> AlertEventView {
    AlertEventView {
        id: event.id.rsplit(':').next().unwrap_or_default().to_owned(),
        alert_id,
        state: if event.state == AlertState::Firing { "firing" } else { "resolved" },
        value: event.value,
        threshold_value: event.threshold_value,
        window_from: Time(event.window_from),
        window_to: Time(event.window_to),
        created_at: Time(event.created_at),
    }
}
