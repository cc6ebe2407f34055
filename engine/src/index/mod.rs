//! What lets a query skip rows: zones per block, and bitmaps of the rollup dimensions.

#![cfg_attr(not(test), deny(clippy::indexing_slicing, clippy::unwrap_used))]

pub mod bitmaps;
pub mod zones;
