//! The console's document and what the API has for its pages: the data of a saved widget, what is published, the demo's guest.

use inlay_tests::{Client, TestServer, session_cookie};
use reqwest::Method;
use serde_json::{Value, json};

/// The boot block of a document.
fn boot(html: &str) -> Value {
    let (_, rest) = html.split_once("id=\"boot\">").unwrap();
    serde_json::from_str(rest.split_once("</script>").unwrap().0).unwrap()
}

async fn page(client: &Client, path: &str) -> inlay_tests::Reply {
    client.send(client.request(Method::GET, path).header("accept", "text/html")).await
}

#[tokio::test]
async fn every_address_of_the_console_is_its_document_and_names_who_is_logged_in() {
    let server = TestServer::start().await;
    let org = server.register("acme").await;
    let name = json!({"name": "</script><img src=x>"});
    org.console.patch("/v1/settings/org", &name).await.expect(200);
    let anonymous = server.anonymous();
    for path in ["/console", "/console/", "/console/alerts/7", "/console/no/such/page"] {
        let reply = page(&anonymous, path).await;
        assert_eq!(reply.status, 200, "{path}");
        assert_eq!(boot(&reply.text)["me"], Value::Null);
        let policy = reply.headers["content-security-policy"].to_str().unwrap();
        for part in [
            "default-src 'none'",
            "script-src 'self';",
            "frame-ancestors 'none'",
            "trusted-types 'none'",
            "form-action 'none'",
        ] {
            assert!(policy.contains(part), "{policy}");
        }
        assert_eq!(reply.headers["cache-control"], "no-store");
        assert_eq!(reply.headers["x-frame-options"], "DENY");
    }
    let reply = page(&org.console, "/console/alerts/7").await;
    assert!(!reply.text.contains("<img"), "{}", reply.text);
    let boot = boot(&reply.text);
    assert_eq!(boot["me"]["org"]["name"], "</script><img src=x>");
    assert_eq!((&boot["me"]["role"], &boot["demo"]), (&json!("owner"), &json!(false)));
    assert_eq!(boot["base_url"], server.base.as_str());
    let policy = reply.headers["content-security-policy"].to_str().unwrap();
    assert!(policy.contains(&format!("'nonce-{}'", boot["nonce"].as_str().unwrap())), "{policy}");
    // Each module that it names is there, the page's own among them.
    let modules: Vec<&str> = reply
        .text
        .split("modulepreload\" href=\"")
        .skip(1)
        .map(|part| part.split('"').next().unwrap())
        .collect();
    assert!(modules.iter().any(|module| module.ends_with("/console/alert.js")), "{modules:?}");
    for module in modules {
        anonymous.get(module).await.expect(200);
    }
    // A session that has ended is nobody.
    org.console.post("/v1/auth/logout", &json!({})).await.expect(204);
    assert!(page(&org.console, "/console/").await.text.contains("\"me\":null"));
}

#[tokio::test]
async fn the_root_leads_to_the_console_and_a_cookie_chooses_its_colours() {
    let server = TestServer::start().await;
    let anonymous = server.anonymous();
    let reply = page(&anonymous, "/").await;
    assert!(reply.text.contains("id=\"boot\""), "the client has followed");
    for (cookie, expected) in [("dark", Some("data-mode=\"dark\"")), ("\"><script>", None)] {
        let request = anonymous
            .request(Method::GET, "/console/login")
            .header("cookie", format!("inlay_mode={cookie}"));
        let html = anonymous.send(request).await.text;
        match expected {
            Some(part) => assert!(html.contains(part)),
            None => assert!(!html.contains("data-mode")),
        }
    }
}

#[tokio::test]
async fn whoever_sees_a_dashboard_sees_the_data_of_its_draft_and_what_is_published() {
    let server = TestServer::start().await;
    let org = server.register("acme").await;
    let event = |tenant: &str| json!({"tenant_id": tenant, "event_name": "call", "string_props": {"model": "a"}});
    org.admin
        .post("/v1/events", &json!({"events": [event("t1"), event("t1"), event("t2")]}))
        .await
        .expect(200);
    let widget = json!({"id": "calls", "kind": "number", "title": "Calls", "query": {"event_name": "call", "metric": "count", "period": "7d"}, "viz": {}, "layout": {"x": 0, "y": 0, "w": 3, "h": 3}});
    let made = org
        .console
        .post("/v1/dashboards", &json!({"name": "Usage", "widgets": [widget]}))
        .await
        .expect(201);
    let path = format!("/v1/dashboards/{}", made["id"].as_str().unwrap());
    let viewer = org.join(&server, "viewer@example.com", "viewer").await;
    let data = format!("{path}/widgets/calls/data");
    assert_eq!(viewer.get(&data).await.expect(200)["data"][0]["value"], 3);
    let answer = viewer.get(&format!("{data}?tenant_id=t1&period=24h")).await.expect(200);
    assert_eq!(
        (&answer["data"][0]["value"], &answer["meta"]["period"]),
        (&json!(2), &json!("24h"))
    );
    assert_eq!(
        viewer.get(&format!("{data}?period=2h")).await.refused(400, "unknown_value").as_deref(),
        Some("period")
    );
    viewer.get(&format!("{path}/widgets/other/data")).await.refused(404, "not_found");
    // A key names a tenant, here as everywhere.
    org.admin.get(&data).await.refused(400, "missing_field");
    assert_eq!(
        org.admin.get(&format!("{data}?tenant_id=t2")).await.expect(200)["data"][0]["value"],
        1
    );
    // What is published stays as it was.
    let published = format!("{path}/published");
    viewer.get(&published).await.refused(404, "not_found");
    org.console.post(&format!("{path}/publish"), &json!({})).await.expect(204);
    org.console.patch(&path, &json!({"name": "Changed", "widgets": []})).await.expect(200);
    let snapshot = viewer.get(&published).await.expect(200);
    assert_eq!(
        (&snapshot["name"], &snapshot["widgets"][0]["id"]),
        (&json!("Usage"), &json!("calls"))
    );
    assert!(snapshot["published_at"].is_string());
    viewer.get(&data).await.refused(404, "not_found");
}

#[tokio::test]
async fn a_guest_of_the_demo_looks_and_changes_nothing() {
    let mut server = TestServer::start().await;
    server.anonymous().post("/v1/demo/session", &json!({})).await.refused(404, "not_found");
    server.demo = true;
    server.restart().await;
    let guest = || async {
        let reply = server.anonymous().post("/v1/demo/session", &json!({})).await;
        let body = reply.expect(200);
        assert_eq!((&body["role"], &body["user"]["name"]), (&json!("viewer"), &json!("Guest")));
        server.anonymous().with_cookie(&session_cookie(&reply).unwrap())
    };
    let (guest, other) = (guest().await, guest().await);
    let dashboards = guest.get("/v1/dashboards").await.expect(200);
    let id = dashboards["data"][0]["id"].as_str().unwrap();
    guest.get(&format!("/v1/dashboards/{id}/published")).await.expect(200);
    assert_eq!(guest.get("/v1/alerts").await.expect(200)["data"].as_array().unwrap().len(), 1);
    assert_eq!(guest.get("/v1/reports").await.expect(200)["data"].as_array().unwrap().len(), 1);
    guest
        .patch(&format!("/v1/dashboards/{id}"), &json!({"name": "x"}))
        .await
        .refused(403, "forbidden_role");
    guest.get("/v1/api-keys").await.refused(403, "forbidden_role");
    // A page of another site puts nobody into a session, the demo's or another.
    for path in ["/v1/demo/session", "/v1/auth/login"] {
        let request = server.anonymous().request(Method::POST, path).json(&json!({}));
        let request = request.header("origin", "https://evil.example");
        guest.send(request).await.refused(403, "forbidden_origin");
    }
    // Guests share a user, and see and end nobody's session but their own.
    let own = guest.get("/v1/auth/sessions").await.expect(200);
    assert_eq!(own["data"].as_array().unwrap().len(), 1);
    let others = other.get("/v1/auth/sessions").await.expect(200);
    let others = format!("/v1/auth/sessions/{}", others["data"][0]["id"].as_str().unwrap());
    guest.delete(&others).await.refused(404, "not_found");
    let me = guest.get("/v1/auth/me").await.expect(200);
    let member = format!("/v1/members/{}", me["user"]["id"].as_str().unwrap());
    guest.delete(&member).await.refused(403, "forbidden_role");
    let login = json!({"email": "guest@inlay.invalid", "password": "correct horse battery"});
    server.anonymous().post("/v1/auth/login", &login).await.refused(401, "unauthenticated");
    guest
        .delete(&format!("/v1/auth/sessions/{}", own["data"][0]["id"].as_str().unwrap()))
        .await
        .expect(204);
    other.get("/v1/auth/me").await.expect(200);
}
