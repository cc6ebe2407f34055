//! Searching blocks of event ids: which rows have one of a few ids, without making the ids of all rows.
//!
//! Of bit-packed UUIDs a block has the bits in which they differ. An id that is looked for loses the bits that all of the
//! block have in common, or cannot be there, and what is left is compared with the packed numbers:
//!
//! ```text
//! block: common 00000000-0000-4000-8000-000000000000, varying …, lows 0x3d20… 0x91bf… 0x07aa…
//! wanted: 0000956e-e679-4568-8318-338e2aaf151e → low 0x91bf…, high 0x1a2 → row 1, once its high bits are equal, too
//! ```

#![cfg_attr(not(test), deny(clippy::indexing_slicing, clippy::unwrap_used))]

use std::{
    collections::{HashMap, HashSet},
    ops::Range,
};

use super::event_ids::{EventIds, PackedUuids, canonical_uuid, packed_strings};
use crate::{
    base::hash::MapHasher,
    encode::{VECTOR_ROWS, characters::PackedStrings},
    error::Result,
};

/// Bits of a [`Filter`]: 8 KiB, which a first-level cache takes easily.
const FILTER_BITS: usize = 1 << 16;

/// Event ids that are searched for: those of `event_id IN ('a', 'b')`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct EventIdSet {
    /// Those whose text is what printing a UUID gives, which blocks have as UUIDs.
    uuids: HashSet<u128, MapHasher>,
    texts: HashSet<Vec<u8>, MapHasher>,
}

impl<'a> FromIterator<&'a [u8]> for EventIdSet {
    /// Of the ids as their senders wrote them. An empty one is no id.
    fn from_iter<T: IntoIterator<Item = &'a [u8]>>(ids: T) -> Self {
        let mut set = Self::default();
        for id in ids.into_iter().filter(|id| !id.is_empty()) {
            set.uuids.extend(canonical_uuid(id).map(|uuid| uuid.as_u128()));
            set.texts.insert(id.to_vec());
        }
        set
    }
}

impl EventIdSet {
    /// Number of different ids.
    pub fn len(&self) -> usize {
        self.texts.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.texts.is_empty()
    }

    /// Whether an id as its sender wrote it is among them.
    pub fn contains(&self, id: &[u8]) -> bool {
        self.texts.contains(id)
    }

    /// Which rows of a block of `rows` rows have one of these ids: those in the ranges, one range after the other. For ranges
    /// `[4..6, 0..1]` the result has three entries: rows 4, 5 and 0.
    ///
    /// Errors: `Corrupt`, also for a range that ends behind the last row.
    pub fn rows_in(
        &self,
        block: &[u8],
        rows: usize,
        ranges: &[Range<usize>],
        place: &str,
    ) -> Result<Vec<bool>> {
        let is_within = ranges.iter().all(|range| range.start <= range.end && range.end <= rows);
        if is_within && self.is_empty() {
            return Ok(vec![false; ranges.iter().map(Range::len).sum()]);
        }
        if is_within && let Some(packed) = PackedUuids::of(block, rows, place)? {
            return Ok(self.rows_in_uuids(&packed, ranges));
        }
        if is_within && let Some(packed) = packed_strings(block, rows, place)? {
            return Ok(self.rows_in_strings(&packed, ranges));
        }
        Ok(match EventIds::read_some(block, rows, ranges, place)? {
            EventIds::None(rows) => vec![false; rows],
            EventIds::Uuids(bytes) => {
                let uuids = bytes.as_chunks().0.iter().map(|bytes| u128::from_be_bytes(*bytes));
                uuids.map(|uuid| self.uuids.contains(&uuid)).collect()
            }
            EventIds::Texts(texts) => texts.iter().map(|id| self.contains(id)).collect(),
        })
    }

    fn rows_in_uuids(&self, packed: &PackedUuids<'_>, ranges: &[Range<usize>]) -> Vec<bool> {
        let bits: HashSet<u128, MapHasher> =
            self.uuids.iter().filter_map(|uuid| packed.squeeze(*uuid)).collect();
        let filter = Filter::of(bits.iter().map(|bits| *bits as u64));
        let mut lows = [0; VECTOR_ROWS];
        marked(&filter, ranges, |rows, marks| {
            let (lows, _) = lows.split_at_mut(rows.len());
            packed.lows(rows.start, lows);
            for (row, low) in rows.zip(lows) {
                let low = *low as u64;
                marks.push(filter.may_have(low) && bits.contains(&packed.bits(row, low)));
            }
        })
    }

    fn rows_in_strings(&self, packed: &PackedStrings<'_>, ranges: &[Range<usize>]) -> Vec<bool> {
        let mut possible: HashMap<u64, Vec<&[u8]>, MapHasher> = HashMap::default();
        for id in &self.texts {
            let bits = packed.first_bits_of(id);
            bits.into_iter().for_each(|bits| possible.entry(bits).or_default().push(id));
        }
        let filter = Filter::of(possible.keys().copied());
        marked(&filter, ranges, |rows, marks| {
            for row in rows {
                let bits = packed.first_bits(row);
                let ids = filter.may_have(bits).then(|| possible.get(&bits)).flatten();
                marks.push(ids.is_some_and(|ids| ids.iter().any(|id| packed.is(row, id))));
            }
        })
    }
}

/// Of each row in ranges, whether `mark` says that it is searched for, which is asked a vector of rows after the other. None is
/// where the filter is of nothing.
fn marked(
    filter: &Filter,
    ranges: &[Range<usize>],
    mut mark: impl FnMut(Range<usize>, &mut Vec<bool>),
) -> Vec<bool> {
    let rows = ranges.iter().map(Range::len).sum();
    if filter.is_empty {
        return vec![false; rows];
    }
    let mut marks = Vec::with_capacity(rows);
    for range in ranges {
        for start in range.clone().step_by(VECTOR_ROWS) {
            let rows = start..(start + VECTOR_ROWS).min(range.end);
            mark(rows, &mut marks);
        }
    }
    marks
}

/// Hashes that some numbers have, a bit each: most others do not pass. A row is thus excluded by one look at 8 KiB, and only
/// the few that pass are looked up.
struct Filter {
    words: Vec<u64>,
    is_empty: bool,
}

impl Filter {
    fn of(numbers: impl Iterator<Item = u64>) -> Self {
        let mut filter = Self { words: vec![0; FILTER_BITS / 64], is_empty: true };
        for number in numbers {
            let (word, bit) = Self::place(number);
            filter.words.get_mut(word).into_iter().for_each(|word| *word |= 1 << bit);
            filter.is_empty = false;
        }
        filter
    }

    fn may_have(&self, number: u64) -> bool {
        let (word, bit) = Self::place(number);
        self.words.get(word).is_some_and(|word| word >> bit & 1 == 1)
    }

    fn place(number: u64) -> (usize, u64) {
        // Ids that begin alike have the same low bits.
        let hash = (number.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 48) as usize;
        (hash % FILTER_BITS / 64, hash as u64 % 64)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn id() -> impl Strategy<Value = String> {
        // Some that differ in few bits, some in all, and some that are no UUIDs as they are printed.
        prop_oneof![
            (0..50u128).prop_map(|n| uuid::Uuid::from_u128((n << 70) + n * 3).to_string()),
            any::<u128>().prop_map(|n| uuid::Uuid::from_u128(n).to_string()),
            (0..9u32).prop_map(|n| format!("event {n}")),
            (0..9u128).prop_map(|n| uuid::Uuid::from_u128(n).to_string().to_uppercase()),
            Just(String::new()),
        ]
    }

    fn uuid() -> impl Strategy<Value = String> {
        any::<u128>().prop_map(|n| uuid::Uuid::from_u128(n).to_string())
    }

    proptest! {
        #[test]
        fn rows_are_those_whose_ids_are_equal(
            ids in prop_oneof![
                prop::collection::vec(id(), 0..60),
                prop::collection::vec(uuid(), 0..60),
                prop::collection::vec(any::<u128>().prop_map(|n| format!("evt_{n:032x}")), 0..60),
                prop::collection::vec((0..9u32).prop_map(|n| format!("event {n}")), 0..60),
                prop::collection::vec((0..40u128).prop_map(|n| uuid::Uuid::from_u128(n << 61).to_string()), 0..60),
            ],
            others in prop::collection::vec(id(), 0..5),
            step in 1usize..9,
            cut in 0usize..60,
        ) {
            let mut list = EventIds::default();
            ids.iter().for_each(|id| list.push(Some(id.as_bytes())));
            let mut block = Vec::new();
            list.write(&mut block).unwrap();
            let wanted: Vec<&str> = ids.iter().step_by(step).chain(&others).map(String::as_str).collect();
            let set: EventIdSet = wanted.iter().map(|id| id.as_bytes()).collect();
            let cut = cut.min(ids.len());
            let ranges = [cut..ids.len(), cut / 2..cut];
            let expected: Vec<bool> = ranges
                .iter()
                .flat_map(|range| &ids[range.clone()])
                .map(|id| !id.is_empty() && wanted.contains(&id.as_str()))
                .collect();
            prop_assert_eq!(set.rows_in(&block, ids.len(), &ranges, "test").unwrap(), expected);
            prop_assert!(set.rows_in(&block, ids.len(), std::slice::from_ref(&(0..ids.len() + 1)), "test").is_err());
        }

        #[test]
        fn damaged_blocks_never_panic(bytes: Vec<u8>, rows in 0usize..1_000, id in id()) {
            let set: EventIdSet = std::iter::once(id.as_bytes()).collect();
            let _ = set.rows_in(&bytes, rows, &[rows / 2..rows, 0..rows / 3], "test");
        }
    }
}
