//! `columns`: where the bytes of an event go.
//!
//! Sections of one kind and column are added up over all live segments. What a segment's file holds
//! besides sections (header, footer, the space before each section) is a line of its own, and so are
//! the two halves of the id runs, so that the lines add up to the sizes of the files.
//!
//! ```text
//! $ inlay-inspect columns
//! section                    column          bytes  bytes/event    share  encodings
//! event ids                              951.5 KiB        3.348   10.3 %  front-coded zstd ×6
//! times                                  794.8 KiB        2.797    8.6 %  delta ×6
//! numbers                    latency_ms  749.7 KiB        2.638    8.1 %  decimal 3 ×6
//! …
//! headers, footers, padding               10.1 KiB        0.036    0.1 %
//! id runs: hashes                          4.4 MiB       16.002   49.4 %
//! id runs: filters                       338.1 KiB        1.190    3.7 %
//! -------------------------  ----------  ---------  -----------  -------  -------------------
//! 291,000 events                           9.0 MiB       32.416  100.0 %
//! ```
//!
//! A string property with many different values shows twice: its codes take more bits, and its dictionary is a line `text values`.

use std::{
    collections::BTreeMap,
    io::{self, Write},
};

use inlay_engine::{Inspection, Result, SectionInfo};
use serde_json::{Value, json};

use crate::{
    amount,
    table::{Table, numbers, words},
    view::View,
};

/// One line of the breakdown: sections of one kind and column, or one of the lines that are no section.
#[derive(Default)]
struct Line {
    kind: String,
    column: String,
    bytes: u64,
    segments: u64,
    encodings: BTreeMap<String, u64>,
}

/// Bytes of all live segments and id runs, by what they are spent on.
pub struct Columns {
    lines: Vec<Line>,
    rows: u64,
    damage: Vec<String>,
}

impl Columns {
    /// Adds them up. A segment that cannot be opened counts neither with its bytes nor its rows.
    pub fn of(inspection: &Inspection) -> Result<Self> {
        let mut lines: BTreeMap<(String, String), Line> = BTreeMap::new();
        let mut found = Self { lines: Vec::new(), rows: 0, damage: Vec::new() };
        let mut rest = Line { kind: "headers, footers, padding".to_owned(), ..Line::default() };
        for segment in inspection.segments()? {
            let sections = match inspection.sections(segment.uuid) {
                Ok(sections) => sections,
                Err(error) => {
                    found.damage.push(error.to_string());
                    continue;
                }
            };
            found.rows += segment.rows;
            found.damage.extend(block_damage(&sections));
            let in_sections: u64 = sections.iter().map(|section| section.bytes).sum();
            rest.bytes += segment.bytes.saturating_sub(in_sections);
            rest.segments += 1;
            for section in sections {
                let line = lines.entry((section.kind.clone(), section.column.clone())).or_default();
                line.add(section);
            }
        }
        found.lines = lines.into_values().collect();
        found.lines.sort_by_key(|line| std::cmp::Reverse(line.bytes));
        found.lines.push(rest);
        found.add_id_runs(inspection)?;
        Ok(found)
    }

    /// Two lines at the end: the filters, and everything else of the runs.
    fn add_id_runs(&mut self, inspection: &Inspection) -> Result<()> {
        let runs = inspection.id_runs()?;
        let filters = runs.iter().map(|run| run.filter_bytes).sum();
        let bytes: u64 = runs.iter().map(|run| run.bytes).sum();
        for (kind, bytes) in
            [("id runs: hashes", bytes.saturating_sub(filters)), ("id runs: filters", filters)]
        {
            self.lines.push(Line { kind: kind.to_owned(), bytes, ..Line::default() });
        }
        self.damage.extend(runs.into_iter().filter_map(|run| run.damage));
        Ok(())
    }

    /// Bytes of all lines: of all files that could be opened.
    fn bytes(&self) -> u64 {
        self.lines.iter().map(|line| line.bytes).sum()
    }
}

impl Line {
    fn add(&mut self, section: SectionInfo) {
        self.kind = section.kind;
        self.column = section.column;
        self.bytes += section.bytes;
        self.segments += 1;
        for (encoding, blocks) in section.encodings {
            *self.encodings.entry(encoding).or_default() += blocks;
        }
    }

    /// Encodings by the word before their details: over many segments the details are many. `decimal 3, all` and
    /// `decimal 3, marked` are both `decimal 3`.
    fn families(&self) -> BTreeMap<String, u64> {
        let mut families: BTreeMap<String, u64> = BTreeMap::new();
        for (encoding, blocks) in &self.encodings {
            let family = encoding.split(',').next().unwrap_or_default();
            *families.entry(family.to_owned()).or_default() += blocks;
        }
        families
    }
}

impl View for Columns {
    fn text(&self, out: &mut dyn Write) -> io::Result<()> {
        let mut table = Table::new([
            words("section"),
            words("column"),
            numbers("bytes"),
            numbers("bytes/event"),
            numbers("share"),
            words("encodings"),
        ]);
        let total = self.bytes();
        for line in &self.lines {
            table.row([
                line.kind.clone(),
                line.column.clone(),
                amount::bytes(line.bytes),
                amount::ratio(amount::per(line.bytes, self.rows)),
                amount::share(line.bytes, total),
                encodings(&line.families()),
            ]);
        }
        table.rule();
        table.row([
            format!("{} events", amount::count(self.rows)),
            String::new(),
            amount::bytes(total),
            amount::ratio(amount::per(total, self.rows)),
            amount::share(total, total),
            String::new(),
        ]);
        table.write(out)
    }

    fn json(&self) -> Value {
        let total = self.bytes();
        let describe = |line: &Line| {
            json!({
                "kind": line.kind,
                "column": line.column,
                "segments": line.segments,
                "bytes": line.bytes,
                "bytes_per_event": amount::per(line.bytes, self.rows),
                "share": amount::per(line.bytes, total),
                "encodings": line.encodings,
            })
        };
        json!({
            "lines": self.lines.iter().map(describe).collect::<Vec<_>>(),
            "events": self.rows,
            "bytes": total,
            "bytes_per_event": amount::per(total, self.rows),
        })
    }

    fn damage(&self) -> Vec<String> {
        self.damage.clone()
    }
}

/// Damage of the blocks of some sections, one sentence for each damaged block.
pub fn block_damage(sections: &[SectionInfo]) -> impl Iterator<Item = String> + '_ {
    sections.iter().flat_map(|section| &section.blocks).filter_map(|block| block.damage.clone())
}

/// Encodings with the number of their blocks, the most frequent first: `packed ×5; constant`.
pub fn encodings(encodings: &BTreeMap<String, u64>) -> String {
    let mut by_blocks: Vec<_> = encodings.iter().collect();
    by_blocks.sort_by_key(|(_, blocks)| std::cmp::Reverse(**blocks));
    let shown = by_blocks.into_iter().map(|(encoding, blocks)| match blocks {
        1 => encoding.clone(),
        _ => format!("{encoding} ×{}", amount::count(*blocks)),
    });
    shown.collect::<Vec<_>>().join("; ")
}
