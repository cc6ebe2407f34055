//! Forgotten and changed passwords, and one's own sessions.

use inlay_tests::{Client, Org, TestServer, quoted_printable, session_cookie};
use serde_json::{Value, json};

use crate::access::Row;

/// Who may do what: method, path, and the answer to each caller.
pub const OPERATIONS: &[Row] = &[
    ("POST", "/v1/auth/forgot-password", "yyyyyyyy"),
    ("POST", "/v1/auth/reset-password", "yyyyyyyy"),
    ("POST", "/v1/auth/change-password", "1yyyy331"),
];

const EMAIL: &str = "acme@example.com";
const PASSWORD: &str = "correct horse battery";
const HOUR_MS: i64 = 3_600_000;

async fn login(server: &TestServer, password: &str) -> inlay_tests::Reply {
    let body = json!({"email": EMAIL, "password": password});
    server.anonymous().post("/v1/auth/login", &body).await
}

async fn session(server: &TestServer, password: &str) -> Client {
    let reply = login(server, password).await;
    reply.expect(200);
    server.anonymous().with_cookie(&session_cookie(&reply).unwrap())
}

async fn forgot(server: &TestServer, email: &str) {
    let reply = server.anonymous().post("/v1/auth/forgot-password", &json!({"email": email})).await;
    reply.expect(202);
    assert_eq!(reply.text, "", "the answer says nothing of {email}");
}

/// Waits until the outbox holds `count` mails, whole ones; the tokens in them.
async fn tokens(server: &TestServer, count: usize) -> Vec<String> {
    let deadline = std::time::Instant::now() + std::time::Duration::from_secs(20);
    loop {
        // A file is there before its text; the last line of a mail closes its parts.
        let mut mails = server.outbox();
        mails.retain(|mail| mail.trim_end().ends_with("--"));
        if mails.len() >= count {
            assert_eq!(mails.len(), count);
            return mails.iter().map(|mail| token(mail)).collect();
        }
        assert!(std::time::Instant::now() < deadline, "{} of {count} mails", mails.len());
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
}

/// The token in the text of a mail, which may be quoted and broken into lines.
fn token(mail: &str) -> String {
    let mail = quoted_printable(mail);
    let (_, rest) = mail.split_once("reset-password?token=").unwrap();
    rest.chars().take_while(|char| char.is_ascii_alphanumeric() || "-_.".contains(*char)).collect()
}

async fn reset(server: &TestServer, token: &str, password: &str) -> inlay_tests::Reply {
    let body = json!({"token": token, "password": password});
    server.anonymous().post("/v1/auth/reset-password", &body).await
}

async fn actions(org: &Org) -> Vec<Value> {
    let rows = org.admin.get("/v1/audit").await.expect(200);
    rows["data"].as_array().unwrap().iter().map(|row| row["action"].clone()).collect()
}

#[tokio::test]
async fn a_link_sets_a_new_password_once_and_ends_all_other_sessions() {
    let server = TestServer::start().await;
    let org = server.register("acme").await;
    let stranger = server.register("other").await;
    let other = session(&server, PASSWORD).await;
    forgot(&server, "nobody@example.com").await;
    let anonymous = server.anonymous();
    let ask = anonymous.request(reqwest::Method::POST, "/v1/auth/forgot-password");
    let ask = ask.json(&json!({"email": " ACME@Example.com "})).header("host", "evil.example");
    anonymous.send(ask).await.expect(202);
    let token = tokens(&server, 1).await.remove(0);
    let mail = quoted_printable(&server.outbox().remove(0));
    assert!(mail.contains("To: acme@example.com\r\n"), "{mail}");
    assert!(
        mail.contains(&format!("{}/console/reset-password?token={token}", server.base)),
        "{mail}"
    );
    assert!(!mail.contains("evil.example"), "{mail}");
    // A refused password leaves the link as it is.
    let refused = reset(&server, &token, "short").await;
    assert_eq!(refused.refused(400, "invalid_field").as_deref(), Some("password"));
    other.get("/v1/auth/me").await.expect(200);

    let reply = reset(&server, &token, "a new horse battery").await;
    let body = reply.expect(200);
    assert_eq!((&body["user"]["email"], &body["role"]), (&json!(EMAIL), &json!("owner")));
    let opened = server.anonymous().with_cookie(&session_cookie(&reply).unwrap());
    opened.get("/v1/auth/me").await.expect(200);
    for ended in [&other, &org.console] {
        ended.get("/v1/auth/me").await.refused(401, "session_expired");
    }
    stranger.console.get("/v1/auth/me").await.expect(200);
    login(&server, PASSWORD).await.refused(401, "unauthenticated");
    login(&server, "a new horse battery").await.expect(200);
    reset(&server, &token, "another new battery").await.refused(401, "unauthenticated");
    // Keys are no sessions.
    org.admin.get("/v1/auth/me").await.expect(200);
    assert!(actions(&org).await.contains(&json!("user.password_reset")));
}

#[tokio::test]
async fn a_link_ends_after_an_hour_by_the_next_one_and_by_any_change() {
    let server = TestServer::start().await;
    let org = server.register("acme").await;
    forgot(&server, EMAIL).await;
    let first = tokens(&server, 1).await.remove(0);
    forgot(&server, EMAIL).await;
    let second = tokens(&server, 2).await.into_iter().find(|token| *token != first).unwrap();
    reset(&server, &first, "a new horse battery").await.refused(401, "unauthenticated");
    server.clock.advance(HOUR_MS);
    reset(&server, &second, "a new horse battery").await.refused(401, "token_expired");

    forgot(&server, EMAIL).await;
    let all = tokens(&server, 3).await;
    let third = all.into_iter().find(|token| *token != first && *token != second).unwrap();
    let (_, secret) = third.split_once('.').unwrap();
    let grace = org.join(&server, "grace@example.com", "admin").await;
    let of_grace = grace.get("/v1/auth/me").await.expect(200)["user"]["id"].clone();
    let of_grace = format!("{}.{secret}", of_grace.as_str().unwrap());
    let cut = &third[..third.len() - 1];
    for token in ["", ".", "x.y", "../org.x", secret, &of_grace, cut, &"x".repeat(100_000)] {
        let refused = reset(&server, token, "a new horse battery").await;
        refused.refused(401, "unauthenticated");
    }
    let change = json!({"current_password": PASSWORD, "new_password": "changed horse battery"});
    org.console.post("/v1/auth/change-password", &change).await.expect(204);
    reset(&server, &third, "a new horse battery").await.refused(401, "unauthenticated");
    grace.get("/v1/auth/me").await.expect(200);
    login(&server, "changed horse battery").await.expect(200);
}

#[tokio::test]
async fn a_link_of_a_removed_member_opens_nothing() {
    let server = TestServer::start().await;
    let org = server.register("acme").await;
    let grace = org.join(&server, "grace@example.com", "admin").await;
    forgot(&server, "grace@example.com").await;
    let token = tokens(&server, 1).await.remove(0);
    let id = grace.get("/v1/auth/me").await.expect(200)["user"]["id"].clone();
    org.console.delete(&format!("/v1/members/{}", id.as_str().unwrap())).await.expect(204);
    reset(&server, &token, "a new horse battery").await.refused(401, "unauthenticated");
}

#[tokio::test]
async fn a_changed_password_ends_all_sessions_and_gives_a_new_cookie() {
    let server = TestServer::start().await;
    let org = server.register("acme").await;
    let other = session(&server, PASSWORD).await;
    let change = async |current: &str, new: &str| {
        let body = json!({"current_password": current, "new_password": new});
        org.console.post("/v1/auth/change-password", &body).await
    };
    let short = change(PASSWORD, "short").await;
    assert_eq!(short.refused(400, "invalid_field").as_deref(), Some("new_password"));
    let wrong = change("wrong horse battery", "changed horse battery").await;
    assert_eq!(wrong.refused(400, "invalid_field").as_deref(), Some("current_password"));
    other.get("/v1/auth/me").await.expect(200);
    let changed = change(PASSWORD, "changed horse battery").await;
    changed.expect(204);
    // Somebody else may have the cookie that this browser had.
    for ended in [&org.console, &other] {
        ended.get("/v1/auth/me").await.refused(401, "session_expired");
    }
    let renewed = server.anonymous().with_cookie(&session_cookie(&changed).unwrap());
    renewed.get("/v1/auth/me").await.expect(200);
    login(&server, PASSWORD).await.refused(401, "unauthenticated");
    login(&server, "changed horse battery").await.expect(200);
    assert!(actions(&org).await.contains(&json!("user.password_change")));
    let key = org.admin.post("/v1/auth/change-password", &json!({})).await;
    key.refused(403, "forbidden_scope");
}

#[tokio::test]
async fn guesses_at_a_password_are_counted_however_they_are_made() {
    let mut server = TestServer::start().await;
    server.rate_limits = vec![("login", 5)];
    server.restart().await;
    let org = server.register("acme").await;
    let body =
        json!({"current_password": "a guess of a thief", "new_password": "changed horse battery"});
    for _ in 0..5 {
        let guess = org.console.post("/v1/auth/change-password", &body).await;
        guess.refused(400, "invalid_field");
    }
    org.console.post("/v1/auth/change-password", &body).await.refused(429, "rate_limited");
    login(&server, PASSWORD).await.refused(429, "rate_limited");
}

#[tokio::test]
async fn addresses_with_and_without_an_account_are_refused_alike() {
    let mut server = TestServer::start().await;
    server.register("acme").await;
    server.rate_limits = vec![("login", 3)];
    for email in [EMAIL, "nobody@example.com"] {
        server.restart().await;
        let mut answers = Vec::new();
        for _ in 0..4 {
            let body = json!({"email": email});
            let reply = server.anonymous().post("/v1/auth/forgot-password", &body).await;
            answers.push((reply.status, reply.headers["x-ratelimit-remaining"].clone()));
        }
        let statuses: Vec<u16> = answers.iter().map(|(status, _)| *status).collect();
        assert_eq!(statuses, [202, 202, 202, 429], "{email}: {answers:?}");
    }
}

#[tokio::test]
async fn sessions_are_listed_and_ended_one_by_one() {
    let server = TestServer::start().await;
    let org = server.register("acme").await;
    server.clock.advance(HOUR_MS);
    let body = json!({"email": EMAIL, "password": PASSWORD});
    let anonymous = server.anonymous();
    let phone = anonymous.request(reqwest::Method::POST, "/v1/auth/login").json(&body);
    let reply = anonymous.send(phone.header("user-agent", "Phone/1.0")).await;
    reply.expect(200);
    let phone = server.anonymous().with_cookie(&session_cookie(&reply).unwrap());
    let stranger = server.register("other").await;

    let listed = org.console.get("/v1/auth/sessions").await.expect(200);
    let listed = listed["data"].as_array().unwrap();
    assert_eq!(listed.len(), 2);
    let (newest, first) = (&listed[0], &listed[1]);
    assert_eq!((&newest["user_agent"], &newest["current"]), (&json!("Phone/1.0"), &json!(false)));
    assert_eq!((&newest["ip"], &first["current"]), (&json!("127.0.0.1"), &json!(true)));
    assert!(newest["created_at"].as_str() > first["created_at"].as_str());
    let path = format!("/v1/auth/sessions/{}", newest["id"].as_str().unwrap());
    stranger.console.delete(&path).await.refused(404, "not_found");
    org.join(&server, "grace@example.com", "admin")
        .await
        .delete(&path)
        .await
        .refused(404, "not_found");
    phone.get("/v1/auth/me").await.expect(200);
    org.console.delete(&path).await.expect(204);
    phone.get("/v1/auth/me").await.refused(401, "session_expired");
    org.console.delete(&path).await.refused(404, "not_found");
    let left = org.console.get("/v1/auth/sessions").await.expect(200);
    assert_eq!(left["data"].as_array().unwrap().len(), 1);
    org.admin.get("/v1/auth/sessions").await.refused(403, "forbidden_scope");
    // What has ended by itself is not listed.
    server.clock.advance(3 * 24 * HOUR_MS);
    let again = session(&server, PASSWORD).await;
    let listed = again.get("/v1/auth/sessions").await.expect(200);
    assert_eq!(listed["data"].as_array().unwrap().len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn of_two_that_follow_one_link_at_once_one_is_let_in() {
    let server = TestServer::start().await;
    server.register("acme").await;
    forgot(&server, EMAIL).await;
    let token = tokens(&server, 1).await.remove(0);
    let (one, other) = tokio::join!(
        reset(&server, &token, "a new horse battery"),
        reset(&server, &token, "another new battery")
    );
    let mut statuses = [one.status, other.status];
    statuses.sort_unstable();
    assert_eq!(statuses, [200, 401]);
}

#[tokio::test]
async fn addresses_that_are_ours_cannot_be_invited() {
    let server = TestServer::start().await;
    let org = server.register("acme").await;
    let body = json!({"email": "demo@inlay.invalid", "role": "admin"});
    let refused = org.console.post("/v1/members/invite", &body).await;
    assert_eq!(refused.refused(400, "invalid_field").as_deref(), Some("email"));
}
