//! Storage over its whole life: ingest, flush, merge, seal, backup, recovery. What it costs in bytes,
//! time and memory.
//!
//!     cargo bench -p inlay-bench --bench storage -- 10000000
//!     cargo bench -p inlay-bench --bench storage -- 10000000 --keep DIRECTORY
//!     cargo bench -p inlay-bench --bench storage -- 2000000 --export rows.tsv
//!
//! With `--export` the same rows, each once, are written as text for other stores (`bench/peers`). With
//! `--keep` the data directory stays, for `inlay-inspect columns`.

#![expect(clippy::unwrap_used, clippy::print_stdout, reason = "a bench prints, and panics to fail")]

use std::{
    io::{BufWriter, Write as _},
    path::{Path, PathBuf},
    sync::Arc,
    time::Instant,
};

use inlay_bench::{
    fill,
    workload::{END_MS, Workload},
};
use inlay_engine::{CompactionLimits, Engine, Inspection, Limits, ManualClock, Options, OsVfs};
use rustix::time::{ClockId, clock_gettime};

const DAY_MS: i64 = 86_400_000;
/// A start may take so long, at most.
const RECOVERY_SECONDS_MAX: f64 = 1.0;
/// Events in the log whose recovery is timed.
const RECOVERED: u64 = 250_000;

fn open(directory: &Path, background: bool) -> Engine {
    // A day after the last event: every day is over.
    let compaction = CompactionLimits::without_waiting();
    let compaction = if background { CompactionLimits::default() } else { compaction };
    let options = Options {
        clock: Arc::new(Ticking(ManualClock::new(END_MS + DAY_MS), Instant::now())),
        limits: Limits { compaction, ..Limits::default() },
        background,
        ..Options::default()
    };
    Engine::open_directory(directory, options).unwrap()
}

/// Wall time that begins where the workload ends.
struct Ticking(ManualClock, Instant);

impl inlay_engine::Clock for Ticking {
    fn now_ms(&self) -> i64 {
        self.0.now_ms() + self.1.elapsed().as_millis() as i64
    }
    fn elapsed_us(&self) -> u64 {
        self.1.elapsed().as_micros() as u64
    }
}

/// Writes the events as text, each once.
fn export(path: &Path, workload: &Workload) {
    #[expect(clippy::disallowed_methods, reason = "a bench writes a file for others")]
    let mut out = BufWriter::new(std::fs::File::create(path).unwrap());
    for n in (0..workload.count()).filter(|&n| !workload.is_repeated(n)) {
        let row = workload.row(n);
        let fixed = [&*row.tenant, row.name, &row.time_ms.to_string(), &row.event_id, &row.user_id];
        write!(out, "{}", fixed.join("\t")).unwrap();
        row.strings.iter().for_each(|(_, value)| write!(out, "\t{value}").unwrap());
        row.numbers.iter().for_each(|(_, value)| write!(out, "\t{value}").unwrap());
        writeln!(out).unwrap();
    }
    out.flush().unwrap();
}

/// Most memory that this process has had since it was asked before, in MiB.
fn peak_mib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find(|line| line.starts_with("VmHWM:"));
    let kib =
        line.and_then(|line| line.split_whitespace().nth(1)).and_then(|text| text.parse().ok());
    // Begins a new peak, where the system lets us.
    #[expect(clippy::disallowed_methods, reason = "this is no file of ours")]
    let _ = std::fs::write("/proc/self/clear_refs", "5");
    kib.unwrap_or(0_u64) / 1_024
}

/// Microseconds that all threads of this process have worked so far.
fn cpu_us() -> f64 {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    time.tv_sec as f64 * 1e6 + time.tv_nsec as f64 / 1e3
}

fn main() {
    let arguments: Vec<String> =
        std::env::args().skip(1).filter(|text| text != "--bench").collect();
    let count = arguments.first().and_then(|text| text.parse().ok()).unwrap_or(1_000_000);
    if arguments.get(1).is_some_and(|text| text == "--export") {
        return export(&PathBuf::from(&arguments[2]), &Workload::new(1, count));
    }
    let root = tempfile::tempdir().unwrap();
    let kept = arguments.get(1).filter(|text| *text == "--keep").and(arguments.get(2));
    let directory = kept.map_or_else(|| root.path().join("data"), PathBuf::from);
    println!("| storage of {count} events | |\n|---|---|");
    let line = |what: &str, value: String| println!("| {what} | {value} |");
    let workload = Workload::new(1, count);

    let cpu_before = cpu_us();
    (0..count).for_each(|n| {
        std::hint::black_box(workload.row(n));
    });
    line(
        "processor time of making the events",
        format!("{:.1} µs an event", (cpu_us() - cpu_before) / count as f64),
    );
    let engine = open(&directory, true);
    let cpu_before = cpu_us();
    let took = fill(&engine, &workload, 0, count).as_secs_f64();
    let cpu_each = |until: f64| format!("{:.1} µs an event", (until - cpu_before) / count as f64);
    line("ingest, one writer, merging beside it", format!("{:.0} events/s", count as f64 / took));
    engine.flush().unwrap();
    line(
        "processor time of it, making the events and merges beside it included",
        cpu_each(cpu_us()),
    );
    line("most memory while ingesting", format!("{} MiB", peak_mib()));
    let first = engine.metrics();
    engine.close().unwrap();
    drop(engine);

    let engine = open(&directory, false);
    let started = Instant::now();
    engine.compact().unwrap();
    let took = started.elapsed().as_secs_f64();
    let second = engine.metrics();
    let read = second.compaction_read_bytes as f64 / 1e6;
    line(
        "merging and sealing what was left",
        format!(
            "{took:.1} s, {:.1} MB/s read, {:.2} M rows/s",
            read / took,
            second.compacted_rows as f64 / 1e6 / took
        ),
    );
    line("processor time until everything is sealed", cpu_each(cpu_us()));
    line("most memory while merging and sealing the rest", format!("{} MiB", peak_mib()));

    let segments: u64 = second.levels.values().map(|level| level.bytes).sum();
    let inspection = Inspection::open(OsVfs::existing(&directory)).unwrap();
    let runs: u64 = inspection.id_runs().unwrap().iter().map(|run| run.bytes).sum();
    let stored = engine.stats().segment_rows as f64;
    let each = |bytes: u64| format!("{:.2} bytes an event", bytes as f64 / stored);
    let ids: u64 = column(&inspection, "event ids");
    line("segments", each(segments));
    line("segments without event ids", each(segments - ids));
    line("id runs: the index of duplicates", each(runs));
    let written = [
        ("log", first.log_bytes),
        ("flushes", first.flushed_bytes),
        ("merges", first.compaction_written_bytes + second.compaction_written_bytes),
    ];
    let total: u64 = written.iter().map(|(_, bytes)| bytes).sum();
    for (what, bytes) in written {
        line(&format!("written by {what}"), each(bytes));
    }
    let kept = (segments + runs) as f64;
    line("write amplification: written / kept", format!("{:.2}", total as f64 / kept));

    // What was read for this table is not the backup's.
    drop(inspection);
    peak_mib();
    let started = Instant::now();
    let target = root.path().join("backup");
    engine.backup(target.to_str().unwrap(), None, &mut |_| ()).unwrap();
    line("backup by links, with checksums", format!("{:.1} s", started.elapsed().as_secs_f64()));
    line("most memory while backing up", format!("{} MiB", peak_mib()));
    engine.close().unwrap();
    drop(engine);

    let directory = root.path().join("recovery");
    let limits = Limits { flush_rows: usize::MAX, flush_bytes: usize::MAX, ..Limits::default() };
    let options = || Options { limits, background: false, ..Options::default() };
    let engine = Engine::open_directory(&directory, options()).unwrap();
    fill(&engine, &Workload::new(2, RECOVERED), 0, RECOVERED);
    let recovered = engine.stats().memtable_rows;
    drop(engine);
    let started = Instant::now();
    let engine = Engine::open_directory(&directory, options()).unwrap();
    let took = started.elapsed().as_secs_f64();
    assert_eq!(engine.stats().memtable_rows, recovered);
    line("recovery of a log of 250,000 events", format!("{took:.2} s"));
    assert!(took < RECOVERY_SECONDS_MAX, "a start took {took:.2} s");
}

/// Bytes of the sections of a kind in all segments.
fn column(inspection: &Inspection, kind: &str) -> u64 {
    let mut bytes = 0;
    for segment in inspection.segments().unwrap() {
        let sections = inspection.sections(segment.uuid).unwrap();
        bytes += sections.iter().filter(|one| one.kind == kind).map(|one| one.bytes).sum::<u64>();
    }
    bytes
}
