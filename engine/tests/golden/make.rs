//! Makes the files of one format version, once, before that version is released.
//!
//! A small history that leaves every kind of file and every encoding behind: sealed, merged and fresh
//! segments, id runs of two weeks, keys, a retention rule, finished erasures, checkpoints, a log with
//! events above them, and a backup.

use std::{path::Path, sync::Arc};

use inlay_engine::*;

use crate::{DAY_MS, NOW_MS, answers, limits};

/// Days on which the history takes place, counted from the last one.
const DAYS_AGO: [i64; 5] = [9, 8, 7, 6, 5];

struct Maker {
    engine: Engine,
    clock: Arc<ManualClock>,
    rng: SeededRng,
}

/// Writes data directory, backup and answers below `directory`.
pub fn write(directory: &Path) {
    let disk = SimVfs::new();
    let clock = Arc::new(ManualClock::new(NOW_MS - 9 * DAY_MS));
    let options = Options {
        clock: clock.clone(),
        rng: Arc::new(SeededRng::new(1)),
        limits: limits(),
        background: false,
        ..Options::default()
    };
    let engine = Engine::open(Arc::new(disk.clone()), options).unwrap();
    let maker = Maker { engine, clock, rng: SeededRng::new(2) };
    maker.past_days();
    maker.erasures();
    maker.today();
    let answers = answers(&maker.engine);
    // A backup flushes first: the data directory is the one from before.
    let data = disk.files();
    maker.engine.backup("backup", None, &mut |_| ()).unwrap();
    let target = OsVfs::new(directory).unwrap();
    for (path, bytes) in data {
        put(&target, &format!("data/{path}"), &bytes);
    }
    for (path, bytes) in disk.files().range("backup/".to_owned().."backup0".to_owned()) {
        put(&target, path, bytes);
    }
    put(&target, "answers.txt", answers.as_bytes());
    write_weeks(&target);
}

/// Writes a data directory with the days of a week in one segment, and its answers.
fn write_weeks(target: &OsVfs) {
    let disk = SimVfs::new();
    let clock = Arc::new(ManualClock::new(NOW_MS));
    let limits = limits();
    let compaction = CompactionLimits { span_days_max: 56, ..limits.compaction };
    let options = Options {
        clock: clock.clone(),
        rng: Arc::new(SeededRng::new(4)),
        limits: Limits { compaction, ..limits },
        background: false,
        ..Options::default()
    };
    let engine = Engine::open(Arc::new(disk.clone()), options).unwrap();
    let maker = Maker { engine, clock, rng: SeededRng::new(5) };
    // Day 20,400 is a Saturday: these are Monday to Sunday of the week before.
    for days_ago in 6..13 {
        let first = (12 - days_ago) * 100;
        maker.digits(days_ago, first..first + 40 + days_ago * 5);
    }
    maker.engine.flush().unwrap();
    maker.engine.compact().unwrap();
    let answers = answers(&maker.engine);
    for (path, bytes) in disk.files() {
        put(target, &format!("weeks/{path}"), &bytes);
    }
    put(target, "weeks.txt", answers.as_bytes());
}

fn put(vfs: &dyn Vfs, path: &str, bytes: &[u8]) {
    if let Some((directory, _)) = path.rsplit_once('/') {
        vfs.create_dir(directory).unwrap();
    }
    vfs.create(path).unwrap().write_at(0, bytes).unwrap();
}

impl Maker {
    /// One day for each encoding of event ids, and one for what is constant. Each is flushed alone and
    /// sealed when it is over.
    fn past_days(&self) {
        let [planes, none, uuids, texts, constant] = DAYS_AGO;
        // More than one vector of rows, with ids that rise in time.
        for first in (0..1_120).step_by(80) {
            // Halves that repeat, which whole bytes show and single bits do not.
            let half = |n: i64| 0x9e37_79b9_7f4a_7c15_u64.wrapping_mul(n as u64 % 3 + 1);
            let id = |n: i64| Some(uuid::Uuid::from_u64_pair(half(n), n as u64 * 7));
            self.ingest(1, planes, first..first + 80, id);
        }
        self.flush_and_compact(1);
        self.ticks(none, (0..200).map(|n| n * 1_000 + n % 3));
        self.flush_and_compact(1);
        let mut bytes = [0; 16];
        self.ingest(1, uuids, 0..60, |_| {
            self.rng.fill(&mut bytes);
            Some(uuid::Builder::from_random_bytes(bytes).into_uuid())
        });
        self.flush_and_compact(1);
        self.texts(2, texts, 0..40);
        self.texts(9, texts, 0..30);
        self.flush_and_compact(1);
        self.ticks(constant, [0; 5].into_iter());
        self.crowd(constant);
        self.flush_and_compact(5);
    }

    /// Events of one series with nothing but a time.
    fn ticks(&self, days_ago: i64, offsets: impl Iterator<Item = i64>) {
        let mut batch = self.engine.batch(Namespace(3));
        for offset in offsets {
            let timestamp_ms = NOW_MS - days_ago * DAY_MS + offset;
            let event =
                Event { tenant: "only", name: "tick", timestamp_ms, event_id: None, user_id: None };
            batch.push(&event, &[], &[]).unwrap();
        }
        self.commit(batch);
    }

    /// So many users and rows that sketches are dense and numbers have digests, in hours too; of two tenants,
    /// so that the event has its own.
    fn crowd(&self, days_ago: i64) {
        for first in (0..26_000).step_by(1_000) {
            let mut batch = self.engine.batch(Namespace(4));
            for n in first..first + 1_000 {
                let user = format!("user-{}", n * 7 % 1_500);
                let event = Event {
                    tenant: if n % 13 == 0 { "few" } else { "many" },
                    name: "pulse",
                    timestamp_ms: NOW_MS - days_ago * DAY_MS - 11 * 3_600_000 + n * 1_500,
                    event_id: None,
                    user_id: Some(&user),
                };
                batch.push(&event, &[], &[("ms", (n * 37 % 1_000) as f64 / 4.0)]).unwrap();
            }
            self.commit(batch);
        }
    }

    /// A user who is forgotten, and a namespace that is dropped.
    fn erasures(&self) {
        let user = Whose::User { tenant: "acme", user: "user-0" };
        for (namespace, whose) in [(1, user), (9, Whose::Namespace)] {
            self.engine
                .transact(|txn| {
                    self.engine.erase(txn, Namespace(namespace), &whose);
                    Ok::<_, Error>(())
                })
                .unwrap();
            self.engine.compact().unwrap();
        }
    }

    /// Two flushes that are merged, one that stays fresh, and events that are only in the log.
    fn today(&self) {
        self.texts(1, 0, 1_000..1_040);
        self.engine.flush().unwrap();
        self.texts(2, 0, 1_000..1_020);
        self.flush_and_compact(0);
        self.engine.set_retention(Namespace(2), Some(30)).unwrap();
        self.texts(1, 0, 1_100..1_130);
        self.engine.flush().unwrap();
        self.engine
            .transact(|txn| {
                txn.put(b"deleted", b"");
                txn.put(b"session/1", b"\x00\xff and text");
                txn.delete(b"deleted");
                Ok::<_, Error>(())
            })
            .unwrap();
        // Ten of these are known.
        self.texts(1, 0, 1_120..1_150);
        self.texts(2, 1, 1_200..1_205);
    }

    fn flush_and_compact(&self, days: i64) {
        self.engine.flush().unwrap();
        self.clock.advance(days * DAY_MS);
        self.engine.compact().unwrap();
    }

    fn texts(&self, namespace: u32, days_ago: i64, range: std::ops::Range<i64>) {
        let mut batch = self.engine.batch(Namespace(namespace));
        for n in range {
            push(&mut batch, days_ago, n, (n % 7 > 0).then(|| format!("order-{n}")).as_deref());
        }
        self.commit(batch);
    }

    /// Events with random ids of one length that are no UUIDs.
    fn digits(&self, days_ago: i64, range: std::ops::Range<i64>) {
        let mut batch = self.engine.batch(Namespace(1));
        for n in range {
            let id = format!("evt_{:016x}", self.rng.next_u64());
            push(&mut batch, days_ago, n, Some(&id));
        }
        self.commit(batch);
    }

    fn ingest(
        &self,
        namespace: u32,
        days_ago: i64,
        range: std::ops::Range<i64>,
        mut id: impl FnMut(i64) -> Option<uuid::Uuid>,
    ) {
        let mut batch = self.engine.batch(Namespace(namespace));
        for n in range {
            push(&mut batch, days_ago, n, id(n).map(|id| id.to_string()).as_deref());
        }
        self.commit(batch);
    }

    fn commit(&self, batch: Batch) {
        let usage = format!("usage/{}", batch.namespace().0);
        self.engine
            .ingest(batch, |txn, ingested| {
                let before =
                    txn.find(usage.as_bytes()).and_then(|value| value.as_ref().try_into().ok());
                let count = before.map_or(0, u64::from_le_bytes) + u64::from(ingested.new);
                txn.put(usage.as_bytes(), &count.to_le_bytes());
                Ok::<_, Error>(())
            })
            .unwrap();
    }
}

/// Event `n` of a day: columns of every encoding.
fn push(batch: &mut Batch, days_ago: i64, n: i64, id: Option<&str>) {
    let user = format!("user-{}", n * n % 11);
    let event = Event {
        tenant: if n % 5 == 0 { "zeta" } else { "acme" },
        name: if n % 9 == 0 { "refund" } else { "call" },
        timestamp_ms: NOW_MS - days_ago * DAY_MS - 9 * 3_600_000 + n * 20_011 + n % 3,
        event_id: id,
        user_id: (n % 4 > 0).then_some(&*user),
    };
    let model = if n % 600 == 0 { "rare" } else { ["large", "small"][(n * n % 7 % 2) as usize] };
    let path = format!("/v1/items/{}", n % 13);
    let mut strings = vec![("model", model), ("path", &path)];
    if n % 50 == 3 {
        strings.push(("plan", "trial"));
    }
    let mut numbers = vec![("ms", (n * 37 % 1_000) as f64 / 4.0), ("fixed", 1.0)];
    if n % 2 == 0 {
        numbers.push(("tokens", (n * n % 500) as f64));
    }
    if n % 40 == 7 {
        numbers.push(("cents", n as f64 / 100.0));
    }
    // An exception among decimals: no short decimal gives these bits.
    numbers.push(("cost", if n % 60 == 59 { 0.1 + 0.2 } else { (n % 40) as f64 / 10.0 }));
    if n % 10 < 2 {
        numbers.push(("score", (n as f64).sqrt().sin()));
    }
    batch.push(&event, &strings, &numbers).unwrap();
}
