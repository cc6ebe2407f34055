//! What the command line can say, and the help that explains it.
//!
//! Comments of the types below with three slashes are the help that `clap` prints: users read their wording.
//!
//! ```text
//! inlay-inspect                            Summary of ./data, or of INLAY_DATA_DIR
//! inlay-inspect segment 0192f4 --blocks    Segment { name: "0192f4", blocks: true, series: false, rollups: false }
//! inlay-inspect log --from 300 --json      Log { from: 300 }, as JSON
//! inlay-inspect keys s                     Keys { prefix: "s", values: false }
//! inlay-inspect segment                    the following required arguments were not provided: <NAME>; exit code 2
//! ```

use std::path::PathBuf;

use clap::{Parser, Subcommand};

// Printed by `--help` below the options; `-h` leaves it out.
const WORDS: &str = "\
Words:
  segment     an immutable sorted file of events. Fresh ones come from memory and may span days;
              merged and sealed ones hold one unit of time: a day, or a week, or two, four or
              eight weeks that are over. A sealed one is the last merge of its unit.
  section     one column of a segment, or something that belongs to it, such as a dictionary
  block       65,536 rows of a section: the unit of encoding and of checking
  zone        what a block can contain; it lets a query skip the block
  series      all events of one namespace, tenant and event name. Its rows stand together, and a
              segment's run directory says where
  rollup      what the rows of a large series add up to, kept beside them: by hour, by value of a
              dimension, and by both
  id run      a sorted file of hashes of event ids: it tells a repeated event from a new one.
              Its filter is a small summary that is asked first
  log, LSN    the write-ahead log; the rising number of its records
  checkpoint  all keys as of one LSN; a start reads the newest one and the log after it
  level       fresh, merged or sealed

Exit code: 0 nothing wrong was noticed, 1 something was, 2 there is no answer (no database, no such
segment). Every command takes --json, which prints one object with plain numbers and a list `damage`.

Examples:
  inlay-inspect                                the directory at a glance
  inlay-inspect columns                        where the bytes of an event go
  inlay-inspect segment 0192f4 --blocks        one segment, block by block
  inlay-inspect --data-dir /backup/mon verify  whether a backup is whole
  inlay-inspect segments --json | jq '.segments[] | select(.level == \"sealed\") | .rows'";

/// Look into the data directory of an Inlay server, also while the server runs: nothing is written
/// there and no lock is taken.
#[derive(Parser)]
#[command(name = "inlay-inspect", version, after_long_help = WORDS, max_term_width = 100)]
pub struct Arguments {
    /// Folder that holds the database, or a backup of one
    #[arg(
        long,
        env = "INLAY_DATA_DIR",
        default_value = "./data",
        global = true,
        value_name = "DIR"
    )]
    pub data_dir: PathBuf,
    /// Print JSON for programs instead of text for people
    #[arg(long, global = true)]
    pub json: bool,
    #[command(subcommand)]
    command: Option<Command>,
}

impl Arguments {
    /// What to show.
    pub fn command(&self) -> Command {
        self.command.clone().unwrap_or(Command::Summary)
    }
}

/// What can be shown.
#[derive(Clone, Subcommand)]
pub enum Command {
    /// The directory at a glance: sizes by level, id runs, log, bytes per event (the default)
    Summary,
    /// All live segments by day: level, rows, bytes, series
    ///
    /// A row is an event. Live segments are those that queries read; a file that no key names is not
    /// listed here but under `verify`.
    Segments,
    /// Where the bytes of an event go: every column over all live segments, and the id runs
    ///
    /// The lines add up to the sizes of the files, so `bytes/event` is what an event costs on disk
    /// without the log. An encoding is how a block is written (constant, packed, delta, sparse,
    /// decimal, ...), followed by the number of blocks that use it.
    Columns,
    /// One segment: facts, and its sections with values, bytes and encodings
    ///
    /// Examples: `segment 0192f4`, `segment 0192f4 --blocks`, `segment 0192f4 --series --json`
    Segment {
        /// Name of the segment, or how it begins
        name: String,
        /// Also list the blocks of each section: offset in the file, bytes, encoding, zone
        #[arg(long)]
        blocks: bool,
        /// Also list the series: whose events, and which rows they are
        #[arg(long)]
        series: bool,
        /// Also list the rows of its rollups: counts, sums and sketches of large series, and
        /// of events with all tenants, by value and hour
        #[arg(long)]
        rollups: bool,
    },
    /// The id runs: hashes of event ids that make a repeated event count once
    ///
    /// A run holds the ids that arrived in one week. Its list decides; its filter, about a byte an
    /// id, answers for most ids that are new.
    Ids,
    /// Records of the log that a start would read: events, and changes of keys
    ///
    /// Records at or below the newest checkpoint are only listed while their events are in no segment.
    Log {
        /// First LSN to show
        #[arg(long, value_name = "LSN", default_value_t = 0)]
        from: u64,
    },
    /// The keys: metadata of the server, and the engine's own lists
    ///
    /// The engine's keys are a letter: `f` LSN up to which events are in segments, `s` live segment,
    /// `i` live id run, `r` retention of a namespace, `x` dropped namespace, `e` erasure, `d` its receipt
    /// when it is done.
    Keys {
        /// Show only keys that begin like this
        #[arg(default_value = "")]
        prefix: String,
        /// Also show the values. They hold secrets, such as hashes of passwords
        #[arg(long)]
        values: bool,
    },
    /// Check everything: every checksum, and every reference between files
    ///
    /// Works on a data directory and on a backup. Reads all files once; exit code 1 when anything is
    /// wrong. Files that nothing names are leftovers, not damage: the next start removes them.
    Verify,
}
