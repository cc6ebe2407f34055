//! Work that is done again and again until the server stops.
//!
//! ```text
//! every(10 s, app, stopped, "write down counts", App::write_counts)
//!     WARN cannot write down counts code="overloaded" error="the server cannot take writes right now; retry soon"
//! ```
//!
//! The first turn is one wait after the start. A turn that takes longer than the wait delays the next: two never run at once.

use std::time::Duration;

use tokio::sync::watch;
use tracing::warn;

use crate::{app::App, error::Result};

/// Does `work` on the blocking pool at this pace; what goes wrong is logged as `cannot {what}`, and tried again at the next turn.
pub async fn every(
    pace: Duration,
    app: App,
    mut stopped: watch::Receiver<bool>,
    what: &'static str,
    work: fn(&App) -> Result<()>,
) {
    loop {
        tokio::select! {
            _ = stopped.changed() => return,
            () = tokio::time::sleep(pace) => {}
        }
        let app = app.clone();
        match tokio::task::spawn_blocking(move || work(&app)).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => warn!(code = error.code.name(), %error, "cannot {what}"),
            Err(error) => warn!(%error, "the job ended early"),
        }
    }
}
