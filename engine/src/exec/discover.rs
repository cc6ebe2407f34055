//! Describes the events of a namespace: names, counts and properties.
//!
//! Counts, tenants and times come from run directories and rows in memory. Properties are read
//! from rows, up to a bound for each event name: all rows of an event with few of them, else the
//! same share of each range of rows in each segment. Of many event names only the most frequent
//! ones are looked up in segments for their properties. Memory is charged as for a query.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    sync::Arc,
};

use super::{
    budget::{Budget, Charge},
    run::Control,
};
use crate::{
    base::{hash, time::HOUR_MS},
    column::Rows,
    encode::{BLOCK_ROWS, Block, Listed, VECTOR_ROWS},
    error::{Error, Limit, Result},
    event::Namespace,
    segment::{SectionKind, Segment},
    sketch::{hll::Distinct, sums::Sums},
    store::Version,
};

/// Rows of an event name that are read for its properties, roughly.
const ROWS_READ: u64 = 200_000;
/// Values of a property that are returned, the most frequent ones.
const SAMPLES: usize = 5;
/// Values of a property that are counted to find the most frequent ones.
const CANDIDATES: usize = 1_000;
/// Bytes of a property, a tenant or a candidate besides its string.
const ENTRY_BYTES: usize = 96;
/// Event names whose properties are read, at most.
const EVENTS_READ: usize = 100;

/// Facts about the events of one name.
#[derive(Debug, Clone, PartialEq)]
pub struct EventFacts {
    /// Event name; facts are ordered by it.
    pub name: String,
    /// Number of events.
    pub count: u64,
    /// Number of tenants with such events.
    pub tenants: u64,
    /// Time of the first one.
    pub first_ms: i64,
    /// Time of the last one.
    pub last_ms: i64,
    /// Rows of which the properties were read.
    pub rows_read: u64,
    /// String properties by name.
    pub texts: Vec<TextFacts>,
    /// Numeric properties by name.
    pub numbers: Vec<NumberFacts>,
}

/// Facts about a string property.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TextFacts {
    /// Property name; facts are ordered by it.
    pub name: String,
    /// Rows read that have it.
    pub present: u64,
    /// Number of different values, approximately.
    pub distinct_approx: u64,
    /// The most frequent values.
    pub samples: Vec<String>,
}

/// Facts about a numeric property.
#[derive(Debug, Clone, PartialEq)]
pub struct NumberFacts {
    /// Property name; facts are ordered by it.
    pub name: String,
    /// Rows read that have it.
    pub present: u64,
    /// Smallest number in the rows that were read.
    pub min: f64,
    /// Largest number in the rows that were read.
    pub max: f64,
    /// Arithmetic mean over the rows read that have the property.
    pub avg: f64,
}

/// Looks at the events of a namespace from `from_ms` to before `to_ms`, whole hours of them.
///
/// Errors: `Corrupt` when a block that it needs is damaged, `Limit` when `control` stops it.
pub fn discover(
    version: &Version,
    namespace: Namespace,
    from_ms: i64,
    to_ms: i64,
    budget: &Arc<Budget>,
    control: &dyn Control,
) -> Result<Vec<EventFacts>> {
    let window = Hours { first: from_ms.div_euclid(HOUR_MS), end: to_ms.div_euclid(HOUR_MS) + 1 };
    let mut found = Found { events: BTreeMap::new(), charge: budget.charge() };
    let mut parts = Vec::new();
    for segment in &version.segments {
        check(control)?;
        parts.extend(
            found.add_runs(segment, namespace, &window)?.into_iter().map(|part| (segment, part)),
        );
    }
    for chunk in version.memtables().flat_map(|memtable| memtable.chunks()) {
        check(control)?;
        found.add_chunk(chunk, namespace, &window)?;
    }
    // Newest first: users ask mostly about recent events.
    parts.sort_by_key(|(segment, _)| std::cmp::Reverse(segment.meta().ts_max));
    let mut counts: Vec<u64> = found.events.values().map(|event| event.count).collect();
    counts.sort_unstable_by_key(|&count| std::cmp::Reverse(count));
    let count_min = counts.get(EVENTS_READ - 1).copied().unwrap_or(0);
    let Found { events, charge } = &mut found;
    for (segment, (name, ranges)) in parts {
        let Some(event) = events.get_mut(&name).filter(|event| event.count >= count_min) else {
            continue;
        };
        let step = event.count.div_ceil(ROWS_READ).max(1) as usize;
        // The last rows of each range: of a single run these are the latest.
        let latest = |(start, end): (usize, usize)| (end - (end - start).div_ceil(step), end);
        let ranges = ranges.into_iter().map(latest).collect();
        event.read(segment, &part_of(ranges), charge, budget, control)?;
    }
    Ok(found.events.into_iter().map(|(name, event)| event.facts(name)).collect())
}

fn check(control: &dyn Control) -> Result<()> {
    if control.must_stop() {
        return Err(Error::limit(Limit::QueryTime, "looking at the events took too long"));
    }
    Ok(())
}

/// Hours since 1970.
struct Hours {
    first: i64,
    end: i64,
}

impl Hours {
    fn contain(&self, hour: i64) -> bool {
        (self.first..self.end).contains(&hour)
    }
}

/// Rows of a segment, as ranges.
type Ranges = Vec<(usize, usize)>;

/// Facts found so far, by event name.
struct Found {
    events: BTreeMap<String, EventState>,
    charge: Charge,
}

#[derive(Default)]
struct EventState {
    count: u64,
    tenants: BTreeSet<String>,
    first_ms: Option<i64>,
    last_ms: Option<i64>,
    rows_read: u64,
    texts: BTreeMap<String, TextState>,
    numbers: BTreeMap<String, Sums>,
}

#[derive(Default)]
struct TextState {
    present: u64,
    distinct: Distinct,
    counts: HashMap<String, u64>,
}

impl TextState {
    fn add(&mut self, value: &str, count: u64, charge: &mut Charge) -> Result<()> {
        self.present += count;
        charge.add(self.distinct.insert(hash::user(0, value.as_bytes())))?;
        if let Some(known) = self.counts.get_mut(value) {
            *known += count;
        } else if self.counts.len() < CANDIDATES {
            charge.add(value.len() + ENTRY_BYTES)?;
            self.counts.insert(value.to_owned(), count);
        }
        Ok(())
    }
}

impl Found {
    /// Counts the rows of a segment; returns where they are, by event name.
    fn add_runs(
        &mut self,
        segment: &Segment,
        namespace: Namespace,
        window: &Hours,
    ) -> Result<BTreeMap<String, Ranges>> {
        let mut parts: BTreeMap<String, Ranges> = BTreeMap::new();
        let positions = segment.runs().positions_of(namespace, None);
        for run in segment.runs().runs().get(positions).unwrap_or_default() {
            let hours = run.hour_rows().filter(|(hour, _)| window.contain(*hour));
            let rows = hours.map(|(_, rows)| rows).reduce(|all, rows| all.start..rows.end);
            let Some(rows) = rows else { continue };
            let event = self.events.entry(run.key.name.to_string()).or_default();
            event.count += rows.len() as u64;
            event.add_tenant(&run.key.tenant, &mut self.charge)?;
            let first = run.first_row as usize;
            let range = (first + rows.start as usize, first + rows.end as usize);
            let is_cut = rows.len() < run.rows as usize;
            event.add_time(if is_cut { time_at(segment, range.0)? } else { run.ts_min });
            event.add_time(if is_cut { time_at(segment, range.1 - 1)? } else { run.ts_max });
            let ranges = parts.entry(run.key.name.to_string()).or_default();
            match ranges.last_mut() {
                Some(last) if last.1 == range.0 => last.1 = range.1,
                _ => ranges.push(range),
            }
        }
        Ok(parts)
    }

    /// Counts the rows of a chunk and reads all of them.
    fn add_chunk(&mut self, rows: &Rows, namespace: Namespace, window: &Hours) -> Result<()> {
        let Self { events, charge } = self;
        let is_wanted = |row: usize| {
            rows.series_of(row).namespace == namespace
                && window.contain(rows.timestamps[row].div_euclid(HOUR_MS))
        };
        let wanted: Vec<bool> = (0..rows.len()).map(is_wanted).collect();
        let name_of = |row: u32| {
            let is_wanted = wanted.get(row as usize) == Some(&true);
            is_wanted.then(|| &*rows.series_of(row as usize).name)
        };
        for (row, _) in wanted.iter().enumerate().filter(|(_, wanted)| **wanted) {
            let key = rows.series_of(row);
            if !events.contains_key(&*key.name) {
                charge.add(key.name.len() + ENTRY_BYTES)?;
                events.insert(key.name.to_string(), EventState::default());
            }
            let Some(event) = events.get_mut(&*key.name) else { continue };
            event.count += 1;
            event.rows_read += 1;
            event.add_tenant(&key.tenant, charge)?;
            event.add_time(rows.timestamps[row]);
        }
        for (property, column) in &rows.strings {
            for (row, code) in column.codes.iter() {
                let event = name_of(row).and_then(|name| events.get_mut(name));
                if let (Some(event), Some(value)) = (event, column.values.get(code as usize)) {
                    event.text(property, charge)?.add(value, 1, charge)?;
                }
            }
        }
        for (property, numbers) in &rows.numbers {
            for (row, number) in numbers.iter() {
                if let Some(event) = name_of(row).and_then(|name| events.get_mut(name)) {
                    event.number(property, charge)?.add(number);
                }
            }
        }
        Ok(())
    }
}

impl EventState {
    fn add_tenant(&mut self, tenant: &str, charge: &mut Charge) -> Result<()> {
        if !self.tenants.contains(tenant) {
            charge.add(tenant.len() + ENTRY_BYTES)?;
            self.tenants.insert(tenant.to_owned());
        }
        Ok(())
    }

    fn text(&mut self, property: &str, charge: &mut Charge) -> Result<&mut TextState> {
        if !self.texts.contains_key(property) {
            charge.add(property.len() + 2 * ENTRY_BYTES)?;
        }
        Ok(self.texts.entry(property.to_owned()).or_default())
    }

    fn number(&mut self, property: &str, charge: &mut Charge) -> Result<&mut Sums> {
        if !self.numbers.contains_key(property) {
            charge.add(property.len() + 2 * ENTRY_BYTES)?;
        }
        Ok(self.numbers.entry(property.to_owned()).or_default())
    }

    fn add_time(&mut self, ms: i64) {
        self.first_ms = Some(self.first_ms.map_or(ms, |first| first.min(ms)));
        self.last_ms = Some(self.last_ms.map_or(ms, |last| last.max(ms)));
    }

    /// Reads the properties of some rows of a segment.
    fn read(
        &mut self,
        segment: &Segment,
        ranges: &Ranges,
        charge: &mut Charge,
        budget: &Arc<Budget>,
        control: &dyn Control,
    ) -> Result<()> {
        self.rows_read += ranges.iter().map(|(start, end)| (end - start) as u64).sum::<u64>();
        for name in segment.names(SectionKind::TextValues) {
            check(control)?;
            let Some(reader) = segment.text(name)? else { continue };
            // Given back with the column.
            let mut column = budget.charge();
            column.add((reader.value_count()? + 1) * size_of::<u64>())?;
            let mut counts = vec![0u64; reader.value_count()? + 1];
            let is_empty = |index| reader.zone(index).is_some_and(|zone| zone.max == 0);
            let open = |index| reader.codes(index);
            values_in(ranges, control, is_empty, open, |code: i64| {
                if let Some(count) = counts.get_mut(code as usize) {
                    *count += 1;
                }
            })?;
            let mut used = (1..counts.len()).filter(|&code| counts[code] > 0).peekable();
            if used.peek().is_none() {
                continue;
            }
            let dictionary = reader.dictionary()?;
            column.add(dictionary.bytes_used())?;
            let state = self.text(name, charge)?;
            for code in used {
                if let Some(value) = dictionary.value(code) {
                    state.add(value, counts[code], charge)?;
                }
            }
        }
        for name in segment.names(SectionKind::Numbers) {
            check(control)?;
            let Some(reader) = segment.numbers(name)? else { continue };
            let mut sums = Sums::default();
            let is_empty = |index| {
                let rows = segment.block_rows(index);
                reader.zone(index).is_some_and(|zone| zone.absent as usize == rows)
            };
            let open = |index| reader.block(index);
            values_in(ranges, control, is_empty, open, |number: f64| sums.add(number))?;
            if sums.count() > 0 {
                self.number(name, charge)?.merge(&sums);
            }
        }
        Ok(())
    }

    fn facts(self, name: String) -> EventFacts {
        let texts = self.texts.into_iter().map(|(name, mut state)| {
            let mut counts: Vec<(String, u64)> = state.counts.drain().collect();
            counts.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
            TextFacts {
                name,
                present: state.present,
                distinct_approx: state.distinct.estimate(),
                samples: counts.into_iter().take(SAMPLES).map(|(value, _)| value).collect(),
            }
        });
        let numbers = self.numbers.into_iter().map(|(name, sums)| NumberFacts {
            name,
            present: sums.count(),
            min: sums.min().unwrap_or_default(),
            max: sums.max().unwrap_or_default(),
            avg: sums.sum() / sums.count().max(1) as f64,
        });
        EventFacts {
            name,
            count: self.count,
            tenants: self.tenants.len() as u64,
            first_ms: self.first_ms.unwrap_or_default(),
            last_ms: self.last_ms.unwrap_or_default(),
            rows_read: self.rows_read,
            texts: texts.collect(),
            numbers: numbers.collect(),
        }
    }
}

/// Cuts each range to the same share when they have more rows than may be read.
fn part_of(mut ranges: Ranges) -> Ranges {
    let rows: usize = ranges.iter().map(|(start, end)| end - start).sum();
    let step = rows.div_ceil(ROWS_READ as usize).max(1);
    ranges.iter_mut().for_each(|(start, end)| *end = *start + (*end - *start).div_ceil(step));
    ranges
}

/// Time of a row.
fn time_at(segment: &Segment, row: usize) -> Result<i64> {
    let mut vector = [0; VECTOR_ROWS];
    let block = segment.times(row / BLOCK_ROWS)?;
    block.read_vector(row % BLOCK_ROWS / VECTOR_ROWS, &mut vector)?;
    Ok(vector[row % VECTOR_ROWS])
}

/// Visits the values of the rows in `ranges`, which rise, but absent ones.
fn values_in<B: Block>(
    ranges: &Ranges,
    control: &dyn Control,
    is_empty: impl Fn(usize) -> bool,
    open: impl Fn(usize) -> Result<B>,
    mut visit: impl FnMut(B::Value),
) -> Result<()> {
    let mut block: Option<(usize, B)> = None;
    let mut listed: Option<Listed<B::Value>> = None;
    let mut vector = [B::Value::default(); VECTOR_ROWS];
    for &(start, end) in ranges {
        let mut row = start;
        while row < end {
            let index = row / BLOCK_ROWS;
            let base = index * BLOCK_ROWS;
            if is_empty(index) {
                row = base + BLOCK_ROWS;
                continue;
            }
            if block.as_ref().is_none_or(|(open, _)| *open != index) {
                check(control)?;
                let opened = open(index)?;
                listed = opened.listed()?;
                block = Some((index, opened));
            }
            let Some((_, opened)) = &block else { break };
            if let Some(listed) = &listed {
                let stop = end.min(base + BLOCK_ROWS);
                let first = listed.partition_point(|&(at, _)| base + (at as usize) < row);
                let here = listed.iter().skip(first);
                here.take_while(|&&(at, _)| base + (at as usize) < stop)
                    .for_each(|&(_, value)| visit(value));
                row = stop;
                continue;
            }
            let at = row % BLOCK_ROWS / VECTOR_ROWS;
            let len = opened.read_vector(at, &mut vector)?;
            let first = base + at * VECTOR_ROWS;
            let stop = end.min(first + len).max(row + 1);
            let values = vector.get(row - first..(stop - first).min(len)).unwrap_or_default();
            values.iter().filter(|value| !B::is_absent(**value)).for_each(|&value| visit(value));
            row = stop;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Of large parts an even share of each series is read, of small ones all of it.
    #[test]
    fn large_parts_are_read_evenly() {
        let small = vec![(0, 7), (100, 150)];
        assert_eq!(part_of(small.clone()), small);
        let large = vec![(0, 900_000), (900_000, 900_003), (1_000_000, 1_100_000)];
        let part = part_of(large.clone());
        let rows = |ranges: &Ranges| ranges.iter().map(|(start, end)| end - start).sum::<usize>();
        assert!(rows(&part) <= ROWS_READ as usize + large.len(), "{part:?}");
        assert!(rows(&part) > ROWS_READ as usize / 2, "{part:?}");
        for (part, whole) in part.iter().zip(&large) {
            assert!(part.0 == whole.0 && part.1 > part.0 && part.1 <= whole.1);
        }
    }
}
