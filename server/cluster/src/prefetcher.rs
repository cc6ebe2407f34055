//! Files that a process which follows has fetched before a record named them.
//!
//! ```text
//! wake(7)        the log says that there is an announcement 7
//! fetch(…)       fetches what was announced behind the last one here, and says so
//! ```
//!
//! What is fetched and never named is discarded: at the announcement of an empty path, or when it is old.

use std::{
    collections::BTreeMap,
    sync::{
        Arc,
        atomic::{AtomicI64, AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use inlay_engine::{Engine, remote::ObjectVfs};
use parking_lot::Mutex;
use tokio::sync::Notify;
use tracing::info;

use crate::uploads::{Upload, Uploads};

/// A file that no record has named by then is of a merge that failed.
const UNNAMED_TIME_MAX: Duration = Duration::from_secs(300);

/// What was prefetched, and up to which announcement.
#[derive(Default)]
pub struct Prefetcher {
    /// Number of the last announcement that was carried out.
    fetched: AtomicI64,
    /// Number of the last one there is, as far as known.
    announced: AtomicI64,
    /// Fetched, and not named yet when that was looked at last.
    unnamed: Mutex<BTreeMap<String, Instant>>,
    woken: Arc<Notify>,
    count: AtomicU64,
}

impl Prefetcher {
    /// Takes all announcements so far as carried out: the store was opened with all files that it names.
    pub fn begin(&self) {
        self.fetched.store(self.announced.load(Ordering::Relaxed), Ordering::Relaxed);
    }

    /// Notes that there are announcements up to this number.
    pub fn wake(&self, number: i64) {
        if self.announced.fetch_max(number, Ordering::Relaxed) < number {
            self.woken.notify_one();
        }
    }

    /// Notifies whoever is to fetch.
    pub fn woken(&self) -> Arc<Notify> {
        Arc::clone(&self.woken)
    }

    /// Number of the last announcement that was carried out here.
    pub fn fetched(&self) -> i64 {
        self.fetched.load(Ordering::Relaxed)
    }

    /// How many files were fetched.
    pub fn count(&self) -> u64 {
        self.count.load(Ordering::Relaxed)
    }

    /// Carries out what was announced since the last time, while it `goes_on`. What fails is fetched when a record names it.
    pub async fn fetch(
        &self,
        uploads: &Uploads,
        files: &Arc<ObjectVfs>,
        engine: &Arc<Engine>,
        goes_on: impl Fn() -> bool,
    ) {
        self.discard_unnamed(engine, UNNAMED_TIME_MAX).await;
        if self.fetched() >= self.announced.load(Ordering::Relaxed) {
            return;
        }
        let announced = match uploads.after(self.fetched()).await {
            Ok(announced) => announced,
            Err(failure) => {
                return info!(error = %failure.error(), "announcements could not be read");
            }
        };
        for Upload { number, path } in announced {
            if !goes_on() {
                return;
            }
            if path.is_empty() {
                if !self.discard_unnamed(engine, Duration::ZERO).await {
                    return;
                }
            } else {
                self.unnamed.lock().insert(path.clone(), Instant::now());
                let files = Arc::clone(files);
                let done = tokio::task::spawn_blocking(move || files.prefetch(&path)).await;
                match done {
                    Ok(Ok(())) => drop(self.count.fetch_add(1, Ordering::Relaxed)),
                    Ok(Err(error)) => info!(%error, "a file could not be prefetched"),
                    Err(_) => {}
                }
            }
            self.fetched.fetch_max(number, Ordering::Relaxed);
            if let Err(failure) = uploads.say_fetched(number).await {
                info!(error = %failure.error(), "the leader was not informed of a file that was fetched");
            }
        }
    }

    /// Discards copies that the store does not name after so long, and forgets the others. Returns whether none of them is left on the disk.
    async fn discard_unnamed(&self, engine: &Arc<Engine>, after: Duration) -> bool {
        let old: Vec<String> = {
            let unnamed = self.unnamed.lock();
            let old = unnamed.iter().filter(|(_, since)| since.elapsed() >= after);
            old.map(|(path, _)| path.clone()).collect()
        };
        if old.is_empty() {
            return true;
        }
        let (engine, paths) = (Arc::clone(engine), old.clone());
        let left = tokio::task::spawn_blocking(move || engine.discard_unnamed(&paths)).await;
        let left = left.unwrap_or_else(|_| old.clone());
        let mut unnamed = self.unnamed.lock();
        for path in old.iter().filter(|path| !left.contains(path)) {
            unnamed.remove(path);
        }
        left.is_empty()
    }
}
