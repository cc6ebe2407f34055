//! The audit: one row for every change of state, none for what was refused.

use inlay_tests::{Client, TestServer, session_cookie};
use reqwest::Method;
use serde_json::{Value, json};

use crate::{access::Row, dashboards::widget};

/// Who may do what: method, path, and the answer to each caller.
pub const OPERATIONS: &[Row] = &[("GET", "/v1/audit", "133yyy31")];

/// Rows that there are, newest first.
async fn rows(console: &Client) -> Vec<Value> {
    let audit = console.get("/v1/audit").await.expect(200);
    audit["data"].as_array().unwrap().clone()
}

#[tokio::test]
async fn every_change_leaves_one_row() {
    let server = TestServer::start().await;
    let org = server.register("acme").await;
    let console = &org.console;
    let first = rows(console).await;
    assert_eq!((first.len(), &first[0]["action"]), (1, &json!("org.create")));
    assert_eq!(first[0]["ip"], "127.0.0.1");
    let mut seen = first.len();

    // What a step made is what later ones name.
    let mut made: std::collections::BTreeMap<&str, String> = std::collections::BTreeMap::new();
    let all = json!({"name": "D", "widgets": [widget("w")]});
    let mut alone = widget("x");
    alone.as_object_mut().unwrap().remove("id");
    let alert = json!({"dashboard_id": "{dashboard}", "widget_id": "w", "name": "A", "condition_type": "no_data", "email_to": ["a@b.example"]});
    let report = json!({"dashboard_id": "{dashboard}", "name": "R", "format": "csv", "schedule": "daily", "recipients": ["a@b.example"]});
    let session = json!({"tenant_id": "t", "dashboard_id": "{dashboard}"});
    let none = Value::Null;
    let steps: Vec<(&str, &str, Value, &str, &str)> = vec![
        ("POST", "/v1/dashboards", all, "dashboard.create", "dashboard"),
        ("PATCH", "/v1/dashboards/{dashboard}", json!({"name": "E"}), "dashboard.update", ""),
        ("POST", "/v1/dashboards/{dashboard}/publish", none.clone(), "dashboard.publish", ""),
        ("POST", "/v1/dashboards/{dashboard}/widgets", widget("v"), "dashboard.widget_add", ""),
        (
            "PATCH",
            "/v1/dashboards/{dashboard}/widgets/v",
            json!({"title": "T"}),
            "dashboard.widget_update",
            "",
        ),
        (
            "DELETE",
            "/v1/dashboards/{dashboard}/widgets/v",
            none.clone(),
            "dashboard.widget_delete",
            "",
        ),
        (
            "POST",
            "/v1/dashboards/{dashboard}/restore-published",
            none.clone(),
            "dashboard.restore",
            "",
        ),
        ("POST", "/v1/dashboards/{dashboard}/unpublish", none.clone(), "dashboard.unpublish", ""),
        ("POST", "/v1/widgets", alone, "widget.create", "widget"),
        ("PATCH", "/v1/widgets/{widget}", json!({"title": "T"}), "widget.update", ""),
        ("POST", "/v1/widgets/{widget}/publish", none.clone(), "widget.publish", ""),
        ("DELETE", "/v1/widgets/{widget}", none.clone(), "widget.delete", ""),
        ("POST", "/v1/embed-sessions", session, "embed_session.create", ""),
        ("POST", "/v1/embed-sessions/rotate-key", none.clone(), "embed_key.rotate", ""),
        (
            "POST",
            "/v1/saved-queries",
            json!({"name": "q", "sql": "SELECT 1"}),
            "saved_query.create",
            "query",
        ),
        ("PATCH", "/v1/saved-queries/{query}", json!({"starred": true}), "saved_query.update", ""),
        ("DELETE", "/v1/saved-queries/{query}", none.clone(), "saved_query.delete", ""),
        ("POST", "/v1/alerts", alert, "alert.create", "alert"),
        ("PATCH", "/v1/alerts/{alert}", json!({"enabled": false}), "alert.update", ""),
        ("POST", "/v1/alerts/{alert}/test", none.clone(), "alert.test", ""),
        ("DELETE", "/v1/alerts/{alert}", none.clone(), "alert.delete", ""),
        ("POST", "/v1/reports", report, "report.create", "report"),
        ("PATCH", "/v1/reports/{report}", json!({"enabled": false}), "report.update", ""),
        ("POST", "/v1/reports/{report}/run", none.clone(), "report.run", ""),
        ("DELETE", "/v1/reports/{report}", none.clone(), "report.delete", ""),
        ("POST", "/v1/api-keys", json!({"label": "k", "scope": "ingest"}), "api_key.create", "key"),
        ("DELETE", "/v1/api-keys/{key}", none.clone(), "api_key.revoke", ""),
        (
            "POST",
            "/v1/members/invite",
            json!({"email": "x@y.example", "role": "viewer"}),
            "member.invite",
            "invite",
        ),
        ("DELETE", "/v1/members/invites/{invite}", none.clone(), "member.invite_revoke", ""),
        ("PATCH", "/v1/settings/org", json!({"name": "New"}), "org.update", ""),
        ("DELETE", "/v1/tenants/t/users/u/events", none.clone(), "events.erase", ""),
        ("DELETE", "/v1/tenants/t/events", none.clone(), "events.erase", ""),
        ("DELETE", "/v1/dashboards/{dashboard}", none, "dashboard.delete", ""),
    ];
    for (method, path, body, action, name) in steps {
        let (mut path, mut body) = (path.to_owned(), body.to_string());
        for (name, id) in &made {
            path = path.replace(&format!("{{{name}}}"), id);
            body = body.replace(&format!("{{{name}}}"), id);
        }
        let mut request = console.request(Method::from_bytes(method.as_bytes()).unwrap(), &path);
        if body != "null" {
            request = request.header("content-type", "application/json").body(body);
        }
        let reply = console.send(request).await;
        assert!((200..300).contains(&reply.status), "{method} {path}: {}", reply.text);
        if !name.is_empty() {
            let id = &reply.json()["id"];
            made.insert(name, id.as_str().map_or_else(|| id.to_string(), str::to_owned));
        }
        let now = rows(console).await;
        assert_eq!(now.len(), seen + 1, "{method} {path}");
        let row = &now[0];
        assert_eq!((&row["action"], &row["ip"]), (&json!(action), &json!("127.0.0.1")), "{path}");
        assert_eq!(
            (&row["actor"]["type"], &row["actor"]["label"]),
            (&json!("user"), &json!("acme@example.com"))
        );
        assert!(row["target"]["id"].as_str().is_some_and(|id| !id.is_empty()), "{row}");
        seen = now.len();
    }

    // Accounts.
    let grace = org.join(&server, "grace@acme.example", "viewer").await;
    let id = grace.get("/v1/auth/me").await.expect(200)["user"]["id"].clone();
    let member = format!("/v1/members/{}", id.as_str().unwrap());
    console.patch(&member, &json!({"role": "editor"})).await.expect(200);
    let login = json!({"email": "grace@acme.example", "password": "correct horse battery"});
    let reply = server.anonymous().post("/v1/auth/login", &login).await;
    let again = server.anonymous().with_cookie(&session_cookie(&reply).unwrap());
    again.post_empty("/v1/auth/logout").await.expect(204);
    console.delete(&member).await.expect(204);
    let actions: Vec<String> = rows(console)
        .await
        .iter()
        .take(6)
        .map(|row| row["action"].as_str().unwrap().to_owned())
        .collect();
    let expected = [
        "member.remove",
        "session.end",
        "session.create",
        "member.update",
        "member.join",
        "member.invite",
    ];
    assert_eq!(actions, expected);
    seen += expected.len();

    // What was refused leaves nothing.
    for (method, path, body) in [
        ("POST", "/v1/dashboards", json!({"name": ""})),
        ("PATCH", "/v1/settings/org", json!({"email": "x"})),
        ("DELETE", "/v1/alerts/99", Value::Null),
        ("POST", "/v1/auth/login", json!({"email": "acme@example.com", "password": "wrong wrong"})),
    ] {
        let request = console.request(Method::from_bytes(method.as_bytes()).unwrap(), path);
        let reply = console.send(request.json(&body)).await;
        assert!(reply.status >= 400, "{method} {path}");
    }
    assert_eq!(rows(console).await.len(), seen);
}

#[tokio::test]
async fn the_audit_goes_back_page_by_page() {
    let server = TestServer::start().await;
    let org = server.register("acme").await;
    for at in 0..130 {
        org.admin.patch("/v1/settings/org", &json!({"name": format!("n{at}")})).await.expect(200);
        if at == 99 {
            server.clock.advance(1_000);
        }
    }
    let ask = async |query: &str| org.console.get(&format!("/v1/audit{query}")).await.expect(200);
    let names = |page: &Value| -> Vec<String> {
        let rows = page["data"].as_array().unwrap().iter();
        rows.map(|row| row["metadata"]["name"].as_str().unwrap().to_owned()).collect()
    };
    let first = ask("").await;
    assert_eq!((names(&first).len(), names(&first)[0].as_str()), (100, "n129"));
    let second = ask(&format!("?cursor={}", first["next"].as_str().unwrap())).await;
    assert_eq!((names(&second)[0].as_str(), names(&second).len()), ("n29", 31));
    assert_eq!(second["next"], Value::Null);
    let before = ask("?before=2026-11-20T10:17:37Z&limit=3").await;
    assert_eq!(names(&before), ["n99", "n98", "n97"]);
    let created = ask("?action=org.create").await;
    assert_eq!(names(&created), ["acme"]);
    for (query, field) in
        [("?before=x", "before"), ("?limit=101", "limit"), ("?limit=0", "limit"), ("?x=1", "x")]
    {
        let reply = org.console.get(&format!("/v1/audit{query}")).await;
        assert_eq!(reply.json()["field"], field, "{}", reply.text);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rows_are_kept_for_four_hundred_days() {
    const DAY_MS: i64 = 86_400_000;
    let server = TestServer::start().await;
    let org = server.register("acme").await;
    let rename = async |name: &str| {
        org.admin.patch("/v1/settings/org", &json!({"name": name})).await.expect(200);
    };
    rename("old").await;
    server.clock.advance(399 * DAY_MS);
    rename("new").await;
    server.expire();
    let names = async || -> Vec<Value> {
        let page = org.admin.get("/v1/audit").await.expect(200);
        let rows = page["data"].as_array().unwrap().iter();
        rows.map(|row| row["metadata"]["name"].clone()).collect()
    };
    assert_eq!(names().await[..2], ["new", "old"]);
    server.clock.advance(DAY_MS);
    assert!(server.expire() > 0);
    assert_eq!(names().await, ["new"]);
    assert_eq!(server.expire(), 0);
}
