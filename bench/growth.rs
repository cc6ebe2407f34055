//! What other tenants' data costs one tenant: the same questions about the same events, beside one million
//! events of others and beside ten. `cargo bench -p inlay-bench --bench growth -- 1000000 10000000`

#![expect(clippy::unwrap_used, clippy::print_stdout, reason = "a bench prints, and panics to fail")]

use std::{
    path::Path,
    time::{Duration, Instant},
};

use inlay_bench::{
    fill, ingest_rows, only, question,
    workload::{Row, Workload},
};
use inlay_engine::{Answer, CompactionLimits, Engine, Granularity, Limits, Metric, Options, Query};

/// The tenant that is asked about, and its events: enough of a day for rollups.
const TENANT: &str = "the-one";
const EVENTS: u64 = 300_000;
/// Events between two flushes.
const FLUSH_EVENTS: u64 = 250_000;
const ROUNDS: u32 = 200;

fn questions() -> Vec<(&'static str, Query)> {
    let base = || Query { tenant: Some(TENANT.to_owned()), ..question() };
    let by_day = || Query { granularity: Some(Granularity::Day), ..base() };
    let of = |metric: Metric, query: Query| Query { metric, ..query };
    vec![
        ("count", base()),
        ("count by day", by_day()),
        ("count of a rolled up value", Query { texts: vec![only("model", "model-1")], ..base() }),
        ("count by day and model", Query { group_by: Some("model".to_owned()), ..by_day() }),
        ("sum by day", of(Metric::Sum, by_day())),
        ("distinct users, approximate", of(Metric::DistinctApprox, base())),
        ("distinct users", of(Metric::Distinct, base())),
        ("count, free filter", Query { texts: vec![only("country", "C01")], ..base() }),
        ("95th percentile", of(Metric::Percentile(95), base())),
    ]
}

fn filled(directory: &Path, others: u64) -> Engine {
    let limits = Limits { compaction: CompactionLimits::without_waiting(), ..Limits::default() };
    let options = Options { limits, background: false, ..Options::default() };
    let engine = Engine::open_directory(directory, options).unwrap();
    let own = Workload::new(11, EVENTS);
    for first in (0..EVENTS).step_by(1_000) {
        let rows: Vec<Row> = (first..EVENTS.min(first + 1_000))
            .map(|n| Row { tenant: TENANT.to_owned(), ..own.row(n) })
            .collect();
        ingest_rows(&engine, &rows);
    }
    let workload = Workload::new(7, others);
    for first in (0..others).step_by(FLUSH_EVENTS as usize) {
        fill(&engine, &workload, first, others.min(first + FLUSH_EVENTS));
        engine.flush().unwrap();
    }
    engine.flush().unwrap();
    engine.compact().unwrap();
    engine
}

/// The least of many times, of asking anew and again.
fn times(engine: &Engine, query: &Query) -> [Duration; 2] {
    let least = |ask: &dyn Fn() -> Answer| {
        (0..ROUNDS)
            .map(|_| {
                let started = Instant::now();
                std::hint::black_box(ask());
                started.elapsed()
            })
            .min()
            .unwrap()
    };
    [
        least(&|| engine.query_uncached(query, &|| false).unwrap()),
        least(&|| engine.query(query, &|| false).unwrap()),
    ]
}

fn main() {
    let sizes: Vec<u64> = std::env::args().filter_map(|argument| argument.parse().ok()).collect();
    let sizes = if sizes.is_empty() { vec![1_000_000, 10_000_000] } else { sizes };
    let measured: Vec<Vec<[Duration; 2]>> = sizes
        .iter()
        .map(|&others| {
            let directory = tempfile::tempdir().unwrap();
            let engine = filled(directory.path(), others);
            questions().iter().map(|(_, query)| times(&engine, query)).collect()
        })
        .collect();
    println!("| question | anew, beside {sizes:?} events of others | ratio | again | ratio |");
    println!("|---|---|---|---|---|");
    for (at, (name, _)) in questions().iter().enumerate() {
        print!("| {name}");
        for way in 0..2 {
            let took: Vec<f64> =
                measured.iter().map(|sizes| sizes[at][way].as_secs_f64() * 1e6).collect();
            let shown: Vec<String> = took.iter().map(|us| format!("{us:.1}")).collect();
            print!(" | {} µs | {:.2}", shown.join(", "), took[took.len() - 1] / took[0]);
        }
        println!(" |");
    }
}
