//! Encodings and sketches alone: how quickly columns are written and read, and states are merged.
//! `cargo bench -p inlay-bench --bench parts`

#![expect(clippy::unwrap_used, reason = "a bench fails by panicking")]

use criterion::{BatchSize, Criterion, Throughput, criterion_group, criterion_main};
use inlay_engine::{
    Rng as _, SeededRng,
    parts::{Digest, Distinct, VECTOR_ROWS, ints, numbers},
};

/// Rows of a block of a segment.
const ROWS: usize = 1 << 16;
/// Sealed days of a dashboard's longest window.
const DAYS: usize = 90;

fn integers(criterion: &mut Criterion) {
    let rng = SeededRng::new(1);
    let random = |below: u64| (rng.next_u64() % below) as i64;
    let mut time = 1_794_571_200_000;
    let mut rising = || {
        time += random(2_000);
        time
    };
    let shapes: [(&str, Vec<i64>); 4] = [
        ("one value", vec![7; ROWS]),
        ("codes of eight values", (0..ROWS).map(|_| random(8)).collect()),
        ("codes of ten thousand", (0..ROWS).map(|_| random(10_000)).collect()),
        ("times of sorted rows", (0..ROWS).map(|_| rising()).collect()),
    ];
    let mut group = criterion.benchmark_group("integers");
    group.throughput(Throughput::Elements(ROWS as u64));
    for (shape, values) in &shapes {
        let mut bytes = Vec::new();
        ints::write(values, &mut bytes);
        group.bench_function(format!("write {shape}"), |bencher| {
            bencher.iter(|| {
                let mut bytes = Vec::with_capacity(ROWS * 8);
                ints::write(values, &mut bytes);
                bytes
            });
        });
        group.bench_function(format!("read {shape}"), |bencher| {
            let mut out = [0; VECTOR_ROWS];
            bencher.iter(|| {
                let block = ints::IntBlock::open(&bytes, ROWS, "bench").unwrap();
                for vector in 0..ROWS / VECTOR_ROWS {
                    block.read_vector(vector, &mut out).unwrap();
                    std::hint::black_box(&out);
                }
            });
        });
    }
    group.finish();
}

fn decimals(criterion: &mut Criterion) {
    let rng = SeededRng::new(2);
    let thousandths: Vec<f64> =
        (0..ROWS).map(|_| (rng.next_u64() % 1_000_000) as f64 / 1_000.0).collect();
    let any: Vec<f64> = (0..ROWS).map(|_| (rng.next_u64() >> 11) as f64 / 7.0).collect();
    let mut group = criterion.benchmark_group("numbers");
    group.throughput(Throughput::Elements(ROWS as u64));
    for (shape, values) in [("three decimals", &thousandths), ("any", &any)] {
        let exponent = numbers::choose_exponent(values);
        let mut bytes = Vec::new();
        numbers::write(values, exponent, &mut bytes).unwrap();
        group.bench_function(format!("write {shape}"), |bencher| {
            bencher.iter(|| {
                let mut bytes = Vec::with_capacity(ROWS * 8);
                numbers::write(values, numbers::choose_exponent(values), &mut bytes).unwrap();
                bytes
            });
        });
        group.bench_function(format!("read {shape}"), |bencher| {
            let mut out = [0.0; VECTOR_ROWS];
            bencher.iter(|| {
                let block = numbers::NumberBlock::open(&bytes, ROWS, exponent, "bench").unwrap();
                for vector in 0..ROWS / VECTOR_ROWS {
                    block.read_vector(vector, &mut out).unwrap();
                    std::hint::black_box(&out);
                }
            });
        });
    }
    group.finish();
}

fn sketches(criterion: &mut Criterion) {
    const ADDED: usize = 10_000;
    let rng = SeededRng::new(3);
    let hashes: Vec<u128> =
        (0..ADDED).map(|_| u128::from(rng.next_u64()) << 64 | u128::from(rng.next_u64())).collect();
    let values: Vec<f64> = (0..ADDED).map(|_| (rng.next_u64() % 1_000_000) as f64).collect();
    let mut group = criterion.benchmark_group("sketches");
    group.throughput(Throughput::Elements(ADDED as u64));
    let users = || {
        let mut sketch = Distinct::default();
        hashes.iter().for_each(|&hash| {
            sketch.insert(hash);
        });
        sketch
    };
    let digest = || {
        let mut digest = Digest::default();
        values.iter().for_each(|&value| {
            digest.insert(value);
        });
        digest.settled()
    };
    group.bench_function("count 10,000 users", |bencher| bencher.iter(users));
    group.bench_function("digest 10,000 numbers", |bencher| bencher.iter(digest));
    group.throughput(Throughput::Elements(DAYS as u64));
    let (day_of_users, day_of_numbers) = (users(), digest());
    group.bench_function("merge users of 90 days", |bencher| {
        bencher.iter(|| {
            let mut whole = Distinct::default();
            for _ in 0..DAYS {
                whole.merge(&day_of_users);
            }
            whole.estimate()
        });
    });
    group.bench_function("merge digests of 90 days", |bencher| {
        bencher.iter_batched(
            Digest::default,
            |mut whole| {
                for _ in 0..DAYS {
                    whole.merge(&day_of_numbers);
                }
                whole.quantile(0.95)
            },
            BatchSize::SmallInput,
        );
    });
    group.finish();
}

criterion_group!(benches, integers, decimals, sketches);
criterion_main!(benches);
