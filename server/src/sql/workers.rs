//! Workers that wait, and how many may run.

use std::{
    collections::{HashMap, VecDeque},
    io,
    path::PathBuf,
    sync::Arc,
    time::Duration,
};

use parking_lot::Mutex;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tracing::warn;

use super::worker::Worker;
use crate::error::{ApiError, Code, Result};

/// Statements that run at once: each computes on two threads.
const AT_ONCE: usize = 4;
/// Statements of an organisation at once.
const OF_ORG: usize = 2;
/// A statement waits so long for a place that is taken.
const WAIT: Duration = Duration::from_secs(5);

/// Workers of this server.
pub struct Workers {
    program: PathBuf,
    /// How many wait, once somebody has asked for the first or the server has started.
    idle_count: usize,
    idle: Mutex<Idle>,
    places: Arc<Semaphore>,
    /// Places of organisations that have some taken.
    of_org: Mutex<HashMap<String, Arc<Semaphore>>>,
}

/// Workers that wait, and how many are being started.
#[derive(Default)]
struct Idle {
    workers: VecDeque<Worker>,
    starting: usize,
}

/// A place among the statements that run.
pub struct Place {
    _everywhere: OwnedSemaphorePermit,
    _of_org: OwnedSemaphorePermit,
}

impl Workers {
    /// Workers that `program` is, of which so many wait.
    pub fn new(program: PathBuf, idle_count: usize) -> Self {
        Self {
            program,
            idle_count,
            idle: Mutex::default(),
            places: Arc::new(Semaphore::new(AT_ONCE)),
            of_org: Mutex::default(),
        }
    }

    /// Starts workers until enough wait. Starting a process keeps a thread waiting.
    pub fn prepare(&self) {
        loop {
            {
                let mut idle = self.idle.lock();
                idle.workers.retain_mut(Worker::is_there);
                if idle.workers.len() + idle.starting >= self.idle_count {
                    return;
                }
                idle.starting += 1;
            }
            let started = Worker::start(&self.program);
            let mut idle = self.idle.lock();
            idle.starting -= 1;
            match started {
                Ok(worker) => idle.workers.push_back(worker),
                Err(error) => {
                    warn!(%error, "cannot start a worker for SQL");
                    return;
                }
            }
        }
    }

    /// A worker that waits, or a new one. Another one takes its place.
    ///
    /// Errors: when none can be started.
    pub async fn take(self: &Arc<Self>) -> io::Result<Worker> {
        let waiting = {
            let mut idle = self.idle.lock();
            idle.workers.retain_mut(Worker::is_there);
            idle.workers.pop_front()
        };
        let worker = match waiting {
            Some(worker) => worker,
            None => {
                let program = self.program.clone();
                let started = tokio::task::spawn_blocking(move || Worker::start(&program)).await;
                started.map_err(io::Error::other)??
            }
        };
        let workers = Arc::clone(self);
        drop(tokio::task::spawn_blocking(move || workers.prepare()));
        Ok(worker)
    }

    /// A place to run a statement of an organisation.
    ///
    /// Errors: 429 while it has as many as it may have, 503 while all are taken.
    pub async fn place(&self, org: &str) -> Result<Place> {
        let of_org = {
            let mut all = self.of_org.lock();
            // Who has none taken has no entry.
            all.retain(|_, places| {
                Arc::strong_count(places) > 1 || places.available_permits() < OF_ORG
            });
            let places = all.entry(org.to_owned());
            Arc::clone(places.or_insert_with(|| Arc::new(Semaphore::new(OF_ORG))))
        };
        let own = tokio::time::timeout(WAIT, of_org.acquire_owned()).await;
        let Ok(Ok(own)) = own else {
            let message = format!("{OF_ORG} statements run already; retry when one has ended");
            return Err(ApiError::new(Code::RateLimited, message));
        };
        let everywhere = Arc::clone(&self.places).acquire_owned();
        let Ok(Ok(everywhere)) = tokio::time::timeout(WAIT, everywhere).await else {
            return Err(ApiError::new(Code::Overloaded, "the server is busy; retry soon"));
        };
        Ok(Place { _everywhere: everywhere, _of_org: own })
    }
}
