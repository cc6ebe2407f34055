//! Histories of three processes on one log and one object store, in simulation: who leads changes, calls fail or get no answer, disks are lost, and
//! a former leader wakes up and goes on as if nothing had happened.
//!
//! ```text
//! send       the leader stores events, of which some were sent before; one append in eight gets no answer
//! flush      and compact: segments come and go, in the object store as well; one in four meets a fault there
//! follow     another process applies what is new, and is compared with the leader
//! take over  another process leads; the old one stays as it is, and is let loose later: nothing that it does may count
//! lose       a process ends with its disk
//! ```
//!
//! `INLAY_SIM_SEEDS=10000 cargo test -p inlay-engine --test followers` runs more seeds.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::{
    collections::{BTreeMap, BTreeSet},
    io::ErrorKind,
    sync::Arc,
};

use inlay_engine::{
    CompactionLimits, Engine, Error, Event, Granularity, Limits, ManualClock, Metric, Namespace,
    Options, Query, Result, Rng as _, SeededRng, SimVfs,
    remote::{ObjectVfs, Objects as _, SimLog, SimObjects},
};

const DIRECTORIES: &[&str] = &["seg", "ids", "ckpt"];
const NOW_MS: i64 = 20_400 * 86_400_000;
const STEPS: usize = 60;
/// Ids of events come from so many, so that many are sent again.
const IDS: u64 = 60;

/// A process: its disk, its end of the log, and its store while it runs.
struct Process {
    disk: SimVfs,
    log: SimLog,
    engine: Option<Engine>,
    /// Its disk and the object store together, while it runs.
    vfs: Option<Arc<ObjectVfs>>,
}

struct World {
    rng: SeededRng,
    log: SimLog,
    objects: SimObjects,
    processes: Vec<Process>,
    leader: Option<usize>,
    /// Leaders that others took over from, still running.
    former: Vec<Engine>,
    /// Ids that were acknowledged, and those of which nothing is known.
    acknowledged: BTreeSet<u64>,
    doubtful: BTreeSet<u64>,
    /// Values of keys that were acknowledged, and those that may be there instead.
    keys: BTreeMap<u64, Vec<u64>>,
    written: u64,
    seen: BTreeMap<&'static str, usize>,
}

impl World {
    fn new(seed: u64) -> Self {
        let log = SimLog::default();
        let process =
            |_| Process { disk: SimVfs::new(), log: log.another(), engine: None, vfs: None };
        Self {
            rng: SeededRng::new(seed),
            processes: (0..3).map(process).collect(),
            log,
            objects: SimObjects::default(),
            leader: None,
            former: Vec::new(),
            acknowledged: BTreeSet::new(),
            doubtful: BTreeSet::new(),
            keys: BTreeMap::new(),
            written: 0,
            seen: BTreeMap::new(),
        }
    }

    fn below(&self, count: u64) -> u64 {
        self.rng.next_u64() % count
    }

    fn count(&mut self, what: &'static str) {
        *self.seen.entry(what).or_default() += 1;
    }

    fn options(&self) -> Options {
        let compaction = CompactionLimits {
            fan_in: 2,
            inputs_max: 4,
            segment_rows_max: 30,
            run_ids_max: 40,
            rollup_rows_min: 1,
            ..CompactionLimits::without_waiting()
        };
        Options {
            clock: Arc::new(ManualClock::new(NOW_MS)),
            rng: Arc::new(SeededRng::new(self.rng.next_u64())),
            limits: Limits { compaction, ..Limits::default() },
            background: false,
            ..Options::default()
        }
    }

    fn vfs(&self, disk: &SimVfs) -> Arc<ObjectVfs> {
        let objects = Arc::new(self.objects.clone());
        Arc::new(ObjectVfs::new(Arc::new(disk.clone()), objects, DIRECTORIES))
    }

    fn start_leader(&mut self, number: usize) -> Result<Engine> {
        let (vfs, log) = self.start(number);
        Engine::open_with_log(vfs, log, self.options())
    }

    fn start_follower(&mut self, number: usize) -> Result<Engine> {
        let (vfs, log) = self.start(number);
        Engine::open_follower(vfs, log, self.options())
    }

    fn start(&mut self, number: usize) -> (Arc<ObjectVfs>, Arc<SimLog>) {
        let vfs = self.vfs(&self.processes[number].disk);
        let process = &mut self.processes[number];
        process.vfs = Some(Arc::clone(&vfs));
        (vfs, Arc::new(process.log.clone()))
    }

    fn leader(&self) -> Option<&Engine> {
        self.processes[self.leader?].engine.as_ref()
    }

    /// A leader, which is started where there is none.
    fn ensure_leader(&mut self) {
        if self.leader.is_some() {
            return;
        }
        let number = self.below(3) as usize;
        match self.processes[number].engine.take() {
            Some(follower) => {
                // One that follows takes over. Where the log does not reach back to it, it is opened anew.
                match follower.lead() {
                    Ok(()) => {
                        self.processes[number].engine = Some(follower);
                        self.count("take-overs");
                    }
                    Err(error) => {
                        assert!(matches!(error, Error::Corrupt { .. }), "{error}");
                        drop(follower);
                        self.processes[number].engine = Some(self.start_leader(number).unwrap());
                        self.count("starts");
                    }
                }
            }
            None => {
                self.processes[number].engine = Some(self.start_leader(number).unwrap());
                self.count("starts");
            }
        }
        self.leader = Some(number);
    }

    fn send(&mut self) {
        let ids: Vec<u64> = (0..1 + self.below(6)).map(|_| self.below(IDS)).collect();
        let (key, value) = (self.below(5), self.written);
        self.written += 1;
        if self.below(8) == 0 {
            self.log.fail_append(self.below(2) == 0);
        }
        let Some(engine) = self.leader() else { return };
        let sent = send(engine, &ids, key, value);
        match sent {
            Ok(duplicates) => {
                let mut known = self.acknowledged.clone();
                for (id, is_duplicate) in ids.iter().zip(&duplicates) {
                    let is_known = !known.insert(*id);
                    let may_be_known = self.doubtful.contains(id);
                    assert!(
                        *is_duplicate == is_known || (may_be_known && *is_duplicate),
                        "{id} is a duplicate: {is_duplicate}, was acknowledged: {is_known}"
                    );
                }
                self.acknowledged.extend(&ids);
                if duplicates.contains(&false) {
                    self.keys.insert(key, vec![value]);
                }
                self.count("acknowledged");
            }
            Err(Error::Limit { .. }) => {
                self.doubtful.extend(&ids);
                self.keys.entry(key).or_insert_with(|| vec![u64::MAX]).push(value);
                self.count("in doubt");
            }
            Err(error) => panic!("a leader refuses: {error}"),
        }
    }

    /// Flushes or merges, with a fault of the object store now and then.
    fn work(&mut self) {
        let (calls, kind) = (self.below(6) as usize, self.below(8));
        match kind {
            0 => self.objects.fail_at(calls, ErrorKind::TimedOut),
            1 => self.objects.lose_answer_at(calls, ErrorKind::ConnectionReset),
            _ => {}
        }
        if self.below(8) == 0 {
            self.log.fail_append(self.below(2) == 0);
        }
        let merges = self.below(2) == 0;
        let Some(engine) = self.leader() else { return };
        let done = engine.flush().and_then(|()| match merges {
            true => engine.compact().map(drop),
            false => Ok(()),
        });
        self.count(if done.is_ok() { "flushes" } else { "flushes that failed" });
        let leader = self.leader.and_then(|number| self.processes[number].vfs.clone());
        if let Some(vfs) = leader.filter(|_| self.below(3) == 0) {
            let swept = vfs.sweep().unwrap_or(0);
            *self.seen.entry("objects swept").or_default() += swept;
        }
        self.objects.fail_at(usize::MAX, ErrorKind::TimedOut);
    }

    /// A process that follows shows, once it has applied the log, what the leader shows.
    fn follow(&mut self) {
        let number = self.below(3) as usize;
        if Some(number) == self.leader {
            return;
        }
        if self.below(4) == 0 {
            self.objects.fail_at(self.below(3) as usize, ErrorKind::TimedOut);
        }
        let followed = match &self.processes[number].engine {
            Some(engine) => engine.follow().map(drop),
            None => match self.start_follower(number) {
                Ok(engine) => {
                    self.processes[number].engine = Some(engine);
                    Ok(())
                }
                Err(error) => Err(error),
            },
        };
        self.objects.fail_at(usize::MAX, ErrorKind::TimedOut);
        match followed {
            Ok(()) => {}
            // The log was deleted up to where this one has not come: it is opened anew.
            Err(Error::Corrupt { .. }) => {
                self.processes[number].engine = None;
                self.count("reopened");
                return;
            }
            Err(_) => return self.count("rounds that failed"),
        }
        let Some(follower) = self.processes[number].engine.as_ref() else { return };
        let refused = send(follower, &[1], 0, 0);
        assert!(matches!(refused, Err(Error::Elsewhere)), "{refused:?}");
        assert!(follower.flush().is_err());
        if let Some(leader) = self.leader().filter(|leader| leader.stats().lsn == self.log.last()) {
            assert_eq!(shown(follower), shown(leader));
            self.count("compared");
        }
    }

    /// Another process leads, and the one before goes on running.
    fn take_over(&mut self) {
        let Some(before) = self.leader.take() else { return };
        let old = self.processes[before].engine.take().unwrap();
        // It has a disk of its own, as all processes have: the next process there starts with an empty one.
        self.processes[before].disk = SimVfs::new();
        self.processes[before].log = self.log.another();
        // A group of which the old one knows nothing may never come; its writers were told so.
        self.former.push(old);
        self.ensure_leader();
    }

    /// A former leader goes on. Whatever it does is refused, and changes nothing.
    fn wake_up(&mut self) {
        let Some(engine) = self.former.pop() else { return };
        let before = (self.log.last(), self.log.groups());
        let has_rows = engine.stats().memtable_rows > 0;
        match self.below(3) {
            0 => assert!(send(&engine, &[IDS + 1], 9, 9).is_err()),
            1 => assert!(engine.flush().is_err() || !has_rows),
            // It may have nothing to do.
            _ => drop(engine.compact()),
        }
        assert_eq!((self.log.last(), self.log.groups()), before);
        self.count("woken up");
        if self.below(2) == 0 {
            self.former.push(engine);
        }
    }

    fn lose(&mut self) {
        let number = self.below(3) as usize;
        if self.leader == Some(number) {
            self.leader = None;
        }
        self.processes[number].engine = None;
        self.processes[number].log = self.log.another();
        if self.below(2) == 0 {
            self.processes[number].disk = SimVfs::new();
        }
        self.count("ended");
    }

    /// What a process shows that starts on an empty disk.
    fn check(&mut self) {
        self.processes.iter_mut().for_each(|process| process.engine = None);
        self.leader = None;
        self.processes[0].disk = SimVfs::new();
        self.processes[0].log = self.log.another();
        let engine = self.start_leader(0).unwrap();
        for id in &self.acknowledged {
            let again = send(&engine, &[*id], 20, 0).unwrap();
            assert_eq!(again, [true], "{id} was acknowledged");
        }
        let rows = rows(&engine);
        let (least, most) =
            (self.acknowledged.len(), self.acknowledged.union(&self.doubtful).count());
        assert!((least..=most).contains(&rows), "{rows} rows of {least} to {most}");
        for (key, values) in &self.keys {
            let value = engine
                .keys()
                .find(format!("k{key}").as_bytes())
                .map(|value| u64::from_le_bytes(value[..].try_into().unwrap()));
            let possible = values.contains(&value.unwrap_or(u64::MAX));
            assert!(possible, "key {key} is {value:?} instead of one of {values:?}");
        }
    }
}

/// A leader with so many segments of two events each: ids 0 and 1, 2 and 3, and so on.
fn leader_with(world: &mut World, segments: u64) -> Engine {
    let engine = world.start_leader(0).unwrap();
    for number in 0..segments {
        send(&engine, &[number * 2, number * 2 + 1], number, number).unwrap();
        engine.flush().unwrap();
    }
    engine
}

/// Stores events with these ids, and a key with them. Whether each was a duplicate.
fn send(engine: &Engine, ids: &[u64], key: u64, value: u64) -> Result<Vec<bool>> {
    let mut batch = engine.batch(Namespace(1));
    for id in ids {
        let (text, user) = (format!("id {id}"), format!("user {}", id % 7));
        let event = Event {
            tenant: if id % 2 == 0 { "acme" } else { "bolt" },
            name: "call",
            timestamp_ms: NOW_MS - (*id as i64) * 3_600_000,
            event_id: Some(&text),
            user_id: Some(&user),
        };
        batch.push(
            &event,
            &[("plan", if id % 3 == 0 { "free" } else { "pro" })],
            &[("ms", *id as f64)],
        )?;
    }
    let ingested = engine.ingest(batch, |txn, _| {
        txn.put(format!("k{key}").as_bytes(), &value.to_le_bytes());
        Ok::<_, Error>(())
    })?;
    Ok(ingested.duplicates)
}

fn rows(engine: &Engine) -> usize {
    let stats = engine.stats();
    stats.segment_rows as usize + stats.memtable_rows
}

/// All that two processes must agree on: the last record, rows, keys, and answers.
#[expect(clippy::type_complexity, reason = "compared as a whole")]
fn shown(engine: &Engine) -> (u64, usize, Vec<(Vec<u8>, Vec<u8>)>, Vec<String>) {
    let reader = engine.keys();
    let keys = reader.scan(b"").into_iter().map(|(key, value)| (key.to_vec(), value.to_vec()));
    let keys = keys.collect();
    let answers = ["acme", "bolt"].iter().flat_map(|tenant| {
        [Metric::Count, Metric::Distinct].map(|metric| {
            let window = NOW_MS - 100 * 3_600_000..NOW_MS + 1;
            let query = Query {
                tenant: Some((*tenant).to_owned()),
                metric,
                group_by: Some("plan".to_owned()),
                granularity: Some(Granularity::Day),
                ..Query::count(Namespace(1), "call", window)
            };
            let answer = engine.query(&query, &|| false);
            format!("{:?}", answer.map(|answer| (answer.groups, answer.values)))
        })
    });
    (engine.stats().lsn, rows(engine), keys, answers.collect())
}

fn history(seed: u64) -> BTreeMap<&'static str, usize> {
    let mut world = World::new(seed);
    for _ in 0..STEPS {
        world.ensure_leader();
        match world.below(20) {
            0..7 => world.send(),
            7..11 => world.work(),
            11..15 => world.follow(),
            15..17 => world.take_over(),
            17..19 => world.wake_up(),
            _ => world.lose(),
        }
    }
    world.check();
    world.seen
}

#[test]
fn processes_on_one_log_agree_and_lose_nothing() {
    let seeds = std::env::var("INLAY_SIM_SEEDS").ok().and_then(|count| count.parse().ok());
    let mut seen: BTreeMap<&str, usize> = BTreeMap::new();
    for seed in 0..seeds.unwrap_or(100) {
        let done = std::panic::catch_unwind(|| history(seed));
        let Ok(done) = done else { panic!("seed {seed}") };
        for (what, count) in done {
            *seen.entry(what).or_default() += count;
        }
    }
    eprintln!("{seen:?}");
    for what in [
        "acknowledged",
        "in doubt",
        "take-overs",
        "woken up",
        "compared",
        "reopened",
        "flushes that failed",
        "objects swept",
    ] {
        assert!(seen.get(what).is_some_and(|count| *count > 0), "{what} is missing in {seen:?}");
    }
}

#[test]
fn a_log_that_lost_its_newest_records_still_finds_its_files() {
    let mut world = World::new(1);
    let engine = leader_with(&mut world, 2);
    let (standby, objects) = (world.log.standby(), world.objects.list("seg/").unwrap());
    // Behind its back the segments are merged to one, which a checkpoint names.
    engine.compact().unwrap();
    send(&engine, &[7], 7, 7).unwrap();
    engine.flush().unwrap();
    let open = |log: &SimLog| {
        let vfs = world.vfs(&SimVfs::new());
        Engine::open_with_log(vfs, Arc::new(log.another()), world.options())
    };
    assert_eq!(rows(&open(&standby.standby()).unwrap()), 4);
    // In time, the objects that only the lost past needs are deleted.
    let vfs = world.processes[0].vfs.as_ref().unwrap();
    vfs.sweep().unwrap();
    assert!(vfs.sweep().unwrap() > 0);
    assert!(objects.iter().all(|name| !world.objects.list("seg/").unwrap().contains(name)));
    let refused = open(&standby).err();
    let text = refused.map(|error| error.to_string()).unwrap_or_default();
    assert!(objects.iter().any(|name| text.contains(name)), "it names what is missing: {text}");
    assert_eq!(rows(&open(&world.log).unwrap()), 5);
}

#[test]
fn a_damaged_copy_is_fetched_again() {
    let mut world = World::new(1);
    let engine = leader_with(&mut world, 2);
    drop(engine);
    let right = shown(&world.start_follower(1).unwrap());
    for leads in [true, false] {
        // Each byte of a segment at a time, where a start does not read it.
        let disk = world.processes[1].disk.clone();
        let (path, content) =
            disk.files().into_iter().find(|(path, _)| path.ends_with(".seg")).unwrap();
        let mut found = 0;
        for at in (8..content.len()).step_by(5) {
            let mut damaged = content.clone();
            damaged[at] ^= 16;
            disk.set_file(&path, Some(damaged));
            let engine = if leads { world.start_leader(1) } else { world.start_follower(1) };
            let engine = engine.unwrap();
            if shown(&engine).3 != right.3 {
                found += 1;
                assert!(engine.has_damage(), "byte {at}");
                assert_eq!(engine.replace_damaged().unwrap(), 1);
            }
            assert!(!engine.has_damage());
            assert_eq!(shown(&engine).3, right.3, "byte {at}");
        }
        assert!(found > 5, "{found}");
        disk.set_file(&path, Some(content));
    }
}

#[test]
fn checkpoints_that_are_lost_are_written_anew() {
    let mut world = World::new(1);
    let engine = leader_with(&mut world, 4);
    assert!(world.log.forgotten() > 0, "the log alone does not do");
    let checkpoints = || world.objects.list("ckpt/").unwrap();
    for name in checkpoints() {
        world.objects.remove(&name).unwrap();
    }
    let open = || {
        let vfs = world.vfs(&SimVfs::new());
        Engine::open_follower(vfs, Arc::new(world.log.another()), world.options())
    };
    assert!(open().is_err());
    engine.replace_checkpoints().unwrap();
    let needed = engine.files();
    assert!(checkpoints().len() == 2 && checkpoints().iter().all(|name| needed.contains(name)));
    assert_eq!(shown(&open().unwrap()), shown(&engine));
}

#[test]
fn a_directory_that_is_deleted_while_it_is_used_is_made_again() {
    let mut world = World::new(1);
    let engine = world.start_leader(0).unwrap();
    let follower = world.start_follower(1).unwrap();
    let vfs = world.processes[0].vfs.clone().unwrap();
    for round in 0..3 {
        for disk in [&world.processes[0].disk, &world.processes[1].disk] {
            disk.files().keys().for_each(|path| disk.set_file(path, None));
        }
        send(&engine, &[round * 2, round * 2 + 1], round, round).unwrap();
        engine.flush().unwrap();
        engine.compact().unwrap();
        follower.follow().unwrap();
        assert_eq!(shown(&follower), shown(&engine));
    }
    vfs.probe_disk().unwrap();
    assert!(!world.processes[0].disk.files().keys().any(|path| path.contains("probe")));
}
