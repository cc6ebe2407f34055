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
        atomic::{AtomicI64, Ordering},
    },
    time::{Duration, Instant},
};

use inlay_engine::{Engine, Vfs as _, remote::ObjectVfs};
use parking_lot::Mutex;
use tokio::sync::Notify;
use tracing::info;

use crate::uploads::{Upload, Uploads};

/// A file that no record has named by then is of a merge that failed.
const UNNAMED_TIME_MAX: Duration = Duration::from_secs(300);

/// What was fetched ahead, and up to which announcement.
#[derive(Default)]
pub struct FilesAhead {
    /// Number of the last announcement that was carried out.
    fetched: AtomicI64,
    /// Number of the last one there is, as far as known.
    announced: AtomicI64,
    /// Fetched, and not named yet when that was looked at last.
    unnamed: Mutex<BTreeMap<String, Instant>>,
    woken: Arc<Notify>,
}

impl FilesAhead {
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

    /// Carries out what was announced since the last time. What fails is fetched when a record names it.
    pub async fn fetch(&self, uploads: &Uploads, files: &Arc<ObjectVfs>, engine: &Arc<Engine>) {
        self.forget_named(files, engine, UNNAMED_TIME_MAX).await;
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
            if path.is_empty() {
                self.forget_named(files, engine, Duration::ZERO).await;
            } else {
                self.unnamed.lock().insert(path.clone(), Instant::now());
                let files = Arc::clone(files);
                let done = tokio::task::spawn_blocking(move || files.prefetch(&path)).await;
                if let Ok(Err(error)) = done {
                    info!(%error, "a file could not be fetched ahead");
                }
            }
            self.fetched.fetch_max(number, Ordering::Relaxed);
            if let Err(failure) = uploads.say_fetched(number).await {
                info!(error = %failure.error(), "the leader was not informed of a file that was fetched");
            }
        }
    }

    /// Forgets files that the store names now, and discards those that it does not after so long.
    async fn forget_named(&self, files: &Arc<ObjectVfs>, engine: &Arc<Engine>, after: Duration) {
        if self.unnamed.lock().is_empty() {
            return;
        }
        let (files, engine) = (Arc::clone(files), Arc::clone(engine));
        let unnamed = std::mem::take(&mut *self.unnamed.lock());
        let rest = tokio::task::spawn_blocking(move || {
            let named = engine.files();
            let is_waited_for = |path: &String, since: &Instant| {
                if named.contains(path) {
                    return false;
                }
                since.elapsed() < after || files.discard_copy(path).is_err()
            };
            unnamed.into_iter().filter(|(path, since)| is_waited_for(path, since)).collect()
        });
        let rest: BTreeMap<String, Instant> = rest.await.unwrap_or_default();
        self.unnamed.lock().extend(rest);
    }
}
