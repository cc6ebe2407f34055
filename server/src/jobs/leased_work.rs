//! The loop of jobs that work through a durable queue: claims what is due, works on as much at once as there is room for, and lets it end
//! when the server stops.
//!
//! What is under way is leased in the store (`store/durable_queue.rs`), so that it is tried again after a crash.
//!
//! ```text
//! each tick   release what a clock that was set back keeps waiting; claim what is due, as there is room
//! each item   perform it on a task of its own; it counts as under way until that ends, however it does
//! at a stop   claim nothing more, and wait for what is under way
//! ```
//!
//! The pool of permits has the name of the job, so that `GET /metrics` shows it:
//!
//! ```text
//! inlay_permits{pool="deliveries"} 64
//! inlay_permits_in_use{pool="deliveries"} 3
//! ```

use std::{
    collections::HashMap,
    future::Future,
    sync::Arc,
    time::{Duration, Instant},
};

use parking_lot::Mutex;
use tokio::{sync::watch, task::spawn_blocking};
use tracing::warn;

use crate::{app::App, base::permit_pools::Permit, error::Result};

/// A clock that was set back by less changes nothing that matters.
const CLOCK_SLACK_MS: i64 = 60_000;
/// Between two looks at what is still under way when the server stops.
const DRAIN_TICK: Duration = Duration::from_millis(20);

/// A job that works through a durable queue.
pub trait LeasedWork: Clone + Send + Sync + 'static {
    /// A claimed entry, with what is needed to work on it: a delivery of `store`, for example.
    type Item: Send + 'static;
    /// What claiming has to know of an item under way: the delivery, for limits of a receiver; the organisation of a report.
    type Summary: Clone + Send + 'static;

    /// Wait between two claims.
    const TICK: Duration;
    /// Items under way at once, of all organisations.
    const AT_ONCE: usize;
    /// What is under way when the server stops gets this long to end.
    const DRAIN: Duration;
    /// What is worked on, for the log.
    const NAME: &'static str;

    /// Makes due what waits for nothing: at the start, and when the clock was set back. It may keep a thread waiting.
    ///
    /// Errors: when the store cannot write.
    fn release(&self, app: &App) -> Result<()>;

    /// Leases up to `room` items that are due, beside those under way, by their ids. It may keep a thread waiting.
    ///
    /// Errors: when the store cannot write.
    fn claim(
        &self,
        app: &App,
        under_way: &HashMap<String, Self::Summary>,
        room: usize,
    ) -> Result<Vec<Self::Item>>;

    /// The id of an item, and what the job has to know of it while it is under way.
    fn summary_of(item: &Self::Item) -> (String, Self::Summary);

    /// Works on an item. What fails stays leased, and is tried again when the lease ends.
    fn perform(self, app: App, item: Self::Item) -> impl Future<Output = Result<()>> + Send;
}

/// Items under way, by their ids.
type UnderWay<C> = Arc<Mutex<HashMap<String, C>>>;

/// Takes an item from what is under way when the work on it ends, however it ends.
struct Guard<C> {
    under_way: UnderWay<C>,
    id: String,
    _permit: Permit,
}

impl<C> Drop for Guard<C> {
    fn drop(&mut self) {
        self.under_way.lock().remove(&self.id);
    }
}

/// Runs until the server stops; then what is under way ends, or is tried again at the next start.
pub async fn run<W: LeasedWork>(job: W, app: App, mut stopped: watch::Receiver<bool>) {
    let under_way: UnderWay<W::Summary> = UnderWay::default();
    let permits = app.pools.pool(W::NAME, W::AT_ONCE);
    let mut last_ms = i64::MAX;
    loop {
        let now_ms = app.now_ms();
        // At the start, and when the clock was set back, what waits may wait for nothing.
        if now_ms < last_ms.saturating_sub(CLOCK_SLACK_MS) {
            let (job, app) = (job.clone(), app.clone());
            if let Ok(Err(error)) = spawn_blocking(move || job.release(&app)).await {
                warn!(code = error.code.name(), %error, "leased {} wait until their leases end", W::NAME);
            }
        }
        last_ms = now_ms;
        tokio::select! {
            _ = stopped.changed() => break,
            () = tokio::time::sleep(W::TICK) => {}
        }
        let busy = under_way.lock().clone();
        let room = permits.free();
        let (claiming, of) = (job.clone(), app.clone());
        let claimed = match spawn_blocking(move || claiming.claim(&of, &busy, room)).await {
            Ok(Ok(claimed)) => claimed,
            Ok(Err(error)) => {
                warn!(code = error.code.name(), %error, "cannot claim {}", W::NAME);
                continue;
            }
            Err(error) => {
                warn!(%error, "the job ended early");
                continue;
            }
        };
        for item in claimed {
            // There are as many as were free, and nobody else takes one.
            let Some(permit) = permits.acquire_in_turn().await else { continue };
            let (id, summary) = W::summary_of(&item);
            under_way.lock().insert(id.clone(), summary);
            let guard = Guard { under_way: Arc::clone(&under_way), id, _permit: permit };
            let (job, app) = (job.clone(), app.clone());
            tokio::spawn(async move {
                let _guard = guard;
                if let Err(error) = job.perform(app, item).await {
                    let code = error.code.name();
                    warn!(code, %error, "work on {} could not be recorded; it is repeated when its lease ends", W::NAME);
                }
            });
        }
    }
    let began = Instant::now();
    while !under_way.lock().is_empty() && began.elapsed() < W::DRAIN {
        tokio::time::sleep(DRAIN_TICK).await;
    }
}
