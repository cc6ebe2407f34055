//! Webhooks sent again by hand.
//!
//! Every attempt is on record with its message. Whoever repaired a receiver names an attempt and has its
//! message sent again: the same body with the same `webhook-id`, so that a receiver who has it already can
//! tell. While the automatic attempts of an alert go on, the next of them is brought forward instead. The
//! file of a report is not stored, so it is made again, from the data of now.

use serde_json::json;

use super::{
    context::{App, Caller},
    queue,
    run_queue::is_under_way,
};
use crate::{
    error::{ApiError, Code, Result},
    store::{
        AlertEvent, AlertRule, Delivery, Message, Notice, OrgTxn, ReportRule, ReportRun, RunStatus,
        Way, WebhookDelivery, global_delete, global_list, rule_id,
    },
};

/// Retries of one message to one receiver by hand, at most.
const RETRIES_MAX: u32 = 3;
/// Attempts in which those of one message are looked for.
const ATTEMPTS_MAX: usize = 100_000;

impl App {
    /// Sends the message of an attempt again, now.
    ///
    /// Errors: 404 for an attempt that is not one of the environment's rules. 409 when it is being sent,
    /// was sent three times by hand, or its rule posts to another address.
    pub fn retry_webhook(&self, caller: &Caller, attempt: &str) -> Result<()> {
        let reader = self.org_reader(&caller.org);
        let attempt: WebhookDelivery = reader.find(attempt)?.ok_or_else(not_found)?;
        self.org_txn(&caller.org, |txn| {
            let (environment, url) = match attempt.source.as_str() {
                "alert" => {
                    let rule: Option<AlertRule> = txn.find(&rule_id(attempt.source_id))?;
                    rule.map(|rule| (rule.environment, rule.webhook_url))
                }
                _ => {
                    let rule: Option<ReportRule> = txn.find(&rule_id(attempt.source_id))?;
                    rule.map(|rule| (rule.environment, rule.webhook_url))
                }
            }
            .ok_or_else(not_found)?;
            if environment != caller.environment.id {
                return Err(not_found());
            }
            if url.as_ref() != Some(&attempt.webhook_url) {
                return Err(conflict("the rule does not post to this address any more"));
            }
            match &attempt.message {
                Some(Message::Alert { delivery, event, notice }) => {
                    self.retry_alert(txn, caller, &attempt, (delivery, event, notice))?;
                }
                Some(Message::Report { run, receiver }) => {
                    self.retry_report(txn, caller, &attempt, run, *receiver)?;
                }
                None => return Err(conflict("the message of this attempt was not stored")),
            }
            let target = (attempt.source.as_str(), attempt.source_id.to_string());
            let metadata = json!({"delivery_id": attempt.id, "webhook_url": attempt.webhook_url});
            self.audit(txn, caller, "webhook.retry", (target.0, &target.1), metadata)
        })
    }

    fn retry_alert(
        &self,
        txn: &mut OrgTxn<'_>,
        caller: &Caller,
        attempt: &WebhookDelivery,
        (delivery, event, notice): (&String, &String, &Notice),
    ) -> Result<()> {
        let queued = global_list::<Delivery>(txn.global(), queue::KIND)?;
        let queued = queued.into_iter().map(|(_, queued)| queued);
        let due_at = self.now_ms();
        if let Some(queued) = queued.into_iter().find(|queued| queued.id == *delivery) {
            if queued.is_leased || queued.retry > 0 {
                return Err(conflict("this message is being sent"));
            }
            global_delete(txn.global(), queue::KIND, &queue::key_of(&queued));
            return queue::put(txn.global(), &Delivery { due_at, ..queued });
        }
        let attempts: Vec<WebhookDelivery> =
            self.org_reader(&caller.org).list_last(ATTEMPTS_MAX)?;
        let of_message = attempts.iter().filter(|attempt| match &attempt.message {
            Some(Message::Alert { delivery: other, .. }) => other == delivery,
            _ => false,
        });
        let (last, retries) = of_message.fold((attempt.attempt, 0), |(last, retries), one| {
            (last.max(one.attempt), retries.max(one.retry))
        });
        let retry = next_retry(retries)?;
        let entry = Delivery {
            id: delivery.clone(),
            org: caller.org.clone(),
            due_at,
            is_leased: false,
            attempt: last + 1,
            way: Way::Webhook,
            to: attempt.webhook_url.clone(),
            alert: attempt.source_id,
            event: event.clone(),
            notice: notice.clone(),
            retry,
        };
        queue::put(txn.global(), &entry)?;
        // A test has no event.
        let event: Option<AlertEvent> = if event.is_empty() { None } else { txn.find(event)? };
        let Some(mut event) = event else { return Ok(()) };
        let receivers = event.deliveries.iter_mut();
        for told in receivers.filter(|told| told.kind == "webhook" && told.to == entry.to) {
            "pending".clone_into(&mut told.status);
        }
        txn.put(&event)
    }

    fn retry_report(
        &self,
        txn: &mut OrgTxn<'_>,
        caller: &Caller,
        attempt: &WebhookDelivery,
        run: &str,
        receiver: usize,
    ) -> Result<()> {
        if is_under_way(txn.global(), &caller.org, &rule_id(attempt.source_id))? {
            return Err(conflict("this report is running"));
        }
        let Some(mut run) = txn.find::<ReportRun>(run)? else { return Err(not_found()) };
        let Some(told) = run.deliveries.get_mut(receiver) else { return Err(not_found()) };
        "pending".clone_into(&mut told.status);
        let retries = run.retries.entry(receiver).or_default();
        *retries = next_retry(*retries)?;
        (run.status, run.finished_at, run.error) = (RunStatus::Running, None, None);
        self.begin(txn, &caller.org, &run)
    }
}

/// Number of the retry after so many.
fn next_retry(retries: u32) -> Result<u32> {
    if retries >= RETRIES_MAX {
        return Err(conflict(&format!("this message was sent {RETRIES_MAX} times by hand")));
    }
    Ok(retries + 1)
}

fn conflict(message: &str) -> ApiError {
    ApiError::new(Code::Conflict, message)
}

fn not_found() -> ApiError {
    ApiError::not_found("delivery")
}
