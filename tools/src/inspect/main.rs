//! `inlay-inspect`: a look into a data directory, also while a server uses it.
//!
//! It writes nothing there and takes no lock. Each command gathers one view of the directory, which
//! is printed as text for people or as JSON for programs.
//!
//! Damage is described, never a reason to stop: whatever can still be read is shown, and what cannot
//! is named below it. The exit code is 0 when nothing wrong was noticed, 1 when something was, and 2
//! when the question cannot be answered at all: no database there, no such segment.
//!
//! ```text
//! $ inlay-inspect --data-dir broken columns                  damage is shown below the readable part
//! …
//! Damage:
//!   seg/2025-11-04/019a….seg: offset 3840: checksum mismatch in section 2
//! $ echo $?
//! 1
//! $ inlay-inspect --data-dir /tmp
//! inlay-inspect: /tmp: directory: holds no database: SUPER.a and SUPER.b are missing
//! $ echo $?
//! 2
//! $ inlay-inspect segments | head -1                         the pipe is closed early: no error, code 0
//! ```
//!
//! A command is a type with `View`: `of` gathers, `text` and `json` print the same facts, `damage` lists the faults.

mod amount;
mod arguments;

mod table;

mod view;

mod columns;
mod ids;
mod keys;
mod log;
mod segments;
mod summary;
mod verify;

mod segment;

use std::{
    io::{self, BufWriter, Write},
    process::ExitCode,
};

use clap::Parser as _;
use inlay_engine::{Error, Inspection, OsVfs, Result};

use arguments::{Arguments, Command};
use view::View;

/// How often a directory is looked at again because files were replaced meanwhile. A server merges
/// every half second at most, and most looks are shorter.
const LOOKS_MAX: usize = 8;
/// Exit code when something wrong was noticed.
const DAMAGED: u8 = 1;
/// Exit code when the question has no answer; clap uses it for arguments that it cannot read.
const UNANSWERED: u8 = 2;

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let Seen { view, damage } = match look(&arguments) {
        Ok(seen) => seen,
        Err(error) => {
            eprintln!("inlay-inspect: {}: {error}", arguments.data_dir.display());
            let is_question = matches!(error, Error::Invalid { .. });
            return ExitCode::from(if is_question { UNANSWERED } else { DAMAGED });
        }
    };
    match print(&*view, &damage, arguments.json) {
        Ok(()) if damage.is_empty() => ExitCode::SUCCESS,
        Ok(()) => ExitCode::from(DAMAGED),
        // The reader has seen enough, as `head` does.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("inlay-inspect: cannot write: {error}");
            ExitCode::from(UNANSWERED)
        }
    }
}

/// Result of a look at the directory: the view to print, and the damage, as sentences that begin with a path.
struct Seen {
    view: Box<dyn View>,
    damage: Vec<String>,
}

/// Gathers the view, and what is wrong with it and with the directory as a whole.
///
/// A running server merges segments and deletes the old ones: a file that is missing is no damage
/// when the state does not name it any more, and the directory is looked at again.
fn look(arguments: &Arguments) -> Result<Seen> {
    if let Command::Verify = arguments.command() {
        let view: Box<dyn View> = Box::new(verify::Verification::of(&arguments.data_dir)?);
        return Ok(Seen { damage: view.damage(), view });
    }
    let mut looks = 1;
    loop {
        let (inspection, doubt) = open(arguments)?;
        let view = gather(arguments, &inspection)?;
        let mut damage = view.damage();
        let found = damage.len();
        if found > 0 {
            let now = open(arguments)?.0.named();
            // Files that the state named then and names no more: a server has merged them away.
            let replaced: Vec<String> = inspection.named().difference(&now).cloned().collect();
            damage.retain(|one| !replaced.iter().any(|path| one.starts_with(path)));
        }
        let replaced = found - damage.len();
        if replaced == 0 || looks == LOOKS_MAX {
            if replaced > 0 {
                eprintln!("inlay-inspect: {replaced} files were replaced while they were read");
            }
            damage.splice(0..0, doubt);
            return Ok(Seen { view, damage });
        }
        looks += 1;
    }
}

/// Opens the directory; when its log is damaged, as of its newest checkpoint, with a sentence that says so.
///
/// Errors: `Invalid` when there is no database; that of the log when no checkpoint can be read either.
fn open(arguments: &Arguments) -> Result<(Inspection, Option<String>)> {
    let directory = || OsVfs::existing(&arguments.data_dir);
    let refused = match Inspection::open(directory()) {
        Ok(inspection) => return Ok((inspection, None)),
        Err(error @ Error::Invalid { .. }) => return Err(error),
        Err(error) => error,
    };
    let Ok(inspection) = Inspection::open_without_log(directory()) else { return Err(refused) };
    let doubt = format!(
        "{refused}; shown is the checkpoint at LSN {}, and files that were replaced after it are missing",
        inspection.lsn()
    );
    Ok((inspection, Some(doubt)))
}

/// The view of a command, with everything that it needs read: printing reads no file.
fn gather(arguments: &Arguments, inspection: &Inspection) -> Result<Box<dyn View>> {
    Ok(match arguments.command() {
        Command::Summary => Box::new(summary::Summary::of(inspection)?),
        Command::Segments => Box::new(segments::Segments::of(inspection)?),
        Command::Columns => Box::new(columns::Columns::of(inspection)?),
        Command::Segment { name, blocks, series, rollups } => {
            let details = segment::Details { blocks, series, rollups };
            Box::new(segment::OneSegment::of(inspection, &name, details)?)
        }
        Command::Ids => Box::new(ids::IdRuns::of(inspection)?),
        Command::Log { from } => Box::new(log::Log::of(inspection, from)),
        Command::Keys { prefix, values } => Box::new(keys::Keys::of(inspection, &prefix, values)),
        Command::Verify => Box::new(verify::Verification::of(&arguments.data_dir)?),
    })
}

/// Prints the view with the damage below it, or both as one JSON object.
fn print(view: &dyn View, damage: &[String], as_json: bool) -> io::Result<()> {
    let mut out = BufWriter::new(io::stdout().lock());
    if as_json {
        let mut json = view.json();
        json["damage"] = damage.into();
        serde_json::to_writer_pretty(&mut out, &json)?;
        writeln!(out)?;
    } else {
        view.text(&mut out)?;
        if !damage.is_empty() {
            writeln!(out, "\nDamage:")?;
        }
        for one in damage {
            writeln!(out, "  {}", table::printable(one))?;
        }
    }
    out.flush()
}
