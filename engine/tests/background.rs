//! What happens in the background: retention, deletion, repair of id runs, back-pressure.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::sync::{
    Arc,
    atomic::{AtomicBool, AtomicU64, Ordering},
};

use inlay_engine::*;

const DAY_MS: i64 = 86_400_000;
/// A midnight.
const TODAY_MS: i64 = 20_000 * DAY_MS;

struct World {
    disk: SimVfs,
    clock: Arc<ManualClock>,
    limits: Limits,
}

impl World {
    fn new() -> Self {
        let compaction = CompactionLimits { fan_in: 2, ..CompactionLimits::without_waiting() };
        Self {
            disk: SimVfs::new(),
            clock: Arc::new(ManualClock::new(TODAY_MS + DAY_MS / 2)),
            limits: Limits { compaction, log_file_bytes: 64 * 1024, ..Limits::default() },
        }
    }

    fn open(&self) -> Engine {
        let clock: Arc<dyn Clock> = Arc::<ManualClock>::clone(&self.clock);
        let rng = Arc::new(SeededRng::new(3));
        let options =
            Options { clock, rng, limits: self.limits, background: false, ..Options::default() };
        Engine::open(Arc::new(self.disk.clone()), options).unwrap()
    }
}

/// Ingests `count` events of a tenant `days_ago`; their ids count on from `first`.
fn ingest(
    engine: &Engine,
    namespace: u32,
    tenant: &str,
    days_ago: i64,
    first: usize,
    count: usize,
) -> u32 {
    let mut batch = engine.batch(Namespace(namespace));
    for n in first..first + count {
        let (id, user) = (format!("id-{n}"), format!("person-{}@example.org", n % 5));
        let event = Event {
            tenant,
            name: "call",
            timestamp_ms: TODAY_MS - days_ago * DAY_MS + n as i64 * 1_000,
            event_id: Some(&id),
            user_id: Some(&user),
        };
        batch.push(&event, &[("contact", &user), ("model", "m")], &[("ms", n as f64)]).unwrap();
    }
    engine.ingest(batch, |_, _| Ok::<_, Error>(())).unwrap().new
}

fn ask(engine: &Engine, namespace: u32, tenant: Option<&str>, metric: Metric) -> f64 {
    let query = Query {
        tenant: tenant.map(str::to_owned),
        metric,
        number: Some("ms".into()),
        groups_max: 10,
        ..Query::count(Namespace(namespace), "call", TODAY_MS - 500 * DAY_MS..TODAY_MS + DAY_MS)
    };
    engine.query(&query, &|| false).unwrap().values[0][0].as_f64().unwrap_or(0.0)
}

fn erase(engine: &Engine, whose: &Whose<'_>) -> Erasure {
    engine.transact(|txn| Ok::<_, Error>(engine.erase(txn, Namespace(1), whose))).unwrap()
}

fn count(engine: &Engine, namespace: u32, tenant: &str) -> u64 {
    ask(engine, namespace, Some(tenant), Metric::Count) as u64
}

fn holds(disk: &SimVfs, text: &str) -> Vec<String> {
    let holds = |bytes: &Vec<u8>| bytes.windows(text.len()).any(|part| part == text.as_bytes());
    disk.files().into_iter().filter(|(_, bytes)| holds(bytes)).map(|(path, _)| path).collect()
}

#[test]
fn retention_hides_whole_days_at_midnight_and_drops_their_files() {
    let mut world = World::new();
    world.limits.retention_days = Some(400);
    let engine = world.open();
    engine.set_retention(Namespace(1), Some(3)).unwrap();
    for days_ago in 0..6 {
        ingest(&engine, 1, "a", days_ago, days_ago as usize * 100, 10);
        ingest(&engine, 2, "a", days_ago, days_ago as usize * 100, 10);
    }
    // Today and the three days before; nothing was flushed, let alone dropped.
    assert_eq!(count(&engine, 1, "a"), 40);
    assert_eq!(count(&engine, 2, "a"), 60);
    engine.flush().unwrap();
    assert_eq!(count(&engine, 1, "a"), 40);
    engine.compact().unwrap();
    assert_eq!((count(&engine, 1, "a"), count(&engine, 2, "a")), (40, 60));
    assert_eq!(engine.stats().segment_rows, 100, "expired rows are gone from the files");

    world.clock.advance(2 * DAY_MS);
    assert_eq!(count(&engine, 1, "a"), 20, "before any compaction");
    engine.compact().unwrap();
    assert_eq!(engine.stats().segment_rows, 80);
    engine.set_retention(Namespace(1), None).unwrap();
    assert_eq!(count(&engine, 1, "a"), 20, "what expired does not come back");

    world.clock.advance(410 * DAY_MS);
    engine.compact().unwrap();
    assert_eq!((count(&engine, 1, "a"), count(&engine, 2, "a")), (20, 0));
    assert_eq!(engine.stats().segment_rows, 20);
    drop(engine);
    let days: Vec<String> =
        world.disk.files().into_keys().filter(|path| path.starts_with("seg/")).collect();
    assert_eq!(days.len(), 1, "both days lie in one segment: {days:?}");
    assert_eq!(count(&world.open(), 1, "a"), 20);
}

#[test]
fn a_whole_generation_of_ids_expires_with_its_events() {
    let mut world = World::new();
    world.limits.retention_days = Some(30);
    let engine = world.open();
    ingest(&engine, 1, "a", 0, 0, 50);
    engine.flush().unwrap();
    world.clock.advance(20 * DAY_MS);
    engine.compact().unwrap();
    assert_eq!(ingest(&engine, 1, "a", 0, 0, 50), 0, "known while they are kept");
    world.clock.advance(25 * DAY_MS);
    engine.compact().unwrap();
    assert!(!world.disk.files().keys().any(|path| path.starts_with("ids/")));
}

#[test]
fn a_dropped_namespace_is_empty_at_once_and_gone_soon() {
    let world = World::new();
    let engine = world.open();
    ingest(&engine, 1, "a", 1, 0, 40);
    ingest(&engine, 2, "a", 1, 0, 40);
    engine.flush().unwrap();
    engine.compact().unwrap();
    ingest(&engine, 1, "a", 0, 100, 20);
    let before = engine.keys();
    let erasure = erase(&engine, &Whose::Namespace);
    assert_eq!(count(&engine, 1, "a"), 0, "at once");
    assert_eq!(count(&engine, 2, "a"), 40);
    let mut batch = engine.batch(Namespace(1));
    let event =
        Event { tenant: "a", name: "call", timestamp_ms: TODAY_MS, event_id: None, user_id: None };
    batch.push(&event, &[], &[]).unwrap();
    let refused = engine.ingest(batch, |_, _| Ok::<_, Error>(()));
    assert!(matches!(refused, Err(Error::Invalid { field: "namespace", .. })), "{refused:?}");
    drop(before);
    engine.compact().unwrap();
    let receipt = engine.erasure(erasure.namespace, erasure.id).unwrap().unwrap();
    assert_eq!((receipt.rows_removed, receipt.ids_removed), (60, 60));
    assert!(receipt.finished_ms.is_some());
    assert_eq!(engine.stats().segment_rows, 40);
    drop(engine);
    let engine = world.open();
    assert_eq!((count(&engine, 1, "a"), count(&engine, 2, "a")), (0, 40));
}

#[test]
fn after_an_erasure_no_file_holds_the_user_id() {
    let world = World::new();
    let engine = world.open();
    for days_ago in 0..4 {
        ingest(&engine, 1, "acme", days_ago, days_ago as usize * 50, 50);
        ingest(&engine, 1, "other", days_ago, days_ago as usize * 50, 50);
        if days_ago % 2 == 0 {
            engine.flush().unwrap();
            engine.compact().unwrap();
        }
    }
    // Another tenant's user of the same name is somebody else: his events stay. So look for one that
    // only this tenant has.
    let mut batch = engine.batch(Namespace(1));
    for n in 0..30 {
        let id = format!("secret-{n}");
        let event = Event {
            tenant: "acme",
            name: "call",
            timestamp_ms: TODAY_MS - n * DAY_MS / 10,
            event_id: Some(&id),
            user_id: Some("jane.doe@example.org"),
        };
        let strings = [("contact", "jane.doe@example.org"), ("model", "m")];
        batch.push(&event, &strings, &[("ms", 1.0)]).unwrap();
    }
    engine.ingest(batch, |_, _| Ok::<_, Error>(())).unwrap();
    engine.flush().unwrap();
    engine.compact().unwrap();
    let users = ask(&engine, 1, Some("acme"), Metric::Distinct) as u64;
    let found = holds(&world.disk, "jane.doe@example.org");
    assert!(!found.is_empty(), "the test would see it: the log holds it in clear");

    let erasure = erase(&engine, &Whose::User { tenant: "acme", user: "jane.doe@example.org" });
    engine.compact().unwrap();
    let receipt = engine.erasure(erasure.namespace, erasure.id).unwrap().unwrap();
    assert_eq!((receipt.rows_removed, receipt.ids_removed), (30, 30));
    assert_eq!(count(&engine, 1, "acme"), 200);
    assert_eq!(count(&engine, 1, "other"), 200);
    assert_eq!(ask(&engine, 1, Some("acme"), Metric::Distinct) as u64, users - 1);
    assert_eq!(holds(&world.disk, "jane.doe@example.org"), Vec::<String>::new());
    // Dictionaries are compressed: each lists the five others, users for each tenant, and nobody more.
    let inspection = Inspection::open(world.disk.clone()).unwrap();
    for segment in inspection.segments().unwrap() {
        for section in inspection.sections(segment.uuid).unwrap() {
            let is_named = section.kind == "users" || section.column == "contact";
            if is_named && section.kind != "text codes" {
                let most = if section.kind == "users" { 10 } else { 5 };
                assert!(section.values <= most, "{} {}", section.kind, section.values);
            }
        }
    }
    // And no row can be grouped by it.
    let group = Query { group_by: Some("contact".into()), ..everything() };
    let answer = engine.query(&group, &|| false).unwrap();
    assert!(answer.groups.iter().flatten().all(|group| !group.contains("jane")));
    // Erased ids are not known any more.
    let mut batch = engine.batch(Namespace(1));
    let event = Event {
        tenant: "acme",
        name: "call",
        timestamp_ms: TODAY_MS,
        event_id: Some("secret-3"),
        user_id: None,
    };
    batch.push(&event, &[], &[]).unwrap();
    assert_eq!(engine.ingest(batch, |_, _| Ok::<_, Error>(())).unwrap().new, 1);
    drop(engine);
    assert_eq!(holds(&world.disk, "jane.doe@example.org"), Vec::<String>::new());
    assert_eq!(count(&world.open(), 1, "acme"), 201);
}

fn everything() -> Query {
    Query {
        groups_max: 1_000,
        ..Query::count(Namespace(1), "call", TODAY_MS - 500 * DAY_MS..TODAY_MS + DAY_MS)
    }
}

/// The list is the truth of the filter, and the segments are the truth of the list.
#[test]
fn a_lost_or_damaged_id_run_is_written_anew() {
    for damage in ["missing", "frame", "block"] {
        let world = World::new();
        let engine = world.open();
        ingest(&engine, 1, "a", 1, 0, 300);
        engine.flush().unwrap();
        engine.compact().unwrap();
        engine.close().unwrap();
        drop(engine);
        let files = world.disk.files();
        let (path, bytes) = files.into_iter().find(|(path, _)| path.starts_with("ids/")).unwrap();
        let mut bytes = bytes;
        let len = bytes.len();
        match damage {
            "missing" => world.disk.set_file(&path, None),
            "frame" => {
                bytes[len - 5] ^= 1;
                world.disk.set_file(&path, Some(bytes));
            }
            _ => {
                bytes[77] ^= 1;
                world.disk.set_file(&path, Some(bytes));
            }
        }
        let engine = world.open();
        if damage == "block" {
            // Noticed when it has to answer: the write is refused, and the run is written anew.
            let mut batch = engine.batch(Namespace(1));
            let event = Event {
                tenant: "a",
                name: "call",
                timestamp_ms: TODAY_MS,
                event_id: Some("id-7"),
                user_id: None,
            };
            batch.push(&event, &[], &[]).unwrap();
            let refused = engine.ingest(batch, |_, _| Ok::<_, Error>(()));
            assert!(matches!(refused, Err(Error::Corrupt { .. })), "{refused:?}");
            engine.compact().unwrap();
        }
        assert_eq!(ingest(&engine, 1, "a", 1, 0, 310), 10, "{damage}: 300 were known");
        assert_eq!(count(&engine, 1, "a"), 310, "{damage}");
    }
}

#[test]
fn writes_are_refused_while_too_many_fresh_segments_wait() {
    let mut world = World::new();
    world.limits.compaction.fresh_max = 5;
    let engine = world.open();
    for n in 0..5 {
        ingest(&engine, 1, "a", 0, n * 10, 10);
        engine.flush().unwrap();
    }
    let mut batch = engine.batch(Namespace(1));
    let event =
        Event { tenant: "a", name: "call", timestamp_ms: TODAY_MS, event_id: None, user_id: None };
    batch.push(&event, &[], &[]).unwrap();
    let refused = engine.ingest(batch, |_, _| Ok::<_, Error>(()));
    assert!(matches!(refused, Err(Error::Limit { limit: Limit::Backlog, .. })), "{refused:?}");
    engine.compact().unwrap();
    assert_eq!(ingest(&engine, 1, "a", 0, 100, 10), 10);
}

/// The union of all namespaces is everything, and none shows another's rows, also when they share
/// segments.
#[test]
fn namespaces_that_share_segments_stay_apart() {
    let world = World::new();
    let engine = world.open();
    for namespace in 1..=20 {
        ingest(&engine, namespace, "a", i64::from(namespace % 3), 0, namespace as usize);
        if namespace % 4 == 0 {
            engine.flush().unwrap();
        }
    }
    for _ in 0..2 {
        for namespace in 1..=20 {
            assert_eq!(ask(&engine, namespace, None, Metric::Count) as u32, namespace);
        }
        assert_eq!(ask(&engine, 21, None, Metric::Count) as u32, 0);
        engine.compact().unwrap();
    }
}

#[test]
fn clocks_that_jump_neither_stop_the_background_nor_lose_events() {
    let world = World::new();
    let engine = world.open();
    let jumps = [
        3_600_000,
        -3_600_000,
        400 * DAY_MS,
        -800 * DAY_MS,
        -TODAY_MS + 300 * DAY_MS,
        68 * 365 * DAY_MS,
        -DAY_MS,
    ];
    let mut total = 0;
    for (n, jump) in jumps.into_iter().enumerate() {
        total += u64::from(ingest(&engine, 1, "a", 2, n * 100, 30));
        engine.flush().unwrap();
        world.clock.advance(jump);
        engine.compact().unwrap();
        assert_eq!(ingest(&engine, 1, "a", 2, n * 100, 30), 0, "known after jump {n}");
        assert_eq!(count(&engine, 1, "a"), total, "after jump {n}");
    }
    drop(engine);
    assert_eq!(count(&world.open(), 1, "a"), total);
}

/// Compaction gives way to a query that runs: it pauses at its next block.
#[test]
fn compaction_yields_while_a_query_runs() {
    let world = World::new();
    let engine = world.open();
    for n in 0..4 {
        ingest(&engine, 1, "a", 1, n * 100, 100);
        engine.flush().unwrap();
    }
    let merge_during = |is_asked: bool| {
        let before = engine.metrics().compaction_yields;
        let compacted = AtomicU64::new(0);
        let compact = || {
            compacted.fetch_add(engine.compact().unwrap(), Ordering::Relaxed);
            false
        };
        if is_asked {
            engine.query(&everything(), &compact).unwrap();
        } else {
            compact();
        }
        assert!(compacted.into_inner() > 0, "there was something to merge");
        engine.metrics().compaction_yields - before
    };
    assert!(merge_during(true) > 0);
    ingest(&engine, 1, "a", 1, 1_000, 100);
    engine.flush().unwrap();
    ingest(&engine, 1, "a", 1, 2_000, 100);
    engine.flush().unwrap();
    assert_eq!(merge_during(false), 0, "nobody to give way to");
}

/// A wall clock that a test sets, and real time that only passes.
#[derive(Default)]
struct TwoClocks {
    wall: ManualClock,
    real: ManualClock,
}

impl Clock for TwoClocks {
    fn now_ms(&self) -> i64 {
        self.wall.now_ms()
    }

    fn elapsed_us(&self) -> u64 {
        self.real.now_ms().unsigned_abs() * 1_000
    }
}

/// A clock that jumps ahead hides days while it is wrong and takes none of them away; ids do not
/// expire before the events that they belong to, whatever the clock showed when they came.
#[test]
fn a_clock_that_jumps_drops_nothing_until_it_has_stood_by_it() {
    let clocks = Arc::new(TwoClocks::default());
    clocks.wall.advance(TODAY_MS + DAY_MS / 2);
    let disk = SimVfs::new();
    let waits = CompactionLimits::default().expiry_wait_ms;
    let compaction = CompactionLimits {
        fan_in: 2,
        expiry_wait_ms: waits,
        ..CompactionLimits::without_waiting()
    };
    let limits = Limits { compaction, retention_days: Some(30), ..Limits::default() };
    let clock: Arc<dyn Clock> = Arc::<TwoClocks>::clone(&clocks);
    let rng = Arc::new(SeededRng::new(3));
    let options = Options { clock, rng, limits, background: false, ..Options::default() };
    let engine = Engine::open(Arc::new(disk.clone()), options).unwrap();
    // Real time passes, a minute at a time, as the background sees it.
    let pass = |hours: i64| {
        for _ in 0..hours * 60 {
            clocks.wall.advance(60_000);
            clocks.real.advance(60_000);
            engine.compact().unwrap();
        }
    };
    for days_ago in 0..6 {
        ingest(&engine, 1, "a", days_ago, days_ago as usize * 10, 10);
    }
    engine.flush().unwrap();
    pass(3);
    for (jump, first) in [(400 * DAY_MS, 1_000), (-400 * DAY_MS, 2_000), (80 * 365 * DAY_MS, 3_000)]
    {
        clocks.wall.advance(jump);
        // Sent with the right time all the same, and known again when the clock is right.
        ingest(&engine, 1, "a", 0, first, 5);
        engine.flush().unwrap();
        for _ in 0..50 {
            clocks.wall.advance(60_000);
            clocks.real.advance(60_000);
            engine.compact().unwrap();
        }
        if jump > 0 {
            assert_eq!(count(&engine, 1, "a"), 0, "hidden while the clock says so");
        }
        clocks.wall.advance(-jump);
        pass(5);
        assert_eq!(ingest(&engine, 1, "a", 0, first, 5), 0, "known after a jump by {jump}");
    }
    assert_eq!(count(&engine, 1, "a"), 75);
    // A clock that stays there is right.
    clocks.wall.advance(60 * DAY_MS);
    pass(3);
    assert_eq!(engine.stats().segment_rows, 0, "two hours are enough");
}

/// A clock with a bug: threads of the background panic when they ask it.
struct FaultyClock(AtomicBool);

impl Clock for FaultyClock {
    fn now_ms(&self) -> i64 {
        let name = std::thread::current().name().unwrap_or_default().to_owned();
        assert!(!self.0.load(Ordering::Relaxed) || !name.starts_with("inlay"), "a bug in {name}");
        1_700_000_000_000
    }
}

#[test]
fn a_background_thread_that_panics_says_so_and_goes_on() {
    let clock = Arc::new(FaultyClock(AtomicBool::new(true)));
    let options = Options { clock: clock.clone(), background: true, ..Options::default() };
    let engine = Engine::open(Arc::new(SimVfs::new()), options).unwrap();
    let until = |done: &dyn Fn(&Option<String>) -> bool| {
        let since = std::time::Instant::now();
        while !done(&engine.trouble()) {
            assert!(since.elapsed().as_secs() < 60, "{:?}", engine.trouble());
            std::thread::sleep(std::time::Duration::from_millis(20));
        }
    };
    until(&|trouble| trouble.as_ref().is_some_and(|trouble| trouble.contains("panicked")));
    clock.0.store(false, Ordering::Relaxed);
    until(&|trouble| trouble.is_none());
}
