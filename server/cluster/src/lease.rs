//! The lease of a process: renewed by a task while the process lives, given back when the store is closed.
//!
//! ```text
//! opened()       the store has taken it, and it was renewed: valid for six seconds, of which the last one is not relied on
//! every 2 s      renewed; valid for six seconds from the moment at which that was asked for
//! no row         another process leads, or the log is shorter than it was: lost, and this process ends
//! release()      the next process need not wait
//! ```

use std::{
    any::Any,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use inlay_engine::{Error, Result};
use parking_lot::Mutex;
use rustix::time::{ClockId, clock_gettime};
use tokio::sync::Notify;
use tokio_postgres::types::Type;
use tracing::warn;
use uuid::Uuid;

use crate::{
    calls::Calls,
    log::LEASE_MS,
    schema,
    session::{DatabaseSession, Failure, Value},
    uploads::Validity,
};

/// How often the lease is renewed.
const RENEW_EVERY: Duration = Duration::from_secs(2);
/// How often a lease that could not be renewed is tried again.
const RENEW_AGAIN: Duration = Duration::from_millis(500);
/// Part of a lease in which it is not relied on: clocks run at different speeds, and an answer takes time.
const MARGIN: Duration = Duration::from_secs(1);
/// Longest time for giving the lease back.
const RELEASE_TIME_MAX: Duration = Duration::from_secs(3);
/// How often is looked whether a lease was renewed that was taken just now.
const LOOK_EVERY: Duration = Duration::from_millis(10);
/// Longest time until a lease that was taken is renewed.
const RENEWED_TIME_MAX: Duration = Duration::from_secs(15);
/// How often a lease is tried that the store has not taken yet.
const TAKEN_EVERY: Duration = Duration::from_millis(100);

/// The lease of this process. Clones share it; where the last one goes, it is given back.
#[derive(Clone)]
pub struct Lease(Arc<LeaseGuard>);

/// Gives the lease back when it goes.
struct LeaseGuard(Arc<LeaseState>);

impl Drop for LeaseGuard {
    fn drop(&mut self) {
        self.0.end();
    }
}

/// What the task that renews the lease shares with those who ask for it.
struct LeaseState {
    session: Arc<DatabaseSession>,
    own: Uuid,
    /// Until when it is valid, by a clock that counts while the machine sleeps.
    until: Mutex<Duration>,
    /// Whether the store is open, and so has taken the lease.
    is_open: AtomicBool,
    is_lost: AtomicBool,
    /// Whether it is to be given back, and whether that was tried.
    is_ending: AtomicBool,
    has_ended: AtomicBool,
    wake: Notify,
    /// The data directory is this process's own.
    _cache_lock: Arc<dyn Any + Send + Sync>,
}

impl LeaseState {
    fn is_valid(&self) -> bool {
        !self.is_lost.load(Ordering::Relaxed) && now() + MARGIN < *self.until.lock()
    }
}

impl Lease {
    /// A lease that the process `own` is about to take, renewed from then on by a task of `calls`. `cache_lock` is held until the lease has ended.
    pub fn new(
        calls: &Calls,
        session: DatabaseSession,
        own: Uuid,
        cache_lock: Arc<dyn Any + Send + Sync>,
    ) -> Self {
        let state = Arc::new(LeaseState {
            session: Arc::new(session),
            own,
            until: Mutex::new(Duration::ZERO),
            is_open: AtomicBool::new(false),
            is_lost: AtomicBool::new(false),
            is_ending: AtomicBool::new(false),
            has_ended: AtomicBool::new(false),
            wake: Notify::new(),
            _cache_lock: cache_lock,
        });
        calls.spawn(Arc::clone(&state).keep(calls.clone()));
        Self(Arc::new(LeaseGuard(state)))
    }

    /// The store is open, and so has taken the lease. Waits until it was renewed: whoever asks from now on is to be answered.
    ///
    /// Errors: `Invalid` where it is not renewed.
    pub fn opened(&self) -> Result<()> {
        self.0.0.is_open.store(true, Ordering::Relaxed);
        let start = Instant::now();
        while !self.is_valid() {
            if self.is_lost() || start.elapsed() > RENEWED_TIME_MAX {
                let detail = "has given the lease to another process, or does not answer";
                return Err(Error::invalid("metadata URL", detail));
            }
            thread::sleep(LOOK_EVERY);
        }
        Ok(())
    }

    /// Whether the lease ended without having been given back: another process may lead.
    pub fn is_lost(&self) -> bool {
        self.0.0.is_lost.load(Ordering::Relaxed)
    }

    /// Whether no other process can lead now, so that what this one reads is the newest.
    pub fn is_valid(&self) -> bool {
        self.0.0.is_valid()
    }

    /// The same for those who must not hold the lease.
    pub fn validity(&self) -> Validity {
        let state = Arc::downgrade(&self.0.0);
        Box::new(move || state.upgrade().is_some_and(|state| state.is_valid()))
    }

    /// Renews the lease no more: the store of this process cannot go on.
    pub fn give_up(&self) {
        self.0.0.is_lost.store(true, Ordering::Relaxed);
        self.0.0.wake.notify_one();
    }

    /// Gives the lease back, so that the next process need not wait until it ends. After the store is closed; blocks for some seconds at most.
    pub fn release(&self) {
        self.0.0.end();
        let start = Instant::now();
        while !self.0.0.has_ended.load(Ordering::Relaxed) && start.elapsed() < RELEASE_TIME_MAX {
            thread::sleep(LOOK_EVERY);
        }
    }
}

impl LeaseState {
    /// Ends it for this process at once, and has it given back.
    fn end(&self) {
        *self.until.lock() = Duration::ZERO;
        self.is_ending.store(true, Ordering::Relaxed);
        self.wake.notify_one();
    }

    /// Renews the lease until it is given back or lost. `_calls` keeps the runtime that this runs on.
    async fn keep(self: Arc<Self>, _calls: Calls) {
        let mut lsn_seen = 0;
        while !self.is_ending.load(Ordering::Relaxed) && !self.is_lost.load(Ordering::Relaxed) {
            let pause = self.renew(&mut lsn_seen).await;
            let _ = tokio::time::timeout(pause, self.wake.notified()).await;
        }
        if self.is_ending.load(Ordering::Relaxed) && !self.is_lost.load(Ordering::Relaxed) {
            let own = self.own;
            let released = self.session.run_here(move |client| async move {
                client.execute_typed(schema::RELEASE, &[(&own, Type::UUID)]).await
            });
            let released = tokio::time::timeout(RELEASE_TIME_MAX, released).await;
            if !matches!(released, Ok(Ok(_))) {
                warn!("the lease could not be given back, and ends by itself");
            }
        }
        self.has_ended.store(true, Ordering::Relaxed);
    }

    /// Renews the lease once. How long it is until the next time.
    async fn renew(&self, lsn_seen: &mut i64) -> Duration {
        let (own, start) = (self.own, now());
        let renewed = self.session.run_here(move |client| async move {
            let values: [Value<'_>; 2] = [(&own, Type::UUID), (&(LEASE_MS as f64), Type::FLOAT8)];
            let rows = client.query_typed(schema::RENEW, &values).await?;
            Ok(rows.first().map(|row| row.get::<_, i64>(0)))
        });
        let renewed = tokio::time::timeout(RENEW_EVERY, renewed).await;
        match renewed.unwrap_or_else(|_| Err(Failure::Lost("no answer".to_owned()))) {
            Ok(None) if !self.is_open.load(Ordering::Relaxed) => TAKEN_EVERY,
            // Another process leads; or the database came back without records that this one has seen.
            Ok(lsn_next) if lsn_next.is_none_or(|lsn_next| lsn_next < *lsn_seen) => {
                self.is_lost.store(true, Ordering::Relaxed);
                Duration::ZERO
            }
            Ok(lsn_next) => {
                *lsn_seen = lsn_next.unwrap_or(*lsn_seen);
                if !self.is_ending.load(Ordering::Relaxed) {
                    *self.until.lock() = start + Duration::from_millis(LEASE_MS as u64);
                }
                RENEW_EVERY
            }
            Err(failure) => {
                self.session.drop_client();
                warn!(error = %failure.error(), "the lease could not be renewed");
                RENEW_AGAIN
            }
        }
    }
}

/// Time since the machine was started, with the time that it slept: a lease ends meanwhile.
fn now() -> Duration {
    let time = clock_gettime(ClockId::Boottime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}
