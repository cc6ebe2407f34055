//! Computing the rollups of a segment from its columns, a vector of rows at a time.

#![cfg_attr(not(test), deny(clippy::unwrap_used))]

use std::ops::Range;

use super::layout::{
    HOURS, NOT_KEPT, NUMBERS_MAX, PAIRS_MAX, ROWS_A_COUNT, ROWS_A_STATE, TOTALS, VALUES_MAX,
    pair_name,
};
use crate::{
    base::coding::Put,
    encode::{BLOCK_ROWS, VECTOR_ROWS, ints::IntBlock, numbers::NumberBlock},
    error::Result,
    index::bitmaps::ROLLUP_DIMENSIONS,
    segment::{NumberReader, SectionKind, Segment, TextReader, rolled::write_series, runs::Run},
    sketch::sums::Sums,
};

/// A section that waits to be written: a block for each series that is rolled up, in order.
#[derive(Debug, PartialEq, Eq)]
pub struct RollupSection {
    /// What it holds.
    pub kind: SectionKind,
    /// Dimension, property, or both.
    pub name: String,
    /// Its blocks.
    pub blocks: Vec<Vec<u8>>,
}

/// Positions in the run directory of the series that are worth a rollup: those of one day with at
/// least `rows_min` rows.
pub fn worth_it(runs: &[Run], rows_min: u32) -> Vec<u32> {
    let is_worth_it = |run: &Run| run.rows >= rows_min && run.days().len() == 1;
    let runs = runs.iter().zip(0u32..);
    runs.filter(|(run, _)| is_worth_it(run)).map(|(_, at)| at).collect()
}

/// The rollups of the series at `positions` of the run directory, rising. None is no section at all.
pub fn build(segment: &Segment, positions: &[u32]) -> Result<Vec<RollupSection>> {
    if positions.is_empty() {
        return Ok(Vec::new());
    }
    let columns = Columns::open(segment)?;
    let mut list = Vec::new();
    write_series(positions, &mut list);
    let mut sections = columns.sections();
    for &position in positions {
        let Some(run) = segment.runs().runs().get(position as usize) else { continue };
        let states = columns.add_up(run)?;
        states.write(run, &columns, &mut sections);
    }
    let (kind, name) = (SectionKind::RollupSeries, String::new());
    sections.insert(0, RollupSection { kind, name, blocks: vec![list] });
    Ok(sections)
}

struct Columns<'a> {
    dimensions: Vec<Dimension<'a>>,
    numbers: Vec<(String, NumberReader<'a>)>,
}

struct Dimension<'a> {
    name: &'static str,
    reader: TextReader<'a>,
    /// One more than there are values: code 0 is "absent".
    codes: usize,
}

/// The blocks of all columns at one place.
struct Opened<'a> {
    index: usize,
    codes: Vec<IntBlock<'a>>,
    numbers: Vec<NumberBlock<'a>>,
}

/// What the rows of one series add up to.
struct States {
    /// By dimension: `code * hours + hour`.
    counts: Vec<Vec<u32>>,
    /// By pair of dimensions: `code * codes of the second + code of the second`.
    pairs: Vec<Vec<u32>>,
    /// By property: an hour each.
    numbers: Vec<Vec<Sums>>,
    /// By property and dimension: a code each.
    numbers_by: Vec<Vec<Vec<Sums>>>,
}

impl<'a> Columns<'a> {
    fn open(segment: &'a Segment) -> Result<Self> {
        let mut dimensions = Vec::new();
        for name in ROLLUP_DIMENSIONS {
            if let Some(reader) = segment.text(name)?
                && reader.value_count()? <= VALUES_MAX
            {
                let codes = reader.value_count()? + 1;
                dimensions.push(Dimension { name, reader, codes });
            }
        }
        let mut numbers = Vec::new();
        for name in segment.names(SectionKind::Numbers).take(NUMBERS_MAX) {
            if let Some(reader) = segment.numbers(name)? {
                numbers.push((name.to_owned(), reader));
            }
        }
        Ok(Self { dimensions, numbers })
    }

    /// The pairs of dimensions that are counted.
    fn pairs(&self) -> impl Iterator<Item = (usize, usize)> + use<'_, 'a> {
        let count = self.dimensions.len();
        let all = (0..count).flat_map(move |a| (a + 1..count).map(move |b| (a, b)));
        all.filter(|&(a, b)| self.dimensions[a].codes * self.dimensions[b].codes <= PAIRS_MAX)
    }

    /// The sections, without blocks.
    fn sections(&self) -> Vec<RollupSection> {
        let section = |kind, name: String| RollupSection { kind, name, blocks: Vec::new() };
        let name = |at: usize| self.dimensions[at].name;
        let counts = (0..self.dimensions.len())
            .map(|at| section(SectionKind::RollupCounts, name(at).to_owned()));
        let pairs = self
            .pairs()
            .map(|(a, b)| section(SectionKind::RollupPairs, pair_name(name(a), name(b))));
        let numbers =
            self.numbers.iter().map(|(name, _)| section(SectionKind::RollupNumbers, name.clone()));
        let by = self.numbers.iter().flat_map(|(number, _)| {
            let dimensions = self.dimensions.iter();
            dimensions.map(|dimension| {
                section(SectionKind::RollupNumbersBy, pair_name(dimension.name, number))
            })
        });
        counts.chain(pairs).chain(numbers).chain(by).collect()
    }

    fn add_up(&self, run: &Run) -> Result<States> {
        let hours = run.hours.len();
        let sizes: Vec<usize> = self.dimensions.iter().map(|dimension| dimension.codes).collect();
        let pairs: Vec<(usize, usize)> = self.pairs().collect();
        let sums = |len: usize| vec![Sums::default(); len];
        let mut states = States {
            counts: sizes.iter().map(|codes| vec![0; codes * hours]).collect(),
            pairs: pairs.iter().map(|&(a, b)| vec![0; sizes[a] * sizes[b]]).collect(),
            numbers: self.numbers.iter().map(|_| sums(hours)).collect(),
            numbers_by: self
                .numbers
                .iter()
                .map(|_| sizes.iter().map(|&codes| sums(codes)).collect())
                .collect(),
        };
        let mut codes = vec![[0i64; VECTOR_ROWS]; sizes.len()];
        let mut values = [0f64; VECTOR_ROWS];
        let mut opened: Option<Opened<'a>> = None;
        for (hour, (_, rows)) in run.hour_rows().enumerate() {
            let base = run.first_row as usize;
            for (block, vector, within) in
                vectors(base + rows.start as usize..base + rows.end as usize)
            {
                let blocks = match &mut opened {
                    Some(opened) if opened.index == block => opened,
                    slot => slot.insert(self.open_block(block)?),
                };
                for (codes, block) in codes.iter_mut().zip(&blocks.codes) {
                    block.read_vector(vector, codes)?;
                }
                for (codes, counts) in codes.iter().zip(&mut states.counts) {
                    for &code in &codes[within.clone()] {
                        if let Some(count) = counts.get_mut(code as usize * hours + hour) {
                            *count += 1;
                        }
                    }
                }
                for (&(a, b), counts) in pairs.iter().zip(&mut states.pairs) {
                    let both = codes[a][within.clone()].iter().zip(&codes[b][within.clone()]);
                    for (&first, &second) in both {
                        let at = first as usize * sizes[b] + second as usize;
                        if let Some(count) = counts.get_mut(at) {
                            *count += 1;
                        }
                    }
                }
                for (at, block) in blocks.numbers.iter().enumerate() {
                    block.read_vector(vector, &mut values)?;
                    for (row, &value) in values[within.clone()].iter().enumerate() {
                        if value.is_nan() {
                            continue;
                        }
                        states.numbers[at][hour].add(value);
                        for (codes, by) in codes.iter().zip(&mut states.numbers_by[at]) {
                            if let Some(state) = by.get_mut(codes[within.start + row] as usize) {
                                state.add(value);
                            }
                        }
                    }
                }
            }
        }
        Ok(states)
    }

    fn open_block(&self, index: usize) -> Result<Opened<'a>> {
        let codes = self.dimensions.iter().map(|dimension| dimension.reader.codes(index));
        let numbers = self.numbers.iter().map(|(_, reader)| reader.block(index));
        Ok(Opened {
            index,
            codes: codes.collect::<Result<_>>()?,
            numbers: numbers.collect::<Result<_>>()?,
        })
    }
}

/// The vectors that a range of rows touches: block, vector in it, and the rows within the vector.
fn vectors(rows: Range<usize>) -> impl Iterator<Item = (usize, usize, Range<usize>)> {
    let first = rows.start / VECTOR_ROWS;
    (first..rows.end.div_ceil(VECTOR_ROWS)).map(move |vector| {
        let base = vector * VECTOR_ROWS;
        let within = rows.start.max(base) - base..rows.end.min(base + VECTOR_ROWS) - base;
        (base / BLOCK_ROWS, base % BLOCK_ROWS / VECTOR_ROWS, within)
    })
}

impl States {
    /// Appends a block to each section.
    fn write(&self, run: &Run, columns: &Columns<'_>, sections: &mut [RollupSection]) {
        let rows = run.rows as usize;
        let hours = run.hours.len();
        let pairs = columns.pairs().zip(&self.pairs);
        let blocks = self.counts.iter().map(|counts| counts_block(counts, hours, rows));
        let blocks =
            blocks
                .chain(pairs.map(|((_, b), counts)| {
                    pairs_block(counts, columns.dimensions[b].codes, rows)
                }));
        let blocks = blocks.chain(self.numbers.iter().map(|states| numbers_block(states, rows)));
        let by = self.numbers_by.iter().flatten().map(|states| numbers_by_block(states, rows));
        for (section, block) in sections.iter_mut().zip(blocks.chain(by)) {
            section.blocks.push(block);
        }
    }
}

/// Totals of each value, then its hours.
fn counts_block(counts: &[u32], hours: usize, rows: usize) -> Vec<u8> {
    let of_codes = || counts.chunks(hours.max(1)).zip(0u64..);
    let total = |counts: &[u32]| counts.iter().map(|&count| u64::from(count)).sum::<u64>();
    let present: Vec<(u64, u64, &[u32])> = of_codes()
        .map(|(counts, code)| (code, total(counts), counts))
        .filter(|(_, total, _)| *total > 0)
        .collect();
    let mut out = vec![NOT_KEPT];
    if present.len() * ROWS_A_COUNT > rows {
        return out;
    }
    out[0] = if present.len() * hours * ROWS_A_COUNT > rows { TOTALS } else { HOURS };
    out.put_varint(present.len() as u64);
    let mut next = 0;
    for &(code, total, _) in &present {
        out.put_varint(code - next);
        out.put_varint(total);
        next = code + 1;
    }
    if out[0] == HOURS {
        let counts = present.iter().flat_map(|(_, _, counts)| counts.iter());
        counts.for_each(|&count| out.put_varint(u64::from(count)));
    }
    out
}

/// Each pair that occurs: the first code, the second, and how many rows have both.
fn pairs_block(counts: &[u32], second_codes: usize, rows: usize) -> Vec<u8> {
    let present: Vec<(usize, u32)> =
        counts.iter().copied().enumerate().filter(|(_, count)| *count > 0).collect();
    let mut out = vec![NOT_KEPT];
    if present.len() * ROWS_A_COUNT > rows {
        return out;
    }
    out[0] = TOTALS;
    out.put_varint(present.len() as u64);
    for (at, count) in present {
        out.put_varint((at / second_codes) as u64);
        out.put_varint((at % second_codes) as u64);
        out.put_varint(u64::from(count));
    }
    out
}

/// The total, then the hours.
fn numbers_block(states: &[Sums], rows: usize) -> Vec<u8> {
    let mut out = vec![NOT_KEPT];
    let mut total = Sums::default();
    states.iter().for_each(|state| total.merge(state));
    out[0] = if states.len() * ROWS_A_STATE > rows { TOTALS } else { HOURS };
    total.write(&mut out);
    if out[0] == HOURS {
        states.iter().for_each(|state| state.write(&mut out));
    }
    out
}

/// Each value that occurs with a number, and its state.
fn numbers_by_block(states: &[Sums], rows: usize) -> Vec<u8> {
    let present: Vec<(u64, &Sums)> =
        (0u64..).zip(states).filter(|(_, state)| state.count() > 0).collect();
    let mut out = vec![NOT_KEPT];
    if present.len() * ROWS_A_STATE > rows {
        return out;
    }
    out[0] = TOTALS;
    out.put_varint(present.len() as u64);
    let mut next = 0;
    for (code, state) in present {
        out.put_varint(code - next);
        state.write(&mut out);
        next = code + 1;
    }
    out
}
