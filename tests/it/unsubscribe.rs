//! Mails that one can stop: the link of each, the button of a mail program, and what the rule says then.

use std::time::{Duration, UNIX_EPOCH};

use inlay_tests::{Client, NOW_MS, Org, TestServer, eventually, quoted_printable};
use serde_json::{Value, json};

use crate::{access::Row, dashboards::widget};

/// Who may do what: method, path, and the answer to each caller.
pub const OPERATIONS: &[Row] =
    &[("GET", "/v1/unsubscribe", "yyyyyyyy"), ("POST", "/v1/unsubscribe", "yyyyyyyy")];

async fn start() -> (TestServer, Org, Value) {
    let server = TestServer::start().await;
    let org = server.register("acme").await;
    let body = json!({"name": "Usage", "widgets": [widget("calls")]});
    let dashboard = org.admin.post("/v1/dashboards", &body).await.expect(201)["id"].clone();
    let path = format!("/v1/dashboards/{}/publish", dashboard.as_str().unwrap());
    org.admin.post_empty(&path).await;
    (server, org, dashboard)
}

/// The path of the link in the header of the mail to this address, once it has come.
async fn link_of(server: &TestServer, to: &str) -> String {
    let mail = || {
        let to = format!("To: {to}");
        server.outbox().into_iter().find(|mail| mail.contains(&to) && mail.ends_with("--\r\n"))
    };
    eventually(|| async { mail().is_some() }).await;
    let mail = mail().unwrap();
    assert!(mail.contains("List-Unsubscribe-Post: List-Unsubscribe=One-Click"), "{mail}");
    let (_, header) = mail.split_once("List-Unsubscribe: <").unwrap();
    let link = header.split_once('>').unwrap().0.to_owned();
    let text = quoted_printable(&mail);
    assert!(text.matches(&link).count() >= 2, "text and HTML have it as well: {text}");
    link.strip_prefix(&server.base).unwrap().to_owned()
}

async fn audited(client: &Client, action: &str) -> Vec<Value> {
    let path = format!("/v1/audit?action={action}");
    client.get(&path).await.expect(200)["data"].as_array().unwrap().clone()
}

#[tokio::test(flavor = "multi_thread")]
async fn mails_of_an_alert_stop_with_one_click_and_not_by_a_look() {
    let (server, org, dashboard) = start().await;
    let rule = json!({
        "dashboard_id": dashboard, "widget_id": "calls", "name": "Too <many>", "condition_type": "no_data",
        "email_to": ["ops@acme.example", "ada@acme.example"],
    });
    org.admin.post("/v1/alerts", &rule).await.expect(201);
    org.admin.post_empty("/v1/alerts/1/test").await.expect(200);
    let link = link_of(&server, "ops@acme.example").await;
    let addresses =
        || async { org.admin.get("/v1/alerts/1").await.expect(200)["email_to"].clone() };

    let visitor = server.anonymous();
    let page = visitor.get(&link).await;
    assert_eq!(page.status, 200);
    assert!(
        page.text.contains("Too &#60;many&#62;") && page.text.contains("<form"),
        "{}",
        page.text
    );
    assert_eq!(addresses().await, rule["email_to"], "to look changes nothing");

    let form = [("content-type", "application/x-www-form-urlencoded")];
    for _ in 0..2 {
        let done = visitor.post_raw(&link, &form, b"List-Unsubscribe=One-Click".to_vec()).await;
        assert!(done.status == 200 && done.text.contains("No more mails"), "{}", done.text);
        assert_eq!(addresses().await, json!(["ada@acme.example"]));
    }
    let rows = audited(&org.admin, "alert.unsubscribe").await;
    assert_eq!(rows.len(), 1, "{rows:?}");
    assert_eq!(rows[0]["metadata"]["name"], "Too <many>");
    assert_eq!(rows[0]["actor"]["label"], "ops@acme.example");
    assert!(visitor.get(&link).await.text.contains("No more mails"));

    // Another signature, none, and a token that was signed for something else.
    let invite = json!({"email": "new@acme.example", "role": "viewer"});
    let invite = org.console.post("/v1/members/invite", &invite).await.expect(201);
    let foreign = format!("/v1/unsubscribe?token={}", invite["token"].as_str().unwrap());
    let cut = &link[..link.len() - 2];
    for wrong in [cut, "/v1/unsubscribe?token=a.b.c", &foreign] {
        visitor.post_empty(wrong).await.refused(404, "not_found");
        let page = visitor.get(wrong).await;
        assert!(page.status == 404 && page.text.contains("not valid"), "{wrong}: {}", page.text);
    }
    assert_eq!(visitor.get("/v1/unsubscribe").await.status, 404);
    visitor.post_empty("/v1/unsubscribe").await.refused(404, "not_found");
    // Parameters that trackers add do no harm.
    assert_eq!(visitor.get(&format!("{link}&utm_source=mail")).await.status, 200);
    // Nor does such a link make anybody a member.
    let token = link.split_once("token=").unwrap().1;
    let accept = json!({"token": token, "name": "Eve", "password": "correct horse battery"});
    let refused = visitor.post("/v1/auth/accept-invite", &accept).await;
    refused.refused(401, "unauthenticated");
    org.admin.delete("/v1/alerts/1").await.expect(204);
    assert_eq!(visitor.get(&link).await.status, 404, "the rule is gone");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_report_that_nobody_gets_any_more_is_disabled() {
    let (server, org, dashboard) = start().await;
    let body = json!({
        "dashboard_id": dashboard, "name": "Weekly", "schedule": "weekly", "format": "csv", "locale": "de",
        "burst": [
            {"tenant_id": "a", "recipients": ["a@a.example"]},
            {"tenant_id": "b", "recipients": ["b@b.example", "a@a.example"]},
            {"tenant_id": "c", "recipients": ["b@b.example"]},
        ],
    });
    org.admin.post("/v1/reports", &body).await.expect(201);
    org.admin.post_empty("/v1/reports/1/run").await.expect(202);
    let report = || async { org.admin.get("/v1/reports/1").await.expect(200) };
    let visitor = server.anonymous();

    let link = link_of(&server, "b@b.example").await;
    // The page speaks the language of the rule's mails.
    let page = visitor.get(&link).await.text;
    assert!(page.contains("lang=\"de\"") && page.contains("Diese Mails abbestellen?"), "{page}");
    let done = visitor.post_empty(&link).await;
    assert!(done.status == 200 && done.text.contains("geht nicht mehr an"), "{}", done.text);
    let left = report().await;
    assert_eq!(left["burst"][1]["recipients"], json!(["a@a.example"]));
    assert_eq!(left["burst"].as_array().unwrap().len(), 2, "nobody got that of c");
    assert_eq!(left["enabled"], true);

    let link = link_of(&server, "a@a.example").await;
    assert_eq!(visitor.post_empty(&link).await.status, 200);
    let left = report().await;
    assert_eq!(
        (&left["burst"][0]["recipients"], &left["burst"][1]["recipients"]),
        (&json!([]), &json!([]))
    );
    assert_eq!(left["enabled"], false, "{left}");
    let rows = audited(&org.admin, "report.unsubscribe").await;
    assert_eq!(rows[1]["metadata"]["tenants_removed"], json!(["c"]), "{rows:?}");
    assert_eq!(rows[0]["metadata"]["enabled"], false);
    let run = org.admin.post_empty("/v1/reports/1/run").await;
    assert_eq!(run.refused(400, "missing_field").as_deref(), Some("recipients"));
    // It may be renamed as it is, and needs a receiver to be enabled.
    let path = "/v1/reports/1";
    org.admin.patch(path, &json!({"name": "Old"})).await.expect(200);
    let refused = org.admin.patch(path, &json!({"enabled": true})).await;
    assert_eq!(refused.refused(400, "missing_field").as_deref(), Some("recipients"));
    org.admin
        .patch(path, &json!({"enabled": true, "recipients": ["c@c.example"]}))
        .await
        .expect(200);
}

#[tokio::test(flavor = "multi_thread")]
async fn mails_in_the_outbox_are_kept_for_thirty_days() {
    // Several processes have no outbox.
    if inlay_tests::is_spread() {
        return;
    }
    let (server, org, dashboard) = start().await;
    let rule = json!({
        "dashboard_id": dashboard, "widget_id": "calls", "name": "Silence", "condition_type": "no_data",
        "email_to": ["ops@acme.example"],
    });
    org.admin.post("/v1/alerts", &rule).await.expect(201);
    org.admin.post_empty("/v1/alerts/1/test").await.expect(200);
    link_of(&server, "ops@acme.example").await;
    let now = Duration::from_millis(NOW_MS as u64);
    for (days, left) in [(29, 1), (31, 0)] {
        for file in std::fs::read_dir(server.directory.path().join("outbox")).unwrap() {
            let file = std::fs::OpenOptions::new().append(true).open(file.unwrap().path()).unwrap();
            file.set_modified(UNIX_EPOCH + now - Duration::from_secs(days * 86_400)).unwrap();
        }
        server.expire();
        assert_eq!(server.outbox().len(), left, "{days} days");
    }
}
