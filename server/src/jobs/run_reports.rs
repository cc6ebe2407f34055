//! Runs reports: begins what is due, makes the files, brings them to their receivers.

use std::{
    collections::{BTreeMap, HashMap},
    sync::Arc,
    time::{Duration, Instant},
};

use parking_lot::Mutex;
use tokio::{
    sync::{Semaphore, watch},
    task::{JoinSet, spawn_blocking},
};
use tracing::warn;

use crate::{
    app::{App, NextMessage, Outcome, ReportFile, ReportWork},
    error::{ApiError, Result},
    outbound::Dispatcher,
    store::RecipientStatus,
};

const TICK: Duration = Duration::from_secs(1);
/// Runs at once, of as many organisations: most of them wait for receivers.
const AT_ONCE: usize = 32;
/// Files that are drawn at once: each takes a core.
const DRAWN_AT_ONCE: usize = 2;
/// A clock that was set back by less changes nothing that matters.
const CLOCK_SLACK_MS: i64 = 60_000;
/// A run takes no longer than this; who did not get his part by then gets none.
const RUN_MAX: Duration = Duration::from_secs(10 * 60);
/// Receivers of a run at once.
const RECEIVERS_AT_ONCE: usize = 4;
/// What is under way when the server stops gets this long to end.
const DRAIN: Duration = Duration::from_secs(20);

/// Runs under way, with their organisations.
type UnderWay = Arc<Mutex<HashMap<String, String>>>;

/// Takes a run from what is under way when it is left, however that comes.
struct RunGuard(UnderWay, String);

impl Drop for RunGuard {
    fn drop(&mut self) {
        self.0.lock().remove(&self.1);
    }
}

/// Runs until the server stops; then what is under way ends, or is gone on with at the next start.
pub async fn run(app: App, dispatcher: Dispatcher, mut stopped: watch::Receiver<bool>) {
    let under_way = UnderWay::default();
    let drawing = Arc::new(Semaphore::new(DRAWN_AT_ONCE));
    let mut last_ms = i64::MAX;
    loop {
        let now_ms = app.now_ms();
        // At the start, and when the clock was set back, what waits may wait for nothing.
        if now_ms < last_ms.saturating_sub(CLOCK_SLACK_MS) {
            let working = app.clone();
            let aligned = spawn_blocking(move || {
                working.release_runs()?;
                working.realign_reports()
            });
            if let Ok(Err(error)) = aligned.await {
                warn!(code = error.code.name(), %error, "reports wait until their time has come");
            }
        }
        last_ms = now_ms;
        tokio::select! {
            _ = stopped.changed() => break,
            () = tokio::time::sleep(TICK) => {}
        }
        let busy = under_way.lock().clone();
        let working = app.clone();
        let claimed = spawn_blocking(move || {
            working.start_due_reports()?;
            working.claim_runs(&busy, AT_ONCE.saturating_sub(busy.len()))
        });
        let claimed = match claimed.await {
            Ok(Ok(claimed)) => claimed,
            Ok(Err(error)) => {
                warn!(code = error.code.name(), %error, "cannot begin reports");
                continue;
            }
            Err(error) => {
                warn!(%error, "the job ended early");
                continue;
            }
        };
        for work in claimed {
            under_way.lock().insert(work.run.id.clone(), work.work.org.clone());
            let place = RunGuard(Arc::clone(&under_way), work.run.id.clone());
            let (app, dispatcher, drawing) =
                (app.clone(), dispatcher.clone(), Arc::clone(&drawing));
            tokio::spawn(async move {
                let _place = place;
                if let Err(error) = make(&app, &dispatcher, &drawing, Arc::new(work)).await {
                    // It stays claimed, and is gone on with when that ends.
                    warn!(code = error.code.name(), %error, "cannot go on with a report");
                }
            });
        }
    }
    let began = Instant::now();
    while !under_way.lock().is_empty() && began.elapsed() < DRAIN {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// Brings a run as far as it goes now.
async fn make(
    app: &App,
    dispatcher: &Dispatcher,
    drawing: &Semaphore,
    work: Arc<ReportWork>,
) -> Result<()> {
    let mut of_tenants: BTreeMap<Option<String>, Vec<(usize, RecipientStatus)>> = BTreeMap::new();
    for (at, recipient) in work.run.deliveries.iter().enumerate() {
        if recipient.status == "pending" {
            of_tenants
                .entry(recipient.tenant_id.clone())
                .or_default()
                .push((at, recipient.clone()));
        }
    }
    let (began, mut bytes, mut faults) = (Instant::now(), 0, Vec::new());
    for (tenant, receivers) in of_tenants {
        // A rule that was deleted meanwhile tells nobody any more.
        if !app.is_wanted(&work)? {
            break;
        }
        if began.elapsed() > RUN_MAX {
            faults.push("the run took too long".to_owned());
            let places = receivers.iter().map(|(at, _)| *at).collect();
            fail(app, &work, places, "the run took too long").await?;
            continue;
        }
        let (working, of) = (app.clone(), Arc::clone(&work));
        let is_mailed = receivers.iter().any(|(_, receiver)| receiver.kind == "email");
        let file = {
            let _place = drawing.acquire().await;
            spawn_blocking(move || {
                let ReportWork { rule, environment, dashboard, .. } = &*of;
                let tenant = (tenant.as_deref(), is_mailed);
                working.make_report(rule, environment, dashboard, tenant)
            })
            .await
        };
        match file.map_err(|error| ApiError::internal(error.to_string())).flatten() {
            Ok(file) => {
                bytes += file.bytes.len() as u64;
                if !file.missing.is_empty() {
                    faults.push(format!("could not be shown: {}", file.missing.join(", ")));
                }
                bring(app, dispatcher, &work, receivers, file).await?;
            }
            Err(error) => {
                warn!(code = error.code.name(), %error, cause = error.cause, "cannot draw a report");
                let why = "the report could not be drawn";
                fail(app, &work, receivers.iter().map(|(at, _)| *at).collect(), why).await?;
                faults.push(why.to_owned());
            }
        }
    }
    faults.dedup();
    let (app, work) = (app.clone(), Arc::clone(&work));
    let closed = spawn_blocking(move || app.close_run(&work, bytes, &faults)).await;
    closed.map_err(|error| ApiError::internal(error.to_string()))?
}

/// Writes down that some receivers get nothing.
async fn fail(
    app: &App,
    work: &Arc<ReportWork>,
    places: Vec<usize>,
    why: &'static str,
) -> Result<()> {
    let (app, work) = (app.clone(), Arc::clone(work));
    let failed = spawn_blocking(move || app.fail_told(&work, &places, why)).await;
    failed.map_err(|error| ApiError::internal(error.to_string()))?
}

/// Brings a file to its receivers, a few at once.
async fn bring(
    app: &App,
    dispatcher: &Dispatcher,
    work: &Arc<ReportWork>,
    receivers: Vec<(usize, RecipientStatus)>,
    file: ReportFile,
) -> Result<()> {
    let places = Arc::new(Semaphore::new(RECEIVERS_AT_ONCE));
    let mut attempts = JoinSet::new();
    for (at, recipient) in receivers {
        let (app, dispatcher, work) = (app.clone(), dispatcher.clone(), Arc::clone(work));
        let (file, places) = (file.clone(), Arc::clone(&places));
        attempts.spawn(async move {
            let _place = places.acquire_owned().await;
            let began_at = app.now_ms();
            let (making, of) = (app.clone(), Arc::clone(&work));
            let message = spawn_blocking(move || {
                making.report_message(&of, (at, &recipient), &file, began_at)
            });
            let message =
                message.await.map_err(|error| ApiError::internal(error.to_string()))??;
            let message = match message {
                NextMessage::Send(message) => *message,
                NextMessage::RunGone => return Ok(()),
                NextMessage::ReceiverGone => {
                    return fail(&app, &work, vec![at], "the address was removed").await;
                }
            };
            let outcome = Outcome { began_at, result: dispatcher.send(message).await };
            let written = spawn_blocking(move || app.record_told(&work, at, &outcome)).await;
            written.map_err(|error| ApiError::internal(error.to_string()))?
        });
    }
    let mut all = Ok(());
    while let Some(done) = attempts.join_next().await {
        all = all.and(done.map_err(|error| ApiError::internal(error.to_string())).flatten());
    }
    all
}
