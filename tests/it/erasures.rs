//! Erasing events of a tenant or a user, deleting an organisation, and retention.

use std::path::Path;

use inlay_proto::v1;
use inlay_tests::{Client, TestServer};
use serde_json::{Value, json};

use crate::access::Row;

/// Who may do what: method, path, and the answer to each caller.
pub const OPERATIONS: &[Row] = &[
    ("DELETE", "/v1/tenants/t/events", "133yyy31"),
    ("DELETE", "/v1/tenants/t/users/u/events", "133yyy31"),
    ("GET", "/v1/erasures", "133yyy31"),
    ("GET", "/v1/erasures/{id}", "133yyy31"),
];

async fn send(client: &Client, tenant: &str, user: &str, count: usize) {
    let events: Vec<Value> = (0..count)
        .map(|n| {
            json!({"tenant_id": tenant, "event_name": "call", "event_id": format!("{user}-{n}"), "user_id": user,
                   "string_props": {"contact": user}, "numeric_props": {"ms": n}})
        })
        .collect();
    let answer = client.post("/v1/events", &json!({"events": events})).await.expect(200);
    assert_eq!(answer["accepted"], count);
}

/// Waits for the background, which needs no clock of ours.
async fn finished(client: &Client, id: &Value) -> Value {
    for _ in 0..400 {
        let job = client.get(&format!("/v1/erasures/{}", id.as_str().unwrap())).await.expect(200);
        if job["status"] == "done" {
            return job;
        }
        tokio::time::sleep(std::time::Duration::from_millis(25)).await;
    }
    panic!("the erasure did not end");
}

/// Paths of files below a directory whose bytes hold a text. The server works on: what it removes
/// between the listing and the reading holds nothing.
fn holding(directory: &Path, text: &str) -> Vec<String> {
    fn there<T>(result: std::io::Result<T>) -> Option<T> {
        match result {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => None,
            result => Some(result.unwrap()),
        }
    }
    let mut found = Vec::new();
    for entry in there(std::fs::read_dir(directory)).into_iter().flatten() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(holding(&path, text));
        } else {
            #[expect(clippy::disallowed_methods, reason = "a test looks at the files themselves")]
            let Some(bytes) = there(std::fs::read(&path)) else { continue };
            if bytes.windows(text.len()).any(|part| part == text.as_bytes()) {
                found.push(path.display().to_string());
            }
        }
    }
    found
}

/// Processes of statements that have a file of this server mapped which was deleted since.
fn readers_of_deleted(directory: &Path) -> Vec<String> {
    let mut found = Vec::new();
    for process in std::fs::read_dir("/proc").unwrap().flatten() {
        let Ok(maps) = std::fs::read_to_string(process.path().join("maps")) else { continue };
        let own = directory.display().to_string();
        let mapped = maps.lines().filter(|line| line.contains(&own) && line.ends_with("(deleted)"));
        found.extend(mapped.map(|line| format!("{}: {line}", process.path().display())));
    }
    found
}

/// A worker that waits with segments open for the next statement has them mapped.
#[tokio::test]
async fn after_an_erasure_no_process_can_read_the_user() {
    let mut server = TestServer::start().await;
    server.sql_idle_workers = 2;
    server.memory_mb = 4_096;
    server.restart().await;
    let org = server.register("acme").await;
    send(&org.admin, "acme", "jane", 40).await;
    // In a segment that is large enough to be mapped.
    for number in 0..8 {
        send(&org.admin, "acme", &format!("bob{number}"), 1_000).await;
    }
    let mut tools = crate::internal::connect(&server).await;
    tools.flush(v1::FlushRequest {}).await.unwrap();
    let admin = &org.admin;
    let sql = json!({"sql": "SELECT count(*) FROM events"});
    assert_eq!(admin.post("/v1/query/adhoc", &sql).await.expect(200)["rows"], json!([[8_040]]));
    let own = server.directory.path().display().to_string();
    inlay_tests::eventually(|| async { mapped_by_workers(&own) > 0 }).await;

    let path = "/v1/tenants/acme/users/jane/events";
    let job = admin.delete(path).await.expect(202);
    finished(admin, &job["id"]).await;
    // Those of this process are unmapped when nothing reads them any more.
    let of_workers = |found: &String| !found.contains(&format!("/proc/{}:", std::process::id()));
    let left: Vec<String> =
        readers_of_deleted(server.directory.path()).into_iter().filter(of_workers).collect();
    assert_eq!(left, Vec::<String>::new());
    assert_eq!(admin.post("/v1/query/adhoc", &sql).await.expect(200)["rows"], json!([[8_000]]));
}

/// Files of a directory that processes other than this one have mapped.
fn mapped_by_workers(directory: &str) -> usize {
    let own = std::process::id().to_string();
    let others = std::fs::read_dir("/proc").unwrap().flatten();
    let others = others.filter(|process| *process.file_name() != *own);
    let maps =
        others.filter_map(|process| std::fs::read_to_string(process.path().join("maps")).ok());
    maps.map(|maps| maps.lines().filter(|line| line.contains(directory)).count()).sum()
}

#[tokio::test]
async fn after_an_erasure_no_file_holds_the_users_id() {
    let server = TestServer::start().await;
    let org = server.register("acme").await;
    let jane = "jane.doe@example.org";
    send(&org.admin, "acme", jane, 40).await;
    send(&org.admin, "acme", "bob", 10).await;
    send(&org.admin, "other", "ann", 10).await;
    if inlay_tests::is_spread() {
        // Of several processes each has copies of files, which are made with the segments.
        let mut tools = crate::internal::connect(&server).await;
        tools.flush(v1::FlushRequest {}).await.unwrap();
        for node in 0..3 {
            let directory = server.directory.path().join(format!("node{node}"));
            inlay_tests::eventually(|| async { !holding(&directory, jane).is_empty() }).await;
        }
    }
    assert!(!holding(server.directory.path(), jane).is_empty(), "the test can see it");

    let path = "/v1/tenants/acme/users/jane.doe%40example.org/events";
    let job = org.admin.delete(path).await.expect(202);
    assert_eq!((&job["scope"], &job["tenant_id"]), (&json!("user"), &json!("acme")));
    let receipt = finished(&org.admin, &job["id"]).await;
    assert_eq!(receipt["events_removed"], 40);
    assert_eq!(receipt["event_ids_forgotten"], 40);
    assert!(receipt["finished_at"].is_string());
    assert_eq!(holding(server.directory.path(), jane), Vec::<String>::new());
    assert_eq!(org.admin.count("acme", "call").await, 10);
    assert_eq!(org.admin.count("other", "call").await, 10);
    // What is written about it does not name the user either.
    let audit = org.admin.get("/v1/audit").await.expect(200);
    let row = audit["data"].as_array().unwrap().iter().find(|row| row["action"] == "events.erase");
    assert_eq!(row.unwrap()["metadata"], json!({"tenant_id": "acme", "scope": "user"}));
    assert!(!audit.to_string().contains("jane"));
    // Erased events may come again.
    send(&org.admin, "acme", jane, 3).await;
    assert_eq!(org.admin.count("acme", "call").await, 13);
}

#[tokio::test]
async fn a_tenants_events_go_and_its_neighbours_stay() {
    let mut server = TestServer::start().await;
    let org = server.register("acme").await;
    send(&org.admin, "a/b c", "u", 25).await;
    send(&org.admin, "b", "u", 5).await;
    let job = org.console.delete("/v1/tenants/a%2Fb%20c/events").await.expect(202);
    let receipt = finished(&org.console, &job["id"]).await;
    assert_eq!((&receipt["events_removed"], &receipt["scope"]), (&json!(25), &json!("tenant")));
    assert_eq!(org.admin.count("b", "call").await, 5);
    let list = org.admin.get("/v1/erasures").await.expect(200);
    assert_eq!(list["data"].as_array().unwrap().len(), 1);
    // Another organisation, and another environment, see nothing of it.
    let path = format!("/v1/erasures/{}", job["id"].as_str().unwrap());
    let other = server.register("other").await;
    other.admin.get(&path).await.refused(404, "not_found");
    let development = org
        .console
        .request(reqwest::Method::GET, &path)
        .header("x-service-environment", "development");
    org.console.send(development).await.refused(404, "not_found");
    org.admin.delete("/v1/tenants//events").await;
    server.restart().await;
    let admin = server.anonymous().with_bearer(org.body["api_key"]["key"].as_str().unwrap());
    assert_eq!(admin.get(&path).await.expect(200)["status"], "done");
    assert_eq!(admin.count("b", "call").await, 5);
}

#[tokio::test]
async fn ids_of_tenants_and_users_are_checked() {
    let server = TestServer::start().await;
    let admin = server.register("acme").await.admin;
    let long = "x".repeat(257);
    let field = admin.delete(&format!("/v1/tenants/{long}/events")).await;
    assert_eq!(field.refused(400, "invalid_field").as_deref(), Some("tenant_id"));
    let field = admin.delete(&format!("/v1/tenants/t/users/{long}/events")).await;
    assert_eq!(field.refused(400, "invalid_field").as_deref(), Some("user_id"));
}

#[tokio::test]
async fn a_deleted_organisation_is_gone_at_once_and_for_good() {
    let mut server = TestServer::start().await;
    let org = server.register("acme").await;
    let other = server.register("other").await;
    send(&org.admin, "t", "someone@example.org", 20).await;
    send(&other.admin, "t", "u", 7).await;
    let made = org.admin.post("/v1/dashboards", &json!({"name": "CANARY"})).await.expect(201);
    org.admin.delete("/v1/settings/org").await.refused(403, "forbidden_scope");
    server.anonymous().delete("/v1/settings/org").await.refused(401, "unauthenticated");
    org.console.delete("/v1/settings/org").await.expect(204);

    for client in [&org.console, &org.admin] {
        let path = format!("/v1/dashboards/{}", made["id"].as_str().unwrap());
        assert_eq!(client.get(&path).await.status, 401);
        let body = json!({"events": [{"tenant_id": "t", "event_name": "call"}]});
        assert_eq!(client.post("/v1/events", &body).await.status, 401);
    }
    let login = json!({"email": "acme@example.com", "password": "correct horse battery"});
    assert_eq!(server.anonymous().post("/v1/auth/login", &login).await.status, 401);
    assert_eq!(other.admin.count("t", "call").await, 7);

    // The purge follows: no file holds what belonged to it.
    for _ in 0..400 {
        let left = holding(server.directory.path(), "someone@example.org");
        if left.is_empty() && holding(server.directory.path(), "CANARY").is_empty() {
            break;
        }
        tokio::time::sleep(std::time::Duration::from_millis(25)).await;
    }
    assert_eq!(holding(server.directory.path(), "someone@example.org"), Vec::<String>::new());
    assert_eq!(holding(server.directory.path(), "CANARY"), Vec::<String>::new());
    server.restart().await;
    assert_eq!(server.anonymous().post("/v1/auth/login", &login).await.status, 401);
    // The address is free again.
    let again = server.register("acme").await;
    assert_eq!(again.admin.count("t", "call").await, 0);
}

#[tokio::test]
async fn days_beyond_the_retention_are_neither_taken_nor_shown() {
    let mut server = TestServer::start().await;
    let org = server.register("acme").await;
    // The server's clock shows the twentieth of November.
    let event = |days: i64| {
        let date = format!("2026-11-{}T08:00:00Z", 20 - days);
        json!({"tenant_id": "t", "event_name": "call", "timestamp": date})
    };
    let events: Vec<Value> = (0..6).map(event).collect();
    org.admin.post("/v1/events", &json!({"events": events})).await.expect(200);
    assert_eq!(org.admin.count("t", "call").await, 6);
    server.retention_days = Some(3);
    server.restart().await;
    let admin = server.anonymous().with_bearer(org.body["api_key"]["key"].as_str().unwrap());
    assert_eq!(admin.count("t", "call").await, 4, "today and three days");
    let body = json!({"events": [event(5)]});
    let refused = admin.post("/v1/events", &body).await;
    assert_eq!(refused.refused(400, "out_of_range").as_deref(), Some("events[0].timestamp"));
}
