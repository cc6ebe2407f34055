//! Looks at what alert rules watch, each once an interval.
//!
//! Rules are spread over the interval, so that many do not make a burst; `places` sees to it that slow
//! ones delay no others. What was seen is written down together, once a second.

use std::{sync::Arc, time::Duration};

use parking_lot::Mutex;
use tokio::sync::watch;
use tracing::warn;

use super::places::{Key, Places};
use crate::{
    app::{App, Check, Settings},
    error::Result,
};

const TICK: Duration = Duration::from_secs(1);
/// A question of a rule may take this long, and no longer than any other.
const QUERY_MS_MAX: u64 = 5_000;

/// What was seen, and is not yet written down.
type Seen = Mutex<Vec<Check>>;

/// Runs until the server stops.
pub async fn run(app: App, mut stopped: watch::Receiver<bool>) {
    let app = hurried(&app);
    let interval_s = app.settings.alert_interval_s;
    let (seen, places) = (Arc::new(Seen::default()), Places::new());
    let mut last_s = app.now_ms().div_euclid(1_000);
    loop {
        tokio::select! {
            _ = stopped.changed() => break,
            () = tokio::time::sleep(TICK) => {}
        }
        let now_s = app.now_ms().div_euclid(1_000);
        let finding = app.clone();
        let due =
            tokio::task::spawn_blocking(move || finding.due_alerts(last_s, now_s, interval_s));
        last_s = now_s;
        for key in due.await.unwrap_or_default() {
            tokio::spawn(look(app.clone(), Arc::clone(&seen), Arc::clone(&places), key));
        }
        write_down(&app, &seen).await;
    }
    write_down(&app, &seen).await;
}

/// The same, with questions that may not take long.
fn hurried(app: &App) -> App {
    let query_ms_max = app.settings.query_ms_max.min(QUERY_MS_MAX);
    App { settings: Arc::new(Settings { query_ms_max, ..(*app.settings).clone() }), ..app.clone() }
}

async fn look(app: App, seen: Arc<Seen>, places: Arc<Places>, key: Key) {
    let (org, id) = key.clone();
    let looking = async { tokio::task::spawn_blocking(move || app.check_alert(&org, &id)).await };
    let rule = key.1.clone();
    match places.look(key, looking).await {
        None => {}
        Some(Ok(Ok(check))) => seen.lock().extend(check),
        Some(Ok(Err(error))) => {
            warn!(code = error.code.name(), %error, rule, "cannot look at an alert rule");
        }
        Some(Err(error)) => warn!(%error, rule, "looking at an alert rule ended early"),
    }
}

async fn write_down(app: &App, seen: &Seen) {
    let seen = std::mem::take(&mut *seen.lock());
    if seen.is_empty() {
        return;
    }
    let app = app.clone();
    let written = tokio::task::spawn_blocking(move || app.commit_checks(&seen)).await;
    match written {
        Ok(Ok(())) => {}
        // The next turn sees it again.
        Ok(Err(error)) => warn!(code = error.code.name(), %error, "cannot write down alerts"),
        Err(error) => warn!(%error, "the job ended early"),
    }
}

/// Looks at all rules now, and writes down what was seen. Returns how many rules were looked at.
pub fn evaluate_now(app: &App) -> Result<usize> {
    let mut seen = Vec::new();
    for (org, id) in app.due_alerts(0, i64::MAX / 2, 1) {
        seen.extend(app.check_alert(&org, &id)?);
    }
    app.commit_checks(&seen)?;
    Ok(seen.len())
}
