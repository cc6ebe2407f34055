//! Kernels: unsigned integers of equal width, end to end in little-endian words of 64 bits.
//!
//! The innermost loop of every scan: dictionary codes, times and scaled numbers come out of here, 1,024 at a time. A value
//! may lie across two words. 64 values of `width` bits fill exactly `width` words, so a group of 64 begins at a word, and
//! one kernel for each width has all its shifts as constants.
//!
//! ```text
//! pack(&[5, 1, 7, 2], 3)         offset  bytes
//! one word                            0  cd 05 00 00 00 00 00 00
//!
//! 0x5cd = 0b010_111_001_101              the first value in the lowest bits: 5, 1, 7, 2
//!
//! unpack(&bytes, 3, 1, 100, &mut [_; 2])   → [101, 107]    (values 1 and 2, with base 100 added)
//! ```
//!
//! Values that are cut off at the end of the input read as zeros: callers take `packed_len` bytes first, which fails on an
//! input that is too short.

#![cfg_attr(not(test), deny(clippy::unwrap_used))]

/// Bits that `value` needs: 0 for 0, 3 for 5, 64 for `u64::MAX`.
pub fn width_of(value: u64) -> u32 {
    64 - value.leading_zeros()
}

/// Bytes that `count` values of `width` bits take, in whole words: 8 for four values of 3 bits, 16 for 22 of them.
pub fn packed_len(count: usize, width: u32) -> usize {
    (count * width as usize).div_ceil(64) * 8
}

/// Appends values, each below 2^width. Of width 0 nothing is appended.
pub fn pack(values: &[u64], width: u32, out: &mut Vec<u8>) {
    let mut word = 0u64;
    let mut filled = 0u32;
    for &value in values {
        debug_assert!(width == 64 || value >> width == 0);
        // The part that fits this word; the rest, if any, begins the next one.
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

/// Reads `out.len()` values from number `first` on and adds `base` to each, wrapping. `bytes` holds at
/// least `packed_len` of all up to the last one.
///
/// A range is read as the end of a group, whole groups, and the beginning of a group:
///
/// ```text
/// first 40, 200 values:   40..64 part | 64..128 group | 128..192 group | 192..240 part
/// ```
pub fn unpack(bytes: &[u8], width: u32, first: usize, base: i64, out: &mut [i64]) {
    if width == 0 {
        out.fill(base);
        return;
    }
    // Groups of 64 begin at a word, and a kernel of their width knows every shift.
    let head = (first.next_multiple_of(GROUP) - first).min(out.len());
    let (head, rest) = out.split_at_mut(head);
    let (groups, tail) = rest.as_chunks_mut::<GROUP>();
    let mut at = first + head.len();
    unpack_part(bytes, width, first, base, head);
    for group in groups {
        unpack_whole(bytes, width, at, base, group);
        at += GROUP;
    }
    unpack_part(bytes, width, at, base, tail);
}

/// Reads the group whose first value has number `first`, a multiple of 64, by the kernel of its width.
fn unpack_whole(bytes: &[u8], width: u32, first: usize, base: i64, out: &mut [i64; GROUP]) {
    let (Some(kernel), Some(rest)) =
        (KERNELS.get(width as usize), bytes.get(first * width as usize / 8..))
    else {
        return unpack_any(bytes, width, first, base, out);
    };
    match rest.get(..width as usize * 8) {
        Some(words) => kernel(words, base, out),
        // The last words are cut off where nothing of them is needed.
        None => {
            let mut words = [0; GROUP * 8];
            words.iter_mut().zip(rest).for_each(|(to, from)| *to = *from);
            kernel(&words, base, out);
        }
    }
}

/// Reads a part of a group: few values one by one, more of them by reading the whole group and copying the part out of it.
fn unpack_part(bytes: &[u8], width: u32, first: usize, base: i64, out: &mut [i64]) {
    if out.len() < PART_MIN {
        return unpack_any(bytes, width, first, base, out);
    }
    let skipped = first % GROUP;
    let mut group = [0; GROUP];
    unpack_whole(bytes, width, first - skipped, base, &mut group);
    out.iter_mut().zip(group.iter().skip(skipped)).for_each(|(to, from)| *to = *from);
}

/// Values from which on reading all 64 of the group is as quick as reading so many one by one.
const PART_MIN: usize = 12;
/// Values that end where a word ends, whatever their width.
const GROUP: usize = 64;

/// Arguments: the words of a group, the base that is added to each value, and room for the group.
type Kernel = fn(&[u8], i64, &mut [i64; GROUP]);

/// Reads 64 values of `WIDTH` bits from as many words.
fn unpack_group<const WIDTH: usize>(bytes: &[u8], base: i64, out: &mut [i64; GROUP]) {
    let mut words = [0u64; WIDTH];
    for (word, bytes) in words.iter_mut().zip(bytes.as_chunks::<8>().0) {
        *word = u64::from_le_bytes(*bytes);
    }
    let mask = u64::MAX >> (64 - WIDTH);
    // Written out, so that every place and shift is a constant.
    macro_rules! each {
        ($($index:literal)*) => {$({
            let (at, shift) = ($index * WIDTH / 64, $index * WIDTH % 64);
            let mut bits = words[at] >> shift;
            if shift + WIDTH > 64 {
                bits |= words[at + 1] << (64 - shift);
            }
            out[$index] = base.wrapping_add((bits & mask) as i64);
        })*};
    }
    each!(
        0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30 31
        32 33 34 35 36 37 38 39 40 41 42 43 44 45 46 47 48 49 50 51 52 53 54 55 56 57 58 59 60 61 62 63
    );
}

/// By width. The entry of width 0 is a filler: [`unpack`] has returned before it is looked up.
const KERNELS: [Kernel; 65] = kernels();

const fn kernels() -> [Kernel; 65] {
    macro_rules! of {
        ($($width:literal)*) => { [unpack_group::<1>, $(unpack_group::<$width>),*] };
    }
    of!(
        1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30 31 32
        33 34 35 36 37 38 39 40 41 42 43 44 45 46 47 48 49 50 51 52 53 54 55 56 57 58 59 60 61 62 63 64
    )
}

/// Reads values one by one: what lies before and behind whole groups.
fn unpack_any(bytes: &[u8], width: u32, first: usize, base: i64, out: &mut [i64]) {
    let mask = u64::MAX >> (64 - width);
    for (value, index) in out.iter_mut().zip(first..) {
        let bit = index * width as usize;
        let (at, shift) = (bit / 64 * 8, (bit % 64) as u32);
        let low = load(bytes, at) >> shift;
        // A shift by 64 would be the whole next word shifted out: two shifts avoid the branch.
        let high = (load(bytes, at + 8) << 1) << (63 - shift);
        *value = base.wrapping_add(((low | high) & mask) as i64);
    }
}

/// Eight bytes from `at` on, zero behind the end.
fn load(bytes: &[u8], at: usize) -> u64 {
    if let Some(word) = bytes.get(at..at + 8).and_then(|word| word.try_into().ok()) {
        return u64::from_le_bytes(word);
    }
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
