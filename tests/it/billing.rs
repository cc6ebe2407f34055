//! Billing: what the provider's webhook changes, and what it cannot.

use hmac::{Hmac, KeyInit as _, Mac as _};
use inlay_tests::{Org, Reply, TestServer};
use serde_json::{Value, json};
use sha2::Sha256;

use crate::access::Row;

/// Who may do what: method, path, and the answer to each caller.
pub const OPERATIONS: &[Row] = &[
    ("GET", "/v1/billing/plans", "1yyyyy31"),
    ("GET", "/v1/billing/checkout-config", "1yyyyy31"),
    ("GET", "/v1/billing", "133yyy31"),
    ("GET", "/v1/billing/portal", "133yyy31"),
];

const KEY: &str = "pdl_ntfset_test_key";

async fn server() -> TestServer {
    let mut server = TestServer::with_plan("free").await;
    server.billing = inlay_server::BillingConfig {
        billing_api_url: "http://127.0.0.1:9".to_owned(),
        billing_api_key: Some("pdl_api".to_owned()),
        billing_client_token: Some("live_client".to_owned()),
        billing_environment: "sandbox".to_owned(),
        billing_prices: inlay_server::Prices(vec![
            ("growth".to_owned(), "pri_growth".to_owned()),
            ("scale".to_owned(), "pri_scale".to_owned()),
        ]),
        billing_notification_key: vec!["old_key".to_owned(), KEY.to_owned()],
        billing_tolerance_seconds: 300,
    };
    server.restart().await;
    server
}

fn sign(key: &str, ts: i64, body: &str) -> String {
    let mut mac = Hmac::<Sha256>::new_from_slice(key.as_bytes()).unwrap();
    mac.update(format!("{ts}:{body}").as_bytes());
    let h1: String = mac.finalize().into_bytes().iter().map(|byte| format!("{byte:02x}")).collect();
    format!("ts={ts};h1={h1}")
}

async fn post(server: &TestServer, signature: &str, body: &str) -> Reply {
    let headers = [("content-type", "application/json"), ("billing-signature", signature)];
    server.anonymous().post_raw("/webhooks/billing", &headers, body.as_bytes().to_vec()).await
}

async fn send(server: &TestServer, event: &Value) -> Reply {
    let body = event.to_string();
    let now = inlay_server::engine::Clock::now_ms(&*server.clock) / 1_000;
    post(server, &sign(KEY, now, &body), &body).await
}

fn event(org: &Org, id: &str, kind: &str, at: &str, price: &str) -> Value {
    json!({
        "event_id": id, "event_type": format!("subscription.{kind}"), "occurred_at": at,
        "notification_id": "ntf_1",
        "data": {
            "id": "sub_1", "status": "active", "customer_id": "ctm_1",
            "custom_data": {"org_id": org.body["org"]["id"]},
            "items": [{"price": {"id": price}, "quantity": 1}],
            "current_billing_period": {"starts_at": "2026-11-01T00:00:00Z", "ends_at": "2026-12-01T00:00:00Z"},
        },
    })
}

#[tokio::test]
async fn a_subscription_changes_the_plan_once_and_in_order() {
    let mut server = server().await;
    let org = server.register("acme").await;
    let state = async || org.admin.get("/v1/billing").await.expect(200);
    let first = state().await;
    assert_eq!((&first["plan"], &first["status"]), (&json!("free"), &json!("none")));
    assert_eq!(first["limits"]["monthly_events"], 1_000_000);
    assert_eq!(first["usage"]["api_keys"], 1);
    org.admin.get("/v1/billing/portal").await.refused(404, "not_found");

    let created = event(&org, "evt_1", "created", "2026-11-20T10:00:00Z", "pri_growth");
    assert_eq!(send(&server, &created).await.expect(200)["status"], "applied");
    let grown = state().await;
    assert_eq!((&grown["plan"], &grown["status"]), (&json!("growth"), &json!("active")));
    assert_eq!(grown["current_period_end"], "2026-12-01T00:00:00.000Z");

    let updated = event(&org, "evt_2", "updated", "2026-11-20T10:05:00Z", "pri_scale");
    assert_eq!(send(&server, &updated).await.expect(200)["status"], "applied");
    assert_eq!(state().await["plan"], "scale");
    // Sent again, and late: the state is what happened last.
    for repeat in [&created, &updated] {
        assert_eq!(send(&server, repeat).await.expect(200)["status"], "duplicate");
    }
    let mut other = updated.clone();
    other["data"]["items"][0]["price"]["id"] = json!("pri_growth");
    assert_eq!(send(&server, &other).await.expect(200)["status"], "duplicate");
    let late = event(&org, "evt_0", "created", "2026-11-20T09:59:00Z", "pri_growth");
    assert_eq!(send(&server, &late).await.expect(200)["status"], "ignored");
    assert_eq!(state().await["plan"], "scale");

    server.restart().await;
    let org_again = server.anonymous().with_bearer(org.body["api_key"]["key"].as_str().unwrap());
    let state = async || org_again.get("/v1/billing").await.expect(200);
    assert_eq!(send(&server, &created).await.expect(200)["status"], "duplicate");
    let due = event(&org, "evt_3", "past_due", "2026-11-21T10:00:00Z", "pri_scale");
    assert_eq!(send(&server, &due).await.expect(200)["status"], "applied");
    assert_eq!(
        (&state().await["plan"], &state().await["status"]),
        (&json!("scale"), &json!("past_due"))
    );
    let ended = event(&org, "evt_4", "canceled", "2026-11-22T10:00:00Z", "pri_scale");
    assert_eq!(send(&server, &ended).await.expect(200)["status"], "applied");
    assert_eq!(
        (&state().await["plan"], &state().await["status"]),
        (&json!("free"), &json!("canceled"))
    );

    let audit = org_again.get("/v1/audit?action=billing.update").await.expect(200);
    let rows = audit["data"].as_array().unwrap();
    assert_eq!(rows.len(), 4, "one row a change");
    assert_eq!(rows[0]["actor"]["type"], "system");
}

#[tokio::test]
async fn what_is_not_for_us_changes_nothing() {
    let server = server().await;
    let org = server.register("acme").await;
    let mut unknown_org = event(&org, "evt_1", "created", "2026-11-20T10:00:00Z", "pri_growth");
    unknown_org["data"]["custom_data"]["org_id"] = json!("0190aaaa-0000-7000-8000-000000000000");
    let mut no_org = unknown_org.clone();
    no_org["event_id"] = json!("evt_2");
    no_org["data"]["custom_data"] = Value::Null;
    let mut path = unknown_org.clone();
    path["event_id"] = json!("evt_3");
    path["data"]["custom_data"]["org_id"] = json!("../g/user");
    let mut other_type = event(&org, "evt_4", "created", "2026-11-20T10:00:00Z", "pri_scale");
    other_type["event_type"] = json!("transaction.completed");
    for event in [&unknown_org, &no_org, &path, &other_type] {
        assert_eq!(send(&server, event).await.expect(200)["status"], "ignored", "{event}");
    }
    let billing = org.admin.get("/v1/billing").await.expect(200);
    assert_eq!((&billing["plan"], &billing["status"]), (&json!("free"), &json!("none")));
    let no_price = event(&org, "evt_5", "created", "2026-11-20T10:00:00Z", "pri_other");
    assert_eq!(send(&server, &no_price).await.expect(200)["status"], "applied");
    let billing = org.admin.get("/v1/billing").await.expect(200);
    assert_eq!((&billing["plan"], &billing["status"]), (&json!("free"), &json!("active")));
    for (body, field) in [
        (json!({"event_type": "x", "occurred_at": "2026-11-20T10:00:00Z"}), "event_id"),
        (json!({"event_id": "e", "event_type": "x", "occurred_at": "yesterday"}), "occurred_at"),
    ] {
        let reply = send(&server, &body).await;
        assert_eq!(reply.json()["field"], field, "{}", reply.text);
    }
}

#[tokio::test]
async fn a_replaced_subscription_and_an_unknown_status_take_nothing_away() {
    let server = server().await;
    let org = server.register("acme").await;
    let state = async || {
        let billing = org.admin.get("/v1/billing").await.expect(200);
        (billing["plan"].clone(), billing["status"].clone())
    };
    let mut paused = event(&org, "evt_0", "created", "2026-11-20T09:00:00Z", "pri_scale");
    paused["data"]["status"] = json!("paused");
    assert_eq!(send(&server, &paused).await.expect(200)["status"], "ignored");
    assert_eq!(state().await, (json!("free"), json!("none")));
    let first = event(&org, "evt_1", "created", "2026-11-20T10:00:00Z", "pri_growth");
    assert_eq!(send(&server, &first).await.expect(200)["status"], "applied");
    let mut second = event(&org, "evt_2", "created", "2026-11-20T11:00:00Z", "pri_scale");
    second["data"]["id"] = json!("sub_2");
    assert_eq!(send(&server, &second).await.expect(200)["status"], "applied");
    // The first one ends later than the second one began.
    let ended = event(&org, "evt_3", "canceled", "2026-11-20T12:00:00Z", "pri_growth");
    assert_eq!(send(&server, &ended).await.expect(200)["status"], "ignored");
    assert_eq!(state().await, (json!("scale"), json!("active")));
    let mut over = event(&org, "evt_4", "canceled", "2026-11-20T13:00:00Z", "pri_scale");
    over["data"]["id"] = json!("sub_2");
    assert_eq!(send(&server, &over).await.expect(200)["status"], "applied");
    assert_eq!(state().await, (json!("free"), json!("canceled")));
}

#[tokio::test]
async fn only_a_signature_of_ours_and_of_now_counts() {
    let server = server().await;
    let org = server.register("acme").await;
    let body = event(&org, "evt_1", "created", "2026-11-20T10:00:00Z", "pri_growth").to_string();
    let now = inlay_tests::NOW_MS / 1_000;
    let good = sign(KEY, now, &body);
    for signature in [
        "",
        "nonsense",
        &sign("other", now, &body),
        &sign(KEY, now - 400, &body),
        &sign(KEY, now + 400, &body),
    ] {
        post(&server, signature, &body).await.refused(401, "unauthenticated");
    }
    post(&server, &good, &format!("{body} ")).await.refused(401, "unauthenticated");
    let headers = [("billing-signature", &*good), ("billing-signature", &*good)];
    let twice =
        server.anonymous().post_raw("/webhooks/billing", &headers, body.clone().into()).await;
    twice.refused(401, "unauthenticated");
    // A bad signature is refused before the body is looked at.
    post(&server, "ts=1;h1=00", "{").await.refused(401, "unauthenticated");
    post(&server, &sign(KEY, now, "{"), "{").await.refused(400, "invalid_json");
    assert_eq!(org.admin.get("/v1/billing").await.expect(200)["plan"], "free");

    let h1 = good.split(';').nth(1).unwrap();
    let rotated = format!("{};{h1}", sign("retired", now, &body));
    assert_eq!(post(&server, &rotated, &body).await.expect(200)["status"], "applied");
    let old = sign("old_key", now, &body);
    assert_eq!(post(&server, &old, &body).await.expect(200)["status"], "duplicate");

    let padded = |bytes: usize| {
        let event = json!({"event_id": "evt_9", "event_type": "x", "occurred_at": "2026-11-20T10:00:00Z", "pad": ""});
        let short = event.to_string();
        short.replace("\"pad\":\"\"", &format!("\"pad\":\"{}\"", "x".repeat(bytes - short.len())))
    };
    let whole = padded(1 << 20);
    post(&server, &sign(KEY, now, &whole), &whole).await.expect(200);
    let more = padded((1 << 20) + 1);
    post(&server, &sign(KEY, now, &more), &more).await.refused(413, "payload_too_large");
}

#[tokio::test]
async fn the_same_event_at_once_has_one_effect() {
    let server = server().await;
    let org = server.register("acme").await;
    let event = event(&org, "evt_1", "created", "2026-11-20T10:00:00Z", "pri_growth");
    let sent = (0..20).map(|_| send(&server, &event));
    let mut applied = 0;
    for reply in futures(sent).await {
        applied += usize::from(reply.expect(200)["status"] == "applied");
    }
    assert_eq!(applied, 1);
    let audit = org.admin.get("/v1/audit?action=billing.update").await.expect(200);
    assert_eq!(audit["data"].as_array().unwrap().len(), 1);
}

/// Runs all at once.
async fn futures<F: Future<Output = Reply>>(all: impl Iterator<Item = F>) -> Vec<Reply> {
    let mut all: Vec<_> = all.map(Box::pin).collect();
    let mut done = Vec::new();
    std::future::poll_fn(|context| {
        all.retain_mut(|one| match one.as_mut().poll(context) {
            std::task::Poll::Ready(reply) => {
                done.push(reply);
                false
            }
            std::task::Poll::Pending => true,
        });
        if all.is_empty() { std::task::Poll::Ready(()) } else { std::task::Poll::Pending }
    })
    .await;
    done
}

#[tokio::test]
async fn checkout_and_portal_go_through_the_configured_api() {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    let unconfigured = TestServer::start().await;
    let org = unconfigured.register("acme").await;
    for path in ["/v1/billing/checkout-config", "/v1/billing/portal"] {
        org.admin.get(path).await.refused(503, "billing_not_configured");
    }
    post(&unconfigured, "ts=1;h1=00", "{}").await.refused(503, "billing_not_configured");
    assert_eq!(org.admin.get("/v1/billing").await.expect(200)["plan"], "self_hosted");
    assert!(org.admin.get("/v1/billing").await.expect(200)["limits"]["api_keys"].is_null());

    // A stand-in of the billing API.
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let mut server = server().await;
    server.billing.billing_api_url = format!("http://{}/api/", listener.local_addr().unwrap());
    server.restart().await;
    let org = server.register("acme").await;
    let config = org.console.get("/v1/billing/checkout-config").await.expect(200);
    let expected = json!({
        "environment": "sandbox", "client_token": "live_client",
        "prices": {"growth": "pri_growth", "scale": "pri_scale"}, "org_id": org.body["org"]["id"],
    });
    assert_eq!(config, expected);
    let mut created = event(&org, "evt_1", "created", "2026-11-20T10:00:00Z", "pri_growth");
    created["data"]["customer_id"] = json!("ctm_1/../x");
    send(&server, &created).await.expect(200);
    let stand_in = tokio::spawn(async move {
        let mut asked = Vec::new();
        let good = r#"{"data":{"id":"cpls_1","urls":{"general":{"overview":"https://portal.example/x"}}}}"#;
        for (status, body) in [("201 Created", good), ("500 Oops", "{}"), ("200 OK", "garbage")] {
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut head = vec![0; 4_096];
            let length = stream.read(&mut head).await.unwrap();
            asked.push(String::from_utf8_lossy(&head[..length]).into_owned());
            let length = body.len();
            let answer = format!(
                "HTTP/1.1 {status}\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n{body}"
            );
            stream.write_all(answer.as_bytes()).await.unwrap();
        }
        asked
    });
    assert_eq!(
        org.admin.get("/v1/billing/portal").await.expect(200),
        json!({"url": "https://portal.example/x"})
    );
    for _ in 0..2 {
        let reply = org.admin.get("/v1/billing/portal").await;
        reply.refused(503, "overloaded");
        assert!(!reply.text.contains("garbage") && reply.headers.contains_key("retry-after"));
    }
    let asked = stand_in.await.unwrap();
    assert!(
        asked[0].starts_with("POST /api/customers/ctm_1%2F..%2Fx/portal-sessions HTTP/1.1"),
        "{}",
        asked[0]
    );
    assert!(asked[0].contains("authorization: Bearer pdl_api"));
    org.admin.get("/v1/billing/portal").await.refused(503, "overloaded");
}
