//! Which series of a segment have rollups: positions in its run directory.
//!
//! ```text
//! series 0, 3 and 4 of five      03  00 03 01      their number, then each as the difference to the one before
//! none                           00
//! ```
//!
//! Refused: a position beyond the runs, or one that does not rise (`a rollup belongs to no series`).

#![cfg_attr(not(test), deny(clippy::indexing_slicing, clippy::unwrap_used))]

use crate::{
    base::coding::{Cursor, Put},
    error::Result,
};

/// Appends positions, which rise strictly.
pub fn write_series(positions: &[u32], out: &mut Vec<u8>) {
    out.put_varint(positions.len() as u64);
    let mut before = 0;
    for &position in positions {
        out.put_varint(u64::from(position - before));
        before = position;
    }
}

/// The positions of the series that are rolled up, rising, in a directory of `runs` runs. Errors name `place`.
pub fn read_series(bytes: &[u8], runs: usize, place: &str) -> Result<Vec<u32>> {
    let mut cursor = Cursor::new(bytes, place);
    let mut series: Vec<u32> = Vec::new();
    for _ in 0..cursor.count(1)? {
        let step = cursor.varint_u32()?;
        let before = series.last().copied();
        let position = before.unwrap_or(0).checked_add(step).filter(|&at| (at as usize) < runs);
        let is_rising = before.is_none() || step > 0;
        let position = position.filter(|_| is_rising);
        series.push(position.ok_or_else(|| cursor.error("a rollup belongs to no series"))?);
    }
    cursor.finish()?;
    Ok(series)
}
