//! Jobs that change something: they run in the process that leads.
//!
//! ```text
//! a store in its own directory         from the start to the stop
//! a store that several processes have  from the moment at which this one leads; what a former leader had claimed is free again, as after a start
//! ```
//!
//! A process that stops to lead ends, so that no job has to be taken back.

use tokio::{sync::watch, task::JoinSet};

use super::{deliver, evaluate_alerts, expire, flush_usage, run_reports};
use crate::{app::App, outbound::Dispatcher};

/// Waits until this process leads, then runs them all until the server stops.
pub async fn run(app: App, dispatcher: Dispatcher, mut stopped: watch::Receiver<bool>) {
    tokio::select! {
        () = app.settings.membership.until_leading() => {}
        _ = stopped.changed() => return,
    }
    let mut jobs = JoinSet::new();
    jobs.spawn(flush_usage::run(app.clone(), stopped.clone()));
    jobs.spawn(expire::run(app.clone(), stopped.clone()));
    jobs.spawn(evaluate_alerts::run(app.clone(), stopped.clone()));
    jobs.spawn(deliver::run(app.clone(), dispatcher.clone(), stopped.clone()));
    jobs.spawn(run_reports::run(app, dispatcher, stopped));
    // A job that panics ends alone.
    while jobs.join_next().await.is_some() {}
}
