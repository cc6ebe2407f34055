//! Who may do what, over HTTP: every operation as every caller.
//!
//! Expectations are written down again, beside the tests of each resource and from the access table of the specification, so that a
//! slip in the server's own table is seen. That each operation has its row is a test of `contract.rs`.

use inlay_tests::{Client, Org, TestServer};
use reqwest::Method;
use serde_json::json;

use crate::{
    accounts, alert_trials, alerts, audit, billing, dashboards, embed, erasures, events, members,
    passwords, query, reports, settings, sql, unsubscribe, usage, webhooks,
};

/// An operation: its method, its path, and for each caller in the order of [`CALLERS`] `y` (allowed), `3` (403) or `1` (401). An id is that of
/// nothing.
///
/// `("POST", "/v1/widgets", "133yyy31")`: admins, owners and admin keys.
pub type Row = (&'static str, &'static str, &'static str);

/// All operations but those of embeds; each resource's are beside its tests.
pub fn operations() -> Vec<Row> {
    let of_resources = [
        accounts::OPERATIONS,
        passwords::OPERATIONS,
        events::OPERATIONS,
        dashboards::OPERATIONS,
        embed::OPERATIONS,
        query::OPERATIONS,
        sql::OPERATIONS,
        alert_trials::OPERATIONS,
        alerts::OPERATIONS,
        reports::OPERATIONS,
        settings::OPERATIONS,
        members::OPERATIONS,
        unsubscribe::OPERATIONS,
        usage::OPERATIONS,
        billing::OPERATIONS,
        audit::OPERATIONS,
        webhooks::OPERATIONS,
        erasures::OPERATIONS,
    ];
    of_resources.concat()
}

/// Data calls of the embed, for embed tokens only.
pub const OF_EMBEDS: [Row; 4] = [
    ("GET", "/v1/embed/dashboard", "1111111y"),
    ("POST", "/v1/embed/data", "1111111y"),
    ("POST", "/v1/embed/values", "1111111y"),
    ("POST", "/v1/embed/detail", "1111111y"),
];

pub const CALLERS: [&str; 8] =
    ["anonymous", "viewer", "editor", "admin", "owner", "admin key", "ingest key", "embed token"];

pub const NOBODYS: &str = "0190aaaa-0000-7000-8000-000000000000";

/// An organisation with one caller of each kind.
pub struct Callers {
    pub server: TestServer,
    pub org: Org,
    pub all: Vec<(&'static str, Client)>,
}

pub async fn callers() -> Callers {
    let server = TestServer::start().await;
    let org = server.register("acme").await;
    let made = org.admin.post("/v1/dashboards", &json!({"name": "D"})).await.expect(201);
    let ask = json!({"tenant_id": "t", "dashboard_id": made["id"]});
    let minted = org.admin.post("/v1/embed-sessions", &ask).await.expect(201);
    let clients = [
        server.anonymous(),
        org.join(&server, "v@acme.example", "viewer").await,
        org.join(&server, "e@acme.example", "editor").await,
        org.join(&server, "a@acme.example", "admin").await,
        org.console.clone(),
        org.admin.clone(),
        org.key(&server, "ingest").await,
        server.anonymous().with_bearer(minted["token"].as_str().unwrap()),
    ];
    let all = CALLERS.into_iter().zip(clients).collect();
    Callers { server, org, all }
}

#[tokio::test]
async fn every_operation_answers_every_caller_as_the_table_says() {
    let callers = callers().await;
    for (method, path, row) in OF_EMBEDS.into_iter().chain(operations()) {
        let path = path.replace("{id}", NOBODYS).replace("{number}", "999999");
        let method = Method::from_bytes(method.as_bytes()).unwrap();
        for ((name, client), cell) in callers.all.iter().zip(row.chars()) {
            let ends_more = path.ends_with("/logout") || path == "/v1/settings/org";
            if cell == 'y' && ends_more && method != Method::GET && method != Method::PATCH {
                continue; // It would end what the other cells need; tests of their own do it.
            }
            let status = client.send(client.request(method.clone(), &path)).await.status;
            let expected = match cell {
                '1' => 401,
                '3' => 403,
                _ => 0,
            };
            if expected > 0 {
                assert_eq!(status, expected, "{method} {path} as {name}");
                continue;
            }
            let is_public = row.starts_with('y');
            let is_answer = ![403, 405, 500].contains(&status) && (is_public || status != 401);
            assert!(is_answer, "{method} {path} as {name}: {status}");
        }
    }
}

#[tokio::test]
async fn spellings_of_a_path_open_nothing() {
    let callers = callers().await;
    let (_, viewer) = &callers.all[1];
    for (method, path, row) in operations().iter().filter(|(_, _, row)| row.as_bytes()[1] == b'3') {
        let path = path.replace("{id}", NOBODYS).replace("{number}", "999999");
        let method = Method::from_bytes(method.as_bytes()).unwrap();
        let spellings = [
            format!("{path}/"),
            path.replacen("/v1/", "/v1//", 1),
            path.replacen("/v1/", "/V1/", 1),
            path.replacen("/v1/", "/v1/../v1/", 1),
            path.replacen("/v1/", "/v1/%2e/", 1),
            path.replacen("/v1/", "/v1;x/", 1),
            path.to_uppercase(),
        ];
        for spelling in spellings {
            let status = viewer.send(viewer.request(method.clone(), &spelling)).await.status;
            assert!([403, 404].contains(&status), "{method} {spelling}: {status} ({row})");
        }
        for name in ["x-http-method-override", "x-method-override", "x-original-url"] {
            let request = viewer.request(method.clone(), &path).header(name, "GET");
            let status = viewer.send(request).await.status;
            assert_eq!(status, 403, "{method} {path} with {name}");
        }
    }
}

#[tokio::test]
async fn the_last_cells_end_what_they_should() {
    let callers = callers().await;
    for at in 1..5 {
        let (name, client) = &callers.all[at];
        if *name != "owner" {
            client.post_empty("/v1/auth/logout").await.expect(204);
            client.get("/v1/auth/me").await.refused(401, "session_expired");
        }
    }
    callers.org.console.delete("/v1/settings/org").await.expect(204);
    callers.org.admin.get("/v1/dashboards").await.refused(401, "unauthenticated");
    callers.org.console.get("/v1/auth/me").await.refused(401, "session_expired");
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
    let (_, owner) = &callers.all[4];
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
