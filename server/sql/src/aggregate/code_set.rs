//! A set of dictionary codes that counts its members.
//!
//! ```text
//! 3, 9                        a list, of sixteen at most
//! 0, 1, 2, 3, 5, …, 4,000     a bit for each code from 0 on, while that takes no more than eight bytes a member
//! 17, 80,411, 300,002, …      a roaring bitmap
//! ```
//!
//! Codes of a statement's dictionary are dense, and most codes that come are members already: a bit answers that at once.
//!
//! Which form a set has, after the seventeenth member:
//!
//! ```text
//! 20 members up to 19               19 / 8 = 2 bytes of bits, of 20 × 8 + 256 = 416     words
//! 21 members, one of them 4000000   500,000 bytes, of 424                               roaring
//! 70001 members up to 4000000       500,000 bytes, of 560,264                           words again
//! ```
//!
//! The bytes of a state, which partitions hand to each other:
//!
//! ```text
//! 00  03 00 00 00  09 00 00 00        a list: 3, 9
//! 02  ff ff 0f 00 00 00 00 00         words: 0 to 19
//! 01  …                               a roaring bitmap in its portable format
//! (nothing)                           no member, as a null is read
//! ```

use datafusion_common::{DataFusionError, Result};
use roaring::RoaringBitmap;

/// Codes of a list, at most.
const LISTED_MAX: usize = 16;
/// Bytes of words for each member, and for a set of its own, at most.
const WORDS_BYTES_A_CODE: u64 = 8;
const WORDS_BYTES_FREE: u64 = 256;
/// Bytes of a roaring bitmap's container besides its codes, with what the allocator adds.
const CONTAINER_BYTES: u64 = 64;
/// First bytes of states: codes follow, words, or a roaring bitmap in its portable format.
pub const LISTED: u8 = 0;
const ROARING: u8 = 1;
const WORDS: u8 = 2;

/// Distinct dictionary codes, in the form that answers quickest and takes few bytes for them.
#[derive(Debug)]
pub enum CodeSet {
    /// In the order of arrival.
    Listed(Vec<u32>),
    /// A bit for each code from 0 on; and how many are set.
    Words(Vec<u64>, u64),
    /// A roaring bitmap, and its length.
    Roaring(Box<RoaringBitmap>, u64),
}

impl Default for CodeSet {
    fn default() -> Self {
        Self::Listed(Vec::new())
    }
}

impl CodeSet {
    /// Whether a code is a member.
    pub fn contains(&self, code: u32) -> bool {
        match self {
            Self::Listed(codes) => codes.contains(&code),
            Self::Words(words, _) => {
                words.get(code as usize / 64).is_some_and(|word| word >> (code % 64) & 1 == 1)
            }
            Self::Roaring(bitmap, _) => bitmap.contains(code),
        }
    }

    /// Adds a code. The form changes where it has to: from a list at the seventeenth member, from words when a code is too large for them, and
    /// from a bitmap each time that its members have doubled and suit words.
    pub fn insert(&mut self, code: u32) {
        match self {
            Self::Listed(codes) if codes.contains(&code) => {}
            Self::Listed(codes) if codes.len() < LISTED_MAX => codes.push(code),
            Self::Listed(codes) => {
                let codes: RoaringBitmap = codes.iter().copied().chain([code]).collect();
                *self = Self::of(codes);
            }
            Self::Words(words, count) => {
                let at = code as usize / 64;
                if at >= words.len() {
                    if !words_fit(code, *count + 1) {
                        let mut bitmap: RoaringBitmap = members(words).collect();
                        bitmap.insert(code);
                        *self = Self::Roaring(Box::new(bitmap), *count + 1);
                        return;
                    }
                    words.resize(at + 1, 0);
                }
                let (word, bit) = (&mut words[at], 1 << (code % 64));
                *count += u64::from(*word & bit == 0);
                *word |= bit;
            }
            Self::Roaring(bitmap, count) => {
                if bitmap.insert(code) {
                    *count += 1;
                    if count.is_power_of_two() && words_fit(bitmap.max().unwrap_or(0), *count) {
                        *self = Self::of(std::mem::take(bitmap));
                    }
                }
            }
        }
    }

    /// The members of a bitmap, in the form that suits them.
    fn of(bitmap: RoaringBitmap) -> Self {
        let (count, max) = (bitmap.len(), bitmap.max().unwrap_or(0));
        if !words_fit(max, count) {
            return Self::Roaring(Box::new(bitmap), count);
        }
        let mut words = vec![0; max as usize / 64 + 1];
        bitmap.iter().for_each(|code| words[code as usize / 64] |= 1_u64 << (code % 64));
        Self::Words(words, count)
    }

    /// Bytes on the heap: lists and words exactly, a bitmap by the containers that its members may be in.
    pub fn heap_bytes(&self) -> usize {
        match self {
            Self::Listed(codes) => codes.capacity() * size_of::<u32>(),
            Self::Words(words, _) => words.capacity() * size_of::<u64>(),
            Self::Roaring(bitmap, count) => {
                let containers = u64::from(bitmap.max().unwrap_or(0) >> 16) + 1;
                let codes = (count * 4).min(containers * 8_192);
                (codes + (containers.min(*count) + 1) * CONTAINER_BYTES) as usize
            }
        }
    }

    /// Number of members.
    pub fn len(&self) -> u64 {
        match self {
            Self::Listed(codes) => codes.len() as u64,
            Self::Words(_, count) | Self::Roaring(_, count) => *count,
        }
    }

    /// Appends the state: a byte that tells the form, and the members.
    pub fn write(&self, out: &mut Vec<u8>) {
        match self {
            Self::Listed(codes) => {
                out.push(LISTED);
                codes.iter().for_each(|code| out.extend_from_slice(&code.to_le_bytes()));
            }
            Self::Words(words, _) => {
                out.push(WORDS);
                words.iter().for_each(|word| out.extend_from_slice(&word.to_le_bytes()));
            }
            Self::Roaring(bitmap, _) => {
                out.push(ROARING);
                // A vector takes everything.
                let _ = bitmap.serialize_into(out);
            }
        }
    }

    /// Adds the codes of a state, of whatever form.
    ///
    /// Errors: a bitmap that is none.
    pub fn merge(&mut self, state: &[u8]) -> Result<()> {
        match state.split_first() {
            None => {}
            Some((&LISTED, codes)) => {
                let (codes, _) = codes.as_chunks();
                codes.iter().for_each(|code| self.insert(u32::from_le_bytes(*code)));
            }
            Some((&WORDS, words)) => {
                let (words, _) = words.as_chunks();
                self.merge_words(words.iter().map(|word| u64::from_le_bytes(*word)).collect());
            }
            Some((_, bytes)) => {
                let other = RoaringBitmap::deserialize_unchecked_from(bytes)
                    .map_err(|error| DataFusionError::Execution(error.to_string()))?;
                match self {
                    Self::Listed(codes) => {
                        *self = Self::of(other | codes.iter().copied().collect::<RoaringBitmap>());
                    }
                    // Each is a bit, and the form is changed where it has to be.
                    Self::Words(..) => other.iter().for_each(|code| self.insert(code)),
                    Self::Roaring(bitmap, _) => {
                        *self = Self::of(std::mem::take(&mut **bitmap) | other);
                    }
                }
            }
        }
        Ok(())
    }

    /// Adds the members of words.
    fn merge_words(&mut self, mut other: Vec<u64>) {
        let count_of = |words: &[u64]| words.iter().map(|word| u64::from(word.count_ones())).sum();
        match std::mem::take(self) {
            Self::Words(mut words, _) => {
                if words.len() < other.len() {
                    std::mem::swap(&mut words, &mut other);
                }
                words.iter_mut().zip(&other).for_each(|(word, other)| *word |= other);
                let count = count_of(&words);
                *self = Self::Words(words, count);
            }
            // It suited those words in the set that they come from.
            Self::Listed(codes) => {
                let count = count_of(&other);
                *self = Self::Words(other, count);
                codes.into_iter().for_each(|code| self.insert(code));
            }
            Self::Roaring(bitmap, _) => {
                *self = Self::of(*bitmap | members(&other).collect::<RoaringBitmap>());
            }
        }
    }
}

/// Whether words up to a code take no more than what members may: of 17 members up to code 3143, as 3143 / 8 is 392.
fn words_fit(max_code: u32, count: u64) -> bool {
    u64::from(max_code / 8) <= count * WORDS_BYTES_A_CODE + WORDS_BYTES_FREE
}

/// Codes whose bits are set, rising.
fn members(words: &[u64]) -> impl Iterator<Item = u32> {
    (0..).zip(words).flat_map(|(at, &word)| {
        let bits = std::iter::successors(Some(word), |rest| Some(rest & rest.wrapping_sub(1)));
        bits.take_while(|rest| *rest != 0).map(move |rest| at * 64 + rest.trailing_zeros())
    })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    fn state(set: &CodeSet) -> Vec<u8> {
        let mut out = Vec::new();
        set.write(&mut out);
        out
    }

    fn form(set: &CodeSet) -> u8 {
        state(set)[0]
    }

    #[test]
    fn a_set_has_the_form_that_suits_it() {
        let mut set = CodeSet::default();
        (0..16).for_each(|code| set.insert(code));
        assert_eq!(form(&set), LISTED);
        (0..20).for_each(|code| set.insert(code));
        assert_eq!((form(&set), set.len()), (WORDS, 20));
        set.insert(4_000_000);
        assert_eq!((form(&set), set.len()), (ROARING, 21));
        (0..70_000).for_each(|code| set.insert(code));
        assert_eq!((form(&set), set.len()), (WORDS, 70_001), "dense enough again");
        assert!(set.contains(4_000_000) && set.contains(69_999) && !set.contains(70_000));
    }

    #[test]
    fn any_two_forms_merge() {
        let kinds: [(u32, u32); 4] = [(9, 1), (4_000, 1), (900, 77_777), (70_000, 3)];
        for (left, left_step) in kinds {
            for (right, right_step) in kinds {
                let (mut a, mut b) = (CodeSet::default(), CodeSet::default());
                let mut all = BTreeSet::new();
                for n in 0..left {
                    a.insert(n * left_step);
                    all.insert(n * left_step);
                }
                for n in 0..right {
                    b.insert(n * right_step + 5);
                    all.insert(n * right_step + 5);
                }
                a.merge(&state(&b)).unwrap();
                assert_eq!(a.len(), all.len() as u64);
                assert!(all.iter().all(|code| a.contains(*code)));
                let mut again = CodeSet::default();
                again.merge(&state(&a)).unwrap();
                assert_eq!(again.len(), all.len() as u64);
            }
        }
    }
}
