//! Which rows of a run belong to which bucket.
//!
//! The run directory turns hours into row ranges. Only where a bucket begins within an hour are times decoded, of the
//! few rows that a binary search looks at.
//!
//! ```text
//! buckets from 00:00 and 00:30, rows of hours 0: 0..40, 1: 40..50     (0, 0..17), (1, 17..50)
//! ```

use std::ops::Range;

use super::window::Window;
use crate::{
    base::time::HOUR_MS,
    encode::{BLOCK_ROWS, VECTOR_ROWS, ints::IntBlock},
    error::Result,
    segment::{Run, RunDay, Segment},
};

/// Row ranges of a day of a run inside the window, by bucket, counted in the run.
pub fn bucket_rows(
    segment: &Segment,
    run: &Run,
    day: &RunDay<'_>,
    window: &Window,
) -> Result<Vec<(usize, Range<u32>)>> {
    let mut out = Vec::new();
    let first = window.bucket_of(day.bounds.0.max(window.from_ms), 0);
    let mut start = row_at(segment, run, day, window.clip(first).start)?;
    for bucket in first..window.starts.len() {
        let end = row_at(segment, run, day, window.clip(bucket).end)?;
        if start < end {
            out.push((bucket, start..end));
        }
        start = end;
        if end == day.rows.end {
            break;
        }
    }
    Ok(out)
}

/// The first row of a day of the run that is not before `ms`, counted in the run; the one behind its last
/// if there is none.
fn row_at(segment: &Segment, run: &Run, day: &RunDay<'_>, ms: i64) -> Result<u32> {
    if ms <= day.bounds.0 {
        return Ok(day.rows.start);
    }
    if ms > day.bounds.1 {
        return Ok(day.rows.end);
    }
    let hour = ms.div_euclid(HOUR_MS) * HOUR_MS;
    let low = run.rows_before(hour).max(day.rows.start);
    if hour == ms {
        return Ok(low.min(day.rows.end));
    }
    // The edge lies inside an hour: its timestamps are sorted, so search them.
    let high = run.rows_before(hour + HOUR_MS).min(day.rows.end);
    let mut times = TimeReader { segment, block: None };
    let (mut low, mut high) = (low, high);
    while low < high {
        let middle = low + (high - low) / 2;
        if times.at((run.first_row + middle) as usize)? < ms {
            low = middle + 1
        } else {
            high = middle
        }
    }
    Ok(low)
}

/// Single timestamps, with the last vector kept.
struct TimeReader<'a> {
    segment: &'a Segment,
    block: Option<(usize, IntBlock<'a>, usize, Box<[i64; VECTOR_ROWS]>)>,
}

impl TimeReader<'_> {
    fn at(&mut self, row: usize) -> Result<i64> {
        let (block, vector) = (row / BLOCK_ROWS, row % BLOCK_ROWS / VECTOR_ROWS);
        if self.block.as_ref().is_none_or(|(index, ..)| *index != block) {
            let opened = self.segment.times(block)?;
            self.block = Some((block, opened, usize::MAX, Box::new([0; VECTOR_ROWS])));
        }
        let (_, times, loaded, values) = self.block.as_mut().expect("opened above");
        if *loaded != vector {
            times.read_vector(vector, values)?;
            *loaded = vector;
        }
        Ok(values[row % VECTOR_ROWS])
    }
}
