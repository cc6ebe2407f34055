//! Computing the rollups of a segment from its columns, a vector of rows at a time.
//!
//! A series and day is added up in arrays that codes and hours index, and then each array becomes a block:
//!
//! ```text
//! a day of a series with two hours; model has codes 0 to 3 (absent, large, rare, small)
//!
//! row   hour  model  plan   ms
//! 0     0     1      0      12.5      counts[model][1 * 2 + 0] += 1    pairs[model/plan][1 * 2 + 0] += 1
//! 1     0     3      1      absent    counts[model][3 * 2 + 0] += 1    pairs[model/plan][3 * 2 + 1] += 1
//! 2     1     1      0      9.0       counts[model][1 * 2 + 1] += 1    numbers[ms][hour 1].add(9.0)
//! ```
//!
//! The same code runs when a segment is written and when it is verified, and both times gives the same bytes: states are
//! added to in the order of rows, and nothing depends on threads or hash tables.

#![cfg_attr(not(test), deny(clippy::unwrap_used))]

use std::{collections::BTreeMap, ops::Range};

use super::{
    layout::{
        DAYS, DIGEST_NUMBERS_MAX, HOURS, NOT_KEPT, NUMBERS_MAX, PAIRS_MAX, ROWS_A_COUNT,
        ROWS_A_DAY_MIN, ROWS_A_STATE, TOTALS, VALUES_MAX, pair_name,
    },
    sketches::Sketches,
    user_sets::UserSets,
};
use crate::{
    base::coding::Put,
    encode::{BLOCK_ROWS, VECTOR_ROWS, ints::IntBlock, numbers::NumberBlock},
    error::Result,
    index::bitmaps::ROLLUP_DIMENSIONS,
    segment::{
        NumberReader, SectionKind, Segment, TextReader,
        rollup_directory::write_series,
        runs::{Run, RunDay},
        users::UserReader,
    },
    sketch::sums::Sums,
};

/// A section to be written: a block for each series that is rolled up, in order, or one block with
/// the list of these series.
#[derive(Debug, PartialEq, Eq)]
pub struct RollupSection {
    /// Kind of the section.
    pub kind: SectionKind,
    /// Dimension, property, or both with a slash between; empty where there is none.
    pub name: String,
    /// Encoded blocks: those of the series, then those of the events over all tenants.
    pub blocks: Vec<Vec<u8>>,
}

/// Positions in the run directory of the series that are worth a rollup: those with at least `rows_min` rows, and on
/// the mean at least [`ROWS_A_DAY_MIN`] on a day.
///
/// With `rows_min` 256 a series of 3,000 rows on 30 days is (100 a day), one of 1,000 rows on 30 days is not.
pub fn worth_it(runs: &[Run], rows_min: u32) -> Vec<u32> {
    let are_enough = |run: &Run| {
        let by_days = run.day_count().saturating_mul(ROWS_A_DAY_MIN.min(rows_min as usize));
        run.rows >= rows_min && run.rows as usize >= by_days
    };
    runs.iter().zip(0u32..).filter(|(run, _)| are_enough(run)).map(|(_, at)| at).collect()
}

/// The runs of each event of a namespace, with all tenants, by namespace and name: `(2, "call") → [0, 2]` in the golden file of
/// [`super`].
fn runs_by_event(runs: &[Run]) -> BTreeMap<(u32, &str), Vec<u32>> {
    let mut events: BTreeMap<_, Vec<u32>> = BTreeMap::new();
    for (run, at) in runs.iter().zip(0u32..) {
        events.entry((run.key.namespace.0, &*run.key.name)).or_default().push(at);
    }
    events
}

/// Positions of the first runs of the events that are worth a rollup over all tenants of their namespace:
/// those of two tenants and more with at least `rows_min` rows.
pub fn events_worth_it(runs: &[Run], rows_min: u32) -> Vec<u32> {
    let rows = |positions: &[u32]| -> u64 {
        let of_event = positions.iter().filter_map(|&at| runs.get(at as usize));
        of_event.map(|run| u64::from(run.rows)).sum()
    };
    let events = runs_by_event(runs).into_values();
    let worth = events.filter(|event| event.len() > 1 && rows(event) >= rows_min.into());
    let mut firsts: Vec<u32> = worth.filter_map(|event| event.first().copied()).collect();
    firsts.sort_unstable();
    firsts
}

/// The rollups of the series at `series` of the run directory, rising, then of the events whose first runs
/// are at `events`, rising. Without any of them there is no section at all.
///
/// Errors: `Corrupt` when a column of the segment is damaged.
pub fn build(segment: &Segment, series: &[u32], events: &[u32]) -> Result<Vec<RollupSection>> {
    if series.is_empty() && events.is_empty() {
        return Ok(Vec::new());
    }
    let columns = ColumnReaders::open(segment)?;
    let mut sections = columns.sections();
    let mut users = TenantUsers::default();
    let runs = segment.runs().runs();
    for run in series.iter().filter_map(|&position| runs.get(position as usize)) {
        let mut days = Vec::with_capacity(run.day_count());
        for day in run.by_day() {
            let rows = day.rows.len();
            let states = columns.add_up(&[(run, day)], true, &mut users)?;
            days.push(states.blocks(rows, &columns));
        }
        push_days(days, &mut sections);
    }
    // The same day of all tenants: their pieces are added up one after the other into one state.
    let by_event = runs_by_event(runs);
    for run in events.iter().filter_map(|&position| runs.get(position as usize)) {
        let positions = by_event.get(&(run.key.namespace.0, &*run.key.name));
        let of_event = positions.into_iter().flatten();
        let mut by_day: BTreeMap<i64, Vec<(&Run, RunDay<'_>)>> = BTreeMap::new();
        for run in of_event.filter_map(|&position| runs.get(position as usize)) {
            run.by_day().for_each(|day| by_day.entry(day.day).or_default().push((run, day)));
        }
        let mut days = Vec::with_capacity(by_day.len());
        for pieces in by_day.into_values() {
            let rows = pieces.iter().map(|(_, day)| day.rows.len()).sum();
            let states = columns.add_up(&pieces, false, &mut users)?;
            days.push(states.blocks(rows, &columns));
        }
        push_days(days, &mut sections);
    }
    // Most series are too small for most sketches.
    sections.retain(|section| section.blocks.iter().any(|block| block[..] != [NOT_KEPT]));
    for (kind, positions) in
        [(SectionKind::RollupEvents, events), (SectionKind::RollupSeries, series)]
    {
        let mut list = Vec::new();
        write_series(positions, &mut list);
        let name = String::new();
        sections.insert(0, RollupSection { kind, name, blocks: vec![list] });
    }
    Ok(sections)
}

/// Appends a block to each section: of the days of a series, each with a block for each section. One day is written as it is, several
/// behind a list of their lengths; where no day is kept, one byte says so.
fn push_days(days: Vec<Vec<Vec<u8>>>, sections: &mut [RollupSection]) {
    let mut days: Vec<_> = days.into_iter().map(Vec::into_iter).collect();
    for section in sections {
        let mut blocks: Vec<Vec<u8>> = days.iter_mut().filter_map(Iterator::next).collect();
        let block = match &mut blocks[..] {
            [only] => std::mem::take(only),
            blocks if blocks.iter().all(|block| block[..] == [NOT_KEPT]) => vec![NOT_KEPT],
            blocks => {
                let mut out = vec![DAYS];
                out.put_varint(blocks.len() as u64);
                blocks.iter().for_each(|block| out.put_varint(block.len() as u64));
                blocks.iter().for_each(|block| out.extend_from_slice(block));
                out
            }
        };
        section.blocks.push(block);
    }
}

/// The columns that rollups are made of: dimensions with at most 1,024 values, and the first 32 numeric properties by name.
struct ColumnReaders<'a> {
    segment: &'a Segment,
    dimensions: Vec<Dimension<'a>>,
    numbers: Vec<(String, NumberReader<'a>)>,
}

/// One of the [`ROLLUP_DIMENSIONS`] that the segment has.
struct Dimension<'a> {
    name: &'static str,
    reader: TextReader<'a>,
    /// One more than there are values: code 0 is "absent".
    codes: usize,
}

/// The users of the tenant whose rows are added up: a tenant has many series and days.
#[derive(Default)]
struct TenantUsers {
    reader: UserReader,
    known: Option<(usize, Vec<u128>)>,
}

impl TenantUsers {
    /// Hashes of the users of a tenant by code less 1; those of the last tenant are kept.
    fn hashes(&mut self, segment: &Segment, tenant: usize) -> Result<&[u128]> {
        let known = match self.known.take() {
            Some((known, hashes)) if known == tenant => (known, hashes),
            _ => (tenant, self.reader.hashes(segment, tenant, &mut |_| Ok(()))?),
        };
        Ok(&self.known.insert(known).1)
    }
}

/// The blocks of all columns at one place.
struct Opened<'a> {
    index: usize,
    codes: Vec<IntBlock<'a>>,
    numbers: Vec<NumberBlock<'a>>,
    users: IntBlock<'a>,
    /// The vector whose values follow: many small runs and hours lie in one.
    vector: Option<usize>,
    code_values: Vec<[i64; VECTOR_ROWS]>,
    number_values: Vec<[f64; VECTOR_ROWS]>,
    user_values: [i64; VECTOR_ROWS],
}

impl Opened<'_> {
    /// Decodes a vector of all columns, unless it is the one that is decoded.
    fn load(&mut self, vector: usize) -> Result<()> {
        if self.vector == Some(vector) {
            return Ok(());
        }
        for (values, block) in self.code_values.iter_mut().zip(&self.codes) {
            block.read_vector(vector, values)?;
        }
        for (values, block) in self.number_values.iter_mut().zip(&self.numbers) {
            block.read_vector(vector, values)?;
        }
        self.users.read_vector(vector, &mut self.user_values)?;
        self.vector = Some(vector);
        Ok(())
    }
}

/// Aggregates of the rows of a day of one series, or of one event over all tenants.
struct States {
    /// By dimension: `code * hours + hour`.
    counts: Vec<Vec<u32>>,
    /// By pair of dimensions: `code * codes of the second + code of the second`.
    pairs: Vec<Vec<u32>>,
    /// By property: an hour each.
    numbers: Vec<Vec<Sums>>,
    /// By property and dimension: a code each.
    numbers_by: Vec<Vec<Vec<Sums>>>,
    sketches: Sketches,
    /// The users, of a single series.
    user_sets: Option<UserSets>,
    /// Hours by which they are; without them all rows are of one.
    hours: usize,
    has_hours: bool,
}

impl<'a> ColumnReaders<'a> {
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
        Ok(Self { segment, dimensions, numbers })
    }

    /// The pairs of dimensions that are counted.
    fn pairs(&self) -> impl Iterator<Item = (usize, usize)> + use<'_, 'a> {
        let count = self.dimensions.len();
        let all = (0..count).flat_map(move |a| (a + 1..count).map(move |b| (a, b)));
        all.filter(|&(a, b)| self.dimensions[a].codes * self.dimensions[b].codes <= PAIRS_MAX)
    }

    /// The sections, without blocks, in the order in which [`States::blocks`] gives their blocks.
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
        let sketches = self.sketch_sections();
        counts.chain(pairs).chain(numbers).chain(by).chain(sketches).collect()
    }

    /// Those of sketches and sets of users, in the order of their blocks.
    fn sketch_sections(&self) -> Vec<RollupSection> {
        let section = |kind, name: String| RollupSection { kind, name, blocks: Vec::new() };
        let dimensions = || self.dimensions.iter().map(|dimension| dimension.name);
        let numbers = || self.numbers.iter().map(|(name, _)| name).take(DIGEST_NUMBERS_MAX);
        let mut sections = vec![section(SectionKind::RollupUsers, String::new())];
        sections
            .extend(dimensions().map(|name| section(SectionKind::RollupUsersBy, name.to_owned())));
        sections.extend(numbers().map(|name| section(SectionKind::RollupDigests, name.clone())));
        sections.extend(numbers().flat_map(|number| {
            dimensions()
                .map(move |name| section(SectionKind::RollupDigestsBy, pair_name(name, number)))
        }));
        sections.push(section(SectionKind::RollupUserSets, String::new()));
        sections.extend(
            dimensions().map(|name| section(SectionKind::RollupUserSetsBy, name.to_owned())),
        );
        sections
    }

    /// Adds up the rows of a day of some runs: of one with its hours, or of several without.
    fn add_up(
        &self,
        pieces: &[(&Run, RunDay<'_>)],
        has_hours: bool,
        users: &mut TenantUsers,
    ) -> Result<States> {
        let hours = match pieces {
            [(_, day)] if has_hours => day.hours.len(),
            _ => 1,
        };
        let rows: usize = pieces.iter().map(|(_, day)| day.rows.len()).sum();
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
                // With more values than rows most occur once at most, and none is worth a state.
                .map(|_| {
                    sizes.iter().map(|&codes| sums(if codes > rows { 0 } else { codes })).collect()
                })
                .collect(),
            sketches: Sketches::new(rows, &sizes, self.numbers.len(), hours, has_hours),
            user_sets: has_hours.then(UserSets::default),
            hours,
            has_hours,
        };
        let mut opened = None;
        for (run, day) in pieces {
            self.add_run(run, day, &pairs, &mut states, &mut opened, users)?;
        }
        Ok(states)
    }

    /// Adds the rows of one run on a day, hour by hour where hours are kept, each vector by vector.
    fn add_run(
        &self,
        run: &Run,
        day: &RunDay<'_>,
        pairs: &[(usize, usize)],
        states: &mut States,
        opened: &mut Option<Opened<'a>>,
        users: &mut TenantUsers,
    ) -> Result<()> {
        let tenant = self.segment.tenants().of_row(run.first_row);
        let hashes = users.hashes(self.segment, tenant)?;
        let sizes: Vec<usize> = self.dimensions.iter().map(|dimension| dimension.codes).collect();
        let hours = states.hours;
        let all = [(0, day.rows.clone())];
        let by_hour = day.hour_rows().map(|(_, rows)| rows).enumerate();
        let ranges: Vec<(usize, Range<u32>)> =
            if states.has_hours { by_hour.collect() } else { all.into() };
        let base = run.first_row as usize;
        for (hour, rows) in ranges {
            let rows = base + rows.start as usize..base + rows.end as usize;
            for (block, vector, within) in vectors(rows) {
                let opened = match &mut *opened {
                    Some(opened) if opened.index == block => opened,
                    slot => slot.insert(self.open_block(block)?),
                };
                opened.load(vector)?;
                let codes = &opened.code_values;
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
                        // Mixed radix; the pair is stored by this number.
                        let at = first as usize * sizes[b] + second as usize;
                        if let Some(count) = counts.get_mut(at) {
                            *count += 1;
                        }
                    }
                }
                for row in within.clone() {
                    let code = opened.user_values[row];
                    let known = (code as usize).checked_sub(1);
                    if let Some(&user) = known.and_then(|at| hashes.get(at)) {
                        let codes = || codes.iter().map(|codes| codes[row]);
                        states.sketches.add_user(hour, codes(), user);
                        if let Some(sets) = &mut states.user_sets {
                            sets.add(code as u32, codes());
                        }
                    }
                }
                for (at, values) in opened.number_values.iter().enumerate() {
                    for row in within.clone() {
                        let value = values[row];
                        // Absent: it counts neither in the total nor in that of any value.
                        if value.is_nan() {
                            continue;
                        }
                        states.numbers[at][hour].add(value);
                        for (codes, by) in codes.iter().zip(&mut states.numbers_by[at]) {
                            if let Some(state) = by.get_mut(codes[row] as usize) {
                                state.add(value);
                            }
                        }
                        let codes = codes.iter().map(|codes| codes[row]);
                        states.sketches.add_number(at, hour, codes, value);
                    }
                }
            }
        }
        Ok(())
    }

    /// Opens a block of every column; nothing is decoded yet.
    fn open_block(&self, index: usize) -> Result<Opened<'a>> {
        let codes = self.dimensions.iter().map(|dimension| dimension.reader.codes(index));
        let numbers = self.numbers.iter().map(|(_, reader)| reader.block(index));
        Ok(Opened {
            index,
            codes: codes.collect::<Result<_>>()?,
            numbers: numbers.collect::<Result<_>>()?,
            users: self.segment.user_codes(index)?,
            vector: None,
            code_values: vec![[0; VECTOR_ROWS]; self.dimensions.len()],
            number_values: vec![[0.0; VECTOR_ROWS]; self.numbers.len()],
            user_values: [0; VECTOR_ROWS],
        })
    }
}

/// The vectors that a range of rows touches: block, vector in it, and the rows within the vector. Rows 65,000..66,000 are
/// `(0, 63, 488..1024)` and `(1, 0, 0..464)`.
fn vectors(rows: Range<usize>) -> impl Iterator<Item = (usize, usize, Range<usize>)> {
    let first = rows.start / VECTOR_ROWS;
    (first..rows.end.div_ceil(VECTOR_ROWS)).map(move |vector| {
        let base = vector * VECTOR_ROWS;
        let within = rows.start.max(base) - base..rows.end.min(base + VECTOR_ROWS) - base;
        (base / BLOCK_ROWS, base % BLOCK_ROWS / VECTOR_ROWS, within)
    })
}

impl States {
    /// A block for each section.
    fn blocks(self, rows: usize, columns: &ColumnReaders<'_>) -> Vec<Vec<u8>> {
        let hours = (self.hours, self.has_hours);
        let pairs = columns.pairs().zip(&self.pairs);
        let blocks = self.counts.iter().map(|counts| counts_block(counts, hours, rows));
        let blocks =
            blocks
                .chain(pairs.map(|((_, b), counts)| {
                    pairs_block(counts, columns.dimensions[b].codes, rows)
                }));
        let blocks =
            blocks.chain(self.numbers.iter().map(|states| numbers_block(states, hours.1, rows)));
        let by = self.numbers_by.iter().flatten().map(|states| numbers_by_block(states, rows));
        let blocks: Vec<Vec<u8>> = blocks.chain(by).collect();
        let (dimensions, numbers) = (columns.dimensions.len(), columns.numbers.len());
        let sketches = self.sketches.blocks(rows, dimensions, numbers);
        let sizes: Vec<usize> = columns.dimensions.iter().map(|one| one.codes).collect();
        let user_sets = match self.user_sets {
            Some(sets) => sets.blocks(&sizes),
            None => vec![vec![NOT_KEPT]; 1 + sizes.len()],
        };
        blocks.into_iter().chain(sketches).chain(user_sets).collect()
    }
}

/// Totals of each value, then its hours. Not kept where values are so many that reading the rows is as quick; without hours where
/// these would be too many counts.
fn counts_block(counts: &[u32], (hours, has_hours): (usize, bool), rows: usize) -> Vec<u8> {
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
    let are_few = present.len() * hours * ROWS_A_COUNT <= rows;
    out[0] = if has_hours && are_few { HOURS } else { TOTALS };
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

/// Each pair that occurs, by the number `first code * codes of the second + second code`, and how many rows have both.
fn pairs_block(counts: &[u32], second_codes: usize, rows: usize) -> Vec<u8> {
    let present: Vec<(usize, u32)> =
        counts.iter().copied().enumerate().filter(|(_, count)| *count > 0).collect();
    let mut out = vec![NOT_KEPT];
    if present.len() * ROWS_A_COUNT > rows {
        return out;
    }
    out[0] = TOTALS;
    out.put_varint(present.len() as u64);
    out.put_varint(second_codes as u64);
    let mut next = 0;
    for (at, count) in present {
        out.put_varint((at - next) as u64);
        out.put_varint(u64::from(count));
        next = at + 1;
    }
    out
}

/// The total, then the hours. A total is always kept: it is one state.
fn numbers_block(states: &[Sums], has_hours: bool, rows: usize) -> Vec<u8> {
    let mut out = vec![NOT_KEPT];
    let mut total = Sums::default();
    states.iter().for_each(|state| total.merge(state));
    let are_few = states.len() * ROWS_A_STATE <= rows;
    out[0] = if has_hours && are_few { HOURS } else { TOTALS };
    total.write(&mut out);
    if out[0] == HOURS {
        states.iter().for_each(|state| state.write(&mut out));
    }
    out
}

/// Each value that occurs with a number, and its state. Not kept with more than one state for 64 rows.
fn numbers_by_block(states: &[Sums], rows: usize) -> Vec<u8> {
    let present: Vec<(u64, &Sums)> =
        (0u64..).zip(states).filter(|(_, state)| state.count() > 0).collect();
    let mut out = vec![NOT_KEPT];
    if states.is_empty() || present.len() * ROWS_A_STATE > rows {
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
