//! What handlers share.

use std::sync::Arc;

use tokio::sync::{Semaphore, SemaphorePermit};

use super::meters::Requests;
use crate::{
    app::App,
    base::memory::Shares,
    error::{ApiError, Code, Result},
    web::Files,
};

/// What a request costs at least, whatever it sends.
const REQUEST_BYTES: usize = 64 << 10;
/// A body becomes parsed events, rows in columns and a log record beside itself.
const INGEST_FACTOR: usize = 4;
/// Queries that run at once: there are no more cores than this anyway.
const QUERIES_AT_ONCE: usize = 8;
/// Password hashes that are computed at once: each takes a core for a quarter of a second.
const HASHES_AT_ONCE: usize = 2;
/// Callers that may wait for a place before more are turned away.
const WAIT: std::time::Duration = std::time::Duration::from_secs(10);

/// State of the router.
#[derive(Clone)]
pub struct Http {
    /// The product.
    pub app: App,
    /// Files for browsers.
    pub files: Arc<Files>,
    /// Requests that were answered.
    pub requests: Arc<Requests>,
    ingest: Arc<Bytes>,
    hashing: Arc<Semaphore>,
    bodies: Arc<Bytes>,
    queries: Arc<Semaphore>,
}

impl Http {
    /// A router's state.
    pub fn new(app: App, shares: &Shares) -> Self {
        Self {
            app,
            files: Arc::new(Files::load()),
            requests: Arc::default(),
            ingest: Arc::new(Bytes::new(shares.ingest)),
            hashing: Arc::new(Semaphore::new(HASHES_AT_ONCE)),
            bodies: Arc::new(Bytes::new(shares.bodies)),
            queries: Arc::new(Semaphore::new(QUERIES_AT_ONCE)),
        }
    }

    /// Runs engine work on the blocking pool.
    pub async fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce(&App) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        let app = self.app.clone();
        tokio::task::spawn_blocking(move || work(&app))
            .await
            .unwrap_or_else(|error| Err(ApiError::internal(format!("a task ended: {error}"))))
    }

    /// Runs work that hashes a password, a few at once.
    pub async fn run_hashing<T: Send + 'static>(
        &self,
        work: impl FnOnce(&App) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        let _place = place(&self.hashing, 1).await?;
        self.run(work).await
    }

    /// Runs work that reads events, a few at once.
    pub async fn run_query<T: Send + 'static>(
        &self,
        work: impl FnOnce(&App) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        let _place = place(&self.queries, 1).await?;
        self.run(work).await
    }

    /// Memory for a body of `bytes` that is received: a slow sender holds none of what work needs.
    pub async fn body_place(&self, bytes: usize) -> Result<SemaphorePermit<'_>> {
        self.bodies.place(bytes).await
    }

    /// Memory for the work on a body of `bytes`.
    pub async fn ingest_place(&self, bytes: usize) -> Result<SemaphorePermit<'_>> {
        self.ingest.place(bytes.saturating_mul(INGEST_FACTOR)).await
    }
}

/// Memory that requests take parts of.
struct Bytes {
    places: Semaphore,
    all: usize,
}

impl Bytes {
    const PLACE_BYTES: usize = 1_024;

    fn new(bytes: u64) -> Self {
        let all = usize::try_from(bytes).unwrap_or(usize::MAX) / Self::PLACE_BYTES;
        let all = all.min(Semaphore::MAX_PERMITS);
        Self { places: Semaphore::new(all), all }
    }

    /// Waits for memory. Who asks for more than there is gets all of it.
    async fn place(&self, bytes: usize) -> Result<SemaphorePermit<'_>> {
        place(&self.places, (bytes.max(REQUEST_BYTES) / Self::PLACE_BYTES).min(self.all)).await
    }
}

async fn place(of: &Semaphore, count: usize) -> Result<SemaphorePermit<'_>> {
    let count = u32::try_from(count).unwrap_or(u32::MAX);
    match tokio::time::timeout(WAIT, of.acquire_many(count)).await {
        Ok(Ok(permit)) => Ok(permit),
        _ => Err(ApiError::new(Code::Overloaded, "the server is busy; retry soon")),
    }
}
