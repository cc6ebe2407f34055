//! The seeded workload of all benches, and the questions about it.

#![expect(clippy::unwrap_used, clippy::missing_panics_doc, reason = "a bench fails by panicking")]

pub mod workload;

use std::time::{Duration, Instant};

use inlay_engine::{Engine, Error, Event, Granularity, Namespace, Query, TextFilter};

use workload::{DAYS, END_MS, LARGEST, Row, Workload};

/// The one namespace.
pub const NAMESPACE: Namespace = Namespace(1);

const DAY_MS: i64 = 86_400_000;
const BATCH_ROWS: u64 = 1_000;

/// Ingests events of a workload in batches of a thousand, `from` up to `to`. Returns how long the engine
/// took for them.
pub fn fill(engine: &Engine, workload: &Workload, from: u64, to: u64) -> Duration {
    let batches = (from..to).step_by(BATCH_ROWS as usize);
    let ingest = |first| ingest_batch(engine, workload, first, to.min(first + BATCH_ROWS));
    batches.map(ingest).sum()
}

/// Ingests events of a workload in one batch, `from` up to `to`. Returns how long the engine took.
pub fn ingest_batch(engine: &Engine, workload: &Workload, from: u64, to: u64) -> Duration {
    let rows: Vec<Row> = (from..to).map(|n| workload.row(n)).collect();
    ingest_rows(engine, &rows)
}

/// Ingests these events in one batch. Returns how long the engine took.
pub fn ingest_rows(engine: &Engine, rows: &[Row]) -> Duration {
    let started = Instant::now();
    let mut batch = engine.batch(NAMESPACE);
    for row in rows {
        let event = Event {
            tenant: &row.tenant,
            name: row.name,
            timestamp_ms: row.time_ms,
            event_id: Some(&row.event_id),
            user_id: Some(&row.user_id),
        };
        let strings = row.strings.each_ref().map(|(name, value)| (*name, value.as_str()));
        batch.push(&event, &strings, &row.numbers).unwrap();
    }
    engine.ingest(batch, |_, _| Ok::<_, Error>(())).unwrap();
    started.elapsed()
}

/// Ingests a batch of a thousand events, each with a string and a number, two thousand properties in all,
/// that no other event of the batch has.
pub fn ingest_wide(engine: &Engine, batch_number: usize) {
    let mut batch = engine.batch(NAMESPACE);
    for n in 0..BATCH_ROWS as i64 {
        let id = format!("wide-{batch_number}-{n}");
        let event = Event {
            tenant: LARGEST,
            name: "api_call",
            timestamp_ms: END_MS - n * (DAYS * DAY_MS / BATCH_ROWS as i64),
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
