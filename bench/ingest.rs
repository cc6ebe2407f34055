//! Ingest with a sync a batch, flush, and opening again. `cargo bench -p inlay-bench --bench ingest`

#![expect(clippy::unwrap_used, reason = "a bench fails by panicking")]

use std::path::Path;

use criterion::{BatchSize, Criterion, Throughput, criterion_group, criterion_main};
use inlay_bench::{fill, ingest_batch};
use inlay_engine::{Engine, Options, SeededRng};

const ROWS: usize = 100_000;

fn open(directory: &Path) -> Engine {
    Engine::open_directory(directory, Options { background: false, ..Options::default() }).unwrap()
}

fn ingest(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("ingest");
    group.throughput(Throughput::Elements(1_000));
    let directory = tempfile::tempdir().unwrap();
    let engine = open(directory.path());
    let rng = SeededRng::new(1);
    let mut first = 0;
    group.bench_function("batch of 1,000, one writer", |bencher| {
        bencher.iter(|| {
            ingest_batch(&engine, &rng, 1, first, 1_000);
            first += 1_000;
            if first % 200_000 == 0 {
                engine.flush().unwrap();
            }
        });
    });
    group.finish();
}

fn flush_and_open(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("store");
    group.sample_size(10).throughput(Throughput::Elements(ROWS as u64));
    let filled = || {
        let directory = tempfile::tempdir().unwrap();
        let engine = open(directory.path());
        fill(&engine, 1, ROWS);
        (directory, engine)
    };
    group.bench_function("flush 100,000 rows", |bencher| {
        bencher.iter_batched(
            filled,
            |(directory, engine)| {
                engine.flush().unwrap();
                (directory, engine)
            },
            BatchSize::PerIteration,
        );
    });
    let (directory, engine) = filled();
    drop(engine);
    group.bench_function("open and replay 100,000 rows", |bencher| {
        bencher.iter(|| open(directory.path()))
    });
    group.finish();
}

criterion_group!(benches, ingest, flush_and_open);
criterion_main!(benches);
