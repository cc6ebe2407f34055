//! The cache that queries share, bounded in bytes: dictionaries, hashes and numbers of users, the
//! segments of each series, and partial results (`partial_cache.rs`).
//!
//! Segments never change, so no entry is ever out of date; an entry of a segment that is gone is
//! not looked up again and gets evicted.

use std::{
    collections::{BTreeMap, HashMap},
    sync::Arc,
};

use parking_lot::Mutex;

use quick_cache::{
    DefaultHashBuilder, OptionsBuilder, Weighter,
    sync::{Cache, DefaultLifecycle},
};

use super::{
    budget::Charge,
    partial_cache::{TABLE_BYTES_MAX, Table},
    user_interner::UserInterner,
};
use crate::{
    error::Result,
    event::Namespace,
    query::Query,
    segment::{Dictionary, Run, RunDay, Segment, TextReader, UserReader},
    store::Segments,
};

/// Bytes of an entry besides its content.
const ENTRY_BYTES: usize = 128;
/// Blocks of a dictionary up to which one look-up reads all of it.
const LOOKED_UP_BLOCKS: usize = 2;
/// One part in so many of the capacity is for lists of users.
const LISTS: usize = 4;
/// Bytes of a typical entry, for the initial size of the hash table.
const TYPICAL_BYTES: usize = 4_096;

/// The object that an entry caches.
#[derive(Clone, PartialEq, Eq, Hash)]
enum CacheKey {
    /// A section of a segment.
    Section(uuid::Uuid, usize),
    /// The users of a tenant in a segment.
    Users(uuid::Uuid, usize),
    /// The same users by their numbers.
    Numbers(uuid::Uuid, usize),
    /// The numbers of all users of a tenant.
    Tenant(Namespace, Box<str>),
    /// Where a series stands in a list of segments, or the series of an event with all tenants.
    Series(u64, Namespace, Option<Box<str>>, Box<str>),
    /// Partial results of a query, by its key from `partial_cache`.
    PartialReuse(Arc<[u8]>),
}

#[derive(Clone)]
enum CacheEntry {
    Texts(Arc<Dictionary>),
    Users(Arc<[u128]>),
    /// Numbers from the interner with this id.
    Numbers(u64, Arc<[u32]>),
    /// With the bytes that the list took when it was inserted.
    Tenant(Arc<UserInterner>, usize),
    Series(Arc<[Part]>),
    PartialReuse(Arc<Table>),
}

/// Rows of a series, or of an event with all tenants, in a segment: those of one day where rollups are kept, else all.
#[derive(Debug, Clone, Copy)]
pub struct Part {
    /// Which of the segments.
    pub segment: u32,
    /// The first of its runs that may be asked for, and the one behind the last.
    pub runs: (u32, u32),
    /// The day; `None` for all days of series that have no rollups: together they are read at once.
    pub day: Option<PartDay>,
    /// A time that none of the rows is before, and one that none is after.
    pub bounds: (i64, i64),
    /// How many rows there are.
    pub rows: u64,
    /// Rows among them of series that have no rollups.
    pub rows_without_rollup: u64,
}

/// A day of a series, or of an event with all tenants, in a segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PartDay {
    /// The day since 1970.
    pub day: i64,
    /// Number of days with rows of the series, or event, before it in the segment.
    pub ordinal: usize,
}

impl Part {
    /// The parts of the segment at `at` for an event, in the order of their days; `tenant` is `None` for all of
    /// the namespace.
    pub fn list(
        segment: &Segment,
        at: u32,
        namespace: Namespace,
        tenant: Option<&str>,
        event: &str,
    ) -> Vec<Self> {
        let positions = segment.runs().positions_of(namespace, tenant);
        let listed = segment.runs().runs().get(positions.clone()).unwrap_or_default();
        let about = || {
            let runs = listed.iter().zip(positions.clone());
            runs.filter(|(run, _)| *run.key.name == *event)
        };
        let is_by_day = tenant.is_none() && segment.rollup_of_event(namespace, event).is_some()
            || about().any(|(_, position)| segment.rollup_of(position).is_some());
        let mut parts: BTreeMap<Option<i64>, Self> = BTreeMap::new();
        for (run, position) in about() {
            let is_rolled_up = segment.rollup_of(position).is_some();
            let position = position as u32;
            let mut add = |day: Option<i64>, of_run: &RunDay<'_>| {
                let rows = of_run.rows.len() as u64;
                let part = parts.entry(day).or_insert(Self {
                    segment: at,
                    runs: (position, position + 1),
                    day: day.map(|day| PartDay { day, ordinal: 0 }),
                    bounds: of_run.bounds,
                    rows: 0,
                    rows_without_rollup: 0,
                });
                part.runs.1 = position + 1;
                part.bounds.0 = part.bounds.0.min(of_run.bounds.0);
                part.bounds.1 = part.bounds.1.max(of_run.bounds.1);
                part.rows += rows;
                part.rows_without_rollup += if is_rolled_up { 0 } else { rows };
            };
            match is_by_day {
                true => run.by_day().for_each(|day| add(Some(day.day), &day)),
                false => add(None, &run.whole()),
            }
        }
        let mut parts: Vec<Self> = parts.into_values().collect();
        for (part, ordinal) in parts.iter_mut().zip(0..) {
            part.day = part.day.map(|day| PartDay { ordinal, ..day });
        }
        parts
    }

    /// The rows of one of its runs.
    pub fn rows_of<'r>(&self, run: &'r Run) -> Option<RunDay<'r>> {
        match self.day {
            Some(PartDay { day, .. }) => run.on_day(day),
            None => Some(run.whole()),
        }
    }
}

impl CacheKey {
    /// Bytes of the names in it.
    fn bytes(&self) -> usize {
        match self {
            Self::Section(..) | Self::Users(..) | Self::Numbers(..) => 0,
            Self::Tenant(_, tenant) => tenant.len(),
            Self::Series(_, _, tenant, event) => {
                tenant.as_ref().map_or(0, |tenant| tenant.len()) + event.len()
            }
            Self::PartialReuse(question) => question.len(),
        }
    }
}

impl CacheEntry {
    fn tenant(numbers: &Arc<UserInterner>) -> Self {
        Self::Tenant(Arc::clone(numbers), numbers.bytes())
    }

    fn bytes(&self) -> usize {
        ENTRY_BYTES
            + match self {
                Self::Texts(dictionary) => dictionary.bytes_used(),
                Self::Users(hashes) => size_of_val(&**hashes),
                Self::Numbers(_, numbers) => size_of_val(&**numbers),
                Self::Tenant(_, bytes) => *bytes,
                Self::Series(parts) => size_of_val(&**parts),
                Self::PartialReuse(table) => table.bytes(),
            }
    }
}

#[derive(Clone)]
struct CacheBytes;

impl Weighter<CacheKey, CacheEntry> for CacheBytes {
    fn weight(&self, key: &CacheKey, entry: &CacheEntry) -> u64 {
        (key.bytes() + entry.bytes()) as u64
    }
}

type Entries = Cache<CacheKey, CacheEntry, CacheBytes>;

/// A bounded cache that all queries of an engine share.
pub struct QueryCache {
    entries: Entries,
    /// The lists of tenants' users, which are few and may be large.
    lists: Arc<Entries>,
    list_bytes_max: usize,
}

impl QueryCache {
    /// A cache of up to `bytes_max` bytes.
    pub fn new(bytes_max: usize) -> Self {
        let for_lists = bytes_max / LISTS;
        let for_entries = bytes_max - for_lists;
        let entries =
            Cache::with_weighter(for_entries / TYPICAL_BYTES, for_entries as u64, CacheBytes);
        // Each shard has its part of the room, and a list may need most of it.
        let options = OptionsBuilder::new()
            .shards(1)
            .estimated_items_capacity(for_lists / TYPICAL_BYTES)
            .weight_capacity(for_lists as u64)
            .build()
            .unwrap_or_else(|_| unreachable!("both capacities are given"));
        let (hasher, life) = (DefaultHashBuilder::default(), DefaultLifecycle::default());
        let lists = Arc::new(Cache::with_options(options, CacheBytes, hasher, life));
        Self { entries, lists, list_bytes_max: for_lists - for_lists / 8 }
    }

    /// Bytes of all entries.
    pub fn bytes(&self) -> u64 {
        self.entries.weight() + self.lists.weight()
    }

    /// Number of look-ups that found an entry, and that found none, since the start.
    pub fn hits_and_misses(&self) -> (u64, u64) {
        let caches = [&self.entries, &self.lists];
        let sum = |of: fn(&Entries) -> u64| caches.iter().map(|cache| of(cache)).sum();
        (sum(Cache::hits), sum(Cache::misses))
    }

    /// Where the rows of a question's series are: every question asks, and most tenants are not in most
    /// segments.
    pub fn series(&self, segments: &Segments, query: &Query) -> Arc<[Part]> {
        let tenant = query.tenant.as_deref();
        let key = CacheKey::Series(
            segments.id(),
            query.namespace,
            tenant.map(Box::from),
            Box::from(&*query.event),
        );
        if let Some(CacheEntry::Series(parts)) = self.entries.get(&key) {
            return parts;
        }
        let mut parts = Vec::new();
        for (at, segment) in (0..).zip(segments) {
            parts.extend(Part::list(segment, at, query.namespace, tenant, &query.event));
        }
        let parts: Arc<[Part]> = parts.into();
        self.entries.insert(key, CacheEntry::Series(Arc::clone(&parts)));
        parts
    }

    /// Cached partial results by the key that `partial_cache::cache_key` gives.
    pub fn partials(&self, question: &Arc<[u8]>) -> Option<Arc<Table>> {
        match self.entries.get(&CacheKey::PartialReuse(Arc::clone(question))) {
            Some(CacheEntry::PartialReuse(table)) => Some(table),
            _ => None,
        }
    }

    /// Bytes that a table may have, so that there is room for it.
    pub fn table_bytes_max(&self) -> usize {
        let room = usize::try_from(self.entries.shard_capacity()).unwrap_or(usize::MAX);
        TABLE_BYTES_MAX.min(room / 2)
    }

    /// Caches partial results under the key of their query.
    pub fn keep_partials(&self, question: Arc<[u8]>, table: Arc<Table>) {
        self.entries.insert(CacheKey::PartialReuse(question), CacheEntry::PartialReuse(table));
    }

    /// The dictionary of a string property. Reading one is charged to the query: it may be too
    /// large to be cached.
    pub fn dictionary(
        &self,
        reader: &TextReader<'_>,
        charge: &mut Charge,
    ) -> Result<Arc<Dictionary>> {
        let key = section_of(reader);
        if let Some(CacheEntry::Texts(dictionary)) = self.entries.get(&key) {
            return Ok(dictionary);
        }
        let dictionary = Arc::new(reader.dictionary()?);
        let entry = CacheEntry::Texts(Arc::clone(&dictionary));
        charge.add(entry.bytes())?;
        self.entries.insert(key, entry);
        Ok(dictionary)
    }

    /// The code of a value. A large dictionary is not read as a whole for that.
    pub fn code_of(
        &self,
        reader: &TextReader<'_>,
        value: &str,
        charge: &mut Charge,
    ) -> Result<Option<u32>> {
        if reader.value_blocks()? > LOOKED_UP_BLOCKS
            && self.entries.peek(&section_of(reader)).is_none()
        {
            return reader.code_of(value);
        }
        Ok(self.dictionary(reader, charge)?.code_of(value))
    }

    /// The hashes of a tenant's users in a segment.
    pub fn users(
        &self,
        segment: &Segment,
        tenant: usize,
        reader: &mut UserReader,
        charge: &mut Charge,
    ) -> Result<Arc<[u128]>> {
        let key = CacheKey::Users(segment.meta().uuid, tenant);
        if let Some(CacheEntry::Users(hashes)) = self.entries.get(&key) {
            return Ok(hashes);
        }
        let hashes: Arc<[u128]> =
            reader.hashes(segment, tenant, &mut |bytes| charge.add(bytes))?.into();
        self.entries.insert(key, CacheEntry::Users(Arc::clone(&hashes)));
        Ok(hashes)
    }

    /// The numbers of a tenant's users in a segment, from the list for which the query asks.
    pub fn user_numbers(
        &self,
        segment: &Segment,
        tenant: usize,
        asked: &AskedUsers,
        reader: &mut UserReader,
        charge: &mut Charge,
    ) -> Result<Arc<[u32]>> {
        let key = CacheKey::Numbers(segment.meta().uuid, tenant);
        if asked.is_kept()
            && let Some(CacheEntry::Numbers(id, numbers)) = self.entries.get(&key)
            && id == asked.numbers.id()
        {
            return Ok(numbers);
        }
        if let Some(numbers) = asked.of_query.lock().get(&key) {
            return Ok(Arc::clone(numbers));
        }
        // Numbers of a list that ends with the query are of no use to the next one, but hashes are.
        let (kept, read);
        let hashes = if asked.is_kept() {
            read = reader.hashes(segment, tenant, &mut |bytes| charge.add(bytes))?;
            &*read
        } else {
            kept = self.users(segment, tenant, reader, charge)?;
            &*kept
        };
        let mut numbers = Vec::with_capacity(hashes.len());
        let grown = asked.numbers.number(hashes.iter().copied(), &mut numbers);
        charge.add(grown)?;
        let numbers: Arc<[u32]> = numbers.into();
        if asked.is_kept() {
            self.entries.insert(key, CacheEntry::Numbers(asked.numbers.id(), Arc::clone(&numbers)));
        } else {
            // A segment of many days is asked for each of them.
            charge.add(ENTRY_BYTES + size_of_val(&*numbers))?;
            asked.of_query.lock().insert(key, Arc::clone(&numbers));
        }
        Ok(numbers)
    }

    /// The list of numbers for a query about users: a tenant's own, which others use too, or a new one.
    pub fn asked_users(&self, namespace: Namespace, tenant: Option<&str>) -> AskedUsers {
        let tenant = tenant.map(|tenant| CacheKey::Tenant(namespace, tenant.into()));
        let known = tenant.as_ref().and_then(|key| self.lists.get(key));
        let numbers = match known {
            Some(CacheEntry::Tenant(numbers, _)) => numbers,
            _ => Arc::default(),
        };
        let lists = Arc::clone(&self.lists);
        let bytes_max = self.list_bytes_max;
        let asked = AskedUsers { tenant, numbers, lists, bytes_max, of_query: Arc::default() };
        asked.keep();
        asked
    }
}

/// The users that a query counts, by number.
#[derive(Clone)]
pub struct AskedUsers {
    tenant: Option<CacheKey>,
    /// The numbers of the users; shared by all queries about the tenant if there is one.
    pub numbers: Arc<UserInterner>,
    lists: Arc<Entries>,
    bytes_max: usize,
    /// The numbers of users in segments, where the list ends with the query.
    of_query: Arc<Mutex<HashMap<CacheKey, Arc<[u32]>>>>,
}

impl AskedUsers {
    /// Whether the list is cached after the query.
    pub fn is_kept(&self) -> bool {
        self.tenant.is_some() && self.numbers.bytes() <= self.bytes_max
    }

    /// Inserts the list into the cache with its present weight, unless it is there already.
    fn keep(&self) {
        let Some(key) = &self.tenant else { return };
        if let Some(CacheEntry::Tenant(numbers, bytes)) = self.lists.peek(key)
            && (bytes >= self.numbers.bytes() || !Arc::ptr_eq(&numbers, &self.numbers))
        {
            return;
        }
        if self.is_kept() {
            self.lists.insert(key.clone(), CacheEntry::tenant(&self.numbers));
        } else {
            self.lists.remove(key);
        }
    }
}

/// A list grows while it is used, also by a query that is refused in the end.
impl Drop for AskedUsers {
    fn drop(&mut self) {
        self.keep();
    }
}

fn section_of(reader: &TextReader<'_>) -> CacheKey {
    let (segment, section) = reader.key();
    CacheKey::Section(segment, section)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_of_users_weighs_what_it_has_grown_to() {
        let kept = QueryCache::new(1 << 20);
        let ask = || kept.asked_users(Namespace(1), Some("acme"));
        let asked = ask();
        let before = kept.bytes();
        asked.numbers.number((1u64..=1_000).map(u128::from), &mut Vec::new());
        drop(asked);
        assert!(kept.bytes() >= before + 40_000, "{before} and {}", kept.bytes());
        assert_eq!(ask().numbers.count(), 1_000, "the next query knows them");
        assert_eq!(kept.asked_users(Namespace(1), None).numbers.count(), 0);
        // A list that is too large for the room is not kept, and not accounted for.
        ask().numbers.number((1u64..=10_000).map(u128::from), &mut Vec::new());
        assert!(kept.bytes() <= before, "{before} and {}", kept.bytes());
        assert_eq!(ask().numbers.count(), 0);
    }

    #[test]
    fn names_that_are_asked_for_are_weighed() {
        let kept = QueryCache::new(1 << 20);
        let name = "n".repeat(10_000);
        for n in 0..1_000u64 {
            let event = format!("{name}{n}");
            let query =
                Query { tenant: Some("acme".into()), ..Query::count(Namespace(1), &event, 0..1) };
            assert!(kept.series(&Segments::default(), &query).is_empty());
            assert!(kept.bytes() <= 1 << 20);
            assert!(n > 9 || kept.bytes() >= (n + 1) * 10_000, "{n}: {}", kept.bytes());
        }
    }
}
