//! Files of released format versions, opened by this build.
//!
//! `testdata/golden/v1` was made by `make.rs` when format 1 was frozen, and is never edited. Here it is opened, asked,
//! verified and written to; and what a later format would change is tried on a copy.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod make;

use std::{collections::BTreeMap, path::PathBuf, sync::Arc};

use inlay_engine::*;

const DAY_MS: i64 = 86_400_000;
/// The last moment of the history: noon of day 20,400.
const NOW_MS: i64 = 20_400 * DAY_MS + DAY_MS / 2;

fn directory() -> PathBuf {
    PathBuf::from("testdata/golden/v1")
}

fn limits() -> Limits {
    // Days stay apart, for each has other encodings; `weeks` has a segment of several.
    let compaction = CompactionLimits {
        fan_in: 2,
        rollup_rows_min: 16,
        span_days_max: 1,
        ..CompactionLimits::without_waiting()
    };
    Limits { compaction, log_file_bytes: 8_192, ..Limits::default() }
}

fn options() -> Options {
    Options {
        clock: Arc::new(ManualClock::new(NOW_MS)),
        rng: Arc::new(SeededRng::new(3)),
        limits: limits(),
        background: false,
        ..Options::default()
    }
}

fn open(disk: &SimVfs) -> Result<Engine> {
    Engine::open(Arc::new(disk.clone()), options())
}

/// A copy of the golden files below `part`.
fn golden(part: &str) -> SimVfs {
    let disk = SimVfs::new();
    let source = OsVfs::existing(directory());
    copy(&source, part, part, &disk);
    disk
}

fn copy(source: &OsVfs, root: &str, directory: &str, target: &SimVfs) {
    let below = |name: &str| format!("{directory}/{name}");
    for name in source.list(directory).unwrap() {
        let path = below(&name);
        let bytes = source.map(&path).unwrap().to_vec();
        target.set_file(path.strip_prefix(&format!("{root}/")).unwrap(), Some(bytes));
    }
    for name in source.list_dirs(directory).unwrap() {
        copy(source, root, &below(&name), target);
    }
}

fn expected() -> String {
    expected_of("answers.txt")
}

fn expected_of(file: &str) -> String {
    let source = OsVfs::existing(directory());
    String::from_utf8(source.map(file).unwrap().to_vec()).unwrap()
}

/// What a caller can see of the history, a line each.
fn answers(engine: &Engine) -> String {
    let mut out = String::new();
    let mut say = |line: String| out += &format!("{line}\n");
    for namespace in [1, 2, 3, 4, 9] {
        for (event, number) in
            [("call", "ms"), ("refund", "cost"), ("tick", "none"), ("pulse", "ms")]
        {
            for (metric, number, granularity, group_by, texts) in questions(number) {
                let query = Query {
                    tenant: (event == "refund").then(|| "acme".to_owned()),
                    metric,
                    number: Some(number.to_owned()),
                    granularity,
                    group_by: group_by.map(str::to_owned),
                    texts,
                    groups_max: 5,
                    ..Query::count(
                        Namespace(namespace),
                        event,
                        NOW_MS - 10 * DAY_MS + 1_234..NOW_MS + DAY_MS,
                    )
                };
                let answer = engine.query(&query, &|| false).unwrap();
                let groups: Vec<_> = answer.groups.iter().map(|group| group.as_deref()).collect();
                let filter: Vec<_> = query.texts.iter().map(|text| &*text.any_of[0]).collect();
                say(format!(
                    "{namespace} {event} {metric:?} {number} by {:?} {:?} where {filter:?}: {groups:?} {:?}",
                    query.granularity, query.group_by, answer.values
                ));
            }
        }
    }
    for (key, value) in engine.keys().scan(b"") {
        say(format!("key {}: {}", key.escape_ascii(), value.escape_ascii()));
    }
    for erasure in engine.erasures().unwrap() {
        say(format!("{erasure:?}"));
    }
    for namespace in [1, 2, 9] {
        say(format!("horizon {namespace}: {}", engine.horizon_ms(Namespace(namespace))));
    }
    out
}

type Question = (Metric, &'static str, Option<Granularity>, Option<&'static str>, Vec<TextFilter>);

fn questions(number: &'static str) -> Vec<Question> {
    let only = |name: &str, value: &str| {
        vec![TextFilter { name: name.to_owned(), any_of: vec![value.to_owned()] }]
    };
    let day = Some(Granularity::Day);
    vec![
        (Metric::Count, number, day, None, vec![]),
        (Metric::Count, number, None, Some("path"), vec![]),
        (Metric::Count, number, None, Some("plan"), only("model", "rare")),
        (Metric::Distinct, number, day, None, vec![]),
        (Metric::Sum, number, None, Some("model"), vec![]),
        (Metric::Sum, "fixed", None, None, vec![]),
        (Metric::Min, "cents", None, None, vec![]),
        (Metric::Avg, "tokens", None, None, only("path", "/v1/items/7")),
        (Metric::Percentile(90), "score", None, None, vec![]),
        (Metric::Max, "cost", day, None, vec![]),
        // Of all tenants these come from sketches and digests.
        (Metric::DistinctApprox, number, None, None, vec![]),
        (Metric::PercentileApprox(95), number, day, None, vec![]),
    ]
}

/// Events that the history has, and events of a namespace that it has not.
fn write_more(engine: &Engine) {
    fn event(id: &str) -> Event<'_> {
        Event {
            tenant: "acme",
            name: "call",
            timestamp_ms: NOW_MS,
            event_id: Some(id),
            user_id: Some("user-1"),
        }
    }
    let mut known = engine.batch(Namespace(1));
    for id in ["order-1003", "order-1101", "order-1149", "3c6ef372-fe94-f82a-0000-000000000007"] {
        known.push(&event(id), &[("model", "large")], &[("ms", 1.0)]).unwrap();
    }
    assert_eq!(engine.ingest(known, |_, _| Ok::<_, Error>(())).unwrap().new, 0, "ids are known");
    let mut new = engine.batch(Namespace(77));
    for n in 0..50 {
        let id = format!("new-{n}");
        new.push(&event(&id), &[("model", "large")], &[("ms", 1.0)]).unwrap();
    }
    assert_eq!(engine.ingest(new, |_, _| Ok::<_, Error>(())).unwrap().new, 50);
}

/// CRC-32 of all files of format 1, each with its path. It never changes: a new format has a directory and a checksum of its own.
const CHECKSUM_OF_V1: u32 = 1_645_296_809;

fn checksum(source: &OsVfs, directory: &str, hasher: &mut crc32fast::Hasher) {
    let below = |name: &String| {
        if directory.is_empty() { name.clone() } else { format!("{directory}/{name}") }
    };
    let sorted = |mut names: Vec<String>| {
        names.sort();
        names
    };
    for path in sorted(source.list(directory).unwrap()).iter().map(below) {
        hasher.update(path.as_bytes());
        hasher.update(&source.map(&path).unwrap());
    }
    for path in sorted(source.list_dirs(directory).unwrap()).iter().map(below) {
        checksum(source, &path, hasher);
    }
}

#[test]
fn frozen_files_are_as_they_were() {
    let mut hasher = crc32fast::Hasher::new();
    checksum(&OsVfs::existing(directory()), "", &mut hasher);
    assert_eq!(hasher.finalize(), CHECKSUM_OF_V1, "files of a frozen format were changed");
}

#[test]
#[ignore = "makes the files of a version, once, before it is frozen"]
fn make_the_files() {
    make::write(&directory());
}

#[test]
fn files_of_version_1_are_read_written_to_and_still_give_the_same_answers() {
    let disk = golden("data");
    let before = disk.files();
    let verified = Inspection::open(disk.clone()).unwrap().verify(&mut |_| ());
    assert_eq!((verified.problems, verified.unnamed), (vec![], vec![]));
    assert_eq!(verified.of_other_minor, 0);
    assert_eq!(disk.files(), before, "looking changes nothing");

    let engine = open(&disk).unwrap();
    assert_eq!(answers(&engine), expected());
    write_more(&engine);
    assert_eq!(answers(&engine), expected());
    engine.flush().unwrap();
    engine.compact().unwrap();
    assert_eq!(answers(&engine), expected());
    engine.close().unwrap();
    drop(engine);
    let engine = open(&disk).unwrap();
    assert_eq!(answers(&engine), expected());
    let verified = Inspection::open(disk).unwrap().verify(&mut |_| ());
    assert_eq!((verified.problems, verified.unnamed), (vec![], vec![]));
}

/// What the files must have among them to be worth keeping: dense sketches and digests, by hour too.
#[test]
fn the_files_hold_every_kind_of_rollup() {
    let inspection = Inspection::open(golden("data")).unwrap();
    let segments = inspection.segments().unwrap();
    let rows: Vec<RollupRow> =
        segments.iter().flat_map(|segment| inspection.rollups(segment.uuid).unwrap()).collect();
    let any = |fits: &dyn Fn(&RollupRow) -> bool| assert!(rows.iter().any(fits));
    any(&|row| row.tenant.is_none() && row.users > Some(1_400));
    any(&|row| row.percentiles.is_some() && row.values.is_empty() && row.hour.is_none());
    any(&|row| row.values.len() == 2 && row.count.is_some());
    any(&|row| row.values.len() == 1 && row.sums.is_some());
    any(&|row| row.hour.is_some() && row.sums.is_some());
}

#[test]
fn a_backup_of_version_1_is_verified_and_restored() {
    let backup = golden("backup");
    let verified = Inspection::open(backup.clone()).unwrap().verify(&mut |_| ());
    assert_eq!((verified.problems, verified.unnamed), (vec![], vec![]));
    assert!(verified.backup_files.is_some());
    let directory = tempfile::tempdir().unwrap();
    restore(&backup, &OsVfs::new(directory.path()).unwrap()).unwrap();
    let engine = Engine::open_directory(directory.path(), options()).unwrap();
    assert_eq!(answers(&engine), expected());
    write_more(&engine);
    engine.flush().unwrap();
    engine.compact().unwrap();
    assert_eq!(answers(&engine), expected());
}

#[test]
fn a_segment_of_a_week_is_read_as_before() {
    let disk = golden("weeks");
    let inspection = Inspection::open(disk.clone()).unwrap();
    let verified = inspection.verify(&mut |_| ());
    assert_eq!((verified.problems, verified.unnamed), (vec![], vec![]));
    let segments = inspection.segments().unwrap();
    let long = segments.iter().find(|segment| segment.day_first != segment.day_last).unwrap();
    let rollups = inspection.rollups(long.uuid).unwrap();
    let days: std::collections::BTreeSet<&str> = rollups.iter().map(|row| &*row.day).collect();
    assert_eq!(days.len(), 7);
    assert_eq!(answers(&open(&disk).unwrap()), expected_of("weeks.txt"));
}

#[test]
fn the_files_have_every_level_and_every_encoding() {
    let inspection = Inspection::open(golden("data")).unwrap();
    let segments = inspection.segments().unwrap();
    let levels: Vec<_> = segments.iter().map(|segment| segment.level).collect();
    assert!(["fresh", "merged", "sealed"].iter().all(|level| levels.contains(level)), "{levels:?}");
    let mut encodings = BTreeMap::<String, u64>::new();
    let weeks = Inspection::open(golden("weeks")).unwrap();
    let sections = [&inspection, &weeks].into_iter().flat_map(|inspection| {
        let segments = inspection.segments().unwrap().into_iter();
        segments.flat_map(|one| inspection.sections(one.uuid).unwrap())
    });
    for section in sections {
        for (encoding, blocks) in section.encodings {
            *encodings.entry(encoding).or_default() += blocks;
        }
    }
    for one in [
        "constant",
        "packed",
        "delta",
        "sparse",
        "none",
        "uuid",
        "uuid planes zstd",
        "characters",
        "totals",
        "not kept",
    ] {
        assert!(encodings.contains_key(one), "{one} of {encodings:?}");
    }
    for one in [", all", ", listed", ", marked", "raw zstd", "front-coded zstd", "roaring, 1 "] {
        assert!(encodings.keys().any(|known| known.contains(one)), "{one} of {encodings:?}");
    }
    let mut generations: Vec<u32> =
        inspection.id_runs().unwrap().iter().map(|run| run.generation).collect();
    generations.dedup();
    assert!(generations.len() > 1, "{generations:?}");
    assert_eq!(inspection.checkpoints().len(), 2);
    let lsn = inspection.checkpoints()[0].0;
    let above: Vec<_> = inspection.log(lsn + 1).collect();
    assert!(above.iter().any(|record| record.events > 0), "events above the checkpoint");
    assert!(above.iter().any(|record| record.kind == "writes"), "keys above the checkpoint");
}

/// Changes bytes of a file.
fn patch(disk: &SimVfs, path: &str, change: impl FnOnce(&mut Vec<u8>)) {
    let mut bytes = disk.files()[path].clone();
    change(&mut bytes);
    disk.set_file(path, Some(bytes));
}

fn put(bytes: &mut [u8], at: usize, new: &[u8]) {
    bytes[at..at + new.len()].copy_from_slice(new);
}

fn put_crc(bytes: &mut [u8], at: usize) {
    let crc = crc32fast::hash(&bytes[..at]);
    put(bytes, at, &crc.to_le_bytes());
}

/// Opens a disk that must be refused, unchanged.
fn refusal(disk: &SimVfs) -> String {
    let before = disk.files();
    let error = open(disk).map(|_| ()).unwrap_err();
    assert!(matches!(error, Error::Invalid { .. }), "{error:?}");
    assert_eq!(disk.files(), before, "nothing was changed");
    error.to_string()
}

fn last_of(disk: &SimVfs, directory: &str) -> String {
    let files = disk.files();
    files.into_keys().rfind(|path| path.starts_with(directory)).unwrap()
}

#[test]
fn a_directory_of_a_newer_format_is_refused() {
    let disk = golden("data");
    patch(&disk, "SUPER.b", |slot| {
        put(slot, 8, &2u32.to_le_bytes());
        put_crc(slot, 4_092);
    });
    let message = refusal(&disk);
    assert!(message.contains("format 2") && message.contains("format 1"), "{message}");
}

#[test]
fn a_log_file_of_a_newer_version_is_refused() {
    let disk = golden("data");
    patch(&disk, &last_of(&disk, "wal/"), |file| {
        put(file, 8, &2u32.to_le_bytes());
        put_crc(file, 60);
    });
    let message = refusal(&disk);
    assert!(message.contains("log version 2") && message.contains("reads 1"), "{message}");
}

#[test]
fn a_segment_of_a_newer_major_version_is_refused() {
    let disk = golden("data");
    let path = last_of(&disk, "seg/");
    patch(&disk, &path, |file| {
        let trailer = file.len() - 32;
        put(file, trailer + 16, &2u16.to_le_bytes());
    });
    let message = refusal(&disk);
    assert!(message.contains("segment version 2") && message.contains(&path), "{message}");
}

/// A later minor version adds a kind of section: it is not looked at, and a merge leaves it out.
#[test]
fn a_segment_with_a_section_of_an_unknown_kind_is_read_as_before() {
    let disk = golden("data");
    let path = last_of(&disk, "seg/l0/");
    let (before, after) = add_section(&disk, &path);
    let newest = last_of(&disk, "ckpt/");
    patch(&disk, &newest, |file| replace_in_checkpoint(file, &before, &after));
    let unknown = |disk: &SimVfs| {
        let inspection = Inspection::open(disk.clone()).unwrap();
        let segments = inspection.segments().unwrap();
        segments
            .iter()
            .flat_map(|segment| inspection.sections(segment.uuid).unwrap())
            .filter(|section| section.kind == "unknown 96")
            .count()
    };
    assert_eq!(unknown(&disk), 1);
    let verified = Inspection::open(disk.clone()).unwrap().verify(&mut |_| ());
    assert_eq!((verified.problems, verified.of_other_minor), (vec![], 1));
    let engine = open(&disk).unwrap();
    assert_eq!(answers(&engine), expected());
    write_more(&engine);
    engine.flush().unwrap();
    engine.compact().unwrap();
    assert_eq!(answers(&engine), expected());
    assert_eq!(unknown(&disk), 0, "merged away");
}

/// Adds a section of kind 96 to a segment, as `doc/format.md` describes it. Gives what the record of
/// the segment says of uuid, length and checksum, before and after.
fn add_section(disk: &SimVfs, path: &str) -> ([u8; 28], [u8; 28]) {
    let file = disk.files()[path].clone();
    let (uuid, db) = (&file[12..28], &file[28..44]);
    let trailer = file.len() - 32;
    let offset = u64::from_le_bytes(file[trailer..trailer + 8].try_into().unwrap()) as usize;
    let mut footer = file[offset..trailer].to_vec();
    assert!(footer[20] < 127, "one byte has the number of sections");
    footer[20] += 1;
    let content = b"what a later build keeps here";
    let mut named = [uuid, &96u16.to_le_bytes(), b"later"].concat();
    named.extend([0; 4]);
    named.extend(content);
    footer.extend(96u16.to_le_bytes());
    footer.extend(b"\x05later\x02hi\x01");
    footer.extend((offset as u64).to_le_bytes());
    footer.extend((content.len() as u32).to_le_bytes());
    footer.extend(crc32fast::hash(&named).to_le_bytes());
    // Of minor version 1.
    let version = [1, 0, 1, 0];
    let crc = crc32fast::hash(&[uuid, db, &version, &footer].concat()).to_le_bytes();
    let record = |len: usize, crc: &[u8]| -> [u8; 28] {
        [uuid, &(len as u64).to_le_bytes(), crc].concat().try_into().unwrap()
    };
    let mut new = file[..offset].to_vec();
    new.extend(content);
    let footer_offset = new.len() as u64;
    new.extend(&footer);
    new.extend(footer_offset.to_le_bytes());
    new.extend((footer.len() as u32).to_le_bytes());
    new.extend(crc);
    new.extend(version);
    new.extend([0; 4]);
    new.extend(b"INLAYSEG");
    let records = (record(file.len(), &file[trailer + 12..trailer + 16]), record(new.len(), &crc));
    disk.set_file(path, Some(new));
    records
}

/// Replaces bytes inside a block of a checkpoint, and its checksum.
fn replace_in_checkpoint(file: &mut [u8], before: &[u8], after: &[u8]) {
    let lsn: [u8; 8] = file[28..36].try_into().unwrap();
    let mut at = 48;
    let mut replaced = 0;
    while at < file.len() {
        let len = u32::from_le_bytes(file[at..at + 4].try_into().unwrap()) as usize;
        let place = (at as u64 + 4).to_le_bytes();
        let block = &mut file[at + 8..at + 8 + len];
        if let Some(found) = block.windows(before.len()).position(|part| part == before) {
            put(block, found, after);
            replaced += 1;
        }
        let crc = crc32fast::hash(&[&lsn[..], &place, block].concat());
        put(file, at + 4, &crc.to_le_bytes());
        at += 8 + len;
    }
    assert_eq!(replaced, 1);
}
