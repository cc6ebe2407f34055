//! `GET /metrics`: numbers for Prometheus, in its OpenMetrics text.
//!
//! Names and units follow its conventions: base units (seconds, bytes), `_total` for counters. No
//! number is about an organisation: whoever may read them learns about the machine only. The list is
//! in `server/README.md`.
//!
//! ```text
//! # HELP inlay_events Events that were sent
//! # TYPE inlay_events counter
//! inlay_events_total{outcome="new"} 64551
//! inlay_events_total{outcome="duplicate"} 41
//! inlay_events_total{outcome="rejected"} 3
//! # HELP inlay_log_sync_seconds Time that a sync of the log took
//! # TYPE inlay_log_sync_seconds histogram
//! # UNIT inlay_log_sync_seconds seconds
//! inlay_log_sync_seconds_sum 0.064436
//! inlay_log_sync_seconds_count 115
//! inlay_log_sync_seconds_bucket{le="0.00025"} 43
//! inlay_log_sync_seconds_bucket{le="0.0005"} 104
//! …
//! inlay_permits{pool="password_hashes"} 2
//! inlay_permits_in_use{pool="password_hashes"} 0
//! inlay_query_seconds_count{metric="count"} 43409
//! inlay_http_requests_total{path="/v1/query",method="GET",status="200"} 5
//! ```
//!
//! Numbers are read when they are asked for; none is computed in the background.

use std::{collections::BTreeMap, fmt, sync::Arc};

use axum::{
    extract::State,
    http::header,
    response::{IntoResponse, Response},
};
use inlay_engine::{Distribution, Engine, Metrics, remote::CacheMetrics};
use prometheus_client::{
    collector::Collector,
    encoding::{DescriptorEncoder, EncodeLabelSet, EncodeMetric as _, MetricEncoder, text::encode},
    metrics::{MetricType, counter::ConstCounter, gauge::ConstGauge},
    registry::{Registry, Unit},
};

use crate::{
    base::{membership::StoreStanding, permit_pools::PoolCounts, query_permits::QueryCounts},
    error::{ApiError, Result},
    http::state::{
        context::Http,
        request_metrics::{Answered, Taken},
    },
};

const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";
/// Microseconds of a second: the engine measures in the former, Prometheus wants the latter.
const MICROS: f64 = 1e6;

/// 200 with all numbers as of now, as OpenMetrics text. Counters begin at 0 with the process.
pub async fn metrics(State(http): State<Http>) -> Result<Response> {
    let (requests, rejected) = (http.requests.read(), http.requests.rejected());
    let (queries, pools) = (http.query_counts(), http.pool_counts());
    let permits = Permits { queries, pools };
    let standing = http.app.settings.membership.standing();
    let text =
        http.run(move |app| text(&app.engine, requests, rejected, permits, standing)).await?;
    Ok(([(header::CONTENT_TYPE, CONTENT_TYPE)], text).into_response())
}

/// The text of all metrics. `requests` and `rejected` are counted by this layer, the others by the engine and the pools.
fn text(
    engine: &Arc<Engine>,
    requests: BTreeMap<Answered, Taken>,
    rejected: u64,
    permits: Permits,
    standing: Option<StoreStanding>,
) -> Result<String> {
    // A registry for each request: it holds the numbers of one instant, and none outlives its answer.
    let mut registry = Registry::with_prefix("inlay");
    let engine = Arc::clone(engine);
    registry.register_collector(Box::new(StoreNumbers { engine, rejected, permits, standing }));
    registry.register_collector(Box::new(RequestNumbers { requests }));
    let mut out = String::new();
    encode(&mut out, &registry)
        .map_err(|error| ApiError::internal(format!("metrics cannot be written: {error}")))?;
    Ok(out)
}

/// Metrics of answered requests: `http_requests_total`, `http_request_seconds_total`.
struct RequestNumbers {
    requests: BTreeMap<Answered, Taken>,
}

impl fmt::Debug for RequestNumbers {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("RequestNumbers")
    }
}

impl Collector for RequestNumbers {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let labels = |(path, method, status): &Answered| {
            [
                ("path", path.clone()),
                ("method", (*method).to_owned()),
                ("status", status.to_string()),
            ]
        };
        let mut family = encoder.encode_descriptor(
            "http_requests",
            "Answered requests",
            None,
            MetricType::Counter,
        )?;
        for (answered, taken) in &self.requests {
            let labels = labels(answered);
            let one = family.encode_family(&labels)?;
            ConstCounter::new(taken.count).encode(one)?;
        }
        let mut family = encoder.encode_descriptor(
            "http_request",
            "Time that answered requests took in all",
            Some(&Unit::Seconds),
            MetricType::Counter,
        )?;
        for (answered, taken) in &self.requests {
            let labels = labels(answered);
            let one = family.encode_family(&labels)?;
            ConstCounter::new(taken.seconds).encode(one)?;
        }
        Ok(())
    }
}

/// Metrics of the store, of queries and of permits.
struct StoreNumbers {
    /// Events that were refused one by one.
    rejected: u64,
    permits: Permits,
    engine: Arc<Engine>,
    /// Where several processes have the store.
    standing: Option<StoreStanding>,
}

/// How much work is under way, as it was when the request came.
struct Permits {
    /// Queries that hold a permit or wait for one.
    queries: QueryCounts,
    pools: Vec<PoolCounts>,
}

impl fmt::Debug for StoreNumbers {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("StoreNumbers")
    }
}

impl Collector for StoreNumbers {
    fn encode(&self, encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let mut page = Page { encoder };
        let now = self.engine.metrics();
        page.events(&now, self.rejected)?;
        page.log(&now)?;
        page.segments(&now)?;
        page.background(&now)?;
        page.memory(&now)?;
        page.queries(&self.engine, &now)?;
        page.permits(&self.permits)?;
        if let Some(standing) = &self.standing {
            page.cluster(standing)?;
        }
        // 0 after a write to the log has failed: only a new start takes writes again.
        let up = u64::from(self.engine.closed().is_none());
        page.gauge("store_writable", "1 while the store takes writes", None, up)
    }
}

/// The metrics in the order in which they are written. Helpers below write one family each; a family has one help text and type.
struct Page<'a> {
    encoder: DescriptorEncoder<'a>,
}

impl Page<'_> {
    // events_total by outcome. Refused events never reach the engine, so they are counted by this layer.
    fn events(&mut self, now: &Metrics, rejected: u64) -> fmt::Result {
        let events = [
            ("new", now.ingested_events),
            ("duplicate", now.duplicate_events),
            ("rejected", rejected),
        ];
        self.counters("events", "Events that were sent", "outcome", &events)
    }

    // log_lsn, log_written_bytes_total, log_group_records, log_sync_seconds.
    fn log(&mut self, now: &Metrics) -> fmt::Result {
        self.gauge("log_lsn", "Log sequence number of the last visible record", None, now.lsn)?;
        let bytes = Some(&Unit::Bytes);
        self.counter("log_written", "Bytes appended to the log", bytes, now.log_bytes)?;
        self.histogram(
            "log_group_records",
            "Records that were committed together",
            None,
            &now.log_group_records,
            1.0,
        )?;
        self.seconds("log_sync", "Time that a sync of the log took", &now.log_sync_us)
    }

    // cluster_*: which part this process has, and how far it is behind the log. Absent for a store in its own directory.
    fn cluster(&mut self, now: &StoreStanding) -> fmt::Result {
        let leads = u64::from(now.leads);
        self.gauge("cluster_leads", "1 where this process takes changes", None, leads)?;
        let has_leader = u64::from(now.has_leader);
        self.gauge("cluster_has_leader", "1 while a leader can be reached", None, has_leader)?;
        let epoch = u64::try_from(now.epoch).unwrap_or(0);
        self.gauge("cluster_epoch", "How often the log has changed hands", None, epoch)?;
        self.gauge("cluster_nodes", "Processes with this store", None, now.nodes as u64)?;
        let behind = now.lsn_last.saturating_sub(now.applied);
        self.gauge(
            "cluster_lag_records",
            "Records of the log that are not shown yet",
            None,
            behind,
        )?;
        // Before it was ever up to date a process is behind by all.
        let behind_ms = now.behind.map_or(u64::MAX >> 12, |behind| behind.as_millis() as u64);
        self.gauge(
            "cluster_lag_milliseconds",
            "Time since the whole log was shown",
            None,
            behind_ms,
        )?;
        let lost = now.files_lost as u64;
        self.gauge("cluster_files_lost", "Files that the bucket has lost", None, lost)?;
        let help = "Files that were fetched before a record named them";
        self.counter("cluster_files_prefetched", help, None, now.files_prefetched)?;
        self.counter("cluster_log_reads", "How often the log was read", None, now.log_reads)?;
        now.cache.as_ref().map_or(Ok(()), |cache| self.cache(cache))
    }

    // cluster_cache_*: copies of files on a disk that has not room for all of them.
    fn cache(&mut self, now: &CacheMetrics) -> fmt::Result {
        let bytes = Some(&Unit::Bytes);
        self.gauge(
            "cluster_cache_max",
            "Bytes that copies of files may have",
            bytes,
            now.bytes_max,
        )?;
        self.gauge("cluster_cache", "Bytes of copies of files", bytes, now.bytes)?;
        let help = "Segments whose copy was evicted";
        self.counter("cluster_cache_evicted", help, None, now.evicted)?;
        let help = "Calls of the bucket for parts of segments";
        self.counter("cluster_cache_reads", help, None, now.reads)?;
        self.counter("cluster_cache_read", "Bytes that they brought", bytes, now.read_bytes)
    }

    // segments, segment_rows, segment_bytes by level (`fresh`, `merged`, `sealed`); the unit is added to the name of the last.
    fn segments(&mut self, now: &Metrics) -> fmt::Result {
        let bytes = Some(&Unit::Bytes);
        let levels = |of: fn(&inlay_engine::LevelMetrics) -> u64| -> Vec<(&str, u64)> {
            now.levels.iter().map(|(name, level)| (*name, of(level))).collect()
        };
        let family = levels(|level| level.segments);
        self.gauges("segments", "Live segments", None, "level", &family)?;
        let family = levels(|level| level.rows);
        self.gauges("segment_rows", "Rows in segments", None, "level", &family)?;
        let family = levels(|level| level.bytes);
        self.gauges("segment", "Bytes of segments", bytes, "level", &family)?;
        self.gauge("memtable_rows", "Rows in memory", None, now.memtable_rows)?;
        self.gauge("id_runs", "Id runs", None, now.id_runs)?;
        self.gauge("id_run_ids", "Event ids in id runs", None, now.id_run_ids)?;
        self.gauge("keys", "Keys of the keyspace", None, now.keys)
    }

    // Work that flushes, compaction, retention and erasures have done, and work that is left.
    fn background(&mut self, now: &Metrics) -> fmt::Result {
        let bytes = Some(&Unit::Bytes);
        self.seconds("flush", "Time that a flush took", &now.flush_us)?;
        self.counter("flushed_rows", "Rows written to segments", None, now.flushed_rows)?;
        let flushed = now.flushed_bytes;
        self.counter("flushed", "Bytes of segments and id runs flushed", bytes, flushed)?;
        self.seconds("compaction", "Time that a step of the compaction took", &now.compaction_us)?;
        self.counter("compacted_rows", "Rows read by compaction", None, now.compacted_rows)?;
        let read = now.compaction_read_bytes;
        self.counter("compaction_read", "Bytes read by compaction", bytes, read)?;
        let written = now.compaction_written_bytes;
        self.counter("compaction_written", "Bytes written by compaction", bytes, written)?;
        let (help, yields) =
            ("Blocks at which compaction made way for queries", now.compaction_yields);
        self.counter("compaction_yields", help, None, yields)?;
        let debt = now.compaction_debt_bytes;
        self.gauge("compaction_debt", "Bytes of segments that are not sealed", bytes, debt)?;
        self.counter("expired_rows", "Rows dropped by retention", None, now.expired_rows)?;
        self.gauge("erasures_pending", "Erasures that are not done", None, now.erasures_pending)?;
        let (help, unit) = ("Age of the oldest erasure that is not done", Some(&Unit::Seconds));
        self.gauge("erasure_oldest", help, unit, now.erasure_oldest_ms / 1_000)
    }

    // memory_bytes by pool, so that a chart shows which of them grows, and process_resident_memory_bytes, which has more than all pools:
    // code, threads, slack of the allocator.
    fn memory(&mut self, now: &Metrics) -> fmt::Result {
        // A set entry is a hash and about as much of the table around it.
        const RECENT_ID_BYTES: u64 = 32;
        let pools = [
            ("memtable", now.memtable_bytes),
            ("shared_rows", now.shared_row_bytes),
            ("recent_ids", now.recent_ids * RECENT_ID_BYTES),
            ("id_filters", now.id_filter_bytes),
            ("small_files", now.small_file_bytes),
            ("directories", now.directory_bytes),
            ("dictionaries", now.dictionary_bytes),
            ("queries", now.query_bytes),
            ("keyspace", now.key_bytes),
        ];
        let help = "Bytes in memory, by what they are for";
        self.gauges("memory", help, Some(&Unit::Bytes), "pool", &pools)?;
        if let Some(resident) = resident_bytes() {
            let help = "Resident memory of the process";
            self.gauge("process_resident_memory", help, Some(&Unit::Bytes), resident)?;
        }
        Ok(())
    }

    // query_seconds by metric: nine histograms, `avg` to `sum`; percentiles of one kind are one.
    fn queries(&mut self, engine: &Engine, now: &Metrics) -> fmt::Result {
        // Kinds of metrics and not names: `p50` and `p95` are both `percentile`.
        let kinds = engine.query_metrics();
        let unit = Some(&Unit::Seconds);
        let mut family = self.encoder.encode_descriptor(
            "query",
            "Time that a query took in the engine",
            unit,
            MetricType::Histogram,
        )?;
        for (kind, numbers) in &kinds {
            let labels = [("metric", *kind)];
            let one = family.encode_family(&labels)?;
            encode_histogram(one, &numbers.took_us, MICROS)?;
        }
        let failed: Vec<(&str, u64)> =
            kinds.iter().map(|(kind, numbers)| (*kind, numbers.failed)).collect();
        self.counters("query_failures", "Queries that failed", "metric", &failed)?;
        let rows: Vec<(&str, u64)> =
            kinds.iter().map(|(kind, numbers)| (*kind, numbers.rows_scanned)).collect();
        self.counters("query_rows", "Rows that queries looked at", "metric", &rows)?;
        let asked = [("hit", now.cache_hits), ("miss", now.cache_misses)];
        let help = "What queries asked for of what is kept in memory for them";
        self.counters("query_cache_lookups", help, "result", &asked)?;
        self.gauge("queries_running", "Queries that run now", None, now.queries_running)
    }

    // One row for each pool: how much there is, is in use, and was refused.
    fn permits(&mut self, Permits { queries, pools }: &Permits) -> fmt::Result {
        let of = |count: fn(&PoolCounts) -> u64| -> Vec<(&str, u64)> {
            pools.iter().map(|pool| (pool.name, count(pool))).collect()
        };
        let all = of(|pool| pool.all as u64);
        self.gauges("permits", "Work of a kind that may be under way at once", None, "pool", &all)?;
        let in_use = of(|pool| pool.in_use as u64);
        self.gauges("permits_in_use", "Work of a kind that is under way", None, "pool", &in_use)?;
        let refused = of(|pool| pool.refused);
        self.counters("permits_refused", "Work that got no permit in time", "pool", &refused)?;
        let QueryCounts { running, paused, waiting } = *queries;
        let counts = [("running", running), ("paused", paused), ("waiting", waiting)];
        let counts = counts.map(|(state, count)| (state, count as u64));
        let help = "Queries on threads of their own, by whether they hold a permit";
        self.gauges("query_permits", help, None, "state", &counts)
    }

    /// Writes a gauge without labels: `inlay_keys 146`.
    fn gauge(&mut self, name: &str, help: &str, unit: Option<&Unit>, value: u64) -> fmt::Result {
        let encoder = self.encoder.encode_descriptor(name, help, unit, MetricType::Gauge)?;
        ConstGauge::new(as_gauge(value)).encode(encoder)
    }

    /// Writes a counter without labels; the library adds `_total`: `inlay_flushed_rows_total 64551`.
    fn counter(&mut self, name: &str, help: &str, unit: Option<&Unit>, value: u64) -> fmt::Result {
        let encoder = self.encoder.encode_descriptor(name, help, unit, MetricType::Counter)?;
        ConstCounter::new(value).encode(encoder)
    }

    /// Writes a gauge for each value of a label: `inlay_segments{level="merged"} 15`.
    fn gauges(
        &mut self,
        name: &str,
        help: &str,
        unit: Option<&Unit>,
        label: &str,
        values: &[(&str, u64)],
    ) -> fmt::Result {
        let mut family = self.encoder.encode_descriptor(name, help, unit, MetricType::Gauge)?;
        for (value_of, value) in values {
            let labels = [(label, *value_of)];
            let one = family.encode_family(&labels)?;
            ConstGauge::new(as_gauge(*value)).encode(one)?;
        }
        Ok(())
    }

    /// Writes a counter for each value of a label: `inlay_events_total{outcome="new"} 64551`.
    fn counters(
        &mut self,
        name: &str,
        help: &str,
        label: &str,
        values: &[(&str, u64)],
    ) -> fmt::Result {
        let mut family = self.encoder.encode_descriptor(name, help, None, MetricType::Counter)?;
        for (value_of, value) in values {
            let labels = [(label, *value_of)];
            let one = family.encode_family(&labels)?;
            ConstCounter::new(*value).encode(one)?;
        }
        Ok(())
    }

    /// Writes a histogram of times, which the engine counts in microseconds.
    fn seconds(&mut self, name: &str, help: &str, values: &Distribution) -> fmt::Result {
        self.histogram(name, help, Some(&Unit::Seconds), values, MICROS)
    }

    fn histogram(
        &mut self,
        name: &str,
        help: &str,
        unit: Option<&Unit>,
        values: &Distribution,
        scale: f64,
    ) -> fmt::Result {
        let encoder = self.encoder.encode_descriptor(name, help, unit, MetricType::Histogram)?;
        encode_histogram(encoder, values, scale)
    }
}

/// The library takes signed numbers for gauges; a number beyond them is as large as it gets.
fn as_gauge(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}

/// Writes a distribution whose values are divided by `scale`: microseconds become seconds.
///
/// `counts` has one entry more than `bounds`, for values above all of them.
fn encode_histogram(
    mut encoder: MetricEncoder<'_>,
    values: &Distribution,
    scale: f64,
) -> fmt::Result {
    // The library writes this one as +Inf.
    let last = [f64::INFINITY];
    let bounds = values.bounds.iter().map(|&bound| bound as f64 / scale).chain(last);
    let buckets: Vec<(f64, u64)> = bounds.zip(values.counts.iter().copied()).collect();
    let count = values.counts.iter().sum();
    encoder.encode_histogram::<NoLabels>(values.total as f64 / scale, count, &buckets, None)
}

/// No exemplars are kept, so nothing labels them.
#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct NoLabels {}

/// Resident memory of this process in bytes, where the system says so: the second number of `/proc/self/statm`, in pages.
fn resident_bytes() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/self/statm").ok()?;
    let pages: u64 = text.split(' ').nth(1)?.parse().ok()?;
    Some(pages * rustix::param::page_size() as u64)
}
