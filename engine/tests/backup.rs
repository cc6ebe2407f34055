//! Backups taken while the store works, brought back, damaged, and cut off at every step.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::sync::Arc;

use inlay_engine::*;

const DAY_MS: i64 = 86_400_000;
const TODAY_MS: i64 = 20_000 * DAY_MS;

fn open(disk: &SimVfs) -> Result<Engine> {
    let compaction = CompactionLimits { fan_in: 2, ..CompactionLimits::without_waiting() };
    let options = Options {
        clock: Arc::new(ManualClock::new(TODAY_MS + DAY_MS / 2)),
        rng: Arc::new(SeededRng::new(8)),
        limits: Limits { compaction, log_file_bytes: 32 * 1024, ..Limits::default() },
        background: false,
        ..Options::default()
    };
    Engine::open(Arc::new(disk.clone()), options)
}

fn ingest(engine: &Engine, first: u32, count: u32) -> Result<u32> {
    let mut batch = engine.batch(Namespace(1));
    for n in first..first + count {
        let (id, user) = (format!("id-{n}"), format!("user-{}", n % 17));
        let event = Event {
            tenant: ["a", "b", "c"][n as usize % 3],
            name: "call",
            timestamp_ms: TODAY_MS - i64::from(n % 5) * DAY_MS + i64::from(n) * 1_000,
            event_id: Some(&id),
            user_id: Some(&user),
        };
        let model = format!("m{}", n % 4);
        batch.push(&event, &[("model", &model)], &[("ms", f64::from(n) / 4.0)])?;
    }
    let ingested = engine.ingest(batch, |txn, _| {
        txn.put(b"newest", &first.to_le_bytes());
        Ok::<_, Error>(())
    })?;
    Ok(ingested.new)
}

/// Everything that can be seen: answers by day and model, and the keys.
fn shown(engine: &Engine) -> String {
    let mut out = String::new();
    for metric in [Metric::Count, Metric::Sum, Metric::Distinct, Metric::Percentile(95)] {
        for tenant in ["a", "b", "c"] {
            let query = Query {
                tenant: Some(tenant.to_owned()),
                metric,
                number: Some("ms".into()),
                granularity: Some(Granularity::Day),
                group_by: Some("model".into()),
                ..Query::count(Namespace(1), "call", TODAY_MS - 10 * DAY_MS..TODAY_MS + DAY_MS)
            };
            let answer = engine.query(&query, &|| false).unwrap();
            let mut rows: Vec<_> = answer.groups.iter().zip(&answer.values).collect();
            rows.sort_by_key(|(group, _)| (*group).clone());
            out += &format!("{tenant} {metric:?} {rows:?}\n");
        }
    }
    format!("{out}{:?}", engine.keys().scan(b""))
}

fn backup(engine: &Engine, target: &str, since: Option<&str>) -> Result<BackupProgress> {
    engine.backup(target, since, &mut |_| ())
}

/// A disk that holds just the files below a directory of another one.
fn below(disk: &SimVfs, directory: &str) -> SimVfs {
    let own = SimVfs::new();
    let prefix = format!("{directory}/");
    for (path, bytes) in disk.files() {
        if let Some(path) = path.strip_prefix(&prefix) {
            own.set_file(path, Some(bytes));
        }
    }
    own
}

/// A store with sealed days, merged and fresh segments, and rows in memory.
fn filled() -> (SimVfs, Engine) {
    let disk = SimVfs::new();
    let engine = open(&disk).unwrap();
    for round in 0..4 {
        ingest(&engine, round * 100, 100).unwrap();
        engine.flush().unwrap();
        engine.compact().unwrap();
    }
    ingest(&engine, 400, 50).unwrap();
    engine.flush().unwrap();
    ingest(&engine, 450, 33).unwrap();
    (disk, engine)
}

#[test]
fn a_backup_brings_back_everything_acknowledged_before_it_and_nothing_after() {
    let (disk, engine) = filled();
    let before = shown(&engine);
    let mut reports = Vec::new();
    let done = engine.backup("backups/one", None, &mut |now| reports.push(now.clone())).unwrap();
    assert!(done.is_done && done.linked > 5 && done.bytes > 0, "{done:?}");
    assert!(reports.windows(2).all(|pair| pair[0].files <= pair[1].files));
    // Life goes on: files that the backup shares are merged away and deleted.
    for round in 0..4 {
        ingest(&engine, 1_000 + round * 100, 100).unwrap();
        engine.flush().unwrap();
        engine.compact().unwrap();
    }
    engine
        .transact(|txn| {
            engine.erase(txn, Namespace(1), &Whose::Tenant("a"));
            Ok::<_, Error>(())
        })
        .unwrap();
    engine.compact().unwrap();

    let copy = below(&disk, "backups/one");
    let verified = Inspection::open(copy.clone()).unwrap().verify(&mut |_| ());
    assert_eq!(verified.problems, []);
    assert_eq!(verified.rows, 483);
    let restored = SimVfs::new();
    let list = restore(&copy, &restored).unwrap();
    assert_eq!(list.lsn, done.lsn);
    let engine = open(&restored).unwrap();
    assert_eq!(shown(&engine), before);
    assert_eq!(ingest(&engine, 0, 490).unwrap(), 7, "ids of the backup are known");
}

#[test]
fn rows_that_arrive_while_the_backup_is_taken_are_in_it_or_not_but_never_in_part() {
    // The log above the checkpoint is part of the backup: a transaction after the flush.
    let (disk, engine) = filled();
    engine.flush().unwrap();
    engine
        .transact(|txn| {
            txn.put(b"later", b"1");
            Ok::<_, Error>(())
        })
        .unwrap();
    let before = shown(&engine);
    backup(&engine, "b", None).unwrap();
    let restored = SimVfs::new();
    restore(&below(&disk, "b"), &restored).unwrap();
    assert_eq!(shown(&open(&restored).unwrap()), before);
}

#[test]
fn an_empty_store_can_be_backed_up() {
    let disk = SimVfs::new();
    let engine = open(&disk).unwrap();
    backup(&engine, "b", None).unwrap();
    let restored = SimVfs::new();
    restore(&below(&disk, "b"), &restored).unwrap();
    let engine = open(&restored).unwrap();
    assert_eq!(ingest(&engine, 0, 10).unwrap(), 10);
}

#[test]
fn targets_and_bases_that_do_not_fit_are_refused_by_name() {
    let (disk, engine) = filled();
    backup(&engine, "b", None).unwrap();
    let field = |result: Result<BackupProgress>| match result {
        Err(Error::Invalid { field, .. }) => field,
        other => panic!("{other:?}"),
    };
    assert_eq!(field(backup(&engine, "b", None)), "directory");
    assert_eq!(field(backup(&engine, "c", Some("nowhere"))), "backup");
    let other = SimVfs::new();
    let stranger =
        Engine::open(Arc::new(other.clone()), Options { background: false, ..Options::default() })
            .unwrap();
    stranger.backup("s", None, &mut |_| ()).unwrap();
    for (path, bytes) in other.files() {
        if path.starts_with("s/") {
            disk.set_file(&path, Some(bytes));
        }
    }
    assert_eq!(field(backup(&engine, "c", Some("s"))), "since");
    let full = SimVfs::new();
    full.set_file("x", Some(vec![1]));
    assert!(matches!(restore(&below(&disk, "b"), &full), Err(Error::Invalid { .. })));
    assert!(matches!(restore(&full, &SimVfs::new()), Err(Error::Invalid { .. })));
    backup(&engine, "c", Some("b")).unwrap();
}

#[test]
fn a_damaged_backup_is_named_and_not_restored() {
    let (disk, engine) = filled();
    backup(&engine, "b", None).unwrap();
    let copy = below(&disk, "b");
    for (path, bytes) in copy.files() {
        for at in (0..bytes.len()).step_by(bytes.len() / 3 + 1) {
            let mut damaged = bytes.clone();
            damaged[at] ^= 0x10;
            copy.set_file(&path, Some(damaged));
            let target = SimVfs::new();
            let error = restore(&copy, &target).unwrap_err().to_string();
            assert!(error.contains(&path), "{path} at {at}: {error}");
            assert!(target.files().is_empty(), "nothing is left of a restore that failed");
            let found = Inspection::open(copy.clone()).map(|it| it.verify(&mut |_| ()).problems);
            let is_found = match found {
                Ok(problems) => !problems.is_empty(),
                Err(Error::Corrupt { .. }) => true,
                Err(other) => panic!("{other}"),
            };
            assert!(is_found, "verify misses {path} at {at}");
        }
        copy.set_file(&path, None);
        assert!(restore(&copy, &SimVfs::new()).is_err(), "without {path}");
        copy.set_file(&path, Some(bytes));
    }
    restore(&copy, &SimVfs::new()).unwrap();
}

#[test]
fn a_backup_that_is_cut_off_is_no_backup_and_harms_nothing() {
    let (disk, engine) = filled();
    let before = shown(&engine);
    let first = disk.steps();
    backup(&engine, "b", None).unwrap();
    let steps = disk.steps() - first;
    drop(engine);
    assert!(steps > 20);
    for at in 0..steps {
        for (fault, sticky) in
            [(Fault::PowerLoss, true), (Fault::Error, false), (Fault::Full, false)]
        {
            let (disk, engine) = filled();
            disk.set_plan(Some(FaultPlan { at: disk.steps() + at, fault, sticky }));
            let done = backup(&engine, "b", None);
            disk.set_plan(None);
            drop(engine);
            let after = disk.after_power_loss(&SeededRng::new(at));
            let target = SimVfs::new();
            match restore(&below(&after, "b"), &target) {
                Ok(_) => assert_eq!(shown(&open(&target).unwrap()), before, "step {at}"),
                Err(error) => assert!(done.is_err(), "step {at}: a whole backup is lost: {error}"),
            }
            if matches!(fault, Fault::Full) && done.is_err() {
                let left = disk.files().into_keys().filter(|path| path.starts_with("b/")).count();
                assert_eq!(left, 0, "step {at}: leftovers of a backup that failed");
            }
            assert_eq!(shown(&open(&after).unwrap()), before, "step {at}: the store itself");
        }
    }
}

#[test]
fn a_second_backup_shares_what_the_first_one_has() {
    let root = tempfile::tempdir().unwrap();
    let data = root.path().join("data");
    let options =
        || Options { rng: Arc::new(SeededRng::new(4)), background: false, ..Options::default() };
    let engine = Engine::open_directory(&data, options()).unwrap();
    ingest(&engine, 0, 300).unwrap();
    let path = |name: &str| root.path().join(name).to_str().unwrap().to_owned();
    let first = backup(&engine, &path("one"), None).unwrap();
    ingest(&engine, 300, 300).unwrap();
    let before = shown(&engine);
    let second = backup(&engine, &path("two"), Some(&path("one"))).unwrap();
    assert!(second.linked > first.linked);
    let target = OsVfs::new(root.path().join("restored")).unwrap();
    restore(&OsVfs::existing(root.path().join("two")), &target).unwrap();
    drop(engine);
    let engine = Engine::open_directory(&root.path().join("restored"), options()).unwrap();
    assert_eq!(shown(&engine), before);
    let report = Inspection::open(OsVfs::existing(path("two"))).unwrap().verify(&mut |_| ());
    assert_eq!((report.problems.len(), report.rows), (0, 600));
}

/// Another disk takes no links: files are copied, and those that an earlier backup there has are linked to.
#[test]
fn a_backup_on_another_disk_copies_what_the_one_before_does_not_have() {
    let (disk, engine) = filled();
    disk.set_own_disk(Some("far"));
    let first = backup(&engine, "far/one", None).unwrap();
    assert!(first.linked == 0 && first.reused == 0 && first.files > 3, "{first:?}");
    ingest(&engine, 600, 50).unwrap();
    let before = shown(&engine);
    let second = backup(&engine, "far/two", Some("far/one")).unwrap();
    assert!(second.linked == 0 && second.reused > 2, "{second:?}");
    assert!(second.files - second.reused < first.files, "{second:?} after {first:?}");
    for (place, wanted) in [("far/one", None), ("far/two", Some(before))] {
        let restored = SimVfs::new();
        restore(&below(&disk, place), &restored).unwrap();
        let engine = open(&restored).unwrap();
        assert!(wanted.is_none_or(|wanted| shown(&engine) == wanted));
        assert_eq!(Inspection::open(below(&disk, place)).unwrap().verify(&mut |_| ()).problems, []);
    }
}

/// The log rolls over from file to file while backups are taken, and each of them starts.
#[test]
fn backups_beside_a_busy_writer_start() {
    let (disk, engine) = filled();
    let is_over = std::sync::atomic::AtomicBool::new(false);
    let relaxed = std::sync::atomic::Ordering::Relaxed;
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for round in 0.. {
                if is_over.load(relaxed) {
                    break;
                }
                ingest(&engine, 1_000 + round * 10, 10).unwrap();
            }
        });
        for number in 0..20 {
            let place = format!("backup-{number}");
            backup(&engine, &place, None).unwrap();
            let restored = SimVfs::new();
            restore(&below(&disk, &place), &restored).unwrap();
            let again = open(&restored).unwrap_or_else(|error| panic!("{place}: {error}"));
            drop(again);
        }
        is_over.store(true, relaxed);
    });
}

#[test]
fn an_inspection_of_a_living_store_finds_nothing_wrong() {
    let (disk, engine) = filled();
    let inspection = Inspection::open(disk.clone()).unwrap();
    let report = inspection.verify(&mut |_| ());
    assert_eq!(report.problems, []);
    assert_eq!(report.unnamed, Vec::<String>::new());
    assert_eq!(report.rows, 450, "the rest is in the log");
    assert!(report.records > 0 && report.id_runs > 0 && report.checkpoints > 0);
    let segments = inspection.segments().unwrap();
    assert_eq!(segments.len(), engine.stats().segments);
    for segment in &segments {
        let sections = inspection.sections(segment.uuid).unwrap();
        let bytes: u64 = sections.iter().map(|section| section.bytes).sum();
        assert!(bytes < segment.bytes && bytes > segment.bytes / 4);
        assert!(sections.iter().all(|section| !section.encodings.contains_key("?")));
        let rows: u32 = inspection.runs(segment.uuid).unwrap().iter().map(|run| run.rows).sum();
        assert_eq!(u64::from(rows), segment.rows);
    }
    assert_eq!(inspection.keys("newest").count(), 1);
    let events: usize = inspection.log(0).map(|record| record.events).sum();
    assert!(events >= 33);
    // What was inspected is merged away afterwards: gone is not wrong.
    engine.compact().unwrap();
    engine.flush().unwrap();
    assert_eq!(inspection.verify(&mut |_| ()).problems, []);
}
