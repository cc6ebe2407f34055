//! How far the sketches are off, as tables: ten to ten million users or numbers, each of four kinds.
//!
//!     cargo test --release -p inlay-engine --lib accuracy -- --ignored --nocapture
//!
//! The bounds that the unit tests of the sketches check are those of the theory; these tables say what
//! users see. `bench/README.md` has the numbers:
//!
//! ```text
//! | users | kind | draws | RMS error | largest error |
//! |---|---|---|---|---|
//! | 10000 | random | 200 | 0.63 % | 1.73 % |
//! ```

#![expect(clippy::print_stdout, reason = "a table is what is asked for")]

use super::{
    digest::{Digest, tests::unit},
    hll::Distinct,
};
use crate::base::{
    hash,
    rng::{Rng as _, SeededRng},
};

/// Users or numbers of a row of the tables.
const COUNTS: [u64; 7] = [10, 100, 1_000, 10_000, 100_000, 1_000_000, 10_000_000];
/// States that are merged to one, as the days of a quarter are.
const PARTS: u64 = 90;

/// Independent draws: 200 up to 100,000 users, 20 of a million, 5 of ten million.
fn trials(count: u64) -> u64 {
    (20_000_000 / count).clamp(5, 200)
}

/// The state of `count` users, added in one of four ways: all of them should estimate alike.
fn users(kind: &str, count: u64, seed: u64) -> Distinct {
    let mut state = Distinct::default();
    // The hash is what spreads users over registers: ids that count up must do no worse than random ones.
    let named = |n: u64| hash::user(seed, format!("user-{n}").as_bytes());
    match kind {
        "counted up" => {
            for n in 0..count {
                state.insert(named(n));
            }
        }
        "random" => {
            let rng = SeededRng::new(seed);
            for _ in 0..count {
                let id = [rng.below(u64::MAX), rng.below(u64::MAX)].map(u64::to_le_bytes);
                state.insert(hash::user(seed, id.as_flattened()));
            }
        }
        "some very often" => {
            for n in 0..count {
                let user = named(n);
                for _ in 0..(count / (n + 1)).clamp(1, 100) {
                    state.insert(user);
                }
            }
        }
        _ => {
            // Each day has a part of the users, and each user comes on some days.
            let mut days: Vec<Distinct> = vec![Distinct::default(); PARTS as usize];
            for n in 0..count {
                let user = named(n);
                for step in 0..3 {
                    days[((n * 7 + step * n / 11 + step) % PARTS) as usize].insert(user);
                }
            }
            for day in &days {
                state.merge(day);
            }
        }
    }
    state
}

#[test]
#[ignore = "prints a table; with optimisation only"]
fn accuracy_of_distinct_counts() {
    println!("| users | kind | draws | RMS error | largest error |");
    println!("|---|---|---|---|---|");
    for count in COUNTS {
        for kind in ["counted up", "random", "some very often", "days merged"] {
            let error = |trial: u64| {
                let found = users(kind, count, count ^ trial << 40).estimate();
                (found as f64 / count as f64 - 1.0).abs()
            };
            let errors: Vec<f64> = (1..=trials(count)).map(error).collect();
            let squares = errors.iter().map(|error| error * error).sum::<f64>();
            let rms = (squares / errors.len() as f64).sqrt() * 100.0;
            let most = errors.iter().copied().fold(0.0, f64::max) * 100.0;
            let draws = errors.len();
            println!("| {count} | {kind} | {draws} | {rms:.2} % | {most:.2} % |");
            // Half as much again as theory says: of few draws the mean square itself is off.
            assert!(rms < 0.81 * 1.5, "{count} {kind}: {rms}");
        }
    }
}

/// A number of one of four distributions; `steps` has forty different ones, `Pareto` a tail that percentiles miss most easily.
fn number(kind: &str, rng: &SeededRng) -> f64 {
    let u = unit(rng);
    match kind {
        "uniform" => u * 1_000.0,
        "log-normal" => {
            let normal = (-2.0 * u.ln()).sqrt() * (std::f64::consts::TAU * unit(rng)).cos();
            (5.0 + 0.8 * normal).exp()
        }
        "Pareto" => u.powf(-1.0 / 1.5),
        _ => (u * 40.0).floor() * 25.0,
    }
}

#[test]
#[ignore = "prints a table; with optimisation only"]
fn accuracy_of_percentiles() {
    println!(
        "Largest distance from the right rank, in percent of all numbers, and of the value.\n"
    );
    println!("| numbers | kind | p50 | p95 | p99 |");
    println!("|---|---|---|---|---|");
    for count in COUNTS {
        for kind in ["uniform", "log-normal", "Pareto", "steps"] {
            let mut worst = [(0.0f64, 0.0f64); 3];
            for trial in 0..trials(count).min(20) {
                let rng = SeededRng::new(count ^ trial << 40);
                let mut values: Vec<f64> = (0..count).map(|_| number(kind, &rng)).collect();
                let mut digest = Digest::default();
                for part in values.chunks((count / PARTS).max(1) as usize) {
                    let mut of_part = Digest::default();
                    for &value in part {
                        of_part.insert(value);
                    }
                    digest.merge(&of_part.settled());
                }
                values.sort_by(f64::total_cmp);
                for (worst, q) in worst.iter_mut().zip([0.5, 0.95, 0.99]) {
                    let found = digest.quantile(q).unwrap_or(f64::NAN);
                    let rank = q * (count - 1) as f64;
                    let exact = values[rank.floor() as usize]
                        + (values[rank.ceil() as usize] - values[rank.floor() as usize])
                            * rank.fract();
                    // A value that occurs often covers many ranks: only ranks outside of these are wrong.
                    let below = values.partition_point(|value| *value < found) as f64;
                    let upto = values.partition_point(|value| *value <= found) as f64;
                    let off = (below - 1.0 - rank).max(rank - upto).max(0.0) / count as f64;
                    worst.0 = worst.0.max(off * 100.0);
                    worst.1 = worst.1.max((found / exact - 1.0).abs() * 100.0);
                }
            }
            let shown = worst.map(|(rank, value)| format!("{rank:.3}; {value:.2} %"));
            println!("| {count} | {kind} | {} |", shown.join(" | "));
            assert!(worst[1].0 < 0.6 && worst[2].0 < 0.3, "{count} {kind}: {worst:?}");
        }
    }
}
