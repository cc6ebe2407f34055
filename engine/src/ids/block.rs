//! A block of an id run: sorted hashes, Elias-Fano coded.
//!
//! Hashes are evenly spread, so neighbours differ by about the range divided by their number. The bits below that
//! distance are random and stored verbatim; the bits above rise by about one a hash and are stored in unary, as zeros
//! before a one ([Elias-Fano](https://en.wikipedia.org/wiki/Elias%E2%80%93Fano_encoding)). Of four million hashes of
//! 88 bits each takes 68: 66 low ones and two.
//!
//! ```text
//! [1000, 1003, 1010, 1013, 1021]     offset  bytes
//! low bits                                0  02            (range 21, five hashes: two bits)
//! low parts                               1  6c 01         (distances 0, 3, 10, 13, 21: 0, 3, 2, 1, 1)
//! high parts                              3  53 02         (0, 0, 2, 3, 5: steps 1 1 001 01 001)
//! ```
//!
//! 1000, the first one, is in the list of blocks. Looking for 1013: distance 13, high part 3, low part 1. The bit behind the
//! third zero is bit 6, so three hashes come before; there is a one, and the low part of hash 3 is 1: it is there.

#![cfg_attr(not(test), deny(clippy::indexing_slicing, clippy::unwrap_used))]

use crate::{
    base::coding::Put,
    encode::rising::BitWriter,
    error::{Error, Result},
};

/// Appends hashes, strictly rising. The first one, the base of all distances, is stored in the list of blocks.
pub fn write(hashes: &[u128], out: &mut Vec<u8>) {
    let (Some(&first), Some(&last)) = (hashes.first(), hashes.last()) else { return };
    let low_bits = ((last - first) / hashes.len() as u128).max(1).ilog2();
    out.put_u8(low_bits as u8);
    let (mut low, mut high) = (BitWriter::default(), BitWriter::default());
    let mut before = 0;
    for hash in hashes {
        let distance = hash - first;
        put(&mut low, distance & ones(low_bits), low_bits);
        // Fewer zeros than twice the number of hashes, in all.
        let here = distance >> low_bits;
        put(&mut high, 0, (here - before) as u32);
        high.put(1, 1);
        before = here;
    }
    out.extend_from_slice(&low.finish());
    out.extend_from_slice(&high.finish());
}

/// Appends a number of up to 128 bits in steps of the writer.
fn put(writer: &mut BitWriter, mut number: u128, mut bits: u32) {
    while bits > 0 {
        let part = bits.min(32);
        writer.put(number as u32 & ones(part) as u32, part);
        number = number.checked_shr(part).unwrap_or(0);
        bits -= part;
    }
}

/// So many ones in the lowest bits, none for 0: a mask.
fn ones(bits: u32) -> u128 {
    u128::MAX.checked_shr(128 - bits).unwrap_or(0)
}

/// A block as it lies in the file: a probe decodes a few hashes and no others.
pub struct Block<'a> {
    first: u128,
    count: usize,
    low_bits: u32,
    low: &'a [u8],
    high: &'a [u8],
}

impl<'a> Block<'a> {
    /// Reads the frame of a block of `count` hashes, the first of which is `first`.
    ///
    /// Errors: what is wrong, when the bytes are too few for so many ("a block is shorter than its hashes"), there are 128 low
    /// bits or more, or the block begins with another hash than listed. The caller adds the file.
    pub fn open(
        bytes: &'a [u8],
        first: u128,
        count: usize,
    ) -> std::result::Result<Self, &'static str> {
        let short = "a block is shorter than its hashes";
        let (&low_bits, rest) = bytes.split_first().ok_or(short)?;
        let low_bits = u32::from(low_bits);
        let low_len = count.saturating_mul(low_bits as usize).div_ceil(8);
        let (low, high) = rest.split_at_checked(low_len).ok_or(short)?;
        if low_bits >= u128::BITS {
            return Err("a block has too many low bits");
        }
        if high.len().saturating_mul(8) < count {
            return Err(short);
        }
        let block = Self { first, count, low_bits, low, high };
        // Blocks are chosen by their first hash as the list has it: the two must agree.
        if count > 0 && (!block.has_one_at(0) || block.low_at(0) != 0) {
            return Err("a block begins with another hash than listed");
        }
        Ok(block)
    }

    /// Whether the block holds a hash. Counts zeros up to its high part, then compares the low parts of the hashes that share it,
    /// one or two as a rule.
    pub fn contains(&self, hash: u128) -> bool {
        let Some(distance) = hash.checked_sub(self.first) else { return false };
        let high = distance >> self.low_bits;
        let low = distance & ones(self.low_bits);
        let Some(mut bit) = usize::try_from(high).ok().and_then(|high| self.after_zeros(high))
        else {
            return false;
        };
        // Hashes before: all bits but the zeros.
        let mut at = bit - high as usize;
        while at < self.count && self.has_one_at(bit) {
            if self.low_at(at) == low {
                return true;
            }
            (bit, at) = (bit + 1, at + 1);
        }
        false
    }

    /// Appends all hashes.
    ///
    /// Errors: `Corrupt` when they are not as many as they should be, do not rise, or lie above the highest.
    pub fn read(&self, place: &str, out: &mut Vec<u128>) -> Result<()> {
        let (mut at, mut before) = (0, None);
        for (byte, start) in self.high.iter().zip((0usize..).step_by(8)) {
            let mut bits = *byte;
            while bits != 0 && at < self.count {
                let high = (start + bits.trailing_zeros() as usize - at) as u128;
                bits &= bits - 1;
                let high = (high << self.low_bits >> self.low_bits == high)
                    .then_some(high << self.low_bits);
                let hash = high.and_then(|high| self.first.checked_add(high | self.low_at(at)));
                let hash = hash.filter(|&hash| before.is_none_or(|before| before < hash));
                before = hash;
                out.push(hash.ok_or_else(|| Error::corrupt(place, "a hash is out of order"))?);
                at += 1;
            }
        }
        match at == self.count {
            true => Ok(()),
            false => Err(Error::corrupt(place, "a block has fewer hashes than recorded")),
        }
    }

    /// The position of the bit after so many zeros; `None` when there are fewer. A word at a time, whose zeros are counted at once.
    fn after_zeros(&self, zeros: usize) -> Option<usize> {
        let mut left = zeros;
        if left == 0 {
            return Some(0);
        }
        for (chunk, start) in self.high.chunks(8).zip((0usize..).step_by(64)) {
            let mut word = [u8::MAX; 8];
            word.get_mut(..chunk.len())?.copy_from_slice(chunk);
            let mut absent = !u64::from_le_bytes(word);
            let here = absent.count_ones() as usize;
            if here < left {
                left -= here;
                continue;
            }
            for _ in 1..left {
                absent &= absent - 1;
            }
            return Some(start + absent.trailing_zeros() as usize + 1);
        }
        None
    }

    fn has_one_at(&self, bit: usize) -> bool {
        self.high.get(bit / 8).is_some_and(|byte| byte >> (bit % 8) & 1 == 1)
    }

    /// The low bits of a hash.
    fn low_at(&self, at: usize) -> u128 {
        let bit = at * self.low_bits as usize;
        let from = self.low.get(bit / 8..).unwrap_or_default();
        // Up to 127 bits that begin inside a byte lie in 17.
        let mut bytes = [0; 32];
        let len = from.len().min(17);
        if let (Some(to), Some(from)) = (bytes.get_mut(..len), from.get(..len)) {
            to.copy_from_slice(from);
        }
        let (words, _) = bytes.as_chunks::<16>();
        let word = |index: usize| words.get(index).map_or(0, |word| u128::from_le_bytes(*word));
        let shift = (bit % 8) as u32;
        let above = word(1).checked_shl(u128::BITS - shift).unwrap_or(0);
        (word(0) >> shift | above) & ones(self.low_bits)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::rng::{Rng, SeededRng};

    /// Hashes of so many bits: evenly spread, close together, and far apart.
    fn lists() -> Vec<Vec<u128>> {
        let rng = SeededRng::new(3);
        let mut lists = vec![vec![0], vec![u128::MAX], vec![0, u128::MAX], (5..900).collect()];
        for bits in [1, 7, 64, 65, 88, 127, 128] {
            for count in [1, 2, 300, 4_096] {
                let any = |_| u128::from(rng.next_u64()) << 64 | u128::from(rng.next_u64());
                let mut hashes: Vec<u128> = (0..count).map(any).map(|n| n & ones(bits)).collect();
                hashes.sort_unstable();
                hashes.dedup();
                lists.push(hashes);
            }
        }
        // One far from all others, behind and before them.
        lists.push((0..500).chain([u128::MAX]).collect());
        lists.push([0].into_iter().chain((0..500).map(|n| u128::MAX - 500 + n)).collect());
        lists
    }

    #[test]
    fn hashes_come_back_and_others_are_not_there() {
        for hashes in lists() {
            let mut bytes = Vec::new();
            write(&hashes, &mut bytes);
            let block = Block::open(&bytes, hashes[0], hashes.len()).unwrap();
            let mut read = Vec::new();
            block.read("test", &mut read).unwrap();
            assert_eq!(read, hashes);
            for &hash in &hashes {
                assert!(block.contains(hash));
                for other in [hash ^ 1, hash.wrapping_sub(1), hash.wrapping_add(1), !hash] {
                    assert_eq!(block.contains(other), hashes.binary_search(&other).is_ok());
                }
            }
        }
    }

    #[test]
    fn damaged_blocks_do_not_panic() {
        let rng = SeededRng::new(4);
        for hashes in lists() {
            let mut bytes = Vec::new();
            write(&hashes, &mut bytes);
            for _ in 0..30 {
                let mut damaged = bytes.clone();
                let at = rng.below(damaged.len() as u64) as usize;
                damaged[at] = rng.next_u64() as u8;
                damaged.truncate(1 + rng.below(damaged.len() as u64) as usize);
                let count = hashes.len() + rng.below(2) as usize;
                if let Ok(block) = Block::open(&damaged, hashes[0], count) {
                    let _ = block.read("test", &mut Vec::new());
                    hashes.iter().for_each(|&hash| _ = block.contains(hash));
                }
            }
        }
    }

    #[test]
    fn a_hash_takes_two_bits_more_than_its_entropy() {
        let rng = SeededRng::new(5);
        let any = |_| u128::from(rng.next_u64()) << 24 | u128::from(rng.next_u64() >> 40);
        let mut hashes: Vec<u128> = (0..4_096).map(any).collect();
        hashes.sort_unstable();
        let mut bytes = Vec::new();
        write(&hashes, &mut bytes);
        // 88 bits less 12 for their number, and two.
        assert!(bytes.len() * 8 <= 4_096 * 78 + 64, "{} bytes", bytes.len());
    }
}
