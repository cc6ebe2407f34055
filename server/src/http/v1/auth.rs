//! `/v1/auth`: registering, logging in and out, who am I.

use axum::{
    Extension, Json,
    body::Bytes,
    extract::State,
    http::{HeaderMap, HeaderValue, StatusCode, header},
    response::{IntoResponse, Response},
};
use inlay_proto::names::SESSION_COOKIE;
use serde::Deserialize;
use serde_json::{Value, json};

use super::api_keys;
use crate::{
    app::{Caller, Principal, SESSION_SECONDS},
    base::instant,
    error::Result,
    http::{caller::SessionCookie, context::Http, extract},
    store::{Environment, Org, Role, User},
};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RegisterBody {
    email: String,
    password: String,
    name: String,
    org_name: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct LoginBody {
    email: String,
    password: String,
}

/// Makes user, organisation, environments, key and session. 201, or 409 when the address is taken.
pub async fn register(
    State(http): State<Http>,
    headers: HeaderMap,
    body: Bytes,
) -> Result<Response> {
    let body: RegisterBody = extract::json(&headers, &body)?;
    let made = http
        .run_hashing(move |app| {
            app.register(&body.email, &body.password, &body.name, &body.org_name)
        })
        .await?;
    let (key, secret) = &made.api_key;
    let mut api_key = api_keys::view(key, "production");
    api_key["key"] = json!(secret);
    let body = json!({
        "user": user(&made.user), "org": org(&made.org), "role": "owner",
        "environments": made.org.environments.iter().map(environment).collect::<Vec<_>>(),
        "api_key": api_key,
    });
    Ok(with_cookie(
        &http,
        (StatusCode::CREATED, Json(body)).into_response(),
        &made.session,
        SESSION_SECONDS,
    ))
}

/// Opens a session.
pub async fn login(State(http): State<Http>, headers: HeaderMap, body: Bytes) -> Result<Response> {
    let body: LoginBody = extract::json(&headers, &body)?;
    let session = http.run_hashing(move |app| app.login(&body.email, &body.password)).await?;
    let body =
        json!({"user": user(&session.user), "org": org(&session.org), "role": role(session.role)});
    Ok(with_cookie(&http, Json(body).into_response(), &session.session, SESSION_SECONDS))
}

/// Ends the session. 204.
pub async fn logout(
    State(http): State<Http>,
    _caller: Caller,
    Extension(SessionCookie(cookie)): Extension<SessionCookie>,
) -> Result<Response> {
    http.run(move |app| app.logout(&cookie)).await?;
    Ok(with_cookie(&http, StatusCode::NO_CONTENT.into_response(), "", 0))
}

/// Who the credentials belong to.
pub async fn me(State(http): State<Http>, caller: Caller) -> Result<Json<Value>> {
    let known = caller.clone();
    let (found, organisation) =
        http.run(move |app| Ok((app.user_of(&known)?, app.org(&known.org)?))).await?;
    let (role, scope) = match caller.principal {
        Principal::Viewer => (Some("viewer"), "member"),
        Principal::Editor => (Some("editor"), "member"),
        Principal::Admin => (Some("admin"), "admin"),
        Principal::Owner => (Some("owner"), "admin"),
        Principal::IngestKey => (None, "ingest"),
        _ => (None, "admin"),
    };
    Ok(Json(json!({
        "user": found.as_ref().map(user), "org": org(&organisation), "role": role, "scope": scope,
        "environment": caller.environment.name,
        "auth": if caller.is_key() { "api_key" } else { "session" },
    })))
}

fn with_cookie(http: &Http, mut response: Response, value: &str, max_age: i64) -> Response {
    let secure = if http.app.settings.base_url.starts_with("https://") { "; Secure" } else { "" };
    let cookie = format!(
        "{SESSION_COOKIE}={value}; HttpOnly; SameSite=Lax; Path=/; Max-Age={max_age}{secure}"
    );
    if let Ok(cookie) = HeaderValue::from_str(&cookie) {
        response.headers_mut().append(header::SET_COOKIE, cookie);
    }
    response
}

fn role(role: Role) -> Value {
    json!(role)
}

fn user(user: &User) -> Value {
    json!({"id": user.id, "email": user.email, "name": user.name, "created_at": instant::format(user.created_at)})
}

/// An organisation as its members see it.
pub fn org(org: &Org) -> Value {
    json!({
        "id": org.id, "name": org.name, "email": org.email, "plan": org.plan,
        "environments": org.environments.iter().map(environment).collect::<Vec<_>>(),
        "created_at": instant::format(org.created_at),
    })
}

fn environment(environment: &Environment) -> Value {
    json!({"id": environment.id, "name": environment.name})
}
