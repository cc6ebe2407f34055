//! What is on its way to somebody, and every attempt to bring it there.

use serde::{Deserialize, Serialize};

use super::{alerts::Notice, org::records};

records! {
    WebhookDelivery "webhook_delivery";
}

/// How a receiver is reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Way {
    /// A mail.
    Email,
    /// A request.
    Webhook,
}

/// Something to be brought to one receiver, due at a time: stored for nobody under
/// `<due>:<id>`, so that what is due comes first.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Delivery {
    /// UUIDv7; the same at every attempt.
    pub id: String,
    /// Organisation that it belongs to, and that it goes with.
    pub org: String,
    /// When it is tried; while it is tried, when it is tried again if that try is never heard of.
    pub due_at: i64,
    /// Whether it is being tried.
    pub is_leased: bool,
    /// Number of the attempt that is next or under way, from 1.
    pub attempt: u32,
    /// How.
    pub way: Way,
    /// Address.
    pub to: String,
    /// Number of the alert rule.
    pub alert: u64,
    /// Id of the alert event.
    pub event: String,
    /// What is told.
    pub notice: Notice,
    /// Which retry by hand this is, from 1; 0 for an attempt that was not asked for.
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
        /// The notification.
        notice: Box<Notice>,
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
    /// Which retry by hand this was, from 1; 0 for an attempt that was not asked for.
    #[serde(default)]
    pub retry: u32,
    /// What was sent; absent in attempts of version 0.1.
    #[serde(default)]
    pub message: Option<Message>,
}
