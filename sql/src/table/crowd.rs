//! Groups by user of some tenants: users are numbered as they are met, and counted by their numbers.
//!
//! A segment's users are numbers of its own, so a text is looked up once a segment and not once a row; and those of few
//! tenants fit into the processor's caches.

use std::{collections::HashMap, hash::BuildHasher as _, sync::Arc};

use arrow::{
    array::{ArrayRef, StringViewArray, make_view},
    buffer::{Buffer, NullBuffer},
};
use datafusion_common::{DataFusionError, Result, hash_utils::RandomState, resources_err};
use datafusion_execution::memory_pool::MemoryReservation;
use hashbrown::HashTable;
use inlay_engine::rows::{Column, Source, Stretch, TimeBuckets, Unit, Values};

use super::{
    distinct::Distinct,
    errors::broken,
    found::{Batches, Found, People, Place},
    wanted::{Key, Ranks, Wanted},
};

/// No number: of a row that is left out, of what is not met yet.
const NONE: u32 = u32::MAX;
/// Numbers in lists of a chunk, at most, and how many lists: where users could have more groups than that, these are found
/// by their hashes.
const LISTED_MAX: usize = if cfg!(test) { 3_000 } else { 4 << 20 };
const LISTS_MAX: usize = 4_096;
/// Bytes of a text that its view has room for.
const VIEW_BYTES: usize = 12;

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
    /// How finely times have to be known.
    pub finest: TimeBuckets,
}

/// Users of some tenants, and their groups so far.
pub struct Crowd<'a> {
    wanted: &'a Wanted,
    layout: &'a Layout,
    memory: MemoryReservation,
    hasher: RandomState,
    /// Users by their tenants and texts.
    known: HashTable<Entry>,
    users: Vec<User>,
    by_place: ByPlace,
    /// Texts that are too long for a view, end to end.
    long: Vec<u8>,
    places: Vec<Place>,
    /// String properties by whose ranks groups are told apart: a place has a number for each of their combinations.
    ranks: Ranks,
    /// Places by what they are, and the one that was met last.
    place_numbers: HashMap<Place, usize, RandomState>,
    last: Option<(Place, usize)>,
    slots: Slots,
    found: Found,
}

/// A user in the table: half of its hash, which tells nearly all apart, and its number.
#[derive(Clone, Copy)]
struct Entry {
    hash: u32,
    user: u32,
}

/// A tenant's user. A text of up to twelve bytes is in its view, which is Arrow's.
#[derive(Clone, Copy)]
struct User {
    view: u128,
    tenant: u32,
}

/// Users of one source by their places there, as far as they were met: units of a source follow each other.
#[derive(Default)]
struct ByPlace {
    source: usize,
    /// The place of the first in the list.
    first: u32,
    users: Vec<u32>,
}

impl ByPlace {
    /// Makes the list long enough for users of a source, of which 0 is nobody and n has the place n - 1.
    fn make_room(&mut self, source: usize, users: &[u32]) {
        let places = users.iter().filter_map(|user| user.checked_sub(1));
        let (first, last) =
            places.fold((u32::MAX, 0), |(first, last), place| (first.min(place), last.max(place)));
        if first > last {
            return;
        }
        if self.source != source || self.users.is_empty() {
            (self.source, self.first) = (source, first);
            self.users.clear();
        }
        if first < self.first {
            let more = (self.first - first) as usize;
            self.users.splice(0..0, std::iter::repeat_n(NONE, more));
            self.first = first;
        }
        let len = (last - self.first) as usize + 1;
        self.users.resize(self.users.len().max(len), NONE);
    }
}

/// Where the group of a user and a place is.
enum Slots {
    /// By place, then by user; and how many numbers that are.
    Listed(Vec<Vec<u32>>, usize),
    /// By their hashes.
    Hashed(HashTable<u32>),
}

impl<'a> Crowd<'a> {
    /// Nobody yet. What it takes is counted as `memory`.
    ///
    /// Errors: damage of a segment.
    pub fn new(wanted: &'a Wanted, layout: &'a Layout, memory: MemoryReservation) -> Result<Self> {
        Ok(Self {
            wanted,
            layout,
            memory,
            hasher: RandomState::default(),
            known: HashTable::new(),
            users: Vec::new(),
            by_place: ByPlace::default(),
            long: Vec::new(),
            places: Vec::new(),
            ranks: wanted.ranks()?,
            place_numbers: HashMap::default(),
            last: None,
            slots: Slots::Listed(Vec::new(), 0),
            found: Found::new(wanted),
        })
    }

    /// Bytes that are taken, and those that so many more rows may take.
    fn bytes_used(&self, more: usize) -> usize {
        let texts = self.long.capacity() + self.by_place.users.capacity() * size_of::<u32>();
        let users = self.users.capacity() * (size_of::<User>() + size_of::<u128>());
        let slots = match &self.slots {
            Slots::Listed(_, listed) => listed * size_of::<u32>(),
            Slots::Hashed(slots) => slots.allocation_size(),
        };
        let of_row = self.found.group_bytes() + 2 * size_of::<User>() + 4 * size_of::<u64>();
        let found = self.found.len() * self.found.group_bytes();
        // In the list and in the table.
        let places = self.places.capacity() * 3 * size_of::<Place>();
        places + texts + users + self.known.allocation_size() + slots + found + more * of_row
    }

    /// The number of a tenant's user.
    fn user(&mut self, tenant: u32, text: &[u8]) -> Result<u32> {
        let hash = self.hasher.hash_one((tenant, text));
        let view = make_view(text, 0, self.long.len() as u32);
        let is_it = |entry: &Entry| {
            let User { view: known, tenant: of } = self.users[entry.user as usize];
            // Of a long text a view has the length, the first bytes and the place.
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
            // Places in lists of strings have 31 bits.
            if self.long.len() + text.len() > i32::MAX as usize {
                return resources_err!("a tenant's user ids take too much memory");
            }
            self.long.extend_from_slice(text);
        }
        let user = self.users.len() as u32;
        self.users.push(User { view, tenant });
        let (users, long, hasher) = (&self.users, &self.long, &self.hasher);
        let rehash = |entry: &Entry| {
            let User { view, tenant } = users[entry.user as usize];
            hasher.hash_one((tenant, text_of(&view.to_le_bytes(), view, long)))
        };
        self.known.insert_unique(hash, Entry { hash: hash as u32, user }, rehash);
        Ok(user)
    }

    /// The user of each row of a unit; none where it is left out.
    fn users(
        &mut self,
        at: usize,
        source: &Source,
        unit: &Unit,
        marks: Option<&[bool]>,
    ) -> Result<Vec<u32>> {
        let (places, texts) =
            (source.users(unit).map_err(broken)?, source.user_texts().map_err(broken)?);
        let Some((places, (mut texts, _))) = places.zip(texts) else {
            return self.users_of_texts(at, source, unit, marks);
        };
        self.by_place.make_room(at, &places);
        let mut users = Vec::with_capacity(places.len());
        for strip in &unit.strips {
            let series = source.series().get(strip.series);
            let tenant = series.map_or(0, |series| series.tenant);
            let tenant = number_of(&self.layout.tenant_numbers, at, tenant)?;
            let mut nobody = NONE;
            for _ in strip.rows.clone() {
                let row = users.len();
                if marks.is_some_and(|marks| !marks[row]) {
                    users.push(NONE);
                    continue;
                }
                let Some(place) = places[row].checked_sub(1) else {
                    if nobody == NONE {
                        nobody = self.user(tenant, &[])?;
                    }
                    users.push(nobody);
                    continue;
                };
                let slot = (place - self.by_place.first) as usize;
                let mut user = self.by_place.users[slot];
                if user == NONE {
                    user = self.user(tenant, texts.at(place as usize).map_err(broken)?)?;
                    self.by_place.users[slot] = user;
                }
                users.push(user);
            }
        }
        Ok(users)
    }

    /// The same where users have no places.
    fn users_of_texts(
        &mut self,
        at: usize,
        source: &Source,
        unit: &Unit,
        marks: Option<&[bool]>,
    ) -> Result<Vec<u32>> {
        let Values::Texts(texts) = source.read(unit, &Column::User).map_err(broken)? else {
            return Err(DataFusionError::Internal("users are no texts".to_owned()));
        };
        let mut users = Vec::with_capacity(unit.rows());
        for strip in &unit.strips {
            let series = source.series().get(strip.series);
            let tenant = series.map_or(0, |series| series.tenant);
            let tenant = number_of(&self.layout.tenant_numbers, at, tenant)?;
            for _ in strip.rows.clone() {
                let row = users.len();
                users.push(match marks.is_some_and(|marks| !marks[row]) {
                    true => NONE,
                    false => self.user(tenant, texts.at(row))?,
                });
            }
        }
        Ok(users)
    }

    /// The first number of a place.
    ///
    /// Errors: when numbers would be too large.
    fn place(&mut self, place: Place) -> Result<usize> {
        if let Some((last, at)) = self.last
            && last == place
        {
            return Ok(at);
        }
        let next = self.places.len() * self.ranks.combinations;
        if next + self.ranks.combinations > NONE as usize {
            return resources_err!("groups of users have too many times, events and texts");
        }
        let at = *self.place_numbers.entry(place).or_insert(next);
        self.last = Some((place, at));
        if at == next {
            self.places.push(place);
            if let Slots::Listed(lists, _) = &mut self.slots {
                lists.resize_with(next + self.ranks.combinations, Vec::new);
                if lists.len() > LISTS_MAX {
                    self.find_by_hash();
                }
            }
        }
        Ok(at)
    }

    /// Makes lists long enough for all users.
    fn list(&mut self, place: usize) {
        let Slots::Listed(lists, listed) = &mut self.slots else { return };
        let list = &mut lists[place];
        let missing = self.users.len().saturating_sub(list.len());
        if missing == 0 {
            return;
        }
        // They grow in steps, so that a list is not made anew for each strip.
        let len = self.users.len() + missing / 2;
        *listed += len - list.len();
        if *listed > LISTED_MAX {
            self.find_by_hash();
        } else {
            list.resize(len, NONE);
        }
    }

    fn find_by_hash(&mut self) {
        let (hasher, keys) = (&self.hasher, &self.found.keys);
        let hash = |slot: &u32| hasher.hash_one(keys[*slot as usize]);
        let mut slots = HashTable::with_capacity(keys.len());
        for slot in 0..keys.len() as u32 {
            slots.insert_unique(hash(&slot), slot, hash);
        }
        self.slots = Slots::Hashed(slots);
    }

    /// Where the group of a user and a place is, whose list is long enough if there are lists.
    fn slot(&mut self, user: u32, place: usize) -> usize {
        let next = self.found.len() as u32;
        let key = (user, place as u32);
        let slot = match &mut self.slots {
            Slots::Listed(lists, _) => {
                let slot = &mut lists[place][user as usize];
                if *slot == NONE {
                    *slot = next;
                }
                *slot
            }
            Slots::Hashed(slots) => {
                let (hasher, keys) = (&self.hasher, &self.found.keys);
                let hash = hasher.hash_one(key);
                let rehash = |slot: &u32| hasher.hash_one(keys[*slot as usize]);
                match slots.find(hash, |slot| keys[*slot as usize] == key) {
                    Some(slot) => *slot,
                    None => *slots.insert_unique(hash, next, rehash).get(),
                }
            }
        };
        if slot == next {
            self.found.push(key);
        }
        slot as usize
    }

    /// Adds the rows of a unit of a source, which stands there in the scan.
    ///
    /// Errors: damage of a segment; more memory than there may be.
    pub fn add(&mut self, at: usize, source: &Source, unit: &Unit) -> Result<()> {
        self.memory.try_resize(self.bytes_used(unit.rows()))?;
        let marks = source.passing(unit, &self.wanted.filter).map_err(broken)?;
        let stretches = source.stretches(unit, &self.layout.finest).map_err(broken)?;
        // Users, then where their groups are.
        let mut rows = self.users(at, source, unit, marks.as_deref())?;
        self.memory.try_resize(self.bytes_used(unit.rows()))?;
        let ranks = self.ranks.read(source, unit)?;
        let mut ranks = &*ranks;
        let mut rest = &mut *rows;
        let (by_name, buckets) = (self.wanted.has(&Key::Event), self.wanted.buckets());
        for stretch in &stretches {
            let name = source.series().get(stretch.series).map_or(0, |series| series.name);
            let place = (
                if by_name { number_of(&self.layout.name_numbers, at, name)? } else { 0 },
                buckets.start(stretch.start_ms),
            );
            let place = self.place(place)?;
            let (here, behind) = rest.split_at_mut(stretch.rows as usize);
            rest = behind;
            let ranks_here;
            (ranks_here, ranks) = ranks.split_at_checked(here.len()).unwrap_or_default();
            if ranks_here.is_empty() {
                self.list(place);
            }
            let mut ranks = ranks_here.iter();
            for row in here.iter_mut() {
                let rank = ranks.next();
                if *row == NONE {
                    continue;
                }
                let place = place + rank.map_or(0, |rank| *rank as usize);
                if rank.is_some() {
                    self.list(place);
                }
                let slot = self.slot(*row, place);
                self.found.count(slot, stretch.start_ms);
                *row = slot as u32;
            }
        }
        for (at, measure) in self.wanted.measures.iter().enumerate() {
            let values = measure.read(source, unit)?;
            let slots = rows.iter().zip(values).filter(|(slot, _)| **slot != NONE);
            slots.for_each(|(slot, value)| self.found.add(at, *slot as usize, value));
        }
        self.note_distinct(at, source, unit, &stretches, &rows)
    }

    /// Notes what is counted once of the rows of a unit, whose groups are known.
    fn note_distinct(
        &mut self,
        at: usize,
        source: &Source,
        unit: &Unit,
        stretches: &[Stretch],
        slots: &[u32],
    ) -> Result<()> {
        for (which, distinct) in self.wanted.distinct.iter().enumerate() {
            if let Distinct::Texts { order, .. } = distinct {
                let ranks = order.read(source, unit)?;
                let known =
                    slots.iter().zip(ranks).filter(|(slot, rank)| **slot != NONE && !rank.is_nan());
                known
                    .for_each(|(slot, rank)| self.found.note(which, *slot as usize, rank as usize));
                continue;
            }
            let mut rest = slots;
            for stretch in stretches {
                let number = match distinct {
                    Distinct::Starts { grain, first_ms, .. } => {
                        let steps = (grain.start(stretch.start_ms) - first_ms) / grain.step_ms();
                        usize::try_from(steps).unwrap_or(usize::MAX)
                    }
                    Distinct::Events { .. } | Distinct::Texts { .. } => {
                        let name =
                            source.series().get(stretch.series).map_or(0, |series| series.name);
                        number_of(&self.layout.name_numbers, at, name)? as usize
                    }
                };
                let (here, behind) = rest.split_at(stretch.rows as usize);
                rest = behind;
                let here = here.iter().filter(|slot| **slot != NONE);
                here.for_each(|slot| self.found.note(which, *slot as usize, number));
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
        self.by_place = ByPlace::default();
        self.memory.try_resize(self.bytes_used(0))?;
        let views: Vec<u128> = self.users.iter().map(|user| user.view).collect();
        let is_there = views.iter().map(|view| *view as u32 > 0);
        let nulls = NullBuffer::from_iter(is_there);
        let long = Buffer::from_vec(self.long);
        let people = People {
            first_number,
            texts: Arc::new(StringViewArray::try_new(views.into(), vec![long], Some(nulls))?),
            tenants: self.users.iter().map(|user| user.tenant).collect(),
            tenant_texts: Arc::clone(&self.layout.tenants),
            places: self.places,
            ranks: self.ranks,
            names: Arc::clone(&self.layout.names),
        };
        Ok(Batches::new(self.wanted.clone(), self.found, people, self.memory))
    }
}

/// The text of a view.
fn text_of<'a>(bytes: &'a [u8; 16], view: u128, long: &'a [u8]) -> &'a [u8] {
    let len = view as u32 as usize;
    let start = (view >> 96) as usize;
    let text = if len <= VIEW_BYTES { bytes.get(4..4 + len) } else { long.get(start..start + len) };
    text.unwrap_or_default()
}

fn number_of(numbers: &[Vec<u32>], at: usize, local: u32) -> Result<u32> {
    let number = numbers.get(at).and_then(|numbers| numbers.get(local as usize)).copied();
    let number = number.filter(|number| *number != NONE);
    number.ok_or_else(|| DataFusionError::Internal("a text without a number".to_owned()))
}
