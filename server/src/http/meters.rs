//! Counting requests.

use std::{
    collections::BTreeMap,
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
};

/// What kind of request was answered how: pattern of the path, method, status.
pub type Answered = (String, &'static str, u16);

/// How many there were, and how long they took in all.
#[derive(Debug, Clone, Copy, Default)]
pub struct Taken {
    /// How many.
    pub count: u64,
    /// Seconds in all.
    pub seconds: f64,
}

/// Requests that were answered, by kind, and events that were refused one by one. Paths are patterns, so
/// that there are few.
#[derive(Default)]
pub struct Requests {
    answered: Mutex<BTreeMap<Answered, Taken>>,
    rejected: AtomicU64,
}

impl Requests {
    /// Counts an answer.
    pub fn count(&self, answered: Answered, seconds: f64) {
        let mut all = self.answered.lock().unwrap_or_else(PoisonError::into_inner);
        let taken = all.entry(answered).or_default();
        taken.count += 1;
        taken.seconds += seconds;
    }

    /// What was counted so far.
    pub fn read(&self) -> BTreeMap<Answered, Taken> {
        self.answered.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Counts events of a batch that were refused while others were taken.
    pub fn reject(&self, events: usize) {
        self.rejected.fetch_add(events as u64, Ordering::Relaxed);
    }

    /// Events that were refused so far.
    pub fn rejected(&self) -> u64 {
        self.rejected.load(Ordering::Relaxed)
    }
}
