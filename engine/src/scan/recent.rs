//! Rows that no segment holds yet, read where a [`RowImage`] has them.
//!
//! An image has the rows of one part of a memtable, in the order of segments. Rows that expired
//! since it was laid out are cut off here: rows of a series rise in time.

#![cfg_attr(not(test), deny(clippy::indexing_slicing, clippy::unwrap_used))]

use std::{collections::HashMap, ops::Range, sync::Arc};

use parking_lot::Mutex;

use super::{
    hours::{Hour, HourStates, StateSelection},
    row_ranges::{BucketRun, Grain, Morsel, RowRange, Series, push_rows},
    values::{Column, TextTable, Values},
};
use crate::{
    base::{hash, time::HOUR_MS},
    column::{ImageSeries, RowImage},
    error::Result,
};

/// Rows in memory.
pub struct Recent {
    image: RowImage,
    hash_seed: u64,
    tenants: TextTable,
    names: Vec<Arc<str>>,
    series: Vec<Series>,
    /// Whether some rows of the image are not shown.
    is_cut: bool,
    /// Dictionaries of string properties that were read so far.
    dictionaries: Mutex<HashMap<String, Arc<TextTable>>>,
}

impl Recent {
    /// The rows of an image from `horizon_ms` on; `None` when it has none. `hash_seed` is the database's.
    pub fn new(mut image: RowImage, horizon_ms: i64, hash_seed: u64) -> Option<Self> {
        let mut series = Vec::with_capacity(image.series.len());
        let mut is_cut = false;
        for mut one in std::mem::take(&mut image.series) {
            if one.first_ms < horizon_ms {
                is_cut = true;
                if one.last_ms < horizon_ms {
                    continue;
                }
                one.rows.start = image.first_row_at(&one.rows, horizon_ms);
                let first = one.rows.start..one.rows.start.saturating_add(1);
                one.first_ms = image.times(&first).next().unwrap_or(horizon_ms);
            }
            let ImageSeries { tenant, name, rows, first_ms, last_ms } = one;
            series.push(Series { tenant, name, rows, first_ms, last_ms });
        }
        let mut tenants = std::mem::take(&mut image.tenants);
        let mut names = std::mem::take(&mut image.names);
        if is_cut {
            // Tenants and events of which every row has expired are not named.
            let shown = renumbered(&mut series, |series| &mut series.tenant);
            let mut some = TextTable::default();
            shown.iter().for_each(|code| some.push(tenants.at(*code as usize)));
            tenants = some;
            let shown = renumbered(&mut series, |series| &mut series.name);
            names = shown.iter().filter_map(|code| names.get(*code as usize).cloned()).collect();
        }
        let dictionaries = Mutex::default();
        (!series.is_empty()).then_some(Self {
            image,
            hash_seed,
            tenants,
            names,
            series,
            is_cut,
            dictionaries,
        })
    }

    /// Names of the tenants with shown rows, rising.
    pub fn tenants(&self) -> &TextTable {
        &self.tenants
    }

    /// Names of the events with shown rows, rising.
    pub fn names(&self) -> &[Arc<str>] {
        &self.names
    }

    /// The rows of a morsel by buckets of time.
    pub fn bucket_runs(&self, morsel: &Morsel, grain: Option<Grain>) -> Vec<BucketRun> {
        let mut out = Vec::new();
        for row_range in &morsel.row_ranges {
            let Some(grain) = grain else {
                push_rows(&mut out, row_range.series, 0, row_range.rows.len() as u32);
                continue;
            };
            // Rows in memory are of the last minutes mostly.
            let ends = self.series.get(row_range.series).map(|one| [one.first_ms, one.last_ms]);
            if let Some([first, last]) = ends.map(|ends| ends.map(|ms| grain.start(ms)))
                && first == last
            {
                push_rows(&mut out, row_range.series, first, row_range.rows.len() as u32);
                continue;
            }
            for ms in self.image.times(&row_range.rows) {
                push_rows(&mut out, row_range.series, grain.start(ms), 1);
            }
        }
        out
    }

    /// Series with rows from the horizon on, ordered by tenant and name.
    pub fn series(&self) -> &[Series] {
        &self.series
    }

    /// Names of string properties.
    ///
    /// Errors: `Corrupt`.
    pub fn texts(&self) -> Result<Vec<&str>> {
        let mut names = Vec::new();
        for name in self.image.strings() {
            if self.is_shown(|rows| {
                let mut codes = Vec::new();
                self.image.read_codes(name, rows, &mut codes)?;
                Ok(codes.iter().any(|code| *code > 0))
            })? {
                names.push(name);
            }
        }
        Ok(names)
    }

    /// Names of numeric properties.
    ///
    /// Errors: `Corrupt`.
    pub fn numbers(&self) -> Result<Vec<&str>> {
        let mut names = Vec::new();
        for name in self.image.numbers() {
            if self.is_shown(|rows| {
                let mut numbers = Vec::new();
                self.image.read_numbers(name, rows, &mut numbers);
                Ok(numbers.iter().any(|number| !number.is_nan()))
            })? {
                names.push(name);
            }
        }
        Ok(names)
    }

    /// Whether some rows that are shown have a property. Those of an image that is shown as a whole do.
    fn is_shown(&self, has_any: impl Fn(&Range<u32>) -> Result<bool>) -> Result<bool> {
        if !self.is_cut {
            return Ok(true);
        }
        for series in &self.series {
            if has_any(&series.rows)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// How many values a string property has.
    pub fn values(&self, name: &str) -> usize {
        self.image.value_count(name)
    }

    /// Of rows of a series, the first that is not before `ms`.
    pub fn first_row_at(&self, rows: &Range<u32>, ms: i64) -> u32 {
        self.image.first_row_at(rows, ms)
    }

    /// The times of the first and the last row of a row range.
    pub fn ends(&self, row_range: &RowRange) -> (i64, i64) {
        let Range { start, end } = row_range.rows;
        let time = |row: u32| self.image.times(&(row..row.saturating_add(1))).next();
        (time(start).unwrap_or_default(), time(end.saturating_sub(1)).unwrap_or_default())
    }

    /// Values of the rows of a morsel.
    ///
    /// Errors: `Corrupt`.
    pub fn read(&self, morsel: &Morsel, column: &Column) -> Result<Values> {
        // Row ranges are short and mostly stand side by side.
        let side_by_side = |a: &RowRange, b: &RowRange| a.rows.end == b.rows.start;
        let runs = morsel.row_ranges.chunk_by(side_by_side);
        let ends = |run: &[RowRange]| Some(run.first()?.rows.start..run.last()?.rows.end);
        let runs: Vec<Range<u32>> = runs.filter_map(ends).collect();
        Ok(match column {
            Column::Time => {
                let mut times = Vec::with_capacity(morsel.rows());
                runs.iter().for_each(|rows| times.extend(self.image.times(rows)));
                Values::Times(times)
            }
            Column::EventId => {
                let mut table = TextTable::default();
                runs.iter().for_each(|rows| self.image.read_event_ids(rows, &mut table));
                Values::Texts(Arc::new(table))
            }
            Column::User => {
                let mut table = TextTable::default();
                runs.iter().for_each(|rows| self.image.read_users(rows, &mut table));
                Values::Texts(Arc::new(table))
            }
            Column::Text(name) => {
                let mut codes = Vec::with_capacity(morsel.rows());
                for rows in &runs {
                    self.image.read_codes(name, rows, &mut codes)?;
                }
                Values::Codes(codes, self.dictionary(name))
            }
            Column::Number(name) => {
                let mut numbers = Vec::with_capacity(morsel.rows());
                runs.iter().for_each(|rows| self.image.read_numbers(name, rows, &mut numbers));
                Values::Numbers(numbers)
            }
        })
    }

    /// All values of a string property.
    pub fn dictionary(&self, name: &str) -> Arc<TextTable> {
        let mut known = self.dictionaries.lock();
        if let Some(table) = known.get(name) {
            return Arc::clone(table);
        }
        let table = Arc::new(self.image.dictionary(name));
        known.insert(name.to_owned(), Arc::clone(&table));
        table
    }

    /// Aggregation states of a series by hour, for hours that begin within `times`.
    pub fn hours(
        &self,
        series: usize,
        times: &Range<i64>,
        selection: &StateSelection,
    ) -> HourStates {
        let mut states = HourStates::default();
        let Some(series) = self.series.get(series) else { return states };
        let mut users = TextTable::default();
        if selection.users {
            self.image.read_users(&series.rows, &mut users);
        }
        let mut numbers = vec![Vec::new(); selection.numbers.len()];
        for (name, numbers) in selection.numbers.iter().zip(&mut numbers) {
            self.image.read_numbers(name, &series.rows, numbers);
        }
        for (at, ms) in self.image.times(&series.rows).enumerate() {
            let hour = ms.div_euclid(HOUR_MS);
            if !times.contains(&(hour * HOUR_MS)) {
                continue;
            }
            let state = states.entry(hour).or_insert_with(|| Hour::empty(selection));
            state.count += 1;
            let user = users.at(at);
            if let Some(users) = state.users.as_mut().filter(|_| !user.is_empty()) {
                users.insert(hash::user(self.hash_seed, user));
            }
            for (numbers, digest) in numbers.iter().zip(&mut state.numbers) {
                if let Some(value) = numbers.get(at).filter(|value| !value.is_nan()) {
                    digest.insert(*value);
                }
            }
        }
        states.values_mut().for_each(Hour::settle);
        states
    }
}

/// Numbers the codes that series have anew, without gaps, and returns which code each number was.
fn renumbered(series: &mut [Series], code: impl Fn(&mut Series) -> &mut u32) -> Vec<u32> {
    let mut shown: Vec<u32> = series.iter_mut().map(|series| *code(series)).collect();
    shown.sort_unstable();
    shown.dedup();
    for series in series {
        let code = code(series);
        *code = shown.partition_point(|other| other < code) as u32;
    }
    shown
}
