//! Approximate count of distinct users: HyperLogLog over stable 64-bit hashes.
//!
//! 2^14 registers hold the highest rank that was seen among the hashes that fall to them; a rank is the
//! number of leading zeros behind the register's bits, and one. Until 1,024 different entries have been
//! seen they are listed instead, with 25 bits of the hash each: small counts are nearly exact and take
//! few bytes. The form follows from what was added alone, so a state that was merged from parts is the
//! same, bit by bit, as one that was built in one go.
//!
//! The estimate is Ertl's improved one ("New cardinality estimation algorithms for HyperLogLog sketches",
//! 2017), which needs no tables for its bias.
//!
//! ```text
//! hash (low 64 bits)          entry: index << 6 | rank                    register, rank there
//! 0x0000_0000_0000_0000       0 << 6 | 40 = 40                            0, 51
//! 0xdead_beef_1234_5678       29,186,941 << 6 | 1 = 1,867,964,225         14,251, 2
//!
//! both users, listed       offset  bytes
//! entries                       0  02
//! 40                            1  28
//! + 1,867,964,185               2  99 be db fa 06
//!
//! 1,025 users or more      offset  bytes
//! more than can be listed       0  81 08          (the number 1,025)
//! ranks of 16,384 registers     2  12,288 bytes, four ranks of six bits in three
//! ```
//!
//! In memory a list takes at most 16 KiB, registers 16 KiB.

use crate::{
    base::coding::{Cursor, Put},
    error::Result,
};

/// Bits of a hash that choose the register.
const PRECISION: u32 = 14;
/// Registers of a state. The relative standard error is 1.04 / sqrt(16,384) = 0.81 %.
const REGISTERS: usize = 1 << PRECISION;
/// Bits of a hash that choose an entry of the list. With the six bits of a rank an entry has 31.
const LISTED_BITS: u32 = 25;
/// Entries that are listed, at most.
const LISTED_MAX: usize = 1_024;
/// Bits of a rank in an entry.
const RANK_BITS: u32 = 6;
/// The highest rank that 64 bits allow.
const RANK_MAX: usize = (64 - PRECISION) as usize + 1;
/// Stands where the number of entries stands, when registers follow.
const REGISTERS_TAG: u64 = LISTED_MAX as u64 + 1;
/// Slots of the first table; each next one has twice as many.
const SLOTS_MIN: usize = 8;
/// Bytes of an empty state, for memory accounting.
pub const EMPTY_BYTES: usize = 64;

/// A distinct-count state, from which `count(distinct user)` of an approximate question is computed.
#[derive(Debug, Clone)]
pub struct Distinct(Form);

#[derive(Debug, Clone)]
enum Form {
    /// Entries, each index once, in a table with open addressing that is at most half full. No entry
    /// is 0, so 0 is an empty slot.
    Listed { slots: Vec<u32>, count: usize },
    /// The rank of each register.
    Registers(Box<[u8; REGISTERS]>),
}

impl Default for Distinct {
    fn default() -> Self {
        Self(Form::Listed { slots: Vec::new(), count: 0 })
    }
}

/// Equal when both have seen the same entries: where these lie in the table depends on the order in which they came.
impl PartialEq for Distinct {
    fn eq(&self, other: &Self) -> bool {
        let sorted = |slots: &[u32]| {
            let mut entries: Vec<u32> = slots.iter().copied().filter(|&entry| entry != 0).collect();
            entries.sort_unstable();
            entries
        };
        match (&self.0, &other.0) {
            (Form::Listed { slots: a, .. }, Form::Listed { slots: b, .. }) => {
                sorted(a) == sorted(b)
            }
            (Form::Registers(a), Form::Registers(b)) => a == b,
            _ => false,
        }
    }
}

/// Index in the list, and the rank of the bits behind it: 25 bits of index over 6 bits of rank, 1 to 40.
fn entry_of(hash: u64) -> u32 {
    let index = (hash >> (64 - LISTED_BITS)) as u32;
    // The bit that is set ends the count where all others are 0.
    let rest = hash << LISTED_BITS | 1 << (LISTED_BITS - 1);
    index << RANK_BITS | (rest.leading_zeros() + 1)
}

/// Register of an entry and the rank there, as if its hash had been added to registers at once.
///
/// The upper 14 bits of the index are the register. Its lower 11 bits follow in the hash: the rank ends within them, or, where
/// they are all zero, 11 bits on in the rank of the entry.
fn register_of(entry: u32) -> (usize, u8) {
    const BEHIND: u32 = LISTED_BITS - PRECISION;
    let (index, rank) = (entry >> RANK_BITS, entry & ((1 << RANK_BITS) - 1));
    let behind = index & ((1 << BEHIND) - 1);
    let rank = if behind == 0 { BEHIND + rank } else { behind.leading_zeros() - (32 - BEHIND) + 1 };
    ((index >> BEHIND) as usize, rank as u8)
}

impl Distinct {
    /// Adds a user by hash, of which the low 64 bits count; returns how many bytes the state has grown.
    #[inline]
    pub fn insert(&mut self, hash: u128) -> usize {
        let hash = hash as u64;
        match &mut self.0 {
            Form::Registers(registers) => {
                let register = &mut registers[(hash >> (64 - PRECISION)) as usize];
                let rest = hash << PRECISION | 1 << (PRECISION - 1);
                *register = (*register).max(rest.leading_zeros() as u8 + 1);
                0
            }
            Form::Listed { .. } => self.list(entry_of(hash)),
        }
    }

    /// Adds all users that another state has seen; returns how many bytes this one has grown. Users in both count once.
    pub fn merge(&mut self, other: &Self) -> usize {
        match (&mut self.0, &other.0) {
            (Form::Registers(mine), Form::Registers(theirs)) => {
                mine.iter_mut().zip(&**theirs).for_each(|(a, b)| *a = (*a).max(*b));
                0
            }
            (Form::Listed { .. }, Form::Registers(theirs)) => {
                let before = self.bytes_used();
                // The list goes into a copy of the registers: registers never become a list again.
                let mut all = Self(Form::Registers(theirs.clone()));
                all.merge(self);
                *self = all;
                REGISTERS.saturating_sub(before)
            }
            (_, Form::Listed { slots, .. }) => {
                slots.iter().filter(|&&entry| entry != 0).map(|&entry| self.list(entry)).sum()
            }
        }
    }

    /// Estimates the number of distinct users added so far, rounded.
    ///
    /// Accuracy: nearly always exact up to 1,024 users, then a relative standard error of 0.8 %.
    /// Source: linear counting over 2^25 entries; Ertl 2017 over registers.
    pub fn estimate(&self) -> u64 {
        match &self.0 {
            Form::Listed { count, .. } => {
                // So few of so many places that counting the empty ones is nearly exact.
                let places = f64::from(1u32 << LISTED_BITS);
                (places * (places / (places - *count as f64)).ln()).round() as u64
            }
            Form::Registers(registers) => estimate(registers).round() as u64,
        }
    }

    /// Appends the state: what was listed in order, or the registers with six bits each.
    pub fn write(&self, out: &mut Vec<u8>) {
        match &self.0 {
            Form::Listed { slots, .. } => {
                let mut entries: Vec<u32> =
                    slots.iter().copied().filter(|&entry| entry != 0).collect();
                entries.sort_unstable();
                out.put_varint(entries.len() as u64);
                let mut before = 0;
                for entry in entries {
                    out.put_varint(u64::from(entry - before));
                    before = entry;
                }
            }
            Form::Registers(registers) => {
                out.put_varint(REGISTERS_TAG);
                // Four ranks in three bytes.
                for ranks in registers.as_chunks::<4>().0 {
                    let of = |at: usize| u32::from(ranks[at]) << (6 * at);
                    let packed = of(0) | of(1) | of(2) | of(3);
                    out.extend_from_slice(&packed.to_le_bytes()[..3]);
                }
            }
        }
    }

    /// Reads a state back.
    ///
    /// Errors: `Corrupt` when a register has a rank above 51, a list has more than 1,024 entries, an entry has a rank of 0 or
    /// above 40 or the index of another one, or the input ends too early.
    pub fn read(cursor: &mut Cursor<'_>) -> Result<Self> {
        let count = cursor.varint()?;
        if count == REGISTERS_TAG {
            let bytes = cursor.take(REGISTERS / 4 * 3)?;
            let mut registers = Box::new([0u8; REGISTERS]);
            for (ranks, packed) in
                registers.as_chunks_mut::<4>().0.iter_mut().zip(bytes.as_chunks::<3>().0)
            {
                let packed = u32::from_le_bytes([packed[0], packed[1], packed[2], 0]);
                for (at, rank) in ranks.iter_mut().enumerate() {
                    *rank = (packed >> (6 * at)) as u8 & 63;
                }
            }
            if registers.iter().any(|&rank| usize::from(rank) > RANK_MAX) {
                return Err(cursor.error("a register has a rank that no hash gives"));
            }
            return Ok(Self(Form::Registers(registers)));
        }
        if count > LISTED_MAX as u64 {
            return Err(cursor.error("a sketch lists more than it may"));
        }
        let mut state = Self::default();
        let (mut entry, mut index) = (0u32, None);
        for _ in 0..count {
            let step = cursor.varint_u32()?;
            let next = entry.checked_add(step).filter(|next| {
                let rank = next & ((1 << RANK_BITS) - 1);
                let at = next >> RANK_BITS;
                (1..=64 - LISTED_BITS + 1).contains(&rank)
                    && at >> LISTED_BITS == 0
                    && Some(at) != index
            });
            entry = next.ok_or_else(|| cursor.error("a sketch lists what no hash gives"))?;
            index = Some(entry >> RANK_BITS);
            state.list(entry);
        }
        Ok(state)
    }

    /// Bytes on the heap: four a slot of a list, 16,384 of registers.
    pub fn bytes_used(&self) -> usize {
        match &self.0 {
            Form::Listed { slots, .. } => slots.len() * 4,
            Form::Registers(_) => REGISTERS,
        }
    }

    /// Adds an entry; returns how many bytes the state has grown.
    fn list(&mut self, entry: u32) -> usize {
        let (slots, count) = match &mut self.0 {
            Form::Listed { slots, count } => (slots, count),
            Form::Registers(registers) => {
                let (register, rank) = register_of(entry);
                registers[register] = registers[register].max(rank);
                return 0;
            }
        };
        if *count * 2 < slots.len() {
            *count += usize::from(put(slots, entry));
            if *count <= LISTED_MAX {
                return 0;
            }
        }
        let before = self.bytes_used();
        self.grow();
        // A larger table has room for the entry. Where the list was full, the entry was in it before it became registers.
        if before < self.bytes_used() && matches!(self.0, Form::Listed { .. }) {
            self.list(entry);
        }
        self.bytes_used().saturating_sub(before)
    }

    /// A table of twice the size, or registers when the list is too long.
    fn grow(&mut self) {
        let Form::Listed { slots, count } = &mut self.0 else { return };
        let entries = slots.iter().copied().filter(|&entry| entry != 0);
        if *count > LISTED_MAX {
            let mut registers = Box::new([0; REGISTERS]);
            for entry in entries {
                let (register, rank) = register_of(entry);
                registers[register] = registers[register].max(rank);
            }
            self.0 = Form::Registers(registers);
        } else {
            let mut larger = vec![0; (slots.len() * 2).max(SLOTS_MIN)];
            for entry in entries {
                put(&mut larger, entry);
            }
            *slots = larger;
        }
    }
}

/// Puts an entry into a table with free slots. Of two with one index the higher rank stays. Returns whether
/// the index is new: `put` of 0x41 (index 1, rank 1), then of 0x45 (index 1, rank 5) leaves 0x45 and returns `true`, `false`.
fn put(slots: &mut [u32], entry: u32) -> bool {
    let bits = slots.len().trailing_zeros();
    let index = entry >> RANK_BITS;
    // Indexes are bits of a hash: the low ones are as good as any.
    let mut at = (index & ((1 << bits) - 1)) as usize;
    loop {
        let slot = &mut slots[at];
        if *slot == 0 {
            *slot = entry;
            return true;
        }
        if *slot >> RANK_BITS == index {
            *slot = entry.max(*slot);
            return false;
        }
        // Occupied by another index: the next slot, around the end. At least half of the slots are free, so it ends.
        at = (at + 1) & (slots.len() - 1);
    }
}

/// Ertl's improved raw estimator: from how many registers have each rank, with corrections for the lowest rank and the highest.
fn estimate(registers: &[u8; REGISTERS]) -> f64 {
    let mut counts = [0u32; RANK_MAX + 1];
    registers.iter().for_each(|&rank| counts[usize::from(rank).min(RANK_MAX)] += 1);
    let m = REGISTERS as f64;
    let mut sum = m * tau(1.0 - f64::from(counts[RANK_MAX]) / m);
    // A sum of count / 2^rank, from the highest rank down, so that small terms are added before large ones.
    for &count in counts[1..RANK_MAX].iter().rev() {
        sum = 0.5 * (sum + f64::from(count));
    }
    sum += m * sigma(f64::from(counts[0]) / m);
    m * m / (2.0 * std::f64::consts::LN_2 * sum)
}

/// The term of the registers that are still 0: x + Σ x^(2^k) · 2^(k-1), of their share `x`.
fn sigma(mut x: f64) -> f64 {
    if x >= 1.0 {
        return f64::INFINITY;
    }
    let (mut y, mut sum) = (1.0, x);
    loop {
        x *= x;
        let before = sum;
        sum += x * y;
        y += y;
        if sum == before {
            return sum;
        }
    }
}

/// The term of the registers at the highest rank: (1 - x - Σ (1 - x^(2^-k))² · 2^-k) / 3, where 1 - `x` is their share.
fn tau(mut x: f64) -> f64 {
    if x <= 0.0 || x >= 1.0 {
        return 0.0;
    }
    let (mut y, mut sum) = (1.0, 1.0 - x);
    loop {
        x = x.sqrt();
        let before = sum;
        y *= 0.5;
        sum -= (1.0 - x) * (1.0 - x) * y;
        if sum == before {
            return sum / 3.0;
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::base::hash;

    fn user(n: u64) -> u128 {
        hash::user(9, format!("user {n}").as_bytes())
    }

    #[test]
    fn estimates_stay_within_two_percent() {
        for count in [0u64, 1, 10, 1_000, 1_024, 1_025, 2_000, 20_000, 100_000, 1_000_000] {
            let mut state = Distinct::default();
            for repeat in 0..2 {
                for n in 0..count {
                    state.insert(user(n));
                }
                let error = (state.estimate() as f64 - count as f64).abs();
                assert!(error <= count as f64 * 0.02, "{count} users, {error} off, pass {repeat}");
            }
        }
    }

    /// The standard error of 2^14 registers is 0.81 %; of many draws one in twenty is beyond twice that.
    #[test]
    fn errors_are_those_of_the_theory() {
        for count in [3_000u64, 15_000, 60_000] {
            let draws = 60u64;
            let errors = (0..draws).map(|draw| {
                let mut state = Distinct::default();
                let first = (draw + 1) << 32;
                for n in first..first + count {
                    state.insert(user(n));
                }
                state.estimate() as f64 / count as f64 - 1.0
            });
            let errors: Vec<f64> = errors.collect();
            let mean = errors.iter().sum::<f64>() / draws as f64;
            let deviation = (errors.iter().map(|e| e * e).sum::<f64>() / draws as f64).sqrt();
            assert!(mean.abs() < 0.004, "{count}: biased by {mean}");
            assert!(deviation < 0.0081 * 1.35, "{count}: a standard error of {deviation}");
            let far = errors.iter().filter(|error| error.abs() > 0.02).count();
            assert!(far <= 3, "{count}: {far} of {draws} are more than 2 % off");
        }
    }

    /// The crate that this could have been.
    #[test]
    fn estimates_are_as_good_as_those_of_another() {
        use hyperloglogplus::{HyperLogLog as _, HyperLogLogPlus};
        let (mut ours_off, mut theirs_off) = (0.0, 0.0);
        for draw in 1..40u64 {
            let count = draw * draw * 50;
            let mut ours = Distinct::default();
            let builder = std::hash::BuildHasherDefault::<hash::IdentityHasher>::default();
            let mut theirs = HyperLogLogPlus::<u128, _>::new(PRECISION as u8, builder).unwrap();
            for n in draw << 32..(draw << 32) + count {
                ours.insert(user(n));
                theirs.insert(&user(n));
            }
            let off = |estimate: f64| (estimate / count as f64 - 1.0).powi(2);
            ours_off += off(ours.estimate() as f64);
            theirs_off += off(theirs.count());
        }
        assert!(ours_off <= theirs_off * 1.3, "{ours_off} against {theirs_off}");
    }

    #[test]
    fn small_counts_are_exact() {
        let mut state = Distinct::default();
        for n in 0..1_000 {
            assert_eq!(state.estimate(), n);
            state.insert(user(n));
        }
    }

    #[test]
    fn an_entry_becomes_what_its_hash_would_have_been() {
        for hash in [0, 1, u64::MAX, 1 << 38, 1 << 39, 1 << 49, 1 << 50, 0xdead_beef_1234_5678] {
            let mut registers = Distinct(Form::Registers(Box::new([0; REGISTERS])));
            registers.insert(u128::from(hash));
            let (register, rank) = register_of(entry_of(hash));
            let Form::Registers(registers) = registers.0 else { unreachable!() };
            assert_eq!(registers[register], rank, "{hash:x}");
            assert_eq!(registers.iter().filter(|rank| **rank > 0).count(), 1);
        }
    }

    #[test]
    fn damaged_bytes_are_refused() {
        let written = |count: u64| {
            let mut state = Distinct::default();
            for n in 0..count {
                state.insert(user(n));
            }
            let mut bytes = Vec::new();
            state.write(&mut bytes);
            bytes
        };
        let read = |bytes: &[u8]| Distinct::read(&mut Cursor::new(bytes, "test")).map(drop);
        for count in [0, 3, 5_000] {
            let good = written(count);
            assert!(read(&good).is_ok());
            assert!(read(&good[..good.len() - 1]).is_err());
        }
        // Too many entries; an entry without a rank; an index twice; a rank beyond what a hash has.
        assert!(read(&[0x82, 0x08]).is_err());
        assert!(read(&[1, 64]).is_err());
        assert!(read(&[2, 65, 1]).is_err());
        // An index of 26 bits.
        assert!(read(&[1, 0x81, 0x80, 0x80, 0x80, 0x08]).is_err());
        let mut registers = written(5_000);
        registers[2] = 0xff;
        assert!(read(&registers).is_err());
    }

    proptest! {
        /// However users are parted, repeated and merged, the state is the one built in one go.
        #[test]
        fn merged_is_built_in_one_go(parts in prop::collection::vec((0u64..3_000, 0u64..900), 1..6)) {
            let mut whole = Distinct::default();
            let mut merged = Distinct::default();
            for (first, count) in parts {
                let mut part = Distinct::default();
                for n in first..first + count {
                    whole.insert(user(n));
                    part.insert(user(n));
                }
                let mut bytes = Vec::new();
                part.write(&mut bytes);
                let mut cursor = Cursor::new(&bytes, "test");
                merged.merge(&Distinct::read(&mut cursor).unwrap());
                cursor.finish().unwrap();
            }
            let written = |state: &Distinct| {
                let mut bytes = Vec::new();
                state.write(&mut bytes);
                bytes
            };
            prop_assert_eq!(written(&merged), written(&whole));
            prop_assert!(merged == whole);
            prop_assert_eq!(merged.estimate(), whole.estimate());
        }
    }
}
