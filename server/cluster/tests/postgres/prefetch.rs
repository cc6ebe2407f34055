//! A follower has a large file before the record that names it, and a leader that was deposed puts nothing into the object store.

use std::{
    ops::Range,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use inlay_cluster::{AnnouncedObjects, Calls, DatabaseSession, Prefetcher, Uploads};
use inlay_engine::{
    Engine, Error, Event, Namespace, Options, OsVfs, SimVfs, Vfs as _,
    remote::{ObjectVfs, Objects as _, SimLog, SimObjects},
};
use uuid::Uuid;

use super::{log, seen, server::Postgres};

const DIRECTORIES: &[&str] = &["seg", "ids", "ckpt"];

struct Process {
    disk: SimVfs,
    uploads: Arc<Uploads>,
    files: Arc<ObjectVfs>,
    engine: Arc<Engine>,
}

fn process(postgres: &Postgres, objects: &SimObjects, records: &SimLog, own: u128) -> Process {
    let session = DatabaseSession::new(Calls::new().unwrap(), &postgres.url).unwrap();
    let uploads = Arc::new(Uploads::new(session, Uuid::from_u128(own)));
    let objects = AnnouncedObjects { objects: objects.clone(), uploads: Arc::clone(&uploads) };
    let disk = SimVfs::new();
    let files = Arc::new(ObjectVfs::new(Arc::new(disk.clone()), Arc::new(objects), DIRECTORIES));
    let (log, options) =
        (Arc::new(records.another()), Options { background: false, ..Options::default() });
    let vfs = Arc::clone(&files);
    let engine = match own {
        1 => Engine::open_with_log(vfs, log, options),
        _ => Engine::open_follower(vfs, log, options),
    };
    Process { disk, uploads, files, engine: Arc::new(engine.unwrap()) }
}

/// Rows that take more than a megabyte.
fn fill(engine: &Engine) {
    for first in 0..12 {
        send(engine, first * 10_000..(first + 1) * 10_000);
    }
}

fn send(engine: &Engine, numbers: Range<u64>) {
    let mut batch = engine.batch(Namespace(1));
    let now_ms = 1_790_000_000_000;
    for number in numbers {
        let id = Uuid::from_u128(u128::from(number) << 64 | u128::from(number * 7_919)).to_string();
        let user = format!("{:x}", number.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        let event = Event {
            tenant: "acme",
            name: "call",
            timestamp_ms: now_ms,
            event_id: Some(&id),
            user_id: Some(&user),
        };
        batch.push(&event, &[("token", &user)], &[("ms", number as f64)]).unwrap();
    }
    engine.ingest(batch, |_, _| Ok::<_, Error>(())).unwrap();
}

#[test]
fn a_large_file_is_there_before_the_record_that_names_it() {
    let Some(postgres) = Postgres::start() else { return };
    drop(log(&postgres, None, 1).unwrap());
    let (objects, records) = (SimObjects::default(), SimLog::default());
    let leader = process(&postgres, &objects, &records, 1);
    let follower = process(&postgres, &objects, &records, 2);
    seen(&postgres, Uuid::from_u128(2), (1, 1, 1));
    let prefetcher = Prefetcher::default();
    let flushing = thread::spawn(move || {
        fill(&leader.engine);
        let start = Instant::now();
        leader.engine.flush().unwrap();
        (leader, start.elapsed())
    });
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let copies = || follower.disk.list_below("seg").unwrap_or_default();
    let mut came_first = false;
    while !flushing.is_finished() {
        // As the log says it, which a process that follows reads all the time.
        let last = postgres.sql("SELECT coalesce(max(number), 0) FROM inlay.uploads");
        prefetcher.wake(last.parse().unwrap());
        let Process { uploads, files, engine, .. } = &follower;
        runtime.block_on(prefetcher.fetch(uploads, files, engine, || true));
        came_first |= copies().len() == 1 && engine.stats().segments == 0;
    }
    let (leader, took) = flushing.join().unwrap();
    assert!(came_first && prefetcher.count() > 0, "{:?}", copies());
    assert!(took < Duration::from_secs(5), "others were waited for in vain: {took:?}");
    // It is opened without being fetched again.
    objects.fail_at(1, std::io::ErrorKind::TimedOut);
    follower.engine.follow().unwrap();
    objects.fail_at(usize::MAX, std::io::ErrorKind::TimedOut);
    assert_eq!(follower.engine.stats().segment_rows, 120_000);

    // A merge that failed after its file was announced: an erasure has copies of it discarded.
    let orphan = "seg/l0/019a60c3-4000-792b-b293-000000000000.seg";
    let content = leader.disk.open(&copies()[0]).unwrap();
    objects.put(orphan, &*content).unwrap();
    leader.uploads.announce(orphan, 2 << 20);
    let fetch = || {
        let last = postgres.sql("SELECT max(number) FROM inlay.uploads");
        prefetcher.wake(last.parse().unwrap());
        runtime.block_on(prefetcher.fetch(
            &follower.uploads,
            &follower.files,
            &follower.engine,
            || true,
        ));
    };
    fetch();
    assert_eq!(copies().len(), 2);
    postgres.sql("INSERT INTO inlay.uploads (path) VALUES ('')");
    fetch();
    assert_eq!(copies().len(), 1, "it keeps what is named");
    let said =
        postgres.sql("SELECT fetched = (SELECT max(number) FROM inlay.uploads) FROM inlay.nodes");
    assert_eq!(said, "t");
}

#[test]
fn a_leader_whose_lease_has_ended_uploads_nothing() {
    let Some(postgres) = Postgres::start() else { return };
    drop(log(&postgres, None, 1).unwrap());
    let (objects, records) = (SimObjects::default(), SimLog::default());
    let leader = process(&postgres, &objects, &records, 1);
    let is_valid = Arc::new(AtomicBool::new(true));
    let validity = Arc::clone(&is_valid);
    leader.uploads.allow_while(Box::new(move || validity.load(Ordering::Relaxed)));
    fill(&leader.engine);
    is_valid.store(false, Ordering::Relaxed);
    assert!(leader.engine.flush().is_err());
    assert!(objects.list("").unwrap().is_empty());
    is_valid.store(true, Ordering::Relaxed);
    leader.engine.flush().unwrap();
    assert!(!objects.list("").unwrap().is_empty());
}

#[test]
fn files_are_fetched_and_made_in_a_directory_that_was_deleted() {
    let (directory, objects) = (tempfile::tempdir().unwrap(), SimObjects::default());
    let disk = Arc::new(OsVfs::new(directory.path()).unwrap());
    let files = ObjectVfs::new(disk, Arc::new(objects.clone()), DIRECTORIES);
    let empty = || {
        for entry in std::fs::read_dir(directory.path()).unwrap() {
            std::fs::remove_dir_all(entry.unwrap().path()).unwrap();
        }
    };
    let file = files.create("tmp/new").unwrap();
    file.write_at(0, b"rows").unwrap();
    files.rename("tmp/new", "seg/l0/a.seg").unwrap();
    empty();
    assert_eq!(&*files.map("seg/l0/a.seg").unwrap(), b"rows");
    empty();
    files.prefetch("seg/l0/a.seg").unwrap();
    empty();
    files.probe_disk().unwrap();
}
