//! Time as an argument: the wall clock of the machine, or one that a test moves.

use std::{
    sync::{
        LazyLock,
        atomic::{AtomicI64, Ordering},
    },
    time::Instant,
};

/// Tells the wall time. Only used to name and to place things, never to order them.
pub trait Clock: Send + Sync + 'static {
    /// Milliseconds since 1970 in UTC.
    fn now_ms(&self) -> i64;

    /// Microseconds that never go backwards, for measuring how long something took. A clock that is
    /// moved by hand measures nothing.
    fn elapsed_us(&self) -> u64 {
        0
    }
}

static START: LazyLock<Instant> = LazyLock::new(Instant::now);

/// The machine's clock.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    #[expect(clippy::disallowed_methods, reason = "the one place that reads the machine's clock")]
    fn now_ms(&self) -> i64 {
        match std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH) {
            Ok(since) => since.as_millis() as i64,
            Err(before) => -(before.duration().as_millis() as i64),
        }
    }

    fn elapsed_us(&self) -> u64 {
        START.elapsed().as_micros() as u64
    }
}

/// A clock that stands still until it is moved.
#[derive(Debug, Default)]
pub struct ManualClock(AtomicI64);

impl ManualClock {
    /// A clock that shows `now_ms`.
    pub fn new(now_ms: i64) -> Self {
        Self(AtomicI64::new(now_ms))
    }

    /// Moves the clock by `ms`, backwards if negative.
    pub fn advance(&self, ms: i64) {
        self.0.fetch_add(ms, Ordering::Relaxed);
    }
}

impl Clock for ManualClock {
    fn now_ms(&self) -> i64 {
        self.0.load(Ordering::Relaxed)
    }
}
