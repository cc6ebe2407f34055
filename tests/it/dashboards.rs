//! Dashboards: drafts, publication, widgets, and what is refused.

use inlay_tests::TestServer;
use serde_json::{Value, json};

use crate::access::Row;

/// Who may do what: method, path, and the answer to each caller.
pub const OPERATIONS: &[Row] = &[
    ("GET", "/v1/dashboards", "1yyyyy31"),
    ("GET", "/v1/dashboards/{id}", "1yyyyy31"),
    ("GET", "/v1/dashboards/{id}/published", "1yyyyy31"),
    ("GET", "/v1/dashboards/{id}/widgets/w/data", "1yyyyy31"),
    ("POST", "/v1/dashboards", "13yyyy31"),
    ("PATCH", "/v1/dashboards/{id}", "13yyyy31"),
    ("DELETE", "/v1/dashboards/{id}", "13yyyy31"),
    ("POST", "/v1/dashboards/{id}/publish", "13yyyy31"),
    ("POST", "/v1/dashboards/{id}/unpublish", "13yyyy31"),
    ("PATCH", "/v1/dashboards/{id}/widgets/w", "13yyyy31"),
    ("DELETE", "/v1/dashboards/{id}/widgets/w", "13yyyy31"),
    ("POST", "/v1/dashboards/{id}/restore-published", "133yyy31"),
    ("POST", "/v1/dashboards/{id}/widgets", "133yyy31"),
    ("GET", "/v1/widgets", "1yyyyy31"),
    ("GET", "/v1/widgets/{id}", "1yyyyy31"),
    ("POST", "/v1/widgets", "133yyy31"),
    ("PATCH", "/v1/widgets/{id}", "133yyy31"),
    ("POST", "/v1/widgets/{id}/publish", "133yyy31"),
    ("DELETE", "/v1/widgets/{id}", "133yyy31"),
    ("POST", "/v1/widgets/preview/data", "13yyyy31"),
];

pub fn widget(id: &str) -> Value {
    json!({
        "id": id, "kind": "line", "title": "Calls",
        "query": {"event_name": "api_call", "metric": "count", "period": "7d", "granularity": "day"},
        "viz": {"anything": {"goes": true}}, "layout": {"x": 0, "y": 0, "w": 6, "h": 4},
    })
}

#[tokio::test]
async fn a_dashboard_lives_from_draft_to_restored() {
    let server = TestServer::start().await;
    let admin = server.register("acme").await.admin;
    let made = admin
        .post("/v1/dashboards", &json!({"name": "Usage", "widgets": [widget("a")]}))
        .await
        .expect(201);
    assert_eq!(
        (&made["status"], &made["version"], &made["has_unpublished_changes"]),
        (&json!("draft"), &json!(1), &json!(true))
    );
    assert_eq!(made["widgets"][0], widget("a"), "unknown keys inside viz are kept");
    let path = format!("/v1/dashboards/{}", made["id"].as_str().unwrap());
    admin.post_empty(&format!("{path}/restore-published")).await.refused(409, "conflict");
    admin.post_empty(&format!("{path}/publish")).await.expect(204);
    let published = admin.get(&path).await.expect(200);
    assert_eq!(
        (&published["status"], &published["has_unpublished_changes"]),
        (&json!("published"), &json!(false))
    );
    assert!(published["published_at"].is_string());

    let changed = admin.patch(&path, &json!({"name": "Renamed"})).await.expect(200);
    assert_eq!(
        (&changed["name"], &changed["has_unpublished_changes"]),
        (&json!("Renamed"), &json!(true))
    );
    let stale = admin
        .request(reqwest::Method::PATCH, &path)
        .header("if-match", "1")
        .json(&json!({"name": "X"}));
    admin.send(stale).await.refused(409, "conflict");
    let added = admin.post(&format!("{path}/widgets"), &widget("b")).await.expect(201);
    assert_eq!(added, widget("b"));
    admin.post(&format!("{path}/widgets"), &widget("b")).await.refused(409, "conflict");
    let patched =
        admin.patch(&format!("{path}/widgets/b"), &json!({"title": "Second"})).await.expect(200);
    assert_eq!(patched["title"], "Second");
    admin.delete(&format!("{path}/widgets/b")).await.expect(204);
    admin.delete(&format!("{path}/widgets/b")).await.refused(404, "not_found");
    let restored = admin.post_empty(&format!("{path}/restore-published")).await.expect(200);
    assert_eq!(
        (&restored["name"], &restored["has_unpublished_changes"]),
        (&json!("Usage"), &json!(false))
    );
    admin.post_empty(&format!("{path}/unpublish")).await.expect(204);
    assert_eq!(admin.get(&path).await.expect(200)["status"], "unpublished");
    assert_eq!(admin.get("/v1/dashboards").await.expect(200)["data"].as_array().unwrap().len(), 1);
    admin.delete(&path).await.expect(204);
    admin.get(&path).await.refused(404, "not_found");
}

#[tokio::test]
async fn what_cannot_be_drawn_names_its_field() {
    let server = TestServer::start().await;
    let admin = server.register("acme").await.admin;
    let changed = |at: &[&str], value: Value| {
        let mut widget = widget("a");
        let mut place = &mut widget;
        for name in at {
            place = &mut place[*name];
        }
        *place = value;
        widget
    };
    let donut =
        json!({"event_name": "e", "metric": "p95", "numeric_prop": "ms", "group_by": "model"});
    let mut donut_widget = changed(&["kind"], json!("donut"));
    donut_widget["query"] = donut;
    for (widget, field, code) in [
        (changed(&["kind"], json!("pie")), "widgets[0].kind", "unknown_value"),
        (
            changed(&["query", "metric"], json!("median")),
            "widgets[0].query.metric",
            "unknown_value",
        ),
        (
            changed(&["query", "metric"], json!("p95")),
            "widgets[0].query.numeric_prop",
            "missing_field",
        ),
        (changed(&["query", "period"], json!("5d")), "widgets[0].query.period", "unknown_value"),
        (
            changed(&["query", "frobnicate"], json!(1)),
            "widgets[0].query.frobnicate",
            "unknown_field",
        ),
        (changed(&["query", "limit"], json!(0)), "widgets[0].query.limit", "out_of_range"),
        (
            changed(&["query", "filters"], json!({"a": 1})),
            "widgets[0].query.filters.a",
            "invalid_field",
        ),
        (changed(&["layout", "w"], json!(13)), "widgets[0].layout.w", "out_of_range"),
        (changed(&["layout", "x"], json!(9)), "widgets[0].layout", "invalid_field"),
        (changed(&["layout", "x"], json!(-1)), "widgets[0].layout.x", "out_of_range"),
        (changed(&["id"], json!("")), "widgets[0].id", "invalid_field"),
        (changed(&["id"], json!("..")), "widgets[0].id", "invalid_field"),
        (changed(&["extra"], json!(1)), "widgets[0].extra", "unknown_field"),
        (donut_widget, "widgets[0].query.metric", "invalid_field"),
        (changed(&["kind"], json!("bar_list")), "widgets[0].query.group_by", "missing_field"),
        (changed(&["kind"], json!("text")), "widgets[0].query.event_name", "invalid_field"),
    ] {
        let reply = admin.post("/v1/dashboards", &json!({"name": "D", "widgets": [widget]})).await;
        assert_eq!(reply.refused(400, code).as_deref(), Some(field), "{}", reply.text);
    }
    let twice = json!({"name": "D", "widgets": [widget("a"), widget("a")]});
    assert_eq!(
        admin.post("/v1/dashboards", &twice).await.refused(400, "invalid_field").as_deref(),
        Some("widgets[1].id")
    );
    let lacking = json!({"name": "D", "widgets": [{"id": "x"}]});
    admin.post("/v1/dashboards", &lacking).await.refused(400, "missing_field");
    let board = |origin: &str| json!({"name": "D", "settings": {"allowed_origins": [origin]}});
    for wrong in [
        "https://a.example; script-src *",
        "https://[",
        "https://a.example:99999",
        "https://a.example/",
        "https://a.example:443",
        "https://A.example",
        "https://user@a.example",
        "https://a.example/path",
        "https://*",
        "https://a.*.example",
        "https://*.*.example",
        "ftp://a.example",
        "a.example",
        "*",
        "null",
        "",
    ] {
        let reply = admin.post("/v1/dashboards", &board(wrong)).await;
        assert_eq!(
            reply.refused(400, "invalid_field").as_deref(),
            Some("settings.allowed_origins[0]"),
            "{wrong}"
        );
    }
    let mut deep = json!(1);
    for _ in 0..60 {
        deep = json!({"a": deep});
    }
    let deep = json!({"name": "D", "widgets": [changed(&["viz"], deep)]});
    admin.post("/v1/dashboards", &deep).await.refused(400, "invalid_json");
    admin.post("/v1/dashboards", &json!(["D", [], {}])).await.refused(400, "invalid_json");
    let measure = json!({"metric": "count"});
    let mut table = changed(&["kind"], json!("table"));
    table["query"] = json!({"event_name": "e", "group_by": "g", "measures": vec![measure; 21]});
    let table = admin.post("/v1/dashboards", &json!({"name": "D", "widgets": [table]})).await;
    assert_eq!(table.refused(400, "out_of_range").as_deref(), Some("widgets[0].query.measures"));
    assert_eq!(admin.get("/v1/dashboards").await.expect(200)["data"], json!([]));
    for right in
        ["https://a.example", "http://localhost:3000", "https://*.a.example:8443", "http://[::1]"]
    {
        admin.post("/v1/dashboards", &board(right)).await.expect(201);
    }
}

#[tokio::test]
async fn one_place_for_a_published_dashboard_is_taken_once() {
    let server = TestServer::with_plan("free").await;
    let admin = server.register("acme").await.admin;
    let mut paths = Vec::new();
    for _ in 0..10 {
        let made =
            admin.post("/v1/dashboards", &json!({"name": "D", "widgets": []})).await.expect(201);
        paths.push(format!("/v1/dashboards/{}/publish", made["id"].as_str().unwrap()));
    }
    let attempts: Vec<_> = paths
        .iter()
        .map(|path| {
            let (client, path) = (admin.clone(), path.clone());
            tokio::spawn(async move { client.post_empty(&path).await.status })
        })
        .collect();
    let mut published = 0;
    for attempt in attempts {
        match attempt.await.unwrap() {
            204 => published += 1,
            402 => {}
            other => panic!("{other}"),
        }
    }
    assert_eq!(published, 1);
}

#[tokio::test]
async fn a_preview_answers_without_saving() {
    let server = TestServer::start().await;
    let admin = server.register("acme").await.admin;
    let events = json!({"events": [{"tenant_id": "t", "event_name": "api_call"}]});
    admin.post("/v1/events", &events).await.expect(200);
    server.clock.advance(1_000);
    let ask = json!({"widget": widget("w"), "tenant_id": "t", "overrides": {"period": "24h"}});
    let answer = admin.post("/v1/widgets/preview/data", &ask).await.expect(200);
    let total: i64 =
        answer["data"].as_array().unwrap().iter().map(|row| row["value"].as_i64().unwrap()).sum();
    assert_eq!((total, &answer["meta"]["period"]), (1, &json!("24h")));
    let wrong = json!({"widget": {"id": "x"}, "tenant_id": "t"});
    admin.post("/v1/widgets/preview/data", &wrong).await.refused(400, "missing_field");
    assert_eq!(admin.get("/v1/dashboards").await.expect(200)["data"], json!([]));
}

/// Events without the property are a group among those shown, and other groups have more of the second measure than any that is shown.
#[tokio::test]
async fn a_table_has_all_measures_of_the_groups_it_shows() {
    let server = TestServer::start().await;
    let org = server.register("acme").await;
    let admin = &org.admin;
    let event = |plan: Option<&str>, ms: f64| {
        let texts = plan.map_or(json!({}), |plan| json!({"plan": plan}));
        json!({"tenant_id": "t", "event_name": "call", "string_props": texts, "numeric_props": {"ms": ms}})
    };
    let mut events: Vec<Value> =
        (0..1_100).map(|n| event(Some(&format!("p{n}")), 1_000.0)).collect();
    events.extend(std::iter::repeat_n(event(None, 2.0), 5));
    events.extend(std::iter::repeat_n(event(Some("small"), 1.0), 4));
    for events in events.chunks(500) {
        admin.post("/v1/events", &json!({"events": events})).await.expect(200);
    }
    let ask = json!({"tenant_id": "t", "widget": {"id": "t", "kind": "table", "title": "Plans",
        "query": {"event_name": "call", "group_by": "plan", "period": "24h", "limit": 2,
            "measures": [{"metric": "count"}, {"metric": "sum", "numeric_prop": "ms"}]},
        "viz": {}, "layout": {"x": 0, "y": 0, "w": 6, "h": 4}}});
    let answer = admin.post("/v1/widgets/preview/data", &ask).await.expect(200);
    let rows: Vec<&Value> = answer["data"].as_array().unwrap().iter().collect();
    let shown: Vec<(&Value, &Value)> =
        rows.iter().map(|row| (&row["group"], &row["values"])).collect();
    assert_eq!(shown[0], (&json!(null), &json!([5, 10])), "{answer}");
    assert_eq!(shown[1], (&json!("small"), &json!([4, 4])), "{answer}");
}
