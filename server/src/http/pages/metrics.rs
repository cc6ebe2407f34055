//! `GET /metrics`: numbers for Prometheus, in its OpenMetrics text.
//!
//! Names and units follow its conventions: base units (seconds, bytes), `_total` for counters. No
//! number is about an organisation: whoever may read them learns about the machine only. The list is
//! in `server/README.md`.

use std::{collections::BTreeMap, fmt, sync::Arc};

use axum::{
    extract::State,
    http::header,
    response::{IntoResponse, Response},
};
use inlay_engine::{Distribution, Engine, Metrics};
use prometheus_client::{
    collector::Collector,
    encoding::{DescriptorEncoder, EncodeLabelSet, EncodeMetric as _, MetricEncoder, text::encode},
    metrics::{MetricType, counter::ConstCounter, gauge::ConstGauge},
    registry::{Registry, Unit},
};

use crate::{
    base::{permit_pools::PoolCounts, query_permits::QueryCounts},
    error::{ApiError, Result},
    http::state::{
        context::Http,
        request_metrics::{Answered, Taken},
    },
};

const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";
/// Microseconds of a second.
const MICROS: f64 = 1e6;

/// All numbers as of now.
pub async fn metrics(State(http): State<Http>) -> Result<Response> {
    let (requests, rejected) = (http.requests.read(), http.requests.rejected());
    let (queries, pools) = (http.query_counts(), http.pool_counts());
    let permits = Permits { queries, pools };
    let text = http.run(move |app| text(&app.engine, requests, rejected, permits)).await?;
    Ok(([(header::CONTENT_TYPE, CONTENT_TYPE)], text).into_response())
}

fn text(
    engine: &Arc<Engine>,
    requests: BTreeMap<Answered, Taken>,
    rejected: u64,
    permits: Permits,
) -> Result<String> {
    let mut registry = Registry::with_prefix("inlay");
    let engine = Arc::clone(engine);
    registry.register_collector(Box::new(StoreNumbers { engine, rejected, permits }));
    registry.register_collector(Box::new(RequestNumbers { requests }));
    let mut out = String::new();
    encode(&mut out, &registry)
        .map_err(|error| ApiError::internal(format!("metrics cannot be written: {error}")))?;
    Ok(out)
}

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

struct StoreNumbers {
    /// Events that were refused one by one.
    rejected: u64,
    permits: Permits,
    engine: Arc<Engine>,
}

/// How much is under way.
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
        let up = u64::from(self.engine.closed().is_none());
        page.gauge("store_writable", "1 while the store takes writes", None, up)
    }
}

struct Page<'a> {
    encoder: DescriptorEncoder<'a>,
}

impl Page<'_> {
    fn events(&mut self, now: &Metrics, rejected: u64) -> fmt::Result {
        let events = [
            ("new", now.ingested_events),
            ("duplicate", now.duplicate_events),
            ("rejected", rejected),
        ];
        self.counters("events", "Events that were sent", "outcome", &events)
    }

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

    fn queries(&mut self, engine: &Engine, now: &Metrics) -> fmt::Result {
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

    fn gauge(&mut self, name: &str, help: &str, unit: Option<&Unit>, value: u64) -> fmt::Result {
        let encoder = self.encoder.encode_descriptor(name, help, unit, MetricType::Gauge)?;
        ConstGauge::new(as_gauge(value)).encode(encoder)
    }

    fn counter(&mut self, name: &str, help: &str, unit: Option<&Unit>, value: u64) -> fmt::Result {
        let encoder = self.encoder.encode_descriptor(name, help, unit, MetricType::Counter)?;
        ConstCounter::new(value).encode(encoder)
    }

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

fn as_gauge(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}

/// Writes a distribution whose values are divided by `scale`.
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

/// Resident memory of this process, where the system says so.
fn resident_bytes() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/self/statm").ok()?;
    let pages: u64 = text.split(' ').nth(1)?.parse().ok()?;
    Some(pages * rustix::param::page_size() as u64)
}
