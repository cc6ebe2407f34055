//! Trying an alert: a test message to its receivers, a preview of when it would have fired, and the language of its mails.

use inlay_tests::{Manner, Receiver, quoted_printable};
use serde_json::{Value, json};

use crate::{
    access::Row,
    alerts::{attempts, events, make, rule, start, with},
};

/// Who may do what: method, path, and the answer to each caller.
pub const OPERATIONS: &[Row] =
    &[("POST", "/v1/alerts/{number}/test", "133yyy31"), ("POST", "/v1/alerts/preview", "133yyy31")];

#[tokio::test(flavor = "multi_thread")]
async fn a_test_reaches_all_receivers_and_changes_nothing() {
    let (server, org, dashboard) = start().await;
    make(&org, &rule(&dashboard)).await;
    org.admin.post_empty("/v1/alerts/1/test").await.refused(409, "conflict");
    let receiver = Receiver::start(&[Manner::Status(418, "tea".to_owned())]).await;
    let parts =
        json!({"webhook_url": receiver.url, "email_to": ["ops@acme.example", "b@acme.example"]});
    make(&org, &with(&rule(&dashboard), parts)).await;
    let told = org.admin.post_empty("/v1/alerts/2/test").await.expect(200);
    let expected = json!({"deliveries": [
        {"kind": "email", "to": "ops@acme.example", "status": "sent", "error": null},
        {"kind": "email", "to": "b@acme.example", "status": "sent", "error": null},
        {"kind": "webhook", "to": receiver.url, "status": "failed", "error": "the receiver answered 418"},
    ]});
    assert_eq!(told, expected);
    let body = receiver.received()[0].json();
    assert_eq!((&body["name"], &body["state"]), (&json!("Test of Too many"), &json!("firing")));
    assert!(server.outbox().iter().all(|mail| mail.contains("Test of Too many")));
    assert_eq!(attempts(&org).await[0]["status_code"], 418);
    assert_eq!(org.admin.get("/v1/alerts/2").await.expect(200)["state"], "ok");
    assert_eq!(events(&org.admin, 2).await, Vec::<Value>::new());
    assert_eq!(receiver.count(), 1, "a test is not tried again");
    org.admin.post_empty("/v1/alerts/9/test").await.refused(404, "not_found");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_preview_shows_when_a_rule_would_have_fired() {
    let (_server, org, dashboard) = start().await;
    let event = |at: &str| json!({"event_name": "api_call", "tenant_id": "a", "timestamp": at});
    let mut sent = Vec::new();
    for (at, count) in
        [("2026-11-10T08:10:00Z", 5), ("2026-11-12T12:20:00Z", 2), ("2026-11-12T12:40:00Z", 2)]
    {
        sent.extend((0..count).map(|_| event(at)));
    }
    org.admin.post("/v1/events", &json!({"events": sent})).await.expect(200);
    let ask = json!({
        "dashboard_id": dashboard, "widget_id": "calls", "condition_type": "threshold", "operator": "gt",
        "threshold_value": 3, "lookback_minutes": 60,
    });
    let preview = org.admin.post("/v1/alerts/preview", &ask).await.expect(200);
    // A minute, where this machine looks quickly enough. What lies in a window is seen at the first look after it.
    let step = preview["step_minutes"].as_u64().unwrap();
    assert!([1, 2, 5, 10, 15, 30].contains(&step), "{step}");
    let points = preview["points"].as_array().unwrap().len() as u64;
    assert!((721..=1_450).contains(&points), "{points}");
    let seen = |state: &str, value: f64, day: u64, hour: u64, minute: u64| {
        let minutes = (hour * 60 + minute) / step * step + step;
        let at = format!("2026-11-{day}T{:02}:{:02}:00.000Z", minutes / 60, minutes % 60);
        json!({"state": state, "value": value, "at": at})
    };
    let expected = json!([
        seen("firing", 5.0, 10, 8, 10),
        seen("resolved", 0.0, 10, 9, 10),
        seen("firing", 4.0, 12, 12, 40),
        seen("resolved", 2.0, 12, 13, 20),
    ]);
    assert_eq!((&preview["fired"], &preview["events"]), (&json!(2), &expected));
    let each = org.admin.post("/v1/alerts/preview", &with(&ask, json!({"per_tenant": true}))).await;
    let each = each.expect(200);
    assert_eq!((&each["fired"], &each["tenants"]), (&json!(2), &json!(1)));
    assert_eq!(each["tenants_left_out"], 0);
    assert!(each["events"].as_array().unwrap().iter().all(|event| event["tenant_id"] == "a"));
    let firing =
        each["points"].as_array().unwrap().iter().map(|point| point["value"].as_f64().unwrap());
    assert_eq!(firing.fold(0.0, f64::max), 1.0, "tenants that fire");
    let other = org.admin.post("/v1/alerts/preview", &with(&ask, json!({"tenant_id": "b"}))).await;
    assert_eq!(other.expect(200)["fired"], 0);
    let wrong = org.admin.post("/v1/alerts/preview", &with(&ask, json!({"operator": null}))).await;
    assert_eq!(wrong.refused(400, "missing_field").as_deref(), Some("operator"));
    assert_eq!(org.admin.get("/v1/alerts").await.expect(200)["data"], json!([]), "nothing is kept");
}

#[tokio::test(flavor = "multi_thread")]
async fn tests_are_few() {
    let (_server, org, dashboard) = start().await;
    make(&org, &with(&rule(&dashboard), json!({"email_to": ["ops@acme.example"]}))).await;
    for _ in 0..20 {
        org.admin.post_empty("/v1/alerts/1/test").await.expect(200);
    }
    org.admin.post_empty("/v1/alerts/1/test").await.refused(429, "rate_limited");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_mail_is_in_the_language_of_its_rule() {
    let (server, org, dashboard) = start().await;
    let french =
        json!({"email_to": ["ops@acme.example"], "locale": "fr", "threshold_value": 1_000});
    let made = make(&org, &with(&rule(&dashboard), french)).await;
    assert_eq!(made["locale"], "fr");
    org.admin.post_empty("/v1/alerts/1/test").await.expect(200);
    let mail = quoted_printable(&server.outbox().remove(0));
    for text in [
        "<html lang=\"fr\">",
        "supérieur à 1\u{202f}000",
        "Ouvrir l’alerte",
        "Ne plus recevoir ces messages",
    ] {
        assert!(mail.contains(text), "{text}: {mail}");
    }
    let wrong = org.admin.patch("/v1/alerts/1", &json!({"locale": "xx"})).await;
    assert_eq!(wrong.refused(400, "unknown_value").as_deref(), Some("locale"));
    let english = org.admin.patch("/v1/alerts/1", &json!({"locale": "en"})).await.expect(200);
    assert_eq!(english["locale"], "en");
}
