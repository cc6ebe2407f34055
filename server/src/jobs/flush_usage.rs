//! Writes down from time to time what is counted in memory.

use std::time::Duration;

use tokio::sync::watch;

use super::periodic::every;
use crate::app::App;

/// What a crash may lose of counts; of events it loses none.
const EVERY: Duration = Duration::from_secs(10);

/// Runs until the server stops, which writes down the rest.
pub async fn run(app: App, stopped: watch::Receiver<bool>) {
    every(EVERY, app, stopped, "write down counts", App::write_counts).await;
}
