//! Who may do what, over HTTP: every operation as every caller that can be made so far.
//!
//! Expectations are written down here again, from the access table of the specification, so that a
//! slip in the server's own table is seen.

use inlay_tests::{Client, TestServer};
use reqwest::Method;
use serde_json::json;

/// Method, path, and what anonymous, owner, admin key, ingest key and embed token may: `y`, or the
/// status in hundreds and its last digit.
const OPERATIONS: [(&str, &str, [u16; 5]); 35] = [
    ("POST", "/v1/auth/logout", [401, 0, 403, 403, 401]),
    ("GET", "/v1/auth/me", [401, 0, 0, 0, 401]),
    ("POST", "/v1/events", [401, 403, 0, 0, 401]),
    ("GET", "/v1/dashboards", [401, 0, 0, 403, 401]),
    ("GET", "/v1/dashboards/{id}", [401, 0, 0, 403, 401]),
    ("POST", "/v1/dashboards", [401, 0, 0, 403, 401]),
    ("PATCH", "/v1/dashboards/{id}", [401, 0, 0, 403, 401]),
    ("DELETE", "/v1/dashboards/{id}", [401, 0, 0, 403, 401]),
    ("POST", "/v1/dashboards/{id}/publish", [401, 0, 0, 403, 401]),
    ("POST", "/v1/dashboards/{id}/unpublish", [401, 0, 0, 403, 401]),
    ("POST", "/v1/dashboards/{id}/restore-published", [401, 0, 0, 403, 401]),
    ("POST", "/v1/dashboards/{id}/widgets", [401, 0, 0, 403, 401]),
    ("PATCH", "/v1/dashboards/{id}/widgets/w", [401, 0, 0, 403, 401]),
    ("DELETE", "/v1/dashboards/{id}/widgets/w", [401, 0, 0, 403, 401]),
    ("POST", "/v1/widgets/preview/data", [401, 0, 0, 403, 401]),
    ("POST", "/v1/embed-sessions", [401, 0, 0, 403, 401]),
    ("GET", "/v1/embed-sessions", [401, 0, 0, 403, 401]),
    ("DELETE", "/v1/embed-sessions/{id}", [401, 0, 0, 403, 401]),
    ("GET", "/v1/query", [401, 0, 0, 403, 401]),
    ("GET", "/v1/api-keys", [401, 0, 0, 403, 401]),
    ("POST", "/v1/api-keys", [401, 0, 0, 403, 401]),
    ("DELETE", "/v1/api-keys/{id}", [401, 0, 0, 403, 401]),
    ("GET", "/v1/saved-queries", [401, 0, 0, 403, 401]),
    ("POST", "/v1/saved-queries", [401, 0, 0, 403, 401]),
    ("PATCH", "/v1/saved-queries/{id}", [401, 0, 0, 403, 401]),
    ("DELETE", "/v1/saved-queries/{id}", [401, 0, 0, 403, 401]),
    ("GET", "/v1/settings/org", [401, 0, 0, 403, 401]),
    ("PATCH", "/v1/settings/org", [401, 0, 0, 403, 401]),
    ("GET", "/v1/audit", [401, 0, 0, 403, 401]),
    ("DELETE", "/v1/tenants/t/events", [401, 0, 0, 403, 401]),
    ("DELETE", "/v1/tenants/t/users/u/events", [401, 0, 0, 403, 401]),
    ("GET", "/v1/erasures", [401, 0, 0, 403, 401]),
    ("GET", "/v1/erasures/{id}", [401, 0, 0, 403, 401]),
    ("GET", "/v1/embed/dashboard", [401, 401, 401, 401, 0]),
    ("POST", "/v1/embed/data", [401, 401, 401, 401, 0]),
];

const NOBODYS: &str = "0190aaaa-0000-7000-8000-000000000000";

struct Callers {
    server: TestServer,
    all: Vec<(&'static str, Client)>,
}

async fn callers() -> Callers {
    let server = TestServer::start().await;
    let org = server.register("acme").await;
    let ingest =
        org.admin.post("/v1/api-keys", &json!({"label": "i", "scope": "ingest"})).await.expect(201);
    let made = org.admin.post("/v1/dashboards", &json!({"name": "D"})).await.expect(201);
    let ask = json!({"tenant_id": "t", "dashboard_id": made["id"]});
    let minted = org.admin.post("/v1/embed-sessions", &ask).await.expect(201);
    let anonymous = server.anonymous();
    let all = vec![
        ("anonymous", anonymous.clone()),
        ("owner", org.console.clone()),
        ("admin key", org.admin.clone()),
        ("ingest key", anonymous.clone().with_bearer(ingest["key"].as_str().unwrap())),
        ("embed token", anonymous.with_bearer(minted["token"].as_str().unwrap())),
    ];
    Callers { server, all }
}

#[tokio::test]
async fn every_operation_answers_every_caller_as_the_table_says() {
    let callers = callers().await;
    for (method, path, expected) in OPERATIONS {
        let path = path.replace("{id}", NOBODYS);
        for ((name, client), expected) in callers.all.iter().zip(expected) {
            if path.ends_with("/logout") && *name == "owner" {
                continue; // It would end the session that the other rows need.
            }
            let request = client.request(Method::from_bytes(method.as_bytes()).unwrap(), &path);
            let status = client.send(request).await.status;
            match expected {
                0 => assert!(
                    ![401, 403, 405, 500].contains(&status),
                    "{method} {path} as {name}: {status}"
                ),
                expected => assert_eq!(status, expected, "{method} {path} as {name}"),
            }
        }
    }
}

#[tokio::test]
async fn another_organisations_objects_do_not_exist() {
    let callers = callers().await;
    let other = callers.server.register("other").await;
    let made = other
        .admin
        .post(
            "/v1/dashboards",
            &json!({"name": "CANARY", "widgets": [crate::dashboards::widget("w")]}),
        )
        .await
        .expect(201);
    let dashboard = made["id"].as_str().unwrap();
    let keys = other.admin.get("/v1/api-keys").await.expect(200);
    let key = keys["data"][0]["id"].as_str().unwrap();
    let (_, mine) = &callers.all[2];
    for (method, path, _) in OPERATIONS.iter().filter(|(_, path, _)| path.contains("{id}")) {
        for foreign in [dashboard, key] {
            let ask = async |id: &str| {
                let request = mine.request(
                    Method::from_bytes(method.as_bytes()).unwrap(),
                    &path.replace("{id}", id),
                );
                let mut reply = mine.send(request.json(&json!({"name": "x"}))).await;
                let mut body = reply.json();
                body["request_id"] = json!(null);
                reply.text = body.to_string();
                (reply.status, reply.text)
            };
            let answer = ask(foreign).await;
            assert_eq!(answer, ask(NOBODYS).await, "{method} {path}");
            assert!(answer.0 == 404 && !answer.1.contains("CANARY"));
        }
    }
    let mint = json!({"tenant_id": "t", "dashboard_id": dashboard});
    mine.post("/v1/embed-sessions", &mint).await.refused(404, "not_found");
    assert_eq!(
        other.admin.get(&format!("/v1/dashboards/{dashboard}")).await.expect(200)["version"],
        1
    );
    for id in ["not-an-id", "0", "-1", "18446744073709551616", "..%2F", "%00"] {
        let reply = mine.get(&format!("/v1/dashboards/{id}")).await;
        assert_eq!(reply.status, 400, "{id}: {}", reply.text);
    }
}

#[tokio::test]
async fn a_cookie_counts_only_from_our_own_pages() {
    let callers = callers().await;
    let reply = callers
        .server
        .anonymous()
        .post(
            "/v1/auth/login",
            &json!({"email": "acme@example.com", "password": "correct horse battery"}),
        )
        .await;
    let cookie = inlay_tests::session_cookie(&reply).unwrap();
    let anonymous = callers.server.anonymous();
    let post = |origin: Option<&str>, site: Option<&str>| {
        let mut request = anonymous
            .request(Method::POST, "/v1/dashboards")
            .header("cookie", &cookie)
            .json(&json!({"name": "D"}));
        if let Some(origin) = origin {
            request = request.header("origin", origin);
        }
        if let Some(site) = site {
            request = request.header("sec-fetch-site", site);
        }
        request
    };
    for (origin, site, expected) in [
        (Some("https://evil.example"), None, 403),
        (Some("null"), None, 403),
        (None, Some("cross-site"), 403),
        (None, Some("same-site"), 403),
        (Some(&*callers.server.base), Some("same-origin"), 201),
        (None, None, 201),
    ] {
        let reply = anonymous.send(post(origin, site)).await;
        assert_eq!(reply.status, expected, "{origin:?} {site:?}: {}", reply.text);
    }
    let other = callers.server.register("other").await;
    let key = other.body["api_key"]["key"].as_str().unwrap();
    let both = anonymous.clone().with_bearer(key).with_cookie(&cookie);
    both.get("/v1/auth/me").await.expect(400);
}

#[tokio::test]
async fn errors_have_one_shape_everywhere() {
    let callers = callers().await;
    let anonymous = callers.server.anonymous();
    anonymous.get("/v1/nope").await.refused(404, "not_found");
    let (_, owner) = &callers.all[1];
    for (method, path, status) in
        [(Method::POST, "/v1/events", 403), (Method::GET, "/v1/dashboards", 400)]
    {
        let request = owner.request(method, path).header("x-service-environment", "bogus");
        assert_eq!(owner.send(request).await.status, status, "{path}");
    }
    let large = vec![b' '; 11 << 20];
    let json = ("content-type", "application/json");
    anonymous.post_raw("/v1/events", &[json], large).await.refused(401, "unauthenticated");
    anonymous
        .send(anonymous.request(Method::PUT, "/v1/dashboards"))
        .await
        .refused(405, "method_not_allowed");
    let reply = anonymous.get("/healthz").await;
    assert!(reply.status == 200 && reply.headers.contains_key("x-request-id"));
    anonymous.get("/readyz").await.expect(200);
    anonymous.get("/v1/demo/embed-url").await.refused(404, "not_found");
}
