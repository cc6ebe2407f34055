//! A data directory with one of everything, and what its readers must see whatever happens to it.

use std::{collections::BTreeMap, num::NonZero, ops::AddAssign, sync::Arc, thread};

use inlay_engine::*;

/// Two customers of one organisation, in shared segments.
const TENANTS: [&str; 2] = ["acme", "zeta"];
/// Groups that the last log file begins with: any of them may be cut.
const LAST_GROUPS: u32 = 4;
const GROUP_EVENTS: u32 = 50;
/// Of a directory that is quickly damaged all over.
pub const EVENTS: u32 = 600;

/// A number from the environment.
pub fn variable(name: &str) -> Option<usize> {
    std::env::var(name).ok().and_then(|text| text.parse().ok())
}

/// A store whose segments are merged as soon as they can be, with rollups of few rows too.
pub fn open(disk: &SimVfs) -> Result<Engine> {
    let options =
        Options { rng: Arc::new(SeededRng::new(3)), background: false, ..Options::default() };
    let compaction = CompactionLimits { rollup_rows_min: 1, ..CompactionLimits::without_waiting() };
    let limits = Limits { log_file_bytes: 16_384, compaction, ..options.limits };
    Engine::open(Arc::new(disk.clone()), Options { limits, ..options })
}

/// Sends the events of these numbers, in groups.
pub fn fill(engine: &Engine, from: u32, to: u32) {
    for first in (from..to).step_by(GROUP_EVENTS as usize) {
        let mut batch = engine.batch(Namespace(1));
        for n in first..first + GROUP_EVENTS {
            let (id, user, model) = (format!("e{n}"), format!("u{}", n % 5), format!("m{}", n % 3));
            let event = Event {
                tenant: TENANTS[usize::from(n % 5 < 2)],
                name: "call",
                timestamp_ms: 1_700_000_000_000 + i64::from(n % 4_000) * 150_000,
                event_id: Some(&id),
                user_id: Some(&user),
            };
            let note = format!("note {}", n.wrapping_mul(2_654_435_761));
            let texts = [("model", model.as_str()), ("note", note.as_str())];
            batch.push(&event, &texts, &[("ms", f64::from(n) / 8.0)]).unwrap();
        }
        engine
            .ingest(batch, |txn, ingested| {
                txn.put(format!("batch/{first}").as_bytes(), &ingested.new.to_le_bytes());
                Ok::<_, Error>(())
            })
            .unwrap();
    }
}

/// Questions that between them read every kind of stored value: of each tenant and of all, from
/// sketches, rollups and rows.
fn questions() -> Vec<Query> {
    let window = 1_699_999_000_123..1_800_000_000_000;
    let mut all = Vec::new();
    let tenants = TENANTS.iter().map(|tenant| Some((*tenant).to_owned())).chain([None]);
    for tenant in tenants {
        for metric in [
            Metric::Count,
            Metric::Distinct,
            Metric::DistinctApprox,
            Metric::Sum,
            Metric::Percentile(95),
            Metric::PercentileApprox(95),
        ] {
            for (group_by, filter) in [
                (None, None),
                (Some("model".to_owned()), None),
                (None, Some(("model", "m1"))),
                (None, Some(("note", "note 2654435761"))),
            ] {
                let of = |(name, value): (&str, &str)| TextFilter {
                    name: name.into(),
                    any_of: vec![value.into()],
                };
                all.push(Query {
                    tenant: tenant.clone(),
                    metric,
                    number: Some("ms".into()),
                    granularity: Some(Granularity::Month),
                    group_by,
                    texts: filter.map(of).into_iter().collect(),
                    groups_max: 10,
                    ..Query::count(Namespace(1), "call", window.clone())
                });
            }
        }
    }
    all
}

/// Everything that a reader can see, or the first error.
pub fn look(engine: &Engine) -> Result<String> {
    let mut seen = String::new();
    for query in questions() {
        let answer = engine.query(&query, &|| false)?;
        seen += &format!("{:?}{:?}", answer.groups, answer.values);
    }
    Ok(seen + &format!("{:?}", engine.keys().scan(b"")))
}

/// The directory, and what it shows.
pub struct Prepared {
    pub disk: SimVfs,
    pub files: BTreeMap<String, Vec<u8>>,
    /// Files that it had earlier.
    pub past: BTreeMap<String, Vec<u8>>,
    /// What a reader sees; and what without the last group of the log, the last two, and so on.
    right: Vec<String>,
    last_log: String,
}

/// What came of damages.
#[derive(Debug, Default, Clone, Copy)]
pub struct Seen {
    pub errors: u32,
    pub same: u32,
    pub cut: u32,
}

impl AddAssign for Seen {
    fn add_assign(&mut self, other: Self) {
        self.errors += other.errors;
        self.same += other.same;
        self.cut += other.cut;
    }
}

impl Prepared {
    /// Merged and sealed days, a fresh segment, checkpoints and a log, of so many events.
    pub fn new(events: u32) -> Self {
        let disk = SimVfs::new();
        let engine = open(&disk).unwrap();
        let merged = events / 2 / GROUP_EVENTS * GROUP_EVENTS;
        let in_log = events - LAST_GROUPS * GROUP_EVENTS;
        assert!(merged < in_log, "some are in a fresh segment");
        fill(&engine, 0, merged);
        engine.flush().unwrap();
        let past = disk.files();
        engine.compact().unwrap();
        fill(&engine, merged, in_log);
        engine.flush().unwrap();
        let mut right = vec![look(&engine).unwrap()];
        for group in 0..LAST_GROUPS {
            let first = in_log + group * GROUP_EVENTS;
            fill(&engine, first, first + GROUP_EVENTS);
            right.insert(0, look(&engine).unwrap());
        }
        for (metric, group_by) in
            [(Metric::Count, Some("model".to_owned())), (Metric::DistinctApprox, None)]
        {
            let window = 1_699_999_000_123..1_800_000_000_000;
            let query = Query { metric, group_by, ..Query::count(Namespace(1), "call", window) };
            let answer = engine.query(&query, &|| false).unwrap();
            assert!(answer.rollup.is_some(), "rollups of {metric:?} are among what is damaged");
        }
        drop(engine);
        let disk = disk.after_kill();
        let files = disk.files();
        let logs = files.keys().filter(|path| path.starts_with("wal/"));
        let last_log = logs.max().unwrap().clone();
        Self { disk, files, past, right, last_log }
    }

    /// Does each damage to a copy, on all cores: it must give the right answers, an error that names
    /// the damage, or where it lies at the end of the log the groups before it.
    pub fn damage_each(
        &self,
        places: &[usize],
        damage: impl Fn(usize) -> (String, Vec<(String, Vec<u8>)>) + Sync,
    ) -> Seen {
        let cores = thread::available_parallelism().map_or(1, NonZero::get);
        let mut seen = Seen::default();
        thread::scope(|scope| {
            let works: Vec<_> = (0..cores)
                .map(|core| {
                    let damage = &damage;
                    scope.spawn(move || {
                        let mut seen = Seen::default();
                        for &place in places.iter().skip(core).step_by(cores) {
                            let (what, files) = damage(place);
                            self.judge(&what, files, &mut seen);
                        }
                        seen
                    })
                })
                .collect();
            for work in works {
                seen += work.join().expect("every damage is answered as it must be");
            }
        });
        seen
    }

    fn judge(&self, what: &str, files: Vec<(String, Vec<u8>)>, seen: &mut Seen) {
        let in_last_log = files.iter().any(|(path, _)| *path == self.last_log);
        let copy = self.disk.after_kill();
        for (path, content) in files {
            copy.set_file(&path, Some(content));
        }
        match open(&copy).and_then(|engine| look(&engine)) {
            Err(Error::Corrupt { .. } | Error::Invalid { .. }) => seen.errors += 1,
            Err(other) => panic!("{what}: {other}"),
            Ok(shown) if shown == self.right[0] => seen.same += 1,
            // The last groups of the log cannot be told from a torn write: they are cut whole.
            Ok(shown) if in_last_log => {
                assert!(self.right.contains(&shown), "{what}: something else is missing");
                seen.cut += 1;
            }
            Ok(_) => panic!("{what}: another answer"),
        }
    }
}
