//! Power loss and failing disks at every step of random histories.
//!
//! A history is a seeded sequence of ingests (with duplicates), transactions, flushes and restarts.
//! It is run once for every step that it makes on the simulated disk, with a fault at that step.
//! Afterwards the disk is opened again and must show exactly the operations that were acknowledged,
//! possibly followed by the one that was under way: a prefix, never a part of an operation.
//!
//! `INLAY_CRASH_SEEDS` sets the number of histories; a failure prints seed and step.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use inlay_engine::*;

const TENANTS: [&str; 2] = ["acme", "globex"];
const EVENTS: [&str; 2] = ["call", "view"];

#[derive(Debug, Clone)]
struct Row {
    tenant: usize,
    event: usize,
    id: Option<u32>,
    user: u32,
    ms: f64,
}

#[derive(Debug, Clone)]
enum Operation {
    Ingest(Vec<Row>),
    Keys(Vec<(String, Option<String>)>),
    Flush,
    Restart,
}

/// What the engine must show.
#[derive(Debug, Clone, PartialEq, Default)]
struct Model {
    ids: BTreeSet<(usize, u32)>,
    counts: BTreeMap<(usize, usize), (u64, f64, BTreeSet<u32>)>,
    keys: BTreeMap<String, String>,
}

impl Model {
    fn apply(&mut self, operation: &Operation) {
        match operation {
            Operation::Ingest(rows) => {
                let mut new = 0u32;
                for row in rows {
                    if row.id.is_some_and(|id| !self.ids.insert((row.tenant, id))) {
                        continue;
                    }
                    new += 1;
                    let cell = self.counts.entry((row.tenant, row.event)).or_default();
                    cell.0 += 1;
                    cell.1 += row.ms;
                    cell.2.insert(row.user);
                }
                if new > 0 {
                    let used = self.keys.get("used").map_or(0, |used| used.parse::<u32>().unwrap());
                    self.keys.insert("used".to_owned(), (used + new).to_string());
                }
            }
            Operation::Keys(writes) => {
                for (key, value) in writes {
                    match value {
                        Some(value) => self.keys.insert(key.clone(), value.clone()),
                        None => self.keys.remove(key),
                    };
                }
            }
            Operation::Flush | Operation::Restart => {}
        }
    }

    fn observed(engine: &Engine) -> Self {
        let mut model = Self::default();
        for (tenant, tenant_name) in TENANTS.iter().enumerate() {
            for (event, event_name) in EVENTS.iter().enumerate() {
                let ask = |metric| {
                    let query = Query {
                        namespace: Namespace(1),
                        tenant: Some((*tenant_name).to_owned()),
                        event: (*event_name).to_owned(),
                        metric,
                        number: Some("ms".to_owned()),
                        from_ms: 0,
                        to_ms: i64::MAX / 2,
                        granularity: None,
                        group_by: Some("user".to_owned()),
                        texts: vec![],
                        numbers: vec![],
                        groups_max: 100,
                        groups: None,
                        starts: None,
                    };
                    engine.query(&query, &|| false).unwrap()
                };
                let (counts, sums) = (ask(Metric::Count), ask(Metric::Sum));
                for (group, value) in counts.groups.iter().zip(&counts.values) {
                    let cell = model.counts.entry((tenant, event)).or_default();
                    cell.0 += value[0].as_f64().unwrap() as u64;
                    cell.2.insert(group.as_deref().unwrap().parse().unwrap());
                }
                for value in &sums.values {
                    model.counts.get_mut(&(tenant, event)).unwrap().1 += value[0].as_f64().unwrap();
                }
            }
        }
        for (key, value) in engine.keys().scan(b"") {
            model.keys.insert(
                String::from_utf8(key).unwrap(),
                String::from_utf8(value.to_vec()).unwrap(),
            );
        }
        model
    }

    /// Equal but for the ids, which cannot be observed.
    fn shows(&self, other: &Self) -> bool {
        self.counts == other.counts && self.keys == other.keys
    }
}

fn history(rng: &SeededRng) -> Vec<Operation> {
    let mut next_id = 0;
    let operations = 6 + rng.below(8);
    let mut out = Vec::new();
    for _ in 0..operations {
        out.push(match rng.below(10) {
            0..5 => Operation::Ingest(
                (0..1 + rng.below(6))
                    .map(|_| {
                        let id = match rng.below(4) {
                            0 => None,
                            1 if next_id > 0 => Some(rng.below(next_id) as u32),
                            _ => {
                                next_id += 1;
                                Some(next_id as u32 - 1)
                            }
                        };
                        Row {
                            tenant: rng.below(2) as usize,
                            event: rng.below(2) as usize,
                            id,
                            user: rng.below(5) as u32,
                            ms: rng.below(1_000) as f64 / 4.0,
                        }
                    })
                    .collect(),
            ),
            5..7 => Operation::Keys(
                (0..1 + rng.below(3))
                    .map(|_| {
                        let value = (rng.below(4) > 0).then(|| rng.below(100).to_string());
                        (format!("k{}", rng.below(5)), value)
                    })
                    .collect(),
            ),
            7..9 => Operation::Flush,
            _ => Operation::Restart,
        });
    }
    out
}

fn open(disk: &SimVfs, seed: u64) -> Result<Engine> {
    let options = Options {
        clock: Arc::new(ManualClock::new(1_700_000_000_000)),
        rng: Arc::new(SeededRng::new(seed)),
        limits: Limits { log_file_bytes: 2_048, ..Limits::default() },
        background: false,
    };
    Engine::open(Arc::new(disk.clone()), options)
}

fn run_operation(engine: &Engine, operation: &Operation) -> Result<()> {
    match operation {
        Operation::Ingest(rows) => {
            let mut batch = engine.batch(Namespace(1));
            for (at, row) in rows.iter().enumerate() {
                let id = row.id.map(|id| format!("id-{id}"));
                let event = Event {
                    tenant: TENANTS[row.tenant],
                    name: EVENTS[row.event],
                    timestamp_ms: 1_699_000_000_000 + at as i64 * 7_000_000,
                    event_id: id.as_deref(),
                    user_id: Some("u"),
                };
                let user = row.user.to_string();
                batch.push(&event, &[("user", &user)], &[("ms", row.ms)])?;
            }
            engine.ingest(batch, |txn, ingested| {
                let used = txn
                    .find(b"used")
                    .map_or(0, |used| String::from_utf8_lossy(&used).parse::<u32>().unwrap());
                txn.put(b"used", (used + ingested.new).to_string().as_bytes());
                Ok::<_, Error>(())
            })?;
            Ok(())
        }
        Operation::Keys(writes) => engine.transact(|txn| {
            for (key, value) in writes {
                match value {
                    Some(value) => txn.put(key.as_bytes(), value.as_bytes()),
                    None => txn.delete(key.as_bytes()),
                }
            }
            Ok(())
        }),
        Operation::Flush => engine.flush(),
        Operation::Restart => Ok(()),
    }
}

/// Runs a history until an operation fails for good. Gives the state of what was acknowledged, and
/// that state with the operation under way, if one was.
fn play(
    disk: &SimVfs,
    operations: &[Operation],
    seed: u64,
    stop_at_error: bool,
) -> (Model, Option<Model>) {
    let mut model = Model::default();
    let Ok(mut engine) = open(disk, seed) else { return (model, None) };
    for (at, operation) in operations.iter().enumerate() {
        if matches!(operation, Operation::Restart) {
            drop(engine);
            match open(disk, seed + at as u64 + 1) {
                Ok(opened) => engine = opened,
                Err(_) => return (model, None),
            }
            continue;
        }
        match run_operation(&engine, operation) {
            Ok(()) => model.apply(operation),
            Err(Error::Limit { .. }) => {}
            Err(_)
                if !stop_at_error
                    && matches!(operation, Operation::Flush)
                    && engine.closed().is_none() => {}
            Err(_) => {
                let mut with = model.clone();
                with.apply(operation);
                return (model, Some(with));
            }
        }
    }
    (model, None)
}

fn check(disk: &SimVfs, seed: u64, acknowledged: &Model, under_way: Option<&Model>, what: &str) {
    let engine =
        open(disk, seed ^ 0xabcd).unwrap_or_else(|error| panic!("{what}: does not open: {error}"));
    let seen = Model::observed(&engine);
    let fits = seen.shows(acknowledged) || under_way.is_some_and(|with| seen.shows(with));
    assert!(
        fits,
        "{what}: recovered {seen:?}\nacknowledged {acknowledged:?}\nunder way {under_way:?}"
    );
    // What was counted once is known for ever.
    for &(tenant, id) in &acknowledged.ids {
        let row = Row { tenant, event: 0, id: Some(id), user: 0, ms: 1.0 };
        run_operation(&engine, &Operation::Ingest(vec![row])).unwrap();
    }
    assert!(
        Model::observed(&engine).shows(&seen),
        "{what}: a duplicate was counted after recovery"
    );
    engine.flush().unwrap();
    assert!(
        Model::observed(&engine).shows(&seen),
        "{what}: a flush after recovery changed the answers"
    );
    drop(engine);
    let again =
        open(disk, seed ^ 0xef01).unwrap_or_else(|error| panic!("{what}: second opening: {error}"));
    assert!(Model::observed(&again).shows(&seen), "{what}: a second recovery differs");
}

fn seeds(default: u64) -> u64 {
    std::env::var("INLAY_CRASH_SEEDS").ok().and_then(|text| text.parse().ok()).unwrap_or(default)
}

#[test]
fn power_loss_at_every_step_leaves_an_acknowledged_prefix() {
    for seed in 0..seeds(60) {
        let operations = history(&SeededRng::new(seed));
        let disk = SimVfs::new();
        let (whole, _) = play(&disk, &operations, seed, true);
        check(&disk.after_kill(), seed, &whole, None, &format!("seed {seed}, no fault"));
        for at in 0..disk.steps() {
            let disk = SimVfs::new();
            disk.set_plan(Some(FaultPlan { at, fault: Fault::PowerLoss, sticky: true }));
            let (model, under_way) = play(&disk, &operations, seed, true);
            let rng = SeededRng::new(seed * 1_000_003 + at);
            let what = format!("seed {seed}, power loss at step {at}");
            let after = disk.after_power_loss(&rng);
            // Power fails again while it recovers, at a random step.
            after.set_plan(Some(FaultPlan {
                at: rng.below(12),
                fault: Fault::PowerLoss,
                sticky: true,
            }));
            let _ = open(&after, seed);
            let after = after.after_power_loss(&rng);
            check(&after, seed, &model, under_way.as_ref(), &what);
        }
    }
}

#[test]
fn a_failing_step_is_never_acknowledged_and_never_loses_what_was() {
    for seed in 0..seeds(20) {
        let operations = history(&SeededRng::new(seed + 500));
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

#[test]
fn freed_space_heals_without_a_restart() {
    let disk = SimVfs::new();
    let engine = open(&disk, 1).unwrap();
    let row =
        |id| Operation::Ingest(vec![Row { tenant: 0, event: 0, id: Some(id), user: 1, ms: 1.0 }]);
    let mut model = Model::default();
    let mut refused = 0;
    for id in 0..200 {
        let full = (50..150).contains(&id);
        disk.set_plan(full.then_some(FaultPlan { at: 0, fault: Fault::Full, sticky: true }));
        match run_operation(&engine, &row(id)) {
            Ok(()) => model.apply(&row(id)),
            Err(Error::Limit { limit: Limit::Disk, .. }) => refused += 1,
            Err(other) => panic!("{other}"),
        }
        let _ = engine.flush();
    }
    assert!(refused >= 50, "{refused} writes were refused while the disk was full");
    assert!(Model::observed(&engine).shows(&model), "reads and later writes go on");
    drop(engine);
    check(&disk.after_kill(), 1, &model, None, "after healing");
}

/// A segment that was written but could not be named left its file behind, and the next try wrote
/// another: a disk that was nearly full was filled.
#[test]
fn a_flush_that_cannot_be_logged_leaves_nothing_behind() {
    let disk = SimVfs::new();
    let engine = open(&disk, 1).unwrap();
    let rows: Vec<Row> =
        (0..6).map(|id| Row { tenant: 0, event: 0, id: Some(id), user: 1, ms: 1.0 }).collect();
    let mut model = Model::default();
    let mut refused = 0;
    for round in 0..60 {
        // Log files are small: sooner or later one is full just when a flush wants to be logged.
        let padding = Operation::Keys(vec![("pad".to_owned(), Some("x".repeat(round * 97 % 700)))]);
        run_operation(&engine, &padding).unwrap();
        model.apply(&padding);
        disk.set_full_for(Some(".wal"));
        refused += u32::from(engine.flush().is_err());
        disk.set_full_for(None);
        run_operation(&engine, &Operation::Ingest(rows.clone())).unwrap();
        let more = Row { id: None, ..rows[0].clone() };
        let more = Operation::Ingest(vec![more; 7]);
        run_operation(&engine, &more).unwrap();
        model.apply(&Operation::Ingest(rows.clone()));
        model.apply(&more);
    }
    assert!(refused > 0, "a flush met the full disk");
    engine.flush().unwrap();
    assert!(Model::observed(&engine).shows(&model));
    let segments = disk.files().keys().filter(|path| path.ends_with(".seg")).count();
    assert_eq!(segments, engine.stats().segments, "every segment on the disk is a live one");
}

/// The harness must notice a lie: a disk whose syncs do nothing loses acknowledged events.
#[test]
fn a_disk_that_lies_about_syncing_is_noticed() {
    let mut losses = 0;
    for seed in 0..20 {
        let operations = history(&SeededRng::new(seed));
        let disk = SimVfs::new();
        let (model, _) = play(&disk, &operations, seed, true);
        let lied = disk.as_if_never_synced();
        if let Ok(engine) = open(&lied.after_power_loss(&SeededRng::new(seed)), 9) {
            losses += u32::from(!Model::observed(&engine).shows(&model));
        } else {
            losses += 1;
        }
    }
    assert!(losses > 10, "{losses} of 20 lies were noticed");
}
