//! Erasures that meet trouble: crashes at every step, damage, each other, and deadlines.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::sync::Arc;

use inlay_engine::*;

const DAY_MS: i64 = 86_400_000;
const TODAY_MS: i64 = 20_000 * DAY_MS;
const JANE: &str = "jane.doe@example.org";
const JOHN: &str = "john.roe@example.org";
/// Losses of power that are tried at each step.
const SEEDS: u64 = 10;

fn open(disk: &SimVfs, clock: &Arc<ManualClock>) -> Result<Engine> {
    let compaction = CompactionLimits { fan_in: 2, ..CompactionLimits::without_waiting() };
    let limits = Limits { compaction, log_file_bytes: 8_192, ..Limits::default() };
    let clock: Arc<dyn Clock> = Arc::<ManualClock>::clone(clock);
    let rng = Arc::new(SeededRng::new(3));
    Engine::open(
        Arc::new(disk.clone()),
        Options { clock, rng, limits, background: false, ..Options::default() },
    )
}

fn noon() -> Arc<ManualClock> {
    Arc::new(ManualClock::new(TODAY_MS + DAY_MS / 2))
}

/// Ten events of a user, of one day.
fn ingest(engine: &Engine, user: &str, days_ago: i64) {
    let mut batch = engine.batch(Namespace(1));
    for n in 0..10 {
        let id = format!("{user} {days_ago} {n}");
        let event = Event {
            tenant: "acme",
            name: "call",
            timestamp_ms: TODAY_MS - days_ago * DAY_MS + n,
            event_id: Some(&id),
            user_id: Some(user),
        };
        batch.push(&event, &[("contact", user)], &[("ms", 1.0)]).unwrap();
    }
    engine.ingest(batch, |_, _| Ok::<_, Error>(())).unwrap();
}

fn erase(engine: &Engine, user: &str) -> Result<Erasure> {
    let whose = Whose::User { tenant: "acme", user };
    engine.transact(|txn| Ok::<_, Error>(engine.erase(txn, Namespace(1), &whose)))
}

/// Events of a user that are still counted, by what their property says.
fn count(engine: &Engine, user: &str) -> Result<u64> {
    let query = Query {
        tenant: Some("acme".into()),
        texts: vec![TextFilter { name: "contact".into(), any_of: vec![user.into()] }],
        groups_max: 10,
        ..Query::count(Namespace(1), "call", TODAY_MS - 50 * DAY_MS..TODAY_MS + DAY_MS)
    };
    Ok(engine.query(&query, &|| false)?.values[0][0].as_f64().unwrap_or(0.0) as u64)
}

fn holds(disk: &SimVfs, text: &str) -> Vec<String> {
    let holds = |bytes: &Vec<u8>| bytes.windows(text.len()).any(|part| part == text.as_bytes());
    disk.files().into_iter().filter(|(_, bytes)| holds(bytes)).map(|(path, _)| path).collect()
}

/// Two sealed days, each in a file of its own, with events of both users; the log holds none.
fn two_days(disk: &SimVfs, clock: &Arc<ManualClock>) -> Engine {
    let engine = open(disk, clock).unwrap();
    for days_ago in 1..3 {
        for user in [JANE, JOHN] {
            ingest(&engine, user, days_ago);
        }
    }
    engine.flush().unwrap();
    engine.compact().unwrap();
    assert_eq!(segments(disk).len(), 2);
    engine
}

fn segments(disk: &SimVfs) -> Vec<String> {
    disk.files().into_keys().filter(|path| path.starts_with("seg/")).collect()
}

/// Whatever moment the power fails at: an erasure that was acknowledged is done after the next start,
/// to the last file, and nothing else is gone.
#[test]
fn an_erasure_survives_a_power_cut_at_every_step() {
    let steps_of = |plan: Option<u64>| {
        let (disk, clock) = (SimVfs::new(), noon());
        let engine = two_days(&disk, &clock);
        // Some of it is in memory and in the log only.
        ingest(&engine, JANE, 0);
        let first = disk.steps();
        disk.set_plan(plan.map(|at| FaultPlan {
            at: first + at,
            fault: Fault::PowerLoss,
            sticky: true,
        }));
        let asked = erase(&engine, JANE).is_ok();
        let _ = engine.compact();
        let steps = disk.steps() - first;
        drop(engine);
        (disk, asked, steps)
    };
    let (_, asked, steps) = steps_of(None);
    assert!(asked && steps > 30, "{steps} steps");
    // What the disk keeps is chance: some of it at each step.
    for (at, seed) in (0..steps).flat_map(|at| (0..SEEDS).map(move |seed| (at, at + 1_000 * seed)))
    {
        let (disk, asked, _) = steps_of(Some(at));
        let disk = disk.after_power_loss(&SeededRng::new(seed));
        let engine = open(&disk, &noon()).unwrap();
        engine.compact().unwrap();
        let left = count(&engine, JANE).unwrap();
        // What was not acknowledged may have been recorded all the same.
        assert!(left == 0 || left == 30 && !asked, "step {at}, seed {seed}: {left} left");
        assert_eq!(count(&engine, JOHN).unwrap(), 20, "step {at}, seed {seed}");
        if left == 0 {
            assert_eq!(holds(&disk, JANE), Vec::<String>::new(), "step {at}, seed {seed}");
            let done = engine.erasures().unwrap();
            assert_eq!(done[0].rows_removed, 30, "step {at}: each row is on the receipt once");
        }
    }
}

/// Two erasures list the same files, one of which is damaged: both take what they can reach, also
/// where the first has rewritten what the second had listed; both wait for the rest, and say so.
#[test]
fn erasures_get_past_a_damaged_segment_and_each_other() {
    let (disk, clock) = (SimVfs::new(), noon());
    let engine = two_days(&disk, &clock);
    drop(engine);
    let damaged = segments(&disk).remove(0);
    let mut bytes = disk.files()[&damaged].clone();
    let whole = bytes.clone();
    // Into the event ids, which are needed by whoever writes the rows anew.
    let inspection = Inspection::open(disk.clone()).unwrap();
    let segment = inspection.segments().unwrap().remove(0).uuid;
    assert!(damaged.contains(&segment.to_string()));
    let sections = inspection.sections(segment).unwrap();
    let ids = sections.iter().find(|section| section.kind == "event ids").unwrap();
    bytes[ids.blocks[0].offset as usize + 4] ^= 1;
    disk.set_file(&damaged, Some(bytes));
    let engine = open(&disk, &clock).unwrap();
    let (jane, john) = (erase(&engine, JANE).unwrap(), erase(&engine, JOHN).unwrap());
    assert!(engine.compact().is_err(), "the damage is not passed over in silence");
    for erasure in [&jane, &john] {
        let now = engine.erasure(erasure.namespace, erasure.id).unwrap().unwrap();
        assert_eq!((now.rows_removed, now.finished_ms), (10, None), "what can be read is done");
    }
    assert_eq!(engine.metrics().erasures_pending, 2);
    assert_eq!(segments(&disk), [damaged.as_str()], "nothing is left of the other one");
    let trouble = engine.trouble().unwrap();
    assert!(trouble.contains(&damaged), "{trouble}");

    // Later the file is restored, and everything ends.
    drop(engine);
    disk.set_file(&damaged, Some(whole));
    let engine = open(&disk, &clock).unwrap();
    engine.compact().unwrap();
    for erasure in [&jane, &john] {
        let now = engine.erasure(erasure.namespace, erasure.id).unwrap().unwrap();
        assert_eq!(now.rows_removed, 20);
        assert!(now.finished_ms.is_some());
    }
    assert_eq!((count(&engine, JANE).unwrap(), count(&engine, JOHN).unwrap()), (0, 0));
    assert_eq!(engine.trouble(), None);
}

#[test]
fn an_erasure_that_waits_longer_than_a_day_is_trouble() {
    let (disk, clock) = (SimVfs::new(), noon());
    let engine = open(&disk, &clock).unwrap();
    ingest(&engine, JANE, 1);
    erase(&engine, JANE).unwrap();
    clock.advance(DAY_MS - 1);
    assert_eq!(engine.trouble(), None);
    clock.advance(2);
    let trouble = engine.trouble().unwrap();
    assert!(trouble.contains("not done after a day"), "{trouble}");
    engine.compact().unwrap();
    assert_eq!(engine.trouble(), None);
}
