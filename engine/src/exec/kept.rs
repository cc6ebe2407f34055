//! What queries have read or found, kept for the next ones within a bound: dictionaries, users' hashes and
//! numbers, and in which segments a series is.
//!
//! Segments never change, so nothing here is ever out of date; what belongs to a segment that is
//! gone is not asked for again and makes room for others.

use std::sync::Arc;

use quick_cache::{Weighter, sync::Cache};

use super::{budget::Charge, users::UserNumbers};
use crate::{
    encode::{BLOCK_ROWS, text::TextList},
    error::Result,
    event::Namespace,
    query::Query,
    segment::{Dictionary, Segment, TextReader},
    store::Segments,
};

/// Bytes of an entry besides its content.
const ENTRY_BYTES: usize = 128;
/// Blocks of a dictionary up to which one look-up reads all of it.
const LOOKED_UP_BLOCKS: usize = 2;
/// What a typical entry takes, for the size of the look-up.
const TYPICAL_BYTES: usize = 4_096;

/// What an entry is of.
#[derive(Clone, PartialEq, Eq, Hash)]
enum Key {
    /// A section of a segment.
    Section(uuid::Uuid, usize),
    /// The users of a tenant in a segment.
    Users(uuid::Uuid, usize),
    /// Their numbers.
    Numbers(uuid::Uuid, usize),
    /// The numbers of all users of a tenant.
    Tenant(Namespace, Box<str>),
    /// Where a series stands in a list of segments.
    Series(u64, Namespace, Box<str>, Box<str>),
}

#[derive(Clone)]
enum Entry {
    Texts(Arc<Dictionary>),
    Users(Arc<[u128]>),
    /// By the list with this id.
    Numbers(u64, Arc<[u32]>),
    /// With the bytes that it took when it was put here.
    Tenant(Arc<UserNumbers>, usize),
    Series(Arc<[Part]>),
}

/// A segment that has rows of a series.
#[derive(Debug, Clone, Copy)]
pub struct Part {
    /// Which of the segments.
    pub segment: u32,
    /// Which of its runs.
    pub run: u32,
    /// Earliest and latest of the rows.
    pub bounds: (i64, i64),
    /// How many rows there are.
    pub rows: u32,
    /// Whether they are rolled up.
    pub rolled_up: bool,
}

/// A segment's users, with the block that was read last: who goes through many tenants reads each once.
#[derive(Default)]
pub struct UserReader {
    block: Option<(usize, TextList)>,
}

impl UserReader {
    /// Hashes of the users of a tenant.
    fn hashes(&mut self, segment: &Segment, tenant: usize) -> Result<Vec<u128>> {
        let users = segment.tenants().users(tenant);
        let mut hashes = Vec::with_capacity(users.len());
        for at in users {
            let index = at / BLOCK_ROWS;
            let block = match &mut self.block {
                Some((open, block)) if *open == index => block,
                other => &mut other.insert((index, segment.users(index)?)).1,
            };
            hashes.push(segment.user_hash(block.at(at % BLOCK_ROWS)));
        }
        Ok(hashes)
    }
}

impl Entry {
    fn tenant(numbers: &Arc<UserNumbers>) -> Self {
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
            }
    }
}

#[derive(Clone)]
struct Bytes;

impl Weighter<Key, Entry> for Bytes {
    fn weight(&self, _: &Key, entry: &Entry) -> u64 {
        entry.bytes() as u64
    }
}

/// What is kept.
pub struct Kept {
    entries: Cache<Key, Entry, Bytes>,
}

impl Kept {
    /// Keeps up to `bytes_max`.
    pub fn new(bytes_max: usize) -> Self {
        let entries = Cache::with_weighter(bytes_max / TYPICAL_BYTES, bytes_max as u64, Bytes);
        Self { entries }
    }

    /// Bytes that are kept.
    pub fn bytes(&self) -> u64 {
        self.entries.weight()
    }

    /// Where the rows of a tenant's event are: every question asks, and most tenants are not in most
    /// segments.
    pub fn series(&self, segments: &Segments, query: &Query, tenant: &str) -> Arc<[Part]> {
        let (tenant_key, event) = (Box::from(tenant), Box::from(&*query.event));
        let key = Key::Series(segments.id(), query.namespace, tenant_key, event);
        if let Some(Entry::Series(parts)) = self.entries.get(&key) {
            return parts;
        }
        let mut parts = Vec::new();
        for (at, segment) in (0..).zip(segments) {
            let runs = segment.runs().runs();
            for run in segment.runs().positions_of(query.namespace, Some(tenant)) {
                let found = runs.get(run).filter(|found| *found.key.name == *query.event);
                parts.extend(found.map(|found| Part {
                    segment: at,
                    run: run as u32,
                    bounds: (found.ts_min, found.ts_max),
                    rows: found.rows,
                    rolled_up: segment.rollup_of(run).is_some(),
                }));
            }
        }
        let parts: Arc<[Part]> = parts.into();
        self.entries.insert(key, Entry::Series(Arc::clone(&parts)));
        parts
    }

    /// The dictionary of a string property. What has to be read is charged to the query: it may be
    /// too large to be kept.
    pub fn dictionary(
        &self,
        reader: &TextReader<'_>,
        charge: &mut Charge,
    ) -> Result<Arc<Dictionary>> {
        let key = section_of(reader);
        if let Some(Entry::Texts(dictionary)) = self.entries.get(&key) {
            return Ok(dictionary);
        }
        let dictionary = Arc::new(reader.dictionary()?);
        let entry = Entry::Texts(Arc::clone(&dictionary));
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
        let key = Key::Users(segment.meta().uuid, tenant);
        if let Some(Entry::Users(hashes)) = self.entries.get(&key) {
            return Ok(hashes);
        }
        charge.add(segment.tenants().users(tenant).len() * size_of::<u128>() + ENTRY_BYTES)?;
        let hashes: Arc<[u128]> = reader.hashes(segment, tenant)?.into();
        self.entries.insert(key, Entry::Users(Arc::clone(&hashes)));
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
        let key = Key::Numbers(segment.meta().uuid, tenant);
        if asked.tenant.is_some()
            && let Some(Entry::Numbers(id, numbers)) = self.entries.get(&key)
            && id == asked.numbers.id()
        {
            return Ok(numbers);
        }
        let hashes = reader.hashes(segment, tenant)?;
        let mut numbers = Vec::with_capacity(hashes.len());
        let grown = asked.numbers.number(hashes.into_iter(), &mut numbers);
        let numbers: Arc<[u32]> = numbers.into();
        charge.add(grown + size_of_val(&*numbers) + ENTRY_BYTES)?;
        if let Some(tenant) = &asked.tenant {
            self.entries.insert(key, Entry::Numbers(asked.numbers.id(), Arc::clone(&numbers)));
            if grown > 0 {
                // Once more, for it weighs more now.
                self.entries.insert(tenant.clone(), Entry::tenant(&asked.numbers));
            }
        }
        Ok(numbers)
    }

    /// The list of numbers for a query about users: a tenant's own, which others use too, or a new one.
    pub fn asked_users(&self, namespace: Namespace, tenant: Option<&str>) -> AskedUsers {
        let tenant = tenant.map(|tenant| Key::Tenant(namespace, tenant.into()));
        let known = tenant.as_ref().and_then(|key| self.entries.get(key));
        if let Some(Entry::Tenant(numbers, _)) = known {
            return AskedUsers { tenant, numbers };
        }
        let numbers = Arc::<UserNumbers>::default();
        if let Some(key) = &tenant {
            self.entries.insert(key.clone(), Entry::tenant(&numbers));
        }
        AskedUsers { tenant, numbers }
    }
}

/// Whose users a query counts, and their numbers.
pub struct AskedUsers {
    tenant: Option<Key>,
    /// The list.
    pub numbers: Arc<UserNumbers>,
}

fn section_of(reader: &TextReader<'_>) -> Key {
    let (segment, section) = reader.key();
    Key::Section(segment, section)
}
