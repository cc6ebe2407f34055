//! Raw queries over segments and over the memtable. `cargo bench -p inlay-bench --bench query`

#![expect(clippy::unwrap_used, reason = "a bench fails by panicking")]

use criterion::{Criterion, criterion_group, criterion_main};
use inlay_bench::{fill, only, question, workload::Workload};
use inlay_engine::{Engine, Granularity, Metric, Options, Query};

const ROWS: u64 = 500_000;

fn questions() -> Vec<(&'static str, Query)> {
    let base = question;
    vec![
        ("count", base()),
        ("count by day", Query { granularity: Some(Granularity::Day), ..base() }),
        ("count, common filter", Query { texts: vec![only("status", "ok")], ..base() }),
        ("count, rare filter", Query { texts: vec![only("status", "error")], ..base() }),
        ("count by model", Query { group_by: Some("model".to_owned()), ..base() }),
        ("distinct users", Query { metric: Metric::Distinct, ..base() }),
        ("distinct users, approximate", Query { metric: Metric::DistinctApprox, ..base() }),
        ("mean", Query { metric: Metric::Avg, ..base() }),
        ("95th percentile", Query { metric: Metric::Percentile(95), ..base() }),
        ("count, all tenants", Query { tenant: None, ..base() }),
    ]
}

fn queries(criterion: &mut Criterion) {
    for (place, flushed) in [("memtable", false), ("segments", true)] {
        let directory = tempfile::tempdir().unwrap();
        let options = Options { background: false, ..Options::default() };
        let engine = Engine::open_directory(directory.path(), options).unwrap();
        fill(&engine, &Workload::new(7, ROWS), 0, ROWS);
        if flushed {
            engine.flush().unwrap();
        }
        let mut group = criterion.benchmark_group(format!("query/{place}"));
        for (name, query) in questions() {
            group.bench_function(name, |bencher| {
                bencher.iter(|| engine.query(&query, &|| false).unwrap())
            });
        }
        group.finish();
    }
}

criterion_group!(benches, queries);
criterion_main!(benches);
