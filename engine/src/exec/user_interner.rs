//! Numbers for users, and sets of them: what an exact count of distinct users adds up.
//!
//! Users have their hashes everywhere, but sets of hashes are large and slow. So each query's tenant has a
//! list of numbers: the first user that is met is 0, the next one 1. A segment's users are turned into
//! numbers once, and a row costs a look-up in a small table and a bit. Numbers mean nothing outside of the
//! list that gave them.

use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;

use crate::base::hash::HashMap128;

/// Bytes of a known user, with its share of free slots.
const KNOWN_BYTES: usize = 48;

/// Numbers of the users that were met.
pub struct UserInterner {
    id: u64,
    known: Mutex<HashMap128<u32>>,
}

impl Default for UserInterner {
    fn default() -> Self {
        static LAST: AtomicU64 = AtomicU64::new(0);
        Self { id: LAST.fetch_add(1, Ordering::Relaxed), known: Mutex::default() }
    }
}

impl UserInterner {
    /// Tells lists apart.
    pub fn id(&self) -> u64 {
        self.id
    }

    /// Appends the numbers of users. Returns how many bytes the list has grown.
    pub fn number(&self, hashes: impl Iterator<Item = u128>, out: &mut Vec<u32>) -> usize {
        let mut known = self.known.lock();
        let before = known.len();
        for hash in hashes {
            let next = known.len() as u32;
            out.push(*known.entry(hash).or_insert(next));
        }
        (known.len() - before) * KNOWN_BYTES
    }

    /// How many users have a number.
    pub fn count(&self) -> usize {
        self.known.lock().len()
    }

    /// Bytes in memory.
    pub fn bytes(&self) -> usize {
        self.count() * KNOWN_BYTES
    }
}

/// A set of users by number: listed while they are few, then a bit for each that has a number.
#[derive(Default)]
pub struct UserSet {
    /// Some of them more than once.
    listed: Vec<u32>,
    bits: Vec<u64>,
    /// Users whose numbers are not known, and who are none of the above.
    others: u64,
    /// Bytes that were accounted for.
    bytes: usize,
}

impl UserSet {
    /// Bytes of an empty set.
    pub const EMPTY_BYTES: usize = size_of::<Self>();

    /// Adds users, of whom `count` have numbers. Returns how many bytes the set has grown.
    pub fn add(&mut self, users: &[u32], count: usize) -> usize {
        // Bits take as much as a list of so many.
        let listed_max = count / 32 + 1;
        if self.bits.is_empty() && self.listed.len() + users.len() > listed_max {
            self.sort();
            if self.listed.len() + users.len() > listed_max / 2 {
                let listed = std::mem::take(&mut self.listed);
                self.bits.resize(count / 64 + 1, 0);
                listed.iter().for_each(|&user| self.mark(user));
            }
        }
        if self.bits.is_empty() {
            self.listed.extend_from_slice(users);
        } else {
            if self.bits.len() * 64 < count {
                self.bits.resize(count / 64 + 1, 0);
            }
            users.iter().for_each(|&user| self.mark(user));
        }
        self.grown()
    }

    /// Adds the users of another set of the same numbers, of which there are `count`. Returns how many bytes
    /// the set has grown.
    pub fn merge(&mut self, other: &Self, count: usize) -> usize {
        self.others += other.others;
        if other.bits.is_empty() {
            return self.add(&other.listed, count);
        }
        let listed = std::mem::take(&mut self.listed);
        if self.bits.len() < other.bits.len() {
            self.bits.resize(other.bits.len().max(count / 64 + 1), 0);
        }
        self.bits.iter_mut().zip(&other.bits).for_each(|(all, one)| *all |= one);
        listed.iter().for_each(|&user| self.mark(user));
        self.grown()
    }

    /// Adds users of whom only the number is known, and that no other part of the set has them.
    pub fn add_others(&mut self, count: u64) {
        self.others += count;
    }

    /// The set, with each user once and no room to spare.
    pub fn settled(mut self) -> Self {
        self.sort();
        self.listed.shrink_to_fit();
        self.bits.shrink_to_fit();
        self
    }

    /// Bytes in memory.
    pub fn bytes(&self) -> usize {
        Self::EMPTY_BYTES + self.listed.capacity() * 4 + self.bits.capacity() * 8
    }

    /// How many bytes were added since this was asked last.
    fn grown(&mut self) -> usize {
        let bytes = self.bytes() - Self::EMPTY_BYTES;
        let grown = bytes.saturating_sub(self.bytes);
        self.bytes += grown;
        grown
    }

    fn sort(&mut self) {
        self.listed.sort_unstable();
        self.listed.dedup();
    }

    fn mark(&mut self, user: u32) {
        if let Some(word) = self.bits.get_mut(user as usize / 64) {
            *word |= 1 << (user % 64);
        }
    }

    /// How many users are in it.
    pub fn len(&mut self) -> usize {
        let others = self.others as usize;
        if self.bits.is_empty() {
            self.sort();
            return others + self.listed.len();
        }
        others + self.bits.iter().map(|word| word.count_ones() as usize).sum::<usize>()
    }

    /// How many users are in any of `sets`, of which the numbers of all users are known.
    pub fn len_of_all(sets: &[Self]) -> usize {
        let listed = || sets.iter().flat_map(|set| &set.listed);
        let by_list = listed().max().map_or(0, |&last| last as usize / 64 + 1);
        let words = sets.iter().map(|set| set.bits.len()).max().unwrap_or(0).max(by_list);
        let mut all = Self { bits: vec![0; words], ..Self::default() };
        for set in sets {
            all.bits.iter_mut().zip(&set.bits).for_each(|(all, one)| *all |= one);
        }
        listed().for_each(|&user| all.mark(user));
        if words == 0 { 0 } else { all.len() }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_user_keeps_his_number() {
        let numbers = UserInterner::default();
        let mut out = Vec::new();
        assert!(numbers.number([7, 9, 7].into_iter(), &mut out) > 0);
        assert_eq!(numbers.number([9, 7].into_iter(), &mut out), 0);
        assert_eq!((&out[..], numbers.count()), (&[0, 1, 0, 1, 0][..], 2));
        assert_ne!(UserInterner::default().id(), numbers.id());
    }

    proptest! {
        #[test]
        fn sets_count_each_user_once(parts in prop::collection::vec(prop::collection::vec(0u32..5_000, 0..300), 0..12)) {
            let mut whole = UserSet::default();
            let mut sets = Vec::new();
            let (mut merged, mut merged_settled) = (UserSet::default(), UserSet::default());
            let mut count = 0;
            for part in &parts {
                // Numbers are given as users are met.
                count = part.iter().map(|&user| user as usize + 1).fold(count, usize::max);
                whole.add(part, count);
                let mut set = UserSet::default();
                part.chunks(7).for_each(|users| { set.add(users, count); });
                merged.merge(&set, count);
                let set = set.settled();
                merged_settled.merge(&set, count);
                let mut set = set;
                prop_assert_eq!(set.len(), part.iter().collect::<BTreeSet<_>>().len());
                sets.push(set);
            }
            let expected = parts.iter().flatten().collect::<BTreeSet<_>>().len();
            prop_assert_eq!(whole.len(), expected);
            prop_assert_eq!(merged.len(), expected);
            prop_assert_eq!(merged_settled.len(), expected);
            prop_assert_eq!(UserSet::len_of_all(&sets), expected);
            // Users of whom only the number is known come on top, also through another set.
            let mut counted = UserSet::default();
            counted.add_others(7);
            merged.merge(&counted.settled(), count);
            merged.add_others(2);
            prop_assert_eq!(merged.len(), expected + 9);
        }
    }
}
