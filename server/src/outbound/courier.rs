//! All that carries something to somebody.

use std::time::{Duration, Instant};

use super::{
    mail::{Mail, Mailer},
    webhook::{Post, Poster},
};

/// Something to be carried.
pub enum Packet {
    /// To a webhook.
    Post(Post),
    /// To a mailbox.
    Mail(Box<Mail>),
}

/// What came of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Carried {
    /// HTTP status; 0 without one.
    pub status_code: u16,
    /// Why the receiver does not have it; nothing when he has.
    pub error: Option<String>,
    /// How a webhook's answer began.
    pub excerpt: Option<String>,
    /// Whether trying again cannot help.
    pub is_final: bool,
    /// How long it took.
    pub took: Duration,
}

/// The ways out.
#[derive(Clone)]
pub struct Courier {
    /// For webhooks.
    pub poster: Poster,
    /// For mails.
    pub mailer: Mailer,
}

impl Courier {
    /// One attempt. Any answer of a webhook but 2xx is a failure, and none of them is final.
    pub async fn carry(&self, packet: Packet) -> Carried {
        match packet {
            Packet::Post(post) => {
                let posted = self.poster.post(post).await;
                let status = posted.status_code;
                let said_no = || {
                    (!(200..300).contains(&status))
                        .then(|| format!("the receiver answered {status}"))
                };
                Carried {
                    status_code: status,
                    error: posted.error.or_else(said_no),
                    excerpt: posted.excerpt,
                    is_final: false,
                    took: posted.took,
                }
            }
            Packet::Mail(mail) => {
                let began = Instant::now();
                let bounce = self.mailer.send(*mail).await.err();
                Carried {
                    status_code: 0,
                    is_final: bounce.as_ref().is_some_and(|bounce| bounce.is_final),
                    error: bounce.map(|bounce| bounce.message),
                    excerpt: None,
                    took: began.elapsed(),
                }
            }
        }
    }
}

#[cfg(test)]
impl Courier {
    /// One that goes where the rules let it, and writes mails into a folder that is not there.
    pub fn in_tests() -> Self {
        let poster = Poster::new(&super::WebhookRules::default()).unwrap();
        let mailer = Mailer::new(None, None, std::path::Path::new("/nowhere")).unwrap();
        Self { poster, mailer }
    }
}
