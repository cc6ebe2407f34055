//! Failures that no random history meets by itself: damaged and cut files, full disks, absurd input,
//! hungry queries, readers that hold what is being deleted. `README.md` has the table.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod queries;

use std::{
    any::Any,
    io,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    thread,
    time::Duration,
};

use inlay_engine::*;

const DAY_MS: i64 = 86_400_000;
const TODAY_MS: i64 = 20_000 * DAY_MS;

fn eager() -> CompactionLimits {
    CompactionLimits { fan_in: 2, ..CompactionLimits::without_waiting() }
}

fn options(limits: Limits) -> Options {
    Options {
        clock: Arc::new(ManualClock::new(TODAY_MS + DAY_MS / 2)),
        rng: Arc::new(SeededRng::new(6)),
        limits,
        background: false,
        ..Options::default()
    }
}

fn try_open(disk: &SimVfs) -> Result<Engine> {
    let limits = Limits { compaction: eager(), log_file_bytes: 8_192, ..Limits::default() };
    Engine::open(Arc::new(disk.clone()), options(limits))
}

fn open(disk: &SimVfs) -> Engine {
    try_open(disk).unwrap()
}

/// `count` events of a day; each with a user and a model of its own from `n` on.
/// An event of the tenant that is asked about, with nothing else known.
fn call_today() -> Event<'static> {
    Event { tenant: "t", name: "call", timestamp_ms: TODAY_MS, event_id: None, user_id: None }
}

fn try_ingest(engine: &Engine, days_ago: i64, first: u32, count: u32) -> Result<u32> {
    let mut batch = engine.batch(Namespace(1));
    for n in first..first + count {
        let (id, text) = (format!("id-{n}"), format!("value-{n}"));
        let event = Event {
            timestamp_ms: TODAY_MS - days_ago * DAY_MS + i64::from(n % 80_000) * 1_000,
            event_id: Some(&id),
            user_id: Some(&text),
            ..call_today()
        };
        batch.push(&event, &[("model", &text)], &[("ms", f64::from(n))])?;
    }
    Ok(engine.ingest(batch, |_, _| Ok::<_, Error>(()))?.new)
}

fn ingest(engine: &Engine, days_ago: i64, first: u32, count: u32) {
    assert_eq!(try_ingest(engine, days_ago, first, count).unwrap(), count);
}

fn question(metric: Metric) -> Query {
    Query {
        tenant: Some("t".into()),
        metric,
        number: Some("ms".into()),
        ..Query::count(Namespace(1), "call", TODAY_MS - 90 * DAY_MS..TODAY_MS + DAY_MS)
    }
}

fn ask(engine: &Engine, query: &Query) -> Result<f64> {
    Ok(engine.query(query, &|| false)?.values[0][0].as_f64().unwrap_or(f64::NAN))
}

fn count(engine: &Engine) -> u64 {
    ask(engine, &question(Metric::Count)).unwrap() as u64
}

/// The only file below a directory that ends so.
fn find(disk: &SimVfs, prefix: &str, suffix: &str) -> Vec<String> {
    let named = |path: &String| path.starts_with(prefix) && path.ends_with(suffix);
    disk.files().into_keys().filter(named).collect()
}

fn flip(disk: &SimVfs, path: &str, at: usize) {
    let mut bytes = disk.files()[path].clone();
    bytes[at] ^= 0x20;
    disk.set_file(path, Some(bytes));
}

#[test]
fn a_damaged_checkpoint_leaves_the_older_one_and_a_longer_log() {
    let disk = SimVfs::new();
    let engine = open(&disk);
    for round in 0..4 {
        ingest(&engine, 0, round * 50, 50);
        engine
            .transact(|txn| {
                txn.put(format!("key-{round}").as_bytes(), b"value");
                Ok::<_, Error>(())
            })
            .unwrap();
        engine.flush().unwrap();
    }
    drop(engine);
    let checkpoints = find(&disk, "ckpt/", ".kv");
    assert_eq!(checkpoints.len(), 2);
    let both = disk.after_kill();
    flip(&disk, &checkpoints[1], 40);
    let engine = open(&disk);
    assert_eq!(count(&engine), 200);
    assert_eq!(engine.keys().scan(b"key-").len(), 4);
    assert_eq!(try_ingest(&engine, 0, 0, 200).unwrap(), 0, "all ids are known");
    drop(engine);
    for path in &checkpoints {
        flip(&both, path, 40);
    }
    let refused = try_open(&both).err().unwrap();
    assert!(
        matches!(&refused, Error::Corrupt { place, .. } if place.starts_with("ckpt/")),
        "{refused}"
    );
}

#[test]
fn a_cut_segment_is_refused_by_name() {
    let disk = SimVfs::new();
    let engine = open(&disk);
    ingest(&engine, 0, 0, 100);
    engine.flush().unwrap();
    drop(engine);
    let path = find(&disk, "seg/", ".seg").remove(0);
    let bytes = disk.files()[&path].clone();
    for len in [0, 1, 63, 64, bytes.len() / 2, bytes.len() - 1] {
        disk.set_file(&path, Some(bytes[..len].to_vec()));
        let refused = try_open(&disk).err().unwrap();
        assert!(matches!(&refused, Error::Corrupt { place, .. } if *place == path), "{refused}");
    }
}

#[test]
fn a_damaged_block_fails_only_what_needs_it_and_merges_go_round_it() {
    let disk = SimVfs::new();
    let engine = open(&disk);
    for days_ago in 1..4 {
        ingest(&engine, days_ago, days_ago as u32 * 1_000, 300);
    }
    engine.flush().unwrap();
    engine.compact().unwrap();
    drop(engine);
    let path = find(&disk, "seg/2024-10-03", ".seg").remove(0);
    // Into the users, who are needed by a question about them and by a merge.
    let inspection = Inspection::open(disk.clone()).unwrap();
    let segments = inspection.segments().unwrap();
    let uuid = segments.iter().map(|one| one.uuid).find(|uuid| path.contains(&uuid.to_string()));
    let sections = inspection.sections(uuid.unwrap()).unwrap();
    let users = sections.iter().find(|section| section.kind == "users").unwrap();
    flip(&disk, &path, users.blocks[0].offset as usize + 20);
    let engine = open(&disk);
    let over = |from: i64, to: i64| Query {
        from_ms: TODAY_MS - from * DAY_MS,
        to_ms: TODAY_MS - to * DAY_MS,
        ..question(Metric::Distinct)
    };
    let all: Vec<Result<f64>> = [Metric::Distinct, Metric::Sum, Metric::Percentile(95)]
        .into_iter()
        .map(|metric| ask(&engine, &question(metric)))
        .collect();
    let refused = matches!(&all[0], Err(Error::Corrupt { place, .. }) if *place == path);
    assert!(refused && all[1].is_ok() && all[2].is_ok(), "{all:?}");
    // The windows of the other two days are not touched by it.
    assert_eq!(ask(&engine, &over(2, 1)).unwrap(), 300.0);
    assert_eq!(ask(&engine, &over(3, 2)).unwrap(), 300.0);
    // A late event wants to merge with it: that fails once, is said, and stops nothing else.
    ingest(&engine, 1, 50_000, 40);
    ingest(&engine, 0, 60_000, 10);
    engine.flush().unwrap();
    let first = engine.compact();
    assert!(matches!(&first, Err(Error::Corrupt { place, .. }) if *place == path), "{first:?}");
    assert!(engine.trouble().unwrap().contains(&path));
    engine.compact().unwrap();
    ingest(&engine, 0, 70_000, 10);
    engine.flush().unwrap();
    engine.compact().unwrap();
    assert_eq!(count(&engine), 960, "counts need no damaged column");
}

/// After a sync that failed nobody knows what is on the disk: nothing is taken until a start has looked.
#[test]
fn a_failed_sync_of_the_log_closes_the_store_for_writes() {
    let disk = SimVfs::new();
    let engine = open(&disk);
    ingest(&engine, 0, 0, 100);
    // The write of the next group works, and its sync does not.
    let plan = FaultPlan { at: disk.steps() + 1, fault: Fault::Error, sticky: false };
    disk.set_plan(Some(plan));
    assert!(try_ingest(&engine, 0, 100, 10).is_err());
    assert!(disk.steps() > plan.at, "the sync was reached");
    assert!(engine.closed().is_some() && engine.trouble().is_some());
    for round in 0..3 {
        let refused = try_ingest(&engine, 0, 200 + round * 10, 10);
        assert!(matches!(refused, Err(Error::Closed(_))), "{refused:?}");
    }
    let refused = engine.transact(|txn| {
        txn.put(b"k", b"v");
        Ok::<_, Error>(())
    });
    assert!(matches!(refused, Err(Error::Closed(_))), "{refused:?}");
    assert!(engine.flush().is_err(), "nor is anything set aside");
    assert_eq!(count(&engine), 100, "what was acknowledged is shown");
    drop(engine);
    let engine = open(&disk);
    assert!([100, 110].contains(&count(&engine)));
    assert_eq!(engine.closed(), None);
    ingest(&engine, 0, 300, 10);
}

#[test]
fn a_full_disk_does_not_keep_a_store_from_starting_and_reading() {
    let disk = SimVfs::new();
    let engine = open(&disk);
    ingest(&engine, 0, 0, 100);
    engine.flush().unwrap();
    ingest(&engine, 0, 100, 50);
    drop(engine);
    disk.set_plan(Some(FaultPlan { at: 0, fault: Fault::Full, sticky: true }));
    let engine = open(&disk);
    assert_eq!(count(&engine), 150);
    let refused = try_ingest(&engine, 0, 200, 10);
    assert!(matches!(refused, Err(Error::Limit { limit: Limit::Disk, .. })), "{refused:?}");
    disk.set_plan(None);
    ingest(&engine, 0, 200, 10);
    assert_eq!(count(&engine), 160);
}

#[test]
fn a_merge_without_room_is_not_begun_and_is_said() {
    let disk = SimVfs::new();
    let engine = open(&disk);
    for round in 0..3 {
        ingest(&engine, 1, round * 100, 100);
        engine.flush().unwrap();
    }
    disk.set_free_bytes(1_000);
    let steps = disk.steps();
    let refused = engine.compact();
    assert!(matches!(&refused, Err(Error::Limit { limit: Limit::Disk, .. })), "{refused:?}");
    assert_eq!(disk.steps(), steps, "nothing was written");
    assert!(engine.trouble().unwrap().contains("free"));
    ingest(&engine, 1, 900, 10);
    disk.set_free_bytes(1 << 40);
    engine.compact().unwrap();
    assert_eq!(engine.trouble(), None);
    assert_eq!(count(&engine), 310);
}

#[test]
fn absurd_times_and_numbers_are_refused_and_extreme_ones_kept() {
    let disk = SimVfs::new();
    let engine = open(&disk);
    let push = |at: i64, number: f64| {
        let mut batch = engine.batch(Namespace(1));
        let event =
            Event { tenant: "t", name: "call", timestamp_ms: at, event_id: None, user_id: None };
        batch.push(&event, &[], &[("ms", number)])?;
        engine.ingest(batch, |_, _| Ok::<_, Error>(()))
    };
    let field = |result: Result<Ingested>| match result {
        Err(Error::Invalid { field, .. }) => field,
        other => panic!("{other:?}"),
    };
    for at in [i64::MIN, TIMESTAMP_MS_MIN - 1, TIMESTAMP_MS_MAX + 1, i64::MAX] {
        assert_eq!(field(push(at, 1.0)), "timestamp");
    }
    for number in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
        assert_eq!(field(push(0, number)), "numeric_props");
    }
    let kept = [TIMESTAMP_MS_MIN, -1, 0, 1, TIMESTAMP_MS_MAX];
    for at in kept {
        push(at, -0.0).unwrap();
    }
    let all = |engine: &Engine| {
        let query = Query {
            from_ms: TIMESTAMP_MS_MIN,
            to_ms: TIMESTAMP_MS_MAX + 1,
            ..question(Metric::Count)
        };
        ask(engine, &query).unwrap() as usize
    };
    assert_eq!(all(&engine), kept.len());
    engine.flush().unwrap();
    engine.compact().unwrap();
    assert_eq!(all(&engine), kept.len());
    drop(engine);
    assert_eq!(all(&open(&disk)), kept.len());
}

/// A query keeps the version it began with, also when all of its files are deleted meanwhile.
#[test]
fn a_reader_keeps_segments_that_are_merged_and_erased_under_it() {
    let root = tempfile::tempdir().unwrap();
    let limits = Limits { compaction: eager(), ..Limits::default() };
    let engine = Engine::open_directory(root.path(), options(limits)).unwrap();
    for days_ago in 0..6 {
        ingest(&engine, days_ago, days_ago as u32 * 10_000, 9_000);
        engine.flush().unwrap();
    }
    let calls = AtomicU64::new(0);
    let busy = || {
        // In the middle of the query everything is merged, then erased, and the files are deleted.
        if calls.fetch_add(1, Ordering::Relaxed) == 1 {
            engine.compact().unwrap();
            engine
                .transact(|txn| {
                    engine.erase(txn, Namespace(1), &Whose::Tenant("t"));
                    Ok::<_, Error>(())
                })
                .unwrap();
            engine.compact().unwrap();
            assert_eq!(engine.stats().segments, 0);
        }
        false
    };
    let answer = engine.query(&question(Metric::Distinct), &busy).unwrap();
    assert!(calls.into_inner() > 3);
    assert_eq!(answer.values[0][0].as_f64(), Some(54_000.0));
    assert_eq!(count(&engine), 0);
}

/// One version at every instant: rows are never seen twice or not at all while they move.
#[test]
fn counts_are_right_at_every_instant_of_flushes_and_merges() {
    let disk = SimVfs::new();
    let engine = Arc::new(open(&disk));
    let acknowledged = AtomicU64::new(0);
    let sending = AtomicU64::new(0);
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                while !is_over.load(Ordering::Acquire) {
                    let before = acknowledged.load(Ordering::Acquire);
                    let seen = count(&engine);
                    let after = sending.load(Ordering::Acquire);
                    assert!((before..=after).contains(&seen), "{before} <= {seen} <= {after}");
                }
            });
        }
        for round in 0..120u32 {
            sending.fetch_add(50, Ordering::Release);
            ingest(&engine, i64::from(round % 4), round * 50, 50);
            acknowledged.fetch_add(50, Ordering::Release);
            if round % 3 == 0 {
                engine.flush().unwrap();
            }
            if round % 5 == 0 {
                engine.compact().unwrap();
            }
        }
        is_over.store(true, Ordering::Release);
    });
    assert_eq!(count(&engine), 6_000);
}

/// Between a checkpoint and the flush of the rows in memory, the log is their only home.
#[test]
fn a_checkpoint_without_a_flush_keeps_the_log_of_the_rows_in_memory() {
    let disk = SimVfs::new();
    let engine = open(&disk);
    ingest(&engine, 0, 0, 30);
    engine.flush().unwrap();
    ingest(&engine, 0, 100, 25);
    let mut checkpoints = 0;
    for n in 0..62_000u32 {
        engine
            .transact(|txn| {
                txn.put(b"n", &n.to_le_bytes());
                Ok::<_, Error>(())
            })
            .unwrap();
        if n % 500 == 0 {
            checkpoints += u32::from(engine.maintain().unwrap());
        }
    }
    assert!(checkpoints >= 3, "{checkpoints} checkpoints");
    assert_eq!(engine.stats().memtable_rows, 25);
    let logs = find(&disk, "wal/", ".wal").len();
    assert!(logs > 100, "{logs} log files: none that the rows need is deleted");
    drop(engine);
    let after = disk.after_power_loss(&SeededRng::new(1));
    let engine = open(&after);
    assert_eq!(count(&engine), 55);
    assert_eq!(engine.keys().find(b"n").as_deref(), Some(&61_999u32.to_le_bytes()[..]));
    engine.flush().unwrap();
    engine
        .transact(|txn| {
            txn.put(b"n", b"");
            Ok::<_, Error>(())
        })
        .unwrap();
    ingest(&engine, 0, 200, 1);
    engine.flush().unwrap();
    assert!(find(&after, "wal/", ".wal").len() < 10, "now they go");
}

#[test]
fn rows_are_flushed_when_they_are_many_large_wide_or_old() {
    let clock = Arc::new(ManualClock::new(TODAY_MS));
    let limits = Limits {
        flush_rows: 1_000,
        flush_bytes: 1 << 20,
        flush_columns: 50,
        flush_age_ms: 60_000,
        ..Limits::default()
    };
    let own: Arc<dyn Clock> = Arc::<ManualClock>::clone(&clock);
    let engine =
        Engine::open(Arc::new(SimVfs::new()), Options { clock: own, ..options(limits) }).unwrap();
    let wide = |names: usize, value: &str| {
        let mut batch = engine.batch(Namespace(1));
        let names: Vec<String> = (0..names).map(|n| format!("p{n}")).collect();
        let strings: Vec<(&str, &str)> = names.iter().map(|name| (name.as_str(), value)).collect();
        batch.push(&call_today(), &strings, &[]).unwrap();
        engine.ingest(batch, |_, _| Ok::<_, Error>(())).unwrap();
    };
    assert!(!engine.maintain().unwrap(), "nothing to do");
    ingest(&engine, 0, 0, 999);
    assert!(!engine.maintain().unwrap());
    ingest(&engine, 0, 999, 1);
    assert!(engine.maintain().unwrap(), "many");
    // Values of four KiB each, all different.
    (0..300).for_each(|n| wide(1, &format!("{n:04096}")));
    assert!(engine.maintain().unwrap(), "large");
    wide(50, "x");
    assert!(engine.maintain().unwrap(), "wide");
    wide(1, "x");
    assert!(!engine.maintain().unwrap());
    clock.advance(59_999);
    assert!(!engine.maintain().unwrap());
    clock.advance(1);
    assert!(engine.maintain().unwrap(), "old");
    // A clock that is set back starts the age again, and does not stop it.
    wide(1, "x");
    assert!(!engine.maintain().unwrap());
    clock.advance(-3_600_000);
    assert!(!engine.maintain().unwrap());
    clock.advance(60_000);
    assert!(engine.maintain().unwrap());
    assert_eq!(engine.stats().memtable_rows, 0);
}

/// A disk whose syncs of the log wait until they are let go, and then fail if they shall.
struct SlowVfs {
    disk: SimVfs,
    is_held: Arc<AtomicBool>,
    fails: Arc<AtomicBool>,
}

struct SlowFile {
    file: Arc<dyn VfsFile>,
    is_held: Arc<AtomicBool>,
    fails: Arc<AtomicBool>,
}

impl SlowVfs {
    fn wrap(&self, path: &str, file: Arc<dyn VfsFile>) -> Arc<dyn VfsFile> {
        if !path.ends_with(".wal") {
            return file;
        }
        let (is_held, fails) = (Arc::clone(&self.is_held), Arc::clone(&self.fails));
        Arc::new(SlowFile { file, is_held, fails })
    }
}

impl VfsFile for SlowFile {
    fn read_at(&self, offset: u64, out: &mut [u8]) -> io::Result<usize> {
        self.file.read_at(offset, out)
    }
    fn write_at(&self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        self.file.write_at(offset, bytes)
    }
    fn sync(&self) -> io::Result<()> {
        while self.is_held.load(Ordering::Acquire) {
            thread::sleep(Duration::from_millis(1));
        }
        if self.fails.load(Ordering::Acquire) {
            return Err(io::Error::other("the sync failed"));
        }
        self.file.sync()
    }
    fn allocate(&self, len: u64) -> io::Result<()> {
        self.file.allocate(len)
    }
    fn len(&self) -> io::Result<u64> {
        self.file.len()
    }
}

impl Vfs for SlowVfs {
    fn create(&self, path: &str) -> io::Result<Arc<dyn VfsFile>> {
        self.disk.create(path).map(|file| self.wrap(path, file))
    }
    fn open(&self, path: &str) -> io::Result<Arc<dyn VfsFile>> {
        self.disk.open(path).map(|file| self.wrap(path, file))
    }
    fn map(&self, path: &str) -> io::Result<View> {
        self.disk.map(path)
    }
    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        self.disk.rename(from, to)
    }
    fn remove(&self, path: &str) -> io::Result<()> {
        self.disk.remove(path)
    }
    fn link(&self, from: &str, to: &str) -> io::Result<()> {
        self.disk.link(from, to)
    }
    fn create_dir(&self, path: &str) -> io::Result<()> {
        self.disk.create_dir(path)
    }
    fn remove_dir(&self, path: &str) -> io::Result<()> {
        self.disk.remove_dir(path)
    }
    fn sync_dir(&self, path: &str) -> io::Result<()> {
        self.disk.sync_dir(path)
    }
    fn list(&self, path: &str) -> io::Result<Vec<String>> {
        self.disk.list(path)
    }
    fn list_dirs(&self, path: &str) -> io::Result<Vec<String>> {
        self.disk.list_dirs(path)
    }
    fn free_bytes(&self) -> io::Result<u64> {
        self.disk.free_bytes()
    }
    fn lock(&self, path: &str) -> io::Result<Option<Box<dyn Any + Send + Sync>>> {
        self.disk.lock(path)
    }
}

/// Whoever is told "known already" may forget the event: so its original must be durable first.
#[test]
fn a_duplicate_is_not_acknowledged_before_its_original_is_durable() {
    for fails in [false, true] {
        let (is_held, failing) =
            (Arc::new(AtomicBool::new(false)), Arc::new(AtomicBool::new(false)));
        let vfs = SlowVfs {
            disk: SimVfs::new(),
            is_held: Arc::clone(&is_held),
            fails: Arc::clone(&failing),
        };
        let engine = Engine::open(Arc::new(vfs), options(Limits::default())).unwrap();
        ingest(&engine, 0, 1_000, 1);
        is_held.store(true, Ordering::Release);
        failing.store(fails, Ordering::Release);
        let answered = AtomicU64::new(0);
        thread::scope(|scope| {
            let send = || {
                let result = try_ingest(&engine, 0, 0, 1);
                answered.fetch_add(1, Ordering::SeqCst);
                result
            };
            let original = scope.spawn(send);
            thread::sleep(Duration::from_millis(60));
            let duplicate = scope.spawn(send);
            thread::sleep(Duration::from_millis(120));
            assert_eq!(answered.load(Ordering::SeqCst), 0, "nobody is answered before the sync");
            is_held.store(false, Ordering::Release);
            let (original, duplicate) = (original.join().unwrap(), duplicate.join().unwrap());
            if fails {
                assert!(original.is_err() && duplicate.is_err(), "{original:?} {duplicate:?}");
            } else {
                assert_eq!((original.unwrap(), duplicate.unwrap()), (1, 0));
            }
        });
        assert_eq!(count(&engine), 1 + u64::from(!fails));
    }
}

/// Ingest at full speed with threads in the background: fresh segments stay few, and every row is
/// counted at the end.
#[test]
fn merging_keeps_up_with_ingest() {
    let root = tempfile::tempdir().unwrap();
    let compaction = CompactionLimits { fan_in: 4, ..eager() };
    let limits = Limits { flush_rows: 4_000, compaction, ..Limits::default() };
    let options = Options { limits, ..Options::default() };
    let engine = Engine::open_directory(root.path(), options).unwrap();
    let mut fresh_most = 0;
    for round in 0..150u32 {
        ingest(&engine, i64::from(round % 3), round * 1_000, 1_000);
        fresh_most = fresh_most.max(engine.metrics().levels["fresh"].segments);
    }
    assert!(fresh_most < 48, "{fresh_most} fresh segments");
    assert_eq!(count(&engine), 150_000);
    engine.flush().unwrap();
    engine.compact().unwrap();
    let levels = engine.metrics().levels;
    assert_eq!(levels["sealed"].rows + levels["merged"].rows + levels["fresh"].rows, 150_000);
    assert_eq!(engine.trouble(), None);
    assert_eq!(count(&engine), 150_000);
}
