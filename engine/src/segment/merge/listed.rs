//! Columns that few rows have: only those rows are read, moved and written.
//!
//! A day with two thousand properties, each in a few rows, would otherwise cost two thousand times all
//! of its rows, at every merge.

use super::order::Order;
use crate::{
    encode::{BLOCK_ROWS, Listed, ints::IntBlock, numbers, numbers::NumberBlock},
    error::Result,
    segment::Segment,
};

/// A row of the output: where it stands, the input that it comes from, and its value there.
pub type ListedRow<T> = (u32, u16, T);

/// Where rows of the inputs come to stand in the output.
pub struct Places {
    /// For each input by first row: first row, number of rows, and the place of the first.
    spans: Vec<Vec<(u32, u32, u32)>>,
}

impl Places {
    /// Of the rows in an order.
    pub fn of(order: &Order, inputs: usize) -> Self {
        let mut spans = vec![Vec::new(); inputs];
        let mut place = 0;
        for span in &order.spans {
            spans[usize::from(span.input)].push((span.start, span.rows, place));
            place += span.rows;
        }
        // Series are in order in inputs and output alike, but pieces of one may be cut.
        spans.iter_mut().for_each(|spans| spans.sort_unstable());
        Self { spans }
    }

    fn place(&self, input: usize, row: u32) -> Option<u32> {
        let spans = &self.spans[input];
        let at = spans.partition_point(|&(start, ..)| start <= row).checked_sub(1)?;
        let (start, rows, place) = spans[at];
        (row - start < rows).then(|| place + row - start)
    }
}

/// A block that may know its few rows that have a value.
pub trait ListsRows {
    /// What a row has.
    type Value: Copy;
    /// Those rows, if it knows them.
    fn rows(&self) -> Result<Option<Listed<Self::Value>>>;
}

impl ListsRows for IntBlock<'_> {
    type Value = i64;

    fn rows(&self) -> Result<Option<Listed<i64>>> {
        self.listed()
    }
}

impl ListsRows for NumberBlock<'_> {
    type Value = f64;

    fn rows(&self) -> Result<Option<Listed<f64>>> {
        self.listed()
    }
}

/// The rows of the output that have a column, by place. `None` when they are too many to be listed, or
/// a block of an input does not list them. `open` opens a block, or gives `None` where the input lacks
/// the column.
pub fn listed<B: ListsRows>(
    inputs: &[&Segment],
    places: &Places,
    rows: usize,
    open: impl Fn(usize, usize) -> Result<Option<B>>,
) -> Result<Option<Vec<ListedRow<B::Value>>>> {
    let mut found = Vec::new();
    for (input, segment) in inputs.iter().enumerate() {
        for index in 0..segment.block_count() {
            let Some(block) = open(input, index)? else { break };
            let Some(listed) = block.rows()? else { return Ok(None) };
            let first = (index * BLOCK_ROWS) as u32;
            let placed = listed.into_iter().filter_map(|(row, value)| {
                Some((places.place(input, first + row)?, input as u16, value))
            });
            found.extend(placed);
            if found.len() * numbers::LISTED_FROM >= rows {
                return Ok(None);
            }
        }
    }
    found.sort_unstable_by_key(|&(place, ..)| place);
    Ok(Some(found))
}
