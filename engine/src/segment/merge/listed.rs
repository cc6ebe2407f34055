//! Columns that few rows have: only those rows are read, moved and written.
//!
//! A day with two thousand properties, each in a few rows, would otherwise cost two thousand times all
//! of its rows, at every merge.

use std::{collections::HashMap, sync::Arc};

use super::order::Order;
use crate::{
    encode::{BLOCK_ROWS, Block, numbers},
    error::Result,
    segment::Segment,
};

/// Values of columns of few rows that are kept of a merge's inputs: some 24 MB.
const CELLS_MAX: usize = 1_000_000;

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

/// A row of an input that has a column: the input, the row, and its value there.
type RareRow<T> = (u16, u32, T);

/// The rows of the inputs that have a column of few rows, read once for all outputs.
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
        if found.len() * numbers::LISTED_FROM >= rows && !found.is_empty() {
            return Ok(None);
        }
        found.sort_unstable_by_key(|&(place, ..)| place);
        Ok(Some(found))
    }

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
