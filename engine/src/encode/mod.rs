//! How values become bytes in a segment.
//!
//! A block is up to 65,536 rows of one column; it is read a vector of 1,024 rows at a time, at any
//! position. Integer blocks (codes, times, scaled numbers) choose the smallest of the encodings in
//! [`ints::Encoding`]; each has a file with `estimate`, `write` and its reader. Numbers and texts
//! build on integers. `doc/format.md` has the byte layouts.
//!
//! The encodings of each column of a segment (`doc/format.md`, "Kinds of sections"):
//!
//! ```text
//! column of a segment                encoding
//! run directory                      compressed
//! times, codes of users and strings  ints    → constant | packed | delta | sparse
//! numeric properties                 numbers → presence, exceptions, ints; or raw floats under zstd
//! users, dictionaries                text    → shared prefixes under zstd
//! event ids                          characters | text | packed and compressed UUIDs (segment::event_ids)
//! user sets of rollups               rising
//! ```
//!
//! Every reader takes bytes from a mapped file that has passed its checksum and still trusts none of them: a length, a width
//! or a row that cannot be is [`Corrupt`](crate::error::Error), and nothing panics.
//!
//! ```text
//! IntBlock::open(&[9, 0, 0], 4, "seg/l0/019a….seg")
//! → Corrupt: "seg/l0/019a….seg: a block has an unknown encoding"
//! ```

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

/// Rows of a block, at most. A row within a block fits a `u16`; lists of rows are stored so.
pub const BLOCK_ROWS: usize = 65_536;
/// Rows of a vector: the unit of execution. 1,024 rows of eight bytes are 8 KiB, so several columns fit a first-level cache.
pub const VECTOR_ROWS: usize = 1_024;

/// Rows of a column that have a value, rising, with it: `[(7, 2.5), (1_024, 3.0)]`. Rows count from the start of the block.
pub type Listed<T> = Vec<(u32, T)>;

/// A block of a column, whose rows may lack a value.
///
/// Filters and accumulators are written once over this trait: codes ([`ints::IntBlock`]) lack a value where they are 0, numbers
/// ([`numbers::NumberBlock`]) where they are NaN.
pub trait Block {
    /// Type of the value of a row: `i64` for a code, `f64` for a number.
    type Value: Copy + Default;
    /// Whether a value stands for none.
    fn is_absent(value: Self::Value) -> bool;
    /// Reads vector `index` and returns its number of rows: 1,024, fewer in the last vector, 0 behind it. The rest of
    /// `out` is not touched.
    fn read_vector(&self, index: usize, out: &mut [Self::Value; VECTOR_ROWS]) -> Result<usize>;
    /// The rows that have a value, rising, where the block knows them without reading the others: it is sparse or
    /// listed. `None` means "read all vectors"; an empty list means that no row has one.
    fn listed(&self) -> Result<Option<Listed<Self::Value>>>;
}

/// Whether a list of rows is one of a block with so many: rising, and none beyond the last.
fn are_rows(listed: &[u16], rows: usize) -> bool {
    listed.is_sorted_by(|a, b| a < b) && listed.last().is_none_or(|&last| usize::from(last) < rows)
}
