//! Groups by user, column by column, and the batches that they become: one row for each group.
//!
//! ```text
//! slot   keys     counts   span                   states (measure 0)         distinct (events)
//! 0      (7, 0)   9        11-01 … 11-19          count 9, sum 41.5, …       0b011
//! 1      (8, 0)   1        11-03 … 11-03          count 0                    0b001
//!
//! users    7: ada of acme, 8: bob of acme         buckets  0: (no name, no time)
//!
//! tenant_id  user_id  rows  earliest  latest  count of measure 0  sum of measure 0  …  distinct 0
//! acme       ada         9  11-01     11-19                    9              41.5               2
//! acme       bob         1  11-03     11-03                    0              NULL               1
//! ```

use std::sync::Arc;

use arrow::{
    array::{
        Array as _, ArrayRef, Int64Array, RecordBatch, RecordBatchOptions,
        TimestampMillisecondArray, UInt32Array, UInt64Array,
    },
    compute::take,
};
use datafusion_common::{DataFusionError, Result};
use datafusion_execution::memory_pool::MemoryReservation;

use super::{
    aggregate_spec::{AggregateSpec, GroupKey, RankCombinations},
    distinct_values::Bits,
    measures::MeasureState,
};
use crate::tables::BATCH_ROWS;

/// Key of a group within its user: the number of the event's name, and the start of the hour, day
/// or week. Each is zero where groups do not depend on it.
pub type EventBucket = (u32, i64);

/// Groups, column by column.
pub struct GroupColumns {
    /// Of each its user and its bucket, by their numbers; the first of its users, where users are counted.
    pub keys: Vec<(u32, u32)>,
    /// How many rows each has.
    counts: Vec<i64>,
    /// Where their first and last minute, hour, day or week begin, if that is asked for.
    span: Option<[Vec<i64>; 2]>,
    /// A list for each measure.
    states: Vec<Vec<MeasureState>>,
    /// A list for each kind of value that is counted once.
    distinct: Vec<Bits>,
    /// How many users each has, where they are counted.
    users: Option<Vec<i64>>,
}

impl GroupColumns {
    /// No groups yet, with the columns that `spec` needs.
    pub fn new(spec: &AggregateSpec) -> Self {
        Self {
            keys: Vec::new(),
            counts: Vec::new(),
            span: spec.span.map(|_| Default::default()),
            states: vec![Vec::new(); spec.measures.len()],
            distinct: spec.distinct.iter().map(|of| Bits::new(of.words())).collect(),
            users: spec.counts_users.then(Vec::new),
        }
    }

    /// Number of groups.
    pub fn len(&self) -> usize {
        self.keys.len()
    }

    /// Bytes of a group, here and in batches. Lists are at most half empty.
    pub fn group_bytes(&self) -> usize {
        let numbers = 1 + 2 * usize::from(self.span.is_some()) + usize::from(self.users.is_some());
        let here = size_of::<(u32, u32)>() + size_of::<i64>() * numbers;
        let distinct: usize = self.distinct.iter().map(Bits::group_bytes).sum();
        2 * (here + self.states.len() * size_of::<MeasureState>() + distinct)
    }

    /// Adds a group without rows.
    pub fn push(&mut self, key: (u32, u32)) {
        self.keys.push(key);
        self.counts.push(0);
        if let Some([earliest, latest]) = &mut self.span {
            earliest.push(i64::MAX);
            latest.push(i64::MIN);
        }
        self.states.iter_mut().for_each(|list| list.push(MeasureState::NONE));
        self.distinct.iter_mut().for_each(Bits::push);
        if let Some(users) = &mut self.users {
            users.push(0);
        }
    }

    /// Removes all groups of a user; their slots are those of other groups then.
    pub fn remove_user(&mut self, user: u32) {
        // From behind: the group that comes into a slot is one that stays.
        for slot in (0..self.len()).rev() {
            if self.keys[slot].0 != user {
                continue;
            }
            self.keys.swap_remove(slot);
            self.counts.swap_remove(slot);
            for list in self.span.iter_mut().flatten() {
                list.swap_remove(slot);
            }
            for list in &mut self.states {
                list.swap_remove(slot);
            }
            self.distinct.iter_mut().for_each(|bits| bits.swap_remove(slot));
            if let Some(users) = &mut self.users {
                users.swap_remove(slot);
            }
        }
    }

    /// Counts a user, where users are counted: once in each group.
    pub fn count_user(&mut self, slot: usize) {
        if let Some(users) = &mut self.users {
            users[slot] += 1;
        }
    }

    /// Counts a row whose minute, hour, day or week begins then, in milliseconds since 1970.
    pub fn count(&mut self, slot: usize, start_ms: i64) {
        self.counts[slot] += 1;
        if let Some([earliest, latest]) = &mut self.span {
            earliest[slot] = earliest[slot].min(start_ms);
            latest[slot] = latest[slot].max(start_ms);
        }
    }

    /// Sets the bit of a value in the distinct set of a group.
    pub fn note(&mut self, distinct: usize, slot: usize, number: usize) {
        self.distinct[distinct].set(slot, number);
    }

    /// Adds a row's number to a measure; NaN, of a row that lacks it, adds nothing.
    pub fn add(&mut self, measure: usize, slot: usize, value: f64) {
        self.states[measure][slot].add(value);
    }
}

/// What keys of groups stand for.
pub struct GroupLabels {
    /// The number of the first user; the others are numbered on from it.
    pub first_number: u64,
    /// The text of each user; nothing for rows without one.
    pub texts: ArrayRef,
    /// The tenant of each user.
    pub tenants: Vec<u32>,
    /// The texts of tenants.
    pub tenant_texts: ArrayRef,
    /// What tells groups of a user apart, besides ranks.
    pub buckets: Vec<EventBucket>,
    /// String properties that do: a bucket has a number for each of their combinations.
    pub ranks: RankCombinations,
    /// The names of events.
    pub names: ArrayRef,
}

/// Groups in batches, which are made as they are asked for.
pub struct Batches {
    spec: AggregateSpec,
    columns: GroupColumns,
    labels: GroupLabels,
    /// What is counted of memory until the last is made.
    _memory: MemoryReservation,
    next: usize,
}

impl Batches {
    /// Of groups that were counted as `memory`.
    pub fn new(
        spec: AggregateSpec,
        columns: GroupColumns,
        labels: GroupLabels,
        memory: MemoryReservation,
    ) -> Self {
        Self { spec, columns, labels, _memory: memory, next: 0 }
    }

    /// The batch of some groups.
    ///
    /// Errors: damage of a segment, where texts are looked up by their ranks.
    fn batch(&self, rows: std::ops::Range<usize>) -> Result<RecordBatch> {
        let Self { columns, labels, spec, .. } = self;
        let keys = &columns.keys[rows.clone()];
        let users: UInt32Array = keys.iter().map(|(user, _)| *user).collect();
        let buckets = keys
            .iter()
            .map(|(_, bucket)| labels.buckets[*bucket as usize / labels.ranks.combinations]);
        let times = |list: Vec<i64>| Arc::new(TimestampMillisecondArray::from(list)) as ArrayRef;
        let mut arrays: Vec<ArrayRef> = Vec::with_capacity(spec.schema.fields().len());
        for (_, key) in &spec.keys {
            arrays.push(match key {
                GroupKey::Tenant => {
                    let tenants = keys.iter().map(|(user, _)| labels.tenants[*user as usize]);
                    take(&labels.tenant_texts, &tenants.collect::<UInt32Array>(), None)?
                }
                GroupKey::Event => {
                    let names: UInt32Array = buckets.clone().map(|(name, _)| name).collect();
                    take(&labels.names, &names, None)?
                }
                GroupKey::Time(_) => times(buckets.clone().map(|(_, start_ms)| start_ms).collect()),
                GroupKey::User => take(&labels.texts, &users, None)?,
                GroupKey::Rank(order) => {
                    let ranks = &labels.ranks;
                    let combinations =
                        keys.iter().map(|(_, bucket)| *bucket as usize % ranks.combinations);
                    ranks.texts(order, combinations)?
                }
                GroupKey::Text(_) => {
                    return Err(DataFusionError::Internal(
                        "a text is no key of groups by user".to_owned(),
                    ));
                }
            });
        }
        arrays.push(Arc::new(Int64Array::from(columns.counts[rows.clone()].to_vec())));
        for list in columns.span.iter().flatten() {
            arrays.push(times(list[rows.clone()].to_vec()));
        }
        for (measure, states) in spec.measures.iter().zip(&columns.states) {
            arrays.extend(measure.arrays(states[rows.clone()].iter().copied())?);
        }
        for bits in &columns.distinct {
            let counts: Int64Array = rows.clone().map(|group| Some(bits.count(group))).collect();
            arrays.push(Arc::new(counts));
        }
        if spec.has_user_numbers {
            let number = |user: u32| {
                let is_there = labels.texts.is_valid(user as usize);
                is_there.then(|| labels.first_number + u64::from(user))
            };
            let numbers: UInt64Array = keys.iter().map(|(user, _)| number(*user)).collect();
            arrays.push(Arc::new(numbers));
        }
        if let Some(users) = &columns.users {
            arrays.push(Arc::new(Int64Array::from(users[rows.clone()].to_vec())));
        }
        let options = RecordBatchOptions::new().with_row_count(Some(rows.len()));
        let schema = Arc::clone(&spec.schema);
        Ok(RecordBatch::try_new_with_options(schema, arrays, &options)?)
    }
}

impl Iterator for Batches {
    type Item = Result<RecordBatch>;

    fn next(&mut self) -> Option<Self::Item> {
        let rows = self.next..(self.next + BATCH_ROWS).min(self.columns.len());
        self.next = rows.end;
        (!rows.is_empty()).then(|| self.batch(rows))
    }
}
