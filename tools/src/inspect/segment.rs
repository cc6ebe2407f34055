//! `segment NAME`: one segment, its sections, and on request its blocks, series and rollups.
//!
//! ```text
//! $ inlay-inspect segment 019a6356-6e00-7ec8 --series --rollups         (the golden files; sections shortened)
//! section     column  values  bytes  bytes/value  blocks  encodings
//! runs                     4  104 B       26.000       2  directory ×2
//! times                   40  118 B        2.950       1  packed
//! numbers     ms          40   99 B        2.475       1  decimal 2, all
//!
//! namespace  tenant  event   first row  rows  hours
//!         2  acme    call            0    28      1
//!         2  acme    refund         28     4      1
//!         2  zeta    call           32     7      1
//!         2  zeta    refund         39     1      1
//!
//! namespace  tenant  event  values                day or hour         count
//!         2  acme    call   model=large           2025-11-02 all day     21
//!         2  acme    call   model=large           2025-11-02 03:00       21
//!         2  acme    call   model=large, no plan  2025-11-02 all day     20
//!         2  (all)   call   model=large           2025-11-02 all day     26
//! ```
//!
//! A name that several segments begin with is refused: `segment: several start with 019a`, exit code 2.

use std::io::{self, Write};

use inlay_engine::{
    BlockInfo, Error, Inspection, Result, RollupRow, RunInfo, SectionInfo, SegmentInfo,
};
use serde_json::{Value, json};

use crate::{
    amount,
    columns::{block_damage, encodings},
    segments::{days, describe},
    table::{Table, numbers, words, write_facts},
    view::View,
};

/// Parts to show besides facts and sections, as the options ask for them. Rollups are read only if they are to be shown.
#[derive(Clone, Copy)]
pub struct Details {
    /// Whether to show the blocks of each section.
    pub blocks: bool,
    /// Whether to show the series of the segment.
    pub series: bool,
    /// Whether to show the rows of the rollups.
    pub rollups: bool,
}

/// One segment. Sections and series are empty when its file cannot be opened.
pub struct OneSegment {
    info: SegmentInfo,
    sections: Vec<SectionInfo>,
    series: Vec<RunInfo>,
    rollups: Vec<RollupRow>,
    details: Details,
    damage: Vec<String>,
}

impl OneSegment {
    /// Reads the live segment whose name starts with `name`. Errors: `Invalid` when that is not one.
    pub fn of(inspection: &Inspection, name: &str, details: Details) -> Result<Self> {
        let uuid = inspection.find_segment(&name.to_ascii_lowercase())?;
        let info = inspection.segments()?.into_iter().find(|info| info.uuid == uuid);
        let info = info.ok_or_else(|| Error::Invalid {
            field: "segment",
            detail: format!("{uuid} is not live"),
        })?;
        let (sections, series, mut damage) =
            match (inspection.sections(uuid), inspection.runs(uuid)) {
                (Ok(sections), Ok(series)) => {
                    let damage = block_damage(&sections).collect();
                    (sections, series, damage)
                }
                (Err(error), _) | (_, Err(error)) => {
                    (Vec::new(), Vec::new(), vec![error.to_string()])
                }
            };
        let rollups = if details.rollups && !sections.is_empty() {
            inspection.rollups(uuid).unwrap_or_else(|error| {
                damage.push(error.to_string());
                Vec::new()
            })
        } else {
            Vec::new()
        };
        Ok(Self { info, sections, series, rollups, details, damage })
    }

    /// A line for each section of the file, in the order of its table.
    fn write_sections(&self, out: &mut dyn Write) -> io::Result<()> {
        let mut table = Table::new([
            words("section"),
            words("column"),
            numbers("values"),
            numbers("bytes"),
            numbers("bytes/value"),
            numbers("blocks"),
            words("encodings"),
        ]);
        for section in &self.sections {
            table.row([
                section.kind.clone(),
                section.column.clone(),
                amount::count(section.values),
                amount::bytes(section.bytes),
                amount::ratio(amount::per(section.bytes, section.values)),
                amount::count(section.blocks.len() as u64),
                encodings(&section.encodings),
            ]);
        }
        writeln!(out)?;
        table.write(out)
    }

    /// A line for each block, with its offset in the file, which error messages name.
    fn write_blocks(&self, out: &mut dyn Write) -> io::Result<()> {
        let mut table = Table::new([
            words("section"),
            words("column"),
            numbers("block"),
            numbers("offset"),
            numbers("bytes"),
            words("encoding"),
            words("zone"),
            words("damage"),
        ]);
        for section in &self.sections {
            for (at, block) in section.blocks.iter().enumerate() {
                table.row([
                    section.kind.clone(),
                    section.column.clone(),
                    amount::count(at as u64),
                    amount::count(block.offset),
                    amount::count(u64::from(block.bytes)),
                    block.encoding.clone(),
                    block.zone.clone().unwrap_or_default(),
                    block.damage.as_ref().map_or_else(String::new, |_| "see below".to_owned()),
                ]);
            }
        }
        writeln!(out)?;
        table.write(out)
    }

    /// A line for each series, in the order of the rows.
    fn write_series(&self, out: &mut dyn Write) -> io::Result<()> {
        let mut table = Table::new([
            numbers("namespace"),
            words("tenant"),
            words("event"),
            numbers("first row"),
            numbers("rows"),
            numbers("hours"),
        ]);
        for run in &self.series {
            table.row([
                run.namespace.to_string(),
                run.tenant.clone(),
                run.event.clone(),
                amount::count(u64::from(run.first_row)),
                amount::count(u64::from(run.rows)),
                amount::count(run.hours as u64),
            ]);
        }
        writeln!(out)?;
        table.write(out)
    }
}

/// The rows of rollups as a table. A tilde marks approximate values: users and percentiles.
fn write_rollups(rows: &[RollupRow], out: &mut dyn Write) -> io::Result<()> {
    let mut table = Table::new([
        numbers("namespace"),
        words("tenant"),
        words("event"),
        words("values"),
        words("day or hour"),
        words("number"),
        numbers("count"),
        numbers("sum"),
        numbers("min"),
        numbers("max"),
        numbers("users"),
        words("p50, p95, p99"),
    ]);
    for row in rows {
        let value = |(dimension, value): &(String, Option<String>)| match value {
            Some(value) => format!("{dimension}={value}"),
            None => format!("no {dimension}"),
        };
        let values: Vec<String> = row.values.iter().map(value).collect();
        let sums = row.sums.map(|(sum, min, max)| [sum, min, max].map(|number| number.to_string()));
        let [sum, min, max] = sums.unwrap_or_default();
        table.row([
            row.namespace.to_string(),
            row.tenant.clone().unwrap_or_else(|| "(all)".to_owned()),
            row.event.clone(),
            values.join(", "),
            row.hour.clone().unwrap_or_else(|| format!("{} all day", row.day)),
            row.number.clone().unwrap_or_default(),
            row.count.map(amount::count).unwrap_or_default(),
            sum,
            min,
            max,
            row.users.map(|users| format!("~{}", amount::count(users))).unwrap_or_default(),
            row.percentiles
                .map(|of| of.map(|number| format!("~{number:.6}")).join(", "))
                .unwrap_or_default(),
        ]);
    }
    writeln!(out)?;
    if rows.is_empty() {
        return writeln!(out, "No series of it has enough rows for rollups.");
    }
    table.write(out)
}

impl View for OneSegment {
    fn text(&self, out: &mut dyn Write) -> io::Result<()> {
        let info = &self.info;
        let per_row = amount::ratio(amount::per(info.bytes, info.rows));
        write_facts(
            out,
            [
                ("segment", info.uuid.to_string()),
                ("file", info.path.clone()),
                ("level", info.level.to_owned()),
                ("days", days(info)),
                ("rows", amount::count(info.rows)),
                ("bytes", format!("{}, {per_row} a row", amount::bytes(info.bytes))),
                ("series", amount::count(info.series)),
            ],
        )?;
        if self.sections.is_empty() {
            return writeln!(out, "\nThe file cannot be opened: its sections are not known.");
        }
        self.write_sections(out)?;
        if self.details.blocks {
            self.write_blocks(out)?;
        }
        if self.details.series {
            self.write_series(out)?;
        }
        if self.details.rollups {
            write_rollups(&self.rollups, out)?;
        }
        Ok(())
    }

    fn json(&self) -> Value {
        let section = |section: &SectionInfo| {
            let mut json = json!({
                "kind": section.kind,
                "column": section.column,
                "values": section.values,
                "bytes": section.bytes,
                "bytes_per_value": amount::per(section.bytes, section.values),
                "encodings": section.encodings,
            });
            if self.details.blocks {
                json["blocks"] = section.blocks.iter().map(describe_block).collect();
            }
            json
        };
        let mut json = json!({
            "segment": describe(&self.info),
            "sections": self.sections.iter().map(section).collect::<Vec<_>>(),
        });
        if self.details.series {
            json["series"] = self.series.iter().map(describe_series).collect();
        }
        if self.details.rollups {
            json["rollups"] = self.rollups.iter().map(describe_rollup).collect();
        }
        json
    }

    fn damage(&self) -> Vec<String> {
        self.damage.clone()
    }
}

/// A block for programs, with the whole sentence of its damage.
fn describe_block(block: &BlockInfo) -> Value {
    json!({
        "offset": block.offset,
        "bytes": block.bytes,
        "encoding": block.encoding,
        "zone": block.zone,
        "damage": block.damage,
    })
}

/// A row of a rollup for programs; a value of `null` is "absent".
fn describe_rollup(row: &RollupRow) -> Value {
    let sums = row.sums.map(|(sum, min, max)| json!({"sum": sum, "min": min, "max": max}));
    let values: serde_json::Map<String, Value> =
        row.values.iter().map(|(dimension, value)| (dimension.clone(), json!(value))).collect();
    json!({
        "namespace": row.namespace,
        "tenant": row.tenant,
        "event": row.event,
        "values": values,
        "day": row.day,
        "hour": row.hour,
        "number": row.number,
        "count": row.count,
        "sums": sums,
        "users_approx": row.users,
        "percentiles_approx": row.percentiles,
    })
}

fn describe_series(run: &RunInfo) -> Value {
    json!({
        "namespace": run.namespace,
        "tenant": run.tenant,
        "event": run.event,
        "first_row": run.first_row,
        "rows": run.rows,
        "hours": run.hours,
    })
}
