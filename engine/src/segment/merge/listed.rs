//! Columns that few rows have: only those rows are read, moved and written.
//!
//! A day with two thousand properties, each in a few rows, would otherwise cost two thousand times all
//! of its rows, at every merge.
//!
//! ```text
//! order of the output   A0 B0 A1 B1 A2            positions 0 to 4
//! rows with the column  A1 = 7, B0 = 3
//! placed                (1, B, 3) (2, A, 7)       position, input, value; rising
//! ```

use std::{collections::HashMap, sync::Arc};

use super::order::Order;
use crate::{
    encode::{BLOCK_ROWS, Block, numbers},
    error::Result,
    segment::Segment,
};

/// Values of columns of few rows that are kept of a merge's inputs: some 24 MB.
const CELLS_MAX: usize = 1_000_000;

/// A row of the output: its position, the input that it comes from, and its value there, a code of that input or a number.
pub type ListedRow<T> = (u32, u16, T);

/// The position in the output of each row of the inputs; rows of other outputs have none.
pub struct Places {
    /// For each input by first row: first row, number of rows, and the place of the first.
    spans: Vec<Vec<(u32, u32, u32)>>,
}

impl Places {
    /// The positions of the rows of an order, for so many inputs.
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

    /// The position of a row of an input, by the span that has it.
    fn place(&self, input: usize, row: u32) -> Option<u32> {
        let spans = &self.spans[input];
        let at = spans.partition_point(|&(start, ..)| start <= row).checked_sub(1)?;
        let (start, rows, place) = spans[at];
        (row - start < rows).then(|| place + row - start)
    }
}

/// A row of an input that has a column: the input, the row counted in it, and its value there.
type RareRow<T> = (u16, u32, T);

/// The rows of the inputs that have a column of few rows, read once for all outputs: a merge that parts fifty days would read them
/// fifty times.
pub struct RareColumns<T> {
    /// By name; `None` for columns of many rows.
    columns: HashMap<String, Option<Arc<[RareRow<T>]>>>,
    cells: usize,
}

impl<T> Default for RareColumns<T> {
    fn default() -> Self {
        Self { columns: HashMap::new(), cells: 0 }
    }
}

impl<T: Copy> RareColumns<T> {
    /// The rows of an output that have a column, by place. `None` when they are too many to be listed,
    /// or a block of an input does not list them. `open` opens an input's column, if it has it, as a
    /// function that opens its blocks.
    pub fn placed<'a, B: Block<Value = T>, F: Fn(usize) -> Result<B>>(
        &mut self,
        inputs: &[&'a Segment],
        places: &Places,
        rows: usize,
        name: &str,
        open: impl Fn(&'a Segment) -> Result<Option<F>>,
    ) -> Result<Option<Vec<ListedRow<T>>>> {
        let known = match self.columns.get(name) {
            Some(known) => known.clone(),
            None => self.read(inputs, name, open)?,
        };
        let Some(known) = known else { return Ok(None) };
        let place = |&(input, row, value): &RareRow<T>| {
            Some((places.place(usize::from(input), row)?, input, value))
        };
        let mut found: Vec<ListedRow<T>> = known.iter().filter_map(place).collect();
        // Rows that are few of the inputs may be many of this output, which then is written as any other column.
        if found.len() * numbers::LISTED_FROM >= rows && !found.is_empty() {
            return Ok(None);
        }
        found.sort_unstable_by_key(|&(place, ..)| place);
        Ok(Some(found))
    }

    /// Reads the rows of all inputs that have the column; `None` when a block does not list them or they are more than a million.
    fn read<'a, B: Block<Value = T>, F: Fn(usize) -> Result<B>>(
        &mut self,
        inputs: &[&'a Segment],
        name: &str,
        open: impl Fn(&'a Segment) -> Result<Option<F>>,
    ) -> Result<Option<Arc<[RareRow<T>]>>> {
        let mut found = Some(Vec::new());
        'inputs: for (segment, input) in inputs.iter().zip(0u16..) {
            let Some(open) = open(segment)? else { continue };
            for index in 0..segment.block_count() {
                let listed = open(index)?.listed()?;
                let (Some(listed), Some(found)) = (listed, &mut found) else {
                    found = None;
                    break 'inputs;
                };
                let first = (index * BLOCK_ROWS) as u32;
                found.extend(listed.into_iter().map(|(row, value)| (input, first + row, value)));
                if found.len() > CELLS_MAX {
                    break 'inputs;
                }
            }
        }
        let found: Option<Vec<RareRow<T>>> = found.filter(|found| found.len() <= CELLS_MAX);
        let found: Option<Arc<[RareRow<T>]>> = found.map(Arc::from);
        let cells = found.as_ref().map_or(0, |found| found.len());
        // What does not fit is read again for the next output; what is here stays of use.
        if self.cells + cells <= CELLS_MAX {
            self.cells += cells;
            self.columns.insert(name.to_owned(), found.clone());
        }
        Ok(found)
    }
}
