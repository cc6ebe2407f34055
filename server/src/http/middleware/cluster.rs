//! Requests where several processes have the store: answered here, or by the one that leads.
//!
//! ```text
//! this process leads                     here, while its lease is valid; else 503
//! GET /v1/query                          here, after everything is shown that was acknowledged before
//! POST /v1/embed/data                    here: one of the POSTs that only ask
//! POST /v1/events                        the leader's, with its body as it comes
//! GET /v1/dashboards, a minute after     begun here; the use of the session is to be noted, which is a change: sent on whole to the leader, whose answer it is
//! GET /healthz, /readyz, /leaderz        here, always
//! no leader that can be reached          503 and Retry-After
//! ```
//!
//! A request goes on once. A process that is taken for the leader and follows answers 503: the lease changes hands at this moment.

use std::{
    net::IpAddr,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use axum::{
    body::{Body, Bytes},
    extract::{MatchedPath, Request},
    http::{HeaderMap, HeaderValue, Method, Uri, header, request::Parts},
    middleware::Next,
    response::{IntoResponse as _, Response},
};
use futures::{SinkExt as _, Stream, StreamExt as _, channel::mpsc};
use http_body::Body as _;

use super::caller::{AnsweredByAll, Peer, Unnoted, address};
use crate::{
    base::permit_pools::Permit,
    error::{ApiError, Code, Result},
    http::{respond::ErrorNote, state::context::Http},
    outbound::{LeaderError, NODE_HEADER, sent_for, without_connection},
};

/// Paths that are about this process, or the same in all.
const OWN_PATHS: [&str; 6] =
    ["/healthz", "/readyz", "/leaderz", "/metrics", "/assets/{hash}/{*path}", "/sdk/v1/{name}"];

/// POSTs that only ask.
const READING_POSTS: [&str; 8] = [
    "/v1/alerts/preview",
    "/v1/embed/data",
    "/v1/embed/detail",
    "/v1/embed/values",
    "/v1/query/adhoc",
    "/v1/reports/preview",
    "/v1/saved-queries/{id}/run",
    "/v1/widgets/preview/data",
];
/// Bytes of the body of one of them, at most: those of all operations that do not take their body themselves.
const BODY_BYTES_MAX: usize = 1 << 20;

/// Longest time for the leader's answer to a request that only asks, and whose use of credentials is to be noted there.
const NOTE_TIME_MAX: Duration = Duration::from_secs(1);
/// Parts of a body that wait to be sent on.
const CHUNKS_WAITING: usize = 4;
/// Longest time for a body, as where it is read.
const BODY_TIME_MAX: Duration = Duration::from_secs(20);
/// Bytes of a body that are read though nobody wants them.
const IGNORED_BYTES_MAX: usize = 64 << 20;

/// On an answer of the leader: it has an id, and the shape that all answers have.
#[derive(Debug, Clone, Copy)]
pub struct FromLeader;

/// On a request that another process of this store has sent.
#[derive(Debug, Clone, Copy)]
pub struct FromNode;

/// Which process answers a request.
#[derive(Debug, PartialEq, Eq)]
enum Handling {
    /// This one, whatever it has applied.
    Local,
    /// The leader, whose answer is passed on.
    Forward,
    /// This one, once it has caught up.
    CaughtUp,
}

/// Answers a request here, or has the leader answer it.
pub async fn answer(http: Http, mut request: Request, next: Next) -> Response {
    let path = request.extensions().get::<MatchedPath>().cloned();
    let membership = &http.app.settings.membership;
    let handling = handling_of(request.method(), path.as_ref().map_or("", MatchedPath::as_str));
    if handling == Handling::Local {
        return next.run(request).await;
    }
    let now_seconds = http.app.now_ms() / 1_000;
    let target = (request.method(), path_and_query(request.uri()));
    let sent = sent_for(membership.secret(), request.headers(), target, now_seconds);
    request.headers_mut().remove(NODE_HEADER);
    if handling == Handling::CaughtUp && sent.is_none() {
        request.extensions_mut().insert(AnsweredByAll);
    }
    if membership.leads() {
        if !membership.is_valid() {
            return unavailable(
                "this server does not have the store at the moment; retry soon",
                None,
            );
        }
        if let Some(client) = sent {
            request.headers_mut().remove("x-forwarded-for");
            match client {
                Some(client) => drop(request.extensions_mut().insert(Peer((client, 0).into()))),
                None => {
                    // Not in the name of a client: what one process has to say to another.
                    request.extensions_mut().remove::<Peer>();
                    request.extensions_mut().insert(FromNode);
                }
            }
            // The other process does not take an answer before it has sent everything.
            request = request.map(|body| match body.is_end_stream() {
                true => body,
                false => Body::from_stream(read_in_background(body).0),
            });
        }
        return next.run(request).await;
    }
    if sent.is_some() {
        return unavailable("another server leads now; retry soon", None);
    }
    let client = address(&http, &request);
    if handling == Handling::Forward && client.is_none() {
        // The leader would take it for one of this process.
        return unavailable("this request comes from nowhere", None);
    }
    if handling == Handling::Forward {
        return forward(&http, request, client).await;
    }
    if let Err(why) = membership.caught_up().await {
        return unavailable("this server cannot tell what is newest; retry soon", Some(why));
    }
    answer_here(&http, request, client, next).await
}

/// Answers a request that only asks. One that has to change something is sent on whole.
async fn answer_here(
    http: &Http,
    request: Request,
    client: Option<IpAddr>,
    next: Next,
) -> Response {
    let (parts, body) = request.into_parts();
    let (copy, again) = (parts.clone(), parts.clone());
    // What is read has to be there for the leader as well. Bodies of requests that have none are not read.
    let has_body = parts.method == Method::POST && !body.is_end_stream();
    let (bytes, _permit) = match has_body {
        false => (Bytes::new(), None),
        true => match read_body(http, body).await {
            Ok((bytes, permit)) => (bytes, Some(permit)),
            Err(error) => return error.into_response(),
        },
    };
    let response = next.clone().run(Request::from_parts(parts, bytes.clone().into())).await;
    if !is_elsewhere(&response) {
        return response;
    }
    let body = (!bytes.is_empty()).then(|| reqwest::Body::from(bytes.clone()));
    let late = || LeaderError::Lost("no answer in time".to_owned());
    let sent = match http.leader.is_backing_off() {
        false => {
            let answer = from_leader(http, copy, body, client);
            let sent = tokio::time::timeout(NOTE_TIME_MAX, answer).await;
            sent.unwrap_or_else(|_| Err(late())).inspect_err(|_| http.leader.back_off())
        }
        true => Err(late()),
    };
    match sent {
        Ok(response) => response,
        // When a session or a key was used last is not worth an answer.
        Err(error) => {
            let mut request = Request::from_parts(again, Body::from(bytes));
            request.extensions_mut().insert(Unnoted);
            let response = next.run(request).await;
            if is_elsewhere(&response) { leader_unavailable(error) } else { response }
        }
    }
}

/// Whether a handler had to change something, and this process follows.
fn is_elsewhere(response: &Response) -> bool {
    let note = response.extensions().get::<ErrorNote>();
    note.is_some_and(|ErrorNote(error)| error.is_elsewhere())
}

/// Has the leader answer a request whose body is still coming.
async fn forward(http: &Http, request: Request, client: Option<IpAddr>) -> Response {
    let (parts, body) = request.into_parts();
    if body.is_end_stream() {
        return from_leader(http, parts, None, client).await.unwrap_or_else(leader_unavailable);
    }
    let (stream, is_broken) = read_in_background(body);
    let sent = from_leader(http, parts, Some(reqwest::Body::wrap_stream(stream)), client).await;
    match sent {
        Ok(response) => response,
        Err(_) if is_broken.load(Ordering::Acquire) => unreadable().into_response(),
        Err(error) => leader_unavailable(error),
    }
}

/// A body that is read by a task of its own, to the end: a leader may answer before it has all of it, and a client that is not read from any more takes its
/// connection for broken and never sees the answer. Beside it whether the body could not be read.
fn read_in_background(
    body: Body,
) -> (impl Stream<Item = Result<Bytes, axum::Error>> + Send + 'static, Arc<AtomicBool>) {
    let (mut sender, receiver) = mpsc::channel(CHUNKS_WAITING);
    let is_broken = Arc::new(AtomicBool::new(false));
    let found = Arc::clone(&is_broken);
    // It stays until the end is known: a stream whose senders are gone is a whole body to its reader.
    let mut after = sender.clone();
    let pump = async move {
        let (mut chunks, mut ignored) = (body.into_data_stream(), 0);
        while let Some(chunk) = chunks.next().await {
            match chunk {
                Ok(chunk) if sender.is_closed() => ignored += chunk.len(),
                Ok(chunk) => drop(sender.send(Ok(chunk)).await),
                Err(error) => return Err(error),
            }
            if ignored > IGNORED_BYTES_MAX {
                break;
            }
        }
        Ok(())
    };
    drop(tokio::spawn(async move {
        let late = || Err(axum::Error::new("the body took too long to arrive"));
        let ended = tokio::time::timeout(BODY_TIME_MAX, pump).await.unwrap_or_else(|_| late());
        if let Err(error) = ended {
            found.store(true, Ordering::Release);
            let _ = after.send(Err(error)).await;
        }
    }));
    (receiver, is_broken)
}

/// The answer of the leader.
async fn from_leader(
    http: &Http,
    parts: Parts,
    body: Option<reqwest::Body>,
    client: Option<IpAddr>,
) -> Result<Response, LeaderError> {
    let path = path_and_query(&parts.uri).to_owned();
    let mut headers = with_host(parts.headers, &parts.uri);
    // Where it came in chunks the length is a claim, and without a body it is none.
    if body.is_none() || headers.contains_key(header::TRANSFER_ENCODING) {
        headers.remove(header::CONTENT_LENGTH);
    }
    let now_seconds = http.app.now_ms() / 1_000;
    let request = (parts.method, path.as_str());
    let response = http.leader.send(request, headers, body, client, now_seconds).await?;
    let (mut parts, body) = axum::http::Response::<reqwest::Body>::from(response).into_parts();
    without_connection(&mut parts.headers);
    parts.extensions.insert(FromLeader);
    Ok(Response::from_parts(parts, Body::new(body)))
}

fn leader_unavailable(error: LeaderError) -> Response {
    match error {
        LeaderError::Unreachable(why) => {
            unavailable("no server takes changes at the moment; retry soon", Some(why))
        }
        LeaderError::Lost(why) => {
            let message = "the answer of the server that takes changes was lost: the request may have been carried out";
            unavailable(message, Some(why))
        }
    }
}

/// A whole body, with a permit for its memory.
///
/// Errors: 413; 400 for one that cannot be read; 503 for one that takes too long, and where there is no memory.
async fn read_body(http: &Http, body: Body) -> Result<(Bytes, Permit)> {
    let permit = http.body_permit(BODY_BYTES_MAX).await?;
    let collect = async {
        let (mut chunks, mut bytes) = (body.into_data_stream(), Vec::new());
        while let Some(chunk) = chunks.next().await {
            bytes.extend_from_slice(&chunk.map_err(|_| unreadable())?);
            if bytes.len() > BODY_BYTES_MAX {
                let message = "the body is larger than this path accepts";
                return Err(ApiError::new(Code::PayloadTooLarge, message));
            }
        }
        Ok(Bytes::from(bytes))
    };
    let late = |_| ApiError::new(Code::Overloaded, "the body took too long to arrive");
    Ok((tokio::time::timeout(BODY_TIME_MAX, collect).await.map_err(late)??, permit))
}

fn unreadable() -> ApiError {
    ApiError::new(Code::InvalidJson, "the body cannot be read")
}

/// HTTP/2 names the host in the address, HTTP/1.1 in a header; who checks where a request comes from compares it.
fn with_host(mut headers: HeaderMap, uri: &Uri) -> HeaderMap {
    if let Some(host) = uri.authority()
        && !headers.contains_key(header::HOST)
        && let Ok(value) = HeaderValue::try_from(host.as_str())
    {
        headers.insert(header::HOST, value);
    }
    headers
}

fn path_and_query(uri: &Uri) -> &str {
    uri.path_and_query().map_or("/", |path| path.as_str())
}

fn unavailable(message: &str, cause: Option<String>) -> Response {
    ApiError { cause, ..ApiError::new(Code::Overloaded, message) }.into_response()
}

/// By the pattern of the path. A path that no route has is answered here.
fn handling_of(method: &Method, path: &str) -> Handling {
    let is_asking = matches!(*method, Method::GET | Method::HEAD | Method::OPTIONS);
    match path {
        own if OWN_PATHS.contains(&own) => Handling::Local,
        "" => Handling::Local,
        asking if is_asking || READING_POSTS.contains(&asking) => Handling::CaughtUp,
        _ => Handling::Forward,
    }
}

#[cfg(test)]
mod tests {
    use futures::stream;

    use super::*;

    /// What the leader gets of a body.
    async fn forwarded(body: Body) -> (usize, bool, bool) {
        let (chunks, is_broken) = read_in_background(body);
        let chunks: Vec<_> = chunks.collect().await;
        let bytes = chunks.iter().flatten().map(Bytes::len).sum();
        (bytes, chunks.iter().any(Result::is_err), is_broken.load(Ordering::Acquire))
    }

    #[tokio::test(start_paused = true)]
    async fn a_body_that_does_not_end_is_not_taken_for_a_whole_one() {
        let part = || stream::iter([Ok::<_, axum::Error>(Bytes::from_static(b"{\"a\":1}\n"))]);
        assert_eq!(forwarded(Body::from_stream(part())).await, (8, false, false));
        let endless = Body::from_stream(part().chain(stream::pending()));
        assert_eq!(forwarded(endless).await, (8, true, true));
        let broken = stream::iter([Err(axum::Error::new("reset"))]);
        assert_eq!(forwarded(Body::from_stream(part().chain(broken))).await, (8, true, true));
    }

    #[test]
    fn what_changes_something_is_the_leaders() {
        let cases = [
            (Method::POST, "/v1/events", Handling::Forward),
            (Method::DELETE, "/v1/dashboards/{id}", Handling::Forward),
            (Method::PATCH, "/v1/settings/org", Handling::Forward),
            (Method::POST, "/webhooks/billing", Handling::Forward),
            (Method::GET, "/v1/dashboards", Handling::CaughtUp),
            (Method::POST, "/v1/query/adhoc", Handling::CaughtUp),
            (Method::POST, "/v1/embed/data", Handling::CaughtUp),
            (Method::HEAD, "/console/{*path}", Handling::CaughtUp),
            (Method::GET, "/readyz", Handling::Local),
            (Method::GET, "/assets/{hash}/{*path}", Handling::Local),
            (Method::POST, "", Handling::Local),
        ];
        for (method, path, expected) in cases {
            assert_eq!(handling_of(&method, path), expected, "{method} {path}");
        }
    }
}
