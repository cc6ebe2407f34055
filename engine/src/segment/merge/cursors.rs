//! Reading columns of the inputs in the order of the output.
//!
//! The order is a list of spans. Within one input they only move forward, so each column needs one
//! decoded vector an input, and one block where blocks are decoded whole.
//!
//! ```text
//! spans            A 0..3, B 0..2
//! next(4, visit)   visit(A 0..3), visit(B 0..1)
//! next(4, visit)   visit(B 1..2)                  fewer than asked for: the end
//! ```

use std::collections::BTreeMap;

use crate::{
    encode::{BLOCK_ROWS, Block, VECTOR_ROWS, ints::IntBlock, numbers::NumberBlock},
    error::Result,
    segment::NumberReader,
};

use super::plan::Piece;

/// Bytes of decoded blocks that are kept of one column, over all inputs: a merge that parts many days
/// comes back to the same few blocks for each of them. Each input keeps one block in any case.
const CACHE_BYTES: usize = 64 << 20;

/// Walks a list of spans, so many rows at a time: a block of the output is 65,536 rows, whatever the spans are.
pub struct Spans<'s> {
    spans: &'s [Piece],
    /// Rows of the first span that were given already.
    used: u32,
}

impl<'s> Spans<'s> {
    /// A walk from the first row of the first span.
    pub fn new(spans: &'s [Piece]) -> Self {
        Self { spans, used: 0 }
    }

    /// Calls `visit` with consecutive rows of inputs until `rows` were given, or the spans have ended. The first error of `visit`
    /// ends it.
    pub fn next(&mut self, rows: usize, mut visit: impl FnMut(Piece) -> Result<()>) -> Result<()> {
        let mut wanted = rows as u32;
        while wanted > 0 {
            let Some(span) = self.spans.first() else { return Ok(()) };
            let rows = (span.rows - self.used).min(wanted);
            visit(Piece { input: span.input, start: span.start + self.used, rows })?;
            wanted -= rows;
            self.used += rows;
            if self.used == span.rows {
                self.spans = self.spans.get(1..).unwrap_or_default();
                self.used = 0;
            }
        }
        Ok(())
    }
}

/// Rows of a column of one input, with the last block open and the last vector decoded: small spans of one vector decode it once.
pub struct Cursor<B, T> {
    block: Option<(usize, B)>,
    vector: usize,
    values: Box<[T; VECTOR_ROWS]>,
}

/// Rows of an integer column.
pub type IntCursor<'a> = Cursor<IntBlock<'a>, i64>;

impl<B, T: Copy + Default> Default for Cursor<B, T> {
    fn default() -> Self {
        let values = Box::new([T::default(); VECTOR_ROWS]);
        Self { block: None, vector: usize::MAX, values }
    }
}

impl<B: Block<Value = T>, T> Cursor<B, T> {
    /// Calls `visit` with the values of the rows of `piece`, a vector at a time: rows 1,000..1,030 come as 24 values, then 6.
    /// `open` opens a block.
    pub fn read(
        &mut self,
        piece: Piece,
        open: impl Fn(usize) -> Result<B>,
        mut visit: impl FnMut(&[T]),
    ) -> Result<()> {
        let (mut row, end) = (piece.start as usize, (piece.start + piece.rows) as usize);
        while row < end {
            let vector = row / VECTOR_ROWS;
            // Spans only move forward within an input, so a vector that was left is not needed again.
            if self.vector != vector {
                let index = row / BLOCK_ROWS;
                if self.block.as_ref().is_none_or(|(open, _)| *open != index) {
                    self.block = Some((index, open(index)?));
                }
                if let Some((_, block)) = &self.block {
                    block.read_vector(row % BLOCK_ROWS / VECTOR_ROWS, &mut self.values)?;
                }
                self.vector = vector;
            }
            let stop = end.min((vector + 1) * VECTOR_ROWS);
            visit(&self.values[row % VECTOR_ROWS..row % VECTOR_ROWS + stop - row]);
            row = stop;
        }
        Ok(())
    }
}

/// Rows of a numeric column, which knows its own blocks.
pub struct NumberCursor<'a> {
    reader: NumberReader<'a>,
    cursor: Cursor<NumberBlock<'a>, f64>,
}

impl<'a> NumberCursor<'a> {
    /// A cursor before the first row of a column.
    pub fn new(reader: NumberReader<'a>) -> Self {
        Self { reader, cursor: Cursor::default() }
    }

    /// The column that is read.
    pub fn reader(&self) -> &NumberReader<'a> {
        &self.reader
    }

    /// Appends the values of the rows of `piece`; NaN is absent.
    pub fn read(&mut self, piece: Piece, out: &mut Vec<f64>) -> Result<()> {
        let open = |block| self.reader.block(block);
        self.cursor.read(piece, open, |values| out.extend_from_slice(values))
    }
}

/// Decoded blocks of one column of one input.
pub struct BlockCache<T> {
    blocks: BTreeMap<usize, T>,
    bytes: usize,
    bytes_max: usize,
}

impl<T> BlockCache<T> {
    /// An empty one for each of `inputs`, which share 64 MiB evenly: 8 MiB each for eight.
    pub fn for_each(inputs: usize) -> Vec<Self> {
        let bytes_max = CACHE_BYTES / inputs.max(1);
        (0..inputs).map(|_| Self { blocks: BTreeMap::new(), bytes: 0, bytes_max }).collect()
    }

    /// The block at `index`, opened if it is not here. `size` gives the bytes that it takes. When they do not fit, all others
    /// go.
    pub fn block(
        &mut self,
        index: usize,
        open: impl FnOnce(usize) -> Result<T>,
        size: impl Fn(&T) -> usize,
    ) -> Result<&T> {
        if !self.blocks.contains_key(&index) {
            let block = open(index)?;
            let bytes = size(&block);
            if self.bytes + bytes > self.bytes_max {
                self.blocks.clear();
                self.bytes = 0;
            }
            self.bytes += bytes;
            self.blocks.insert(index, block);
        }
        Ok(&self.blocks[&index])
    }
}
