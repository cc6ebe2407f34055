//! Reports from the schedule to the receiver: what is sent, when, and what becomes of it.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use inlay_tests::{Client, Manner, Org, Receiver, TestServer, eventually, quoted_printable};
use serde_json::{Value, json};

use crate::{access::Row, dashboards::widget};

/// Who may do what: method, path, and the answer to each caller.
pub const OPERATIONS: &[Row] = &[
    ("GET", "/v1/reports", "1yyyyy31"),
    ("GET", "/v1/reports/{number}", "1yyyyy31"),
    ("GET", "/v1/reports/{number}/runs", "1yyyyy31"),
    ("POST", "/v1/reports", "133yyy31"),
    ("PATCH", "/v1/reports/{number}", "133yyy31"),
    ("DELETE", "/v1/reports/{number}", "133yyy31"),
    ("GET", "/v1/reports/{number}/file", "133yyy31"),
    ("POST", "/v1/reports/{number}/run", "133yyy31"),
    ("POST", "/v1/reports/preview", "133yyy31"),
];

const HOUR_MS: i64 = 3_600_000;
const HEADS: &str = "\u{feff}widget_id,widget_title,bucket,group,metric,value\r\n";

async fn start() -> (TestServer, Org, Value) {
    let mut server = TestServer::start().await;
    server.webhook_allow = vec!["127.0.0.0/8".to_owned()];
    server.restart().await;
    let org = server.register("acme").await;
    let list = json!({
        "id": "plans", "kind": "bar_list", "title": "=Plans, \"all\"",
        "query": {"event_name": "api_call", "metric": "count", "period": "7d", "group_by": "plan"},
        "viz": {}, "layout": {"x": 6, "y": 0, "w": 6, "h": 4},
    });
    let body = json!({"name": "Usage", "widgets": [widget("calls"), list]});
    let dashboard = org.admin.post("/v1/dashboards", &body).await.expect(201)["id"].clone();
    (server, org, dashboard)
}

fn rule(dashboard: &Value, format: &str) -> Value {
    json!({
        "dashboard_id": dashboard, "name": "Übersicht: daily", "schedule": "daily", "format": format,
        "recipients": ["boss@acme.example"],
    })
}

fn with(rule: &Value, parts: Value) -> Value {
    let mut rule = rule.clone();
    for (name, value) in parts.as_object().unwrap() {
        rule[name] = value.clone();
    }
    rule
}

async fn send(org: &Org, tenant: &str, plan: &str, count: usize) {
    let event =
        json!({"event_name": "api_call", "tenant_id": tenant, "string_props": {"plan": plan}});
    let events = vec![event; count];
    org.admin.post("/v1/events", &json!({"events": events})).await.expect(200);
}

async fn runs(client: &Client, report: u64) -> Vec<Value> {
    let path = format!("/v1/reports/{report}/runs");
    client.get(&path).await.expect(200)["data"].as_array().unwrap().clone()
}

/// Waits until so many runs of a report are over.
async fn over(org: &Org, report: u64, count: usize) -> Vec<Value> {
    eventually(|| async {
        let runs = runs(&org.admin, report).await;
        runs.len() == count && runs.iter().all(|run| run["status"] != "running")
    })
    .await;
    runs(&org.admin, report).await
}

/// The file of a mail.
fn file_of(mail: &str) -> Vec<u8> {
    let part = mail.split("Content-Disposition: attachment").nth(1).unwrap();
    let body = part.split("\r\n\r\n").nth(1).unwrap();
    let text: String = body.split("\r\n--").next().unwrap().split_whitespace().collect();
    STANDARD.decode(text).unwrap()
}

#[tokio::test]
async fn a_schedule_is_previewed_before_there_is_a_report() {
    let (_server, org, _dashboard) = start().await;
    let preview = async |schedule: Value| {
        org.admin.post("/v1/reports/preview", &json!({"schedule": schedule})).await
    };
    let answer =
        preview(json!({"cron": "30 9 * * 1", "timezone": "Europe/Berlin"})).await.expect(200);
    let mondays = ["11-23", "11-30", "12-07"].map(|day| format!("2026-{day}T08:30:00.000Z"));
    assert_eq!(answer["next_runs"], json!(mondays));
    for (schedule, field) in [
        (json!({"cron": "0 0 30 2 *"}), "schedule.cron"),
        (json!({"cron": "0 8 * * 1", "timezone": "Mars/X"}), "schedule.timezone"),
        (json!("sometimes"), "schedule"),
    ] {
        assert_eq!(preview(schedule).await.expect(400)["field"], field);
    }
    let reports = org.admin.get("/v1/reports").await.expect(200);
    assert_eq!(reports["data"], json!([]), "nothing is stored");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_report_comes_on_time_by_mail_and_webhook() {
    let (server, org, dashboard) = start().await;
    let receiver = Receiver::start(&[Manner::Status(200, "ok".to_owned())]).await;
    send(&org, "a", "<b>", 2).await;
    send(&org, "b", "-1", 1).await;
    let parts = json!({"webhook_url": receiver.url, "webhook_signed": true});
    let made =
        org.admin.post("/v1/reports", &with(&rule(&dashboard, "csv"), parts)).await.expect(201);
    assert!(made["webhook_secret"].as_str().is_some_and(|secret| secret.starts_with("whsec_")));
    assert_eq!(made["next_run_at"], "2026-11-21T08:00:00.000Z");
    let days = ["21", "22", "23"].map(|day| format!("2026-11-{day}T08:00:00.000Z"));
    assert_eq!(made["next_runs"], json!(days));
    tokio::time::sleep(std::time::Duration::from_millis(1_500)).await;
    assert_eq!(runs(&org.admin, 1).await, Vec::<Value>::new(), "not before its time");
    server.clock.advance(22 * HOUR_MS);
    let run = over(&org, 1, 1).await.remove(0);
    let told = json!([
        {"kind": "email", "to": "boss@acme.example", "status": "sent", "error": null},
        {"kind": "webhook", "to": receiver.url, "status": "sent", "error": null},
    ]);
    assert_eq!(
        (&run["status"], &run["trigger"], &run["error"]),
        (&json!("succeeded"), &json!("schedule"), &Value::Null)
    );
    assert_eq!(
        (&run["deliveries"], &run["scheduled_for"]),
        (&told, &json!("2026-11-21T08:00:00.000Z"))
    );
    let report = org.admin.get("/v1/reports/1").await.expect(200);
    assert_eq!(
        (&report["last_run"], &report["next_run_at"]),
        (&run, &json!("2026-11-22T08:00:00.000Z"))
    );

    let posted = receiver.received().remove(0);
    assert_eq!(posted.header("content-type"), Some("text/csv"));
    assert_eq!(posted.header("x-service-report-id"), Some("1"));
    assert_eq!(posted.header("x-service-report-name"), Some("%c3%9cbersicht: daily"));
    assert_eq!(posted.header("x-service-dashboard-id"), dashboard.as_str());
    assert!(posted.header("webhook-signature").is_some_and(|value| value.starts_with("v1,")));
    assert_eq!(posted.body.len() as u64, run["bytes"].as_u64().unwrap());
    let text = String::from_utf8(posted.body.clone()).unwrap();
    assert!(text.starts_with(HEADS), "{text}");
    // Text that would be a formula is none; numbers stay numbers.
    assert!(text.contains("plans,\"'=Plans, \"\"all\"\"\",,<b>,count,2\r\n"), "{text}");
    assert!(text.contains(",,'-1,count,1\r\n"), "{text}");
    assert!(text.contains("calls,Calls,2026-11-20T00:00:00.000Z,,count,3\r\n"), "{text}");

    let mail = server.outbox().remove(0);
    assert!(mail.contains("To: boss@acme.example") && mail.contains("text/csv"), "{mail}");
    assert_eq!(file_of(&mail), posted.body);
    let attempts = org.admin.get("/v1/webhooks").await.expect(200)["rules"][0].clone();
    let attempt = &attempts["attempts"][0];
    assert_eq!(
        (
            &attempts["source"],
            &attempt["attempt"],
            &attempt["status_code"],
            &attempt["response_excerpt"]
        ),
        (&json!("report"), &json!(1), &json!(200), &json!("ok"))
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn pictures_and_pages_are_what_they_say() {
    let (server, org, dashboard) = start().await;
    send(&org, "a", "pro", 3).await;
    for (report, format, begin) in
        [(1, "png", &b"\x89PNG\r\n\x1a\n"[..]), (2, "pdf", &b"%PDF-1."[..])]
    {
        org.admin.post("/v1/reports", &rule(&dashboard, format)).await.expect(201);
        let path = format!("/v1/reports/{report}/run");
        let begun = org.admin.post_empty(&path).await.expect(202);
        assert_eq!((&begun["status"], &begun["trigger"]), (&json!("running"), &json!("manual")));
        let run = over(&org, report, 1).await.remove(0);
        assert_eq!(run["status"], "succeeded", "{run}");
        let ending = format!("-2026-11-20.{format}");
        let mails = server.outbox();
        let mail = mails.iter().find(|mail| mail.contains(&ending)).unwrap();
        let file = file_of(mail);
        assert!(file.starts_with(begin) && file.len() as u64 == run["bytes"].as_u64().unwrap());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_mail_shows_numbers_and_a_picture_beside_its_file() {
    let (server, org, _) = start().await;
    let number = json!({
        "id": "calls", "kind": "number", "title": "Calls <b>", "viz": {},
        "query": {"event_name": "api_call", "metric": "count", "period": "7d", "compare": "previous"},
        "layout": {"x": 0, "y": 0, "w": 6, "h": 4},
    });
    let body = json!({"name": "Usage", "widgets": [number]});
    let dashboard = org.admin.post("/v1/dashboards", &body).await.expect(201)["id"].clone();
    send(&org, "a", "pro", 1_000).await;
    send(&org, "a", "free", 234).await;
    org.admin.post("/v1/reports", &rule(&dashboard, "csv")).await.expect(201);
    org.admin.post_empty("/v1/reports/1/run").await.expect(202);
    over(&org, 1, 1).await;
    let mail = server.outbox().remove(0);
    let text = quoted_printable(&mail);
    assert!(text.contains("Calls <b>: 1,234 (none in the previous 30 days)"), "{text}");
    assert!(text.contains("Calls &#60;b&#62;") && text.contains(">1,234</b>"), "{text}");
    assert!(text.contains("src=\"cid:dashboard\""), "{text}");
    let (_, part) = mail.split_once("Content-ID: <dashboard>").unwrap();
    let body = part.split("\r\n\r\n").nth(1).unwrap().split("\r\n--").next().unwrap();
    let picture = STANDARD.decode(body.split_whitespace().collect::<String>()).unwrap();
    assert!(picture.starts_with(b"\x89PNG") && picture.len() < 200_000, "{}", picture.len());
    assert!(file_of(&mail).starts_with(HEADS.as_bytes()));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_report_is_in_the_language_of_its_rule() {
    let (server, org, _) = start().await;
    let number = json!({
        "id": "calls", "kind": "number", "title": "Calls", "viz": {"format": {"style": "currency", "currency": "EUR"}},
        "query": {"event_name": "api_call", "metric": "count", "period": "7d", "compare": "previous"},
        "layout": {"x": 0, "y": 0, "w": 6, "h": 4},
    });
    let body = json!({"name": "Nutzung", "widgets": [number]});
    let dashboard = org.admin.post("/v1/dashboards", &body).await.expect(201)["id"].clone();
    send(&org, "a", "pro", 1_000).await;
    send(&org, "a", "free", 234).await;
    let wrong = with(&rule(&dashboard, "pdf"), json!({"locale": "de-CH"}));
    let wrong = org.admin.post("/v1/reports", &wrong).await;
    assert_eq!(wrong.refused(400, "unknown_value").as_deref(), Some("locale"));
    let german = with(&rule(&dashboard, "csv"), json!({"locale": "de"}));
    let made = org.admin.post("/v1/reports", &german).await.expect(201);
    assert_eq!(made["locale"], "de");
    org.admin.post_empty("/v1/reports/1/run").await.expect(202);
    over(&org, 1, 1).await;
    let mail = server.outbox().remove(0);
    let text = quoted_printable(&mail);
    assert!(text.contains("Calls: 1.234\u{a0}€ (keine im Zeitraum davor)"), "{text}");
    assert!(text.contains("Der Bericht ist angehängt: Übersicht-daily-2026-11-20.csv."), "{text}");
    assert!(
        text.contains("<html lang=\"de\">") && text.contains("Diese Mails abbestellen"),
        "{text}"
    );
    assert!(file_of(&mail).starts_with(HEADS.as_bytes()), "heads of a CSV are for programs");

    // Each format can be made in each language.
    let file = async || org.admin.get("/v1/reports/1/file").await.text;
    let change = async |parts: Value| {
        org.admin.patch("/v1/reports/1", &parts).await.expect(200);
    };
    for format in ["png", "pdf"] {
        change(json!({"format": format, "locale": "de"})).await;
        let german = file().await;
        change(json!({"locale": "en"})).await;
        assert_ne!(file().await, german, "{format}");
        for locale in ["fr", "ja"] {
            change(json!({"locale": locale})).await;
            assert!(file().await.len() > 1_000, "{format} {locale}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_address_that_left_the_rule_gets_no_more_attempts() {
    let mut server = TestServer::start().await;
    // Nobody listens there: each attempt fails and is made again.
    server.smtp_url = Some("smtp://127.0.0.1:1".to_owned());
    server.restart().await;
    let org = server.register("acme").await;
    let body = json!({"name": "Usage", "widgets": [widget("calls")]});
    let dashboard = org.admin.post("/v1/dashboards", &body).await.expect(201)["id"].clone();
    org.admin.post("/v1/reports", &rule(&dashboard, "csv")).await.expect(201);
    org.admin.post_empty("/v1/reports/1/run").await.expect(202);
    let error = async || runs(&org.admin, 1).await[0]["deliveries"][0]["error"].clone();
    eventually(|| async { error().await != Value::Null }).await;
    let others = json!({"recipients": ["other@acme.example"]});
    org.admin.patch("/v1/reports/1", &others).await.expect(200);
    server.clock.advance(60_000);
    let run = over(&org, 1, 1).await.remove(0);
    assert_eq!(run["deliveries"][0]["error"], "the address was removed", "{run}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_webhook_is_tried_once_and_the_run_tells() {
    let (_server, org, dashboard) = start().await;
    let receiver = Receiver::start(&[Manner::Status(500, "down".to_owned())]).await;
    let parts = json!({"webhook_url": receiver.url});
    org.admin.post("/v1/reports", &with(&rule(&dashboard, "csv"), parts.clone())).await.expect(201);
    org.admin
        .post(
            "/v1/reports",
            &with(&with(&rule(&dashboard, "csv"), parts), json!({"recipients": []})),
        )
        .await
        .expect(201);
    for (report, status, error) in
        [(1, "partial", "1 of 2 deliveries failed"), (2, "failed", "1 of 1 deliveries failed")]
    {
        org.admin.post_empty(&format!("/v1/reports/{report}/run")).await.expect(202);
        let run = over(&org, report, 1).await.remove(0);
        assert_eq!((&run["status"], &run["error"]), (&json!(status), &json!(error)));
        let last = run["deliveries"].as_array().unwrap().last().unwrap().clone();
        assert_eq!(
            (&last["status"], &last["error"]),
            (&json!("failed"), &json!("the receiver answered 500"))
        );
        assert_eq!(receiver.count(), report as usize, "once a run");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn times_that_passed_are_made_up_for_once() {
    let (mut server, org, dashboard) = start().await;
    let hourly = json!({"schedule": "hourly"});
    org.admin.post("/v1/reports", &with(&rule(&dashboard, "csv"), hourly)).await.expect(201);
    // Two days pass while the server is down.
    server.clock.advance(48 * HOUR_MS);
    server.restart().await;
    let admin = server.anonymous().with_bearer(org.body["api_key"]["key"].as_str().unwrap());
    let org = Org { admin, ..org };
    let run = over(&org, 1, 1).await.remove(0);
    assert_eq!(run["scheduled_for"], "2026-11-20T11:00:00.000Z");
    tokio::time::sleep(std::time::Duration::from_millis(2_500)).await;
    assert_eq!(runs(&org.admin, 1).await.len(), 1);
    let next = org.admin.get("/v1/reports/1").await.expect(200)["next_run_at"].clone();
    assert_eq!(next, "2026-11-22T11:00:00.000Z");
}

#[tokio::test(flavor = "multi_thread")]
async fn each_tenant_of_a_burst_gets_his_own() {
    let (server, org, dashboard) = start().await;
    let receiver = Receiver::start(&[Manner::Status(200, String::new())]).await;
    send(&org, "a", "pro", 3).await;
    send(&org, "b", "free", 5).await;
    let burst = json!([{"tenant_id": "a", "recipients": ["a@a.example"]}, {"tenant_id": "b"}]);
    for (parts, field) in [
        (json!({"burst": [{"tenant_id": ""}]}), "burst[0].tenant_id"),
        (json!({"burst": [{"tenant_id": "a"}, {"tenant_id": "a"}]}), "burst[1].tenant_id"),
        (json!({"burst": [{"tenant_id": "a", "recipients": ["x"]}]}), "burst[0].recipients[0]"),
        (json!({"burst": burst, "tenant_id": "a"}), "burst"),
        (json!({"burst": burst, "recipients": []}), "recipients"),
    ] {
        let reply =
            org.admin.post("/v1/reports", &with(&rule(&dashboard, "csv"), parts)).await.expect(400);
        assert_eq!(reply["field"], field, "{reply}");
    }
    let parts = json!({"burst": burst, "webhook_url": receiver.url});
    org.admin.post("/v1/reports", &with(&rule(&dashboard, "csv"), parts)).await.expect(201);
    org.admin.post_empty("/v1/reports/1/run").await.expect(202);
    let run = over(&org, 1, 1).await.remove(0);
    let told: Vec<(Value, Value)> = run["deliveries"]
        .as_array()
        .unwrap()
        .iter()
        .map(|told| (told["tenant_id"].clone(), told["kind"].clone()))
        .collect();
    let expected =
        [("a", "email"), ("a", "email"), ("a", "webhook"), ("b", "email"), ("b", "webhook")];
    assert_eq!(told, expected.map(|(tenant, kind)| (json!(tenant), json!(kind))));
    let mut sums: Vec<(String, bool, bool)> = receiver
        .received()
        .iter()
        .map(|one| {
            let text = String::from_utf8_lossy(&one.body).into_owned();
            let tenant = one.header("x-service-tenant-id").unwrap().to_owned();
            (tenant, text.contains(",pro,count,3\r\n"), text.contains(",free,count,5\r\n"))
        })
        .collect();
    sums.sort();
    assert_eq!(sums, [("a".to_owned(), true, false), ("b".to_owned(), false, true)]);
    let to_a: Vec<String> =
        server.outbox().into_iter().filter(|mail| mail.contains("To: a@a.example")).collect();
    assert_eq!(to_a.len(), 1);
    assert!(String::from_utf8_lossy(&file_of(&to_a[0])).contains(",pro,count,3"));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_shown_is_what_embeds_show() {
    let (_server, org, dashboard) = start().await;
    let receiver = Receiver::start(&[Manner::Status(200, String::new())]).await;
    send(&org, "a", "pro", 3).await;
    let path = format!("/v1/dashboards/{}", dashboard.as_str().unwrap());
    org.admin.post_empty(&format!("{path}/publish")).await.expect(204);
    org.admin
        .patch(&format!("{path}/widgets/calls"), &json!({"title": "Unfinished"}))
        .await
        .expect(200);
    let parts = json!({"webhook_url": receiver.url});
    org.admin.post("/v1/reports", &with(&rule(&dashboard, "csv"), parts)).await.expect(201);
    org.admin.post_empty("/v1/reports/1/run").await.expect(202);
    over(&org, 1, 1).await;
    let text = String::from_utf8_lossy(&receiver.received()[0].body).into_owned();
    assert!(text.contains("Calls") && !text.contains("Unfinished"), "{text}");
    // A dashboard that is gone ends its reports.
    org.admin.delete(&path).await.expect(204);
    org.admin.post_empty("/v1/reports/1/run").await.expect(202);
    let run = over(&org, 1, 2).await.remove(0);
    assert_eq!(
        (&run["status"], &run["error"]),
        (&json!("failed"), &json!("the dashboard was deleted"))
    );
    let report = org.admin.get("/v1/reports/1").await.expect(200);
    assert_eq!((&report["enabled"], &report["next_run_at"]), (&json!(false), &Value::Null));
    assert_eq!(report["next_runs"], json!([]));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_is_not_begun_twice() {
    let (server, org, dashboard) = start().await;
    let slow = Receiver::start(&[Manner::Stall(200), Manner::Hang]).await;
    let parts = json!({"webhook_url": slow.url, "recipients": []});
    org.admin.post("/v1/reports", &with(&rule(&dashboard, "csv"), parts)).await.expect(201);
    org.admin.post_empty("/v1/reports/1/run").await.expect(202);
    eventually(|| async { slow.count() == 1 }).await;
    org.admin.post_empty("/v1/reports/1/run").await.refused(409, "conflict");
    server.clock.advance(22 * HOUR_MS);
    eventually(|| async { runs(&org.admin, 1).await.len() == 2 }).await;
    let skipped = runs(&org.admin, 1).await.remove(0);
    assert_eq!((&skipped["status"], &skipped["trigger"]), (&json!("skipped"), &json!("schedule")));
    assert_eq!(skipped["error"], "the run before was still under way");
    org.admin.delete("/v1/reports/1").await.expect(204);
    org.admin.post_empty("/v1/reports/1/run").await.refused(404, "not_found");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_widget_that_cannot_be_shown_is_told() {
    let (_server, org, dashboard) = start().await;
    let huge = json!({"event_name": "huge", "tenant_id": "a", "numeric_props": {"n": 1.7e308}});
    org.admin.post("/v1/events", &json!({"events": [huge, huge]})).await.expect(200);
    let sum = json!({
        "id": "sum", "kind": "number", "title": "Sum of all", "viz": {}, "layout": {"x": 0, "y": 4, "w": 3, "h": 3},
        "query": {"event_name": "huge", "metric": "sum", "numeric_prop": "n", "period": "7d"},
    });
    let path = format!("/v1/dashboards/{}/widgets", dashboard.as_str().unwrap());
    org.admin.post(&path, &sum).await.expect(201);
    org.admin.post("/v1/reports", &rule(&dashboard, "csv")).await.expect(201);
    org.admin.post_empty("/v1/reports/1/run").await.expect(202);
    let run = over(&org, 1, 1).await.remove(0);
    let expected = (&json!("partial"), &json!("could not be shown: Sum of all"));
    assert_eq!((&run["status"], &run["error"]), expected);
    assert_eq!(run["deliveries"][0]["status"], "sent");
}

#[tokio::test(flavor = "multi_thread")]
async fn saying_the_same_time_again_passes_over_no_run() {
    let (server, org, dashboard) = start().await;
    let daily = with(&rule(&dashboard, "csv"), json!({"enabled": false}));
    org.admin.post("/v1/reports", &daily).await.expect(201);
    let on = json!({"enabled": true, "schedule": "daily"});
    let made = org.admin.patch("/v1/reports/1", &on).await.expect(200);
    server.clock.advance(22 * HOUR_MS);
    let changed = org.admin.patch("/v1/reports/1", &on).await.expect(200);
    // Either it ran in this moment, or it is still due.
    let next = changed["next_run_at"].as_str().unwrap();
    assert!(next == made["next_run_at"] || next == "2026-11-22T08:00:00.000Z", "{next}");
    assert_eq!(over(&org, 1, 1).await[0]["scheduled_for"], made["next_run_at"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_is_made_without_sending_it() {
    let (server, org, dashboard) = start().await;
    send(&org, "a", "pro", 2).await;
    send(&org, "b", "free", 1).await;
    let make = async |parts: Value| {
        org.admin.post("/v1/reports", &with(&rule(&dashboard, "csv"), parts)).await.expect(201);
    };
    let burst = json!([{"tenant_id": "a", "recipients": []}]);
    make(json!({})).await;
    make(json!({"burst": burst})).await;
    make(json!({"format": "pdf", "tenant_id": "b"})).await;
    let get = async |path: &str| org.admin.get(path).await;

    let all = get("/v1/reports/1/file").await;
    assert_eq!((all.status, &all.headers["content-type"]), (200, &"text/csv".parse().unwrap()));
    let disposition = all.headers["content-disposition"].to_str().unwrap();
    assert!(disposition.contains("filename=\"_bersicht-daily-2026-11-20.csv\""), "{disposition}");
    assert!(disposition.contains("UTF-8''%C3%9Cbersicht-daily-2026-11-20.csv"), "{disposition}");
    let csv = all.text.trim_start_matches('\u{feff}');
    assert!(csv.starts_with(HEADS.trim_start_matches('\u{feff}')), "{csv}");
    assert!(all.text.contains(",free,count,1"));

    let one = get("/v1/reports/2/file?tenant_id=a").await;
    assert!(one.text.contains(",pro,count,2") && !one.text.contains("free"));
    let refused = get("/v1/reports/2/file").await;
    assert_eq!(refused.refused(400, "missing_field").as_deref(), Some("tenant_id"));
    let refused = get("/v1/reports/2/file?tenant_id=b").await;
    assert_eq!(refused.refused(400, "unknown_value").as_deref(), Some("tenant_id"));
    let refused = get("/v1/reports/1/file?tenant_id=a").await;
    assert_eq!(refused.refused(400, "unknown_value").as_deref(), Some("tenant_id"));

    let pages = get("/v1/reports/3/file").await;
    assert!(pages.status == 200 && pages.text.starts_with("%PDF-"));
    get("/v1/reports/9/file").await.refused(404, "not_found");
    assert!(server.outbox().is_empty() && runs(&org.admin, 1).await.is_empty(), "nothing is sent");
}
