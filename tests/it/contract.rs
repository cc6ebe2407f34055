//! The contract: routes that are mounted = paths of the OpenAPI document = tables of the specification.

use inlay_tests::TestServer;
use reqwest::Method;
use serde_json::Value;

use crate::access;

/// Operations of the specification.
const SPECIFIED: &str = "
POST /v1/auth/register
POST /v1/auth/login
POST /v1/auth/logout
GET /v1/auth/me
POST /v1/auth/accept-invite
POST /v1/events
GET /v1/dashboards
GET /v1/dashboards/:id
POST /v1/dashboards
PATCH /v1/dashboards/:id
DELETE /v1/dashboards/:id
POST /v1/dashboards/:id/publish
POST /v1/dashboards/:id/unpublish
POST /v1/dashboards/:id/restore-published
POST /v1/dashboards/:id/widgets
PATCH /v1/dashboards/:id/widgets/:id
DELETE /v1/dashboards/:id/widgets/:id
GET /v1/widgets
GET /v1/widgets/:id
POST /v1/widgets
PATCH /v1/widgets/:id
POST /v1/widgets/:id/publish
DELETE /v1/widgets/:id
POST /v1/widgets/preview/data
POST /v1/embed-sessions
GET /v1/embed-sessions
GET /v1/discover
POST /v1/discover/auto-create
GET /v1/query
POST /v1/query/adhoc
GET /v1/datasets
GET /v1/datasets/:id/ddl
GET /v1/saved-queries
POST /v1/saved-queries
PATCH /v1/saved-queries/:id
DELETE /v1/saved-queries/:id
GET /v1/alerts
GET /v1/alerts/:id
GET /v1/alerts/:id/events
POST /v1/alerts
PATCH /v1/alerts/:id
DELETE /v1/alerts/:id
GET /v1/reports
GET /v1/reports/:id
GET /v1/reports/:id/runs
POST /v1/reports
PATCH /v1/reports/:id
DELETE /v1/reports/:id
GET /v1/api-keys
POST /v1/api-keys
DELETE /v1/api-keys/:id
GET /v1/members
POST /v1/members/invite
GET /v1/members/invites
PATCH /v1/members/:id
DELETE /v1/members/:id
GET /v1/settings/org
PATCH /v1/settings/org
DELETE /v1/settings/org
GET /v1/demo/embed-url
GET /v1/usage
GET /v1/billing
GET /v1/billing/plans
GET /v1/billing/checkout-config
GET /v1/billing/portal
POST /webhooks/billing
GET /v1/audit
GET /v1/onboarding/status
GET /v1/webhooks
";

/// What needs no caller that we know: its body is signed by who takes the money.
const OF_NOBODY: &str = "POST /webhooks/billing";

/// Where the document is committed, so that a change of the contract is seen in review.
const COMMITTED: &str = "../server/doc/openapi.json";

/// An operation whatever its ids are called, or are: `GET /v1/alerts/:id`.
fn generic(method: &str, path: &str) -> String {
    let is_id = |part: &str| part.starts_with('{') || ["w", "t", "u"].contains(&part);
    let parts = path.split('/').map(|part| if is_id(part) { ":id" } else { part });
    format!("{method} {}", parts.collect::<Vec<_>>().join("/"))
}

fn operations(document: &Value) -> Vec<(String, String)> {
    let mut found = Vec::new();
    for (path, item) in document["paths"].as_object().unwrap() {
        for method in item.as_object().unwrap().keys() {
            found.push((method.to_uppercase(), path.clone()));
        }
    }
    found
}

#[tokio::test]
async fn routes_are_those_of_the_document_and_of_the_specification() {
    let server = TestServer::start().await;
    let document = server.anonymous().get("/openapi.json").await.expect(200);
    assert_eq!(document["openapi"], "3.1.0");
    let of_document = operations(&document);
    let mut described: Vec<String> =
        of_document.iter().map(|(method, path)| generic(method, path)).collect();
    described.sort();
    // Each has a row that says who may, those of the specification among them.
    let rows = access::operations().into_iter().chain(access::OF_EMBEDS);
    let mut expected: Vec<String> = rows.map(|(method, path, _)| generic(method, path)).collect();
    expected.push(OF_NOBODY.to_owned());
    expected.sort();
    assert_eq!(described, expected);
    for specified in SPECIFIED.lines().filter(|line| !line.is_empty()) {
        assert!(described.iter().any(|operation| operation == specified), "{specified}");
    }
    for (method, path) in operations(&document) {
        let path = path.replace("_id}", "}").replace("{alert}", "9").replace("{report}", "9");
        let path = path.split('/').map(|part| {
            if part.starts_with('{') { "0190aaaa-0000-7000-8000-000000000000" } else { part }
        });
        let path = path.collect::<Vec<_>>().join("/");
        let client = server.anonymous();
        let method = Method::from_bytes(method.as_bytes()).unwrap();
        let reply = client.send(client.request(method.clone(), &path)).await;
        assert_ne!(reply.json()["error"], "there is nothing at this path", "{method} {path}");
        let reply = client.send(client.request(Method::PUT, &path)).await;
        reply.refused(405, "method_not_allowed");
    }
}

#[tokio::test]
async fn the_document_is_the_committed_one() {
    let server = TestServer::start().await;
    let document = server.anonymous().get("/openapi.json").await.expect(200);
    let text = format!("{}\n", serde_json::to_string_pretty(&document).unwrap());
    if std::env::var_os("UPDATE").is_some() {
        write(COMMITTED, &text);
    }
    let hint = "the contract has changed: run this test with UPDATE=1 and look at the difference";
    assert!(read(COMMITTED) == text, "{hint}");
}

#[tokio::test]
async fn every_part_of_the_document_is_described_and_resolves() {
    let server = TestServer::start().await;
    let document = server.anonymous().get("/openapi.json").await.expect(200);
    let mut references = Vec::new();
    collect(&document, &mut references);
    assert!(references.len() > 500);
    for reference in references {
        let pointer = reference.strip_prefix('#').unwrap();
        assert!(document.pointer(pointer).is_some(), "{reference}");
    }
    for (method, path) in operations(&document) {
        let operation = &document["paths"][&path][method.to_lowercase()];
        assert!(operation["summary"].as_str().unwrap().ends_with('.'), "{method} {path}");
        let responses = operation["responses"].as_object().unwrap();
        assert!(responses.keys().any(|status| status.starts_with('2')), "{method} {path}");
        for status in ["429", "500", "503"] {
            assert!(responses.contains_key(status), "{method} {path} {status}");
        }
    }
    let docs = server.anonymous().get("/docs").await;
    assert!(docs.status == 200 && docs.text.contains("CreateEmbedSession"));
    let text = docs.text.replace(&server.base, "").replace("https://app.example.com", "");
    assert!(!text.contains("<script") && !text.contains("http://"), "no outside hosts");
    let policy = docs.headers["content-security-policy"].to_str().unwrap();
    assert!(policy.starts_with("default-src 'none'"), "{policy}");
}

fn collect(value: &Value, references: &mut Vec<String>) {
    match value {
        Value::Object(map) => {
            references.extend(map.get("$ref").and_then(Value::as_str).map(str::to_owned));
            map.values().for_each(|value| collect(value, references));
        }
        Value::Array(all) => all.iter().for_each(|value| collect(value, references)),
        _ => {}
    }
}

fn read(path: &str) -> String {
    use std::io::Read as _;
    let mut text = String::new();
    let file = std::fs::OpenOptions::new().read(true).open(path);
    let _ = file.map(|mut file| file.read_to_string(&mut text));
    text
}

fn write(path: &str, text: &str) {
    use std::io::Write as _;
    let mut options = std::fs::OpenOptions::new();
    let mut file = options.create(true).write(true).truncate(true).open(path).unwrap();
    file.write_all(text.as_bytes()).unwrap();
}
