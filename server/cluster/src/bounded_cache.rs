//! The bound on copies of files in the data directory, kept once a second.
//!
//! ```text
//! bound 10 GB    segments of 100 GB    what was read last stays; the rest is fetched again, in parts of 256 KiB, when something reads it
//! ```

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use inlay_engine::{
    Engine,
    remote::{CacheMetrics, ObjectVfs},
};
use tracing::{info, warn};

/// A bound, and what came of it so far.
pub struct BoundedCache {
    bytes_max: u64,
    bytes: AtomicU64,
    evicted: AtomicU64,
    /// Whether the last round failed: the next one that does needs no line in the log.
    has_failed: AtomicBool,
}

impl BoundedCache {
    /// A cache of so many bytes.
    pub fn new(bytes_max: u64) -> Self {
        let (bytes, evicted) = (AtomicU64::new(0), AtomicU64::new(0));
        Self { bytes_max, bytes, evicted, has_failed: AtomicBool::new(false) }
    }

    /// One round: evicts what was not read for longest, where there is too much. Blocks.
    pub fn run(&self, engine: &Engine) {
        match engine.evict(self.bytes_max) {
            Ok(round) => {
                self.bytes.store(round.bytes, Ordering::Relaxed);
                self.evicted.fetch_add(round.evicted, Ordering::Relaxed);
                if self.has_failed.swap(false, Ordering::Relaxed) {
                    info!("copies of files can be evicted again");
                }
            }
            Err(error) => {
                if !self.has_failed.swap(true, Ordering::Relaxed) {
                    warn!(%error, "copies of files cannot be evicted; it is tried again");
                }
            }
        }
    }

    /// As it is now.
    pub fn metrics(&self, files: &ObjectVfs) -> CacheMetrics {
        let (reads, read_bytes) = files.part_reads();
        let (bytes, evicted) = (&self.bytes, &self.evicted);
        let of = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let (bytes_max, bytes, evicted) = (self.bytes_max, of(bytes), of(evicted));
        CacheMetrics { bytes_max, bytes, evicted, reads, read_bytes }
    }
}
