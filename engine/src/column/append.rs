//! Building rows: from events one by one, or from other rows.
//!
//! ```text
//! push(acme login, plan pro)     values [pro]          codes [0]
//! push(acme login, plan free)    values [pro, free]    codes [0, 1]
//! push(acme login, plan pro)     values [pro, free]    codes [0, 1, 0]
//!
//! append(&other, &[4, 9])        rows 4 and 9 of other; its codes are translated, its hashes of users are taken as they are
//! ```
//!
//! The look-ups from strings to codes exist while rows are built and are gone afterwards: [`RowsBuilder::resume`] makes them again.

use std::{collections::HashMap, sync::Arc};

use xxhash_rust::xxh3::xxh3_128_with_seed;

use super::{
    cells::{ABSENT, Cells},
    rows::{Rows, SeriesKey, TextColumn},
};
use crate::{
    base::{
        coding::Put,
        hash::{self, MapHasher},
    },
    event::{Event, Namespace},
};

/// Code of each value of a string property.
type Lookup = HashMap<Arc<str>, u32, MapHasher>;

/// [`Rows`] under construction, with the look-ups that dictionary coding needs.
pub struct RowsBuilder {
    rows: Rows,
    seed: u64,
    /// Code of each series by a hash of its key: a batch looks up one for each row.
    series: HashMap<u128, u32, MapHasher>,
    lookups: HashMap<Arc<str>, Lookup, MapHasher>,
    scratch: Vec<u8>,
}

impl RowsBuilder {
    /// Starts empty. `seed` is the database's hash seed.
    pub fn new(seed: u64) -> Self {
        Self::resume(Rows::default(), seed)
    }

    /// Continues existing rows: later rows get the codes of known values.
    pub fn resume(rows: Rows, seed: u64) -> Self {
        let mut builder = Self {
            rows: Rows::default(),
            seed,
            series: HashMap::default(),
            lookups: HashMap::default(),
            scratch: Vec::new(),
        };
        for (code, key) in rows.series.iter().enumerate() {
            let hash = builder.series_hash(key.namespace, &key.tenant, &key.name);
            builder.series.insert(hash, code as u32);
        }
        for (name, column) in &rows.strings {
            let codes = column.values.iter().enumerate();
            let lookup = codes.map(|(code, value)| (Arc::clone(value), code as u32)).collect();
            builder.lookups.insert(Arc::clone(name), lookup);
        }
        builder.rows = rows;
        builder
    }

    /// What was built so far.
    pub fn rows(&self) -> &Rows {
        &self.rows
    }

    /// What was built, without the look-ups.
    pub fn finish(self) -> Rows {
        self.rows
    }

    /// Appends one event, which the caller has checked: lengths, and that numbers are finite. `strings` and `numbers` are its
    /// properties by name.
    pub fn push(
        &mut self,
        namespace: Namespace,
        event: &Event<'_>,
        strings: &[(&str, &str)],
        numbers: &[(&str, f64)],
    ) {
        let row = self.rows.len();
        let series = self.series_code(namespace, event.tenant, event.name);
        self.push_fixed(series, event.timestamp_ms, event.event_id.map(str::as_bytes));
        let user = event.user_id.filter(|user| !user.is_empty()).map(str::as_bytes);
        self.push_user(user, user.map_or(0, |user| hash::user(self.seed, user)));
        for &(name, value) in strings {
            let mut to = text_column(&mut self.rows, &mut self.lookups, name);
            let code = to.intern(value);
            to.column.codes.push(row, code);
        }
        for &(name, value) in numbers {
            number_column(&mut self.rows, name).push(row, value);
        }
    }

    /// Appends the chosen rows of `other`, whose numbers rise. Columns that none of them has are not made.
    pub fn append(&mut self, other: &Rows, chosen: &[u32]) {
        let row = self.rows.len();
        // Series of the chosen rows only: rows of one namespace must not carry names of tenants of another.
        let mut series: Vec<Option<u32>> = vec![None; other.series.len()];
        for &from in chosen {
            let from = from as usize;
            let code = match series[other.series_codes[from] as usize] {
                Some(code) => code,
                None => {
                    let key = other.series_of(from);
                    let code = self.series_code(key.namespace, &key.tenant, &key.name);
                    *series[other.series_codes[from] as usize].insert(code)
                }
            };
            self.push_fixed(code, other.timestamps[from], other.event_ids.value(from));
            self.push_user(other.users.value(from), other.user_hashes[from]);
        }
        for (name, from) in &other.strings {
            let cells = from.codes.chosen(chosen);
            if cells.is_empty() {
                continue;
            }
            let mut to = text_column(&mut self.rows, &mut self.lookups, name);
            let mut map = vec![ABSENT; from.values.len()];
            for (at, code) in cells {
                let known = &mut map[code as usize];
                if *known == ABSENT {
                    *known = to.intern(&from.values[code as usize]);
                }
                to.column.codes.push(row + at, *known);
            }
        }
        for (name, from) in &other.numbers {
            let cells = from.chosen(chosen);
            if !cells.is_empty() {
                let to = number_column(&mut self.rows, name);
                cells.into_iter().for_each(|(at, value)| to.push(row + at, value));
            }
        }
    }

    fn push_fixed(&mut self, series: u32, timestamp_ms: i64, event_id: Option<&[u8]>) {
        self.rows.series_codes.push(series);
        self.rows.timestamps.push(timestamp_ms);
        self.rows.event_ids.push(event_id);
    }

    fn push_user(&mut self, user: Option<&[u8]>, hash: u128) {
        self.rows.users.push(user);
        self.rows.user_hashes.push(hash);
    }

    fn series_code(&mut self, namespace: Namespace, tenant: &str, name: &str) -> u32 {
        let hash = self.series_hash(namespace, tenant, name);
        *self.series.entry(hash).or_insert_with(|| {
            self.rows.series.push(SeriesKey {
                namespace,
                tenant: tenant.into(),
                name: name.into(),
            });
            self.rows.series.len() as u32 - 1
        })
    }

    fn series_hash(&mut self, namespace: Namespace, tenant: &str, name: &str) -> u128 {
        self.scratch.clear();
        self.scratch.put_u32(namespace.0);
        self.scratch.put_bytes(tenant.as_bytes());
        self.scratch.extend_from_slice(name.as_bytes());
        xxh3_128_with_seed(&self.scratch, self.seed)
    }
}

/// A column and the look-up that belongs to it.
struct Interned<'a> {
    column: &'a mut TextColumn,
    lookup: &'a mut Lookup,
}

impl Interned<'_> {
    /// The code of a value, which is added to the dictionary when it is new.
    fn intern(&mut self, value: &str) -> u32 {
        if let Some(&code) = self.lookup.get(value) {
            return code;
        }
        let value: Arc<str> = value.into();
        let code = self.column.values.len() as u32;
        self.column.values.push(Arc::clone(&value));
        self.lookup.insert(value, code);
        code
    }
}

/// The string property of this name, empty when it is new.
fn text_column<'a>(
    rows: &'a mut Rows,
    lookups: &'a mut HashMap<Arc<str>, Lookup, MapHasher>,
    name: &str,
) -> Interned<'a> {
    if !rows.strings.contains_key(name) {
        let name: Arc<str> = name.into();
        lookups.insert(Arc::clone(&name), Lookup::default());
        rows.strings.insert(name, TextColumn::default());
    }
    let column = rows.strings.get_mut(name).expect("inserted above");
    Interned { column, lookup: lookups.get_mut(name).expect("kept beside the column") }
}

/// The numeric property of this name, empty when it is new.
fn number_column<'a>(rows: &'a mut Rows, name: &str) -> &'a mut Cells<f64> {
    if !rows.numbers.contains_key(name) {
        rows.numbers.insert(name.into(), Cells::default());
    }
    rows.numbers.get_mut(name).expect("inserted above")
}
