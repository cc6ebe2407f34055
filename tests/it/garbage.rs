//! Ten thousand requests that nobody should send: no failure of ours, no trace in the store.
//!
//! They go over bare sockets, so that nothing on the way tidies them. Whoever may change something
//! sends only what cannot be right; everybody else sends anything.

use inlay_tests::{Client, Org, TestServer, assert_same_lines};
use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
};

use crate::{
    access::{NOBODYS, OF_EMBEDS, operations},
    dashboards::widget,
};

const REQUESTS: usize = 10_000;
const AT_ONCE: usize = 8;
const MARKER: &str = "CANARY9b1";

/// Chance that repeats itself.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) as usize % sides.max(1)
    }

    fn pick<'a, T: ?Sized>(&mut self, of: &[&'a T]) -> &'a T {
        of[self.roll(of.len())]
    }
}

/// Who asks: the headers that say so, and whether he may change things.
struct Sender {
    credential: String,
    may_change: bool,
}

async fn senders(server: &TestServer, org: &Org) -> Vec<Sender> {
    let ingest = org
        .console
        .post("/v1/api-keys", &json!({"label": "i", "scope": "ingest"}))
        .await
        .expect(201);
    let login = async |email: &str| {
        let body = json!({"email": email, "password": "correct horse battery"});
        let reply = server.anonymous().post("/v1/auth/login", &body).await;
        format!("cookie: {}\r\n", inlay_tests::session_cookie(&reply).unwrap())
    };
    org.join(server, "v@acme.example", "viewer").await;
    let bearer = |key: &Value| format!("authorization: Bearer {}\r\n", key.as_str().unwrap());
    vec![
        Sender { credential: String::new(), may_change: false },
        Sender { credential: "authorization: Bearer \u{1}\r\n".to_owned(), may_change: false },
        Sender {
            credential: "cookie: service_session=%00; service_session\r\n".to_owned(),
            may_change: false,
        },
        Sender { credential: login("v@acme.example").await, may_change: false },
        Sender { credential: login("acme@example.com").await, may_change: true },
        Sender { credential: bearer(&org.body["api_key"]["key"]), may_change: true },
        Sender { credential: bearer(&ingest["key"]), may_change: true },
    ]
}

const TEXTS: [&str; 14] = [
    "",
    "x",
    "\u{0}",
    "\u{202e}abc",
    "💩",
    "é̀̂",
    "../../etc/passwd",
    "' OR 1=1 --",
    "{{7*7}}",
    "<script>",
    "\u{feff}",
    "NaN",
    "-1",
    "99999999999999999999999999",
];

fn odd_value(dice: &mut Dice, depth: usize) -> Value {
    match dice.roll(if depth > 3 { 7 } else { 9 }) {
        0 => Value::Null,
        1 => json!(dice.roll(2) == 0),
        2 => json!(i64::MIN),
        3 => json!(u64::MAX),
        4 => json!(1e308),
        5 => json!(-0.0),
        6 => json!(dice.pick(&TEXTS)),
        7 => (0..dice.roll(4)).map(|_| odd_value(dice, depth + 1)).collect(),
        _ => {
            let entries = (0..dice.roll(4))
                .map(|_| (dice.pick(&TEXTS).to_owned(), odd_value(dice, depth + 1)));
            Value::Object(entries.collect())
        }
    }
}

/// A body that looks right until one looks closer. It always has a field that does not exist.
fn wrong_body(dice: &mut Dice, examples: &[Value]) -> Vec<u8> {
    match dice.roll(8) {
        0 => return b"{".repeat(1 + dice.roll(5_000)),
        1 => return format!("{}1{}", "{\"a\":".repeat(200), "}".repeat(200)).into_bytes(),
        2 => return odd_value(dice, 3).to_string().into_bytes().iter().rev().copied().collect(),
        3 => return (0..dice.roll(300)).map(|_| dice.roll(256) as u8).collect(),
        _ => {}
    }
    let mut body = examples[dice.roll(examples.len())].clone();
    if let Some(fields) = body.as_object_mut() {
        let names: Vec<String> = fields.keys().cloned().collect();
        for name in names {
            match dice.roll(4) {
                0 => drop(fields.insert(name, odd_value(dice, 0))),
                1 => drop(fields.remove(&name)),
                _ => {}
            }
        }
        fields.insert("no_such_field".to_owned(), odd_value(dice, 0));
    }
    let mut bytes = body.to_string().into_bytes();
    if dice.roll(3) == 0 && !bytes.is_empty() {
        // Cut, so that it stays wrong.
        bytes.truncate(dice.roll(bytes.len()));
    }
    bytes
}

fn odd_path(dice: &mut Dice, path: &str, ids: &[String]) -> String {
    let known: Vec<&str> = ids.iter().map(String::as_str).collect();
    let odd = [
        "",
        "%00",
        "%",
        "%zz",
        "..",
        "%2e%2e%2f",
        "0",
        "-1",
        "18446744073709551616",
        "ä",
        "a b",
        NOBODYS,
    ];
    let id = if dice.roll(3) == 0 { dice.pick(&known) } else { dice.pick(&odd) };
    let mut path =
        path.replace("{id}", id).replace("{number}", dice.pick(&["1", "0", "x", "%31", "1e3"]));
    match dice.roll(12) {
        0 => path.push('/'),
        1 => path = path.replacen("/v1", "/v1/../v1", 1),
        2 => path = format!("http://x.example{path}"),
        3 => path = format!("//{path}"),
        _ => {}
    }
    for _ in 0..dice.roll(4) {
        let names = [
            "limit",
            "cursor",
            "period",
            "event_name",
            "metric",
            "tenant_id",
            "f_model",
            "from",
            "zz",
            "%00",
        ];
        let mark = if path.contains('?') { '&' } else { '?' };
        let value = dice.pick(&TEXTS).replace([' ', '\u{0}', '#'], "%20");
        path = format!("{path}{mark}{}={value}", dice.pick(&names));
    }
    path
}

fn odd_headers(dice: &mut Dice, length: usize) -> String {
    let mut out = String::new();
    for _ in 0..dice.roll(3) {
        let lines = [
            "content-type: text/plain",
            "content-encoding: gzip",
            "content-encoding: zstd",
            "accept: application/x-ndjson",
            "accept: \u{7f}",
            "idempotency-key: ",
            "idempotency-key: a b",
            "if-match: \"x\"",
            "x-service-environment: development",
            "x-service-environment: \u{e9}",
            "x-forwarded-for: 1.2.3.4",
            "x-http-method-override: DELETE",
            "origin: null",
            "range: bytes=0-1",
            "expect: 100-continue",
            "host: other.example",
            "transfer-encoding: chunked",
            "content-length: 5",
            "upgrade: h2c",
            "no colon",
            " folded: yes",
        ];
        out += dice.pick(&lines);
        out += "\r\n";
    }
    if dice.roll(10) > 0 {
        out += &format!("content-length: {length}\r\n");
    }
    if dice.roll(5) > 0 {
        out += "content-type: application/json\r\n";
    }
    out
}

/// One request as bytes.
fn request(dice: &mut Dice, sender: &Sender, examples: &[Value], ids: &[String]) -> Vec<u8> {
    let operations = operations();
    let all: Vec<_> = operations.iter().chain(&OF_EMBEDS).collect();
    let (method, path, _) = all[dice.roll(all.len())];
    // Without a body that could be wrong these would be right.
    let needs_no_body = *method == "DELETE"
        || ["/publish", "/unpublish", "/restore-published"].iter().any(|end| path.ends_with(end));
    let ends_something = ["/tenants/", "/auto-create", "/logout", "settings/org"]
        .iter()
        .any(|part| path.contains(part));
    let nothing = [NOBODYS.to_owned()];
    let ids = if sender.may_change && needs_no_body { &nothing[..] } else { ids };
    let is_spared = path.ends_with("/logout")
        || sender.may_change
            && (needs_no_body && ends_something
                || ["/auto-create", "/rotate-key"].iter().any(|end| path.ends_with(end)));
    let path = if is_spared { "/v1/nope" } else { path };
    let methods = ["PUT", "TRACE", "get", "M-SEARCH", "OPTIONS", "HEAD"];
    let method = if dice.roll(10) == 0 { dice.pick(&methods) } else { method };
    let path = odd_path(dice, path, ids);
    let body = wrong_body(dice, examples);
    let head = format!(
        "{method} {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n{}{}\r\n",
        sender.credential,
        odd_headers(dice, body.len())
    );
    [head.into_bytes(), body].concat()
}

/// Sends bytes, reads the answer.
async fn send(address: &str, bytes: &[u8]) -> String {
    let mut stream = TcpStream::connect(address).await.unwrap();
    let _ = stream.write_all(bytes).await;
    let _ = stream.shutdown().await;
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer).await;
    String::from_utf8_lossy(&answer).into_owned()
}

async fn state(client: &Client) -> String {
    let mut out = String::new();
    for (method, path, _) in operations() {
        // A page without a link is none.
        let moves =
            ["/v1/query", "/v1/discover", "/v1/usage", "/v1/demo/embed-url", "/v1/unsubscribe"]
                .contains(&path)
                || path.starts_with("/v1/billing/c")
                || path.starts_with("/v1/billing/portal");
        if method != "GET" || path.contains('{') || moves {
            continue;
        }
        let body = client.get(path).await.expect(200);
        let body = inlay_tests::without_use(body);
        out += &format!("{path}: {body}\n");
    }
    out
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ten_thousand_wrong_requests_change_nothing() {
    let server = TestServer::start().await;
    let org = server.register("acme").await;
    let other = server.register("other").await;
    other.admin.post("/v1/dashboards", &json!({"name": MARKER})).await.expect(201);
    let made = json!({"name": "D", "widgets": [widget("w")]});
    let made = org.admin.post("/v1/dashboards", &made).await.expect(201);
    let senders = senders(&server, &org).await;
    let document = org.admin.get("/openapi.json").await.expect(200);
    let examples = vec![
        json!({"name": "D", "widgets": [widget("w")], "settings": {}}),
        json!({"dashboard_id": made["id"], "widget_id": "w", "name": "x", "condition_type": "no_data"}),
        json!({"dashboard_id": made["id"], "name": "x", "format": "csv", "schedule": "daily", "recipients": ["a@b.example"]}),
        json!({"tenant_id": "t", "dashboard_id": made["id"], "permissions": {}}),
        json!({"label": "k", "scope": "admin"}),
        json!({"email": "x@y.example", "role": "viewer"}),
        json!({"email": "x@y.example", "password": "correct horse battery", "name": "x", "org_name": "x"}),
        json!({"widget": widget("w"), "tenant_id": "t", "overrides": {}}),
        json!({"events": [{"tenant_id": "t", "event_name": "e"}]}),
        json!({"name": "q", "sql": "SELECT 1", "dataset": "events"}),
        json!({"role": "editor"}),
    ];
    assert!(document["paths"].as_object().unwrap().len() > 40);
    let ids = vec![made["id"].as_str().unwrap().to_owned()];
    let before = state(&org.console).await;
    let address = server.base.trim_start_matches("http://").to_owned();
    let shared = std::sync::Arc::new((senders, examples, ids));
    let mut tasks = tokio::task::JoinSet::new();
    for lane in 0..AT_ONCE {
        let (shared, address) = (std::sync::Arc::clone(&shared), address.clone());
        tasks.spawn(async move {
            let (senders, examples, ids) = &*shared;
            let mut dice =
                Dice(0x9e37_79b9_7f4a_7c15 ^ (lane as u64 + 1).wrapping_mul(0x1234_5678_9abc_def1));
            let mut refused = 0;
            for _ in 0..REQUESTS / AT_ONCE {
                let sender = &senders[dice.roll(senders.len())];
                let bytes = request(&mut dice, sender, examples, ids);
                let answer = send(&address, &bytes).await;
                let status: u16 =
                    answer.get(9..12).and_then(|status| status.parse().ok()).unwrap_or(0);
                let sent = String::from_utf8_lossy(&bytes[..bytes.len().min(600)]).into_owned();
                // The one answer of this kind that is right: billing is not configured. To a
                // HEAD it has no body that would say so; its path may have a host before it.
                let line = sent.split('\r').next().unwrap_or_default();
                let is_billing = answer.contains("billing_not_configured")
                    || (line.starts_with("HEAD ")
                        && line.contains("/v1/billing/")
                        && status == 503);
                let is_fine = status < 500 || is_billing;
                assert!(is_fine, "{sent}\n---\n{answer}");
                assert!(
                    !answer.contains(MARKER) && !answer.contains("panicked"),
                    "{sent}\n---\n{answer}"
                );
                refused += usize::from(status >= 400);
            }
            refused
        });
    }
    let mut refused = 0;
    while let Some(done) = tasks.join_next().await {
        refused += done.unwrap();
    }
    assert!(refused > REQUESTS / 2, "{refused}");
    assert_same_lines(&state(&org.console).await, &before);
}
