//! What leaves the server, and where it may go.

mod address;
mod billing;
mod mail;

mod resolver;

mod webhook;

mod dispatcher;

pub use address::{WebhookRules, check_webhook};
pub use billing::portal;
pub use dispatcher::{DeliveryResult, Dispatcher, OutboundMessage};
pub use mail::{Bounce, Mail, Mailer, remove_old_mails};
pub use webhook::{Post, Poster};
