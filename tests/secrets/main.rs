//! Secrets are shown once and kept nowhere: not in the data directory, not in the log, not in lists.
//!
//! One whole run of a server in this process, with everything that it mints or is told; then every file
//! and every line is searched for every secret. It is a test of its own, because the log of a process
//! can be caught only once.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::{
    io::Write,
    path::Path,
    sync::{Arc, Mutex},
};

use inlay_tests::{TestServer, session_cookie};
use reqwest::Method;
use serde_json::json;

/// A log that is kept in memory.
#[derive(Clone, Default)]
struct Caught(Arc<Mutex<Vec<u8>>>);

impl Write for Caught {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }
    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// What must not be found, by name.
#[derive(Default)]
struct Secrets(Vec<(&'static str, String)>);

impl Secrets {
    fn add(&mut self, name: &'static str, secret: impl Into<String>) {
        let secret = secret.into();
        assert!(secret.len() >= 10, "{name} is too short to be searched for: {secret}");
        self.0.push((name, secret));
    }

    /// A secret in the forms in which it may be written.
    fn found_in(&self, bytes: &[u8], place: &str) {
        let text = String::from_utf8_lossy(bytes);
        for (name, secret) in &self.0 {
            let hex: String = secret.bytes().map(|byte| format!("{byte:02x}")).collect();
            let base64 =
                base64::Engine::encode(&base64::engine::general_purpose::STANDARD_NO_PAD, secret);
            for form in [secret, &hex, &base64[..base64.len() - 2]] {
                assert!(!text.contains(form), "{place} holds {name}");
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn no_secret_is_written_down() {
    let log = Caught::default();
    let writer = log.clone();
    tracing_subscriber::fmt()
        // All that is ours, and of others what a server's log has.
        .with_env_filter("info,inlay_server=trace,inlay_engine=trace")
        .with_ansi(false)
        .with_writer(move || writer.clone())
        .init();
    let mut secrets = Secrets::default();
    let mut answers = Vec::new();
    let mut server = TestServer::start().await;
    server.grpc_token = Some("grpc-token-of-this-run".to_owned());
    server.billing.billing_api_key = Some("billing-api-key-of-this-run".to_owned());
    server.billing.billing_client_token = Some("client-token-that-browsers-see".to_owned());
    server.billing.billing_prices =
        inlay_server::Prices(vec![("growth".to_owned(), "pri_1".to_owned())]);
    server.billing.billing_notification_key = vec!["notification-key-of-this-run".to_owned()];
    server.billing.billing_tolerance_seconds = 300;
    server.restart().await;
    secrets.add("the gRPC token", "grpc-token-of-this-run");
    secrets.add("the billing API key", "billing-api-key-of-this-run");
    secrets.add("the notification key", "notification-key-of-this-run");

    let anonymous = server.anonymous();
    let register = json!({"email": "ada@acme.example", "password": "password of ada one", "name": "Ada", "org_name": "Acme"});
    let reply = anonymous.post("/v1/auth/register", &register).await;
    let made = reply.expect(201);
    secrets.add("a password", "password of ada one");
    let cookie_of = |reply: &inlay_tests::Reply| {
        let cookie = session_cookie(reply).unwrap();
        (cookie.clone(), cookie.split_once('=').unwrap().1.to_owned())
    };
    let (cookie, value) = cookie_of(&reply);
    secrets.add("a session", value);
    let key = made["api_key"]["key"].as_str().unwrap();
    secrets.add("the default key", key);
    let (console, admin) =
        (anonymous.clone().with_cookie(&cookie), anonymous.clone().with_bearer(key));
    let wrong = json!({"email": "ada@acme.example", "password": "a wrong password here"});
    secrets.add("a wrong password", "a wrong password here");
    answers.push(anonymous.post("/v1/auth/login", &wrong).await.text);
    let broken = br#"{"email": "ada@acme.example", "password": "password in broken json", "#;
    secrets.add("a password in broken JSON", "password in broken json");
    let kind = ("content-type", "application/json");
    answers.push(anonymous.post_raw("/v1/auth/login", &[kind], broken.to_vec()).await.text);
    let typo = json!({"email": "ada@acme.example", "pass_word": "password in a wrong field", "password": 12345678901_u64});
    secrets.add("a password in a wrong field", "password in a wrong field");
    secrets.add("a password of a wrong type", "12345678901");
    answers.push(anonymous.post("/v1/auth/login", &typo).await.text);

    let named = admin
        .request(Method::POST, "/v1/api-keys")
        .header("idempotency-key", "named-by-its-client");
    let reply = admin.send(named.json(&json!({"label": "k", "scope": "ingest"}))).await;
    secrets.add("a key whose request was named", reply.expect(201)["key"].as_str().unwrap());
    let invite = json!({"email": "grace@acme.example", "role": "admin"});
    let invite = console.post("/v1/members/invite", &invite).await.expect(201);
    let token = invite["token"].as_str().unwrap();
    secrets.add("an invite", token);
    let accept = json!({"token": token, "name": "Grace", "password": "password of grace one"});
    let reply = anonymous.post("/v1/auth/accept-invite", &accept).await;
    reply.expect(200);
    secrets.add("a member's password", "password of grace one");
    secrets.add("a member's session", cookie_of(&reply).1);
    let dashboard = admin.post("/v1/dashboards", &json!({"name": "D"})).await.expect(201);
    let path = format!("/v1/dashboards/{}/publish", dashboard["id"].as_str().unwrap());
    admin.post_empty(&path).await.expect(204);
    let ask = json!({"tenant_id": "t", "dashboard_id": dashboard["id"]});
    let minted = admin.post("/v1/embed-sessions", &ask).await.expect(201);
    let token = minted["token"].as_str().unwrap().to_owned();
    let page = minted["embed_url"].as_str().unwrap().trim_start_matches(&server.base).to_owned();
    answers.push(anonymous.get(&page).await.text.replace(&token, ""));
    let viewer = anonymous.clone().with_bearer(&token);
    viewer.get("/v1/embed/dashboard").await.expect(200);
    answers.push(viewer.post("/v1/embed/data", &json!({"widgets": ["no such"]})).await.text);
    answers.push(anonymous.get(&format!("/v1/nothing?token={token}")).await.text);
    secrets.add("an embed token", token);
    let wrong_key = "inlay_admin_wrong-key-of-nobody-at-all";
    secrets.add("a wrong key", wrong_key);
    answers.push(anonymous.clone().with_bearer(wrong_key).get("/v1/auth/me").await.text);
    let signature = [("billing-signature", "ts=1;h1=00"), kind];
    answers.push(anonymous.post_raw("/webhooks/billing", &signature, b"{}".to_vec()).await.text);
    let lists = [
        "/v1/api-keys",
        "/v1/audit",
        "/v1/members",
        "/v1/members/invites",
        "/v1/embed-sessions",
        "/v1/auth/me",
        "/v1/settings/org",
        "/v1/billing",
    ];
    for path in lists {
        answers.push(console.get(path).await.text);
    }
    answers.push(anonymous.get("/metrics").await.text);
    // Everything to disk, twice: log, segments, checkpoint.
    server.restart().await;
    let reply = server
        .anonymous()
        .post(
            "/v1/auth/login",
            &json!({"email": "ada@acme.example", "password": "password of ada one"}),
        )
        .await;
    reply.expect(200);
    secrets.add("a later session", cookie_of(&reply).1);
    let directory = server.directory.path().to_owned();
    server.restart().await;

    for answer in &answers {
        secrets.found_in(
            answer.as_bytes(),
            &format!("an answer ({})", &answer[..answer.len().min(80)]),
        );
    }
    let text = log.0.lock().unwrap().clone();
    assert!(text.len() > 4_000, "the log was caught: {} bytes", text.len());
    secrets.found_in(&text, "the log");
    let files = search(&directory, &secrets);
    assert!(files > 5, "{files} files were searched");
    // The search finds what is there.
    let control = Secrets(vec![("an address", "ada@acme.example".to_owned())]);
    assert!(std::panic::catch_unwind(|| search(&directory, &control)).is_err());
}

fn search(directory: &Path, secrets: &Secrets) -> usize {
    use std::io::Read as _;
    let mut files = 0;
    for entry in std::fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files += search(&path, secrets);
            continue;
        }
        let mut bytes = Vec::new();
        std::fs::OpenOptions::new()
            .read(true)
            .open(&path)
            .unwrap()
            .read_to_end(&mut bytes)
            .unwrap();
        secrets.found_in(&bytes, &path.display().to_string());
        files += 1;
    }
    files
}
