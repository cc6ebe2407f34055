//! How rows are divided: into batches, and among partitions that are read at the same time.

use std::cmp::Reverse;

/// Rows of a batch.
pub const BATCH_ROWS: usize = 8_192;

/// The largest first, each to who has the least.
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
