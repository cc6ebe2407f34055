//! Reading rows of a block vector by vector: a vector is unpacked as a whole or not at all.

#![cfg_attr(not(test), deny(clippy::indexing_slicing, clippy::unwrap_used))]

use std::ops::Range;

use super::row_ranges::Morsel;
use crate::{
    encode::{BLOCK_ROWS, VECTOR_ROWS, ints::IntBlock},
    error::Result,
};

/// The place of a row within its block.
pub fn in_block(row: u32) -> usize {
    row as usize % BLOCK_ROWS
}

/// The block of a morsel's rows.
pub fn block_of(morsel: &Morsel) -> Option<usize> {
    morsel.row_ranges.first().map(|row_range| row_range.rows.start as usize / BLOCK_ROWS)
}

/// Pieces of a range of rows, each within a vector.
pub fn vectors(mut rows: Range<u32>) -> impl Iterator<Item = Range<u32>> {
    std::iter::from_fn(move || {
        let end = (rows.start / VECTOR_ROWS as u32 + 1).saturating_mul(VECTOR_ROWS as u32);
        let piece = rows.start..end.min(rows.end);
        rows.start = piece.end;
        (!piece.is_empty()).then_some(piece)
    })
}

/// Pieces of a morsel's rows, each within a vector. Row ranges that follow each other are one.
fn pieces(morsel: &Morsel) -> impl Iterator<Item = Range<u32>> + '_ {
    let mut row_ranges =
        morsel.row_ranges.iter().map(|row_range| row_range.rows.clone()).peekable();
    let joined = std::iter::from_fn(move || {
        let mut rows = row_ranges.next()?;
        while let Some(next) = row_ranges.next_if(|next| next.start == rows.end) {
            rows.end = next.end;
        }
        Some(rows)
    });
    joined.flat_map(vectors)
}

/// Reads the rows of a morsel: of each vector once, from the first row that is asked for to the last.
pub fn by_vector<T: Copy + Default>(
    morsel: &Morsel,
    mut read: impl FnMut(usize, &mut [T]) -> Result<()>,
    mut take: impl FnMut(&[T]),
) -> Result<()> {
    let vector_of = |row: u32| row / VECTOR_ROWS as u32;
    let mut vector = [T::default(); VECTOR_ROWS];
    let mut pieces = pieces(morsel).peekable();
    let mut here: Vec<Range<u32>> = Vec::new();
    while let Some(first) = pieces.next() {
        let start = first.start;
        let mut end = first.end;
        here.clear();
        here.push(first);
        while let Some(next) = pieces.next_if(|next| vector_of(next.start) == vector_of(start)) {
            end = next.end;
            here.push(next);
        }
        let (rows, _) = vector.split_at_mut((end - start) as usize);
        read(in_block(start), rows)?;
        for piece in here.drain(..) {
            let within = (piece.start - start) as usize..(piece.end - start) as usize;
            take(rows.get(within).unwrap_or_default());
        }
    }
    Ok(())
}

/// Reads the integers of a morsel's rows.
pub fn read_ints(block: &IntBlock<'_>, morsel: &Morsel, take: impl FnMut(&[i64])) -> Result<()> {
    by_vector(morsel, |at, to: &mut [i64]| block.read_rows(at, to), take)
}
