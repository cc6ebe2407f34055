//! `/metrics`: numbers that move when something happens, and nothing about organisations.

use std::collections::{BTreeMap, BTreeSet};

use inlay_tests::TestServer;
use serde_json::json;

/// Samples by name and labels.
fn samples(text: &str) -> BTreeMap<String, f64> {
    text.lines()
        .filter(|line| !line.starts_with('#'))
        .map(|line| {
            let (name, value) = line.rsplit_once(' ').unwrap();
            (name.to_owned(), value.parse().unwrap())
        })
        .collect()
}

#[tokio::test]
async fn numbers_follow_what_happens_and_name_nobody() {
    // Each of several processes has numbers of its own.
    if inlay_tests::is_spread() {
        return;
    }
    let server = TestServer::start().await;
    let admin = server.register("CANARYORG").await.admin;
    let before = samples(&server.anonymous().get("/metrics").await.text);
    let events: Vec<_> = (0..50)
        .map(
            |n| json!({"tenant_id": "CANARYTENANT", "event_name": "e", "event_id": format!("{n}")}),
        )
        .collect();
    admin.post("/v1/events", &json!({"events": events})).await.expect(200);
    let again = json!([events[0], {"tenant_id": "CANARYTENANT"}]);
    admin.post("/v1/events", &json!({"events": again})).await.expect(200);
    assert_eq!(admin.count("CANARYTENANT", "e").await, 50);
    let reply = server.anonymous().get("/metrics").await;
    assert_eq!(
        reply.headers["content-type"],
        "application/openmetrics-text; version=1.0.0; charset=utf-8"
    );
    assert!(reply.text.ends_with("# EOF\n"));
    assert!(!reply.text.contains("CANARY"));
    let after = samples(&reply.text);
    let moved = |name: &str| after[name] - before.get(name).copied().unwrap_or(0.0);
    assert_eq!(moved("inlay_memtable_rows"), 50.0);
    assert_eq!(moved("inlay_events_total{outcome=\"new\"}"), 50.0);
    assert_eq!(moved("inlay_events_total{outcome=\"duplicate\"}"), 1.0);
    assert_eq!(moved("inlay_events_total{outcome=\"rejected\"}"), 1.0);
    assert_eq!(after["inlay_store_writable"], 1.0);
    assert!(moved("inlay_log_written_bytes_total") > 500.0);
    assert!(moved("inlay_log_group_records_count") >= 1.0);
    assert_eq!(moved("inlay_query_seconds_count{metric=\"count\"}"), 1.0);
    assert_eq!(moved("inlay_query_rows_total{metric=\"count\"}"), 50.0);
    assert!(after["inlay_memory_bytes{pool=\"memtable\"}"] > 1_000.0);
    let ingest = "{path=\"/v1/events\",method=\"POST\",status=\"200\"}";
    assert_eq!(moved(&format!("inlay_http_requests_total{ingest}")), 2.0);
    assert!(after.contains_key("inlay_log_sync_seconds_bucket{le=\"+Inf\"}"));
    for level in ["fresh", "merged", "sealed"] {
        assert!(after.contains_key(&format!("inlay_segments{{level=\"{level}\"}}")));
    }
}

/// A client that goes away takes its question with it: nobody computes an answer for nobody.
#[tokio::test]
async fn a_query_ends_when_its_client_leaves() {
    let server = TestServer::start().await;
    let admin = server.register("acme").await.admin;
    for batch in 0..30 {
        let event = |n: u32| {
            json!({"tenant_id": "t", "event_name": "e", "user_id": format!("u{n}"),
                   "numeric_props": {"ms": n * 7 % 1_000}, "string_props": {"key": format!("{n}")}})
        };
        let events: Vec<_> = (batch * 1_000..(batch + 1) * 1_000).map(event).collect();
        admin.post("/v1/events", &json!({"events": events})).await.expect(200);
    }
    let path = "/v1/query?tenant_id=t&event_name=e&metric=p95_approx&numeric_prop=ms&period=90d\
                &group_by=key&granularity=day&limit=1000&compare=previous&fill=none";
    let failed = "inlay_query_failures_total{metric=\"percentile_approx\"}";
    for wait_ms in (1..).map(|n| 2 * n) {
        let wait = std::time::Duration::from_millis(wait_ms);
        let answered = tokio::time::timeout(wait, admin.get(path)).await.is_ok();
        assert!(!answered, "it was answered in {wait_ms} ms, and never ended before that");
        let mut now = samples(&server.anonymous().get("/metrics").await.text);
        while now["inlay_queries_running"] > 0.0 {
            now = samples(&server.anonymous().get("/metrics").await.text);
        }
        if now[failed] >= 1.0 {
            return;
        }
    }
}

/// The list in the handbook is what is told, no more and no less.
#[tokio::test]
async fn every_number_is_in_the_handbook_and_every_one_there_is_told() {
    let server = TestServer::start().await;
    let admin = server.register("acme").await.admin;
    let event = json!({"tenant_id": "t", "event_name": "e"});
    admin.post("/v1/events", &json!({"events": [event]})).await.expect(200);
    for _ in 0..2 {
        assert_eq!(admin.count("t", "e").await, 1);
    }
    let text = server.anonymous().get("/metrics").await.text;
    let families = text.lines().filter_map(|line| line.strip_prefix("# TYPE inlay_"));
    let told: BTreeSet<String> = families
        .map(|family| match family.split_once(' ').unwrap() {
            (name, "counter") => format!("{name}_total"),
            (name, _) => name.to_owned(),
        })
        .collect();
    let handbook = std::fs::read_to_string("../server/README.md").unwrap();
    let table = handbook.split("\n## Metrics\n").nth(1).unwrap().split("\n## ").next().unwrap();
    let rows = table.lines().filter(|line| line.starts_with("| `"));
    let names = rows.flat_map(|row| row.split('|').nth(1).unwrap().split('`').skip(1).step_by(2));
    let listed: BTreeSet<String> = names.map(str::to_owned).collect();
    // A store in a directory of its own has one process.
    let (of_several, mut listed): (BTreeSet<_>, BTreeSet<_>) =
        listed.into_iter().partition(|name| name.starts_with("cluster_"));
    if inlay_tests::is_spread() {
        listed.extend(of_several);
    }
    assert_eq!(told, listed);
    let after = samples(&text);
    // Of several processes another one may have answered.
    assert!(
        inlay_tests::is_spread()
            || after["inlay_query_cache_lookups_total{result=\"miss\"}"] >= 1.0
    );
}
