//! Queued deliveries of alert notifications, and the attempts to call webhooks.
//!
//! Times are milliseconds since 1970.

use serde::{Deserialize, Serialize};

use super::{
    alerts::{AlertState, Notification},
    durable_queue::queue_entries,
    org::records,
};

records! {
    WebhookDelivery "webhook_delivery";
}

queue_entries! {
    Delivery "delivery" id;
}

/// How a recipient is reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Channel {
    /// A mail to an e-mail address.
    Email,
    /// A POST request to a URL.
    Webhook,
}

/// A notification to deliver to one recipient, due at a time: stored outside of any organisation under
/// `<due>:<id>`, in order of due times.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Delivery {
    /// UUIDv7; the same at every attempt.
    pub id: String,
    /// Id of the organisation; the delivery is deleted with it.
    pub org: String,
    /// When the next attempt is due; while leased, when the lease ends.
    pub due_at: i64,
    /// Whether an attempt is under way.
    pub is_leased: bool,
    /// Number of the next attempt, or of the one under way, from 1.
    pub attempt: u32,
    /// Mail or webhook.
    #[serde(alias = "way")]
    pub channel: Channel,
    /// E-mail address, or URL of the webhook.
    pub to: String,
    /// Number of the alert rule.
    pub alert: u64,
    /// Id of the alert event; empty for a test.
    pub event: String,
    /// Content of the message; stored, so that every attempt sends the same.
    #[serde(alias = "notice")]
    pub notification: Notification,
    /// Number of the retry by hand, from 1; 0 for an automatic attempt.
    #[serde(default)]
    pub retry: u32,
    /// Further changes that the same look saw, which a mail tells too: of a rule that watches each tenant.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub further: Vec<FurtherChange>,
}

/// A change of one tenant beside that of a delivery's notification.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FurtherChange {
    /// The tenant that changed.
    pub tenant_id: Option<String>,
    /// State after the change.
    pub state: AlertState,
    /// Value that caused it; absent when it is not known.
    pub value: Option<f64>,
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
        /// Content of the message.
        notification: Box<Notification>,
    },
    /// The file of a report.
    Report {
        /// Id of the run.
        run: String,
        /// Index into `deliveries` of the run.
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
    /// URL that the attempt posted to.
    pub webhook_url: String,
    /// Number of the attempt, from 1; retries by hand count too.
    pub attempt: u32,
    /// HTTP status; 0 when there was no answer.
    pub status_code: u16,
    /// Why there was no answer; absent when there was one.
    pub error: Option<String>,
    /// Start of the answer as text, up to 512 bytes; absent when there is none.
    pub response_excerpt: Option<String>,
    /// Duration of the attempt in milliseconds.
    pub duration_ms: u64,
    /// When the attempt began.
    pub created_at: i64,
    /// Number of the retry by hand, from 1; 0 for an automatic attempt.
    #[serde(default)]
    pub retry: u32,
    /// The message; absent in attempts of version 0.1.
    #[serde(default)]
    pub message: Option<Message>,
}
