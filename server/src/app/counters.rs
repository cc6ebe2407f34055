//! Counts of queries and embed views in memory, until a job writes them to the store.
//!
//! ```text
//! a query of acme in production      queries 1                    in memory
//! then an embed page of acme         queries 1, embed_views 1     in memory
//! 10 seconds later                   usage_day/0190…:2026-11-20 += {queries: 1, embed_views: 1}, and memory is empty again
//! ```
//!
//! A write for each query would cost a sync of the log. What a crash loses is at most ten seconds of counts, and never events: these
//! are counted in the log record that stores them (`billing/usage.rs`). `GET /v1/usage` adds the counts in memory to the stored ones.

use std::{
    collections::HashMap,
    sync::{Mutex, PoisonError},
};

use serde::{Deserialize, Serialize};

use crate::store::Environment;

/// An action that is counted in memory.
///
/// One action adds one to the count of its name.
#[derive(Debug, Clone, Copy)]
pub enum Counted {
    /// A metric query or a SQL statement was begun.
    Query,
    /// An embed page was shown.
    EmbedView,
}

/// Counts that the store does not have yet, by ids of organisation and environment.
#[derive(Default)]
pub struct Counters(Mutex<HashMap<(String, String), Counts>>);

/// Unwritten counts of one environment.
#[derive(Debug, Clone, Copy, Default)]
pub struct Counts {
    /// Metric queries and SQL statements that were begun.
    pub queries: u64,
    /// Embed pages that were shown.
    pub embed_views: u64,
}

/// Counts of an environment, as one process of a store sends them to the one that leads.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct EnvironmentCounts {
    /// Id of the organisation.
    pub org: String,
    /// Id of the environment.
    pub environment: String,
    /// Metric queries and SQL statements that were begun.
    pub queries: u64,
    /// Embed pages that were shown.
    pub embed_views: u64,
}

impl EnvironmentCounts {
    /// Counts by ids of organisation and environment, as a list.
    pub fn list(counts: &HashMap<(String, String), Counts>) -> Vec<Self> {
        let one = |((org, environment), counts): (&(String, String), &Counts)| {
            let (org, environment) = (org.clone(), environment.clone());
            let Counts { queries, embed_views } = *counts;
            Self { org, environment, queries, embed_views }
        };
        counts.iter().map(one).collect()
    }
}

impl Counters {
    /// Counts one action in an environment.
    ///
    /// `environment` is production of `acme`, say; its key in the map is its id, which no other organisation has.
    pub fn add(&self, org: &str, environment: &Environment, counted: Counted) {
        let mut counts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let counts = counts.entry((org.to_owned(), environment.id.clone())).or_default();
        match counted {
            Counted::Query => counts.queries += 1,
            Counted::EmbedView => counts.embed_views += 1,
        }
    }

    /// Counts of an environment that the store does not have yet.
    ///
    /// Zero of both where nothing was counted since the last write.
    pub fn of(&self, org: &str, environment: &Environment) -> Counts {
        let counts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        counts.get(&(org.to_owned(), environment.id.clone())).copied().unwrap_or_default()
    }

    /// Adds what another process has counted.
    pub fn add_all(&self, counts: Vec<EnvironmentCounts>) {
        let of = |one: EnvironmentCounts| {
            let EnvironmentCounts { org, environment, queries, embed_views } = one;
            ((org, environment), Counts { queries, embed_views })
        };
        self.give_back(counts.into_iter().map(of).collect());
    }

    /// Adds counts again whose transaction failed; the next write includes them.
    ///
    /// Counts may have been added since they were taken, so that both are summed.
    pub fn give_back(&self, counts: HashMap<(String, String), Counts>) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        for (key, counts) in counts {
            let known = all.entry(key).or_default();
            known.queries = known.queries.saturating_add(counts.queries);
            known.embed_views = known.embed_views.saturating_add(counts.embed_views);
        }
    }

    /// Takes all counts, to be written to the store.
    ///
    /// The map is empty afterwards. Counts whose write fails come back by [`Counters::give_back`].
    pub fn take(&self) -> HashMap<(String, String), Counts> {
        std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
