//! Brings to receivers what is due: webhooks and mails.
//!
//! What is under way is claimed in the store, so that a crash leaves it to be tried again; see `queue`.

use std::{
    collections::HashMap,
    sync::Arc,
    time::{Duration, Instant},
};

use parking_lot::Mutex;
use tokio::sync::watch;
use tracing::{debug, warn};

use crate::{
    app::{App, Outcome},
    error::{ApiError, Result},
    outbound::Courier,
    store::Delivery,
};

const TICK: Duration = Duration::from_millis(250);
/// Attempts at once, of all organisations.
const AT_ONCE: usize = 64;
/// What is under way when the server stops gets this long to end.
const DRAIN: Duration = Duration::from_secs(12);

/// Ids of what is being tried, with its organisations.
type UnderWay = Arc<Mutex<HashMap<String, String>>>;

/// Runs until the server stops; then what is under way ends.
pub async fn run(app: App, courier: Courier, mut stopped: watch::Receiver<bool>) {
    let under_way = UnderWay::default();
    let releasing = app.clone();
    if let Ok(Err(error)) = tokio::task::spawn_blocking(move || releasing.release()).await {
        warn!(code = error.code.name(), %error, "deliveries of the last run wait until their time is over");
    }
    loop {
        tokio::select! {
            _ = stopped.changed() => break,
            () = tokio::time::sleep(TICK) => {}
        }
        let busy = under_way.lock().clone();
        let claiming = app.clone();
        let room = AT_ONCE.saturating_sub(busy.len());
        let claimed = tokio::task::spawn_blocking(move || claiming.claim(&busy, room)).await;
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
            under_way.lock().insert(delivery.id.clone(), delivery.org.clone());
            let (app, courier, under_way) = (app.clone(), courier.clone(), Arc::clone(&under_way));
            tokio::spawn(async move {
                let id = delivery.id.clone();
                if let Err(error) = deliver(&app, &courier, delivery).await {
                    // It stays claimed, and is tried again when that ends.
                    warn!(code = error.code.name(), %error, "cannot settle a delivery");
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

/// One attempt, and what follows from it.
async fn deliver(app: &App, courier: &Courier, delivery: Delivery) -> Result<()> {
    let began_at = app.now_ms();
    let packet = app.alert_packet(&delivery, began_at)?;
    let outcome = Outcome { began_at, carried: courier.carry(packet).await };
    debug!(
        alert = delivery.alert,
        attempt = delivery.attempt,
        status = outcome.carried.status_code,
        error = outcome.carried.error,
        "delivered an alert"
    );
    let app = app.clone();
    let settled = tokio::task::spawn_blocking(move || app.settle(&delivery, &outcome)).await;
    settled.map_err(|error| ApiError::internal(error.to_string()))?
}
