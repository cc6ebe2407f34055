//! Deliveries that are queued, and every attempt of one.

use serde::{Deserialize, Serialize};

use super::{alerts::Notification, org::records};

records! {
    WebhookDelivery "webhook_delivery";
}

/// How a recipient is reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Channel {
    /// A mail.
    Email,
    /// A request.
    Webhook,
}

/// A notification to deliver to one recipient, due at a time: stored outside of any organisation under
/// `<due>:<id>`, in order of due times.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Delivery {
    /// UUIDv7; the same at every attempt.
    pub id: String,
    /// Organisation that it belongs to, and that it goes with.
    pub org: String,
    /// When it is due; while it is leased, when the lease ends.
    pub due_at: i64,
    /// Whether an attempt is under way.
    pub is_leased: bool,
    /// Number of the next attempt, or of the one under way, from 1.
    pub attempt: u32,
    /// Mail or webhook.
    #[serde(alias = "way")]
    pub channel: Channel,
    /// Address.
    pub to: String,
    /// Number of the alert rule.
    pub alert: u64,
    /// Id of the alert event.
    pub event: String,
    /// What the recipient is notified of; stored, so that every attempt sends the same.
    #[serde(alias = "notice")]
    pub notification: Notification,
    /// Number of the retry by hand, from 1; 0 for an automatic attempt.
    #[serde(default)]
    pub retry: u32,
}

/// The message of an attempt, so that it can be sent again.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Message {
    /// A notification of an alert.
    Alert {
        /// Id of the delivery, common to all attempts.
        delivery: String,
        /// Id of the alert event; empty for a test.
        event: String,
        /// What the recipient was notified of.
        notification: Box<Notification>,
    },
    /// The file of a report.
    Report {
        /// Id of the run.
        run: String,
        /// Index into the receivers of the run.
        receiver: usize,
    },
}

/// An attempt to deliver to a webhook.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct WebhookDelivery {
    /// UUIDv7, so that attempts are in order of time.
    pub id: String,
    /// `alert` or `report`.
    pub source: String,
    /// Number of the rule.
    pub source_id: u64,
    /// Where it was posted.
    pub webhook_url: String,
    /// From 1.
    pub attempt: u32,
    /// HTTP status; 0 when there was no answer.
    pub status_code: u16,
    /// Why there was none.
    pub error: Option<String>,
    /// How the answer began.
    pub response_excerpt: Option<String>,
    /// How long it took.
    pub duration_ms: u64,
    /// When.
    pub created_at: i64,
    /// Number of the retry by hand, from 1; 0 for an automatic attempt.
    #[serde(default)]
    pub retry: u32,
    /// What was sent; absent in attempts of version 0.1.
    #[serde(default)]
    pub message: Option<Message>,
}
