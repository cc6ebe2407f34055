//! Removes the records of ended sessions from time to time.

use std::time::Duration;

use tokio::sync::watch;
use tracing::{debug, warn};

use crate::app::App;

/// Often enough that ended sessions stay few, seldom enough to cost nothing.
const EVERY: Duration = Duration::from_secs(600);

/// Runs until the server stops.
pub async fn run(app: App, mut stopped: watch::Receiver<bool>) {
    loop {
        tokio::select! {
            _ = stopped.changed() => return,
            () = tokio::time::sleep(EVERY) => {}
        }
        let app = app.clone();
        match tokio::task::spawn_blocking(move || app.expire()).await {
            Ok(Ok(removed)) => debug!(removed, "removed ended sessions"),
            Ok(Err(error)) => {
                warn!(code = error.code.name(), %error, "cannot remove ended sessions")
            }
            Err(error) => warn!(%error, "the job ended early"),
        }
    }
}
