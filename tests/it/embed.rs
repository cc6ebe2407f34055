//! Embed sessions, the page, and that a viewer cannot reach beyond his token.

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use inlay_tests::{Client, TestServer};
use serde_json::{Value, json};

use crate::{access::Row, dashboards::widget};

/// Who may do what: method, path, and the answer to each caller.
pub const OPERATIONS: &[Row] = &[
    ("POST", "/v1/embed-sessions", "133yyy31"),
    ("GET", "/v1/embed-sessions", "133yyy31"),
    ("DELETE", "/v1/embed-sessions/{id}", "133yyy31"),
    ("POST", "/v1/embed-sessions/rotate-key", "133yyy31"),
    ("GET", "/v1/demo/embed-url", "yyyyyyyy"),
    ("POST", "/v1/demo/session", "yyyyyyyy"),
];

struct Setup {
    server: TestServer,
    admin: Client,
    dashboard: String,
}

async fn setup() -> Setup {
    let server = TestServer::start().await;
    let admin = server.register("acme").await.admin;
    let mut events = Vec::new();
    for (tenant, status, plan, count) in
        [("t", "ok", "pro", 5), ("t", "error", "free", 3), ("other", "ok", "pro", 7)]
    {
        for n in 0..count {
            events.push(json!({
                "tenant_id": tenant, "event_name": "api_call", "string_props": {"status": status, "plan": plan},
                "numeric_props": {"ms": f64::from(n)},
            }));
        }
    }
    admin.post("/v1/events", &json!({"events": events})).await.expect(200);
    server.clock.advance(1_000);
    let widgets = [widget("calls"), widget("secret")];
    let made = admin
        .post("/v1/dashboards", &json!({"name": "<b>Usage</b>", "widgets": widgets}))
        .await
        .expect(201);
    let dashboard = made["id"].as_str().unwrap().to_owned();
    admin.post_empty(&format!("/v1/dashboards/{dashboard}/publish")).await.expect(204);
    Setup { server, admin, dashboard }
}

impl Setup {
    async fn mint(&self, permissions: Value) -> (Client, String) {
        let ask = json!({"tenant_id": "t", "dashboard_id": self.dashboard, "expires_in": 600, "permissions": permissions});
        let minted = self.admin.post("/v1/embed-sessions", &ask).await.expect(201);
        let token = minted["token"].as_str().unwrap().to_owned();
        assert_eq!(
            minted["embed_url"],
            format!("{}/embed/{}?token={token}", self.server.base, self.dashboard)
        );
        (self.server.anonymous().with_bearer(&token), token)
    }
}

async fn sum(viewer: &Client, filters: Value) -> i64 {
    let answer = viewer
        .post("/v1/embed/data", &json!({"widgets": ["calls"], "filters": filters}))
        .await
        .expect(200);
    answer["widgets"]["calls"]["data"]
        .as_array()
        .unwrap()
        .iter()
        .map(|row| row["value"].as_i64().unwrap())
        .sum()
}

async fn refused(viewer: &Client, filters: Value) {
    let reply =
        viewer.post("/v1/embed/data", &json!({"widgets": ["calls"], "filters": filters})).await;
    reply.refused(403, "embed_permission");
}

#[tokio::test]
async fn a_viewer_sees_his_tenant_and_what_he_narrows() {
    let setup = setup().await;
    let (viewer, _) = setup.mint(json!({})).await;
    assert_eq!(sum(&viewer, json!({})).await, 8);
    assert_eq!(sum(&viewer, json!({"period": "24h"})).await, 8);
    assert_eq!(sum(&viewer, json!({"dimensions": {"plan": "pro"}})).await, 5);
    assert_eq!(
        sum(&viewer, json!({"dimensions": {"plan": ["pro", "free"], "status": "error"}})).await,
        3
    );
    assert_eq!(sum(&viewer, json!({"numericRanges": {"ms": {"min": 1, "max": 2}}})).await, 4);
    let dates = json!({"dateRanges": {"timestamp": {"from": "2026-11-20", "to": "2026-11-21"}}});
    assert_eq!(sum(&viewer, dates).await, 8);
    for (filters, field) in [
        (json!({"period": "5d"}), "filters.period"),
        (json!({"frobnicate": 1}), "filters.frobnicate"),
        (
            json!({"dateRanges": {"created": {"from": "2026-01-01", "to": "2026-01-02"}}}),
            "filters.dateRanges.created",
        ),
        (
            json!({"dateRanges": {"timestamp": {"from": "x", "to": "2026-01-02"}}}),
            "filters.dateRanges.timestamp.from",
        ),
    ] {
        let reply =
            viewer.post("/v1/embed/data", &json!({"widgets": ["calls"], "filters": filters})).await;
        assert_eq!(reply.status, 400, "{}", reply.text);
        assert_eq!(reply.json()["field"], field);
    }
    let stream = viewer
        .request(reqwest::Method::POST, "/v1/embed/data")
        .header("accept", "application/x-ndjson");
    let reply = viewer.send(stream.json(&json!({"widgets": ["calls", "secret"]}))).await;
    let lines: Vec<Value> =
        reply.text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(lines.len(), 3);
    // Each as soon as it is answered.
    let mut widgets = [&lines[0]["widget"], &lines[1]["widget"]].map(Value::to_string);
    widgets.sort();
    assert_eq!(widgets, ["\"calls\"", "\"secret\""]);
    assert!(lines[2]["expires_in_seconds"].as_i64().unwrap() > 500);
}

#[tokio::test]
async fn every_permission_holds_against_hand_made_requests() {
    let setup = setup().await;
    let (viewer, token) =
        setup.mint(json!({"locked_filters": {"status": "ok"}, "hidden_widgets": ["secret"]})).await;
    assert_eq!(sum(&viewer, json!({})).await, 5, "the lock holds without being named");
    assert_eq!(sum(&viewer, json!({"dimensions": {"status": "ok"}})).await, 5);
    refused(&viewer, json!({"dimensions": {"status": "error"}})).await;
    refused(&viewer, json!({"dimensions": {"status": ["ok", "error"]}})).await;
    for hidden in ["secret", "does-not-exist"] {
        viewer
            .post("/v1/embed/data", &json!({"widgets": [hidden]}))
            .await
            .refused(403, "embed_permission");
    }
    let config = viewer.get("/v1/embed/dashboard").await;
    assert_eq!(config.expect(200)["widgets"].as_array().unwrap().len(), 1);
    let page =
        setup.server.anonymous().get(&format!("/embed/{}?token={token}", setup.dashboard)).await;
    assert!(!page.text.contains("secret"), "a hidden widget is in neither config nor page");

    let (viewer, _) =
        setup.mint(json!({"allowed_dimensions": ["plan"], "allowed_periods": ["7d"]})).await;
    assert_eq!(sum(&viewer, json!({"dimensions": {"plan": "pro"}})).await, 5);
    refused(&viewer, json!({"dimensions": {"status": "ok"}})).await;
    refused(&viewer, json!({"numericRanges": {"ms": {"min": 0}}})).await;
    refused(&viewer, json!({"period": "30d"})).await;
    refused(
        &viewer,
        json!({"dateRanges": {"timestamp": {"from": "2026-01-01", "to": "2026-11-21"}}}),
    )
    .await;
    assert_eq!(viewer.get("/v1/embed/dashboard").await.expect(200)["periods"], json!(["7d"]));

    let (viewer, _) = setup.mint(json!({"max_date_range_days": 7, "allow_drill_down": true})).await;
    let longer = json!({"dateRanges": {"timestamp": {"from": "2026-11-01", "to": "2026-11-20"}}});
    for filters in [json!({"period": "30d"}), longer] {
        let ask = json!({"dimension": "plan", "filters": filters});
        viewer.post("/v1/embed/values", &ask).await.refused(403, "embed_permission");
    }
    assert_eq!(
        viewer.get("/v1/embed/dashboard").await.expect(200)["periods"],
        json!(["24h", "7d"])
    );
    refused(&viewer, json!({"period": "30d"})).await;
    refused(
        &viewer,
        json!({"dateRanges": {"timestamp": {"from": "2026-11-01", "to": "2026-11-20"}}}),
    )
    .await;
    let week = json!({"dateRanges": {"timestamp": {"from": "2026-11-14", "to": "2026-11-21"}}});
    assert_eq!(sum(&viewer, week).await, 8);

    let (viewer, _) = setup.mint(json!({"allowed_dimensions": [], "allowed_periods": []})).await;
    refused(&viewer, json!({})).await;
    refused(&viewer, json!({"dimensions": {"plan": "pro"}})).await;
}

#[tokio::test]
async fn a_broken_rule_is_refused_before_the_first_line() {
    let setup = setup().await;
    let (viewer, _) = setup.mint(json!({"allowed_periods": []})).await;
    for accept in ["application/json", "application/x-ndjson"] {
        let request =
            viewer.request(reqwest::Method::POST, "/v1/embed/data").header("accept", accept);
        viewer
            .send(request.json(&json!({"widgets": ["calls"]})))
            .await
            .refused(403, "embed_permission");
    }
}

#[tokio::test]
async fn values_to_filter_by_are_the_tenants_own_and_allowed() {
    let setup = setup().await;
    let path = format!("/v1/dashboards/{}", setup.dashboard);
    let mut by_plan = widget("plans");
    by_plan["kind"] = json!("bar_list");
    by_plan["query"] = json!({"event_name": "api_call", "metric": "count", "group_by": "plan"});
    let widgets = json!({"widgets": [widget("calls"), by_plan]});
    setup.admin.patch(&path, &widgets).await.expect(200);
    setup.admin.post_empty(&format!("{path}/publish")).await.expect(204);
    let (viewer, _) = setup.mint(json!({})).await;
    let values =
        async |viewer: &Client, ask: Value| viewer.post("/v1/embed/values", &ask).await.expect(200);
    let both = json!({"values": [{"value": "pro", "count": 10}, {"value": "free", "count": 6}], "has_more": false});
    // The same event stands on two widgets and counts once.
    let one = json!({"values": [{"value": "pro", "count": 5}, {"value": "free", "count": 3}], "has_more": false});
    let found = values(&viewer, json!({"dimension": "plan"})).await;
    assert!(found == one && found != both, "{found}");
    // What is chosen of the property itself hides nothing, what is chosen of others does.
    let chosen = json!({"dimension": "plan", "filters": {"dimensions": {"plan": "pro"}}});
    assert_eq!(values(&viewer, chosen).await, one);
    let narrowed = json!({"dimension": "plan", "filters": {"dimensions": {"status": "error"}}});
    let free = json!({"values": [{"value": "free", "count": 3}], "has_more": false});
    assert_eq!(values(&viewer, narrowed).await, free);
    assert_eq!(values(&viewer, json!({"dimension": "plan", "search": "REE"})).await, free);
    // Neither a hidden widget's property nor any other that is not shown.
    let foreign = json!({"dimension": "nope"});
    viewer.post("/v1/embed/values", &foreign).await.refused(403, "embed_permission");
    viewer.post("/v1/embed/values", &json!({})).await.refused(400, "missing_field");

    let locked =
        json!({"locked_filters": {"status": "ok"}, "allowed_dimensions": ["plan", "status"]});
    let (viewer, _) = setup.mint(locked).await;
    let pro = json!({"values": [{"value": "pro", "count": 5}], "has_more": false});
    assert_eq!(values(&viewer, json!({"dimension": "plan"})).await, pro, "the lock holds");
    let ok = json!({"values": [{"value": "ok", "count": 5}], "has_more": false});
    assert_eq!(values(&viewer, json!({"dimension": "status"})).await, ok);
    let wider = json!({"dimension": "plan", "filters": {"dimensions": {"status": "error"}}});
    viewer.post("/v1/embed/values", &wider).await.refused(403, "embed_permission");
    let other = json!({"dimension": "model"});
    viewer.post("/v1/embed/values", &other).await.refused(403, "embed_permission");
    let (viewer, _) = setup.mint(json!({"allowed_periods": ["7d"]})).await;
    let longer = json!({"dimension": "plan", "filters": {"period": "30d"}});
    viewer.post("/v1/embed/values", &longer).await.refused(403, "embed_permission");

    // A widget that shows a part of an event offers the values of that part.
    let mut part = widgets["widgets"][1].clone();
    part["query"]["filters"] = json!({"status": "error"});
    let widgets = json!({"widgets": [part]});
    setup.admin.patch(&path, &widgets).await.expect(200);
    setup.admin.post_empty(&format!("{path}/publish")).await.expect(204);
    let (viewer, _) = setup.mint(json!({})).await;
    assert_eq!(values(&viewer, json!({"dimension": "plan"})).await, free);
}

#[tokio::test]
async fn answers_to_viewers_do_not_tell_what_was_looked_at() {
    let setup = setup().await;
    let (viewer, token) = setup.mint(json!({"locked_filters": {"status": "nothing"}})).await;
    let data = viewer.post("/v1/embed/data", &json!({"widgets": ["calls"]})).await;
    let page =
        setup.server.anonymous().get(&format!("/embed/{}?token={token}", setup.dashboard)).await;
    for text in [data.text, page.text] {
        for field in ["rows_scanned", "query_time_ms", "source_table", "planned_by"] {
            assert!(!text.contains(field), "{field}");
        }
    }
    let many: serde_json::Map<String, Value> =
        (0..51).map(|n| (format!("d{n}"), json!("x"))).collect();
    let values: Vec<String> = (0..1_001).map(|n| n.to_string()).collect();
    for (filters, field) in [
        (json!({"dimensions": many}), "filters.dimensions"),
        (json!({"dimensions": {"plan": values}}), "filters.dimensions.plan"),
    ] {
        let ask = json!({"widgets": ["calls"], "filters": filters});
        let reply = viewer.post("/v1/embed/data", &ask).await;
        assert_eq!(reply.refused(400, "out_of_range").as_deref(), Some(field));
    }
}

#[tokio::test]
async fn details_need_the_right_to_drill_down_and_stay_within_the_session() {
    let setup = setup().await;
    let path = format!("/v1/dashboards/{}", setup.dashboard);
    let grouped = |id: &str, group_by: &str| {
        let mut widget = widget(id);
        widget["kind"] = json!("bar_list");
        widget["query"] =
            json!({"event_name": "api_call", "metric": "count", "group_by": group_by});
        widget
    };
    let widgets = json!({"widgets": [grouped("plans", "plan"), grouped("states", "status")]});
    setup.admin.patch(&path, &widgets).await.expect(200);
    setup.admin.post_empty(&format!("{path}/publish")).await.expect(204);
    let ask = json!({"widget": "plans", "dimension": "plan", "value": "pro"});
    let (viewer, _) = setup.mint(json!({})).await;
    viewer.post("/v1/embed/detail", &ask).await.refused(403, "embed_permission");

    let (viewer, _) = setup.mint(json!({"allow_drill_down": true})).await;
    let detail = viewer.post("/v1/embed/detail", &ask).await.expect(200);
    assert_eq!(detail["total"]["data"][0]["value"], 5);
    let course = detail["course"]["data"].as_array().unwrap();
    assert_eq!(course.iter().map(|row| row["value"].as_i64().unwrap()).sum::<i64>(), 5);
    assert!(!detail.to_string().contains("previous"), "the widget compares with nothing: {detail}");
    assert_eq!(detail["breakdowns"].as_array().unwrap().len(), 1);
    assert_eq!(detail["breakdowns"][0]["dimension"], "status");
    assert_eq!(detail["breakdowns"][0]["answer"]["data"], json!([{"group": "ok", "value": 5}]));
    for (change, status, code) in [
        (json!({"widget": "nope"}), 403, "embed_permission"),
        (json!({"dimension": "status"}), 400, "invalid_field"),
        (json!({"filters": {"period": "5d"}}), 400, "unknown_value"),
        (json!({"value": 3}), 400, "invalid_field"),
    ] {
        let mut ask = ask.clone();
        ask.as_object_mut().unwrap().extend(change.as_object().unwrap().clone());
        viewer.post("/v1/embed/detail", &ask).await.refused(status, code);
    }
    let permissions = json!({"allow_drill_down": true, "locked_filters": {"status": "error"}, "hidden_widgets": ["states"]});
    let (viewer, _) = setup.mint(permissions).await;
    let detail = viewer.post("/v1/embed/detail", &ask).await.expect(200);
    assert_eq!(detail["total"]["data"][0]["value"], 0, "no event is pro and failed");
    assert_eq!(detail["breakdowns"], json!([]), "what is locked or hidden is not broken down by");
    let (viewer, _) =
        setup.mint(json!({"allow_drill_down": true, "allowed_dimensions": ["status"]})).await;
    viewer.post("/v1/embed/detail", &ask).await.refused(403, "embed_permission");
}

#[tokio::test]
async fn the_page_brings_its_first_data_and_what_may_be_chosen() {
    let setup = setup().await;
    let boot = async |permissions: Value| {
        let (_, token) = setup.mint(permissions).await;
        let address = format!("/embed/{}?token={token}", setup.dashboard);
        let page = setup.server.anonymous().get(&address).await.text;
        let block = page.split("id=\"boot\">").nth(1).unwrap().split("</script>").next().unwrap();
        serde_json::from_str::<Value>(block).unwrap()
    };
    let open = boot(json!({})).await;
    let rows = open["data"]["calls"]["data"].as_array().unwrap();
    assert_eq!(rows.iter().map(|row| row["value"].as_i64().unwrap()).sum::<i64>(), 8);
    assert_eq!(open["data"].as_object().unwrap().len(), 2);
    assert_eq!((&open["allows_dates"], &open["periods"][3]), (&json!(true), &json!("90d")));
    let bounded = json!({"hidden_widgets": ["secret"], "allowed_periods": ["7d"], "allowed_dimensions": ["plan", "ms"], "locked_filters": {"plan": ["pro", "free"]}});
    let bounded = boot(bounded).await;
    assert_eq!(bounded["data"].as_object().unwrap().len(), 1);
    assert_eq!(bounded["allows_dates"], false);
    assert_eq!(bounded["offered"], json!({"dimensions": ["ms"], "numbers": []}));
    assert!(!bounded.to_string().contains("secret"), "{bounded}");
    let nothing = boot(json!({"allowed_periods": []})).await;
    assert_eq!(nothing["data"], json!({}), "what may not be seen does not come along");
}

#[tokio::test]
async fn the_helper_and_its_types_are_for_every_page() {
    let server = TestServer::start().await;
    let anonymous = server.anonymous();
    let known = [("embed.js", "inlay-dashboard", "br"), ("embed.d.ts", "mountDashboard", "gzip")];
    for (name, part, coding) in known {
        let path = format!("/sdk/v1/{name}");
        let reply = anonymous.get(&path).await;
        assert!(reply.status == 200 && reply.text.contains(part), "{name}");
        assert_eq!(reply.headers["access-control-allow-origin"], "*");
        assert_eq!(reply.headers["cross-origin-resource-policy"], "cross-origin");
        let tag = reply.headers["etag"].to_str().unwrap().to_owned();
        let again = anonymous.request(reqwest::Method::GET, &path).header("if-none-match", tag);
        let again = anonymous.send(again).await;
        assert!(again.status == 304 && again.text.is_empty());
        // A browser that asks again keeps what it has, for every page as before.
        for name in ["cache-control", "cross-origin-resource-policy"] {
            assert_eq!(again.headers[name], reply.headers[name], "{name}");
        }
        for (accepted, coding) in [("gzip, br", coding), ("gzip", "gzip")] {
            let packed = anonymous.request(reqwest::Method::GET, &path);
            let packed = anonymous.send(packed.header("accept-encoding", accepted)).await;
            assert_eq!(packed.headers["content-encoding"], coding, "{name}");
        }
    }
    anonymous.get("/sdk/v1/other.js").await.refused(404, "not_found");
    anonymous.get("/demo").await.refused(404, "not_found");
}

#[tokio::test]
async fn a_token_is_accepted_only_as_it_was_minted() {
    let setup = setup().await;
    let (viewer, token) = setup.mint(json!({})).await;
    viewer.get("/v1/embed/dashboard").await.expect(200);
    let anonymous = setup.server.anonymous();
    let parts: Vec<&str> = token.split('.').collect();
    let encode = |value: &Value| URL_SAFE_NO_PAD.encode(value.to_string());
    let decode = |part: &str| -> Value {
        serde_json::from_slice(&URL_SAFE_NO_PAD.decode(part).unwrap()).unwrap()
    };
    let header = decode(parts[0]);
    assert_eq!((&header["alg"], &header["typ"]), (&json!("HS256"), &json!("embed+jwt")));
    let mut forged = vec![
        String::new(),
        "x".to_owned(),
        "a.b.c".to_owned(),
        format!("{token}x"),
        parts[..2].join("."),
    ];
    for (name, value) in [
        ("alg", json!("none")),
        ("alg", json!("HS512")),
        ("typ", json!("JWT")),
        ("kid", json!("../x")),
        ("kid", json!(null)),
    ] {
        let mut header = header.clone();
        header[name] = value;
        forged.push(format!("{}.{}.{}", encode(&header), parts[1], parts[2]));
        forged.push(format!("{}.{}.", encode(&header), parts[1]));
    }
    for (name, value) in [
        ("tenant_id", json!("other")),
        ("exp", json!(9_999_999_999i64)),
        ("perm", json!({})),
        ("sub", json!("x")),
    ] {
        let mut claims = decode(parts[1]);
        claims[name] = value;
        forged.push(format!("{}.{}.{}", parts[0], encode(&claims), parts[2]));
    }
    // Every bit of the signature, but for those that base64 leaves unused at the end.
    for at in 0..parts[2].len() - 1 {
        let mut signature = parts[2].as_bytes().to_vec();
        signature[at] = if signature[at] == b'A' { b'B' } else { b'A' };
        forged.push(format!("{}.{}.{}", parts[0], parts[1], String::from_utf8(signature).unwrap()));
    }
    for forged in forged.iter().filter(|forged| !forged.is_empty()) {
        let reply = anonymous.clone().with_bearer(forged).get("/v1/embed/dashboard").await;
        assert_eq!(reply.status, 401, "{forged}: {}", reply.text);
        let page = anonymous.get(&format!("/embed/{}?token={forged}", setup.dashboard)).await;
        assert_eq!(page.status, 401, "{forged}");
    }
    anonymous.get("/v1/embed/dashboard").await.refused(401, "unauthenticated");
    setup.admin.get("/v1/embed/dashboard").await.refused(401, "unauthenticated");
    viewer.get("/v1/dashboards").await.refused(401, "unauthenticated");

    setup.server.clock.advance(604_000);
    viewer.get("/v1/embed/dashboard").await.expect(200);
    setup.server.clock.advance(2_000);
    viewer.get("/v1/embed/dashboard").await.refused(401, "token_expired");
}

#[tokio::test]
async fn unpublishing_revoking_and_deleting_end_a_session() {
    let setup = setup().await;
    let (viewer, token) = setup.mint(json!({})).await;
    let page = format!("/embed/{}?token={token}", setup.dashboard);
    let path = format!("/v1/dashboards/{}", setup.dashboard);
    setup.admin.patch(&path, &json!({"name": "Draft name"})).await.expect(200);
    assert_eq!(
        viewer.get("/v1/embed/dashboard").await.expect(200)["name"],
        "<b>Usage</b>",
        "a draft is not shown"
    );
    setup.admin.post_empty(&format!("{path}/unpublish")).await.expect(204);
    viewer.get("/v1/embed/dashboard").await.refused(409, "not_published");
    viewer
        .post("/v1/embed/data", &json!({"widgets": ["calls"]}))
        .await
        .refused(409, "not_published");
    let reply = setup.server.anonymous().get(&page).await;
    assert!(reply.status == 200 && reply.text.contains("published"), "{}", reply.text);
    setup.admin.post_empty(&format!("{path}/publish")).await.expect(204);
    viewer.get("/v1/embed/dashboard").await.expect(200);

    let list = setup.admin.get("/v1/embed-sessions").await.expect(200);
    let entry = &list["data"][0];
    assert_eq!((&entry["tenant_id"], &entry["scope"]), (&json!("t"), &json!("embed:read")));
    assert_eq!(entry["resource"]["name"], "Draft name");
    let audit = setup.admin.get("/v1/audit").await.expect(200);
    assert!(
        audit["data"].as_array().unwrap().iter().any(|row| row["action"] == "embed_session.create")
    );
    setup
        .admin
        .delete(&format!("/v1/embed-sessions/{}", entry["id"].as_str().unwrap()))
        .await
        .expect(204);
    viewer.get("/v1/embed/dashboard").await.refused(401, "token_revoked");
    assert_eq!(setup.admin.get("/v1/embed-sessions").await.expect(200)["data"], json!([]));

    let (viewer, token) = setup.mint(json!({})).await;
    setup.admin.delete(&path).await.expect(204);
    viewer.get("/v1/embed/dashboard").await.refused(404, "not_found");
    let reply =
        setup.server.anonymous().get(&format!("/embed/{}?token={token}", setup.dashboard)).await;
    assert_eq!(reply.status, 404);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ended_sessions_are_forgotten_and_others_are_not() {
    const DAY_MS: i64 = 86_400_000;
    let setup = setup().await;
    setup.mint(json!({})).await;
    assert_eq!(setup.server.expire(), 0);
    setup.server.clock.advance(2 * DAY_MS);
    setup.mint(json!({})).await;
    assert_eq!(setup.server.expire(), 1, "the first embed session");
    setup.server.clock.advance(3 * DAY_MS);
    assert_eq!(setup.server.expire(), 2, "the second, and the console session of the registration");
    assert_eq!(setup.server.expire(), 0);
    assert_eq!(
        setup.admin.get("/v1/dashboards").await.expect(200)["data"].as_array().unwrap().len(),
        1
    );
}

#[tokio::test]
async fn sessions_are_minted_within_their_limits() {
    let setup = setup().await;
    let ask = |name: &str, value: Value| {
        let mut ask = json!({"tenant_id": "t", "dashboard_id": setup.dashboard});
        ask[name] = value;
        ask
    };
    for (name, value, field) in [
        ("expires_in", json!(59), "expires_in"),
        ("expires_in", json!(86_401), "expires_in"),
        ("permissions", json!({"nope": 1}), "permissions.nope"),
        ("permissions", json!({"allowed_periods": ["5d"]}), "permissions.allowed_periods[0]"),
        ("permissions", json!({"max_date_range_days": 0}), "permissions.max_date_range_days"),
        ("tenant_id", json!(""), "tenant_id"),
    ] {
        let reply = setup.admin.post("/v1/embed-sessions", &ask(name, value)).await;
        assert_eq!(reply.status, 400, "{}", reply.text);
        assert_eq!(reply.json()["field"], field, "{}", reply.text);
    }
    let missing = ask("dashboard_id", json!("0190aaaa-0000-7000-8000-000000000000"));
    setup.admin.post("/v1/embed-sessions", &missing).await.refused(404, "not_found");
}

#[tokio::test]
async fn the_page_has_its_headers_and_escapes_its_text() {
    let setup = setup().await;
    let (_, token) = setup.mint(json!({})).await;
    let page =
        setup.server.anonymous().get(&format!("/embed/{}?token={token}", setup.dashboard)).await;
    assert_eq!(page.status, 200);
    let header = |name: &str| page.headers[name].to_str().unwrap().to_owned();
    let policy = header("content-security-policy");
    for part in
        ["default-src 'none'", "script-src 'self'", "frame-ancestors *", "trusted-types 'none'"]
    {
        assert!(policy.contains(part), "{policy}");
    }
    assert!(!policy.contains("unsafe"));
    assert_eq!(
        (header("referrer-policy"), header("cache-control")),
        ("no-referrer".to_owned(), "no-store".to_owned())
    );
    assert!(
        page.headers.get("set-cookie").is_none() && page.headers.get("x-frame-options").is_none()
    );
    assert!(
        !page.text.contains("<b>Usage</b>") && page.text.contains("&#60;b&#62;Usage&#60;/b&#62;")
    );
    let scripts: Vec<&str> =
        page.text.split("src=\"").skip(1).filter_map(|rest| rest.split('"').next()).collect();
    for script in scripts {
        let file = setup.server.anonymous().get(script).await;
        assert_eq!(file.status, 200, "{script}");
        assert!(file.headers["cache-control"].to_str().unwrap().contains("immutable"));
    }
    let path = format!("/v1/dashboards/{}", setup.dashboard);
    setup
        .admin
        .patch(&path, &json!({"settings": {"allowed_origins": ["https://app.example.com"]}}))
        .await
        .expect(200);
    setup.admin.post_empty(&format!("{path}/publish")).await.expect(204);
    let page =
        setup.server.anonymous().get(&format!("/embed/{}?token={token}", setup.dashboard)).await;
    assert!(
        page.headers["content-security-policy"]
            .to_str()
            .unwrap()
            .contains("frame-ancestors https://app.example.com;")
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn two_signing_keys_count_and_a_third_ends_the_first() {
    let server = TestServer::start().await;
    let org = server.register("acme").await;
    let made = org.admin.post("/v1/dashboards", &json!({"name": "D"})).await.expect(201);
    let path = format!("/v1/dashboards/{}/publish", made["id"].as_str().unwrap());
    org.admin.post_empty(&path).await.expect(204);
    let mint = async |client: &inlay_tests::Client| {
        let ask = json!({"tenant_id": "t", "dashboard_id": made["id"], "expires_in": 86_400});
        let minted = client.post("/v1/embed-sessions", &ask).await.expect(201);
        server.anonymous().with_bearer(minted["token"].as_str().unwrap())
    };
    let view = "/v1/embed/dashboard";
    let first = mint(&org.admin).await;
    let key = org.admin.post_empty("/v1/embed-sessions/rotate-key").await.expect(201);
    assert_eq!(key["environment"], "production");
    let second = mint(&org.admin).await;
    first.get(view).await.expect(200);
    second.get(view).await.expect(200);
    let development = org.console.request(reqwest::Method::POST, "/v1/embed-sessions/rotate-key");
    let development = development.header("x-service-environment", "development");
    assert_eq!(org.console.send(development).await.expect(201)["environment"], "development");
    first.get(view).await.expect(200);
    let other = org.admin.post_empty("/v1/embed-sessions/rotate-key").await.expect(201);
    assert_ne!(other["kid"], key["kid"]);
    first.get(view).await.refused(401, "unauthenticated");
    second.get(view).await.expect(200);
    mint(&org.admin).await.get(view).await.expect(200);
    // A key that was replaced is forgotten when nothing that it signed can count any more.
    server.clock.advance(47 * 3_600_000);
    server.expire();
    assert_eq!(server.expire(), 0);
    server.clock.advance(2 * 3_600_000);
    assert!(server.expire() >= 2, "one key of each environment");
}
