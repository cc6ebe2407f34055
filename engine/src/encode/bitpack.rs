//! Kernels: unsigned integers of equal width, end to end in little-endian words of 64 bits.

#![cfg_attr(not(test), deny(clippy::unwrap_used))]

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

/// Widths up to here lie within eight bytes wherever they begin.
const WIDTH_OF_A_LOAD: u32 = 57;

/// Reads `out.len()` values from number `first` on and adds `base` to each, wrapping. `bytes` holds at
/// least `packed_len` of all up to the last one.
pub fn unpack(bytes: &[u8], width: u32, first: usize, base: i64, out: &mut [i64]) {
    if width == 0 {
        out.fill(base);
        return;
    }
    let mask = u64::MAX >> (64 - width);
    if width > WIDTH_OF_A_LOAD {
        for (value, index) in out.iter_mut().zip(first..) {
            let bit = index * width as usize;
            let (at, shift) = (bit / 64 * 8, (bit % 64) as u32);
            let low = load(bytes, at) >> shift;
            // A shift by 64 would be the whole next word shifted out: two shifts avoid the branch.
            let high = (load(bytes, at + 8) << 1) << (63 - shift);
            *value = base.wrapping_add(((low | high) & mask) as i64);
        }
        return;
    }
    // Of these a load of eight bytes stays inside.
    let whole = bytes.len().checked_sub(8).map_or(0, |last| (last * 8 + 7) / width as usize + 1);
    let (head, tail) = out.split_at_mut(whole.saturating_sub(first).min(out.len()));
    let mut bit = first * width as usize;
    for value in head {
        let (at, shift) = (bit / 8, bit % 8);
        let word = bytes.get(at..at + 8).and_then(|word| word.try_into().ok());
        let word = word.map_or(0, u64::from_le_bytes);
        *value = base.wrapping_add((word >> shift & mask) as i64);
        bit += width as usize;
    }
    for value in tail {
        *value = base.wrapping_add((load(bytes, bit / 8) >> (bit % 8) & mask) as i64);
        bit += width as usize;
    }
}

/// Eight bytes from `at` on, zero behind the end.
fn load(bytes: &[u8], at: usize) -> u64 {
    let mut word = [0; 8];
    let rest = bytes.get(at..).unwrap_or_default();
    for (to, from) in word.iter_mut().zip(rest) {
        *to = *from;
    }
    u64::from_le_bytes(word)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::encode::VECTOR_ROWS;

    proptest! {
        #[test]
        fn every_width_round_trips(width in 0u32..=64, seeds in prop::collection::vec(any::<u64>(), 0..1025)) {
            let mask = if width == 0 { 0 } else { u64::MAX >> (64 - width) };
            let values: Vec<u64> = seeds.iter().take(VECTOR_ROWS).map(|seed| seed & mask).collect();
            let mut bytes = Vec::new();
            pack(&values, width, &mut bytes);
            prop_assert_eq!(bytes.len(), packed_len(values.len(), width));
            let mut read = vec![0; values.len()];
            unpack(&bytes, width, 0, 0, &mut read);
            prop_assert!(read.iter().map(|value| *value as u64).eq(values.iter().copied()));
            // Any part reads the same, from no more bytes than it needs.
            let (first, end) = (seeds.len() / 3, seeds.len() * 2 / 3);
            let mut part = vec![0; end - first];
            unpack(&bytes[..packed_len(end, width)], width, first, 7, &mut part);
            let expected = read[first..end].iter().map(|value| value.wrapping_add(7));
            prop_assert!(part.iter().copied().eq(expected));
        }
    }
}
