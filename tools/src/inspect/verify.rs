//! `verify`: every checksum, and every reference between files, of a data directory or a backup.
//!
//! ```text
//! $ inlay-inspect --data-dir /backup/mon verify
//! Checked:
//! segments      7 with 300,000 rows
//! id runs       4 with 300,000 ids
//! checkpoints   1
//! log records   0
//! backup list   15 files
//!
//! Nothing is wrong.
//! ```
//!
//! With problems the last line is `1 problem.`, and the list follows under `Damage:`. `--json` has the same as `problems`:
//! `[{"place": "seg/…", "detail": "offset 3840: checksum mismatch in section 2"}]`.

use std::{
    io::{self, IsTerminal as _, Write},
    path::Path,
};

use inlay_engine::{Error, Inspection, OsVfs, Problem, Result, VerifyReport};
use serde_json::{Value, json};

use crate::{amount, table::write_facts, view::View};

/// What was checked, and what is wrong.
pub struct Verification(VerifyReport);

impl Verification {
    /// Checks a directory. When its log or both its checkpoints are damaged, that is the one problem:
    /// which files belong to the database is not known then.
    ///
    /// Errors: `Invalid` when there is no database.
    pub fn of(directory: &Path) -> Result<Self> {
        match Inspection::open(OsVfs::existing(directory)) {
            Ok(inspection) => Ok(Self(check(&inspection))),
            Err(error @ Error::Invalid { .. }) => Err(error),
            Err(Error::Corrupt { place, detail }) => Ok(Self::failed(place, detail)),
            Err(error) => Ok(Self::failed("directory".to_owned(), error.to_string())),
        }
    }

    /// A report of the one problem that kept the directory from being opened.
    fn failed(place: String, detail: String) -> Self {
        Self(VerifyReport { problems: vec![Problem { place, detail }], ..VerifyReport::default() })
    }
}

/// Checks with a line on the terminal that says which file is read: large ones take their time.
fn check(inspection: &Inspection) -> VerifyReport {
    /// Moves to the start of the line and empties it.
    const AGAIN: &str = "\r\x1b[K";
    let mut terminal = io::stderr().lock();
    let is_watched = terminal.is_terminal();
    // Progress that cannot be shown is no reason to stop checking.
    let report = inspection.verify(&mut |place| {
        if is_watched {
            let _ = write!(terminal, "{AGAIN}checking {place}");
        }
    });
    if is_watched {
        let _ = write!(terminal, "{AGAIN}");
    }
    report
}

impl View for Verification {
    fn text(&self, out: &mut dyn Write) -> io::Result<()> {
        let report = &self.0;
        let of = |things: u64, parts: u64, name: &str| {
            format!("{} with {} {name}", amount::count(things), amount::count(parts))
        };
        let mut facts = vec![
            ("segments", of(report.segments, report.rows, "rows")),
            ("id runs", of(report.id_runs, report.ids, "ids")),
            ("checkpoints", amount::count(report.checkpoints)),
            ("log records", amount::count(report.records)),
        ];
        if report.of_other_minor > 0 {
            let of = amount::count(report.of_other_minor);
            facts.push((
                "rollups",
                format!("of {of} segments were chosen by another build: not computed again"),
            ));
        }
        if let Some(files) = report.backup_files {
            facts.push(("backup list", format!("{} files", amount::count(files))));
        }
        writeln!(out, "Checked:")?;
        write_facts(out, facts)?;
        if !report.unnamed.is_empty() {
            writeln!(out, "\nLeftovers that nothing names; the next start removes them:")?;
        }
        for path in &report.unnamed {
            writeln!(out, "  {path}")?;
        }
        match report.problems.len() {
            0 => writeln!(out, "\nNothing is wrong."),
            1 => writeln!(out, "\n1 problem."),
            many => writeln!(out, "\n{many} problems."),
        }
    }

    fn json(&self) -> Value {
        let report = &self.0;
        let problem = |one: &Problem| json!({ "place": one.place, "detail": one.detail });
        json!({
            "segments": report.segments,
            "of_other_minor": report.of_other_minor,
            "rows": report.rows,
            "id_runs": report.id_runs,
            "ids": report.ids,
            "checkpoints": report.checkpoints,
            "records": report.records,
            "backup_files": report.backup_files,
            "unnamed": report.unnamed,
            "problems": report.problems.iter().map(problem).collect::<Vec<_>>(),
        })
    }

    fn damage(&self) -> Vec<String> {
        let problems = self.0.problems.iter();
        problems.map(|one| format!("{}: {}", one.place, one.detail)).collect()
    }
}
