//! Counting requests.

use std::{
    collections::BTreeMap,
    sync::{Mutex, PoisonError},
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

/// Requests that were answered, by kind. Paths are patterns, so that there are few.
#[derive(Default)]
pub struct Requests(Mutex<BTreeMap<Answered, Taken>>);

impl Requests {
    /// Counts an answer.
    pub fn count(&self, answered: Answered, seconds: f64) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let taken = all.entry(answered).or_default();
        taken.count += 1;
        taken.seconds += seconds;
    }

    /// What was counted so far.
    pub fn read(&self) -> BTreeMap<Answered, Taken> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}
