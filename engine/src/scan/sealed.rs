//! Rows of a segment.

#![cfg_attr(not(test), deny(clippy::indexing_slicing, clippy::unwrap_used))]

use std::{
    collections::HashMap,
    ops::Range,
    sync::{Arc, OnceLock},
};

use parking_lot::Mutex;

use super::{
    hours::{Hour, HourStates, Wanted},
    strips::{Series, Strip, Unit},
    values::{Column, Filter, TextTable, Values},
};
use crate::{
    base::time::HOUR_MS,
    encode::{BLOCK_ROWS, VECTOR_ROWS, ints::IntBlock, text::TextList},
    error::{Error, Limit, Result},
    event::Namespace,
    segment::{Run, SectionKind, Segment, TextReader, UserReader},
    sketch::digest::Digest,
};

/// The rows of a namespace in a segment.
pub struct Sealed {
    segment: Arc<Segment>,
    series: Vec<Series>,
    /// Position of each series in the run directory.
    positions: Vec<usize>,
    /// Dictionaries that were asked for.
    tables: Mutex<HashMap<String, Arc<TextTable>>>,
    /// Blocks of users that were read, by number.
    users: Mutex<HashMap<usize, Arc<TextList>>>,
    /// Names of properties that rows here have, when they were asked for.
    text_names: OnceLock<Vec<String>>,
    number_names: OnceLock<Vec<String>>,
}

impl Sealed {
    /// The rows of a namespace from `horizon_ms` on, a midnight.
    ///
    /// Errors: `Corrupt`.
    pub fn new(segment: Arc<Segment>, namespace: Namespace, horizon_ms: i64) -> Result<Self> {
        let positions = segment.runs().positions_of(namespace, None);
        let mut of = Self {
            series: Vec::new(),
            positions: Vec::new(),
            tables: Mutex::default(),
            users: Mutex::default(),
            text_names: OnceLock::new(),
            number_names: OnceLock::new(),
            segment: Arc::clone(&segment),
        };
        for position in positions {
            let Some(run) = segment.runs().runs().get(position) else { continue };
            if run.ts_max < horizon_ms {
                continue;
            }
            let mut series = Series {
                tenant: Arc::clone(&run.key.tenant),
                name: Arc::clone(&run.key.name),
                rows: run.first_row..run.first_row.saturating_add(run.rows),
                first_ms: run.ts_min,
                last_ms: run.ts_max,
            };
            if run.ts_min < horizon_ms {
                series.rows.start = run.first_row.saturating_add(run.rows_before(horizon_ms));
                series.first_ms = horizon_ms;
            }
            of.series.push(series);
            of.positions.push(position);
        }
        Ok(of)
    }

    /// Its series.
    pub fn series(&self) -> &[Series] {
        &self.series
    }

    /// Names of string properties that rows of it have. The segment is others' too: theirs are not told, and not paid
    /// for again.
    ///
    /// Errors: `Corrupt`.
    pub fn texts(&self) -> Result<&[String]> {
        let has_any = |name: &str, unit: &Unit, block: usize| {
            let Some(reader) = self.segment.text(name)? else { return Ok(false) };
            if reader.zone(block).is_some_and(|zone| zone.max == 0) {
                return Ok(false);
            }
            let mut has_any = false;
            read_ints(&reader.codes(block)?, unit, |here| {
                has_any |= here.iter().any(|code| *code > 0);
            })?;
            Ok(has_any)
        };
        self.names(&self.text_names, SectionKind::TextValues, &has_any)
    }

    /// Names of numeric properties that rows of it have.
    ///
    /// Errors: `Corrupt`.
    pub fn numbers(&self) -> Result<&[String]> {
        let has_any = |name: &str, unit: &Unit, block: usize| {
            let Some(reader) = self.segment.numbers(name)? else { return Ok(false) };
            if reader.zone(block).is_some_and(|zone| zone.max < zone.min) {
                return Ok(false);
            }
            let (block, mut vector) = (reader.block(block)?, [0.0; VECTOR_ROWS]);
            for piece in pieces(unit) {
                let (here, _) = vector.split_at_mut(piece.len());
                block.read_rows(in_block(piece.start), here)?;
                if here.iter().any(|number| !number.is_nan()) {
                    return Ok(true);
                }
            }
            Ok(false)
        };
        self.names(&self.number_names, SectionKind::Numbers, &has_any)
    }

    /// Names of properties of which some row here has a value, found once.
    fn names<'a>(
        &'a self,
        found: &'a OnceLock<Vec<String>>,
        kind: SectionKind,
        has_any: &dyn Fn(&str, &Unit, usize) -> Result<bool>,
    ) -> Result<&'a [String]> {
        if let Some(names) = found.get() {
            return Ok(names);
        }
        // Alone in its segment it has what the segment has.
        let is_alone = self.segment.namespaces().len() == 1;
        let mut names = Vec::new();
        for name in self.segment.names(kind) {
            let mut is_there = is_alone;
            for unit in self.all_units() {
                if is_there {
                    break;
                }
                is_there = has_any(name, &unit, block_of(&unit).unwrap_or_default())?;
            }
            if is_there {
                names.push(name.to_owned());
            }
        }
        Ok(found.get_or_init(|| names))
    }

    /// All rows, block by block. Series follow each other, and so do their rows.
    fn all_units(&self) -> impl Iterator<Item = Unit> {
        let mut series = self.series.iter().enumerate();
        let mut rest: Option<Strip> = None;
        std::iter::from_fn(move || {
            let mut strips: Vec<Strip> = Vec::new();
            loop {
                let next = rest.take().or_else(|| {
                    let (at, series) = series.next()?;
                    Some(Strip { series: at, rows: series.rows.clone() })
                });
                let Some(strip) = next else { break };
                let (start, end) = (strip.rows.start, strip.rows.end);
                let block = strips.first().map_or(start, |first| first.rows.start);
                if Self::block_of(start) != Self::block_of(block) {
                    rest = Some(strip);
                    break;
                }
                let cut = Self::block_end(start).min(end);
                strips.push(Strip { series: strip.series, rows: start..cut });
                if cut < end {
                    rest = Some(Strip { series: strip.series, rows: cut..end });
                    break;
                }
            }
            (!strips.is_empty()).then_some(Unit { strips })
        })
    }

    /// The block of a row.
    pub fn block_of(row: u32) -> usize {
        row as usize / BLOCK_ROWS
    }

    /// The row behind the block of a row.
    pub fn block_end(row: u32) -> u32 {
        (row / BLOCK_ROWS as u32).saturating_add(1).saturating_mul(BLOCK_ROWS as u32)
    }

    fn run(&self, series: &Series) -> Option<&Run> {
        // In the order of their rows: every series may be asked for.
        let at = self.series.partition_point(|other| other.rows.start < series.rows.start);
        self.segment.runs().runs().get(*self.positions.get(at)?)
    }

    /// The first row of a series that is not before `ms`.
    ///
    /// Errors: `Corrupt`.
    pub fn first_row_at(&self, series: &Series, ms: i64) -> Result<u32> {
        if ms <= series.first_ms {
            return Ok(series.rows.start);
        }
        if ms > series.last_ms {
            return Ok(series.rows.end);
        }
        let Some(run) = self.run(series) else { return Ok(series.rows.end) };
        let hour_start = ms.div_euclid(HOUR_MS).saturating_mul(HOUR_MS);
        let row = |hour_ms: i64| run.first_row.saturating_add(run.rows_before(hour_ms));
        let mut rows = row(hour_start)..row(hour_start.saturating_add(HOUR_MS));
        // Halves of the hour until one vector is left.
        let mut times = [0; VECTOR_ROWS];
        while rows.len() > VECTOR_ROWS {
            let middle = rows.start + rows.len() as u32 / 2;
            let (one, _) = times.split_at_mut(1);
            self.segment.times(Self::block_of(middle))?.read_rows(in_block(middle), one)?;
            match one.first() {
                Some(&time) if time < ms => rows.start = middle + 1,
                _ => rows.end = middle,
            }
        }
        for piece in vectors(rows.clone()) {
            let (times, _) = times.split_at_mut(piece.len());
            self.segment
                .times(Self::block_of(piece.start))?
                .read_rows(in_block(piece.start), times)?;
            let before = times.partition_point(|&time| time < ms);
            if before < times.len() {
                return Ok(piece.start + before as u32);
            }
        }
        Ok(rows.end)
    }

    /// Whether no row of a unit can pass.
    ///
    /// Errors: `Corrupt`.
    pub fn excludes(&self, unit: &Unit, filter: &Filter) -> Result<bool> {
        let Some(block) = block_of(unit) else { return Ok(true) };
        for text in &filter.texts {
            let Some(reader) = self.segment.text(&text.name)? else { return Ok(true) };
            let mut may_pass = false;
            for value in &text.any_of {
                let code = reader.code_of(value)?;
                let is_possible =
                    |code| reader.zone(block).is_none_or(|zone| zone.may_contain(code));
                may_pass |= code.is_some_and(is_possible);
            }
            if !may_pass {
                return Ok(true);
            }
        }
        for number in &filter.numbers {
            let Some(reader) = self.segment.numbers(&number.name)? else { return Ok(true) };
            if reader.zone(block).is_some_and(|zone| zone.max < number.min || zone.min > number.max)
            {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Takes the mark from rows that have none of these values.
    ///
    /// Errors: `Corrupt`.
    pub fn mark_texts(
        &self,
        unit: &Unit,
        name: &str,
        any_of: &[&[u8]],
        marks: &mut [bool],
    ) -> Result<()> {
        let (Some(reader), Some(block)) = (self.segment.text(name)?, block_of(unit)) else {
            marks.fill(false);
            return Ok(());
        };
        let mut codes = Vec::new();
        for value in any_of {
            codes.extend(reader.code_of(&String::from_utf8_lossy(value))?.map(i64::from));
        }
        let block = reader.codes(block)?;
        let mut marks = marks.iter_mut();
        let mut vector = [0; VECTOR_ROWS];
        for piece in pieces(unit) {
            let (here, _) = vector.split_at_mut(piece.len());
            block.read_rows(in_block(piece.start), here)?;
            match *codes {
                [only] => {
                    here.iter().zip(&mut marks).for_each(|(code, mark)| *mark &= *code == only)
                }
                _ => here
                    .iter()
                    .zip(&mut marks)
                    .for_each(|(code, mark)| *mark &= codes.contains(code)),
            }
        }
        Ok(())
    }

    /// Values of the rows of a unit.
    ///
    /// Errors: `Corrupt`.
    pub fn read(&self, unit: &Unit, column: &Column) -> Result<Values> {
        let block = block_of(unit).unwrap_or_default();
        let rows = unit.rows();
        match column {
            Column::Time => {
                let mut times = Vec::with_capacity(rows);
                read_ints(&self.segment.times(block)?, unit, |here| times.extend_from_slice(here))?;
                Ok(Values::Times(times))
            }
            Column::Number(name) => {
                let Some(reader) = self.segment.numbers(name)? else {
                    return Ok(Values::Numbers(vec![f64::NAN; rows]));
                };
                let block = reader.block(block)?;
                let mut numbers = Vec::with_capacity(rows);
                let mut vector = [0.0; VECTOR_ROWS];
                for piece in pieces(unit) {
                    let (here, _) = vector.split_at_mut(piece.len());
                    block.read_rows(in_block(piece.start), here)?;
                    numbers.extend_from_slice(here);
                }
                Ok(Values::Numbers(numbers))
            }
            Column::Text(name) => {
                let reader = self.segment.text(name)?;
                let has_any =
                    |reader: &TextReader<'_>| reader.zone(block).is_none_or(|zone| zone.max > 0);
                let Some(reader) = reader.filter(has_any) else {
                    return Ok(Values::Codes(vec![0; rows], Arc::default()));
                };
                let table = self.table(name, &reader)?;
                let mut codes = Vec::with_capacity(rows);
                let mut beyond = false;
                read_ints(&reader.codes(block)?, unit, |here| {
                    let code = |&code: &i64| u32::try_from(code).unwrap_or(u32::MAX);
                    codes.extend(here.iter().map(code));
                    beyond |= here.iter().any(|&code| code as u64 > table.len() as u64);
                })?;
                if beyond {
                    return Err(Error::corrupt(reader.place(), "a code exceeds its dictionary"));
                }
                Ok(Values::Codes(codes, table))
            }
            Column::EventId => {
                let ids = self.segment.event_ids(block)?;
                let (mut table, mut scratch) = (TextTable::default(), Vec::new());
                for row in unit.strips.iter().flat_map(|strip| strip.rows.clone()) {
                    table.push(ids.value(in_block(row), &mut scratch).unwrap_or_default());
                }
                Ok(Values::Texts(Arc::new(table)))
            }
            Column::User => self.read_users(unit, block),
        }
    }

    /// The dictionary of a property.
    fn table(&self, name: &str, reader: &TextReader<'_>) -> Result<Arc<TextTable>> {
        if let Some(table) = self.tables.lock().get(name) {
            return Ok(Arc::clone(table));
        }
        let mut table = TextTable::default();
        for index in 0..reader.value_blocks()? {
            let block = reader.value_block(index)?;
            if table.bytes.len().saturating_add(block.bytes_used()) > u32::MAX as usize {
                return Err(Error::limit(
                    Limit::QueryMemory,
                    format!("{name} has too many values"),
                ));
            }
            for value in block.iter() {
                if std::str::from_utf8(value).is_err() {
                    return Err(Error::corrupt(reader.place(), "a dictionary is not UTF-8"));
                }
                table.push(value);
            }
        }
        let table = Arc::new(table);
        self.tables.lock().insert(name.to_owned(), Arc::clone(&table));
        Ok(table)
    }

    /// Users of the rows of a unit. A tenant's stand together, and so do those of tenants beside each other: they are
    /// the dictionary, unless there are more of them than rows.
    fn read_users(&self, unit: &Unit, block: usize) -> Result<Values> {
        let codes = self.segment.user_codes(block)?;
        let tenants = self.segment.tenants();
        let users_at = |row: Option<u32>| tenants.users(tenants.of_row(row.unwrap_or_default()));
        let first = users_at(unit.strips.first().map(|strip| strip.rows.start)).start;
        let end = users_at(unit.strips.last().map(|strip| strip.rows.end - 1)).end;
        let rows = unit.rows();
        let is_dense = end.saturating_sub(first) <= rows;
        let (mut table, mut places) = (TextTable::default(), Vec::new());
        if is_dense {
            places.reserve(rows);
            let mut at = first;
            while at < end {
                let list = self.user_block(at / crate::segment::USERS_A_BLOCK)?;
                let from = at % crate::segment::USERS_A_BLOCK;
                let here = (end - at).min(crate::segment::USERS_A_BLOCK - from);
                (from..from + here).for_each(|at| table.push(list.at(at)));
                at += here;
            }
        }
        let mut vector = [0; VECTOR_ROWS];
        for piece in pieces(unit) {
            let (here, _) = vector.split_at_mut(piece.len());
            codes.read_rows(in_block(piece.start), here)?;
            // A strip is of one tenant.
            let users = users_at(Some(piece.start));
            for &mut code in here {
                let at = usize::try_from(code).unwrap_or(usize::MAX);
                // Zero is nobody.
                let user = at.checked_sub(1).map(|at| users.start.saturating_add(at));
                if user.is_some_and(|user| user >= users.end) {
                    let place = self.segment.meta().path();
                    return Err(Error::corrupt(place, "a row's user is not one of its tenant"));
                }
                match user {
                    _ if is_dense => places.push(user.map_or(0, |user| (user - first + 1) as u32)),
                    None => table.push(&[]),
                    Some(user) => {
                        let list = self.user_block(user / crate::segment::USERS_A_BLOCK)?;
                        table.push(list.at(user % crate::segment::USERS_A_BLOCK));
                    }
                }
            }
        }
        let table = Arc::new(table);
        Ok(if is_dense { Values::Codes(places, table) } else { Values::Texts(table) })
    }

    fn user_block(&self, index: usize) -> Result<Arc<TextList>> {
        let mut users = self.users.lock();
        if let Some(list) = users.get(&index) {
            return Ok(Arc::clone(list));
        }
        let list = Arc::new(self.segment.users(index)?);
        users.insert(index, Arc::clone(&list));
        Ok(list)
    }

    /// What the rows of a series add up to by hour: from rollups where they are kept.
    ///
    /// Errors: `Corrupt`.
    pub fn hours(&self, series: usize, times: &Range<i64>, wanted: &Wanted) -> Result<HourStates> {
        let mut states = HourStates::default();
        let (Some(shown), Some(&position)) = (self.series.get(series), self.positions.get(series))
        else {
            return Ok(states);
        };
        let Some(run) = self.segment.runs().runs().get(position) else { return Ok(states) };
        // Each hour that is asked for: its place among those of the run, and its rows.
        let mut hours: Vec<(usize, i64, Range<u32>)> = Vec::new();
        for (at, (hour, rows)) in run.hour_rows().enumerate() {
            let rows = run.first_row + rows.start..run.first_row + rows.end;
            let is_asked = times.contains(&hour.saturating_mul(HOUR_MS));
            if is_asked && rows.start >= shown.rows.start {
                let count = rows.len() as u64;
                states.insert(hour, Hour { count, ..Hour::empty(wanted) });
                hours.push((at, hour, rows));
            }
        }
        let (rollup, count) = (self.segment.rollup_of(position), run.hours.len());
        if wanted.users {
            let kept = match rollup {
                Some(index) => self.segment.rollup_users(index, count, true)?,
                None => None,
            };
            if let Some((_, Some(kept))) = kept {
                for (at, hour, _) in &hours {
                    if let (Some(state), Some(users)) = (states.get_mut(hour), kept.get(*at)) {
                        state.users = Some(users.clone());
                    }
                }
            } else if let Some((_, _, rows)) = hours.first() {
                self.add_users(rows.start, &hours, &mut states)?;
            }
        }
        for (number, name) in wanted.numbers.iter().enumerate() {
            let kept = match rollup {
                Some(index) => self.segment.rollup_digests(index, name, count, true)?,
                None => None,
            };
            let kept = kept.and_then(|(_, hours)| hours);
            for (at, hour, rows) in &hours {
                let digest = match &kept {
                    Some(kept) => kept.get(*at).cloned().unwrap_or_default(),
                    None => self.digest(name, rows)?,
                };
                if let Some(slot) =
                    states.get_mut(hour).and_then(|state| state.numbers.get_mut(number))
                {
                    *slot = digest;
                }
            }
        }
        states.values_mut().for_each(Hour::settle);
        Ok(states)
    }

    fn add_users(
        &self,
        row: u32,
        hours: &[(usize, i64, Range<u32>)],
        states: &mut HourStates,
    ) -> Result<()> {
        let tenant = self.segment.tenants().of_row(row);
        let hashes = UserReader::default().hashes(&self.segment, tenant, &mut |_| Ok(()))?;
        let mut vector = [0; VECTOR_ROWS];
        for (_, hour, rows) in hours {
            let Some(users) = states.get_mut(hour).and_then(|state| state.users.as_mut()) else {
                continue;
            };
            for piece in vectors(rows.clone()) {
                let (here, _) = vector.split_at_mut(piece.len());
                let block = self.segment.user_codes(Self::block_of(piece.start))?;
                block.read_rows(in_block(piece.start), here)?;
                let hash = |code: &i64| hashes.get((*code as usize).wrapping_sub(1)).copied();
                here.iter().filter_map(hash).for_each(|hash| {
                    users.insert(hash);
                });
            }
        }
        Ok(())
    }

    fn digest(&self, name: &str, rows: &Range<u32>) -> Result<Digest> {
        let mut digest = Digest::default();
        let Some(reader) = self.segment.numbers(name)? else { return Ok(digest) };
        let mut vector = [0.0; VECTOR_ROWS];
        for piece in vectors(rows.clone()) {
            let (here, _) = vector.split_at_mut(piece.len());
            reader.block(Self::block_of(piece.start))?.read_rows(in_block(piece.start), here)?;
            here.iter().filter(|value| !value.is_nan()).for_each(|&value| {
                digest.insert(value);
            });
        }
        Ok(digest)
    }
}

fn in_block(row: u32) -> usize {
    row as usize % BLOCK_ROWS
}

fn block_of(unit: &Unit) -> Option<usize> {
    unit.strips.first().map(|strip| Sealed::block_of(strip.rows.start))
}

/// Pieces of a range of rows, each within a vector.
fn vectors(mut rows: Range<u32>) -> impl Iterator<Item = Range<u32>> {
    std::iter::from_fn(move || {
        let end = (rows.start / VECTOR_ROWS as u32 + 1).saturating_mul(VECTOR_ROWS as u32);
        let piece = rows.start..end.min(rows.end);
        rows.start = piece.end;
        (!piece.is_empty()).then_some(piece)
    })
}

fn pieces(unit: &Unit) -> impl Iterator<Item = Range<u32>> + '_ {
    unit.strips.iter().flat_map(|strip| vectors(strip.rows.clone()))
}

fn read_ints(block: &IntBlock<'_>, unit: &Unit, mut take: impl FnMut(&[i64])) -> Result<()> {
    let mut vector = [0; VECTOR_ROWS];
    for piece in pieces(unit) {
        let (here, _) = vector.split_at_mut(piece.len());
        block.read_rows(in_block(piece.start), here)?;
        take(here);
    }
    Ok(())
}
