//! Where rows come from: a segment, or rows that no segment holds yet.

use std::{collections::HashSet, ops::Range, sync::Arc};

use super::{
    hours::{HourStates, StateSelection},
    recent::Recent,
    row_ranges::{
        BucketRun, Grain, Morsel, RowRange, Series, SeriesFilter, TimeBuckets, push_rows,
    },
    sealed::{Sealed, Times, UserTexts},
    values::{Column, Filter, TextTable, Values},
};
use crate::{encode::VECTOR_ROWS, error::Result, segment::EventIdCondition};

/// Boundaries of time in a series up to which each is looked for in each of its row ranges.
const FEW_BOUNDARIES: usize = 8;
/// Rows of a segment for each boundary among them, up to which their times are read one after the other. In more, to look for each boundary is quicker.
const ROWS_OF_BOUNDARY: usize = 8 * VECTOR_ROWS;

/// A segment, or rows that no segment holds yet, as far as they belong to the namespace.
pub struct Source(SourceKind);

enum SourceKind {
    Sealed(Box<Sealed>),
    Recent(Box<Recent>),
}

impl From<Sealed> for Source {
    fn from(sealed: Sealed) -> Self {
        Self(SourceKind::Sealed(Box::new(sealed)))
    }
}

impl From<Recent> for Source {
    fn from(recent: Recent) -> Self {
        Self(SourceKind::Recent(Box::new(recent)))
    }
}

impl Source {
    /// Names of its tenants, rising.
    pub fn tenants(&self) -> &TextTable {
        match &self.0 {
            SourceKind::Sealed(sealed) => sealed.tenants(),
            SourceKind::Recent(recent) => recent.tenants(),
        }
    }

    /// Names of its events, rising.
    pub fn names(&self) -> &[Arc<str>] {
        match &self.0 {
            SourceKind::Sealed(sealed) => sealed.names(),
            SourceKind::Recent(recent) => recent.names(),
        }
    }

    /// Checks what rows are read from as long as `goes_on` says so of all bytes that were checked; returns these.
    pub fn verify_ahead(&self, goes_on: &dyn Fn(u64) -> bool) -> u64 {
        match &self.0 {
            SourceKind::Sealed(sealed) => sealed.verify_ahead(goes_on),
            SourceKind::Recent(_) => 0,
        }
    }

    /// Its latest instant, as far as that is known without reading.
    pub fn last_ms(&self) -> i64 {
        match &self.0 {
            SourceKind::Sealed(sealed) => sealed.last_ms(),
            SourceKind::Recent(_) => i64::MAX,
        }
    }

    /// The place of a tenant's event among the series.
    pub fn find(&self, tenant: &str, name: &str) -> Option<usize> {
        let tenant = self.tenants().position(tenant.as_bytes())? as u32;
        let name = self.names().binary_search_by(|other| (**other).cmp(name)).ok()? as u32;
        let key = (tenant, name);
        self.series().binary_search_by_key(&key, |series| (series.tenant, series.name)).ok()
    }

    /// Its series, ordered by tenant and name.
    pub fn series(&self) -> &[Series] {
        match &self.0 {
            SourceKind::Sealed(sealed) => sealed.series(),
            SourceKind::Recent(recent) => recent.series(),
        }
    }

    /// Names of string properties that its rows have.
    ///
    /// Errors: `Corrupt`.
    pub fn texts(&self) -> Result<Vec<&str>> {
        match &self.0 {
            SourceKind::Sealed(sealed) => Ok(sealed.texts()?.iter().map(String::as_str).collect()),
            SourceKind::Recent(recent) => recent.texts(),
        }
    }

    /// Names of numeric properties that its rows have.
    ///
    /// Errors: `Corrupt`.
    pub fn numbers(&self) -> Result<Vec<&str>> {
        match &self.0 {
            SourceKind::Sealed(sealed) => {
                Ok(sealed.numbers()?.iter().map(String::as_str).collect())
            }
            SourceKind::Recent(recent) => recent.numbers(),
        }
    }

    /// The rows of the series that the filter takes from `times.start` to before `times.end`, in morsels.
    ///
    /// Errors: `Corrupt`.
    pub fn morsels(
        &self,
        series_filter: SeriesFilter<'_>,
        times: &Range<i64>,
    ) -> Result<Vec<Morsel>> {
        let some: Option<HashSet<&str>> =
            series_filter.names.map(|names| names.iter().map(String::as_str).collect());
        let is_chosen = |name: &Arc<str>| some.as_ref().is_none_or(|some| some.contains(&**name));
        let names: Vec<bool> = self.names().iter().map(is_chosen).collect();
        let mut morsels: Vec<Morsel> = Vec::new();
        let mut open: Option<usize> = None;
        let all = || std::iter::once(0..self.series().len()).collect();
        let series_filter =
            series_filter.tenants.map_or_else(all, |tenants| self.places_of(tenants));
        let series_filter = series_filter.into_iter().flatten();
        let mut reader = self.times();
        for (at, series) in series_filter.filter_map(|at| Some((at, self.series().get(at)?))) {
            let is_named = names.get(series.name as usize) == Some(&true);
            if !is_named || series.last_ms < times.start || series.first_ms >= times.end {
                continue;
            }
            let mut rows = self.rows_between(at, series, times, &mut reader)?;
            while !rows.is_empty() {
                let block = self.block_of(rows.start);
                let end = self.block_end(rows.start).min(rows.end);
                let row_range = RowRange { series: at, rows: rows.start..end };
                match morsels.last_mut().filter(|_| open == Some(block)) {
                    Some(morsel) => morsel.row_ranges.push(row_range),
                    None => morsels.push(Morsel { row_ranges: vec![row_range] }),
                }
                open = Some(block);
                rows.start = end;
            }
        }
        Ok(morsels)
    }

    /// Where the series of these tenants stand, in order.
    fn places_of(&self, tenants: &[String]) -> Vec<Range<usize>> {
        let series = self.series();
        let found = tenants.iter().filter_map(|name| self.tenants().position(name.as_bytes()));
        let mut found: Vec<u32> = found.map(|tenant| tenant as u32).collect();
        found.sort_unstable();
        found.dedup();
        let first = |tenant: u32| series.partition_point(|series| series.tenant < tenant);
        found.into_iter().map(|tenant| first(tenant)..first(tenant + 1)).collect()
    }

    /// A reader of times, where they are read from blocks.
    fn times(&self) -> Option<Times<'_>> {
        match &self.0 {
            SourceKind::Sealed(sealed) => Some(sealed.times()),
            SourceKind::Recent(_) => None,
        }
    }

    fn rows_between<'a>(
        &'a self,
        at: usize,
        series: &Series,
        times: &Range<i64>,
        reader: &mut Option<Times<'a>>,
    ) -> Result<Range<u32>> {
        if series.first_ms >= times.start && series.last_ms < times.end {
            return Ok(series.rows.clone());
        }
        let mut row_range = RowRange { series: at, rows: series.rows.clone() };
        // The end is looked for behind the start.
        row_range.rows.start = self.row_at(&row_range, times.start, reader)?;
        row_range.rows.end = self.row_at(&row_range, times.end, reader)?;
        Ok(row_range.rows)
    }

    /// Of rows of a series, the first that is not before `ms`, or the row behind them.
    fn row_at<'a>(
        &'a self,
        row_range: &RowRange,
        ms: i64,
        reader: &mut Option<Times<'a>>,
    ) -> Result<u32> {
        match &self.0 {
            SourceKind::Sealed(sealed) => {
                sealed.first_row_at(row_range, ms, reader.get_or_insert_with(|| sealed.times()))
            }
            SourceKind::Recent(recent) => Ok(recent.first_row_at(&row_range.rows, ms)),
        }
    }

    /// The rows of a morsel from `times.start` to before `times.end`.
    ///
    /// Rows of a series are searched once, also where a filter has made thousands of row ranges of them.
    ///
    /// Errors: `Corrupt`.
    pub fn within(&self, morsel: &Morsel, times: &Range<i64>) -> Result<Morsel> {
        let mut row_ranges = Vec::with_capacity(morsel.row_ranges.len());
        let mut reader = self.times();
        let mut of_series: Option<(usize, Range<u32>)> = None;
        for row_range in &morsel.row_ranges {
            let Some(series) = self.series().get(row_range.series) else { continue };
            if series.last_ms < times.start || series.first_ms >= times.end {
                continue;
            }
            let between = match of_series.take() {
                Some((at, between)) if at == row_range.series => between,
                _ => self.rows_between(row_range.series, series, times, &mut reader)?,
            };
            let (_, between) = of_series.insert((row_range.series, between));
            let rows = row_range.rows.start.max(between.start)..row_range.rows.end.min(between.end);
            if !rows.is_empty() {
                row_ranges.push(RowRange { series: row_range.series, rows });
            }
        }
        Ok(Morsel { row_ranges })
    }

    fn block_of(&self, row: u32) -> usize {
        match &self.0 {
            SourceKind::Sealed(_) => Sealed::block_of(row),
            SourceKind::Recent(_) => 0,
        }
    }

    fn block_end(&self, row: u32) -> u32 {
        match &self.0 {
            SourceKind::Sealed(_) => Sealed::block_end(row),
            SourceKind::Recent(_) => u32::MAX,
        }
    }

    /// Whether no row of a morsel can pass, as far as that is known without reading it.
    ///
    /// Errors: `Corrupt`.
    pub fn excludes(&self, morsel: &Morsel, filter: &Filter) -> Result<bool> {
        match &self.0 {
            SourceKind::Sealed(sealed) => sealed.excludes(morsel, filter),
            SourceKind::Recent(_) => Ok(false),
        }
    }

    /// Which rows of a morsel pass; nothing when all do.
    ///
    /// Errors: `Corrupt`.
    pub fn passing(&self, morsel: &Morsel, filter: &Filter) -> Result<Option<Vec<bool>>> {
        if filter.is_empty() {
            return Ok(None);
        }
        let mut marks = vec![true; morsel.rows()];
        for text in &filter.texts {
            let any_of: Vec<&[u8]> = text.any_of.iter().map(String::as_bytes).collect();
            self.mark_texts(morsel, &text.name, &any_of, &mut marks)?;
        }
        for number in &filter.numbers {
            let column = Column::Number(number.name.clone());
            if let Values::Numbers(numbers) = self.read(morsel, &column)? {
                let passes = |value: &f64| (number.min..=number.max).contains(value);
                marks.iter_mut().zip(&numbers).for_each(|(mark, value)| *mark &= passes(value));
            }
        }
        for alike in &filter.alike {
            let column = Column::Text(alike.name.clone());
            if let Values::Codes(codes, table) = self.read(morsel, &column)? {
                alike.mark(&codes, &table, &mut marks)?;
            }
        }
        Ok(if marks.iter().all(|mark| *mark) { None } else { Some(marks) })
    }

    fn mark_texts(
        &self,
        morsel: &Morsel,
        name: &str,
        any_of: &[&[u8]],
        marks: &mut [bool],
    ) -> Result<()> {
        if let SourceKind::Sealed(sealed) = &self.0 {
            // By codes: the dictionary need not be read as a whole.
            return sealed.mark_texts(morsel, name, any_of, marks);
        }
        if let Values::Codes(codes, table) = self.read(morsel, &Column::Text(name.to_owned()))? {
            let accepted: Vec<bool> = std::iter::once(false)
                .chain((0..table.len()).map(|at| any_of.contains(&table.at(at))))
                .collect();
            let passes = |code: u32| accepted.get(code as usize) == Some(&true);
            marks.iter_mut().zip(codes).for_each(|(mark, code)| *mark &= passes(code));
        }
        Ok(())
    }

    /// Takes the mark from rows of a morsel whose event ids do not meet a condition. Blocks are searched as they are encoded.
    ///
    /// Errors: `Corrupt`.
    pub fn mark_event_ids(
        &self,
        morsel: &Morsel,
        ids: &EventIdCondition,
        marks: &mut [bool],
    ) -> Result<()> {
        if let SourceKind::Sealed(sealed) = &self.0 {
            return sealed.mark_event_ids(morsel, ids, marks);
        }
        if let Values::Texts(table) = self.read(morsel, &Column::EventId)? {
            let marks = marks.iter_mut().enumerate();
            marks.for_each(|(row, mark)| *mark &= ids.is_met(table.at(row)));
        }
        Ok(())
    }

    /// Takes the mark from rows of a morsel that are of none of these users.
    ///
    /// Errors: `Corrupt`.
    pub fn mark_users(&self, morsel: &Morsel, users: &[&[u8]], marks: &mut [bool]) -> Result<()> {
        if let SourceKind::Sealed(sealed) = &self.0 {
            return sealed.mark_users(morsel, users, marks);
        }
        if let Values::Texts(table) = self.read(morsel, &Column::User)? {
            let marks = marks.iter_mut().enumerate();
            marks.for_each(|(row, mark)| *mark &= users.contains(&table.at(row)));
        }
        Ok(())
    }

    /// Values of the rows of a morsel. A property that no row of the source has is lacking in all.
    ///
    /// Errors: `Corrupt`.
    pub fn read(&self, morsel: &Morsel, column: &Column) -> Result<Values> {
        match &self.0 {
            SourceKind::Sealed(sealed) => sealed.read(morsel, column),
            SourceKind::Recent(recent) => recent.read(morsel, column),
        }
    }

    /// Users of the rows of a morsel by their places, where the source has such: 0 is nobody, n the user with place n - 1.
    /// Users of two tenants have two places, whatever they are called.
    ///
    /// Errors: `Corrupt`.
    pub fn users(&self, morsel: &Morsel) -> Result<Option<Vec<u32>>> {
        match &self.0 {
            SourceKind::Sealed(sealed) => sealed.users(morsel).map(Some),
            SourceKind::Recent(_) => Ok(None),
        }
    }

    /// Places of all users of the tenant that a row belongs to, in the order of their texts; nothing where the source has none.
    pub fn users_of_row(&self, row: u32) -> Option<Range<usize>> {
        match &self.0 {
            SourceKind::Sealed(sealed) => Some(sealed.users_of_row(row)),
            SourceKind::Recent(_) => None,
        }
    }

    /// Texts of users with places, and how many there are; nothing where the source has none.
    ///
    /// Errors: `Corrupt`.
    pub fn user_texts(&self) -> Result<Option<(UserTexts<'_>, usize)>> {
        match &self.0 {
            SourceKind::Sealed(sealed) => Ok(Some((sealed.user_texts(), sealed.user_count()?))),
            SourceKind::Recent(_) => Ok(None),
        }
    }

    /// The rows of a morsel by series and buckets of time.
    ///
    /// Errors: `Corrupt`.
    pub fn bucket_runs(&self, morsel: &Morsel, buckets: &TimeBuckets) -> Result<Vec<BucketRun>> {
        let mut reader = self.times();
        if buckets.boundaries.is_empty() {
            return self.stretches_by_grain(morsel, buckets.grain, &mut reader);
        }
        let mut bucket_runs = Vec::with_capacity(morsel.row_ranges.len());
        for row_range in &morsel.row_ranges {
            let Some(series) = self.series().get(row_range.series) else { continue };
            let until = |ms: i64| buckets.boundaries.partition_point(|boundary| *boundary <= ms);
            let (mut first_ms, mut last_ms) = (series.first_ms, series.last_ms);
            // Of few rows of a segment, times are read as quickly as the first and the last.
            let has_cheap_ends =
                row_range.rows.len() > VECTOR_ROWS || matches!(self.0, SourceKind::Recent(_));
            if has_cheap_ends && until(last_ms) - until(first_ms) > FEW_BOUNDARIES {
                (first_ms, last_ms) = self.ends(row_range)?;
            }
            let within = until(first_ms)..until(last_ms);
            if let SourceKind::Sealed(sealed) = &self.0
                && row_range.rows.len() <= within.len().saturating_mul(ROWS_OF_BOUNDARY)
            {
                let reader = reader.get_or_insert_with(|| sealed.times());
                sealed.stretches_of_times(row_range, buckets, reader, &mut bucket_runs)?;
                continue;
            }
            let ends = buckets.boundaries.get(within).unwrap_or_default().iter().map(Some);
            let mut start = row_range.rows.start;
            for boundary in ends.chain([None]) {
                let end = match boundary {
                    Some(ms) => {
                        // Boundaries rise.
                        let rest =
                            RowRange { series: row_range.series, rows: start..row_range.rows.end };
                        self.row_at(&rest, *ms, &mut reader)?
                    }
                    None => row_range.rows.end,
                };
                // Of rows before a boundary, or behind all of them.
                let ms = boundary.map_or(last_ms, |ms| ms.saturating_sub(1));
                let rows = start..end;
                start = end;
                if rows.is_empty() {
                    continue;
                }
                let start_ms = buckets.start(ms);
                if buckets.grain.is_none() {
                    push_rows(&mut bucket_runs, row_range.series, start_ms, rows.len() as u32);
                    continue;
                }
                let last = buckets.boundaries.get(until(ms).wrapping_sub(1)).copied();
                let piece =
                    Morsel { row_ranges: vec![RowRange { series: row_range.series, rows }] };
                for bucket_run in self.stretches_by_grain(&piece, buckets.grain, &mut reader)? {
                    let start_ms = last.unwrap_or(i64::MIN).max(bucket_run.start_ms);
                    push_rows(&mut bucket_runs, bucket_run.series, start_ms, bucket_run.rows);
                }
            }
        }
        Ok(bucket_runs)
    }

    fn stretches_by_grain<'a>(
        &'a self,
        morsel: &Morsel,
        grain: Option<Grain>,
        reader: &mut Option<Times<'a>>,
    ) -> Result<Vec<BucketRun>> {
        match &self.0 {
            SourceKind::Sealed(sealed) => {
                sealed.bucket_runs(morsel, grain, reader.get_or_insert_with(|| sealed.times()))
            }
            SourceKind::Recent(recent) => Ok(recent.bucket_runs(morsel, grain)),
        }
    }

    /// The times of the first and the last row of a row range, which are its earliest and latest.
    ///
    /// Errors: `Corrupt`.
    pub fn ends(&self, row_range: &RowRange) -> Result<(i64, i64)> {
        match &self.0 {
            SourceKind::Sealed(sealed) => sealed.ends(row_range),
            SourceKind::Recent(recent) => Ok(recent.ends(row_range)),
        }
    }

    /// How many values a string property has here, at most.
    ///
    /// Errors: `Corrupt`.
    pub fn values(&self, name: &str) -> Result<usize> {
        match &self.0 {
            SourceKind::Sealed(sealed) => sealed.values(name),
            SourceKind::Recent(recent) => Ok(recent.values(name)),
        }
    }

    /// All values of a string property here, in the order of their codes; code 1 stands for the first.
    ///
    /// Errors: `Corrupt`; `Limit` when they take more than 4 GiB.
    pub fn dictionary(&self, name: &str) -> Result<Arc<TextTable>> {
        match &self.0 {
            SourceKind::Sealed(sealed) => sealed.dictionary(name),
            SourceKind::Recent(recent) => Ok(recent.dictionary(name)),
        }
    }

    /// What the rows of a series add up to, hour by hour, of the hours that begin from `times.start` to
    /// before `times.end`.
    ///
    /// Errors: `Corrupt`.
    pub fn hours(
        &self,
        series: usize,
        times: &Range<i64>,
        wanted: &StateSelection,
    ) -> Result<HourStates> {
        match &self.0 {
            SourceKind::Sealed(sealed) => sealed.hours(series, times, wanted),
            SourceKind::Recent(recent) => Ok(recent.hours(series, times, wanted)),
        }
    }
}
