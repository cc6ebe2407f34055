//! What handlers share.

use std::sync::Arc;

use tokio::sync::Semaphore;

use super::meters::Requests;
use crate::{
    app::App,
    error::{ApiError, Code, Result},
    web::Files,
};

/// Ingest requests that are worked on at once: each may hold a body of 10 MiB and its rows.
const INGEST_AT_ONCE: usize = 32;
/// Ingest bodies that are received at once: a slow sender holds no place among the ones above.
const BODIES_AT_ONCE: usize = 128;
/// Queries that run at once: each may take 256 MiB, and there are no more cores than this anyway.
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
    ingest: Arc<Semaphore>,
    hashing: Arc<Semaphore>,
    bodies: Arc<Semaphore>,
    queries: Arc<Semaphore>,
}

impl Http {
    /// A router's state.
    pub fn new(app: App) -> Self {
        Self {
            app,
            files: Arc::new(Files::load()),
            requests: Arc::default(),
            ingest: Arc::new(Semaphore::new(INGEST_AT_ONCE)),
            hashing: Arc::new(Semaphore::new(HASHES_AT_ONCE)),
            bodies: Arc::new(Semaphore::new(BODIES_AT_ONCE)),
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
        let _place = place(&self.hashing).await?;
        self.run(work).await
    }

    /// Runs work that reads events, a few at once.
    pub async fn run_query<T: Send + 'static>(
        &self,
        work: impl FnOnce(&App) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        let _place = place(&self.queries).await?;
        self.run(work).await
    }

    /// A place among the ingest bodies that are received.
    pub async fn body_place(&self) -> Result<tokio::sync::SemaphorePermit<'_>> {
        place(&self.bodies).await
    }

    /// A place among the ingest requests that are worked on.
    pub async fn ingest_place(&self) -> Result<tokio::sync::SemaphorePermit<'_>> {
        place(&self.ingest).await
    }
}

async fn place(of: &Semaphore) -> Result<tokio::sync::SemaphorePermit<'_>> {
    match tokio::time::timeout(WAIT, of.acquire()).await {
        Ok(Ok(permit)) => Ok(permit),
        _ => Err(ApiError::new(Code::Overloaded, "the server is busy; retry soon")),
    }
}
