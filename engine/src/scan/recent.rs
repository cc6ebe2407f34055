//! Rows that no segment holds yet.
//!
//! They came in any order; here they stand as in a segment, by series and time.

use std::{ops::Range, sync::Arc};

use super::{
    hours::{Hour, HourStates, Wanted},
    strips::{Grain, Series, Stretch, Unit, push_rows},
    values::{Column, TextTable, Values},
};
use crate::{
    base::time::HOUR_MS,
    column::{ABSENT, Rows},
    event::Namespace,
};

/// Rows in memory.
pub struct Recent {
    rows: Rows,
    /// The rows in their order here.
    order: Vec<u32>,
    tenants: TextTable,
    names: Vec<Arc<str>>,
    series: Vec<Series>,
}

impl Recent {
    /// The rows of a namespace from `horizon_ms` on.
    pub fn new(rows: Rows, namespace: Namespace, horizon_ms: i64) -> Self {
        let is_shown = |row: &u32| {
            let at = *row as usize;
            rows.series_of(at).namespace == namespace && rows.timestamps[at] >= horizon_ms
        };
        let mut codes: Vec<u32> = (0..rows.series.len() as u32).collect();
        codes.sort_by_key(|&code| &rows.series[code as usize]);
        let mut rank = vec![0u32; codes.len()];
        (0..).zip(&codes).for_each(|(at, &code)| rank[code as usize] = at);
        let mut order: Vec<u32> = (0..rows.len() as u32).filter(is_shown).collect();
        order.sort_by_key(|&row| {
            let row = row as usize;
            (rank[rows.series_codes[row] as usize], rows.timestamps[row])
        });
        let shown = || order.iter().map(|row| rows.series_of(*row as usize));
        let mut names: Vec<Arc<str>> = shown().map(|key| Arc::clone(&key.name)).collect();
        names.sort_unstable();
        names.dedup();
        let mut tenants = TextTable::default();
        let mut series: Vec<Series> = Vec::new();
        let code = |row: u32| rows.series_codes[row as usize];
        let mut start = 0;
        for run in order.chunk_by(|a, b| code(*a) == code(*b)) {
            let key = rows.series_of(run[0] as usize);
            let end = start + run.len() as u32;
            // Series are ordered by tenant.
            if tenants.is_empty() || tenants.at(tenants.len() - 1) != key.tenant.as_bytes() {
                tenants.push(key.tenant.as_bytes());
            }
            series.push(Series {
                tenant: tenants.len() as u32 - 1,
                name: names.partition_point(|other| *other < key.name) as u32,
                rows: start..end,
                first_ms: rows.timestamps[run[0] as usize],
                last_ms: rows.timestamps[run[run.len() - 1] as usize],
            });
            start = end;
        }
        Self { rows, order, tenants, names, series }
    }

    /// Names of its tenants, rising.
    pub fn tenants(&self) -> &TextTable {
        &self.tenants
    }

    /// Names of its events, rising.
    pub fn names(&self) -> &[Arc<str>] {
        &self.names
    }

    /// The rows of a unit by the hour, day or week in which they begin.
    pub fn stretches(&self, unit: &Unit, grain: Option<Grain>) -> Vec<Stretch> {
        let mut out = Vec::new();
        for strip in &unit.strips {
            for place in strip.rows.clone() {
                let start_ms = grain.map_or(0, |grain| grain.start(self.time(place)));
                push_rows(&mut out, strip.series, start_ms, 1);
            }
        }
        out
    }

    /// Its series.
    pub fn series(&self) -> &[Series] {
        &self.series
    }

    /// Names of string properties.
    pub fn texts(&self) -> Vec<&str> {
        self.rows.strings.keys().map(|name| &**name).collect()
    }

    /// Names of numeric properties.
    pub fn numbers(&self) -> Vec<&str> {
        self.rows.numbers.keys().map(|name| &**name).collect()
    }

    /// How many values a string property has.
    pub fn values(&self, name: &str) -> usize {
        self.rows.strings.get(name).map_or(0, |column| column.values.len())
    }

    fn time(&self, place: u32) -> i64 {
        self.rows.timestamps[self.order[place as usize] as usize]
    }

    /// The first row of a series that is not before `ms`.
    pub fn first_row_at(&self, series: &Series, ms: i64) -> u32 {
        let before = self.order[series.rows.start as usize..series.rows.end as usize]
            .partition_point(|&row| self.rows.timestamps[row as usize] < ms);
        series.rows.start + before as u32
    }

    /// Values of the rows of a unit.
    pub fn read(&self, unit: &Unit, column: &Column) -> Values {
        let places = unit.strips.iter().flat_map(|strip| strip.rows.clone());
        let rows = places.map(|place| self.order[place as usize] as usize);
        match column {
            Column::Time => Values::Times(rows.map(|row| self.rows.timestamps[row]).collect()),
            Column::EventId => texts(rows.map(|row| self.rows.event_ids.value(row))),
            Column::User => texts(rows.map(|row| self.rows.users.value(row))),
            Column::Text(name) => {
                let mut table = TextTable::default();
                let Some(column) = self.rows.strings.get(&**name) else {
                    return Values::Codes(rows.map(|_| 0).collect(), Arc::new(table));
                };
                column.values.iter().for_each(|value| table.push(value.as_bytes()));
                let code = |row| match column.code(row) {
                    ABSENT => 0,
                    code => code + 1,
                };
                Values::Codes(rows.map(code).collect(), Arc::new(table))
            }
            Column::Number(name) => {
                let numbers = self.rows.numbers.get(&**name);
                let number = |row| numbers.and_then(|numbers| numbers.get(row)).unwrap_or(f64::NAN);
                Values::Numbers(rows.map(number).collect())
            }
        }
    }

    /// What the rows of a series add up to by hour.
    pub fn hours(&self, series: usize, times: &Range<i64>, wanted: &Wanted) -> HourStates {
        let mut states = HourStates::default();
        let Some(series) = self.series.get(series) else { return states };
        for place in series.rows.clone() {
            let hour = self.time(place).div_euclid(HOUR_MS);
            if !times.contains(&(hour * HOUR_MS)) {
                continue;
            }
            let row = self.order[place as usize] as usize;
            let state = states.entry(hour).or_insert_with(|| Hour::empty(wanted));
            state.count += 1;
            let user = self.rows.user_hashes[row];
            if let Some(users) = state.users.as_mut().filter(|_| user != 0) {
                users.insert(user);
            }
            for (name, digest) in wanted.numbers.iter().zip(&mut state.numbers) {
                if let Some(value) = self.rows.numbers.get(&**name).and_then(|all| all.get(row)) {
                    digest.insert(value);
                }
            }
        }
        states.values_mut().for_each(Hour::settle);
        states
    }
}

fn texts<'a>(values: impl Iterator<Item = Option<&'a [u8]>>) -> Values {
    let mut table = TextTable::default();
    values.for_each(|value| table.push(value.unwrap_or_default()));
    Values::Texts(Arc::new(table))
}
