//! `/v1/alerts/…/test` and `/v1/alerts/preview`: trying an alert before it matters.
//!
//! A test sends a message to each receiver and waits for the outcomes:
//!
//! ```text
//! POST /v1/alerts/1/test
//! 200 {"deliveries":[{"kind":"email","to":"ops@acme.example","status":"sent","error":null},
//!                    {"kind":"webhook","to":"https://hooks.acme.com/fail","status":"failed","error":"the receiver answered 500"}]}
//! ```
//!
//! The webhook has the name `Test of Too many errors` and the state `firing`. Nothing is tried again by itself; the audit has the test, and
//! `GET /v1/webhooks` its attempt.
//!
//! A preview computes when a rule would have fired, over up to 30 days, and stores nothing:
//!
//! ```text
//! POST /v1/alerts/preview
//! {"dashboard_id": "01a21f85-…", "widget_id": "calls", "condition_type": "threshold", "operator": "gt", "threshold_value": 4,
//!  "lookback_minutes": 1440}
//! 200 {"from":"2026-10-29T00:20:00.000Z","to":"2026-11-28T00:20:00.000Z","step_minutes":1,"fired":1,
//!      "events":[{"state":"firing","value":5.0,"at":"2026-11-21T16:01:00.000Z"}],
//!      "points":[{"at":"2026-10-29T00:20:00.000Z","value":0.0},…]}
//! ```

use std::sync::Arc;

use axum::extract::State;
use serde::{Deserialize, Serialize};
use tokio::{
    sync::Semaphore,
    task::{JoinSet, spawn_blocking},
};
use utoipa::ToSchema;

use super::view::Time;
use crate::{
    app::{AlertChange, AlertSubject, Caller, Outcome, ReplayedChange},
    error::{ApiError, Result},
    http::{
        extract::{AlertId, Body},
        respond::Answer,
        state::context::Http,
    },
    store::{ConditionType, Operator, RecipientStatus},
};

/// Receivers of a test that are tried at once.
const AT_ONCE: usize = 8;

/// What became of a test.
#[derive(Serialize, ToSchema)]
#[schema(as = AlertTest)]
pub struct TestView {
    deliveries: Vec<RecipientStatus>,
}

/// A rule to try on the past.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct PreviewAlert {
    #[schema(format = Uuid, example = "0190aaaa-0000-7000-8000-000000000000")]
    dashboard_id: String,
    #[schema(example = "calls")]
    widget_id: String,
    condition_type: ConditionType,
    /// Required unless the condition is `no_data`.
    operator: Option<Operator>,
    /// Required unless the condition is `no_data`; percent for `delta`.
    #[schema(example = 100)]
    threshold_value: Option<f64>,
    /// Length of the window; 60 when absent or not above 0.
    #[schema(maximum = 129600, example = 60)]
    lookback_minutes: Option<i64>,
    /// One tenant; all of the environment without it.
    #[schema(min_length = 1, max_length = 256)]
    tenant_id: Option<String>,
    /// Looks at each tenant by itself: the hundred with most events.
    #[serde(default)]
    per_tenant: bool,
    #[schema(minimum = 0, maximum = 1440)]
    for_minutes: Option<i64>,
    /// The value at which it recovers, when it is not the threshold.
    recovery_threshold: Option<f64>,
}

/// When a rule would have fired.
#[derive(Serialize, ToSchema)]
#[schema(as = AlertPreview)]
pub struct PreviewView {
    /// 30 days ago, or less where looking takes too long.
    from: Time,
    to: Time,
    /// Time between two looks: 1 as for a rule that exists, or up to 30 where looking each minute takes too long.
    step_minutes: i64,
    /// How often it would have fired.
    fired: usize,
    /// Firings and resolutions, oldest first: the newest thousand.
    events: Vec<PreviewEvent>,
    /// Values seen, oldest first, at even times and at changes; with `per_tenant` how many tenants fire.
    points: Vec<PreviewPoint>,
    /// How many tenants were looked at, with `per_tenant`.
    #[serde(skip_serializing_if = "Option::is_none")]
    tenants: Option<usize>,
    /// How many more there are, for which there was no time, with `per_tenant`.
    #[serde(skip_serializing_if = "Option::is_none")]
    tenants_left_out: Option<usize>,
}

/// A firing or a resolution that would have been.
#[derive(Serialize, ToSchema)]
#[schema(as = AlertPreviewEvent)]
pub struct PreviewEvent {
    /// `firing` or `resolved`.
    #[schema(example = "firing")]
    state: &'static str,
    /// With `per_tenant`.
    #[serde(skip_serializing_if = "Option::is_none")]
    tenant_id: Option<String>,
    value: Option<f64>,
    at: Time,
}

/// The value at a look.
#[derive(Serialize, ToSchema)]
#[schema(as = AlertPreviewPoint)]
pub struct PreviewPoint {
    at: Time,
    value: Option<f64>,
}

/// Sends a test to all receivers of a rule at once, and answers the outcome of each. 200 also when deliveries failed.
///
/// Errors: 404; 409 for a rule without receivers; 429 after 20 tests of an organisation in a minute.
pub async fn test(
    State(http): State<Http>,
    caller: Caller,
    AlertId(number): AlertId,
) -> Result<Answer<TestView>> {
    let (app, dispatcher) = (http.app.clone(), http.dispatcher.clone());
    let deliveries = http.run(move |app| app.test_deliveries(&caller, number)).await?;
    let permits = Arc::new(Semaphore::new(AT_ONCE));
    // The order of the answer is that of the rule, not that in which the receivers answer: each attempt carries its turn.
    let mut attempts = JoinSet::new();
    for (turn, delivery) in deliveries.into_iter().enumerate() {
        let (app, dispatcher, permits) = (app.clone(), dispatcher.clone(), Arc::clone(&permits));
        // A task of its own writes its row, whether or not the client still waits.
        let attempt = tokio::spawn(async move {
            let _permit = permits.acquire_owned().await;
            let began_at = app.now_ms();
            let (making, of) = (app.clone(), delivery.clone());
            let message = spawn_blocking(move || making.alert_message(&of, began_at)).await;
            let message = message.map_err(|error| ApiError::internal(error.to_string()))??;
            let outcome = Outcome { began_at, result: dispatcher.send(message).await };
            let recipient = spawn_blocking(move || app.record_test(delivery, outcome)).await;
            recipient.map_err(|error| ApiError::internal(error.to_string()))?
        });
        attempts.spawn(async move { (turn, attempt.await) });
    }
    let mut outcomes = Vec::new();
    while let Some(attempt) = attempts.join_next().await {
        let (turn, recipient) = attempt.map_err(|error| ApiError::internal(error.to_string()))?;
        outcomes.push((turn, recipient.map_err(|error| ApiError::internal(error.to_string()))??));
    }
    outcomes.sort_by_key(|(turn, _)| *turn);
    let deliveries =
        outcomes.into_iter().map(|(_, recipient): (usize, RecipientStatus)| recipient).collect();
    Ok(Answer(TestView { deliveries }))
}

/// Shows when a rule would have fired. It takes a permit of a query: thousands of windows are computed.
///
/// Errors: 404 for a dashboard or widget that is not there; 400 as for a rule; `query_timeout`.
pub async fn preview(
    State(http): State<Http>,
    caller: Caller,
    body: Body<PreviewAlert>,
) -> Result<Answer<PreviewView>> {
    let body = body.read()?;
    let subject = AlertSubject {
        dashboard_id: body.dashboard_id,
        widget_id: body.widget_id,
        condition_type: body.condition_type,
        tenant_id: body.tenant_id,
        per_tenant: body.per_tenant,
    };
    let change = AlertChange {
        operator: body.operator,
        threshold_value: body.threshold_value,
        lookback_minutes: body.lookback_minutes,
        for_minutes: body.for_minutes,
        recovery_threshold: Some(body.recovery_threshold),
        ..AlertChange::default()
    };
    let (replayed, left_out) = http
        .run_query(&caller.org.clone(), move |app| app.preview_alert(&caller, subject, change))
        .await?;
    let event = |change: ReplayedChange| PreviewEvent {
        state: if change.is_firing { "firing" } else { "resolved" },
        tenant_id: change.tenant,
        value: change.value,
        at: Time(change.at),
    };
    let point = |(at, value): (i64, Option<f64>)| PreviewPoint { at: Time(at), value };
    Ok(Answer(PreviewView {
        from: Time(replayed.from),
        to: Time(replayed.to),
        step_minutes: replayed.step_minutes,
        fired: replayed.fired,
        events: replayed.events.into_iter().map(event).collect(),
        points: replayed.points.into_iter().map(point).collect(),
        tenants: left_out.map(|_| replayed.subjects),
        tenants_left_out: left_out,
    }))
}
