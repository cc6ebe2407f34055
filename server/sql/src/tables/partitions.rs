//! How rows are divided: into batches, and among partitions that are read at the same time.
//!
//! ```text
//! morsels of 65, 40, 30 and 20 thousand rows, 2 partitions
//! 65             to the first, which has 65
//! 40             to the second, which has 40
//! 30             to the second, which has 70
//! 20             to the first, which has 85
//! ```

use std::cmp::Reverse;

/// Rows of a batch.
/// 8,192 numbers of 8 bytes are 64 KiB: a few columns of a batch fit into a second-level cache.
pub const BATCH_ROWS: usize = 8_192;

/// The largest first, each to who has the least.
///
/// `pieces` are what is read with its number of rows. There are as many shares as partitions, empty ones among them where there are fewer pieces; at least one.
pub fn balance_by_rows<T>(mut pieces: Vec<(usize, T)>, partitions: usize) -> Vec<Vec<T>> {
    pieces.sort_by_key(|(rows, _)| Reverse(*rows));
    let mut shares: Vec<(usize, Vec<T>)> = Vec::new();
    shares.resize_with(partitions.max(1), Default::default);
    for (rows, piece) in pieces {
        if let Some(share) = shares.iter_mut().min_by_key(|(rows, _)| *rows) {
            share.0 += rows;
            share.1.push(piece);
        }
    }
    shares.into_iter().map(|(_, pieces)| pieces).collect()
}
