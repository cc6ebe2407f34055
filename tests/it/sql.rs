//! SQL over one's own events, by workers that end with their statements.

use std::time::{Duration, Instant};

use inlay_tests::{Client, TestServer};
use serde_json::{Value, json};

use crate::access::Row;

/// Who may do what: method, path, and the answer to each caller.
pub const OPERATIONS: &[Row] = &[
    ("POST", "/v1/query/adhoc", "133yyy31"),
    ("GET", "/v1/datasets", "133yyy31"),
    ("GET", "/v1/datasets/{name}/ddl", "133yyy31"),
    ("GET", "/v1/saved-queries", "1yyyyy31"),
    ("POST", "/v1/saved-queries", "133yyy31"),
    ("PATCH", "/v1/saved-queries/{id}", "133yyy31"),
    ("DELETE", "/v1/saved-queries/{id}", "133yyy31"),
    ("POST", "/v1/saved-queries/{id}/run", "133yyy31"),
];

async fn ask(client: &Client, sql: &str) -> inlay_tests::Reply {
    client.post("/v1/query/adhoc", &json!({"sql": sql})).await
}

async fn send(client: &Client, events: &[(&str, &str, f64)]) {
    let events: Vec<Value> = events
        .iter()
        .map(|(tenant, model, ms)| {
            json!({"event_name": "api_call", "tenant_id": tenant, "user_id": "u", "string_props": {"model": model},
                   "numeric_props": {"ms": ms}})
        })
        .collect();
    client.post("/v1/events", &json!({"events": events})).await.expect(200);
}

#[tokio::test(flavor = "multi_thread")]
async fn statements_are_answered_in_three_forms() {
    let server = TestServer::start().await;
    let org = server.register("acme").await;
    send(&org.admin, &[("t1", "large", 10.0), ("t2", "small", 20.0), ("t2", "small", 40.0)]).await;
    let sql = "SELECT string_props['model'] AS model, count(*) AS n, avg(numeric_props['ms']) AS ms \
               FROM events GROUP BY 1 ORDER BY n DESC";
    for client in [&org.admin, &org.console] {
        let body = ask(client, sql).await.expect(200);
        let column = |name: &str, kind: &str| json!({"name": name, "type": kind});
        assert_eq!(
            body["columns"],
            json!([column("model", "VARCHAR"), column("n", "BIGINT"), column("ms", "DOUBLE")])
        );
        assert_eq!(body["rows"], json!([["small", 2, 30.0], ["large", 1, 10.0]]));
        assert_eq!(body["stats"]["rows_returned"], 2);
        assert_eq!(body["stats"]["truncated"], false);
        assert!(body["stats"]["wall_ms"].is_u64());
    }
    let of = |kind: &'static str| {
        let (client, body) = (org.admin.clone(), json!({"sql": sql}));
        async move {
            client
                .post_raw(
                    "/v1/query/adhoc",
                    &[("accept", kind), ("content-type", "application/json")],
                    body.to_string().into(),
                )
                .await
        }
    };
    let csv = of("text/csv").await;
    assert_eq!(csv.text, "model,n,ms\r\nsmall,2,30.0\r\nlarge,1,10.0\r\n");
    assert_eq!(csv.headers["x-truncated"], "false");
    let lines = of("application/x-ndjson").await;
    let lines: Vec<Value> =
        lines.text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(lines[0], json!({"model": "small", "n": 2, "ms": 30.0}));
    assert_eq!(lines[2]["stats"]["rows_returned"], 2);
    let body = json!({"sql": "SELECT tenant_id FROM events WHERE numeric_props['ms'] > $1 AND tenant_id <> $2", "params": [15, "t1"]});
    let body = org.admin.post("/v1/query/adhoc", &body).await.expect(200);
    assert_eq!(body["rows"], json!([["t2"], ["t2"]]));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_wrong_is_said_with_its_place() {
    let server = TestServer::start().await;
    let org = &server.register("acme").await;
    let refused = ask(&org.admin, "SELECT 1,\n tenant_ids FROM events").await;
    assert_eq!(refused.refused(400, "invalid_sql").as_deref(), Some("sql"));
    let body = refused.json();
    assert_eq!((&body["line"], &body["column"]), (&json!(2), &json!(2)));
    assert!(body["hint"].as_str().unwrap().contains("did you mean tenant_id?"), "{body}");
    for sql in [
        ";",
        "DROP TABLE events",
        "SELECT 1; DELETE FROM events",
        "COPY events TO '/tmp/x'",
        "SELECT * FROM '/etc/passwd'",
        "SELECT * FROM information_schema.tables",
        "SELECT current_setting('x')",
    ] {
        ask(&org.admin, sql).await.refused(400, "invalid_sql");
    }
    let post = |body: Value| async move { org.admin.post("/v1/query/adhoc", &body).await };
    assert_eq!(post(json!({})).await.refused(400, "missing_field").as_deref(), Some("sql"));
    assert_eq!(post(json!({"sql": 1})).await.refused(400, "invalid_field").as_deref(), Some("sql"));
    post(json!({"sql": "SELECT 1", "x": 1})).await.refused(400, "unknown_field");
    post(json!({"sql": "SELECT 1", "params": [1]})).await.refused(400, "invalid_sql");
}

#[tokio::test(flavor = "multi_thread")]
async fn values_that_a_function_refuses_are_the_statements_fault() {
    let server = TestServer::start().await;
    let org = server.register("acme").await;
    send(&org.admin, &[("t1", "large", 10.0)]).await;
    for sql in [
        "SELECT count(*) FROM events WHERE tenant_id ~ '('",
        "SELECT regexp_replace(tenant_id, '(', '') FROM events",
        "SELECT map_entries(string_props) FROM events",
        "SELECT to_timestamp_seconds(9999999999999) FROM events",
        "SELECT CAST(2000000000 AS DATE) FROM events",
        "SELECT * FROM event",
        "SELECT current_user",
    ] {
        let reply = ask(&org.admin, sql).await;
        reply.refused(400, "invalid_sql");
        let message = reply.json()["error"].as_str().unwrap_or_default().to_owned();
        assert!(!message.is_empty() && !message.contains("inlay.public"), "{sql}: {message}");
        assert!(!message.ends_with("there are: "), "{sql}: {message}");
    }
    let unknown = ask(&org.admin, "SELECT * FROM event").await.json();
    assert_eq!(unknown["hint"], "there are: events, events_hourly, events_daily");
}

#[tokio::test(flavor = "multi_thread")]
async fn properties_of_others_cost_nobody_anything() {
    let server = TestServer::start().await;
    let (org, other) = (server.register("acme").await, server.register("beta").await);
    send(&org.admin, &[("ours", "ours", 1.0)]).await;
    for part in 0..16 {
        let props = |prefix: &str| -> serde_json::Map<String, Value> {
            (0..50).map(|n| (format!("{prefix}{part}x{n}"), json!(n))).collect()
        };
        let texts: serde_json::Map<String, Value> =
            props("t").into_iter().map(|(name, value)| (name, json!(value.to_string()))).collect();
        let event = json!({"event_name": "e", "tenant_id": "t", "string_props": texts, "numeric_props": props("n")});
        other.admin.post("/v1/events", &json!({"events": [event]})).await.expect(200);
    }
    super::internal::connect(&server).await.flush(inlay_proto::v1::FlushRequest {}).await.unwrap();
    let rows = ask(&org.admin, "SELECT string_props, numeric_props FROM events").await.expect(200);
    assert_eq!(rows["rows"], json!([[{"model": "ours"}, {"ms": 1.0}]]));
    let hourly = ask(&org.admin, "SELECT numeric_states FROM events_hourly").await.expect(200);
    let states = hourly["rows"][0][0].as_object().unwrap();
    assert_eq!(states.keys().collect::<Vec<_>>(), ["ms"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_form_is_the_one_that_is_liked_best() {
    let server = TestServer::start().await;
    let org = server.register("acme").await;
    let kinds = [
        ("application/json, text/csv;q=0", "application/json"),
        ("text/csv;q=0.5, application/json;q=0.2", "text/csv; charset=utf-8"),
        ("TEXT/CSV", "text/csv; charset=utf-8"),
        ("text/html, */*", "application/json"),
        ("application/x-ndjson", "application/x-ndjson"),
    ];
    for (accept, kind) in kinds {
        let headers = [("accept", accept), ("content-type", "application/json")];
        let body = json!({"sql": "SELECT 1 AS \"=1+1\""}).to_string();
        let reply = org.admin.post_raw("/v1/query/adhoc", &headers, body.into()).await;
        assert_eq!(reply.headers["content-type"], kind, "{accept}");
        assert!(!kind.starts_with("text/csv") || reply.text.starts_with("'=1+1"), "{}", reply.text);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_statement_that_takes_too_much_ends_alone_and_in_time() {
    let mut server = TestServer::start().await;
    server.query_ms_max = 2_000;
    server.restart().await;
    let org = server.register("acme").await;
    let events: Vec<(&str, &str, f64)> = (0..1_000).map(|n| ("t", "m", f64::from(n))).collect();
    for _ in 0..5 {
        send(&org.admin, &events).await;
    }
    // Where everything is busy, the first worker may take longer to get ready than a statement may.
    for _ in 0..20 {
        if ask(&org.admin, "SELECT 1").await.status == 200 {
            break;
        }
    }
    // Five thousand rows that all meet each other, several times.
    let slow = "SELECT sum(a.numeric_props['ms'] * b.numeric_props['ms'] + c.numeric_props['ms'] % 7) FROM events a \
                JOIN events b ON a.tenant_id = b.tenant_id JOIN events c ON a.tenant_id = c.tenant_id";
    let large = "SELECT array_agg(e) FROM (SELECT concat(a.event_name, b.event_name, a.timestamp, b.timestamp) AS e \
                 FROM events a JOIN events b ON a.tenant_id = b.tenant_id) x";
    for sql in [slow, large] {
        let (began, quick) = (Instant::now(), Duration::from_millis(4_500));
        let refused = ask(&org.admin, sql).await;
        assert!(began.elapsed() < quick, "{:?}: {}", began.elapsed(), refused.text);
        let code = refused.json()["code"].as_str().unwrap_or_default().to_owned();
        assert!(["query_timeout", "query_too_large"].contains(&&*code), "{}", refused.text);
        assert_eq!(refused.status, 400);
        ask(&org.admin, "SELECT count(*) FROM events").await.expect(200);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn two_statements_of_an_organisation_run_at_once_and_those_of_others_go_on() {
    // Each of several processes runs so many.
    if inlay_tests::is_spread() {
        return;
    }
    let mut server = TestServer::start().await;
    server.query_ms_max = 8_000;
    server.restart().await;
    let (org, other) = (server.register("acme").await, server.register("beta").await);
    let events: Vec<(&str, &str, f64)> = (0..1_000).map(|n| ("t", "m", f64::from(n))).collect();
    for _ in 0..5 {
        send(&org.admin, &events).await;
    }
    let slow = "SELECT sum(levenshtein(concat(a.timestamp, b.event_name), concat(b.timestamp, a.event_name))) \
                FROM events a JOIN events b ON a.tenant_id = b.tenant_id";
    let asked: Vec<_> = (0..3)
        .map(|_| {
            let client = org.admin.clone();
            tokio::spawn(async move { ask(&client, slow).await.status })
        })
        .collect();
    tokio::time::sleep(Duration::from_millis(500)).await;
    ask(&other.admin, "SELECT 1").await.expect(200);
    let mut statuses = Vec::new();
    for asked in asked {
        statuses.push(asked.await.unwrap());
    }
    statuses.sort_unstable();
    assert_eq!(statuses, [400, 400, 429]);
}

#[tokio::test(flavor = "multi_thread")]
async fn nobody_sees_the_events_of_others() {
    let server = TestServer::start().await;
    let (org, other) = (server.register("acme").await, server.register("beta").await);
    send(&org.admin, &[("ours", "ours", 1.0)]).await;
    send(&other.admin, &[("marker-tenant", "marker-model", 424_242.0)]).await;
    let marked = json!({"event_name": "marker_event", "tenant_id": "marker-tenant", "string_props": {"marker_prop": "marker"}});
    other.admin.post("/v1/events", &json!({"events": [marked]})).await.expect(200);
    for sql in [
        "SELECT * FROM events",
        "SELECT * FROM events WHERE 1 = 1 OR tenant_id = 'marker-tenant'",
        "SELECT * FROM public.events UNION ALL SELECT * FROM inlay.public.events",
        "SELECT * FROM \"events\"",
        "WITH events AS (SELECT * FROM events) SELECT * FROM events",
        "SELECT * FROM events_hourly",
        "SELECT tenant_id, event_name, day, count, users FROM events_daily",
        "SELECT map_keys(string_props), map_values(numeric_props) FROM events",
        "SELECT string_props['marker_prop'] FROM events",
        "SELECT count(*), min(tenant_id), max(event_name) FROM events",
    ] {
        let answer = ask(&org.admin, sql).await;
        answer.expect(200);
        assert!(
            !answer.text.contains("marker-") && !answer.text.contains("marker_event"),
            "{sql}: {}",
            answer.text
        );
        assert!(!answer.text.contains("424242"), "{sql}: {}", answer.text);
    }
    let datasets = org.admin.get("/v1/datasets").await;
    assert!(!datasets.text.contains("marker"), "{}", datasets.text);
    // Nor those of the other environment.
    let body =
        json!({"sql": "SELECT count(*) FROM events WHERE tenant_id = 'ours'"}).to_string().into();
    let headers = [("x-service-environment", "development"), ("content-type", "application/json")];
    let counted = org.console.post_raw("/v1/query/adhoc", &headers, body).await.expect(200);
    assert_eq!(counted["rows"], json!([[0]]));
}

#[tokio::test(flavor = "multi_thread")]
async fn datasets_tell_what_statements_can_name() {
    let server = TestServer::start().await;
    let org = server.register("acme").await;
    let empty = org.admin.get("/v1/datasets").await.expect(200);
    assert_eq!(
        (&empty["data"][0]["rows"], &empty["data"][0]["updated_at"]),
        (&json!(0), &Value::Null)
    );
    // Hours in several segments and in memory are rows all the same.
    let mut grpc = super::internal::connect(&server).await;
    for tenant in ["t1", "t2", "t1"] {
        send(&org.admin, &[("t1", "large", 10.0), (tenant, "it's", 20.0)]).await;
        grpc.flush(inlay_proto::v1::FlushRequest {}).await.unwrap();
    }
    send(&org.admin, &[("t1", "large", 10.0), ("t3", "it's", 20.0)]).await;
    let datasets = org.admin.get("/v1/datasets").await.expect(200);
    for dataset in datasets["data"].as_array().unwrap() {
        let name = dataset["name"].as_str().unwrap();
        let rows = ask(&org.admin, &format!("SELECT * FROM {name}")).await.expect(200);
        let columns: Vec<Value> = dataset["columns"]
            .as_array()
            .unwrap()
            .iter()
            .map(|column| json!({"name": column["name"], "type": column["type"]}))
            .collect();
        assert_eq!(json!(columns), rows["columns"], "{name}");
        assert_eq!(dataset["rows"], rows["stats"]["rows_returned"], "{name}");
        assert_eq!(dataset["kind"], if name == "events" { "table" } else { "view" });
        assert!(dataset["updated_at"].is_string() && dataset["engine"] == "inlay", "{dataset}");
        let ddl = org.admin.get(&format!("/v1/datasets/{name}/ddl")).await.expect(200);
        assert!(ddl["ddl"].as_str().unwrap().starts_with("CREATE "), "{ddl}");
        assert!(ddl["ddl"].as_str().unwrap().contains("tenant_id VARCHAR NOT NULL"), "{ddl}");
    }
    assert!(datasets["data"][0]["bytes"].as_u64() > Some(0));
    for property in datasets["data"][0]["properties"].as_array().unwrap() {
        let sql = format!("SELECT {} FROM events", property["sql"].as_str().unwrap());
        let column = &ask(&org.admin, &sql).await.expect(200)["columns"][0]["type"];
        assert_eq!(*column, property["type"], "{property}");
    }
    for name in ["nothing", "..%2F", "%25", "EVENTS", "events%27", "%00"] {
        org.admin.get(&format!("/v1/datasets/{name}/ddl")).await.refused(404, "not_found");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_saved_query_is_run() {
    let server = TestServer::start().await;
    let org = server.register("acme").await;
    send(&org.admin, &[("t1", "large", 10.0), ("t2", "small", 20.0)]).await;
    let sql = "SELECT count(*) FROM events WHERE tenant_id = $1";
    let saved = json!({"name": "Of a tenant", "sql": sql});
    let saved = org.console.post("/v1/saved-queries", &saved).await.expect(201);
    let path = format!("/v1/saved-queries/{}/run", saved["id"].as_str().unwrap());
    let answer = org.console.post(&path, &json!({"params": ["t1"]})).await.expect(200);
    assert_eq!(answer["rows"], json!([[1]]));
    org.console.post(&path, &json!({})).await.refused(400, "invalid_sql");
    let plain = json!({"name": "All", "sql": "SELECT count(*) FROM events"});
    let plain = org.console.post("/v1/saved-queries", &plain).await.expect(201);
    let plain = format!("/v1/saved-queries/{}/run", plain["id"].as_str().unwrap());
    let answer = org.console.post_raw(&plain, &[], Vec::new()).await.expect(200);
    assert_eq!(answer["rows"], json!([[2]]));
    let other = server.register("beta").await;
    other.admin.post(&path, &json!({"params": ["t1"]})).await.refused(404, "not_found");
}
