//! A store whose content is known, and the program that looks into it.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
    process::Command,
    sync::Arc,
};

use inlay_engine::*;
use serde_json::Value;
use tempfile::TempDir;

const DAY_MS: i64 = 86_400_000;
/// Midnight of 2024-10-04.
const TODAY_MS: i64 = 20_000 * DAY_MS;
pub const DAYS: i64 = 4;
pub const EVENTS_A_DAY: usize = 500;
/// Events that stay in the log.
pub const WAITING: usize = 70;
/// Events that segments hold.
pub const IN_SEGMENTS: usize = EVENTS_A_DAY * DAYS as usize + 200;

/// A data directory that goes away with its test.
pub struct Store(pub TempDir);

/// What the program said.
pub struct Said {
    pub code: i32,
    pub out: String,
    pub err: String,
}

impl Said {
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.out)
            .unwrap_or_else(|error| panic!("{error}: {}{}", self.out, self.err))
    }
}

impl Store {
    /// Four days in sealed segments of a day each, one fresh segment, and events in the log.
    pub fn new() -> Self {
        let store = Self(tempfile::tempdir().unwrap());
        let engine = store.open();
        for day in 0..DAYS {
            ingest(&engine, 1, DAYS - day, day as usize * EVENTS_A_DAY, EVENTS_A_DAY);
        }
        engine.flush().unwrap();
        engine.compact().unwrap();
        ingest(&engine, 2, 0, 10_000, 200);
        engine.flush().unwrap();
        engine
            .transact(|txn| {
                txn.put(b"orgs/acme", b"{\"name\":\"Acme\"}");
                txn.put(b"orgs/zeta", &[0, 255]);
                Ok::<_, Error>(())
            })
            .unwrap();
        ingest(&engine, 1, 0, 20_000, WAITING);
        drop(engine);
        store
    }

    pub fn open(&self) -> Engine {
        let compaction =
            CompactionLimits { rollup_rows_min: 200, ..CompactionLimits::without_waiting() };
        let options = Options {
            clock: Arc::new(ManualClock::new(TODAY_MS + DAY_MS / 2)),
            rng: Arc::new(SeededRng::new(7)),
            limits: Limits { compaction, log_file_bytes: 256 << 10, ..Limits::default() },
            background: false,
            ..Options::default()
        };
        Engine::open_directory(self.0.path(), options).unwrap()
    }

    pub fn inspect(&self, arguments: &[&str]) -> Said {
        inspect(self.0.path(), arguments)
    }

    /// Paths of the files below a directory, in order.
    pub fn files(&self, below: &str) -> Vec<PathBuf> {
        let mut found = Vec::new();
        collect(&self.0.path().join(below), &mut found);
        found.sort();
        found
    }

    pub fn contents(&self) -> BTreeMap<PathBuf, Vec<u8>> {
        self.files("").into_iter().map(|path| (path.clone(), fs::read(path).unwrap())).collect()
    }
}

fn collect(directory: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() { collect(&path, found) } else { found.push(path) }
    }
}

pub fn ingest(engine: &Engine, namespace: u32, days_ago: i64, first: usize, count: usize) {
    let mut batch = engine.batch(Namespace(namespace));
    for n in first..first + count {
        let (id, user) = (format!("id-{n}"), format!("user-{}", n % 20));
        let event = Event {
            tenant: if n % 2 == 0 { "acme" } else { "zeta" },
            name: "call",
            timestamp_ms: TODAY_MS - days_ago * DAY_MS + (n - first) as i64 * 60_000,
            event_id: Some(&id),
            user_id: Some(&user),
        };
        let model = format!("model-{}", n % 3);
        // Rare enough for a bitmap.
        let status = if n % EVENTS_A_DAY == 7 { "error" } else { "ok" };
        let texts = [("model", &*model), ("status", status)];
        batch.push(&event, &texts, &[("ms", n as f64 / 4.0)]).unwrap();
    }
    assert_eq!(engine.ingest(batch, |_, _| Ok::<_, Error>(())).unwrap().new as usize, count);
}

pub fn inspect(directory: &Path, arguments: &[&str]) -> Said {
    let output = Command::new(env!("CARGO_BIN_EXE_inlay-inspect"))
        .env("INLAY_DATA_DIR", directory)
        .args(arguments)
        .output()
        .unwrap();
    let said = Said {
        code: output.status.code().unwrap(),
        out: String::from_utf8(output.stdout).unwrap(),
        err: String::from_utf8(output.stderr).unwrap(),
    };
    assert!(!said.err.contains("panicked"), "{arguments:?}: {}", said.err);
    assert!(said.code <= 2, "{arguments:?}: exit code {}", said.code);
    said
}

/// Every command, with a segment where one is asked for.
pub fn all_commands(segment: &str) -> Vec<Vec<&str>> {
    vec![
        vec![],
        vec!["summary"],
        vec!["segments"],
        vec!["columns"],
        vec!["segment", segment, "--blocks", "--series", "--rollups"],
        vec!["ids"],
        vec!["log"],
        vec!["keys", "--values"],
        vec!["verify"],
    ]
}
