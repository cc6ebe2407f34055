//! The edge: what is refused, limited and said around every request.

use std::time::Duration;

use inlay_tests::{Client, TestServer, session_cookie};
use reqwest::Method;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

async fn named(client: &Client, path: &str, name: &str, body: &Value) -> inlay_tests::Reply {
    client.send(client.request(Method::POST, path).header("idempotency-key", name).json(body)).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_named_request_is_carried_out_once() {
    let mut server = TestServer::start().await;
    let org = server.register("acme").await;
    let body = json!({"label": "k", "scope": "admin"});
    let first = named(&org.admin, "/v1/api-keys", "one", &body).await;
    let made = first.expect(201);
    server.restart().await;
    let admin = server.anonymous().with_bearer(org.body["api_key"]["key"].as_str().unwrap());
    let again = named(&admin, "/v1/api-keys", "one", &body).await;
    assert_eq!(again.expect(201), made, "with the key, which is shown to nobody else");
    assert_eq!(again.headers["idempotent-replayed"], "true");
    assert!(!first.headers.contains_key("idempotent-replayed"));
    let keys =
        async || admin.get("/v1/api-keys").await.expect(200)["data"].as_array().unwrap().len();
    assert_eq!(keys().await, 2);
    for (path, body) in [
        ("/v1/api-keys", json!({"label": "other", "scope": "admin"})),
        ("/v1/dashboards", json!({"name": "D"})),
    ] {
        let other = named(&admin, path, "one", &body).await;
        assert_eq!(other.refused(409, "conflict").as_deref(), Some("Idempotency-Key"));
    }
    // Another credential has names of its own, and so has tomorrow.
    let other = server.anonymous().with_bearer(made["key"].as_str().unwrap());
    assert_ne!(named(&other, "/v1/api-keys", "one", &body).await.expect(201)["id"], made["id"]);
    server.clock.advance(24 * 3_600_000);
    assert_ne!(named(&admin, "/v1/api-keys", "one", &body).await.expect(201)["id"], made["id"]);
    assert_eq!(keys().await, 4);
    // What was refused is refused again, with all that was wrong.
    let wrong = json!({"label": "", "scope": "root"});
    let refused = named(&admin, "/v1/api-keys", "two", &wrong).await.expect(400);
    let mut again = named(&admin, "/v1/api-keys", "two", &wrong).await.expect(400);
    assert_eq!(again["details"].as_array().unwrap().len(), 2);
    assert_ne!(again["request_id"], refused["request_id"]);
    again["request_id"] = refused["request_id"].clone();
    assert_eq!(again, refused);
    for name in [String::new(), "x".repeat(256)] {
        let reply = named(&admin, "/v1/dashboards", &name, &json!({"name": "D"})).await;
        assert_eq!(reply.refused(400, "invalid_field").as_deref(), Some("Idempotency-Key"));
    }
    let events = json!({"events": [{"tenant_id": "t", "event_name": "e"}]});
    for duplicates in [0, 1, 1] {
        let answer = named(&admin, "/v1/events", "batch", &events).await.expect(200);
        assert_eq!((&answer["accepted"], &answer["duplicates"]), (&json!(1), &json!(duplicates)));
    }
    assert_eq!(admin.count("t", "e").await, 1, "an event without an id counts once by its batch");
    named(&admin, "/v1/events", "other", &events).await.expect(200);
    assert_eq!(admin.count("t", "e").await, 2);
    assert_eq!(server.expire(), 1, "only the name of yesterday");
}

#[tokio::test]
async fn the_environment_is_a_part_of_a_named_request() {
    let server = TestServer::start().await;
    let org = server.register("acme").await;
    let ask = async |environment: &str| {
        let request =
            org.console.request(Method::POST, "/v1/api-keys").header("idempotency-key", "e");
        let request = request.header("x-service-environment", environment);
        org.console.send(request.json(&json!({"label": "k", "scope": "ingest"}))).await
    };
    let made = ask("production").await.expect(201);
    assert_eq!(ask("production").await.expect(201), made);
    ask("development").await.refused(409, "conflict");
}

#[tokio::test]
async fn the_same_named_request_at_once_has_one_effect() {
    let server = TestServer::start().await;
    let org = server.register("acme").await;
    let body = json!({"name": "D"});
    let mut tasks = tokio::task::JoinSet::new();
    for _ in 0..16 {
        let (client, body) = (org.admin.clone(), body.clone());
        tasks.spawn(async move { named(&client, "/v1/dashboards", "n", &body).await });
    }
    let mut ids = std::collections::BTreeSet::new();
    while let Some(reply) = tasks.join_next().await {
        let reply = reply.unwrap();
        match reply.status {
            201 => drop(ids.insert(reply.json()["id"].to_string())),
            _ => drop(reply.refused(409, "conflict")),
        }
    }
    let made = org.admin.get("/v1/dashboards").await.expect(200);
    assert_eq!((ids.len(), made["data"].as_array().unwrap().len()), (1, 1));
}

#[tokio::test]
async fn one_place_left_is_taken_by_one() {
    let server = TestServer::with_plan("free").await;
    let org = server.register("acme").await;
    let mut publishing = tokio::task::JoinSet::new();
    let mut making = tokio::task::JoinSet::new();
    for at in 0..10 {
        let made = org.admin.post("/v1/dashboards", &json!({"name": "D"})).await.expect(201);
        let (client, id) = (org.admin.clone(), made["id"].as_str().unwrap().to_owned());
        publishing
            .spawn(async move { client.post_empty(&format!("/v1/dashboards/{id}/publish")).await });
        let client = org.admin.clone();
        let key = json!({"label": format!("k{at}"), "scope": "ingest"});
        making.spawn(async move { client.post("/v1/api-keys", &key).await });
    }
    for (mut tasks, status, code) in
        [(publishing, 204, "published_dashboards_limit"), (making, 201, "api_keys_limit")]
    {
        let mut done = 0;
        while let Some(reply) = tasks.join_next().await {
            let reply = reply.unwrap();
            if reply.status == status {
                done += 1;
                continue;
            }
            reply.refused(402, code);
            let body = reply.json();
            assert_eq!((&body["plan"], &body["upgrade_to"]), (&json!("free"), &json!("growth")));
            assert_eq!(body["limit"], body["used"]);
        }
        assert_eq!(done, 1, "{code}");
    }
}

#[tokio::test]
async fn callers_are_counted_each_for_himself() {
    // Each of several processes lets pass its share, and says how full its own bucket is.
    if inlay_tests::is_spread() {
        return;
    }
    let mut server = TestServer::start().await;
    server.rate_limits = vec![("management", 5), ("query", 3), ("login", 4), ("register", 3)];
    server.restart().await;
    let org = server.register("acme").await;
    let ingest = org.admin.post("/v1/api-keys", &json!({"label": "i", "scope": "ingest"})).await;
    let header = |reply: &inlay_tests::Reply, name: &str| -> u32 {
        reply.headers[&format!("x-ratelimit-{name}")].to_str().unwrap().parse().unwrap()
    };
    assert_eq!((header(&ingest, "limit"), header(&ingest, "remaining")), (5, 4));
    let mut refused = 0;
    for _ in 0..8 {
        let reply = org.admin.get("/v1/dashboards").await;
        if reply.status == 429 {
            reply.refused(429, "rate_limited");
            assert_eq!(
                (header(&reply, "remaining"), &reply.headers["retry-after"]),
                (0, &"1".parse().unwrap())
            );
            refused += 1;
        }
    }
    assert!(refused >= 2, "{refused}");
    // A session of the same organisation has a bucket of its own; queries have another one.
    assert_eq!(header(&org.console.get("/v1/dashboards").await, "remaining"), 4);
    let query = "/v1/query?event_name=e&metric=count&period=7d&tenant_id=t";
    assert_eq!(header(&org.admin.get(query).await, "limit"), 3);
    // Those of one organisation share it.
    assert!(header(&org.console.get(query).await, "remaining") <= 2);
    // What is refused for want of credentials is counted by address.
    assert_eq!(header(&server.anonymous().get("/v1/dashboards").await, "limit"), 5);

    // Passwords: four attempts a quarter of an hour, however the account is written.
    let mut statuses = Vec::new();
    for spelling in
        ["acme@example.com", " acme@example.com", "ACME@example.com ", "x", "acme@example.com", "y"]
    {
        let login = json!({"email": spelling, "password": "wrong wrong wrong"});
        let reply = server.anonymous().post("/v1/auth/login", &login).await;
        statuses.push(reply.status);
        if reply.status == 429 {
            let wait: u32 = reply.headers["retry-after"].to_str().unwrap().parse().unwrap();
            assert!((200..=225).contains(&wait), "{wait}");
        }
    }
    assert_eq!(statuses, [401, 401, 401, 401, 429, 429]);
}

#[tokio::test]
async fn answers_tell_browsers_what_they_are_not_for() {
    let server = TestServer::start().await;
    let org = server.register("acme").await;
    for path in ["/v1/dashboards", "/v1/nope", "/openapi.json", "/healthz", "/docs"] {
        let reply = org.admin.get(path).await;
        assert_eq!(reply.headers["x-content-type-options"], "nosniff", "{path}");
        assert_eq!(reply.headers["referrer-policy"], "no-referrer", "{path}");
        let policy = reply.headers["content-security-policy"].to_str().unwrap();
        assert!(policy.contains("frame-ancestors 'none'"), "{path}");
        assert!(!reply.headers.contains_key("access-control-allow-origin"), "{path}");
        assert!(!reply.headers.contains_key("server"), "{path}");
    }
    assert_eq!(org.admin.get("/v1/dashboards").await.headers["cache-control"], "no-store");
    let request = org
        .console
        .request(Method::OPTIONS, "/v1/dashboards")
        .header("origin", "https://x.example");
    let preflight = org.console.send(request.header("access-control-request-method", "POST")).await;
    assert!(
        !preflight.headers.contains_key("access-control-allow-origin") && preflight.status == 405
    );
}

#[tokio::test]
async fn a_dashboards_version_is_its_tag() {
    let server = TestServer::start().await;
    let org = server.register("acme").await;
    let made = org.admin.post("/v1/dashboards", &json!({"name": "D"})).await.expect(201);
    let path = format!("/v1/dashboards/{}", made["id"].as_str().unwrap());
    let first = org.admin.get(&path).await;
    assert_eq!(first.headers["etag"], "\"1\"");
    let ask = async |name: &str, value: &str| {
        org.admin.send(org.admin.request(Method::GET, &path).header(name, value)).await
    };
    for known in ["\"1\"", "W/\"1\"", "\"0\", \"1\"", "*"] {
        let reply = ask("if-none-match", known).await;
        assert_eq!((reply.status, &*reply.text), (304, ""), "{known}");
    }
    ask("if-none-match", "\"2\"").await.expect(200);
    let change = |version: &str| {
        let request = org.admin.request(Method::PATCH, &path).header("if-match", version);
        org.admin.send(request.json(&json!({"name": "E"})))
    };
    let changed = change("\"1\"").await;
    changed.expect(200);
    assert_eq!(changed.headers["etag"], "\"2\"");
    change("\"1\"").await.refused(409, "conflict");
    change("*").await.expect(200);
    for wrong in ["x", "", "+2", "\"\"\"3\"\"\"", "\"3"] {
        let reply = change(wrong).await;
        assert_eq!(reply.refused(400, "invalid_field").as_deref(), Some("If-Match"), "{wrong}");
    }
}

#[tokio::test]
async fn logging_in_again_ends_the_session_before() {
    let server = TestServer::start().await;
    let org = server.register("acme").await;
    let login = json!({"email": "acme@example.com", "password": "correct horse battery"});
    let reply = org.console.post("/v1/auth/login", &login).await;
    reply.expect(200);
    org.console.get("/v1/auth/me").await.refused(401, "session_expired");
    let console = server.anonymous().with_cookie(&session_cookie(&reply).unwrap());
    console.get("/v1/auth/me").await.expect(200);
    let cookie = reply.headers["set-cookie"].to_str().unwrap();
    assert!(cookie.contains("HttpOnly; SameSite=Lax; Path=/") && !cookie.contains("Secure"));
}

#[tokio::test]
async fn slow_and_swollen_requests_are_ended() {
    let server = TestServer::start().await;
    let address = server.base.trim_start_matches("http://").to_owned();
    let connect = || tokio::net::TcpStream::connect(address.clone());
    // A head that does not end.
    let mut slow = connect().await.unwrap();
    slow.write_all(b"GET /healthz HTTP/1.1\r\nhost: x\r\nx-a: ").await.unwrap();
    // A head that is too large.
    let mut swollen = connect().await.unwrap();
    let head = format!("GET /healthz HTTP/1.1\r\nhost: x\r\nx-a: {}\r\n\r\n", "a".repeat(80_000));
    let _ = swollen.write_all(head.as_bytes()).await;
    let answer = read(&mut swollen).await;
    assert!(answer.is_empty() || answer.starts_with("HTTP/1.1 431"), "{answer}");
    let mut many = connect().await.unwrap();
    let lines: String = (0..150).map(|at| format!("x-{at}: 1\r\n")).collect();
    let _ =
        many.write_all(format!("GET /healthz HTTP/1.1\r\nhost: x\r\n{lines}\r\n").as_bytes()).await;
    let answer = read(&mut many).await;
    assert!(answer.is_empty() || answer.starts_with("HTTP/1.1 431"), "{answer}");
    let ended = tokio::time::timeout(Duration::from_secs(20), read(&mut slow)).await;
    assert!(ended.is_ok(), "a head has ten seconds");
    server.anonymous().get("/healthz").await.expect(200);
}

async fn read(stream: &mut tokio::net::TcpStream) -> String {
    let mut bytes = Vec::new();
    let _ = stream.read_to_end(&mut bytes).await;
    String::from_utf8_lossy(&bytes).into_owned()
}

#[tokio::test]
async fn https_is_served_with_a_certificate() {
    // One of several processes asks another by its address, which is not in this certificate.
    if inlay_tests::is_spread() {
        return;
    }
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let mut server = TestServer::start().await;
    let (cert, key) =
        (server.directory.path().join("cert.pem"), server.directory.path().join("key.pem"));
    write(&cert, &made.cert.pem());
    write(&key, &made.signing_key.serialize_pem());
    server.tls = Some((cert, key));
    server.restart().await;
    let port = server.base.rsplit(':').next().unwrap().to_owned();
    let trusted = reqwest::Certificate::from_pem(made.cert.pem().as_bytes()).unwrap();
    let http = reqwest::Client::builder().no_proxy().tls_certs_only([trusted]).build().unwrap();
    let url = format!("https://localhost:{port}/v1/auth/register");
    let body = json!({"email": "a@b.example", "password": "correct horse battery", "name": "A", "org_name": "A"});
    let reply = http.post(url).json(&body).send().await.unwrap();
    assert_eq!(reply.status(), 201);
    assert_eq!(reply.version(), reqwest::Version::HTTP_2);
    assert!(reply.headers()["strict-transport-security"].to_str().unwrap().starts_with("max-age="));
    assert!(reply.headers()["set-cookie"].to_str().unwrap().contains("; Secure"));
    // Plain HTTP is not answered there, and does not hold the door.
    let plain = reqwest::Client::builder().no_proxy().build().unwrap();
    assert!(plain.get(format!("http://127.0.0.1:{port}/healthz")).send().await.is_err());
    // A change by cookie, as browsers make it over HTTP/2: from our own pages, and from elsewhere.
    let cookie =
        reply.headers()["set-cookie"].to_str().unwrap().split(';').next().unwrap().to_owned();
    for (origin, expected) in [
        (format!("https://localhost:{port}"), 201),
        (format!("http://localhost:{port}"), 403),
        ("https://evil.example".to_owned(), 403),
    ] {
        let url = format!("https://localhost:{port}/v1/dashboards");
        let request = http.post(url).header("cookie", &cookie).header("origin", &origin);
        let reply = request.json(&json!({"name": "D"})).send().await.unwrap();
        assert_eq!(reply.version(), reqwest::Version::HTTP_2);
        assert_eq!(reply.status(), expected, "{origin}");
    }
    let healthy = http.get(format!("https://localhost:{port}/healthz")).send().await.unwrap();
    assert_eq!(healthy.status(), 200);
}

fn write(path: &std::path::Path, text: &str) {
    use std::io::Write as _;
    let mut options = std::fs::OpenOptions::new();
    options.create(true).write(true).truncate(true);
    options.open(path).unwrap().write_all(text.as_bytes()).unwrap();
}

#[tokio::test]
async fn who_was_removed_while_his_request_arrives_changes_nothing() {
    let server = TestServer::start().await;
    let org = server.register("acme").await;
    let admin = org.join(&server, "a@acme.example", "admin").await;
    let id = admin.get("/v1/auth/me").await.expect(200)["user"]["id"].clone();
    let login = json!({"email": "a@acme.example", "password": "correct horse battery"});
    let reply = server.anonymous().post("/v1/auth/login", &login).await;
    let cookie = session_cookie(&reply).unwrap();
    let key =
        org.admin.post("/v1/api-keys", &json!({"label": "k", "scope": "admin"})).await.expect(201);
    let bearer = format!("authorization: Bearer {}", key["key"].as_str().unwrap());
    let address = server.base.trim_start_matches("http://").to_owned();
    // The head and a byte of each body; the rest comes when it should be too late.
    let begin = async |path: &str, credential: &str, body: &str| {
        let mut stream = tokio::net::TcpStream::connect(&address).await.unwrap();
        let length = body.len();
        let head = format!(
            "POST {path} HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\n{credential}\r\n\
             content-type: application/json\r\ncontent-length: {length}\r\n\r\n{}",
            &body[..1]
        );
        stream.write_all(head.as_bytes()).await.unwrap();
        (stream, body[1..].to_owned())
    };
    let minted = r#"{"label":"persists","scope":"admin"}"#;
    let events = r#"{"events":[{"tenant_id":"t","event_name":"late"}]}"#;
    let mut begun = [
        begin("/v1/api-keys", &bearer, minted).await,
        begin("/v1/api-keys", &format!("cookie: {cookie}"), minted).await,
        begin("/v1/events", &bearer, events).await,
    ];
    tokio::time::sleep(Duration::from_millis(300)).await;
    org.console.delete(&format!("/v1/api-keys/{}", key["id"].as_str().unwrap())).await.expect(204);
    org.console.delete(&format!("/v1/members/{}", id.as_str().unwrap())).await.expect(204);
    for (stream, rest) in &mut begun {
        stream.write_all(rest.as_bytes()).await.unwrap();
        let answer = read(stream).await;
        assert!(answer.starts_with("HTTP/1.1 401"), "{answer}");
    }
    let keys = org.console.get("/v1/api-keys").await.expect(200);
    assert!(!keys.to_string().contains("persists"), "{keys}");
    assert_eq!(org.admin.count("t", "late").await, 0);
}

#[tokio::test]
async fn an_answer_waits_for_a_client_that_went_away() {
    let server = TestServer::start().await;
    let org = server.register("acme").await;
    let address = server.base.trim_start_matches("http://").to_owned();
    let key = org.body["api_key"]["key"].as_str().unwrap();
    let body = json!({"label": "k", "scope": "admin"});
    for at in 0..20 {
        let text = body.to_string();
        let request = format!(
            "POST /v1/api-keys HTTP/1.1\r\nhost: {address}\r\nauthorization: Bearer {key}\r\n\
             idempotency-key: n{at}\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{text}",
            text.len()
        );
        let mut stream = tokio::net::TcpStream::connect(&address).await.unwrap();
        stream.write_all(request.as_bytes()).await.unwrap();
        tokio::time::sleep(Duration::from_millis(at % 7)).await;
        drop(stream);
        // Under way, or answered: never carried out without an answer.
        loop {
            let reply = named(&org.admin, "/v1/api-keys", &format!("n{at}"), &body).await;
            if reply.status == 201 {
                break;
            }
            let text = reply.text.clone();
            assert!(text.contains("under way") || text.contains("meanwhile"), "{at}: {text}");
        }
    }
    let keys = org.admin.get("/v1/api-keys").await.expect(200);
    assert_eq!(keys["data"].as_array().unwrap().len(), 21);
    // A large answer too.
    let widgets: Vec<Value> = (0..40)
        .map(|at| {
            let mut widget = crate::dashboards::widget(&format!("w{at}"));
            widget["viz"] = json!({"note": "x".repeat(5_000)});
            widget
        })
        .collect();
    let large = json!({"name": "D", "widgets": widgets});
    let first = named(&org.admin, "/v1/dashboards", "large", &large).await.expect(201);
    assert_eq!(named(&org.admin, "/v1/dashboards", "large", &large).await.expect(201), first);
}

/// One process takes changes, and says so; counts are taken from processes of the store alone.
#[tokio::test]
async fn one_process_leads_and_takes_counts_from_no_client() {
    let server = TestServer::start().await;
    let anonymous = server.anonymous();
    // Each request meets the next one, where there are several.
    let processes = if inlay_tests::is_spread() { 3 } else { 1 };
    let mut leading = 0;
    for _ in 0..processes {
        let reply = anonymous.get("/leaderz").await;
        assert!(matches!(reply.status, 200 | 503), "{}", reply.text);
        leading += usize::from(reply.status == 200);
    }
    assert_eq!(leading, 1);
    let counts = json!([{"org": "o", "environment": "e", "queries": 1, "embed_views": 1}]);
    for _ in 0..processes {
        anonymous.post("/internal/counts", &counts).await.refused(404, "not_found");
    }
    for _ in 0..processes {
        anonymous.get("/readyz").await.expect(200);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_is_to_stop_says_so_and_answers_for_a_while() {
    let mut server = TestServer::start().await;
    server.drain_seconds = 3;
    server.restart().await;
    let org = server.register("acme").await;
    let key = org.body["api_key"]["key"].as_str().unwrap();
    server.anonymous().get("/readyz").await.expect(200);
    let stopping = server.stop();
    // A balancer sends it nothing any more, and whoever has a connection is still answered.
    inlay_tests::eventually(|| async { server.anonymous().get("/readyz").await.status == 503 })
        .await;
    let answer = org.admin.get("/v1/dashboards").await;
    answer.expect(200);
    if !inlay_tests::is_spread() {
        assert_eq!(answer.headers["connection"], "close");
    }
    org.admin.post("/v1/dashboards", &json!({"name": "Late", "widgets": []})).await.expect(201);
    assert!(!stopping.is_finished());
    stopping.await.unwrap();
    server.restart().await;
    // On another port.
    let admin = server.anonymous().with_bearer(key);
    let names = admin.get("/v1/dashboards").await.expect(200);
    assert_eq!(names["data"][0]["name"], "Late");
}
