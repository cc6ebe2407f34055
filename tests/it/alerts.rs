//! Alerts from the event to the receiver: what fires, what is told, and what receivers do to it.

use inlay_tests::{Client, Manner, Org, Receiver, TestServer, eventually};
use serde_json::{Value, json};

use crate::{access::Row, dashboards::widget};

/// Who may do what: method, path, and the answer to each caller.
pub const OPERATIONS: &[Row] = &[
    ("GET", "/v1/alerts", "1yyyyy31"),
    ("GET", "/v1/alerts/{number}", "1yyyyy31"),
    ("GET", "/v1/alerts/{number}/events", "1yyyyy31"),
    ("POST", "/v1/alerts", "133yyy31"),
    ("PATCH", "/v1/alerts/{number}", "133yyy31"),
    ("DELETE", "/v1/alerts/{number}", "133yyy31"),
];

const MINUTE_MS: i64 = 60_000;

pub async fn start() -> (TestServer, Org, Value) {
    let mut server = TestServer::start().await;
    server.webhook_allow = vec!["127.0.0.0/8".to_owned()];
    server.restart().await;
    let org = server.register("acme").await;
    let body = json!({"name": "Usage", "widgets": [widget("calls"), widget("more")]});
    let dashboard = org.admin.post("/v1/dashboards", &body).await.expect(201)["id"].clone();
    (server, org, dashboard)
}

/// Waits before attempts, with all that chance may add.
const AFTER_30_S: i64 = 36_000;
const AFTER_120_S: i64 = 144_000;

pub fn rule(dashboard: &Value) -> Value {
    json!({
        "dashboard_id": dashboard, "widget_id": "calls", "name": "Too many", "condition_type": "threshold",
        "operator": "gt", "threshold_value": 2, "lookback_minutes": 10,
    })
}

pub fn with(rule: &Value, parts: Value) -> Value {
    let mut rule = rule.clone();
    for (name, value) in parts.as_object().unwrap() {
        rule[name] = value.clone();
    }
    rule
}

pub async fn make(org: &Org, rule: &Value) -> Value {
    org.admin.post("/v1/alerts", rule).await.expect(201)
}

/// Sends events of now.
async fn send(org: &Org, tenant: &str, count: usize) {
    let events: Vec<Value> =
        (0..count).map(|_| json!({"event_name": "api_call", "tenant_id": tenant})).collect();
    org.admin.post("/v1/events", &json!({"events": events})).await.expect(200);
}

/// Time passes, and all rules are looked at.
fn pass(server: &TestServer, minutes: i64) {
    server.clock.advance(minutes * MINUTE_MS);
    server.evaluate_alerts();
}

pub async fn events(client: &Client, alert: u64) -> Vec<Value> {
    let path = format!("/v1/alerts/{alert}/events");
    client.get(&path).await.expect(200)["data"].as_array().unwrap().clone()
}

/// Waits until the newest event of a rule has nothing on its way any more.
async fn settled(org: &Org, alert: u64, told: usize) -> Value {
    eventually(|| async {
        let events = events(&org.admin, alert).await;
        let deliveries =
            events.first().map(|event| event["deliveries"].as_array().unwrap().clone());
        deliveries.is_some_and(|all| {
            all.len() == told && all.iter().all(|one| one["status"] != "pending")
        })
    })
    .await;
    events(&org.admin, alert).await.remove(0)
}

pub async fn attempts(org: &Org) -> Vec<Value> {
    let rules = org.admin.get("/v1/webhooks").await.expect(200);
    let mut attempts = rules["rules"][0]["attempts"].as_array().unwrap().clone();
    attempts.reverse();
    attempts
}

#[tokio::test(flavor = "multi_thread")]
async fn an_alert_fires_recovers_and_says_so() {
    let (mut server, org, dashboard) = start().await;
    let receiver = Receiver::start(&[Manner::Status(200, "thanks".to_owned())]).await;
    let parts = json!({"webhook_url": receiver.url, "email_to": ["ops@acme.example"]});
    make(&org, &with(&rule(&dashboard), parts)).await;
    send(&org, "a", 2).await;
    pass(&server, 1);
    let calm = org.admin.get("/v1/alerts/1").await.expect(200);
    assert_eq!((&calm["state"], &calm["last_value"]), (&json!("ok"), &json!(2.0)));
    assert_eq!(calm["last_evaluated_at"], "2026-11-20T10:18:36.790Z");
    send(&org, "b", 1).await;
    pass(&server, 1);
    let event = settled(&org, 1, 2).await;
    let told = json!([
        {"kind": "email", "to": "ops@acme.example", "status": "sent", "error": null},
        {"kind": "webhook", "to": receiver.url, "status": "sent", "error": null},
    ]);
    let expected = json!({
        "id": event["id"], "alert_id": 1, "state": "firing", "value": 3.0, "threshold_value": 2.0,
        "window_from": "2026-11-20T10:09:36.790Z", "window_to": "2026-11-20T10:19:36.790Z",
        "tenant_id": null, "reason": null, "deliveries": told, "created_at": "2026-11-20T10:19:36.790Z",
    });
    assert_eq!(event, expected);
    let firing = org.admin.get("/v1/alerts/1").await.expect(200);
    assert_eq!(
        (&firing["state"], &firing["state_since"]),
        (&json!("firing"), &event["created_at"])
    );

    let posted = receiver.received().remove(0);
    let body = json!({
        "alert_id": 1, "name": "Too many", "dashboard_id": dashboard, "widget_id": "calls",
        "condition": {"type": "threshold", "operator": "gt", "value": 2.0}, "state": "firing",
        "fired_at": "2026-11-20T10:19:36.790Z",
    });
    assert_eq!(posted.json(), body);
    assert_eq!(posted.header("content-type"), Some("application/json"));
    assert!(
        posted.head.starts_with("post /in/secret http/1.1")
            && posted.header("webhook-id").is_some()
            && posted.header("webhook-signature").is_none()
    );

    // A restart changes nothing: it fires, and is not told again.
    server.restart().await;
    let org = Org {
        admin: server.anonymous().with_bearer(org.body["api_key"]["key"].as_str().unwrap()),
        ..org
    };
    pass(&server, 1);
    assert_eq!(org.admin.get("/v1/alerts/1").await.expect(200)["state"], "firing");
    assert_eq!(events(&org.admin, 1).await.len(), 1);

    pass(&server, 20);
    let resolved = settled(&org, 1, 2).await;
    assert_eq!((&resolved["state"], &resolved["value"]), (&json!("resolved"), &json!(0.0)));
    let told = receiver.received()[1].json();
    assert_eq!((&told["state"], &told["fired_at"]), (&json!("resolved"), &body["fired_at"]));
    assert_eq!(told["resolved_at"], resolved["created_at"]);
    assert_eq!(receiver.count(), 2, "each change once");
    let attempts = attempts(&org).await;
    assert_eq!(attempts.len(), 2);
    assert_eq!(
        (&attempts[0]["status_code"], &attempts[0]["attempt"], &attempts[0]["response_excerpt"]),
        (&json!(200), &json!(1), &json!("thanks"))
    );
    let mails = server.outbox();
    let firing = mails.iter().find(|mail| mail.contains("Subject: Firing: Too many")).unwrap();
    for part in [
        "To: ops@acme.example",
        "above 2",
        "Usage",
        "/console/alerts/1",
        "multipart/alternative",
        "image/png",
    ] {
        assert!(firing.contains(part), "{part}\n{firing}");
    }
    assert!(
        mails.len() == 2 && mails.iter().any(|mail| mail.contains("Subject: Resolved: Too many"))
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn each_condition_is_about_its_own_number() {
    let (server, org, dashboard) = start().await;
    let rule = rule(&dashboard);
    make(&org, &with(&rule, json!({"tenant_id": "a"}))).await;
    let fell = json!({"condition_type": "delta", "operator": "lte", "threshold_value": -50});
    make(&org, &with(&rule, fell)).await;
    let quiet = json!({
        "dashboard_id": dashboard, "widget_id": "calls", "name": "Quiet", "condition_type": "no_data",
        "lookback_minutes": 10,
    });
    make(&org, &quiet).await;
    make(&org, &with(&rule, json!({"for_minutes": 3}))).await;
    let states = async || {
        let list = org.admin.get("/v1/alerts").await.expect(200);
        let mut rules = list["data"].as_array().unwrap().clone();
        rules.reverse();
        rules
            .iter()
            .map(|rule| (rule["state"].as_str().unwrap().to_owned(), rule["last_value"].clone()))
            .collect::<Vec<_>>()
    };
    let is = |state: &str, value: Value| (state.to_owned(), value);
    pass(&server, 1);
    let nothing = [
        is("ok", json!(0.0)),
        is("ok", json!(0.0)),
        is("firing", json!(0.0)),
        is("ok", json!(0.0)),
    ];
    assert_eq!(states().await, nothing);
    send(&org, "b", 8).await;
    pass(&server, 1);
    // From nothing to something is no percentage: the value is missing, the state kept.
    let some =
        [is("ok", json!(0.0)), is("ok", Value::Null), is("ok", json!(8.0)), is("ok", json!(8.0))];
    assert_eq!(states().await, some, "of tenant a there is nothing");
    send(&org, "a", 3).await;
    pass(&server, 3);
    let more = [
        is("firing", json!(3.0)),
        is("ok", Value::Null),
        is("ok", json!(11.0)),
        is("firing", json!(11.0)),
    ];
    assert_eq!(states().await, more, "three minutes after it began to hold");
    // 8 are ten minutes old, 3 of them are not.
    pass(&server, 7);
    assert_eq!(states().await[1], is("firing", json!(-62.5)));
}

#[tokio::test(flavor = "multi_thread")]
async fn receivers_that_misbehave_are_tried_three_times() {
    let (server, org, dashboard) = start().await;
    let inside = Receiver::start(&[Manner::Status(200, String::new())]).await;
    let refused = "http://127.0.0.1:1024/nobody".to_owned();
    let long = "é".repeat(400);
    for (number, (manner, status, error, excerpt)) in [
        (Manner::Status(500, long.clone()), 500, Value::Null, json!("é".repeat(256))),
        (Manner::Status(404, "no".to_owned()), 404, Value::Null, json!("no")),
        (Manner::Redirect(inside.url.clone()), 302, Value::Null, Value::Null),
        (Manner::Close, 0, json!("the connection was closed"), Value::Null),
        (Manner::Garbage, 0, json!("the answer is not HTTP"), Value::Null),
        (Manner::EndlessHead, 0, json!("the answer is not HTTP"), Value::Null),
    ]
    .into_iter()
    .enumerate()
    {
        let receiver = Receiver::start(&[manner]).await;
        let made = make(&org, &with(&rule(&dashboard), json!({"webhook_url": receiver.url}))).await;
        let alert = made["id"].as_u64().unwrap();
        send(&org, "a", 3).await;
        pass(&server, 1);
        for (count, wait_s) in [(1, 30), (2, 120), (3, 0)] {
            eventually(|| async { attempts(&org).await.len() == count }).await;
            // Not a moment earlier than it should.
            server.clock.advance((wait_s - 1) * 1_000);
            tokio::time::sleep(std::time::Duration::from_millis(300)).await;
            assert_eq!(receiver.count(), count, "{number}");
            // Chance adds up to a fifth.
            server.clock.advance(1_000 + wait_s * 200);
        }
        let event = settled(&org, alert, 1).await;
        assert_eq!(event["deliveries"][0]["status"], "failed");
        assert!(event["deliveries"][0]["error"].is_string());
        for (at, attempt) in attempts(&org).await.iter().enumerate() {
            assert_eq!(attempt["attempt"], json!(at + 1));
            let seen = (&attempt["status_code"], &attempt["error"], &attempt["response_excerpt"]);
            assert_eq!(seen, (&json!(status), &error, &excerpt), "{number}");
        }
        org.admin.delete(&format!("/v1/alerts/{alert}")).await.expect(204);
    }
    assert_eq!(inside.count(), 0, "a redirect is not followed");
    let made = make(&org, &with(&rule(&dashboard), json!({"webhook_url": refused}))).await;
    send(&org, "a", 3).await;
    pass(&server, 1);
    eventually(|| async { attempts(&org).await.len() == 1 }).await;
    assert_eq!(attempts(&org).await[0]["error"], "connection refused");
    // A rule that is gone tells nobody any more.
    org.admin.delete(&format!("/v1/alerts/{}", made["id"])).await.expect(204);
    server.clock.advance(10 * MINUTE_MS);
    tokio::time::sleep(std::time::Duration::from_millis(600)).await;
    assert_eq!(org.admin.get("/v1/webhooks").await.expect(200)["rules"], json!([]));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_counts_however_its_body_behaves() {
    let (server, org, dashboard) = start().await;
    for manner in [Manner::Endless(200), Manner::Stall(204)] {
        let receiver = Receiver::start(&[manner]).await;
        let made = make(&org, &with(&rule(&dashboard), json!({"webhook_url": receiver.url}))).await;
        send(&org, "a", 3).await;
        pass(&server, 1);
        let alert = made["id"].as_u64().unwrap();
        // The one that stalls is let go after ten seconds.
        eventually(|| async { receiver.count() == 1 }).await;
        let path = format!("/v1/alerts/{alert}/events");
        for _ in 0..60 {
            let event = org.admin.get(&path).await.expect(200)["data"][0].clone();
            if event["deliveries"][0]["status"] == "sent" {
                break;
            }
            tokio::time::sleep(std::time::Duration::from_millis(200)).await;
        }
        assert_eq!(settled(&org, alert, 1).await["deliveries"][0]["status"], "sent");
        let attempt = &attempts(&org).await[0];
        assert!(attempt["duration_ms"].as_u64().unwrap() < 11_000, "{attempt}");
        let excerpt = attempt["response_excerpt"].as_str().map_or(0, str::len);
        assert!(excerpt <= 512, "{excerpt}");
        org.admin.delete(&format!("/v1/alerts/{alert}")).await.expect(204);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_receiver_that_hangs_is_left_after_ten_seconds_and_holds_up_nobody() {
    let (server, org, dashboard) = start().await;
    let slow = Receiver::start(&[Manner::Hang]).await;
    let quick = Receiver::start(&[Manner::Status(200, String::new())]).await;
    make(&org, &with(&rule(&dashboard), json!({"webhook_url": slow.url}))).await;
    make(&org, &with(&rule(&dashboard), json!({"webhook_url": quick.url}))).await;
    send(&org, "a", 3).await;
    pass(&server, 1);
    let began = std::time::Instant::now();
    eventually(|| async { quick.count() == 1 }).await;
    assert!(began.elapsed().as_secs() < 5, "{:?}", began.elapsed());
    tokio::time::sleep(std::time::Duration::from_secs(8)).await;
    eventually(|| async { !slow_attempts(&org).await.is_empty() }).await;
    let attempt = &slow_attempts(&org).await[0];
    assert_eq!(
        (&attempt["status_code"], &attempt["error"]),
        (&json!(0), &json!("no answer within 10 s"))
    );
    let took = attempt["duration_ms"].as_u64().unwrap();
    assert!((10_000..11_000).contains(&took), "{took}");
}

/// The attempts of the rule that was made first.
async fn slow_attempts(org: &Org) -> Vec<Value> {
    let rules = org.admin.get("/v1/webhooks").await.expect(200);
    let rule = rules["rules"].as_array().unwrap().iter().find(|rule| rule["source_id"] == 1);
    rule.unwrap()["attempts"].as_array().unwrap().clone()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_recovery_never_overtakes_its_alarm() {
    let (server, org, dashboard) = start().await;
    let no = Manner::Status(503, String::new());
    let receiver = Receiver::start(&[no.clone(), no, Manner::Status(200, String::new())]).await;
    make(&org, &with(&rule(&dashboard), json!({"webhook_url": receiver.url}))).await;
    send(&org, "a", 3).await;
    pass(&server, 1);
    eventually(|| async { attempts(&org).await.len() == 1 }).await;
    // It recovers while the alarm is still on its way.
    pass(&server, 20);
    eventually(|| async { attempts(&org).await.len() == 2 }).await;
    tokio::time::sleep(std::time::Duration::from_millis(600)).await;
    assert_eq!(receiver.count(), 2, "the recovery waits");
    server.clock.advance(AFTER_120_S);
    eventually(|| async { receiver.count() == 4 }).await;
    let states: Vec<Value> =
        receiver.received().iter().map(|one| one.json()["state"].clone()).collect();
    assert_eq!(states, ["firing", "firing", "firing", "resolved"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn editing_the_condition_or_switching_off_starts_anew() {
    let (server, org, dashboard) = start().await;
    make(&org, &rule(&dashboard)).await;
    send(&org, "a", 5).await;
    pass(&server, 1);
    let state = async || org.admin.get("/v1/alerts/1").await.expect(200)["state"].clone();
    assert_eq!(state().await, "firing");
    // Another name is not another condition.
    org.admin.patch("/v1/alerts/1", &json!({"name": "Many"})).await.expect(200);
    assert_eq!(state().await, "firing");
    let changed = org.admin.patch("/v1/alerts/1", &json!({"threshold_value": 3})).await.expect(200);
    assert_eq!((&changed["state"], &changed["last_value"]), (&json!("ok"), &Value::Null));
    pass(&server, 1);
    assert_eq!(state().await, "firing");
    org.admin.patch("/v1/alerts/1", &json!({"enabled": false})).await.expect(200);
    pass(&server, 1);
    let off = org.admin.get("/v1/alerts/1").await.expect(200);
    assert_eq!((&off["state"], &off["last_evaluated_at"]), (&json!("ok"), &Value::Null));
    org.admin.patch("/v1/alerts/1", &json!({"enabled": true})).await.expect(200);
    pass(&server, 1);
    assert_eq!(state().await, "firing");
    let states: Vec<Value> =
        events(&org.admin, 1).await.iter().map(|one| one["state"].clone()).collect();
    assert_eq!(states, ["firing", "firing", "firing"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_deleted_ends_its_alerts_with_a_reason() {
    let (server, org, dashboard) = start().await;
    let receiver = Receiver::start(&[Manner::Status(200, String::new())]).await;
    make(&org, &with(&rule(&dashboard), json!({"webhook_url": receiver.url}))).await;
    make(&org, &with(&rule(&dashboard), json!({"widget_id": "more"}))).await;
    send(&org, "a", 5).await;
    pass(&server, 1);
    settled(&org, 1, 1).await;
    let path = format!("/v1/dashboards/{}", dashboard.as_str().unwrap());
    org.admin.delete(&format!("{path}/widgets/calls")).await.expect(204);
    pass(&server, 1);
    let event = settled(&org, 1, 1).await;
    assert_eq!(
        (&event["state"], &event["reason"]),
        (&json!("resolved"), &json!("the widget was deleted"))
    );
    assert_eq!(receiver.received()[1].json()["state"], "resolved");
    let ended = org.admin.get("/v1/alerts/1").await.expect(200);
    assert_eq!((&ended["enabled"], &ended["state"]), (&json!(false), &json!("ok")));
    assert_eq!(ended["last_error"], "the widget was deleted");
    assert_eq!(org.admin.get("/v1/alerts/2").await.expect(200)["state"], "firing");
    org.admin.delete(&path).await.expect(204);
    pass(&server, 1);
    assert_eq!(
        org.admin.get("/v1/alerts/2").await.expect(200)["last_error"],
        "the dashboard was deleted"
    );
    let audit = org.admin.get("/v1/audit?action=alert.update").await.expect(200);
    let actors: Vec<Value> =
        audit["data"].as_array().unwrap().iter().map(|row| row["actor"]["id"].clone()).collect();
    assert_eq!(actors, ["alerts", "alerts"]);
    pass(&server, 1);
    assert_eq!(events(&org.admin, 1).await.len(), 2, "it ended once");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rule_per_tenant_watches_each_by_himself() {
    let (server, org, dashboard) = start().await;
    let receiver = Receiver::start(&[Manner::Status(200, String::new())]).await;
    let both = json!({"per_tenant": true, "tenant_id": "a"});
    let reply = org.admin.post("/v1/alerts", &with(&rule(&dashboard), both)).await;
    assert_eq!(reply.refused(400, "invalid_field").as_deref(), Some("per_tenant"));
    let parts = json!({"per_tenant": true, "webhook_url": receiver.url});
    assert_eq!(make(&org, &with(&rule(&dashboard), parts)).await["tenants"], json!([]));
    send(&org, "a/1", 3).await;
    send(&org, "b", 2).await;
    pass(&server, 1);
    settled(&org, 1, 1).await;
    let state = org.admin.get("/v1/alerts/1").await.expect(200);
    assert_eq!((&state["state"], &state["last_value"]), (&json!("firing"), &json!(1.0)));
    let tenants: Vec<(Value, Value)> = state["tenants"]
        .as_array()
        .unwrap()
        .iter()
        .map(|tenant| (tenant["tenant_id"].clone(), tenant["state"].clone()))
        .collect();
    assert_eq!(tenants, [(json!("a/1"), json!("firing")), (json!("b"), json!("ok"))]);
    assert_eq!(receiver.received()[0].json()["tenant_id"], "a/1");
    send(&org, "b", 1).await;
    pass(&server, 1);
    eventually(|| async { receiver.count() == 2 }).await;
    pass(&server, 20);
    eventually(|| async { receiver.count() == 4 }).await;
    let mut told: Vec<(String, String)> = receiver
        .received()
        .iter()
        .map(|one| (one.json()["tenant_id"].to_string(), one.json()["state"].to_string()))
        .collect();
    told.sort();
    let expected = [("a/1", "firing"), ("a/1", "resolved"), ("b", "firing"), ("b", "resolved")];
    assert_eq!(told, expected.map(|(tenant, state)| (format!("{tenant:?}"), format!("{state:?}"))));
    assert_eq!(org.admin.get("/v1/alerts/1").await.expect(200)["state"], "ok");
    assert_eq!(events(&org.admin, 1).await.len(), 4);
}

/// The mails of the outbox, those of before included, as text. One that is being written is not among them.
fn mails(server: &TestServer) -> Vec<String> {
    let files = std::fs::read_dir(server.directory.path().join("outbox"));
    let texts =
        files.into_iter().flatten().map(|file| std::fs::read_to_string(file.unwrap().path()));
    let whole = texts.map(Result::unwrap).filter(|text| text.ends_with("--\r\n"));
    // Soft line breaks of quoted-printable.
    whole.map(|text| text.replace("=\r\n", "")).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_look_saw_of_many_tenants_is_one_mail_to_each_address() {
    let (server, org, dashboard) = start().await;
    let receiver = Receiver::start(&[Manner::Status(200, String::new())]).await;
    let addresses = ["ops@acme.example", "cs@acme.example"];
    let parts = json!({"per_tenant": true, "webhook_url": receiver.url, "email_to": addresses});
    make(&org, &with(&rule(&dashboard), parts)).await;
    for tenant in ["a", "b", "c"] {
        send(&org, tenant, 3).await;
    }
    pass(&server, 1);
    eventually(|| async { mails(&server).len() == 2 && receiver.count() == 3 }).await;
    for mail in mails(&server) {
        assert!(mail.contains("Subject: Firing for 3 tenants: Too many"), "{mail}");
        for tenant in ["a", "b", "c"] {
            assert!(mail.contains(&format!("{tenant}: firing, 3")), "{mail}");
        }
    }
    // Each event says that both have their mail.
    eventually(|| async {
        let sent = |event: &Value| {
            event["deliveries"].as_array().unwrap().iter().all(|one| one["status"] == "sent")
        };
        let events = events(&org.admin, 1).await;
        events.len() == 3
            && events
                .iter()
                .all(|event| event["deliveries"].as_array().unwrap().len() == 3 && sent(event))
    })
    .await;
    // One that changes alone has its own, as a rule about one tenant has.
    send(&org, "d", 3).await;
    pass(&server, 1);
    eventually(|| async { mails(&server).len() == 4 }).await;
    assert_eq!(
        mails(&server).iter().filter(|mail| mail.contains("Subject: Firing: Too many (d)")).count(),
        2
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn what_failed_together_is_not_tried_again_together() {
    let (server, org, dashboard) = start().await;
    let receiver = Receiver::start(&[Manner::Status(500, String::new())]).await;
    for number in 0..12 {
        let parts = json!({"name": format!("Rule {number}"), "webhook_url": receiver.url});
        make(&org, &with(&rule(&dashboard), parts)).await;
    }
    send(&org, "a", 3).await;
    pass(&server, 1);
    eventually(|| async { receiver.count() == 12 }).await;
    // Thirty seconds, and up to six more by chance: in the middle about half of them are due.
    let written = async || {
        let rules = org.admin.get("/v1/webhooks").await.expect(200)["rules"].clone();
        let attempts = |rule: &Value| rule["attempts"].as_array().unwrap().len();
        rules.as_array().unwrap().iter().map(attempts).sum::<usize>()
    };
    eventually(|| async { written().await == 12 }).await;
    server.clock.advance(33_000);
    eventually(|| async { receiver.count() > 12 }).await;
    tokio::time::sleep(std::time::Duration::from_secs(1)).await;
    assert!((14..=22).contains(&receiver.count()), "{}", receiver.count());
    server.clock.advance(AFTER_30_S - 33_000);
    eventually(|| async { receiver.count() == 24 }).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn webhooks_are_signed_on_demand() {
    use base64::{Engine as _, engine::general_purpose::STANDARD};
    use hmac::{Hmac, KeyInit, Mac};
    let (server, org, dashboard) = start().await;
    let receiver = Receiver::start(&[Manner::Status(500, String::new())]).await;
    let parts = json!({"webhook_url": receiver.url, "webhook_signed": true});
    let made = make(&org, &with(&rule(&dashboard), parts)).await;
    let secret = made["webhook_secret"].as_str().unwrap().to_owned();
    let shown = org.admin.get("/v1/alerts/1").await.expect(200);
    assert!(shown["webhook_signed"] == true && shown.get("webhook_secret").is_none());
    send(&org, "a", 3).await;
    pass(&server, 1);
    eventually(|| async { attempts(&org).await.len() == 1 }).await;
    server.clock.advance(AFTER_30_S);
    eventually(|| async { attempts(&org).await.len() == 2 }).await;
    let received = receiver.received();
    // Headers come in lower case.
    let signature = |secret: &str, one: &inlay_tests::Received| {
        let key = STANDARD.decode(secret.strip_prefix("whsec_").unwrap()).unwrap();
        let mut mac = Hmac::<sha2::Sha256>::new_from_slice(&key).unwrap();
        let (id, at) =
            (one.header("webhook-id").unwrap(), one.header("webhook-timestamp").unwrap());
        mac.update(format!("{id}.{at}.").as_bytes());
        mac.update(&one.body);
        format!("v1,{}", STANDARD.encode(mac.finalize().into_bytes())).to_lowercase()
    };
    for one in &received {
        let expected = signature(&secret, one);
        assert_eq!(one.header("webhook-signature"), Some(expected.as_str()));
    }
    assert_eq!(received[0].header("webhook-id"), received[1].header("webhook-id"));
    assert_ne!(received[0].header("webhook-timestamp"), received[1].header("webhook-timestamp"));
    // A new secret signs beside the one before for a day.
    let rotate = json!({"rotate_webhook_secret": true});
    let rotated = org.admin.patch("/v1/alerts/1", &rotate).await.expect(200);
    let new_secret = rotated["webhook_secret"].as_str().unwrap();
    assert_ne!(new_secret, secret);
    assert!(rotated["previous_secret_until"].is_string(), "{rotated}");
    for (later, signatures) in [(AFTER_120_S, 2), (25 * 60 * MINUTE_MS, 1)] {
        server.clock.advance(later);
        let before = receiver.count();
        org.admin.post_empty("/v1/alerts/1/test").await.expect(200);
        assert!(receiver.count() > before);
        let received = receiver.received();
        let last = received.last().unwrap();
        let mut expected = vec![signature(new_secret, last), signature(&secret, last)];
        expected.truncate(signatures);
        assert_eq!(last.header("webhook-signature"), Some(expected.join(" ").as_str()));
        let shown = org.admin.get("/v1/alerts/1").await.expect(200);
        assert_eq!(shown.get("previous_secret_until").is_some(), signatures == 2, "{shown}");
    }
    let off = org.admin.patch("/v1/alerts/1", &json!({"webhook_signed": false})).await.expect(200);
    let unsigned = org.admin.patch("/v1/alerts/1", &rotate).await;
    let field = unsigned.refused(400, "invalid_field");
    assert_eq!(field.as_deref(), Some("rotate_webhook_secret"));
    assert!(off["webhook_signed"] == false && off.get("webhook_secret").is_none());
    let on = org.admin.patch("/v1/alerts/1", &json!({"webhook_signed": true})).await.expect(200);
    assert!(on["webhook_secret"].as_str().is_some_and(|new| new != secret));
    let again = org.admin.patch("/v1/alerts/1", &json!({"webhook_signed": true})).await.expect(200);
    assert!(again.get("webhook_secret").is_none(), "shown once");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_busy_receiver_is_left_alone_for_as_long_as_it_says() {
    let (server, org, dashboard) = start().await;
    let busy = Manner::RetryAfter(429, 600);
    let receiver = Receiver::start(&[busy, Manner::Status(200, String::new())]).await;
    make(&org, &with(&rule(&dashboard), json!({"webhook_url": receiver.url}))).await;
    send(&org, "a", 3).await;
    pass(&server, 1);
    eventually(|| async { attempts(&org).await.len() == 1 }).await;
    server.clock.advance(599_000);
    tokio::time::sleep(std::time::Duration::from_millis(800)).await;
    assert_eq!(receiver.count(), 1);
    server.clock.advance(121_000);
    eventually(|| async { receiver.count() == 2 }).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn who_is_no_receiver_any_more_is_told_nothing_more() {
    let (server, org, dashboard) = start().await;
    let receiver = Receiver::start(&[Manner::Status(500, String::new())]).await;
    make(&org, &with(&rule(&dashboard), json!({"webhook_url": receiver.url}))).await;
    send(&org, "a", 3).await;
    pass(&server, 1);
    eventually(|| async { attempts(&org).await.len() == 1 }).await;
    org.admin.patch("/v1/alerts/1", &json!({"webhook_url": null})).await.expect(200);
    server.clock.advance(AFTER_30_S);
    tokio::time::sleep(std::time::Duration::from_millis(800)).await;
    assert_eq!(receiver.count(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_receiver_that_floods_is_cut_off_and_holds_up_nobody() {
    let (server, org, dashboard) = start().await;
    let receiver = Receiver::start(&[Manner::Flood]).await;
    make(&org, &with(&rule(&dashboard), json!({"webhook_url": receiver.url}))).await;
    let began = std::time::Instant::now();
    let admin = org.admin.clone();
    let test = tokio::spawn(async move { admin.post_empty("/v1/alerts/1/test").await.expect(200) });
    let mut longest = std::time::Duration::ZERO;
    for _ in 0..20 {
        let asked = std::time::Instant::now();
        server.anonymous().get("/healthz").await.expect(200);
        longest = longest.max(asked.elapsed());
        tokio::time::sleep(std::time::Duration::from_millis(100)).await;
    }
    assert!(longest.as_secs() < 2, "{longest:?}");
    let told = test.await.unwrap();
    assert_eq!(told["deliveries"][0]["error"], "no answer within 10 s");
    assert!(began.elapsed().as_secs() < 20, "{:?}", began.elapsed());
}
