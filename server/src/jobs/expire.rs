//! Removes the records of what has ended, and old mails, from time to time.
//!
//! ```text
//! every 10 minutes    App::expire      sessions, links, invites, idempotent requests, … (app/expire.rs)
//!                     data/outbox      mails that are files, 30 days after they were written
//! ```
//!
//! A fault of one half does not keep the other from its work: mails are removed first, and what goes wrong with them is logged.

use std::time::{Duration, UNIX_EPOCH};

use tokio::sync::watch;
use tracing::{debug, warn};

use super::periodic::every;
use crate::{app::App, error::Result, outbound::remove_old_mails};

/// Often enough that ended sessions stay few, seldom enough to cost nothing.
const EVERY: Duration = Duration::from_secs(600);

/// Milliseconds for which mails that are files are retained; with `INLAY_SMTP_URL` there are none.
const MAILS_KEPT_MS: u64 = 30 * 86_400_000;

/// Removes records of what has ended, and old mails of the outbox; returns how many there were.
///
/// Errors: those of the store.
pub fn expire_now(app: &App) -> Result<usize> {
    let now = Duration::from_millis(app.now_ms().try_into().unwrap_or(0));
    let before = UNIX_EPOCH + now.saturating_sub(Duration::from_millis(MAILS_KEPT_MS));
    let mails = remove_old_mails(&app.settings.data_dir.join("outbox"), before);
    let mails = mails.unwrap_or_else(|error| {
        warn!(%error, "cannot remove old mails from the outbox");
        0
    });
    Ok(app.expire()? + mails)
}

/// Runs until the server stops.
pub async fn run(app: App, stopped: watch::Receiver<bool>) {
    every(EVERY, app, stopped, "remove what has ended", |app| {
        expire_now(app).map(|removed| debug!(removed, "removed what has ended"))
    })
    .await;
}
