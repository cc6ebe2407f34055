//! Evaluates alert rules, each once an interval.
//!
//! Rules are spread over the interval, so that many do not make a burst; `evaluation_lanes` keeps slow ones from
//! delaying others. Samples are committed together, once a second.
//!
//! ```text
//! 10:17:36    rules of second 36 are due       each on a task, in its lane
//!             rule 7 of Acme                   a sample after 3 ms
//!             rule 12 of Acme                  a sample after 1.4 s
//!             rule 3 of Globex                 still being evaluated since the minute before: left out
//! 10:17:37    rules of second 37 are due       one transaction for rule 7 and others: what fires has an event and deliveries in the queue
//! 10:17:38    rules of second 38 are due       one transaction for rule 12 and others
//! ```

use std::{sync::Arc, time::Duration};

use parking_lot::Mutex;
use tokio::sync::watch;
use tracing::warn;

use super::evaluation_lanes::{EvaluationLanes, Key};
use crate::{
    app::{App, Check, Settings},
    error::Result,
};

// A rule has a second of the interval, so that a shorter tick would find nothing more.
const TICK: Duration = Duration::from_secs(1);
/// Milliseconds of a rule's query, at most: its slot comes again within a minute, and others wait. The limit of all queries holds, too.
const QUERY_MS_MAX: u64 = 5_000;

/// Samples that have not been committed yet.
type Samples = Mutex<Vec<Check>>;

/// Runs until the server stops.
pub async fn run(app: App, mut stopped: watch::Receiver<bool>) {
    let app = with_short_queries(&app);
    let interval_s = app.settings.alert_interval_s;
    let (samples, lanes) = (Arc::new(Samples::default()), EvaluationLanes::new(&app.pools));
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
            tokio::spawn(evaluate(app.clone(), Arc::clone(&samples), Arc::clone(&lanes), key));
        }
        commit(&app, &samples).await;
    }
    commit(&app, &samples).await;
}

/// The app with a shorter limit for queries, which holds for this job alone.
fn with_short_queries(app: &App) -> App {
    let query_ms_max = app.settings.query_ms_max.min(QUERY_MS_MAX);
    App { settings: Arc::new(Settings { query_ms_max, ..(*app.settings).clone() }), ..app.clone() }
}

/// Evaluates one rule in its lane, and adds its sample. A fault is logged; the rule has its next turn in an interval.
async fn evaluate(app: App, samples: Arc<Samples>, lanes: Arc<EvaluationLanes>, key: Key) {
    let (org, id) = key.clone();
    let evaluation =
        async { tokio::task::spawn_blocking(move || app.check_alert(&org, &id)).await };
    let rule = key.1.clone();
    match lanes.evaluate(key, evaluation).await {
        None => {}
        Some(Ok(Ok(check))) => samples.lock().extend(check),
        Some(Ok(Err(error))) => {
            warn!(code = error.code.name(), %error, rule, "cannot evaluate an alert rule");
        }
        Some(Err(error)) => warn!(%error, rule, "the evaluation of an alert rule ended early"),
    }
}

/// Stores the samples so far with what follows from them. Samples that cannot be stored are gone: rules are sampled again.
async fn commit(app: &App, samples: &Samples) {
    let samples = std::mem::take(&mut *samples.lock());
    if samples.is_empty() {
        return;
    }
    let app = app.clone();
    let written = tokio::task::spawn_blocking(move || app.commit_checks(&samples)).await;
    match written {
        Ok(Ok(())) => {}
        // The next turn samples them again.
        Ok(Err(error)) => {
            warn!(code = error.code.name(), %error, "cannot store the states of alerts")
        }
        Err(error) => warn!(%error, "the job ended early"),
    }
}

/// Evaluates all rules now and commits the samples. Returns how many rules were evaluated.
///
/// Rules that are disabled are not counted. Errors: the first rule that cannot be read; nothing is committed then.
pub fn evaluate_now(app: &App) -> Result<usize> {
    let mut samples = Vec::new();
    for (org, id) in app.due_alerts(0, i64::MAX / 2, 1) {
        samples.extend(app.check_alert(&org, &id)?);
    }
    app.commit_checks(&samples)?;
    Ok(samples.len())
}
