//! The command: options, the loop over batches, and what people see of it.
//!
//! ```text
//! $ inlay import orders.csv --value event_name=order --field tenant_id=account --refused bad.ndjson
//! row 17: timestamp is not an ISO 8601 date-time or date
//! …
//! 61000 events, 9800 a second, 12 %, 46 s left
//! 499983 events stored, 0 were there before, 17 rows refused, in 51 s: 9804 a second
//! Error: 17 rows were refused, all others are stored
//!
//! $ inlay import orders.csv …                             interrupted
//! Error: it was interrupted; everything up to row 211000 is done: go on with --skip 211000
//! $ inlay import orders.csv …                             a column is named wrongly
//! Error: none of the first 1000 rows is an event: is a column named wrongly? With --refused FILE all are tried
//!
//! {"message":"timestamp is not an ISO 8601 date-time or date","row":17}      a line of bad.ndjson
//! ```
//!
//! With four requests at once batches are answered in any order. `--skip` names the row up to which all are: what is behind it may be
//! stored as well, and sent again it counts once.

use std::{
    collections::BTreeMap,
    io::{IsTerminal as _, Write as _},
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use anyhow::{Context as _, bail};
use clap::{Args, ValueEnum};
use reqwest::Url;
use tokio::{sync::mpsc, task::JoinSet};

use super::{
    batches::{BatchCutter, ImportBatch},
    columns::ColumnOptions,
    csv_rows, ndjson_rows, parquet_rows,
    rows::{self, Position, RowStream},
    sender::{Sender, Sent},
};

/// Refused rows that are shown, at most.
const SHOWN_MAX: u64 = 20;
/// Rows of the first batch that are refused, without a good one, at which an import ends where nobody asked for their list: the next
/// ones would be, too.
const HOPELESS: usize = 900;
/// Batches that are read ahead of the connections.
const AHEAD: usize = 8;

/// What `inlay import` can be told.
#[derive(Debug, Clone, Args)]
pub struct Import {
    /// File of events, or `-` for standard input; `.gz` and `.zst` are unpacked
    pub file: PathBuf,
    /// Address of the server
    #[arg(long, default_value = "http://127.0.0.1:8080")]
    url: Url,
    /// API key with the scope admin or ingest
    #[arg(long, env = "INLAY_API_KEY", hide_env_values = true)]
    key: String,
    /// What the file is, where its name does not say so
    #[arg(long)]
    format: Option<Format>,
    #[command(flatten)]
    columns: ColumnOptions,
    /// Rows at the beginning of the file that are left out: those that an interrupted import has stored
    #[arg(long, default_value_t = 0, value_name = "ROWS")]
    skip: u64,
    /// Requests at the same time
    #[arg(long, default_value_t = 4, value_parser = clap::value_parser!(u64).range(1..=64))]
    connections: u64,
    /// A file for the rows that are refused, one a line with the reason
    #[arg(long, value_name = "FILE")]
    refused: Option<PathBuf>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Format {
    /// A JSON object a line, as `POST /v1/events` takes it
    Ndjson,
    /// A table with the names of its columns in the first line
    Csv,
    Parquet,
}

/// Sends the events of a file to the server.
///
/// Errors: a file or a server that does not work, an interruption, and rows that were refused: the rest is stored then.
pub async fn import(command: &Import) -> anyhow::Result<()> {
    let (rows, position) = open(command)?;
    let sender = Sender::new(&command.url, command.key.clone())?;
    let mut tally = Tally::new(command, position)?;
    let (to_send, mut batches) = mpsc::channel(AHEAD);
    let cut = BatchCutter::new(rows, command.columns.clone(), command.skip);
    let reader = std::thread::spawn(move || {
        for batch in cut {
            let is_last = batch.is_err();
            // Nobody takes it: the import has ended.
            if to_send.blocking_send(batch).is_err() || is_last {
                return;
            }
        }
    });
    // A channel of some batches between the reading thread and the requests: reading goes on while all connections wait.
    let mut requests = JoinSet::new();
    let mut stop = std::pin::pin!(tokio::signal::ctrl_c());
    let mut ticks = tokio::time::interval(tally.every);
    let mut failed: Option<anyhow::Error> = None;
    let mut is_read = false;
    while !(is_read && requests.is_empty()) {
        // The first batch goes alone: by it one sees whether the columns are named rightly.
        let at_once = if tally.has_answer() { command.connections } else { 1 };
        let has_room = !is_read && (requests.len() as u64) < at_once;
        tokio::select! {
            batch = batches.recv(), if has_room => match batch {
                Some(Ok(batch)) => {
                    let sender = sender.clone();
                    tally.begin(batch.last_row);
                    requests.spawn(async move { (sender.send(&batch).await, batch) });
                }
                Some(Err(error)) => (failed, is_read) = (failed.or(Some(error)), true),
                None => is_read = true,
            },
            Some(done) = requests.join_next() => {
                let added = match done {
                    Ok((Ok(sent), batch)) => tally.add(sent, &batch),
                    Ok((Err(error), _)) => Err(error),
                    Err(error) => Err(error.into()),
                };
                if let Err(error) = added {
                    (failed, is_read) = (failed.or(Some(error)), true);
                }
            }
            _ = ticks.tick() => tally.show(),
            interrupted = &mut stop => {
                interrupted?;
                failed = Some(anyhow::anyhow!("it was interrupted"));
                // What is under way may be stored or not: sent again, it counts once.
                requests.shutdown().await;
                break;
            }
        }
    }
    drop(batches);
    // A reader of standard input may wait for a line that never comes.
    if failed.is_none() && reader.join().is_err() {
        failed = Some(anyhow::anyhow!("the file cannot be read on"));
    }
    tally.finish(failed)
}

/// The rows of the file by its format, and how far it is read.
///
/// Errors: a file that cannot be read, whose format is not known, or to which the options do not apply.
fn open(command: &Import) -> anyhow::Result<(RowStream, Position)> {
    let format = match command.format {
        Some(format) => format,
        None => format_of(&command.file)?,
    };
    let options = &command.columns;
    if format == Format::Parquet {
        return parquet_rows::rows(&command.file, options);
    }
    let (reader, position) = rows::open(&command.file)?;
    let rows = match format {
        Format::Csv => csv_rows::rows(reader, options)?,
        _ if !(options.fields.is_empty()
            && options.texts.is_empty()
            && options.ignored.is_empty()) =>
        {
            bail!(
                "--field, --text and --ignore are about columns, and lines of NDJSON are events already"
            )
        }
        _ => ndjson_rows::rows(reader),
    };
    Ok((rows, position))
}

/// The format by the name of a file: `2025.ndjson.gz` is NDJSON, `-` too.
///
/// Errors: `orders.xls does not say what it is: --format ndjson, csv or parquet`.
fn format_of(file: &Path) -> anyhow::Result<Format> {
    if file == Path::new("-") {
        return Ok(Format::Ndjson);
    }
    let name =
        file.file_name().and_then(|name| name.to_str()).unwrap_or_default().to_ascii_lowercase();
    let name = name.strip_suffix(".gz").or(name.strip_suffix(".zst")).unwrap_or(&name).to_owned();
    Ok(match name.rsplit_once('.') {
        Some((_, "ndjson" | "jsonl" | "json")) => Format::Ndjson,
        Some((_, "csv" | "tsv")) => Format::Csv,
        Some((_, "parquet")) => Format::Parquet,
        _ => bail!("{} does not say what it is: --format ndjson, csv or parquet", file.display()),
    })
}

/// Counts of an import, and what people see of them.
///
/// Lines go to standard error: on a terminal the last one is rewritten four times a second, elsewhere one comes every ten seconds.
struct Tally {
    began: Instant,
    position: Position,
    every: Duration,
    is_terminal: bool,
    accepted: u64,
    duplicates: u64,
    refused: u64,
    /// Batches under way by their last rows, and whether they are done: all rows before the first that is not are stored.
    batches: BTreeMap<u64, bool>,
    /// The last row before which everything is stored.
    stored: u64,
    refusals: Option<std::fs::File>,
}

impl Tally {
    fn new(command: &Import, position: Position) -> anyhow::Result<Self> {
        let refusals = command.refused.as_deref().map(|path| {
            let same = |path: &Path| path.canonicalize().ok();
            if same(path).is_some_and(|path| Some(path) == same(&command.file)) {
                bail!("--refused names the file that is imported");
            }
            // An import that goes on adds to what the one before has found.
            let mut file = std::fs::OpenOptions::new();
            let (again, anew) = (command.skip > 0, command.skip == 0);
            file.create(true).write(true).append(again).truncate(anew);
            file.open(path).with_context(|| format!("cannot write {}", path.display()))
        });
        let is_terminal = std::io::stderr().is_terminal();
        Ok(Self {
            began: Instant::now(),
            position,
            every: Duration::from_millis(if is_terminal { 250 } else { 10_000 }),
            is_terminal,
            accepted: 0,
            duplicates: 0,
            refused: 0,
            batches: BTreeMap::new(),
            stored: command.skip,
            refusals: refusals.transpose()?,
        })
    }

    /// Counts a batch as under way.
    fn begin(&mut self, last_row: u64) {
        self.batches.insert(last_row, false);
    }

    /// Whether the server has answered a batch: until then one is sent alone.
    fn has_answer(&self) -> bool {
        self.accepted > 0 || self.refused > 0
    }

    /// Counts the answer about a batch, and lists the rows that were refused.
    ///
    /// Errors: a first batch without an event; a list of refused rows that cannot be written.
    fn add(&mut self, sent: Sent, batch: &ImportBatch) -> anyhow::Result<()> {
        let is_first = !self.has_answer();
        let is_all = sent.accepted == 0 && sent.refused.len() >= HOPELESS;
        self.accepted += sent.accepted;
        self.duplicates += sent.duplicates;
        for (row, message) in sent.refused {
            self.refused += 1;
            if self.refused <= SHOWN_MAX {
                self.say(&format!("row {row}: {message}"));
            }
            if let Some(file) = &mut self.refusals {
                let line = serde_json::json!({"row": row, "message": message});
                writeln!(file, "{line}").context("cannot write the rows that are refused")?;
            }
        }
        if is_first && is_all && self.refusals.is_none() {
            bail!(
                "none of the first {} rows is an event: is a column named wrongly? With --refused FILE all are tried",
                batch.last_row
            );
        }
        self.batches.insert(batch.last_row, true);
        // Batches are done in any order; stored is what lies before the first that is not.
        while let Some(first) = self.batches.first_entry()
            && *first.get()
        {
            self.stored = *first.key();
            first.remove();
        }
        Ok(())
    }

    /// A line for people, above the one that shows how far it is.
    fn say(&self, line: &str) {
        let clear = if self.is_terminal { "\r\x1b[K" } else { "" };
        let _ = writeln!(std::io::stderr(), "{clear}{line}");
    }

    /// The line that says how far it is. Without a known length, as of standard input, it has no percentage.
    fn show(&self) {
        if self.began.elapsed() < self.every {
            return;
        }
        let seconds = self.began.elapsed().as_secs_f64();
        let mut line =
            format!("{} events, {:.0} a second", self.accepted, self.accepted as f64 / seconds);
        if let Some(fraction) = self.position.fraction() {
            let left = seconds / fraction.max(1e-9) - seconds;
            line += &format!(", {:.0} %, {} left", fraction * 100.0, duration(left));
        }
        let (clear, end) = if self.is_terminal { ("\r\x1b[K", "") } else { ("", "\n") };
        let _ = write!(std::io::stderr(), "{clear}{line}{end}");
    }

    /// The last line, and the outcome of the command.
    ///
    /// Errors: `failed` with the row to go on from; rows that were refused, although all others are stored: a script must notice.
    fn finish(self, failed: Option<anyhow::Error>) -> anyhow::Result<()> {
        let seconds = self.began.elapsed().as_secs_f64().max(1e-3);
        let Self { accepted, duplicates, refused, stored, .. } = self;
        self.say(&format!(
            "{} events stored, {duplicates} were there before, {refused} rows refused, in {}: {:.0} a second",
            accepted.saturating_sub(duplicates),
            duration(seconds),
            accepted as f64 / seconds,
        ));
        if accepted > 0 && accepted == duplicates && failed.is_none() {
            self.say(
                "every event was there before: what is stored is not changed by other options",
            );
        }
        if let Some(error) = failed {
            bail!("{error:#}; everything up to row {stored} is done: go on with --skip {stored}");
        }
        match refused {
            0 => Ok(()),
            shown if self.refusals.is_none() && shown > SHOWN_MAX => {
                bail!("{refused} rows were refused; --refused FILE lists all of them")
            }
            _ => bail!("{refused} rows were refused, all others are stored"),
        }
    }
}

/// `7 s`, `2 min 5 s`.
fn duration(seconds: f64) -> String {
    let whole = seconds.round() as u64;
    match (whole / 60, whole % 60) {
        (0, _) if seconds < 10.0 => format!("{seconds:.1} s"),
        (0, seconds) => format!("{seconds} s"),
        (minutes, seconds) => format!("{minutes} min {seconds} s"),
    }
}
