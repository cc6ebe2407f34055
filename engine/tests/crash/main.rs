//! Power loss and failing disks at every step of random histories.
//!
//! A history is a seeded sequence of ingests (with duplicates), transactions, flushes, compactions, erasures,
//! days that expire, a namespace that is dropped, and restarts. It is run with a fault at one of the steps that it makes on the simulated
//! disk. Afterwards the disk is opened again and must show exactly the operations that were
//! acknowledged, possibly followed by the one that was under way: a prefix, never a part of an
//! operation.
//!
//! | variable | meaning |
//! |---|---|
//! | `INLAY_SIM_SEEDS` | histories with one random fault each; a failure prints its seed |
//! | `INLAY_SIM_SEED` | runs that seed alone |
//! | `INLAY_SIM_FOREVER` | goes on until it is stopped |
//! | `INLAY_CRASH_SEEDS` | histories that are run once for each of their steps |

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod history;
mod model;

use std::sync::atomic::{AtomicU64, Ordering};

use history::{DROPPABLE, Operation, Row, history, open, play, run};
use inlay_engine::*;
use model::{Model, Shown};

/// What is wrong with a disk after a history, if anything.
fn examine(
    disk: &SimVfs,
    seed: u64,
    acknowledged: &Model,
    under_way: Option<&Model>,
) -> Result<(), String> {
    let text = |error: Error| error.to_string();
    let fits = |seen: &Shown| {
        *seen == acknowledged.shown() || under_way.is_some_and(|with| *seen == with.shown())
    };
    let wrong = |what: &str, seen: &Shown| {
        Err(format!("{what}: {seen:?}\nacknowledged {acknowledged:?}\nunder way {under_way:?}"))
    };
    let engine = open(disk, seed ^ 0xabcd).map_err(|error| format!("does not open: {error}"))?;
    let seen = Shown::by(&engine)?;
    // An erasure that was cut off has taken as many rows as its receipt says, and none of others.
    let receipts = engine.erasures().map_err(text)?;
    let taken = receipts.iter().filter(|receipt| receipt.finished_ms.is_none());
    let taken: Vec<u64> = taken.map(|receipt| receipt.rows_removed).collect();
    let is_half_erased = under_way.zip(taken.first()).is_some_and(|(with, &taken)| {
        seen.is_between(&with.shown(), &acknowledged.shown())
            && seen.rows() + taken == acknowledged.rows.len() as u64
    });
    if !fits(&seen) && !is_half_erased {
        return wrong("recovered", &seen);
    }
    // Background work that was cut off ends now; an erasure among it has its effect.
    engine.compact().map_err(text)?;
    let seen = Shown::by(&engine)?;
    if !fits(&seen) {
        return wrong("after compaction", &seen);
    }
    // What was counted once is known for ever.
    for &(tenant, id) in &acknowledged.ids {
        if under_way.is_none_or(|with| with.ids.contains(&(tenant, id))) {
            let row = Row { tenant, event: 0, day: 1, id: Some(id), user: 0, ms: 1.0 };
            run(&engine, &Operation::Ingest(vec![row])).map_err(text)?;
        }
    }
    let stays = |engine: &Engine, what: &str| {
        let again = Shown::by(engine)?;
        if again == seen { Ok(()) } else { wrong(what, &again) }
    };
    stays(&engine, "a duplicate was counted after recovery")?;
    if acknowledged.is_dropped {
        let row = Row { tenant: DROPPABLE, event: 0, day: 1, id: None, user: 0, ms: 1.0 };
        if run(&engine, &Operation::Ingest(vec![row])).is_ok() {
            return Err("a dropped namespace took events".to_owned());
        }
    }
    engine.flush().map_err(text)?;
    engine.compact().map_err(text)?;
    stays(&engine, "a flush after recovery changed the answers")?;
    drop(engine);
    let engine = open(disk, seed ^ 0xef01).map_err(|error| format!("second opening: {error}"))?;
    stays(&engine, "a second recovery differs")?;
    let problems = engine.inspect().map_err(text)?.verify(&mut |_| ()).problems;
    if problems.is_empty() { Ok(()) } else { Err(format!("verifying finds {problems:?}")) }
}

fn check(disk: &SimVfs, seed: u64, acknowledged: &Model, under_way: Option<&Model>, what: &str) {
    if let Err(wrong) = examine(disk, seed, acknowledged, under_way) {
        panic!("{what}: {wrong}");
    }
}

fn variable(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

/// One history with one fault at a random step, and another one while it recovers.
fn one_fault(seed: u64) -> Result<(), String> {
    let rng = SeededRng::new(seed);
    let operations = history(seed, &rng);
    let disk = SimVfs::new();
    play(&disk, &operations, seed, true);
    let at = rng.below(disk.steps().max(1));
    let (fault, sticky) = [
        (Fault::PowerLoss, true),
        (Fault::PowerLoss, true),
        (Fault::PowerLoss, true),
        (Fault::Error, false),
        (Fault::Error, true),
        (Fault::Full, false),
        (Fault::Full, true),
    ][rng.below(7) as usize];
    let disk = SimVfs::new();
    disk.set_failed_sync(
        [FailedSync::New, FailedSync::Old, FailedSync::Zero][rng.below(3) as usize],
    );
    disk.set_plan(Some(FaultPlan { at, fault, sticky }));
    let (model, under_way) = play(&disk, &operations, seed, fault == Fault::PowerLoss);
    disk.set_plan(None);
    let killed = fault != Fault::PowerLoss && rng.below(2) == 0;
    let after = if killed { disk.after_kill() } else { disk.after_power_loss(&rng) };
    // Power fails again while it recovers and while it catches up.
    let again = FaultPlan { at: rng.below(40), fault: Fault::PowerLoss, sticky: true };
    after.set_plan(Some(again));
    if let Ok(engine) = open(&after, seed) {
        let _ = engine.compact();
    }
    examine(&after.after_power_loss(&rng), seed, &model, under_way.as_ref())
        .map_err(|wrong| format!("{fault:?} (sticky {sticky}) at step {at}: {wrong}"))
}

#[test]
fn ten_thousand_seeds() {
    if let Some(seed) = variable("INLAY_SIM_SEED") {
        one_fault(seed).unwrap();
        return;
    }
    let forever = std::env::var_os("INLAY_SIM_FOREVER").is_some();
    let seeds = if forever { u64::MAX } else { variable("INLAY_SIM_SEEDS").unwrap_or(10_000) };
    let next = AtomicU64::new(0);
    let threads = std::thread::available_parallelism().map_or(2, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                loop {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    if seed >= seeds {
                        break;
                    }
                    if let Err(wrong) = one_fault(seed) {
                        panic!("INLAY_SIM_SEED={seed} repeats this: {wrong}");
                    }
                    if forever && seed.is_multiple_of(10_000) {
                        eprintln!("{seed} seeds");
                    }
                }
            });
        }
    });
    assert!(model::FROM_ROLLUPS.load(Ordering::Relaxed) > seeds, "rollups were asked");
}

/// Seeds that found something once. 258: an erasure met an error, merges went on meanwhile, and it
/// passed over the segments that they had made of those on its list. 9005: a start wrote the last
/// group of the log once more in its place, and a sync that failed there took it.
#[test]
fn seeds_that_found_something_stay_right() {
    for seed in [41, 159, 258, 373, 739, 750, 9005] {
        one_fault(seed).unwrap_or_else(|wrong| panic!("INLAY_SIM_SEED={seed}: {wrong}"));
    }
}

#[test]
fn power_loss_at_every_step_leaves_an_acknowledged_prefix() {
    for seed in 0..variable("INLAY_CRASH_SEEDS").unwrap_or(20) {
        let operations = history(seed, &SeededRng::new(seed));
        let disk = SimVfs::new();
        let (whole, _) = play(&disk, &operations, seed, true);
        check(&disk.after_kill(), seed, &whole, None, &format!("seed {seed}, no fault"));
        for at in 0..disk.steps() {
            let disk = SimVfs::new();
            disk.set_plan(Some(FaultPlan { at, fault: Fault::PowerLoss, sticky: true }));
            let (model, under_way) = play(&disk, &operations, seed, true);
            let rng = SeededRng::new(seed * 1_000_003 + at);
            let what = format!("seed {seed}, power loss at step {at}");
            check(&disk.after_power_loss(&rng), seed, &model, under_way.as_ref(), &what);
        }
    }
}

#[test]
fn a_failing_step_is_never_acknowledged_and_never_loses_what_was() {
    for seed in 0..variable("INLAY_CRASH_SEEDS").unwrap_or(6) {
        let operations = history(seed, &SeededRng::new(seed + 500));
        let disk = SimVfs::new();
        play(&disk, &operations, seed, true);
        for at in 0..disk.steps() {
            for (fault, sticky) in [
                (Fault::Error, false),
                (Fault::Error, true),
                (Fault::Full, false),
                (Fault::Full, true),
            ] {
                let disk = SimVfs::new();
                disk.set_plan(Some(FaultPlan { at, fault, sticky }));
                let (model, under_way) = play(&disk, &operations, seed, false);
                disk.set_plan(None);
                let what = format!("seed {seed}, {fault:?} (sticky {sticky}) at step {at}");
                let after = disk.after_power_loss(&SeededRng::new(seed * 77 + at));
                check(&after, seed, &model, under_way.as_ref(), &what);
            }
        }
    }
}

/// Whether any of some histories ends wrong when syncs of `place` do nothing.
fn is_missed(place: &'static str) -> bool {
    (0..400).any(|seed| {
        let rng = SeededRng::new(seed);
        let operations = history(seed, &rng);
        let disk = SimVfs::new();
        play(&disk, &operations, seed, true);
        let disk_steps = disk.steps();
        (0..4).any(|_| {
            let disk = SimVfs::new();
            disk.set_unsynced(Some(place));
            let at = rng.below(disk_steps.max(1));
            disk.set_plan(Some(FaultPlan { at, fault: Fault::PowerLoss, sticky: true }));
            let (model, under_way) = play(&disk, &operations, seed, true);
            examine(&disk.after_power_loss(&rng), seed, &model, under_way.as_ref()).is_err()
        })
    })
}

/// Each sync that the order depends on is taken away, and the histories must notice.
#[test]
fn every_sync_that_is_left_out_is_missed() {
    for place in [".wal", ".seg", ".ids", ".kv", ".a", "/", "wal", "seg", "seg/l0", "ids", "ckpt"] {
        // An id run that is not there is written anew at the start, but for ids of expired events.
        assert!(is_missed(place), "syncs of {place}");
    }
}

#[test]
fn freed_space_heals_without_a_restart() {
    let disk = SimVfs::new();
    let engine = open(&disk, 1).unwrap();
    let row = |id| {
        let row = Row { tenant: 0, event: 0, day: 0, id: Some(id), user: 1, ms: 1.0 };
        Operation::Ingest(vec![row])
    };
    let mut model = Model::default();
    let mut refused = 0;
    for id in 0..200 {
        let full = (50..150).contains(&id);
        disk.set_plan(full.then_some(FaultPlan { at: 0, fault: Fault::Full, sticky: true }));
        match run(&engine, &row(id)) {
            Ok(()) => model.apply(&row(id)),
            Err(Error::Limit { limit: Limit::Disk, .. }) => refused += 1,
            Err(other) => panic!("{other}"),
        }
        let _ = engine.flush();
        let _ = engine.compact();
    }
    assert!(refused >= 50, "{refused} writes were refused while the disk was full");
    assert_eq!(Shown::by(&engine).unwrap(), model.shown(), "reads and later writes go on");
    drop(engine);
    check(&disk.after_kill(), 1, &model, None, "after healing");
}

/// A segment that was written but could not be named left its file behind, and the next try wrote
/// another: a disk that was nearly full was filled.
#[test]
fn a_flush_that_cannot_be_logged_leaves_nothing_behind() {
    let disk = SimVfs::new();
    let engine = open(&disk, 1).unwrap();
    let rows: Vec<Row> = (0..6)
        .map(|id| Row { tenant: 0, event: 0, day: 0, id: Some(id), user: 1, ms: 1.0 })
        .collect();
    let mut model = Model::default();
    let mut refused = 0;
    for round in 0..60 {
        // Log files are small: sooner or later one is full just when a flush wants to be logged.
        let padding = Operation::Keys(vec![("pad".to_owned(), Some("x".repeat(round * 97 % 700)))]);
        run(&engine, &padding).unwrap();
        model.apply(&padding);
        disk.set_full_for(Some(".wal"));
        refused += u32::from(engine.flush().is_err());
        refused += u32::from(engine.compact().is_err());
        disk.set_full_for(None);
        run(&engine, &Operation::Ingest(rows.clone())).unwrap();
        let more = Row { id: None, ..rows[0].clone() };
        let more = Operation::Ingest(vec![more; 7]);
        run(&engine, &more).unwrap();
        model.apply(&Operation::Ingest(rows.clone()));
        model.apply(&more);
    }
    assert!(refused > 0, "a flush met the full disk");
    engine.flush().unwrap();
    assert_eq!(Shown::by(&engine).unwrap(), model.shown());
    let segments = disk.files().keys().filter(|path| path.ends_with(".seg")).count();
    assert_eq!(segments, engine.stats().segments, "every segment on the disk is a live one");
}

/// The harness must notice a lie: a disk whose syncs do nothing loses acknowledged events.
#[test]
fn a_disk_that_lies_about_syncing_is_noticed() {
    let mut losses = 0;
    for seed in 0..20 {
        let operations = history(seed, &SeededRng::new(seed));
        let disk = SimVfs::new();
        let (model, _) = play(&disk, &operations, seed, true);
        let lied = disk.as_if_never_synced();
        if let Ok(engine) = open(&lied.after_power_loss(&SeededRng::new(seed)), 9) {
            losses += u32::from(Shown::by(&engine).map_or(true, |seen| seen != model.shown()));
        } else {
            losses += 1;
        }
    }
    assert!(losses > 10, "{losses} of 20 lies were noticed");
}
