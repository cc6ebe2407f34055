//! The seeded workload of all benches: product events of many tenants over many days.
//!
//! Tenants, users and values are skewed, as they are in life; times are spread evenly, because the
//! engine sorts them anyway.

#![expect(clippy::unwrap_used, clippy::missing_panics_doc, reason = "a bench fails by panicking")]

use inlay_engine::{
    Engine, Error, Event, Granularity, Namespace, Query, Rng, SeededRng, TextFilter,
};

/// End of the workload's time.
pub const END_MS: i64 = 1_795_000_000_000;
/// Days that it spans.
pub const DAYS: i64 = 30;
/// The one namespace.
pub const NAMESPACE: Namespace = Namespace(1);
/// The largest tenant, which has about a fifteenth of all events.
pub const LARGEST: &str = "tenant-0";

const DAY_MS: i64 = 86_400_000;
const TENANTS: u64 = 100;
const BATCH_ROWS: usize = 1_000;

/// Ingests `count` events of `seed` in batches of a thousand.
pub fn fill(engine: &Engine, seed: u64, count: usize) {
    let rng = SeededRng::new(seed);
    for first in (0..count).step_by(BATCH_ROWS) {
        ingest_batch(engine, &rng, seed, first, BATCH_ROWS.min(count - first));
    }
}

/// Ingests one batch whose event ids follow from `seed` and `first`.
pub fn ingest_batch(engine: &Engine, rng: &SeededRng, seed: u64, first: usize, count: usize) {
    let mut batch = engine.batch(NAMESPACE);
    for n in first..first + count {
        // The product of two uniform draws is skewed towards zero, much as Zipf's law is.
        let tenant = format!("tenant-{}", rng.below(TENANTS) * rng.below(TENANTS) / TENANTS);
        let user = format!("user-{}", rng.below(300) * rng.below(300) / 10);
        let id = format!("{seed}-{n}");
        let model = format!("model-{}", rng.below(3) * rng.below(4));
        let country = format!("C{:03}", rng.below(20) * rng.below(20));
        let status = if rng.below(50) == 0 { "error" } else { "ok" };
        let event = Event {
            tenant: &tenant,
            name: "api_call",
            timestamp_ms: END_MS - rng.below((DAYS * DAY_MS) as u64) as i64,
            event_id: Some(&id),
            user_id: Some(&user),
        };
        let strings = [("model", &*model), ("country", &*country), ("status", status)];
        let latency = (rng.below(1_000) * rng.below(1_000)) as f64 / 1_000.0;
        batch.push(&event, &strings, &[("latency_ms", latency)]).unwrap();
    }
    engine.ingest(batch, |_, _| Ok::<_, Error>(())).unwrap();
}

/// Ingests a batch of a thousand events, each with a string and a number, two thousand properties in all,
/// that no other event of the batch has.
pub fn ingest_wide(engine: &Engine, batch_number: usize) {
    let mut batch = engine.batch(NAMESPACE);
    for n in 0..BATCH_ROWS {
        let id = format!("wide-{batch_number}-{n}");
        let event = Event {
            tenant: LARGEST,
            name: "api_call",
            timestamp_ms: END_MS - n as i64 * (DAYS * DAY_MS / BATCH_ROWS as i64),
            event_id: Some(&id),
            user_id: None,
        };
        let (text, number) = (format!("text-{n}"), format!("number-{n}"));
        batch.push(&event, &[(&*text, "x")], &[(&*number, n as f64)]).unwrap();
    }
    engine.ingest(batch, |_, _| Ok::<_, Error>(())).unwrap();
}

/// A count of the largest tenant over all days; benches change what they are about.
pub fn question() -> Query {
    Query {
        tenant: Some(LARGEST.to_owned()),
        number: Some("latency_ms".to_owned()),
        ..Query::count(
            NAMESPACE,
            "api_call",
            Granularity::Hour.floor(END_MS - DAYS * DAY_MS)..END_MS,
        )
    }
}

/// A filter by one value.
pub fn only(name: &str, value: &str) -> TextFilter {
    TextFilter { name: name.to_owned(), any_of: vec![value.to_owned()] }
}
