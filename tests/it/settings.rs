//! Saved queries, and what an organisation is called.

use inlay_tests::TestServer;
use serde_json::{Value, json};

use crate::access::Row;

/// Who may do what: method, path, and the answer to each caller.
pub const OPERATIONS: &[Row] = &[
    ("GET", "/v1/api-keys", "133yyy31"),
    ("POST", "/v1/api-keys", "133yyy31"),
    ("DELETE", "/v1/api-keys/{id}", "133yyy31"),
    ("GET", "/v1/settings/org", "1yyyyy31"),
    ("PATCH", "/v1/settings/org", "133yyy31"),
    ("DELETE", "/v1/settings/org", "1333y331"),
];

#[tokio::test]
async fn saved_queries_are_kept_changed_starred_and_deleted() {
    let server = TestServer::start().await;
    let org = server.register("acme").await;
    let path = "/v1/saved-queries";
    let body = json!({"name": "Calls", "sql": "SELECT count(*) FROM events", "dataset": "events"});
    let first = org.console.post(path, &body).await.expect(201);
    assert_eq!((&first["starred"], &first["dataset"]), (&json!(false), &json!("events")));
    assert_eq!(first["created_by"], org.body["user"]["id"]);
    server.clock.advance(1_000);
    let short = json!({"name": "Two", "sql": "SELECT 2"});
    let second = org.admin.post(path, &short).await.expect(201);
    assert_eq!((&second["created_by"], &second["dataset"]), (&Value::Null, &json!("events")));
    let names = async || {
        let listed = org.console.get(path).await.expect(200);
        let data = listed["data"].as_array().unwrap().clone();
        data.iter().map(|one| one["name"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(names().await, ["Two", "Calls"], "newest first");
    let of_first = format!("{path}/{}", first["id"].as_str().unwrap());
    server.clock.advance(1_000);
    let starred = org.console.patch(&of_first, &json!({"starred": true})).await.expect(200);
    assert_eq!((&starred["sql"], &starred["starred"]), (&first["sql"], &json!(true)));
    assert_ne!(starred["updated_at"], first["updated_at"]);
    assert_eq!(names().await, ["Calls", "Two"], "starred ones first");
    assert_eq!(org.console.delete(&of_first).await.status, 204);
    assert_eq!(org.console.delete(&of_first).await.status, 404);
    assert_eq!(names().await, ["Two"]);

    for (body, code, field) in [
        (json!({"name": " ", "sql": "SELECT 1"}), "invalid_field", "name"),
        (json!({"name": "x", "sql": "  "}), "invalid_field", "sql"),
        (json!({"name": "x", "sql": "x".repeat(65_537)}), "out_of_range", "sql"),
        (json!({"name": "x"}), "missing_field", "sql"),
        (json!({"name": "x", "sql": "SELECT 1", "star": true}), "unknown_field", "star"),
    ] {
        let reply = org.admin.post(path, &body).await;
        assert_eq!(reply.refused(400, code).as_deref(), Some(field), "{}", reply.text);
    }
    let actions: Vec<Value> = org.console.get("/v1/audit").await.expect(200)["data"]
        .as_array()
        .unwrap()
        .iter()
        .map(|row| row["action"].clone())
        .filter(|action| action.as_str().unwrap().starts_with("saved_query"))
        .collect();
    let expected = ["delete", "update", "create", "create"];
    assert_eq!(actions, expected.map(|what| json!(format!("saved_query.{what}"))));
}

#[tokio::test]
async fn an_organisation_can_be_renamed() {
    let mut server = TestServer::start().await;
    let org = server.register("acme").await;
    let path = "/v1/settings/org";
    let before = org.console.get(path).await.expect(200);
    assert_eq!((&before["name"], &before["email"]), (&json!("acme"), &json!("acme@example.com")));
    assert_eq!(before["environments"].as_array().unwrap().len(), 2);
    let change = json!({"name": "Acme Corp", "email": "Billing@Acme.example"});
    let after = org.admin.patch(path, &change).await.expect(200);
    assert_eq!(
        (&after["name"], &after["email"], &after["id"]),
        (&json!("Acme Corp"), &json!("billing@acme.example"), &before["id"])
    );
    let only = org.console.patch(path, &json!({"email": "a@b.example"})).await.expect(200);
    assert_eq!(only["name"], "Acme Corp");
    let wrong = org.console.patch(path, &json!({"email": "nope"})).await;
    assert_eq!(wrong.refused(400, "invalid_field").as_deref(), Some("email"));
    let unknown = org.console.patch(path, &json!({"plan": "scale"})).await;
    assert_eq!(unknown.refused(400, "unknown_field").as_deref(), Some("plan"));
    server.restart().await;
    let admin = server.anonymous().with_bearer(org.body["api_key"]["key"].as_str().unwrap());
    assert_eq!(admin.get(path).await.expect(200)["email"], "a@b.example");
}
