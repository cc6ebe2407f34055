//! Who calls, and whether they may: in front of every operation of the table.
//!
//! ```text
//! request                                                            caller or answer
//! Authorization: Bearer inlay_admin_…                                the key's organisation and environment, as AdminKey
//! Cookie: service_session=…                                          the user, with the role of their membership; environment production
//! Cookie: …, X-Service-Environment: development                      the same, in the other environment
//! Authorization: Bearer eyJ0eXAiOiJlbWJlZCtqd3Qi…                    the viewer of an embed session
//! key and cookie of one organisation                                 the key counts
//! key and cookie of two organisations                                400 Authorization: the session cookie and the bearer token belong to different …
//! none                                                               401 valid credentials for this operation are missing
//! Bearer inlay_admin_nonsense                                        401 the API key is not valid
//! an ingest key, GET /v1/dashboards                                  403 forbidden_scope: an API key of this scope may not do this
//! an editor, GET /v1/audit                                           403 forbidden_role: your role may not do this
//! a cookie, POST, Origin: https://evil.example                       403 forbidden_origin: a change with the console's cookie must come from …
//! X-Service-Environment: staging                                     400 there is no environment "staging"
//! ```
//!
//! Each request takes one token of a rate limit, of the bucket of its caller:
//!
//! ```text
//! query, sql                     org 01a21f84-f2ae-…           all keys and members of an organisation together
//! all others, with a cookie      session <digest>
//! all others, with a key         key 01a21f84-f455-…
//! embed                          embed 01a21f86-1ac2-…         one embed session
//! without credentials            address 203.0.113.7           IPv6: network 2001:db8:0:7, a /64
//! refused above                  the same address, against `management`
//! ```
//!
//! The answer says how full the bucket is: `X-RateLimit-Limit: 50`, `X-RateLimit-Remaining: 49`, `X-RateLimit-Reset: 1`.

use std::net::IpAddr;

use axum::{
    extract::{Request, State},
    http::{HeaderMap, Method, header},
    middleware::Next,
    response::{IntoResponse as _, Response},
};
use ipnet::IpNet;

use super::idempotency;
use inlay_proto::names::{ENVIRONMENT_HEADER, SESSION_COOKIE};

use crate::{
    app::{App, Caller, Decision, Operation, Principal, Quota, Viewer, decide},
    base::secret,
    error::{ApiError, Code, Result},
    http::state::context::{ACTING, Http},
};

/// Address of the peer, put into each request by the connection loop.
#[derive(Debug, Clone, Copy)]
pub struct Peer(pub std::net::SocketAddr);

/// On a request of a kind that each of several processes answers itself.
#[derive(Debug, Clone, Copy)]
pub struct AnsweredByAll;

/// On a request whose use of credentials is not to be noted.
#[derive(Debug, Clone, Copy)]
pub struct Unnoted;

/// Where a request comes from, as far as it is believed. `None` without a connection.
#[derive(Debug, Clone, Copy)]
pub struct ClientAddress(pub Option<IpAddr>);

/// The session cookie of a console request: the secret itself, of which the store has the digest.
#[derive(Debug, Clone)]
pub struct SessionCookie(pub String);

/// The identity behind the credentials of a request. A caller comes with the cookie when it is a session.
enum Credentials {
    None,
    Caller(Caller, Option<SessionCookie>),
    Viewer(Box<Viewer>),
}

/// Finds the caller, asks the table, and counts the request. Handlers of allowed requests find a
/// [`Caller`] or a [`Viewer`] among the request's extensions.
///
/// Futures of less than a kilobyte come from the allocator's cache of the thread; larger ones take a lock. So this future does not
/// contain the request, and rare waits are boxed.
pub fn guard(
    State((http, operation)): State<(Http, Operation)>,
    mut request: Request,
    next: Next,
) -> impl Future<Output = Response> {
    let address = address(&http, &request);
    let tokens = tokens_of(&http, &request);
    let is_noted = request.extensions().get::<Unnoted>().is_none();
    let mut due = None;
    let admitted = admit(&http, operation, &mut request, address, &mut due);
    let handled = Box::pin(carry_out(http.clone(), operation, request, next));
    async move {
        let noted = match due.filter(|_| is_noted) {
            Some(caller) => Box::pin(http.run(move |app| app.note_use(&caller))).await,
            None => Ok(()),
        };
        let admitted = noted.and(admitted);
        let (quota, who) = match &admitted {
            Ok(who) => (operation.quota(), who.clone()),
            // Who is not let in is counted by his address.
            Err(_) => (Quota::Management, at_address(address)),
        };
        let (standing, counted) = http.throttle.take_many(quota, &who, tokens);
        if counted.is_err() {
            Box::pin(tokio::time::sleep(http.throttle.delay_of_refusal(quota, &who))).await;
        }
        let answer = match counted.and(admitted) {
            Ok(_) => handled.await.unwrap_or_else(|error| error.into_response()),
            Err(error) => error.into_response(),
        };
        standing.on(answer)
    }
}

/// Tokens that a request takes: one, or one for each process that answers such requests itself.
fn tokens_of(http: &Http, request: &Request) -> u32 {
    let membership = &http.app.settings.membership;
    if membership.is_alone() || request.extensions().get::<AnsweredByAll>().is_none() {
        return 1;
    }
    membership.nodes() as u32
}

/// Runs the handler, once for all requests of the same idempotency key.
///
/// Only a POST can have one. Statements of SQL run again with each request, and registering, logging in and accepting an invite have no
/// caller yet, so that a key means nothing there.
async fn carry_out(
    http: Http,
    operation: Operation,
    request: Request,
    next: Next,
) -> Result<Response> {
    let Some(caller) = request.extensions().get::<Caller>().cloned() else {
        return Ok(next.run(request).await);
    };
    let name = match *request.method() {
        Method::POST => idempotency::name_of(&request)?,
        _ => None,
    };
    // What a statement reads is read anew; it changes nothing, and ends when its client goes away.
    // The new cookie of a changed password is in no answer that is repeated.
    let is_unnamed = matches!(
        operation,
        Operation::QuerySql | Operation::RunSavedQuery | Operation::ChangePassword
    );
    let Some(name) = name.filter(|_| !is_unnamed) else {
        return Ok(ACTING.scope(caller, next.run(request)).await);
    };
    // Of events nothing is kept.
    if operation != Operation::IngestEvents {
        http.throttle.take(Quota::Named, &caller.actor.id).1?;
    }
    let cookie = request.extensions().get::<SessionCookie>().map(|cookie| cookie.0.clone());
    let credential = match cookie {
        Some(cookie) => cookie,
        None => bearer(request.headers())?.unwrap_or_default().to_owned(),
    };
    Box::pin(idempotency::once(&http, caller, &credential, &name, request, next)).await
}

/// Who is counted, when the request may go on. `due` becomes a caller whose use of credentials is to be noted, also where the
/// request may not go on.
///
/// Errors: 401 and 403 by the access table, 400 for an environment that does not exist. The log has each caller that was refused by the table.
fn admit(
    http: &Http,
    operation: Operation,
    request: &mut Request,
    address: Option<IpAddr>,
    due: &mut Option<Caller>,
) -> Result<String> {
    request.extensions_mut().insert(ClientAddress(address));
    let headers = request.headers();
    let is_safe = matches!(*request.method(), Method::GET | Method::HEAD);
    // HTTP/2 names the host in the address, HTTP/1.1 in a header.
    let host = headers.get(header::HOST).and_then(|value| value.to_str().ok());
    let host = host.or_else(|| request.uri().authority().map(|host| host.as_str()));
    if decide(operation, Principal::Anonymous) == Decision::Allowed {
        if !is_safe {
            // Most of these open a session: a page of another site must not put somebody into one.
            check_same_origin(headers, host, &http.app.settings.base_url)?;
        }
        return Ok(at_address(address));
    }
    // Records are in memory: to look at them takes less time than another thread to begin.
    let (credentials, is_due) = find_credentials(&http.app, headers, is_safe, host)?;
    if is_due && let Credentials::Caller(caller, _) = &credentials {
        *due = Some(caller.clone());
    }
    let principal = match &credentials {
        Credentials::None => Principal::Anonymous,
        Credentials::Caller(caller, _) => caller.principal,
        Credentials::Viewer(_) => Principal::Embed,
    };
    match decide(operation, principal) {
        Decision::Allowed => {}
        Decision::Unauthenticated => {
            return Err(ApiError::new(
                Code::Unauthenticated,
                "valid credentials for this operation are missing",
            ));
        }
        Decision::Forbidden => {
            let (org, actor) = match &credentials {
                Credentials::Caller(caller, _) => (&*caller.org, &*caller.actor.id),
                _ => ("", ""),
            };
            let operation = operation.name();
            let ip = address.map(tracing::field::display);
            tracing::info!(org.id = org, actor.id = actor, operation, ?principal, ip, "forbidden");
            return Err(forbidden(principal));
        }
    }
    match credentials {
        Credentials::None => Ok(at_address(address)),
        Credentials::Caller(mut caller, cookie) => {
            // Who may not do this at all is told so before what is wrong with the request.
            let wanted = request.headers().get(ENVIRONMENT_HEADER);
            let wanted = wanted.map(|value| value.to_str().unwrap_or_default().to_owned());
            match (cookie.clone(), wanted) {
                (_, None) => {}
                (Some(SessionCookie(cookie)), Some(name)) => {
                    caller = http.app.caller_of_session(&cookie, Some(&name))?.0;
                }
                // A key has its environment; naming another does not change it.
                (None, Some(name)) => {
                    http.app.environment(&caller.org, &name)?;
                }
            }
            let who = match (operation.quota(), &cookie) {
                (Quota::Query | Quota::Sql, _) => format!("org {}", caller.org),
                (_, Some(SessionCookie(cookie))) => format!("session {}", secret::digest(cookie)),
                (_, None) => format!("key {}", caller.actor.id),
            };
            request.extensions_mut().insert(caller.at(address));
            if let Some(cookie) = cookie {
                request.extensions_mut().insert(cookie);
            }
            Ok(who)
        }
        Credentials::Viewer(viewer) => {
            let who = format!("embed {}", viewer.session);
            request.extensions_mut().insert(*viewer);
            Ok(who)
        }
    }
}

/// Who is counted by his address: of IPv6 by the network that one customer has.
/// A customer of a provider has at least a /64 and could send each request from another address of it.
fn at_address(address: Option<IpAddr>) -> String {
    match address {
        None => "nowhere".to_owned(),
        Some(IpAddr::V4(address)) => format!("address {address}"),
        Some(IpAddr::V6(address)) => {
            let [a, b, c, d, ..] = address.segments();
            format!("network {a:x}:{b:x}:{c:x}:{d:x}")
        }
    }
}

/// Where a request comes from: the peer, or the address that a trusted proxy reports in `X-Forwarded-For`.
pub fn address(http: &Http, request: &Request) -> Option<IpAddr> {
    let peer = request.extensions().get::<Peer>()?.0.ip();
    let forwarded: Vec<&str> = request
        .headers()
        .get_all("x-forwarded-for")
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .collect();
    Some(client_address(peer, &forwarded, &http.app.settings.trusted_proxies))
}

/// The last address of the chain that is not a proxy of ours: what stands before it, anybody can say.
///
/// With `--trusted-proxies 10.0.0.0/8`:
///
/// ```text
/// peer            X-Forwarded-For                    client
/// 203.0.113.7     1.1.1.1                            203.0.113.7    not a proxy of ours: its header is not believed
/// 10.0.0.1        1.1.1.1                            1.1.1.1
/// 10.0.0.1        9.9.9.9, 1.1.1.1                   1.1.1.1        9.9.9.9 is a claim of the client
/// 10.0.0.1        9.9.9.9, 1.1.1.1, 10.0.0.2         1.1.1.1        two proxies
/// 10.0.0.1        unknown                            10.0.0.1
/// ```
fn client_address(peer: IpAddr, forwarded: &[&str], trusted: &[IpNet]) -> IpAddr {
    let mut client = peer;
    for hop in forwarded.iter().rev() {
        let is_ours = trusted.iter().any(|network| network.contains(&client));
        let Ok(address) = hop.trim().parse() else { break };
        if !is_ours {
            break;
        }
        client = address;
    }
    client
}

/// The error for a principal that never may: by the scope of a key, or by the role of a member.
fn forbidden(principal: Principal) -> ApiError {
    match principal {
        Principal::AdminKey | Principal::IngestKey => {
            ApiError::new(Code::ForbiddenScope, "an API key of this scope may not do this")
        }
        _ => ApiError::new(Code::ForbiddenRole, "your role may not do this"),
    }
}

/// The bearer counts alone when there are two credentials; when they belong to different
/// organisations, the request is a mistake. Also whether their use is to be noted.
fn find_credentials(
    app: &App,
    headers: &HeaderMap,
    is_safe: bool,
    host: Option<&str>,
) -> Result<(Credentials, bool)> {
    let bearer = bearer(headers)?;
    let cookie = cookie_of(headers);
    match (bearer, cookie) {
        (None, None) => Ok((Credentials::None, false)),
        (Some(token), cookie) => {
            let found = of_bearer(app, token)?;
            let org = match &found.0 {
                Credentials::Caller(caller, _) => &caller.org,
                Credentials::Viewer(viewer) => &viewer.org,
                Credentials::None => return Ok(found),
            };
            let other = cookie.and_then(|cookie| app.caller_of_session(cookie, None).ok());
            if other.is_some_and(|(other, _)| other.org != *org) {
                return Err(ApiError::field(
                    Code::InvalidField,
                    "Authorization",
                    "the session cookie and the bearer token belong to different organisations; send one",
                ));
            }
            Ok(found)
        }
        (None, Some(cookie)) => {
            let (caller, is_due) = app.caller_of_session(cookie, None)?;
            if !is_safe {
                check_same_origin(headers, host, &app.settings.base_url)?;
            }
            let cookie = SessionCookie(cookie.to_owned());
            Ok((Credentials::Caller(caller, Some(cookie)), is_due))
        }
    }
}

/// A caller of an API key, which begins with `inlay_`, or a viewer of an embed token.
///
/// Errors: 401 for an unknown, expired or revoked one.
fn of_bearer(app: &App, token: &str) -> Result<(Credentials, bool)> {
    if token.starts_with("inlay_") {
        let (caller, is_due) = app.caller_of_key(token)?;
        return Ok((Credentials::Caller(caller, None), is_due));
    }
    Ok((Credentials::Viewer(Box::new(app.viewer(token)?)), false))
}

/// The token of `Authorization: Bearer <token>`; the scheme in any case. `None` without the header.
///
/// Errors: 401 for two such headers, another scheme (`Basic`), and an empty token.
fn bearer(headers: &HeaderMap) -> Result<Option<&str>> {
    let mut values = headers.get_all(header::AUTHORIZATION).iter();
    let Some(value) = values.next() else { return Ok(None) };
    if values.next().is_some() {
        let message = "there must be one Authorization header";
        return Err(ApiError::new(Code::Unauthenticated, message));
    }
    let token =
        value.to_str().ok().and_then(|text| text.split_once(' ')).and_then(|(scheme, token)| {
            scheme
                .eq_ignore_ascii_case("bearer")
                .then(|| token.trim())
                .filter(|token| !token.is_empty())
        });
    token.map(Some).ok_or_else(|| {
        ApiError::new(Code::Unauthenticated, "the Authorization header must be: Bearer <key>")
    })
}

/// The value of the session cookie.
pub fn cookie_of(headers: &HeaderMap) -> Option<&str> {
    cookie_named(headers, SESSION_COOKIE)
}

/// The value of a cookie, when it is not empty: `abc` of `Cookie: a=1; service_session=abc`. Of two with one name the first counts.
pub fn cookie_named<'a>(headers: &'a HeaderMap, wanted: &str) -> Option<&'a str> {
    headers
        .get_all(header::COOKIE)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(';'))
        .filter_map(|pair| pair.trim().split_once('='))
        .find(|(name, value)| *name == wanted && !value.is_empty())
        .map(|(_, value)| value)
}

/// A browser says where a request comes from; a page of another site must not act with our cookie.
///
/// ```text
/// Origin: https://inlay.acme.com, Host: inlay.acme.com       passes
/// Origin: https://inlay.acme.com, Host: 10.0.0.5:8080        passes where this is the configured base URL
/// Origin: https://evil.example                               403
/// no Origin, Sec-Fetch-Site: cross-site                      403
/// no Origin, no Sec-Fetch-Site                               passes: not a browser, which could be made to send a cookie
/// ```
fn check_same_origin(headers: &HeaderMap, host: Option<&str>, base_url: &str) -> Result<()> {
    let text = |name| headers.get(name).and_then(|value| value.to_str().ok());
    // A proxy may have another name for us than browsers have.
    let same_host = |origin: &str| {
        let is_host = origin.split_once("://").is_some_and(|(scheme, of)| {
            host == Some(of) && (scheme == "https" || !base_url.starts_with("https://"))
        });
        is_host || origin == base_url
    };
    let fetch_site = headers.get("sec-fetch-site").and_then(|value| value.to_str().ok());
    let is_same = match text(header::ORIGIN) {
        Some(origin) => same_host(origin),
        None => matches!(fetch_site, None | Some("same-origin" | "none")),
    };
    if is_same {
        return Ok(());
    }
    Err(ApiError::new(
        Code::ForbiddenOrigin,
        "a change with the console's cookie must come from the console's own pages",
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_our_proxies_are_believed() {
        let ip = |text: &str| text.parse::<IpAddr>().unwrap();
        let trusted: Vec<IpNet> = vec!["10.0.0.0/8".parse().unwrap()];
        for (peer, forwarded, expected) in [
            ("203.0.113.7", vec![], "203.0.113.7"),
            ("203.0.113.7", vec!["1.1.1.1"], "203.0.113.7"),
            ("10.0.0.1", vec!["1.1.1.1"], "1.1.1.1"),
            ("10.0.0.1", vec!["9.9.9.9", " 1.1.1.1"], "1.1.1.1"),
            ("10.0.0.1", vec!["1.1.1.1", "10.0.0.2"], "1.1.1.1"),
            ("10.0.0.1", vec!["9.9.9.9", "1.1.1.1", "10.0.0.2"], "1.1.1.1"),
            ("10.0.0.1", vec!["unknown"], "10.0.0.1"),
            ("10.0.0.1", vec![], "10.0.0.1"),
        ] {
            assert_eq!(
                client_address(ip(peer), &forwarded, &trusted),
                ip(expected),
                "{forwarded:?}"
            );
        }
    }
}
