//! Questions and answers over HTTP. The arithmetic itself is tested in the engine.

use inlay_tests::TestServer;
use serde_json::{Value, json};

use crate::access::Row;

/// Who may do what: method, path, and the answer to each caller.
pub const OPERATIONS: &[Row] = &[
    ("GET", "/v1/discover", "1yyyyy31"),
    ("POST", "/v1/discover/auto-create", "13yyyy31"),
    ("GET", "/v1/query", "1yyyyy31"),
];

fn event(hours_ago: i64, model: Option<&str>, latency: f64, user: &str) -> Value {
    let at = 1_795_169_856_789 - hours_ago * 3_600_000;
    let strings = model.map_or(json!({}), |model| json!({"model": model}));
    let seconds = at / 1_000;
    // Seconds since 1970 as a date, without a library: the server reads RFC 3339 only.
    let (days, rest) = (seconds.div_euclid(86_400), seconds.rem_euclid(86_400));
    let day = days - 20_759;
    let stamp = format!(
        "2026-11-{:02}T{:02}:{:02}:{:02}Z",
        2 + day,
        rest / 3_600,
        rest / 60 % 60,
        rest % 60
    );
    json!({"tenant_id": "t", "event_name": "e", "timestamp": stamp, "user_id": user,
           "string_props": strings, "numeric_props": {"ms": latency}})
}

async fn prepared() -> (TestServer, inlay_tests::Client) {
    let server = TestServer::start().await;
    let admin = server.register("acme").await.admin;
    let events = vec![
        event(0, Some("a"), 10.0, "u1"),
        event(1, Some("a"), 20.0, "u2"),
        event(2, Some("b"), 30.5, "u1"),
        event(30, None, 40.0, "u3"),
        event(31, Some("a"), 50.0, "u1"),
        event(24 * 8, Some("c"), 1.0, "u9"),
    ];
    admin.post("/v1/events", &json!({"events": events})).await.expect(200);
    (server, admin)
}

const BASE: &str = "/v1/query?tenant_id=t&event_name=e&period=7d";

#[tokio::test]
async fn answers_have_the_decided_shape_and_order() {
    let (_server, admin) = prepared().await;
    let answer = admin.get(&format!("{BASE}&metric=count")).await.expect(200);
    assert_eq!(answer["data"], json!([{"value": 5}]));
    let meta = &answer["meta"];
    assert_eq!(
        (&meta["event_name"], &meta["metric"], &meta["period"]),
        (&json!("e"), &json!("count"), &json!("7d"))
    );
    assert!(meta["query_time_ms"].is_u64() && meta["rows_scanned"] == 5);
    assert!(meta.get("source_table").is_none(), "no rollup served it");
    assert_eq!(
        (&meta["from"], &meta["to"]),
        (&json!("2026-11-13T10:00:00.000Z"), &json!("2026-11-20T10:17:36.789Z"))
    );

    let grouped = admin.get(&format!("{BASE}&metric=count&group_by=model")).await.expect(200);
    assert_eq!(
        grouped["data"],
        json!([{"group": "a", "value": 3}, {"group": "b", "value": 1}, {"group": null, "value": 1}])
    );
    assert_eq!(
        (&grouped["meta"]["groups_total"], &grouped["meta"]["total"]),
        (&json!(3), &json!(5))
    );
    let limited =
        admin.get(&format!("{BASE}&metric=count&group_by=model&limit=1")).await.expect(200);
    assert_eq!(
        (&limited["data"], &limited["meta"]["groups_returned"]),
        (&json!([{"group": "a", "value": 3}]), &json!(1))
    );

    let daily = admin.get(&format!("{BASE}&metric=count&granularity=day")).await.expect(200);
    let rows = daily["data"].as_array().unwrap();
    assert_eq!(rows.len(), 8, "seven days back to the hour meet eight dates");
    assert_eq!(rows[0], json!({"bucket": "2026-11-13T00:00:00.000Z", "value": 0}));
    assert_eq!(rows[7], json!({"bucket": "2026-11-20T00:00:00.000Z", "value": 3}));
    let sparse =
        admin.get(&format!("{BASE}&metric=count&granularity=day&fill=none")).await.expect(200);
    assert_eq!(sparse["data"].as_array().unwrap().len(), 2);

    // A sum of zero stands for events; a day without any does not.
    let opposite = json!({"events": [event(49, None, 5.0, "u1"), event(49, None, -5.0, "u1")]});
    admin.post("/v1/events", &opposite).await.expect(200);
    let sums = format!("{BASE}&metric=sum&numeric_prop=ms&granularity=day&fill=none");
    let sums = admin.get(&sums).await.expect(200);
    assert_eq!(sums["data"][0], json!({"bucket": "2026-11-18T00:00:00.000Z", "value": 0}));
    assert_eq!(sums["data"].as_array().unwrap().len(), 3);
}

#[tokio::test]
async fn every_metric_answers() {
    let (_server, admin) = prepared().await;
    let value = async |parameters: &str| {
        admin.get(&format!("{BASE}&{parameters}")).await.expect(200)["data"][0]["value"].clone()
    };
    assert_eq!(value("metric=count_unique").await, 3);
    assert_eq!(value("metric=count_unique_approx").await, 3);
    for (metric, expected) in [
        ("sum", 150.5),
        ("avg", 30.1),
        ("p50", 30.5),
        ("p95", 48.0),
        ("p99", 49.6),
        ("min", 10.0),
        ("max", 50.0),
    ] {
        let found = value(&format!("metric={metric}&numeric_prop=ms")).await.as_f64().unwrap();
        assert!((found - expected).abs() < 1e-9, "{metric}: {found}");
        let nothing = value(&format!("metric={metric}&numeric_prop=other")).await;
        assert_eq!(
            nothing,
            if metric == "sum" { json!(0) } else { json!(null) },
            "{metric} of nothing"
        );
    }
    assert_eq!(value("metric=count&f_model=a&f_model=b").await, 4);
    assert_eq!(value("metric=count&f_model=nope").await, 0);
    let compared = admin.get(&format!("{BASE}&metric=count&compare=previous")).await.expect(200);
    assert_eq!(compared["data"], json!([{"value": 5, "previous": 1}]));
    // The same hour of the day before stands beside each hour.
    let hours = format!("{BASE}&metric=count&compare=previous&granularity=hour")
        .replace("period=7d", "period=24h");
    let hours = admin.get(&hours).await.expect(200);
    let rows: Vec<&Value> = hours["data"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|row| row["value"] != 0 || row["previous"] != 0)
        .collect();
    let found: Vec<(&str, i64, i64)> = rows
        .iter()
        .map(|row| {
            (
                &row["bucket"].as_str().unwrap()[11..13],
                row["value"].as_i64().unwrap(),
                row["previous"].as_i64().unwrap(),
            )
        })
        .collect();
    assert_eq!(found, [("03", 0, 1), ("04", 0, 1), ("08", 1, 0), ("09", 1, 0), ("10", 1, 0)]);
    // Groups that were small before are compared with what they were.
    let groups = admin
        .get(&format!("{BASE}&metric=count&compare=previous&group_by=model&limit=1"))
        .await
        .expect(200);
    assert_eq!(groups["data"], json!([{"group": "a", "value": 3, "previous": 0}]));
}

#[tokio::test]
async fn a_key_names_a_tenant_and_a_session_need_not() {
    let server = TestServer::start().await;
    let org = server.register("acme").await;
    let events: Vec<Value> =
        ["t", "u"].iter().map(|tenant| json!({"tenant_id": tenant, "event_name": "e"})).collect();
    org.admin.post("/v1/events", &json!({"events": events})).await.expect(200);
    server.clock.advance(1_000);
    let all = "/v1/query?event_name=e&metric=count&period=7d";
    assert_eq!(
        org.admin.get(all).await.refused(400, "missing_field").as_deref(),
        Some("tenant_id")
    );
    assert_eq!(org.console.get(all).await.expect(200)["data"][0]["value"], 2);
}

/// A day that is over is answered from rollups, and the answer says so; it equals that of the rows,
/// which are asked by a filter that no rollup has.
#[tokio::test]
async fn rollups_answer_and_are_named() {
    let server = TestServer::start().await;
    let admin = server.register("acme").await.admin;
    for part in 0..3 {
        let events: Vec<Value> = (0..1_000)
            .map(|n| {
                let time = format!("2026-11-18T{:02}:{:02}:{:02}Z", n % 24, n % 60, part);
                let model = if n % 2 == 0 { "a" } else { "b" };
                json!({"tenant_id": "t", "event_name": "e", "timestamp": time,
                       "string_props": {"model": model, "free": "x"},
                       "numeric_props": {"ms": n as f64 / 10.0}})
            })
            .collect();
        admin.post("/v1/events", &json!({"events": events})).await.expect(200);
    }
    let base =
        "/v1/query?tenant_id=t&event_name=e&from=2026-11-18T00:00:00Z&to=2026-11-20T00:00:00Z";
    let ask = async |more: &str| admin.get(&format!("{base}&{more}")).await.expect(200);
    let before = ask("metric=count&group_by=model").await;
    assert!(before["meta"].get("source_table").is_none(), "rows in memory have no rollups");

    let mut client = super::internal::connect(&server).await;
    client.flush(inlay_proto::v1::FlushRequest {}).await.unwrap();
    let shapes =
        ["metric=count", "metric=count&group_by=model", "metric=sum&numeric_prop=ms&f_model=a"];
    for shape in shapes {
        for (granularity, grain) in [("day", "day"), ("hour", "hour")] {
            let rolled = ask(&format!("{shape}&granularity={granularity}")).await;
            let rows = ask(&format!("{shape}&granularity={granularity}&f_free=x")).await;
            assert_eq!(rolled["data"], rows["data"], "{shape} by {granularity}");
            assert!(rows["meta"].get("planned_by").is_none());
            if grain == "day" || !shape.contains("sum") {
                let meta = &rolled["meta"];
                // Hours are what the directory of runs counts.
                let grain = if shape == "metric=count" { "hour" } else { grain };
                let expected = if grain == "day" { "events_daily" } else { "events_hourly" };
                assert_eq!(meta["source_table"], expected, "{shape} by {granularity}");
                assert_eq!(
                    (&meta["planned_by"], &meta["rollup_granularity"]),
                    (&json!("rollup"), &json!(grain))
                );
                assert_eq!(meta["rows_scanned"], 0, "{meta}");
            }
        }
    }
    let plan = |answer: &Value| answer["meta"]["plan"][0].clone();
    let used = plan(&ask("metric=count&explain=true").await);
    assert_eq!(
        (&used["rows"], &used["series"], &used["rolled_up"]),
        (&json!(3000), &json!(1), &json!(1))
    );
    let why = plan(&ask("metric=p95&numeric_prop=ms&explain=true").await);
    assert_eq!(why["rejected"], "exact percentiles need every number");
    let wrong = admin.get(&format!("{base}&metric=count&explain=yes")).await;
    assert_eq!(wrong.refused(400, "unknown_value").as_deref(), Some("explain"));
}

/// A count is an hourly rollup for customers of every size: rows that were counted were not read.
#[tokio::test]
async fn counts_of_few_events_are_hourly_rollups() {
    let (server, admin) = prepared().await;
    let ask = async |more: &str| admin.get(&format!("{BASE}&metric=count{more}")).await.expect(200);
    let shapes = ["", "&granularity=day", "&granularity=hour", "&compare=previous"];
    let mut before = Vec::new();
    for shape in shapes {
        let answer = ask(shape).await;
        assert!(answer["meta"].get("source_table").is_none(), "rows in memory have no rollups");
        assert!(answer["meta"]["rows_scanned"].as_u64() > Some(0), "{shape}");
        before.push(answer["data"].clone());
    }
    let mut client = super::internal::connect(&server).await;
    client.flush(inlay_proto::v1::FlushRequest {}).await.unwrap();
    for (shape, before) in shapes.into_iter().zip(before) {
        let answer = ask(shape).await;
        let meta = &answer["meta"];
        assert_eq!(answer["data"], before, "{shape}");
        assert_eq!(
            (&meta["source_table"], &meta["planned_by"], &meta["rollup_granularity"]),
            (&json!("events_hourly"), &json!("rollup"), &json!("hour")),
            "{shape}"
        );
        assert_eq!(meta["rows_scanned"], 0, "{shape}");
    }
    let plan = ask("&explain=true").await["meta"]["plan"][0].clone();
    assert_eq!(plan["by_hour"], plan["rows"], "{plan}");
    assert!(
        plan["rows"].as_u64() > Some(0) && plan.get("rejected").is_none_or(Value::is_null),
        "{plan}"
    );
}

#[tokio::test]
async fn days_begin_where_the_time_zone_says() {
    let (_server, admin) = prepared().await;
    let zone = "timezone=Pacific/Auckland";
    let answer = admin
        .get(&format!("{BASE}&metric=count&granularity=day&fill=none&{zone}"))
        .await
        .expect(200);
    assert_eq!(
        answer["data"],
        json!([
            {"bucket": "2026-11-18T11:00:00.000Z", "value": 2},
            {"bucket": "2026-11-19T11:00:00.000Z", "value": 3},
        ])
    );
    assert_eq!(answer["meta"]["timezone"], "Pacific/Auckland");
    let grouped =
        format!("{BASE}&metric=count&granularity=week&group_by=model&compare=previous&{zone}");
    let grouped = admin.get(&grouped).await.expect(200);
    assert_eq!(grouped["meta"]["total"], 5);
    let hourly =
        admin.get(&format!("{BASE}&metric=count&granularity=hour&{zone}")).await.expect(200);
    assert_eq!(hourly["data"][0]["bucket"], "2026-11-13T10:00:00.000Z");
    admin.get(&format!("{BASE}&metric=count&timezone=Mars/X")).await.refused(400, "unknown_value");
}

#[tokio::test]
async fn events_are_discovered_and_become_a_dashboard() {
    let (mut server, admin) = prepared().await;
    let key =
        admin.post("/v1/api-keys", &json!({"label": "k", "scope": "admin"})).await.expect(201);
    let check = |found: &Value| {
        let event = &found["events"][0];
        assert_eq!((&event["event_name"], &event["count"]), (&json!("e"), &json!(6)));
        assert_eq!(event["tenants"], 1);
        assert_eq!(event["last_seen"], "2026-11-20T10:17:36.000Z");
        let model = &event["string_props"][0];
        assert_eq!((&model["name"], &model["distinct_approx"]), (&json!("model"), &json!(3)));
        assert_eq!(model["samples"], json!(["a", "b", "c"]));
        assert_eq!((&model["rollup"], &model["coverage"]), (&json!(true), &json!(5.0 / 6.0)));
        let ms = &event["numeric_props"][0];
        assert_eq!(
            (&ms["name"], &ms["min"], &ms["max"]),
            (&json!("ms"), &json!(1.0), &json!(50.0))
        );
        assert_eq!(found["meta"]["sampled"], false);
    };
    check(&admin.get("/v1/discover").await.expect(200));
    let made = admin.post("/v1/discover/auto-create", &json!({})).await.expect(201);
    assert_eq!(made["events_found"], 1);
    let path = format!("/v1/dashboards/{}", made["dashboard_id"].as_str().unwrap());
    let dashboard = admin.get(&path).await.expect(200);
    let widgets = dashboard["widgets"].as_array().unwrap();
    assert_eq!((&json!(widgets.len()), &dashboard["name"]), (&made["widgets"], &made["name"]));
    for widget in widgets {
        let preview = json!({"widget": widget, "tenant_id": "t"});
        let answer = admin.post("/v1/widgets/preview/data", &preview).await.expect(200);
        assert!(!answer["data"].as_array().unwrap().is_empty(), "{widget}");
    }
    // Another organisation sees none of it, and has nothing to make a dashboard from.
    let other = server.register("other").await.admin;
    assert_eq!(other.get("/v1/discover").await.expect(200)["events"], json!([]));
    other.post("/v1/discover/auto-create", &json!({})).await.refused(409, "conflict");
    server.restart().await;
    let admin = server.anonymous().with_bearer(key["key"].as_str().unwrap());
    check(&admin.get("/v1/discover").await.expect(200));
}

/// Limits are told by name, and the next question is answered.
#[tokio::test(flavor = "multi_thread")]
async fn a_question_that_takes_too_much_or_too_long_is_refused_by_name() {
    let mut server = TestServer::start().await;
    let org = server.register("acme").await;
    let admin = &org.admin;
    for batch in 0..5 {
        let events: Vec<Value> = (0..1_000)
            .map(|n| {
                let mut event = event(n % 20, None, n as f64, "u");
                event["string_props"] = json!({"trace": format!("{batch} {n}")});
                event
            })
            .collect();
        admin.post("/v1/events", &json!({"events": events})).await.expect(200);
    }
    let question = "metric=p99&numeric_prop=ms&group_by=trace";
    let large = format!("{BASE}&{question}&granularity=hour&limit=1000&period=90d");
    let large = large.replacen("&period=7d", "", 1);
    assert_eq!(admin.get(&large).await.refused(400, "query_too_large"), None);
    assert_eq!(
        admin.get(&format!("{BASE}&metric=count")).await.expect(200)["data"][0]["value"],
        5_000
    );

    server.query_ms_max = 1;
    server.restart().await;
    let admin = server.anonymous().with_bearer(org.body["api_key"]["key"].as_str().unwrap());
    let slow = format!("{BASE}&{question}&granularity=day");
    assert_eq!(admin.get(&slow).await.refused(400, "query_timeout"), None);
}
