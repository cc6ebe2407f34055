//! Groups by user of some tenants: users are numbered as they are met, and counted by their numbers.
//!
//! A segment's users are numbers of its own, so a text is looked up once a segment and not once a row; and those of few
//! tenants fit into the processor's caches.

use std::{hash::BuildHasher as _, sync::Arc};

use arrow::{
    array::{
        ArrayRef, Int64Array, RecordBatch, RecordBatchOptions, TimestampMillisecondArray,
        UInt32Array,
    },
    compute::take,
};
use datafusion::{
    common::{DataFusionError, Result, hash_utils::RandomState, resources_err},
    execution::memory_pool::MemoryReservation,
};
use hashbrown::HashTable;
use inlay_engine::rows::{Column, Grain, Source, TextTable, Unit, Values};

use super::{
    amounts::{self, Amount},
    arrays::Dictionaries,
    wanted::{BATCH_ROWS, Key, Wanted, broken},
};

/// No user: of a row that is left out.
const NOBODY: u32 = u32::MAX;
/// Bytes of a group in the batches that are handed on, about.
const GROUP_BYTES: usize = 80;

/// What the tenants of all sources are called, and what else tells groups of a user apart.
#[derive(Debug)]
pub struct Layout {
    /// The tenants' texts.
    pub tenants: ArrayRef,
    /// For each source, the number of each of its tenants.
    pub tenant_numbers: Vec<Vec<u32>>,
    /// The events' names, where they are told apart.
    pub names: ArrayRef,
    /// For each source, the number of each of its events' names; empty where they are not told apart.
    pub name_numbers: Vec<Vec<u32>>,
    /// Where the first hour, day or week begins.
    pub first_ms: i64,
    /// How many of them there are; one where times are not told apart.
    pub steps: usize,
    /// How finely times are told apart.
    pub grain: Option<Grain>,
}

impl Layout {
    /// How many groups a user may have.
    pub fn width(&self) -> usize {
        self.names.len().max(1).saturating_mul(self.steps)
    }

    fn tenant(&self, at: usize, source: &Source, series: usize) -> u32 {
        let tenant = source.series().get(series).map_or(0, |series| series.tenant as usize);
        number_of(&self.tenant_numbers, at, tenant)
    }

    /// Where groups of a series that begin then stand among those of a user.
    fn place(&self, at: usize, source: &Source, series: usize, start_ms: i64) -> usize {
        let name = source.series().get(series).map_or(0, |series| series.name as usize);
        let name = number_of(&self.name_numbers, at, name) as usize;
        let step = self.grain.map_or(0, |grain| (start_ms - self.first_ms) / grain.step_ms());
        name * self.steps + usize::try_from(step).unwrap_or_default()
    }

    fn start(&self, step: usize) -> i64 {
        self.grain.map_or(0, |grain| self.first_ms + step as i64 * grain.step_ms())
    }
}

fn number_of(numbers: &[Vec<u32>], at: usize, local: usize) -> u32 {
    numbers.get(at).and_then(|numbers| numbers.get(local)).copied().unwrap_or_default()
}

/// Users of some tenants, and their groups so far.
pub struct Crowd<'a> {
    wanted: &'a Wanted,
    layout: &'a Layout,
    memory: MemoryReservation,
    hasher: RandomState,
    /// Users by their texts and tenants.
    known: HashTable<u32>,
    hashes: Vec<u64>,
    tenants: Vec<u32>,
    texts: TextTable,
    /// By place, then by user: rows.
    counts: Vec<Vec<u32>>,
    /// By number, by place, by user.
    amounts: Vec<Vec<Vec<Amount>>>,
}

impl<'a> Crowd<'a> {
    /// Nobody yet. What it takes is counted as `memory`.
    pub fn new(wanted: &'a Wanted, layout: &'a Layout, memory: MemoryReservation) -> Self {
        Self {
            wanted,
            layout,
            memory,
            hasher: RandomState::default(),
            known: HashTable::new(),
            hashes: Vec::new(),
            tenants: Vec::new(),
            texts: TextTable::default(),
            counts: vec![Vec::new(); layout.width()],
            amounts: vec![vec![Vec::new(); layout.width()]; wanted.numbers.len()],
        }
    }

    fn bytes_used(&self) -> usize {
        let texts = self.texts.bytes.capacity() + self.texts.ends.capacity() * size_of::<u32>();
        let known = self.hashes.capacity() * (size_of::<u64>() + 2 * size_of::<u32>())
            + self.known.allocation_size();
        let counts: usize = self.counts.iter().map(Vec::capacity).sum();
        let amounts: usize = self.amounts.iter().flatten().map(Vec::capacity).sum();
        let lists = self.layout.width() * size_of::<Vec<u32>>() * (1 + self.amounts.len());
        texts + known + counts * size_of::<u32>() + amounts * size_of::<Amount>() + lists
    }

    /// The number of a tenant's user.
    fn number(&mut self, tenant: u32, text: &[u8]) -> Result<u32> {
        let hash = self.hasher.hash_one((tenant, text));
        let is_it = |number: &u32| {
            let at = *number as usize;
            self.hashes[at] == hash && self.tenants[at] == tenant && self.texts.at(at) == text
        };
        if let Some(number) = self.known.find(hash, is_it) {
            return Ok(*number);
        }
        // Lists of strings count their bytes in 31 bits.
        if self.texts.bytes.len() + text.len() > i32::MAX as usize {
            return resources_err!("a tenant's user ids take too much memory");
        }
        let number = self.tenants.len() as u32;
        self.hashes.push(hash);
        self.tenants.push(tenant);
        self.texts.push(text);
        let hashes = &self.hashes;
        self.known.insert_unique(hash, number, |number| hashes[*number as usize]);
        Ok(number)
    }

    /// The user of each row of a unit; nobody where it is left out.
    fn users(
        &mut self,
        at: usize,
        source: &Source,
        unit: &Unit,
        marks: Option<&[bool]>,
    ) -> Result<Vec<u32>> {
        let values = source.read(unit, &Column::User).map_err(broken)?;
        let mut users = Vec::with_capacity(unit.rows());
        // A dictionary's users by their codes, each once it is met.
        let mut of_codes = match &values {
            Values::Codes(_, table) => vec![NOBODY; table.len() + 1],
            _ => Vec::new(),
        };
        for strip in &unit.strips {
            let tenant = self.layout.tenant(at, source, strip.series);
            for _ in strip.rows.clone() {
                let row = users.len();
                if marks.is_some_and(|marks| !marks[row]) {
                    users.push(NOBODY);
                    continue;
                }
                users.push(match &values {
                    Values::Codes(codes, table) => {
                        let code = codes[row] as usize;
                        match of_codes[code] {
                            // A code without a text stands for nobody of every tenant.
                            known if known != NOBODY && self.tenants[known as usize] == tenant => {
                                known
                            }
                            _ => {
                                let text = code.checked_sub(1).map_or(&[][..], |at| table.at(at));
                                let number = self.number(tenant, text)?;
                                of_codes[code] = number;
                                number
                            }
                        }
                    }
                    Values::Texts(table) => self.number(tenant, table.at(row))?,
                    Values::Times(_) | Values::Numbers(_) => {
                        return Err(DataFusionError::Internal("users are no texts".to_owned()));
                    }
                });
            }
        }
        Ok(users)
    }

    /// Adds the rows of a unit of a source, which stands there in the scan.
    ///
    /// Errors: damage of a segment; more memory than there may be.
    pub fn add(&mut self, at: usize, source: &Source, unit: &Unit) -> Result<()> {
        let marks = source.passing(unit, &self.wanted.filter).map_err(broken)?;
        let stretches = source.stretches(unit, self.layout.grain).map_err(broken)?;
        let users = self.users(at, source, unit, marks.as_deref())?;
        let mut numbers = Vec::new();
        for name in &self.wanted.numbers {
            match source.read(unit, &Column::Number(name.clone())).map_err(broken)? {
                Values::Numbers(values) => numbers.push(values),
                _ => return Err(DataFusionError::Internal("a number is none".to_owned())),
            }
        }
        let mut row = 0;
        for stretch in stretches {
            let place = self.layout.place(at, source, stretch.series, stretch.start_ms);
            let rows = row..row + stretch.rows as usize;
            row = rows.end;
            let counts = &mut self.counts[place];
            if counts.len() < self.tenants.len() {
                counts.resize(self.tenants.len(), 0);
            }
            let here = &users[rows.clone()];
            here.iter()
                .filter(|user| **user != NOBODY)
                .for_each(|user| counts[*user as usize] += 1);
            for (amounts, values) in self.amounts.iter_mut().zip(&numbers) {
                let amounts = &mut amounts[place];
                if amounts.len() < self.tenants.len() {
                    amounts.resize(self.tenants.len(), Amount::NONE);
                }
                for (user, value) in here.iter().zip(&values[rows.clone()]) {
                    if *user != NOBODY {
                        amounts[*user as usize].add(*value);
                    }
                }
            }
        }
        self.memory.try_resize(self.bytes_used())
    }

    /// Batches of all groups with rows; each group is in one row.
    ///
    /// Errors: more memory than there may be.
    pub fn batches(mut self) -> Result<Vec<RecordBatch>> {
        let found = if self.wanted.grain().is_none() && self.layout.steps > 1 {
            self.joined()
        } else {
            self.apart()
        };
        self.memory.try_resize(self.bytes_used() + found.users.len() * GROUP_BYTES)?;
        let texts = Values::Texts(Arc::new(std::mem::take(&mut self.texts)));
        let texts = Dictionaries::default().once(texts)?;
        let rows: Vec<usize> = (0..found.users.len()).collect();
        rows.chunks(BATCH_ROWS).map(|rows| self.batch(&found, &texts, rows)).collect()
    }

    /// A group for each place of a user that has rows.
    fn apart(&self) -> Found {
        let mut found = Found::new(self.amounts.len());
        for (place, counts) in self.counts.iter().enumerate() {
            let (name, step) = (place / self.layout.steps, place % self.layout.steps);
            let start_ms = self.layout.start(step);
            for (user, count) in (0u32..).zip(counts).filter(|(_, count)| **count > 0) {
                found.push(user, name as u32, i64::from(*count), [start_ms; 2]);
                for (list, amounts) in found.amounts.iter_mut().zip(&self.amounts) {
                    list.push(amounts[place][user as usize]);
                }
            }
        }
        found
    }

    /// A group for each name of a user, of all times.
    fn joined(&self) -> Found {
        let mut found = Found::new(self.amounts.len());
        for (name, steps) in self.counts.chunks(self.layout.steps).enumerate() {
            let mut slots = vec![NOBODY; self.tenants.len()];
            for (step, counts) in steps.iter().enumerate() {
                let start_ms = self.layout.start(step);
                let place = name * self.layout.steps + step;
                for (user, count) in (0u32..).zip(counts).filter(|(_, count)| **count > 0) {
                    let at = user as usize;
                    if slots[at] == NOBODY {
                        slots[at] = found.users.len() as u32;
                        found.push(user, name as u32, 0, [start_ms; 2]);
                        found.amounts.iter_mut().for_each(|list| list.push(Amount::NONE));
                    }
                    let slot = slots[at] as usize;
                    found.counts[slot] += i64::from(*count);
                    found.latest[slot] = start_ms;
                    for (list, amounts) in found.amounts.iter_mut().zip(&self.amounts) {
                        list[slot].merge(&amounts[place][at]);
                    }
                }
            }
        }
        found
    }

    fn batch(&self, found: &Found, texts: &ArrayRef, rows: &[usize]) -> Result<RecordBatch> {
        let some = |list: &[u32]| rows.iter().map(|row| list[*row]).collect::<UInt32Array>();
        let times = |list: &[i64]| -> ArrayRef {
            let times: Vec<i64> = rows.iter().map(|row| list[*row]).collect();
            Arc::new(TimestampMillisecondArray::from(times))
        };
        let users = some(&found.users);
        let mut arrays: Vec<ArrayRef> = Vec::with_capacity(self.wanted.schema.fields().len());
        for (_, key) in &self.wanted.keys {
            arrays.push(match key {
                Key::Tenant => {
                    let tenants = users.values().iter().map(|user| self.tenants[*user as usize]);
                    take(&self.layout.tenants, &tenants.collect::<UInt32Array>(), None)?
                }
                Key::Event => take(&self.layout.names, &some(&found.names), None)?,
                Key::Time(_) => times(&found.earliest),
                Key::User => take(texts, &users, None)?,
                Key::Text(_) => {
                    return Err(DataFusionError::Internal("a text is no place".to_owned()));
                }
            });
        }
        arrays.push(Arc::new(rows.iter().map(|row| found.counts[*row]).collect::<Int64Array>()));
        if self.wanted.span.is_some() {
            arrays.extend([times(&found.earliest), times(&found.latest)]);
        }
        for amounts in &found.amounts {
            arrays.extend(amounts::columns(rows.iter().map(|row| amounts[*row])));
        }
        let options = RecordBatchOptions::new().with_row_count(Some(rows.len()));
        let schema = Arc::clone(&self.wanted.schema);
        Ok(RecordBatch::try_new_with_options(schema, arrays, &options)?)
    }
}

/// Groups with rows, column by column.
struct Found {
    users: Vec<u32>,
    names: Vec<u32>,
    counts: Vec<i64>,
    earliest: Vec<i64>,
    latest: Vec<i64>,
    amounts: Vec<Vec<Amount>>,
}

impl Found {
    fn new(numbers: usize) -> Self {
        Self {
            users: Vec::new(),
            names: Vec::new(),
            counts: Vec::new(),
            earliest: Vec::new(),
            latest: Vec::new(),
            amounts: vec![Vec::new(); numbers],
        }
    }

    fn push(&mut self, user: u32, name: u32, count: i64, [earliest, latest]: [i64; 2]) {
        self.users.push(user);
        self.names.push(name);
        self.counts.push(count);
        self.earliest.push(earliest);
        self.latest.push(latest);
    }
}
