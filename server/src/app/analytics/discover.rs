//! Facts of an environment's events: names, counts, properties of the last thirty days.

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
pub fn is_rollup_dimension(name: &str) -> bool {
    ROLLUP_DIMENSIONS.contains(&name)
}
