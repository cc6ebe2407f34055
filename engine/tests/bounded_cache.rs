//! A store whose files are elsewhere, on a disk that has not room for all of them.
//!
//! ```text
//! two processes, one with all files on its disk and one with parts     the same answers, whatever is evicted in between
//! the object store fails                                                an error that goes away, never an answer of zeros
//! ```

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::sync::{
    Arc,
    atomic::{AtomicBool, AtomicU64, Ordering},
};

use inlay_engine::{
    Engine, Error, Event, Limit, Metric, Namespace, Options, OsVfs, Query, SystemRng, Vfs, Whose,
    remote::{ObjectPart, ObjectVfs, Objects, SimLog, SimObjects},
    rows::{Column, Scan, SeriesFilter, Values},
};
use tempfile::TempDir;

const DIRECTORIES: &[&str] = &["seg", "ids", "ckpt"];
const NAMESPACE: Namespace = Namespace(1);
const NOW_MS: i64 = 1_790_000_000_000;
const DAY_MS: i64 = 86_400_000;

/// Objects that can be cut off.
#[derive(Clone, Default)]
struct CutObjects {
    objects: SimObjects,
    are_cut: Arc<AtomicBool>,
    bytes: Arc<AtomicU64>,
}

impl CutObjects {
    fn pass(&self) -> std::io::Result<()> {
        match self.are_cut.load(Ordering::Relaxed) {
            true => Err(std::io::ErrorKind::ConnectionReset.into()),
            false => Ok(()),
        }
    }
}

impl Objects for CutObjects {
    fn put(&self, name: &str, content: &dyn inlay_engine::VfsFile) -> std::io::Result<()> {
        self.pass().and_then(|()| self.objects.put(name, content))
    }

    fn get(&self, name: &str, into: &dyn inlay_engine::VfsFile) -> std::io::Result<()> {
        self.pass().and_then(|()| self.objects.get(name, into))
    }

    fn get_part(&self, name: &str, part: ObjectPart) -> std::io::Result<(Vec<u8>, u64)> {
        self.pass()?;
        let (bytes, len) = self.objects.get_part(name, part)?;
        self.bytes.fetch_add(bytes.len() as u64, Ordering::Relaxed);
        Ok((bytes, len))
    }

    fn list_sizes(&self, prefix: &str) -> std::io::Result<Vec<(String, u64)>> {
        self.pass().and_then(|()| self.objects.list_sizes(prefix))
    }

    fn remove(&self, name: &str) -> std::io::Result<()> {
        self.pass().and_then(|()| self.objects.remove(name))
    }
}

/// A process: its disk, and the store as it shows it.
struct Process {
    disk: TempDir,
    files: Arc<ObjectVfs>,
    engine: Engine,
}

fn process(objects: &CutObjects, log: &Arc<SimLog>, is_leader: bool) -> Process {
    let disk = tempfile::tempdir().unwrap();
    let below: Arc<dyn Vfs> = Arc::new(OsVfs::new(disk.path()).unwrap());
    let files = ObjectVfs::new(below, Arc::new(objects.clone()), DIRECTORIES);
    let files = Arc::new(files.in_parts().unwrap());
    let options = Options { background: false, rng: Arc::new(SystemRng), ..Options::default() };
    let (vfs, records) = (Arc::clone(&files) as Arc<dyn Vfs>, Arc::clone(log));
    let engine = match is_leader {
        true => Engine::open_with_log(vfs, records, options).unwrap(),
        false => Engine::open_follower(vfs, records, options).unwrap(),
    };
    Process { disk, files, engine }
}

/// A leader with so many rows in merged segments, and what it answers.
fn filled_leader(objects: &CutObjects, count: u64) -> (Process, Vec<String>) {
    let leader = process(objects, &Arc::new(SimLog::default()), true);
    ingest(&leader.engine, 0, count);
    leader.engine.flush().unwrap();
    leader.engine.compact().unwrap();
    let expected = answers(&leader.engine).unwrap();
    (leader, expected)
}

/// Rows of two weeks of some tenants, with ids that compress badly.
fn ingest(engine: &Engine, from: u64, count: u64) {
    for first in (from..from + count).step_by(1_000) {
        let mut batch = engine.batch(NAMESPACE);
        for n in first..first + 1_000 {
            let mixed = n.wrapping_mul(0x9e37_79b9_7f4a_7c15);
            let (id, user) = (format!("{mixed:016x}{n:x}"), format!("u{}", mixed % 5_000));
            let event = Event {
                tenant: ["acme", "beta", "core"][n as usize % 3],
                name: ["call", "login"][(n / 3) as usize % 2],
                timestamp_ms: NOW_MS - (mixed >> 8) as i64 % (14 * DAY_MS),
                event_id: Some(&id),
                user_id: Some(&user),
            };
            batch.push(&event, &[("plan", &user[..2])], &[("ms", (mixed >> 40) as f64)]).unwrap();
        }
        engine.ingest(batch, |_, _| Ok::<_, Error>(())).unwrap();
    }
}

/// What several queries answer; the error of the first that fails.
fn answers(engine: &Engine) -> Result<Vec<String>, Error> {
    let mut answers = Vec::new();
    for tenant in ["acme", "beta", "core"] {
        for (metric, number) in [
            (Metric::Count, None),
            (Metric::Distinct, None),
            (Metric::Sum, Some("ms")),
            (Metric::Percentile(95), Some("ms")),
        ] {
            let query = Query {
                tenant: Some(tenant.to_owned()),
                metric,
                number: number.map(str::to_owned),
                ..Query::count(NAMESPACE, "call", NOW_MS - 9 * DAY_MS - 7..NOW_MS)
            };
            // Both from rollups and from rows.
            let rows = engine.query_rows(&query, &|| false)?;
            answers.push(format!(
                "{:?} {:?}",
                engine.query(&query, &|| false)?.values,
                rows.values
            ));
        }
    }
    Ok(answers)
}

/// Bytes that segments take on the disk, whole ones and parts.
fn room_taken(disk: &TempDir) -> u64 {
    use std::os::unix::fs::MetadataExt as _;
    let mut bytes = 0;
    let mut directories = vec![disk.path().join("seg"), disk.path().join("parts")];
    while let Some(directory) = directories.pop() {
        for entry in std::fs::read_dir(directory).unwrap() {
            let entry = entry.unwrap();
            match entry.file_type().unwrap().is_dir() {
                true => directories.push(entry.path()),
                false => bytes += entry.metadata().unwrap().blocks() * 512,
            }
        }
    }
    bytes
}

#[test]
fn answers_are_the_same_whatever_is_evicted() {
    let (objects, log) = (CutObjects::default(), Arc::new(SimLog::default()));
    let directory = tempfile::tempdir().unwrap();
    let options = Options { background: false, ..Options::default() };
    let plain = Engine::open_directory(directory.path(), options).unwrap();
    let leader = process(&objects, &log, true);
    let ingest = |from, count| [&plain, &leader.engine].map(|engine| ingest(engine, from, count));
    let settle = || {
        for engine in [&plain, &leader.engine] {
            engine.flush().unwrap();
            engine.compact().unwrap();
        }
    };
    ingest(0, 120_000);
    settle();
    let expected = answers(&plain).unwrap();
    assert_eq!(answers(&leader.engine).unwrap(), expected);
    let follower = process(&objects, &log, false);
    assert_eq!(answers(&follower.engine).unwrap(), expected);
    let (reads, read_bytes) = follower.files.part_reads();
    let of_segments: u64 = objects.list_sizes("seg/").unwrap().iter().map(|(_, len)| len).sum();
    assert!(reads > 0 && read_bytes < of_segments, "ids were not needed: {read_bytes} bytes");
    // Warm: nothing is fetched.
    assert_eq!(answers(&follower.engine).unwrap(), expected);
    assert_eq!(follower.files.part_reads().0, reads);
    // A leader evicts what it has written, and merges what it has evicted.
    for round in 1..4 {
        let before = room_taken(&leader.disk);
        assert!(leader.engine.evict(0).unwrap().evicted > 0);
        let after = room_taken(&leader.disk);
        assert!(after < before / 4, "{after} of {before} bytes");
        ingest(round * 3_000_000, 3_000);
        settle();
        let expected = answers(&plain).unwrap();
        assert_eq!(answers(&leader.engine).unwrap(), expected);
        follower.engine.evict(0).unwrap();
        follower.engine.follow().unwrap();
        assert_eq!(answers(&follower.engine).unwrap(), expected);
    }
    // Another process, which opens the files itself, and asks for what is not there.
    follower.engine.evict(0).unwrap();
    let rows = |engine: &Engine, disk: &TempDir| {
        let scan = Scan::receive(disk.path(), engine.snapshot(NAMESPACE).hand_over()).unwrap();
        let mut all: Vec<(i64, Vec<u8>)> = Vec::new();
        for source in scan.sources() {
            for morsel in source.morsels(SeriesFilter::default(), &(i64::MIN..i64::MAX)).unwrap() {
                let Values::Times(times) = source.read(&morsel, &Column::Time).unwrap() else {
                    unreachable!("times are times");
                };
                let Values::Texts(ids) = source.read(&morsel, &Column::EventId).unwrap() else {
                    unreachable!("ids are texts");
                };
                all.extend(times.into_iter().zip((0..ids.len()).map(|at| ids.at(at).to_vec())));
            }
        }
        all.sort();
        all
    };
    assert!(rows(&follower.engine, &follower.disk) == rows(&plain, &directory));
    // A directory that is deleted under it: other processes find what they need again.
    for name in ["seg", "parts"] {
        std::fs::remove_dir_all(follower.disk.path().join(name)).unwrap();
    }
    let handed = || follower.engine.snapshot(NAMESPACE).hand_over();
    assert!(Scan::receive(follower.disk.path(), handed()).is_err());
    follower.engine.restore_copies().unwrap();
    assert!(rows(&follower.engine, &follower.disk) == rows(&plain, &directory));
    // Also where copies are whole: the leader has written them itself.
    std::fs::remove_dir_all(leader.disk.path().join("seg")).unwrap();
    leader.engine.restore_copies().unwrap();
    assert!(rows(&leader.engine, &leader.disk) == rows(&plain, &directory));
    let left = std::fs::read_dir(follower.disk.path().join("parts")).unwrap().count();
    drop(follower.engine);
    assert!(left > 0);
    let left = std::fs::read_dir(follower.disk.path().join("parts")).unwrap().count();
    assert_eq!(left, 0, "they go with the last reader");
}

#[test]
fn what_cannot_be_fetched_is_an_error_that_goes_away() {
    let objects = CutObjects::default();
    let (leader, expected) = filled_leader(&objects, 120_000);
    assert_eq!(leader.engine.evict(u64::MAX).unwrap().evicted, 0);
    assert!(leader.engine.evict(0).unwrap().evicted > 0);
    objects.are_cut.store(true, Ordering::Relaxed);
    let error = answers(&leader.engine).unwrap_err();
    assert!(matches!(error, Error::Limit { limit: Limit::Unreachable, .. }), "{error}");
    assert!(!leader.engine.has_damage(), "a hole is not taken for damage");
    objects.are_cut.store(false, Ordering::Relaxed);
    assert_eq!(answers(&leader.engine).unwrap(), expected);
    // An erased segment is on no disk, whole or in parts.
    leader.engine.evict(0).unwrap();
    answers(&leader.engine).unwrap();
    let parts = || std::fs::read_dir(leader.disk.path().join("parts")).unwrap().count();
    assert!(parts() > 0);
    leader
        .engine
        .transact(|txn| {
            leader.engine.erase(txn, NAMESPACE, &Whose::Tenant("acme"));
            Ok::<_, Error>(())
        })
        .unwrap();
    leader.engine.compact().unwrap();
    assert!(leader.engine.erasures().unwrap().iter().all(|erasure| erasure.finished_ms.is_some()));
    assert_eq!(parts(), 0, "all segments had rows of the tenant");
    assert_eq!(answers(&leader.engine).unwrap()[4..], expected[4..]);
}

#[test]
fn a_backup_of_parts_is_whole_and_leaves_no_copies() {
    let objects = CutObjects::default();
    let (leader, expected) = filled_leader(&objects, 60_000);
    leader.engine.evict(0).unwrap();
    let before = room_taken(&leader.disk);
    let target = tempfile::tempdir().unwrap();
    let backup = target.path().join("backup");
    leader.engine.backup(backup.to_str().unwrap(), None, &mut |_| {}).unwrap();
    assert!(room_taken(&leader.disk) <= before, "whole copies stayed");
    let restored = target.path().join("restored");
    let vfs = |path: &std::path::Path| OsVfs::new(path).unwrap();
    inlay_engine::restore(&vfs(&backup), &vfs(&restored)).unwrap();
    let options = Options { background: false, ..Options::default() };
    let restored = Engine::open_directory(&restored, options).unwrap();
    assert_eq!(answers(&restored).unwrap(), expected);
}
