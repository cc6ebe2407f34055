//! Looks at what alert rules watch, each once an interval.
//!
//! Rules are spread over the interval, so that many do not make a burst. A few are looked at at once;
//! those that took long the last time wait for a place of their own, so that slow rules delay slow
//! rules. What was seen is written down together, once a second.

use std::{
    collections::HashSet,
    sync::Arc,
    time::{Duration, Instant},
};

use parking_lot::Mutex;
use tokio::sync::{Semaphore, watch};
use tracing::warn;

use crate::{
    app::{App, Check, Settings},
    error::Result,
};

const TICK: Duration = Duration::from_secs(1);
/// Rules that are looked at at once.
const AT_ONCE: usize = 4;
/// Slow ones among them at once, with places of their own.
const SLOW_AT_ONCE: usize = 2;
/// A rule that took longer is a slow one.
const SLOW: Duration = Duration::from_millis(250);
/// A question of a rule may take this long, and no longer than any other.
const QUERY_MS_MAX: u64 = 5_000;

/// An organisation and a rule.
type Key = (String, String);

/// What ticks share.
#[derive(Default)]
struct Shared {
    /// Looked at now, or waiting for a place.
    under_way: HashSet<Key>,
    /// Took long the last time.
    slow: HashSet<Key>,
    /// Seen, and not yet written down.
    seen: Vec<Check>,
}

/// Runs until the server stops.
pub async fn run(app: App, mut stopped: watch::Receiver<bool>) {
    let app = hurried(&app);
    let interval_s = app.settings.alert_interval_s;
    let shared = Arc::new(Mutex::new(Shared::default()));
    let places = Arc::new(Semaphore::new(AT_ONCE));
    let slow_places = Arc::new(Semaphore::new(SLOW_AT_ONCE));
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
            let is_slow = {
                let mut shared = shared.lock();
                // A rule that is not done with its last turn misses this one.
                if !shared.under_way.insert(key.clone()) {
                    continue;
                }
                shared.slow.contains(&key)
            };
            let places = Arc::clone(if is_slow { &slow_places } else { &places });
            tokio::spawn(look(app.clone(), Arc::clone(&shared), places, key));
        }
        write_down(&app, &shared).await;
    }
    write_down(&app, &shared).await;
}

/// The same, with questions that may not take long.
fn hurried(app: &App) -> App {
    let query_ms_max = app.settings.query_ms_max.min(QUERY_MS_MAX);
    App { settings: Arc::new(Settings { query_ms_max, ..(*app.settings).clone() }), ..app.clone() }
}

async fn look(app: App, shared: Arc<Mutex<Shared>>, places: Arc<Semaphore>, key: Key) {
    let _place = places.acquire_owned().await;
    let began = Instant::now();
    let (org, id) = key.clone();
    let checked = tokio::task::spawn_blocking(move || app.check_alert(&org, &id)).await;
    let mut shared = shared.lock();
    shared.under_way.remove(&key);
    if began.elapsed() > SLOW {
        shared.slow.insert(key.clone());
    } else {
        shared.slow.remove(&key);
    }
    match checked {
        Ok(Ok(check)) => shared.seen.extend(check),
        Ok(Err(error)) => {
            warn!(code = error.code.name(), %error, rule = key.1, "cannot look at an alert rule");
        }
        Err(error) => warn!(%error, rule = key.1, "looking at an alert rule ended early"),
    }
}

async fn write_down(app: &App, shared: &Mutex<Shared>) {
    let seen = std::mem::take(&mut shared.lock().seen);
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
