//! Facts of an environment's events: names, counts, properties of the last thirty days.
//!
//! ```text
//! GET /v1/discover
//! 200 {"events": [{"event_name": "api_call", "count": 20000, "tenants": 3, "first_seen": …, "last_seen": …,
//!                  "string_props": [{"name": "model", "distinct_approx": 4, "coverage": 1.0, "samples": ["nova-large", …], "rollup": true}],
//!                  "numeric_props": [{"name": "latency_ms", "min": 72.0, "max": 1108.0, "avg": 164.2, "coverage": 1.0}]}],
//!      "meta": {"took_ms": 12, "rows_scanned": 20000, "sampled": false, …}}
//! ```
//!
//! Of an event with very many rows properties are read from some of them: `rows_scanned` is below the count then, and `sampled` true.

use std::time::Instant;

use inlay_engine::{EventFacts, ROLLUP_DIMENSIONS};

use crate::{
    app::request::{callers::Caller, context::App},
    error::Result,
};

/// Days of events that are read.
const DAYS: i64 = 30;
const DAY_MS: i64 = 86_400_000;

/// Facts of the events of an interval.
pub struct Discovered {
    /// Facts of each event name, by falling number of events.
    pub events: Vec<EventFacts>,
    /// Start of the interval in milliseconds since 1970; the whole hour is read.
    pub from_ms: i64,
    /// End of the interval, the current time, in milliseconds since 1970.
    pub to_ms: i64,
    /// Duration of the operation in milliseconds.
    pub took_ms: u64,
}

impl App {
    /// The events of the caller's environment over the last thirty days.
    ///
    /// Errors: `query_timeout` where reading takes too long; damage of a segment.
    pub fn discover(&self, caller: &Caller) -> Result<Discovered> {
        let started = Instant::now();
        let to_ms = self.now_ms();
        let from_ms = to_ms - DAYS * DAY_MS;
        let namespace = caller.environment.namespace();
        let control = self.query_control();
        let mut events = self.engine.discover(namespace, from_ms, to_ms, &control)?;
        events.sort_by(|a, b| b.count.cmp(&a.count).then_with(|| a.name.cmp(&b.name)));
        let took_ms = started.elapsed().as_millis() as u64;
        Ok(Discovered { events, from_ms, to_ms, took_ms })
    }
}

/// Whether the property is one of those that have rollups.
///
/// `model`, `endpoint`, `status`, `plan` and `source`: grouping by one of them is answered from rollups.
pub fn is_rollup_dimension(name: &str) -> bool {
    ROLLUP_DIMENSIONS.contains(&name)
}
