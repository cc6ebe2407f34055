//! `segments`: all live segments, by day.
//!
//! ```text
//! $ inlay-inspect segments
//! name                                  level   days           rows      bytes  bytes/row  series
//! 019a64a0-0500-70b0-904c-ba98be700a94  sealed  2025-11-03   49,725  739.1 KiB     15.221      40
//! …
//! 019a64a0-0500-792d-ab4a-b717c5e2c423  fresh   2025-11-08   41,000  613.5 KiB     15.322      40
//! ------------------------------------  ------  ----------  -------  ---------  ---------  ------
//! 6 segments                                                291,000    4.2 MiB     15.225
//! ```
//!
//! A file that cannot be opened has `see below` in a last column, `damage`, and 0 series; rows and bytes are those of its record.

use std::io::{self, Write};

use inlay_engine::{Inspection, Result, SegmentInfo};
use serde_json::{Value, json};

use crate::{
    amount,
    table::{Table, numbers, words},
    view::View,
};

/// The live segments, by day and then name.
pub struct Segments(Vec<SegmentInfo>);

impl Segments {
    /// Reads the facts of the live segments of a data directory.
    pub fn of(inspection: &Inspection) -> Result<Self> {
        let mut segments = inspection.segments()?;
        segments.sort_by(|a, b| (&a.day_first, a.uuid).cmp(&(&b.day_first, b.uuid)));
        Ok(Self(segments))
    }

    /// Rows of all of them, as their records have them.
    fn rows(&self) -> u64 {
        self.0.iter().map(|segment| segment.rows).sum()
    }

    fn bytes(&self) -> u64 {
        self.0.iter().map(|segment| segment.bytes).sum()
    }
}

impl View for Segments {
    fn text(&self, out: &mut dyn Write) -> io::Result<()> {
        let mut table = Table::new([
            words("name"),
            words("level"),
            words("days"),
            numbers("rows"),
            numbers("bytes"),
            numbers("bytes/row"),
            numbers("series"),
            words("damage"),
        ]);
        for segment in &self.0 {
            table.row([
                segment.uuid.to_string(),
                segment.level.to_owned(),
                days(segment),
                amount::count(segment.rows),
                amount::bytes(segment.bytes),
                amount::ratio(amount::per(segment.bytes, segment.rows)),
                amount::count(segment.series),
                segment.damage.as_ref().map_or_else(String::new, |_| "see below".to_owned()),
            ]);
        }
        table.rule();
        table.row([
            format!("{} segments", amount::count(self.0.len() as u64)),
            String::new(),
            String::new(),
            amount::count(self.rows()),
            amount::bytes(self.bytes()),
            amount::ratio(amount::per(self.bytes(), self.rows())),
            String::new(),
            String::new(),
        ]);
        table.write(out)
    }

    fn json(&self) -> Value {
        json!({
            "segments": self.0.iter().map(describe).collect::<Vec<_>>(),
            "rows": self.rows(),
            "bytes": self.bytes(),
            "bytes_per_row": amount::per(self.bytes(), self.rows()),
        })
    }

    fn damage(&self) -> Vec<String> {
        self.0.iter().filter_map(|segment| segment.damage.clone()).collect()
    }
}

/// The facts of a segment for programs; `damage` is `null` for a file that can be opened.
pub fn describe(segment: &SegmentInfo) -> Value {
    json!({
        "uuid": segment.uuid.to_string(),
        "path": segment.path,
        "level": segment.level,
        "day_first": segment.day_first,
        "day_last": segment.day_last,
        "rows": segment.rows,
        "bytes": segment.bytes,
        "bytes_per_row": amount::per(segment.bytes, segment.rows),
        "series": segment.series,
        "damage": segment.damage,
    })
}

/// The days of a segment for people: `2025-11-03`, or `2025-11-03 to 2025-11-09`.
pub fn days(segment: &SegmentInfo) -> String {
    if segment.day_first == segment.day_last {
        return segment.day_first.clone();
    }
    format!("{} to {}", segment.day_first, segment.day_last)
}
