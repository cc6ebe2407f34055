//! A whole server inside the test process, and a client that reads like the API.
//!
//! Each [`TestServer`] has its own folder, free ports, a clock that the test moves, and seeded
//! chance. Nothing is mocked: requests go through real sockets to a real store. With `INLAY_TEST_POSTGRES` it is three servers with one store (`spread.rs`).

#![expect(clippy::unwrap_used, clippy::missing_panics_doc, reason = "a test fails by panicking")]

use std::{collections::BTreeMap, path::PathBuf, sync::Arc};

mod receiver;
mod spread;

use inlay_server::{
    BillingConfig, Config, Networks, RateLimits, Running, Waits,
    engine::{Clock, ManualClock, SeededRng},
    serve_with,
};
use reqwest::{Method, RequestBuilder};
use serde_json::{Value, json};

pub use receiver::{Manner, Received, Receiver};
pub use spread::is_spread;
use spread::{NODES, Spread, is_apart};

/// 2026-11-20T10:17:36.789Z, a Friday.
pub const NOW_MS: i64 = 1_795_169_856_789;

/// A server in this process.
pub struct TestServer {
    /// Address of REST, without a slash at the end.
    pub base: String,
    /// The server's clock.
    pub clock: Arc<ManualClock>,
    /// Temporary folder with the data of the server.
    pub directory: tempfile::TempDir,
    /// One, or several with one store.
    running: Vec<Running>,
    spread: Option<Spread>,
    plan: String,
    /// The billing provider, from its next start on.
    pub billing: BillingConfig,
    /// Rate limits, from its next start on; high ones where none are named.
    pub rate_limits: Vec<(&'static str, u32)>,
    /// Internal networks that webhooks may reach, from its next start on.
    pub webhook_allow: Vec<String>,
    /// Mail server, from its next start on.
    pub smtp_url: Option<String>,
    /// Certificate and key, from its next start on.
    pub tls: Option<(PathBuf, PathBuf)>,
    /// Bearer token of its gRPC service.
    pub grpc_token: Option<String>,
    /// Days of events that it keeps, from its next start on.
    pub retention_days: Option<u32>,
    /// Longest time of a question, from its next start on.
    pub query_ms_max: u64,
    /// Whether it runs with the demo, from the next start on.
    pub demo: bool,
    /// Processes that wait for statements, from the next start on.
    pub sql_idle_workers: usize,
    /// How long it answers after it was told to stop.
    pub drain_seconds: u32,
    /// Memory that it may use, in MiB, from the next start on.
    pub memory_mb: u64,
}

/// An answer: status, headers, body.
pub struct Reply {
    /// Status of the HTTP answer.
    pub status: u16,
    /// Headers of the HTTP answer.
    pub headers: reqwest::header::HeaderMap,
    /// Text of the body.
    pub text: String,
}

impl Reply {
    /// The body as JSON; null when it is none.
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.text).unwrap_or(Value::Null)
    }

    /// Fails unless the status is this one; gives the body.
    #[track_caller]
    pub fn expect(&self, status: u16) -> Value {
        assert_eq!(self.status, status, "{}", self.text);
        self.json()
    }

    /// Fails unless it is an error of the one shape with this status and code; gives the field.
    #[track_caller]
    pub fn refused(&self, status: u16, code: &str) -> Option<String> {
        let body = self.expect(status);
        assert_eq!(body["code"], code, "{}", self.text);
        assert!(body["error"].is_string() && body["request_id"].is_string(), "{}", self.text);
        body["field"].as_str().map(str::to_owned)
    }
}

/// A client with one kind of credentials.
#[derive(Clone)]
pub struct Client {
    base: String,
    http: reqwest::Client,
    bearer: Option<String>,
    cookie: Option<String>,
}

/// A registered organisation.
pub struct Org {
    /// With the owner's session cookie.
    pub console: Client,
    /// With the default admin key.
    pub admin: Client,
    /// What registering answered.
    pub body: Value,
}

/// The worker that is built beside the tests.
fn sql_program() -> PathBuf {
    let tests = std::env::current_exe().unwrap();
    tests.parent().and_then(std::path::Path::parent).unwrap().join("sql-worker")
}

impl TestServer {
    /// Starts a server.
    pub async fn start() -> Self {
        Self::with_plan("self_hosted").await
    }

    /// Starts a server whose new organisations have this plan.
    pub async fn with_plan(plan: &str) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let mut server = Self {
            base: String::new(),
            clock: Arc::new(ManualClock::new(NOW_MS)),
            spread: Spread::new(directory.path().join("outbox")).await,
            directory,
            running: Vec::new(),
            plan: plan.to_owned(),
            billing: BillingConfig::default(),
            rate_limits: Vec::new(),
            webhook_allow: Vec::new(),
            smtp_url: None,
            tls: None,
            grpc_token: None,
            retention_days: None,
            query_ms_max: 30_000,
            demo: false,
            sql_idle_workers: 0,
            drain_seconds: 0,
            memory_mb: 1_024,
        };
        server.run().await;
        server
    }

    async fn run(&mut self) {
        match &self.spread {
            None => {
                let running = self.run_one(0).await;
                self.base = format!("http://{}", running.http_addr);
                self.running = vec![running];
            }
            Some(spread) => {
                self.base = format!("http://{}", spread.address);
                for number in 0..NODES {
                    let running = self.run_one(number).await;
                    self.running.push(running);
                }
                let addresses = self.running.iter().map(|running| running.http_addr).collect();
                self.spread.as_ref().unwrap().set_nodes(addresses);
            }
        }
    }

    /// Starts the server, or one of several.
    async fn run_one(&self, number: usize) -> Running {
        let spread = self.spread.as_ref();
        let scheme = if self.tls.is_some() { "https" } else { "http" };
        let config = Config {
            metadata_url: spread.filter(|_| !is_apart()).map(|spread| spread.metadata_url.clone()),
            events_url: spread.filter(|_| !is_apart()).map(|spread| spread.events_url.clone()),
            node_url: None,
            data_dir: match spread {
                None => self.directory.path().to_owned(),
                Some(_) => self.directory.path().join(format!("node{number}")),
            },
            http_addr: ([127, 0, 0, 1], 0).into(),
            grpc_addr: ([127, 0, 0, 1], 0).into(),
            grpc_token: self.grpc_token.clone(),
            retention_days: self.retention_days,
            query_ms_max: self.query_ms_max,
            memory_mb: Some(self.memory_mb),
            base_url: spread.map(|spread| format!("{scheme}://{}", spread.address)),
            default_plan: (!self.plan.is_empty()).then(|| self.plan.clone()),
            rate_limits: self.limits(),
            trusted_proxies: Networks::default(),
            tls_cert: self.tls.as_ref().map(|(cert, _)| cert.clone()),
            tls_key: self.tls.as_ref().map(|(_, key)| key.clone()),
            webhook_allow: Networks(
                self.webhook_allow.iter().map(|net| net.parse().unwrap()).collect(),
            ),
            webhook_backoff_seconds: Waits::default(),
            alert_interval_seconds: 60,
            smtp_url: self
                .smtp_url
                .clone()
                .or_else(|| spread.map(|spread| spread.smtp_url.clone())),
            mail_from: None,
            billing: self.billing.clone(),
            sql_idle_workers: self.sql_idle_workers,
            sql_program: Some(sql_program()),
            drain_seconds: Some(self.drain_seconds),
            cache_mb: None,
            log: "warn".to_owned(),
            log_format: "text".to_owned(),
            demo: self.demo,
        };
        let clock = Arc::clone(&self.clock);
        // Each process draws other ones.
        let rng = SeededRng::new(clock.now_ms() as u64 + number as u64 * 1_000_000_007);
        serve_with(config, clock, Arc::new(rng)).await.unwrap()
    }

    /// The one that takes changes.
    fn leader(&self) -> &Running {
        self.running.iter().find(|running| running.leads()).unwrap()
    }

    /// Tests ask faster than people do.
    fn limits(&self) -> RateLimits {
        const KINDS: [&str; 7] =
            ["ingest", "query", "embed", "sql", "management", "login", "register"];
        let mut limits: BTreeMap<String, u32> =
            KINDS.iter().map(|kind| ((*kind).to_owned(), 1_000_000)).collect();
        limits.extend(self.rate_limits.iter().map(|(kind, limit)| ((*kind).to_owned(), *limit)));
        RateLimits(limits)
    }

    /// Stops gracefully and starts again on the same folder.
    pub async fn restart(&mut self) {
        for running in self.running.drain(..) {
            running.stop().await.unwrap();
        }
        // Ids and secrets must not repeat after the restart.
        self.clock.advance(1);
        self.run().await;
    }

    /// Stops gracefully, beside what the test does meanwhile.
    pub fn stop(&mut self) -> tokio::task::JoinHandle<()> {
        let running = std::mem::take(&mut self.running);
        tokio::spawn(async move {
            for running in running {
                running.stop().await.unwrap();
            }
        })
    }

    /// Address of its gRPC service.
    pub fn grpc(&self) -> String {
        format!("http://{}", self.leader().grpc_addr)
    }

    /// Looks at what all alert rules watch; returns how many rules.
    pub fn evaluate_alerts(&self) -> usize {
        let running = self.leader();
        tokio::task::block_in_place(|| running.evaluate_alerts()).unwrap()
    }

    /// Mails that it wrote into its outbox, in no order.
    pub fn outbox(&self) -> Vec<String> {
        let files = std::fs::read_dir(self.directory.path().join("outbox")).unwrap();
        let mails = files.map(|file| std::fs::read_to_string(file.unwrap().path()).unwrap());
        mails.collect()
    }

    /// Removes the records of ended sessions; returns how many.
    pub fn expire(&self) -> usize {
        let running = self.leader();
        tokio::task::block_in_place(|| running.expire()).unwrap()
    }

    /// A client without credentials.
    pub fn anonymous(&self) -> Client {
        // No two requests meet the same process, where there are several.
        let idle = if is_spread() { 0 } else { usize::MAX };
        let http = reqwest::Client::builder().no_proxy().pool_max_idle_per_host(idle);
        let http = http.build().unwrap();
        Client { base: self.base.clone(), http, bearer: None, cookie: None }
    }

    /// Registers an organisation.
    pub async fn register(&self, name: &str) -> Org {
        let anonymous = self.anonymous();
        let body = json!({
            "email": format!("{name}@example.com"), "password": "correct horse battery", "name": "Ada", "org_name": name,
        });
        let reply = anonymous.post("/v1/auth/register", &body).await;
        let body = reply.expect(201);
        let cookie = session_cookie(&reply).unwrap();
        Org {
            console: anonymous.clone().with_cookie(&cookie),
            admin: anonymous.with_bearer(body["api_key"]["key"].as_str().unwrap()),
            body,
        }
    }
}

impl Org {
    /// Invites somebody, accepts as him, and gives his session.
    pub async fn join(&self, server: &TestServer, email: &str, role: &str) -> Client {
        let invite = json!({"email": email, "role": role});
        let invite = self.console.post("/v1/members/invite", &invite).await.expect(201);
        let accept =
            json!({"token": invite["token"], "name": role, "password": "correct horse battery"});
        let reply = server.anonymous().post("/v1/auth/accept-invite", &accept).await;
        reply.expect(200);
        server.anonymous().with_cookie(&session_cookie(&reply).unwrap())
    }

    /// A new key of this scope.
    pub async fn key(&self, server: &TestServer, scope: &str) -> Client {
        let body = json!({"label": scope, "scope": scope});
        let made = self.console.post("/v1/api-keys", &body).await.expect(201);
        server.anonymous().with_bearer(made["key"].as_str().unwrap())
    }
}

/// Waits until something is so, for ten seconds.
#[track_caller]
pub fn eventually<'a, F: Future<Output = bool> + 'a>(
    mut is_so: impl FnMut() -> F + 'a,
) -> impl Future<Output = ()> + 'a {
    let caller = std::panic::Location::caller();
    async move {
        for _ in 0..500 {
            if is_so().await {
                return;
            }
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        }
        panic!("it did not come to pass: {caller}");
    }
}

/// A list without when keys were used last, and how many bytes rows take where they are now: neither is a
/// change of anything.
pub fn without_use(mut list: Value) -> Value {
    let entries = list.get_mut("data").and_then(Value::as_array_mut);
    for entry in entries.into_iter().flatten().filter_map(Value::as_object_mut) {
        entry.remove("last_used_at");
        entry.remove("bytes");
    }
    list
}

/// Fails at the first line in which two states differ.
#[track_caller]
pub fn assert_same_lines(after: &str, before: &str) {
    for (after, before) in after.lines().zip(before.lines()) {
        assert_eq!(after, before);
    }
    assert_eq!(after.lines().count(), before.lines().count());
}

/// The session cookie that an answer sets.
pub fn session_cookie(reply: &Reply) -> Option<String> {
    let set = reply.headers.get("set-cookie")?.to_str().ok()?;
    Some(set.split(';').next()?.to_owned())
}

impl Client {
    /// The same client with a bearer token.
    pub fn with_bearer(mut self, token: &str) -> Self {
        self.bearer = Some(token.to_owned());
        self
    }

    /// The same client with a cookie, `name=value`.
    pub fn with_cookie(mut self, cookie: &str) -> Self {
        self.cookie = Some(cookie.to_owned());
        self
    }

    /// A request with this client's credentials.
    pub fn request(&self, method: Method, path: &str) -> RequestBuilder {
        let mut request = self.http.request(method, format!("{}{path}", self.base));
        if let Some(token) = &self.bearer {
            request = request.bearer_auth(token);
        }
        if let Some(cookie) = &self.cookie {
            request = request.header("cookie", cookie).header("origin", &self.base);
        }
        request
    }

    /// Sends a request.
    pub async fn send(&self, request: RequestBuilder) -> Reply {
        let response = request.send().await.unwrap();
        let (status, headers) = (response.status().as_u16(), response.headers().clone());
        Reply { status, headers, text: response.text().await.unwrap() }
    }

    /// Sends a GET request.
    pub async fn get(&self, path: &str) -> Reply {
        self.send(self.request(Method::GET, path)).await
    }

    /// POST with a JSON body.
    pub async fn post(&self, path: &str, body: &Value) -> Reply {
        self.send(self.request(Method::POST, path).json(body)).await
    }

    /// POST without a body.
    pub async fn post_empty(&self, path: &str) -> Reply {
        self.send(self.request(Method::POST, path)).await
    }

    /// POST of bytes with headers.
    pub async fn post_raw(&self, path: &str, headers: &[(&str, &str)], body: Vec<u8>) -> Reply {
        let mut request = self.request(Method::POST, path).body(body);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        self.send(request).await
    }

    /// PATCH with a JSON body.
    pub async fn patch(&self, path: &str, body: &Value) -> Reply {
        self.send(self.request(Method::PATCH, path).json(body)).await
    }

    /// Sends a DELETE request.
    pub async fn delete(&self, path: &str) -> Reply {
        self.send(self.request(Method::DELETE, path)).await
    }

    /// Counts the events of a tenant over 90 days.
    pub async fn count(&self, tenant: &str, event: &str) -> i64 {
        let path =
            format!("/v1/query?tenant_id={tenant}&event_name={event}&metric=count&period=90d");
        self.get(&path).await.expect(200)["data"][0]["value"].as_i64().unwrap()
    }
}

/// The text of a mail whose parts are quoted-printable: `1.234=C2=A0=E2=82=AC` is `1.234 €`.
pub fn quoted_printable(mail: &str) -> String {
    let mut bytes = Vec::new();
    let mut rest = mail.replace("=\r\n", "");
    while let Some(at) = rest.find('=') {
        bytes.extend_from_slice(&rest.as_bytes()[..at]);
        let hex = rest.get(at + 1..at + 3).and_then(|hex| u8::from_str_radix(hex, 16).ok());
        bytes.push(hex.unwrap_or(b'='));
        rest = rest.split_off(at + if hex.is_some() { 3 } else { 1 });
    }
    bytes.extend_from_slice(rest.as_bytes());
    String::from_utf8_lossy(&bytes).into_owned()
}
