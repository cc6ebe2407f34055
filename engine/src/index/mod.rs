//! What lets a query skip rows: zones per block, and bitmaps of the rollup dimensions.
//!
//! ```text
//! question: status = "error" and latency_ms >= 5000, in a segment of four blocks
//!
//! block   codes of status         latency_ms        read?
//! 0       {200, error}            1 to 4,100        no: no number can match, says the zone
//! 1       {200}                   2 to 9,000        no: the code of "error" does not occur, says the zone
//! 2       {200, error}, 90 rows   1 to 8,000        the 90 rows of the bitmap of "error"
//! 3       {200, error}, 9,000     3 to 7,500        all rows: the value is too common for a bitmap
//! ```

#![cfg_attr(not(test), deny(clippy::indexing_slicing, clippy::unwrap_used))]

pub mod bitmaps;
pub mod zones;
