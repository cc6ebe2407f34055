//! Webhooks sent again by hand: which message, how often, and who may.

use inlay_tests::{Manner, Org, Receiver, TestServer, eventually};
use serde_json::{Value, json};

use crate::{access::Row, dashboards::widget};

/// Who may do what: method, path, and the answer to each caller.
pub const OPERATIONS: &[Row] =
    &[("GET", "/v1/webhooks", "133yyy31"), ("POST", "/v1/webhooks/{id}/retry", "133yyy31")];

/// A server whose webhooks may reach this machine, an organisation and its dashboard.
async fn start() -> (TestServer, Org, Value) {
    let mut server = TestServer::start().await;
    server.webhook_allow = vec!["127.0.0.0/8".to_owned()];
    server.restart().await;
    let org = server.register("acme").await;
    let body = json!({"name": "Usage", "widgets": [widget("calls")]});
    let dashboard = org.admin.post("/v1/dashboards", &body).await.expect(201)["id"].clone();
    (server, org, dashboard)
}

/// Makes an alert that posts there, and lets it fire.
async fn fire(server: &TestServer, org: &Org, dashboard: &Value, url: &str) {
    let rule = json!({
        "dashboard_id": dashboard, "widget_id": "calls", "name": "Too many", "condition_type": "threshold",
        "operator": "gt", "threshold_value": 2, "lookback_minutes": 10_000, "webhook_url": url,
        "webhook_signed": true,
    });
    org.admin.post("/v1/alerts", &rule).await.expect(201);
    let event = json!({"event_name": "api_call", "tenant_id": "a"});
    org.admin.post("/v1/events", &json!({"events": vec![event; 3]})).await.expect(200);
    server.clock.advance(60_000);
    server.evaluate_alerts();
}

/// The attempts of the only rule, last first, once there are so many.
async fn attempts(org: &Org, count: usize) -> Vec<Value> {
    let list = || async {
        let rules = org.admin.get("/v1/webhooks").await.expect(200);
        let mut attempts = rules["rules"][0]["attempts"].as_array().unwrap().clone();
        // The clock stands still: those of one instant come in any order.
        attempts.sort_by_key(|attempt| std::cmp::Reverse(attempt["attempt"].as_u64()));
        attempts
    };
    eventually(|| async { list().await.len() == count }).await;
    list().await
}

fn retry_of(attempt: &Value) -> String {
    format!("/v1/webhooks/{}/retry", attempt["id"].as_str().unwrap())
}

async fn status_of_event(org: &Org) -> Value {
    let events = org.admin.get("/v1/alerts/1/events").await.expect(200);
    events["data"][0]["deliveries"][0]["status"].clone()
}

#[tokio::test(flavor = "multi_thread")]
async fn an_abandoned_message_is_sent_again_at_most_three_times() {
    let (server, org, dashboard) = start().await;
    let down = Manner::Status(500, String::new());
    let up = Manner::Status(200, String::new());
    let manners = [vec![down; 5], vec![up]].concat();
    let receiver = Receiver::start(&manners).await;
    fire(&server, &org, &dashboard, &receiver.url).await;
    // 30 and 120 s, with all that chance may add.
    for (count, wait_ms) in [(1, 36_000), (2, 144_000)] {
        attempts(&org, count).await;
        server.clock.advance(wait_ms);
    }
    let abandoned = attempts(&org, 3).await;
    eventually(|| async { status_of_event(&org).await == "failed" }).await;
    for (count, code, status) in [(4, 500, "failed"), (5, 500, "failed"), (6, 200, "sent")] {
        // Any attempt of the message stands for it.
        org.admin.post_empty(&retry_of(&abandoned[count % 3])).await.expect(202);
        let newest = attempts(&org, count).await.remove(0);
        let seen = (&newest["attempt"], &newest["retry"], &newest["status_code"]);
        assert_eq!(seen, (&json!(count), &json!(count - 3), &json!(code)));
        eventually(|| async { status_of_event(&org).await == status }).await;
        // By hand, none follows by itself.
        server.clock.advance(600_000);
        tokio::time::sleep(std::time::Duration::from_millis(600)).await;
        assert_eq!(receiver.count(), count);
    }
    org.admin.post_empty(&retry_of(&abandoned[0])).await.refused(409, "conflict");
    let received = receiver.received();
    assert!(received.iter().all(|one| one.body == received[0].body));
    let ids: Vec<_> = received.iter().map(|one| one.header("webhook-id")).collect();
    assert!(ids[0].is_some() && ids.iter().all(|id| *id == ids[0]), "one message, one id");
    let rows = org.admin.get("/v1/audit?action=webhook.retry").await.expect(200);
    assert_eq!(rows["data"].as_array().unwrap().len(), 3);
    assert_eq!(rows["data"][0]["target"], json!({"type": "alert", "id": "1"}));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_attempt_that_would_come_later_is_brought_forward() {
    let (server, org, dashboard) = start().await;
    let manners = [Manner::Status(500, String::new()), Manner::Status(200, String::new())];
    let receiver = Receiver::start(&manners).await;
    fire(&server, &org, &dashboard, &receiver.url).await;
    let first = attempts(&org, 1).await.remove(0);
    // Its row is there before its next attempt is due: no second message may be made of it.
    org.admin.post_empty(&retry_of(&first)).await.expect(202);
    let second = attempts(&org, 2).await.remove(0);
    assert_eq!((&second["attempt"], &second["retry"]), (&json!(2), &json!(0)));
    server.clock.advance(600_000);
    tokio::time::sleep(std::time::Duration::from_millis(600)).await;
    assert_eq!(receiver.count(), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_report_is_made_again_for_one_receiver() {
    let (_server, org, dashboard) = start().await;
    let manners = [Manner::Status(503, String::new()), Manner::Status(200, String::new())];
    let receiver = Receiver::start(&manners).await;
    let report = json!({
        "dashboard_id": dashboard, "name": "Daily", "schedule": "daily", "format": "csv",
        "recipients": ["boss@acme.example"], "webhook_url": receiver.url,
    });
    org.admin.post("/v1/reports", &report).await.expect(201);
    org.admin.post_empty("/v1/reports/1/run").await.expect(202);
    let run = |status: &'static str| {
        let admin = &org.admin;
        eventually(move || async move {
            admin.get("/v1/reports/1/runs").await.expect(200)["data"][0]["status"] == status
        })
    };
    run("partial").await;
    let failed = attempts(&org, 1).await.remove(0);
    org.admin.post_empty(&retry_of(&failed)).await.expect(202);
    run("succeeded").await;
    let sent = attempts(&org, 2).await.remove(0);
    let seen = (&sent["attempt"], &sent["retry"], &sent["status_code"]);
    assert_eq!(seen, (&json!(2), &json!(1), &json!(200)));
    let runs = org.admin.get("/v1/reports/1/runs").await.expect(200);
    let deliveries = runs["data"][0]["deliveries"].as_array().unwrap();
    assert!(deliveries.iter().all(|told| told["status"] == "sent" && told["error"].is_null()));
    let bodies: Vec<_> = receiver.received().into_iter().map(|one| one.body).collect();
    assert_eq!(bodies[0], bodies[1]);
    for _ in 0..2 {
        org.admin.post_empty(&retry_of(&sent)).await.expect(202);
        run("succeeded").await;
    }
    org.admin.post_empty(&retry_of(&sent)).await.refused(409, "conflict");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_message_goes_only_where_its_rule_still_posts() {
    let (server, org, dashboard) = start().await;
    let receiver = Receiver::start(&[Manner::Status(200, String::new())]).await;
    fire(&server, &org, &dashboard, &receiver.url).await;
    let attempt = attempts(&org, 1).await.remove(0);
    let other = server.register("other").await;
    other.admin.post_empty(&retry_of(&attempt)).await.refused(404, "not_found");
    let unknown = "/v1/webhooks/0190aaaa-0000-7000-8000-000000000000/retry";
    org.admin.post_empty(unknown).await.refused(404, "not_found");
    org.admin.patch("/v1/alerts/1", &json!({"webhook_url": null})).await.expect(200);
    org.admin.post_empty(&retry_of(&attempt)).await.refused(409, "conflict");
    org.admin.delete("/v1/alerts/1").await.expect(204);
    org.admin.post_empty(&retry_of(&attempt)).await.refused(404, "not_found");
    assert_eq!(receiver.count(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_waits_fails_with_its_rule_and_messages_keep_their_order() {
    let (server, org, dashboard) = start().await;
    let receiver = Receiver::start(&[Manner::Status(500, String::new())]).await;
    fire(&server, &org, &dashboard, &receiver.url).await;
    attempts(&org, 1).await;
    // A test is a later message to the same receiver.
    org.admin.post_empty("/v1/alerts/1/test").await.expect(200);
    let all = org.admin.get("/v1/webhooks").await.expect(200)["rules"][0]["attempts"].clone();
    let statuses: Vec<u16> = {
        let mut found = Vec::new();
        for attempt in all.as_array().unwrap() {
            found.push(org.admin.post_empty(&retry_of(attempt)).await.status);
        }
        found.sort_unstable();
        found
    };
    assert_eq!(statuses, [202, 409], "the first is brought forward, the test waits for it");
    attempts(&org, 3).await;
    eventually(|| async { status_of_event(&org).await == "pending" }).await;
    org.admin.patch("/v1/alerts/1", &json!({"enabled": false})).await.expect(200);
    let events = org.admin.get("/v1/alerts/1/events").await.expect(200);
    let delivery = events["data"]
        .as_array()
        .unwrap()
        .iter()
        .map(|event| event["deliveries"][0].clone())
        .find(|delivery| delivery["error"] == "the rule was changed or switched off");
    assert_eq!(delivery.expect("it is over")["status"], "failed");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_report_goes_to_its_tenants_of_today_and_a_retry_stops_no_run() {
    let (server, org, dashboard) = start().await;
    let manners = [Manner::Status(503, String::new()), Manner::Hang];
    let receiver = Receiver::start(&manners).await;
    let share = |tenant: &str| json!({"tenant_id": tenant, "recipients": []});
    let report = json!({
        "dashboard_id": dashboard, "name": "Hourly", "schedule": "hourly", "format": "csv",
        "webhook_url": receiver.url, "burst": [share("a")],
    });
    org.admin.post("/v1/reports", &report).await.expect(201);
    org.admin.post_empty("/v1/reports/1/run").await.expect(202);
    let failed = attempts(&org, 1).await.remove(0);
    let runs = async || org.admin.get("/v1/reports/1/runs").await.expect(200)["data"].clone();
    eventually(|| async { runs().await[0]["status"] == "failed" }).await;
    org.admin.patch("/v1/reports/1", &json!({"burst": [share("b")]})).await.expect(200);
    org.admin.post_empty(&retry_of(&failed)).await.refused(409, "conflict");
    org.admin.patch("/v1/reports/1", &json!({"burst": [share("a")]})).await.expect(200);
    // The receiver hangs with the retry when the schedule's time comes.
    org.admin.post_empty(&retry_of(&failed)).await.expect(202);
    eventually(|| async { receiver.count() == 2 }).await;
    server.clock.advance(3_600_000);
    eventually(|| async { runs().await.as_array().unwrap().len() == 2 }).await;
    let statuses: Vec<Value> =
        runs().await.as_array().unwrap().iter().map(|run| run["status"].clone()).collect();
    assert!(statuses.iter().all(|status| status != "skipped"), "{statuses:?}");
}
