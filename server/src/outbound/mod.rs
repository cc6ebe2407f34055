//! What leaves the server, and where it may go.

mod address;
mod billing;

pub use address::{WebhookRules, check_webhook};
pub use billing::portal;
