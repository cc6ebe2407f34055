//! Sends due notifications to their receivers: webhooks and mails.
//!
//! Which go, in which order, and what follows from an attempt: `app/delivery/queue.rs`.
//!
//! ```text
//! every 250 ms    claim, up to as many as are free of 64
//! each            make the message → send it → settle: `sent`, or due again in 30 s, or `failed`
//! a crash         the lease of 60 s ends, and the delivery is attempted again, with the same webhook-id
//! a stop          no new attempts; those under way have 12 s: a webhook may take 10
//! ```

use std::{collections::HashMap, sync::Arc, time::Duration};

use parking_lot::Mutex;
use tokio::{sync::watch, task::spawn_blocking};
use tracing::debug;

use super::leased_work::{self, LeasedWork};
use crate::{
    app::{App, Outcome, Queued},
    error::{ApiError, Result},
    outbound::Dispatcher,
    store::Delivery,
};

/// Runs until the server stops; then attempts under way have 12 seconds to end.
pub async fn run(app: App, dispatcher: Dispatcher, stopped: watch::Receiver<bool>) {
    leased_work::run(Deliveries { dispatcher, queued: Arc::default() }, app, stopped).await;
}

/// Deliveries of notifications.
///
/// `queued` is a cache of decoded entries, which only this job reads.
#[derive(Clone)]
struct Deliveries {
    dispatcher: Dispatcher,
    queued: Arc<Mutex<Queued>>,
}

impl LeasedWork for Deliveries {
    type Item = Delivery;
    type Summary = Arc<Delivery>;

    const TICK: Duration = Duration::from_millis(250);
    const AT_ONCE: usize = 64;
    const DRAIN: Duration = Duration::from_secs(12);
    const NAME: &'static str = "deliveries";

    fn release(&self, app: &App) -> Result<()> {
        app.release_deliveries()
    }

    fn claim(
        &self,
        app: &App,
        under_way: &HashMap<String, Arc<Delivery>>,
        room: usize,
    ) -> Result<Vec<Delivery>> {
        app.claim_deliveries(&mut self.queued.lock(), under_way, room)
    }

    fn summary_of(delivery: &Delivery) -> (String, Arc<Delivery>) {
        (delivery.id.clone(), Arc::new(delivery.clone()))
    }

    async fn perform(self, app: App, delivery: Delivery) -> Result<()> {
        deliver(&app, &self.dispatcher, delivery).await
    }
}

/// One attempt: makes the message, sends it, and stores the outcome.
///
/// Errors: a message that cannot be made, an outcome that cannot be stored; the delivery stays leased and is attempted again.
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
