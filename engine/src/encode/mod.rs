//! How values become bytes in a segment.
//!
//! A block is up to 65,536 rows of one column; it is read a vector of 1,024 rows at a time, at any
//! position. Integer blocks (codes, times, scaled numbers) choose the smallest of the encodings in
//! [`ints::Encoding`]; each has a file with `estimate`, `write` and its reader. Numbers and texts
//! build on integers. `doc/format.md` has the byte layouts.

use crate::error::Result;

pub mod bitpack;

pub mod compressed;
mod relative;

mod constant;
mod packed;

mod delta;
mod sparse;

pub mod ints;
pub mod rising;

pub mod numbers;
pub mod text;

pub mod characters;

/// Rows of a block, at most.
pub const BLOCK_ROWS: usize = 65_536;
/// Rows of a vector: the unit of execution.
pub const VECTOR_ROWS: usize = 1_024;

/// Rows of a column that have a value, rising, with it.
pub type Listed<T> = Vec<(u32, T)>;

/// A block of a column, whose rows may lack a value.
pub trait Block {
    /// What a row has.
    type Value: Copy + Default;
    /// Whether a value stands for none.
    fn is_absent(value: Self::Value) -> bool;
    /// Reads vector `index` and returns its number of rows.
    fn read_vector(&self, index: usize, out: &mut [Self::Value; VECTOR_ROWS]) -> Result<usize>;
    /// The rows that have a value, rising, where the block knows them without reading the others.
    fn listed(&self) -> Result<Option<Listed<Self::Value>>>;
}

/// Whether a list of rows is one of a block with so many: rising, and none beyond the last.
fn are_rows(listed: &[u16], rows: usize) -> bool {
    listed.is_sorted_by(|a, b| a < b) && listed.last().is_none_or(|&last| usize::from(last) < rows)
}
