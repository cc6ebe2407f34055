//! `/v1/webhooks`: how webhooks of alerts and reports went, and sending one again.

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

/// How it went in the last 24 hours.
pub async fn list(State(http): State<Http>, caller: Caller) -> Result<Answer<Webhooks>> {
    let rules = http.run(move |app| app.webhook_deliveries(&caller)).await?;
    let rules = rules.into_iter().map(rule).collect();
    Ok(Answer(Webhooks { window_hours: WINDOW_HOURS, rules }))
}

/// Sends the message of an attempt again.
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
