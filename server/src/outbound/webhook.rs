//! Posts to webhooks: one attempt, and its outcome.
//!
//! Redirects are not followed, proxies are ignored, and connections are not reused: each attempt
//! checks the address that it connects to. Of an answer, the status and the first bytes are read.
//!
//! ```text
//! POST /in/secret HTTP/1.1
//! content-type: application/json
//! webhook-id: 01a21f86-7ba1-7001-b9da-f63345d626e3
//! webhook-signature: v1,lRF+E6HBHktWuq4pOvYkqEfNwoAp9SYpsxRjA2VUyhE=
//! webhook-timestamp: 1795825236
//! x-service-alert-id: 1
//! user-agent: Inlay/0.1.0
//!
//! {"alert_id":1,"name":"Too many errors","dashboard_id":"01a21f85-…","widget_id":"calls", …, "state":"firing","fired_at":"2026-11-28T00:20:36.897Z"}
//! ```
//!
//! ```text
//! outcome                          status_code  error                        excerpt                  retry_after_s
//! 200 ok                           200          -                            ok                       -
//! 500 down for maintenance         500          -                            down for maintenance     -
//! 429, Retry-After: 30             429          -                            -                        30
//! nobody listens                   0            connection refused           -                        -
//! no answer                        0            no answer within 10 s        -                        -
//! ```
//!
//! That a 500 is a failure is for `dispatcher` to say.

use std::{
    error::Error as _,
    io::ErrorKind,
    net::IpAddr,
    sync::Arc,
    time::{Duration, Instant},
};

use parking_lot::Mutex;
use reqwest::{Client, Response, redirect::Policy};
use tokio::runtime::{Builder, Runtime};
use url::Host;

use super::{
    address::{WebhookRules, check_webhook},
    resolver::{Names, Refusal},
};

/// Bytes of an answer that are stored, at most.
const EXCERPT_BYTES: usize = 512;

/// Time limit of the name look-up while a webhook is saved.
const SAVE_TIMEOUT: Duration = Duration::from_millis(800);

/// How long saving looks up no names after a name server did not answer.
const QUIET: Duration = Duration::from_secs(30);
/// Time that an attempt has beyond its timeout before it is aborted.
const OVERTIME: Duration = Duration::from_millis(500);

/// A POST request to a webhook.
pub struct Post {
    /// URL of the webhook; checked against the rules at every attempt.
    pub url: String,
    /// Content type of the body.
    pub content_type: &'static str,
    /// Headers beside `content-type`, such as the signature.
    pub headers: Vec<(&'static str, String)>,
    /// Bytes of the body, as they are signed and sent.
    pub body: Vec<u8>,
    /// Time limit of the attempt.
    pub timeout: Duration,
}

/// The outcome of an attempt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Posted {
    /// HTTP status; 0 without an answer.
    pub status_code: u16,
    /// Why there was no answer; absent when there was one.
    pub error: Option<String>,
    /// Start of the answer's body as text, up to 512 bytes; absent when there is none.
    pub excerpt: Option<String>,
    /// `Retry-After` of a 429 or 503 in seconds; absent otherwise, and for a date.
    pub retry_after_s: Option<u64>,
    /// Duration of the attempt.
    pub took: Duration,
}

impl Posted {
    /// The outcome of an attempt without an answer.
    fn failed(error: &str, began: Instant) -> Self {
        Self {
            status_code: 0,
            error: Some(error.to_owned()),
            excerpt: None,
            retry_after_s: None,
            took: began.elapsed(),
        }
    }
}

/// Threads for the connections to receivers: a receiver that floods the server with bytes takes the
/// time of these threads only.
struct Threads(Option<Runtime>);

impl Drop for Threads {
    fn drop(&mut self) {
        if let Some(runtime) = self.0.take() {
            runtime.shutdown_background();
        }
    }
}

/// Posts to webhooks.
#[derive(Clone)]
pub struct Poster {
    threads: Arc<Threads>,
    client: Client,
    names: Names,
    rules: WebhookRules,
    /// Until this time, saving looks up no names.
    quiet_until: Arc<Mutex<Instant>>,
}

impl Poster {
    /// A poster that connects only to addresses that `rules` allow.
    ///
    /// Errors: the client or its threads cannot be made, such as for unreadable root certificates.
    pub fn new(rules: &WebhookRules) -> anyhow::Result<Self> {
        let threads = Builder::new_multi_thread()
            .worker_threads(1)
            .thread_name("webhooks")
            .enable_all()
            .build()?;
        let names = Names::of_machine(rules.clone());
        let client = Client::builder()
            .redirect(Policy::none())
            .no_proxy()
            .referer(false)
            .retry(reqwest::retry::never())
            .http1_only()
            .pool_max_idle_per_host(0)
            .user_agent(concat!("Inlay/", env!("CARGO_PKG_VERSION")))
            .dns_resolver(Arc::new(names.clone()))
            .build()?;
        let threads = Arc::new(Threads(Some(threads)));
        let quiet_until = Arc::new(Mutex::new(Instant::now()));
        Ok(Self { threads, client, names, rules: rules.clone(), quiet_until })
    }

    /// Makes one attempt. Takes at most the timeout of the post and half a second.
    pub async fn post(&self, post: Post) -> Posted {
        let (began, timeout, this) = (Instant::now(), post.timeout, self.clone());
        let Some(threads) = &self.threads.0 else {
            return Posted::failed("the server stops", began);
        };
        let mut attempt = threads.spawn(async move { this.attempt(post).await });
        // The limit inside the attempt holds unless a receiver keeps its thread busy.
        match tokio::time::timeout(timeout + OVERTIME, &mut attempt).await {
            Ok(Ok(posted)) => posted,
            Ok(Err(_)) => Posted::failed("the attempt ended early", began),
            Err(_) => {
                attempt.abort();
                Posted::failed(&format!("no answer within {} s", timeout.as_secs()), began)
            }
        }
    }

    async fn attempt(&self, post: Post) -> Posted {
        let (began, timeout) = (Instant::now(), post.timeout);
        let failed = |error: String| Posted::failed(&error, began);
        if let Err(refusal) = self.check(&post.url) {
            return failed(refusal.to_string());
        }
        let mut request = self.client.post(&post.url).header("content-type", post.content_type);
        for (name, value) in post.headers {
            request = request.header(name, value);
        }
        let sent = tokio::time::timeout(timeout, request.body(post.body).send()).await;
        let response = match sent {
            Ok(Ok(response)) => response,
            Ok(Err(error)) => return failed(describe(&error)),
            Err(_) => return failed(format!("no answer within {} s", timeout.as_secs())),
        };
        let status_code = response.status().as_u16();
        let retry_after =
            response.headers().get("retry-after").filter(|_| [429, 503].contains(&status_code));
        let retry_after_s = retry_after.and_then(|value| value.to_str().ok()?.trim().parse().ok());
        // The status is the outcome; the time that the body takes does not change it.
        let left = timeout.saturating_sub(began.elapsed());
        let excerpt = excerpt(response, left).await;
        Posted { status_code, error: None, excerpt, retry_after_s, took: began.elapsed() }
    }

    /// Whether a webhook with a valid URL may be saved: its name resolves to no internal address
    /// now. A name that is unknown, or has no answer in time, may be saved.
    /// A URL whose text is wrong may be "saved" here: the rule that has it is refused by the same check, which names the fault.
    pub async fn may_be_saved(&self, url: &str) -> bool {
        if check_webhook(url, &self.rules).is_err() {
            return true;
        }
        match self.check(url) {
            Err(_) => false,
            Ok(None) => true,
            // While name servers do not answer, saving does not wait for them again and again;
            // every attempt checks the address anyway.
            Ok(Some(_)) if Instant::now() < *self.quiet_until.lock() => true,
            Ok(Some(name)) => {
                let found = tokio::time::timeout(SAVE_TIMEOUT, self.names.lookup(&name)).await;
                if found.is_err() {
                    *self.quiet_until.lock() = Instant::now() + QUIET;
                }
                !matches!(found, Ok(Err(Refusal::NotAllowed)))
            }
        }
    }

    /// Checks the text of a URL and an IP address in it, which the resolver never sees. Returns the
    /// host name, if there is one.
    fn check(&self, url: &str) -> Result<Option<String>, Refusal> {
        let url = check_webhook(url, &self.rules).map_err(|_| Refusal::NotAllowed)?;
        match url.host() {
            Some(Host::Ipv4(address)) => self.names.check(&[IpAddr::V4(address)])?,
            Some(Host::Ipv6(address)) => self.names.check(&[IpAddr::V6(address)])?,
            Some(Host::Domain(name)) => return Ok(Some(name.to_owned())),
            None => {}
        }
        Ok(None)
    }
}

/// The start of an answer's body as text, as much as arrives within `left`.
async fn excerpt(mut response: Response, left: Duration) -> Option<String> {
    let mut bytes = Vec::new();
    let read = async {
        while bytes.len() < EXCERPT_BYTES {
            match response.chunk().await {
                Ok(Some(chunk)) => bytes.extend_from_slice(&chunk),
                _ => return,
            }
        }
    };
    let _ = tokio::time::timeout(left, read).await;
    bytes.truncate(EXCERPT_BYTES);
    // A cut character at the end is left out; invalid bytes are replaced.
    let end = match std::str::from_utf8(&bytes) {
        Err(error) if error.error_len().is_none() => error.valid_up_to(),
        _ => bytes.len(),
    };
    let text = String::from_utf8_lossy(bytes.get(..end).unwrap_or_default()).into_owned();
    (!text.is_empty()).then_some(text)
}

/// Why there was no answer, without details of addresses and networks.
///
/// A customer sees this text. It says "connection refused" of his own receiver, and nothing that maps the network of the server.
fn describe(error: &reqwest::Error) -> String {
    let mut cause = error.source();
    while let Some(inner) = cause {
        if let Some(refusal) = inner.downcast_ref::<Refusal>() {
            return refusal.to_string();
        }
        if inner.downcast_ref::<hyper::Error>().is_some_and(hyper::Error::is_incomplete_message) {
            return "the connection was closed".to_owned();
        }
        if let Some(io) = inner.downcast_ref::<std::io::Error>() {
            match io.kind() {
                ErrorKind::ConnectionRefused => return "connection refused".to_owned(),
                ErrorKind::ConnectionReset | ErrorKind::BrokenPipe | ErrorKind::UnexpectedEof => {
                    return "the connection was closed".to_owned();
                }
                ErrorKind::InvalidData => {
                    return "TLS failed: ".to_owned() + &clipped(&io.to_string());
                }
                _ => {}
            }
        }
        cause = inner.source();
    }
    match error {
        error if error.is_connect() => "the connection failed".to_owned(),
        error if error.is_builder() => "the request cannot be made".to_owned(),
        _ => "the answer is not HTTP".to_owned(),
    }
}

fn clipped(text: &str) -> String {
    text.chars().take(160).collect()
}
