//! Webhooks sent again by hand: `POST /v1/webhooks/{id}/retry`.
//!
//! Every attempt is stored with its message. When a receiver is repaired, an admin names an attempt, and its
//! message is sent again: the same body with the same `webhook-id`, by which a receiver recognises a
//! message that it has. While the automatic attempts of an alert go on, the next of them is brought forward
//! instead. The file of a report is not stored, so it is made again, with the data of now.
//!
//! A message that is sent by hand may come after a newer one of its rule: `fired_at` and `resolved_at` say when
//! it was.
//!
//! ```text
//! POST /v1/webhooks/0190…/retry     202
//! 404 {"error": "delivery not found", …}                                            another environment's, or its rule is gone
//! 409 {"error": "the rule does not post to this address any more", …}
//! 409 {"error": "an earlier message of this rule is still being sent", …}          order holds for messages by hand, too
//! 409 {"error": "this message is being sent", …}
//! 409 {"error": "this message was sent 3 times by hand", …}
//! 409 {"error": "the report is made for other tenants now", …}
//! ```

use serde_json::json;

use super::{
    queue,
    report_queue::{begin, works_of},
};
use crate::{
    app::request::{callers::Caller, context::App},
    error::{ApiError, Code, Result},
    store::{
        AlertRule, Channel, Delivery, Message, Notification, OrgTxn, QueueEntry as _, ReportRule,
        ReportRun, RunStatus, WebhookDelivery, dequeue, enqueue, queued, rule_id,
    },
};

/// Retries of one message to one receiver by hand, at most.
const RETRIES_MAX: u32 = 3;
/// Newest attempts that are read again within the transaction: more are not stored between the two.
const RECENT: usize = 100;

impl App {
    /// Sends the message of an attempt again, now.
    ///
    /// Errors: 404 for an attempt that is not one of the environment's rules. 409 when it is being sent,
    /// was sent three times by hand, or its rule posts to another address.
    pub fn retry_webhook(&self, caller: &Caller, attempt: &str) -> Result<()> {
        let reader = self.org_reader(&caller.org);
        let attempt: WebhookDelivery = reader.find(attempt)?.ok_or_else(not_found)?;
        // Numbers rise: attempts before the named one have lower ones and need not be read.
        let mut counts = attempt_counts(&attempt);
        reader.visit_last(None, |one: WebhookDelivery| {
            if is_of_message(&one, &attempt) {
                counts = counts.and(attempt_counts(&one));
            }
            one.id > attempt.id
        })?;
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
                Some(Message::Alert { delivery, event, notification }) => {
                    self.retry_alert(
                        txn,
                        caller,
                        (&attempt, counts),
                        (delivery, event, notification),
                    )?;
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

    /// Enqueues the message of an attempt for now, or brings its next automatic attempt forward.
    fn retry_alert(
        &self,
        txn: &mut OrgTxn<'_>,
        caller: &Caller,
        (attempt, counts): (&WebhookDelivery, AttemptCounts),
        (delivery, event, notification): (&String, &String, &Notification),
    ) -> Result<()> {
        let due_at = self.now_ms();
        let same_line = |one: &Delivery| {
            let line = (&*one.org, one.alert, &one.notification.tenant_id, one.channel, &one.to);
            line == (
                &caller.org,
                attempt.source_id,
                &notification.tenant_id,
                Channel::Webhook,
                &attempt.webhook_url,
            )
        };
        let mut line: Vec<Delivery> = queued(txn.global())?;
        line.retain(same_line);
        // Messages of one rule to one receiver go in order.
        if line.iter().any(|one| one.id < *delivery) {
            return Err(conflict("an earlier message of this rule is still being sent"));
        }
        if let Some(waiting) = line.into_iter().find(|one| one.id == *delivery) {
            if waiting.is_leased || waiting.retry > 0 {
                return Err(conflict("this message is being sent"));
            }
            dequeue(txn.global(), &waiting)?;
            return enqueue(txn.global(), &waiting.rescheduled(due_at, false));
        }
        // An attempt that was stored since `counts` was read is among the last.
        let reader = self.org_reader(&caller.org);
        let counts = reader
            .list_last::<WebhookDelivery>(RECENT)?
            .iter()
            .filter(|one| is_of_message(one, attempt))
            .map(attempt_counts)
            .fold(counts, AttemptCounts::and);
        let retry = next_retry(counts.retries)?;
        let entry = Delivery {
            id: delivery.clone(),
            org: caller.org.clone(),
            due_at,
            is_leased: false,
            attempt: counts.last + 1,
            channel: Channel::Webhook,
            to: attempt.webhook_url.clone(),
            alert: attempt.source_id,
            event: event.clone(),
            notification: notification.clone(),
            retry,
            further: Vec::new(),
        };
        queue::set_status(txn, &entry, "pending", None)?;
        enqueue(txn.global(), &entry)
    }

    /// Begins the run of an attempt again for the one recipient: the others have their file.
    ///
    /// The run is `running` until it ends; of its record only this recipient's status changes.
    fn retry_report(
        &self,
        txn: &mut OrgTxn<'_>,
        caller: &Caller,
        attempt: &WebhookDelivery,
        run: &str,
        receiver: usize,
    ) -> Result<()> {
        let rule_id = rule_id(attempt.source_id);
        if !works_of(txn.global(), &caller.org, &rule_id)?.is_empty() {
            return Err(conflict("this report is running"));
        }
        let Some(rule) = txn.find::<ReportRule>(&rule_id)? else { return Err(not_found()) };
        let Some(mut run) = txn.find::<ReportRun>(run)? else { return Err(not_found()) };
        let Some(recipient) = run.deliveries.get_mut(receiver) else { return Err(not_found()) };
        let is_made_for = match &recipient.tenant_id {
            Some(tenant) => rule.burst.iter().any(|share| share.tenant_id == *tenant),
            None => rule.burst.is_empty() && rule.tenant_id == run.tenant_id,
        };
        if !is_made_for {
            return Err(conflict("the report is made for other tenants now"));
        }
        "pending".clone_into(&mut recipient.status);
        let retries = run.retries.entry(receiver).or_default();
        *retries = next_retry(*retries)?;
        (run.status, run.finished_at, run.error) = (RunStatus::Running, None, None);
        begin(txn, self.now_ms(), &caller.org, &run)
    }
}

/// The attempts of a message so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct AttemptCounts {
    /// Number of the last attempt; the next one gets the number after it.
    last: u32,
    /// Attempts that were made by hand, 0 to 3.
    retries: u32,
}

impl AttemptCounts {
    fn and(self, other: Self) -> Self {
        Self { last: self.last.max(other.last), retries: self.retries.max(other.retries) }
    }
}

/// Whether an attempt is one of the same message as `attempt`, which is that of an alert.
fn is_of_message(one: &WebhookDelivery, attempt: &WebhookDelivery) -> bool {
    match (&one.message, &attempt.message) {
        (Some(Message::Alert { delivery, .. }), Some(Message::Alert { delivery: same, .. })) => {
            delivery == same
        }
        _ => false,
    }
}

fn attempt_counts(one: &WebhookDelivery) -> AttemptCounts {
    AttemptCounts { last: one.attempt, retries: one.retry }
}

/// Number of the next retry by hand, after `retries` of them. Errors: 409 after the third.
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
