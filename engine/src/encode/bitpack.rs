//! Kernels: unsigned integers of equal width, end to end in little-endian words of 64 bits.

#![cfg_attr(not(test), deny(clippy::unwrap_used))]

use super::VECTOR_ROWS;

/// Bits that `value` needs.
pub fn width_of(value: u64) -> u32 {
    64 - value.leading_zeros()
}

/// Bytes that `count` values of `width` bits take.
pub fn packed_len(count: usize, width: u32) -> usize {
    (count * width as usize).div_ceil(64) * 8
}

/// Appends values, each below 2^width.
pub fn pack(values: &[u64], width: u32, out: &mut Vec<u8>) {
    let mut word = 0u64;
    let mut filled = 0u32;
    for &value in values {
        debug_assert!(width == 64 || value >> width == 0);
        word |= value.checked_shl(filled).unwrap_or(0);
        let room = 64 - filled;
        if width >= room {
            out.extend_from_slice(&word.to_le_bytes());
            word = value.checked_shr(room).unwrap_or(0);
            filled = width - room;
        } else {
            filled += width;
        }
    }
    if filled > 0 {
        out.extend_from_slice(&word.to_le_bytes());
    }
}

/// Reads `out.len()` values, at most a vector. `bytes` holds at least `packed_len` of them.
pub fn unpack(bytes: &[u8], width: u32, out: &mut [u64]) {
    if width == 0 {
        out.fill(0);
        return;
    }
    // One word more than needed, so that the kernel may read ahead.
    let mut words = [0u64; VECTOR_ROWS + 1];
    for (word, chunk) in words.iter_mut().zip(bytes.chunks_exact(8)) {
        *word = u64::from_le_bytes(chunk.try_into().unwrap_or_default());
    }
    let mask = u64::MAX >> (64 - width);
    for (index, value) in out.iter_mut().enumerate() {
        let bit = index * width as usize;
        let (word, shift) = (bit >> 6, (bit & 63) as u32);
        let low = words[word] >> shift;
        // A shift by 64 would be the whole next word shifted out: two shifts avoid the branch.
        let high = (words[word + 1] << 1) << (63 - shift);
        *value = (low | high) & mask;
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn every_width_round_trips(width in 0u32..=64, seeds in prop::collection::vec(any::<u64>(), 0..1025)) {
            let mask = if width == 0 { 0 } else { u64::MAX >> (64 - width) };
            let values: Vec<u64> = seeds.iter().take(VECTOR_ROWS).map(|seed| seed & mask).collect();
            let mut bytes = Vec::new();
            pack(&values, width, &mut bytes);
            prop_assert_eq!(bytes.len(), packed_len(values.len(), width));
            let mut read = vec![0; values.len()];
            unpack(&bytes, width, &mut read);
            prop_assert_eq!(read, values);
        }
    }
}
