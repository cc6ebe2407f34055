//! `/v1/webhooks`: how webhooks of alerts and reports went, and sending one again.
//!
//! ```text
//! GET /v1/webhooks
//! 200 {"window_hours":24,"rules":[
//!   {"source":"alert","source_id":1,"name":"Too many errors","webhook_url":"https://hooks.acme.com/fail","success_24h":1,"failure_24h":1,
//!    "last_status_code":500,"last_error":null,"last_response_excerpt":"down for maintenance","last_duration_ms":0,…,
//!    "attempts":[{"id":"01a21f86-7bc4-…","attempt":1,"retry":0,"status_code":500,"response_excerpt":"down for maintenance",…},
//!                {"id":"01a21f86-7ba5-…","attempt":1,"retry":0,"status_code":200,"response_excerpt":"ok",…}]}]}
//!
//! POST /v1/webhooks/01a21f86-7bc4-…/retry
//! 202
//! POST /v1/webhooks/0190aaaa-0000-7000-8000-000000000000/retry
//! 404 delivery not found
//! ```
//!
//! A receiver that answered has no `error`, whatever its status: the status says it.

use axum::extract::State;
use serde::Serialize;
use utoipa::ToSchema;

use super::view::Time;
use crate::{
    app::{Caller, RuleDeliveries, WINDOW_HOURS},
    error::Result,
    http::{
        extract::Id,
        respond::{AcceptedEmpty, Answer},
        state::context::Http,
    },
    store::WebhookDelivery,
};

/// Rules that post somewhere, and how it went.
#[derive(Serialize, ToSchema)]
pub struct Webhooks {
    #[schema(example = 24)]
    window_hours: i64,
    rules: Vec<RuleView>,
}

/// A rule with a webhook.
#[derive(Serialize, ToSchema)]
#[schema(as = WebhookRule)]
struct RuleView {
    /// `alert` or `report`.
    #[schema(example = "alert")]
    source: &'static str,
    source_id: u64,
    name: String,
    webhook_url: Option<String>,
    success_24h: usize,
    failure_24h: usize,
    /// 0 when there was no answer.
    last_status_code: Option<u16>,
    last_error: Option<String>,
    last_response_excerpt: Option<String>,
    last_duration_ms: Option<u64>,
    last_attempt_at: Option<Time>,
    /// The newest 20.
    attempts: Vec<AttemptView>,
}

/// An attempt at a delivery.
#[derive(Serialize, ToSchema)]
#[schema(as = WebhookAttempt)]
struct AttemptView {
    #[schema(format = Uuid)]
    id: String,
    webhook_url: String,
    attempt: u32,
    /// Number of the retry by hand, from 1; 0 for an automatic attempt.
    retry: u32,
    status_code: u16,
    error: Option<String>,
    response_excerpt: Option<String>,
    duration_ms: u64,
    created_at: Time,
}

/// Attempts of the last 24 hours, by rule, the newest first. A rule without a webhook is listed while it has attempts.
pub async fn list(State(http): State<Http>, caller: Caller) -> Result<Answer<Webhooks>> {
    let rules = http.run(move |app| app.webhook_deliveries(&caller)).await?;
    let rules = rules.into_iter().map(rule).collect();
    Ok(Answer(Webhooks { window_hours: WINDOW_HOURS, rules }))
}

/// Sends the message of an attempt again: the same body with the same `webhook-id`. 202; how it went is an attempt of its own in the list.
///
/// Errors: 404; 409 when it is being sent, was sent three times by hand, or its rule posts to another address now.
pub async fn retry(
    State(http): State<Http>,
    caller: Caller,
    Id(attempt): Id,
) -> Result<AcceptedEmpty> {
    http.run(move |app| app.retry_webhook(&caller, &attempt)).await?;
    Ok(AcceptedEmpty)
}

fn rule(rule: RuleDeliveries) -> RuleView {
    let last = rule.attempts.first();
    RuleView {
        source: rule.source,
        source_id: rule.source_id,
        success_24h: rule.successes,
        failure_24h: rule.failures,
        last_status_code: last.map(|last| last.status_code),
        last_error: last.and_then(|last| last.error.clone()),
        last_response_excerpt: last.and_then(|last| last.response_excerpt.clone()),
        last_duration_ms: last.map(|last| last.duration_ms),
        last_attempt_at: last.map(|last| Time(last.created_at)),
        name: rule.name,
        webhook_url: rule.webhook_url,
        attempts: rule.attempts.into_iter().map(attempt).collect(),
    }
}

fn attempt(attempt: WebhookDelivery) -> AttemptView {
    AttemptView {
        id: attempt.id,
        webhook_url: attempt.webhook_url,
        attempt: attempt.attempt,
        retry: attempt.retry,
        status_code: attempt.status_code,
        error: attempt.error,
        response_excerpt: attempt.response_excerpt,
        duration_ms: attempt.duration_ms,
        created_at: Time(attempt.created_at),
    }
}
