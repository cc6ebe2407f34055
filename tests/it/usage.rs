//! Usage and onboarding: counted with the events, told by day.

use inlay_tests::TestServer;
use serde_json::{Value, json};

use crate::access::Row;

/// Who may do what: method, path, and the answer to each caller.
pub const OPERATIONS: &[Row] =
    &[("GET", "/v1/usage", "1yyyyy31"), ("GET", "/v1/onboarding/status", "1yyyyy31")];

#[tokio::test]
async fn usage_is_what_was_done() {
    let mut server = TestServer::start().await;
    let org = server.register("acme").await;
    let status = org.console.get("/v1/onboarding/status").await.expect(200);
    assert_eq!((&status["sample_only"], &status["real_events"]), (&json!(true), &json!(0)));
    let event = |tenant: &str, id: usize, ago: &str| json!({"tenant_id": tenant, "event_name": "e", "event_id": format!("e{id}"), "timestamp": ago});
    let now = "2026-11-20T10:00:00Z";
    let mut events: Vec<Value> = (0..7).map(|id| event("big", id, now)).collect();
    events.extend((0..3).map(|id| event("small", id, "2026-10-30T10:00:00Z")));
    let batch = json!({"events": events});
    org.admin.post("/v1/events", &batch).await.expect(200);
    // Sent again they are no usage.
    org.admin.post("/v1/events", &batch).await.expect(200);
    server.clock.advance(86_400_000);
    org.admin.post("/v1/events", &json!({"events": [event("big", 7, now)]})).await.expect(200);
    for _ in 0..3 {
        org.admin.count("big", "e").await;
    }
    let made = org.admin.post("/v1/dashboards", &json!({"name": "D"})).await.expect(201);
    let ask = json!({"tenant_id": "big", "dashboard_id": made["id"]});
    org.admin
        .post(&format!("/v1/dashboards/{}/publish", made["id"].as_str().unwrap()), &json!({}))
        .await
        .expect(204);
    let minted = org.admin.post("/v1/embed-sessions", &ask).await.expect(201);
    let page = minted["embed_url"].as_str().unwrap().trim_start_matches(&server.base).to_owned();
    assert_eq!(server.anonymous().get(&page).await.status, 200);

    // A process that follows sends the leader what it has counted.
    inlay_tests::eventually(|| async {
        // Each of them shows it.
        for _ in 0..3 {
            let usage = org.admin.get("/v1/usage?period=7d").await.expect(200);
            if usage["queries"] != 3 || usage["embed_views"] != 1 {
                return false;
            }
        }
        true
    })
    .await;
    let check = async |admin: &inlay_tests::Client| {
        let usage = admin.get("/v1/usage?period=7d").await.expect(200);
        assert_eq!(usage["events"], json!({"used": 11, "limit": null}));
        assert_eq!(
            (&usage["queries"], &usage["embed_sessions"], &usage["embed_views"]),
            (&json!(3), &json!(1), &json!(1))
        );
        let days = usage["by_day"].as_array().unwrap();
        assert_eq!(days.len(), 8);
        assert_eq!(days[6], json!({"date": "2026-11-20", "events": 10}));
        assert_eq!(days[7], json!({"date": "2026-11-21", "events": 1}));
        assert_eq!(
            usage["top_tenants"],
            json!([{"tenant_id": "big", "events": 8}]),
            "by their own time"
        );
        let month = admin.get("/v1/usage").await.expect(200);
        assert_eq!(month["period"], "30d");
        assert_eq!(month["top_tenants"][1], json!({"tenant_id": "small", "events": 3}));
    };
    check(&org.admin).await;
    // Counts in memory are written down when the server stops.
    server.restart().await;
    let admin = server.anonymous().with_bearer(org.body["api_key"]["key"].as_str().unwrap());
    check(&admin).await;
    let wrong = admin.get("/v1/usage?period=x").await;
    assert_eq!(wrong.refused(400, "unknown_value").as_deref(), Some("period"));
    assert_eq!(
        admin.get("/v1/usage?perod=7d").await.refused(400, "unknown_field").as_deref(),
        Some("perod")
    );
    let status = admin.get("/v1/onboarding/status").await.expect(200);
    assert_eq!((&status["sample_only"], &status["real_events"]), (&json!(false), &json!(11)));
    let steps = json!({
        "sent_event": true, "created_dashboard": true, "published_dashboard": true,
        "created_embed_session": true, "invited_member": false,
    });
    assert_eq!(status["steps"], steps);
    assert_eq!(admin.get("/v1/billing").await.expect(200)["usage"]["monthly_events"], 11);
}

#[tokio::test]
async fn an_environment_sees_its_own_usage() {
    let server = TestServer::start().await;
    let org = server.register("acme").await;
    let key = json!({"label": "dev", "scope": "admin", "environment": "development"});
    let key = org.console.post("/v1/api-keys", &key).await.expect(201);
    let dev = server.anonymous().with_bearer(key["key"].as_str().unwrap());
    let one = json!({"events": [{"tenant_id": "t", "event_name": "e"}]});
    dev.post("/v1/events", &one).await.expect(200);
    assert_eq!(dev.get("/v1/usage").await.expect(200)["events"]["used"], 1);
    assert_eq!(org.admin.get("/v1/usage").await.expect(200)["events"]["used"], 0);
    // The plan is the organisation's.
    assert_eq!(org.admin.get("/v1/billing").await.expect(200)["usage"]["monthly_events"], 1);
    let tenants = dev.get("/v1/usage").await.expect(200)["top_tenants"].clone();
    assert!(tenants.to_string().contains("sample-tenant"), "{tenants}");
}
