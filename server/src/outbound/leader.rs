//! Requests of one process of a store to the one that leads.
//!
//! ```text
//! POST /v1/events at a process that follows
//!     →  POST http://10.0.0.5:8080/v1/events, the same headers and body, and
//!        Inlay-Node: ts=1795169856;h1=<over "203.0.113.7 POST /v1/events">;client=203.0.113.7
//! ```
//!
//! The leader believes where the client is because the signature is made with the secret of the store, which the database has. Whoever has no such secret is a client
//! as any other, whatever headers it sends. A signature is good for a minute, for one method and path.

use std::{
    net::IpAddr,
    sync::Arc,
    time::{Duration, Instant},
};

use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, header};
use parking_lot::Mutex;
use reqwest::{Body, Client, Response, redirect::Policy};
use tracing::warn;
use url::{Position, Url};

use crate::base::{membership::StoreMembership, secret, signature};

/// Who sends a request in the name of whom.
pub const NODE_HEADER: HeaderName = HeaderName::from_static("inlay-node");
/// Where the leader takes what another process has counted.
pub const COUNTS_PATH: &str = "/internal/counts";
/// Seconds that the clocks of two processes may differ.
const TOLERANCE_SECONDS: i64 = 60;
/// How often is looked whether another process leads meanwhile.
const LOOK_EVERY: Duration = Duration::from_millis(100);
/// Longest time for a connection.
const CONNECT_TIME_MAX: Duration = Duration::from_secs(2);
/// Longest time in which the other machine takes nothing: its network may be cut.
const UNACKNOWLEDGED_MAX: Duration = Duration::from_secs(5);
/// Longest time between two parts of an answer: longer than the leader takes for any.
const READ_TIME_MAX: Duration = Duration::from_secs(65);
/// Headers that are about a connection and not about a request.
const OF_CONNECTION: [HeaderName; 10] = [
    header::CONNECTION,
    HeaderName::from_static("keep-alive"),
    header::PROXY_AUTHENTICATE,
    header::PROXY_AUTHORIZATION,
    header::TE,
    header::TRAILER,
    header::TRANSFER_ENCODING,
    header::UPGRADE,
    header::EXPECT,
    HeaderName::from_static("x-forwarded-for"),
];

/// Why the leader has not answered.
#[derive(Debug)]
pub enum LeaderError {
    /// There is none now, or it cannot be reached: nothing was sent.
    Unreachable(String),
    /// The connection ended: the request may have been carried out.
    Lost(String),
}

/// Longer than this no leader is away: another one has taken over then.
const BACKOFF: Duration = Duration::from_secs(5);

/// A client of the process that leads. Clones share its connections.
#[derive(Clone)]
pub struct LeaderClient {
    client: Option<Client>,
    membership: StoreMembership,
    /// Until when the leader is not asked for what is not worth an answer.
    backoff_until: Arc<Mutex<Option<Instant>>>,
}

impl LeaderClient {
    /// A client for a process that may have to follow.
    pub fn new(membership: &StoreMembership) -> Self {
        let client = (!membership.is_alone()).then(|| {
            let builder = Client::builder()
                .redirect(Policy::none())
                .no_proxy()
                .retry(reqwest::retry::never())
                .connect_timeout(CONNECT_TIME_MAX)
                .tcp_user_timeout(UNACKNOWLEDGED_MAX)
                .read_timeout(READ_TIME_MAX);
            builder
                .build()
                .inspect_err(|error| warn!(%error, "cannot make a client for the leader"))
        });
        let (client, backoff_until) = (client.and_then(Result::ok), Arc::default());
        Self { client, membership: membership.clone(), backoff_until }
    }

    /// Whether the leader did not answer a moment ago. Requests that can do without it do not ask it then: each would wait until that is found out again.
    pub fn is_backing_off(&self) -> bool {
        self.backoff_until.lock().is_some_and(|until| Instant::now() < until)
    }

    /// Notes that it did not answer.
    pub fn back_off(&self) {
        *self.backoff_until.lock() = Some(Instant::now() + BACKOFF);
    }

    /// Sends a request to the leader, for a client at this address.
    ///
    /// Errors: no leader that can be reached; a connection that ended.
    pub async fn send(
        &self,
        (method, path): (Method, &str),
        mut headers: HeaderMap,
        body: Option<Body>,
        client_address: Option<IpAddr>,
        now_seconds: i64,
    ) -> Result<Response, LeaderError> {
        let unreachable = |why: &str| LeaderError::Unreachable(why.to_owned());
        let client = self.client.as_ref().ok_or_else(|| unreachable("there is no client"))?;
        let url = self.membership.leader_url().ok_or_else(|| unreachable("no process leads"))?;
        without_connection(&mut headers);
        // As it is sent: some characters are written in another way then.
        let target = Url::parse(&format!("{url}{path}"));
        let target = target.map_err(|error| LeaderError::Unreachable(error.to_string()))?;
        let sent_path = &target[Position::BeforePath..Position::AfterQuery];
        let key = secret::hex(self.membership.secret());
        let signed = sign(&key, (&method, sent_path), client_address, now_seconds);
        if let Ok(value) = HeaderValue::try_from(signed) {
            headers.insert(NODE_HEADER, value);
        }
        let mut request = client.request(method, target).headers(headers);
        if let Some(body) = body {
            request = request.body(body);
        }
        let sent = tokio::select! {
            sent = request.send() => sent,
            () = self.until_another_leads(&url) => {
                return Err(LeaderError::Lost("another process leads now".to_owned()));
            }
        };
        sent.map_err(|error| {
            let is_unsent = error.is_connect() || error.is_builder();
            let text = error.without_url().to_string();
            if is_unsent { LeaderError::Unreachable(text) } else { LeaderError::Lost(text) }
        })
    }

    /// Returns when the process at this address leads no more: one that stands still answers nothing, and its client would wait.
    async fn until_another_leads(&self, url: &str) {
        while self.membership.leader_url().as_deref() == Some(url) {
            tokio::time::sleep(LOOK_EVERY).await;
        }
    }
}

/// Removes what is about a connection.
pub fn without_connection(headers: &mut HeaderMap) {
    for name in OF_CONNECTION {
        headers.remove(name);
    }
}

/// The header of a request that is sent for a client.
fn sign(
    key: &str,
    (method, path): (&Method, &str),
    client_address: Option<IpAddr>,
    now_seconds: i64,
) -> String {
    let client = client_address.map(|address| address.to_string()).unwrap_or_default();
    let signed = signature::sign(signed_text(&client, method, path).as_bytes(), key, now_seconds);
    format!("{signed};client={client}")
}

fn signed_text(client: &str, method: &Method, path: &str) -> String {
    format!("{client} {method} {path}")
}

/// For whom another process of this store has sent a request: the address of the client, if it had one. `None` where this is not the request of such a process.
pub fn sent_for(
    secret: &[u8],
    headers: &HeaderMap,
    (method, path): (&Method, &str),
    now_seconds: i64,
) -> Option<Option<IpAddr>> {
    let value = headers.get(NODE_HEADER)?.to_str().ok()?;
    let (signed, client) = value.rsplit_once(";client=")?;
    let text = signed_text(client, method, path);
    let key = [secret::hex(secret)];
    signature::verify(signed, text.as_bytes(), &key, now_seconds, TOLERANCE_SECONDS).ok()?;
    Some(client.parse().ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_of_another_process_is_known_by_the_secret_of_the_store() {
        let secret = [7; 32];
        let address: IpAddr = "203.0.113.7".parse().unwrap();
        let (method, path, now) = (Method::POST, "/v1/events?a=1", 1_795_169_856);
        let value = sign(&secret::hex(&secret), (&method, path), Some(address), now);
        let headers = HeaderMap::from_iter([(NODE_HEADER, HeaderValue::try_from(&value).unwrap())]);
        let check = |secret: &[u8], method: &Method, path: &str, now: i64| {
            sent_for(secret, &headers, (method, path), now)
        };
        assert_eq!(check(&secret, &method, path, now + 60), Some(Some(address)));
        assert_eq!(check(&secret, &method, path, now + 61), None);
        assert_eq!(check(&secret, &Method::DELETE, path, now), None);
        assert_eq!(check(&secret, &method, "/v1/events", now), None);
        assert_eq!(check(&[8; 32], &method, path, now), None);
        assert_eq!(check(&[], &method, path, now), None);
        let other = value.replace("client=203.0.113.7", "client=203.0.113.8");
        let headers = HeaderMap::from_iter([(NODE_HEADER, HeaderValue::try_from(other).unwrap())]);
        assert_eq!(sent_for(&secret, &headers, (&method, path), now), None);
        // A process that has no address of its client says so.
        let nobody = sign(&secret::hex(&secret), (&method, path), None, now);
        let headers = HeaderMap::from_iter([(NODE_HEADER, HeaderValue::try_from(nobody).unwrap())]);
        assert_eq!(sent_for(&secret, &headers, (&method, path), now), Some(None));
        // A store of one process has no secret, and so no other process.
        let unsigned = HeaderMap::from_iter([(
            NODE_HEADER,
            HeaderValue::try_from(sign("", (&method, path), Some(address), now)).unwrap(),
        )]);
        assert_eq!(sent_for(&[], &unsigned, (&method, path), now), None);
    }
}
