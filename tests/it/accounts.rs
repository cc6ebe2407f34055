//! Registering, logging in and out, keys.

use inlay_tests::{TestServer, session_cookie};
use serde_json::json;

use crate::access::Row;

/// Who may do what: method, path, and the answer to each caller.
pub const OPERATIONS: &[Row] = &[
    ("POST", "/v1/auth/register", "yyyyyyyy"),
    ("POST", "/v1/auth/login", "yyyyyyyy"),
    ("POST", "/v1/auth/accept-invite", "yyyyyyyy"),
    ("GET", "/v1/auth/sessions", "1yyyy331"),
    ("DELETE", "/v1/auth/sessions/{id}", "1yyyy331"),
    ("POST", "/v1/auth/logout", "1yyyy331"),
    ("GET", "/v1/auth/me", "1yyyyyy1"),
];

#[tokio::test]
async fn registering_makes_everything_at_once() {
    let server = TestServer::start().await;
    let org = server.register("acme").await;
    assert_eq!(org.body["role"], "owner");
    let names: Vec<_> =
        org.body["environments"].as_array().unwrap().iter().map(|e| e["name"].clone()).collect();
    assert_eq!(names, ["production", "development"]);
    let me = org.console.get("/v1/auth/me").await.expect(200);
    assert_eq!(
        (&me["auth"], &me["role"], &me["scope"]),
        (&json!("session"), &json!("owner"), &json!("admin"))
    );
    assert_eq!(me["environment"], "production");
    let me = org.admin.get("/v1/auth/me").await.expect(200);
    assert_eq!(
        (&me["auth"], &me["user"], &me["role"]),
        (&json!("api_key"), &json!(null), &json!(null))
    );

    // The sample lies in development only.
    let path = "/v1/query?tenant_id=sample-tenant&event_name=api_call&metric=count&period=30d";
    let sample = org
        .console
        .request(reqwest::Method::GET, path)
        .header("x-service-environment", "development");
    assert!(org.console.send(sample).await.expect(200)["data"][0]["value"].as_i64().unwrap() > 500);
    assert_eq!(org.console.get(path).await.expect(200)["data"][0]["value"], 0);

    let again = json!({"email": "ACME@example.com", "password": "another password", "name": "B", "org_name": "B"});
    let field =
        server.anonymous().post("/v1/auth/register", &again).await.refused(409, "duplicate_email");
    assert_eq!(field.as_deref(), Some("email"));
}

#[tokio::test]
async fn wrong_registrations_name_the_field() {
    let server = TestServer::start().await;
    let good = json!({"email": "a@example.com", "password": "long enough password", "name": "A", "org_name": "O"});
    for (field, value, code) in [
        ("email", json!("nope"), "invalid_field"),
        ("password", json!("short"), "invalid_field"),
        ("password", json!("x".repeat(201)), "invalid_field"),
        ("name", json!("  "), "invalid_field"),
        ("org_name", json!(null), "invalid_field"),
        ("extra", json!(1), "unknown_field"),
    ] {
        let mut body = good.clone();
        body[field] = value;
        let reply = server.anonymous().post("/v1/auth/register", &body).await;
        assert_eq!(reply.refused(400, code).as_deref(), Some(field), "{}", reply.text);
    }
    let mut body = good.clone();
    body.as_object_mut().unwrap().remove("name");
    assert_eq!(
        server
            .anonymous()
            .post("/v1/auth/register", &body)
            .await
            .refused(400, "missing_field")
            .as_deref(),
        Some("name")
    );
    let reply = server
        .anonymous()
        .post_raw(
            "/v1/auth/register",
            &[("content-type", "application/json")],
            b"{\"email\":".to_vec(),
        )
        .await;
    reply.refused(400, "invalid_json");
    server
        .anonymous()
        .post_raw("/v1/auth/register", &[], b"{}".to_vec())
        .await
        .refused(415, "unsupported_media_type");
}

#[tokio::test]
async fn a_session_ends_by_logout_idleness_and_age() {
    const DAY_MS: i64 = 86_400_000;
    let server = TestServer::start().await;
    server.register("acme").await;
    let login = json!({"email": "acme@example.com", "password": "correct horse battery"});
    let open = async || {
        let reply = server.anonymous().post("/v1/auth/login", &login).await;
        reply.expect(200);
        let cookie = reply.headers["set-cookie"].to_str().unwrap();
        assert!(
            cookie.contains("HttpOnly")
                && cookie.contains("SameSite=Lax")
                && cookie.contains("Path=/")
        );
        server.anonymous().with_cookie(&session_cookie(&reply).unwrap())
    };
    let session = open().await;
    session.get("/v1/auth/me").await.expect(200);
    session.post_empty("/v1/auth/logout").await.expect(204);
    session.get("/v1/auth/me").await.refused(401, "session_expired");

    let session = open().await;
    server.clock.advance(3 * DAY_MS + 1);
    session.get("/v1/auth/me").await.refused(401, "session_expired");

    let session = open().await;
    for _ in 0..13 {
        server.clock.advance(DAY_MS);
        session.get("/v1/auth/me").await.expect(200);
    }
    server.clock.advance(DAY_MS);
    session.get("/v1/auth/me").await.refused(401, "session_expired");

    for (email, password) in [
        ("acme@example.com", "wrong password"),
        ("nobody@example.com", "correct horse battery"),
        ("", ""),
    ] {
        let body = json!({"email": email, "password": password});
        server.anonymous().post("/v1/auth/login", &body).await.refused(401, "unauthenticated");
    }
}

#[tokio::test]
async fn a_password_counts_to_its_last_byte() {
    let server = TestServer::start().await;
    let long = "p".repeat(150);
    let body = json!({"email": "l@example.com", "password": format!("{long}a"), "name": "L", "org_name": "L"});
    server.anonymous().post("/v1/auth/register", &body).await.expect(201);
    let login = |password: String| json!({"email": "l@example.com", "password": password});
    server
        .anonymous()
        .post("/v1/auth/login", &login(format!("{long}b")))
        .await
        .refused(401, "unauthenticated");
    server.anonymous().post("/v1/auth/login", &login(format!("{long}a"))).await.expect(200);
}

#[tokio::test]
async fn ten_registrations_of_one_address_make_one() {
    let server = TestServer::start().await;
    let body = json!({"email": "race@example.com", "password": "long enough password", "name": "R", "org_name": "R"});
    let attempts = (0..4).map(|_| {
        let (client, body) = (server.anonymous(), body.clone());
        tokio::spawn(async move { client.post("/v1/auth/register", &body).await.status })
    });
    let mut statuses = Vec::new();
    for attempt in attempts.collect::<Vec<_>>() {
        statuses.push(attempt.await.unwrap());
    }
    statuses.sort_unstable();
    assert_eq!(statuses, [201, 409, 409, 409]);
}

#[tokio::test]
async fn keys_are_shown_once_and_end_at_once() {
    let server = TestServer::start().await;
    let org = server.register("acme").await;
    let made = org
        .admin
        .post("/v1/api-keys", &json!({"label": "ingest", "scope": "ingest"}))
        .await
        .expect(201);
    let key = made["key"].as_str().unwrap().to_owned();
    assert!(key.starts_with("inlay_ingest_") && key.starts_with(made["prefix"].as_str().unwrap()));
    let list = org.admin.get("/v1/api-keys").await;
    assert_eq!(list.expect(200)["data"].as_array().unwrap().len(), 2);
    assert!(!list.text.contains(&key));
    let ingester = server.anonymous().with_bearer(&key);
    let event = json!({"events": [{"tenant_id": "t", "event_name": "e"}]});
    ingester.post("/v1/events", &event).await.expect(200);
    ingester.get("/v1/dashboards").await.refused(403, "forbidden_scope");
    org.admin.delete(&format!("/v1/api-keys/{}", made["id"].as_str().unwrap())).await.expect(204);
    ingester.post("/v1/events", &event).await.refused(401, "unauthenticated");
    let wrong = org.admin.post("/v1/api-keys", &json!({"label": "x", "scope": "root"})).await;
    assert_eq!(wrong.refused(400, "unknown_value").as_deref(), Some("scope"));
    let foreign = json!({"label": "x", "scope": "admin", "environment": "development"});
    org.admin.post("/v1/api-keys", &foreign).await.refused(403, "forbidden_scope");
    let development = org.console.post("/v1/api-keys", &foreign).await.expect(201);
    assert_eq!(development["environment"], "development");
    // A key neither sees nor ends keys of the other environment.
    let other = server.anonymous().with_bearer(development["key"].as_str().unwrap());
    let seen = other.get("/v1/api-keys").await.expect(200);
    assert_eq!(seen["data"].as_array().unwrap().len(), 1);
    let production = org.body["api_key"]["id"].as_str().unwrap();
    other.delete(&format!("/v1/api-keys/{production}")).await.refused(404, "not_found");
    assert_eq!(other.get("/v1/audit").await.expect(200)["data"], json!([]));
    assert_eq!(
        org.console.get("/v1/api-keys").await.expect(200)["data"].as_array().unwrap().len(),
        2
    );
}

#[tokio::test]
async fn plan_limits_are_exact() {
    let server = TestServer::with_plan("free").await;
    let org = server.register("acme").await;
    org.admin
        .post("/v1/api-keys", &json!({"label": "second", "scope": "ingest"}))
        .await
        .expect(201);
    let third = org.admin.post("/v1/api-keys", &json!({"label": "third", "scope": "ingest"})).await;
    let body = third.expect(402);
    assert_eq!(
        (&body["code"], &body["plan"], &body["upgrade_to"]),
        (&json!("api_keys_limit"), &json!("free"), &json!("growth"))
    );
    assert_eq!((&body["limit"], &body["used"]), (&json!(2), &json!(2)));
}

#[tokio::test]
async fn no_secret_is_stored_in_the_clear() {
    let mut server = TestServer::start().await;
    let org = server.register("acme").await;
    let cookie = server
        .anonymous()
        .post(
            "/v1/auth/login",
            &json!({"email": "acme@example.com", "password": "correct horse battery"}),
        )
        .await;
    let cookie = session_cookie(&cookie).unwrap();
    let secrets = [
        org.body["api_key"]["key"].as_str().unwrap(),
        cookie.split_once('=').unwrap().1,
        "correct horse battery",
    ];
    server.restart().await;
    let mut folders = vec![server.directory.path().to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            #[expect(clippy::disallowed_methods, reason = "looks at the files from outside")]
            let bytes = std::fs::read(&path).unwrap();
            for secret in secrets {
                let found = bytes.windows(secret.len()).any(|window| window == secret.as_bytes());
                assert!(!found, "{} holds a secret", path.display());
            }
        }
    }
}

#[tokio::test]
async fn an_address_that_nobody_has_takes_as_long_as_one_that_somebody_has() {
    let server = TestServer::start().await;
    server.register("acme").await;
    let mut times = std::collections::BTreeMap::<&str, Vec<u128>>::new();
    for _ in 0..5 {
        for email in ["acme@example.com", "nobody@example.com", "no address"] {
            let body = json!({"email": email, "password": "wrong wrong wrong"});
            let started = std::time::Instant::now();
            let reply = server.anonymous().post("/v1/auth/login", &body).await;
            times.entry(email).or_default().push(started.elapsed().as_micros());
            reply.refused(401, "unauthenticated");
        }
    }
    let fastest = |email: &str| *times[email].iter().min().unwrap();
    // A hash takes hundreds of times as long as the rest.
    for email in ["nobody@example.com", "no address"] {
        let (nobody, somebody) = (fastest(email), fastest("acme@example.com"));
        assert!(
            nobody * 2 > somebody && somebody * 2 > nobody,
            "{email}: {nobody} and {somebody} us"
        );
    }
}
