//! Sends outbound messages: webhooks and mails.
//!
//! Alerts and reports make messages, and jobs hand them over here, one attempt at a time. When to try again is decided by them:
//!
//! ```text
//! message     result of the attempt                             state of the delivery
//! webhook     200                                               sent
//! webhook     500: error "the receiver answered 500"            tried again after its wait
//! webhook     429, Retry-After: 30: retry_after_s 30            tried again, not before 30 s
//! mail        accepted                                          sent
//! mail        550 no such user: is_final                        failed, at once
//! ```

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
    /// HTTP status; 0 for a mail, and when there was no answer.
    pub status_code: u16,
    /// Why the attempt failed; absent after a success.
    pub error: Option<String>,
    /// Start of a webhook's answer as text; absent for a mail.
    pub excerpt: Option<String>,
    /// Seconds that a busy receiver asks to wait before the next attempt; absent otherwise.
    pub retry_after_s: Option<u64>,
    /// Whether trying again cannot help.
    pub is_final: bool,
    /// Duration of the attempt.
    pub took: Duration,
}

/// Sends messages through the channel of each: webhook or mail.
#[derive(Clone)]
pub struct Dispatcher {
    /// Posts to webhooks, within the rules for addresses.
    pub poster: Poster,
    /// Sends mails by SMTP, or writes them into a folder.
    pub mailer: Mailer,
}

impl Dispatcher {
    /// Makes one attempt. An answer of a webhook other than 2xx is a failure, and never final.
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
