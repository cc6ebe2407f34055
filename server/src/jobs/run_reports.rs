//! Runs reports: begins what is due, makes the files, brings them to their receivers.
//!
//! Which runs go, and what follows from what became of their receivers: `app/reports/runs.rs`.
//!
//! ```text
//! a run for acme (boss, ada, webhook) and globex (boss, webhook)
//!     drawing permit    the file of acme, with a picture for mails
//!     4 at once         boss sent, ada sent, webhook sent
//!     drawing permit    the file of globex
//!     4 at once         boss "try again later", webhook sent
//!     close             boss of globex is pending: the run is due again in 30 s, and then only globex is drawn
//! ```

use std::{
    collections::{BTreeMap, HashMap},
    sync::Arc,
    time::{Duration, Instant},
};

use tokio::{
    sync::{Semaphore, watch},
    task::{JoinSet, spawn_blocking},
};
use tracing::warn;

use super::leased_work::{self, LeasedWork};
use crate::{
    app::{App, NextMessage, Outcome, ReportFile, ReportWork},
    base::permit_pools::PermitPool,
    error::{ApiError, Result},
    outbound::Dispatcher,
    store::RecipientStatus,
};

/// Files that are drawn at once: each takes a core.
const DRAWN_AT_ONCE: usize = 2;
/// Time of a run: recipients whose file is not begun by then fail with `the run took too long`. The lease is longer.
const RUN_MAX: Duration = Duration::from_secs(10 * 60);
/// Recipients of one file that are sent to at once.
const RECEIVERS_AT_ONCE: usize = 4;

/// Runs until the server stops; then what is under way ends, or goes on at the next start.
pub async fn run(app: App, dispatcher: Dispatcher, stopped: watch::Receiver<bool>) {
    let drawing = app.pools.pool("report_files", DRAWN_AT_ONCE);
    leased_work::run(Reports { dispatcher, drawing }, app, stopped).await;
}

/// Runs of reports, of each organisation one at a time.
#[derive(Clone)]
struct Reports {
    dispatcher: Dispatcher,
    drawing: Arc<PermitPool>,
}

impl LeasedWork for Reports {
    type Item = ReportWork;
    /// Id of the organisation, of which one run goes at a time.
    type Summary = String;

    const TICK: Duration = Duration::from_secs(1);
    /// Most of them wait for receivers.
    const AT_ONCE: usize = 32;
    const DRAIN: Duration = Duration::from_secs(20);
    const NAME: &'static str = "reports";

    fn release(&self, app: &App) -> Result<()> {
        app.release_runs()?;
        app.realign_reports()
    }

    fn claim(
        &self,
        app: &App,
        under_way: &HashMap<String, String>,
        room: usize,
    ) -> Result<Vec<ReportWork>> {
        app.start_due_reports()?;
        app.claim_runs(under_way, room)
    }

    fn summary_of(work: &ReportWork) -> (String, String) {
        (work.run.id.clone(), work.work.org.clone())
    }

    async fn perform(self, app: App, work: ReportWork) -> Result<()> {
        make(&app, &self.dispatcher, &self.drawing, Arc::new(work)).await
    }
}

/// Works on a run: makes a file for each tenant that has recipients pending, sends it, and closes the run or schedules its next attempt.
///
/// Errors: those of the store; the run stays leased then.
async fn make(
    app: &App,
    dispatcher: &Dispatcher,
    drawing: &PermitPool,
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
            let indices = receivers.iter().map(|(at, _)| *at).collect();
            fail(app, &work, indices, "the run took too long").await?;
            continue;
        }
        let (working, of) = (app.clone(), Arc::clone(&work));
        let is_mailed = receivers.iter().any(|(_, receiver)| receiver.kind == "email");
        let file = {
            let _permit = drawing.acquire_in_turn().await;
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

/// Stores that some recipients get nothing, and why: `receivers` are indexes into the run's list.
async fn fail(
    app: &App,
    work: &Arc<ReportWork>,
    receivers: Vec<usize>,
    why: &'static str,
) -> Result<()> {
    let (app, work) = (app.clone(), Arc::clone(work));
    let failed = spawn_blocking(move || app.fail_receivers(&work, &receivers, why)).await;
    failed.map_err(|error| ApiError::internal(error.to_string()))?
}

/// Sends a file to its recipients, a few at once, and stores the outcome of each as soon as it is known.
///
/// Errors: the first outcome that could not be stored; the others are.
async fn bring(
    app: &App,
    dispatcher: &Dispatcher,
    work: &Arc<ReportWork>,
    receivers: Vec<(usize, RecipientStatus)>,
    file: ReportFile,
) -> Result<()> {
    let permits = Arc::new(Semaphore::new(RECEIVERS_AT_ONCE));
    let mut attempts = JoinSet::new();
    for (at, recipient) in receivers {
        let (app, dispatcher, work) = (app.clone(), dispatcher.clone(), Arc::clone(work));
        let (file, permits) = (file.clone(), Arc::clone(&permits));
        attempts.spawn(async move {
            let _permit = permits.acquire_owned().await;
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
            let written = spawn_blocking(move || app.record_receiver(&work, at, &outcome)).await;
            written.map_err(|error| ApiError::internal(error.to_string()))?
        });
    }
    // All are waited for, also after an error: dropping the set would abort attempts whose message may have arrived.
    let mut all = Ok(());
    while let Some(done) = attempts.join_next().await {
        all = all.and(done.map_err(|error| ApiError::internal(error.to_string())).flatten());
    }
    all
}
