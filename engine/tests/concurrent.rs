//! Many writers at once, on a disk that is full now and then: each event counts once, and what was
//! acknowledged is there.
//!
//! Writers share event ids, so duplicates meet inside a group, across groups and across flushes.
//! `INLAY_CONCURRENT_ROUNDS` sets the number of rounds.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::{
    collections::BTreeSet,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    thread,
};

use inlay_engine::*;

const WRITERS: u64 = 4;
const BATCHES: u64 = 60;

fn open(disk: &SimVfs, seed: u64) -> Engine {
    let limits = Limits { log_file_bytes: 8_192, flush_rows: 40, ..Limits::default() };
    let options = Options {
        rng: Arc::new(SeededRng::new(seed)),
        limits,
        background: false,
        ..Options::default()
    };
    Engine::open(Arc::new(disk.clone()), options).unwrap()
}

fn count(engine: &Engine) -> u64 {
    let query = Query {
        tenant: Some("t".into()),
        groups_max: 1,
        ..Query::count(Namespace(1), "e", 0..i64::MAX / 2)
    };
    engine.query(&query, &|| false).unwrap().values[0][0].as_f64().unwrap() as u64
}

fn counted(engine: &Engine) -> u64 {
    engine.keys().find(b"new").map_or(0, |bytes| u64::from_le_bytes(bytes[..].try_into().unwrap()))
}

/// Sends batches whose ids overlap with those of the other writers. Gives the ids that were
/// acknowledged.
fn write(engine: &Engine, seed: u64) -> BTreeSet<u64> {
    let rng = SeededRng::new(seed);
    let mut acknowledged = BTreeSet::new();
    for _ in 0..BATCHES {
        let ids: Vec<u64> = (0..1 + rng.below(8)).map(|_| rng.below(2_000)).collect();
        let mut batch = engine.batch(Namespace(1));
        for id in &ids {
            let text = id.to_string();
            let event = Event {
                tenant: "t",
                name: "e",
                timestamp_ms: 5,
                event_id: Some(&text),
                user_id: None,
            };
            batch.push(&event, &[], &[]).unwrap();
        }
        let stored = engine.ingest(batch, |txn, ingested| {
            let before = txn
                .find(b"new")
                .map_or(0, |bytes| u64::from_le_bytes(bytes[..].try_into().unwrap()));
            txn.put(b"new", &(before + u64::from(ingested.new)).to_le_bytes());
            Ok::<_, Error>(())
        });
        match stored {
            Ok(_) => acknowledged.extend(ids),
            Err(Error::Limit { .. }) => {}
            Err(other) => panic!("{other}"),
        }
    }
    acknowledged
}

fn round(seed: u64, full_now_and_then: bool) {
    let disk = SimVfs::new();
    let engine = open(&disk, seed);
    let done = AtomicBool::new(false);
    let dips = AtomicU64::new(0);
    let acknowledged: BTreeSet<u64> = thread::scope(|scope| {
        let writers: Vec<_> = (0..WRITERS)
            .map(|writer| {
                let engine = &engine;
                scope.spawn(move || write(engine, seed * 100 + writer))
            })
            .collect();
        // A reader never sees a number that goes back, or events without their counter.
        scope.spawn(|| {
            let mut before = 0;
            while !done.load(Ordering::Relaxed) {
                let now = count(&engine);
                dips.fetch_add(u64::from(now < before), Ordering::Relaxed);
                before = now;
                thread::yield_now();
            }
        });
        scope.spawn(|| {
            let rng = SeededRng::new(seed);
            while !done.load(Ordering::Relaxed) {
                if full_now_and_then {
                    let full = FaultPlan { at: 0, fault: Fault::Full, sticky: true };
                    disk.set_plan((rng.below(3) == 0).then_some(full));
                }
                let _ = engine.flush();
                thread::yield_now();
            }
            disk.set_plan(None);
        });
        let joined: Vec<_> = writers.into_iter().map(thread::ScopedJoinHandle::join).collect();
        // Before a failure is reported, or the others would run for ever.
        done.store(true, Ordering::Relaxed);
        joined.into_iter().flat_map(Result::unwrap).collect()
    });
    assert_eq!(dips.load(Ordering::Relaxed), 0, "seed {seed}: a count went back");
    let shown = count(&engine);
    assert_eq!(shown, acknowledged.len() as u64, "seed {seed}: lost or doubled");
    assert_eq!(counted(&engine), shown, "seed {seed}: the counter moves with the events");
    drop(engine);
    let again = open(&disk.after_kill(), seed + 1);
    assert_eq!((count(&again), counted(&again)), (shown, shown), "seed {seed}: after a restart");
    // Everything that was known stays known.
    let resent = write(&again, seed * 100);
    let all: BTreeSet<u64> = resent.union(&acknowledged).copied().collect();
    assert_eq!(count(&again), all.len() as u64, "seed {seed}: after sending again");
}

fn rounds(default: u64) -> u64 {
    std::env::var("INLAY_CONCURRENT_ROUNDS")
        .ok()
        .and_then(|text| text.parse().ok())
        .unwrap_or(default)
}

#[test]
fn writers_at_once_lose_and_double_nothing() {
    (0..rounds(15)).for_each(|seed| round(seed, false));
}

#[test]
fn writers_on_a_disk_that_fills_up_lose_and_double_nothing() {
    (0..rounds(15)).for_each(|seed| round(seed + 1_000, true));
}
