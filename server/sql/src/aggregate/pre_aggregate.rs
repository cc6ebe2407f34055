//! Pre-aggregation of one source: counts and measures of each group that the source has.
//!
//! ```text
//! SELECT event_name, string_props['plan'], count(*) FROM events GROUP BY 1, 2
//!
//! event 2 of 5, plan code 1 of 3 (0 is no plan) → group index 2 × 4 + 1 = 9: counts[9] += 1
//! ```
//!
//! Tenant and event are constant within a row range, hours are known from directories, and texts have codes in their
//! segment. So the index of a row's group is computed arithmetically (mixed radix), and no Arrow batch of rows is built. Where there could be too many
//! indexes for an array, a hash table has those that occur.
//!
//! Two texts, of 3 and 9 values, with the hour as the outer group:
//!
//! ```text
//! texts         plan: step 1, values 3 + 1      country: step 4, values 9 + 1      stride 4 × 10 = 40
//! outer groups  0: 09:00   1: 10:00
//! index         hour 1, plan 2, country 5       1 × 40 + 2 × 1 + 5 × 4 = 62
//! back          62 / 40 = 1, 62 % 40 / 1 % 4 = 2, 62 % 40 / 4 % 10 = 5
//!
//! 40 indexes an hour, of 40 bytes each with one measure: an array, while all hours together take 16 MiB at most
//! ```

use std::{collections::HashMap, sync::Arc};

use arrow::array::{
    ArrayRef, Int64Builder, RecordBatch, RecordBatchOptions, StringViewBuilder,
    TimestampMillisecondBuilder,
};
use datafusion_common::{DataFusionError, Result, hash_utils::RandomState};
use inlay_engine::rows::{Column, Morsel, Source, TextTable, TimeBuckets, Values};

use super::{
    aggregate_spec::{AggregateSpec, DENSE_GROUPS_BYTES, GroupKey},
    measures::{Measure, MeasureState},
    time_values::MorselRows,
};
use crate::tables::{BATCH_ROWS, broken};

/// The groups of a source so far.
pub struct SourceAggregator<'a> {
    spec: &'a AggregateSpec,
    source: &'a Source,
    /// Whether rows are grouped by tenant, and whether by event name.
    by: (bool, bool),
    buckets: TimeBuckets,
    /// For each outer group that was met, its number: tenant and event by their codes, zero where they are no keys, and the bucket's start.
    outer: HashMap<(u32, u32, i64), u32, RandomState>,
    /// The outer group that was met last.
    last: Option<((u32, u32, i64), u32)>,
    /// The outer groups by their numbers.
    outer_groups: Vec<(u32, u32, i64)>,
    /// String properties that are keys: their dictionary, once it is known, and how many indexes each value takes.
    texts: Vec<(String, Arc<TextTable>, usize)>,
    /// Groups of an outer group: a group's index is the number of its outer group times the stride, plus what its codes add.
    stride: usize,
    /// Where there could be too many indexes for an array: the slot of each index that occurs, and the index of each slot.
    sparse: Option<(HashMap<u64, u32, RandomState>, Vec<u64>)>,
    counts: Vec<u64>,
    states: Vec<Vec<MeasureState>>,
}

impl<'a> SourceAggregator<'a> {
    /// An aggregator without rows, for one source of a scan.
    ///
    /// Errors: damage of a segment.
    pub fn new(spec: &'a AggregateSpec, source: &'a Source) -> Result<Self> {
        let mut texts = Vec::new();
        let mut stride = 1usize;
        for (_, key) in &spec.keys {
            if let GroupKey::Text(name) = key {
                texts.push((name.clone(), Arc::default(), stride));
                let values = source.values(name).map_err(broken)?;
                stride = stride.saturating_mul(values.saturating_add(1));
            }
        }
        let groups = spec.outer_groups(source).saturating_mul(stride);
        let is_dense = groups.saturating_mul(spec.group_bytes()) <= DENSE_GROUPS_BYTES;
        Ok(Self {
            spec,
            source,
            by: (spec.has(&GroupKey::Tenant), spec.has(&GroupKey::Event)),
            buckets: spec.buckets(),
            outer: HashMap::default(),
            last: None,
            outer_groups: Vec::new(),
            texts,
            stride,
            sparse: (!is_dense).then(Default::default),
            counts: Vec::new(),
            states: vec![Vec::new(); spec.measures.len()],
        })
    }

    /// The number of an outer group. Rows of one follow each other, so the last one is remembered.
    fn outer(&mut self, series: usize, start_ms: i64) -> usize {
        let (tenant, name) =
            self.source.series().get(series).map_or((0, 0), |series| (series.tenant, series.name));
        let key = (if self.by.0 { tenant } else { 0 }, if self.by.1 { name } else { 0 }, start_ms);
        if let Some((last, number)) = self.last
            && last == key
        {
            return number as usize;
        }
        let next = self.outer_groups.len() as u32;
        let number = *self.outer.entry(key).or_insert(next);
        if number == next {
            self.outer_groups.push(key);
            if self.sparse.is_none() {
                self.make_slots(self.stride);
            }
        }
        self.last = Some((key, number));
        number as usize
    }

    /// Makes room for so many groups without rows.
    fn make_slots(&mut self, more: usize) {
        self.counts.resize(self.counts.len() + more, 0);
        for states in &mut self.states {
            states.resize(states.len() + more, MeasureState::NONE);
        }
    }

    /// Where a group is counted.
    fn slot(&mut self, index: u64) -> usize {
        let Some((slots, indexes)) = &mut self.sparse else { return index as usize };
        let next = indexes.len() as u32;
        let slot = *slots.entry(index).or_insert(next);
        if slot == next {
            indexes.push(index);
            self.make_slots(1);
        }
        slot as usize
    }

    /// Adds the rows of a morsel.
    ///
    /// Errors: damage of a segment.
    pub fn add(&mut self, morsel: &Morsel) -> Result<()> {
        let spec = self.spec;
        let bucket_runs = self.source.bucket_runs(morsel, &self.buckets).map_err(broken)?;
        let marks = self.source.passing(morsel, &spec.filter).map_err(broken)?;
        // Nothing of single rows is asked for: runs of rows are counted as a whole, and no other column is read.
        if self.texts.is_empty() && spec.measures.is_empty() && marks.is_none() {
            for bucket_run in bucket_runs {
                let outer = self.outer(bucket_run.series, bucket_run.start_ms);
                let slot = self.slot((outer * self.stride) as u64);
                self.counts[slot] += u64::from(bucket_run.rows);
            }
            return Ok(());
        }
        let is_by_outer_group_alone =
            self.texts.is_empty() && self.buckets.is_one() && marks.is_none();
        // Rows of a series rise with time, so of a row range the first and the last time are enough.
        if is_by_outer_group_alone && *spec.measures == [Measure::Time] {
            for row_range in &morsel.row_ranges {
                let outer = self.outer(row_range.series, 0);
                let slot = self.slot((outer * self.stride) as u64);
                let (first_ms, last_ms) = self.source.ends(row_range).map_err(broken)?;
                self.counts[slot] += row_range.rows.len() as u64;
                self.states[0][slot].add_times(row_range.rows.len() as u64, first_ms, last_ms);
            }
            return Ok(());
        }
        // Where each row is counted.
        let mut indexes: Vec<u64> = Vec::with_capacity(morsel.rows());
        for bucket_run in &bucket_runs {
            let outer = self.outer(bucket_run.series, bucket_run.start_ms) as u64;
            let index = outer * self.stride as u64;
            indexes.resize(indexes.len() + bucket_run.rows as usize, index);
        }
        for (name, table, step) in &mut self.texts {
            let column = Column::Text(name.clone());
            let Values::Codes(codes, here) = self.source.read(morsel, &column).map_err(broken)?
            else {
                return Err(DataFusionError::Internal("a text has no codes".to_owned()));
            };
            // A block without the property has no dictionary.
            if !here.is_empty() {
                *table = here;
            }
            let step = *step as u64;
            indexes
                .iter_mut()
                .zip(codes)
                .for_each(|(index, code)| *index += u64::from(code) * step);
        }
        if let Some(marks) = &marks {
            let mut marks = marks.iter();
            indexes.retain(|_| marks.next().is_some_and(|mark| *mark));
        }
        if self.sparse.is_some() {
            for index in &mut indexes {
                *index = self.slot(*index) as u64;
            }
        }
        for &index in &indexes {
            self.counts[index as usize] += 1;
        }
        // Times tell groups apart here: no measure needs them.
        let read = MorselRows { source: self.source, morsel, bucket_runs: &[] };
        for (measure, states) in spec.measures.iter().zip(&mut self.states) {
            let mut values = measure.read(read)?;
            if let Some(marks) = &marks {
                let mut marks = marks.iter();
                values.retain(|_| marks.next().is_some_and(|mark| *mark));
            }
            for (&index, value) in indexes.iter().zip(values) {
                states[index as usize].add(value);
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

    /// The batch of some groups: their codes are taken from their indexes again, and their texts from dictionaries.
    fn batch(&self, slots: &[usize]) -> Result<RecordBatch> {
        let index = |slot: &usize| match &self.sparse {
            Some((_, indexes)) => indexes[*slot] as usize,
            None => *slot,
        };
        let indexes: Vec<usize> = slots.iter().map(index).collect();
        let spec = self.spec;
        let mut arrays: Vec<ArrayRef> = Vec::with_capacity(spec.schema.fields().len());
        let outer = |index: &usize| self.outer_groups[index / self.stride];
        let mut texts = self.texts.iter();
        for (_, key) in &spec.keys {
            arrays.push(match key {
                GroupKey::Tenant => {
                    let tenants = self.source.tenants();
                    strings(indexes.iter().map(|index| Some(tenants.text(outer(index).0 as usize))))
                }
                GroupKey::Event => {
                    let names = self.source.names();
                    strings(indexes.iter().map(|index| names.get(outer(index).1 as usize).cloned()))
                }
                GroupKey::Time(_) => {
                    let mut times = TimestampMillisecondBuilder::with_capacity(indexes.len());
                    let starts = indexes.iter().map(|index| outer(index).2);
                    starts.for_each(|start| times.append_value(start));
                    Arc::new(times.finish())
                }
                GroupKey::User | GroupKey::Rank(_) => {
                    return Err(DataFusionError::Internal("a key of groups by user".to_owned()));
                }
                GroupKey::Text(name) => {
                    let Some((_, table, step)) = texts.next() else {
                        return Err(DataFusionError::Internal(format!("{name} was not read")));
                    };
                    let values = self.source.values(name).map_err(broken)?.saturating_add(1);
                    let code = |index: &usize| index % self.stride / step % values;
                    let text = |index| {
                        let at = code(index).checked_sub(1)?;
                        std::str::from_utf8(table.at(at)).ok()
                    };
                    strings(indexes.iter().map(text))
                }
            });
        }
        let mut rows = Int64Builder::with_capacity(indexes.len());
        slots.iter().for_each(|slot| rows.append_value(self.counts[*slot] as i64));
        arrays.push(Arc::new(rows.finish()));
        for (measure, states) in spec.measures.iter().zip(&self.states) {
            arrays.extend(measure.arrays(slots.iter().map(|slot| states[*slot]))?);
        }
        let options = RecordBatchOptions::new().with_row_count(Some(indexes.len()));
        Ok(RecordBatch::try_new_with_options(Arc::clone(&spec.schema), arrays, &options)?)
    }
}

/// A column of texts, in which equal ones are stored once.
fn strings<T: AsRef<str>>(values: impl Iterator<Item = Option<T>>) -> ArrayRef {
    let mut builder = StringViewBuilder::new().with_deduplicate_strings();
    values.for_each(|value| builder.append_option(value));
    Arc::new(builder.finish())
}
