//! Writes down from time to time what is counted in memory.
//!
//! ```text
//! GET /v1/query, 40 times in 10 s      counters in memory: 40       one transaction: usage_day += 40
//! ```

use std::time::Duration;

use tokio::sync::watch;

use super::periodic::every;
use crate::app::App;

/// What a crash may lose of counts; of events it loses none.
const EVERY: Duration = Duration::from_secs(10);
/// As often where other processes show them, which know what is written down.
const EVERY_FOR_OTHERS: Duration = Duration::from_secs(1);

/// Runs until the server stops, which writes down the rest.
pub async fn run(app: App, stopped: watch::Receiver<bool>) {
    let is_alone = app.settings.membership.is_alone();
    let pace = if is_alone { EVERY } else { EVERY_FOR_OTHERS };
    every(pace, app, stopped, "write down counts", App::write_counts).await;
}
