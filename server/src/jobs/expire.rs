//! Removes the records of what has ended from time to time.

use std::time::Duration;

use tokio::sync::watch;
use tracing::debug;

use super::periodic::every;
use crate::app::App;

/// Often enough that ended sessions stay few, seldom enough to cost nothing.
const EVERY: Duration = Duration::from_secs(600);

/// Runs until the server stops.
pub async fn run(app: App, stopped: watch::Receiver<bool>) {
    every(EVERY, app, stopped, "remove what has ended", |app| {
        app.expire().map(|removed| debug!(removed, "removed what has ended"))
    })
    .await;
}
