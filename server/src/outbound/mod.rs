//! Outbound requests, and the addresses that they may reach.
//!
//! ```text
//! webhook of an alert     dispatcher -> webhook -> address (the text of the URL) -> resolver (its addresses now) -> connection
//! mail                    dispatcher -> mail -> SMTP server, or a file in the outbox
//! request of a client     leader -> the process that leads, whose address the database has
//! portal of billing       billing -> the API of the provider, whose address the operator has configured
//! ```
//!
//! Only URLs that customers name are checked: those of webhooks. Addresses that the operator configures are trusted.

mod address;
mod billing;
mod leader;
mod mail;

mod resolver;

mod webhook;

mod dispatcher;

pub use address::{WebhookRules, check_webhook};
pub use billing::portal;
pub use dispatcher::{DeliveryResult, Dispatcher, OutboundMessage};
pub use leader::{
    COUNTS_PATH, LeaderClient, LeaderError, NODE_HEADER, sent_for, without_connection,
};
pub use mail::{Bounce, Mail, Mailer, remove_old_mails};
pub use webhook::{Post, Poster};
