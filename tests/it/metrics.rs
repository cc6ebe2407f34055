//! `/metrics`: numbers that move when something happens, and nothing about organisations.

use std::collections::BTreeMap;

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
    let server = TestServer::start().await;
    let admin = server.register("CANARYORG").await.admin;
    let before = samples(&server.anonymous().get("/metrics").await.text);
    let events: Vec<_> = (0..50)
        .map(
            |n| json!({"tenant_id": "CANARYTENANT", "event_name": "e", "event_id": format!("{n}")}),
        )
        .collect();
    admin.post("/v1/events", &json!({"events": events})).await.expect(200);
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
    assert_eq!(after["inlay_store_writable"], 1.0);
    assert!(moved("inlay_log_written_bytes_total") > 500.0);
    assert!(moved("inlay_log_group_records_count") >= 1.0);
    assert_eq!(moved("inlay_query_seconds_count{metric=\"count\"}"), 1.0);
    assert_eq!(moved("inlay_query_rows_total{metric=\"count\"}"), 50.0);
    assert!(after["inlay_memory_bytes{pool=\"memtable\"}"] > 1_000.0);
    let ingest = "{path=\"/v1/events\",method=\"POST\",status=\"200\"}";
    assert_eq!(moved(&format!("inlay_http_requests_total{ingest}")), 1.0);
    assert!(after.contains_key("inlay_log_sync_seconds_bucket{le=\"+Inf\"}"));
    for level in ["fresh", "merged", "sealed"] {
        assert!(after.contains_key(&format!("inlay_segments{{level=\"{level}\"}}")));
    }
}
