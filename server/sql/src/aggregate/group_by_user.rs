//! Hash aggregation by user, for the tenants of one chunk: users get ordinals as they are first seen, and group states are indexed
//! by ordinals.
//!
//! A segment has codes for its users, so a text is hashed once a segment and not once a row; and the users of few tenants fit into
//! the processor's caches.
//!
//! ```text
//! SELECT tenant_id, user_id, date_trunc('day', timestamp), count(*) FROM events GROUP BY 1, 2, 3
//!
//! user 'ada' of acme → ordinal 7; day 2026-11-20 → bucket 3; group (7, 3) → slot 41: one row more
//! ```
//!
//! Where users are counted and not named, a slot is that of a group of all users, who are counted as they are met in it first:
//!
//! ```text
//! SELECT tenant_id, count(DISTINCT user_id), count(*) FROM events GROUP BY 1
//!
//! user 'ada' of acme → ordinal 7; group (7, 0) not met → slot 2 of acme: one user more, one row more
//! user 'ada' of acme → ordinal 7; group (7, 0) → slot 2: one row more
//! ```
//!
//! For each morsel, in this order:
//!
//! ```text
//! marks      rows that meet the filter; where fewer than one in eight does, the morsel shrinks to these
//! users      code 130 of the segment → ordinal 7, looked up once a segment; a row that is left out has none
//! buckets    runs of rows of one event and day → bucket 3, plus the combination of its texts
//! slots      (7, 3) → 41, in a list for each bucket while these have four million entries at most, else in a hash table
//! measures   a double for each row, added to the state of its slot
//! distinct   a bit of the slot's set for the row's day, event or text
//! ```

use std::{collections::HashMap, hash::BuildHasher as _, ops::Range, sync::Arc};

use arrow::{
    array::{ArrayRef, StringViewArray, make_view},
    buffer::{Buffer, NullBuffer},
};
use datafusion_common::{DataFusionError, Result, hash_utils::RandomState, resources_err};
use datafusion_execution::memory_pool::MemoryReservation;
use hashbrown::HashTable;
use inlay_engine::rows::{BucketRun, Column, Morsel, RowRange, Source, TimeBuckets, Values};

use super::{
    aggregate_spec::{AggregateSpec, GroupKey, RankCombinations},
    distinct_values::Distinct,
    group_columns::{Batches, EventBucket, GroupColumns, GroupLabels},
    time_values::MorselRows,
    user_range::UserRange,
};
use crate::tables::broken;

/// No number: of a row that is left out, of what is not met yet.
const NONE: u32 = u32::MAX;
/// The number that all users outside of the range have: to add their rows up for nobody takes less time than a branch at each row that no
/// processor can predict.
const OTHERS: u32 = 0;
/// Entries of all dense lists of a chunk, at most, and how many lists: where users could have more groups than that, a hash table finds
/// them.
const LISTED_MAX: usize = if cfg!(test) { 3_000 } else { 4 << 20 };
const LISTS_MAX: usize = 4_096;
/// Where fewer than one row of so many meets a filter, the others are not read further.
const FEW: usize = 8;
/// Bytes of a text that its view has room for.
const VIEW_BYTES: usize = 12;

/// What the tenants of all sources are called, and what else tells groups of a user apart.
#[derive(Debug)]
pub struct UserGroupsLayout {
    /// The tenants' texts.
    pub tenants: ArrayRef,
    /// For each source, the number of each of its tenants.
    pub tenant_numbers: Vec<Vec<u32>>,
    /// The events' names, where they are told apart.
    pub names: ArrayRef,
    /// For each source, the number of each of its events' names; empty where they are not told apart.
    pub name_numbers: Vec<Vec<u32>>,
    /// How finely times have to be known.
    pub finest: TimeBuckets,
}

/// Users of some tenants, and their groups so far.
pub struct UserAggregator<'a> {
    spec: &'a AggregateSpec,
    layout: &'a UserGroupsLayout,
    /// The users that it is about.
    range: &'a UserRange,
    memory: MemoryReservation,
    hasher: RandomState,
    /// Users by their tenants and texts: `ada` of two tenants is two users.
    known: HashTable<UserEntry>,
    /// By number. Where the range is not all, the first stands for users outside of it.
    users: Vec<User>,
    by_code: UsersByCode,
    /// The indexes of the range's users in the source that was met last.
    indexes: Option<(usize, Range<u32>)>,
    /// Texts that are too long for a view, end to end.
    long: Vec<u8>,
    /// The buckets that were met; bucket n has the numbers from n times the combinations on.
    buckets: Vec<EventBucket>,
    /// String properties by whose ranks groups are told apart: a bucket has a number for each of their combinations.
    ranks: RankCombinations,
    /// Numbers of buckets, and the bucket that was met last.
    bucket_numbers: HashMap<EventBucket, usize, RandomState>,
    last: Option<(EventBucket, usize)>,
    /// The slot of the group of each user and bucket.
    slots: Slots,
    /// Where users are counted, the slot of each group by its tenant, if that is a key, and its bucket.
    groups: HashMap<(u32, u32), u32, RandomState>,
    /// The group that was met last: a day has many users.
    last_group: Option<((u32, u32), u32)>,
    /// Whether tenants tell groups apart.
    is_by_tenant: bool,
    /// The groups by their slots.
    columns: GroupColumns,
}

/// A user in the table: half of its hash, which tells nearly all apart, and its number.
#[derive(Clone, Copy)]
struct UserEntry {
    hash: u32,
    user: u32,
}

/// A tenant's user. A text of up to twelve bytes is in its view, which is Arrow's; of a longer one the view has the offset in `long`:
///
/// ```text
/// ada                  03 00 00 00  61 64 61 00 00 00 00 00 00 00 00 00        length, text
/// a-long-user-id-1     10 00 00 00  61 2d 6c 6f  00 00 00 00  40 00 00 00      length 16, first four bytes, buffer 0, offset 64
/// ```
#[derive(Clone, Copy)]
struct User {
    view: u128,
    tenant: u32,
}

/// Users of one source by their codes there, as far as they were met: morsels of a source follow each other.
#[derive(Default)]
struct UsersByCode {
    /// The index of the source in the scan.
    source: usize,
    /// The code of the first in the list.
    first: u32,
    /// The ordinal of each code from the first on; [`NONE`] where it was not met, [`OTHERS`] where the range does not have it.
    users: Vec<u32>,
}

impl UsersByCode {
    /// Makes the list long enough for users of a source, of which 0 is nobody and n has the code n - 1. Codes outside of `indexes` are of
    /// other users.
    fn make_room(&mut self, source: usize, users: &[u32], indexes: &Range<u32>) {
        let unknown = |code: u32| if indexes.contains(&code) { NONE } else { OTHERS };
        let codes = users.iter().filter_map(|user| user.checked_sub(1));
        let (first, last) =
            codes.fold((u32::MAX, 0), |(first, last), code| (first.min(code), last.max(code)));
        if first > last {
            return;
        }
        if self.source != source || self.users.is_empty() {
            (self.source, self.first) = (source, first);
            self.users.clear();
        }
        if first < self.first {
            self.users.splice(0..0, (first..self.first).map(unknown));
            self.first = first;
        }
        let end = self.first + self.users.len() as u32;
        self.users.extend((end..=last).map(unknown));
    }
}

/// Where the group of a user and a bucket is.
enum Slots {
    /// By bucket, then by user; and how many numbers that are.
    Listed(Vec<Vec<u32>>, usize),
    /// By their hashes.
    Hashed(HashTable<SlotEntry>),
}

/// The slot of the group of a user and a bucket.
#[derive(Clone, Copy)]
struct SlotEntry {
    key: (u32, u32),
    slot: u32,
}

impl<'a> UserAggregator<'a> {
    /// An aggregation for users of a range. Its memory is charged to `memory`.
    ///
    /// Errors: damage of a segment.
    pub fn new(
        spec: &'a AggregateSpec,
        layout: &'a UserGroupsLayout,
        range: &'a UserRange,
        memory: MemoryReservation,
    ) -> Result<Self> {
        Ok(Self {
            spec,
            layout,
            range,
            memory,
            hasher: RandomState::default(),
            known: HashTable::new(),
            users: if range.is_all() { Vec::new() } else { vec![User { view: 0, tenant: 0 }] },
            by_code: UsersByCode::default(),
            indexes: None,
            long: Vec::new(),
            buckets: Vec::new(),
            ranks: spec.ranks()?,
            bucket_numbers: HashMap::default(),
            last: None,
            slots: Slots::Listed(Vec::new(), 0),
            groups: HashMap::default(),
            last_group: None,
            is_by_tenant: spec.has(&GroupKey::Tenant),
            columns: GroupColumns::new(spec),
        })
    }

    /// Bytes that are taken, and those that so many more rows may take.
    fn bytes_used(&self, more: usize) -> usize {
        let texts = self.long.capacity() + self.by_code.users.capacity() * size_of::<u32>();
        let users = self.users.capacity() * (size_of::<User>() + size_of::<u128>());
        let slots = match &self.slots {
            Slots::Listed(_, listed) => listed * size_of::<u32>(),
            Slots::Hashed(slots) => slots.allocation_size(),
        };
        let of_row = self.columns.group_bytes() + 2 * size_of::<User>() + 6 * size_of::<u64>();
        let columns = self.columns.len() * self.columns.group_bytes();
        // In the list and in the table.
        let buckets = self.buckets.capacity() * 3 * size_of::<EventBucket>();
        let groups = self.groups.capacity() * 2 * size_of::<((u32, u32), u32)>();
        let known = self.known.allocation_size();
        buckets + texts + users + known + slots + groups + columns + more * of_row
    }

    /// The ordinal of a tenant's user, a new one where the text was not met before. An empty text is that of rows without a user.
    ///
    /// Errors: texts of more than two gigabytes.
    fn user(&mut self, tenant: u32, text: &[u8]) -> Result<u32> {
        if !self.range.contains(text) {
            return Ok(OTHERS);
        }
        let hash = self.hasher.hash_one((tenant, text));
        let view = make_view(text, 0, self.long.len() as u32);
        let is_it = |entry: &UserEntry| {
            let User { view: known, tenant: of } = self.users[entry.user as usize];
            // Of a long text a view has the length, the first bytes and the offset.
            let is_alike = || match known as u32 as usize {
                len if len <= VIEW_BYTES => known == view,
                len => {
                    let start = (known >> 96) as usize;
                    len == text.len() && self.long.get(start..start + len) == Some(text)
                }
            };
            entry.hash == hash as u32 && of == tenant && is_alike()
        };
        if let Some(entry) = self.known.find(hash, is_it) {
            return Ok(entry.user);
        }
        if text.len() > VIEW_BYTES {
            // Indexes in lists of strings have 31 bits.
            if self.long.len() + text.len() > i32::MAX as usize {
                return resources_err!("a tenant's user ids take too much memory");
            }
            self.long.extend_from_slice(text);
        }
        let user = self.users.len() as u32;
        self.users.push(User { view, tenant });
        let (users, long, hasher) = (&self.users, &self.long, &self.hasher);
        let rehash = |entry: &UserEntry| {
            let User { view, tenant } = users[entry.user as usize];
            hasher.hash_one((tenant, text_of(&view.to_le_bytes(), view, long)))
        };
        self.known.insert_unique(hash, UserEntry { hash: hash as u32, user }, rehash);
        Ok(user)
    }

    /// The user of each row of a morsel; none where it is left out.
    fn users(
        &mut self,
        at: usize,
        source: &Source,
        morsel: &Morsel,
        marks: Option<&[bool]>,
    ) -> Result<Vec<u32>> {
        let (codes, texts) =
            (source.users(morsel).map_err(broken)?, source.user_texts().map_err(broken)?);
        let Some((codes, (mut texts, _))) = codes.zip(texts) else {
            return self.users_of_texts(at, source, morsel, marks);
        };
        let row = morsel.row_ranges.first().map_or(0, |row_range| row_range.rows.start);
        let indexes = self.indexes(at, source, row)?;
        self.by_code.make_room(at, &codes, &indexes);
        let mut users = Vec::with_capacity(codes.len());
        for row_range in &morsel.row_ranges {
            let series = source.series().get(row_range.series);
            let tenant = series.map_or(0, |series| series.tenant);
            let tenant = number_of(&self.layout.tenant_numbers, at, tenant)?;
            let mut nobody = NONE;
            for _ in row_range.rows.clone() {
                let row = users.len();
                if marks.is_some_and(|marks| !marks[row]) {
                    users.push(NONE);
                    continue;
                }
                let Some(code) = codes[row].checked_sub(1) else {
                    if nobody == NONE {
                        nobody = self.user(tenant, &[])?;
                    }
                    users.push(nobody);
                    continue;
                };
                let slot = (code - self.by_code.first) as usize;
                let mut user = self.by_code.users[slot];
                if user == NONE {
                    user = self.user(tenant, texts.at(code as usize).map_err(broken)?)?;
                    self.by_code.users[slot] = user;
                }
                users.push(user);
            }
        }
        Ok(users)
    }

    /// The indexes in a source of users in the range. Where that is not all, rows are of one tenant.
    fn indexes(&mut self, at: usize, source: &Source, row: u32) -> Result<Range<u32>> {
        if self.range.is_all() {
            return Ok(0..NONE);
        }
        let known =
            self.indexes.take().filter(|(known, _)| *known == at).map(|(_, indexes)| indexes);
        let indexes = match known {
            Some(indexes) => indexes,
            None => self.range.indexes(source, row)?.unwrap_or_default(),
        };
        self.indexes = Some((at, indexes.clone()));
        Ok(indexes)
    }

    /// The same where users have no codes.
    fn users_of_texts(
        &mut self,
        at: usize,
        source: &Source,
        morsel: &Morsel,
        marks: Option<&[bool]>,
    ) -> Result<Vec<u32>> {
        let Values::Texts(texts) = source.read(morsel, &Column::User).map_err(broken)? else {
            return Err(DataFusionError::Internal("users are no texts".to_owned()));
        };
        let mut users = Vec::with_capacity(morsel.rows());
        for row_range in &morsel.row_ranges {
            let series = source.series().get(row_range.series);
            let tenant = series.map_or(0, |series| series.tenant);
            let tenant = number_of(&self.layout.tenant_numbers, at, tenant)?;
            for _ in row_range.rows.clone() {
                let row = users.len();
                users.push(match marks.is_some_and(|marks| !marks[row]) {
                    true => NONE,
                    false => self.user(tenant, texts.at(row))?,
                });
            }
        }
        Ok(users)
    }

    /// The first number of a bucket.
    ///
    /// Errors: when numbers would be too large.
    fn bucket_number(&mut self, bucket: EventBucket) -> Result<usize> {
        if let Some((last, at)) = self.last
            && last == bucket
        {
            return Ok(at);
        }
        let next = self.buckets.len() * self.ranks.combinations;
        if next + self.ranks.combinations > NONE as usize {
            return resources_err!("groups of users have too many times, events and texts");
        }
        let at = *self.bucket_numbers.entry(bucket).or_insert(next);
        self.last = Some((bucket, at));
        if at == next {
            self.buckets.push(bucket);
            if let Slots::Listed(lists, _) = &mut self.slots {
                lists.resize_with(next + self.ranks.combinations, Vec::new);
                if lists.len() > LISTS_MAX {
                    self.find_by_hash();
                }
            }
        }
        Ok(at)
    }

    /// Makes the dense list of a bucket long enough for all users.
    fn grow_list(&mut self, bucket: usize) {
        let Slots::Listed(lists, listed) = &mut self.slots else { return };
        let list = &mut lists[bucket];
        let missing = self.users.len().saturating_sub(list.len());
        if missing == 0 {
            return;
        }
        // They grow in steps, so that a list is not made anew for each row range.
        let len = self.users.len() + missing / 2;
        *listed += len - list.len();
        if *listed > LISTED_MAX {
            self.find_by_hash();
        } else {
            list.resize(len, NONE);
        }
    }

    /// Replaces the lists by a hash table of the same slots.
    fn find_by_hash(&mut self) {
        let Slots::Listed(lists, _) = &mut self.slots else { return };
        let hasher = &self.hasher;
        let hash = |entry: &SlotEntry| hasher.hash_one(entry.key);
        let met = lists.iter().flatten().filter(|slot| **slot != NONE).count();
        let mut slots = HashTable::with_capacity(met);
        for (bucket, list) in (0..).zip(std::mem::take(lists)) {
            for (user, slot) in (0..).zip(list).filter(|(_, slot)| *slot != NONE) {
                let entry = SlotEntry { key: (user, bucket), slot };
                slots.insert_unique(hash(&entry), entry, hash);
            }
        }
        self.slots = Slots::Hashed(slots);
    }

    /// Where the group of a user and a bucket is, whose list is long enough if there are lists.
    fn slot(&mut self, user: u32, bucket: usize) -> usize {
        let key = (user, bucket as u32);
        let known = match &self.slots {
            Slots::Listed(lists, _) => Some(lists[bucket][user as usize]).filter(|at| *at != NONE),
            Slots::Hashed(slots) => {
                let found = slots.find(self.hasher.hash_one(key), |entry| entry.key == key);
                found.map(|entry| entry.slot)
            }
        };
        if let Some(slot) = known {
            return slot as usize;
        }
        let slot = self.new_slot(key);
        match &mut self.slots {
            Slots::Listed(lists, _) => lists[bucket][user as usize] = slot,
            Slots::Hashed(slots) => {
                let hasher = &self.hasher;
                let hash = |entry: &SlotEntry| hasher.hash_one(entry.key);
                let entry = SlotEntry { key, slot };
                slots.insert_unique(hash(&entry), entry, hash);
            }
        }
        slot as usize
    }

    /// The slot of the group of a user who has not been met in a bucket: a new group, or the one in which users are counted.
    fn new_slot(&mut self, key: (u32, u32)) -> u32 {
        let next = self.columns.len() as u32;
        if !self.spec.counts_users {
            self.columns.push(key);
            return next;
        }
        let (user, bucket) = key;
        let User { view, tenant } = self.users[user as usize];
        // Rows of users outside of the range are in groups of their own, which are dropped.
        let tenant = match user {
            OTHERS if !self.range.is_all() => NONE,
            _ if self.is_by_tenant => tenant,
            _ => 0,
        };
        let group = (tenant, bucket);
        let slot = match self.last_group {
            Some((last, slot)) if last == group => slot,
            _ => *self.groups.entry(group).or_insert(next),
        };
        self.last_group = Some((group, slot));
        if slot == next {
            self.columns.push(key);
        }
        // Rows without a user have an empty text.
        if view as u32 > 0 {
            self.columns.count_user(slot as usize);
        }
        slot
    }

    /// Adds the rows of a morsel of a source. `at` is the index of the source in the scan.
    ///
    /// Errors: damage of a segment; more memory than there may be.
    pub fn add(&mut self, at: usize, source: &Source, morsel: &Morsel) -> Result<()> {
        self.memory.try_resize(self.bytes_used(morsel.rows()))?;
        let mut marks = source.passing(morsel, &self.spec.filter).map_err(broken)?;
        let few = marks.take_if(|marks| is_few(marks)).map(|marks| rows_of_marks(morsel, &marks));
        let morsel = few.as_ref().unwrap_or(morsel);
        if morsel.row_ranges.is_empty() {
            return Ok(());
        }
        let bucket_runs = source.bucket_runs(morsel, &self.layout.finest).map_err(broken)?;
        // Users, then where their groups are.
        let mut rows = self.users(at, source, morsel, marks.as_deref())?;
        self.memory.try_resize(self.bytes_used(morsel.rows()))?;
        let ranks = self.ranks.read(source, morsel)?;
        let mut ranks = &*ranks;
        let mut rest = &mut *rows;
        let (by_name, buckets) = (self.spec.has(&GroupKey::Event), self.spec.buckets());
        for bucket_run in &bucket_runs {
            let name = source.series().get(bucket_run.series).map_or(0, |series| series.name);
            let bucket = (
                if by_name { number_of(&self.layout.name_numbers, at, name)? } else { 0 },
                buckets.start(bucket_run.start_ms),
            );
            let bucket = self.bucket_number(bucket)?;
            let (here, behind) = rest.split_at_mut(bucket_run.rows as usize);
            rest = behind;
            let ranks_here;
            (ranks_here, ranks) = ranks.split_at_checked(here.len()).unwrap_or_default();
            if ranks_here.is_empty() {
                self.grow_list(bucket);
            }
            let mut ranks = ranks_here.iter();
            for row in here.iter_mut() {
                let rank = ranks.next();
                if *row == NONE {
                    continue;
                }
                let bucket = bucket + rank.map_or(0, |rank| *rank as usize);
                if rank.is_some() {
                    self.grow_list(bucket);
                }
                let slot = self.slot(*row, bucket);
                self.columns.count(slot, bucket_run.start_ms);
                *row = slot as u32;
            }
        }
        let read = MorselRows { source, morsel, bucket_runs: &bucket_runs };
        for (at, measure) in self.spec.measures.iter().enumerate() {
            let values = measure.read(read)?;
            let slots = rows.iter().zip(values).filter(|(slot, _)| **slot != NONE);
            slots.for_each(|(slot, value)| self.columns.add(at, *slot as usize, value));
        }
        self.note_distinct(at, source, morsel, &bucket_runs, &rows)
    }

    /// Notes what is counted once of the rows of a morsel, whose groups are known.
    fn note_distinct(
        &mut self,
        at: usize,
        source: &Source,
        morsel: &Morsel,
        bucket_runs: &[BucketRun],
        slots: &[u32],
    ) -> Result<()> {
        for (which, distinct) in self.spec.distinct.iter().enumerate() {
            if let Distinct::Texts { order, .. } = distinct {
                let ranks = order.read(source, morsel)?;
                let known =
                    slots.iter().zip(ranks).filter(|(slot, rank)| **slot != NONE && !rank.is_nan());
                known.for_each(|(slot, rank)| {
                    self.columns.note(which, *slot as usize, rank as usize)
                });
                continue;
            }
            let mut rest = slots;
            for bucket_run in bucket_runs {
                let number = match distinct {
                    Distinct::Starts { grain, first_ms, .. } => {
                        let steps = (grain.start(bucket_run.start_ms) - first_ms) / grain.step_ms();
                        usize::try_from(steps).unwrap_or(usize::MAX)
                    }
                    Distinct::Events { .. } | Distinct::Texts { .. } => {
                        let name =
                            source.series().get(bucket_run.series).map_or(0, |series| series.name);
                        number_of(&self.layout.name_numbers, at, name)? as usize
                    }
                };
                let (here, behind) = rest.split_at(bucket_run.rows as usize);
                rest = behind;
                let here = here.iter().filter(|slot| **slot != NONE);
                here.for_each(|slot| self.columns.note(which, *slot as usize, number));
            }
        }
        Ok(())
    }

    /// Batches of all groups with rows, each in one row. Users are numbered from `first_number` on.
    ///
    /// Errors: more memory than there may be; texts that are none.
    pub fn finish(mut self, first_number: u64) -> Result<Batches> {
        self.slots = Slots::Listed(Vec::new(), 0);
        self.known = HashTable::new();
        self.by_code = UsersByCode::default();
        if !self.range.is_all() {
            self.columns.remove_user(OTHERS);
        }
        self.memory.try_resize(self.bytes_used(0))?;
        let views: Vec<u128> = self.users.iter().map(|user| user.view).collect();
        let is_there = views.iter().map(|view| *view as u32 > 0);
        let nulls = NullBuffer::from_iter(is_there);
        let long = Buffer::from_vec(self.long);
        let labels = GroupLabels {
            first_number,
            texts: Arc::new(StringViewArray::try_new(views.into(), vec![long], Some(nulls))?),
            tenants: self.users.iter().map(|user| user.tenant).collect(),
            tenant_texts: Arc::clone(&self.layout.tenants),
            buckets: self.buckets,
            ranks: self.ranks,
            names: Arc::clone(&self.layout.names),
        };
        Ok(Batches::new(self.spec.clone(), self.columns, labels, self.memory))
    }
}

/// Whether so few rows are marked that they are better read alone.
fn is_few(marks: &[bool]) -> bool {
    marks.iter().filter(|mark| **mark).count() < marks.len() / FEW
}

/// The marked rows of a morsel.
fn rows_of_marks(morsel: &Morsel, marks: &[bool]) -> Morsel {
    let mut row_ranges = Vec::new();
    let mut marks = marks;
    for row_range in &morsel.row_ranges {
        let (here, behind) = marks.split_at(row_range.rows.len());
        marks = behind;
        let mut row = row_range.rows.start;
        for run in here.chunk_by(|one, other| one == other) {
            let rows = row..row + run.len() as u32;
            row = rows.end;
            if run.first() == Some(&true) {
                row_ranges.push(RowRange { series: row_range.series, rows });
            }
        }
    }
    Morsel { row_ranges }
}

/// The text of a view.
fn text_of<'a>(bytes: &'a [u8; 16], view: u128, long: &'a [u8]) -> &'a [u8] {
    let len = view as u32 as usize;
    let start = (view >> 96) as usize;
    let text = if len <= VIEW_BYTES { bytes.get(4..4 + len) } else { long.get(start..start + len) };
    text.unwrap_or_default()
}

/// The number of a source's tenant or event in the statement: `at` is the index of the source, `local` its own number.
fn number_of(numbers: &[Vec<u32>], at: usize, local: u32) -> Result<u32> {
    let number = numbers.get(at).and_then(|numbers| numbers.get(local as usize)).copied();
    let number = number.filter(|number| *number != NONE);
    number.ok_or_else(|| DataFusionError::Internal("a text without a number".to_owned()))
}
