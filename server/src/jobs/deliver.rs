//! Sends due notifications to their receivers: webhooks and mails.
//!
//! A delivery under way is claimed in the store by a lease, so that it is tried again after a crash: `app/delivery/queue.rs`.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use parking_lot::Mutex;
use tokio::{sync::watch, task::spawn_blocking};
use tracing::{debug, warn};

use crate::{
    app::{App, Outcome, Queued, UnderWay},
    error::{ApiError, Result},
    outbound::Dispatcher,
    store::Delivery,
};

const TICK: Duration = Duration::from_millis(250);
/// Attempts at once, of all organisations.
const AT_ONCE: usize = 64;
/// A clock that was set back by less changes nothing that matters.
const CLOCK_SLACK_MS: i64 = 60_000;
/// What is under way when the server stops gets this long to end.
const DRAIN: Duration = Duration::from_secs(12);

/// What is being tried.
type Shared = Arc<Mutex<UnderWay>>;

/// Takes a delivery from what is being tried when its attempt ends, however it ends.
struct ClaimGuard(Shared, String);

impl Drop for ClaimGuard {
    fn drop(&mut self) {
        self.0.lock().remove(&self.1);
    }
}

/// Runs until the server stops; then what is under way ends.
pub async fn run(app: App, dispatcher: Dispatcher, mut stopped: watch::Receiver<bool>) {
    let under_way = Shared::default();
    let known = Arc::new(Mutex::new(Queued::default()));
    let mut last_ms = i64::MAX;
    loop {
        let now_ms = app.now_ms();
        // At the start, and when the clock was set back, what waits may wait for nothing.
        if now_ms < last_ms.saturating_sub(CLOCK_SLACK_MS) {
            let releasing = app.clone();
            if let Ok(Err(error)) = spawn_blocking(move || releasing.release()).await {
                warn!(code = error.code.name(), %error, "deliveries wait until their time is over");
            }
        }
        last_ms = now_ms;
        tokio::select! {
            _ = stopped.changed() => break,
            () = tokio::time::sleep(TICK) => {}
        }
        let busy = under_way.lock().clone();
        let (claiming, known) = (app.clone(), Arc::clone(&known));
        let room = AT_ONCE.saturating_sub(busy.len());
        let claimed = spawn_blocking(move || claiming.claim(&mut known.lock(), &busy, room)).await;
        let claimed = match claimed {
            Ok(Ok(claimed)) => claimed,
            Ok(Err(error)) => {
                warn!(code = error.code.name(), %error, "cannot claim deliveries");
                continue;
            }
            Err(error) => {
                warn!(%error, "the job ended early");
                continue;
            }
        };
        for delivery in claimed {
            let shared = Arc::new(delivery.clone());
            under_way.lock().insert(delivery.id.clone(), shared);
            let place = ClaimGuard(Arc::clone(&under_way), delivery.id.clone());
            let (app, dispatcher) = (app.clone(), dispatcher.clone());
            tokio::spawn(async move {
                let _place = place;
                if let Err(error) = deliver(&app, &dispatcher, delivery).await {
                    // It stays claimed, and is tried again when that ends.
                    warn!(code = error.code.name(), %error, "cannot settle a delivery");
                }
            });
        }
    }
    let began = Instant::now();
    while !under_way.lock().is_empty() && began.elapsed() < DRAIN {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// One attempt, and what follows from it.
async fn deliver(app: &App, dispatcher: &Dispatcher, delivery: Delivery) -> Result<()> {
    let began_at = app.now_ms();
    let (making, of) = (app.clone(), delivery.clone());
    let message = spawn_blocking(move || making.alert_message(&of, began_at)).await;
    let message = message.map_err(|error| ApiError::internal(error.to_string()))??;
    let outcome = Outcome { began_at, result: dispatcher.send(message).await };
    debug!(
        alert = delivery.alert,
        attempt = delivery.attempt,
        status = outcome.result.status_code,
        error = outcome.result.error,
        "delivered an alert"
    );
    let app = app.clone();
    let settled = spawn_blocking(move || app.settle(&delivery, &outcome)).await;
    settled.map_err(|error| ApiError::internal(error.to_string()))?
}
