//! Sends outbound messages: webhooks and mails.

use std::time::{Duration, Instant};

use super::{
    mail::{Mail, Mailer},
    webhook::{Post, Poster},
};

/// A message to send.
pub enum OutboundMessage {
    /// To a webhook.
    Post(Post),
    /// To a mailbox.
    Mail(Box<Mail>),
}

/// The result of one attempt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeliveryResult {
    /// HTTP status; 0 without one.
    pub status_code: u16,
    /// Why the attempt failed; absent after a success.
    pub error: Option<String>,
    /// How a webhook's answer began.
    pub excerpt: Option<String>,
    /// Seconds until the receiver wants to see the next attempt, where it is busy and says so.
    pub retry_after_s: Option<u64>,
    /// Whether trying again cannot help.
    pub is_final: bool,
    /// How long it took.
    pub took: Duration,
}

/// Sends messages through the channel of each: webhook or mail.
#[derive(Clone)]
pub struct Dispatcher {
    /// For webhooks.
    pub poster: Poster,
    /// For mails.
    pub mailer: Mailer,
}

impl Dispatcher {
    /// One attempt. Any answer of a webhook but 2xx is a failure, and none of them is final.
    pub async fn send(&self, message: OutboundMessage) -> DeliveryResult {
        match message {
            OutboundMessage::Post(post) => {
                let posted = self.poster.post(post).await;
                let status = posted.status_code;
                let said_no = || {
                    (!(200..300).contains(&status))
                        .then(|| format!("the receiver answered {status}"))
                };
                DeliveryResult {
                    status_code: status,
                    error: posted.error.or_else(said_no),
                    excerpt: posted.excerpt,
                    retry_after_s: posted.retry_after_s,
                    is_final: false,
                    took: posted.took,
                }
            }
            OutboundMessage::Mail(mail) => {
                let began = Instant::now();
                let bounce = self.mailer.send(*mail).await.err();
                DeliveryResult {
                    status_code: 0,
                    is_final: bounce.as_ref().is_some_and(|bounce| bounce.is_final),
                    error: bounce.map(|bounce| bounce.message),
                    excerpt: None,
                    retry_after_s: None,
                    took: began.elapsed(),
                }
            }
        }
    }
}

#[cfg(test)]
impl Dispatcher {
    /// A dispatcher with the default webhook rules, whose mails go to a folder that does not exist.
    pub fn in_tests() -> Self {
        let poster = Poster::new(&super::WebhookRules::default()).unwrap();
        let mailer = Mailer::new(None, None, std::path::Path::new("/nowhere")).unwrap();
        Self { poster, mailer }
    }
}
