//! Members and invites: who comes, what he may do, who goes.

use inlay_tests::{TestServer, session_cookie};
use serde_json::{Value, json};

use crate::access::Row;

/// Who may do what: method, path, and the answer to each caller.
pub const OPERATIONS: &[Row] = &[
    ("GET", "/v1/members", "1yyyyy31"),
    ("POST", "/v1/members/invite", "133yyy31"),
    ("GET", "/v1/members/invites", "133yyy31"),
    ("DELETE", "/v1/members/invites/{id}", "133yyy31"),
    ("PATCH", "/v1/members/{id}", "1333y331"),
    // Viewers and editors remove nobody but themselves.
    ("DELETE", "/v1/members/{id}", "133yyy31"),
];

#[tokio::test]
async fn an_invite_makes_a_member_once() {
    let server = TestServer::start().await;
    let org = server.register("acme").await;
    let invite = json!({"email": "Grace@Acme.example", "role": "editor"});
    let made = org.admin.post("/v1/members/invite", &invite).await.expect(201);
    assert_eq!((&made["email"], &made["role"]), (&json!("grace@acme.example"), &json!("editor")));
    assert_eq!(made["invited_by"], "Default admin key");
    let token = made["token"].as_str().unwrap();
    assert_eq!(made["invite_url"], format!("{}/console/invite?token={token}", server.base));
    let listed = org.console.get("/v1/members/invites").await.expect(200);
    assert_eq!(listed["data"][0]["id"], made["id"]);
    assert!(!listed.to_string().contains(token), "a token is shown once");
    let again = org.console.post("/v1/members/invite", &invite).await;
    assert_eq!(again.refused(409, "invite_pending").as_deref(), Some("email"));

    let accept = json!({"token": token, "name": "Grace", "password": "correct horse battery"});
    let anonymous = server.anonymous();
    let short = json!({"token": token, "name": "", "password": "short"});
    let refused = anonymous.post("/v1/auth/accept-invite", &short).await.expect(400);
    let fields: Vec<&Value> =
        refused["details"].as_array().unwrap().iter().map(|fault| &fault["field"]).collect();
    assert_eq!(fields, [&json!("name"), &json!("password")], "both faults at once");
    let reply = anonymous.post("/v1/auth/accept-invite", &accept).await;
    let joined = reply.expect(200);
    assert_eq!((&joined["role"], &joined["user"]["name"]), (&json!("editor"), &json!("Grace")));
    let grace = anonymous.clone().with_cookie(&session_cookie(&reply).unwrap());
    assert_eq!(grace.get("/v1/auth/me").await.expect(200)["scope"], "member");
    anonymous.post("/v1/auth/accept-invite", &accept).await.refused(401, "token_revoked");
    let members = grace.get("/v1/members").await.expect(200);
    let roles: Vec<&Value> =
        members["data"].as_array().unwrap().iter().map(|member| &member["role"]).collect();
    assert_eq!(roles, [&json!("editor"), &json!("owner")]);
    assert!(org.console.get("/v1/members/invites").await.expect(200)["data"][0].is_null());
    let member = org.console.post("/v1/members/invite", &invite).await;
    assert_eq!(member.refused(409, "duplicate_email").as_deref(), Some("email"));
    let login = json!({"email": "grace@acme.example", "password": "correct horse battery"});
    anonymous.post("/v1/auth/login", &login).await.expect(200);
}

#[tokio::test]
async fn an_invite_ends_by_time_or_withdrawal_and_takes_no_other_token() {
    let server = TestServer::start().await;
    let org = server.register("acme").await;
    let anonymous = server.anonymous();
    let invite = async |email: &str| {
        let body = json!({"email": email, "role": "viewer"});
        org.console.post("/v1/members/invite", &body).await.expect(201)
    };
    let accept = async |token: &Value| {
        let body = json!({"token": token, "name": "X", "password": "correct horse battery"});
        anonymous.post("/v1/auth/accept-invite", &body).await
    };
    let withdrawn = invite("a@x.example").await;
    let path = format!("/v1/members/invites/{}", withdrawn["id"].as_str().unwrap());
    org.admin.delete(&path).await.expect(204);
    org.admin.delete(&path).await.refused(404, "not_found");
    accept(&withdrawn["token"]).await.refused(401, "token_revoked");
    let old = invite("b@x.example").await;
    server.clock.advance(7 * 86_400_000);
    let reply = accept(&old["token"]).await;
    reply.refused(401, "token_expired");
    let console = server.anonymous();
    let login = json!({"email": "acme@example.com", "password": "correct horse battery"});
    let reply = console.post("/v1/auth/login", &login).await;
    let console = console.with_cookie(&session_cookie(&reply).unwrap());
    let again = json!({"email": "b@x.example", "role": "viewer"});
    let fresh = console.post("/v1/members/invite", &again).await.expect(201);

    let dashboard = org.admin.post("/v1/dashboards", &json!({"name": "D"})).await.expect(201);
    let ask = json!({"tenant_id": "t", "dashboard_id": dashboard["id"]});
    let embed = org.admin.post("/v1/embed-sessions", &ask).await.expect(201);
    let token = fresh["token"].as_str().unwrap();
    let mut changed = token.to_owned();
    changed.replace_range(changed.len() - 3..changed.len() - 2, "_");
    let unsigned = {
        let mut parts: Vec<&str> = token.split('.').collect();
        // {"alg":"none","typ":"invite+jwt"}
        parts[0] = "eyJhbGciOiJub25lIiwidHlwIjoiaW52aXRlK2p3dCJ9";
        parts[2] = "";
        parts.join(".")
    };
    for wrong in [&embed["token"], &json!(changed), &json!(unsigned), &json!("x"), &json!("")] {
        accept(wrong).await.refused(401, "unauthenticated");
    }
    // And the other way round.
    let reply = anonymous.clone().with_bearer(token).get("/v1/embed/dashboard").await;
    reply.refused(401, "unauthenticated");
    accept(&fresh["token"]).await.expect(200);
}

#[tokio::test]
async fn roles_act_on_the_next_request_and_one_owner_stays() {
    let server = TestServer::start().await;
    let org = server.register("acme").await;
    let viewer = org.join(&server, "v@acme.example", "viewer").await;
    let admin = org.join(&server, "a@acme.example", "admin").await;
    let members = org.console.get("/v1/members").await.expect(200);
    let id_of = |email: &str| {
        let all = members["data"].as_array().unwrap();
        let found = all.iter().find(|member| member["email"] == email).unwrap();
        found["id"].as_str().unwrap().to_owned()
    };
    let path = |email: &str| format!("/v1/members/{}", id_of(email));
    let dashboard = json!({"name": "D"});
    viewer.post("/v1/dashboards", &dashboard).await.refused(403, "forbidden_role");
    let change = json!({"role": "editor"});
    admin.patch(&path("v@acme.example"), &change).await.refused(403, "forbidden_role");
    org.admin.patch(&path("v@acme.example"), &change).await.refused(403, "forbidden_scope");
    let changed = org.console.patch(&path("v@acme.example"), &change).await.expect(200);
    assert_eq!((&changed["role"], &changed["user_id"]), (&json!("editor"), &changed["id"]));
    viewer.post("/v1/dashboards", &dashboard).await.expect(201);
    let unknown = org.console.patch(&path("v@acme.example"), &json!({"role": "king"})).await;
    assert_eq!(unknown.refused(400, "unknown_value").as_deref(), Some("role"));
    let owner = org
        .console
        .post("/v1/members/invite", &json!({"email": "x@y.example", "role": "owner"}))
        .await;
    assert_eq!(owner.refused(400, "unknown_value").as_deref(), Some("role"));

    let me = path("acme@example.com");
    org.console.patch(&me, &json!({"role": "admin"})).await.refused(409, "conflict");
    org.console.delete(&me).await.refused(409, "conflict");
    admin.delete(&me).await.refused(403, "forbidden_role");
    org.admin.delete(&me).await.refused(403, "forbidden_role");
    viewer.delete(&path("a@acme.example")).await.refused(403, "forbidden_role");
    // With a second owner the first may go.
    org.console.patch(&path("a@acme.example"), &json!({"role": "owner"})).await.expect(200);
    org.console.patch(&me, &json!({"role": "admin"})).await.expect(200);
    org.console.patch(&path("v@acme.example"), &change).await.refused(403, "forbidden_role");
    let key = viewer.get("/v1/api-keys").await;
    key.refused(403, "forbidden_role");

    // An admin removes an editor: his session ends, what he made stays.
    org.console.delete(&path("v@acme.example")).await.expect(204);
    viewer.get("/v1/dashboards").await.refused(401, "session_expired");
    assert_eq!(
        org.console.get("/v1/dashboards").await.expect(200)["data"].as_array().unwrap().len(),
        1
    );
    let login = json!({"email": "v@acme.example", "password": "correct horse battery"});
    server.anonymous().post("/v1/auth/login", &login).await.refused(401, "unauthenticated");
    // The address is free again.
    org.join(&server, "v@acme.example", "viewer").await.get("/v1/dashboards").await.expect(200);
    let leaver = org.join(&server, "l@acme.example", "viewer").await;
    let leaver_id = leaver.get("/v1/auth/me").await.expect(200)["user"]["id"].clone();
    leaver.delete(&format!("/v1/members/{}", leaver_id.as_str().unwrap())).await.expect(204);
    leaver.get("/v1/auth/me").await.refused(401, "session_expired");

    let audit = admin.get("/v1/audit").await.expect(200);
    let actions: Vec<&str> = audit["data"]
        .as_array()
        .unwrap()
        .iter()
        .map(|row| row["action"].as_str().unwrap())
        .filter(|action| action.starts_with("member."))
        .collect();
    let expected = [
        "member.remove",
        "member.join",
        "member.invite",
        "member.join",
        "member.invite",
        "member.remove",
        "member.update",
        "member.update",
        "member.update",
        "member.join",
        "member.invite",
        "member.join",
        "member.invite",
    ];
    assert_eq!(actions, expected);
}

#[tokio::test]
async fn a_removed_member_does_not_come_back_by_his_own_invite() {
    let server = TestServer::start().await;
    let org = server.register("acme").await;
    let admin = org.join(&server, "a@acme.example", "admin").await;
    let invite = json!({"email": "again@acme.example", "role": "admin"});
    let made = admin.post("/v1/members/invite", &invite).await.expect(201);
    let others = json!({"email": "other@acme.example", "role": "viewer"});
    org.console.post("/v1/members/invite", &others).await.expect(201);
    let id = admin.get("/v1/auth/me").await.expect(200)["user"]["id"].clone();
    org.console.delete(&format!("/v1/members/{}", id.as_str().unwrap())).await.expect(204);
    let accept = json!({"token": made["token"], "name": "A", "password": "correct horse battery"});
    let reply = server.anonymous().post("/v1/auth/accept-invite", &accept).await;
    reply.refused(401, "token_revoked");
    let left = org.console.get("/v1/members/invites").await.expect(200);
    assert_eq!(left["data"].as_array().unwrap().len(), 1);
    assert_eq!(left["data"][0]["email"], "other@acme.example");
}

#[tokio::test]
async fn a_removed_members_keys_stay() {
    let server = TestServer::start().await;
    let org = server.register("acme").await;
    let admin = org.join(&server, "a@acme.example", "admin").await;
    let made =
        admin.post("/v1/api-keys", &json!({"label": "k", "scope": "admin"})).await.expect(201);
    let id = made["created_by"].as_str().unwrap();
    org.console.delete(&format!("/v1/members/{id}")).await.expect(204);
    let key = server.anonymous().with_bearer(made["key"].as_str().unwrap());
    key.get("/v1/dashboards").await.expect(200);
}
