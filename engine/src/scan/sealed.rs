//! A segment as a source of rows for SQL: runs that conditions leave, and their columns a morsel at a time.

#![cfg_attr(not(test), deny(clippy::indexing_slicing, clippy::unwrap_used))]

use std::{
    collections::HashMap,
    ops::Range,
    sync::{
        Arc, OnceLock,
        atomic::{AtomicUsize, Ordering},
    },
};

use parking_lot::Mutex;

use super::{
    row_ranges::{BucketRun, Grain, Morsel, RowRange, Series, TimeBuckets, push_rows},
    values::{Column, Filter, TextTable, Values},
    vectors::{block_of, by_vector, in_block, read_ints, vectors},
};
use crate::{
    base::time::HOUR_MS,
    encode::{BLOCK_ROWS, text::TextList},
    error::{Error, Limit, Result},
    event::Namespace,
    segment::{EventIdCondition, Hours, RunSummaries, Segment, SegmentFile, TextReader},
};

mod names;
mod states;
mod times;
mod users;

pub use times::Times;
pub use users::UserTexts;

use times::first_row_of;

/// Cost of decoding one hour of a run. The unit is the cost of decoding one timestamp among many
/// consecutive ones.
const HOUR_COST: usize = 8;

/// The series that a scan shows.
#[derive(Default)]
struct Shown {
    tenants: TextTable,
    names: Vec<Arc<str>>,
    series: Vec<Series>,
}

/// The rows of a namespace in a segment.
pub struct Sealed {
    file: Arc<SegmentFile>,
    heads: RunSummaries,
    /// Shown series; `None` when all rows of the segment are shown.
    shown: Option<Shown>,
    /// Position of the first series in the run directory.
    first: usize,
    /// The hours of all runs, once decoded.
    hours: OnceLock<Hours>,
    /// Held by the thread that decodes the hours.
    decoding: Mutex<()>,
    /// Cost of the timestamps that were decoded instead, in the unit of [`HOUR_COST`].
    spent_on_times: AtomicUsize,
    /// Cost of decoding the hours, in the unit of [`HOUR_COST`].
    hours_cost: usize,
    /// The segment with all its directories, once decoded.
    whole: OnceLock<Segment>,
    /// Dictionaries that were read so far, by property.
    tables: Mutex<HashMap<String, Arc<TextTable>>>,
    /// Blocks of users that were read so far, by index.
    users: Mutex<HashMap<usize, Arc<TextList>>>,
    /// Names of string properties of shown rows, once computed.
    text_names: OnceLock<Vec<String>>,
    number_names: OnceLock<Vec<String>>,
}

impl Sealed {
    /// The rows of a namespace from `horizon_ms` on, a midnight.
    ///
    /// Errors: `Corrupt`.
    pub fn new(
        file: Arc<SegmentFile>,
        heads: RunSummaries,
        namespace: Namespace,
        horizon_ms: i64,
    ) -> Result<Self> {
        let hours: usize = heads.hours.iter().map(|hours| *hours as usize).sum();
        let mut of = Self {
            file,
            heads,
            shown: None,
            first: 0,
            hours: OnceLock::new(),
            decoding: Mutex::default(),
            spent_on_times: AtomicUsize::new(0),
            hours_cost: hours.saturating_mul(HOUR_COST),
            whole: OnceLock::new(),
            tables: Mutex::default(),
            users: Mutex::default(),
            text_names: OnceLock::new(),
            number_names: OnceLock::new(),
        };
        let is_alone = of.heads.owners.iter().all(|owner| owner.namespace == namespace);
        let has_expired = of.file.meta().ts_min < horizon_ms;
        if !is_alone || has_expired {
            of.shown = Some(of.shown(namespace, horizon_ms)?);
        }
        Ok(of)
    }

    /// The runs of a namespace, with their rows from `horizon_ms` on.
    fn shown(&mut self, namespace: Namespace, horizon_ms: i64) -> Result<Shown> {
        let mut shown = Shown::default();
        let mut places: Vec<Option<u32>> = vec![None; self.heads.names.len()];
        let mut times = Times::of(&self.file);
        let owners = self.heads.owners.iter().enumerate();
        let ours: Vec<usize> =
            owners.filter(|(_, owner)| owner.namespace == namespace).map(|(at, _)| at).collect();
        for (tenant, at) in (0..).zip(ours) {
            shown.tenants.push(self.heads.tenants.at(at));
            let Some(owner) = self.heads.owners.get(at) else { continue };
            let runs = owner.runs.start as usize..owner.runs.end as usize;
            if shown.series.is_empty() {
                self.first = runs.start;
            }
            for position in runs {
                let Some(run) = self.heads.runs.get(position) else { continue };
                let mut series = Series { tenant, ..run.clone() };
                if run.first_ms < horizon_ms {
                    let rows = run.rows.clone();
                    // An expired series stays in the list: the indexes of series are consecutive.
                    series.rows.start = match run.last_ms < horizon_ms {
                        true => rows.end,
                        false => first_row_of(&rows, horizon_ms, &mut times)?,
                    };
                    series.first_ms = horizon_ms;
                    series.last_ms = series.last_ms.max(horizon_ms);
                }
                if let Some(place @ None) = places.get_mut(run.name as usize) {
                    *place = Some(0);
                }
                shown.series.push(series);
            }
        }
        // The other names belong to other namespaces.
        let used = self.heads.names.iter().zip(&mut places);
        for (name, place) in used.filter(|(_, place)| place.is_some()) {
            *place = Some(shown.names.len() as u32);
            shown.names.push(Arc::clone(name));
        }
        for series in &mut shown.series {
            let place = places.get(series.name as usize).copied().flatten();
            series.name = place.unwrap_or_default();
        }
        Ok(shown)
    }

    /// The hours of all runs; `None` when the caller should read timestamps instead, which costs
    /// `cost`. That holds until all timestamps read this way have cost as much as the hours would.
    fn hours_rather_than(&self, cost: usize) -> Result<Option<&Hours>> {
        if let Some(hours) = self.hours.get() {
            return Ok(Some(hours));
        }
        let spent = self.spent_on_times.fetch_add(cost, Ordering::Relaxed).saturating_add(cost);
        if spent <= self.hours_cost {
            return Ok(None);
        }
        // Other threads that need the hours wait for the one that decodes them.
        let _decoding = self.decoding.lock();
        if let Some(hours) = self.hours.get() {
            return Ok(Some(hours));
        }
        let hours = self.file.hours(&self.heads)?;
        Ok(Some(self.hours.get_or_init(|| hours)))
    }

    fn whole(&self) -> Result<&Segment> {
        match self.whole.get() {
            Some(whole) => Ok(whole),
            None => {
                let whole = Segment::of(Arc::clone(&self.file), &self.heads)?;
                Ok(self.whole.get_or_init(|| whole))
            }
        }
    }

    /// Checks blocks before they are read, as [`SegmentFile::verify_ahead`] does.
    pub fn verify_ahead(&self, goes_on: &dyn Fn(u64) -> bool) -> u64 {
        let series = self.series();
        let Some((first, last)) = series.first().zip(series.last()) else { return 0 };
        self.file.verify_ahead(&(first.rows.start..last.rows.end), goes_on)
    }

    /// Latest time of the segment, over all namespaces.
    pub fn last_ms(&self) -> i64 {
        self.file.meta().ts_max
    }

    /// Names of its tenants, rising.
    pub fn tenants(&self) -> &TextTable {
        self.shown.as_ref().map_or(&self.heads.tenants, |shown| &shown.tenants)
    }

    /// Names of its events, rising.
    pub fn names(&self) -> &[Arc<str>] {
        self.shown.as_ref().map_or(&self.heads.names, |shown| &shown.names)
    }

    /// Series ordered by tenant and name; those whose rows have all expired stay, without rows.
    pub fn series(&self) -> &[Series] {
        self.shown.as_ref().map_or(&self.heads.runs, |shown| &shown.series)
    }

    /// The run of a series: its position in the directory, and all of its rows.
    fn run(&self, series: usize) -> Option<(usize, Range<u32>)> {
        let position = self.first + series;
        Some((position, self.heads.runs.get(position)?.rows.clone()))
    }

    /// How many values a string property has in the segment.
    ///
    /// Errors: `Corrupt`.
    pub fn values(&self, name: &str) -> Result<usize> {
        self.file.text(name)?.map_or(Ok(0), |reader| reader.value_count())
    }

    /// The rows of a morsel by buckets of time.
    ///
    /// Errors: `Corrupt`.
    pub fn bucket_runs(
        &self,
        morsel: &Morsel,
        grain: Option<Grain>,
        times: &mut Times<'_>,
    ) -> Result<Vec<BucketRun>> {
        let mut out = Vec::with_capacity(morsel.row_ranges.len());
        for row_range in &morsel.row_ranges {
            let rows = row_range.rows.len() as u32;
            let series = self.series().get(row_range.series).zip(self.run(row_range.series));
            let (Some(grain), Some((series, (position, run)))) = (grain, series) else {
                push_rows(&mut out, row_range.series, 0, rows);
                continue;
            };
            let start = grain.start(series.first_ms);
            if start == grain.start(series.last_ms) {
                push_rows(&mut out, row_range.series, start, rows);
                continue;
            }
            // Hours of a segment do not say which minutes rows are of.
            let hours = match grain.step_ms() < HOUR_MS {
                true => None,
                false => self.hours_rather_than(times.cost(&row_range.rows))?,
            };
            let Some(hours) = hours else {
                self.stretches_of_times(row_range, &grain.into(), times, &mut out)?;
                continue;
            };
            let hours = hours.of(position);
            let (first, end) = (row_range.rows.start - run.start, row_range.rows.end - run.start);
            let at = hours.partition_point(|(_, row)| *row <= first).saturating_sub(1);
            let ends = hours.iter().skip(at + 1).map(|(_, row)| *row).chain([run.len() as u32]);
            for ((hour, row), next) in hours.iter().skip(at).zip(ends) {
                if *row >= end {
                    break;
                }
                let here = next.min(end) - (*row).max(first);
                push_rows(
                    &mut out,
                    row_range.series,
                    grain.start(hour.saturating_mul(HOUR_MS)),
                    here,
                );
            }
        }
        Ok(out)
    }

    /// The rows of a row range by buckets of time, which are found by reading their times.
    ///
    /// Errors: `Corrupt`.
    pub fn stretches_of_times(
        &self,
        row_range: &RowRange,
        buckets: &TimeBuckets,
        times: &mut Times<'_>,
        out: &mut Vec<BucketRun>,
    ) -> Result<()> {
        let (mut start, mut end, mut rows) = (0, i64::MIN, 0);
        for piece in vectors(row_range.rows.clone()) {
            for &time in times.read(&piece)? {
                if time >= end {
                    if rows > 0 {
                        push_rows(out, row_range.series, start, rows);
                    }
                    (start, end) = (buckets.start(time), buckets.end(time));
                    rows = 0;
                }
                rows += 1;
            }
        }
        push_rows(out, row_range.series, start, rows);
        Ok(())
    }

    /// The block of a row.
    pub fn block_of(row: u32) -> usize {
        row as usize / BLOCK_ROWS
    }

    /// The row behind the block of a row.
    pub fn block_end(row: u32) -> u32 {
        (row / BLOCK_ROWS as u32).saturating_add(1).saturating_mul(BLOCK_ROWS as u32)
    }

    /// A reader of its times.
    pub fn times(&self) -> Times<'_> {
        Times::of(&self.file)
    }

    /// Of rows of a series, the first that is not before `ms`.
    ///
    /// Errors: `Corrupt`.
    pub fn first_row_at(
        &self,
        row_range: &RowRange,
        ms: i64,
        times: &mut Times<'_>,
    ) -> Result<u32> {
        let Some(series) = self.series().get(row_range.series) else {
            return Ok(row_range.rows.start);
        };
        if ms <= series.first_ms {
            return Ok(row_range.rows.start);
        }
        if ms > series.last_ms {
            return Ok(row_range.rows.end);
        }
        first_row_of(&row_range.rows, ms, times)
    }

    /// The times of the first and the last row of a row range.
    ///
    /// Errors: `Corrupt`.
    pub fn ends(&self, row_range: &RowRange) -> Result<(i64, i64)> {
        let time = |row: u32| {
            let mut time = [0];
            self.file.times(Self::block_of(row))?.read_rows(in_block(row), &mut time)?;
            Result::Ok(time)
        };
        let run = self.heads.runs.get(self.first + row_range.series);
        let (start, end) = (row_range.rows.start, row_range.rows.end);
        // The directory has those of whole runs.
        let first = match run.filter(|run| run.rows.start == start) {
            Some(run) => run.first_ms,
            None => time(start)?[0],
        };
        let last = match run.filter(|run| run.rows.end == end) {
            Some(run) => run.last_ms,
            None => time(end.saturating_sub(1))?[0],
        };
        Ok((first, last))
    }

    /// Whether no row of a morsel can pass.
    ///
    /// Errors: `Corrupt`.
    pub fn excludes(&self, morsel: &Morsel, filter: &Filter) -> Result<bool> {
        let Some(block) = block_of(morsel) else { return Ok(true) };
        for text in &filter.texts {
            let Some(reader) = self.file.text(&text.name)? else { return Ok(true) };
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
            let Some(reader) = self.file.numbers(&number.name)? else { return Ok(true) };
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
        morsel: &Morsel,
        name: &str,
        any_of: &[&[u8]],
        marks: &mut [bool],
    ) -> Result<()> {
        let (Some(reader), Some(block)) = (self.file.text(name)?, block_of(morsel)) else {
            marks.fill(false);
            return Ok(());
        };
        let mut codes = Vec::new();
        for value in any_of {
            codes.extend(reader.code_of(&String::from_utf8_lossy(value))?.map(i64::from));
        }
        let block = reader.codes(block)?;
        let mut rest = marks;
        read_ints(&block, morsel, |here| {
            let (marks, behind) = std::mem::take(&mut rest).split_at_mut(here.len());
            rest = behind;
            let pairs = here.iter().zip(marks);
            match *codes {
                [only] => pairs.for_each(|(code, mark)| *mark &= *code == only),
                _ => pairs.for_each(|(code, mark)| *mark &= codes.contains(code)),
            }
        })
    }

    /// Takes the mark from rows whose event ids do not meet a condition.
    ///
    /// Errors: `Corrupt`.
    pub fn mark_event_ids(
        &self,
        morsel: &Morsel,
        ids: &EventIdCondition,
        marks: &mut [bool],
    ) -> Result<()> {
        let Some(block) = block_of(morsel) else { return Ok(()) };
        let found = self.file.rows_with(block, &ranges_in_block(morsel), ids)?;
        marks.iter_mut().zip(found).for_each(|(mark, found)| *mark &= found);
        Ok(())
    }

    /// Values of the rows of a morsel.
    ///
    /// Errors: `Corrupt`.
    pub fn read(&self, morsel: &Morsel, column: &Column) -> Result<Values> {
        let block = block_of(morsel).unwrap_or_default();
        let rows = morsel.rows();
        match column {
            Column::Time => {
                let mut times = Vec::with_capacity(rows);
                read_ints(&self.file.times(block)?, morsel, |here| times.extend_from_slice(here))?;
                Ok(Values::Times(times))
            }
            Column::Number(name) => {
                let Some(reader) = self.file.numbers(name)? else {
                    return Ok(Values::Numbers(vec![f64::NAN; rows]));
                };
                let block = reader.block(block)?;
                let mut numbers = Vec::with_capacity(rows);
                let read = |at: usize, to: &mut [f64]| block.read_rows(at, to);
                by_vector(morsel, read, |here| numbers.extend_from_slice(here))?;
                Ok(Values::Numbers(numbers))
            }
            Column::Text(name) => {
                let reader = self.file.text(name)?;
                let has_any =
                    |reader: &TextReader<'_>| reader.zone(block).is_none_or(|zone| zone.max > 0);
                let Some(reader) = reader.filter(has_any) else {
                    return Ok(Values::Codes(vec![0; rows], Arc::default()));
                };
                let table = self.table(name, &reader)?;
                let mut codes = Vec::with_capacity(rows);
                let mut beyond = false;
                read_ints(&reader.codes(block)?, morsel, |here| {
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
                let ids = self.file.event_ids_of(block, &ranges_in_block(morsel))?;
                let (mut table, mut scratch) = (TextTable::default(), Vec::new());
                for row in 0..ids.len() {
                    table.push(ids.value(row, &mut scratch).unwrap_or_default());
                }
                Ok(Values::Texts(Arc::new(table)))
            }
            Column::User => self.read_users(morsel),
        }
    }

    /// All values of a string property; none where no row has it.
    ///
    /// Errors: `Corrupt`; `Limit` when they take more than 4 GiB.
    pub fn dictionary(&self, name: &str) -> Result<Arc<TextTable>> {
        match self.file.text(name)? {
            Some(reader) => self.table(name, &reader),
            None => Ok(Arc::default()),
        }
    }

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
        // Of two threads that have made it, both take that of the first: others know it by its address.
        Ok(Arc::clone(self.tables.lock().entry(name.to_owned()).or_insert(Arc::new(table))))
    }
}

/// The rows of a morsel within their block. Row ranges that follow each other are one range.
fn ranges_in_block(morsel: &Morsel) -> Vec<Range<usize>> {
    let mut ranges: Vec<Range<usize>> = Vec::new();
    for row_range in &morsel.row_ranges {
        let start = in_block(row_range.rows.start);
        let end = start + row_range.rows.len();
        match ranges.last_mut() {
            Some(last) if last.end == start => last.end = end,
            _ => ranges.push(start..end),
        }
    }
    ranges
}
