//! Rows added up while they are read: what each group of a source comes to.
//!
//! Tenants and events are those of whole strips, hours are known from directories, and texts are small numbers in
//! their segment. So the place of a row's group is a sum of products, and rows are counted without being turned into
//! batches.

use std::{collections::HashMap, sync::Arc};

use arrow::array::{
    ArrayRef, Int64Builder, RecordBatch, RecordBatchOptions, StringViewBuilder,
    TimestampMillisecondBuilder,
};
use datafusion_common::{DataFusionError, Result, hash_utils::RandomState};
use inlay_engine::rows::{Column, Source, TextTable, TimeBuckets, Unit, Values};

use super::{
    amounts::{Amount, Measure},
    errors::broken,
    wanted::{BATCH_ROWS, Key, PLACES_BYTES, Wanted},
};

/// The groups of a source so far.
pub struct Groups<'a> {
    wanted: &'a Wanted,
    source: &'a Source,
    /// Whether tenants, events are told apart.
    by: (bool, bool),
    buckets: TimeBuckets,
    /// For each outer group that was met, its number.
    outer: HashMap<(u32, u32, i64), u32, RandomState>,
    /// The outer group that was met last.
    last: Option<((u32, u32, i64), u32)>,
    /// The outer groups by their numbers.
    names: Vec<(u32, u32, i64)>,
    /// String properties that are keys: their dictionary, once it is known, and how many places each value takes.
    texts: Vec<(String, Arc<TextTable>, usize)>,
    /// Places of an outer group: a group's place is the number of its outer group times these, and what its texts add.
    places: usize,
    /// Where places are made as groups are met: the slot of each, and the place of each slot. Else they are the same.
    met: Option<(HashMap<u64, u32, RandomState>, Vec<u64>)>,
    counts: Vec<u64>,
    amounts: Vec<Vec<Amount>>,
}

impl<'a> Groups<'a> {
    /// None yet.
    ///
    /// Errors: damage of a segment.
    pub fn new(wanted: &'a Wanted, source: &'a Source) -> Result<Self> {
        let mut texts = Vec::new();
        let mut places = 1usize;
        for (_, key) in &wanted.keys {
            if let Key::Text(name) = key {
                texts.push((name.clone(), Arc::default(), places));
                let values = source.values(name).map_err(broken)?;
                places = places.saturating_mul(values.saturating_add(1));
            }
        }
        let bytes = wanted.outer_groups(source).saturating_mul(places);
        let is_dense = bytes.saturating_mul(wanted.place_bytes()) <= PLACES_BYTES;
        Ok(Self {
            wanted,
            source,
            by: (wanted.has(&Key::Tenant), wanted.has(&Key::Event)),
            buckets: wanted.buckets(),
            outer: HashMap::default(),
            last: None,
            names: Vec::new(),
            texts,
            places,
            met: (!is_dense).then(Default::default),
            counts: Vec::new(),
            amounts: vec![Vec::new(); wanted.measures.len()],
        })
    }

    /// The number of an outer group.
    fn outer(&mut self, series: usize, start_ms: i64) -> usize {
        let (tenant, name) =
            self.source.series().get(series).map_or((0, 0), |series| (series.tenant, series.name));
        let key = (if self.by.0 { tenant } else { 0 }, if self.by.1 { name } else { 0 }, start_ms);
        if let Some((last, number)) = self.last
            && last == key
        {
            return number as usize;
        }
        let next = self.names.len() as u32;
        let number = *self.outer.entry(key).or_insert(next);
        if number == next {
            self.names.push(key);
            if self.met.is_none() {
                self.make_slots(self.places);
            }
        }
        self.last = Some((key, number));
        number as usize
    }

    fn make_slots(&mut self, more: usize) {
        self.counts.resize(self.counts.len() + more, 0);
        for amounts in &mut self.amounts {
            amounts.resize(amounts.len() + more, Amount::NONE);
        }
    }

    /// Where a group is counted.
    fn slot(&mut self, place: u64) -> usize {
        let Some((slots, places)) = &mut self.met else { return place as usize };
        let next = places.len() as u32;
        let slot = *slots.entry(place).or_insert(next);
        if slot == next {
            places.push(place);
            self.make_slots(1);
        }
        slot as usize
    }

    /// Adds the rows of a unit.
    ///
    /// Errors: damage of a segment.
    pub fn add(&mut self, unit: &Unit) -> Result<()> {
        let wanted = self.wanted;
        let stretches = self.source.stretches(unit, &self.buckets).map_err(broken)?;
        let marks = self.source.passing(unit, &wanted.filter).map_err(broken)?;
        if self.texts.is_empty() && wanted.measures.is_empty() && marks.is_none() {
            for stretch in stretches {
                let outer = self.outer(stretch.series, stretch.start_ms);
                let slot = self.slot((outer * self.places) as u64);
                self.counts[slot] += u64::from(stretch.rows);
            }
            return Ok(());
        }
        let is_of_strips = self.texts.is_empty() && self.buckets.is_one() && marks.is_none();
        if is_of_strips && *wanted.measures == [Measure::Time] {
            for strip in &unit.strips {
                let outer = self.outer(strip.series, 0);
                let slot = self.slot((outer * self.places) as u64);
                let (first_ms, last_ms) = self.source.ends(strip).map_err(broken)?;
                self.counts[slot] += strip.rows.len() as u64;
                self.amounts[0][slot].add_times(strip.rows.len() as u64, first_ms, last_ms);
            }
            return Ok(());
        }
        // Where each row is counted.
        let mut places: Vec<u64> = Vec::with_capacity(unit.rows());
        for stretch in &stretches {
            let outer = self.outer(stretch.series, stretch.start_ms) as u64;
            let place = outer * self.places as u64;
            places.resize(places.len() + stretch.rows as usize, place);
        }
        for (name, table, step) in &mut self.texts {
            let column = Column::Text(name.clone());
            let Values::Codes(codes, here) = self.source.read(unit, &column).map_err(broken)?
            else {
                return Err(DataFusionError::Internal("a text has no codes".to_owned()));
            };
            // A block without the property has no dictionary.
            if !here.is_empty() {
                *table = here;
            }
            let step = *step as u64;
            places.iter_mut().zip(codes).for_each(|(place, code)| *place += u64::from(code) * step);
        }
        if let Some(marks) = &marks {
            let mut marks = marks.iter();
            places.retain(|_| marks.next().is_some_and(|mark| *mark));
        }
        if self.met.is_some() {
            for place in &mut places {
                *place = self.slot(*place) as u64;
            }
        }
        for &place in &places {
            self.counts[place as usize] += 1;
        }
        for (measure, amounts) in wanted.measures.iter().zip(&mut self.amounts) {
            let mut values = measure.read(self.source, unit)?;
            if let Some(marks) = &marks {
                let mut marks = marks.iter();
                values.retain(|_| marks.next().is_some_and(|mark| *mark));
            }
            for (&place, value) in places.iter().zip(values) {
                amounts[place as usize].add(value);
            }
        }
        Ok(())
    }

    /// Batches of all groups with rows.
    ///
    /// Errors: none that is expected.
    pub fn batches(&self) -> Result<Vec<RecordBatch>> {
        let with_rows = (0..self.counts.len()).filter(|slot| self.counts[*slot] > 0);
        let slots: Vec<usize> = with_rows.collect();
        slots.chunks(BATCH_ROWS).map(|slots| self.batch(slots)).collect()
    }

    fn batch(&self, slots: &[usize]) -> Result<RecordBatch> {
        let place = |slot: &usize| match &self.met {
            Some((_, places)) => places[*slot] as usize,
            None => *slot,
        };
        let places: Vec<usize> = slots.iter().map(place).collect();
        let wanted = self.wanted;
        let mut arrays: Vec<ArrayRef> = Vec::with_capacity(wanted.schema.fields().len());
        let outer = |place: &usize| self.names[place / self.places];
        let mut texts = self.texts.iter();
        for (_, key) in &wanted.keys {
            arrays.push(match key {
                Key::Tenant => {
                    let tenants = self.source.tenants();
                    strings(places.iter().map(|place| Some(tenants.text(outer(place).0 as usize))))
                }
                Key::Event => {
                    let names = self.source.names();
                    strings(places.iter().map(|place| names.get(outer(place).1 as usize).cloned()))
                }
                Key::Time(_) => {
                    let mut times = TimestampMillisecondBuilder::with_capacity(places.len());
                    let starts = places.iter().map(|place| outer(place).2);
                    starts.for_each(|start| times.append_value(start));
                    Arc::new(times.finish())
                }
                Key::User | Key::Rank(_) => {
                    return Err(DataFusionError::Internal("a key of groups by user".to_owned()));
                }
                Key::Text(name) => {
                    let Some((_, table, step)) = texts.next() else {
                        return Err(DataFusionError::Internal(format!("{name} was not read")));
                    };
                    let values = self.source.values(name).map_err(broken)?.saturating_add(1);
                    let code = |place: &usize| place % self.places / step % values;
                    let text = |place| {
                        let at = code(place).checked_sub(1)?;
                        std::str::from_utf8(table.at(at)).ok()
                    };
                    strings(places.iter().map(text))
                }
            });
        }
        let mut rows = Int64Builder::with_capacity(places.len());
        slots.iter().for_each(|slot| rows.append_value(self.counts[*slot] as i64));
        arrays.push(Arc::new(rows.finish()));
        for (measure, amounts) in wanted.measures.iter().zip(&self.amounts) {
            arrays.extend(measure.arrays(slots.iter().map(|slot| amounts[*slot]))?);
        }
        let options = RecordBatchOptions::new().with_row_count(Some(places.len()));
        Ok(RecordBatch::try_new_with_options(Arc::clone(&wanted.schema), arrays, &options)?)
    }
}

fn strings<T: AsRef<str>>(values: impl Iterator<Item = Option<T>>) -> ArrayRef {
    let mut builder = StringViewBuilder::new().with_deduplicate_strings();
    values.for_each(|value| builder.append_option(value));
    Arc::new(builder.finish())
}
