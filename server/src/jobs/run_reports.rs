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
    app::{App, Outcome, Parcel, ReportWork},
    error::{ApiError, Result},
    outbound::Courier,
    store::Told,
};

const TICK: Duration = Duration::from_secs(1);
/// Runs at once: each takes a core while it draws.
const AT_ONCE: usize = 2;
/// Receivers of a run at once.
const RECEIVERS_AT_ONCE: usize = 4;
/// What is under way when the server stops gets this long to end.
const DRAIN: Duration = Duration::from_secs(20);

/// Runs until the server stops; then what is under way ends, or is gone on with at the next start.
pub async fn run(app: App, courier: Courier, mut stopped: watch::Receiver<bool>) {
    let under_way: Arc<Mutex<HashMap<String, String>>> = Arc::default();
    let releasing = app.clone();
    if let Ok(Err(error)) = spawn_blocking(move || releasing.release_runs()).await {
        warn!(code = error.code.name(), %error, "runs of the last start wait until their time is over");
    }
    loop {
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
            let (app, courier, under_way) = (app.clone(), courier.clone(), Arc::clone(&under_way));
            tokio::spawn(async move {
                let id = work.run.id.clone();
                if let Err(error) = make(&app, &courier, Arc::new(work)).await {
                    // It stays claimed, and is gone on with when that ends.
                    warn!(code = error.code.name(), %error, "cannot go on with a report");
                }
                under_way.lock().remove(&id);
            });
        }
    }
    let began = Instant::now();
    while !under_way.lock().is_empty() && began.elapsed() < DRAIN {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// Brings a run as far as it goes now.
async fn make(app: &App, courier: &Courier, work: Arc<ReportWork>) -> Result<()> {
    let mut of_tenants: BTreeMap<Option<String>, Vec<(usize, Told)>> = BTreeMap::new();
    for (at, told) in work.run.deliveries.iter().enumerate() {
        if told.status == "pending" {
            of_tenants.entry(told.tenant_id.clone()).or_default().push((at, told.clone()));
        }
    }
    let (mut bytes, mut fault) = (0, None);
    for (tenant, receivers) in of_tenants {
        let (drawing, of) = (app.clone(), Arc::clone(&work));
        let parcel = spawn_blocking(move || drawing.report_parcel(&of, tenant.as_deref())).await;
        match parcel.map_err(|error| ApiError::internal(error.to_string())).flatten() {
            Ok(parcel) => {
                bytes += parcel.bytes.len() as u64;
                bring(app, courier, &work, receivers, parcel).await?;
            }
            Err(error) => {
                warn!(code = error.code.name(), %error, cause = error.cause, "cannot draw a report");
                fault = Some("the report could not be drawn");
            }
        }
    }
    let (app, work) = (app.clone(), Arc::clone(&work));
    let closed = spawn_blocking(move || app.close_run(&work, bytes, fault)).await;
    closed.map_err(|error| ApiError::internal(error.to_string()))?
}

/// Brings a file to its receivers, a few at once.
async fn bring(
    app: &App,
    courier: &Courier,
    work: &Arc<ReportWork>,
    receivers: Vec<(usize, Told)>,
    parcel: Parcel,
) -> Result<()> {
    let places = Arc::new(Semaphore::new(RECEIVERS_AT_ONCE));
    let mut attempts = JoinSet::new();
    for (at, told) in receivers {
        let (app, courier, work) = (app.clone(), courier.clone(), Arc::clone(work));
        let (parcel, places) = (parcel.clone(), Arc::clone(&places));
        attempts.spawn(async move {
            let _place = places.acquire_owned().await;
            let began_at = app.now_ms();
            let packet = app.report_packet(&work, (at, &told), &parcel, began_at)?;
            let outcome = Outcome { began_at, carried: courier.carry(packet).await };
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
