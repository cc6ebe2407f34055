//! Two organisations with the same names: nothing of one reaches the other.
//!
//! Every field of the second holds a marker. Every operation with an id is called as every caller of the
//! first, with every kind of id that is not his; the answer is that for an id of nothing, the second
//! organisation stays as it is, and the marker is in no answer.

use std::collections::BTreeMap;

use inlay_tests::{Client, Org, Reply, TestServer, assert_same_lines};
use reqwest::Method;
use serde_json::{Value, json};

use crate::{
    access::{NOBODYS, OF_EMBEDS, callers, operations},
    dashboards::widget,
};

const MARKER: &str = "CANARY7f3";

/// What an organisation has, by kind.
type Things = BTreeMap<&'static str, String>;

/// Fills an organisation with one of each thing, all of them marked.
async fn furnish(server: &TestServer, org: &Org, mark: &str) -> Things {
    let name = format!("{mark} thing");
    let marked = |id: &str| {
        let mut widget = widget(id);
        widget["title"] = json!(name);
        widget
    };
    let post = async |path: &str, body: Value| org.console.post(path, &body).await.expect(201);
    let id = |made: &Value| match &made["id"] {
        Value::String(id) => id.clone(),
        other => other.to_string(),
    };
    let dashboard = post("/v1/dashboards", json!({"name": name, "widgets": [marked("w")]})).await;
    org.console.post_empty(&format!("/v1/dashboards/{}/publish", id(&dashboard))).await.expect(204);
    let mut alone = marked("x");
    alone.as_object_mut().unwrap().remove("id");
    let standalone = post("/v1/widgets", alone).await;
    let query = json!({"name": name, "sql": format!("SELECT '{mark}'"), "dataset": "events"});
    let query = post("/v1/saved-queries", query).await;
    let alert = json!({
        "dashboard_id": dashboard["id"], "widget_id": "w", "name": name, "condition_type": "no_data",
        "email_to": [format!("{mark}@x.example")], "webhook_url": format!("https://x.com/{mark}"),
    });
    let alert = post("/v1/alerts", alert).await;
    let report = json!({
        "dashboard_id": dashboard["id"], "name": name, "format": "csv", "schedule": "daily",
        "recipients": [format!("{mark}@x.example")], "webhook_url": format!("https://x.com/{mark}"),
    });
    let report = post("/v1/reports", report).await;
    let key = post("/v1/api-keys", json!({"label": name, "scope": "ingest"})).await;
    let invite = json!({"email": format!("invited-{mark}@x.example"), "role": "viewer"});
    let invite = post("/v1/members/invite", invite).await;
    let member = org.join(server, &format!("joined-{mark}@x.example"), "viewer").await;
    let member = member.get("/v1/auth/me").await.expect(200)["user"].clone();
    let ask = json!({"tenant_id": format!("tenant-{mark}"), "dashboard_id": dashboard["id"]});
    post("/v1/embed-sessions", ask).await;
    let sessions = org.console.get("/v1/embed-sessions").await.expect(200);
    let event = json!({
        "tenant_id": format!("tenant-{mark}"), "event_name": "api_call", "event_id": "same",
        "user_id": mark, "string_props": {"model": mark}, "numeric_props": {"latency_ms": 7},
    });
    let ingest = server.anonymous().with_bearer(key["key"].as_str().unwrap());
    ingest.post("/v1/events", &json!({"events": [event]})).await.expect(200);
    let path = format!("/v1/tenants/nobody-{mark}/events");
    let erasure = org.console.delete(&path).await.expect(202);
    BTreeMap::from([
        ("dashboard", id(&dashboard)),
        ("widget", id(&standalone)),
        ("saved query", id(&query)),
        ("alert", id(&alert)),
        ("report", id(&report)),
        ("key", id(&key)),
        ("invite", id(&invite)),
        ("member", id(&member)),
        ("embed session", id(&sessions["data"][0])),
        ("erasure", id(&erasure)),
    ])
}

/// Everything that an organisation can see of itself, without what moves by being looked at.
async fn state(client: &Client, things: &Things) -> String {
    let mut out = String::new();
    let operations = operations();
    let lists =
        operations.iter().filter(|(method, path, _)| *method == "GET" && !path.contains('{'));
    for (_, path, _) in lists {
        if !["/v1/query", "/v1/discover", "/v1/usage", "/v1/erasures"].contains(path) {
            let reply = client.get(path).await;
            out +=
                &format!("{path}: {} {}\n", reply.status, inlay_tests::without_use(reply.json()));
        }
    }
    for path in [
        format!("/v1/dashboards/{}", things["dashboard"]),
        format!("/v1/widgets/{}", things["widget"]),
        format!("/v1/alerts/{}/events", things["alert"]),
        format!("/v1/reports/{}/runs", things["report"]),
    ] {
        out += &format!("{path}: {}\n", client.get(&path).await.text);
    }
    // Refusals have ids of their own.
    let lines: Vec<&str> = out.lines().filter(|line| !line.contains("request_id")).collect();
    lines.join("\n")
}

fn assert_unmarked(reply: &Reply, what: &str) {
    let headers = format!("{:?}", reply.headers);
    assert!(!reply.text.contains(MARKER) && !headers.contains(MARKER), "{what}: {}", reply.text);
}

/// Status and body without the request's own id.
fn gist(reply: &Reply) -> (u16, Value) {
    let mut body = reply.json();
    if body.is_object() {
        body["request_id"] = Value::Null;
    }
    (reply.status, body)
}

#[tokio::test]
async fn ids_that_are_not_ones_own_are_those_of_nothing() {
    let callers = callers().await;
    let mine = furnish(&callers.server, &callers.org, "own").await;
    let other = callers.server.register("other").await;
    let rename = json!({"name": MARKER, "email": format!("{MARKER}@x.example")});
    other.console.patch("/v1/settings/org", &rename).await.expect(200);
    let theirs = furnish(&callers.server, &other, MARKER).await;
    let deleted = callers.org.admin.post("/v1/dashboards", &json!({"name": "D"})).await.expect(201);
    let deleted = deleted["id"].as_str().unwrap().to_owned();
    callers.org.admin.delete(&format!("/v1/dashboards/{deleted}")).await.expect(204);
    let before = state(&other.console, &theirs).await;
    assert!(before.matches(MARKER).count() > 25, "the other organisation is marked");
    let own_before = state(&callers.org.console, &mine).await;

    let foreign: Vec<String> = theirs.values().filter(|id| id.len() == 36).cloned().collect();
    let upper: Vec<String> = foreign.iter().map(|id| id.to_uppercase()).collect();
    let malformed = [
        "0",
        "-1",
        "9223372036854775808",
        "18446744073709551616",
        "..%2F..%2Fsecret",
        "%00",
        "%20",
        "%F0%9F%92%A9",
        "00000000-0000-0000-0000-000000000000/",
    ];
    let body = json!({"name": "x", "role": "viewer", "title": "x", "starred": true});
    let mut asked = 0;
    for (method, path, _) in
        operations().iter().chain(&OF_EMBEDS).filter(|(_, path, _)| path.contains('{'))
    {
        let method = Method::from_bytes(method.as_bytes()).unwrap();
        let ask = async |client: &Client, id: &str| {
            let path = path.replace("{id}", id).replace("{number}", id);
            client.send(client.request(method.clone(), &path).json(&body)).await
        };
        for (name, client) in &callers.all {
            let is_number = path.contains("{number}");
            let nobodys = if is_number { "777777" } else { NOBODYS };
            let nothing = gist(&ask(client, nobodys).await);
            let mut ids: Vec<&str> = Vec::new();
            if is_number {
                // Numbers are one organisation's own: only what lies beyond its own is foreign.
                ids.extend(["2", "9223372036854775808", "18446744073709551616"]);
            } else {
                ids.extend(foreign.iter().chain(&upper).map(String::as_str));
                ids.push(&deleted);
                // Ids of the right organisation and of another kind of thing.
                let kinds = ["alert", "report"];
                let wrong_kind = mine
                    .iter()
                    .filter(|(kind, id)| !kinds.contains(kind) && !path.contains(&id[..]));
                ids.extend(
                    wrong_kind.filter(|(kind, _)| !belongs(path, kind)).map(|(_, id)| id.as_str()),
                );
            }
            for id in ids {
                let reply = ask(client, id).await;
                assert_eq!(gist(&reply), nothing, "{method} {path} as {name}: {id}");
                assert_unmarked(&reply, path);
                asked += 1;
            }
            for id in malformed.iter().map(|id| (*id).to_owned()).chain(["9".repeat(10_000)]) {
                let reply = ask(client, &id).await;
                let expected = [400, 401, 403, 404, 405, 414];
                assert!(
                    expected.contains(&reply.status),
                    "{method} {path} as {name}: {id}: {}",
                    reply.status
                );
                assert_unmarked(&reply, path);
                asked += 1;
            }
        }
    }
    assert!(asked > 5_000, "{asked}");
    // Fields of bodies that name things.
    let dashboard = &theirs["dashboard"];
    for (path, body) in [
        ("/v1/embed-sessions", json!({"tenant_id": "t"})),
        ("/v1/alerts", json!({"widget_id": "w", "name": "x", "condition_type": "no_data"})),
        (
            "/v1/reports",
            json!({"name": "x", "format": "csv", "schedule": "daily", "recipients": ["a@b.example"]}),
        ),
    ] {
        for (name, client) in &callers.all {
            let ask = async |id: &str| {
                let mut body = body.clone();
                body["dashboard_id"] = json!(id);
                client.post(path, &body).await
            };
            let nothing = gist(&ask(NOBODYS).await);
            for id in [dashboard.as_str(), &deleted, &mine["widget"], &dashboard.to_uppercase()] {
                let reply = ask(id).await;
                assert_eq!(gist(&reply), nothing, "{path} as {name}: {id}");
                assert_unmarked(&reply, path);
            }
        }
    }
    assert_same_lines(&state(&other.console, &theirs).await, &before);
    assert_same_lines(&state(&callers.org.console, &mine).await, &own_before);
}

/// Whether a path takes ids of this kind.
fn belongs(path: &str, kind: &str) -> bool {
    let of = [
        ("/v1/dashboards/", "dashboard"),
        ("/v1/widgets/", "widget"),
        ("/v1/saved-queries/", "saved query"),
        ("/v1/api-keys/", "key"),
        ("/v1/members/invites/", "invite"),
        ("/v1/members/", "member"),
        ("/v1/embed-sessions/", "embed session"),
        ("/v1/erasures/", "erasure"),
    ];
    of.iter().find(|(prefix, _)| path.starts_with(prefix)).is_some_and(|(_, of)| *of == kind)
}

#[tokio::test]
async fn no_answer_holds_anything_of_the_other() {
    let callers = callers().await;
    let mine = furnish(&callers.server, &callers.org, "own").await;
    let other = callers.server.register("other").await;
    let rename = json!({"name": MARKER, "email": format!("{MARKER}@x.example")});
    other.console.patch("/v1/settings/org", &rename).await.expect(200);
    furnish(&callers.server, &other, MARKER).await;
    let mut questions: Vec<String> = Vec::new();
    for (method, path, _) in operations().iter().chain(&OF_EMBEDS) {
        if *method != "GET" {
            continue;
        }
        let number = path.replace("{number}", "1");
        if path.contains("{id}") {
            questions.extend(mine.values().map(|id| number.replace("{id}", id)));
        } else {
            questions.push(number);
        }
    }
    for tenant in ["", "&tenant_id=tenant-own", &format!("&tenant_id=tenant-{MARKER}")] {
        for more in ["&group_by=model", "&metric=count_unique", &format!("&f_model={MARKER}")] {
            questions.push(format!(
                "/v1/query?event_name=api_call&period=30d&metric=count{tenant}{more}"
            ));
        }
    }
    for question in &questions {
        for (name, client) in &callers.all {
            let reply = client.get(question).await;
            let is_fine = reply.status < 500 || reply.json()["code"] == "billing_not_configured";
            assert!(is_fine, "{question} as {name}: {}", reply.text);
            if question.contains(MARKER) {
                // The marker may come back as the name that was asked for, never with a number.
                assert!(
                    !reply.text.contains("\"value\":1"),
                    "{question} as {name}: {}",
                    reply.text
                );
            } else {
                assert_unmarked(&reply, question);
            }
        }
    }
    // The same question has an answer where it belongs.
    let path =
        format!("/v1/query?event_name=api_call&period=30d&metric=count&tenant_id=tenant-{MARKER}");
    assert!(other.admin.get(&path).await.expect(200).to_string().contains("\"value\":1"));
}

#[tokio::test]
async fn environments_of_one_organisation_do_not_see_each_other() {
    let server = TestServer::start().await;
    let org = server.register("acme").await;
    let key = json!({"label": "dev", "scope": "admin", "environment": "development"});
    let key = org.console.post("/v1/api-keys", &key).await.expect(201);
    let dev = server.anonymous().with_bearer(key["key"].as_str().unwrap());
    let mine = furnish(&server, &org, "own").await;
    let one = json!({"events": [{"tenant_id": "tenant-own", "event_name": "api_call", "event_id": "same"}]});
    assert_eq!(
        dev.post("/v1/events", &one).await.expect(200)["duplicates"],
        0,
        "ids do not collide"
    );
    for (path, id) in [
        ("/v1/alerts/", "alert"),
        ("/v1/reports/", "report"),
        ("/v1/api-keys/", "key"),
        ("/v1/embed-sessions/", "embed session"),
    ] {
        dev.delete(&format!("{path}{}", mine[id])).await.refused(404, "not_found");
    }
    dev.get(&format!("/v1/erasures/{}", mine["erasure"])).await.refused(404, "not_found");
    assert_eq!(dev.count("tenant-own", "api_call").await, 1);
    assert_eq!(org.admin.count("tenant-own", "api_call").await, 1);
}
