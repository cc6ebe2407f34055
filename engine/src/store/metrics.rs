//! Numbers about the store, for monitoring.

use std::{
    collections::BTreeMap,
    sync::{Arc, atomic::Ordering},
};

use super::{lifecycle::Store, version::Version};
use crate::{
    base::meter::Distribution,
    vfs::{os::MAP_BYTES_MIN, shared_memory::SharedMemory},
};

/// Segments of one level.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct LevelMetrics {
    /// Number of live segments.
    pub segments: u64,
    /// Rows in these segments, expired rows included.
    pub rows: u64,
    /// Bytes of the files of these segments.
    pub bytes: u64,
}

/// Numbers as of one instant, and counts since the start.
#[derive(Debug, Clone)]
pub struct Metrics {
    /// LSN of the last visible record.
    pub lsn: u64,
    /// Records of each commit group.
    pub log_group_records: Distribution,
    /// Microseconds of each sync of the log.
    pub log_sync_us: Distribution,
    /// Bytes appended to the log.
    pub log_bytes: u64,
    /// Events that were taken and new.
    pub ingested_events: u64,
    /// Events that were taken and known already.
    pub duplicate_events: u64,
    /// Rows in memory.
    pub memtable_rows: u64,
    /// Bytes of the rows in memory.
    pub memtable_bytes: u64,
    /// Bytes of rows that this process has laid out for others.
    pub shared_row_bytes: u64,
    /// Segments by level: `fresh`, `merged`, `sealed`.
    pub levels: BTreeMap<&'static str, LevelMetrics>,
    /// Bytes of segments that are not sealed, which compaction still has to rewrite.
    pub compaction_debt_bytes: u64,
    /// Microseconds of each flush.
    pub flush_us: Distribution,
    /// Rows that were flushed.
    pub flushed_rows: u64,
    /// Bytes of the segments and id runs that flushes wrote.
    pub flushed_bytes: u64,
    /// Microseconds of each step of the compaction.
    pub compaction_us: Distribution,
    /// Blocks at which compaction made way for queries.
    pub compaction_yields: u64,
    /// Rows that compaction read.
    pub compacted_rows: u64,
    /// Bytes that compaction read.
    pub compaction_read_bytes: u64,
    /// Bytes that compaction wrote.
    pub compaction_written_bytes: u64,
    /// Rows that went because they had expired.
    pub expired_rows: u64,
    /// Number of live id runs.
    pub id_runs: u64,
    /// Ids in them.
    pub id_run_ids: u64,
    /// Bytes of their filters, which every probe touches.
    pub id_filter_bytes: u64,
    /// Bytes of segments and id runs that are too small to be mapped and lie in memory.
    pub small_file_bytes: u64,
    /// Bytes of the directories of open segments: where their columns, runs and tenants lie.
    pub directory_bytes: u64,
    /// Ids in memory that no run holds yet.
    pub recent_ids: u64,
    /// Bytes of the query cache: dictionaries, users, series look-ups and partial results.
    pub dictionary_bytes: u64,
    /// Look-ups of queries that found an entry in the cache, since the start.
    pub cache_hits: u64,
    /// Look-ups that found none, since the start.
    pub cache_misses: u64,
    /// Bytes that running queries hold.
    pub query_bytes: u64,
    /// Keys of the keyspace.
    pub keys: u64,
    /// Bytes of keys and values.
    pub key_bytes: u64,
    /// Queries that run now.
    pub queries_running: u64,
    /// Number of erasures that are not done.
    pub erasures_pending: u64,
    /// Age of the oldest of them in milliseconds; 0 when there is none.
    pub erasure_oldest_ms: u64,
}

impl Store {
    /// Numbers as of now. The caller gives the bytes that queries hold, the bytes of the query
    /// cache, and its hits and misses. Shape: looks at every segment and id run once.
    pub fn metrics(
        &self,
        query_bytes: u64,
        dictionary_bytes: u64,
        (cache_hits, cache_misses): (u64, u64),
    ) -> Metrics {
        let version = self.version();
        let log_meters = Arc::clone(&self.log_meters.lock());
        let runs = self.sequencer.id_runs();
        let read = |total: &std::sync::atomic::AtomicU64| total.load(Ordering::Relaxed);
        let totals = &self.totals;
        let pending = self.pending_erasures();
        let levels = levels(&version);
        let segments = version.segments.iter();
        let unsealed = levels.iter().filter(|(name, _)| **name != "sealed");
        Metrics {
            lsn: version.lsn,
            log_group_records: log_meters.group_records.read(),
            log_sync_us: log_meters.sync_us.read(),
            log_bytes: read(&log_meters.bytes),
            ingested_events: read(&totals.ingested),
            duplicate_events: read(&totals.duplicates),
            memtable_rows: version.memtables().map(|memtable| memtable.rows() as u64).sum(),
            memtable_bytes: version.memtable_bytes() as u64,
            shared_row_bytes: SharedMemory::in_use().1 as u64,
            compaction_debt_bytes: unsealed.map(|(_, level)| level.bytes).sum(),
            levels,
            flush_us: totals.flush_us.read(),
            flushed_rows: read(&totals.flushed_rows),
            flushed_bytes: read(&totals.flushed_bytes),
            compaction_us: totals.compaction_us.read(),
            compaction_yields: read(&totals.compaction_yields),
            compacted_rows: read(&totals.compacted_rows),
            compaction_read_bytes: read(&totals.compaction_read_bytes),
            compaction_written_bytes: read(&totals.compaction_written_bytes),
            expired_rows: read(&totals.expired_rows),
            id_runs: runs.len() as u64,
            id_run_ids: runs.iter().map(|run| run.meta().count).sum(),
            id_filter_bytes: runs.iter().map(|run| run.filter_bytes() as u64).sum(),
            small_file_bytes: { version.segments.iter().map(|segment| segment.meta().len) }
                .chain(runs.iter().map(|run| run.meta().len))
                .filter(|len| *len < MAP_BYTES_MIN)
                .sum(),
            directory_bytes: segments.map(|segment| segment.directory_bytes() as u64).sum(),
            recent_ids: self.sequencer.recent_ids() as u64,
            dictionary_bytes,
            cache_hits,
            cache_misses,
            query_bytes,
            keys: version.tree.len() as u64,
            key_bytes: version.tree.bytes_used() as u64,
            queries_running: self.pace.queries.load(Ordering::Relaxed) as u64,
            erasures_pending: pending.len() as u64,
            erasure_oldest_ms: pending
                .iter()
                .map(|since| self.clock.now_ms().abs_diff(*since))
                .max()
                .unwrap_or(0),
        }
    }
}

fn levels(version: &Version) -> BTreeMap<&'static str, LevelMetrics> {
    let mut levels: BTreeMap<_, LevelMetrics> =
        ["fresh", "merged", "sealed"].map(|name| (name, LevelMetrics::default())).into();
    for segment in &version.segments {
        let level = levels.entry(segment.meta().level_name()).or_default();
        level.segments += 1;
        level.rows += u64::from(segment.meta().rows);
        level.bytes += segment.meta().len;
    }
    levels
}
