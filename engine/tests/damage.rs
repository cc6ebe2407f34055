//! Flipped bits anywhere in a data directory: the right answer or an error, never another answer.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::sync::Arc;

use inlay_engine::*;

fn open(disk: &SimVfs) -> Result<Engine> {
    let options =
        Options { rng: Arc::new(SeededRng::new(3)), background: false, ..Options::default() };
    // Rollups of few rows too, in segments that are merged as soon as they can be.
    let compaction = CompactionLimits { rollup_rows_min: 1, ..CompactionLimits::without_waiting() };
    let limits = Limits { log_file_bytes: 16_384, compaction, ..options.limits };
    Engine::open(Arc::new(disk.clone()), Options { limits, ..options })
}

fn fill(engine: &Engine, from: u32, to: u32) {
    for first in (from..to).step_by(50) {
        let mut batch = engine.batch(Namespace(1));
        for n in first..first + 50 {
            let (id, user, model) =
                (format!("e{n}"), format!("u{}", n % 13), format!("m{}", n % 3));
            let event = Event {
                tenant: "acme",
                name: "call",
                timestamp_ms: 1_700_000_000_000 + i64::from(n) * 977_000,
                event_id: Some(&id),
                user_id: Some(&user),
            };
            batch.push(&event, &[("model", &model)], &[("ms", f64::from(n) / 8.0)]).unwrap();
        }
        engine
            .ingest(batch, |txn, ingested| {
                txn.put(format!("batch/{first}").as_bytes(), &ingested.new.to_le_bytes());
                Ok::<_, Error>(())
            })
            .unwrap();
    }
}

/// Everything that a reader can see, or the first error.
fn look(engine: &Engine) -> Result<String> {
    let mut seen = String::new();
    for metric in [Metric::Count, Metric::Distinct, Metric::Sum, Metric::Percentile(95)] {
        for (group_by, texts) in [
            (None, vec![]),
            (Some("model".to_owned()), vec![]),
            (None, vec![TextFilter { name: "model".into(), any_of: vec!["m1".into()] }]),
        ] {
            let query = Query {
                tenant: Some("acme".into()),
                metric,
                number: Some("ms".into()),
                granularity: Some(Granularity::Month),
                group_by,
                texts,
                groups_max: 10,
                ..Query::count(Namespace(1), "call", 1_699_999_000_123..1_800_000_000_000)
            };
            let answer = engine.query(&query, &|| false)?;
            seen += &format!("{:?}{:?}", answer.groups, answer.values);
        }
    }
    Ok(seen + &format!("{:?}", engine.keys().scan(b"")))
}

struct Prepared {
    disk: SimVfs,
    /// What a reader sees.
    right: String,
    /// What a reader sees without the last group of the log.
    without_last: String,
}

fn prepared() -> Prepared {
    let disk = SimVfs::new();
    let engine = open(&disk).unwrap();
    fill(&engine, 0, 200);
    engine.flush().unwrap();
    engine.compact().unwrap();
    fill(&engine, 200, 300);
    engine.flush().unwrap();
    fill(&engine, 300, 350);
    let without_last = look(&engine).unwrap();
    fill(&engine, 350, 400);
    let right = look(&engine).unwrap();
    let by_model = Query {
        tenant: Some("acme".into()),
        group_by: Some("model".into()),
        ..Query::count(Namespace(1), "call", 1_699_999_000_123..1_800_000_000_000)
    };
    let answer = engine.query(&by_model, &|| false).unwrap();
    assert!(answer.rollup.is_some(), "rollups are among what is damaged");
    drop(engine);
    Prepared { disk: disk.after_kill(), right, without_last }
}

#[test]
fn a_flipped_bit_gives_the_right_answer_or_an_error() {
    let Prepared { disk, right, without_last } = prepared();
    let step =
        std::env::var("INLAY_FLIP_STEP").ok().and_then(|text| text.parse().ok()).unwrap_or(23);
    let (mut errors, mut same, mut cut) = (0u32, 0u32, 0u32);
    for (path, bytes) in disk.files() {
        let used = bytes.iter().rposition(|&byte| byte != 0).map_or(0, |at| at + 1);
        let last_log = path.starts_with("wal/")
            && disk
                .files()
                .range(path.clone()..)
                .filter(|(other, _)| other.starts_with("wal/"))
                .count()
                == 1;
        for at in (0..used).step_by(step) {
            let mut damaged = bytes.clone();
            damaged[at] ^= 1 << (at % 8);
            let copy = disk.after_kill();
            copy.set_file(&path, Some(damaged));
            match open(&copy).and_then(|engine| look(&engine)) {
                Err(Error::Corrupt { .. } | Error::Invalid { .. }) => errors += 1,
                Err(other) => panic!("{path} byte {at}: {other}"),
                Ok(seen) if seen == right => same += 1,
                // The last group of the log cannot be told from a torn write: it is cut whole.
                Ok(seen) if last_log => {
                    assert_eq!(
                        seen, without_last,
                        "{path} byte {at}: something else than the last group is missing"
                    );
                    cut += 1;
                }
                Ok(_) => panic!("{path} byte {at}: another answer"),
            }
        }
    }
    assert!(errors > 300 && same > 0 && cut > 0, "{errors} errors, {same} unharmed, {cut} cut");
}

#[test]
fn swapped_stale_and_missing_files_are_refused() {
    let Prepared { disk, .. } = prepared();
    let segments: Vec<(String, Vec<u8>)> =
        disk.files().into_iter().filter(|(path, _)| path.ends_with(".seg")).collect();
    let [(first, one), (second, two), ..] = &segments[..] else {
        panic!("{} segments", segments.len())
    };
    for (path, content) in [(first, Some(two)), (second, Some(one)), (first, None)] {
        let copy = disk.after_kill();
        copy.set_file(path, content.cloned());
        let error = open(&copy).map(|_| ()).unwrap_err();
        assert!(error.to_string().contains(path.as_str()), "{error}");
    }
}

#[test]
fn both_superblocks_lost_is_refused_not_guessed() {
    let Prepared { disk, .. } = prepared();
    disk.set_file("SUPER.a", None);
    disk.set_file("SUPER.b", None);
    let error = open(&disk).map(|_| ()).unwrap_err();
    assert!(error.to_string().contains("SUPER.a"), "{error}");
}

#[test]
fn a_second_process_is_refused() {
    let disk = SimVfs::new();
    let engine = open(&disk).unwrap();
    let error = open(&disk).map(|_| ()).unwrap_err();
    assert!(error.to_string().contains("another process"), "{error}");
    drop(engine);
    assert!(open(&disk).is_ok());
}

#[test]
fn a_real_directory_behaves_as_the_simulated_one() {
    let directory = tempfile::tempdir().unwrap();
    let open = || Engine::open_directory(directory.path(), Options::default());
    let engine = open().unwrap();
    assert!(open().map(|_| ()).unwrap_err().to_string().contains("another process"));
    fill(&engine, 0, 200);
    engine.flush().unwrap();
    fill(&engine, 200, 300);
    let seen = look(&engine).unwrap();
    engine.close().unwrap();
    assert!(
        engine
            .transact(|txn| {
                txn.put(b"k", b"v");
                Ok::<_, Error>(())
            })
            .is_err(),
        "closed"
    );
    drop(engine);
    let engine = open().unwrap();
    assert_eq!(look(&engine).unwrap(), seen);
    fill(&engine, 100, 300);
    assert_eq!(
        look(&engine).unwrap().split("batch").next(),
        seen.split("batch").next(),
        "all were known"
    );
}
