//! Writes down from time to time what is counted in memory.

use std::time::Duration;

use tokio::sync::watch;
use tracing::warn;

use crate::app::App;

/// What a crash may lose of counts; of events it loses none.
const EVERY: Duration = Duration::from_secs(10);

/// Runs until the server stops, which writes down the rest.
pub async fn run(app: App, mut stopped: watch::Receiver<bool>) {
    loop {
        tokio::select! {
            _ = stopped.changed() => return,
            () = tokio::time::sleep(EVERY) => {}
        }
        let app = app.clone();
        match tokio::task::spawn_blocking(move || app.write_counts()).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => warn!(code = error.code.name(), %error, "cannot write down counts"),
            Err(error) => warn!(%error, "the job ended early"),
        }
    }
}
