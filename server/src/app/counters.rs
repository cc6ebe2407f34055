//! What is counted in memory before it is written down.

use std::{
    collections::HashMap,
    sync::{Mutex, PoisonError},
};

use crate::store::Environment;

/// What is counted in memory.
#[derive(Debug, Clone, Copy)]
pub enum Counted {
    /// A question was answered.
    Query,
    /// An embed page was shown.
    EmbedView,
}

/// Counts that are not written down yet, by organisation and environment.
#[derive(Default)]
pub struct Counters(Mutex<HashMap<(String, String), Counts>>);

/// Questions and views.
#[derive(Debug, Clone, Copy, Default)]
pub struct Counts {
    /// Questions that were answered.
    pub queries: u64,
    /// Embed pages that were shown.
    pub embed_views: u64,
}

impl Counters {
    /// Counts one.
    pub fn add(&self, org: &str, environment: &Environment, counted: Counted) {
        let mut counts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let counts = counts.entry((org.to_owned(), environment.id.clone())).or_default();
        match counted {
            Counted::Query => counts.queries += 1,
            Counted::EmbedView => counts.embed_views += 1,
        }
    }

    /// What is not written down yet.
    pub fn of(&self, org: &str, environment: &Environment) -> Counts {
        let counts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        counts.get(&(org.to_owned(), environment.id.clone())).copied().unwrap_or_default()
    }

    /// What could not be written down is written down later.
    pub fn give_back(&self, counts: HashMap<(String, String), Counts>) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        for (key, counts) in counts {
            let known = all.entry(key).or_default();
            known.queries += counts.queries;
            known.embed_views += counts.embed_views;
        }
    }

    /// Everything, to be written down.
    pub fn take(&self) -> HashMap<(String, String), Counts> {
        std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
