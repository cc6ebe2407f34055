//! Alert and report rules: made, changed, deleted, and what others see of them.

use inlay_tests::{Org, TestServer};
use serde_json::{Value, json};

use crate::dashboards::widget;

async fn dashboard(org: &Org) -> Value {
    let text = json!({
        "id": "text", "kind": "text", "title": "T", "query": {}, "viz": {"text": "x"},
        "layout": {"x": 0, "y": 9, "w": 3, "h": 2},
    });
    let body = json!({"name": "D", "widgets": [widget("calls"), text]});
    org.admin.post("/v1/dashboards", &body).await.expect(201)["id"].clone()
}

fn alert(dashboard: &Value) -> Value {
    json!({
        "dashboard_id": dashboard, "widget_id": "calls", "name": "Too many", "condition_type": "threshold",
        "operator": "gt", "threshold_value": 100, "email_to": ["ops@acme.example"],
        "webhook_url": "https://hooks.acme.com/in/secret",
    })
}

fn report(dashboard: &Value) -> Value {
    json!({
        "dashboard_id": dashboard, "name": "Weekly", "format": "pdf", "recipients": ["boss@acme.example"],
        "schedule": {"cron": "0 8 * * 1", "timezone": "Europe/Berlin"},
    })
}

/// One rule with one part of it changed.
fn with(rule: &Value, part: &str, value: Value) -> Value {
    let mut rule = rule.clone();
    rule[part] = value;
    rule
}

#[tokio::test]
async fn an_alert_rule_is_kept_changed_and_deleted() {
    let mut server = TestServer::start().await;
    let org = server.register("acme").await;
    let dashboard = dashboard(&org).await;
    let rule = alert(&dashboard);
    let first = org.admin.post("/v1/alerts", &rule).await.expect(201);
    let expected = json!({
        "id": 1, "dashboard_id": dashboard, "widget_id": "calls", "name": "Too many",
        "condition_type": "threshold", "operator": "gt", "threshold_value": 100.0,
        "lookback_minutes": 60, "email_to": ["ops@acme.example"],
        "webhook_url": "https://hooks.acme.com/in/secret", "enabled": true, "tenant_id": null,
        "for_minutes": 0, "recovery_threshold": null, "per_tenant": false, "locale": "en", "webhook_signed": false, "state": "ok",
        "state_since": "2026-11-20T10:17:36.789Z", "last_value": null, "last_evaluated_at": null,
        "last_error": null, "created_at": "2026-11-20T10:17:36.789Z",
        "updated_at": "2026-11-20T10:17:36.789Z",
    });
    assert_eq!(first, expected);
    for lookback in [json!(0), json!(-5), Value::Null] {
        let made = org.admin.post("/v1/alerts", &with(&rule, "lookback_minutes", lookback)).await;
        assert_eq!(made.expect(201)["lookback_minutes"], 60);
    }
    let quiet = json!({
        "dashboard_id": dashboard, "widget_id": "calls", "name": "Quiet", "condition_type": "no_data",
        "lookback_minutes": 15,
    });
    assert_eq!(org.admin.post("/v1/alerts", &quiet).await.expect(201)["id"], 5);
    server.clock.advance(1_000);
    let change =
        json!({"threshold_value": 5, "webhook_url": null, "for_minutes": 10, "enabled": false});
    let changed = org.console.patch("/v1/alerts/1", &change).await.expect(200);
    assert_eq!(
        (&changed["threshold_value"], &changed["webhook_url"], &changed["for_minutes"]),
        (&json!(5.0), &Value::Null, &json!(10))
    );
    assert_eq!((&changed["enabled"], &changed["name"]), (&json!(false), &json!("Too many")));
    assert_eq!(changed["updated_at"], "2026-11-20T10:17:37.789Z");
    server.restart().await;
    let admin = server.anonymous().with_bearer(org.body["api_key"]["key"].as_str().unwrap());
    assert_eq!(admin.get("/v1/alerts/1").await.expect(200), changed);
    let page = admin.get("/v1/alerts?limit=2").await.expect(200);
    let ids = |list: &Value| -> Vec<u64> {
        list["data"].as_array().unwrap().iter().map(|rule| rule["id"].as_u64().unwrap()).collect()
    };
    assert_eq!(ids(&page), [5, 4]);
    let next = format!("/v1/alerts?limit=2&cursor={}", page["next"].as_str().unwrap());
    assert_eq!(ids(&admin.get(&next).await.expect(200)), [3, 2]);
    assert_eq!(
        admin.get("/v1/alerts/1/events").await.expect(200),
        json!({"data": [], "next": null})
    );
    admin.delete("/v1/alerts/1").await.expect(204);
    for path in ["/v1/alerts/1", "/v1/alerts/1/events", "/v1/alerts/99999999999999999999999"] {
        admin.get(path).await.refused(404, "not_found");
    }
    // A number is given once.
    assert_eq!(admin.post("/v1/alerts", &rule).await.expect(201)["id"], 6);
}

#[tokio::test]
async fn what_an_alert_cannot_be_names_its_field() {
    let server = TestServer::start().await;
    let org = server.register("acme").await;
    let dashboard = dashboard(&org).await;
    let rule = alert(&dashboard);
    for (part, value, status, code, field) in [
        ("condition_type", json!("x"), 400, "unknown_value", "condition_type"),
        ("operator", json!("x"), 400, "unknown_value", "operator"),
        ("operator", Value::Null, 400, "missing_field", "operator"),
        ("threshold_value", Value::Null, 400, "missing_field", "threshold_value"),
        ("lookback_minutes", json!(129_601), 400, "out_of_range", "lookback_minutes"),
        ("lookback_minutes", json!("60"), 400, "invalid_field", "lookback_minutes"),
        ("for_minutes", json!(-1), 400, "out_of_range", "for_minutes"),
        ("recovery_threshold", json!(101), 400, "invalid_field", "recovery_threshold"),
        ("email_to", json!(["nope"]), 400, "invalid_field", "email_to[0]"),
        ("email_to", json!("ops@acme.example"), 400, "invalid_field", "email_to"),
        ("webhook_url", json!("http://127.0.0.1/x"), 400, "invalid_field", "webhook_url"),
        ("webhook_url", json!("http://[::ffff:10.0.0.1]/"), 400, "invalid_field", "webhook_url"),
        ("widget_id", json!("text"), 400, "invalid_field", "widget_id"),
        ("widget_id", json!("none"), 404, "not_found", "widget_id"),
        ("dashboard_id", json!("none"), 404, "not_found", "dashboard_id"),
        ("name", json!(""), 400, "invalid_field", "name"),
        ("state", json!("firing"), 400, "unknown_field", "state"),
    ] {
        let reply = org.admin.post("/v1/alerts", &with(&rule, part, value)).await;
        assert_eq!(reply.refused(status, code).as_deref(), Some(field), "{}", reply.text);
    }
    let several = json!({"dashboard_id": dashboard, "widget_id": "calls", "name": "x",
        "condition_type": "delta", "email_to": ["a", "b@c.example", "d"], "webhook_url": "ftp://x"});
    let reply = org.admin.post("/v1/alerts", &several).await.expect(400);
    let fields: Vec<&str> = reply["details"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| one["field"].as_str().unwrap())
        .collect();
    let expected = ["email_to[0]", "email_to[2]", "webhook_url", "operator", "threshold_value"];
    assert_eq!(fields, expected, "all at once");
    org.admin.get("/v1/alerts/abc").await.refused(400, "invalid_field");
    org.admin.get("/v1/alerts/-1").await.refused(400, "invalid_field");
    assert_eq!(org.admin.get("/v1/alerts").await.expect(200)["data"], json!([]));
}

#[tokio::test]
async fn an_operator_may_let_webhooks_inside() {
    let mut server = TestServer::start().await;
    server.webhook_allow = vec!["127.0.0.0/8".to_owned()];
    server.restart().await;
    let org = server.register("acme").await;
    let rule = alert(&dashboard(&org).await);
    let inside = |url: &str| with(&rule, "webhook_url", json!(url));
    org.admin.post("/v1/alerts", &inside("http://127.0.0.1:9000/x")).await.expect(201);
    org.admin.post("/v1/alerts", &inside("http://10.0.0.1/x")).await.refused(400, "invalid_field");
}

#[tokio::test]
async fn a_report_rule_knows_when_it_runs() {
    let server = TestServer::start().await;
    let org = server.register("acme").await;
    let dashboard = dashboard(&org).await;
    let rule = report(&dashboard);
    let first = org.admin.post("/v1/reports", &rule).await.expect(201);
    assert_eq!((&first["id"], &first["enabled"]), (&json!(1), &json!(true)));
    assert_eq!(first["next_run_at"], "2026-11-23T07:00:00.000Z");
    assert_eq!(first["schedule"], rule["schedule"]);
    let daily = org.admin.patch("/v1/reports/1", &json!({"schedule": "daily"})).await.expect(200);
    assert_eq!(
        (&daily["schedule"], &daily["next_run_at"]),
        (&json!("daily"), &json!("2026-11-21T08:00:00.000Z"))
    );
    let off = org.admin.patch("/v1/reports/1", &json!({"enabled": false})).await.expect(200);
    assert_eq!(off["next_run_at"], Value::Null);
    assert_eq!(org.admin.get("/v1/reports/1").await.expect(200), off);
    assert_eq!(org.admin.get("/v1/reports/1/runs").await.expect(200)["data"], json!([]));
    for (part, value, code, field) in [
        ("schedule", json!({"cron": "61 * * * *"}), "invalid_field", "schedule.cron"),
        (
            "schedule",
            json!({"cron": "0 8 * * 1", "timezone": "Mars/X"}),
            "unknown_value",
            "schedule.timezone",
        ),
        ("schedule", json!({"cron": "0 8 * * 1", "zone": "UTC"}), "unknown_field", "schedule.zone"),
        ("schedule", json!("often"), "unknown_value", "schedule"),
        ("schedule", json!(7), "invalid_field", "schedule"),
        ("format", json!("docx"), "unknown_value", "format"),
        ("recipients", json!([]), "missing_field", "recipients"),
        ("recipients", json!(["x"]), "invalid_field", "recipients[0]"),
        ("period", json!("5d"), "unknown_value", "period"),
        ("webhook_url", json!("https://localhost/"), "invalid_field", "webhook_url"),
    ] {
        let reply = org.admin.post("/v1/reports", &with(&rule, part, value)).await;
        assert_eq!(reply.refused(400, code).as_deref(), Some(field), "{}", reply.text);
    }
    let none = org.admin.patch("/v1/reports/1", &json!({"recipients": []})).await;
    assert_eq!(none.refused(400, "missing_field").as_deref(), Some("recipients"));
    let hook = json!({"recipients": [], "webhook_url": "https://hooks.acme.com/in/secret"});
    org.admin.patch("/v1/reports/1", &hook).await.expect(200);
    let hooks = org.admin.get("/v1/webhooks").await.expect(200);
    assert_eq!(hooks["window_hours"], 24);
    assert_eq!(hooks["rules"][0]["webhook_url"], hook["webhook_url"]);
    assert_eq!(hooks["rules"][0]["last_status_code"], Value::Null);
    org.admin.delete("/v1/reports/1").await.expect(204);
    org.admin.delete("/v1/reports/1").await.refused(404, "not_found");
}

#[tokio::test]
async fn who_may_not_change_a_rule_does_not_see_where_it_goes() {
    let server = TestServer::start().await;
    let org = server.register("acme").await;
    let dashboard = dashboard(&org).await;
    org.admin.post("/v1/alerts", &alert(&dashboard)).await.expect(201);
    let hook = with(&report(&dashboard), "webhook_url", json!("https://hooks.acme.com/in/secret"));
    org.admin.post("/v1/reports", &hook).await.expect(201);
    let viewer = org.join(&server, "v@acme.example", "viewer").await;
    let editor = org.join(&server, "e@acme.example", "editor").await;
    for path in ["/v1/alerts", "/v1/alerts/1", "/v1/reports", "/v1/reports/1"] {
        for client in [&viewer, &editor] {
            let text = client.get(path).await.expect(200).to_string();
            assert!(
                text.contains("https://hooks.acme.com/…") && text.contains("…@acme.example"),
                "{text}"
            );
            assert!(!text.contains("secret") && !text.contains("boss@") && !text.contains("ops@"));
        }
        for client in [&org.console, &org.admin] {
            assert!(client.get(path).await.expect(200).to_string().contains("/in/secret"));
        }
    }
}

#[tokio::test]
async fn a_rule_belongs_to_the_environment_that_it_was_made_in() {
    let server = TestServer::start().await;
    let org = server.register("acme").await;
    let dashboard = dashboard(&org).await;
    let key = json!({"label": "dev", "scope": "admin", "environment": "development"});
    let key = org.console.post("/v1/api-keys", &key).await.expect(201);
    let dev = server.anonymous().with_bearer(key["key"].as_str().unwrap());
    dev.post("/v1/alerts", &alert(&dashboard)).await.expect(201);
    dev.post("/v1/reports", &report(&dashboard)).await.expect(201);
    for path in ["/v1/alerts/1", "/v1/reports/1"] {
        dev.get(path).await.expect(200);
        for client in [&org.admin, &org.console] {
            client.get(path).await.refused(404, "not_found");
            client.delete(path).await.refused(404, "not_found");
        }
        let list = path.trim_end_matches("/1");
        assert_eq!(org.admin.get(list).await.expect(200)["data"], json!([]));
    }
}
