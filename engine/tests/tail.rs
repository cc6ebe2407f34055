//! Torn tails: whatever lies at the end of the log, a store starts with every whole group before it.
//!
//! | variable | meaning |
//! |---|---|
//! | `INLAY_TAIL_BYTES` | bytes at the end of the log at each of which it is cut; 262,144 |

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::{num::NonZero, ops::Range, sync::Arc, thread};

use inlay_engine::*;

/// Bytes in front of the frames of a log file, and of each body.
const FILE_HEADER: usize = 64;
const FRAME_HEADER: usize = 24;
/// Events of each group, each with one long text: bytes to cut without many rows to replay.
const EVENTS: usize = 2;
const TEXT_BYTES: usize = 4_000;
const DAY_MS: i64 = 86_400_000;
const NOW_MS: i64 = 20_400 * DAY_MS;

fn open(disk: &SimVfs, seed: u64, log_file_bytes: u64) -> Result<Engine> {
    let limits = Limits { log_file_bytes, ..Limits::default() };
    let (clock, rng) = (Arc::new(ManualClock::new(NOW_MS)), Arc::new(SeededRng::new(seed)));
    let options = Options { clock, rng, limits, background: false, ..Options::default() };
    Engine::open(Arc::new(disk.clone()), options)
}

fn send(engine: &Engine, group: usize, rng: &SeededRng) {
    let mut batch = engine.batch(Namespace(1));
    for n in 0..EVENTS {
        let text: String =
            (0..TEXT_BYTES / 16).map(|_| format!("{:016x}", rng.next_u64())).collect();
        let id = format!("{group}-{n}");
        let event = Event {
            tenant: "t",
            name: "call",
            timestamp_ms: NOW_MS,
            event_id: Some(&id),
            user_id: None,
        };
        batch.push(&event, &[("text", &text)], &[]).unwrap();
    }
    engine
        .ingest(batch, |txn, _| {
            txn.put(format!("group/{group:05}").as_bytes(), b"there");
            Ok::<_, Error>(())
        })
        .unwrap();
}

/// Groups that an engine shows: by its events, which must agree with its keys.
fn groups(engine: &Engine) -> usize {
    let query = Query {
        tenant: Some("t".to_owned()),
        ..Query::count(Namespace(1), "call", NOW_MS - DAY_MS..NOW_MS + DAY_MS)
    };
    let answer = engine.query(&query, &|| false).unwrap();
    let events = answer.values[0][0].as_f64().unwrap_or(0.0) as usize;
    let keys = engine.keys().scan(b"group/");
    assert_eq!(events, keys.len() * EVENTS, "events and keys of a group come together");
    let last = keys.last().map(|(key, _)| String::from_utf8(key.clone()).unwrap());
    assert_eq!(last, keys.len().checked_sub(1).map(|last| format!("group/{last:05}")));
    keys.len()
}

/// A store whose log is one file with one frame for each group.
struct Log {
    path: String,
    others: Vec<(String, Vec<u8>)>,
    /// The file up to its last byte that is not zero.
    used: Vec<u8>,
    /// Where frames lie, without their padding.
    frames: Vec<Range<usize>>,
}

impl Log {
    fn of(bytes: usize, seed: u64) -> Self {
        let (disk, rng) = (SimVfs::new(), SeededRng::new(seed));
        let engine = open(&disk, seed, bytes as u64 * 2).unwrap();
        let sent = bytes.div_ceil(EVENTS * TEXT_BYTES);
        for group in 0..sent {
            send(&engine, group, &rng);
        }
        drop(engine);
        let is_log = |(path, _): &(String, Vec<u8>)| path.starts_with("wal/");
        let (mut logs, others): (Vec<_>, Vec<_>) = disk.files().into_iter().partition(is_log);
        let (path, mut used) = logs.pop().unwrap();
        assert!(logs.is_empty(), "one file");
        used.truncate(written(&used));
        let mut frames = Vec::new();
        let mut at = FILE_HEADER;
        while at < used.len() {
            let len = u32::from_le_bytes(used[at + 4..at + 8].try_into().unwrap()) as usize;
            frames.push(at..at + FRAME_HEADER + len);
            at = (at + FRAME_HEADER + len).next_multiple_of(8);
        }
        assert_eq!(frames.len(), sent, "one frame for each group");
        assert!(used.len() > bytes);
        Self { path, others, used, frames }
    }

    /// A disk with another log file.
    fn with(&self, content: Vec<u8>) -> SimVfs {
        let disk = SimVfs::new();
        for (path, bytes) in &self.others {
            disk.set_file(path, Some(bytes.clone()));
        }
        disk.set_file(&self.path, Some(content));
        disk
    }

    /// The first `len` bytes, and zeros up to the old length where `zeros` says so; with the number of
    /// groups that are whole.
    fn cut(&self, len: usize, zeros: bool) -> (Vec<u8>, usize) {
        let mut content = vec![0; if zeros { self.used.len() } else { len }];
        content[..len].copy_from_slice(&self.used[..len]);
        let is_whole = |frame: &&Range<usize>| {
            content.get((*frame).clone()).is_some_and(|bytes| *bytes == self.used[(*frame).clone()])
        };
        let whole = self.frames.iter().take_while(is_whole).count();
        (content, whole)
    }

    /// What a start finds must be the first groups; with `goes_on` the store is written to as well.
    fn check(&self, content: Vec<u8>, whole: usize, goes_on: bool, what: &str) {
        let disk = self.with(content);
        let engine = open(&disk, 2, 8_192).unwrap_or_else(|error| panic!("{what}: {error}"));
        assert_eq!(groups(&engine), whole, "{what}");
        if goes_on {
            send(&engine, whole, &SeededRng::new(8));
            drop(engine);
            assert_eq!(
                groups(&open(&disk, 3, 8_192).unwrap()),
                whole + 1,
                "{what}, and one group more"
            );
        }
    }
}

/// Bytes up to the last one that is not zero.
fn written(bytes: &[u8]) -> usize {
    bytes.iter().rposition(|&byte| byte != 0).map_or(0, |at| at + 1)
}

/// Does something for each number, on all cores.
fn on_all_cores(numbers: Range<usize>, work: impl Fn(usize) + Sync) {
    let cores = thread::available_parallelism().map_or(1, NonZero::get);
    thread::scope(|scope| {
        for core in 0..cores {
            let (numbers, work) = (numbers.clone(), &work);
            scope.spawn(move || numbers.skip(core).step_by(cores).for_each(work));
        }
    });
}

#[test]
fn a_log_cut_at_any_byte_starts_with_every_whole_group() {
    let bytes = std::env::var("INLAY_TAIL_BYTES").ok().and_then(|text| text.parse().ok());
    let log = Log::of(bytes.unwrap_or(256 << 10), 1);
    on_all_cores(FILE_HEADER..log.used.len() + 1, |len| {
        // Half of the lengths as a file system leaves them that grew the file, half as one that did not.
        let (content, whole) = log.cut(len, len % 2 == 0);
        log.check(content, whole, len % 1_021 == 0, &format!("cut at {len}"));
    });
}

#[test]
fn a_cut_and_a_flipped_bit_in_the_last_group_starts_with_the_groups_before() {
    let log = Log::of(40_000, 1);
    let last = log.frames.last().unwrap().clone();
    on_all_cores(last.clone(), |at| {
        let (mut content, _) = log.cut(log.used.len(), false);
        content[at] ^= 1 << (at % 8);
        // Cut where the flipped byte is still there.
        content.truncate(at + 1 + (at * 31) % (last.end - at));
        log.check(content, log.frames.len() - 1, false, &format!("bit of byte {at}"));
    });
}

#[test]
fn garbage_behind_the_log_is_ignored() {
    let log = Log::of(40_000, 1);
    let other = Log::of(80_000, 4);
    on_all_cores(0..512, |number| {
        let rng = SeededRng::new(number as u64);
        let len = if number < 64 { 1 + number } else { 1 + rng.below(64 << 10) as usize };
        let (mut content, whole) = log.cut(log.used.len(), false);
        match number % 3 {
            // Noise, begun at any byte.
            0 => content.extend((0..len).map(|_| rng.below(256) as u8)),
            // Noise that would pass for the beginning of a frame.
            1 => {
                content.resize(content.len().next_multiple_of(8), 0);
                let frame = log.frames[0].start..log.frames[0].start + FRAME_HEADER;
                content.extend(&log.used[frame]);
                content.extend((0..len).map(|_| rng.below(256) as u8));
            }
            // Whole frames of another log, in their places.
            _ => {
                content.resize(content.len().next_multiple_of(8), 0);
                let from = content.len();
                content.extend(&other.used[from..(from + len).min(other.used.len())]);
            }
        }
        log.check(content, whole, true, &format!("garbage {number} of {len} bytes"));
    });
}
