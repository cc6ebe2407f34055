//! The window of a query: from a time to its bucket.

use std::ops::Range;

/// The window of a query and its buckets.
pub struct Window {
    /// Start of the window in milliseconds since 1970, included.
    pub from_ms: i64,
    /// End of the window in milliseconds since 1970, excluded.
    pub to_ms: i64,
    /// Starts of the buckets, rising; the first may lie before the window.
    pub starts: Vec<i64>,
}

impl Window {
    /// Bucket of a time inside the window. `near` is a guess, usually the bucket of the row before.
    pub fn bucket_of(&self, ms: i64, near: usize) -> usize {
        let holds = |bucket: usize| {
            self.starts.get(bucket).is_some_and(|&start| start <= ms)
                && self.starts.get(bucket + 1).is_none_or(|&next| ms < next)
        };
        if holds(near) {
            near
        } else if holds(near + 1) {
            near + 1
        } else {
            self.starts.partition_point(|&start| start <= ms).saturating_sub(1)
        }
    }

    /// The bucket that holds all times from `first` to `last`, if one does. `near` is a guess.
    pub fn bucket_of_all(&self, first: i64, last: i64, near: usize) -> Option<usize> {
        let bucket = self.bucket_of(first, near);
        let clip = self.clip(bucket);
        (clip.contains(&first) && clip.contains(&last)).then_some(bucket)
    }

    /// Whether a time lies inside.
    pub fn contains(&self, ms: i64) -> bool {
        self.from_ms <= ms && ms < self.to_ms
    }

    /// The part of a bucket inside the window.
    pub fn clip(&self, bucket: usize) -> Range<i64> {
        let start = self.starts[bucket].max(self.from_ms);
        let end = self.starts.get(bucket + 1).map_or(self.to_ms, |&next| next.min(self.to_ms));
        start..end.max(start)
    }
}
