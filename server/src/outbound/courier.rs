//! All that carries something to somebody.

use super::{mail::Mailer, webhook::Poster};

/// The ways out.
#[derive(Clone)]
pub struct Courier {
    /// For webhooks.
    pub poster: Poster,
    /// For mails.
    pub mailer: Mailer,
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
