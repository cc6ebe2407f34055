//! Frame of reference: per vector the smallest value, and the distances to it bit-packed.
//!
//! Values that are rarely large would widen all the others, so a vector may pack only the low bits and list
//! the few rows that have more (patches). A directory in front gives each vector's base, width and offset,
//! so that any vector is read without its neighbours.
//!
//! ```text
//! [100, 103, 101, 107]   offset  bytes
//! smallest base               0  64 00 00 00 00 00 00 00     (100)
//! bytes of a base             8  00                          (one vector: its base is the smallest)
//! vector 0: width             9  03                          (the distances 0, 3, 1, 7 need three bits)
//! vector 0: offset           10  00 00 00
//! payload                    13  58 0e 00 00 00 00 00 00     (0 | 3 << 3 | 1 << 6 | 7 << 9 = 0xe58)
//! ```
//!
//! With patches. 3,000 values below 250, one in a hundred a thousand times as large: 18 bits each would be 6,773 bytes.
//! The writer packs the low eight bits of all and lists the ten high bits of the few: 3,123 bytes.
//!
//! ```text
//! directory              offset  bytes
//! smallest base, bytes        0  00 00 00 00 00 00 00 00 00
//! vector 0                    9  88 00 00 00                 (0x80: patches; width 8; offset 0)
//! vector 1                   13  88 22 04 00                 (offset 1058 = 1024 + 2 + 16 + 16)
//! vector 2                   17  88 44 08 00                 (offset 2116)
//! behind the low bits of vector 0:
//! patches, width           1045  0b 0a                       (11 patches of 10 bits)
//! rows                     1047  16 bytes                    (11 rows of 10 bits: 7, 107, 207, …)
//! high bits                1063  16 bytes
//! ```

#![cfg_attr(not(test), deny(clippy::indexing_slicing, clippy::unwrap_used))]

use super::{
    VECTOR_ROWS,
    bitpack::{pack, packed_len, unpack, width_of},
    relative::Relative,
};
use crate::{
    base::coding::{Cursor, Put},
    error::Result,
};

/// Bytes of a directory entry besides its base: width, and offset of three bytes.
const ENTRY_LEN: usize = 1 + 3;
/// Bit of the width byte of a vector with patches; a width is at most 64, so the bit is free.
const PATCHED: u8 = 0x80;
/// Patches of a vector, at most. So many rows and high bits are unpacked into arrays on the stack.
const PATCHES_MAX: usize = 127;
/// Bytes in front of patches: how many, and the width of what they add.
const PATCHES_HEADER: usize = 2;
/// Bits of a row within its vector: 1,024 rows.
const ROW_BITS: u32 = 10;
/// Patches cost time to read, so they must save a sixteenth of the bytes of the vector without them.
const WORTH_IT: usize = 16;

/// A histogram: how many values of a vector need 0, 1, … 64 bits. All that the choice of a frame depends on.
struct Widths([u16; 65]);

/// How the distances of a vector are stored: in `width` bits each, and `patch_width` further bits for some.
#[derive(Clone, Copy)]
struct PackedFrame {
    min: i64,
    width: u32,
    patches: usize,
    patch_width: u32,
}

impl PackedFrame {
    fn of(vector: &[i64]) -> Self {
        let min = vector.iter().copied().min().unwrap_or_default();
        let mut widths = Widths([0; 65]);
        vector.iter().for_each(|value| widths.add(value.wrapping_sub(min) as u64, 1));
        Self::choose(min, &widths)
    }

    /// The smallest frame for values of these widths, and without patches where none saves enough.
    ///
    /// Goes down from the widest value: each step narrower adds the values of one more width to the patches, until these are
    /// more than a vector may have.
    fn choose(min: i64, widths: &Widths) -> Self {
        let count: usize = widths.0.iter().map(|&count| usize::from(count)).sum();
        let widest = widths.0.iter().rposition(|&count| count > 0).unwrap_or(0) as u32;
        let plain = Self { min, width: widest, patches: 0, patch_width: 0 };
        let plain_bytes = plain.bytes(count);
        let (mut best, mut best_bytes) = (plain, plain_bytes - plain_bytes / WORTH_IT);
        let mut patches = 0;
        for width in (0..widest).rev() {
            patches += usize::from(widths.0.get(width as usize + 1).copied().unwrap_or(0));
            if patches > PATCHES_MAX {
                break;
            }
            let frame = Self { min, width, patches, patch_width: widest - width };
            if frame.bytes(count) < best_bytes {
                (best, best_bytes) = (frame, frame.bytes(count));
            }
        }
        best
    }

    /// Bytes of a vector of `count` rows in the payload, patches included.
    fn bytes(&self, count: usize) -> usize {
        let patches = match self.patches {
            0 => 0,
            patches => {
                let rows = packed_len(patches, ROW_BITS);
                PATCHES_HEADER + rows + packed_len(patches, self.patch_width)
            }
        };
        packed_len(count, self.width) + patches
    }

    fn write(&self, vector: &[i64], out: &mut Vec<u8>) {
        let low = if self.width == 64 { u64::MAX } else { (1 << self.width) - 1 };
        let distances: Vec<u64> =
            vector.iter().map(|value| value.wrapping_sub(self.min) as u64).collect();
        let lows: Vec<u64> = distances.iter().map(|distance| distance & low).collect();
        pack(&lows, self.width, out);
        if self.patches > 0 {
            let large = || distances.iter().enumerate().filter(|(_, distance)| **distance > low);
            let rows: Vec<u64> = large().map(|(row, _)| row as u64).collect();
            let highs: Vec<u64> = large().map(|(_, distance)| distance >> self.width).collect();
            out.put_u8(rows.len() as u8);
            out.put_u8(self.patch_width as u8);
            pack(&rows, ROW_BITS, out);
            pack(&highs, self.patch_width, out);
        }
    }
}

impl Widths {
    fn add(&mut self, value: u64, times: usize) {
        if let Some(count) = self.0.get_mut(width_of(value) as usize) {
            *count += times as u16;
        }
    }
}

/// Size in bytes of the output of [`write()`], exactly: 21 for the four values above.
pub fn estimate(values: &[i64]) -> usize {
    let frames: Vec<(PackedFrame, usize)> =
        values.chunks(VECTOR_ROWS).map(|vector| (PackedFrame::of(vector), vector.len())).collect();
    size(&frames)
}

/// Size in bytes of a block of `rows` rows of which those in `listed`, rising, are not 0.
///
/// Equals [`estimate`] of all rows, from the listed ones alone: zeros enter the histogram of their vector by their number.
pub fn estimate_listed(rows: usize, listed: &[(u32, i64)]) -> usize {
    let mut rest = listed;
    let mut frames = Vec::new();
    for start in (0..rows).step_by(VECTOR_ROWS) {
        let count = (rows - start).min(VECTOR_ROWS);
        let (here, behind) =
            rest.split_at(rest.partition_point(|&(row, _)| (row as usize) < start + count));
        rest = behind;
        let zeros = count.saturating_sub(here.len());
        let least = here.iter().map(|&(_, value)| value).min();
        // A zero is a value too: it is the smallest unless a listed one is negative, or all rows are listed.
        let min = least.map_or(0, |least| if zeros > 0 { least.min(0) } else { least });
        let mut widths = Widths([0; 65]);
        here.iter().for_each(|&(_, value)| widths.add(value.wrapping_sub(min) as u64, 1));
        widths.add(0i64.wrapping_sub(min) as u64, zeros);
        frames.push((PackedFrame::choose(min, &widths), count));
    }
    size(&frames)
}

fn size(frames: &[(PackedFrame, usize)]) -> usize {
    let bases = Relative::to(frames.iter().map(|(frame, _)| frame.min));
    let vectors: usize = frames.iter().map(|(frame, count)| frame.bytes(*count)).sum();
    Relative::HEADER_LEN + frames.len() * (bases.len() + ENTRY_LEN) + vectors
}

/// Appends header, directory and payload. Without values that is the header alone, nine bytes.
pub fn write(values: &[i64], out: &mut Vec<u8>) {
    let frames: Vec<PackedFrame> = values.chunks(VECTOR_ROWS).map(PackedFrame::of).collect();
    let bases = Relative::to(frames.iter().map(|frame| frame.min));
    bases.write_header(out);
    let mut payload = Vec::new();
    for (frame, vector) in frames.iter().zip(values.chunks(VECTOR_ROWS)) {
        bases.write(frame.min, out);
        let patched = if frame.patches > 0 { PATCHED } else { 0 };
        out.put_u8(frame.width as u8 | patched);
        out.extend((payload.len() as u32).to_le_bytes().iter().take(3));
        frame.write(vector, &mut payload);
    }
    out.extend_from_slice(&payload);
}

/// A packed block that is opened: header and directory are split off, no vector is read yet.
#[derive(Clone, Copy)]
pub struct Packed<'a> {
    rows: usize,
    bases: Relative,
    directory: &'a [u8],
    payload: &'a [u8],
    place: &'a str,
}

/// Opens a block of `rows` rows, which takes the rest of the cursor.
///
/// Errors: `Corrupt` when the input ends within header or directory. Widths and offsets are looked at when a vector is read.
pub fn open<'a>(cursor: &mut Cursor<'a>, rows: usize, place: &'a str) -> Result<Packed<'a>> {
    let bases = Relative::read_header(cursor)?;
    let directory = cursor.take(rows.div_ceil(VECTOR_ROWS) * (bases.len() + ENTRY_LEN))?;
    let payload = cursor.take(cursor.remaining())?;
    Ok(Packed { rows, bases, directory, payload, place })
}

impl Packed<'_> {
    /// Reads rows of vector `index` into `out`, from its row `first` on.
    ///
    /// Errors: `Corrupt` when the width is above 64, the rows reach behind the vector, or its bits lie outside of the payload.
    pub fn read(&self, index: usize, first: usize, out: &mut [i64]) -> Result<()> {
        let mut entry = Cursor::new(self.directory, self.place);
        entry.take(index * (self.bases.len() + ENTRY_LEN))?;
        let min = self.bases.read(&mut entry)?;
        let (tag, offset) = (entry.u8()?, entry.u24()? as usize);
        let width = u32::from(tag & !PATCHED);
        let count = self.rows.saturating_sub(index * VECTOR_ROWS).min(VECTOR_ROWS);
        if width > 64 || first + out.len() > count {
            return Err(entry.error("a vector has an impossible width"));
        }
        let mut payload = Cursor::new(self.payload, self.place);
        payload.take(offset)?;
        let bytes = payload.take(packed_len(count, width))?;
        unpack(bytes, width, first, min, out);
        if tag & PATCHED != 0 {
            patch(&mut payload, width, first, out)?;
        }
        Ok(())
    }
}

/// Adds the high bits of the rows that are listed behind a vector. `out` holds the rows from `first` on; patches of other rows
/// are passed over.
fn patch(payload: &mut Cursor<'_>, width: u32, first: usize, out: &mut [i64]) -> Result<()> {
    let (count, patch_width) = (usize::from(payload.u8()?), u32::from(payload.u8()?));
    if count > PATCHES_MAX || width + patch_width > 64 {
        return Err(payload.error("a vector has impossible patches"));
    }
    let (mut rows, mut highs) = ([0; PATCHES_MAX], [0; PATCHES_MAX]);
    let ((rows, _), (highs, _)) = (rows.split_at_mut(count), highs.split_at_mut(count));
    unpack(payload.take(packed_len(count, ROW_BITS))?, ROW_BITS, 0, 0, rows);
    unpack(payload.take(packed_len(count, patch_width))?, patch_width, 0, 0, highs);
    for (&row, &high) in rows.iter().zip(highs.iter()) {
        if let Some(slot) = (row as usize).checked_sub(first).and_then(|at| out.get_mut(at)) {
            *slot = slot.wrapping_add(high.checked_shl(width).unwrap_or(0));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn round_trip(values: &[i64]) -> usize {
        let mut bytes = Vec::new();
        write(values, &mut bytes);
        assert_eq!(bytes.len(), estimate(values));
        let listed: Vec<(u32, i64)> =
            (0..).zip(values.iter().copied()).filter(|(_, value)| *value != 0).collect();
        assert_eq!(bytes.len(), estimate_listed(values.len(), &listed));
        let block = open(&mut Cursor::new(&bytes, "test"), values.len(), "test").unwrap();
        for (index, vector) in values.chunks(VECTOR_ROWS).enumerate() {
            let (first, end) = (vector.len() / 3, vector.len() - vector.len() / 4);
            for (first, end) in [(0, vector.len()), (first, end), (end, vector.len())] {
                let mut read = vec![0; end - first];
                block.read(index, first, &mut read).unwrap();
                assert_eq!(read, vector[first..end], "rows {first} to {end} of vector {index}");
            }
        }
        bytes.len()
    }

    /// One row in a hundred is a thousand times as large.
    #[test]
    fn few_large_values_do_not_widen_the_others() {
        let values: Vec<i64> =
            (0..3_000).map(|n| n * 7_919 % 250 * if n % 100 == 7 { 1_000 } else { 1 }).collect();
        let len = round_trip(&values);
        assert!(len < 3_000 * 10 / 8, "{len} bytes instead of 18 bits a row");
    }

    proptest! {
        #[test]
        fn skewed_values_round_trip(draws in prop::collection::vec((0u32..64, any::<u64>()), 0..2_500), base in any::<i64>()) {
            // Most widths are small.
            let value = |&(width, bits): &(u32, u64)| (bits >> (64 - width.min(63) * width / 63).min(63)) as i64;
            let values: Vec<i64> = draws.iter().map(|draw| value(draw).wrapping_add(base)).collect();
            round_trip(&values);
        }
    }
}
