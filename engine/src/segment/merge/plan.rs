//! The plan of a merge: which rows of the inputs make up which output.
//!
//! Everything is decided from run directories; no column is touched. Outputs hold one unit of
//! time each when units are split, at most so many rows, and whole series wherever one fits.
//!
//! ```text
//! three fresh inputs, days parted, 4,000,000 rows an output
//!
//! Monday    acme/call 900,000   acme/error 40,000   zeta/call 2,000,000     2,940,000 → output 1
//! Tuesday   acme/call 700,000   zeta/call 9,000,000                         output 2: acme/call
//!                                                                           outputs 3 to 5: zeta/call, cut between hours
//! expired   old/call 10,000     fate Drop                                   in no output; listed as dropped
//! ```

use std::{collections::BTreeMap, ops::Range};

use crate::{
    column::SeriesKey,
    segment::{Run, Segment, Unit, Units},
};

/// Decision about the rows of one series and day.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fate {
    /// All rows are copied to an output.
    Keep,
    /// All rows are left out.
    Drop,
    /// Rows of the user with this hash are left out; which these are is seen when the user codes are read.
    WithoutUser(u128),
}

/// Which rows may share an output: those of one unit while history is parted and merged, any rows of a segment that is rewritten
/// for an erasure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Split {
    /// Rows of one unit of time.
    Units(Units),
    /// Rows of any days may share an output.
    Nothing,
}

/// Consecutive rows of an input: `{ input: 1, start: 0, rows: 2 }` are the first two rows of the second input.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Piece {
    /// Index of the input.
    pub input: u16,
    /// First row, counted in the input.
    pub start: u32,
    /// Number of rows.
    pub rows: u32,
}

/// The rows of one series in an output.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SeriesPlan<'a> {
    /// Series that the rows belong to.
    pub key: &'a SeriesKey,
    /// The rows as ranges of the inputs.
    pub pieces: Vec<Piece>,
    /// Hash of the user whose rows are left out, `None` for almost every merge.
    pub without_user: Option<u128>,
}

impl SeriesPlan<'_> {
    /// Rows of the series in this output, those of a user to be left out included.
    fn rows(&self) -> u64 {
        self.pieces.iter().map(|piece| u64::from(piece.rows)).sum()
    }
}

/// The series of each output, and the rows of each input that go altogether.
#[derive(Debug, Default)]
pub struct Plan<'a> {
    /// One entry an output.
    pub outputs: Vec<Vec<SeriesPlan<'a>>>,
    /// One entry an input: rows that are dropped.
    pub dropped: Vec<Vec<Range<u32>>>,
}

/// Plans the merge of `inputs`, of which there are at most 65,536. `fate` is asked once for each series and day of each input.
///
/// Outputs come by unit, the earliest first, and rise by series within one.
pub fn plan<'a>(
    inputs: &[&'a Segment],
    split: Split,
    rows_max: u32,
    fate: &dyn Fn(&SeriesKey, i64) -> Fate,
) -> Plan<'a> {
    let mut plan = Plan { dropped: vec![Vec::new(); inputs.len()], ..Plan::default() };
    let mut units: BTreeMap<Option<Unit>, BTreeMap<&SeriesKey, SeriesPlan<'a>>> = BTreeMap::new();
    for (input, segment) in inputs.iter().enumerate() {
        for run in segment.runs().runs() {
            for (day, rows) in run.days() {
                let without_user = match fate(&run.key, day) {
                    Fate::Drop => {
                        plan.dropped[input].push(rows);
                        continue;
                    }
                    Fate::Keep => None,
                    Fate::WithoutUser(user) => Some(user),
                };
                let unit = match split {
                    Split::Units(units) => Some(units.of(day)),
                    Split::Nothing => None,
                };
                let series = units.entry(unit).or_default().entry(&run.key).or_insert(SeriesPlan {
                    key: &run.key,
                    pieces: Vec::new(),
                    without_user: None,
                });
                // An erasure is of one user, and one is carried out at a time: all days of a series name the same user or none.
                series.without_user = series.without_user.or(without_user);
                add_piece(&mut series.pieces, input as u16, rows);
            }
        }
    }
    for series in units.into_values() {
        pack(inputs, series.into_values(), rows_max, &mut plan.outputs);
    }
    plan
}

/// Appends rows, joined to the last piece where they follow it: days of one series that stay together are one piece.
fn add_piece(pieces: &mut Vec<Piece>, input: u16, rows: Range<u32>) {
    match pieces.last_mut() {
        Some(last) if last.input == input && last.start + last.rows == rows.start => {
            last.rows += rows.len() as u32;
        }
        _ => pieces.push(Piece { input, start: rows.start, rows: rows.len() as u32 }),
    }
}

/// Fills outputs in order: one where all rows fit it. A series is cut only when it does not fit an output of its
/// own. Of several outputs, large namespaces start a new one, so that deleting one drops files instead of rewriting
/// them.
fn pack<'a>(
    inputs: &[&'a Segment],
    series: impl Iterator<Item = SeriesPlan<'a>>,
    rows_max: u32,
    outputs: &mut Vec<Vec<SeriesPlan<'a>>>,
) {
    let rows_max = u64::from(rows_max);
    let series: Vec<SeriesPlan<'a>> = series.collect();
    // Where one output takes all rows, namespaces share it: a store of many small ones would have a file for each otherwise.
    let fits_one = series.iter().map(SeriesPlan::rows).sum::<u64>() <= rows_max;
    let mut current: Vec<SeriesPlan<'a>> = Vec::new();
    let mut filled = 0;
    for whole in series {
        let parts = if whole.rows() > rows_max {
            cut_by_hours(inputs, &whole, rows_max)
        } else {
            vec![whole]
        };
        for part in parts {
            let changes_owner =
                current.last().is_some_and(|last| last.key.namespace != part.key.namespace);
            // Two parts of one series never share an output: a run directory refuses two runs of one key.
            let is_full = filled + part.rows() > rows_max
                || changes_owner && !fits_one && filled >= rows_max / 4
                || current.last().is_some_and(|last| last.key == part.key);
            if is_full && !current.is_empty() {
                outputs.push(std::mem::take(&mut current));
                filled = 0;
            }
            filled += part.rows();
            current.push(part);
        }
    }
    if !current.is_empty() {
        outputs.push(current);
    }
}

/// Cuts a series between hours into parts of at most `rows_max` rows, or of one hour. Rows of an hour of all inputs stay
/// together, so the parts follow each other in time.
fn cut_by_hours<'a>(
    inputs: &[&'a Segment],
    whole: &SeriesPlan<'a>,
    rows_max: u64,
) -> Vec<SeriesPlan<'a>> {
    let mut hours: BTreeMap<i64, Vec<Piece>> = BTreeMap::new();
    for piece in &whole.pieces {
        let runs = inputs[usize::from(piece.input)].runs().runs();
        let at = runs.partition_point(|run| run.first_row <= piece.start).saturating_sub(1);
        let Some(run) = runs.get(at) else { continue };
        for (hour, rows) in hours_within(run, piece) {
            let start = rows.start;
            let rows = rows.len() as u32;
            hours.entry(hour).or_default().push(Piece { input: piece.input, start, rows });
        }
    }
    let empty =
        || SeriesPlan { key: whole.key, pieces: Vec::new(), without_user: whole.without_user };
    let mut parts = vec![empty()];
    for pieces in hours.into_values() {
        let added: u64 = pieces.iter().map(|piece| u64::from(piece.rows)).sum();
        let filled = parts.last().map_or(0, SeriesPlan::rows);
        if filled > 0 && filled + added > rows_max {
            parts.push(empty());
        }
        if let Some(part) = parts.last_mut() {
            part.pieces.extend(pieces);
        }
    }
    parts
}

/// The hours of a run that lie inside a piece, in the segment's row numbers: a piece of some days of a run has some of its hours.
fn hours_within<'r>(
    run: &'r Run,
    piece: &'r Piece,
) -> impl Iterator<Item = (i64, Range<u32>)> + 'r {
    run.hour_rows().filter_map(move |(hour, rows)| {
        let start = (run.first_row + rows.start).max(piece.start);
        let end = (run.first_row + rows.end).min(piece.start + piece.rows);
        (start < end).then_some((hour, start..end))
    })
}
