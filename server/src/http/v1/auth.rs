//! `/v1/auth`: registering, logging in and out, who am I.
//!
//! ```text
//! POST /v1/auth/register
//! {"email": "ada@acme.example", "password": "correct horse battery", "name": "Ada Lovelace", "org_name": "Acme"}
//! 201 {"user":{"id":"01a21f84-f2ae-…","email":"ada@acme.example",…},"org":{"name":"Acme","plan":"growth",…},"role":"owner",
//!      "environments":[{"id":"01a21f84-…","name":"production"},{"id":"01a21f84-…","name":"development"}],
//!      "api_key":{"label":"Default admin key","scope":"admin","key":"inlay_admin_92wx2V83UPS5…",…}}
//! Set-Cookie: service_session=6kp0RGVm5ajO…; HttpOnly; SameSite=Lax; Path=/; Max-Age=1209600
//!
//! the same again                                                          409 an account with this e-mail address exists
//! {"email": "ada", "password": "short", "name": ""}                       400 with three faults: name, password, org_name
//! POST /v1/auth/login {"email": "ada@acme.example", "password": "wrong"}  401 e-mail address or password is wrong
//! ```
//!
//! A session is for the console; programs use API keys.

use axum::{extract::State, http::HeaderMap};
use inlay_proto::names::SESSION_COOKIE;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::{
    api_keys::{self, NewApiKeyView},
    view::{Name, Time},
};
use crate::{
    app::{Caller, Client, Principal, Quota, RESERVED_DOMAIN, SESSION_SECONDS, SessionOpened},
    base::{secret, text},
    error::{ApiError, Code, Result},
    http::{
        extract::Body,
        middleware::caller::{SessionCookie, cookie_of},
        respond::{Answer, Created, NoContent, WithCookie},
        state::context::Http,
    },
    store::{Environment, Org, Role, User},
};

/// A person and the organisation that they register.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Register {
    #[schema(format = "email", max_length = 254, example = "ada@acme.example")]
    email: String,
    #[schema(format = Password, min_length = 10, max_length = 200, example = "correct horse battery")]
    password: String,
    #[schema(value_type = Name, example = "Ada Lovelace")]
    name: String,
    #[schema(value_type = Name, example = "Acme")]
    org_name: String,
}

/// Who logs in.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Login {
    #[schema(format = "email", example = "ada@acme.example")]
    email: String,
    #[schema(format = Password, example = "correct horse battery")]
    password: String,
}

/// Who accepts an invite.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct AcceptInvite {
    /// The signed token of the invite.
    token: String,
    #[schema(value_type = Name, example = "Grace Hopper")]
    name: String,
    #[schema(format = Password, min_length = 10, max_length = 200, example = "correct horse battery")]
    password: String,
}

/// A person who can log in.
#[derive(Serialize, ToSchema)]
#[schema(as = User)]
pub struct UserView {
    #[schema(format = Uuid)]
    id: String,
    #[schema(example = "ada@acme.example")]
    email: String,
    name: String,
    created_at: Time,
}

/// An organisation as its members see it.
#[derive(Serialize, ToSchema)]
#[schema(as = Org)]
pub struct OrgView {
    #[schema(format = Uuid)]
    id: String,
    #[schema(example = "Acme")]
    name: String,
    /// Contact address of the organisation.
    email: String,
    #[schema(example = "growth")]
    plan: String,
    environments: Vec<EnvironmentView>,
    created_at: Time,
}

/// A separate world of events.
#[derive(Serialize, ToSchema)]
#[schema(as = Environment)]
pub struct EnvironmentView {
    #[schema(format = Uuid)]
    id: String,
    #[schema(example = "production")]
    name: String,
}

/// What registering made.
#[derive(Serialize, ToSchema)]
pub struct Registered {
    user: UserView,
    org: OrgView,
    role: Role,
    environments: Vec<EnvironmentView>,
    api_key: NewApiKeyView,
}

/// A session that was opened.
#[derive(Serialize, ToSchema)]
pub struct LoggedIn {
    user: UserView,
    org: OrgView,
    role: Role,
}

/// Whose credentials these are.
#[derive(Serialize, ToSchema)]
pub struct Me {
    /// Null for a key.
    #[schema(required = false)]
    user: Option<UserView>,
    org: OrgView,
    /// Null for a key.
    #[schema(required = false)]
    role: Option<Role>,
    /// `admin`, `member` or `ingest`.
    #[schema(example = "admin")]
    scope: &'static str,
    #[schema(example = "production")]
    environment: String,
    /// `session` or `api_key`.
    #[schema(example = "session")]
    auth: &'static str,
}

/// Makes user, organisation, environments, key and session. 201, or 409 when the address is taken.
///
/// The address and the account are counted against the rate limit `register`. Guests of the demo have addresses of a reserved domain, which
/// nobody can register. The environment `development` of the new organisation has a sample of events, for a first look.
pub async fn register(
    State(http): State<Http>,
    client: Client,
    body: Body<Register>,
) -> Result<WithCookie<Created<Registered>>> {
    let body = body.read()?;
    count_account(&http, Quota::Register, &body.email)?;
    if body.email.trim().to_lowercase().ends_with(RESERVED_DOMAIN) {
        let message = "email is not an e-mail address that gets mail";
        return Err(ApiError::field(Code::InvalidField, "email", message));
    }
    let made = http
        .run_hashing(move |app| {
            let (email, password) = (&body.email, &body.password);
            let made = app.register(email, password, &body.name, &body.org_name, client)?;
            app.add_sample(&made.org);
            Ok(made)
        })
        .await?;
    let (key, secret) = made.api_key;
    let org = org(&made.org);
    let answer = Created(Registered {
        user: user(made.user),
        org,
        role: Role::Owner,
        environments: made.org.environments.iter().map(environment).collect(),
        api_key: NewApiKeyView {
            record: api_keys::view(key, "production".to_owned()),
            key: secret,
        },
    });
    Ok(WithCookie { answer, cookie: cookie(&http, &made.session, SESSION_SECONDS) })
}

/// Opens a session. 200 with the user, and the cookie; the session that the request came with ends.
///
/// Errors: 401 for an unknown address and a wrong password alike, after the time of one password hash; 429 after ten attempts in a quarter
/// of an hour, counted by address and by account.
pub async fn login(
    State(http): State<Http>,
    client: Client,
    headers: HeaderMap,
    body: Body<Login>,
) -> Result<WithCookie<Answer<LoggedIn>>> {
    let body = body.read()?;
    // The address has its own count, in front of every request.
    count_account(&http, Quota::Login, &body.email)?;
    let before = cookie_of(&headers).map(str::to_owned);
    let session = http
        .run_hashing(move |app| app.login(&body.email, &body.password, before.as_deref(), client))
        .await?;
    Ok(logged_in(&http, session))
}

/// Makes the invited a member, and opens a session. An invite is good for once.
///
/// ```text
/// POST /v1/auth/accept-invite {"token": "eyJ0eXAiOiJpbnZpdGUr…", "name": "Grace Hopper", "password": "correct horse battery"}
/// 200 {"user":{"email":"grace@acme.example",…},"org":{"name":"Acme",…},"role":"editor"}
/// the same again
/// 401 {"code":"token_revoked","error":"the invite was used or withdrawn",…}
/// ```
pub async fn accept_invite(
    State(http): State<Http>,
    client: Client,
    body: Body<AcceptInvite>,
) -> Result<WithCookie<Answer<LoggedIn>>> {
    let body = body.read()?;
    let session = http
        .run_hashing(move |app| app.accept_invite(&body.token, &body.name, &body.password, client))
        .await?;
    Ok(logged_in(&http, session))
}

/// Counts an attempt at an account, however its address is written. What is no address counts as one.
pub fn count_account(http: &Http, quota: Quota, email: &str) -> Result<()> {
    let email = text::email("email", email).unwrap_or_default();
    http.throttle.take(quota, &format!("account {}", secret::digest(&email))).1.map(drop)
}

/// A session that was opened, with its cookie.
pub fn logged_in(http: &Http, session: SessionOpened) -> WithCookie<Answer<LoggedIn>> {
    let cookie = cookie(http, &session.session, SESSION_SECONDS);
    let org = org(&session.org);
    let answer = Answer(LoggedIn { user: user(session.user), org, role: session.role });
    WithCookie { answer, cookie }
}

/// Ends the session and clears its cookie. 204. A key has no session: 403.
pub async fn logout(
    State(http): State<Http>,
    caller: Caller,
    SessionCookie(session): SessionCookie,
) -> Result<WithCookie<NoContent>> {
    http.run(move |app| app.logout(&caller, &session)).await?;
    Ok(WithCookie { answer: NoContent, cookie: cookie(&http, "", 0) })
}

/// Who the credentials belong to.
///
/// ```text
/// with a session  200 {"user":{…},"org":{…},"role":"owner","scope":"admin","environment":"production","auth":"session"}
/// with a key      200 {"user":null,"org":{…},"role":null,"scope":"admin","environment":"production","auth":"api_key"}
/// ```
pub async fn me(State(http): State<Http>, caller: Caller) -> Result<Answer<Me>> {
    me_of(&http, caller).await.map(Answer)
}

/// Who a caller is, as `GET /v1/auth/me` says it.
pub async fn me_of(http: &Http, caller: Caller) -> Result<Me> {
    let known = caller.clone();
    let (found, organisation) =
        http.run(move |app| Ok((app.user_of(&known)?, app.org(&known.org)?))).await?;
    // Roles as a scope of keys, for clients that know only keys: viewers and editors are `member`, admins and owners `admin`.
    let (role, scope) = match caller.principal {
        Principal::Viewer => (Some(Role::Viewer), "member"),
        Principal::Editor => (Some(Role::Editor), "member"),
        Principal::Admin => (Some(Role::Admin), "admin"),
        Principal::Owner => (Some(Role::Owner), "admin"),
        Principal::IngestKey => (None, "ingest"),
        _ => (None, "admin"),
    };
    Ok(Me {
        user: found.map(user),
        org: org(&organisation),
        role,
        scope,
        auth: if caller.is_key() { "api_key" } else { "session" },
        environment: caller.environment.name.clone(),
    })
}

/// The header that sets the session cookie, for `max_age` seconds; 0 clears it. `Secure` where the base URL is `https://`.
///
/// `SameSite=Lax`: a link to the console from another site finds one logged in, a form of another site does not.
pub fn cookie(http: &Http, value: &str, max_age: i64) -> String {
    let secure = if http.app.settings.base_url.starts_with("https://") { "; Secure" } else { "" };
    format!("{SESSION_COOKIE}={value}; HttpOnly; SameSite=Lax; Path=/; Max-Age={max_age}{secure}")
}

fn user(user: User) -> UserView {
    UserView { id: user.id, email: user.email, name: user.name, created_at: Time(user.created_at) }
}

/// An organisation as its members see it.
pub fn org(org: &Org) -> OrgView {
    OrgView {
        id: org.id.clone(),
        name: org.name.clone(),
        email: org.email.clone(),
        plan: org.plan.clone(),
        environments: org.environments.iter().map(environment).collect(),
        created_at: Time(org.created_at),
    }
}

fn environment(environment: &Environment) -> EnvironmentView {
    EnvironmentView { id: environment.id.clone(), name: environment.name.clone() }
}
