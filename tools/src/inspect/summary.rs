//! `summary`: the directory at a glance.
//!
//! ```text
//! $ inlay-inspect
//! database      67a395aa-5de9-9159-b384-aebcd2686c12
//! last LSN      315
//! flushed LSN   305
//! checkpoints   LSN 306, log needed after 306; LSN 258, log needed after 258
//! keys          10
//! days          2025-11-03 to 2025-11-08
//!
//! level   segments     rows      bytes  bytes/row
//! fresh          1   41,000  613.5 KiB     15.322
//! merged         0        0        0 B          -
//! sealed         5  250,000    3.6 MiB     15.209
//! all            6  291,000    4.2 MiB     15.225
//!
//! id runs       3 with 291,000 ids, 4.8 MiB of which filters 338.1 KiB
//! log           9 records, 422.2 KiB, 9,000 events in no segment yet
//! bytes/event   32.416 with id runs, without the log
//! ```
//!
//! Many fresh segments mean that merging is behind. Events in no segment yet have to be replayed by a start.

use std::io::{self, Write};

use inlay_engine::{IdRunInfo, Inspection, Result, SegmentInfo};
use serde_json::{Value, json};

use crate::{
    amount,
    table::{Table, numbers, words, write_facts},
    view::View,
};

/// Levels in the order in which a segment passes them.
const LEVELS: [&str; 3] = ["fresh", "merged", "sealed"];

/// Identity, sizes, and damage that opening the files shows.
pub struct Summary {
    db: String,
    lsn: u64,
    lsn_flushed: u64,
    checkpoints: Vec<(u64, u64)>,
    segments: Vec<SegmentInfo>,
    id_runs: Vec<IdRunInfo>,
    log: LogSizes,
    keys: u64,
}

/// The part of the log that a start would read.
#[derive(Default)]
struct LogSizes {
    records: u64,
    bytes: u64,
    /// Events that are in no segment yet.
    events_waiting: u64,
    torn_bytes: u64,
    damage: Vec<String>,
}

/// Segments of one level, or of all.
#[derive(Default)]
struct Sizes {
    segments: u64,
    rows: u64,
    bytes: u64,
}

impl Summary {
    /// Reads identity and sizes of a data directory.
    pub fn of(inspection: &Inspection) -> Result<Self> {
        let lsn_flushed = inspection.flushed_lsn()?;
        Ok(Self {
            db: inspection.db().to_string(),
            lsn: inspection.lsn(),
            lsn_flushed,
            checkpoints: inspection.checkpoints(),
            segments: inspection.segments()?,
            id_runs: inspection.id_runs()?,
            log: LogSizes::of(inspection, lsn_flushed),
            keys: inspection.keys("").count() as u64,
        })
    }

    /// Sizes of one level, or of all: rows and bytes as the keyspace records them, whether or not a file can be opened.
    fn sizes(&self, level: Option<&str>) -> Sizes {
        let wanted = |segment: &&SegmentInfo| level.is_none_or(|level| segment.level == level);
        let mut sizes = Sizes::default();
        for segment in self.segments.iter().filter(wanted) {
            sizes.segments += 1;
            sizes.rows += segment.rows;
            sizes.bytes += segment.bytes;
        }
        sizes
    }

    /// First and last day with rows in segments.
    fn days(&self) -> Option<(&str, &str)> {
        let first = self.segments.iter().map(|segment| &*segment.day_first).min()?;
        Some((first, self.segments.iter().map(|segment| &*segment.day_last).max()?))
    }

    fn ids(&self, of: impl Fn(&IdRunInfo) -> u64) -> u64 {
        self.id_runs.iter().map(of).sum()
    }

    /// Bytes of segments and id runs for each row of a segment; `None` without rows.
    fn bytes_per_event(&self) -> Option<f64> {
        let all = self.sizes(None);
        amount::per(all.bytes + self.ids(|run| run.bytes), all.rows)
    }

    /// A line for each level, also for one without segments, and one for all.
    fn write_levels(&self, out: &mut dyn Write) -> io::Result<()> {
        let mut table = Table::new([
            words("level"),
            numbers("segments"),
            numbers("rows"),
            numbers("bytes"),
            numbers("bytes/row"),
        ]);
        let mut add = |name: &str, sizes: Sizes| {
            table.row([
                name.to_owned(),
                amount::count(sizes.segments),
                amount::count(sizes.rows),
                amount::bytes(sizes.bytes),
                amount::ratio(amount::per(sizes.bytes, sizes.rows)),
            ]);
        };
        LEVELS.into_iter().for_each(|level| add(level, self.sizes(Some(level))));
        add("all", self.sizes(None));
        table.write(out)
    }

    /// The lines above the table.
    fn facts(&self) -> [(&str, String); 6] {
        let checkpoints = self.checkpoints.iter().map(|(lsn, after)| {
            format!("LSN {}, log needed after {}", amount::count(*lsn), amount::count(*after))
        });
        let checkpoints = checkpoints.collect::<Vec<_>>().join("; ");
        let days = self.days().map(|(first, last)| format!("{first} to {last}"));
        [
            ("database", self.db.clone()),
            ("last LSN", amount::count(self.lsn)),
            ("flushed LSN", amount::count(self.lsn_flushed)),
            ("checkpoints", if checkpoints.is_empty() { "none".to_owned() } else { checkpoints }),
            ("keys", amount::count(self.keys)),
            ("days", days.unwrap_or_else(|| "none in segments".to_owned())),
        ]
    }

    /// The lines below the table.
    fn costs(&self) -> [(&str, String); 3] {
        let log = &self.log;
        let mut shown = format!(
            "{} records, {}, {} events in no segment yet",
            amount::count(log.records),
            amount::bytes(log.bytes),
            amount::count(log.events_waiting)
        );
        if log.torn_bytes > 0 {
            shown += &format!("; {} never completed, ignored", amount::bytes(log.torn_bytes));
        }
        let ids = format!(
            "{} with {} ids, {} of which filters {}",
            amount::count(self.id_runs.len() as u64),
            amount::count(self.ids(|run| run.ids)),
            amount::bytes(self.ids(|run| run.bytes)),
            amount::bytes(self.ids(|run| run.filter_bytes))
        );
        let per_event =
            format!("{} with id runs, without the log", amount::ratio(self.bytes_per_event()));
        [("id runs", ids), ("log", shown), ("bytes/event", per_event)]
    }
}

impl LogSizes {
    /// Adds up the records that a start would read. Events at or below the flushed LSN are in segments already.
    fn of(inspection: &Inspection, lsn_flushed: u64) -> Self {
        let mut sizes = Self { torn_bytes: inspection.torn_bytes(), ..Self::default() };
        for record in inspection.log(0) {
            sizes.records += 1;
            sizes.bytes += record.bytes;
            if record.lsn > lsn_flushed {
                sizes.events_waiting += record.events as u64;
            }
            sizes.damage.extend(record.damage);
        }
        sizes
    }
}

impl View for Summary {
    fn text(&self, out: &mut dyn Write) -> io::Result<()> {
        write_facts(out, self.facts())?;
        writeln!(out)?;
        self.write_levels(out)?;
        writeln!(out)?;
        write_facts(out, self.costs())
    }

    fn json(&self) -> Value {
        let sizes = |level: Option<&str>| {
            let sizes = self.sizes(level);
            json!({
                "segments": sizes.segments,
                "rows": sizes.rows,
                "bytes": sizes.bytes,
                "bytes_per_row": amount::per(sizes.bytes, sizes.rows),
            })
        };
        let checkpoint = |(lsn, after): &(u64, u64)| json!({ "lsn": lsn, "replay_after": after });
        json!({
            "db": self.db,
            "lsn": self.lsn,
            "lsn_flushed": self.lsn_flushed,
            "checkpoints": self.checkpoints.iter().map(checkpoint).collect::<Vec<_>>(),
            "keys": self.keys,
            "day_first": self.days().map(|(first, _)| first),
            "day_last": self.days().map(|(_, last)| last),
            "levels": LEVELS.map(|level| (level.to_owned(), sizes(Some(level))))
                .into_iter().collect::<serde_json::Map<_, _>>(),
            "all": sizes(None),
            "id_runs": {
                "runs": self.id_runs.len(),
                "ids": self.ids(|run| run.ids),
                "bytes": self.ids(|run| run.bytes),
                "filter_bytes": self.ids(|run| run.filter_bytes),
            },
            "log": {
                "records": self.log.records,
                "bytes": self.log.bytes,
                "events_waiting": self.log.events_waiting,
                "torn_bytes": self.log.torn_bytes,
            },
            "bytes_per_event": self.bytes_per_event(),
        })
    }

    fn damage(&self) -> Vec<String> {
        let segments = self.segments.iter().filter_map(|segment| segment.damage.clone());
        let runs = self.id_runs.iter().filter_map(|run| run.damage.clone());
        segments.chain(runs).chain(self.log.damage.iter().cloned()).collect()
    }
}
