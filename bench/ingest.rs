//! Ingest with a sync a batch, flush, and opening again. `cargo bench -p inlay-bench --bench ingest`

#![expect(clippy::unwrap_used, reason = "a bench fails by panicking")]

use std::{
    path::Path,
    time::{Duration, Instant},
};

use criterion::{BatchSize, Criterion, Throughput, criterion_group, criterion_main};
use inlay_bench::{fill, ingest_batch, ingest_wide, workload::Workload};
use inlay_engine::{CompactionLimits, Engine, Limits, Options};

const ROWS: u64 = 100_000;

fn open(directory: &Path) -> Engine {
    let compaction = CompactionLimits::without_waiting();
    let limits = Limits { compaction, ..Limits::default() };
    Engine::open_directory(directory, Options { background: false, limits, ..Options::default() })
        .unwrap()
}

fn ingest(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("ingest");
    group.throughput(Throughput::Elements(1_000));
    let directory = tempfile::tempdir().unwrap();
    let engine = open(directory.path());
    let workload = Workload::new(1, 10_000_000);
    let mut first = 0;
    group.bench_function("batch of 1,000, one writer", |bencher| {
        bencher.iter_custom(|batches| {
            let mut took = Duration::ZERO;
            for _ in 0..batches {
                took += ingest_batch(&engine, &workload, first, first + 1_000);
                first += 1_000;
                if first % 200_000 == 0 {
                    let started = Instant::now();
                    engine.flush().unwrap();
                    took += started.elapsed();
                }
            }
            took
        });
    });
    group.finish();
}

fn flush_and_open(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("store");
    group.sample_size(10).throughput(Throughput::Elements(ROWS));
    let filled = || {
        let directory = tempfile::tempdir().unwrap();
        let engine = open(directory.path());
        fill(&engine, &Workload::new(1, ROWS), 0, ROWS);
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

/// One batch of forty has two thousand properties, each in one of its events.
fn wide_rows(criterion: &mut Criterion) {
    const BATCHES: u64 = 120;
    let mut group = criterion.benchmark_group("120,000 rows");
    group.sample_size(10).throughput(Throughput::Elements(BATCHES * 1_000));
    for (wide, title) in [(false, "plain"), (true, "2,000 rare properties")] {
        let filled = |flushes: u64| {
            let directory = tempfile::tempdir().unwrap();
            let engine = open(directory.path());
            let workload = Workload::new(3, BATCHES * 1_000);
            for batch in 0..BATCHES {
                if wide && batch % 40 == 0 {
                    ingest_wide(&engine, batch as usize);
                } else {
                    ingest_batch(&engine, &workload, batch * 1_000, (batch + 1) * 1_000);
                }
                if flushes > 1 && (batch + 1) % (BATCHES / flushes) == 0 {
                    engine.flush().unwrap();
                }
            }
            (directory, engine)
        };
        let run = |work: fn(&Engine)| {
            move |(directory, engine): (tempfile::TempDir, Engine)| {
                work(&engine);
                (directory, engine)
            }
        };
        let flush = run(|engine| engine.flush().unwrap());
        group.bench_function(format!("flush, {title}"), |bencher| {
            bencher.iter_batched(|| filled(1), flush, BatchSize::PerIteration);
        });
        let merge = run(|engine| {
            engine.compact().unwrap();
        });
        group.bench_function(format!("merge of 4, {title}"), |bencher| {
            bencher.iter_batched(|| filled(4), merge, BatchSize::PerIteration);
        });
    }
    group.finish();
}

criterion_group!(benches, ingest, flush_and_open, wide_rows);
criterion_main!(benches);
