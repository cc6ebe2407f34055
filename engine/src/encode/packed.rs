//! Frame of reference: per vector the smallest value, and the distances to it bit-packed.
//!
//! A directory in front gives each vector's base, width and offset, so that any vector is read
//! without its neighbours.

#![cfg_attr(not(test), deny(clippy::indexing_slicing, clippy::unwrap_used))]

use super::{
    VECTOR_ROWS,
    bitpack::{pack, packed_len, unpack, width_of},
};
use crate::{
    base::coding::{Cursor, Put},
    error::Result,
};

const ENTRY_LEN: usize = 8 + 1 + 4;

/// Size in bytes.
pub fn estimate(values: &[i64]) -> usize {
    values
        .chunks(VECTOR_ROWS)
        .map(|vector| {
            let (_, width) = frame(vector);
            ENTRY_LEN + packed_len(vector.len(), width)
        })
        .sum()
}

/// Size in bytes of a block of `rows` rows of which those in `listed`, rising, are not 0.
pub fn estimate_listed(rows: usize, listed: &[(u32, i64)]) -> usize {
    let vector_of = |row: u32| row as usize / VECTOR_ROWS;
    let vectors = listed.chunk_by(|a, b| vector_of(a.0) == vector_of(b.0)).map(|here| {
        let start = here.first().map_or(0, |&(row, _)| vector_of(row) * VECTOR_ROWS);
        let values = here.iter().map(|&(_, value)| value);
        let (min, max) = values.fold((0, 0), |(min, max), value| (value.min(min), value.max(max)));
        let width = width_of(max.wrapping_sub(min) as u64);
        packed_len(rows.saturating_sub(start).min(VECTOR_ROWS), width)
    });
    rows.div_ceil(VECTOR_ROWS) * ENTRY_LEN + vectors.sum::<usize>()
}

/// Smallest value and the width of the largest distance to it.
fn frame(vector: &[i64]) -> (i64, u32) {
    let min = vector.iter().copied().min().unwrap_or_default();
    let max = vector.iter().copied().max().unwrap_or_default();
    (min, width_of(max.wrapping_sub(min) as u64))
}

/// Appends directory and vectors.
pub fn write(values: &[i64], out: &mut Vec<u8>) {
    let mut payload = Vec::with_capacity(estimate(values));
    let mut distances = Vec::with_capacity(VECTOR_ROWS);
    for vector in values.chunks(VECTOR_ROWS) {
        let (min, width) = frame(vector);
        out.put_i64(min);
        out.put_u8(width as u8);
        out.put_u32(payload.len() as u32);
        distances.clear();
        distances.extend(vector.iter().map(|value| value.wrapping_sub(min) as u64));
        pack(&distances, width, &mut payload);
    }
    out.extend_from_slice(&payload);
}

/// A readable packed block.
#[derive(Clone, Copy)]
pub struct Packed<'a> {
    directory: &'a [u8],
    payload: &'a [u8],
    place: &'a str,
}

/// Opens a block of `rows` rows, which takes the rest of the cursor.
pub fn open<'a>(cursor: &mut Cursor<'a>, rows: usize, place: &'a str) -> Result<Packed<'a>> {
    let directory = cursor.take(rows.div_ceil(VECTOR_ROWS) * ENTRY_LEN)?;
    let payload = cursor.take(cursor.remaining())?;
    Ok(Packed { directory, payload, place })
}

impl Packed<'_> {
    /// Reads rows of vector `index` into `out`, from its row `first` on.
    pub fn read(&self, index: usize, first: usize, out: &mut [i64]) -> Result<()> {
        let mut entry = Cursor::new(self.directory, self.place);
        entry.take(index * ENTRY_LEN)?;
        let (min, width, offset) = (entry.i64()?, u32::from(entry.u8()?), entry.u32()? as usize);
        if width > 64 || first + out.len() > VECTOR_ROWS {
            return Err(entry.error("a vector has an impossible width"));
        }
        let mut payload = Cursor::new(self.payload, self.place);
        payload.take(offset)?;
        let bytes = payload.take(packed_len(first + out.len(), width))?;
        unpack(bytes, width, first, min, out);
        Ok(())
    }
}
