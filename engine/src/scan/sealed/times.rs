//! Times of rows, read vector by vector: where an instant lies in a series, whose rows rise in time.
//!
//! Series that follow each other share vectors, so a reader keeps the one it read last: bounds of all series of a segment
//! cost each vector once at most.

#![cfg_attr(not(test), deny(clippy::indexing_slicing, clippy::unwrap_used))]

use std::ops::Range;

use super::{Sealed, in_block, vectors};
use crate::{
    encode::{VECTOR_ROWS, ints::IntBlock},
    error::Result,
    segment::SegmentFile,
};

/// What it takes to decode the time of a row and to find its bucket: twice as much as decoding it alone.
const TIME_COST: usize = 2;

/// Reads times, and keeps the block and the vector that were read last for the next row range.
pub struct Times<'a> {
    file: &'a SegmentFile,
    block: Option<(usize, IntBlock<'a>)>,
    /// Which one of the segment.
    vector: Option<u32>,
    times: [i64; VECTOR_ROWS],
}

impl<'a> Times<'a> {
    /// Of the rows of a segment.
    pub fn of(file: &'a SegmentFile) -> Self {
        Self { file, block: None, vector: None, times: [0; VECTOR_ROWS] }
    }

    /// What it takes to read those of some rows and to find their buckets. One is what it takes to decode one of many times that follow each other.
    pub fn cost(&self, rows: &Range<u32>) -> usize {
        let is_read = self.vector == Some(rows.start / VECTOR_ROWS as u32);
        TIME_COST * rows.len().max(if is_read { 0 } else { VECTOR_ROWS })
    }

    /// The times of rows within one vector.
    ///
    /// Errors: `Corrupt`.
    pub fn read(&mut self, rows: &Range<u32>) -> Result<&[i64]> {
        let vector = rows.start / VECTOR_ROWS as u32;
        if self.vector != Some(vector) {
            let index = Sealed::block_of(rows.start);
            let block = match self.block.take() {
                Some((open, block)) if open == index => block,
                _ => self.file.times(index)?,
            };
            let (_, block) = self.block.insert((index, block));
            block.read_vector(in_block(rows.start) / VECTOR_ROWS, &mut self.times)?;
            self.vector = Some(vector);
        }
        let start = rows.start as usize % VECTOR_ROWS;
        Ok(self.times.get(start..start + rows.len()).unwrap_or_default())
    }
}

/// The first of all rows of a run that is not before `ms`.
///
/// Errors: `Corrupt`.
pub fn first_row_of(run: &Range<u32>, ms: i64, times: &mut Times<'_>) -> Result<u32> {
    let mut rows = run.clone();
    // Halves until one vector is left.
    while rows.len() > VECTOR_ROWS {
        let middle = rows.start + rows.len() as u32 / 2;
        match times.read(&(middle..middle + 1))? {
            [time] if *time < ms => rows.start = middle + 1,
            _ => rows.end = middle,
        }
    }
    for piece in vectors(rows.clone()) {
        let times = times.read(&piece)?;
        let before = times.partition_point(|&time| time < ms);
        if before < times.len() {
            return Ok(piece.start + before as u32);
        }
    }
    Ok(rows.end)
}
