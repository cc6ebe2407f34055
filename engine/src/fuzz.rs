//! Targets for a fuzzer: each decodes bytes as far as it can, reads everything and must not panic.
//!
//! Two things are expected of a decoder: damaged bytes are an error, and memory stays in proportion
//! to the input, whatever its counts claim. Checksums would keep a fuzzer out, so the targets put them
//! right first. Counts that a caller knows from elsewhere (the rows of a block, say) are taken from the
//! input's first bytes, within the bounds that the callers keep.
//!
//! `engine/fuzz` runs them for as long as one likes, `testdata/fuzz` holds what they start from, and
//! the test below runs all of that and some thousand variations of it.

mod repair;

#[cfg(test)]
mod seeds;

use std::{hint::black_box, sync::Arc};

use crate::{
    base::{clock::ManualClock, coding::Cursor, rng::SeededRng, time::Granularity},
    column::SeriesKey,
    encode::{BLOCK_ROWS, Block as _, VECTOR_ROWS, ints::IntBlock, numbers::NumberBlock, text},
    engine::{Engine, Options},
    error::Result,
    event::Namespace,
    exec,
    ids::{self, IdRun, IdRunMeta, NewRun},
    index::{
        bitmaps::BlockBitmaps,
        zones::{CodeZone, NumberZone},
    },
    keyspace::{Tree, checkpoint as keyspace_checkpoint, read_writes, write_writes},
    query::{Answer, Metric, Query, TextFilter},
    segment::{
        Database, EventIds, FRESH, Fate, MERGED, MergeContext, RunDirectory, RunSummaries, Segment,
        SegmentMeta, Split, merge,
    },
    sketch::{digest::Digest, hll::Distinct},
    store::{
        BackupList, CompactionLimits, Erasure, Limits, Segments, State, Superblock, Version,
        rows_of, writes_of,
    },
    vfs::{Vfs as _, View, sim::SimVfs},
    wal::{self, Record, RecordKind},
};

/// The database of every target.
const DB: [u8; 16] = [7; 16];

fn database() -> Database {
    Database { id: DB, hash_seed: SEED }
}
/// Its seed of stored hashes.
const SEED: u64 = 7;
/// Name of the one segment or id run.
const UUID: uuid::Uuid = uuid::Uuid::from_u128(0x0193_0000_0000_7000_8000_0000_0000_0001);
/// Rows of a segment that is read: a footer of a few bytes can claim thousands of millions, and each
/// block of them is read in turn.
const SEGMENT_ROWS_MAX: u32 = 4 * BLOCK_ROWS as u32;

/// The time of the events target: most days are over then.
const EVENTS_NOW_MS: i64 = 4_000_000_000_000;

/// A target: what it is called, and what is done with the bytes.
pub type Target = (&'static str, fn(&[u8]));

/// All targets, what is most complex first.
pub fn targets() -> &'static [Target] {
    &[
        ("segment", segment),
        ("footer", footer),
        ("events", events),
        ("log", log),
        ("id_run", id_run),
        ("numbers", numbers),
        ("ints", ints),
        ("event_ids", event_ids),
        ("texts", texts),
        ("runs", runs),
        ("bitmaps", bitmaps),
        ("zones", zones),
        ("sketches", sketches),
        ("checkpoint", checkpoint),
        ("writes", writes),
        ("superblock", superblock),
        ("backup_list", backup_list),
        ("records", records),
    ]
}

/// Takes a number from the front.
fn u16_of(bytes: &[u8]) -> Option<(usize, &[u8])> {
    let (head, rest) = bytes.split_first_chunk()?;
    Some((usize::from(u16::from_le_bytes(*head)), rest))
}

/// A whole file.
fn segment(bytes: &[u8]) {
    let (file, footer_crc) = repair::segment(bytes);
    let trailer = file.len().saturating_sub(32);
    let mut cursor = Cursor::new(file.get(trailer..).unwrap_or_default(), "");
    let offset = cursor.u64().unwrap_or_default() as usize;
    let mut cursor = Cursor::new(file.get(offset..).unwrap_or_default(), "");
    let rows = cursor.u32().unwrap_or_default();
    let (ts_min, ts_max) = (cursor.i64().unwrap_or_default(), cursor.i64().unwrap_or_default());
    let len = file.len() as u64;
    let meta = SegmentMeta { uuid: UUID, len, footer_crc, rows, ts_min, ts_max, level: FRESH };
    if rows <= SEGMENT_ROWS_MAX
        && let Ok(segment) = Segment::open(View::new(file), meta, database())
    {
        read_segment(Arc::new(segment));
    }
}

/// A footer over blocks: length of the blocks, the blocks, the footer.
fn footer(bytes: &[u8]) {
    let Some((len, rest)) = u16_of(bytes) else { return };
    let (blocks, footer) = rest.split_at(len.min(rest.len()));
    let mut file = blocks.to_vec();
    file.extend_from_slice(footer);
    file.extend((blocks.len() as u64).to_le_bytes());
    file.extend((footer.len() as u32).to_le_bytes());
    file.extend([0; 4]);
    file.extend(1u32.to_le_bytes());
    file.extend([0; 4]);
    file.extend(b"INLAYSEG");
    segment(&file);
}

/// Everything that a query, an inspection, a merge or an erasure reads of a segment.
fn read_segment(segment: Arc<Segment>) {
    let is_whole = segment.verify().is_ok();
    black_box(segment.namespaces());
    for index in 0..segment.user_blocks() {
        let _ = segment.users(index);
    }
    let _ = segment.at_level(MERGED);
    for index in 0..segment.block_count() {
        let _ = segment.times(index).and_then(|times| times.read_all());
        let _ = segment.event_ids(index).map(|ids| read_event_ids(&ids));
    }
    for at in 0..segment.sections().len() {
        let _ = segment.block_at(at, segment.sections()[at].blocks.len());
    }
    let _ = segment.user_count();
    let _ = segment.user_code(0, u128::MAX);
    let keys: Vec<SeriesKey> =
        segment.runs().runs().iter().take(4).map(|run| run.key.clone()).collect();
    let texts: Vec<String> =
        segment.names(crate::segment::SectionKind::TextValues).take(3).map(str::to_owned).collect();
    let number = segment.names(crate::segment::SectionKind::Numbers).next().map(str::to_owned);
    let (ts_min, ts_max) = (segment.meta().ts_min, segment.meta().ts_max);
    let version =
        Version { segments: Segments::new(vec![Arc::clone(&segment)]), ..Version::default() };
    // So that stored sketches are read.
    let sketched = exec::ExactUpTo { users_rows: 0, numbers_rows: 0, digestless_numbers_rows: 0 };
    let resources = exec::Resources::new(1 << 30, 256 << 20, 1 << 20, sketched);
    let sources = exec::AnswerSources { rollups: true, partials: true };
    let how = exec::ExecOptions { sources, wait: None, is_attempt: false };
    let run = |query: &Query| exec::execute(&version, query, i64::MIN, &resources, how, &|| false);
    for key in &keys {
        let window = ts_min.saturating_add(1)..ts_max.max(ts_min.saturating_add(1));
        let _ = ask(&run, key, Some(&key.tenant), window, &texts, number.as_deref());
        // All tenants and all rows: from rollups of events, and as partial results.
        let window = ts_min..ts_max.saturating_add(1);
        let _ = ask(&run, key, None, window, &texts, number.as_deref());
    }
    if is_whole {
        // What a verification finds to be whole can be merged.
        merge_alone(segment);
    }
}

fn merge_alone(segment: Arc<Segment>) {
    let vfs = SimVfs::new();
    let next = std::cell::Cell::new(1);
    let uuid = || uuid::Uuid::from_u128(next.replace(next.get() + 1));
    let context = MergeContext {
        vfs: &vfs,
        db: database(),
        uuid: &uuid,
        level: FRESH,
        split: Split::Nothing,
        rows_max: u32::MAX,
        rollup_rows_min: 1,
        fate: &|_, _| Fate::Keep,
        breathe: &|| Ok(()),
    };
    let _ = merge(&context, &[segment]);
}

/// Answers of all kinds over a series.
fn ask(
    run: &dyn Fn(&Query) -> Result<Answer>,
    key: &SeriesKey,
    tenant: Option<&str>,
    window: std::ops::Range<i64>,
    texts: &[String],
    number: Option<&str>,
) -> Vec<Result<Answer>> {
    let days = window.end.saturating_sub(window.start) / (24 * 3_600_000);
    let mut answers = Vec::new();
    for metric in [
        Metric::Count,
        Metric::Distinct,
        Metric::DistinctApprox,
        Metric::Percentile(50),
        Metric::PercentileApprox(50),
    ] {
        for text in texts.iter().map(Some).chain([None]) {
            let mut query = Query {
                tenant: tenant.map(str::to_owned),
                metric,
                number: number.map(str::to_owned),
                granularity: (tenant.is_some() && days < 1_000).then_some(Granularity::Hour),
                group_by: text.cloned(),
                groups_max: 10,
                ..Query::count(key.namespace, &key.name, window.start..window.end)
            };
            answers.push(run(&query));
            if let Some(name) = query.group_by.take() {
                query.texts = vec![TextFilter { name, any_of: vec!["rare".into(), "b".into()] }];
                answers.push(run(&query));
            }
        }
    }
    answers
}

/// The payload of an events record: replayed by a start, flushed, parted by days and sealed. The answers
/// stay the same.
fn events(bytes: &[u8]) {
    let vfs = SimVfs::new();
    for directory in ["tmp", "wal", "ckpt", "seg/l0", "ids"] {
        let _ = vfs.create_dir(directory);
    }
    let superblock = Superblock { db: DB, hash_seed: SEED, generation: 0, checkpoints: vec![] };
    let mut body = Vec::new();
    wal::put_record(RecordKind::Events, bytes, &mut body);
    let rng = Arc::new(SeededRng::new(1));
    let clock = Arc::new(ManualClock::new(EVENTS_NOW_MS));
    let shared = Arc::new(vfs.clone());
    let mut log = wal::Writer::new(Arc::clone(&shared) as _, clock.clone(), rng.clone(), DB, 0, 0);
    if superblock.create(&vfs).is_err() || log.append(1, 1, &body).is_err() {
        return;
    }
    let read = |after| wal::read(&vfs, DB, after);
    let Ok(State { records, .. }) = crate::store::read_state(&vfs, &superblock, read) else {
        return;
    };
    let Some(Ok(rows)) = records.first().map(|record| rows_of(record, SEED)) else { return };
    // An event without these is refused when it is pushed, so no log has one.
    if rows.series.iter().any(|key| key.tenant.is_empty() || key.name.is_empty()) {
        return;
    }
    let compaction = CompactionLimits::without_waiting();
    let limits = Limits { log_file_bytes: 0, compaction, ..Limits::default() };
    let options = Options { clock, rng, limits, background: false, ..Options::default() };
    let Ok(engine) = Engine::open(shared, options) else { return };
    let texts: Vec<String> = rows.strings.keys().take(3).map(|name| name.to_string()).collect();
    let number = rows.numbers.keys().next().map(|name| name.to_string());
    let answers = |engine: &Engine| -> Vec<_> {
        let run = |query: &Query| engine.query(query, &|| false);
        let window = -1_000_000_007..2_000_000_000_001;
        let keys = rows.series.iter().take(3);
        keys.flat_map(|key| {
            let tenant = Some(&*key.tenant);
            ask(&run, key, tenant, window.clone(), &texts, number.as_deref())
        })
        .map(|answer| answer.map(|answer| (answer.groups, answer.values)))
        .collect()
    };
    let in_memory = answers(&engine);
    if engine.flush().is_ok() {
        assert_eq!(format!("{in_memory:?}"), format!("{:?}", answers(&engine)));
    }
    if engine.compact().is_ok() {
        assert_eq!(format!("{in_memory:?}"), format!("{:?}", answers(&engine)));
    }
}

/// Two log files: length of the first, LSN after which they are read, their bytes.
fn log(bytes: &[u8]) {
    let Some((len, rest)) = u16_of(bytes) else { return };
    let Some((after, rest)) = rest.split_first_chunk() else { return };
    let (first, second) = rest.split_at(len.min(rest.len()));
    let vfs = SimVfs::new();
    let mut chain = 0;
    for file in [first, second] {
        let (file, last) = repair::log_file(file, chain);
        chain = last;
        let lsn = file.get(36..44).and_then(|bytes| bytes.try_into().ok()).map(u64::from_le_bytes);
        if let Some(lsn) = lsn {
            vfs.set_file(&format!("wal/{lsn:020}.wal"), Some(file));
        }
    }
    let Ok((records, tail)) = wal::read(&vfs, DB, u64::from_le_bytes(*after)) else { return };
    for record in &records {
        black_box((record.lsn, record.offset(), record.payload()));
        let _ = writes_of(record);
        if record.kind == RecordKind::Events {
            let _ = rows_of(record, SEED);
        }
    }
    // What is read stays what it is when a start has made sure of it.
    if wal::harden(&vfs, &SeededRng::new(1), &tail).is_ok() {
        let again = wal::read(&vfs, DB, u64::from_le_bytes(*after)).map(|(records, _)| records);
        let again = again.expect("a log that was read and made sure of can be read");
        assert!(records.iter().map(Record::payload).eq(again.iter().map(Record::payload)));
    }
    let _ = wal::files_after(&vfs, 0, tail.lsn_last, None);
}

/// A whole file.
fn id_run(bytes: &[u8]) {
    let (file, facts) = repair::id_run(bytes);
    let len = file.len() as u64;
    let meta = IdRunMeta { uuid: UUID, generation: 3, count: facts.count, len, crc: facts.crc };
    let Ok(run) = IdRun::open(View::new(file), meta, DB) else { return };
    black_box(run.filter_bytes());
    let is_whole = run.verify().is_ok();
    for index in 0..=run.block_count() {
        for hash in run.block(index).unwrap_or_default().into_iter().step_by(37) {
            let known = run.contains(hash);
            assert!(!is_whole || known == Ok(true));
            let _ = run.contains(!hash);
        }
    }
    if run.verify().is_ok() {
        let new = NewRun { uuid: UUID, db: DB, generation: 3 };
        let run = Arc::new(run);
        let inputs = [Arc::clone(&run), run];
        let _ = ids::merge(&SimVfs::new(), new, &inputs, &Default::default(), &|| Ok(()));
    }
}

/// Rows less one, exponent, block.
fn numbers(bytes: &[u8]) {
    let Some((rows, rest)) = u16_of(bytes) else { return };
    let Some((&exponent, block)) = rest.split_first() else { return };
    let rows = rows + 1;
    let Ok(block) = NumberBlock::open(block, rows, exponent, "") else { return };
    let mut vector = [0.0; VECTOR_ROWS];
    for index in 0..=rows.div_ceil(VECTOR_ROWS) {
        let len = block.read_vector(index, &mut vector);
        let _ = block.read_rows(index * VECTOR_ROWS + 3, &mut vector[..40]);
        assert!(len.is_err() || len == Ok(rows.saturating_sub(index * 1_024).min(1_024)));
    }
    if let Ok(Some(listed)) = block.listed() {
        assert!(listed.iter().all(|&(row, _)| (row as usize) < rows));
    }
}

/// Rows less one, block.
fn ints(bytes: &[u8]) {
    let Some((rows, block)) = u16_of(bytes) else { return };
    let rows = rows + 1;
    let Ok(block) = IntBlock::open(block, rows, "") else { return };
    assert!(block.read_all().is_ok_and(|all| all.len() == rows) || block.read_all().is_err());
    let _ = block.read_vector(rows.div_ceil(VECTOR_ROWS), &mut [0; VECTOR_ROWS]);
    let _ = block.read_rows(rows / VECTOR_ROWS * VECTOR_ROWS + 3, &mut [0; 40]);
    if let Ok(Some(listed)) = block.listed() {
        assert!(listed.iter().all(|&(row, _)| (row as usize) < rows));
    }
}

/// Rows less one, block.
fn event_ids(bytes: &[u8]) {
    let Some((rows, block)) = u16_of(bytes) else { return };
    let rows = rows + 1;
    let Ok(ids) = EventIds::read(block, rows, "") else { return };
    assert_eq!(ids.len(), rows);
    read_event_ids(&ids);
    let mut half = EventIds::default();
    half.append(&ids, 0..rows / 2);
    half.push(None);
    let mut bytes = Vec::new();
    if half.write(&mut bytes).is_ok() {
        assert!(EventIds::read(&bytes, rows / 2 + 1, "").is_ok(), "what is written is read");
    }
}

fn read_event_ids(ids: &EventIds) {
    let mut scratch = Vec::new();
    for row in 0..ids.len() {
        black_box(ids.value(row, &mut scratch));
    }
}

/// Strings less one, list.
fn texts(bytes: &[u8]) {
    let Some((count, list)) = u16_of(bytes) else { return };
    let Ok(list) = text::read(list, count + 1, "") else { return };
    assert_eq!(list.len(), count + 1);
    black_box(list.iter().map(<[u8]>::len).sum::<usize>());
}

/// A run directory.
fn runs(bytes: &[u8]) {
    let Some((heads, hours)) = two_parts(bytes) else { return };
    let Ok(heads) = RunSummaries::read_plain(heads, "") else { return };
    black_box(heads.rows());
    let Ok(hours) = heads.read_plain_hours(hours, "") else { return };
    let directory = RunDirectory::whole(&heads, &hours);
    black_box(directory.namespaces());
    for run in directory.runs() {
        let rows: u64 = run.days().iter().map(|(_, rows)| rows.len() as u64).sum();
        assert_eq!(rows, u64::from(run.rows), "days take all rows");
        let before = [run.ts_min, run.ts_max, i64::MIN, 0, i64::MAX].map(|ms| run.rows_before(ms));
        assert!(before.iter().all(|&before| before <= run.rows));
        assert!(!directory.of(run.key.namespace, Some(&run.key.tenant)).is_empty());
    }
    let (mut again, mut hours) = (Vec::new(), Vec::new());
    directory.write_heads(&mut again);
    directory.write_hours(&mut hours);
    let heads = RunSummaries::read_plain(&again, "");
    let read = heads.and_then(|heads| {
        let hours = heads.read_plain_hours(&hours, "")?;
        Ok(RunDirectory::whole(&heads, &hours))
    });
    assert_eq!(read, Ok(directory));
}

/// Length of the first part, first part, second part.
fn two_parts(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (len, parts) = u16_of(bytes)?;
    parts.split_at_checked(len)
}

/// Bitmaps of a block.
fn bitmaps(bytes: &[u8]) {
    let Ok(bitmaps) = BlockBitmaps::read(bytes, "") else { return };
    for code in 0..300 {
        if let Some(rows) = bitmaps.rows(code) {
            black_box((rows.len(), rows.contains(17)));
        }
    }
    let mut again = Vec::new();
    if bitmaps.write(&mut again).is_ok() {
        assert_eq!(BlockBitmaps::read(&again, ""), Ok(bitmaps));
    }
}

/// Code zones, or number zones, by the first byte.
fn zones(bytes: &[u8]) {
    let Some((&kind, rest)) = bytes.split_first() else { return };
    let mut cursor = Cursor::new(rest, "");
    let mut again = Vec::new();
    while cursor.remaining() > 0 {
        let before = cursor.clone();
        if kind == 0 {
            let Ok(zone) = CodeZone::read(&mut cursor) else { return };
            black_box(
                [0, zone.min, zone.max, 255, 256, u32::MAX].map(|code| zone.may_contain(code)),
            );
            again.clear();
            zone.write(&mut again);
            assert_eq!(CodeZone::read(&mut Cursor::new(&again, "")), Ok(zone));
        } else if NumberZone::read(&mut cursor).is_err() {
            return;
        }
        assert!(cursor.remaining() < before.remaining());
    }
}

/// What kind of sketch, then states of it, end to end. What is read is merged, asked and written again.
fn sketches(bytes: &[u8]) {
    let Some((&kind, rest)) = bytes.split_first() else { return };
    let mut cursor = Cursor::new(rest, "");
    let mut again = Vec::new();
    if kind == 0 {
        let mut all = Distinct::default();
        while let Ok(state) = Distinct::read(&mut cursor) {
            again.clear();
            state.write(&mut again);
            assert_eq!(Distinct::read(&mut Cursor::new(&again, "")).as_ref(), Ok(&state));
            let mut reversed = state.clone();
            reversed.merge(&all);
            all.merge(&state);
            assert_eq!(all, reversed, "the order does not matter");
            all.merge(&state);
            assert_eq!(all, reversed, "nor does adding one again");
        }
        return;
    }
    let mut all = Digest::default();
    while let Ok(mut state) = Digest::read(&mut cursor) {
        all.merge(&state);
        let asked = [0.0, 0.5, 0.95, 1.0].map(|q| state.quantile(q));
        assert!(asked.is_sorted() && asked.into_iter().flatten().all(f64::is_finite));
        again.clear();
        state.write(&mut again);
        Digest::read(&mut Cursor::new(&again, "")).expect("what is written is read");
    }
    black_box((all.count(), all.quantile(0.99)));
}

/// A whole file.
fn checkpoint(bytes: &[u8]) {
    let (file, lsn) = repair::checkpoint(bytes);
    let vfs = SimVfs::new();
    vfs.set_file(&keyspace_checkpoint::path(lsn), Some(file));
    if let Ok(tree) = keyspace_checkpoint::read(&vfs, DB, lsn) {
        read_tree(&tree);
    }
}

/// A list of writes, applied.
fn writes(bytes: &[u8]) {
    let mut cursor = Cursor::new(bytes, "");
    let Ok(writes) = read_writes(&mut cursor) else { return };
    let mut again = Vec::new();
    write_writes(&writes, &mut again);
    assert_eq!(read_writes(&mut Cursor::new(&again, "")), Ok(writes.clone()));
    let mut tree = Tree::default();
    tree.apply_all(&writes);
    read_tree(&tree);
}

/// Everything that is read of the engine's own keys.
fn read_tree(tree: &Tree) {
    black_box(tree.iter().count());
    let keys = crate::keyspace::KeyReader::new(tree.clone());
    black_box((keys.scan(b""), keys.scan_last(b"k", 3)));
    let _ = crate::store::flushed_lsn(tree);
    let _ = crate::store::erasures(tree);
    for namespace in 0..3 {
        black_box(crate::store::horizon_ms(tree, Namespace(namespace), Some(30), 0));
    }
    for (_, value) in tree.scan(crate::store::SEGMENT_PREFIX, &[]) {
        let _ = SegmentMeta::read(value).map(|meta| meta.path());
    }
    for (_, value) in tree.scan(crate::store::ID_RUN_PREFIX, &[]) {
        let _ = IdRunMeta::read(value).map(|meta| meta.path());
    }
}

/// A slot.
fn superblock(bytes: &[u8]) {
    let vfs = SimVfs::new();
    vfs.set_file("SUPER.a", Some(repair::superblock(bytes)));
    let Ok(Some(found)) = Superblock::load(&vfs) else { return };
    assert!(found.slots().iter().all(|(_, slot)| slot.len() == 4_096));
    for directory in ["wal", "ckpt"] {
        let _ = vfs.create_dir(directory);
    }
    let _ = crate::store::read_state(&vfs, &found, |after| wal::read(&vfs, found.db, after));
    let mut next = found.clone();
    if next.store(&vfs).is_ok() {
        assert_eq!(Superblock::load(&vfs), Ok(Some(next)), "what is written is read");
    }
}

/// A whole list.
fn backup_list(bytes: &[u8]) {
    let Ok(list) = BackupList::read(&repair::backup_list(bytes)) else { return };
    for file in &list.files {
        black_box(list.holds(&file.path, file.len));
        let parts: Vec<&str> = file.path.split('/').collect();
        assert!(!parts.iter().any(|part| matches!(*part, "" | "." | "..")), "leaves the directory");
    }
    assert_eq!(BackupList::read(list.write().as_bytes()), Ok(list));
}

/// Records of the engine's own keys: each is tried as a segment's, an id run's and an erasure's.
fn records(bytes: &[u8]) {
    if let Ok(meta) = SegmentMeta::read(bytes) {
        black_box((meta.path(), meta.level_name()));
        let mut again = Vec::new();
        meta.write(&mut again);
        assert_eq!(again, bytes);
    }
    if let Ok(meta) = IdRunMeta::read(bytes) {
        black_box(meta.path());
        let mut again = Vec::new();
        meta.write(&mut again);
        assert_eq!(again, bytes);
    }
    if let Ok(erasure) = Erasure::decode(UUID, bytes) {
        let mut txn = crate::keyspace::Txn::new(Tree::default());
        erasure.put(&mut txn);
        let (tree, _) = txn.finish();
        assert_eq!(crate::store::erasures(&tree), Ok(vec![erasure]), "what is written is read");
    }
}
