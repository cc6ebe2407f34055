//! Every way to answer a question: rows in memory, segments as a flush leaves them, and sealed days with
//! rollups, asked anew and again. `cargo bench -p inlay-bench --bench query`

#![expect(clippy::unwrap_used, reason = "a bench fails by panicking")]

use std::path::Path;

use criterion::{Criterion, criterion_group, criterion_main};
use inlay_bench::{fill, only, question, workload::Workload};
use inlay_engine::{
    Answer, CompactionLimits, Control, Engine, Granularity, Limits, Metric, Options, Query,
};

const ROWS: u64 = 500_000;

/// One of the ways to ask an engine.
type How = fn(&Engine, &Query, &dyn Control) -> inlay_engine::Result<Answer>;

fn questions() -> Vec<(&'static str, Query)> {
    let base = question;
    let by_day = || Query { granularity: Some(Granularity::Day), ..base() };
    let by = |name: &str, query: Query| Query { group_by: Some(name.to_owned()), ..query };
    let of = |metric: Metric, query: Query| Query { metric, ..query };
    vec![
        ("count", base()),
        ("count by day", by_day()),
        ("count of a rolled up value", Query { texts: vec![only("model", "model-1")], ..base() }),
        ("count by day and model", by("model", by_day())),
        ("count, free filter", Query { texts: vec![only("country", "C01")], ..base() }),
        ("count by day and country", by("country", by_day())),
        ("distinct users", of(Metric::Distinct, base())),
        ("distinct users by day", of(Metric::Distinct, by_day())),
        ("distinct users, approximate", of(Metric::DistinctApprox, base())),
        ("sum", of(Metric::Sum, base())),
        ("mean by day", of(Metric::Avg, by_day())),
        ("95th percentile", of(Metric::Percentile(95), base())),
        ("99th percentile by model", by("model", of(Metric::Percentile(99), base()))),
        ("95th percentile, approximate", of(Metric::PercentileApprox(95), base())),
        ("count, all tenants", Query { tenant: None, ..base() }),
        (
            "distinct users, all tenants",
            of(Metric::DistinctApprox, Query { tenant: None, ..base() }),
        ),
    ]
}

fn open(directory: &Path) -> Engine {
    let limits = Limits { compaction: CompactionLimits::without_waiting(), ..Limits::default() };
    let options = Options { limits, background: false, ..Options::default() };
    Engine::open_directory(directory, options).unwrap()
}

fn ask_all(criterion: &mut Criterion, place: &str, engine: &Engine, how: How) {
    let mut group = criterion.benchmark_group(format!("query/{place}"));
    group.sample_size(20);
    for (name, query) in questions() {
        group.bench_function(name, |bencher| {
            bencher.iter(|| how(engine, &query, &|| false).unwrap());
        });
    }
    group.finish();
}

fn queries(criterion: &mut Criterion) {
    let directory = tempfile::tempdir().unwrap();
    let engine = open(directory.path());
    fill(&engine, &Workload::new(7, ROWS), 0, ROWS);
    ask_all(criterion, "memory", &engine, Engine::query);
    engine.flush().unwrap();
    ask_all(criterion, "flushed", &engine, Engine::query_uncached);
    engine.compact().unwrap();
    ask_all(criterion, "sealed, without rollups", &engine, Engine::query_rows);
    ask_all(criterion, "sealed, anew", &engine, Engine::query_uncached);
    ask_all(criterion, "sealed, again", &engine, Engine::query);
    criterion.bench_function("discover: what 500,000 events look like", |bencher| {
        let query = question();
        let discover = || engine.discover(query.namespace, query.from_ms, query.to_ms, &|| false);
        bencher.iter(|| discover().unwrap());
    });
    engine.close().unwrap();
    drop(engine);

    let mut group = criterion.benchmark_group("cold");
    group.sample_size(20);
    group.bench_function("open ninety sealed days", |bencher| {
        bencher.iter(|| open(directory.path()))
    });
    group.bench_function("open, and a first count by day and model", |bencher| {
        let query = Query {
            granularity: Some(Granularity::Day),
            group_by: Some("model".to_owned()),
            ..question()
        };
        bencher.iter(|| open(directory.path()).query(&query, &|| false).unwrap());
    });
    group.finish();
}

criterion_group!(benches, queries);
criterion_main!(benches);
