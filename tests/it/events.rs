//! Ingest: what is taken, what is refused, and that nothing is lost or doubled.

use std::io::Write as _;

use flate2::{Compression, write::GzEncoder};
use inlay_tests::{NOW_MS, TestServer};
use serde_json::{Value, json};

use crate::access::Row;

/// Who may do what: method, path, and the answer to each caller.
pub const OPERATIONS: &[Row] = &[("POST", "/v1/events", "13333yy1")];

const JSON: (&str, &str) = ("content-type", "application/json");

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

#[tokio::test]
async fn a_mixed_batch_stores_what_is_valid_and_lists_the_rest() {
    let server = TestServer::start().await;
    let admin = server.register("acme").await.admin;
    let good = json!({"tenant_id": "t", "event_name": "e"});
    let with = |name: &str, value: Value| {
        let mut event = good.clone();
        event[name] = value;
        event
    };
    let many: serde_json::Map<String, Value> =
        (0..101).map(|n| (format!("p{n}"), json!("v"))).collect();
    let wrong = [
        (json!({"event_name": "e"}), "tenant_id", "missing_field"),
        (with("tenant_id", json!("")), "tenant_id", "invalid_field"),
        (with("tenant_id", json!(7)), "tenant_id", "invalid_field"),
        (with("tenant_id", json!("x".repeat(257))), "tenant_id", "out_of_range"),
        (with("event_name", json!(null)), "event_name", "invalid_field"),
        (with("timestamp", json!("yesterday")), "timestamp", "invalid_field"),
        (with("timestamp", json!(NOW_MS)), "timestamp", "invalid_field"),
        (with("timestamp", json!("2026-11-21T10:17:37Z")), "timestamp", "out_of_range"),
        (with("timestamp", json!("1969-12-31T23:59:59Z")), "timestamp", "out_of_range"),
        (with("timestamp", json!("9999-01-01T00:00:00Z")), "timestamp", "out_of_range"),
        (with("frobnicate", json!(1)), "frobnicate", "unknown_field"),
        (with("string_props", json!({"a": 1})), "string_props.a", "invalid_field"),
        (with("string_props", json!(["a"])), "string_props", "invalid_field"),
        (with("string_props", json!({"": "x"})), "string_props", "invalid_field"),
        (with("string_props", json!({"a": "x".repeat(4_097)})), "string_props.a", "out_of_range"),
        (
            with("string_props", json!({"k".repeat(129): "x"})),
            &*format!("string_props.{}", "k".repeat(129)),
            "out_of_range",
        ),
        (with("string_props", json!(many)), "string_props", "out_of_range"),
        (with("numeric_props", json!({"a": "1"})), "numeric_props.a", "invalid_field"),
        (with("numeric_props", json!({"a": null})), "numeric_props.a", "invalid_field"),
        (with("user_id", json!("a\u{0}b")), "user_id", "invalid_field"),
    ];
    let mut events: Vec<Value> = wrong.iter().map(|(event, ..)| event.clone()).collect();
    events.push(good.clone());
    events.push(with("timestamp", json!("2026-11-21T10:17:36Z")));
    events.push(with("timestamp", json!("1970-01-01")));
    let answer = admin.post("/v1/events", &json!({"events": events})).await.expect(200);
    assert_eq!(
        (&answer["accepted"], &answer["rejected"], &answer["status"]),
        (&json!(3), &json!(wrong.len()), &json!("partial"))
    );
    for (index, ((_, field, code), error)) in
        wrong.iter().zip(answer["errors"].as_array().unwrap()).enumerate()
    {
        assert_eq!(error["index"], index, "{error}");
        assert_eq!((&error["field"], &error["code"]), (&json!(field), &json!(code)), "{error}");
        assert!(error["message"].as_str().unwrap().len() > 10);
    }
    assert_eq!(admin.count("t", "e").await, 1, "the others lie outside the period");
    let all = "/v1/query?tenant_id=t&event_name=e&metric=count&from=1970-01-01&to=2026-12-01";
    assert_eq!(admin.get(all).await.expect(200)["data"][0]["value"], 3);
}

#[tokio::test]
async fn bodies_that_cannot_be_read_store_nothing() {
    let server = TestServer::start().await;
    let admin = server.register("acme").await.admin;
    let event = r#"{"tenant_id":"t","event_name":"e"}"#;
    let valid = format!(r#"{{"events":[{event}]}}"#);
    let post = async |headers: &[(&str, &str)], body: Vec<u8>| {
        let mut headers = headers.to_vec();
        headers.push(JSON);
        admin.post_raw("/v1/events", &headers, body).await
    };
    post(&[], br#"{"events": ["#.to_vec()).await.refused(400, "invalid_json");
    post(&[], format!("{valid} x").into_bytes()).await.refused(400, "invalid_json");
    post(&[], vec![]).await.refused(400, "invalid_json");
    post(&[], b"{\"events\":[{\"tenant_id\":\"\xff\"}]}".to_vec())
        .await
        .refused(400, "invalid_json");
    post(&[], br#"{"events":[{"tenant_id":"\ud800","event_name":"e"}]}"#.to_vec())
        .await
        .expect(400);
    post(&[], format!("{}1{}", "[".repeat(50_000), "]".repeat(50_000)).into_bytes())
        .await
        .expect(400);
    assert_eq!(
        post(&[], b"{}".to_vec()).await.refused(400, "missing_field").as_deref(),
        Some("events")
    );
    assert_eq!(
        post(&[], br#"{"events":7}"#.to_vec()).await.refused(400, "invalid_field").as_deref(),
        Some("events")
    );
    assert_eq!(
        post(&[], br#"{"events":[],"x":1}"#.to_vec())
            .await
            .refused(400, "unknown_field")
            .as_deref(),
        Some("x")
    );
    assert_eq!(
        post(&[], br#"{"events":[]}"#.to_vec()).await.refused(400, "invalid_field").as_deref(),
        Some("events")
    );
    let many = format!(r#"{{"events":[{}]}}"#, vec![event; 1_001].join(","));
    assert_eq!(
        post(&[], many.into_bytes()).await.refused(400, "too_many_events").as_deref(),
        Some("events")
    );
    let none_valid = post(&[], br#"{"events":[{"tenant_id":"t"}]}"#.to_vec()).await;
    assert_eq!(none_valid.refused(400, "missing_field").as_deref(), Some("events[0].event_name"));
    let overflow = post(
        &[],
        br#"{"events":[{"tenant_id":"t","event_name":"e","numeric_props":{"a":1e999}}]}"#.to_vec(),
    )
    .await;
    overflow.expect(400);

    let padding = " ".repeat(11 << 20);
    post(&[], format!("{valid}{padding}").into_bytes()).await.refused(413, "payload_too_large");
    let bomb = gzip(format!("{valid}{}", " ".repeat(200 << 20)).as_bytes());
    assert!(bomb.len() < 2 << 20);
    post(&[("content-encoding", "gzip")], bomb).await.refused(413, "payload_too_large");
    let bomb = zstd::bulk::compress(" ".repeat(200 << 20).as_bytes(), 1).unwrap();
    post(&[("content-encoding", "zstd")], bomb).await.refused(413, "payload_too_large");
    let cut = gzip(valid.as_bytes());
    post(&[("content-encoding", "gzip")], cut[..cut.len() - 9].to_vec()).await.expect(400);
    post(&[("content-encoding", "gzip")], valid.clone().into_bytes()).await.expect(400);
    post(&[("content-encoding", "snappy")], valid.clone().into_bytes())
        .await
        .refused(415, "unsupported_media_type");
    admin
        .post_raw("/v1/events", &[("content-type", "text/plain")], valid.clone().into_bytes())
        .await
        .refused(415, "unsupported_media_type");
    assert_eq!(admin.count("t", "e").await, 0);

    post(&[("content-encoding", "gzip")], gzip(valid.as_bytes())).await.expect(200);
    let compressed = zstd::bulk::compress(valid.as_bytes(), 1).unwrap();
    post(&[("content-encoding", "zstd")], compressed).await.expect(200);
    // Two gzip members end to end are one file.
    let members = [gzip(&valid.as_bytes()[..10]), gzip(&valid.as_bytes()[10..])].concat();
    post(&[("content-encoding", "gzip")], members).await.expect(200);
    let trailing = [gzip(valid.as_bytes()), b"garbage".to_vec()].concat();
    post(&[("content-encoding", "gzip")], trailing).await.expect(400);
    post(&[], br#"{"events":[["t","e"]]}"#.to_vec()).await.refused(400, "invalid_field");
    let lines = format!("{event}\n\n{event}\n");
    let reply = admin
        .post_raw("/v1/events", &[("content-type", "application/x-ndjson")], lines.into_bytes())
        .await;
    assert_eq!(reply.expect(200)["accepted"], 2);
    assert_eq!(admin.count("t", "e").await, 5);
}

#[tokio::test]
async fn an_event_counts_once_however_it_comes_again() {
    let mut server = TestServer::start().await;
    let org = server.register("acme").await;
    let event =
        |tenant: &str, id: &str| json!({"tenant_id": tenant, "event_name": "e", "event_id": id});
    let batch = |events: Vec<Value>| json!({"events": events});
    let answer = org
        .admin
        .post(
            "/v1/events",
            &batch(vec![event("t", "1"), event("t", "1"), event("u", "1"), event("t", "")]),
        )
        .await
        .expect(200);
    assert_eq!(
        (&answer["accepted"], &answer["duplicates"], &answer["status"]),
        (&json!(4), &json!(1), &json!("ok"))
    );
    let answer = org
        .admin
        .post("/v1/events", &batch(vec![event("t", "1"), event("t", "2")]))
        .await
        .expect(200);
    assert_eq!(answer["duplicates"], 1);
    let foreign = json!({"label": "x", "scope": "admin", "environment": "development"});
    let created = org.console.post("/v1/api-keys", &foreign).await.expect(201);
    server.restart().await;
    let key = org.body["api_key"]["key"].as_str().unwrap();
    let admin = server.anonymous().with_bearer(key);
    let answer = admin
        .post("/v1/events", &batch(vec![event("t", "1"), event("t", "2"), event("u", "1")]))
        .await
        .expect(200);
    assert_eq!(answer["duplicates"], 3);
    let attempts = (0..20).map(|_| {
        let (client, body) =
            (admin.clone(), batch((0..50).map(|n| event("t", &format!("race {n}"))).collect()));
        tokio::spawn(async move {
            client.post("/v1/events", &body).await.expect(200)["duplicates"].as_i64().unwrap()
        })
    });
    let mut known = 0;
    for attempt in attempts.collect::<Vec<_>>() {
        known += attempt.await.unwrap();
    }
    assert_eq!(known, 19 * 50);
    assert_eq!(admin.count("t", "e").await, 1 + 1 + 1 + 50);
    // Another environment numbers on its own.
    let development = server.anonymous().with_bearer(created["key"].as_str().unwrap());
    let answer = development.post("/v1/events", &batch(vec![event("t", "1")])).await.expect(200);
    assert_eq!((&answer["accepted"], &answer["duplicates"]), (&json!(1), &json!(0)));
    assert_eq!(development.count("t", "e").await, 1);
    assert_eq!(admin.count("t", "e").await, 1 + 1 + 1 + 50);
}

#[tokio::test]
async fn the_monthly_limit_refuses_a_request_whole() {
    let server = TestServer::with_plan("free").await;
    let admin = server.register("acme").await.admin;
    let events: Vec<Value> =
        (0..1_000).map(|_| json!({"tenant_id": "t", "event_name": "e"})).collect();
    let batch = json!({"events": events});
    // The sample of the registration counts too.
    let mut accepted = 0;
    let body = loop {
        let reply = admin.post("/v1/events", &batch).await;
        if reply.status != 200 {
            break reply.expect(402);
        }
        accepted += 1_000;
        assert!(accepted <= 1_000_000);
    };
    assert_eq!(body["code"], "monthly_events_limit");
    assert!(
        body["used"].as_i64().unwrap() <= 1_000_000 && body["used"].as_i64().unwrap() > 999_000
    );
    assert_eq!(admin.count("t", "e").await, accepted);
}
